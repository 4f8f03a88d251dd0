/* Memory off the chip that only transfers may touch: see certile_guard.h. */
#ifdef CERTILE_DMA_GUARD
#define _POSIX_C_SOURCE 200809L
#include "certile_guard.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 64, NAMES = 4096, PAGE = 4096 };
static struct {
    unsigned char *begin;
    size_t bytes;
    const char *name;
} arrays[MOST];
static const char *names[NAMES];
static int number, opened, known;
static unsigned char *moved;
static size_t moved_bytes;

static void protect(unsigned char *begin, size_t bytes, int how)
{
    if (mprotect(begin, bytes, how)) {
        perror("mprotect");
        exit(2);
    }
}

static void caught(int what, siginfo_t *info, void *context)
{
    (void)what, (void)context;
    const uintptr_t at = (uintptr_t)info->si_addr;
    for (int k = 0; k < number; k++) {
        const uintptr_t begin = (uintptr_t)arrays[k].begin;
        if (begin <= at && at < begin + arrays[k].bytes) {
            fprintf(stderr, "FAILED: byte %zu of %s is touched past certile_dma\n", (size_t)(at - begin), arrays[k].name);
            _exit(1);
        }
    }
    fputs("FAILED: an access outside of all memory\n", stderr);
    _exit(1);
}

void certile_guard(unsigned char *array, size_t bytes, const char *name)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = caught;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
    arrays[number].begin = array;
    arrays[number].bytes = bytes;
    arrays[number++].name = name;
    protect(array, bytes, PROT_NONE);
}

static void all(int how)
{
    for (int k = 0; k < number; k++) {
        protect(arrays[k].begin, arrays[k].bytes, how);
    }
}

void certile_open(const char *who)
{
    int k = 0;
    while (k < known && strcmp(names[k], who) != 0) {
        k++;
    }
    if (k == known && known < NAMES) {
        names[known++] = who;
    }
    if (!opened++) {
        all(PROT_READ | PROT_WRITE);
    }
}

void certile_shut(void)
{
    if (!--opened) {
        all(PROT_NONE);
    }
}

void certile_guard_begin(const void *dram, size_t bytes, int load)
{
    const uintptr_t at = (uintptr_t)dram, first = at / PAGE * PAGE;
    moved_bytes = 0;
    for (int k = 0; k < number && !opened; k++) {
        const uintptr_t begin = (uintptr_t)arrays[k].begin;
        if (begin <= at && at < begin + arrays[k].bytes && bytes) {
            moved = arrays[k].begin + (first - begin);
            moved_bytes = (at + bytes - first + PAGE - 1) / PAGE * PAGE;
            protect(moved, moved_bytes, load ? PROT_READ : PROT_READ | PROT_WRITE);
        }
    }
}

void certile_guard_end(void)
{
    if (moved_bytes) {
        protect(moved, moved_bytes, PROT_NONE);
    }
}

void certile_guard_report(void)
{
    printf("guard: %d arrays off the chip were touched by certile_dma alone; the host opened them for\n", number);
    for (int k = 0; k < known; k++) {
        printf("  %s\n", names[k]);
    }
}
#else
typedef int certile_not_empty;
#endif

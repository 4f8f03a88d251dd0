/* A DMA that copies and counts. With CERTILE_DMA_LATE defined it copies as late as it may: when it is waited for. */
#include "certile_dma.h"

#include "certile_guard.h"

#include <string.h>

certile_counts certile_counted[CERTILE_OPERANDS];

static int operand, loading;
static size_t started;
static const char *last_end;

static void copy(void *chip, void *dram, size_t bytes, int load)
{
    certile_guard_begin(dram, bytes, load);
    memcpy(load ? chip : dram, load ? dram : chip, bytes);
    certile_guard_end();
}

#ifdef CERTILE_DMA_LATE
enum { LONGEST = 1 << 16 };
static struct {
    void *chip, *dram;
    size_t bytes, call;
    int load;
} queue[LONGEST];
static size_t queued, done;

static void put(void *chip, void *dram, size_t bytes)
{
    if (queued == LONGEST) {
        certile_dma_wait();
    }
    queue[queued].chip = chip;
    queue[queued].dram = dram;
    queue[queued].bytes = bytes;
    queue[queued].call = started;
    queue[queued++].load = loading;
}

void certile_dma_wait_for(size_t calls)
{
    for (; done < queued && queue[done].call < calls; done++) {
        copy(queue[done].chip, queue[done].dram, queue[done].bytes, queue[done].load);
    }
    if (done == queued) {
        done = queued = 0;
    }
}
#else
static void put(void *chip, void *dram, size_t bytes)
{
    copy(chip, dram, bytes, loading);
}

void certile_dma_wait_for(size_t calls)
{
    (void)calls;
}
#endif

void certile_dma_wait(void)
{
    certile_dma_wait_for(started + 1);
}

size_t certile_dma_started(void)
{
    return started;
}

void certile_dma_begin(int what, int load)
{
    operand = what;
    loading = load;
    last_end = NULL;
}

void certile_dma_2d(void *chip, void *dram, size_t bytes, size_t runs, ptrdiff_t chip_pitch, ptrdiff_t dram_pitch)
{
    certile_counts *counts = &certile_counted[operand];
    for (size_t k = 0; k < runs; k++) {
        char *from = (char *)dram + (ptrdiff_t)k * dram_pitch;
        put((char *)chip + (ptrdiff_t)k * chip_pitch, from, bytes);
        counts->segments += from != last_end;
        last_end = from + bytes;
    }
    counts->bytes += bytes * runs;
}

void certile_dma_start(void)
{
    certile_counted[operand].calls++;
    started++;
}

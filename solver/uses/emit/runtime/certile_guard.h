/* A test build (CERTILE_DMA_GUARD, `make guard`) in which memory off the chip can be touched by certile_dma alone.
 *
 * Its arrays are shut: an access that is no transfer ends the program and says which array. What the host computes
 * between layers opens them and gives its name; all names are listed at the end. */
#ifndef CERTILE_GUARD_H
#define CERTILE_GUARD_H

#include <stddef.h>

#ifdef CERTILE_DMA_GUARD
/* Shut an array: it begins at a page, and has whole ones. */
void certile_guard(unsigned char *array, size_t bytes, const char *name);

/* Open all arrays, for the host; shut them again. These may be nested. */
void certile_open(const char *who);
void certile_shut(void);

/* Before and after a transfer: what it reads (or writes) is open. */
void certile_guard_begin(const void *dram, size_t bytes, int load);
void certile_guard_end(void);

/* Say who has opened the arrays. */
void certile_guard_report(void);
#else
#define certile_guard(array, bytes, name) ((void)0)
#define certile_open(who) ((void)0)
#define certile_shut() ((void)0)
#define certile_guard_begin(dram, bytes, load) ((void)0)
#define certile_guard_end() ((void)0)
#define certile_guard_report() ((void)0)
#endif

#endif

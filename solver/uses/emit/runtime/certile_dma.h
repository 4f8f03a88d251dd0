/* Transfers between the memory off the chip and the memories on it.
 *
 * A call is begun, gets its pieces, and is started: certile_dma_begin, certile_dma_2d (any number), certile_dma_start.
 * Calls are carried out one after the other, in the order in which they were started; certile_dma_wait returns when all
 * are done, certile_dma_wait_for when the first ones are. Replace certile_dma.c by a driver of your machine; the one that comes with it copies and counts.
 */
#ifndef CERTILE_DMA_H
#define CERTILE_DMA_H

#include <stddef.h>

/* What a call moves: inputs, weights (with biases), results, partial sums. */
enum { CERTILE_IN, CERTILE_W, CERTILE_OUT, CERTILE_PSUM, CERTILE_OPERANDS };

/* A segment is a maximal run of contiguous addresses of one tensor off the chip. */
typedef struct {
    unsigned long long calls, segments, bytes;
} certile_counts;

extern certile_counts certile_counted[CERTILE_OPERANDS];

/* Begin a call, or in it the pieces of another tensor; `load`: from the memory off the chip (else to it). */
void certile_dma_begin(int operand, int load);

/* Add `runs` runs of `bytes` bytes, `pitch` bytes apart on either side. */
void certile_dma_2d(void *chip, void *dram, size_t bytes, size_t runs, ptrdiff_t chip_pitch, ptrdiff_t dram_pitch);

/* Start the call. */
void certile_dma_start(void);

/* Wait until all calls are done. */
void certile_dma_wait(void);

/* How many calls were started so far; wait until so many of all that were ever started are done. */
size_t certile_dma_started(void);
void certile_dma_wait_for(size_t calls);

#endif

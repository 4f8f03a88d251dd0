/* Transfers between memories in levels, by channel, and what they move.
 *
 * A channel is the number of the farther one of the two memories, 0 off the chip. All transfers go through certile_dma
 * and certile_dma_end: put your driver in their place. When certile_dma_end returns, the transfer is done.
 */
#ifndef CERTILE_CHANNELS_H
#define CERTILE_CHANNELS_H

#include <stddef.h>

enum { CERTILE_CHANNELS = 16 };

typedef struct {
    unsigned long long calls, bytes;
} certile_channel;

/* What moved so far. */
extern certile_channel certile_moved[CERTILE_CHANNELS];

/* A piece of a transfer: `runs` runs of `bytes` bytes, so many bytes apart on either side. */
void certile_dma(int channel, unsigned char *to, const unsigned char *from, size_t bytes, size_t runs, ptrdiff_t to_pitch,
                 ptrdiff_t from_pitch);

/* A transfer has all its pieces. */
void certile_dma_end(int channel);

/* Compare what moved since the last time with the plan; says what differs. Returns whether all is as planned. */
int certile_channels_as_planned(const char *layer, const char *const names[], const certile_channel planned[], int number);

#endif

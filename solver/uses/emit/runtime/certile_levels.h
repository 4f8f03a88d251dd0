/* Memories in levels: transfers between a memory and nearer ones, and what they move.
 *
 * A channel is the number of the farther one of the two memories, 0 off the chip. All transfers go through certile_dma
 * and certile_dma_end: put your driver in their place. When certile_dma_end returns, the transfer is done.
 */
#ifndef CERTILE_LEVELS_H
#define CERTILE_LEVELS_H

#include "certile_check.h"
#include "certile_tile.h"

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

/* Let a tile begin where a box does; along the axis `ring`, if it is not -1, element x lies at x modulo its extent. */
void certile_begin(certile_tile *tile, const certile_box *box, int ring);

/* Move `bytes` bytes of every element of a box between tiles with the same axes: as a part of a transfer, or as the last
 * part of one, which is none if the box is empty. */
void certile_part(int channel, const certile_tile *to, const certile_tile *from, const certile_box *box, int bytes);
void certile_pass(int channel, const certile_tile *to, const certile_tile *from, const certile_box *box, int bytes);

/* Compare what moved since the last time with the plan; says what differs. Returns whether all is as planned. */
int certile_channels_as_planned(const char *layer, const char *const names[], const certile_channel planned[], int number);

#endif

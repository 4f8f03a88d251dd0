/* Memories in levels: tiles, and boxes that move between them. */
#ifndef CERTILE_LEVELS_H
#define CERTILE_LEVELS_H

#include "certile_channels.h"
#include "certile_check.h"
#include "certile_tile.h"

/* Let a tile begin where a box does; along the axis `ring`, if it is not -1, element x lies at x modulo its extent. */
void certile_begin(certile_tile *tile, const certile_box *box, int ring);

/* Move `bytes` bytes of every element of a box between tiles with the same axes: as a part of a transfer, or as the last
 * part of one, which is none if the box is empty. */
void certile_part(int channel, const certile_tile *to, const certile_tile *from, const certile_box *box, int bytes);
void certile_pass(int channel, const certile_tile *to, const certile_tile *from, const certile_box *box, int bytes);

#endif

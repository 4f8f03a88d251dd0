/* Transfers by channel: see certile_channels.h. Here a transfer copies at once, and is counted. */
#include "certile_channels.h"

#include <string.h>

certile_channel certile_moved[CERTILE_CHANNELS];

void certile_dma(int channel, unsigned char *to, const unsigned char *from, size_t bytes, size_t runs, ptrdiff_t to_pitch,
                 ptrdiff_t from_pitch)
{
    for (size_t k = 0; k < runs; k++) {
        memcpy(to + (ptrdiff_t)k * to_pitch, from + (ptrdiff_t)k * from_pitch, bytes);
    }
    certile_moved[channel].bytes += bytes * runs;
}

void certile_dma_end(int channel)
{
    certile_moved[channel].calls++;
}

#ifndef CERTILE_BARE
#include <stdio.h>

int certile_channels_as_planned(const char *layer, const char *const names[], const certile_channel planned[], int number)
{
    int equal = 1;
    for (int k = 0; k < number; k++) {
        const certile_channel *is = &certile_moved[k], *want = &planned[k];
        if (is->calls != want->calls || is->bytes != want->bytes) {
            printf("%s: channel %d, %s, moved %llu bytes in %llu calls; planned %llu in %llu: FAILED\n", layer, k, names[k],
                   is->bytes, is->calls, want->bytes, want->calls);
            equal = 0;
        }
    }
    memset(certile_moved, 0, sizeof certile_moved);
    return equal;
}
#endif

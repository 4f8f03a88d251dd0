/* Functions of several elements at once, on floats (softmax on integers, too) that lie one after the other: `outer` times `size` times `inner`. */
#ifndef CERTILE_ROWS_H
#define CERTILE_ROWS_H

#include <stdint.h>

/* Functions along the middle axis. */
void certile_softmax(unsigned char *to, const unsigned char *from, long outer, long size, long inner, int logarithm);

/* The same softmax of integers of 8 bits (`low` is the smallest of their kind) and of 16: results count from there, in
 * 256ths and in 32768ths. `exps`: exp of 0 to 255 steps below the largest element, in 2^31sts; of 16 bits exp from -10 to
 * 0, `parts` 1 / (1 + x) from 0 to 1 (certile_between), and a multiplier and a shift that make 65535 of 10. */
void certile_softmax8(unsigned char *to, const unsigned char *from, long outer, long size, long inner, int low,
                      const int32_t *exps);
void certile_softmax16(unsigned char *to, const unsigned char *from, long outer, long size, long inner,
                       int32_t multiplier, int shift, const int16_t *exps, const int16_t *parts);

/* (x - mean) / sqrt(variance + epsilon) * scale + shift, `outer` times over `size` elements. Scale and shift (or NULL):
 * `rows` rows have numbers of their own, which then repeat, and `run` elements beside each other share one. */
void certile_normalise(unsigned char *to, const unsigned char *from, long outer, long size, float epsilon,
                       const float *scale, const float *shift, long rows, long run);

/* x / sqrt(mean of squares + epsilon) * scale, `outer` times over `size` elements; scale by element. */
void certile_rms(unsigned char *to, const unsigned char *from, long outer, long size, float epsilon, const float *scale);

/* x / (sum of sizes), or with `p` 2 / sqrt(sum of squares), along the middle axis. */
void certile_lp(unsigned char *to, const unsigned char *from, long outer, long size, long inner, int p);

/* Local response over `window` channels. */
void certile_lrn(unsigned char *to, const unsigned char *from, long outer, long size, long inner, long window, float alpha,
                 float beta, float bias);

/* The neighbours of the places that a grid names in a map, and how far each place lies behind the first of them (with four
 * along an axis the second one): `part[0]` along columns, `part[1]` along rows. `size`: images, channels, rows and columns
 * of the map, rows and columns of the grid; pitches are by image, channel, row, column, of the grid by image, row, column,
 * number. `taps` neighbours along an axis, 1, 2 or 4. Beyond the border there are zeros (`padding` 0), the pixels at the
 * border (1), or what is reflected there (2). -1 and 1 are the middles of the outer pixels if `corners`, else their edges. */
void certile_neighbours(unsigned char *const *near, const long *near_pitch, unsigned char *const *part,
                        const unsigned char *map, const long *map_pitch, const unsigned char *grid, const long *grid_pitch,
                        const long *size, int taps, int padding, int corners);

#endif

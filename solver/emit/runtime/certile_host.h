/* What the host does between layers, without any transfer of a plan: copies of tensors into another layout, and functions
 * of several elements at once, on floats that lie one after the other: `outer` times `size` times `inner` of them. */
#ifndef CERTILE_HOST_H
#define CERTILE_HOST_H

#include <stddef.h>

enum { CERTILE_MOST_AXES = 8 };

/* Copy elements of `bytes` bytes, `axes` sizes with a pitch (in elements) on either side. */
void certile_copy(unsigned char *to, const long *to_pitch, const unsigned char *from, const long *from_pitch,
                  const long *size, int axes, int bytes);

/* Functions along the middle axis. */
void certile_softmax(unsigned char *to, const unsigned char *from, long outer, long size, long inner, int logarithm);

/* (x - mean) / sqrt(variance + epsilon) * scale + shift, `outer` times over `size` elements. Scale and shift (or NULL) are
 * by element, or with `channels` by the number of the run modulo it. */
void certile_normalise(unsigned char *to, const unsigned char *from, long outer, long size, float epsilon,
                       const float *scale, const float *shift, long channels);

/* Local response over `window` channels. */
void certile_lrn(unsigned char *to, const unsigned char *from, long outer, long size, long inner, long window, float alpha,
                 float beta, float bias);

#endif

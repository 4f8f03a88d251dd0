/* Functions of several elements at once, on floats that lie one after the other: `outer` times `size` times `inner`. */
#ifndef CERTILE_ROWS_H
#define CERTILE_ROWS_H

/* Functions along the middle axis. */
void certile_softmax(unsigned char *to, const unsigned char *from, long outer, long size, long inner, int logarithm);

/* (x - mean) / sqrt(variance + epsilon) * scale + shift, `outer` times over `size` elements. Scale and shift (or NULL) are
 * by element, or with `channels` by the number of the run modulo it. */
void certile_normalise(unsigned char *to, const unsigned char *from, long outer, long size, float epsilon,
                       const float *scale, const float *shift, long channels);

/* x / sqrt(mean of squares + epsilon) * scale, `outer` times over `size` elements; scale by element. */
void certile_rms(unsigned char *to, const unsigned char *from, long outer, long size, float epsilon, const float *scale);

/* x / (sum of sizes), or with `p` 2 / sqrt(sum of squares), along the middle axis. */
void certile_lp(unsigned char *to, const unsigned char *from, long outer, long size, long inner, int p);

/* Local response over `window` channels. */
void certile_lrn(unsigned char *to, const unsigned char *from, long outer, long size, long inner, long window, float alpha,
                 float beta, float bias);

#endif

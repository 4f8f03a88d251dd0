/* Checks a layer's function against a naive loop nest, on integers made by a fixed rule. */
#ifndef CERTILE_CHECK_H
#define CERTILE_CHECK_H

#include "certile_dma.h"

#include <stdint.h>

enum { CERTILE_MOST_INPUTS = 16 };

typedef void certile_function(unsigned char *const in[], unsigned char *w, unsigned char *bias, unsigned char *out,
                              unsigned char *psum);

/* A layer: sizes, bytes of elements, and the element pitches of its tensors along their dimensions. */
typedef struct {
    const char *name;
    certile_function *run;
    int b, g, m, n, r, c, kh, kw, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left, h, l, inputs;
    int in_bytes, w_bytes, out_bytes, psum_bytes, bias_bytes; /* 0: there are none */
    size_t in_pitch[5];  /* b g n rows columns */
    size_t w_pitch[5];   /* g m n i j */
    size_t out_pitch[5]; /* b g m r c */
    certile_counts planned[CERTILE_OPERANDS];
} certile_layer;

/* Run a layer and compare; returns whether results and transfers are as they must be. Of large layers every so many-th
 * result is compared (CERTILE_MOST_PRODUCTS). Results go to `dump` if it is not NULL. */
int certile_check(const certile_layer *layer, void *dump);

#endif

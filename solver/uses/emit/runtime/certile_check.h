/* Checks layers against naive loop nests, on integers made by a fixed rule. */
#ifndef CERTILE_CHECK_H
#define CERTILE_CHECK_H

#include "certile_dma.h"

#include <stdint.h>

enum { CERTILE_MOST_INPUTS = 32 };

typedef void certile_function(unsigned char *const in[], unsigned char *w, unsigned char *bias, unsigned char *out,
                              unsigned char *psum);

/* Layers that run together: maps from outside by number, results, weights and biases by layer. */
typedef void certile_group(unsigned char *const in[], unsigned char *const out[], unsigned char *const w[],
                           unsigned char *const bias[]);

/* A layer: sizes, bytes of elements, and the element pitches of its tensors along their dimensions. */
typedef struct {
    const char *name;
    certile_function *run;
    int b, g, m, n, r, c, kh, kw, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left, h, l, inputs;
    int in_bytes, w_bytes, out_bytes, psum_bytes, bias_bytes; /* 0: there are none */
    size_t in_pitch[CERTILE_MOST_INPUTS][5]; /* of every input b g n rows columns, 0 along what it has one element of */
    size_t w_pitch[5];                       /* g m n i j */
    size_t out_pitch[5];                     /* b g m r c */
    certile_counts planned[CERTILE_OPERANDS];
    int unwritten; /* so many first rows of the result never leave the chip */
} certile_layer;

/* The tensors of a layer off the chip. */
typedef struct {
    unsigned char *in[CERTILE_MOST_INPUTS], *w, *bias, *out;
} certile_tensors;

/* Fill with the bytes that come next. */
void certile_fill(unsigned char *to, size_t bytes);

/* Compute a layer by a naive loop nest. */
void certile_naive(const certile_layer *layer, const certile_tensors *tensors);

/* Compare what was written of a result with another one; returns how many elements differ, and says so. */
size_t certile_differ(const certile_layer *layer, const unsigned char *is, const unsigned char *want);

/* Compare what moved since the last time with the plan; says what differs. Returns whether all is as planned. */
int certile_moved_as_planned(const certile_layer *layer);

/* The bytes that a group moves, by its first layer; -1 ends a table. */
typedef struct {
    int first;
    unsigned long long bytes[CERTILE_OPERANDS];
} certile_group_bytes;

/* The same for the bytes of a group, of which a plan counts neither calls nor segments. */
int certile_bytes_as_planned(const char *name, const certile_group_bytes *table, int first);

/* Around a transfer that runs ahead: says it if what it moves is not as planned (no segments: these are not compared). */
void certile_before_transfer(void);
void certile_after_transfer(int number, int operand, unsigned long segments, unsigned long bytes);

/* Run a layer by itself and compare; returns whether results and transfers are as they must be. Of large layers every so
 * many-th result is compared (CERTILE_MOST_PRODUCTS). Results go to `dump` if it is not NULL. */
int certile_check(const certile_layer *layer, void *dump);

#endif

/* Checks of layers: see certile_check.h. */
#include "certile_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const operand_name[CERTILE_OPERANDS] = {"IN", "W", "OUT", "PSUM"};

static uint32_t state;

/* The k-th byte of all data is the top byte of the k-th number after the seed; then small, so that sums say much. */
static void fill(unsigned char *to, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) {
        state = state * 1664525u + 1013904223u;
        to[k] = (unsigned char)(state >> 24);
    }
}

static uint64_t get(const unsigned char *from, int bytes)
{
    uint64_t x = 0;
    for (int k = 0; k < bytes; k++) {
        x |= (uint64_t)from[k] << (8 * k);
    }
    if (bytes < 8 && (x >> (8 * bytes - 1)) & 1) {
        x |= ~(uint64_t)0 << (8 * bytes);
    }
    return x;
}

static void put(unsigned char *to, int bytes, uint64_t x)
{
    for (int k = 0; k < bytes; k++) {
        to[k] = (unsigned char)(x >> (8 * k));
    }
}

static uint64_t element(const certile_layer *a, unsigned char *const in[], const unsigned char *w,
                        const unsigned char *bias, const int at[5])
{
    const int b = at[0], g = at[1], m = at[2], r = at[3], c = at[4];
    uint64_t sum = a->bias_bytes ? get(bias + ((size_t)g * a->m + m) * a->bias_bytes, a->bias_bytes) : 0;
    for (int n = 0; n < a->n; n++) {
        for (int i = 0; i < a->kh; i++) {
            for (int j = 0; j < a->kw; j++) {
                const int y = r * a->stride_h + i * a->dilation_h - a->pad_top;
                const int x = c * a->stride_w + j * a->dilation_w - a->pad_left;
                if (y < 0 || y >= a->h || x < 0 || x >= a->l) {
                    continue;
                }
                const size_t *p = a->in_pitch, *q = a->w_pitch;
                const size_t place = b * p[0] + g * p[1] + n * p[2] + y * p[3] + x * p[4];
                const size_t tap = g * q[0] + m * q[1] + n * q[2] + i * q[3] + j * q[4];
                const uint64_t weight = a->w_bytes ? get(w + tap * a->w_bytes, a->w_bytes) : 1;
                for (int k = 0; k < a->inputs; k++) {
                    sum += weight * get(in[k] + place * a->in_bytes, a->in_bytes);
                }
            }
        }
    }
    return sum;
}

/* Of layers with more products than this only every so many-th result is compared. */
#ifndef CERTILE_MOST_PRODUCTS
#define CERTILE_MOST_PRODUCTS 20000000
#endif

static size_t every(const certile_layer *a, size_t outputs)
{
    const double products = (double)outputs * a->n * a->kh * a->kw * a->inputs;
    const size_t step = 1 + (size_t)(products / CERTILE_MOST_PRODUCTS);
    return step == 1 || step % 2 ? step : step + 1;
}

static size_t differ(const certile_layer *a, unsigned char *const in[], const unsigned char *w,
                     const unsigned char *bias, const unsigned char *out)
{
    size_t wrong = 0, number = 0;
    const size_t step = every(a, (size_t)a->b * a->g * a->m * a->r * a->c);
    unsigned char want[8];
    int at[5];
    for (at[0] = 0; at[0] < a->b; at[0]++) {
        for (at[1] = 0; at[1] < a->g; at[1]++) {
            for (at[2] = 0; at[2] < a->m; at[2]++) {
                for (at[3] = 0; at[3] < a->r; at[3]++) {
                    for (at[4] = 0; at[4] < a->c; at[4]++) {
                        size_t place = 0;
                        if (number++ % step) {
                            continue;
                        }
                        for (int k = 0; k < 5; k++) {
                            place += at[k] * a->out_pitch[k];
                        }
                        put(want, a->out_bytes, element(a, in, w, bias, at));
                        wrong += memcmp(want, out + place * a->out_bytes, a->out_bytes) != 0;
                    }
                }
            }
        }
    }
    return wrong;
}

static int counted_as_planned(const certile_layer *a)
{
    int equal = 1;
    for (int k = 0; k < CERTILE_OPERANDS; k++) {
        const certile_counts *is = &certile_counted[k], *want = &a->planned[k];
        if (is->calls != want->calls || is->segments != want->segments || is->bytes != want->bytes) {
            printf("%s: %s moved by %llu calls, %llu segments, %llu bytes; planned %llu, %llu, %llu\n", a->name,
                   operand_name[k], is->calls, is->segments, is->bytes, want->calls, want->segments, want->bytes);
            equal = 0;
        }
    }
    return equal;
}

static unsigned char *room(size_t bytes)
{
    unsigned char *p = malloc(bytes ? bytes : 1);
    if (!p) {
        fputs("out of memory\n", stderr);
        exit(2);
    }
    fill(p, bytes);
    return p;
}

int certile_check(const certile_layer *a, void *dump)
{
    unsigned char *in[CERTILE_MOST_INPUTS];
    const size_t outputs = (size_t)a->b * a->g * a->m * a->r * a->c;
    state = 20;
    for (int k = 0; k < a->inputs; k++) {
        in[k] = room((size_t)a->b * a->g * a->n * a->h * a->l * a->in_bytes);
    }
    unsigned char *w = room((size_t)a->g * a->m * a->n * a->kh * a->kw * a->w_bytes);
    unsigned char *bias = room((size_t)a->g * a->m * a->bias_bytes);
    unsigned char *out = room(outputs * a->out_bytes), *psum = room(outputs * a->psum_bytes);
    memset(certile_counted, 0, sizeof certile_counted);
    a->run(in, w, bias, out, psum);
    const size_t wrong = differ(a, in, w, bias, out);
    const int planned = counted_as_planned(a);
    if (wrong) {
        printf("%s: %zu of %zu results differ from the naive loop nest\n", a->name, wrong, outputs);
    }
    if (dump) {
        fwrite(out, 1, outputs * a->out_bytes, dump);
    }
    for (int k = 0; k < a->inputs; k++) {
        free(in[k]);
    }
    free(w);
    free(bias);
    free(out);
    free(psum);
    return !wrong && planned;
}

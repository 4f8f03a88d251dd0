/* Checks of layers: see certile_check.h. */
#include "certile_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of layers with more products than this only every so many-th result is compared. */
#ifndef CERTILE_MOST_PRODUCTS
#define CERTILE_MOST_PRODUCTS 20000000
#endif

static const char *const operand_name[CERTILE_OPERANDS] = {"IN", "W", "OUT", "PSUM"};

static uint32_t state = 20;

/* The k-th byte of all data is the top byte of the k-th number after the seed. */
void certile_fill(unsigned char *to, size_t bytes)
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

static uint64_t result(const certile_layer *a, const certile_tensors *t, const int at[5])
{
    const int b = at[0], g = at[1], m = at[2], r = at[3], c = at[4];
    uint64_t sum = a->bias_bytes ? get(t->bias + ((size_t)g * a->m + m) * a->bias_bytes, a->bias_bytes) : 0;
    for (int i = 0; i < a->kh; i++) {
        for (int j = 0; j < a->kw; j++) {
            const int y = r * a->stride_h + i * a->dilation_h - a->pad_top;
            const int x = c * a->stride_w + j * a->dilation_w - a->pad_left;
            if (y < 0 || y >= a->h || x < 0 || x >= a->l) {
                continue;
            }
            for (int n = 0; n < a->n; n++) {
                const size_t *q = a->w_pitch;
                const size_t tap = g * q[0] + m * q[1] + n * q[2] + i * q[3] + j * q[4];
                const uint64_t weight = a->w_bytes ? get(t->w + tap * a->w_bytes, a->w_bytes) : 1;
                for (int k = 0; k < a->inputs; k++) {
                    const size_t *p = a->in_pitch[k];
                    const size_t place = b * p[0] + g * p[1] + n * p[2] + y * p[3] + x * p[4];
                    sum += weight * get(t->in[k] + place * a->in_bytes, a->in_bytes);
                }
            }
        }
    }
    return sum;
}

static size_t outputs(const certile_layer *a)
{
    return (size_t)a->b * a->g * a->m * a->r * a->c;
}

/* Move on to the next element of the result; returns 0 behind the last one. */
static int next(const certile_layer *a, int at[5])
{
    const int size[5] = {a->b, a->g, a->m, a->r, a->c};
    for (int k = 4; k >= 0; k--) {
        if (++at[k] < size[k]) {
            return 1;
        }
        at[k] = 0;
    }
    return 0;
}

static size_t place(const certile_layer *a, const int at[5])
{
    size_t sum = 0;
    for (int k = 0; k < 5; k++) {
        sum += at[k] * a->out_pitch[k];
    }
    return sum * (size_t)a->out_bytes;
}

void certile_naive(const certile_layer *a, const certile_tensors *tensors)
{
    int at[5] = {0};
    do {
        put(tensors->out + place(a, at), a->out_bytes, result(a, tensors, at));
    } while (next(a, at));
}

/* What is found wrong of a result: how many elements, the place of the first one and both its values. */
typedef struct {
    size_t number;
    int at[5];
    uint64_t is, want;
} faults;

static void note(const certile_layer *a, faults *found, const int at[5], const unsigned char *is, const unsigned char *want)
{
    if (memcmp(is, want, (size_t)a->out_bytes) == 0) {
        return;
    }
    if (!found->number++) {
        memcpy(found->at, at, sizeof found->at);
        found->is = get(is, a->out_bytes);
        found->want = get(want, a->out_bytes);
    }
}

static size_t say(const certile_layer *a, const faults *found)
{
    if (found->number) {
        const int *at = found->at;
        printf("%s: %zu of %zu results differ from the naive loop nest: FAILED, first at b %d, g %d, m %d, r %d, c %d: %lld, "
               "right is %lld\n", a->name, found->number, outputs(a), at[0], at[1], at[2], at[3], at[4],
               (long long)found->is, (long long)found->want);
    }
    return found->number;
}

size_t certile_differ(const certile_layer *a, const unsigned char *is, const unsigned char *want)
{
    faults found = {0};
    int at[5] = {0};
    do {
        if (at[3] >= a->unwritten) {
            note(a, &found, at, is + place(a, at), want + place(a, at));
        }
    } while (next(a, at));
    return say(a, &found);
}

/* Compare every so many-th result. */
static size_t sample(const certile_layer *a, const certile_tensors *t)
{
    const double products = (double)outputs(a) * a->n * a->kh * a->kw * a->inputs;
    size_t step = 1 + (size_t)(products / CERTILE_MOST_PRODUCTS), number = 0;
    faults found = {0};
    unsigned char want[8];
    int at[5] = {0};
    step += step > 1 && step % 2 == 0;
    do {
        if (number++ % step == 0) {
            put(want, a->out_bytes, result(a, t, at));
            note(a, &found, at, t->out + place(a, at), want);
        }
    } while (next(a, at));
    return say(a, &found);
}

int certile_moved_as_planned(const certile_layer *a)
{
    int equal = 1;
    for (int k = 0; k < CERTILE_OPERANDS; k++) {
        const certile_counts *is = &certile_counted[k], *want = &a->planned[k];
        if (is->calls != want->calls || is->segments != want->segments || is->bytes != want->bytes) {
            printf("%s: %s moved by %llu calls, %llu segments, %llu bytes; planned %llu, %llu, %llu: FAILED\n", a->name,
                   operand_name[k], is->calls, is->segments, is->bytes, want->calls, want->segments, want->bytes);
            equal = 0;
        }
    }
    memset(certile_counted, 0, sizeof certile_counted);
    return equal;
}

/* Transfers that were not as planned, since the last time that this was asked for. */
static int unlike;
static certile_counts before[CERTILE_OPERANDS];

void certile_before_transfer(void)
{
    memcpy(before, certile_counted, sizeof before);
}

void certile_after_transfer(int number, int operand, unsigned long segments, unsigned long bytes)
{
    const unsigned long long moved = certile_counted[operand].bytes - before[operand].bytes;
    const unsigned long long runs = certile_counted[operand].segments - before[operand].segments;
    if (moved != bytes || (segments && runs != segments)) {
        printf("transfer %d: %s moved by %llu segments, %llu bytes; planned %lu, %lu: FAILED\n", number,
               operand_name[operand], runs, moved, segments, bytes);
        unlike++;
    }
}

int certile_bytes_as_planned(const char *name, const certile_group_bytes *table, int first)
{
    int equal = unlike == 0;
    unlike = 0;
    while (table->first != first) {
        table++;
    }
    for (int k = 0; k < CERTILE_OPERANDS; k++) {
        if (certile_counted[k].bytes != table->bytes[k]) {
            printf("%s and the layers of its group: %s moved by %llu bytes; planned %llu: FAILED\n", name, operand_name[k],
                   certile_counted[k].bytes, table->bytes[k]);
            equal = 0;
        }
    }
    memset(certile_counted, 0, sizeof certile_counted);
    return equal;
}

static unsigned char *room(size_t bytes)
{
    unsigned char *p = malloc(bytes ? bytes : 1);
    if (!p) {
        fputs("out of memory\n", stderr);
        exit(2);
    }
    certile_fill(p, bytes);
    return p;
}

static size_t input_elements(const certile_layer *a, int k)
{
    const int size[5] = {a->b, a->g, a->n, a->h, a->l};
    size_t last = 0; /* the place of the last element */
    for (int d = 0; d < 5; d++) {
        last += (size_t)(size[d] - 1) * a->in_pitch[k][d];
    }
    return last + 1;
}

int certile_check(const certile_layer *a, void *dump)
{
    certile_tensors t;
    state = 20;
    for (int k = 0; k < a->inputs; k++) {
        t.in[k] = room(input_elements(a, k) * (size_t)a->in_bytes);
    }
    t.w = room((size_t)a->g * a->m * a->n * a->kh * a->kw * a->w_bytes);
    t.bias = room((size_t)a->g * a->m * a->bias_bytes);
    t.out = room(outputs(a) * a->out_bytes);
    unsigned char *psum = room(outputs(a) * a->psum_bytes);
    memset(certile_counted, 0, sizeof certile_counted);
    a->run(t.in, t.w, t.bias, t.out, psum);
    const size_t wrong = sample(a, &t);
    const int planned = certile_moved_as_planned(a);
    if (dump) {
        fwrite(t.out, 1, outputs(a) * a->out_bytes, dump);
    }
    for (int k = 0; k < a->inputs; k++) {
        free(t.in[k]);
    }
    free(t.w);
    free(t.bias);
    free(t.out);
    free(psum);
    return !wrong && planned;
}

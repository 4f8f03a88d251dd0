/* Maps and filters on chip, and the steps and transfers of a plan whose transfers run ahead of the steps. */
#ifndef CERTILE_AHEAD_H
#define CERTILE_AHEAD_H

#include "certile_tile.h"

extern unsigned char certile_ocm[];

/* Units of a row before `until` follow each other: unit u lies at `at` + u units. */
typedef struct {
    int until;
    long at;
} certile_extent;

/* A map on chip, or a block of its channels. A unit is a pixel; in planes it is a channel of a row. */
typedef struct {
    const int *at;                 /* of every row its address, or -1 - the number of its first extent */
    const certile_extent *extents; /* of rows that lie in several parts */
    int unit, apart;                   /* bytes of a unit, and from one to the next: more where sums lay */
    int units, images, planes;         /* units of a row in an image, images, whether units are channels */
    ptrdiff_t step, row, image, first; /* off the chip: bytes from unit to unit, row to row, image to image; before all */
} certile_rows;

/* Rows `begin` to `end` - 1 of a map, and its tensor off the chip. */
typedef struct {
    const certile_rows *rows;
    unsigned char *tensor;
    int begin, end;
} certile_span;

/* So many filters, from one on, lie behind each other on chip. */
typedef struct {
    int at, filter, number;
} certile_filters;

/* Weights and biases of a layer off the chip: a filter has so many input channels, each with so many bytes in a run. */
typedef struct {
    unsigned char *w, *bias;
    int channels, bytes, runs, bias_bytes;
} certile_weights;

/* A call: rows of maps, or filters. */
typedef struct {
    int operand, load;
    const certile_span *spans;
    int number; /* of spans, or of runs of filters */
    const certile_weights *weights;
    const certile_filters *filters;
    int low, high; /* of filters: input channels */
    unsigned long segments, bytes; /* as planned; no segments where the plan counts others */
} certile_transfer;

/* What a step computes (one of the layers that take turns in it): rows `begin` to `end` - 1 of filters `first` to `last` - 1, with input channels `low` to
   `high` - 1 and rows `top` to `bottom` - 1 of the window; filters have `wide` of these from `base` on; whether sums begin, and become results; which turn of its
   input it reads; addresses of the filters. */
typedef struct certile_work {
    void (*run)(const struct certile_work *);
    int begin, end, first, last, low, high, top, bottom, base, wide, opens, closes, turn;
    const int *w;
} certile_work;

/* A command: queue a transfer, wait until so many are done, run what a step computes. */
enum { CERTILE_PUSH, CERTILE_WAIT, CERTILE_RUN, CERTILE_COMMANDS };

/* Carry a plan out; commands are CERTILE_COMMANDS * number + command. */
void certile_carry_out(const int *commands, size_t number, const certile_transfer *transfers, const certile_work *works);

/* Where a unit of a row lies. */
static inline unsigned char *certile_unit(const certile_rows *rows, int y, int u)
{
    long at = rows->at[y];
    if (at < 0) {
        const certile_extent *one = &rows->extents[-1 - at];
        while (u >= one->until) {
            one++;
        }
        at = one->at;
    }
    return certile_ocm + (at + (long)u * rows->apart);
}

#endif

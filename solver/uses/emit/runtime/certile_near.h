/* Steps whose tiles go through memories nearer than the shared one: by nests of loops, one for every box.
 *
 * A box is what a step makes: rows and filters of all images. Transfers go through certile_dma (certile_channels.h).
 */
#ifndef CERTILE_NEAR_H
#define CERTILE_NEAR_H

#include "certile_ahead.h"
#include "certile_channels.h"
#include "certile_dma.h"

/* Images, groups, filters, channels (both of a group), rows and columns. */
enum { CERTILE_B, CERTILE_G, CERTILE_M, CERTILE_N, CERTILE_R, CERTILE_C, CERTILE_DIMS };

/* The memories that tiles come from are this one; those off the chip are 0. */
enum { CERTILE_SHARED = 1 };

/* From `lo` up to before `hi`; of an input its own rows and columns. */
typedef struct {
    int lo[CERTILE_DIMS], hi[CERTILE_DIMS];
} certile_ranges;

/* Where the tile of an operand lies, how many loops stand outside its transfers, bytes from element to element. */
typedef struct {
    unsigned char *base;
    int place;
    ptrdiff_t pitch[CERTILE_DIMS];
} certile_near_tile;

typedef struct {
    int rows, groups, filters, top, bottom; /* of its box; rows of its window that are padding */
    int loops;
    const int (*cut)[2];        /* of every loop the dimension and the step, outermost first */
    certile_near_tile tile[3];  /* of inputs, weights, results */
    ptrdiff_t input;            /* bytes of the tile of one input */
    int ring, extent;           /* inputs slide along this dimension (-1: none), in a ring of so many rows or columns */
    int wide;                   /* channels of a filter in its tile */
} certile_nest;

/* A layer's map along rows or columns: how far the last tap is from the first one, padding before, size. */
typedef struct {
    int stride, reach, pad, size;
} certile_axis;

typedef struct certile_near certile_near;

typedef struct {
    int images, filters, channels, left, right, inputs; /* filters and channels of a group; columns of the result */
    certile_axis axis[2];                               /* rows, columns */
    int runs, bytes, bias;                              /* of a filter: runs of channels, bytes of each, of its bias */
    void (*const *load)(const certile_near *, const certile_ranges *); /* by input: all pieces of a part of its tile */
    void (*compute)(const certile_near *);
    void (*store)(const certile_near *); /* all pieces of the tile of results */
    const certile_nest *nests;
    int number;
} certile_near_layer;

/* A nest that runs. */
struct certile_near {
    const certile_near_layer *layer;
    const certile_nest *nest;
    const certile_work *work;
    certile_ranges now, tile[3]; /* of the loops; of the tile of every operand */
    int follows, end;            /* whether the innermost loop has advanced; where the window before ended */
};

/* Run a step of a layer. */
void certile_run_near(const certile_near_layer *layer, const certile_work *work);

/* Add a run of bytes to the transfer; those that follow each other, or lie as far apart each time, become one piece. */
void certile_run(unsigned char *to, const unsigned char *from, size_t bytes);

/* So many elements from column x on, up to before `end`, lie behind each other where columns of a row do. */
static inline int certile_columns(const certile_near *s, int x, int end)
{
    return s->nest->ring == CERTILE_C ? certile_min(end - x, s->nest->extent - x % s->nest->extent) : end - x;
}

/* Where an element of input k lies in its tile. */
static inline unsigned char *certile_near_in(const certile_near *s, int k, int b, int g, int n, int y, int x)
{
    const certile_nest *nest = s->nest;
    const certile_near_tile *tile = &nest->tile[CERTILE_IN];
    const int *lo = s->tile[CERTILE_IN].lo;
    const int at_y = nest->ring == CERTILE_R ? y % nest->extent : y - lo[CERTILE_R];
    const int at_x = nest->ring == CERTILE_C ? x % nest->extent : x - lo[CERTILE_C];
    return tile->base + (k * nest->input + (b - lo[CERTILE_B]) * tile->pitch[CERTILE_B]
                         + (g - lo[CERTILE_G]) * tile->pitch[CERTILE_G] + (n - lo[CERTILE_N]) * tile->pitch[CERTILE_N]
                         + at_y * tile->pitch[CERTILE_R] + at_x * tile->pitch[CERTILE_C]);
}

/* Where a filter lies in its tile. */
static inline unsigned char *certile_near_w(const certile_near *s, int g, int m)
{
    const certile_near_tile *tile = &s->nest->tile[CERTILE_W];
    const int *lo = s->tile[CERTILE_W].lo;
    return tile->base + ((g - lo[CERTILE_G]) * tile->pitch[CERTILE_G] + (m - lo[CERTILE_M]) * tile->pitch[CERTILE_M]);
}

/* Where a result, or its sum, lies in its tile. */
static inline unsigned char *certile_near_out(const certile_near *s, int b, int g, int m, int r, int c)
{
    const certile_near_tile *tile = &s->nest->tile[CERTILE_OUT];
    const int *lo = s->tile[CERTILE_OUT].lo;
    return tile->base + ((b - lo[CERTILE_B]) * tile->pitch[CERTILE_B] + (g - lo[CERTILE_G]) * tile->pitch[CERTILE_G]
                         + (m - lo[CERTILE_M]) * tile->pitch[CERTILE_M] + (r - lo[CERTILE_R]) * tile->pitch[CERTILE_R]
                         + (c - lo[CERTILE_C]) * tile->pitch[CERTILE_C]);
}

#endif

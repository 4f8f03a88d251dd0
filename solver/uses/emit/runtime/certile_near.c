/* Nests of steps whose tiles go through nearer memories: see certile_near.h. */
#include "certile_near.h"

/* The run of bytes that grows, and the piece before it: runs of as many bytes, as far apart each time. */
static struct {
    unsigned char *to;
    const unsigned char *from;
    size_t bytes;
} run;
static struct {
    unsigned char *to;
    const unsigned char *from;
    size_t bytes, runs;
    ptrdiff_t to_pitch, from_pitch;
} piece;

static void move_piece(void)
{
    if (piece.runs) {
        certile_dma(CERTILE_SHARED, piece.to, piece.from, piece.bytes, piece.runs, piece.to_pitch, piece.from_pitch);
    }
    piece.runs = 0;
}

/* The run does not grow any more. */
static void add_run(void)
{
    const size_t k = piece.runs;
    if (k && run.bytes == piece.bytes) {
        if (k == 1) {
            piece.to_pitch = run.to - piece.to;
            piece.from_pitch = run.from - piece.from;
        }
        if (run.to - piece.to == (ptrdiff_t)k * piece.to_pitch && run.from - piece.from == (ptrdiff_t)k * piece.from_pitch) {
            piece.runs++;
            return;
        }
    }
    move_piece();
    piece.to = run.to;
    piece.from = run.from;
    piece.bytes = run.bytes;
    piece.runs = 1;
}

void certile_run(unsigned char *to, const unsigned char *from, size_t bytes)
{
    if (run.bytes && to == run.to + run.bytes && from == run.from + run.bytes) {
        run.bytes += bytes;
        return;
    }
    if (run.bytes) {
        add_run();
    }
    run.to = to;
    run.from = from;
    run.bytes = bytes;
}

/* The transfer has all its pieces. */
static void end_transfer(void)
{
    add_run();
    move_piece();
    run.bytes = 0;
    certile_dma_end(CERTILE_SHARED);
}

/* The rows or columns that results read. */
static void window(certile_ranges *box, int d, const certile_axis *axis)
{
    const int lo = box->lo[d] * axis->stride - axis->pad;
    const int hi = (box->hi[d] - 1) * axis->stride - axis->pad + axis->reach + 1;
    box->lo[d] = certile_max(lo, 0);
    box->hi[d] = certile_min(hi, axis->size);
}

static void load_inputs(certile_near *s)
{
    certile_ranges *box = &s->tile[CERTILE_IN], part;
    const int ring = s->nest->ring;
    *box = s->now;
    window(box, CERTILE_R, &s->layer->axis[0]);
    window(box, CERTILE_C, &s->layer->axis[1]);
    part = *box;
    if (ring >= 0) {
        if (s->follows) { /* what the tile before does not hold */
            part.lo[ring] = certile_max(part.lo[ring], s->end);
        }
        s->end = box->hi[ring];
    }
    if (part.lo[CERTILE_R] >= part.hi[CERTILE_R] || part.lo[CERTILE_C] >= part.hi[CERTILE_C]) {
        return;
    }
    for (int k = 0; k < s->layer->inputs; k++) {
        s->layer->load[k](s, &part);
        end_transfer();
    }
}

static void load_filters(certile_near *s)
{
    const certile_near_layer *layer = s->layer;
    const certile_work *work = s->work;
    const certile_ranges *box = &s->tile[CERTILE_W];
    const int low = s->now.lo[CERTILE_N], number = s->now.hi[CERTILE_N] - low;
    s->tile[CERTILE_W] = s->now;
    for (int g = box->lo[CERTILE_G]; g < box->hi[CERTILE_G]; g++) {
        for (int m = box->lo[CERTILE_M]; m < box->hi[CERTILE_M]; m++) {
            const unsigned char *from = certile_ocm + work->w[g * layer->filters + m - work->first];
            unsigned char *to = certile_near_w(s, g, m);
            for (int k = 0; k < layer->runs; k++) {
                certile_run(to + k * s->nest->wide * layer->bytes,
                              from + (k * work->wide + low - work->base) * layer->bytes, (size_t)(number * layer->bytes));
            }
            if (layer->bias) {
                certile_run(to + layer->runs * s->nest->wide * layer->bytes,
                              from + layer->runs * work->wide * layer->bytes, (size_t)layer->bias);
            }
        }
    }
    end_transfer();
}

/* Run the loops from number k on, and the transfers that stand inside the ones before. */
static void loops(certile_near *s, int k)
{
    const certile_nest *nest = s->nest;
    if (s->layer->runs && nest->tile[CERTILE_W].place == k) {
        load_filters(s);
    }
    if (nest->tile[CERTILE_IN].place == k) {
        load_inputs(s);
    }
    if (nest->tile[CERTILE_OUT].place == k) {
        s->tile[CERTILE_OUT] = s->now;
    }
    if (k == nest->loops) {
        s->layer->compute(s);
    } else {
        const int d = nest->cut[k][0], step = nest->cut[k][1], lo = s->now.lo[d], hi = s->now.hi[d];
        for (int x = lo; x < hi; x += step) {
            s->now.lo[d] = x;
            s->now.hi[d] = certile_min(x + step, hi);
            s->follows = x > lo;
            loops(s, k + 1);
        }
        s->now.lo[d] = lo;
        s->now.hi[d] = hi;
    }
    if (nest->tile[CERTILE_OUT].place == k) {
        s->layer->store(s);
        end_transfer();
    }
}

/* The nest of so many filters of so many groups. */
static const certile_nest *nest_of(const certile_near_layer *layer, const certile_work *work, int groups, int filters)
{
    const certile_axis *rows = &layer->axis[0];
    const int top = certile_max(0, rows->pad - work->begin * rows->stride);
    const int last = (work->end - 1) * rows->stride - rows->pad + rows->reach;
    const int bottom = certile_max(0, last + 1 - rows->size);
    const certile_nest *nest = layer->nests;
    while (nest < layer->nests + layer->number - 1
           && (nest->rows != work->end - work->begin || nest->groups != groups || nest->filters != filters
               || nest->top != top || nest->bottom != bottom)) {
        nest++;
    }
    return nest;
}

void certile_run_near(const certile_near_layer *layer, const certile_work *work)
{
    for (int f = work->first; f < work->last;) { /* whole groups together, and what is left of one */
        const int g = f / layer->filters, m = f % layer->filters, left = work->last - f;
        const int groups = m || left < layer->filters ? 1 : left / layer->filters;
        const int filters = certile_min(left, layer->filters - m);
        certile_near s = {layer, nest_of(layer, work, groups, filters), work,
                          {{0, g, m, 0, work->begin, layer->left},
                           {layer->images, g + groups, m + filters, layer->channels, work->end, layer->right}},
                          {{{0}, {0}}, {{0}, {0}}, {{0}, {0}}}, 0, 0};
        loops(&s, 0);
        f += groups * filters;
    }
}

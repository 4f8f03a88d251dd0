/* Memories in levels: see certile_levels.h. */
#include "certile_levels.h"

/* What certile_check.h counts by operand: nothing, all is counted by channel. */
certile_counts certile_counted[CERTILE_OPERANDS];

void certile_begin(certile_tile *tile, const certile_box *box, int ring)
{
    for (int a = 0; a < CERTILE_AXES; a++) {
        tile->first[a] = a == ring ? 0 : box->lo[a];
    }
}

/* The pitches of a tile in bytes, and where an element of it lies. */
static unsigned char *find(const certile_tile *tile, const int *x, ptrdiff_t *pitch)
{
    ptrdiff_t place = 0, step = tile->element;
    for (int a = CERTILE_AXES - 1; a >= 0; a--) {
        pitch[a] = step;
        place += certile_place(tile, a, x[a]) * step;
        step *= tile->extent[a];
    }
    return tile->base + place;
}

/* Move a box whose elements lie in either tile without a turn of a ring: as runs, two axes at a time. */
static void move(int channel, const certile_tile *to, const certile_tile *from, const certile_box *box, int bytes)
{
    ptrdiff_t there[CERTILE_AXES], here[CERTILE_AXES];
    unsigned char *into = find(to, box->lo, there);
    const unsigned char *source = find(from, box->lo, here);
    int size[CERTILE_AXES], x[CERTILE_AXES] = {0}, axis = CERTILE_AXES - 1;
    size_t run = (size_t)bytes;
    for (int a = 0; a < CERTILE_AXES; a++) {
        size[a] = box->hi[a] - box->lo[a];
    }
    while (axis >= 0 && (size[axis] == 1 || (there[axis] == (ptrdiff_t)run && here[axis] == (ptrdiff_t)run))) {
        run *= (size_t)size[axis--]; /* one run goes on along this axis */
    }
    if (axis < 0) {
        certile_dma(channel, into, source, run, 1, 0, 0);
        return;
    }
    for (;;) {
        ptrdiff_t to_place = 0, from_place = 0;
        int a = axis - 1;
        for (int k = 0; k < axis; k++) {
            to_place += x[k] * there[k];
            from_place += x[k] * here[k];
        }
        certile_dma(channel, into + to_place, source + from_place, run, (size_t)size[axis], there[axis], here[axis]);
        while (a >= 0 && ++x[a] == size[a]) {
            x[a--] = 0;
        }
        if (a < 0) {
            return;
        }
    }
}

/* How many elements along an axis, from x on, lie one after the other. */
static int stretch(const certile_tile *tile, int axis, int x)
{
    return tile->extent[axis] - (int)certile_place(tile, axis, x);
}

/* Cut a box where a ring turns, along this axis and the ones behind it. */
static void cut(int channel, const certile_tile *to, const certile_tile *from, const certile_box *box, int bytes, int axis)
{
    certile_box piece = *box;
    if (axis == CERTILE_AXES) {
        move(channel, to, from, box, bytes);
        return;
    }
    for (int x = box->lo[axis]; x < box->hi[axis]; x = piece.hi[axis]) {
        const int most = certile_min(stretch(to, axis, x), stretch(from, axis, x));
        piece.lo[axis] = x;
        piece.hi[axis] = certile_min(box->hi[axis], x + most);
        cut(channel, to, from, &piece, bytes, axis + 1);
    }
}

void certile_part(int channel, const certile_tile *to, const certile_tile *from, const certile_box *box, int bytes)
{
    cut(channel, to, from, box, bytes, 0);
}

void certile_pass(int channel, const certile_tile *to, const certile_tile *from, const certile_box *box, int bytes)
{
    int empty = 0;
    for (int a = 0; a < CERTILE_AXES; a++) {
        empty |= box->lo[a] >= box->hi[a];
    }
    if (!empty) {
        certile_part(channel, to, from, box, bytes);
        certile_dma_end(channel);
    }
}

/* Tiles of tensors: see certile_tile.h. */
#include "certile_tile.h"

#include "certile_dma.h"

int certile_empty(const certile_box *box)
{
    for (int a = 0; a < CERTILE_AXES; a++) {
        if (box->lo[a] >= box->hi[a]) {
            return 1;
        }
    }
    return 0;
}

/* Where an element lies from the beginning of a tile and of a tensor, in bytes. */
static void locate(const certile_tile *tile, const certile_tensor *tensor, const int *x, size_t *chip, size_t *dram)
{
    size_t here = 0, there = 0;
    for (int a = 0; a < CERTILE_AXES; a++) {
        here = here * (size_t)tile->extent[a] + (size_t)certile_place(tile, a, x[a]);
        there = there * (size_t)tensor->size[a] + (size_t)x[a];
    }
    *chip = here * (size_t)tile->element;
    *dram = there * (size_t)tensor->element;
}

/* How many elements along an axis, from x on, lie one after the other in a tile. */
static int stretch(const certile_tile *tile, int axis, int x, int end)
{
    return certile_min(end - x, tile->extent[axis] - (int)certile_place(tile, axis, x));
}

/* Whether all of an axis is moved, and lies in the tile as it does in the tensor. */
static int whole(const certile_tile *tile, const certile_tensor *tensor, const certile_box *box, int axis)
{
    int size = tensor->size[axis];
    return box->lo[axis] == 0 && box->hi[axis] == size && tile->extent[axis] == size &&
           certile_place(tile, axis, 0) == 0;
}

void certile_move(const certile_tile *tile, const certile_tensor *tensor, const certile_box *box)
{
    int inner = CERTILE_AXES - 1; /* the innermost axis that is not whole: runs lie along it */
    size_t run = (size_t)tensor->element;
    if (certile_empty(box)) {
        return;
    }
    while (inner > 1 && whole(tile, tensor, box, inner)) {
        run *= (size_t)tensor->size[inner--];
    }
    int x[CERTILE_AXES];
    memcpy(x, box->lo, sizeof x);
    size_t chip_pitch = run * (size_t)tile->extent[inner], dram_pitch = run * (size_t)tensor->size[inner];
    for (;;) {
        int rows = stretch(tile, inner - 1, x[inner - 1], box->hi[inner - 1]);
        int one_run = stretch(tile, inner, x[inner], box->hi[inner]) == box->hi[inner] - x[inner];
        rows = one_run ? rows : 1;
        for (int k = box->lo[inner]; k < box->hi[inner];) {
            size_t chip, dram;
            int length = stretch(tile, inner, k, box->hi[inner]);
            x[inner] = k;
            locate(tile, tensor, x, &chip, &dram);
            certile_dma_2d(tile->base + chip, tensor->base + dram, (size_t)length * run, (size_t)rows,
                           (ptrdiff_t)chip_pitch, (ptrdiff_t)dram_pitch);
            k += length;
        }
        x[inner] = box->lo[inner];
        x[inner - 1] += rows;
        int axis = inner - 1;
        while (axis >= 0 && x[axis] >= box->hi[axis]) {
            x[axis] = box->lo[axis];
            if (--axis >= 0) {
                x[axis]++;
            }
        }
        if (axis < 0) {
            return;
        }
    }
}

static void call(int operand, int load, const certile_tile *tile, const certile_tensor *tensor, const certile_box *box)
{
    if (certile_empty(box)) {
        return;
    }
    certile_dma_begin(operand, load);
    certile_move(tile, tensor, box);
    certile_dma_start();
}

void certile_load(int operand, const certile_tile *tile, const certile_tensor *tensor, const certile_box *box)
{
    call(operand, 1, tile, tensor, box);
}

void certile_store(int operand, const certile_tile *tile, const certile_tensor *tensor, const certile_box *box)
{
    call(operand, 0, tile, tensor, box);
}

void certile_beyond(int *lo, int *hi, int first, int end)
{
    if (first >= end) {
        return;
    }
    if (*lo < first) {
        *hi = certile_max(*lo, certile_min(*hi, first));
    } else {
        *lo = certile_max(*lo, end);
        *hi = certile_max(*lo, *hi);
    }
}

int certile_piece(const int *places, int number, int lo, int hi, int k, int *begin, int *end)
{
    int pieces = 1;
    *begin = lo;
    *end = hi;
    for (int p = 0; p < number; p++) {
        if (lo < places[p] && places[p] < hi) {
            if (pieces == k) {
                *begin = places[p];
            }
            if (pieces == k + 1) {
                *end = places[p];
            }
            pieces++;
        }
    }
    return pieces;
}

/* Strips without gaps: see certile_strips.h. */
#include "certile_strips.h"

#include "certile_dma.h"

static certile_band band(int first, int end, int left, int right)
{
    return (certile_band){first, certile_max(first, end), left, certile_max(left, right), certile_max(left, right)};
}

void certile_bands(certile_band *bands, const certile_step *row, const certile_step *column, certile_when when,
                   const certile_passing *how)
{
    int low = when == CERTILE_AFTER ? column->need_after : column->need;
    int high = when == CERTILE_BEFORE ? column->before : column->end;
    if (how->columns_again) {
        low = when == CERTILE_AFTER ? column->need_after : column->begin;
        high = when == CERTILE_ALIVE ? column->end : low;
    }
    if (how->rows_again) {
        bands[0] = band(row->begin, row->end, low, high);
        bands[1] = bands[2] = band(row->end, row->end, 0, 0);
        return;
    }
    /* Columns before `low` have rows from need_after on, columns from `high` on only those of before. */
    int one = certile_min(row->need_after, row->before), two = certile_max(row->need_after, row->before);
    int all = row->need_after <= row->before;
    bands[0] = band(row->need, one, low, how->columns);
    bands[1] = band(one, two, all ? 0 : low, all ? how->columns : high);
    bands[2] = band(two, row->end, 0, high);
}

void certile_bands_of_sums(certile_band *bands, const certile_step *row, const certile_step *column,
                           const certile_passing *how, int alone)
{
    certile_bands(bands, row, column, CERTILE_ALIVE, how);
    if (alone) {
        bands[0] = band(row->begin, row->end, column->begin, column->end);
        bands[1] = bands[2] = band(row->end, row->end, 0, 0);
    }
    for (int k = 0; k < CERTILE_BANDS; k++) {
        if (bands[k].first >= row->begin && column->begin < column->end) {
            bands[k].sums = column->begin;
        }
    }
}

/* Take other bands, without moving anything. */
static void lay(certile_strip *strip, const certile_band *bands)
{
    strip->plane = 0;
    for (int k = 0; k < CERTILE_BANDS; k++) {
        strip->band[k] = bands[k];
        ptrdiff_t plain = bands[k].sums - bands[k].left, sums = bands[k].right - bands[k].sums;
        strip->offset[k] = strip->plane;
        strip->row[k] = strip->count * (plain * strip->element + sums * strip->sum);
        strip->plane += (bands[k].end - bands[k].first) * strip->row[k];
    }
}

static const certile_band *band_of(const certile_strip *strip, int y)
{
    for (int k = 0; k < CERTILE_BANDS; k++) {
        if (strip->band[k].first <= y && y < strip->band[k].end) {
            return &strip->band[k];
        }
    }
    return NULL;
}

/* Move what a row keeps: to the left, or to the right. */
static void move_row(const certile_strip *from, const certile_strip *to, int plane, int y, int left)
{
    const certile_band *had = band_of(from, y), *has = band_of(to, y);
    if (!had) {
        return;
    }
    int first = certile_max(had->left, has->left), end = certile_min(had->sums, has->sums);
    if (first < end) {
        unsigned char *source = certile_in_strip(from, plane, y, first), *place = certile_in_strip(to, plane, y, first);
        if (left ? place < source : place > source) {
            memmove(place, source, (size_t)from->count * (size_t)from->element * (size_t)(end - first));
        }
    }
    int sums = certile_min(had->right, has->sums) - had->sums;
    if (!left || sums <= 0) {
        return;
    }
    unsigned char *source = certile_in_strip(from, plane, y, had->sums);
    unsigned char *place = certile_in_strip(to, plane, y, had->sums);
    for (ptrdiff_t k = 0; k < (ptrdiff_t)sums * from->count; k++) {
        memmove(place + k * from->element, source + k * from->sum, (size_t)from->element);
    }
}

/* The order of elements never changes: what moves to the left goes first to last, the rest last to first. */
static void move_rows(const certile_strip *from, const certile_strip *to)
{
    for (int plane = 0; plane < to->planes; plane++) {
        for (int k = 0; k < CERTILE_BANDS; k++) {
            for (int y = to->band[k].first; y < to->band[k].end; y++) {
                move_row(from, to, plane, y, 1);
            }
        }
    }
    for (int plane = to->planes - 1; plane >= 0; plane--) {
        for (int k = CERTILE_BANDS - 1; k >= 0; k--) {
            for (int y = to->band[k].end - 1; y >= to->band[k].first; y--) {
                move_row(from, to, plane, y, 0);
            }
        }
    }
}

void certile_reshape(certile_strip *strips, int number, int k, const certile_band *bands)
{
    const certile_strip from = strips[k], *last = &strips[number - 1];
    lay(&strips[k], bands);
    unsigned char *behind = from.base + from.planes * from.plane;
    size_t rest = (size_t)(last->base + last->planes * last->plane - behind);
    if (k == number - 1) {
        rest = 0;
    }
    ptrdiff_t more = from.planes * (strips[k].plane - from.plane);
    if (more > 0) {
        memmove(behind + more, behind, rest);
    }
    move_rows(&from, &strips[k]);
    if (more < 0) {
        memmove(behind + more, behind, rest);
    }
    for (int s = k + 1; s < number; s++) {
        strips[s].base += more;
    }
}

void certile_pass_on(certile_strip *strips, int k, int planes)
{
    certile_strip *before = &strips[k - 1], *strip = &strips[k];
    if (!before->planes) {
        lay(before, strip->band);
    }
    before->planes += planes;
    strip->planes -= planes;
    strip->base += planes * strip->plane;
}

void certile_begin_again(certile_strip *strips, int k)
{
    strips[k + 2].base = strips[k + 1].base = strips[k].base;
    strips[k + 2].planes = strips[k].planes;
    lay(&strips[k + 2], strips[k].band);
    strips[k].planes = 0;
}

void certile_transfer(int operand, int load, const certile_strip *strip, unsigned char *tensor, int rows, int columns,
                      const certile_band *box)
{
    if (box->first >= box->end || box->left >= box->right) {
        return;
    }
    ptrdiff_t pixel = (ptrdiff_t)strip->count * strip->element;
    size_t bytes = (size_t)pixel * (size_t)(box->right - box->left);
    certile_dma_begin(operand, load);
    for (int plane = 0; plane < strip->planes; plane++) {
        for (int k = 0; k < CERTILE_BANDS; k++) {
            int first = certile_max(box->first, strip->band[k].first), end = certile_min(box->end, strip->band[k].end);
            if (first < end) {
                unsigned char *there = tensor + (((ptrdiff_t)plane * rows + first) * columns + box->left) * pixel;
                certile_dma_2d(certile_in_strip(strip, plane, first, box->left), there, bytes, (size_t)(end - first),
                               strip->row[k], columns * pixel);
            }
        }
    }
    certile_dma_start();
}

/* Strips without gaps: see certile_strips.h. */
#include "certile_strips.h"

#include "certile_dma.h"

static certile_band band(int first, int end, int left, int right)
{
    return (certile_band){first, certile_max(first, end), left, certile_max(left, right), certile_max(left, right)};
}

/* The next place after y at which what lies on chip of a row may change. */
static int next_place(int y, const certile_step *row, const certile_seen *rows, const certile_passing *how)
{
    int next = row->end;
    if (row->begin > y && row->begin < next) {
        next = row->begin;
    }
    for (int u = 0; u < how->readers; u++) {
        int other = how->rows_again ? rows[u].end : rows[u].after;
        if (rows[u].first > y && rows[u].first < next) {
            next = rows[u].first;
        }
        if (other > y && other < next) {
            next = other;
        }
    }
    return next;
}

static int done(int u, int when)
{
    return u < when;
}

/* The first column that a reader needs, in this step of rows. */
static int left_of(int u, const certile_seen *across, int when)
{
    return done(u, when) ? across[u].after : across[u].first;
}

/* The first column of row y; the rows that readers see in a step of which nothing is kept are one run. */
static int first_column(int y, const certile_step *row, const certile_step *column, const certile_seen *rows,
                        const certile_seen *across, int when, const certile_passing *how, int high)
{
    int best = high, made = when == CERTILE_MADE;
    if (!how->rows_again) {
        best = made && y >= row->begin ? column->begin : how->columns;
        for (int u = 0; u < how->readers; u++) {
            int left = y >= rows[u].after ? 0 : y >= rows[u].first ? left_of(u, across, when) : how->columns;
            best = certile_min(best, left);
        }
        return best;
    }
    for (int limit = -made; limit < how->readers; limit++) {
        int left = limit < 0 ? column->begin : left_of(limit, across, when);
        int first = row->end, end = 0;
        if (left >= best || (limit >= 0 && how->columns_again && done(limit, when))) {
            continue;
        }
        if (made && column->begin <= left) {
            first = row->begin, end = row->end;
        }
        for (int u = 0; u < how->readers; u++) {
            if (left_of(u, across, when) <= left && !(how->columns_again && done(u, when))) {
                first = certile_min(first, rows[u].first);
                end = certile_max(end, rows[u].end);
            }
        }
        best = y >= first && y < end ? left : best;
    }
    return best;
}

void certile_bands(certile_band *bands, const certile_step *row, const certile_step *column, const certile_seen *rows,
                   const certile_seen *across, int when, const certile_passing *how)
{
    int number = 0, high = when == CERTILE_BEFORE ? column->before : column->end;
    if (how->columns_again && when != CERTILE_MADE) {
        high = how->rows_again ? 0 : when == CERTILE_BEFORE ? column->begin : column->need_after;
        for (int u = when; u >= 0 && u < how->readers; u++) {
            high = certile_max(high, across[u].end);
        }
    }
    int next;
    for (int y = next_place(-1, row, rows, how); y < row->end; y = next) {
        next = next_place(y, row, rows, how);
        int left = first_column(y, row, column, rows, across, when, how, high);
        int right = how->rows_again || y >= row->before ? high : how->columns;
        if (left >= right) {
            continue;
        }
        certile_band *last = &bands[number - 1];
        if (number && y != row->begin && last->end == y && last->left == left && last->right == right) {
            last->end = next;
        } else {
            bands[number++] = band(y, next, left, right);
        }
    }
    while (number < CERTILE_BANDS) {
        bands[number++] = band(row->end, row->end, 0, 0);
    }
}

void certile_bands_of_sums(certile_band *bands, const certile_step *row, const certile_step *column,
                           const certile_seen *rows, const certile_seen *across, const certile_passing *how, int alone)
{
    certile_bands(bands, row, column, rows, across, CERTILE_MADE, how);
    if (alone) {
        for (int k = 0; k < CERTILE_BANDS; k++) {
            bands[k] = band(row->end, row->end, 0, 0);
        }
        bands[0] = band(row->begin, row->end, column->begin, column->end);
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

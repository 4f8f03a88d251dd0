/* Strips of maps that lie one behind the other without gaps, and move when one of them grows or shrinks. */
#ifndef CERTILE_STRIPS_H
#define CERTILE_STRIPS_H

#include "certile_tile.h"

/* A step of a map along an axis: what was there, what is made, what is needed before and after, the front so far. */
typedef struct {
    int before, begin, end, need, need_after, first;
} certile_step;

/* Rows first to end - 1, and of each the columns left to right - 1; from column `sums` on they are partial sums. */
typedef struct {
    int first, end, left, right, sums;
} certile_band;

/* The most bands of a map: two for every reader, and two more. */
enum { CERTILE_BANDS = 4 };

/* What a reader sees of a map in a step along an axis: from `first` to before `end`; next it begins at `after`. */
typedef struct {
    int first, end, after;
} certile_seen;

/* What lies on chip of a map: plane by plane, row by row, of each column `count` elements, or so many sums. */
typedef struct {
    unsigned char *base;
    int planes, count, element, sum;
    certile_band band[CERTILE_BANDS];                           /* ascending */
    ptrdiff_t plane, offset[CERTILE_BANDS], row[CERTILE_BANDS]; /* bytes of a plane, before a band, of its rows */
} certile_strip;

/* Before a piece is made in a visit; while it is; later so many of its readers have run (0, 1, ...). */
enum { CERTILE_BEFORE = -2, CERTILE_MADE = -1 };

/* How a map passes: its columns and readers, and along which axes what later steps read again is made again. */
typedef struct {
    int columns, readers, rows_again, columns_again;
} certile_passing;

/* The bands of a map in a visit; `rows`, `across`: what its readers see. */
void certile_bands(certile_band *bands, const certile_step *row, const certile_step *column, const certile_seen *rows,
                   const certile_seen *across, int when, const certile_passing *how);

/* The same while what the visit makes of it are sums; `alone`: nothing but these. */
void certile_bands_of_sums(certile_band *bands, const certile_step *row, const certile_step *column,
                           const certile_seen *rows, const certile_seen *across, const certile_passing *how, int alone);

/* Strip k has these bands from now on. What it had and keeps is kept, sums become the results that lie in them, and
 * what follows it in memory moves. */
void certile_reshape(certile_strip *strips, int number, int k, const certile_band *bands);

/* Give the first planes of strip k to the one before it, which ends where it begins: nothing moves. */
void certile_pass_on(certile_strip *strips, int k, int planes);

/* Give all planes of strip k to the second one behind it; there are no others in these three. */
void certile_begin_again(certile_strip *strips, int k);

/* Load or store the rows and columns of a box, all planes; the tensor has so many rows and columns. */
void certile_transfer(int operand, int load, const certile_strip *strip, unsigned char *tensor, int rows, int columns,
                      const certile_band *box);

/* Where the first element of a row and column lies that a strip has. */
static inline unsigned char *certile_in_strip(const certile_strip *strip, int plane, int y, int x)
{
    int k = 0;
    while (k < CERTILE_BANDS - 1 && y >= strip->band[k].end) {
        k++;
    }
    const certile_band *band = &strip->band[k];
    ptrdiff_t plain = certile_min(x, band->sums) - band->left, sums = certile_max(x - band->sums, 0);
    return strip->base + plane * strip->plane + strip->offset[k] + (y - band->first) * strip->row[k] +
           strip->count * (plain * strip->element + sums * strip->sum);
}

#endif

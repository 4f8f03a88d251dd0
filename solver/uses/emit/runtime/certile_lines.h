/* A tile of inputs in lines: it slides along rows and columns.
 *
 * Rows are what the outer of the two loops moves over, columns what the inner one does. In a pass over columns the first
 * `again` rows of the window lie in lines as wide as a pass, the others in a part as wide as a window. When the window
 * leaves a column, the rows that the next pass reads again are copied to the lines, over rows that nobody reads.
 */
#ifndef CERTILE_LINES_H
#define CERTILE_LINES_H

#include "certile_tile.h"

typedef struct {
    unsigned char *base;
    int element;
    int down;                          /* whether rows are rows of the map (else they are its columns) */
    int again, width, beyond, columns; /* lines and their width; further rows of a window and its columns */
    int order[CERTILE_AXES];           /* of the tensor's axes: 0 b, 1 g, 2 n, 3 rows of the map, 4 columns of it */
    int extent[3], first[3];           /* of b, g, n */
    int lo[2], hi[2];                  /* the window: rows, columns */
    int covered[2];                    /* rows of the pass before */
} certile_lines;

/* Begin a sweep: nothing is there. */
void certile_lines_begin(certile_lines *lines);

/* Move the window to a box (in the order b g n rows columns), and load what is not there. `turns`: a new pass begins;
 * `next`: the rows of the pass after this one, empty if there is none. */
void certile_lines_load(certile_lines *lines, const certile_tensor *tensor, const certile_box *box, int turns,
                        const int next[2]);

/* Where row y and column x of the map lie, of channel n of group g of image b. */
static inline const unsigned char *certile_lines_at(const certile_lines *lines, int b, int g, int n, int y, int x)
{
    const int row = lines->down ? y : x, column = lines->down ? x : y;
    const int places = lines->again * lines->width + lines->beyond * lines->columns;
    const int place = row < lines->lo[0] + lines->again
                          ? row % lines->again * lines->width + column % lines->width
                          : lines->again * lines->width + row % lines->beyond * lines->columns + column % lines->columns;
    const int outer = ((b - lines->first[0]) * lines->extent[1] + g - lines->first[1]) * lines->extent[2] + n - lines->first[2];
    return lines->base + ((ptrdiff_t)outer * places + place) * lines->element;
}

#endif

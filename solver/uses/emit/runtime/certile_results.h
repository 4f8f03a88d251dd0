/* Results of a model: written to a file, and compared with what another program has computed. */
#ifndef CERTILE_RESULTS_H
#define CERTILE_RESULTS_H

#include "certile_tile.h"

#include <stdio.h>

enum { CERTILE_MOST_RANKS = 8 };

typedef double certile_reader(const unsigned char *from);

#define CERTILE_READER(kind)                                               \
    static inline double certile_read_##kind(const unsigned char *from)   \
    {                                                                      \
        return (double)certile_get_##kind(from);                           \
    }
CERTILE_READER(u8)
CERTILE_READER(i8)
CERTILE_READER(u16)
CERTILE_READER(i16)
CERTILE_READER(i32)
CERTILE_READER(i64)
CERTILE_READER(f16)
CERTILE_READER(f32)

/* A result: its name and sizes, its elements, the step of the integers that they stand for (0: real numbers), where to
 * look if it is wrong; and what is found of it in all calls: elements compared, those that are exact, the largest
 * difference (of integers in steps), where that is, both values, and the largest value that is expected. */
typedef struct {
    const char *name, *look;
    const unsigned char *array;
    size_t element;
    certile_reader *read;
    float step;
    int axes;
    size_t size[CERTILE_MOST_RANKS];
    size_t compared, exact, at;
    double worst, is, want, largest;
} certile_result;

/* Elements of a result. */
size_t certile_elements(const certile_result *result);

/* Compare a result with the next elements of a file; returns 0 if the file is too short. */
int certile_compare(certile_result *result, FILE *expected);

/* Say how far results are from those that `judge` has computed; real ones may differ by `tolerance` of their largest
 * element, integers by a step. Returns how many are wrong, and says of these where. */
int certile_verdict(const certile_result *results, size_t number, const char *judge, double tolerance);

#endif

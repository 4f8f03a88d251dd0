/* Functions of several elements: see certile_rows.h. */
#include "certile_rows.h"

#include "certile_tile.h"

#include <math.h>

void certile_softmax(unsigned char *to, const unsigned char *from, long outer, long size, long inner, int logarithm)
{
    for (long k = 0; k < outer * inner; k++) {
        const long first = k / inner * size * inner + k % inner;
        float most = -INFINITY, sum = 0;
        for (long i = 0; i < size; i++) {
            most = fmaxf(most, certile_get_f32(from + (first + i * inner) * 4));
        }
        for (long i = 0; i < size; i++) {
            sum += expf(certile_get_f32(from + (first + i * inner) * 4) - most);
        }
        for (long i = 0; i < size; i++) {
            const float x = certile_get_f32(from + (first + i * inner) * 4) - most;
            certile_put_f32(to + (first + i * inner) * 4, logarithm ? x - logf(sum) : expf(x) / sum);
        }
    }
}

void certile_normalise(unsigned char *to, const unsigned char *from, long outer, long size, float epsilon,
                       const float *scale, const float *shift, long rows, long run)
{
    for (long k = 0; k < outer; k++) {
        double mean = 0, variance = 0;
        for (long i = 0; i < size; i++) {
            mean += certile_get_f32(from + (k * size + i) * 4);
        }
        mean /= (double)size;
        for (long i = 0; i < size; i++) {
            const double x = certile_get_f32(from + (k * size + i) * 4) - mean;
            variance += x * x;
        }
        const double factor = 1 / sqrt(variance / (double)size + epsilon);
        for (long i = 0; i < size; i++) {
            const long c = k % rows * (size / run) + i / run;
            double x = (certile_get_f32(from + (k * size + i) * 4) - mean) * factor;
            x = x * (scale ? scale[c] : 1) + (shift ? shift[c] : 0);
            certile_put_f32(to + (k * size + i) * 4, (float)x);
        }
    }
}

void certile_lrn(unsigned char *to, const unsigned char *from, long outer, long size, long inner, long window, float alpha,
                 float beta, float bias)
{
    for (long k = 0; k < outer * inner; k++) {
        const long first = k / inner * size * inner + k % inner;
        for (long i = 0; i < size; i++) {
            float sum = 0;
            for (long c = i - (window - 1) / 2; c <= i + window / 2; c++) {
                const float x = c >= 0 && c < size ? certile_get_f32(from + (first + c * inner) * 4) : 0;
                sum += x * x;
            }
            const float x = certile_get_f32(from + (first + i * inner) * 4);
            certile_put_f32(to + (first + i * inner) * 4, x / powf(bias + alpha / (float)window * sum, beta));
        }
    }
}

void certile_rms(unsigned char *to, const unsigned char *from, long outer, long size, float epsilon, const float *scale)
{
    for (long k = 0; k < outer; k++) {
        double squares = 0;
        for (long i = 0; i < size; i++) {
            const double x = certile_get_f32(from + (k * size + i) * 4);
            squares += x * x;
        }
        const double factor = 1 / sqrt(squares / (double)size + epsilon);
        for (long i = 0; i < size; i++) {
            const double x = certile_get_f32(from + (k * size + i) * 4) * factor;
            certile_put_f32(to + (k * size + i) * 4, (float)(x * scale[i]));
        }
    }
}

void certile_lp(unsigned char *to, const unsigned char *from, long outer, long size, long inner, int p)
{
    for (long k = 0; k < outer * inner; k++) {
        const long first = k / inner * size * inner + k % inner;
        double sum = 0;
        for (long i = 0; i < size; i++) {
            const double x = certile_get_f32(from + (first + i * inner) * 4);
            sum += p == 1 ? (x < 0 ? -x : x) : x * x;
        }
        const double whole = p == 1 ? sum : sqrt(sum);
        for (long i = 0; i < size; i++) {
            const double x = certile_get_f32(from + (first + i * inner) * 4);
            certile_put_f32(to + (first + i * inner) * 4, whole > 0 ? (float)(x / whole) : 0);
        }
    }
}

/* A place beyond lo or hi, turned back there as often as it takes. */
static float reflected(float x, float lo, float hi)
{
    const float beyond = x < lo ? lo - x : x - hi, range = hi - lo;
    if (beyond <= 0 || range <= 0) {
        return beyond <= 0 ? x : lo;
    }
    const float turns = floorf(beyond / range), rest = beyond - turns * range;
    const int even = turns == 2 * floorf(turns / 2);
    return (x < lo) == even ? lo + rest : hi - rest;
}

/* The neighbours of a place along an axis (-1: a zero), and how far it lies behind the first or second of them. */
static float neighbours(long *at, float number, long size, int taps, int padding, int corners)
{
    const float lo = corners ? 0 : -0.5f, hi = (float)(size - 1) - lo;
    float x = corners ? (number + 1) / 2 * (float)(size - 1) : ((number + 1) * (float)size - 1) / 2;
    x = taps == 1 ? rintf(x) : x;
    x = padding == 2 ? reflected(x, lo, hi) : x;
    x = x > -4 ? (x < (float)size + 4 ? x : (float)size + 4) : -4; /* further off there is nothing else */
    const float first = floorf(x);
    for (int k = 0; k < taps; k++) {
        const float found = first + (float)(taps == 4 ? k - 1 : k);
        const long pixel = (long)(padding == 2 ? reflected(found, lo, hi) : found);
        const long inside = pixel < 0 ? 0 : pixel < size ? pixel : size - 1;
        at[k] = padding || inside == pixel ? inside : -1;
    }
    return x - first;
}

void certile_neighbours(unsigned char *const *near, const long *near_pitch, unsigned char *const *part,
                        const unsigned char *map, const long *map_pitch, const unsigned char *grid, const long *grid_pitch,
                        const long *size, int taps, int padding, int corners)
{
    const long rows = size[4], columns = size[5];
    for (long k = 0; k < size[0] * rows * columns; k++) {
        const long b = k / (rows * columns), r = k / columns % rows, c = k % columns;
        const unsigned char *const place = grid + (b * grid_pitch[0] + r * grid_pitch[1] + c * grid_pitch[2]) * 4;
        long at[2][4];
        for (int axis = 0; axis < 2; axis++) {
            const float number = certile_get_f32(place + axis * grid_pitch[3] * 4);
            certile_put_f32(part[axis] + k * 4, neighbours(at[axis], number, size[3 - axis], taps, padding, corners));
        }
        for (long m = 0; m < size[1] * taps * taps; m++) {
            const long g = m / (taps * taps), y = at[1][m / taps % taps], x = at[0][m % taps];
            const long from = b * map_pitch[0] + g * map_pitch[1] + y * map_pitch[2] + x * map_pitch[3];
            const long to = b * near_pitch[0] + g * near_pitch[1] + r * near_pitch[2] + c * near_pitch[3];
            certile_put_f32(near[m % (taps * taps)] + to * 4, y < 0 || x < 0 ? 0 : certile_get_f32(map + from * 4));
        }
    }
}

/* Functions of several elements: see certile_rows.h. */
#include "certile_rows.h"

#include "certile_requantise.h"
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

/* 1 / (1 + x), x from 0 to 1 in 2^31sts: three of Newton's steps, in numbers below 4. */
static int64_t reciprocal(int64_t x)
{
    const int32_t half = (int32_t)((x + INT32_MAX + 1) / 2);
    int64_t found = 1515870810 + certile_requantise_double(half, -1010580540, 0);
    for (int k = 0; k < 3; k++) {
        const int64_t rest = (1 << 29) - certile_requantise_double(half, (int32_t)found, 0);
        found += certile_limit(certile_requantise_double((int32_t)found, (int32_t)rest, 0) * 4, INT32_MIN, INT32_MAX);
    }
    return certile_limit(found * 2, INT32_MIN, INT32_MAX);
}

/* How many bits of 32 a number has to the left of its first one. */
static int leading(int64_t x)
{
    int bits = 0;
    while (x << bits < (int64_t)1 << 31) {
        bits++;
    }
    return bits;
}

static int element8(const unsigned char *at, int low)
{
    return low < 0 ? certile_get_i8(at) : certile_get_u8(at);
}

void certile_softmax8(unsigned char *to, const unsigned char *from, long outer, long size, long inner, int low,
                      const int32_t *exps)
{
    for (long k = 0; k < outer * inner; k++) {
        const long first = k / inner * size * inner + k % inner;
        int most = low;
        int64_t sum = 0;
        for (long i = 0; i < size; i++) {
            const int x = element8(from + first + i * inner, low);
            most = x > most ? x : most;
        }
        for (long i = 0; i < size; i++) {
            sum += certile_half_away(exps[most - element8(from + first + i * inner, low)], 12);
        }
        const int bits = leading(sum);
        const int32_t share = (int32_t)reciprocal((sum << bits) - ((int64_t)1 << 31));
        for (long i = 0; i < size; i++) {
            const int32_t x = exps[most - element8(from + first + i * inner, low)];
            const int64_t made = certile_half_away(certile_requantise_double(x, share, 0), 35 - bits);
            to[first + i * inner] = (unsigned char)certile_limit(made + low, low, low + 255);
        }
    }
}

void certile_softmax16(unsigned char *to, const unsigned char *from, long outer, long size, long inner,
                       int32_t multiplier, int shift, const int16_t *exps, const int16_t *parts)
{
    for (long k = 0; k < outer * inner; k++) {
        const long first = k / inner * size * inner + k % inner;
        int most = INT16_MIN;
        int64_t sum = 0;
        for (long i = 0; i < size; i++) {
            const int x = certile_get_i16(from + (first + i * inner) * 2);
            most = x > most ? x : most;
        }
        for (long i = 0; i < size; i++) {
            const int32_t below = certile_get_i16(from + (first + i * inner) * 2) - most;
            const int64_t at = certile_requantise_double(below, multiplier, shift) + INT16_MAX;
            const int32_t x = certile_between(certile_limit(at, INT16_MIN, INT16_MAX), exps);
            certile_put_i16(to + (first + i * inner) * 2, (int16_t)x);
            sum += x;
        }
        const int bits = leading(sum);
        const int64_t beyond = (((sum << (bits - 1)) + (1 << 13)) >> 14) - 3 * (1 << 15);
        const int32_t share = certile_between(certile_limit(beyond, INT16_MIN, INT16_MAX), parts);
        for (long i = 0; i < size; i++) {
            unsigned char *const at = to + (first + i * inner) * 2;
            const int64_t made = certile_half_up((int64_t)certile_get_i16(at) * share, 31 - bits);
            certile_put_i16(at, (int16_t)certile_limit(made, 0, INT16_MAX));
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

/* Mathematics for targets whose C library has none: with CERTILE_OWN_MATH these take the place of those of math.h.
 *
 * Range reduction and polynomials in double precision; results are off by less than 1e-6 of themselves (sines and cosines
 * by 1e-6, of arguments up to 1e6). */
#ifdef CERTILE_OWN_MATH
#include <math.h>
#include <stdint.h>
#include <string.h>

/* A test gives them other names, to compare them with those of the library. */
#ifndef CERTILE_MATH
#define CERTILE_MATH(name) name
#endif

static const double ln2 = 0.693147180559945309417, pi_2 = 1.57079632679489661923;

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The nearest whole number, half to even, of a number below 2^51. */
static double whole(double x)
{
    const double shift = 6755399441055744.0;
    volatile double shifted = x + shift;
    return shifted - shift;
}

static double exponential(double x)
{
    if (x != x) {
        return x;
    }
    if (x > 700) {
        return INFINITY;
    }
    if (x < -700) {
        return 0;
    }
    const double k = whole(x / ln2), r = x - k * ln2;
    double term = 1, sum = 1;
    for (int n = 1; n < 14; n++) {
        term *= r / n;
        sum += term;
    }
    return sum * of_bits((uint64_t)(int64_t)(1023 + k) << 52);
}

/* Of a positive normal number. */
static double logarithm(double x)
{
    const uint64_t bits = bits_of(x);
    double k = (double)(int64_t)(bits >> 52) - 1023, m = of_bits((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
    if (m > 1.4142135623730951) {
        m /= 2;
        k += 1;
    }
    const double s = (m - 1) / (m + 1);
    double power = s, sum = 0;
    for (int n = 1; n < 22; n += 2) {
        sum += power / n;
        power *= s * s;
    }
    return 2 * sum + k * ln2;
}

static double root(double x)
{
    if (!(x > 0) || x > 1.7e308) {
        return x == 0 || x > 0 ? x : (double)NAN;
    }
    double y = of_bits((bits_of(x) >> 1) + 0x1ff8000000000000ull);
    for (int n = 0; n < 5; n++) {
        y = (y + x / y) / 2;
    }
    return y;
}

/* Sine (0) and cosine (1). */
static double wave(double x, int quarter)
{
    if (!(x > -1e15 && x < 1e15)) {
        return (double)NAN;
    }
    const double k = whole(x / pi_2), high = 1.5707963267341256, low = 6.077100506506192e-11;
    const double r = x - k * high - k * low;
    const int64_t turn = (int64_t)k + quarter;
    double term = turn & 1 ? 1 : r, sum = term;
    for (int n = turn & 1 ? 1 : 2; n < 20; n += 2) {
        term *= -r * r / (n * (n + 1));
        sum += term;
    }
    return turn & 2 ? -sum : sum;
}

float CERTILE_MATH(expf)(float x)
{
    return (float)exponential((double)x);
}

float CERTILE_MATH(logf)(float x)
{
    if (x != x || x < 0) {
        return NAN;
    }
    return x == 0 ? -INFINITY : x > 3.4028235e38f ? x : (float)logarithm((double)x);
}

float CERTILE_MATH(sqrtf)(float x)
{
    return (float)root((double)x);
}

double CERTILE_MATH(sqrt)(double x)
{
    return root(x);
}

float CERTILE_MATH(tanhf)(float x)
{
    const double y = x < 0 ? -(double)x : (double)x, square = y * y;
    if (x != x) {
        return x;
    }
    double value = 1;
    if (y < 0.05) {
        value = y * (1 - square * (1.0 / 3 - square * (2.0 / 15 - square * 17 / 315)));
    } else if (y < 20) {
        const double e = exponential(-2 * y);
        value = (1 - e) / (1 + e);
    }
    return (float)(x < 0 ? -value : value);
}

float CERTILE_MATH(erff)(float x)
{
    const double y = x < 0 ? -(double)x : (double)x;
    if (x != x) {
        return x;
    }
    double value = 1;
    if (y < 2.5) {
        double power = y, sum = y;
        for (int n = 1; n < 60; n++) {
            power *= -y * y / n;
            sum += power / (2 * n + 1);
        }
        value = sum * 1.12837916709551257390;
    } else if (y < 6) {
        double fraction = 1;
        for (int n = 40; n > 0; n--) {
            fraction = 1 + n / (2 * y * y) / fraction;
        }
        value = 1 - exponential(-y * y) / (y * 1.77245385090551602730 * fraction);
    }
    return (float)(x < 0 ? -value : value);
}

float CERTILE_MATH(sinf)(float x)
{
    return (float)wave((double)x, 0);
}

float CERTILE_MATH(cosf)(float x)
{
    return (float)wave((double)x, 1);
}

float CERTILE_MATH(tanf)(float x)
{
    return (float)(wave((double)x, 0) / wave((double)x, 1));
}

float CERTILE_MATH(fabsf)(float x)
{
    return x < 0 ? -x : x == 0 ? 0 : x;
}

float CERTILE_MATH(rintf)(float x)
{
    return x > -8388608.0f && x < 8388608.0f ? (float)whole((double)x) : x;
}

float CERTILE_MATH(floorf)(float x)
{
    const float y = CERTILE_MATH(rintf)(x);
    return y > x ? y - 1 : y;
}

float CERTILE_MATH(ceilf)(float x)
{
    const float y = CERTILE_MATH(rintf)(x);
    return y < x ? y + 1 : y;
}

float CERTILE_MATH(fmaxf)(float x, float y)
{
    return x != x || x < y ? y : x;
}

float CERTILE_MATH(fminf)(float x, float y)
{
    return x != x || x > y ? y : x;
}

float CERTILE_MATH(powf)(float x, float y)
{
    const float near = CERTILE_MATH(rintf)(y);
    const int even = near == y && CERTILE_MATH(rintf)(y / 2) == y / 2, odd = near == y && !even;
    if (y == 0 || x == 1) {
        return 1;
    }
    if (x != x || y != y || (x < 0 && near != y)) {
        return NAN;
    }
    const double size = x < 0 ? -(double)x : (double)x;
    double value;
    if (size == 0 || size > 3.5e38) {
        value = (size == 0) == (y > 0) ? 0 : (double)INFINITY;
    } else {
        value = exponential((double)y * logarithm(size));
    }
    return (float)(x < 0 && odd ? -value : value);
}
#else
typedef int certile_not_empty;
#endif

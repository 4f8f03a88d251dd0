/* Complete sums of integers become integers of results: times a multiplier of 32 bits, 2^31 for one, and a shift.
 *
 * Functions of 16-bit integers are here, too.
 *
 * Of every rule one function for sums of 32 bits and one for 64 (whose multiplier has 15 bits, as in TFLite's 16x8 layers;
 * sums below 2^47). `shift` is to the left if it is positive. */
#ifndef CERTILE_REQUANTISE_H
#define CERTILE_REQUANTISE_H

#include <stdint.h>

static inline int32_t certile_limit(int64_t x, int32_t lo, int32_t hi)
{
    return x < lo ? lo : x > hi ? hi : (int32_t)x;
}

/* x / 2^bits: half away from zero, half up, half to even. */
static inline int64_t certile_half_away(int64_t x, int bits)
{
    const int64_t mask = ((int64_t)1 << bits) - 1, rest = x & mask;
    return (x >> bits) + (rest > (mask >> 1) + (x < 0));
}

static inline int64_t certile_half_up(int64_t x, int bits)
{
    return bits ? (x + ((int64_t)1 << (bits - 1))) >> bits : x;
}

static inline int64_t certile_half_even(int64_t x, int bits)
{
    return bits ? (x + ((int64_t)1 << (bits - 1)) - 1 + ((x >> bits) & 1)) >> bits : x;
}

/* gemmlowp: SaturatingRoundingDoublingHighMul, then RoundingDivideByPOT; the first one rounds a half up. */
static inline int64_t certile_requantise_double(int32_t sum, int32_t multiplier, int shift)
{
    const int64_t x = certile_limit((int64_t)sum * ((int64_t)1 << (shift > 0 ? shift : 0)), INT32_MIN, INT32_MAX);
    const int64_t product = x * multiplier;
    const int64_t high = (product + (product >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30))) / ((int64_t)1 << 31);
    return certile_half_away(high, shift < 0 ? -shift : 0);
}

/* One rounding of the whole product. */
static inline int64_t certile_requantise_single(int32_t sum, int32_t multiplier, int shift)
{
    return certile_half_up((int64_t)sum * multiplier, 31 - shift);
}

static inline int64_t certile_requantise_even(int32_t sum, int32_t multiplier, int shift)
{
    return certile_half_even((int64_t)sum * multiplier, 31 - shift);
}

static inline int64_t certile_fifteen(int32_t multiplier)
{
    return multiplier < 0x7fff0000 ? (multiplier + (1 << 15)) >> 16 : 0x7fff;
}

static inline int64_t certile_requantise64_single(int64_t sum, int32_t multiplier, int shift)
{
    return certile_half_up(sum * certile_fifteen(multiplier), 15 - shift);
}

static inline int64_t certile_requantise64_double(int64_t sum, int32_t multiplier, int shift)
{
    return certile_requantise64_single(sum, multiplier, shift); /* TFLite has one rounding here */
}

static inline int64_t certile_requantise64_even(int64_t sum, int32_t multiplier, int shift)
{
    return certile_half_even(sum * certile_fifteen(multiplier), 15 - shift);
}

/* A sum over so many elements as their mean, half away from zero. */
static inline int64_t certile_mean(int64_t sum, int64_t count)
{
    return sum > 0 ? (sum + count / 2) / count : (sum - count / 2) / count;
}

/* A function of a 16-bit integer: a table has its values 128 apart, between two of which there is a line. */
static inline int32_t certile_between(int32_t x, const int16_t *table)
{
    const int16_t *const at = table + 256 + (x >> 7);
    return (int16_t)(at[0] + (((int16_t)(at[1] - at[0]) * (x & 127) + 64) >> 7));
}

/* 1 / (1 + exp(-x)) and the hyperbolic tangent in 32768ths. x times a multiplier of 15 bits, shifted right, counts
 * 12288ths of the argument; a table has the first function at 24ths, in 65536ths. */
static inline int32_t certile_logistic(int32_t x, int32_t multiplier, int shift, const uint16_t *table)
{
    const int32_t k = (int32_t)certile_half_up((int64_t)x * multiplier, shift), size = k < 0 ? -k : k, at = size >> 9;
    const int32_t made = at < 255 ? (table[at] << 9) + (size & 511) * (table[at + 1] - table[at]) : 32767 << 10;
    return (k < 0 ? (1 << 25) - made + 511 : made + 512) >> 10;
}

static inline int32_t certile_tanh(int32_t x, int32_t multiplier, int shift, const uint16_t *table)
{
    const int32_t k = (int32_t)certile_half_up((int64_t)x * multiplier, shift), size = k < 0 ? -k : k, at = size >> 8;
    const int32_t made = at < 255 ? (table[at] << 8) + (size & 255) * (table[at + 1] - table[at]) : 65535 << 8;
    return (k < 0 ? (1 << 23) - made + 127 : made - (1 << 23) + 128) >> 8;
}

#endif

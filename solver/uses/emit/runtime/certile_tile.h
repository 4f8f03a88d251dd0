/* Tiles of tensors on the chip, and how they are loaded and stored. */
#ifndef CERTILE_TILE_H
#define CERTILE_TILE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { CERTILE_AXES = 5 };

/* A tensor off the chip: axes outermost first, the last one contiguous; `element` bytes each. */
typedef struct {
    unsigned char *base;
    int element;
    int size[CERTILE_AXES];
} certile_tensor;

/* A tile on the chip: along every axis, element x lies at place (x - first) modulo extent. */
typedef struct {
    unsigned char *base;
    int element;
    int extent[CERTILE_AXES];
    int first[CERTILE_AXES];
} certile_tile;

/* Elements lo to hi - 1 along every axis. */
typedef struct {
    int lo[CERTILE_AXES], hi[CERTILE_AXES];
} certile_box;

int certile_empty(const certile_box *box);

/* Add the pieces of a box to the call that was begun. */
void certile_move(const certile_tile *tile, const certile_tensor *tensor, const certile_box *box);

/* A whole call; none for an empty box. */
void certile_load(int operand, const certile_tile *tile, const certile_tensor *tensor, const certile_box *box);
void certile_store(int operand, const certile_tile *tile, const certile_tensor *tensor, const certile_box *box);

/* Cut lo..hi to what lies beyond first..end, on the side where it sticks out; nothing is cut if first..end is empty. */
void certile_beyond(int *lo, int *hi, int first, int end);

/* The k-th piece of lo..hi, cut at those places that lie inside; returns how many pieces there are. */
int certile_piece(const int *places, int number, int lo, int hi, int k, int *begin, int *end);

static inline int certile_min(int a, int b)
{
    return a < b ? a : b;
}

static inline int certile_max(int a, int b)
{
    return a > b ? a : b;
}

static inline float certile_fmin(float a, float b)
{
    return b < a ? b : a;
}

static inline float certile_fmax(float a, float b)
{
    return b > a ? b : a;
}

/* A float between lo and hi as a whole number, half to even: adding 1.5 * 2^23 leaves no place behind the point. */
static inline float certile_round(float x, float lo, float hi)
{
    const float within = x > lo ? (x < hi ? x : hi) : lo;
    const float shifted = within + 12582912.0f;
    return shifted - 12582912.0f;
}

/* The least whole number that is not below a / b, for b > 0. */
static inline int certile_ceil(int a, int b)
{
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

static inline ptrdiff_t certile_place(const certile_tile *tile, int axis, int x)
{
    return (x - tile->first[axis]) % tile->extent[axis];
}

#define CERTILE_NUMBER(name, type)                               \
    static inline type certile_get_##name(const unsigned char *from) \
    {                                                            \
        type x;                                                  \
        memcpy(&x, from, sizeof x);                              \
        return x;                                                \
    }                                                            \
    static inline void certile_put_##name(unsigned char *to, type x) \
    {                                                            \
        memcpy(to, &x, sizeof x);                                \
    }

CERTILE_NUMBER(i8, int8_t)
CERTILE_NUMBER(u8, uint8_t)
CERTILE_NUMBER(i16, int16_t)
CERTILE_NUMBER(u16, uint16_t)
CERTILE_NUMBER(i32, int32_t)
CERTILE_NUMBER(i64, int64_t)
CERTILE_NUMBER(f32, float)

/* Half precision is a way to store floats: 1 bit of sign, 5 of the exponent, 10 of the fraction. */
static inline float certile_get_f16(const unsigned char *from)
{
    const uint32_t half = certile_get_u16(from), sign = (half & 0x8000u) << 16, rest = half & 0x7fffu;
    unsigned char bits[4];
    if (rest < 0x400u) { /* a number without a leading one, in steps of 2^-24 */
        const float small = (float)rest * 5.9604644775390625e-8f;
        return sign ? -small : small;
    }
    certile_put_i32(bits, (int32_t)(sign | ((rest << 13) + (rest < 0x7c00u ? 0x38000000u : 0x70000000u))));
    return certile_get_f32(bits);
}

/* The nearest one, half to even; what is too large becomes infinite. */
static inline void certile_put_f16(unsigned char *to, float x)
{
    unsigned char bits[4];
    certile_put_f32(bits, x);
    const uint32_t all = (uint32_t)certile_get_i32(bits), sign = (all >> 16) & 0x8000u, rest = all & 0x7fffffffu;
    uint32_t half;
    if (rest > 0x7f800000u) {
        half = 0x7e00u; /* not a number */
    } else if (rest >= 0x47800000u) {
        half = 0x7c00u;
    } else if (rest < 0x38800000u) { /* below 2^-14: steps of 2^-24, as those of floats from 1/2 to 1 */
        certile_put_i32(bits, (int32_t)rest);
        certile_put_f32(bits, certile_get_f32(bits) + 0.5f);
        half = (uint32_t)certile_get_i32(bits) - 0x3f000000u;
    } else {
        half = (rest + 0xfffu + ((rest >> 13) & 1u) - 0x38000000u) >> 13;
    }
    certile_put_u16(to, (uint16_t)(sign | half));
}

#endif

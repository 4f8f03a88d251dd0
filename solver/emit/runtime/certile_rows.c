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
                       const float *scale, const float *shift, long channels)
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
            const long c = channels ? k % channels : i;
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

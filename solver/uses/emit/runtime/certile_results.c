/* Results of a model: see certile_results.h. */
#include "certile_results.h"

#include <math.h>

size_t certile_elements(const certile_result *result)
{
    size_t number = 1;
    for (int k = 0; k < result->axes; k++) {
        number *= result->size[k];
    }
    return number;
}

int certile_compare(certile_result *result, FILE *expected)
{
    unsigned char next[8];
    for (size_t k = 0; k < certile_elements(result); k++) {
        if (fread(next, 1, result->element, expected) != result->element) {
            return 0;
        }
        result->compared++;
        const double want = result->read(next), is = result->read(result->array + k * result->element);
        const double apart = is == want || (isnan(is) && isnan(want)) ? 0 : isnan(is - want) ? INFINITY : fabs(is - want);
        const double far = result->step > 0 ? apart / result->step : apart;
        result->exact += result->step > 0 ? far < 0.5 : far == 0;
        result->largest = isfinite(want) ? fmax(result->largest, fabs(want)) : result->largest;
        if (far > result->worst) {
            result->worst = far;
            result->at = k;
            result->is = is;
            result->want = want;
        }
    }
    return 1;
}

/* Say of a result that is wrong where its largest difference is. */
static void say(const certile_result *result, const char *judge)
{
    size_t at = result->at, rest = certile_elements(result);
    printf("FAILED: result %s: the largest difference is at [", result->name);
    for (int k = 0; k < result->axes; k++) {
        rest /= result->size[k];
        printf("%s%zu", k ? ", " : "", at / rest);
        at %= rest;
    }
    printf("]: %.9g, %s has %.9g", result->is, judge, result->want);
    if (result->step > 0) {
        printf(", %.0f steps apart", result->worst);
    }
    printf("; look at %s\n", result->look);
}

int certile_verdict(const certile_result *results, size_t number, const char *judge, double tolerance)
{
    size_t all = 0, exact = 0, reals = 0, alike = 0;
    double steps = 0, largest = 0, most = 0;
    int wrong = 0;
    for (size_t k = 0; k < number; k++) {
        largest = fmax(largest, results[k].step > 0 ? 0 : results[k].largest);
    }
    for (size_t k = 0; k < number; k++) {
        const certile_result *one = &results[k];
        if (one->step > 0) {
            all += one->compared;
            exact += one->exact;
            steps = fmax(steps, one->worst);
        } else {
            reals += one->compared;
            alike += one->exact;
            most = fmax(most, one->worst / fmax(fmax(one->largest, largest * 1e-3), 1e-30)); /* some are all but zero */
        }
    }
    if (all) {
        printf("results: %zu of %zu elements exact, the others within %.0f steps (%.3f %% exact)\n", exact, all, steps,
               100.0 * (double)exact / (double)all);
    }
    if (reals) {
        printf("results differ from those expected by %.3g of the largest one (%.3f %% exact)\n", most,
               100.0 * (double)alike / (double)reals);
    }
    printf("compared with %s\n", judge);
    for (size_t k = 0; k < number; k++) {
        const certile_result *one = &results[k];
        const double scale = fmax(one->largest, largest * 1e-3);
        if (one->step > 0 ? !(one->worst < 1.5) : !(one->worst <= tolerance * scale)) {
            say(one, judge);
            wrong++;
        }
    }
    return wrong;
}

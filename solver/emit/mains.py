"""What the programs of all networks share: the main functions of their checks, and the Makefile."""

from __future__ import annotations


def makefile() -> str:
    """Return the Makefile of a network's program."""
    return _MAKEFILE


_MAKEFILE = """\
# make run: build, run, and check. make bare: link without a C library, and say how large it is.
CC ?= gcc
CFLAGS ?= -O2
WARN := -std=c11 -Wall -Wextra -Werror
SOURCES := $(wildcard *.c)
OBJECTS := $(SOURCES:.c=.o)
BARE := -ffreestanding -fno-tree-loop-distribute-patterns -fno-stack-protector -DCERTILE_BARE
TARGET := $(filter-out main.c certile_check.c,$(SOURCES))

certile: $(OBJECTS)
\t$(CC) $(CFLAGS) -o $@ $(OBJECTS) -lm

%.o: %.c $(wildcard *.h)
\t$(CC) $(WARN) $(CFLAGS) -DCERTILE_CHECK -c -o $@ $<

.PHONY: run bare clean
run: certile
\t./certile

bare: $(TARGET) $(wildcard *.h)
\t$(CC) $(WARN) $(CFLAGS) $(BARE) -nostdlib -static -Wl,-e,certile_network -o network.bare $(TARGET)
\tsize network.bare

clean:
\trm -f certile network.bare $(OBJECTS)
"""

#: How network.c calls layers: a check may run another function in their place, and looks at what moved.
LAYER = """\
/* A layer of the plan; a check may run another function in its place, and looks at what moved. */
#ifdef CERTILE_CHECK
#define LAYER(k, call) \\
    do { if (!certile_instead(k)) { call; } certile_after(k); } while (0)
#define GROUP_DONE(first, last) certile_after_group(first, last);
#else
#define LAYER(k, call) call
#define GROUP_DONE(first, last)
#endif"""

MAIN = """\
/* Runs the network as planned and by naive loop nests, and compares results and what moved with the plan. */
#include "certile_check.h"
#include "network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

{names}

{biases}

static const certile_layer layers[] = {{
{rows}
}};

static const certile_tensors tensors[] = {{
{tensors}
}};

static const struct {{
    unsigned char *array;
    size_t bytes;
}} results[] = {{
{results}
}};

static const certile_group_bytes groups[] = {{
{groups}
}};

static unsigned char *made[{number}];
static int naive, wrong;

int certile_instead(int k)
{{
    if (naive && k >= 0) {{
        certile_naive(&layers[k], &tensors[k]);
    }}
    return naive;
}}

/* Keep what the plan made of a result; the naive nests' one is compared with it. */
static void keep(int k)
{{
    made[k] = malloc(results[k].bytes);
    if (!made[k]) {{
        fputs("out of memory\\n", stderr);
        exit(2);
    }}
    memcpy(made[k], results[k].array, results[k].bytes);
}}

void certile_after(int k)
{{
    const ptrdiff_t place = tensors[k].out - results[k].array;
    if (naive) {{
        wrong += certile_differ(&layers[k], made[k] + place, tensors[k].out) != 0;
        free(made[k]);
        return;
    }}
    wrong += !certile_moved_as_planned(&layers[k]);
    keep(k);
}}

void certile_after_group(int first, int last)
{{
    wrong += !certile_bytes_as_planned(layers[first].name, groups, first);
    for (int k = first; k <= last; k++) {{
        keep(k);
    }}
}}

int main(void)
{{
{data}
    certile_network();
    naive = 1;
    certile_network();
    printf("{number} layers as one network: %s\\n", wrong ? "NOT as planned" : "results and transfers as planned");
    return wrong != 0;
}}
"""


MODEL = """\
/* Runs the network on an input: certile INPUT OUTPUT [EXPECTED], files of elements one after the other, as the model
 * has them. Compares what moved with the plan, and the output with what is expected. */
#include "certile_check.h"
#include "certile_tile.h"
#include "network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

{names}

{biases}

static const certile_layer layers[] = {{
{rows}
}};

static const certile_group_bytes groups[] = {{
{groups}
}};

static int wrong;
static double most, largest;                  /* of real results: the largest difference, and the largest one */
static size_t exact, elements;                /* of results that integers stand for */
static double steps;                          /* the largest difference of these */

int certile_instead(int k)
{{
    (void)k;
    return 0;
}}

void certile_after(int k)
{{
    wrong += !certile_moved_as_planned(&layers[k]);
}}

void certile_after_group(int first, int last)
{{
    (void)last;
    wrong += !certile_bytes_as_planned(layers[first].name, groups, first);
}}

static FILE *opened(const char *name, const char *how)
{{
    FILE *file = fopen(name, how);
    if (!file) {{
        fprintf(stderr, "%s: cannot be opened\\n", name);
        exit(2);
    }}
    return file;
}}

static void take(FILE *file, unsigned char *to, size_t bytes)
{{
    if (fread(to, 1, bytes, file) != bytes) {{
        fputs("a file is too short\\n", stderr);
        exit(2);
    }}
}}

typedef double reader(const unsigned char *from);
#define READER(kind) \\
    static inline double read_##kind(const unsigned char *from) {{ return (double)certile_get_##kind(from); }}
READER(u8)
READER(i8)
READER(u16)
READER(i16)
READER(i32)
READER(i64)
READER(f16)
READER(f32)

/* Write a result, and compare it with the next of another file; `step`: of integers that it stands for (or 0). */
static void give(FILE *output, FILE *expected, const unsigned char *from, size_t bytes, size_t size, reader *read,
                 float step)
{{
    unsigned char next[8];
    if (output) {{
        fwrite(from, 1, bytes, output);
    }}
    for (size_t k = 0; expected && k < bytes; k += size) {{
        take(expected, next, size);
        const double want = read(next), is = read(from + k), apart = isnan(is) ? INFINITY : fabs(is - want);
        if (step > 0) {{
            elements++;
            exact += apart < step / 2;
            steps = fmax(steps, apart / step);
        }} else {{
            largest = fmax(largest, fabs(want));
            most = fmax(most, apart);
        }}
    }}
}}

int main(int argc, char **argv)
{{
    FILE *weights = opened("weights.bin", "rb"), *input = opened(argc > 1 ? argv[1] : "input.bin", "rb");
    FILE *output = argc > 2 ? opened(argv[2], "wb") : NULL;
    (void)weights; /* there may be none */
    FILE *expected = argc > 3 ? opened(argv[3], "rb") : argc > 1 ? NULL : fopen("expected.bin", "rb");
    (void)weights; /* Of some networks there are none. */
{data}
{inputs}
    certile_network();
{results}
    printf("{number} layers as one network: transfers %s\\n", wrong ? "NOT as planned" : "as planned");
    if (elements) {{
        printf("results: %zu of %zu elements exact, the others within %.0f steps\\n", exact, elements, steps);
        wrong += !(steps < 1.5);
    }}
    if (largest > 0 || most > 0) {{
        printf("results differ from those expected by %.3g of the largest one\\n", most / fmax(largest, 1e-30));
        wrong += !(most <= {tolerance} * largest);
    }}
    if (output && fclose(output)) {{
        return 2;
    }}
    return wrong != 0;
}}
"""

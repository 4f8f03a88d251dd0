"""What the programs of all networks share: the main functions of their checks, and the Makefile."""

from __future__ import annotations

MAKEFILE = """\
# make run: build, run, and check. make guard: the same, and nothing but certile_dma may touch memory off the chip.
# make late: the same, with transfers that move only when they are waited for.
# make bare: link without a C library, and say how large it is.
CC ?= gcc
CFLAGS ?= -O2
# MATH=own: polynomials of certile_math.c; MATH=libm: the C library's. `make bare` takes the former unless told.
MATH ?= $(if $(filter bare,$(MAKECMDGOALS)),own,libm)
ifeq ($(MATH),own)
WITH := -DCERTILE_OWN_MATH -fno-builtin
else
LIBM := -lm
endif
WARN := -std=c11 -Wall -Wextra -Werror
SOURCES := $(wildcard *.c)
OBJECTS := $(SOURCES:.c=.o)
BARE := -ffreestanding -fno-tree-loop-distribute-patterns -fno-stack-protector -DCERTILE_BARE
CONSTANTS := $(wildcard weights.S)
TARGET := $(filter-out main.c certile_check.c certile_results.c,$(SOURCES))

certile: $(OBJECTS)
\t$(CC) $(CFLAGS) -o $@ $(OBJECTS) -lm

%.o: %.c $(wildcard *.h)
\t$(CC) $(WARN) $(CFLAGS) -DCERTILE_CHECK $(WITH) -c -o $@ $<

.PHONY: run guard late bare clean
run: certile
\t./certile

guard: $(SOURCES)
\t$(CC) $(WARN) $(CFLAGS) -DCERTILE_CHECK -DCERTILE_DMA_GUARD -o certile.guard $(WITH) $(SOURCES) -lm
\t./certile.guard

late: $(SOURCES)
\t$(CC) $(WARN) $(CFLAGS) -DCERTILE_CHECK -DCERTILE_DMA_LATE -o certile.late $(WITH) $(SOURCES) -lm
\t./certile.late

bare: $(TARGET) $(CONSTANTS) $(wildcard *.h weights.bin)
\t$(CC) $(WARN) $(CFLAGS) $(BARE) $(WITH) -nostdlib -static -Wl,-e,certile_network -o network.bare \\
\t    $(TARGET) $(CONSTANTS) $(LIBM)
\tsize network.bare

clean:
\trm -f certile certile.guard certile.late network.bare $(OBJECTS)
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
{channels}#include "certile_check.h"
#include "certile_guard.h"
#include "network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

{layers}

static const certile_tensors tensors[] = {{
{tensors}
}};

static const struct {{
    unsigned char *array;
    size_t bytes;
}} results[] = {{
{results}
}};

{groups}

static unsigned char *made[{number}];
static int naive, wrong;

int certile_instead(int k)
{{
    if (naive && k >= 0) {{
        certile_open("the naive loop nests");
        certile_naive(&layers[k], &tensors[k]);
        certile_shut();
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
    certile_open("the check");
    memcpy(made[k], results[k].array, results[k].bytes);
    certile_shut();
}}

void certile_after(int k)
{{
    const ptrdiff_t place = tensors[k].out - results[k].array;
    if (naive) {{
        certile_open("the check");
        wrong += certile_differ(&layers[k], made[k] + place, tensors[k].out) != 0;
        certile_shut();
        free(made[k]);
        return;
    }}
    wrong += !certile_moved_as_planned(&layers[k]);
    keep(k);
}}

void certile_after_group(int first, int last)
{{
    wrong += !certile_bytes_as_planned(layers[first].name, groups, first);{compared}
    for (int k = first; k <= last; k++) {{
        keep(k);
    }}
}}

int main(void)
{{
{data}
{guard}
    certile_network();
    naive = 1;
    certile_network();
    certile_guard_report();
    printf("{number} layers as one network: %s\\n", wrong ? "NOT as planned" : "results and transfers as planned");
    if (wrong) {{
        puts("FAILED: look at the first layer that is named above: at its loads and stores, then at what it computes");
    }}
    return wrong != 0;
}}
"""


MODEL = """\
/* Runs the network on an input: certile INPUT OUTPUT [EXPECTED], files of elements one after the other, as the model
 * has them. Where INPUT holds several, it is called for each; state is read for the first call alone. Compares what
 * moved with the plan, and the output with what is expected. */
{channels}#include "certile_check.h"
#include "certile_guard.h"
#include "certile_results.h"
#include "network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

{layers}

{groups}

static certile_result results[] = {{
{results}
}};
enum {{ RESULTS = sizeof results / sizeof *results }};

static int wrong;

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
    wrong += !certile_bytes_as_planned(layers[first].name, groups, first);{compared}
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

/* Whether a file goes on. */
static int more(FILE *file)
{{
    const int next = getc(file);
    return next != EOF && ungetc(next, file) != EOF;
}}

int main(int argc, char **argv)
{{
    FILE *weights = opened("weights.bin", "rb"), *input = opened(argc > 1 ? argv[1] : "input.bin", "rb");
    FILE *output = argc > 2 ? opened(argv[2], "wb") : NULL;
    FILE *expected = argc > 3 ? opened(argv[3], "rb") : argc > 1 ? NULL : fopen("expected.bin", "rb");
    (void)weights; /* Of some networks there are none. */
{data}
{guard}
    int calls = 0;
    do {{
        certile_open("an input");
{inputs}
        certile_shut();
        certile_network();
        calls++;
        certile_open("the check");
        for (size_t k = 0; output && k < RESULTS; k++) {{
            fwrite(results[k].array, results[k].element, certile_elements(&results[k]), output);
        }}
        for (size_t k = 0; expected && k < RESULTS; k++) {{
            if (!certile_compare(&results[k], expected)) {{
                fputs("the file of expected results is too short\\n", stderr);
                return 2;
            }}
        }}
        certile_shut();
    }} while (more(input));
    certile_guard_report();
    printf("{number} layers as one network%s: transfers %s\\n", calls > 1 ? ", called several times" : "",
           wrong ? "NOT as planned" : "as planned");
    if (wrong) {{
        puts("FAILED: look at the loads and stores of the layers that are named above");
    }}
    if (expected) {{
        wrong += certile_verdict(results, RESULTS, argc > 3 ? argv[3] : "{judge}", {tolerance});
    }} else if (argc < 2) {{
        puts("results are compared with nothing: there is no expected.bin");
    }}
    if (output && fclose(output)) {{
        return 2;
    }}
    return wrong != 0;
}}
"""

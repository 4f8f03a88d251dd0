"""The files of a program of layers on memories in levels, each checked against a naive loop nest on integers."""

from __future__ import annotations

from collections.abc import Sequence

from hwmodels.levels.price import price
from instances.errors import InputError
from solver.plan.plan import Plan
from solver.uses.emit.levels.nest import LayerCode, LevelsPlanned, arrays
from solver.uses.emit.numbers import integers
from solver.uses.emit.program import check_layer, layers_table, row, runtime
from solver.uses.emit.text import identifier, quoted

#: As many as certile_channels.h has room for.
MOST_CHANNELS = 16
RUNTIME = (
    "certile_check.h certile_check.c certile_dma.h certile_tile.h certile_channels.h certile_channels.c "
    "certile_levels.h certile_levels.c"
).split()

MAKEFILE = """\
# make run: build, run, and check.
CC ?= gcc
CFLAGS ?= -O2
WARN := -std=c99 -Wall -Wextra -Werror
SOURCES := $(wildcard *.c)
OBJECTS := $(SOURCES:.c=.o)

certile: $(OBJECTS)
\t$(CC) $(CFLAGS) -o $@ $(OBJECTS)

%.o: %.c $(wildcard *.h)
\t$(CC) $(WARN) $(CFLAGS) -c -o $@ $<

.PHONY: run clean
run: certile
\t./certile

clean:
\trm -f certile $(OBJECTS)
"""

MAIN = """\
/* Runs every layer on integers, and compares it with a naive loop nest and what moves with the plan. */
#include "certile_levels.h"

#include <stdio.h>

{layers}

enum {{ LAYERS = {number}, MEMORIES = {memories} }};

/* The memories that are the farther one of a transfer, by channel; of every layer what moves on each: calls, bytes. */
static const char *const names[MEMORIES] = {{{names}}};
static const certile_channel planned[LAYERS][MEMORIES] = {{
{planned}
}};

int main(int argc, char **argv)
{{
    FILE *dump = argc > 1 ? fopen(argv[1], "wb") : NULL;
    certile_channel all[MEMORIES] = {{{{0, 0}}}};
    int right = 0;
    for (int k = 0; k < LAYERS; k++) {{
        const int computed = certile_check(&layers[k], dump);
        for (int m = 0; m < MEMORIES; m++) {{
            all[m].calls += certile_moved[m].calls;
            all[m].bytes += certile_moved[m].bytes;
        }}
        right += certile_channels_as_planned(layers[k].name, names, planned[k], MEMORIES) && computed;
    }}
    if (dump && fclose(dump)) {{
        return 2;
    }}
    for (int m = 0; m < MEMORIES; m++) {{
        printf("channel %d, %s: %llu bytes in %llu transfers\\n", m, names[m], all[m].bytes, all[m].calls);
    }}
    printf("%d of %d layers: results and transfers as planned\\n", right, LAYERS);
    return right == LAYERS ? 0 : 1;
}}
"""


def levels_files(plan: Plan, *reasons: str) -> dict[str, str]:
    """Return the files of a plan; raises InputError, with reasons that were known before, if they cannot be written."""
    missing = [row.name for row in plan.parts if row.schedule is None]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise InputError("; ".join([*reasons, f"plan of {plan.network}: no schedule for {shown}"]))
    machine, pairs = plan.machine_data, zip(plan.network_data, plan.parts, strict=True)
    planned = [LevelsPlanned(layer, machine, row.schedule) for layer, row in pairs]
    refuse(planned, reasons)
    return level_layers(planned)


def level_layers(planned: Sequence[LevelsPlanned]) -> dict[str, str]:
    """Return the files of a program that runs layers one by one on integers, and checks results and transfers.

    All are on machines whose memories have the same names; if they are on one machine they share them. Raises
    InputError, with all reasons, if layers cannot be written.
    """
    refuse(planned)
    together = all(one.levels == planned[0].levels for one in planned)
    files, rows, moved = runtime(*RUNTIME), dict[str, str](), list[str]()
    for number, one in enumerate(planned):
        name = f"layer_{number:03}_{identifier(one.layer.name)}"
        code = LayerCode(one, "extern" if together else "static")
        files[f"{name}.c"] = "\n".join([*code.file(name), ""])
        rows[name] = row(name, name, one.layer, one.machine, {})
        moved.append(code.planned())
    levels = planned[0].levels
    if together:
        declared = arrays(levels, "", [one.name for one in levels.memories])
        files["memories.c"] = "\n".join(["/* The memories on the chip. */", *declared, ""])
    files["main.c"] = MAIN.format(
        layers="\n".join(layers_table(rows, rows.values())), number=len(rows), memories=len(levels.memories) - 1,
        names=", ".join(f'"{quoted(one.name)}"' for one in levels.memories[:-1]), planned="\n".join(moved),
    )  # fmt: skip
    files["Makefile"] = MAKEFILE
    return files


def refuse(planned: Sequence[LevelsPlanned], known: Sequence[str] = ()) -> None:
    """Raise InputError with all reasons why C is not written of some layers, after those that are known."""
    reasons = dict.fromkeys(known)
    for one in planned:
        where = f"layer {one.layer.name}"
        try:
            cost = price(one.layer, one.machine, one.nest)
            for memory in one.levels.memories[1:]:
                taken = cost.occupancy_bytes[memory.name]
                if memory.bytes is not None and taken > memory.bytes:
                    reasons[f"{where}: {memory.name} has {memory.bytes} bytes, {taken} are taken"] = None
        except InputError as error:
            reasons[str(error)] = None
        for check in (lambda one=one: integers(one.machine), lambda one=one: check_layer(one.layer)):
            try:
                check()
            except InputError as error:
                reasons[str(error)] = None
        if one.layer.resident_w:
            reasons[f"{where}: its weights lie on chip before it begins: C of problem levels loads them"] = None
        if one.machine.levels and len(one.machine.levels.memories) > MOST_CHANNELS + 1:
            said = f"{len(one.machine.levels.memories)} memories, C is written for up to {MOST_CHANNELS + 1}"
            reasons[f"machine {one.machine.name}: {said}"] = None
    if reasons:
        raise InputError("; ".join(reasons))

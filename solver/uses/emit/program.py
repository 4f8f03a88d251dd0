"""The files of a program: layers one by one, each checked against a naive loop nest on integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from hwmodels.nest.replay.referee import replay
from hwmodels.outcome import Counts
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.machine.machine import Broadcast, Machine
from instances.network.workload import DIMS, Layer
from solver.uses.emit.frame import Frame
from solver.uses.emit.levels.nest import arrays
from solver.uses.emit.mains import MAKEFILE
from solver.uses.emit.nest import layer_file
from solver.uses.emit.numbers import integers
from solver.uses.emit.text import identifier
from solver.uses.emit.values import pitches

_RUNTIME = """certile_dma.h certile_dma.c certile_tile.h certile_tile.c certile_lines.h certile_lines.c certile_check.h
    certile_check.c certile_guard.h certile_guard.c bare.c certile_math.c""".split()
#: As many inputs as certile_check.c has room for.
MOST_INPUTS = 32


@dataclass(frozen=True)
class Planned:
    """A layer, the machine that it runs on, and its nest."""

    layer: Layer
    machine: Machine
    nest: Nest


def runtime(*names: str) -> dict[str, str]:
    """Return some files that are the same for all plans; unless named those that every program has."""
    folder = resources.files("solver.uses.emit") / "runtime"
    return {name: (folder / name).read_text() for name in names or _RUNTIME}


def single_layers(planned: Sequence[Planned]) -> dict[str, str]:
    """Return the files of a program that runs layers one by one on integers, and checks results and transfers.

    Layers on machines of different sizes have memories of their own, those on one machine share them. Raises InputError
    if a layer cannot be written; names it.
    """
    files = runtime()
    rows: dict[str, str] = {}
    together = len({tuple(one.machine.memories.items()) for one in planned}) == 1
    for number, one in enumerate(planned):
        refuse(one.layer, one.machine, one.nest)
        name = f"layer_{number:03}_{identifier(one.layer.name)}"
        frame = Frame(one.layer, one.machine, one.nest, integers(one.machine), "extern" if together else "static")
        files[f"{name}.c"] = layer_file(frame, name)
        rows[name] = row(name, name, one.layer, one.machine, planned_counts(one))
    if together:
        files["memories.c"] = memories(planned[0].machine)
    files["main.c"] = _main(rows)
    files["Makefile"] = MAKEFILE
    return files


def refuse(layer: Layer, machine: Machine, nest: Nest) -> None:
    """Raise InputError for what C is not written of."""
    check_layer(layer)
    if not any(step < layer.extent(d) for d in "nij" for step in nest.steps(d)):
        check_sums(layer, machine)


def check_layer(layer: Layer) -> None:
    """Raise InputError for a layer that C is not written of, whatever its nest is."""
    where = f"layer {layer.name}"
    if layer.kind == "correlation":
        raise InputError(f"{where}: C of a correlation is not written: only problem mesh plans it")
    if layer.inputs > MOST_INPUTS:
        raise InputError(f"{where}: {layer.inputs} inputs, C is written for up to {MOST_INPUTS}")


def check_sums(layer: Layer, machine: Machine) -> None:
    """Raise InputError where the sums of a nest that cuts neither input channels nor taps cannot be read first."""
    if machine.psum_first_read and machine.psum_bytes > machine.out_bytes:
        said = f"partial sums of {machine.psum_bytes} bytes are read into a tile of {machine.out_bytes}"
        raise InputError(f"layer {layer.name}: machine {machine.name} has psum_first_read, and {said}")


def planned_counts(one: Planned) -> Mapping[str, Counts]:
    """Return what the referee counts for every operand as C moves tiles: clipped, every core for itself."""
    as_moved = {"edge_tiles": "true", "reading": "consistent", "broadcast": Broadcast()}
    return replay(one.layer, one.machine.model_copy(update=as_moved), one.nest, execute=False).outcome.by_operand


def memories(machine: Machine) -> str:
    """Return the file with the machine's memories."""
    lines = [f"unsigned char certile_{name}[{size}];" for name, size in machine.memories.items()]
    lines += arrays(machine.near, "", [one.name for one in machine.near.memories]) if machine.near else []
    return "\n".join(["/* The memories on the chip. */", *lines, ""])


def layers_table(functions: Iterable[str], rows: Iterable[str]) -> list[str]:
    """Return the table of layers that the check reads, below their functions."""
    declared = [f"certile_function {name};" for name in functions] or [""]
    return [*declared, "", "static const certile_layer layers[] = {", *rows, "};"]


def _main(rows: Mapping[str, str]) -> str:
    return "\n".join([
        "/* Runs every layer on integers, and compares it with a naive loop nest and with the plan's transfers. */",
        '#include "certile_check.h"', "", "#include <stdio.h>", "",
        *layers_table(rows, rows.values()), "",
        "int main(int argc, char **argv)", "{",
        '    FILE *dump = argc > 1 ? fopen(argv[1], "wb") : NULL;',
        f"    int right = 0, all = {len(rows)};",
        "    for (int k = 0; k < all; k++) {",
        "        right += certile_check(&layers[k], dump);", "    }",
        "    if (dump && fclose(dump)) {", "        return 2;", "    }",
        '    printf("%d of %d layers: results and transfers as planned\\n", right, all);',
        "    return right == all ? 0 : 1;", "}", "",
    ])  # fmt: skip


def row(
    name: str, function: str, layer: Layer, machine: Machine, planned: Mapping[str, Counts], unwritten: int = 0
) -> str:
    """Return a layer with what its plan moves, as the initialiser of a `certile_layer`."""
    sizes = [layer.extent(d) for d in DIMS] + [
        layer.stride_h, layer.stride_w, layer.dilation_h, layer.dilation_w, layer.pad_top, layer.pad_left, layer.h,
        layer.l, layer.inputs, machine.in_bytes, machine.w_bytes if "W" in layer.operands else 0, machine.out_bytes,
        machine.psum_bytes, (machine.bias_bytes or 4) if layer.bias else 0,
    ]  # fmt: skip
    inputs = ", ".join(_pitches("IN", "bgnrc", layer, machine, lacks) for lacks in layer.patterns)
    others = (_pitches(operand, letters, layer, machine) for operand, letters in (("W", "gmnij"), ("OUT", "bgmrc")))
    places = ", ".join([f"{{{inputs}}}", *others])
    counts = [planned.get(operand, Counts()) for operand in ("IN", "W", "OUT", "PSUM")]
    moved = ", ".join(f"{{{one.calls}, {one.segments}, {one.bytes}}}" for one in counts)
    return f'    {{"{name}", {function}, {", ".join(map(str, sizes))}, {places}, {{{moved}}}, {unwritten}}},'


def _pitches(operand: str, letters: str, layer: Layer, machine: Machine, lacks: str = "") -> str:
    """The pitches of a tensor as an initialiser; 0 along what an input lacks."""
    found = {**pitches(operand, layer, machine, lacks), **dict.fromkeys(lacks, 0)}
    return f"{{{', '.join(str(found[d]) for d in letters)}}}"

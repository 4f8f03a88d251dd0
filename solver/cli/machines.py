"""The command `certile machines`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from instances.errors import InputError
from instances.jsonfile import list_machines
from instances.load import load_machine
from instances.machine.audit import faults
from instances.machine.glance import Glance, distance, glance, wanted
from solver.cli.exits import BAD_INPUT
from solver.show.console import emit, emit_tables
from solver.show.tables import ABSENT, Column, Sheet

#: Machines that are named as the nearest ones.
_NEAREST = 5
#: Of what no family is stated: machines of papers, boards, and generic ones.
_OTHERS = "others"


def machines(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[MACHINE]...", help="Bundled names or .json files; default: all")
    ] = None,
    like: Annotated[
        str | None,
        typer.Option("--like", metavar="TEXT", help='The nearest ones: --like "512 KiB, 256 MACs, 2 GB/s"'),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Name numbers without a source, in wrong units, or not as their source says"),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON, nothing else")] = False,
) -> int:
    """Compare machines: memory, MACs and bandwidth by family; the nearest to a chip of yours; sources of all numbers.

    On chip is what holds tiles or maps; MACs are those that begin in a cycle, at most; bandwidth is what a long
    transfer gets. --like takes numbers with units (KiB, MACs, GB/s, MHz, TOPS, bit) and orders machines by how many
    doublings they are away, all numbers together. --check holds every number against its source, clocks, bandwidths,
    sizes and peaks by their units, and ends with exit code 2 if there is a fault.
    """
    if like is not None and check:
        raise InputError("--like and --check: one at a time")
    if check:
        return _check(names or [*list_machines()], as_json=as_json)
    loaded = [load_machine(name) for name in names or list_machines()]
    found = sorted(map(glance, loaded), key=lambda one: (one.family or _OTHERS, one.name))
    away = _away(found, like) if like is not None else {}
    if away:
        found = sorted((one for one in found if one.name in away), key=lambda one: away[one.name])[:_NEAREST]
    if as_json:
        emit(json.dumps([asdict(one) | {"peak": one.peak} for one in found], indent=1))
    else:
        emit_tables(_sheet(found, away), *([_begin(found[0])] if away else []))
    return 0


def _check(names: Sequence[str], *, as_json: bool) -> int:
    """Print what is wrong with machines, a line for each fault."""
    found = {name: said for name in names if (said := _faults(name))}
    if as_json:
        emit(json.dumps(found, indent=1))
    else:
        lines = [f"{name}: {fault}" for name, said in found.items() for fault in said]
        fine = "every number has a source, is what it says, and in plausible units"
        emit("\n".join(lines) or f"{len(names)} {'machine' if len(names) == 1 else 'machines'}: {fine}")
    return BAD_INPUT if found else 0


def _faults(name: str) -> list[str]:
    """What is wrong with one machine: that it does not load, or its numbers."""
    try:
        machine = load_machine(name)
    except InputError as error:
        return [str(error)]
    found = faults(machine)
    if name != machine.name and machine.name in list_machines() and machine != load_machine(machine.name):
        found.append(f"name: {machine.name} is a bundled machine with other numbers; give this one a name of its own")
    return found


def _away(found: Sequence[Glance], like: str) -> dict[str, float]:
    """By how many doublings machines differ from what is wanted, those that have all of its numbers."""
    goals = wanted(like)
    away = {one.name: far for one in found if (far := distance(one, goals)) is not None}
    if not away:
        raise InputError(f"--like {like!r}: no machine has all of these numbers")
    return away


def _begin(one: Glance) -> str:
    return f"begin with it: certile solve NETWORK -m {one.name} --set FIELD=VALUE, or a copy of {one.name}.json"


def _sheet(found: Sequence[Glance], away: Mapping[str, float]) -> Sheet:
    """A row a machine; nothing is said of what a machine does not have."""
    columns = [
        Column("family", [one.family or _OTHERS for one in found], words=True),
        Column("machine", [one.name for one in found], words=True),
        Column("on chip", [_size(one.on_chip) for one in found]),
        Column("off chip (GB/s)", [_off_chip(one) for one in found], words=True),
        Column("MACs", [ABSENT if one.macs is None else f"{one.macs:,}" for one in found]),
        Column("MHz", [ABSENT if one.clock_hz is None else f"{one.clock_hz / 1e6:,.0f}" for one in found]),
        Column("GMAC/s", [ABSENT if one.peak is None else f"{one.peak / 1e9:,.1f}" for one in found]),
        Column("bits", [str(8 * one.element) for one in found]),
        Column("problem", [one.problem for one in found], words=True),
    ]
    if away:
        columns.insert(2, Column("doublings", [f"{away[one.name]:.1f}" for one in found]))
    return Sheet(columns)


def _off_chip(one: Glance) -> str:
    return (
        ", ".join(
            f"{name}{'' if size is None else ' ' + _size(size)} {speed / 1e9:.3g}" for name, size, speed in one.off_chip
        )
        or ABSENT
    )


def _size(size: int | None) -> str:
    if size is None:
        return ABSENT
    for unit, name in ((2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} B"

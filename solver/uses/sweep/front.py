"""Machines of a sweep against each other: sums over the layers of a network, and the machines that no other beats.

A machine point is a machine with values of fields. Its bytes, time, energy are the sums over the distinct layers of a
network, each times its repeats; its memory is what it has on the chip. Machines with other ticks are compared in
picoseconds. A point that lacks a layer (none fits, or its task has not run) is no candidate, and is counted.

A machine is on the front of some axes if no other is at or below it in all of them; of equal ones all are on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from formulations.pareto import pareto
from hwmodels.outcome import MEASURES
from instances.errors import InputError, choices
from solver.problems.registry import PROBLEMS
from solver.uses.sweep.rows import Cell, Row, Sweep

#: What is compared if nobody says, where plans have it; before it, of other problems, what they minimise.
AXES = ("bytes", "time", "memory", "energy")
#: One comparison each, if nobody says.
GROUP = ("network", "problem", "objective", "engine", "pins", "time_limit_s")
_PROVEN = "OPTIMAL"


@dataclass(frozen=True)
class MachineSum:
    """A machine point of a group."""

    machine: str
    settings: dict[str, Cell]
    """Machine field -> value."""
    values: dict[str, int]
    """By axis, in the units of the group; without those that cannot be summed."""
    layers: int
    """Rows that were summed."""
    lacking: int
    """Rows without a plan; then there are no values."""
    proven: bool
    """Whether every summed plan is the optimum of its layer."""
    stopped: int
    """Rows whose search was stopped: another run may find more."""
    front: bool = False
    """Whether no other machine of the group is at or below it in all axes."""


@dataclass(frozen=True)
class Group:
    """Machines that are compared."""

    key: dict[str, Cell]
    units: dict[str, str]
    """Of the axes, in order."""
    points: Sequence[MachineSum] = field(default_factory=tuple)
    """In the order of the sweep."""

    @property
    def front(self) -> list[MachineSum]:
        """The machines that no other beats, ascending along the first axes."""
        kept = [point for point in self.points if point.front]
        return sorted(kept, key=lambda point: tuple(point.values[axis] for axis in self.units))

    @property
    def incomplete(self) -> int:
        """Machines that lack a layer."""
        return sum(point.lacking > 0 for point in self.points)

    def to_json(self, *, everything: bool = True) -> dict[str, Any]:
        """Return plain data: key, units, and a mapping for every point."""
        points = self.points if everything else self.front
        return {
            "group": self.key, "units": self.units, "machines": len(self.points), "incomplete": self.incomplete,
            "points": [
                {
                    "machine": one.machine, "set": one.settings, **one.values, "layers": one.layers,
                    "lacking": one.lacking, "proven": one.proven, "stopped": one.stopped, "front": one.front,
                }
                for one in points
            ],
        }  # fmt: skip


def machine_fronts(sweep: Sweep, *, axes: Iterable[str] = (), group: Iterable[str] = ()) -> list[Group]:
    """Return the machines of a sweep, compared within groups.

    Parameters
    ----------
    axes : iterable of str
        What is compared: `memory`, and measures; by default bytes, time, memory, energy, as far as plans have them.
    group : iterable of str
        Columns whose values make a group; by default network, problem, objective, engine, pins, time limit.

    Raises
    ------
    InputError
        For an axis or a column that there is not.
    """
    names = tuple(group) or GROUP
    known = [name for name in sweep.columns if name not in sweep.measures]
    for name in names:
        if name not in known:
            raise InputError(f"--group {name}: expected {choices(known)}")
    asked = tuple(axes)
    for name in asked:
        if name not in (*sweep.measures, "memory"):
            raise InputError(f"--axes {name}: expected {choices((*sweep.measures, 'memory'))}")
    found: dict[tuple[Cell, ...], list[Row]] = {}
    for row in sweep.rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return [_group(sweep, dict(zip(names, key, strict=True)), rows, asked, names) for key, rows in found.items()]


def _group(
    sweep: Sweep, key: dict[str, Cell], rows: Sequence[Row], asked: tuple[str, ...], by: tuple[str, ...]
) -> Group:
    machines: dict[tuple[Cell, ...], list[Row]] = {}
    fields = [name for name in sweep.fields if name not in by]
    for row in rows:
        machines.setdefault((row["machine"], *(row[name] for name in fields)), []).append(row)
    kept = [name for name in sweep.measures if any(row[name] is not None for row in rows)]
    first = dict.fromkeys(str(row["objective"]).split(",")[0] for row in rows)
    usual = [*(name for name in first if name not in AXES), *AXES]
    axes = asked or tuple(name for name in usual if name in kept or (name == "memory" and kept))
    units = {axis: _unit(axis, rows) for axis in axes}
    points = [_sum(fields, values, mine, axes) for values, mine in machines.items()]
    full = [k for k, one in enumerate(points) if all(axis in one.values for axis in axes)]
    if not asked and not full:  # machines that name no memory
        axes = tuple(axis for axis in axes if axis != "memory")
        units = {axis: units[axis] for axis in axes}
        full = [k for k, one in enumerate(points) if one.values and all(axis in one.values for axis in axes)]
    on = _on_front([tuple(points[k].values[axis] for axis in axes) for k in full])
    front = {full[k] for k in on}
    return Group(key, units, [replace(one, front=k in front) for k, one in enumerate(points)])


def head(axis: str, unit: str) -> str:
    """The head of an axis for people: picoseconds and femtojoules are shown as us and uJ."""
    shown = {"ps": "us", "fJ": "uJ"}.get(unit, unit)
    return axis if axis == shown else f"{axis} ({shown})"


def figure(value: int, unit: str) -> int | float:
    """The value of an axis as `head` says it."""
    scale = {"ps": 1e6, "fJ": 1e9}.get(unit)
    return value if scale is None else value / scale


def _unit(axis: str, rows: Sequence[Row]) -> str:
    """The unit of an axis: ticks become picoseconds."""
    if axis == "memory":
        return "bytes on chip"
    problems = {str(row["problem"]) for row in rows} & set(PROBLEMS)
    known = [PROBLEMS[name].measures.get(axis, "") for name in sorted(problems)]
    unit = next(filter(None, known), MEASURES.get(axis, ""))
    return "ps" if unit.startswith("ticks") else unit


def _sum(fields: Sequence[str], values: tuple[Cell, ...], rows: Sequence[Row], axes: Sequence[str]) -> MachineSum:
    """The sums of one machine point."""
    machine, *settings = values
    lacking = sum(row["value"] is None for row in rows)
    sums: dict[str, int] = {}
    for axis in axes if not lacking else ():
        if axis == "memory":
            if rows[0]["memory_bytes"] is not None:
                sums[axis] = int(rows[0]["memory_bytes"])
        elif all(row[axis] is not None for row in rows):
            scale = [int(row["tick_ps"] or 1) if _unit(axis, [row]) == "ps" else 1 for row in rows]
            sums[axis] = sum(
                int(row[axis] or 0) * int(row["repeats"] or 1) * k for row, k in zip(rows, scale, strict=True)
            )
    return MachineSum(
        str(machine), {name: value for name, value in zip(fields, settings, strict=True) if value is not None}, sums,
        len(rows) - lacking, lacking, not lacking and all(row["status"] == _PROVEN for row in rows),
        sum(bool(row["stopped"]) for row in rows),
    )  # fmt: skip


def _on_front(values: Sequence[tuple[int, ...]]) -> list[int]:
    """Which of some points no other is at or below in all axes; equal ones are on it together."""
    if not values or not values[0]:
        return []
    ranks = [{v: k for k, v in enumerate(sorted(set(column)))} for column in zip(*values, strict=True)]
    table = np.array([[rank[v] for rank, v in zip(ranks, one, strict=True)] for one in values], np.int64).T
    best = {tuple(table[:, k].tolist()) for k in pareto(np.ascontiguousarray(table))}
    return [k for k in range(len(values)) if tuple(table[:, k].tolist()) in best]

"""Schedules of a layer on a machine with memories in levels, as plain data.

A `LevelNest` is an ordered list of items, outermost first: `Cut(dim, step)`, a loop that cuts the current range of a
dimension in pieces of `step`, one after the other, the last piece possibly smaller; and `Stay(operand, memory)`: from
here inwards the tile of the operand lies in that memory. Example, on DRAM, L2 and L1:

    Stay IN l2 | Cut m 64 | Stay W l2 | Cut r 4 | Stay OUT l2 | Stay IN l1 | Cut m 8 | Stay W l1 | Stay OUT l1

the whole input lies in L2, and weights of 64 filters; strips of 4 rows come to L1, and 8 filters at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import PositiveInt

from hwmodels.outcome import Natural
from instances.errors import InputError
from instances.machine.levels import Level, Levels
from instances.machine.machine import Machine, Transfer
from instances.network.workload import DIMS, RELEVANT, Layer


@dataclass(frozen=True)
class Cut:
    """Cut the current range of `dim` in pieces of `step`."""

    dim: Literal["b", "g", "m", "n", "r", "c", "i", "j"]
    step: PositiveInt


@dataclass(frozen=True)
class Stay:
    """From here inwards the tile of `operand` lies in `memory`."""

    operand: Literal["IN", "W", "OUT"]
    memory: str


@dataclass(frozen=True)
class LevelNest:
    """The schedule of a layer, outermost first."""

    items: tuple[Cut | Stay, ...]

    @property
    def words(self) -> str:
        """The items for people: ``m64 W@l2 r4 IN@l1``."""
        each = (f"{i.dim}{i.step}" if isinstance(i, Cut) else f"{i.operand}@{i.memory}" for i in self.items)
        return " ".join(each)

    def stays(self) -> list[tuple[int, Stay]]:
        """Where the Stays stand."""
        return [(k, item) for k, item in enumerate(self.items) if isinstance(item, Stay)]

    def steps(self, end: int | None = None) -> dict[str, tuple[int, ...]]:
        """How the loops before an item (all by default) cut every dimension, outermost first."""
        cuts = [item for item in self.items[:end] if isinstance(item, Cut)]
        return {d: tuple(cut.step for cut in cuts if cut.dim == d) for d in DIMS}

    def validate_for(self, layer: Layer, levels: Levels) -> None:
        """Raise InputError unless the nest is well formed for a layer on these memories."""
        size = {d: layer.extent(d) for d in DIMS}
        for k, item in enumerate(self.items):
            if isinstance(item, Cut):
                if item.dim not in DIMS:
                    raise InputError(f"nest[{k}]: no dimension {item.dim!r}, expected one of {', '.join(DIMS)}")
                if isinstance(item.step, bool) or not isinstance(item.step, int) or item.step < 1:
                    raise InputError(f"nest[{k}]: step must be a positive integer, got {item.step!r}")
                if item.step > size[item.dim]:
                    raise InputError(f"nest[{k}]: step {item.step} of {item.dim} must be 1..{size[item.dim]}")
                size[item.dim] = item.step
        if strange := [one.operand for _, one in self.stays() if one.operand not in RELEVANT]:
            raise InputError(f"nest: no operand {strange[0]!r}, expected IN, W or OUT")
        for operand in ("IN", "W", "OUT"):
            self._validate_stays(layer, levels, operand)
        last = max((k for k, one in self.stays() if one.operand == "IN"), default=-1)
        for k, item in enumerate(self.items[:last]):
            if isinstance(item, Cut) and item.dim in "ij" and item.step < layer.extent(item.dim):
                raise InputError(f"nest[{k}]: loops over the kernel ({item.dim}) stand inside the Stays of IN")

    def _validate_stays(self, layer: Layer, levels: Levels, operand: str) -> None:
        """Raise InputError unless an operand stays in memories that hold it, the far ones outside the near ones."""
        stays = [one.memory for _, one in self.stays() if one.operand == operand]
        known = [level.name for level in levels.memories[1:] if operand in level.operands]
        unknown = [name for name in stays if name not in known]
        if unknown:
            raise InputError(f"nest: {operand} does not stay in {unknown[0]}; it may in {', '.join(known) or 'none'}")
        if operand not in layer.operands:
            if stays:
                raise InputError(f"nest: layer {layer.name} has no {operand}")
            return
        if stays != [name for name in known if name in stays] or not stays:
            said = ", ".join(stays) or "nowhere"
            raise InputError(f"nest: {operand} stays in {said}: each of {', '.join(known)} once, from far to near")
        for level in levels.memories[1:]:
            if operand in level.operands and level.name not in stays and operand not in level.passed:
                raise InputError(f"nest: {operand} must stay in {level.name}: it may not pass that memory")
        if stays[-1] != known[-1]:
            raise InputError(f"nest: {operand} must stay in {known[-1]}, where it is computed on")


@dataclass(frozen=True)
class Box:
    """What a step makes of a layer; `top` to `right`: rows and columns of its window that are padding."""

    batch: PositiveInt
    groups: PositiveInt
    filters: PositiveInt
    """Of a group."""
    channels: PositiveInt
    """Of a group, that are read."""
    rows: PositiveInt
    columns: PositiveInt
    high: PositiveInt
    wide: PositiveInt
    """`high`, `wide`: rows and columns of the kernel."""
    top: Natural
    bottom: Natural
    left: Natural
    right: Natural
    sums: bool = False
    """Whether a part of what results need is added up."""


@dataclass(frozen=True)
class NearStep:
    """How the steps of a layer that make such a box bring it through the nearer memories."""

    layer: Natural
    """By number: the first one of those that are alike."""
    box: Box
    times: PositiveInt
    """How many steps make such a box, of all layers that are alike."""
    nest: LevelNest


def layer_of(layer: Layer, box: Box) -> Layer:
    """A box as a layer of its own; of a window that is padding alone a row (column) is read."""
    h = (box.rows - 1) * layer.stride_h + (box.high - 1) * layer.dilation_h + 1 - box.top - box.bottom
    w = (box.columns - 1) * layer.stride_w + (box.wide - 1) * layer.dilation_w + 1 - box.left - box.right
    if layer.broadcast or layer.kind == "correlation":
        what = "a correlation" if layer.kind == "correlation" else "reads inputs that are broadcast"
        raise InputError(f"layer {layer.name} {what}: networks on memories in levels have layers without")
    return layer.model_copy(
        update={
            "b": box.batch, "g": box.groups, "m": box.filters, "n": box.channels, "r": box.rows, "c": box.columns,
            "kh": box.high, "kw": box.wide, "pad_top": box.top, "pad_left": box.left, "h": max(1, h), "l": max(1, w),
            "resident_in": (), "resident_out": 0, "resident_w": False, "copies": (), "cycles": 0,
        }
    )  # fmt: skip


def near_machine(machine: Machine, sums: bool = False) -> Machine:
    """The shared memory and what lies behind it as a machine of its own; of sums results have their bytes."""
    assert machine.near is not None
    bare = {name: type(machine).model_fields[name].default for name in ("ocm_bytes", "reserved_bytes", "byte_fj")}
    return machine.model_copy(
        update={
            **bare, "problem": "levels", "levels": machine.near, "near": None, "transfer": Transfer(), "ocm_banks": 0,
            "out_bytes": max(machine.out_bytes, machine.psum_bytes) if sums else machine.out_bytes,
        }
    )  # fmt: skip


def source(stays: Sequence[Stay], levels: Levels, stay: Stay) -> Level:
    """Return the memory that a tile comes from: the nearest of those beyond where the operand stays, or the first."""
    names = [one.memory for one in stays if one.operand == stay.operand]
    at = names.index(stay.memory)
    return levels.memory(names[at - 1]) if at else levels.memories[0]


def real(layer: Layer, items: Sequence[Cut | Stay]) -> list[bool]:
    """Whether every item is a loop that makes more pieces of its dimension than there were."""
    found, length = [], {d: [(layer.extent(d), 1)] for d in DIMS}
    for item in items:
        if isinstance(item, Stay):
            found.append(False)
            continue
        before, step = length[item.dim], item.step
        after: Mapping[int, int] = _cut(before, step)
        length[item.dim] = [*after.items()]
        found.append(sum(after.values()) > sum(number for _, number in before))
    return found


def _cut(lengths: Sequence[tuple[int, int]], step: int) -> dict[int, int]:
    made: dict[int, int] = {}
    for length, number in lengths:
        for piece, times in ((step, length // step), (length % step, 1)):
            if piece and times:
                made[piece] = made.get(piece, 0) + number * times
    return made

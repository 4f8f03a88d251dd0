"""The nests with free hold depths that stand for all, as members of a space (`formulations.tiling.tiling` argues)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product

import numpy as np

from formulations.pins import Decision, Pins
from formulations.tiling.chains import Sizes
from formulations.tiling.member import Member
from formulations.tiling.turns import RASTER, orders_of
from hwmodels.nest.price.boxes import input_windows
from hwmodels.nest.price.choices import Slides
from hwmodels.nest.price.skeleton import Core, Skeleton, cores
from hwmodels.schedule import Nest, Spatial
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, RELEVANT, Layer

PIECES = Decision(
    "free (pieces of any sizes, where clipping makes tiles smaller or lanes are filled better) or even (equal steps)",
    ("free", "even"),
)
LINES = Decision("any, or no: IN is never held in lines (machines with line)", ("any", "no"))
HOMES = {
    f"home_{op}": Decision(f"the memory off the chip where {op} lies (machines with off_chip)", ("NAME",), open=True)
    for op in ("IN", "W", "OUT")
}
#: The loops of every segment, outermost first.
Segments = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Restrictions:
    """What pins say about a nest beside its steps."""

    resident: tuple[str, ...]
    """Operands that stay on chip whole."""
    row_major: bool
    """Whether columns of the result must be cut inside its rows, and rows inside the batch."""
    buffers: tuple[Mapping[str, int], ...]
    """The buffers that the Holds may state; ``{}`` leaves them to the machine."""
    even: frozenset[str]
    """The dimensions that loops cut in equal steps only."""

    @classmethod
    def of(cls, layer: Layer, machine: Machine, pins: Pins) -> Restrictions:
        """Read the pins.

        Raises InputError if ``resident`` is pinned by ``!=``.
        """
        for pin in pins.of("resident"):
            if pin.op != "=":
                raise InputError(f"pin {pin}: only resident=IN, resident=W and resident=OUT apply")
        resident = {p.value for p in pins.of("resident")}
        return cls(
            tuple(op for op in layer.operands if op in resident),
            not pins.allows("output", "any"),
            tuple(_buffers(layer, machine, pins)),
            _even(machine, pins),
        )

    def whole(self, core: Core, sizes: Mapping[str, Sizes]) -> dict[str, Sizes]:
        """Only the steps that cut no resident operand in the largest core's share."""
        dims = {d for op in self.resident for d in RELEVANT[op]}
        uncut = {d: np.array([core.extent(d)], np.int64) for d in dims}
        return {d: Sizes.of(s.inner[np.isin(s.inner, uncut[d])]) if d in dims else s for d, s in sizes.items()}

    def allows_order(self, order: tuple[str, ...]) -> bool:
        """Whether loops in this order, all outside the Hold of OUT, leave the result in the order asked for."""
        places = [order.index(d) for d in RASTER if d in order]
        return not self.row_major or places == sorted(places)


def stated_cuts(nest: Nest) -> dict[str, str]:
    """Where loops cut dimensions in pieces of free sizes: ``cuts_R: 2 3``, of several loops outermost first.

    A loop in equal steps beside such a one is named by its step: ``cuts_R: 2 5, by 2``.
    """
    found = {}
    for dim, loops in nest.loops().items():
        if any(not isinstance(how, int) for how in loops):
            words = [f"by {how}" if isinstance(how, int) else " ".join(map(str, how)) for how in loops]
            found[f"cuts_{dim.upper()}"] = ", ".join(words)
    return found


def stated_homes(nest: Nest) -> dict[str, str]:
    """Where the operands lie, on machines with several memories off the chip: ``home_W: flash``."""
    return {f"home_{operand}": name for operand, name in nest.homes}


def _even(machine: Machine, pins: Pins) -> frozenset[str]:
    """All dimensions where tiles are equal by the machine or by a pin, those whose tiles are pinned to multiples."""
    divisors = not pins.allows("sizes", "free")
    if machine.edge_tiles == "uniform" or machine.reading == "literal" or divisors or not pins.allows("pieces", "free"):
        return frozenset(DIMS)
    return frozenset(d for d in DIMS if any(p.op == "%" for p in pins.of(f"T_{d.upper()}")))


def _buffers(layer: Layer, machine: Machine, pins: Pins) -> Iterator[dict[str, int]]:
    """The combinations of buffers to look at: two only where they can save time or are pinned."""
    options = []
    for op in layer.operands:
        allowed = [n for n in (1, 2) if pins.allows(f"buffers_{op}", str(n))]
        if machine.buffering != "choose":
            options.append([n for n in allowed if n == machine.buffers(None)])
        else:
            options.append(allowed if machine.timing == "double_buffered" else allowed[:1])
    for numbers in product(*options):
        yield dict(zip(layer.operands, numbers, strict=True)) if machine.buffering == "choose" else {}


def free_members(
    layer: Layer,
    machine: Machine,
    spatial: tuple[Spatial, ...],
    sizes: Mapping[str, Sizes],
    limits: Restrictions,
    label: Mapping[str, str] | None = None,
    *,
    full: bool = False,
) -> tuple[Member, ...]:
    """Every order of Holds and every choice of segments, inside the spatial cuts."""
    share = cores(layer, spatial)[0]
    cut = tuple(d for d in DIMS if share.extent(d) > 1)
    members: dict[object, Member] = {}
    for holds in permutations(layer.operands):
        if set(holds[: len(limits.resident)]) != set(limits.resident):
            continue
        for segments in _ordered(layer, holds, _segments(layer, machine, holds, cut, limits), limits):
            order, slides = _order(layer, machine, holds, segments, limits)
            depth = {op: sum(map(len, segments[: k + 1])) for k, op in enumerate(holds)}
            for buffers in limits.buffers:
                skeleton = Skeleton(spatial, order, depth, buffers, full=True)
                name = {"holds": " ".join(holds), **{f"buffers_{op}": str(n) for op, n in buffers.items()}}
                key = order, tuple(sorted(depth.items())), slides, tuple(buffers.items())
                named, free = {**(label or {}), **name}, not (limits.row_major or layer.broadcast)
                member = Member(layer, machine, named, skeleton, sizes, slides, full, limits.even, free)
                members.setdefault(key, member)
                for lined in _lined(layer, machine, skeleton, limits):
                    name_of = lined.order, tuple(sorted(lined.depth.items())), "line", tuple(buffers.items())
                    members.setdefault(name_of, replace(member, skeleton=lined, slides=()))
    return tuple(members.values())


def _lined(layer: Layer, machine: Machine, skeleton: Skeleton, limits: Restrictions) -> Iterator[Skeleton]:
    """The nests that hold IN in lines, if its last loops may be one over rows and one over columns, its kernel whole.

    Columns (or rows) may also be cut in strips outside the two loops: a shorter pass has shorter lines.
    """
    if not machine.line or any(w.reach <= w.stride for w in input_windows(layer).values()):
        return
    skeleton = skeleton.without("ij", "IN")
    at, outside = skeleton.depth["IN"], skeleton.outside("IN")
    first = max([0, *(k for k in skeleton.depth.values() if k < at)])
    if not {"r", "c"} <= set(outside[first:]):
        return
    rest = tuple(d for d in outside[first:] if d not in "rc")
    for outer, inner in (("r", "c"), ("c", "r")):
        order = (*outside[:first], *rest, outer, inner, *skeleton.order[at:])
        lined = replace(skeleton, order=order, line=True)
        for one in (lined, *([lined.stripped(inner)] if inner not in outside[:first] else [])):
            if limits.allows_order(one.outside("OUT")):
                yield one


def _segments(
    layer: Layer, machine: Machine, holds: tuple[str, ...], cut: tuple[str, ...], limits: Restrictions
) -> Iterator[Segments]:
    """The loops before every Hold, and inside all of them."""
    may: dict[str, list[int]] = {d: [] for d in cut}
    for k, op in enumerate(holds):
        for d in cut:
            if d in RELEVANT[op] and op not in limits.resident:
                may[d].append(k)
    if machine.im2col_rows and machine.im2col_channels == "tile" and "n" in may:
        may["n"].append(len(holds))  # a smaller tile of channels takes less scratch
    ways = [list(combinations(places, min(2, len(places)))) for places in may.values()]
    for chosen in product(*ways):
        looped = dict(zip(may, chosen, strict=True))
        for kept in _row_major(holds, looped) if limits.row_major else [looped]:
            yield tuple(tuple(d for d in cut if k in kept[d]) for k in range(len(holds) + 1))


def _ordered(
    layer: Layer, holds: tuple[str, ...], segments: Iterator[Segments], limits: Restrictions
) -> Iterator[Segments]:
    """The segments with their loops in every order that matters: outside the Hold of IN, of inputs that are broadcast.

    Asked for rows of the result outside its columns, all segments outside the Hold of OUT keep to that.
    """
    last = {op: k for k, op in enumerate(holds)}
    for parts in segments:
        ways = [
            [*orders_of(layer, part, row_major=limits.row_major and k <= last["OUT"])] if k <= last["IN"] else [part]
            for k, part in enumerate(parts)
        ]
        yield from product(*ways)


def _row_major(holds: tuple[str, ...], looped: Mapping[str, tuple[int, ...]]) -> Iterator[dict[str, tuple[int, ...]]]:
    """If two segments outside the Hold of OUT cut the result: the outer one up to some dimension, the other from it."""
    inner = holds.index("OUT")
    outer = holds.index("IN")
    if outer > inner:
        yield dict(looped)
        return
    for pivot in range(len(RASTER)):
        kept = dict(looped)
        for place, d in enumerate(RASTER):
            if d in kept and place != pivot:
                kept[d] = tuple(k for k in kept[d] if k == (outer if place < pivot else inner))
        yield kept


def _order(
    layer: Layer, machine: Machine, holds: tuple[str, ...], segments: Segments, limits: Restrictions
) -> tuple[tuple[str, ...], Slides]:
    """The loops in order, those of windows last before the Hold of IN, and those along which IN may slide."""
    at = holds.index("IN")
    moving = (*(("r", "i") if layer.kh > 1 else ()), *(("c", "j") if layer.kw > 1 else ()))  # by less than the reach
    windows = [d for d in segments[at] if machine.sliding and d in moving]
    if limits.row_major and at < holds.index("OUT"):
        raster = [d for d in segments[at] if d in RASTER]
        windows = [d for d in windows if d not in raster[:-1]]
    outside: tuple[str, ...] = sum(segments[: at + 1], ())
    ordered = (*(d for d in segments[at] if d not in "rcij"), *(d for d in "rcij" if d in segments[at]))
    if layer.broadcast:  # which has no windows: the order is that of `_ordered`
        ordered = segments[at]
    order: tuple[str, ...] = sum((*segments[:at], ordered, *segments[at + 1 :]), ())
    return order, tuple((d, outside.count(d) - 1) for d in windows)

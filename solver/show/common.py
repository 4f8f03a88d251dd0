"""Figures that several problems have: parts of a sum, times by layer, processors over time, memories by layer.

**A network** (`graph`) is drawn from the top down: an operator lies below all that it reads, in a lane of its own
beside others.

**Tiles** (`tile_drawing`) are drawn on their tensors: what of IN, W, OUT lies on chip at a time, tensors as boxes in
oblique projection. Every axis has a scale of its own (length grows with the size to the power 0.4), so that 2,048
channels of one pixel can be seen; along each axis the part that the tile takes is true to scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

from hwmodels.nest.buffers import Buffer
from instances.network.network import Network
from instances.network.workload import Layer
from solver.plan.figures import Axis, Bars, Box, Boxes, Drawing, Figure, Graph, Label, Node, Polygon, Series, Table
from solver.plan.plan import Plan

#: So many names stand below an axis; more are numbered.
_NAMED = 12
#: So many terms of a sum are drawn.
_TERMS = 60


def us(plan: Plan, ticks: int) -> float:
    """Ticks of the plan's machine in microseconds."""
    return ticks * plan.machine_data.tick_ps / 1e6


# ---- sums ------------------------------------------------------------------------------------------------------------


def terms(plan: Plan, others: Mapping[str, Plan]) -> tuple[Figure, ...]:
    """Return what sums to the objective, as a bar for every engine; nothing where there is one term or none."""
    plans = {plan.engine: plan, **others}
    known = {name: one.objective for name, one in plans.items() if one.objective is not None}
    if plan.objective is None or not known:
        return ()
    names = list(dict.fromkeys(term for one in known.values() for term, value in one.terms.items() if value))
    if len(names) < 2 or len(names) > _TERMS:
        return ()
    what = plan.objectives[0]
    unit = Axis(what if what == plan.objective.unit else f"{what} ({plan.objective.unit})")
    if len(names) > _NAMED:
        bars = Bars(
            "objective", f"What the {what} is made of", f"The parts that sum to the {what} of this plan.",
            unit, tuple(names),
            (Series(plan.engine, tuple(plan.objective.terms.get(name) for name in names)),),
        )  # fmt: skip
        return (bars,)
    series = tuple(Series(term, tuple(one.terms.get(term) for one in known.values())) for term in names)
    caption = f"The parts that sum to the {what}, for this plan ({plan.engine})"
    caption += " and for other engines." if others else "."
    return (Bars("objective", f"What the {what} is made of", caption, unit, tuple(known), series),)


def stacked(
    key: str, title: str, caption: str, axis: str, rows: Mapping[str, Mapping[str, Mapping[str, float]]],
    order: Sequence[str] = (),
) -> Bars:  # fmt: skip
    """Return bars by name and engine.

    `rows` say by engine (the plan's own first) and name what each part is; parts in `order` come first.
    """
    engines = list(rows)
    names = list(rows[engines[0]]) if engines else []
    parts = list(dict.fromkeys([*order, *(part for one in rows.values() for row in one.values() for part in row)]))
    bars = [(name, engine) for name in names for engine in engines if name in rows[engine]]
    series = tuple(
        Series(part, tuple(rows[engine][name].get(part) for name, engine in bars))
        for part in parts
        if any(rows[engine][name].get(part) for name, engine in bars)
    )
    return Bars(
        key, title, caption, Axis(axis), tuple(name for name, _ in bars), series,
        tuple(engine for _, engine in bars) if len(engines) > 1 else (),
    )  # fmt: skip


def by_row(
    plans: Mapping[str, Sequence[Any]], of: Callable[[Any], Mapping[str, float]]
) -> dict[str, dict[str, Mapping[str, float]]]:
    """Return what `stacked` draws of rows that have names, by engine."""
    return {engine: {row.name: of(row) for row in rows} for engine, rows in plans.items()}


def total(rows: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the sums over all names, by engine."""
    sums: dict[str, dict[str, float]] = {}
    for engine, named in rows.items():
        mine = sums.setdefault(engine, {})
        for row in named.values():
            for part, value in row.items():
                mine[part] = mine.get(part, 0) + value
    return sums


# ---- along layers ----------------------------------------------------------------------------------------------------


def layer_axis(names: Sequence[str], what: str = "layer") -> Axis:
    """Return an axis on which layer k lies from k to k + 1: with names if they are few, else with numbers."""
    if len(names) <= _NAMED:
        ticks = tuple((k + 0.5, name) for k, name in enumerate(names))
        return Axis(what, ticks=ticks, limits=(0, max(1, len(names))))
    shown = [0, *range(9, len(names), 10)]
    return Axis(f"{what}, by number in the table's order", ticks=tuple((k + 0.5, str(k + 1)) for k in shown),
                limits=(0, len(names)))  # fmt: skip


@dataclass(frozen=True)
class Stay:
    """Something in a memory while one layer runs: addresses, or numbers of banks, from `low` to `high`."""

    step: int
    low: float
    high: float
    name: str
    kind: str
    note: str


def residency(
    key: str, title: str, caption: str, names: Sequence[str], stays: Sequence[Stay], axis: Axis,
    limit: float | None = None, order: Sequence[str] = (),
) -> Boxes:  # fmt: skip
    """Return what lies in a memory layer by layer; what stays where it is over several layers is one box.

    Kinds have their colours by `order`, others follow.
    """
    kinds = tuple(dict.fromkeys([*order, *(stay.kind for stay in stays)]))
    open_: dict[tuple[float, float, str, str], Box] = {}
    closed = list[Box]()
    for stay in sorted(stays, key=lambda one: one.step):
        place = (stay.low, stay.high, stay.name, stay.kind)
        before = open_.get(place)
        if before is not None and before.x_end == stay.step:
            open_[place] = Box(before.x, stay.step + 1, stay.low, stay.high, stay.name, before.group, before.note)
            continue
        if before is not None:
            closed.append(before)
        open_[place] = Box(stay.step, stay.step + 1, stay.low, stay.high, stay.name, kinds.index(stay.kind), stay.note)
    boxes = sorted([*closed, *open_.values()], key=lambda box: (box.x, box.y, box.name))
    return Boxes(key, title, caption, layer_axis(names), axis, kinds, tuple(boxes), limit=limit)


# ---- processors ------------------------------------------------------------------------------------------------------


def gantt(
    key: str, title: str, caption: str, plan: Plan, lanes: Sequence[str], work: Iterable[tuple[str, str, Drawn]],
) -> Boxes:  # fmt: skip
    """Return processors over time; `work` are boxes: lane, name, and when it runs."""
    groups, boxes = ("computes", "copies to other processors"), list[Box]()
    for lane, name, one in work:
        y = lanes.index(lane)
        begin, middle, end = (us(plan, t) for t in (one.start, one.start + one.time, one.start + one.time + one.copies))
        note = f"from {begin:,.1f} us, {middle - begin:,.1f} us and {end - middle:,.1f} us of copies"
        boxes.append(Box(begin, middle, y - 0.4, y + 0.4, name, 0, note))
        if one.copies:
            boxes.append(Box(middle, end, y - 0.4, y + 0.4, name, 1, note))
    ticks = tuple((float(k), lane) for k, lane in enumerate(lanes))
    y_axis = Axis("", ticks=ticks, downwards=True, limits=(-0.6, len(lanes) - 0.4))
    return Boxes(key, title, caption, Axis("time (us)"), y_axis, groups, tuple(boxes), tall=len(lanes))


def layout(edges: Sequence[tuple[int, int]], number: int) -> list[tuple[int, int]]:
    """Return lane and rank of every node, 0 to `number` - 1 in topological order.

    The rank is the longest way from a source. A node takes the lane of the first node that it reads if nobody of its
    rank has it, else the nearest free one.
    """
    before: list[list[int]] = [[] for _ in range(number)]
    for a, b in edges:
        before[b].append(a)
    rank = [0] * number
    for b in range(number):
        rank[b] = max((rank[a] + 1 for a in before[b]), default=0)
    lane, taken = [0] * number, set[tuple[int, int]]()
    for b in sorted(range(number), key=lambda node: (rank[node], node)):
        wanted = min((lane[a] for a in before[b]), default=0)
        lane[b] = next(x for x in range(number) if (x, rank[b]) not in taken and x >= wanted)
        taken.add((lane[b], rank[b]))
    return list(zip(lane, rank, strict=True))


def graph(
    key: str, title: str, caption: str, network: Network, groups: Mapping[str, Sequence[str]], notes: Mapping[str, str],
) -> Graph:  # fmt: skip
    """Return a network with groups of operators, each by its name; `notes` are of operators or groups."""
    names = [operator.name for operator in network.operators]
    number = {name: k for k, name in enumerate(names)}
    edges = tuple((number[a], number[operator.name]) for operator in network.operators for a in operator.inputs)
    member = {name: g for g, (_, members) in enumerate(groups.items()) for name in members}
    places = layout(edges, len(names))
    titles = tuple(groups)
    nodes = tuple(
        Node(name, float(lane), float(rank), member.get(name), _note(name, titles, member, notes))
        for name, (lane, rank) in zip(names, places, strict=True)
    )
    return Graph(key, title, caption, nodes, edges, titles)


def _note(name: str, titles: Sequence[str], member: Mapping[str, int], notes: Mapping[str, str]) -> str:
    mine = [notes.get(name, "")]
    if name in member:
        mine.append(notes.get(titles[member[name]], ""))
    return "; ".join(filter(None, mine))


_GROWTH, _LONGEST, _SLANT, _SPACE, _NARROWEST = 0.4, 4.0, 0.45, 1.4, 4.2


@dataclass(frozen=True)
class Tensor:
    """A tensor and its tile: columns, rows and channels (of weights: kernel, input and output channels)."""

    name: str
    words: tuple[str, str, str]
    whole: tuple[int, int, int]
    tile: tuple[int, int, int]

    @property
    def part(self) -> float:
        """The part of the tensor that the tile is."""
        return prod(self.tile) / prod(self.whole)


def tensors(layer: Layer, placed: Sequence[Buffer]) -> tuple[Tensor, ...]:
    """Return the operands of a layer with the tiles that have a buffer."""
    images = layer.b * layer.g
    shapes: dict[str, tuple[tuple[str, str, str], tuple[int, int, int], tuple[str, str, str]]] = {
        "IN": (("columns", "rows", "channels"), (layer.l, layer.h, images * layer.n), ("c", "r", "bgn")),
        "W": (("kernel", "inputs", "outputs"), (layer.kh * layer.kw, layer.n, layer.g * layer.m), ("ij", "n", "gm")),
        "OUT": (("columns", "rows", "channels"), (layer.c, layer.r, images * layer.m), ("c", "r", "bgm")),
    }
    found, seen = [], set[str]()
    for buffer in placed:
        operand = buffer.name.rstrip("0123456789")
        if operand in shapes and operand not in seen:
            seen.add(operand)
            words, whole, dims = shapes[operand]
            sizes = [prod(buffer.extents.get(d, 1) for d in axis) for axis in dims]
            tile = (min(sizes[0], whole[0]), min(sizes[1], whole[1]), min(sizes[2], whole[2]))
            found.append(Tensor(operand, words, whole, tile))
    return tuple(sorted(found, key=lambda one: list(shapes).index(one.name)))


def tile_drawing(key: str, title: str, found: Sequence[Tensor]) -> Drawing:
    """Return the drawing of some tensors side by side."""
    polygons, labels, left = list[Polygon](), list[Label](), 0.0
    for number, tensor in enumerate(found):
        longest = max(size**_GROWTH for size in tensor.whole)
        columns, rows, depth = (max(0.3, _LONGEST * size**_GROWTH / longest) for size in tensor.whole)
        size = (columns, rows, depth * _SLANT)
        mine = [length * t / w for length, t, w in zip(size, tensor.tile, tensor.whole, strict=True)]
        polygons += [Polygon(face, number) for face in _faces(left, rows, size)]
        polygons += [Polygon(face, number, filled=True) for face in _faces(left, rows, (mine[0], mine[1], mine[2]))]
        width = max(columns + depth * _SLANT, _NARROWEST)
        labels += [
            Label(left + width / 2, -0.5, tensor.name, bold=True),
            Label(left + width / 2, -1.15, " x ".join(map(str, tensor.whole))),
            Label(left + width / 2, -1.8, f"tile {' x '.join(map(str, tensor.tile))}"),
        ]
        left += width + _SPACE
    axes = "; ".join(f"{one.name}: {' x '.join(one.words)}" for one in found)
    caption = (
        f"The filled part lies on chip at a time, at its largest. {axes}. Every axis has a scale of its own; along "
        "each the part is true."
    )
    return Drawing(
        key, title, caption, tuple(one.name for one in found), tuple(polygons), tuple(labels), _numbers(found)
    )


def _faces(left: float, top: float, size: tuple[float, float, float]) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Front, top and right side of a box whose front has its upper left corner at (left, top)."""
    width, height, slant = size
    right, low, high = left + width, top - height, top + slant
    front = ((left, low), (right, low), (right, top), (left, top))
    above = ((left, top), (right, top), (right + slant, high), (left + slant, high))
    side = ((right, low), (right, top), (right + slant, high), (right + slant, low + slant))
    return front, above, side


def _numbers(found: Sequence[Tensor]) -> Table:
    rows = tuple(
        (
            one.name,
            " x ".join(one.words),
            " x ".join(map(str, one.whole)),
            " x ".join(map(str, one.tile)),
            100 * one.part,
        )
        for one in found
    )
    return Table(("tensor", "axes", "size", "tile", "part on chip (%)"), rows)


#: Characters of a line.
WIDTH = 96
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Drawn(Protocol):
    """What `drawn` needs of a task."""

    @property
    def start(self) -> int:
        """When it begins."""

    @property
    def time(self) -> int:
        """What it computes."""

    @property
    def copies(self) -> int:
        """What it copies then."""


def drawn(rows: Sequence[Drawn], length: int) -> str:
    """Return a line of what runs from 0 to `length`: a character is what runs in the middle of its part."""
    line = ["."] * WIDTH
    for column in range(WIDTH):
        now = (2 * column + 1) * length // (2 * WIDTH)
        for number, row in enumerate(rows):
            if row.start <= now < row.start + row.time:
                line[column] = LETTERS[number % len(LETTERS)]
            elif row.start + row.time <= now < row.start + row.time + row.copies:
                line[column] = "="
    return "".join(line)

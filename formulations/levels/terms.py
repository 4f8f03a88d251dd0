"""The prices of a layer under one order of Stays, as sums of products over its dimensions.

With P_q(x) the product over dimensions d of a factor of the chain x_d that is chosen (`formulations.levels.axes`),

    row(x) = constant + sum over q of factor[q] * P_q(x) + sum over (p, q) of pair[p, q] * P_p(x) * (2 * P_q(x) - 1)

is a measure, or the bytes that are taken of a memory. All factors are positive, so a row with the least factors of
some chains of every dimension is a lower bound for all choices among them. The second sum is of transfers of OUT: a
tile that is visited v times is written v times, and read v - 1 times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from formulations.levels import chains
from formulations.levels.axes import Axis, How, axis, seen_in
from formulations.levels.orders import Order
from hwmodels.levels.price import lanes_of, windowed
from hwmodels.levels.schedule import Cut, LevelNest, Stay
from hwmodels.nest.price.bilinear import Ints
from instances.machine.levels import Level, Levels
from instances.machine.machine import Machine
from instances.network.workload import DIMS, REDUCTION, Layer


@dataclass
class Row:
    """A measure, or what is taken of a memory."""

    constant: int = 0
    factors: dict[int, int] = field(default_factory=dict)
    pairs: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, term: int, factor: int) -> None:
        """Count a product."""
        if factor:
            self.factors[term] = self.factors.get(term, 0) + factor

    def plus(self, *others: Row) -> Row:
        """The sum of rows."""
        made = Row(self.constant, dict(self.factors), dict(self.pairs))
        for one in others:
            made.constant += one.constant
            for term, factor in one.factors.items():
                made.add(term, factor)
            for pair, factor in one.pairs.items():
                made.pairs[pair] = made.pairs.get(pair, 0) + factor
        return made

    def value(self, products: Ints) -> Ints:
        """The row for products (.., Q)."""
        total: Ints = products[..., [*self.factors]] @ np.array([*self.factors.values()], np.int64) + self.constant
        for (one, two), factor in self.pairs.items():
            total += factor * products[..., one] * (2 * products[..., two] - 1)
        return total


@dataclass
class Extreme:
    """The largest of some rows, which no queue, nor the PEs, can do without; or the least. And a row in any case."""

    rows: Sequence[Row | Extreme]
    base: Row = field(default_factory=Row)
    least: bool = False

    @classmethod
    def of(cls, rows: Sequence[Row], base: Row) -> Row | Extreme:
        """The least of rows, and a row in any case."""
        return base.plus(rows[0]) if all(row == rows[0] for row in rows) else cls(rows, base, least=True)

    @property
    def factors(self) -> set[int]:
        """The products that count in any row."""
        return {term for row in (self.base, *self.rows) for term in row.factors}

    @property
    def pairs(self) -> set[tuple[int, int]]:
        """Those that count in pairs."""
        return {pair for row in (self.base, *self.rows) for pair in row.pairs}

    def value(self, products: Ints) -> Ints:
        """The largest value, or the least."""
        found = self.rows[0].value(products)
        for row in self.rows[1:]:
            found = (np.minimum if self.least else np.maximum)(found, row.value(products))
        made: Ints = found + self.base.value(products) if self.base.factors else found + self.base.constant
        return made


@dataclass
class Guess:
    """What a nest whose transfers overlap will take, roughly: rows, first loads, the last step and the last stores."""

    compute: Row | Extreme
    """With the first loads."""
    queues: list[tuple[Row | Extreme, int]]
    """Each queue, and the product of the visits after whose last one only compute and stores are left."""
    stores: Row
    """The last stores."""
    strain: float = 1.0
    """How much longer queues are taken to be: full ones make others wait."""

    def value(self, products: Ints) -> Ints:
        """The guess for products (.., Q)."""
        computed, stored = self.compute.value(products), self.stores.value(products)
        found = computed + stored
        for row, visits in self.queues:
            busy = (row.value(products) * self.strain).astype(np.int64)
            found = np.maximum(found, busy + computed // np.maximum(products[..., visits], 1))
        return found


def sources(levels: Levels, operand: str) -> list[str]:
    """The memories that the tiles of an operand come from in any case."""
    first, *others = levels.memories
    held = [one.name for one in others if operand in one.operands and operand not in one.passed]
    return [first.name, *held[:-1]]


def needs_of(layer: Layer, machine: Machine, measures: Sequence[str]) -> frozenset[str]:
    """What is counted beside bytes and tiles: "calls", "lanes", "first"."""
    assert machine.levels is not None
    found = set[str]()
    if "time" in measures:
        found |= {"calls"} if any(one.call_ticks for one in machine.levels.memories) else set()
        found |= {"first", "calls"} if machine.levels.queues != "serial" else set()
        found |= {"lanes"} if lanes_of(layer, machine) and machine.compute.cycle_ticks else set()
    if layer.bias and machine.bias_bytes:
        found |= {"calls"}
    return frozenset(found)


class Terms:
    """All rows of a layer under an order, for the measures that are asked for."""

    def __init__(
        self, layer: Layer, machine: Machine, order: Order, measures: Sequence[str], *,
        residents: frozenset[Stay] = frozenset(), how: How = "", near: LevelNest | None = None,
    ) -> None:  # fmt: skip
        assert machine.levels is not None
        self.layer, self.machine, self.order, self.levels = layer, machine, order, machine.levels
        needs = needs_of(layer, machine, measures)
        self.axes: list[Axis] = [
            axis(layer, machine, order, d, needs, residents=residents, how=how, near=near)
            for d in [d for d in DIMS if layer.extent(d) > 1] or ["b"]
        ]
        self._columns: list[list[Ints]] = []
        self._known: dict[tuple[bytes, ...], int] = {}
        self.guess: Guess | None = None
        """Of machines whose transfers overlap, if time is asked for."""
        self.measures: dict[str, Row | Extreme] = {
            name: self._busy() if name == "time" and machine.levels.queues != "serial" else self._measure(name)
            for name in measures
        }
        self.memories = self._memories()
        self.tables: list[Ints] = [
            np.stack([column[a] for column in self._columns], axis=1) for a in range(len(self.axes))
        ] if self._columns else [np.zeros((len(one.steps), 0), np.int64) for one in self.axes]  # fmt: skip

    @property
    def count(self) -> int:
        """How many products there are."""
        return len(self._columns)

    def products(self, picks: Sequence[Ints]) -> Ints:
        """The products (.., Q) of chains, an index (or indices) of every axis."""
        total: Ints = np.ones((1, len(self._columns)), np.int64)
        for table, pick in zip(self.tables, picks, strict=True):
            total = total * table[pick]
        return total

    # ---- products ----------------------------------------------------------------------------------------------------

    def _term(self, k: int, **kinds: str) -> int:
        """The product whose factor of a dimension is of the kind said for it ("" for the others)."""
        parts = [self._factor(one, k, kinds.get(one.dim, kinds.get("others", ""))) for one in self.axes]
        key = tuple(part.tobytes() for part in parts)
        if key not in self._known:
            self._known[key] = len(self._columns)
            self._columns.append(parts)
        return self._known[key]

    @staticmethod
    def _factor(one: Axis, k: int, kind: str) -> Ints:
        if kind == "lanes":
            return one.lanes
        factors = {"moved": one.moved, "tile": one.tile, "calls": one.calls, "first": one.first}
        return factors[kind][k] if kind else np.ones_like(one.lanes)

    # ---- rows --------------------------------------------------------------------------------------------------------

    def _measure(self, name: str) -> Row:
        row = Row()
        memories = {one.name: one for one in self.levels.memories}
        first = self.levels.memories[0].name
        if name == "energy":
            row.constant = self.layer.macs * self.machine.mac_fj
        for k in range(len(self.order.stays)):
            source = memories[self.order.sources[k]]
            scale = {"time": source.byte_ticks, "energy": source.byte_fj}.get(name)
            if scale is None:
                scale = int(source.name == (first if name == "bytes" else name.partition("@")[2]))
            self._bytes(row, k, scale)
            if name == "time":
                self._calls(row, k, source.call_ticks)
        if name == "time":
            self._compute(row)
        return row

    def _compute(self, row: Row) -> None:
        """Count the ticks of the MAC array."""
        layer, machine, ticks = self.layer, self.machine, self.machine.compute.cycle_ticks
        if machine.compute.model == "none":
            row.constant += layer.cycles * ticks
        elif ticks:
            lanes = lanes_of(layer, machine)
            rest = [layer.extent(d) for d in DIMS if d not in lanes]
            whole = [-(-layer.extent(d) // lanes[d]) for d in lanes if layer.extent(d) == 1]
            row.add(self._term(0, **dict.fromkeys(lanes, "lanes")), ticks * layer.inputs * prod(rest + whole))

    def _busy(self) -> Extreme:
        """What the PEs, and every queue, are busy with: no schedule whose transfers overlap takes less.

        The PEs begin when the first tiles are there, and when they are done the last tile of results goes out, memory
        by memory. With one queue all first tiles come one after the other. With more, all tiles that a queue brings
        first do, after one of them has come to where it begins, and before one of them goes on to the PEs.
        """
        names = [one.name for one in self.levels.memories]
        rows = {name: Row() for name in (names[:-1] if self.levels.queues == "each" else [""])}
        for k, name in enumerate(self.order.sources):
            row, price = rows.get(name) or rows[""], self.levels.memory(name)
            self._bytes(row, k, price.byte_ticks)
            self._calls(row, k, price.call_ticks)
        computed, stored, found = Row(), self._stored(), list[Row | Extreme]()
        self._compute(computed)
        queues: dict[str, Row | Extreme] = {**rows}
        for name, row in rows.items():
            loads = [self._brought(operand, name) for operand in self.layer.operands if operand != "OUT"]
            ways = [way for way in loads if way is not None]
            if not ways:
                continue
            firsts = computed.plus(stored, *(own for _, own, _ in ways))
            pairs = zip(ways, reversed(ways), strict=True)
            found.append(Extreme.of([one[0].plus(other[2]) for one, other in pairs], firsts))
            ends = self._stored(names.index(name) if name else 0)
            queues[name] = Extreme.of([before for before, _, _ in ways], row.plus(ends))
        if not self.order.part:
            self.guess = self._guessed(Extreme(found), queues)
        return Extreme([*found, *queues.values()])

    def _guessed(self, begun: Extreme, queues: Mapping[str, Row | Extreme]) -> Guess:
        """The guess, of the time until all steps are computed, and what queues are busy with."""
        loads = [k for k, stay in enumerate(self.order.stays) if stay.operand != "OUT"]
        last = Row()
        for k, stay in enumerate(self.order.stays):
            if stay.operand == "OUT":
                price = self.levels.memory(self.order.sources[k])
                last.add(self._term(k, others="tile"), price.byte_ticks * self.machine.out_bytes)
        at = {name: [k for k in loads if not name or self.order.sources[k] == name] for name in queues}
        return Guess(begun, [(row, self._visits(at[name])) for name, row in queues.items()], last)

    def _path(self, operand: str) -> list[tuple[str, Level, int | None]]:
        """Memories that the tiles of an operand come from, with a Stay that they come to there, or farther inside.

        Where other Stays are left out: those that they come from in any case.
        """
        names = [one.name for one in self.levels.memories]
        mine = {self.order.sources[k]: k for k, one in enumerate(self.order.stays) if one.operand == operand}
        every = {*mine, *(sources(self.levels, operand) if self.order.part else ())}
        made = []
        for name in sorted(every, key=names.index):
            inside = [k for at, k in mine.items() if names.index(at) >= names.index(name)]
            made.append((name, self.levels.memory(name), inside[0] if inside else None))
        return made

    def _brought(self, operand: str, queue: str) -> tuple[Row, Row, Row] | None:
        """The first loads of an operand: before one queue, through it ("": all), and behind it; None if none does."""
        names, found = [one.name for one in self.levels.memories], (Row(), Row(), Row())
        path = self._path(operand)
        if queue and queue not in [name for name, _, _ in path]:
            return None
        for name, price, k in path:
            row = found[1 if queue in ("", name) else 0 if names.index(name) < names.index(queue) else 2]
            row.constant += price.call_ticks
            if k is not None:
                self._first(row, k, price)
        return found

    def _stored(self, before: int | None = None) -> Row:
        """The last stores of results, one after the other; those to memories before one of them."""
        row = Row()
        names = [one.name for one in self.levels.memories][:before]
        for name, price, k in self._path("OUT"):
            row.constant += price.call_ticks * (name in names)
            if k is not None and name in names:
                row.add(self._term(k, others="first"), price.byte_ticks * self.machine.out_bytes)
        return row

    def _bytes(self, row: Row, k: int, scale: int) -> None:
        """Count the bytes of a Stay, times `scale`."""
        layer, machine = self.layer, self.machine
        operand, moved = self.order.stays[k].operand, self._term(k, others="moved")
        if not scale:
            return
        if operand == "W":
            row.add(moved, scale * layer.weight_elements * machine.w_bytes)
            if layer.bias and machine.bias_bytes:
                kinds = dict.fromkeys(REDUCTION, "calls") | dict.fromkeys("brc", "moved")
                row.add(self._term(k, **kinds), scale * layer.g * layer.m * machine.bias_bytes)
        elif operand == "IN":
            # sizes of rows and columns are in `moved`, unless they are of one element
            fixed = [layer.b, layer.g, layer.n, layer.inputs, machine.in_bytes]
            row.add(moved, scale * prod(fixed) * self._single())
        else:
            results = layer.b * layer.g * layer.m * layer.r * layer.c
            row.add(moved, scale * 2 * results * machine.psum_bytes)
            row.constant += scale * results * (machine.out_bytes - 2 * machine.psum_bytes)

    def _single(self) -> int:
        """Rows times columns of the window of an axis with one output, which is no axis of a search."""
        one = np.ones((1, 1), np.int64)
        return prod(int(windowed(self.layer, d, one).sum[0]) for d in "rc" if self.layer.extent(d) == 1)

    def _calls(self, row: Row, k: int, scale: int) -> None:
        """Count the transfers of a Stay, times `scale`."""
        operand = self.order.stays[k].operand
        if not scale:
            return
        if operand == "OUT":
            once = self._term(k, **dict.fromkeys("bgmrc", "calls"))
            again = self._term(k, **dict.fromkeys("nij", "calls"))
            row.pairs[once, again] = row.pairs.get((once, again), 0) + scale
        elif operand == "IN":
            row.add(self._term(k, **dict.fromkeys("bgmnrc", "calls")), scale * self.layer.inputs)
        else:
            row.add(self._term(k, others="calls"), scale)

    def _visits(self, loads: list[int]) -> int:
        """The product of the visits of the innermost of some Stays; of one step if there is none."""
        return self._term(loads[-1], others="calls") if loads else self._term(0)

    def _first(self, row: Row, k: int, source: Level) -> None:
        """Count the bytes of the first tile of a Stay, where they come from some memory."""
        layer, machine, first = self.layer, self.machine, self._term(k, others="first")
        size = machine.w_bytes
        if self.order.stays[k].operand == "IN":
            size = layer.inputs * machine.in_bytes * self._single()
        row.add(first, source.byte_ticks * size)

    def _memories(self) -> dict[str, tuple[Row, int]]:
        """What is taken of every memory, and how much there is."""
        found = {}
        for one in self.levels.memories[1:]:
            assert one.bytes is not None
            found[one.name] = Row(one.reserved_bytes), one.bytes
        for k, stay in enumerate(self.order.stays):
            row, term = found[stay.memory][0], self._term(k, others="tile")
            buffers = self.levels.memory(stay.memory).buffers
            if stay.operand == "IN":
                row.add(term, buffers * self.layer.inputs * self.machine.in_bytes * self._single())
            elif stay.operand == "OUT":
                wide = max(self.machine.out_bytes, self.machine.psum_bytes)
                row.add(term, buffers * (wide if self.order.sums[k] else self.machine.out_bytes))
            else:
                row.add(term, buffers * self.machine.w_bytes)
                if self.layer.bias and self.machine.bias_bytes:
                    row.add(self._term(k, g="tile", m="tile"), buffers * self.machine.bias_bytes)
        return found

    def picks(self, nest: LevelNest) -> list[int] | None:
        """The chains of a nest with these Stays, or others at or below them, one for every axis; None: not listed."""
        found = []
        for one in self.axes:
            extent = self.layer.extent(one.dim)
            mine = np.array([seen_in(nest, self.order, one.layout, self.layer, one.dim)], np.int64)
            below = (one.steps <= mine).all(axis=1)
            below &= (chains.pieces(extent, one.steps) <= chains.pieces(extent, mine)).all(axis=1)
            rows = np.flatnonzero(below)
            if not len(rows):
                return None
            found.append(int(rows[one.steps[rows].sum(axis=1).argmax()]))
        return found

    # ---- schedules ---------------------------------------------------------------------------------------------------

    def nest(self, picks: Sequence[int]) -> LevelNest:
        """The schedule of chains, an index of every axis: loops that cut nothing are left out."""
        items, at = list[Cut | Stay](), {d: self.layer.extent(d) for d in DIMS}
        for k, stay in enumerate(self.order.stays):
            along = self.order.slides[k]
            for one, pick in sorted(zip(self.axes, picks, strict=True), key=lambda pair: pair[0].dim == along):
                seen = one.layout.seen
                for v in range(seen[k - 1] if k else 0, seen[k]):
                    step = int(one.steps[pick, v])
                    if step < at[one.dim]:
                        items.append(Cut(one.dim, step))  # type: ignore[arg-type]
                    at[one.dim] = step
            items.append(stay)
        return LevelNest(tuple(items))

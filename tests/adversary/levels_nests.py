"""All nests of a tiny layer on memories in levels, counted by docs/nest.md.

A word is a sequence of loops that cut something, over any dimensions, each with any step below the largest piece
that is left. For every word all depths of all Stays are looked at: what a Stay moves depends on the loops outside it
and on nothing else, so Stays of one operand are priced together, those that nothing beats in value and room are kept,
and operands are combined. Ranges are listed one by one: nothing here is a closed form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, pairwise, product
from math import factorial, prod
from typing import NamedTuple

from hwmodels.levels.schedule import Cut, LevelNest, Stay
from instances.machine.levels import Level
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer

#: A loop by dimension and step; loops, outermost first.
Loop = tuple[str, int]
Word = tuple[Loop, ...]
_OF = {"IN": "bgnrcij", "W": "gmnij", "OUT": "bgmrc"}
_SUMMED = "nij"


class Count(NamedTuple):
    """What a Stay moves, and elements (of OUT) or bytes of its largest tile."""

    calls: int
    bytes: int
    tile: int


class Found(NamedTuple):
    """The values of a nest by objective, what its memories take, and memories and depths by operand."""

    values: tuple[int, ...]
    taken: tuple[int, ...]
    stays: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]


class Counter:
    """Counts nests of a layer on a machine."""

    def __init__(self, layer: Layer, machine: Machine, residents: Sequence[tuple[str, str]] = ()) -> None:
        assert machine.levels is not None
        self.layer, self.machine, self.residents = layer, machine, set(residents)
        self.memories: tuple[Level, ...] = machine.levels.memories
        self.near = [one.name for one in self.memories[1:]]
        self._counts: dict[tuple[str, Word], Count] = {}
        self._ways: dict[tuple[str, Word], list[Found]] = {}

    # ---- one Stay ----------------------------------------------------------------------------------------------------

    def count(self, operand: str, loops: Word) -> Count:
        """What a Stay inside these loops moves."""
        while loops and loops[-1][0] not in _OF[operand]:
            loops = loops[:-1]
        key = operand, loops
        if key not in self._counts:
            self._counts[key] = self._counted(operand, loops)
        return self._counts[key]

    def _counted(self, operand: str, loops: Word) -> Count:
        layer, machine = self.layer, self.machine
        steps = {d: [t for x, t in loops if x == d] for d in DIMS}
        ranges = {d: pieces([(0, layer.extent(d))], steps[d]) for d in DIMS}
        number = {d: len(ranges[d]) for d in DIMS}
        largest = {d: max(b - a for a, b in ranges[d]) for d in DIMS}
        sizes = {d: sum(b - a for a, b in ranges[d]) for d in DIMS}
        if operand == "W":
            again, bias = number["b"] * number["r"] * number["c"], machine.bias_bytes if layer.bias else 0
            moved = prod(sizes[d] for d in "gmnij") * machine.w_bytes
            moved += sizes["g"] * sizes["m"] * number["n"] * number["i"] * number["j"] * bias
            tile = prod(largest[d] for d in "gmnij") * machine.w_bytes + largest["g"] * largest["m"] * bias
            return Count(prod(number.values()), moved * again, tile)
        if operand == "OUT":
            visits, tiles = prod(number[d] for d in _SUMMED), prod(number[d] for d in "bgmrc")
            results = prod(sizes[d] for d in "bgmrc")
            moved = results * machine.out_bytes + results * (visits - 1) * 2 * machine.psum_bytes
            return Count(tiles * (2 * visits - 1), moved, prod(largest[d] for d in "bgmrc"))
        along = loops[-1][0] if loops and machine.sliding else ""
        new = {d: self._fetched(d, steps[d], slid=along == d) for d in "rc"}
        widest = {d: max(b - a for a, b in (self._window(d, *one) for one in ranges[d])) for d in "rc"}
        calls = prod(number[d] for d in "bgmn") * prod(sum(size > 0 for size in new[d]) for d in "rc")
        moved = prod(sizes[d] for d in "bgn") * number["m"] * sum(new["r"]) * sum(new["c"])
        tile = prod(largest[d] for d in "bgn") * widest["r"] * widest["c"]
        each = layer.inputs * machine.in_bytes
        return Count(calls * layer.inputs, moved * each, tile * each)

    def _window(self, dim: str, first: int, end: int) -> tuple[int, int]:
        """The rows (columns) of IN that outputs need, clipped to the map."""
        x = self.layer
        if dim == "r":
            stride, pad, reach, size = x.stride_h, x.pad_top, (x.kh - 1) * x.dilation_h + 1, x.h
        else:
            stride, pad, reach, size = x.stride_w, x.pad_left, (x.kw - 1) * x.dilation_w + 1, x.l
        low = max(0, first * stride - pad)
        return low, max(low, min(size, (end - 1) * stride - pad + reach))

    def _fetched(self, dim: str, steps: Sequence[int], *, slid: bool) -> list[int]:
        """Rows (columns) that are fetched for every piece."""
        whole = [(0, self.layer.extent(dim))]
        if not slid:
            return [b - a for a, b in (self._window(dim, *one) for one in pieces(whole, steps))]
        found = []
        for outer in pieces(whole, steps[:-1]):
            reached = 0
            for k, one in enumerate(pieces([outer], steps[-1:])):
                low, high = self._window(dim, *one)
                found.append(high - low if not k else max(0, high - max(low, reached)))
                reached = high
        return found

    def cycles(self, loops: Word) -> int:
        """Cycles of the MAC array over the innermost tiles."""
        unit, layer = self.machine.compute, self.layer
        if unit.model == "none":
            return layer.cycles
        lanes = {"g": unit.cols} if layer.m == layer.n == 1 else {"m": unit.rows, "n": unit.cols}
        total = layer.inputs
        for d in DIMS:
            ends = pieces([(0, layer.extent(d))], [t for x, t in loops if x == d])
            total *= sum(-(-(b - a) // lanes.get(d, 1)) for a, b in ends)
        return total

    # ---- the Stays of an operand -------------------------------------------------------------------------------------

    def held(self, operand: str) -> Iterator[tuple[str, ...]]:
        """The memories that an operand may stay in, from far to near."""
        ways = [
            ([()] if operand in one.passed else []) + [(one.name,)]
            for one in self.memories[1:] if operand in one.operands
        ]  # fmt: skip
        for way in product(*ways):
            names = tuple(name for some in way for name in some)
            if all(name in names for x, name in self.residents if x == operand):
                yield names

    def ways(self, operand: str, loops: Word, objectives: Sequence[str]) -> list[Found]:
        """The Stays of an operand anywhere in a word that no others beat in values and in room."""
        reach = len(loops)
        if operand == "IN":
            reach = next((k for k, (d, _) in enumerate(loops) if d in "ij"), reach)
        if operand != "OUT":
            while reach and loops[reach - 1][0] not in _OF[operand]:
                reach -= 1
            loops = loops[:reach]
        key = operand, loops
        if key not in self._ways:
            # directly inside loops that do not move its tile a Stay counts as it does outside of them
            places = [k for k in range(reach + 1) if not k or loops[k - 1][0] in _OF[operand]]
            found = [
                made
                for names in self.held(operand)
                for depths in combinations_with_replacement(places, len(names))
                if (made := self.stayed(operand, loops, tuple(zip(names, depths, strict=True)), objectives)) is not None
            ]
            self._ways[key] = _unbeaten(found)
        return self._ways[key]

    def stayed(
        self, operand: str, loops: Word, stays: tuple[tuple[str, int], ...], objectives: Sequence[str]
    ) -> Found | None:
        """What the Stays of an operand cost; None if they do not hold whole what should be."""
        taken, values, source = dict.fromkeys(self.near, 0), [0] * len(objectives), self.memories[0]
        for at, (name, depth) in enumerate(stays):
            if (operand, name) in self.residents and any(d in _OF[operand] for d, _ in loops[:depth]):
                return None
            count = self.count(operand, loops[:depth])
            inside = loops[: stays[at + 1][1]] if at + 1 < len(stays) else loops
            taken[name] += count.tile
            if operand == "OUT":
                cut = any(d in _SUMMED for d, _ in inside)
                wide = max(self.machine.out_bytes, self.machine.psum_bytes) if cut else self.machine.out_bytes
                taken[name] += count.tile * (wide - 1)
            for k, measure in enumerate(objectives):
                values[k] += self._share(measure, count, source)
            source = next(one for one in self.memories if one.name == name)
        return Found(tuple(values), tuple(taken.values()), ((operand, stays),))

    def _share(self, measure: str, count: Count, source: Level) -> int:
        """What a Stay counts in a measure."""
        if measure == "time":
            return count.calls * source.call_ticks + count.bytes * source.byte_ticks
        if measure == "energy":
            return count.bytes * source.byte_fj
        name = measure.partition("@")[2] or self.memories[0].name
        return count.bytes if source.name == name else 0

    # ---- nests -------------------------------------------------------------------------------------------------------

    def base(self, loops: Word, objectives: Sequence[str]) -> tuple[int, ...]:
        """What counts beside transfers."""
        unit = self.machine.compute
        fixed = {"energy": self.layer.macs * self.machine.mac_fj}
        if "time" in objectives:
            fixed["time"] = self.cycles(loops) * unit.cycle_ticks
        return tuple(fixed.get(name, 0) for name in objectives)

    def word(self, nest: LevelNest) -> Word:
        """The loops of a schedule that cut something."""
        loops, size = list[Loop](), dict[str, int]()
        for item in nest.items:
            if isinstance(item, Cut) and item.step < size.get(item.dim, self.layer.extent(item.dim)):
                size[item.dim] = item.step
                loops.append((item.dim, item.step))
        return tuple(loops)

    def counted(self, nest: LevelNest, objectives: Sequence[str]) -> tuple[tuple[int, ...], list[str]]:
        """The values of a schedule, and memories and pins that it does not keep."""
        places = dict[str, list[tuple[str, int]]]()
        for k, item in enumerate(nest.items):
            if isinstance(item, Stay):
                outside = self.word(LevelNest(nest.items[:k]))
                places.setdefault(item.operand, []).append((item.memory, len(outside)))
        word, faults = self.word(nest), list[str]()
        values = [self.base(word, objectives)]
        taken = [tuple(one.reserved_bytes for one in self.memories[1:])]
        for operand in self.layer.operands:
            found = self.stayed(operand, word, tuple(places[operand]), objectives)
            if found is None or tuple(name for name, _ in places[operand]) not in set(self.held(operand)):
                faults.append(f"{operand} does not stay as it is asked to")
                continue
            values.append(found.values)
            taken.append(found.taken)
        total = _added(*taken)
        faults += [f"{one.name} overflows" for one, some in zip(self.memories[1:], total, strict=True)
                   if some > (one.bytes or 0)]  # fmt: skip
        return _added(*values), faults

    def best(self, objectives: Sequence[str], *, plain: bool = False) -> tuple[tuple[int, ...], LevelNest] | None:
        """The least values of all nests, lexicographically, and a nest that has them; None if none fits.

        `plain`: of those in which no two loops make pieces of free sizes where padding clips windows.
        """
        free = tuple((one.bytes or 0) - one.reserved_bytes for one in self.memories[1:])
        best: tuple[tuple[int, ...], Word, tuple[Found, ...]] | None = None
        for loops in words(self.layer):
            if plain and not self.plain(loops):
                continue
            base = self.base(loops, objectives)
            many = [self.ways(operand, loops, objectives) for operand in self.layer.operands]
            for chosen in product(*many):
                values = _added(base, *(one.values for one in chosen))
                if best is not None and values >= best[0]:
                    continue
                if all(some <= most for some, most in zip(_added(*(x.taken for x in chosen)), free, strict=True)):
                    best = values, loops, chosen
        return None if best is None else (best[0], self._nest(best[1], best[2]))

    def plain(self, loops: Word) -> bool:
        """Whether, along axes with padding, every step divides the one before: pieces are those of the last one."""
        for d in "rc":
            low, high = self._window(d, 0, self.layer.extent(d))
            x = self.layer
            stride, reach = (x.stride_h, (x.kh - 1) * x.dilation_h + 1) if d == "r" else (
                x.stride_w, (x.kw - 1) * x.dilation_w + 1)  # fmt: skip
            steps = [t for dim, t in loops if dim == d]
            clipped = high - low < (self.layer.extent(d) - 1) * stride + reach
            if clipped and any(a % b for a, b in pairwise(steps)):
                return False
        return True

    def _nest(self, loops: Word, chosen: Sequence[Found]) -> LevelNest:
        items = list[Cut | Stay]()
        for k in range(len(loops) + 1):
            items += [
                Stay(operand, name)  # type: ignore[arg-type]
                for found in chosen for operand, stays in found.stays for name, depth in stays if depth == k
            ]  # fmt: skip
            items += [Cut(d, t) for d, t in loops[k : k + 1]]  # type: ignore[arg-type]
        return LevelNest(tuple(items))


def pieces(ranges: Sequence[tuple[int, int]], steps: Sequence[int]) -> list[tuple[int, int]]:
    """Cut ranges in steps, one after the other."""
    found = list(ranges)
    for step in steps:
        found = [(x, min(x + step, end)) for begin, end in found for x in range(begin, end, step)]
    return found


def words(layer: Layer) -> Iterator[Word]:
    """Yield all sequences of loops that cut something."""
    sizes = {d: layer.extent(d) for d in DIMS if layer.extent(d) > 1}

    def onward(done: Word, left: Mapping[str, int]) -> Iterator[Word]:
        yield done
        for d, size in left.items():
            for step in range(1, size):
                yield from onward((*done, (d, step)), {**left, d: step})

    return onward((), sizes)


def number(layer: Layer) -> int:
    """How many words there are."""
    ways = {0: 1}
    for d in DIMS:
        extent, total = layer.extent(d), dict[int, int]()
        for length, some in ways.items():
            for more in range(extent):
                chains = factorial(extent - 1) // factorial(more) // factorial(extent - 1 - more)
                orders = factorial(length + more) // factorial(length) // factorial(more)
                total[length + more] = total.get(length + more, 0) + some * chains * orders
        ways = total
    return sum(ways.values())


def _unbeaten(found: Sequence[Found]) -> list[Found]:
    """Those that no other one is at or below in values, in their order, and in what every memory takes."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda x: (x.values, x.taken)):
        if not any(all(a <= b for a, b in zip(other.taken, one.taken, strict=True)) for other in kept):
            kept.append(one)
    return kept


def _added(*rows: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True)))

"""Execute a small layer's nest on integers: every memory holds what was copied there, and nothing else is read.

Tensors are flat arrays; a tile is the set of elements of its box. Copies take elements from the memory beyond, where
they must be; sums go there and back. In the end the result off the chip is compared with a direct one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from hwmodels.levels.schedule import Cut, LevelNest, Stay
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer

Element = tuple[int, ...]
Ranges = Mapping[str, tuple[int, int]]


class _Fault(Exception):
    """A tile lacks what is read."""


@dataclass
class _Tile:
    """What lies in a memory of one operand."""

    at: tuple[tuple[int, int], ...] | None = None
    """The iteration in which it was fetched: of every loop down to the last that moves it the place, and the piece."""
    values: dict[Element, int] = field(default_factory=dict)
    done: dict[Element, int] = field(default_factory=dict)
    """Of OUT: products that every sum holds."""


class _Loop(NamedTuple):
    place: int
    dim: str
    piece: int


def _value(operand: str, element: Element) -> int:
    """A number for every element of a tensor, from -4 to 4."""
    return (sum((k + 3) * 7 * x + x * x for k, x in enumerate(element)) + 5 * len(operand)) % 9 - 4


class _Run:
    """One execution."""

    def __init__(self, layer: Layer, machine: Machine, nest: LevelNest) -> None:
        assert machine.levels is not None
        self.layer, self.machine, self.nest = layer, machine, nest
        self.first = machine.levels.memories[0].name
        self.moved = {one.name: 0 for one in machine.levels.memories}
        self.stays = [item for item in nest.items if isinstance(item, Stay)]
        self.tiles = {one: _Tile() for one in self.stays}
        self.sums: dict[Element, int] = {}
        self.counted: dict[Element, int] = {}
        self.whole = layer.n * layer.kh * layer.kw

    # ---- the loops ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """All iterations; then what is left on the chip goes out, the nearest memories first."""
        self._inside(0, {d: (0, self.layer.extent(d)) for d in DIMS}, ())
        for stay in reversed(self.stays):
            if stay.operand == "OUT":
                self._written(stay)

    def _inside(self, place: int, ranges: Ranges, loops: tuple[_Loop, ...]) -> None:
        if place == len(self.nest.items):
            self._compute(ranges)
            return
        item = self.nest.items[place]
        if isinstance(item, Stay):
            self._hold(item, ranges, loops)
            self._inside(place + 1, ranges, loops)
            return
        low, high = ranges[item.dim]
        single = high - low <= item.step and self._never(place, item)
        for piece, begin in enumerate(range(low, high, item.step)):
            mine = loops if single else (*loops, _Loop(place, item.dim, piece))
            self._inside(place + 1, {**ranges, item.dim: (begin, min(begin + item.step, high))}, mine)

    def _never(self, place: int, item: Cut) -> bool:
        """Whether a loop cuts no piece that comes to it."""
        outer = [one.step for one in self.nest.items[:place] if isinstance(one, Cut) and one.dim == item.dim]
        return item.step >= min([self.layer.extent(item.dim), *outer])

    # ---- tiles -------------------------------------------------------------------------------------------------------

    def _source(self, stay: Stay) -> _Tile | None:
        """Where a tile comes from; None: from off the chip."""
        mine = [one for one in self.stays if one.operand == stay.operand]
        at = mine.index(stay)
        return self.tiles[mine[at - 1]] if at else None

    def _count(self, stay: Stay, number: int) -> None:
        mine = [one for one in self.stays if one.operand == stay.operand]
        at = mine.index(stay)
        self.moved[mine[at - 1].memory if at else self.first] += number

    def _hold(self, stay: Stay, ranges: Ranges, loops: tuple[_Loop, ...]) -> None:
        """Bring the tile of these ranges, if it is not the one that is there."""
        dims = {"IN": "bgnrcij", "W": "gmnij", "OUT": "bgmrc"}[stay.operand]
        moving = list(loops)
        while moving and moving[-1].dim not in dims:
            moving.pop()
        tile, at = self.tiles[stay], tuple((one.place, one.piece) for one in moving)
        if at == tile.at:
            return
        if stay.operand == "OUT":
            for nearer in reversed([one for one in self.stays if one.operand == "OUT"]):
                self._written(nearer)
                if nearer == stay:
                    break
            self._begun(stay, ranges)
        else:
            self._fetched(stay, ranges, moving)
        tile.at = at

    def _fetched(self, stay: Stay, ranges: Ranges, moving: list[_Loop]) -> None:
        """Copy a tile of IN or W; where IN slides, what the tile before has of it stays."""
        tile, source = self.tiles[stay], self._source(stay)
        before = None if tile.at is None else tile.at[:-1]
        slides = stay.operand == "IN" and self.machine.sliding and moving and moving[-1].dim in "rc"
        follows = slides and before == tuple((one.place, one.piece) for one in moving[:-1])
        size = self.machine.in_bytes if stay.operand == "IN" else self.machine.w_bytes
        kept = tile.values if follows else {}
        tile.values = {}
        for element in self._elements(stay.operand, ranges):
            if element in kept:
                tile.values[element] = kept[element]
                continue
            if source is None:
                tile.values[element] = _value(stay.operand, element)
            elif element in source.values:
                tile.values[element] = source.values[element]
            else:
                raise _Fault(f"{stay.operand} in {stay.memory}: element {element} is not in the memory beyond")
            self._count(stay, size * (self.layer.inputs if stay.operand == "IN" else 1))
        if stay.operand == "W" and self.layer.bias and self.machine.bias_bytes:
            filters = (ranges["g"][1] - ranges["g"][0]) * (ranges["m"][1] - ranges["m"][0])
            self._count(stay, filters * self.machine.bias_bytes)

    def _begun(self, stay: Stay, ranges: Ranges) -> None:
        """Begin a tile of OUT: sums that were begun before come back."""
        tile, source = self.tiles[stay], self._source(stay)
        for element in self._elements("OUT", ranges):
            sums, counted = (self.sums, self.counted) if source is None else (source.values, source.done)
            if source is not None and element not in source.values:
                raise _Fault(f"OUT in {stay.memory}: element {element} is not in the memory beyond")
            tile.values[element], tile.done[element] = sums.get(element, 0), counted.get(element, 0)
            if tile.done[element]:
                self._count(stay, self.machine.psum_bytes)

    def _written(self, stay: Stay) -> None:
        """Write a tile of OUT to the memory beyond."""
        tile, source = self.tiles[stay], self._source(stay)
        for element, value in tile.values.items():
            sums, counted = (self.sums, self.counted) if source is None else (source.values, source.done)
            sums[element], counted[element] = value, tile.done[element]
            whole = tile.done[element] == self.whole
            self._count(stay, self.machine.out_bytes if whole else self.machine.psum_bytes)
        tile.values, tile.done, tile.at = {}, {}, None

    # ---- elements ----------------------------------------------------------------------------------------------------

    def _elements(self, operand: str, ranges: Ranges) -> Iterator[Element]:
        if operand != "IN":
            dims = "gmnij" if operand == "W" else "bgmrc"
            yield from product(*(range(*ranges[d]) for d in dims))
            return
        layer = self.layer
        rows = self._lines(ranges["r"], ranges["i"], layer.stride_h, layer.dilation_h, layer.pad_top, layer.h)
        columns = self._lines(ranges["c"], ranges["j"], layer.stride_w, layer.dilation_w, layer.pad_left, layer.l)
        yield from product(*(range(*ranges[d]) for d in "bgn"), rows, columns)

    @staticmethod
    def _lines(
        outputs: tuple[int, int], taps: tuple[int, int], stride: int, dilation: int, pad: int, size: int
    ) -> range:  # fmt: skip
        first = outputs[0] * stride - pad + taps[0] * dilation
        last = (outputs[1] - 1) * stride - pad + (taps[1] - 1) * dilation
        return range(max(first, 0), min(last + 1, size))

    def _compute(self, ranges: Ranges) -> None:
        """Add up all products of a tile from what lies in the nearest memories."""
        near: dict[str, _Tile] = {one.operand: self.tiles[one] for one in self.stays}
        for b, g, m, n, r, c, i, j in product(*(range(*ranges[d]) for d in DIMS)):
            out = b, g, m, r, c
            if out not in near["OUT"].values:
                raise _Fault(f"OUT: element {out} is not where it is computed on")
            near["OUT"].values[out] += self.product(near, (b, g, m, n, r, c, i, j))
            near["OUT"].done[out] += 1

    def product(self, near: Mapping[str, _Tile] | None, at: Element) -> int:
        """One product; from tiles, or from the tensors themselves."""
        b, g, m, n, r, c, i, j = at
        layer = self.layer
        row = r * layer.stride_h - layer.pad_top + i * layer.dilation_h
        column = c * layer.stride_w - layer.pad_left + j * layer.dilation_w
        if not (0 <= row < layer.h and 0 <= column < layer.l):
            return 0
        found = 1
        for operand, element in (("IN", (b, g, n, row, column)), ("W", (g, m, n, i, j))):
            if operand not in layer.operands:
                continue
            if near is not None and element not in near[operand].values:
                raise _Fault(f"{operand}: element {element} is not where it is computed on")
            found *= _value(operand, element) if near is None else near[operand].values[element]
        return found


def executed(layer: Layer, machine: Machine, nest: LevelNest) -> tuple[dict[str, int], list[str]]:
    """Return the bytes between every memory and nearer ones, and what went wrong."""
    run = _Run(layer, machine, nest)
    try:
        run.run()
    except _Fault as fault:
        return run.moved, [str(fault)]
    want: dict[Element, int] = {}
    for at in product(*(range(layer.extent(d)) for d in DIMS)):
        b, g, m, _, r, c, _, _ = at
        want[b, g, m, r, c] = want.get((b, g, m, r, c), 0) + run.product(None, at)
    wrong = [element for element, value in want.items() if run.sums.get(element) != value]
    return run.moved, [f"executed: result {wrong[0]} is wrong, and {len(wrong) - 1} more"] if wrong else []

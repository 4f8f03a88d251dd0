"""Time of one nest on one core where transfers overlap with compute, step by step.

Step k is iteration k of all loops. Operands with two buffers are loaded one step ahead (L2) and stored one step behind
(S2) while the core computes (C); those with one buffer are loaded (L1) and stored (S1) between the steps:
``time = L2(0) + sum_k [L1(k) + max(C(k), L2(k+1), S2(k-1)) + S1(k)] + S2(last)`` (docs/machines.md: fill, steady state,
drain). In snake order (docs/nest.md) iterations follow each other to and fro, and tiles that did not change stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.homes import operand_of
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.boxes import Box, box_bursts, input_windows, shape_of
from hwmodels.nest.price.choices import Steps, Tree, fetching, numbered, trees_of
from hwmodels.nest.price.skeleton import Core, Skeleton
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, REDUCTION, RELEVANT, Layer, depends

#: Beyond this many steps a timeline is not laid out (it would take gigabytes).
MAX_STEPS = 8_000_000
#: By dimension the first index of every iteration's box, and how many.
Boxes = dict[str, tuple[Ints, Ints]]
#: An operand; of an input also its resident rows, and the dimensions that it does not depend on.
Part = tuple[str, int, str]


def double_buffered_ticks(
    layer: Layer, machine: Machine, skeleton: Skeleton, core: Core, steps: Steps, *, line: bool = False
) -> int:
    """Return the time of the nest in ticks; `steps` are those of the loops over every dimension, outermost first.

    With `line` IN is held in lines. Raises InputError if the nest has more than `MAX_STEPS` steps.
    """
    return Timeline(layer, machine, skeleton, steps, trees_of(core, steps), line=line).ticks()


class _Level:
    """All iterations of the outermost loops: which piece of every dimension each works on.

    Attributes
    ----------
    piece : dict of str to ndarray (N,)
    parent : ndarray (N,)
        The iteration of the loops but the last one that it belongs to.
    first : ndarray (N,)
        Its first iteration of the next loop; at the end its first step.
    odd : ndarray (N,)
        1 where the positions of the loops add up to an odd number: in snake order the next loop runs backwards.
    """

    def __init__(self, piece: dict[str, Ints], level: dict[str, int], parent: Ints) -> None:
        self.piece, self.level, self.parent = piece, level, parent
        self.first = np.arange(len(parent))
        self.odd = np.zeros_like(parent)


@dataclass(frozen=True)
class Moved:
    """Ticks (N,) of every step: loaded ahead and stored behind (two buffers), moved between the steps (one buffer)."""

    ahead: Ints
    behind: Ints
    between: Ints


class Timeline:
    """All steps of a nest, whose loops cut as the `trees` say."""

    def __init__(
        self, layer: Layer, machine: Machine, skeleton: Skeleton, steps: Steps, trees: Mapping[str, Tree], *,
        line: bool = False,
    ) -> None:  # fmt: skip
        self.line, self.snake = line, machine.snake and not line
        self.layer, self.machine, self.skeleton, self.steps, self.trees = layer, machine, skeleton, steps, trees
        self.count = prod(len(tree.start[-1]) for tree in self.trees.values())
        if self.count > MAX_STEPS:
            raise InputError(f"{layer.name}: {self.count:,} steps are too many for a timeline (at most {MAX_STEPS:,})")
        self.levels = self._expand()

    def _expand(self) -> list[_Level]:
        levels = [_Level({d: np.zeros(1, np.int64) for d in DIMS}, dict.fromkeys(DIMS, 0), np.zeros(1, np.int64))]
        for dim in self.skeleton.order:
            outer = levels[-1]
            tree, at = self.trees[dim], outer.level[dim]
            number, mine = tree.number[at], outer.piece[dim]
            children = number[mine]
            outer.first = np.cumsum(children) - children
            parent = np.repeat(np.arange(len(mine)), children)
            offset = np.arange(len(parent)) - np.repeat(outer.first, children)
            odd = outer.odd[parent]
            if self.snake:
                offset = np.where(odd == 1, number[mine][parent] - 1 - offset, offset)
            piece = {d: p[parent] for d, p in outer.piece.items() if d != dim}
            piece[dim] = tree.first[at][mine][parent] + offset
            levels.append(_Level(piece, {**outer.level, dim: at + 1}, parent))
            levels[-1].odd = (odd + offset) % 2
        for outer, inner in zip(levels[-2::-1], levels[:0:-1], strict=True):
            outer.first = inner.first[outer.first]
        return levels

    # ---- transfers -------------------------------------------------------------------------------------------

    def _visits(self, operand: str, lacks: str) -> tuple[_Level, str]:
        """The iterations that fetch `operand`, and the dimension along which its tile slides."""
        order = numbered(self.skeleton.outside(operand))
        loops = fetching(order, self.trees, operand, lacks)
        depth, last = (loops[-1] + 1, order[loops[-1]][0]) if loops else (0, "")
        slides = self.machine.sliding and operand == "IN" and last in ("r", "c", "i", "j")
        return self.levels[depth], last if slides else ""

    def _range(self, level: _Level, dim: str) -> tuple[Ints, Ints]:
        piece, at, tree = level.piece[dim], level.level[dim], self.trees[dim]
        return tree.start[at][piece], tree.stop[at][piece]

    def _boxes(self, level: _Level, operand: str, slide: str, resident: int) -> Boxes:
        if self.machine.edge_tiles == "uniform":
            return {d: (np.zeros_like(size), size) for d, size in self._nominal_extents(level, operand).items()}
        ranges = {d: self._range(level, d) for d in RELEVANT[operand]}
        boxes = {d: (start, stop - start) for d, (start, stop) in ranges.items()}
        if operand == "IN":
            for dim, kernel in (("r", "i"), ("c", "j")):
                window = input_windows(self.layer, resident)[dim]
                first, last = self._new_part(level, window.rows(*ranges[dim], *ranges[kernel]), slide, (dim, kernel))
                boxes[dim] = first, np.maximum(last - first, 0)
        elif resident:
            start, stop = np.maximum(ranges["r"][0], resident), ranges["r"][1]
            boxes["r"] = start, np.maximum(stop - start, 0)
        return boxes

    def _new_part(
        self, level: _Level, window: tuple[Ints, Ints], slide: str, axis: tuple[str, str]
    ) -> tuple[Ints, Ints]:
        """What every iteration fetches of its window along an axis (output and kernel dimension)."""
        first, last = window
        if self.snake:
            if not self.machine.sliding:
                return first, last
            moved = self._moved(level, "IN")
            here = sum(m.astype(np.int64) for m in moved.values()) == 1
            here &= moved[axis[0]] | moved[axis[1]]
            begin, end = np.roll(first, 1), np.roll(last, 1)
            here &= begin < end
            back = here & (first < begin)
            return np.where(here & ~back, np.maximum(first, end), first), np.where(back, np.minimum(last, begin), last)
        if slide in axis:
            first = np.where(self._begins(level, slide), first, np.maximum(first, self._end_before(level, slide, axis)))
        elif self.line and (sweep := self._sweep()) is not None:
            passes = level.parent
            begins = np.searchsorted(passes, np.arange(passes[-1] + 1))
            same = np.append(False, sweep[1:] == sweep[:-1])[passes]
            first = np.where(same, np.maximum(first, last[begins[passes - 1]]), first)
        return first, last

    def _begins(self, level: _Level, dim: str) -> NDArray[np.bool_]:
        """Which iterations work on the first piece of those that the last loop over `dim` cuts."""
        at, tree = level.level[dim], self.trees[dim]
        begins: NDArray[np.bool_] = tree.start[at] == np.repeat(tree.start[at - 1], tree.number[at - 1])
        return begins[level.piece[dim]]

    def _end_before(self, level: _Level, slide: str, axis: tuple[str, str]) -> Ints:
        """Where the window of the piece before ends, in iterations that work on a piece that is not the first one."""
        dim, kernel = axis
        ranges = {d: self._range(level, d) for d in axis}
        begin = ranges[slide][0]
        ranges[slide] = begin - 1, begin
        return input_windows(self.layer)[dim].rows(*ranges[dim], *ranges[kernel])[1]

    def _moved(self, level: _Level, operand: str, lacks: str = "") -> dict[str, NDArray[np.bool_]]:
        """By dimension of an operand, in which iterations its piece is another one than before."""
        pieces = {d: level.piece[d] for d in sorted(depends(operand, lacks))}
        return {d: np.append(True, p[1:] != p[:-1]) for d, p in pieces.items()}

    def _sweep(self) -> Ints | None:
        """Of every pass over rows or columns in lines the sweep it belongs to; None if no two loops slide."""
        order = numbered(self.skeleton.outside("IN"))
        slide = fetching(order, self.trees, "IN")[-2:]
        return self.levels[slide[0] + 1].parent if {order[j][0] for j in slide} == {"r", "c"} else None

    def _nominal_extents(self, level: _Level, operand: str) -> dict[str, Ints]:
        size = {}
        for d in RELEVANT[operand]:
            chain = self.steps[d][: level.level[d]]
            size[d] = np.full(len(level.parent), chain[-1] if chain else self.layer.extent(d))
        if operand == "IN":
            for dim, kernel in (("r", "i"), ("c", "j")):
                size[dim] = input_windows(self.layer)[dim].nominal(size[dim], size[kernel])
        return size

    def _price(self, tensor: str, boxes: Boxes, element: int, call: bool = True, lacks: str = "") -> Ints:
        """Ticks of moving these boxes, iteration by iteration."""
        price, shape = self.machine.transfer_of(operand_of(tensor)), shape_of(self.layer, self.machine, tensor, lacks)
        run, segments, whole = np.array(element, np.int64), np.array(1, np.int64), np.array(True)
        for dim, size in reversed(shape):
            extent = boxes[dim][1]
            run = np.where(whole, run * extent, run)
            segments = np.where(whole, segments, segments * extent)
            whole = whole & (extent == size)
        ticks = price.segment_ticks * segments + price.byte_ticks * segments * run
        if price.burst_ticks and price.by_address:
            axes = [Box(size, *boxes[dim]) for dim, size in shape]
            ticks = ticks + price.burst_ticks * box_bursts(axes, element, price.burst_bytes)
        elif price.burst_bytes:
            ticks = ticks + price.burst_ticks * segments * -(-run // price.burst_bytes)
        return np.where(segments * run > 0, ticks + (price.call_ticks if call else 0), 0).astype(np.int64)

    def _output_visits(self, level: _Level) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which iterations are the first, and which the last, that visit their tile of OUT."""
        first = last = np.ones(len(level.parent), np.bool_)
        for d in sorted(REDUCTION):
            start, stop = self._range(level, d)
            first = first & (start == self.trees[d].start[0][0])
            last = last & (stop == self.trees[d].stop[0][0])
        return first, last

    def _inputs(self, operand: str, level: _Level, slide: str, resident: int, lacks: str) -> Ints:
        """Ticks of fetching W, or an input, in every iteration."""
        layer, machine = self.layer, self.machine
        if operand == "IN":
            return self._price("IN", self._boxes(level, operand, slide, resident), machine.in_bytes, lacks=lacks)
        boxes = self._boxes(level, operand, slide, 0)
        moved = self._price("W", boxes, machine.w_bytes)
        if layer.bias and machine.bias_bytes:
            moved = moved + self._price("BIAS", boxes, machine.bias_bytes, call=False)
        return moved

    def _outputs(self, level: _Level) -> tuple[Ints, Ints]:
        """Ticks of writing the tile of OUT of every iteration, as results and as partial sums."""
        written = self._boxes(level, "OUT", "", self.layer.resident_out)
        final = self._price("OUT", written, self.machine.out_bytes)
        return final, self._price("OUT", self._boxes(level, "OUT", "", 0), self.machine.psum_bytes)

    def transfers(self, operand: str, resident: int, lacks: str) -> tuple[Ints, Ints]:
        """Ticks that every step loads and stores of W, OUT or an input; in snake order where its tile changes."""
        level, slide = self._visits(operand, lacks)
        changes = self._moved(level, operand, lacks).values() if self.snake else [np.ones(len(level.parent), np.bool_)]
        at = np.flatnonzero(np.any(list(changes), axis=0))
        load, store = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        begins = level.first[at]
        if operand != "OUT":
            load[begins] = self._inputs(operand, level, slide, resident, lacks)[at]
            return load, store
        first, last = self._turns(level, at) if self.snake else self._output_visits(level)
        final, partial = (prices[at] for prices in self._outputs(level))
        load[begins] = np.where(first & (not self.machine.psum_first_read), 0, partial)
        store[np.append(begins[1:], self.count) - 1] = np.where(last, final, partial)
        return load, store

    def boxes(self, operand: str, resident: int, lacks: str) -> Boxes:
        """What every step fetches of W or an input, or has of OUT: the first index along every dimension, how many."""
        level, slide = self._visits(operand, lacks)
        at = np.searchsorted(level.first, np.arange(self.count), side="right") - 1
        return {d: (first[at], size[at]) for d, (first, size) in self._boxes(level, operand, slide, resident).items()}

    def tiles(self, operand: str, resident: int, lacks: str) -> tuple[Ints, Ints]:
        """Where rows and channels of what every step fetches of IN, or has of OUT, begin and end, (steps, 2) each."""
        boxes = self.boxes(operand, resident, lacks)
        (top, rows), (group, groups), (first, size) = (boxes[d] for d in ("r", "g", "n" if operand == "IN" else "m"))
        each = self.layer.n if operand == "IN" else self.layer.m
        channels = group * each + first, (group + groups - 1) * each + first + size
        return np.stack([top, top + rows], axis=1), np.stack(channels, axis=1)

    def _turns(self, level: _Level, at: Ints) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """As `_output_visits`, of some iterations in snake order."""
        tile = np.zeros(len(at), np.int64)
        for d in sorted(RELEVANT["OUT"]):
            tile = tile * self.trees[d].trips(level.level[d]) + level.piece[d][at]
        first, last = np.zeros(len(at), np.bool_), np.zeros(len(at), np.bool_)
        first[np.unique(tile, return_index=True)[1]] = True
        last[len(at) - 1 - np.unique(tile[::-1], return_index=True)[1]] = True
        return first, last

    def ranges(self) -> dict[str, tuple[Ints, Ints]]:
        """Where what every step computes begins and ends along every dimension, (steps,) each."""
        return {d: self._range(self.levels[-1], d) for d in DIMS}

    # ---- time ------------------------------------------------------------------------------------------------

    def compute(self) -> Ints:
        """Ticks that every step computes."""
        layer, unit = self.layer, self.machine.compute
        if unit.model == "tile":
            size = {d: self._largest(d) for d in DIMS}
            tile_map = -(-size["r"] * size["c"] * size["i"] * size["j"] // unit.macs_per_cycle)
            work = prod(size[d] for d in "bgmn") * tile_map * layer.inputs * unit.cycle_ticks
            return np.full(self.count, work, np.int64)
        factors = {d: stop - start for d, (start, stop) in self.ranges().items()}
        if unit.model == "none":
            busy: Ints = prod(factors.values(), start=np.ones(self.count, np.int64))
            return _shares(layer.cycles * unit.cycle_ticks, busy)
        if layer.m == layer.n == 1:
            factors["g"] = -(-factors["g"] // unit.cols)
        else:
            factors["m"], factors["n"] = -(-factors["m"] // unit.rows), -(-factors["n"] // unit.cols)
        return prod(factors.values(), start=np.full(self.count, layer.inputs * unit.cycle_ticks, np.int64))

    def _largest(self, dim: str) -> int:
        """The tile's size as the nest states it: the last step, or the largest of free pieces."""
        last = self.steps[dim][-1] if self.steps[dim] else self.layer.extent(dim)
        return last if isinstance(last, int) else int((self.trees[dim].stop[-1] - self.trees[dim].start[-1]).max())

    @property
    def parts(self) -> list[Part]:
        """What is moved by itself: W, OUT and every input (alike ones once each)."""
        return [(op, *part) for op in self.layer.operands for part in (self.layer.loaded if op == "IN" else ((0, ""),))]

    def depth(self, part: Part) -> int:
        """How many loops fetch it."""
        operand, _, lacks = part
        return 1 + max(fetching(numbered(self.skeleton.outside(operand)), self.trees, operand, lacks), default=-1)

    def moved(self, parts: Iterable[Part]) -> Moved:
        """The ticks that some parts take in every step."""
        ticks = {kind: np.zeros(self.count, np.int64) for kind in ("L1", "L2", "S1", "S2")}
        for operand, resident, lacks in parts:
            buffers = self.machine.buffers(self.skeleton.buffers.get(operand))
            load, store = self.transfers(operand, resident, lacks)
            ticks[f"L{buffers}"] += load
            ticks[f"S{buffers}"] += store
        return Moved(ticks["L2"], ticks["S2"], ticks["L1"] + ticks["S1"])

    def ticks(self) -> int:
        """The time of all steps."""
        moved = self.moved(self.parts)
        busy = np.maximum(self.compute(), np.append(moved.ahead[1:], 0))
        busy = np.maximum(busy, np.append(0, moved.behind[:-1]))
        return int(moved.ahead[0]) + int(busy.sum()) + int(moved.between.sum()) + int(moved.behind[-1])


def _shares(whole: int, work: Ints) -> Ints:
    """A number in integer shares of some work: the sum of the first ones is their share of it, rounded up.

    An example: 10 in shares of 1, 1 and 1 are 4, 3 and 3. All of them are the number.
    """
    if not whole:
        return np.zeros_like(work)
    done = np.cumsum(work).astype(object)  # products of ticks and multiply-accumulates are long
    shares: Ints = np.diff(-(-whole * done // done[-1]), prepend=0).astype(np.int64)
    return shares

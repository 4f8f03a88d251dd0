"""What stands at the ends of a nest whose transfers overlap with compute, and what a `Pipeline` knows of its tiles.

The first step loads the first tile of every operand, the last one stores the last tile of OUT. Where a loop cuts
nothing they are as large as the range, else at least one element; of candidates they are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Literal

import numpy as np

from hwmodels.nest.price.bilinear import Bilinear, Ints
from hwmodels.nest.price.boxes import input_windows
from hwmodels.nest.price.choices import JOINT, KERNELS, Factors, Term
from hwmodels.nest.price.core import CorePieces
from hwmodels.nest.price.pieces import how
from hwmodels.nest.price.pipeline import Need, Pipeline, Room
from hwmodels.outcome import Counts
from hwmodels.schedule import Step
from hwmodels.transfer import ticks
from instances.machine.machine import Machine
from instances.network.workload import DIMS, RELEVANT

#: Which of the pieces.
Which = Literal["first", "last", "any"]


@dataclass(frozen=True)
class Taken:
    """What all tiles take of every memory, and those of each operand."""

    machine: Machine
    every: Mapping[str, Sequence[Bilinear]]
    each: Mapping[str, Bilinear]

    def rooms(self, rates: Mapping[str, Fraction], sure: Bilinear) -> tuple[Room, ...]:
        """What is left for tiles of some operands with so many bytes an element of something."""
        found = []
        for memory, tables in self.every.items():
            mine = [op for op in rates if self.machine.memory_of(op) == memory]
            rate = sum((rates[op] for op in mine), Fraction(0))
            if mine and rate:
                terms = [term for op in mine for term in self.each[op].terms]
                own = Bilinear.of(terms, self.each[mine[0]].shape)
                found += [Room(self.machine.memories[memory], table, own, rate, sure) for table in tables]
        return tuple(found)


class Ends(CorePieces):
    """Bounds on the first and the last tiles of one core's nest, for all choices."""

    def _end(self, dim: str, level: int, which: Which = "first") -> Ints:
        """Elements (T,) that the first, last or any piece of `dim` after so many loops has at least."""
        extent, steps = self._extents[dim], self._steps[dim][:, :level]
        if not level:
            return np.array([extent], np.int64)
        if self._ideal is not None or which == "any":
            return 1 + self._uncut(dim, level) * (extent - 1)
        size = np.full(len(steps), extent, np.int64)
        for column in steps.T:
            even = np.maximum(column, 1)
            part = (size - 1) % even + 1 if which == "last" else np.minimum(size, even)
            if (column < 0).any():
                free = np.array([_edge(extent, how(int(x)), which) for x in column])
                part = np.where(column < 0, np.minimum(size, free), part)
            size = part
        return size

    def _single(self, operand: str) -> bool:
        return self.machine.buffers(self.skeleton.buffers.get(operand)) == 1

    def _call(self, operand: str, element: int) -> tuple[int, int]:
        """Ticks of a call that moves something but its bytes, and those of an element."""
        price = self.machine.transfer_of(operand)
        one = ticks(price, Counts(calls=1, segments=1, bursts=int(price.burst_bytes > 0), bytes=0))
        return one, price.byte_ticks * element

    def _moved(self, operand: str, element: int, sizes: Factors) -> list[Term]:
        """The least ticks of a tile of these sizes; nothing of one without elements."""
        call, byte = self._call(operand, element)
        some = {d: (v > 0).astype(np.int64) for d, v in sizes.items()}
        (a, b), (x, y) = self.choices.spread(sizes), self.choices.spread(some)
        return [(a * byte, b), (x * call, y)]

    def _window(self, dim: str, resident: int) -> Ints:
        """Rows (columns) of the first tile of IN."""
        window, (lo, _) = input_windows(self.layer, resident)[dim], self.core.range(dim)
        outputs = self._end(dim, self.skeleton.level(dim, "IN"))
        taps = self._end(KERNELS[dim], self.skeleton.level(KERNELS[dim], "IN"))
        first, end = window.rows(np.array(lo), lo + outputs, 0, taps)
        rows: Ints = np.maximum(end - first, 0)
        return rows

    def loaded(self, operand: str) -> list[Term]:
        """What the first step loads ahead of IN (all inputs) or W at least."""
        if self._single(operand) or operand not in self.layer.operands:
            return []
        if operand == "W":
            sizes = {d: self._end(d, self.skeleton.level(d, "W")) for d in sorted(RELEVANT["W"])}
            return self._moved("W", self.machine.w_bytes, sizes)
        terms: list[Term] = []
        for resident, lacks in self.layer.loaded:
            plain = {d: self._end(d, self.skeleton.level(d, "IN")) for d in "bgn" if d not in lacks}
            rows = {d: self._window(d, resident) for d in "rc" if d not in lacks}
            terms += self._moved("IN", self.machine.in_bytes, plain | rows)
        return terms

    def stored(self) -> list[Term]:
        """What the last step stores behind at least."""
        if self._single("OUT") or self.layer.resident_out:
            return []
        sizes = {d: self._end(d, self.skeleton.level(d, "OUT"), "last") for d in sorted(RELEVANT["OUT"])}
        return self._moved("OUT", self.machine.out_bytes, sizes)

    def computed(self, which: Which) -> list[Term]:
        """What the first, last or any step computes at least."""
        layer, unit = self.layer, self.machine.compute
        if unit.model == "none":
            return []
        sizes = {d: self._end(d, self.skeleton.levels(d), which) for d in DIMS}
        if unit.model != "array":
            sizes = {}
        elif layer.m == layer.n == 1:
            sizes["g"] = -(-sizes["g"] // unit.cols)
        else:
            sizes |= {"m": -(-sizes["m"] // unit.rows), "n": -(-sizes["n"] // unit.cols)}
        a, b = self.choices.spread(sizes)
        return [(a * layer.inputs * unit.cycle_ticks, b)]

    # ---- tiles of OUT, one after the other ---------------------------------------------------------------------

    def pipelines(self, reads: list[Term], inputs: list[Term], alone: list[Term], taken: Taken) -> tuple[Pipeline, ...]:
        """What is known of the tiles of OUT, and of groups of them under each Hold outside; nothing if none is behind.

        `reads` are the ticks of all loads ahead of steps, `inputs` of those of IN and W, `alone` of what one buffer
        moves between them.
        """
        layer = self.layer
        call, byte = self._call("OUT", self.machine.out_bytes)
        plain = not (self._uniform or self.machine.snake or self.machine.line or layer.resident_out)
        partly = self.choices.bound or self.choices.log is not None
        if self._single("OUT") or not byte or not plain or partly:
            return ()
        outs, (lanes, work) = sorted(RELEVANT["OUT"]), self._work()
        tile = {d: self._most(d, self.skeleton.level(d, "OUT")) for d in outs}
        one = self._product({})
        tiles = Pipeline(
            elements=prod(self._extents[d] for d in outs), call=call, byte=byte, lanes=lanes, level=0,
            together=True, tile=self._product(tile), tiles=taken.rooms({"OUT": self._held("OUT")}, one), rooms=(),
            largest=one, unit=one, fewest=one, work=self._table(work), step=self._table(self.computed("any")),
            last=self._table(self.computed("last")),
            fill=self._table([*self.loaded("IN"), *self.loaded("W")]), drain=self._table(self.stored()),
            reads=self._table(reads), alone=self._table(alone), needs=(),
            once=self._product({d: self._uncut(d, self.skeleton.levels(d)) for d in "nij"}),
        )  # fmt: skip
        depths, groups = self.skeleton.depth, replace(tiles, reads=self._table(inputs))
        each = ((groups if depth < depths["OUT"] else tiles, depth) for depth in sorted(set(depths.values())))
        return tuple(self._grouped(one, depth, taken) for one, depth in each)

    def _grouped(self, tiles: Pipeline, depth: int, taken: Taken) -> Pipeline:
        """The same of the groups of tiles of OUT that the loops outside `depth` make."""
        depths, level = self.skeleton.depth, {d: self.skeleton.order[:depth].count(d) for d in DIMS}
        outs, whole = sorted(RELEVANT["OUT"]), depth == depths["OUT"]
        needs = {op: self._need(op, depth, level, taken) for op in ("IN", "W") if op in depths}
        rates = {"OUT": self._held("OUT")} if whole else {}
        for op, need in needs.items():  # a tile that is there for all of the group has what its results need
            if depths[op] <= depth and need.elements and need.copies == max(1, len(self.layer.loaded) * (op == "IN")):
                rates[op] = self._held(op) * need.elements / need.share
        sure = self._product({d: self._uncut(d, level[d]) for d in "nij"})
        return replace(
            tiles, level=int(np.sign(depth - depths["OUT"])), together=all(depths[op] <= depth for op in needs),
            largest=self._product({d: self._most(d, level[d]) for d in outs}),
            rooms=(*(tiles.tiles if depth >= depths["OUT"] else ()), *taken.rooms(rates, sure)),
            fewest=self._product({d: self._trips(d, level[d]) for d in outs}),
            unit=self._product({d: np.where(self._uncut(d, level[d]), self._extents[d], 1) for d in outs}),
            needs=tuple(need for op, need in needs.items() if not self._single(op)),
        )  # fmt: skip

    def _most(self, dim: str, level: int) -> Ints:
        """The largest piece (T,) after so many loops: of bounds what there is room for is all that is known."""
        if self._ideal is not None:
            return np.array([self._extents[dim]], np.int64)
        largest: Ints = self._cut(dim, level).largest
        return largest

    def _held(self, operand: str) -> Fraction:
        """Bytes of an element of a tile in all buffers, of all inputs that are not broadcast together."""
        element = {"IN": self.machine.in_bytes, "W": self.machine.w_bytes, "OUT": self.machine.out_bytes}[operand]
        copies = max(1, self.layer.loaded.count((0, ""))) if operand == "IN" else 1
        return Fraction(element * copies * self.machine.buffers(self.skeleton.buffers.get(operand)))

    def _table(self, terms: list[Term]) -> Bilinear:
        return Bilinear.of(terms, self.choices.shape)

    def _product(self, factors: Factors) -> Bilinear:
        return self._table([self.choices.spread(factors)])

    def _uncut(self, dim: str, level: int) -> Ints:
        """1 where so many loops over a dimension cut nothing for sure, (T,).

        Bounds for one piece stand for others too where the window of a smaller piece is that of all (chains that no
        other one is nowhere above).
        """
        one: Ints = (self._trips(dim, level) == 1).astype(np.int64)
        return one * 0 if level and self._ideal is not None and dim in KERNELS and self._spans(dim) else one

    def _spans(self, dim: str) -> bool:
        """Whether all outputs but the first, or but the last, need all rows that all of them need."""
        window, (lo, hi) = input_windows(self.layer)[dim], self.core.range(dim)
        begin, end = np.array([lo, lo + 1, lo]), np.array([hi, hi, hi - 1])
        first, last = window.rows(begin, end, 0, window.taps)
        return bool(hi - lo > 1 and (last[1:] - first[1:] >= last[0] - first[0]).any())

    def _work(self) -> tuple[int, list[Term]]:
        """Compute of all results if each takes its least share, times a number; and that number."""
        layer, unit = self.layer, self.machine.compute
        if unit.model != "array":
            return 1, []
        sizes = {d: np.array([self._extents[d]], np.int64) for d in DIMS}
        dim, lanes = ("g", unit.cols) if layer.m == layer.n == 1 else ("m", unit.rows)
        if dim == "m":
            sizes["n"] = -(-sizes["n"] // unit.cols)
        extent = self._extents[dim]
        full = min(lanes, extent)
        sizes[dim] = np.where(self._trips(dim) == 1, -(-extent // lanes) * full, extent)
        a, b = self.choices.spread(sizes)
        return full, [(a * layer.inputs * unit.cycle_ticks, b)]

    def _need(self, operand: str, depth: int, level: Mapping[str, int], taken: Taken) -> Need:
        """What the results of groups of tiles need of IN, or of W; `level`: the loops outside `depth`."""
        layer, size, skeleton = self.layer, self._extents, self.skeleton
        if operand == "W":
            element, share, copies = self.machine.w_bytes, size["b"] * size["r"] * size["c"], 1
            elements, idle, most = size["n"] * size["i"] * size["j"], 0, prod(size[d] for d in "gmnij")
        else:
            element, share, copies = self.machine.in_bytes, size["m"], layer.loaded.count((0, ""))
            elements, idle = size["n"] * prod(self._fresh(d) for d in "rc"), self._idle()
            most = max(map(layer.input_elements, range(layer.inputs)))
        call, byte = self._call(operand, element)
        outs, mine = sorted(RELEVANT["OUT"]), RELEVANT[operand]
        shared = [d for d in outs if d not in mine or skeleton.level(d, operand) < level[d]]
        uncut = {d: self._uncut(d, level[d]) for d in DIMS}
        own = {d: uncut[d] for d in (outs if idle else shared) if not idle or d not in "rc" or d in shared}
        if idle:  # a pass along rows, or along columns, ends with tiles that may fetch nothing
            r, c = (np.broadcast_to(uncut[d] * (d not in shared), len(self._steps[d])) for d in "rc")
            own[JOINT] = np.maximum.outer(r, c)
        held = {d: 1 - uncut[d] * (self._trips(d, skeleton.level(d, operand)) > 1) for d in sorted(mine)}
        return Need(
            elements, share, byte, call, copies, idle, most,
            rooms=taken.rooms({operand: self._held(operand)}, self._product({})),
            first=self._table(self.loaded(operand)), own=self._product(own),
            ready=self._product({d: self._uncut(d, skeleton.level(d, "IN")) for d in "ij" if operand == "IN"}),
            whole=self._product({d: uncut[d] for d in outs if d in mine}),
            held=self._product(held if skeleton.depth[operand] >= depth else {}),
        )  # fmt: skip

    def _fresh(self, dim: str) -> int:
        """Rows of the map that a row of results needs and no other, as many as there are for all of them."""
        window, (lo, hi) = input_windows(self.layer)[dim], self.core.range(dim)
        for rows in range(min(window.stride, window.reach) if window.dilation == 1 else 1, 0, -1):
            for first in range(0, window.reach - rows + 1, window.dilation):
                begin = lo * window.stride - window.pad + first
                end = (hi - 1) * window.stride - window.pad + first + rows
                if begin >= window.first and end <= window.size:
                    return rows
        return 0

    def _idle(self) -> int:
        """Tiles of a pass that may fetch nothing: windows in the padding, or of which all is there."""
        idle = 0
        for dim, window in input_windows(self.layer).items():
            lo, hi = self.core.range(dim)
            for output in (lo, hi - 1):
                first, end = window.rows(np.array(output), np.array(output + 1), 0, window.taps)
                if end <= first:
                    return hi - lo
            if self.machine.sliding:
                idle = max(idle, window.clipping(lo, hi)[1] // window.stride)
        return idle


def _edge(extent: int, step: Step, which: Which) -> int:
    """The first, or the last, of the pieces that a list of places makes."""
    if isinstance(step, int):
        return extent
    return extent - step[-1] if which == "last" else step[0]

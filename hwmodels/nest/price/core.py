"""What one core moves, computes and stores, as bilinear tables over the steps of its loops.

For one core (its ranges), one skeleton (loop order and hold depths) and lists of candidate chains of steps, every count
is a sum of products of per-dimension vectors. The argument, operand by operand:

* the tiles of an operand are boxes, one per combination of pieces of the dimensions it depends on, each cut as far as
  the loops outside its Hold cut it; a count of a box is a sum of products of per-axis quantities
  (`hwmodels.nest.price.boxes`), so its sum over all boxes is the same sum of products of per-axis sums. Kernel rows cut
  the input rows once more, so chains of r and i are chosen together, and those of c and j;
* every box is moved once per iteration of the loops outside it down to the innermost real one that the operand depends
  on: a product of trips, once it is known which loop that is (`Skeleton.visits`). It is the last one of either the
  spatial or the channel loops that cut something, so the choices split in products of two masks (`_visits`);
* an input that is broadcast (`Layer.broadcast`) is held where IN is, and depends on fewer dimensions: its boxes are
  those of the tensor that it is, and it is moved by loops of its own. With one element along d, its tile stays while
  loops over d run inside all loops that it depends on, and comes again in each of their iterations elsewhere.

Spatial choices are chains of steps of (b, r with i, c with j), channel choices of (g, m, n); `Choices` lists both.

`CorePieces` has the pieces that one core's loops cut its ranges in, dimension by dimension, for all candidate chains of
steps; `CoreTables`, the sums over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.bilinear import Bilinear, Ints
from hwmodels.nest.price.boxes import KINDS, Axis, axes_of, input_windows, runs_of
from hwmodels.nest.price.choices import AXIS, KERNELS, Q_DIMS, S_DIMS, Choices, Factors, Term, times
from hwmodels.nest.price.lines import line_products
from hwmodels.nest.price.pieces import Pieces, Window, cut, nominal, windows
from hwmodels.nest.price.relaxed import (
    Bound,
    Either,
    Relaxed,
    Vectors,
    ideal_count,
    ideal_cut,
    ideal_once,
    ideal_parts,
    ideal_windows,
    least_cycles,
)
from hwmodels.nest.price.skeleton import Core, Skeleton, cores
from instances.machine.machine import Machine
from instances.network.workload import DIMS, REDUCTION, RELEVANT, Layer

#: Up to so many classes of an axis bursts are counted piece by piece: of more, the largest piece that fits is no limit.
_FEW = 64

#: Choices times sizes of tiles that are looked at together.
_TILES = 1 << 22


class CorePieces:
    """How the loops of one skeleton cut one core's ranges, and the axes of the tensors in these pieces."""

    def __init__(self, layer: Layer, machine: Machine, skeleton: Skeleton, core: Core, choices: Choices) -> None:
        self.layer, self.machine, self.skeleton, self.core, self.choices = layer, machine, skeleton, core, choices
        self._uniform = machine.edge_tiles == "uniform"
        self._extents = {d: core.extent(d) for d in DIMS}
        self._begin = {d: core.range(d)[0] for d in DIMS} if machine.by_address else dict.fromkeys(DIMS, 0)
        self._steps, self._ideal = choices.steps, choices.ideal

    def _cut(self, dim: str, level: int | None = None) -> Pieces:
        """The pieces of `dim` after its first `level` loops (all by default)."""
        steps = self._steps[dim][:, :level]
        if self._ideal is None or not steps.shape[1]:
            return cut(self._extents[dim], steps, self._begin[dim])
        if self._ideal.get(dim) == "exact":
            return cut(self._extents[dim], steps)
        if self._ideal.get(dim) == "vectors":
            return Vectors(self._extents[dim], steps[:, -1])
        if self._ideal.get(dim) in ("steps", "counts", "numbers"):
            bound = ideal_cut if self._ideal[dim] == "steps" else ideal_count
            return bound(self._extents[dim], steps[:, -1])
        return Relaxed(cut(self._extents[dim], steps))

    def _trips(self, dim: str, level: int | None = None) -> Ints:
        return self._cut(dim, level).number

    def _real(self, dim: str, level: int) -> Mask:
        """Whether the loop over `dim` at `level` cuts something."""
        result: Mask = self._trips(dim, level + 1) > self._trips(dim, level)
        return result

    def _share(self, dim: str) -> int:
        """The nominal size of the core's range: the step of the spatial cut."""
        return next((i.step for i in reversed(self.skeleton.spatial) if i.dim == dim), self.layer.extent(dim))

    def _nominal(self, dim: str, level: int) -> Ints:
        """The step that the nest states for `dim` after `level` loops; of free pieces the largest."""
        if not level:
            return np.array([self._share(dim)], np.int64)
        steps = self._steps[dim][:, :level]
        return np.where(steps[:, -1] > 0, steps[:, -1], cut(self._share(dim), steps).largest)

    def _pieces(
        self, dim: str, operand: str, slide: tuple[str, int] | None = None, resident: int | None = None
    ) -> Pieces:
        """The pieces of `dim` at the Hold of `operand`, without resident rows; r and c of IN are the input's."""
        level = self.skeleton.level(dim, operand)
        if operand == "IN" and dim in ("r", "c"):
            return self._input_pieces(dim, level, slide, resident)
        if operand == "OUT" and dim == "r" and resident:
            return self._written(level, resident)
        return nominal(self._nominal(dim, level), self._trips(dim, level)) if self._uniform else self._cut(dim, level)

    def _written(self, level: int, resident: int) -> Pieces:
        """The rows of the result's pieces that go to DRAM."""
        steps = self._steps["r"][:, :level]
        if self._ideal is not None and level and self._ideal.get("r") in ("steps", "counts", "numbers"):
            bound = ideal_cut if self._ideal["r"] == "steps" else ideal_count
            return bound(self._extents["r"], steps[:, -1], resident)
        written = Window(1, 1, 1, 0, self.layer.r, resident)
        pieces = windows(*self.core.range("r"), steps, np.zeros((1, 0), np.int64), written)
        known = self._ideal is None or not level or self._ideal.get("r") == "exact"
        return pieces if known else Relaxed(pieces, int(pieces.number.max(initial=0)))

    def _input_pieces(self, dim: str, level: int, slide: tuple[str, int] | None, resident: int | None) -> Pieces:
        kernel, window = KERNELS[dim], input_windows(self.layer, resident)[dim]
        inner = self.skeleton.level(kernel, "IN")
        if self._uniform:
            count = self._trips(dim, level) * self._trips(kernel, inner)
            return nominal(window.nominal(self._nominal(dim, level), self._nominal(kernel, inner)), count)
        along = "outer" if self.skeleton.line else ""  # loops beyond the one it slides along cut nothing
        if slide and slide[0] in (dim, kernel):
            along = "outer" if slide[0] == dim else "inner"
            level, inner = (slide[1] + 1, inner) if along == "outer" else (level, slide[1] + 1)
        steps, taps = self._steps[dim][:, :level], self._steps[kernel][:, :inner]
        if self._ideal is not None:
            return self._bounded(dim, steps, taps, window, along)
        return windows(*self.core.range(dim), steps, taps, window, along)

    def _bounded(self, dim: str, steps: Ints, taps: Ints, window: Window, along: str) -> Pieces:
        """The least that windows may be however their loops cut."""
        lines = (self._ideal or {}).get("IN") == "lines"
        once = self.machine.sliding and (self.machine.snake or self._smaller("IN"))
        if not (lines or once) or not (steps.shape[1] or taps.shape[1]):
            return self._windowed(dim, steps, taps, window, along)
        pieces = self._windowed(dim, steps, taps, window, "")
        if once and not taps.shape[1] and window.reach <= window.stride:
            return pieces
        whole = taps[:, -1] == window.taps if taps.shape[1] else np.ones(1, np.bool_)
        whole = np.broadcast_to(whole, pieces.number.shape)
        least = ideal_once(*self.core.range(dim), pieces, window, whole, turning=not lines)
        if once:
            return least
        # IN in lines slides along the last loop that cuts, which may be the one before
        depth = steps.shape[1]
        slid, before = (
            self._windowed(dim, steps[:, :k], taps, window, "outer") for k in (depth, max(0, depth - 1))
        )  # fmt: skip
        last = self._trips(dim, depth) > self._trips(dim, max(0, depth - 1))
        return Either(last, slid, Either(whole, least, before)).sized(pieces)

    def _windowed(self, dim: str, steps: Ints, taps: Ints, window: Window, along: str) -> Pieces:
        """The least that windows may be where IN slides along one loop at most."""
        lo, hi = self.core.range(dim)
        if not steps.shape[1] and not taps.shape[1]:
            return windows(lo, hi, steps, taps, window, along)
        ideal = self._ideal or {}
        how = ideal.get(dim)
        if ideal.get(KERNELS[dim]) == "exact":
            return windows(lo, hi, steps, taps, window, along)
        if how == "steps":
            most = steps[:, -1] if steps.shape[1] else np.array([hi - lo])
            parts = taps[:, -1] if taps.shape[1] else np.array([window.taps])
            if window.trivial and hi <= window.size:
                return ideal_cut(hi - lo, most)
            return ideal_windows(lo, hi, most, parts, window, along)
        if how == "exact":
            return windows(lo, hi, steps, np.zeros((1, 0), np.int64), window, along)
        if how == "listed":  # the kernel is whole at the Hold of IN
            return Relaxed(windows(lo, hi, steps, np.zeros((1, 0), np.int64), window, along))
        if taps.shape[1] or how is not None:
            counted = how in ("counts", "numbers")
            return ideal_parts(lo, hi, steps, taps, window, along, counts=counted, more=how == "numbers")
        # fetches of nothing: beyond the end of the map, or of rows that are on chip
        idle = window.clipping(lo, hi)[1] // window.stride if along else 0
        if window.first or window.pad >= window.reach or window.clipping(lo, hi)[1] >= window.reach:
            idle = hi - lo
        return Relaxed(windows(lo, hi, steps, taps, window, along), idle)

    def _axes(
        self, tensor: str, slide: tuple[str, int] | None = None, resident: int | None = None, lacks: str = ""
    ) -> list[Axis]:
        operand = "W" if tensor == "BIAS" else tensor
        axes = axes_of(self.layer, self.machine, tensor, lambda dim: self._pieces(dim, operand, slide, resident), lacks)
        if self._ideal is None or self._uniform or not self.machine.transfer_of(operand).burst_bytes:
            return axes
        for axis in axes:  # what a limit on pieces changes: a chain replaces another one whatever the limit is
            for vector in axis.pieces.divided(axis.extent) if isinstance(axis.pieces, Bound) else ():
                self.choices.note(axis.dim, vector)
        return [self._limited(tensor, axis) for axis in axes]

    def _limited(self, tensor: str, axis: Axis) -> Axis:
        """The same axis of bounds, with no piece larger than what fits here and around it."""
        if not isinstance(axis.pieces, Bound) or tensor not in self.layer.operands or len(axis.pieces.number) > _FEW:
            return axis
        level = self.skeleton.level(axis.dim, tensor)
        fits = [n for (op, d), n in self.fitting.items() if d == axis.dim and self.skeleton.level(d, op) <= level]
        for most in fits:
            if tensor == "IN" and axis.dim in ("r", "c"):
                window = input_windows(self.layer)[axis.dim]
                most = (most - 1) * window.stride + window.reach
            axis = replace(axis, pieces=axis.pieces.within(most))
        return axis

    @cached_property
    def fitting(self) -> dict[tuple[str, str], int]:
        """By operand and dimension the largest piece that fits with the smallest pieces of the operand's other axes."""
        machine, layer, found = self.machine, self.layer, dict[tuple[str, str], int]()
        element = {"IN": machine.in_bytes, "W": machine.w_bytes, "OUT": machine.out_bytes}
        for op in layer.operands:
            if op == "IN" and (layer.broadcast or any(layer.residents)):
                continue
            axes = axes_of(layer, machine, op, lambda dim, op=op: self._pieces(dim, op))  # type: ignore[misc]
            copies = machine.buffers(self.skeleton.buffers.get(op))
            room = machine.memories[machine.memory_of(op)] // (element[op] * copies)
            least = [self._smallest(op, axis) for axis in axes]
            for axis, own in zip(axes, least, strict=True):
                most = max(1, room * own // prod(least))
                if op == "IN" and axis.dim in ("r", "c"):
                    window = input_windows(layer)[axis.dim]
                    clipped = sum(window.clipping(*self.core.range(axis.dim)))
                    reach = (self._least_part(axis.dim, window) - 1) * window.dilation + 1
                    most = max(0, most + clipped - reach) // window.stride + 1
                found[op, axis.dim] = most
        return found

    def _smallest(self, op: str, axis: Axis) -> int:
        """Elements of the largest piece of an axis at least, of all choices."""
        dims = {axis.dim} | ({KERNELS[axis.dim]} if op == "IN" and axis.dim in KERNELS else set())
        if self.choices.more and any(self.skeleton.level(d, op) for d in dims):
            return 1
        return max(1, int(axis.pieces.largest.min(initial=axis.extent)))

    def _least_part(self, dim: str, window: Window) -> int:
        """The fewest taps that the largest part of the kernel at the Hold of IN has."""
        kernel = KERNELS[dim]
        taps = self._steps[kernel][:, : self.skeleton.level(kernel, "IN")]
        return max(1, int(taps[:, -1].min(initial=window.taps))) if taps.shape[1] else window.taps

    def _smaller(self, operand: str) -> bool:  # loops may cut less of it than on the first core
        return self.core.smaller(self._first, RELEVANT[operand])

    @cached_property
    def _first(self) -> Core:
        return cores(self.layer, self.skeleton.spatial)[0]


Mask = NDArray[np.bool_]
_ROWS = ("IN", "W", "OUT", "PSUM_READ", "PSUM_WRITE")


@dataclass(frozen=True)
class _Part:
    """How an operand is fetched for the choices of a product of two masks (None: all)."""

    again: tuple[tuple[str, int], ...]
    slide: tuple[str, int] | None
    s: Mask | None
    q: Mask | None

    def masked(self, term: Term) -> Term:
        """The term, zero outside the masks."""
        a, b = term
        return (a if self.s is None else a * self.s), (b if self.q is None else b * self.q)


class CoreTables(CorePieces):
    """The tables of one core under one skeleton; see the module docstring."""

    def __init__(self, layer: Layer, machine: Machine, skeleton: Skeleton, core: Core, choices: Choices) -> None:
        super().__init__(layer, machine, skeleton, core, choices)
        slides = [*("ri" if layer.kh > 1 else ""), *("cj" if layer.kw > 1 else "")]
        self._sliding = frozenset(slides if machine.sliding else ())

    # ---- visits ----------------------------------------------------------------------------------------------

    def _any_real(self, loops: tuple[tuple[str, int], ...], side: tuple[str, ...]) -> Mask:
        """Per choice of `side`, whether any of these loops cuts something; of bounds, merged with those outside it."""
        result = np.zeros(self.choices.shape[0 if side is S_DIMS else 1], np.bool_)
        for dim, level in loops:
            if AXIS[dim] in side:
                real = self._cuts(dim, level).astype(np.int64)
                self.choices.note(dim, 1 - real)
                result |= self.choices.at(dim, real) > 0
        return result

    def _cuts(self, dim: str, level: int) -> Mask:
        return self._trips(dim, level + 1) > 1 if self._ideal is not None else self._real(dim, level)

    def _visits(self, operand: str, lacks: str = "") -> Iterator[_Part]:
        """Split the choices by how `operand` is fetched: by its slide, or by the innermost real loop it depends on."""
        if self._ideal is not None and (self.machine.snake or not self.skeleton.full or self._smaller(operand)):
            yield _Part((), None, None, None)  # every tile comes once at least, whatever the order of loops
            return
        if self.skeleton.full and not lacks:
            yield from self._every_loop(operand)
            return
        groups = self.skeleton.visits(operand, self._sliding, lacks, merged=self._ideal is not None)
        groups = [(loops, visit) for loops, visit in groups if any(self._cuts(d, k).any() for d, k in loops)]
        plain = [not visit.slide and not self._repeats(visit.again) for _, visit in groups]
        rest_s: Mask | None = None
        rest_q: Mask | None = None
        for at in range(len(groups) - 1, -1, -1):
            if all(plain[: at + 1]):
                break  # this group and all before it fetch every box once, as does having no loop at all
            loops, visit = groups[at]
            in_s, in_q = self._any_real(loops, S_DIMS), self._any_real(loops, Q_DIMS)
            yield _Part(visit.again, visit.slide, _both(rest_s, in_s), rest_q)
            yield _Part(visit.again, visit.slide, _both(rest_s, ~in_s), _both(rest_q, in_q))
            rest_s, rest_q = _both(rest_s, ~in_s), _both(rest_q, ~in_q)
        yield _Part((), None, rest_s, rest_q)

    def _every_loop(self, operand: str) -> Iterator[_Part]:
        """All loops outside the Hold count (`Skeleton.full`); IN slides along the loop that is chosen."""
        again = self.skeleton.every(operand)
        slides = self.choices.slides if operand == "IN" else ()
        for number, slide in enumerate(slides):
            real = self._real(*slide).astype(np.int64)
            self.choices.note(slide[0], real)
            self.choices.note(slide[0], 1 - real)
            chosen = self.choices.index["slide"] == number
            yield _Part(again, slide, None if chosen.all() else chosen, None)
        if not slides:
            yield _Part(again, None, None, None)

    def _repeats(self, again: tuple[tuple[str, int], ...]) -> bool:
        return any(bool((self._trips(d, k) > 1).any()) for d, k in again)

    # ---- results ---------------------------------------------------------------------------------------------

    def transfers(
        self, kinds: frozenset[str] = KINDS, known: dict[str, dict[str, list[Term]]] | None = None
    ) -> dict[str, dict[str, list[Term]]]:
        """Counts by row ("IN", "W", "OUT", "PSUM_READ", "PSUM_WRITE") and kind, as rank-1 terms over the choices.

        The rows of an operand that are `known`, from a core that moves the same of it, are taken from there.
        """
        layer, machine, known = self.layer, self.machine, known or {}
        rows = {row: known.get(row) or {k: [] for k in kinds} for row in _ROWS}
        if "IN" not in known:
            for (resident, lacks), copies in Counter(layer.loaded).items():
                for part in self._visits("IN", lacks):
                    axes = self._axes("IN", part.slide, resident, lacks)
                    self._add("IN", rows["IN"], axes, machine.in_bytes, part, copies)
        if "W" in layer.operands and "W" not in known:
            weights = list(self._visits("W"))
            for part in weights:
                self._add("W", rows["W"], self._axes("W"), machine.w_bytes, part)
            if layer.bias and machine.bias_bytes:
                self._add_bias(rows["W"], weights)
        if "OUT" not in known:
            self._add_results(rows)
        return rows

    def _add_results(self, rows: dict[str, dict[str, list[Term]]]) -> None:
        """Results are written once, partial sums written and read again."""
        layer, machine, every = self.layer, self.machine, _Part((), None, None, None)
        out = self._axes("OUT")
        self._add("OUT", rows["OUT"], self._axes("OUT", resident=layer.resident_out), machine.out_bytes, every)
        for part in self._visits("OUT"):
            self._add_partial_sums(rows["PSUM_WRITE"], out, part)
        rows["PSUM_READ"] = {k: list(terms) for k, terms in rows["PSUM_WRITE"].items()}
        if machine.psum_first_read:
            self._add("OUT", rows["PSUM_READ"], out, machine.psum_bytes, every)

    def _add(
        self,
        operand: str,
        into: dict[str, list[Term]],
        axes: list[Axis],
        element: int,
        part: _Part,
        copies: int = 1,
        extra: Factors | None = None,
    ) -> None:
        """Add the counts of all boxes, each `part`'s number of times and times the `extra` factors."""
        if any(mask is not None and mask.size and not mask.any() for mask in (part.s, part.q)):
            return
        again = {d: self._trips(d, k) for d, k in part.again} if extra is None else extra
        for kind, products in self._runs(axes, element, operand, frozenset(into)).items():
            for constant, factors in products:
                if constant:
                    a, b = part.masked(self.choices.spread(times(factors, again)))
                    into[kind].append((a if constant * copies == 1 else a * (constant * copies), b))

    def _runs(
        self, axes: list[Axis], element: int, operand: str, kinds: frozenset[str]
    ) -> dict[str, list[tuple[int, Factors]]]:
        """Counts of all boxes; of bounds that do not know whether boxes span an axis, a call is a run at least.

        Runs do not depend on that where the innermost axis is cut for sure.
        """
        found = runs_of(axes, element, self.machine.transfer_of(operand), kinds)
        bounds = {a.dim: a.pieces.unsure for a in axes if isinstance(a.pieces, Bound) and a.pieces.unsure is not None}
        unsure = {d: mask for d, mask in bounds.items() if mask.any()}
        if unsure and "segments" in kinds:
            sure = {d: (~mask).astype(np.int64) for d, mask in unsure.items()}
            inside = next((a for a in reversed(axes) if a.extent > 1), axes[-1])
            parts = np.where(inside.pieces.full(inside.extent) == 0, 1, 0) * (inside.dim not in unsure)
            rest: Factors = {inside.dim: 1 - parts}
            ways = [known for known in ({inside.dim: parts}, times(sure, rest)) if known[inside.dim].any()]
            runs = [(constant, times(factors, known)) for known in ways for constant, factors in found["segments"]]
            calls = times({a.dim: a.pieces.number for a in axes}, rest)
            for d, known in sure.items():
                runs.append((1, times(calls, {d: 1 - known})))
                calls = times(calls, {d: known})
            found["segments"] = runs
        return found

    def _add_partial_sums(self, into: dict[str, list[Term]], out: list[Axis], part: _Part) -> None:
        """``v - 1`` moves of every box visited v times: with v = v_s * v_q, ``v_s*(v_q - 1) + (v_s - 1)``."""
        spatial = {d: self._trips(d, k) for d, k in part.again if AXIS[d] in S_DIMS}
        element = self.machine.psum_bytes
        channel = [(d, k) for d, k in part.again if AXIS[d] in Q_DIMS]
        for d, k in channel:  # only n
            if (self._trips(d, k) > 1).any():
                self._add("OUT", into, out, element, part, extra={**spatial, d: self._trips(d, k) - 1})
        for at, d in enumerate(spatial):
            if (spatial[d] > 1).any():
                before = dict(list(spatial.items())[:at])
                self._add("OUT", into, out, element, part, extra={**before, d: spatial[d] - 1})

    def _add_bias(self, into: dict[str, list[Term]], weights: list[_Part]) -> None:
        """Biases ride in the call of the weights: their own segments, bursts and bytes, once per weight tile."""
        spread = {d: self._trips(d, self.skeleton.level(d, "W")) for d in ("n", "i", "j")}
        scratch: dict[str, list[Term]] = {k: [] for k in into if k != "calls"}
        for part in weights:
            again = {d: self._trips(d, k) for d, k in part.again}
            self._add("W", scratch, self._axes("BIAS"), self.machine.bias_bytes, part, extra=times(spread, again))
        for kind, terms in scratch.items():
            into[kind] += terms

    def compute_cycles(self) -> list[Term]:
        """Cycles of the whole core: Eq. 7-8 of `tso_burst_slicing` ("tile"), true pieces ("array"), measured."""
        layer, unit = self.layer, self.machine.compute
        if unit.model == "none":
            rows, columns = self.choices.shape
            return [(np.full(rows, layer.cycles, np.int64), np.ones(columns, np.int64))] if layer.cycles else []
        if unit.model == "tile":
            return self._tile_cycles()
        lanes = {d: self._cut(d).sum for d in ("b", "g", "r", "c", "i", "j")}
        if layer.m == layer.n == 1:
            lanes["g"] = self._cut("g").ceil_sum(unit.cols)
        else:
            lanes["m"] = self._cut("m").ceil_sum(unit.rows)
            lanes["n"] = self._cut("n").ceil_sum(unit.cols)
        a, b = self.choices.spread(lanes)
        return [(a * layer.inputs, b)]

    def _tile_cycles(self) -> list[Term]:
        if self._ideal is not None:
            return self._least_cycles()
        step = {d: self._nominal(d, self.skeleton.levels(d)) for d in DIMS}
        work = {d: self._trips(d) * (step[d] if AXIS[d] == d and d not in ("r", "c") else 1) for d in DIMS}
        a, b = self.choices.spread(work)
        tile = np.ones(self.choices.shape[0], np.int64)
        for d in ("r", "i", "c", "j"):
            tile = tile * self.choices.at(d, step[d])
        return [(a * self.layer.inputs * -(-tile // self.machine.compute.macs_per_cycle), b)]

    def _least_cycles(self) -> list[Term]:
        """Eq. 7 for tiles of any sizes, loops inside all Holds included: the largest is at least its share."""
        sizes, spatial = self._extents, ("r", "i", "c", "j")
        a, b = self.choices.spread({d: np.array([sizes[d]], np.int64) for d in (*Q_DIMS, "b")})
        macs, known = self.machine.compute.macs_per_cycle, "exact" in (self._ideal or {}).values()
        for d in ("r", "c") if known and self.choices.log is not None else ():
            for column in self._finer(d).T:  # whichever of the two ways below is taken for the chains that stay
                self.choices.note(d, np.ascontiguousarray(column))
        whole = known and not any((self._trips(d) > 1).any() for d in "ij")
        if whole and not self.choices.bound and self.choices.shape[0] * sizes["r"] * sizes["c"] <= _TILES:
            cycles = self._finest_cycles(macs)
        else:
            pieces = tuple(self.choices.at(d, self._trips(d)) for d in spatial)
            cycles = least_cycles(tuple(sizes[d] for d in spatial), pieces, macs)
        return [(a * self.layer.inputs * cycles, b)]

    def _finest_cycles(self, macs: int) -> Ints:
        """The fewest cycles of rows and columns, cut further by loops inside all Holds, the kernel whole.

        In tiles of at most t a piece of x is ``ceil(x/t)`` of them at least, as many as a loop of step t makes.
        """
        tiles = {d: self._finer(d) for d in ("r", "c")}
        sizes = [np.arange(1, self._extents[d] + 1, dtype=np.int64) for d in ("r", "c")]
        each = -(-np.multiply.outer(*sizes) * self._extents["i"] * self._extents["j"] // macs)
        rows, columns = (tiles[d][self.choices.index[d] if len(tiles[d]) > 1 else 0] for d in ("r", "c"))
        every = np.atleast_2d(rows)[:, :, None] * np.atleast_2d(columns)[:, None, :] * each
        fewest: Ints = np.broadcast_to(every.min(axis=(1, 2)), self.choices.shape[:1])
        return fewest

    def _finer(self, dim: str) -> Ints:
        """By chain and size of tile (T, E) the fewest tiles that the pieces of all loops can be cut in."""
        size = np.arange(1, self._extents[dim] + 1, dtype=np.int64)
        pieces, exact = self._cut(dim), not self.skeleton.levels(dim) or (self._ideal or {}).get(dim) == "exact"
        if not exact:
            return np.maximum(pieces.number[:, None], -(-self._extents[dim] // size))
        number: Ints = (pieces.count[:, :, None] * -(-pieces.length[:, :, None] // size)).sum(axis=1)
        return number

    def footprints(self, known: dict[str, list[Term]] | None = None) -> dict[str, list[Term]]:
        """Largest bytes each operand holds in one buffer, as rank-1 terms; `known` as in `transfers`."""
        layer, machine = self.layer, self.machine
        result = dict(known or {})
        if "IN" not in result:
            result["IN"] = []
            for (resident, lacks), copies in Counter(layer.loaded).items():
                terms = self._lines(resident) if self.skeleton.line else [self._largest("IN", resident, lacks)]
                result["IN"] += [(a * machine.in_bytes * copies, b) for a, b in terms]
        if "OUT" not in result:
            result["OUT"] = self._output_bytes(*self._largest("OUT"))
        if "W" in layer.operands and "W" not in result:
            result["W"] = self._weight_bytes()
        return result

    def _weight_bytes(self) -> list[Term]:
        a, b = self._largest("W")
        terms = [(a * self.machine.w_bytes, b)]
        if self.layer.bias and self.machine.bias_bytes:
            a, b = self.choices.spread({d: self._pieces(d, "W").largest for d in ("g", "m")})
            terms.append((a * self.machine.bias_bytes, b))
        return terms

    def _largest(self, operand: str, resident: int | None = None, lacks: str = "") -> Term:
        """Elements of the largest tile of an operand."""
        return self.choices.spread({a.dim: a.pieces.largest for a in self._axes(operand, None, resident, lacks)})

    def _lines(self, resident: int) -> list[Term]:
        """Elements of IN in lines."""
        plane = {d: self._pieces(d, "IN").largest for d in ("b", "g", "n")}
        dims = self.skeleton.outside("IN")[-2:]
        steps = [(self._outside(d), self._outside(KERNELS[d])) for d in dims]
        windows_ = [input_windows(self.layer, resident)[d] for d in dims]
        products = line_products([self.core.range(d) for d in dims], steps, windows_)
        return [self.choices.spread({**plane, **dict(zip(dims, pair, strict=True))}) for pair in products]

    def _outside(self, dim: str) -> Ints:
        """The steps of the loops over `dim` outside the Hold of IN."""
        return self._steps[dim][:, : self.skeleton.level(dim, "IN")]

    def _output_bytes(self, a: Ints, b: Ints) -> list[Term]:
        """Bytes of OUT: partial sums while any reduction is cut (results are there at the end), else results."""
        machine = self.machine
        unfinished = max(machine.psum_bytes, machine.out_bytes)
        cut_s, cut_q = (np.zeros(len(x), np.bool_) for x in (a, b))
        for d in sorted(REDUCTION):
            here = self.choices.at(d, (self._trips(d) > 1).astype(np.int64)) > 0
            if AXIS[d] in S_DIMS:
                cut_s |= here
            else:
                cut_q |= here
        kinds = np.where(cut_q, unfinished, machine.out_bytes)
        return [(a * cut_s, b * unfinished), (a * ~cut_s, b * kinds)]

    def capacity(self, footprints: dict[str, list[Term]]) -> dict[str, Bilinear]:
        """Bytes taken in each memory by these footprints, scratch and reserved bytes included."""
        machine, shape = self.machine, self.choices.shape
        ones = (np.ones(shape[0], np.int64), np.ones(shape[1], np.int64))
        terms: dict[str, list[Term]] = {
            name: [(ones[0] * machine.reserved_bytes, ones[1])] for name in machine.memories
        }
        for op, parts in footprints.items():
            copies = machine.buffers(self.skeleton.buffers.get(op))
            terms[machine.memory_of(op)] += [(a * copies, b) for a, b in parts]
        if machine.im2col_rows:
            row = machine.im2col_rows * self.layer.kh * self.layer.kw * machine.in_bytes
            channels = ones[1] * self.layer.n
            if machine.im2col_channels == "tile":
                step = self._nominal("n", self.skeleton.levels("n")) if self._uniform else self._cut("n").largest
                channels = self.choices.spread({"n": step})[1]
            terms["ocm"].append((ones[0] * row, channels))
        return {name: Bilinear.of(parts, shape) for name, parts in terms.items()}


def _both(one: Mask | None, two: Mask) -> Mask:
    return two if one is None else one & two

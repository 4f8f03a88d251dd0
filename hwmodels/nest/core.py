"""What one core moves, computes and stores, as bilinear tables over the steps of its loops.

For one core (its ranges), one skeleton (loop order and hold depths) and lists of candidate chains of steps, every count
is a sum of products of per-dimension vectors. The argument, operand by operand:

* the tiles of an operand are boxes, one per combination of pieces of the dimensions it depends on, each cut as far as
  the loops outside its Hold cut it; a count of a box is a sum of products of per-axis quantities
  (`hwmodels.nest.boxes`), so its sum over all boxes is the same sum of products of per-axis sums. Kernel rows cut the
  input rows once more, so chains of r and i are chosen together, and those of c and j;
* every box is moved once per iteration of the loops outside it down to the innermost real one that the operand depends
  on: a product of trips, once it is known which loop that is (`Skeleton.visits`). It is the last one of either the
  spatial or the channel loops that cut something, so the choices split in products of two masks (`_visits`);
* an input that is broadcast (`Layer.broadcast`) is held where IN is, and depends on fewer dimensions: its boxes are
  those of the tensor that it is, and it is moved by loops of its own. With one element along d, its tile stays while
  loops over d run inside all loops that it depends on, and comes again in each of their iterations elsewhere.

Spatial choices are chains of steps of (b, r with i, c with j), channel choices of (g, m, n); `Choices` lists both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.bilinear import Bilinear, Ints
from hwmodels.nest.boxes import KINDS, Axis, input_windows, runs_of
from hwmodels.nest.choices import AXIS, Q_DIMS, S_DIMS, Choices, Factors, Term, times
from hwmodels.nest.core_pieces import CorePieces, line_products
from hwmodels.nest.skeleton import Core, Skeleton
from instances.machine import Machine
from instances.workload import DIMS, REDUCTION, Layer

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
        for kind, products in runs_of(axes, element, self.machine.transfer_of(operand), frozenset(into)).items():
            for constant, factors in products:
                if constant:
                    a, b = part.masked(self.choices.spread(times(factors, again)))
                    into[kind].append((a if constant * copies == 1 else a * (constant * copies), b))

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
        """Cycles of the whole core: Eq. 7-8 of `tso_burst_slicing` ("tile"), or the true pieces ("array")."""
        layer, unit = self.layer, self.machine.compute
        if unit.model == "none":
            return []
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
        """Eq. 7 for tiles of any sizes: no less than for all of them at once, and a cycle a tile."""
        work = {d: np.array([self._extents[d]], np.int64) for d in (*Q_DIMS, "b")}
        a, b = self.choices.spread(work)
        tiles = np.ones(self.choices.shape[0], np.int64)
        for d in ("r", "i", "c", "j"):
            tiles = tiles * self.choices.at(d, self._trips(d))
        macs = self._extents["r"] * self._extents["c"] * self._extents["i"] * self._extents["j"]
        least = -(-macs // self.machine.compute.macs_per_cycle)
        return [(a * self.layer.inputs * np.maximum(tiles, least), b)]

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
        steps = [(self._outside(d), self._outside({"r": "i", "c": "j"}[d])) for d in dims]
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

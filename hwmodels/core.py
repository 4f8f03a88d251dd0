"""What one core moves, computes and stores, as bilinear tables over tile sizes.

For one core (its ranges), one skeleton (loop order and hold depths) and lists of candidate tile sizes, every count is
a sum of products of per-dimension vectors. The argument, operand by operand:

* the tiles of an operand are boxes, one per combination of pieces of the dimensions it depends on; a count of a box is
  a sum of products of per-axis quantities (`_runs`), so its sum over all boxes is the same sum of products of per-axis
  sums;
* every box is moved once per iteration of the loops that re-fetch it (`Skeleton.revisits`), which depends only on
  which dimensions have more than one trip, hence on a finite pattern that splits the choices (`_visits`).

Spatial choices are (T_b, T_r, T_c), channel choices (T_g, T_m, T_n); `Choices` lists the candidates of both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.bilinear import Bilinear, Ints
from hwmodels.pieces import Pieces, Window, cut, nominal, trips, windows
from hwmodels.skeleton import Core, Skeleton
from instances.machine import Machine
from instances.workload import RELEVANT, Layer

__all__ = ["KINDS", "Q_DIMS", "S_DIMS", "Choices", "CoreTables", "Term", "box_terms", "input_windows"]

S_DIMS = ("b", "r", "c")
Q_DIMS = ("g", "m", "n")
Term = tuple[Ints, Ints]
Factors = Mapping[str, Ints]
#: All kinds of counts that tables hold.
KINDS = frozenset({"calls", "segments", "bursts", "bytes"})


@dataclass(frozen=True)
class Choices:
    """Candidate tiles: `steps[d]` lists the sizes of dimension d; choice i of `s` uses ``steps[d][index[d][i]]``."""

    steps: Mapping[str, Ints]
    index: Mapping[str, Ints]

    @classmethod
    def product(cls, steps: Mapping[str, Ints]) -> Choices:
        """All combinations of the candidate sizes, the last dimension running fastest."""
        index: dict[str, Ints] = {}
        for dims in (S_DIMS, Q_DIMS):
            grids = np.meshgrid(*(np.arange(len(steps[d])) for d in dims), indexing="ij")
            index.update({d: g.ravel() for d, g in zip(dims, grids, strict=True)})
        return cls(steps, index)

    def take(self, s: Ints | None = None, q: Ints | None = None) -> Choices:
        """Keep some of the combinations."""
        keep = {**dict.fromkeys(S_DIMS, s), **dict.fromkeys(Q_DIMS, q)}
        return Choices(self.steps, {d: i if (k := keep[d]) is None else i[k] for d, i in self.index.items()})

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of spatial and of channel choices."""
        return len(self.index["r"]), len(self.index["m"])

    def values(self, dim: str) -> Ints:
        """The tile size of `dim` in every choice."""
        return self.steps[dim][self.index[dim]]

    def tile(self, s: int, q: int) -> dict[str, int]:
        """The tile sizes of spatial choice s with channel choice q."""
        return {d: int(self.steps[d][self.index[d][s if d in S_DIMS else q]]) for d in (*S_DIMS, *Q_DIMS)}

    def spread(self, factors: Factors) -> Term:
        """Turn per-candidate vectors of some dimensions into their products per choice."""
        sides = []
        for dims, size in zip((S_DIMS, Q_DIMS), self.shape, strict=True):
            parts = [
                factors[d][self.index[d]]
                for d in dims
                if d in factors and (len(self.steps[d]) > 1 or factors[d][0] != 1)
            ]
            side = parts[0] if parts else np.ones(size, np.int64)
            for part in parts[1:]:
                side = side * part
            sides.append(side)
        return sides[0], sides[1]


def input_windows(layer: Layer) -> dict[str, Window]:
    """The sliding windows of the two spatial dimensions."""
    return {
        "r": Window(layer.stride_h, (layer.kh - 1) * layer.dilation_h + 1, layer.pad_top, layer.h),
        "c": Window(layer.stride_w, (layer.kw - 1) * layer.dilation_w + 1, layer.pad_left, layer.l),
    }


@dataclass(frozen=True)
class _Axis:
    """One axis of a stored tensor: its extent, and its pieces if a tiled dimension runs along it."""

    extent: int
    dim: str = ""
    pieces: Pieces | None = None


def _runs(axes: list[_Axis], element: int, burst: int, kinds: frozenset[str]) -> dict[str, list[tuple[int, Factors]]]:
    """Sum calls, segments, bursts and bytes over all boxes, as a constant times per-dimension vectors.

    With j the innermost axis along which a box is smaller than the tensor, its runs are the product of its extents
    outside j; all axes inside j are whole, so a run is ``length_j * inner bytes`` long.
    """
    size = prod(a.extent for a in axes if a.pieces is None)
    number, lengths, whole = {}, {}, {}
    for axis in axes:
        if axis.pieces is not None:
            number[axis.dim], lengths[axis.dim] = axis.pieces.number, axis.pieces.sum
            whole[axis.dim] = axis.pieces.full(axis.extent)
    result: dict[str, list[tuple[int, Factors]]] = {kind: [] for kind in kinds}
    if "calls" in kinds:
        result["calls"].append((1, number))
    if "bytes" in kinds:
        result["bytes"].append((element * size, lengths))
    if not kinds & {"segments", "bursts"}:
        return result
    if "segments" in kinds:
        result["segments"].append((1, whole))
    if "bursts" in kinds and burst:
        result["bursts"].append((-(-element * prod(a.extent for a in axes) // burst), whole))
    outer: dict[str, Ints] = {}
    outer_size = 1
    for j, axis in enumerate(axes):
        if axis.pieces is None:
            outer_size *= axis.extent
            continue
        inner = {a.dim: whole[a.dim] for a in axes[j + 1 :] if a.dim}
        run = element * prod(a.extent for a in axes[j + 1 :])
        if axis.extent > 1:
            if "segments" in kinds:
                result["segments"].append((outer_size, {**outer, axis.dim: axis.pieces.partial(axis.extent), **inner}))
            if "bursts" in kinds and burst:
                windows_of = axis.pieces.partial_windows(axis.extent, run, burst)
                result["bursts"].append((outer_size, {**outer, axis.dim: windows_of, **inner}))
        outer[axis.dim] = lengths[axis.dim]
    return result


def _axes(layer: Layer, machine: Machine, tensor: str, pieces: Callable[[str], Pieces]) -> list[_Axis]:
    """The axes of IN, W, OUT (also partial sums) or BIAS in storage order, outermost first."""
    extents = {d: layer.extent(d) for d in (*S_DIMS, *Q_DIMS)}
    if tensor == "IN":
        extents.update(r=layer.h, c=layer.l)
    kernel = [_Axis(layer.kh), _Axis(layer.kw)]
    orders = {
        "IN": "bgnrc" if machine.in_layout == "CHW" else "brcgn",
        "OUT": "bgmrc" if machine.out_layout == "CHW" else "brcgm",
        "W": "gmn" if machine.w_layout == "OIHW" else "gm",
        "BIAS": "gm",
    }
    axes = [_Axis(extents[d], d, pieces(d)) for d in orders[tensor]]
    if tensor == "W":
        axes += kernel if machine.w_layout == "OIHW" else [*kernel, _Axis(extents["n"], "n", pieces("n"))]
    return axes


def box_terms(layer: Layer, machine: Machine, operand: str, tile: Factors, choices: Choices) -> dict[str, list[Term]]:
    """Counts of one nominal tile of `operand` for every choice, as rank-1 terms by kind.

    `tile[d]` is the tile size of dimension d for every candidate; the input tile has its halo, at most the map.
    """
    element = {"IN": machine.in_bytes, "W": machine.w_bytes, "OUT": machine.out_bytes}[operand]
    window = input_windows(layer)

    def pieces(dim: str) -> Pieces:
        length = window[dim].nominal(tile[dim]) if operand == "IN" and dim in window else tile[dim]
        return Pieces(length[:, None], np.ones((len(length), 1), np.int64))

    result: dict[str, list[Term]] = {}
    axes = _axes(layer, machine, operand, pieces)
    for kind, products in _runs(axes, element, machine.transfer.burst_bytes, KINDS).items():
        spread = [(constant, choices.spread(factors)) for constant, factors in products]
        result[kind] = [(a * constant, b) for constant, (a, b) in spread]
    return result


class CoreTables:
    """The tables of one core under one skeleton; see the module docstring."""

    def __init__(self, layer: Layer, machine: Machine, skeleton: Skeleton, core: Core, choices: Choices) -> None:
        self.layer, self.machine, self.skeleton, self.core, self.choices = layer, machine, skeleton, core, choices
        self._uniform = machine.edge_tiles == "uniform"
        self._looped = frozenset(skeleton.order)
        extents = {d: core.extent(d) for d in (*S_DIMS, *Q_DIMS)}
        one = {d: np.array([extents[d]], np.int64) for d in extents}
        self._step = {
            d: np.minimum(choices.steps[d], extents[d])
            if d in self._looped
            else np.repeat(one[d], len(choices.steps[d]))
            for d in extents
        }
        self.trips = {d: trips(extents[d], self._step[d]) for d in extents}
        self._extents = extents

    # ---- tensors ---------------------------------------------------------------------------------------------

    def _pieces(self, dim: str, operand: str) -> Pieces:
        """The pieces of `dim` at the Hold of `operand`: whole if its loop is inside the Hold."""
        inside = dim in self._looped and dim not in self.skeleton.outside(operand)
        if self._uniform:
            return self._nominal_pieces(dim, operand, inside)
        step = np.full_like(self._step[dim], self._extents[dim]) if inside else self._step[dim]
        if operand == "IN" and dim in ("r", "c"):
            return windows(*self.core.range(dim), step, input_windows(self.layer)[dim])
        return cut(self._extents[dim], step)

    def _nominal_pieces(self, dim: str, operand: str, inside: bool) -> Pieces:
        """As many full pieces as the core has, each of the step that the nest states."""
        share = next((i.step for i in reversed(self.skeleton.spatial) if i.dim == dim), self.layer.extent(dim))
        looped = dim in self._looped and not inside
        step = self.choices.steps[dim] if looped else np.full_like(self._step[dim], share)
        count = self.trips[dim] if looped else np.ones_like(self._step[dim])
        window = input_windows(self.layer).get(dim) if operand == "IN" else None
        return nominal(step, count, window)

    def _axes(self, tensor: str) -> list[_Axis]:
        operand = "W" if tensor == "BIAS" else tensor
        return _axes(self.layer, self.machine, tensor, lambda dim: self._pieces(dim, operand))

    # ---- visits ----------------------------------------------------------------------------------------------

    def _visits(self, operand: str) -> list[Term]:
        """How often each box of `operand` is visited, as rank-1 terms.

        A loop over a dimension d that the operand does not depend on multiplies the visits by its trips if some loop
        inside d, still outside the Hold, that the operand does depend on has more than one trip (`Skeleton.revisits`).
        IN and OUT have one such d, a channel dimension; W has the spatial ones, and depends on channel dimensions only.
        """
        loops = self.skeleton.outside(operand)
        relevant = RELEVANT[operand]
        again = [d for d in loops if d not in relevant and int(self.trips[d].max(initial=1)) > 1]
        ones = np.ones(self.choices.shape[0], np.int64), np.ones(self.choices.shape[1], np.int64)
        inner = {d: [e for e in loops[loops.index(d) + 1 :] if e in relevant] for d in again}
        if operand == "W":
            return self._visits_of_weights({d: self._any_cut(inner[d], Q_DIMS) for d in again}, ones)
        if not again:
            return [ones]
        (d,) = again
        trip = self.trips[d][self.choices.index[d]]
        spatial, channel = self._any_cut(inner[d], S_DIMS), self._any_cut(inner[d], Q_DIMS)
        return [(spatial.astype(np.int64), trip), ((~spatial).astype(np.int64), np.where(channel, trip, 1))]

    def _visits_of_weights(self, cut_inside: dict[str, NDArray[np.bool_]], ones: Term) -> list[Term]:
        """Split the channel choices by which spatial loops re-fetch W; each part multiplies by those loops' trips."""
        parts: list[tuple[NDArray[np.bool_], Ints]] = [(np.ones(len(ones[1]), np.bool_), ones[0])]
        for d, inside in cut_inside.items():
            trip = self.trips[d][self.choices.index[d]]
            parts = [
                p for mask, side in parts for p in ((mask & inside, side * trip), (mask & ~inside, side)) if p[0].any()
            ]
        return [(side, mask.astype(np.int64)) for mask, side in parts]

    def _any_cut(self, dims: list[str], side: tuple[str, ...]) -> NDArray[np.bool_]:
        """Per choice of `side`, whether any of `dims` has more than one trip."""
        result = np.zeros(self.choices.shape[0 if side is S_DIMS else 1], np.bool_)
        for d in dims:
            if d in side:
                result |= (self.trips[d] > 1)[self.choices.index[d]]
        return result

    # ---- results ---------------------------------------------------------------------------------------------

    def transfers(
        self, kinds: frozenset[str] = KINDS, alike: dict[str, dict[str, list[Term]]] | None = None
    ) -> dict[str, dict[str, list[Term]]]:
        """Counts by operand row ("IN", "W", "OUT", "PSUM") and kind, as rank-1 terms over the choices.

        `alike` are the rows of a core with equal extents: only IN depends on where the ranges lie.
        """
        layer, machine = self.layer, self.machine
        rows: dict[str, dict[str, list[Term]]] = {op: {k: [] for k in kinds} for op in ("IN", "W", "OUT", "PSUM")}
        self._add(rows["IN"], self._axes("IN"), machine.in_bytes, self._visits("IN"), layer.inputs)
        if alike is not None:
            return {**alike, "IN": rows["IN"]}
        if "W" in layer.operands:
            weights = self._visits("W")
            self._add(rows["W"], self._axes("W"), machine.w_bytes, weights)
            if layer.bias and machine.bias_bytes:
                self._add_bias(rows["W"], weights)
        out = self._axes("OUT")
        once = (np.ones(self.choices.shape[0], np.int64), np.ones(self.choices.shape[1], np.int64))
        self._add(rows["OUT"], out, machine.out_bytes, [once])
        visits = self._visits("OUT")
        # v visits: v - 1 partial writes, and as many reads or, where the first visit reads too, v
        moves = [(a, 2 * b - (1 if machine.psum_first_read else 2)) for a, b in visits]
        self._add(rows["PSUM"], out, machine.psum_bytes, moves)
        return rows

    def _add(
        self, into: dict[str, list[Term]], axes: list[_Axis], element: int, visits: list[Term], copies: int = 1
    ) -> None:
        visits = [(x, y) for x, y in visits if x.any() and y.any()]
        if not visits:
            return
        plain = len(visits) == 1 and bool((visits[0][0] == 1).all() and (visits[0][1] == 1).all())
        for kind, products in _runs(axes, element, self.machine.transfer.burst_bytes, frozenset(into)).items():
            for constant, factors in products:
                if not constant:
                    continue
                a, b = self.choices.spread(factors)
                a = a * (constant * copies)
                into[kind] += [(a, b)] if plain else [(a * x, b * y) for x, y in visits]

    def _add_bias(self, into: dict[str, list[Term]], weights: list[Term]) -> None:
        """Biases ride in the call of the weights: their own segments, bursts and bytes, once per weight tile."""
        spread = self.choices.spread({"n": self._pieces("n", "W").number})[1]
        scratch: dict[str, list[Term]] = {k: [] for k in into if k != "calls"}
        self._add(scratch, self._axes("BIAS"), self.machine.bias_bytes, [(x, y * spread) for x, y in weights])
        for kind, terms in scratch.items():
            into[kind] += terms

    def compute_cycles(self) -> list[Term]:
        """Cycles of the whole core: Eq. 7-8 of `tso_burst_slicing` ("tile"), or the true pieces ("array")."""
        layer, unit = self.layer, self.machine.compute
        taps = layer.kh * layer.kw
        if unit.model == "none":
            return []
        if unit.model == "tile":
            step = {d: self._nominal_pieces(d, "OUT", False).length[:, 0] for d in self._step}
            work = {d: self.trips[d] * (step[d] if d not in ("r", "c") else 1) for d in step}
            a, b = self.choices.spread(work)
            map_tile = step["r"][self.choices.index["r"]] * step["c"][self.choices.index["c"]]
            return [(a * layer.inputs * -(-map_tile * taps // unit.macs_per_cycle), b)]
        lanes = {d: cut(self._extents[d], self._step[d]).sum for d in S_DIMS}
        if layer.m == layer.n == 1:
            lanes["g"] = cut(self._extents["g"], self._step["g"]).ceil_sum(unit.cols)
        else:
            lanes["g"] = cut(self._extents["g"], self._step["g"]).sum
            lanes["m"] = cut(self._extents["m"], self._step["m"]).ceil_sum(unit.rows)
            lanes["n"] = cut(self._extents["n"], self._step["n"]).ceil_sum(unit.cols)
        a, b = self.choices.spread(lanes)
        return [(a * taps * layer.inputs, b)]

    def footprints(self, alike: dict[str, list[Term]] | None = None) -> dict[str, list[Term]]:
        """Largest bytes each operand holds (not doubled), as rank-1 terms; `alike` as in `transfers`."""
        layer, machine = self.layer, self.machine
        out = np.where(self.trips["n"] > 1, machine.psum_bytes, machine.out_bytes)
        bytes_of = {"IN": machine.in_bytes * layer.inputs, "W": machine.w_bytes, "OUT": 1}
        result: dict[str, list[Term]] = {}
        for op in layer.operands if alike is None else ("IN",):
            factors = {a.dim: a.pieces.largest for a in self._axes(op) if a.dim and a.pieces is not None}
            if op == "OUT":
                factors["n"] = out
            a, b = self.choices.spread(factors)
            taps = layer.kh * layer.kw if op == "W" else 1
            result[op] = [(a * bytes_of[op] * taps, b)]
        if alike is not None:
            return {**alike, **result}
        if "W" in result and layer.bias and machine.bias_bytes:
            a, b = self.choices.spread({d: self._pieces(d, "W").largest for d in ("g", "m")})
            result["W"].append((a * machine.bias_bytes, b))
        return result

    def capacity(self, footprints: dict[str, list[Term]]) -> dict[str, Bilinear]:
        """Bytes taken in each memory by these footprints, scratch and reserved bytes included."""
        machine, shape = self.machine, self.choices.shape
        copies = 2 if machine.buffering == "double" else 1
        ones = (np.ones(shape[0], np.int64), np.ones(shape[1], np.int64))
        terms: dict[str, list[Term]] = {
            name: [(ones[0] * machine.reserved_bytes, ones[1])] for name in machine.memories
        }
        for op, parts in footprints.items():
            terms[machine.memory_of(op)] += [(a * copies, b) for a, b in parts]
        if machine.im2col_rows:
            channels = (
                self.choices.spread({"n": self._step["n"]})[1]
                if machine.im2col_channels == "tile"
                else ones[1] * self.layer.n
            )
            row = machine.im2col_rows * self.layer.kh * self.layer.kw * machine.in_bytes
            terms["ocm"].append((ones[0] * row, channels))
        return {name: Bilinear.of(parts, shape) for name, parts in terms.items()}

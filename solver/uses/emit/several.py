"""Layers of several values that come apart: maps of another size, maps read where a grid says, cells, in C.

A map of another size (Resize)
    An element of the result is a sum of elements of a window of the map. What it takes of them is the product of what
    it takes along rows and along columns (`instances.onnx.resize`): two tables, by place and tap. Where an
    element reads its neighbours by itself (`Resample.scattered`), every tap is an input, which the host has gathered.
    Integers are interpolated in whole numbers: what is taken of them counts 1024ths.
Grids (GridSample)
    The host finds the neighbours of every place, and how far the place lies behind the first of them along each axis
    (certile_neighbours of certile_rows.h): columns first, as in a grid. The layer reads both parts of a pixel, then one
    neighbour after the other, and adds what is taken of each, a product of what is taken along columns and along rows.
    An example: 0.25 behind column 3 and 0.5 behind row 1, ``linear`` takes 0.75 * 0.5 of the pixel of row 1 and
    column 3, 0.25 * 0.5 of the one beside it, and as much of those below.
Cells
    An operator of several inputs that stands for several element-wise nodes (`OnnxModel.bodies`) keeps what each input
    gives until the last one is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from instances.network.operators import GRID, Operator, Resample
from instances.network.stores import inputs_of
from instances.network.workload import Layer
from instances.onnx.graph import Node
from instances.onnx.model import OnnxModel
from solver.uses.emit.kinds import FLOATS, require
from solver.uses.emit.numbers import Numbers
from solver.uses.emit.pointwise import body
from solver.uses.emit.text import floats_of, longs, whole_numbers
from solver.uses.emit.values import Value, coordinates_of

#: In so many parts TFLite cuts the distance of two elements of a map of integers.
PARTS = 2**10


@dataclass(frozen=True)
class Resized:
    """A map of another size; `whole`: of integers that are interpolated in whole numbers where that can be."""

    model: OnnxModel
    operator: Resample
    layer: Layer
    whole: bool = False

    @cached_property
    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """What elements of the result take along rows, and along columns: real numbers, or 1024ths."""
        return self._real if self._counted is None else self._counted

    @property
    def linear(self) -> bool:
        """Whether it is interpolated along lines."""
        return bool(self.model.node(self.operator.name).text("coordinates", ""))

    @property
    def counts(self) -> bool:
        """Whether it counts 1024ths."""
        return self._counted is not None

    @property
    def integral(self) -> bool:
        """Whether it takes whole numbers of integers."""
        return self.counts or (self.whole and self.copies)

    @cached_property
    def _counted(self) -> tuple[np.ndarray, np.ndarray] | None:
        """What they take in 1024ths; None where they take other things, or more than a window has."""
        how = self.model.node(self.operator.name).text("coordinates", "")
        if not self.whole or how not in ("asymmetric", "half_pixel", "align_corners"):
            return None
        before = self.model.network.operator(self.operator.inputs[0]).shape[2:]
        found = [_parts(*sizes, how) for sizes in zip(before, self.operator.shape[2:], strict=True)]
        axes = found if self.layer.kind == "eltwise" else map(_windows, found, self._axes)
        return (found[0], found[1]) if all((one.sum(axis=1) == PARTS).all() for one in axes) else None

    @cached_property
    def _axes(self) -> list[tuple[int, int, int, int]]:
        """Along rows, and along columns: blocks, and stride, padding and taps of their windows."""
        layer = self.layer
        return [(layer.r, layer.stride_h, layer.pad_top, layer.kh), (layer.c, layer.stride_w, layer.pad_left, layer.kw)]

    @cached_property
    def _real(self) -> tuple[np.ndarray, np.ndarray]:
        node = self.model.node(self.operator.name)
        require(node.op == "certile.Resample", f"layer {self.layer.name} ({node.op})", "its arithmetic is not known")
        before = self.model.network.operator(self.operator.inputs[0]).shape[2:]
        found = [
            self.model.constant(node.input(k)) if node.input(k) else np.eye(size, dtype=np.float32)
            for k, size in ((1, before[0]), (2, before[1]))
        ]
        return found[0], found[1]

    @property
    def copies(self) -> bool:
        """Whether every element of the result is one of the map: so integers are taken as they are."""
        return all(np.isin(one, (0, 1)).all() and (one.sum(axis=1) == 1).all() for one in self._real)

    def numbers(self, base: Numbers) -> Numbers:
        """A sum of what elements of a window give; those of which nothing is taken are not looked at."""
        down, over = map(_windows, self.matrices, self._axes)
        rows, columns = coordinates_of(self.operator, self.layer)[2:]
        given = f"stage_down[({rows}) * {self.layer.kh} + i] * stage_over[({columns}) * {self.layer.kw} + j]"
        kind = "int32_t" if self.integral else "float"
        text = f"{{{{ const {kind} taken = {given}; if (taken != 0) {{{{ {{row}} += taken * {{value}}; }}}} }}}}"
        tables = self._table("stage_down", down), self._table("stage_over", over)
        return replace(base, combine=text, tables=(*base.tables, *tables))

    def _table(self, name: str, values: np.ndarray) -> str:
        whole = self.integral
        return whole_numbers(name, "int32_t", map(int, values.ravel())) if whole else floats_of(name, values)

    # ---- elements that read their neighbours by themselves ---------------------------------------------------------

    @cached_property
    def taps(self) -> list[tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]]:
        """For every tap, along rows and along columns, which element it is, and what is taken of it."""
        rows, columns = self.matrices
        counts = [int((matrix != 0).sum(axis=1).max()) for matrix in (rows, columns)]
        require(counts[0] * counts[1] <= self.layer.inputs, f"layer {self.layer.name}", "more neighbours than it reads")
        while counts[0] * counts[1] < self.layer.inputs:  # taps of which nothing is taken
            counts[int(self.layer.inputs % (counts[0] * (counts[1] + 1)) == 0)] += 1
        return list(product(_neighbours(rows, counts[0]), _neighbours(columns, counts[1])))

    def gathered(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows and columns of the map that input k is made of."""
        return self.taps[k][0][0], self.taps[k][1][0]

    def scattered(self, base: Numbers) -> Numbers:
        """A sum over inputs, each with what is taken of it."""
        tables, each = list[str](), list[str]()
        for k, ((_, down), (_, over)) in enumerate(self.taps):
            tables += [self._table(f"stage_down_{k}", down), self._table(f"stage_over_{k}", over)]
            each.append(f"{{row}} += stage_down_{k}[r] * stage_over_{k}[c] * {{value}};")
        return replace(base, each=tuple(each), tables=(*base.tables, *tables))


def _parts(before: int, after: int, how: str) -> np.ndarray:
    """By element of a result the 1024ths that it takes of elements of a map, as TFLite rounds their places.

    Sources: resize_bilinear.h of TFLite (ResizeBilinearInteger).
    """
    corners = how == "align_corners" and after > 1
    one, other = (before - 1, after - 1) if corners else (before, after)
    step = (PARTS * one + other // 2) // other
    found = np.zeros((after, before), np.int64)
    for k in range(after):
        place = k * step + (step // 2 - PARTS // 2 if how == "half_pixel" else 0)
        low, high = max(place, 0) // PARTS, -(-place // PARTS)
        if low < before:
            found[k, low] += PARTS * (low + 1) - place
            found[k, min(high, before - 1)] += place - PARTS * low
    return found


def _windows(matrix: np.ndarray, axis: tuple[int, int, int, int]) -> np.ndarray:
    """Of every element of a result what it takes of the elements of its block's window, in their order."""
    blocks, stride, pad, taps = axis
    up = len(matrix) // blocks
    found = np.zeros((len(matrix), taps), matrix.dtype)
    for at in range(len(matrix)):
        first = at // up * stride - pad
        inside = slice(max(first, 0), min(first + taps, matrix.shape[1]))
        found[at, inside.start - first : inside.stop - first] = matrix[at, inside]
    return found


def _neighbours(matrix: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of every element of a result the places and weights of all that it takes, as many for each."""
    order = np.argsort(matrix == 0, axis=1, kind="stable")[:, :count]
    order = np.pad(order, ((0, 0), (0, count - order.shape[1])), mode="edge")
    used = (matrix != 0).sum(axis=1)
    weights = [np.where(k < used, matrix[np.arange(len(matrix)), order[:, k]], 0) for k in range(count)]
    return [(order[:, k], weights[k]) for k in range(count)]


#: What lies beyond the border, as certile_rows.h numbers it.
_PADDING = ("zeros", "border", "reflection")
#: What is taken of neighbour k of a place that lies x behind neighbour 0 (cubic: 1), by interpolation.
_TAKEN = {
    "nearest": ["return 1;"],
    "linear": ["return k ? x : 1 - x;"],
    "cubic": [
        "const float d = k < 2 ? x + (float)(1 - k) : (float)(k - 1) - x;",
        "return k == 1 || k == 2 ? (1.25f * d - 2.25f) * d * d + 1 : ((-0.75f * d + 3.75f) * d - 6) * d + 3;",
    ],
}  # fmt: skip


def is_gridded(operator: Operator) -> bool:
    """Whether it reads a map where a grid says."""
    return isinstance(operator, Resample) and len(operator.inputs) > 1


@dataclass(frozen=True)
class Gridded:
    """A map that is read where a grid says."""

    operator: Resample
    node: Node

    def check(self, kinds: Sequence[str]) -> None:
        """Raise InputError unless C has the mode, and map and grid are of single precision."""
        where = f"layer {self.operator.name} ({self.node.op})"
        said = f"places in a map of {' and '.join(sorted(set(kinds)))} elements: in_bytes 4 and real numbers are needed"
        require(all(kind == FLOATS[0] for kind in kinds), where, said)
        require(self._padding in _PADDING, where, f"padding_mode {self._padding}")

    @property
    def _padding(self) -> str:
        return self.node.text("padding_mode", _PADDING[0])

    def numbers(self, base: Numbers) -> Numbers:
        """A sum over neighbours, each with what is taken of it; the parts of a pixel come first."""
        taps = self.operator.taps
        each = [f"{{at_{k}}} = {{value}};" for k in range(GRID)]
        each += [
            f"{{row}} += stage_taken({k % taps}, {{at_0}}) * stage_taken({k // taps}, {{at_1}}) * {{value}};"
            for k in range(taps * taps)
        ]
        head = "static inline float stage_taken(int k, float x)"
        body = ["(void)k, (void)x;", *_TAKEN[self.operator.fn]]
        return replace(base, each=tuple(each), tables=(*base.tables, head, "{", *(f"    {line}" for line in body), "}"))

    def found(
        self, near: Sequence[Value], parts: Sequence[Value], source: Value, grid: Value, place: Callable[[Value], str]
    ) -> list[str]:
        """The call that finds all neighbours and parts; neighbours have one pitch, parts lie one after the other."""
        size = (*source.shape, *self.operator.size)
        corners = int(bool(self.node.integer("align_corners", 0)))
        return [
            f"certile_neighbours((unsigned char *const[]){{{', '.join(map(place, near))}}}, {longs(near[0].pitch)},",
            f"                   (unsigned char *const[]){{{', '.join(map(place, parts))}}},",
            f"                   {place(source)}, {longs(source.pitch)}, {place(grid)}, {longs(grid.pitch)},",
            f"                   {longs(size)}, {self.operator.taps}, {_PADDING.index(self._padding)}, {corners});",
        ]


def cell(model: OnnxModel, operator: Operator, layer: Layer, base: Numbers) -> Numbers:
    """Return the numbers of an operator that stands for several nodes of several inputs.

    Raises InputError if an input has another shape than the result, or a function is not known.
    """
    names: Sequence[str] = inputs_of(model.network, operator, layer)
    operands: dict[str, str] = {}
    for k, name in enumerate(names):
        operands.setdefault(model.tensor_of[name], f"{{at_{k}}}" if k < len(names) - 1 else "last")
    marked = {tensor: f"OPERAND_{k}" for k, tensor in enumerate(operands)}  # texts that hold no braces yet
    place = coordinates_of(operator, layer)
    made = body(model, model.body(operator.name), marked, operator.shape, "stage_cell", place)
    final = " ".join(made.statements).replace("{", "{{").replace("}", "}}")
    for tensor, mark in reversed(marked.items()):
        final = final.replace(mark, operands[tensor])
    final = " ".join([final, *(f"(void){{at_{k}}};" for k in range(len(names) - 1))])
    each = [f"{{at_{k}}} = {{value}};" for k in range(len(names) - 1)]
    last = f"{{{{ const float last = {{value}}; float x; {final} (void)last; {{row}} = x; }}}}"
    return replace(base, each=(*each, last), tables=(*base.tables, *made.lines()))


def is_cell(model: OnnxModel, operator: Operator) -> bool:
    """Whether an operator stands for several nodes of several inputs."""
    return bool(model.body(operator.name)) and len(operator.inputs) > 1

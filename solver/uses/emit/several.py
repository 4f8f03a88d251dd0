"""Layers of several values that come apart: maps of another size, maps read where a grid says, cells, in C.

A map of another size (Resize)
    An element of the result is a sum of elements of a window of the map. What it takes of them is the product of what
    it takes along rows and along columns (`instances.onnx.resize`): two tables, by place and tap. Where an
    element reads its neighbours by itself (`Resample.scattered`), every tap is an input, which the host has gathered.
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
from solver.uses.emit.text import floats_of, longs
from solver.uses.emit.values import Value, coordinates_of


@dataclass(frozen=True)
class Resized:
    """A map of another size."""

    model: OnnxModel
    operator: Resample
    layer: Layer

    @cached_property
    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """What elements of the result take along rows, and along columns."""
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
        return all(np.isin(one, (0, 1)).all() and (one.sum(axis=1) == 1).all() for one in self.matrices)

    def numbers(self, base: Numbers) -> Numbers:
        """A sum of what elements of a window give; those of which nothing is taken are not looked at."""
        axes = ((self.layer.r, self.layer.stride_h, self.layer.pad_top, self.layer.kh),
                (self.layer.c, self.layer.stride_w, self.layer.pad_left, self.layer.kw))  # fmt: skip
        down, over = (_windows(matrix, *axis) for matrix, axis in zip(self.matrices, axes, strict=True))
        rows, columns = coordinates_of(self.operator, self.layer)[2:]
        given = f"stage_down[({rows}) * {self.layer.kh} + i] * stage_over[({columns}) * {self.layer.kw} + j]"
        text = f"{{{{ const float taken = {given}; if (taken != 0) {{{{ {{row}} += taken * {{value}}; }}}} }}}}"
        tables = floats_of("stage_down", down), floats_of("stage_over", over)
        return replace(base, combine=text, tables=(*base.tables, *tables))

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
            tables += [floats_of(f"stage_down_{k}", down), floats_of(f"stage_over_{k}", over)]
            each.append(f"{{row}} += stage_down_{k}[r] * stage_over_{k}[c] * {{value}};")
        return replace(base, each=tuple(each), tables=(*base.tables, *tables))


def _windows(matrix: np.ndarray, blocks: int, stride: int, pad: int, taps: int) -> np.ndarray:
    """Of every element of a result what it takes of the elements of its block's window, in their order."""
    up = len(matrix) // blocks
    found = np.zeros((len(matrix), taps), np.float32)
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

"""Quantised numbers in C: integers with a scale and a zero point, how they are rounded, and layers that sum integers.

An integer k stands for ``(k - zero) * scale``. A layer whose inputs are dequantised with one scale sums products of
integers less their zero points, exactly: what lies beyond the border of a map adds nothing, as its real value is 0. A
complete sum is multiplied by one float, ``scale of inputs * scale of weights / scale of results`` (for every channel
where weights have one), clamped, rounded half to even, and the zero point is added: as ONNX says and onnxruntime does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from instances.errors import InputError
from instances.onnx.graph import Node
from instances.onnx.model import OnnxModel, Quantised
from solver.uses.emit.kinds import BYTES, KINDS, QUANTISED, dtype, limits

QUANTISERS = ("QuantizeLinear", "DequantizeLinear")


@dataclass(frozen=True, eq=False)
class Grid:
    """The real numbers that the integers of a kind stand for; scales and zero points along an axis, or one of each."""

    kind: str
    scale: np.ndarray
    zero: np.ndarray
    axis: int | None

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest integer."""
        return limits(self.kind)

    @property
    def one_zero(self) -> int:
        """The zero point, where there is one."""
        return int(self.zero[0])


def grid_of(model: OnnxModel, node: Node) -> Grid:
    """Return what a QuantizeLinear or DequantizeLinear says of its integers.

    Raises
    ------
    InputError
        If that depends on the data, or differs between blocks.
    """
    where = f"operator {node.label} ({node.op})"
    for k in (1, 2):
        if node.input(k) and not model.is_constant(node.input(k)):
            raise InputError(f"{where}: its scale depends on the data: no C is written")
    scale = model.constant(node.input(1)).astype(np.float32)
    zero = model.constant(node.input(2)) if node.input(2) else np.zeros(1, node.element("output_dtype", "uint8"))
    if scale.ndim > 1 or node.integer("block_size", 0):
        raise InputError(f"{where}: a scale for every block: no C is written")
    name = str(zero.dtype)
    if name not in KINDS or zero.dtype.kind not in "iu":
        raise InputError(f"{where}: elements of {name}: no C is written")
    along = node.integer("axis", 1) if scale.size > 1 else None
    zeros = np.broadcast_to(zero.reshape(-1).astype(np.int64), scale.size)
    return Grid(KINDS[name], scale.reshape(-1), zeros, along)


def grid_around(values: np.ndarray, size: int) -> Grid | None:
    """Return the grid around 0 of signed integers of so many bytes that ends at the largest value; None if C has none.

    Of constants that stay real numbers in a quantised model: each is off by half a step of its own at most.
    """
    kind = next((kind for kind in ("i8", "i16") if BYTES[kind] == size), None)
    if kind is None:
        return None
    largest = float(np.abs(values).max(initial=0)) or 1.0
    return Grid(kind, np.array([largest / limits(kind)[1]], np.float32), np.zeros(1, np.int64), None)


def grid_in_file(found: Quantised, size: int) -> Grid | None:
    """Return the grid of a constant that the file has quantised, in integers of so many bytes; None if none hold it.

    Integers of another size keep their values, scale and zero point where they all fit.
    """
    least, most = (int(end) for end in (found.integers.min(initial=0), found.integers.max(initial=0)))
    own = KINDS.get(str(found.integers.dtype), "")
    kinds = [kind for kind in (own, *QUANTISED) if BYTES.get(kind) == size]
    fits = [kind for kind in kinds if limits(kind)[0] <= least and most <= limits(kind)[1]]
    if not fits or found.scale.dtype != np.float32 or not (found.scale >= np.finfo(np.float32).tiny).all():
        return None
    return Grid(fits[0], found.scale, found.zero.astype(np.int64), found.axis)


def rounded(values: np.ndarray, grid: Grid) -> np.ndarray:
    """Return the integers of real numbers on a grid."""
    along = [1] * values.ndim
    if grid.axis is not None:
        along[grid.axis] = -1
    scale, zero = (x.reshape(along) if grid.axis is not None else x[0] for x in (grid.scale, grid.zero))
    found = np.rint(values.astype(np.float32) / scale) + zero
    return np.asarray(np.clip(found, *grid.limits), dtype(grid.kind))

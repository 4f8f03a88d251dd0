"""A layer as an NDRange: parallel and temporal indices, and operands whose axes are affine in them.

``C(parallel) = sum over temporal of A(affine) * B(affine)``, the form of `vectormesh` Eq. 1 to 3. It is a view of the
same `Layer` that every other formulation plans: indices are the lines of its loop nest, in the order of `DIMS`.

=====================  ==============================================================================================
workload               operands, result
=====================  ==============================================================================================
matrix product         IN(r, n), W(m, n); OUT(m, r): Eq. 1 (groups g: a batch of products)
convolution            IN(n, S*r + D*i - P, S*c + D*j - P), W(m, n, i, j); OUT(m, r, c): Eq. 2; depthwise: g instead of
                       m and n; dilated: D; sub-pixel: the sub-pixels are among the m
spatial matching       IN(n, r + D*i - P, c + D*j - P), W(n, r, c); OUT(r, c, i, j): Eq. 3, i and j are parallel here
=====================  ==============================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from instances.errors import InputError
from instances.network.workload import DIMS, Layer


@dataclass(frozen=True)
class Axis:
    """``offset + sum of step*index``; elements outside 0 .. size-1 are padding."""

    steps: dict[str, int]
    """By index."""
    offset: int
    size: int


@dataclass(frozen=True)
class Operand:
    """A tensor: its name and its axes, outermost first."""

    name: str
    axes: tuple[Axis, ...]

    def depends(self, index: str) -> bool:
        """Whether the derivative of the access with respect to an index is not zero (the rule under Eq. 5)."""
        return any(index in axis.steps for axis in self.axes)


@dataclass(frozen=True)
class NDRange:
    """A workload."""

    layer: Layer
    sizes: dict[str, int]
    """Of all indices, in the order of `DIMS`."""
    temporal: frozenset[str]
    """The indices that are summed over; the others are parallel."""
    inputs: tuple[Operand, Operand]
    """IN and W."""

    @cached_property
    def parallel(self) -> tuple[str, ...]:
        """The parallel indices."""
        return tuple(d for d in self.sizes if d not in self.temporal)

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Indices that meet in an axis, together: (r, i) and (c, j), the others alone."""
        return (("b",), ("g",), ("m",), ("n",), ("r", "i"), ("c", "j"))

    @property
    def results(self) -> int:
        """Elements of the result."""
        return prod(self.sizes[d] for d in self.parallel)


def ndrange(layer: Layer) -> NDRange:
    """Return the NDRange of a layer that multiplies; raises InputError for pooling and element-wise layers."""
    if layer.weights == "none":
        raise InputError(f"layer {layer.name} ({layer.kind}) has no products of two operands: problem mesh needs them")
    rows = Axis({"r": layer.stride_h, "i": layer.dilation_h}, -layer.pad_top, layer.h)
    columns = Axis({"c": layer.stride_w, "j": layer.dilation_w}, -layer.pad_left, layer.l)
    given = Operand("IN", (*(_plain(layer, d) for d in ("b", "g", "n")), rows, columns))
    matching = layer.kind == "correlation"
    weights = Operand("W", tuple(_plain(layer, d) for d in (("b", "n", "r", "c") if matching else "gmnij")))
    temporal = frozenset({"n"} if matching else {"n", "i", "j"})
    return NDRange(layer, {d: layer.extent(d) for d in DIMS}, temporal, (given, weights))


def _plain(layer: Layer, dim: str) -> Axis:
    return Axis({dim: 1}, 0, layer.extent(dim))

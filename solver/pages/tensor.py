"""Tiles drawn on their tensors: what of IN, W, OUT lies on chip at a time, tensors as boxes in oblique projection.

Every axis has a scale of its own (length grows with the size to the power 0.4), so that 2,048 channels of one pixel
can be seen; along each axis the part that the tile takes is true to scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from hwmodels.nest.buffers import Buffer
from instances.workload import Layer
from solver.pages.data import Drawing, Label, Polygon, Table

_GROWTH, _LONGEST, _SLANT, _SPACE, _NARROWEST = 0.4, 4.0, 0.45, 1.4, 4.2


@dataclass(frozen=True)
class Tensor:
    """A tensor and its tile: columns, rows and channels (of weights: kernel, input and output channels)."""

    name: str
    words: tuple[str, str, str]
    whole: tuple[int, int, int]
    tile: tuple[int, int, int]

    @property
    def part(self) -> float:
        """The part of the tensor that the tile is."""
        return prod(self.tile) / prod(self.whole)


def tensors(layer: Layer, placed: Sequence[Buffer]) -> tuple[Tensor, ...]:
    """Return the operands of a layer with the tiles that have a buffer."""
    images = layer.b * layer.g
    shapes: dict[str, tuple[tuple[str, str, str], tuple[int, int, int], tuple[str, str, str]]] = {
        "IN": (("columns", "rows", "channels"), (layer.l, layer.h, images * layer.n), ("c", "r", "bgn")),
        "W": (("kernel", "inputs", "outputs"), (layer.kh * layer.kw, layer.n, layer.g * layer.m), ("ij", "n", "gm")),
        "OUT": (("columns", "rows", "channels"), (layer.c, layer.r, images * layer.m), ("c", "r", "bgm")),
    }
    found, seen = [], set[str]()
    for buffer in placed:
        operand = buffer.name.rstrip("0123456789")
        if operand in shapes and operand not in seen:
            seen.add(operand)
            words, whole, dims = shapes[operand]
            sizes = [prod(buffer.extents.get(d, 1) for d in axis) for axis in dims]
            tile = (min(sizes[0], whole[0]), min(sizes[1], whole[1]), min(sizes[2], whole[2]))
            found.append(Tensor(operand, words, whole, tile))
    return tuple(sorted(found, key=lambda one: list(shapes).index(one.name)))


def tile_drawing(key: str, title: str, found: Sequence[Tensor]) -> Drawing:
    """Return the drawing of some tensors side by side."""
    polygons, labels, left = list[Polygon](), list[Label](), 0.0
    for number, tensor in enumerate(found):
        longest = max(size**_GROWTH for size in tensor.whole)
        columns, rows, depth = (max(0.3, _LONGEST * size**_GROWTH / longest) for size in tensor.whole)
        size = (columns, rows, depth * _SLANT)
        mine = [length * t / w for length, t, w in zip(size, tensor.tile, tensor.whole, strict=True)]
        polygons += [Polygon(face, number) for face in _faces(left, rows, size)]
        polygons += [Polygon(face, number, filled=True) for face in _faces(left, rows, (mine[0], mine[1], mine[2]))]
        width = max(columns + depth * _SLANT, _NARROWEST)
        labels += [
            Label(left + width / 2, -0.5, tensor.name, bold=True),
            Label(left + width / 2, -1.15, " x ".join(map(str, tensor.whole))),
            Label(left + width / 2, -1.8, f"tile {' x '.join(map(str, tensor.tile))}"),
        ]
        left += width + _SPACE
    axes = "; ".join(f"{one.name}: {' x '.join(one.words)}" for one in found)
    caption = (
        f"The filled part lies on chip at a time, at its largest. {axes}. Every axis has a scale of its own; along "
        "each the part is true."
    )
    return Drawing(
        key, title, caption, tuple(one.name for one in found), tuple(polygons), tuple(labels), _numbers(found)
    )


def _faces(left: float, top: float, size: tuple[float, float, float]) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Front, top and right side of a box whose front has its upper left corner at (left, top)."""
    width, height, slant = size
    right, low, high = left + width, top - height, top + slant
    front = ((left, low), (right, low), (right, top), (left, top))
    above = ((left, top), (right, top), (right + slant, high), (left + slant, high))
    side = ((right, low), (right, top), (right + slant, high), (right + slant, low + slant))
    return front, above, side


def _numbers(found: Sequence[Tensor]) -> Table:
    rows = tuple(
        (
            one.name,
            " x ".join(one.words),
            " x ".join(map(str, one.whole)),
            " x ".join(map(str, one.tile)),
            100 * one.part,
        )
        for one in found
    )
    return Table(("tensor", "axes", "size", "tile", "part on chip (%)"), rows)

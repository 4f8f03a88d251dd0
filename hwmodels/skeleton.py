"""A nest without its tile sizes: spatial cuts, the order of the tile loops and the depth of every Hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from instances.errors import InputError
from instances.workload import DIMS, RELEVANT, Layer

__all__ = ["Core", "Skeleton", "cores", "skeleton_of"]

Range = tuple[int, int]


@dataclass(frozen=True)
class Skeleton:
    """Spatial cuts, then tile loops in `order`, each dimension at most once.

    Attributes
    ----------
    spatial : tuple of Spatial
    order : tuple of str
        The looped dimensions, outermost first.
    depth : dict of str to int
        For each operand, how many of the loops are outside its Hold.
    """

    spatial: tuple[Spatial, ...]
    order: tuple[str, ...]
    depth: Mapping[str, int]

    def outside(self, operand: str) -> tuple[str, ...]:
        """The loops outside the Hold of `operand`, outermost first."""
        return self.order[: self.depth[operand]]

    def nest(self, tile: Mapping[str, int]) -> Nest:
        """Return the nest with these tile sizes."""
        items: list[Item] = list(self.spatial)
        for position in range(len(self.order) + 1):
            items += [Hold(op) for op, depth in self.depth.items() if depth == position]
            if position < len(self.order):
                dim = self.order[position]
                items.append(Loop(dim, tile[dim]))
        return Nest(tuple(items))

    def revisits(self, operand: str, cut: frozenset[str]) -> frozenset[str]:
        """Return the cut dimensions that re-fetch `operand` though it does not depend on them.

        `cut` are the dimensions with more than one trip. A loop re-fetches when it lies outside the Hold and
        outside the innermost loop there that the operand depends on (docs/nest.md); loops of one trip are no loops.
        """
        loops = [d for d in self.outside(operand) if d in cut]
        while loops and loops[-1] not in RELEVANT[operand]:
            loops.pop()
        return frozenset(loops) - RELEVANT[operand]


def skeleton_of(layer: Layer, nest: Nest) -> Skeleton:
    """Read the skeleton of a nest.

    Raises
    ------
    InputError
        If the nest loops a dimension twice, which the closed forms of this version do not price.
    """
    nest.validate_for(layer)
    spatial = tuple(i for i in nest.items if isinstance(i, Spatial))
    order: list[str] = []
    depth: dict[str, int] = {}
    for item in nest.items:
        if isinstance(item, Hold):
            depth[item.operand] = len(order)
        elif isinstance(item, Loop):
            if item.dim in order:
                raise InputError(f"nest: dimension {item.dim} is looped twice; this version loops each dimension once")
            order.append(item.dim)
        elif order or depth:
            raise InputError("nest: a spatial item stands inside a loop or hold; spatial items come first")
    return Skeleton(spatial, tuple(order), depth)


@dataclass(frozen=True, eq=False)
class Core:
    """A core's share of the layer: the half-open range of every dimension; compared by identity, cheap to hash."""

    tle: int
    ranges: tuple[tuple[str, Range], ...]

    @cached_property
    def _range_of(self) -> dict[str, Range]:
        return dict(self.ranges)

    def range(self, dim: str) -> Range:
        """The core's range of `dim`."""
        return self._range_of[dim]

    def extent(self, dim: str) -> int:
        """The size of the core's range of `dim`."""
        lo, hi = self.range(dim)
        return hi - lo


def cores(layer: Layer, spatial: tuple[Spatial, ...]) -> tuple[Core, ...]:
    """Return every core that has work, cluster by cluster."""
    return _cores(tuple((d, layer.extent(d)) for d in DIMS), spatial)


@lru_cache(maxsize=1024)
def _cores(extents: tuple[tuple[str, int], ...], spatial: tuple[Spatial, ...]) -> tuple[Core, ...]:
    grid: list[tuple[int, dict[str, Range]]] = [(0, {d: (0, e) for d, e in extents})]
    for item in spatial:
        grown = []
        for tle, ranges in grid:
            lo, hi = ranges[item.dim]
            pieces = [(a, min(a + item.step, hi)) for a in range(lo, hi, item.step)]
            for i, piece in enumerate(pieces):
                number = tle * len(pieces) + i if item.over == "tle" else tle
                grown.append((number, {**ranges, item.dim: piece}))
        grid = grown
    return tuple(Core(tle, tuple(ranges.items())) for tle, ranges in grid)

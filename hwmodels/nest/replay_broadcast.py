"""Inputs of an element-wise layer that are broadcast, on integers: each in a buffer of its own and fetched alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hwmodels.nest.replay_tiles import Box, Buffer, Tensor, at_box
from instances.workload import RELEVANT, Layer

Ranges = Mapping[str, tuple[int, int]]
#: The dimension along each axis of an input (batch, groups, channels of a group, rows, columns).
_AXES = "bgnrc"


def maps_of(layer: Layer, draw: Callable[[tuple[int, ...]], Tensor]) -> tuple[Tensor, ...]:
    """Draw the inputs of a layer, with one element along every dimension that they lack."""
    sizes = {"b": layer.b, "g": layer.g, "n": layer.n, "r": layer.h, "c": layer.l}
    return tuple(draw(tuple(1 if d in lacks else sizes[d] for d in _AXES)) for lacks in layer.patterns)


def spread(tensor: Tensor, layer: Layer) -> Tensor:
    """The input with the shape of the result."""
    return np.broadcast_to(tensor, (layer.b, layer.g, layer.n, layer.h, layer.l))


class Apart:
    """The buffers of all inputs, each with the iteration for which it was fetched.

    Parameters
    ----------
    maps : sequence of arrays
        The inputs off the chip.
    cutting : sequence of (int, str)
        The loops outside the Hold of IN that cut something: their place in the nest, and their dimension.
    snake : bool
        Whether an input is fetched wherever its tile is another one.
    """

    def __init__(self, layer: Layer, maps: Sequence[Tensor], cutting: Sequence[tuple[int, str]], snake: bool) -> None:
        self.layer, self.maps, self.snake = layer, maps, snake
        self.mine = [RELEVANT["IN"].difference(lacks) for lacks in layer.patterns]
        self.fetching = [max((at + 1 for at, d in cutting if d in mine), default=0) for mine in self.mine]
        self.visits: list[Ranges | None] = [None] * len(maps)
        self.held: dict[int, Buffer] = {}

    def bring(self, passed: Sequence[Ranges], here: Ranges) -> int:
        """Fetch what is needed at this moment and is not there; return how many transfers that took.

        `passed` are the ranges after every item of the nest that was passed, `here` those at the Hold.
        """
        calls = 0
        for k, tensor in enumerate(self.maps):
            visit = {d: here[d] for d in self.mine[k]} if self.snake else passed[self.fetching[k]]
            if visit != self.visits[k]:
                box = self._box(k, here, loaded=True)
                self.held[k] = Buffer(box, at_box(tensor, box).copy())
                calls += self.held[k].content.size > 0
                self.visits[k] = visit
        return calls

    def _box(self, k: int, ranges: Ranges, *, loaded: bool) -> Box:
        """The part of an input that some ranges need; of its rows those that are loaded, or that are on chip."""
        lacks, resident = self.layer.patterns[k], self.layer.residents[k]
        box = []
        for d in _AXES:
            lo, hi = (0, 1) if d in lacks else ranges[d]
            if d == "r":
                lo, hi = (max(lo, resident), max(hi, resident)) if loaded else (min(lo, resident), min(hi, resident))
            box.append((lo, hi))
        return tuple(box)

    def read(self, ranges: Ranges) -> Tensor:
        """The sum of all inputs over some ranges, read from where they are on chip."""
        sizes = tuple(ranges[d][1] - ranges[d][0] for d in _AXES)
        total = np.zeros(sizes, np.int64)
        for k, tensor in enumerate(self.maps):
            rows = [at_box(tensor, self._box(k, ranges, loaded=False))]
            beyond = self._box(k, ranges, loaded=True)
            if beyond[3][0] < beyond[3][1]:
                rows.append(self.held[k].view(beyond))
            total += np.concatenate(rows, axis=3)
        return total

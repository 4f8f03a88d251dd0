"""The options of a group: strips, modes and skips, with what each of them moves in how much room.

Weights
    A layer with W_l bytes of weights runs in n_l visits. In f bytes beside the streams, R_l bytes of it stay; the rest
    is streamed, a filter at a time, in every visit through one buffer of sigma bytes, the largest filter of those
    layers that do not stay whole. So a group loads
        min over sigma:  sum_l W_l + (n_l - 1) (W_l - R_l),   sum_l R_l + sigma <= f,   R_l = W_l where a filter > sigma
    The best R for a sigma fills the room in the order of n_l: exact, as R_l is any number of bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formulations.fusion.groups import Group
from formulations.fusion.strips import Ints, Mode

NEVER = 2**60


@dataclass(frozen=True)
class Option:
    """How a group runs: strip height and width of its last map, the halo along each axis, what is read twice."""

    height: int
    width: int
    rows: Mode
    columns: Mode
    twice: frozenset[int] = frozenset()

    @property
    def recomputes(self) -> bool:
        """Whether something is computed again."""
        return "recompute" in (self.rows, self.columns)


@dataclass(frozen=True)
class Weights:
    """The weights of the layers of a group, in bytes, and the bytes of a filter of each."""

    bytes: tuple[int, ...]
    filters: tuple[int, ...]

    def loaded(self, visits: Sequence[int], room: Ints) -> Ints:
        """Return the least bytes that are loaded in so much room; `NEVER` where a filter finds none."""
        total = sum(w * n for w, n in zip(self.bytes, visits, strict=True))
        best = np.full(room.shape, NEVER, np.int64)
        most = int(room.max())
        for sigma, kept, rest in self._streamed:
            must = sum(self.bytes[k] for k in kept) + sigma
            if must > most:
                continue
            order = sorted((k for k in rest if visits[k] > 1), key=lambda k: -visits[k])
            sizes = np.cumsum([0, *(self.bytes[k] for k in order)])
            gains = np.array([*(visits[k] - 1 for k in order), 0])
            saved = np.cumsum([0, *(self.bytes[k] * (visits[k] - 1) for k in order)])
            left = room - must
            free = np.maximum(left, 0)
            place = np.searchsorted(sizes, free, side="right") - 1
            gained = saved[place] + (free - sizes[place]) * gains[place]
            always = sum(self.bytes[k] * (visits[k] - 1) for k in kept)
            best = np.where(left >= 0, np.minimum(best, total - always - gained), best)
        return best

    def resident(self, visits: Sequence[int], room: int) -> tuple[int, ...]:
        """Return the bytes of every layer's weights that stay, for the least loads."""
        most, chosen = NEVER, tuple(0 for _ in self.bytes)
        for sigma, kept, rest in self._streamed:
            stay = [w if k in kept else 0 for k, w in enumerate(self.bytes)]
            left = room - sigma - sum(stay)
            if left < 0:
                continue
            for k in sorted((k for k in rest if visits[k] > 1), key=lambda k: -visits[k]):
                stay[k] = min(left, self.bytes[k])
                left -= stay[k]
            moved = sum(w + (n - 1) * (w - r) for w, n, r in zip(self.bytes, visits, stay, strict=True))
            if moved < most:
                most, chosen = moved, tuple(stay)
        return chosen

    @cached_property
    def buffers(self) -> list[tuple[int, int]]:
        """Every buffer for streaming with the bytes that it takes together with weights that must stay for it."""
        taken = [(sigma, sigma + sum(self.bytes[k] for k in kept)) for sigma, kept, _ in self._streamed]
        return [(sigma, must) for at, (sigma, must) in enumerate(taken) if all(must < m for _, m in taken[:at])]

    @cached_property
    def _streamed(self) -> list[tuple[int, frozenset[int], tuple[int, ...]]]:
        """Every buffer for streaming, with the layers that must stay for it, and the others."""
        weighty = [k for k, w in enumerate(self.bytes) if w]
        return [
            (
                sigma, frozenset(k for k in weighty if self.filters[k] > sigma),
                tuple(k for k in weighty if self.filters[k] <= sigma),
            )
            for sigma in sorted({0, *(self.filters[k] for k in weighty)})
        ]  # fmt: skip


def weights_of(group: Group, sizes: Sequence[int]) -> Weights:
    """Return the weights of a group; `sizes`: the bytes of those of every layer of the network.

    Weights that several of its layers have are those of the first (`Group.together`: in the visits of all).
    """
    mine = [sizes[t] if owner == k else 0 for k, (t, owner) in enumerate(zip(group.layers, group.owners, strict=True))]
    layers = [group.net.layers[t] for t in group.layers]
    return Weights(tuple(mine), tuple(size // (x.g * x.m) for size, x in zip(mine, layers, strict=True)))

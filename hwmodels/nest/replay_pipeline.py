"""The double-buffered pipeline of one core, block by block of consecutive steps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Moved", "Pipeline"]

Ints = npt.NDArray[np.int64]


class Moved:
    """Ticks that each step of a block loads and stores, apart for operands with one buffer and with two."""

    def __init__(self, size: int) -> None:
        self.load = {number: np.zeros(size, np.int64) for number in (1, 2)}
        self.store = {number: np.zeros(size + 1, np.int64) for number in (1, 2)}


class Pipeline:
    """Double buffering: while step k computes, step k+1 is loaded and the result of step k-1 is stored.

    Operands with a single buffer are loaded and stored between the steps, which adds up.
    """

    def __init__(self) -> None:
        self.time, self.pending, self.stored = 0, -1, 0

    def take(self, moved: Moved, compute: Ints) -> None:
        """Advance by one block; arrays as in `replay_walk`: ``store[0]`` is the step before the block."""
        load, store = moved.load[2], moved.store[2]
        self.time += int(moved.load[1].sum()) + int(moved.store[1].sum())
        if self.pending < 0:
            self.time += int(load[0])
        else:
            self.time += max(self.pending, int(load[0]), self.stored)
        self.time += int(np.maximum(np.maximum(compute[:-1], load[1:]), store[:-2]).sum())
        self.pending, self.stored = int(compute[-1]), int(store[-2])

    def close(self, last_store: int) -> int:
        """Drain: the last step computes while the one before is stored, then its own result is."""
        return self.time + max(self.pending, self.stored) + last_store

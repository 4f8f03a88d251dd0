"""Where a task of mapping runs: on one processor, or divided between two of them (data parallelism in a layer).

Sets
    S shares, equal parts of the output rows or channels of a task; places a: every processor p with all S shares, and,
    if tasks may be divided, {(p, k), (q, S - k)} for p < q and k = 1 .. S - 1
Given
    work[i][p][k]     ticks of k shares of task i on p: ceil(k * time[i][p] / S) + sync for k < S; sync is what a part
                      waits for the other one
    copy[e][k][p][q]  ticks to hand k shares of the result of i from p to q
Meaning
    Each part reads the whole of every operand: output channels need it, output rows a share and its border. So a part
    of task i hands its shares to every other processor that has a part of a reader, and there they are joined where
    they are put (Eq. 3.7 for parts). A share of a row's time is assumed for a share of the rows; rows need not divide.
    Divided are tasks that compute or move each result on its own: no inputs, reshapes and normalising functions.

Source: the intra-layer parallelism of `heterogeneous_mapping_and_banks` 3.3.2 between processors; ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Processors, each with its shares of a task.
Place = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Split:
    """How tasks may be divided."""

    shares: int
    """S."""
    tasks: frozenset[int]
    """Those that may be divided."""
    sync: int
    """Ticks."""
    copies: NDArray[np.int64]
    """Of 1, 2, ... shares."""

    def work(self, time: int, shares: int) -> int:
        """Ticks of some shares of a task that takes `time` in all."""
        return time if shares == self.shares else -(-shares * time // self.shares) + self.sync

    def merged(self, whole: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the least that copies of all shares take if the result may be divided: long copies may gain by it."""
        both = self.copies + self.copies[:, ::-1]
        return np.minimum(whole, both.min(axis=1)) if self.shares > 1 else whole


def places_of(processors: int, split: Split | None) -> tuple[Place, ...]:
    """Return all places, the whole processors first and in their order."""
    if split is None:
        return tuple(((p, 1),) for p in range(processors))
    whole: list[Place] = [((p, split.shares),) for p in range(processors)]
    pairs = [
        ((p, k), (q, split.shares - k))
        for p in range(processors) for q in range(p + 1, processors) for k in range(1, split.shares)
    ]  # fmt: skip
    return (*whole, *pairs)

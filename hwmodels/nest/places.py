"""Lists of places where a loop cuts, as integers beside steps.

Candidate chains are arrays of integers (`hwmodels.nest.choices`). A positive entry is a step, a negative one the number
of a list of places (`hwmodels.schedule.Loop.cuts`), the same list always the same number while the process runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.bilinear import Ints
from hwmodels.schedule import Step

__all__ = ["begins", "chain_of", "code_of", "how"]

_LISTS: list[tuple[int, ...]] = []
_CODES: dict[tuple[int, ...], int] = {}


def code_of(places: tuple[int, ...]) -> int:
    """The number of a list of places, below 0."""
    if places not in _CODES:
        _LISTS.append(places)
        _CODES[places] = -len(_LISTS)
    return _CODES[places]


def how(entry: int) -> Step:
    """What an entry of a chain stands for."""
    return entry if entry > 0 else _LISTS[-entry - 1]


def chain_of(loops: Mapping[str, Sequence[Step]]) -> dict[str, Ints]:
    """The loops of a nest as one chain (1, L) a dimension."""
    entries = {d: [x if isinstance(x, int) else code_of(x) for x in steps] for d, steps in loops.items()}
    return {d: np.array([row], np.int64).reshape(1, -1) for d, row in entries.items()}


@lru_cache(maxsize=64)
def _tables(extent: int) -> list[NDArray[np.bool_]]:
    """Where the lists of places begin pieces of a range of `extent`, (lists, E): the one table so far, if any."""
    return []


def _flags(extent: int) -> NDArray[np.bool_]:
    """Where every list of places begins pieces of a range of `extent`, (lists, E)."""
    kept = _tables(extent)
    known = len(kept[0]) if kept else 0
    if known < len(_LISTS):
        new = np.zeros((len(_LISTS) - known, extent), np.bool_)
        for row, places in enumerate(_LISTS[known:]):
            new[row, [x for x in places if x < extent]] = True
        kept[:] = [np.concatenate([kept[0], new]) if kept else new]
    return kept[0]


def begins(extent: int, steps: Ints) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of the positions 0..extent-1 begin a piece (T, E), and which begin a piece of the level before."""
    position = np.arange(extent, dtype=np.int64)
    here = np.broadcast_to(position == 0, (len(steps), extent))
    before = here
    for level in range(steps.shape[1]):
        entries = steps[:, level]
        placed = np.flatnonzero(entries < 0)
        if len(placed) == len(entries):
            made = here | _flags(extent)[-entries - 1]
        else:
            start = np.maximum.accumulate(np.where(here, position, 0), axis=1) if level else 0
            made = (position - start) % np.maximum(entries, 1)[:, None] == 0
            if len(placed):
                made[placed] = here[placed] | _flags(extent)[-entries[placed] - 1]
        here, before = made, here
    return here, before

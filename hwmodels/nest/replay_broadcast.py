"""What cores load together: every fetch of every core with its place in the program, equal ones counted once.

All cores of a machine run one program; a core with less work has fewer iterations of some loops. The clock of an
iteration is the position in every loop, outermost first, as one number. Cores of a level that read the same part of an
operand are listened to together: of the fetches of one tile at one clock, one is a transfer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hwmodels.nest.replay_cores import ReplayCore
from hwmodels.nest.replay_counts import Boxes
from hwmodels.nest.replay_walk import Places, Traffic, blocks, changes
from hwmodels.outcome import Counts
from instances.workload import RELEVANT

__all__ = ["Listened", "listened"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Listened:
    """What one core of a replay may share: how it walks, its tiles as they are fetched, and what it moves alone."""

    core: ReplayCore
    traffic: Traffic
    boxes: Mapping[str, Boxes]
    rows: Mapping[str, Counts]


def listened(operand: str, level: str, cores: Sequence[Listened]) -> dict[int, Counts]:
    """Return what is loaded of an operand, by the first cluster that each load goes to.

    Parameters
    ----------
    level : {"tle", "chip"}
        Cores of which one load may serve.
    """
    groups: dict[object, list[Listened]] = {}
    for one in cores:
        place = one.core.tle if level == "tle" else None
        groups.setdefault((place, *(one.core.ranges[d] for d in sorted(RELEVANT[operand]))), []).append(one)
    loaded: dict[int, Counts] = {}
    known: dict[frozenset[int], Counts] = {}  # cores with equal walks count alike
    for group in groups.values():
        tle, walks = group[0].core.tle, frozenset(id(one.traffic) for one in group)
        if walks not in known:
            known[walks] = _together(operand, group) if len(walks) > 1 else group[0].rows[operand]
        loaded[tle] = loaded.get(tle, Counts()) + known[walks]
    return loaded


def _together(operand: str, group: Sequence[Listened]) -> Counts:
    """The transfers of cores that walk differently and listen to each other."""
    if operand not in group[0].boxes:
        return Counts()
    different = {id(one.traffic): one.traffic for one in group}.values()
    loops = group[0].traffic.loops
    radix = [max(int(t.cuts[d].number[k].max()) for t in different) for d, k in loops]
    boxes = group[0].boxes[operand]
    number = len(boxes.kind)
    events = [clock * number + tile for clock, tile in (_fetched(t, operand, radix) for t in different)]
    tiles = np.unique(np.concatenate(events)) % number
    return boxes.total(np.bincount(tiles, minlength=number).astype(np.int64))


def _fetched(traffic: Traffic, operand: str, radix: Sequence[int]) -> tuple[Ints, Ints]:
    """The clock and the tile of every fetch of IN or W.

    The clock is the position of an iteration in every loop as one number, `radix` the positions each loop may have.
    """
    cuts = traffic.cuts
    places, visits = Places(cuts, traffic.levels[operand]), Places(cuts, traffic.visits[operand])
    ids = {d: np.zeros(1, np.int64) for d, c in cuts.items() if c.leaves > 1}
    clocks, tiles, visit = list[Ints](), list[Ints](), -1
    for block in blocks(cuts, [(d, k) for d, k in traffic.loops if d in ids], ids):
        size = len(next(iter(block.values()))) if block else 1
        now = visits.tiles(block, size)
        at, visit = changes(now, visit), int(now[-1])
        clock = np.zeros(len(at), np.int64)
        for (d, k), number in zip(traffic.loops, radix, strict=True):
            clock *= number
            if d in block:
                leaf = block[d][at]
                clock += cuts[d].ancestor(k + 1)[leaf] - cuts[d].first[k][cuts[d].ancestor(k)[leaf]]
        clocks.append(clock)
        tiles.append(places.tiles(block, size)[at])
    return np.concatenate(clocks), np.concatenate(tiles)

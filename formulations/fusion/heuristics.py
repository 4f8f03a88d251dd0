"""What compilers do with a shared memory: nothing stays; maps stay in the order in which they come; tile plans first.

Every layer is planned by itself, with its input in DRAM and on chip; then maps are given what the tiles leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from formulations.clock import Clock
from formulations.fusion.groups import NEVER
from formulations.fusion.space import Fusion, Taken, by_cut
from formulations.fusion.tables import Tables

Path = tuple[Taken, ...]


def _searched(tables: Tables, clock: Clock) -> Fusion:
    """The problem with the best plan of every layer by itself, its input in DRAM and on chip."""
    for on_chip in (False, True):
        tables.nests.search(tables.nests.alone(on_chip=on_chip), clock)
    return tables.alone("known")


def _none(fusion: Fusion) -> Path:
    arcs = [fusion.arcs[cut][0] for cut in range(1, fusion.cuts + 1)]
    return tuple(Taken(arc, dict.fromkeys(fusion.held(arc), 0), fusion.banks) for arc in arcs)


def no_reuse(tables: Tables, clock: Clock) -> Path:
    """Every map through DRAM."""
    return _none(_searched(tables, clock))


def in_order(tables: Tables, clock: Clock) -> Path:
    """Map after map: as many rows as leave every layer room for some plan, if that helps."""
    return greedy(_searched(tables, clock))


def greedy(fusion: Fusion) -> Path:
    """The same for these plans."""
    path = list(_none(fusion))
    for k, mine in sorted(enumerate(fusion.residences), key=lambda one: one[1].born):
        here = slice(mine.born, mine.uses[-1] + 1)
        ways = [(level, True) for level in range(len(mine.banks) - 1, 0, -1)]
        for level, always in [*ways, (1, False)] if mine.weights else ways:
            tried = _with(fusion, path[here], k, level, always=always)
            if fusion.cost(tried) < fusion.cost(path[here]):
                path[here] = tried
                break
    there = [{}, *(step.levels for step in path)]
    return tuple(  # weights that are on chip until the next layer reads them are not loaded again
        replace(step, loads=-1) if before.get(step.loads) else step for before, step in zip(there, path, strict=False)
    )


def _with(fusion: Fusion, steps: Sequence[Taken], k: int, level: int, *, always: bool) -> list[Taken]:
    """Some steps with a residence at a level, all the time or (weights, loaded each time) while layers use it."""
    made, uses = [], fusion.residences[k].uses
    for step in steps:
        levels = {**step.levels, k: level if always or step.arc.first in uses else 0}
        free = fusion.banks - sum(fusion.residences[j].banks[v] for j, v in levels.items())
        loads = k if fusion.loads(step.arc) == k and not always else step.loads
        made.append(Taken(step.arc, levels, free, loads))
    return made


def in_sequence(tables: Tables, clock: Clock) -> Fusion:
    """Tile plans first, each layer alone: the problem of the best use of what they leave."""
    fusion = _searched(tables, clock)
    made = []
    for (arc,) in fusion.arcs.values():
        alone = arc.steps((0,) * len(arc.axes))
        need = alone[-1][0] if alone else 0
        made.append(replace(arc, table=np.where(arc.rooms < need, NEVER, arc.table)))
    return replace(fusion, arcs=by_cut(made))

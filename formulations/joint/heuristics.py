"""What compilers do with a shared memory: nothing stays; maps stay in the order in which they come; tile plans first.

Every layer is planned by itself, with its input in DRAM and on chip; then maps are given what the tiles leave.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from formulations.clock import Clock
from formulations.joint.problem import NEVER, Choice, Joint
from formulations.joint.tables import Tables


def _searched(tables: Tables, clock: Clock) -> Joint:
    """The problem with the best plan of every layer by itself, its input in DRAM and on chip."""
    for on_chip in (False, True):
        tables.search(tables.alone(on_chip=on_chip), clock)
    return tables.joint(bound="known")


def _none(joint: Joint) -> Choice:
    return joint.price([[0] * len(r.uses) for r in joint.residences])


def no_reuse(tables: Tables, clock: Clock) -> Choice:
    """Every map through DRAM."""
    return _none(_searched(tables, clock))


def in_order(tables: Tables, clock: Clock) -> Choice:
    """Map after map: as many rows as leave every layer room for some plan, if that helps."""
    return greedy(_searched(tables, clock))


def greedy(joint: Joint) -> Choice:
    """The same for these plans."""
    choice = _none(joint)

    def moved(tried: Choice, k: int) -> int:
        """By the steps of a residence, and by writing it."""
        mine = joint.residences[k]
        return mine.write[tried.levels[k][-1]] + sum(joint.moved(tried, t) for t in range(mine.born, mine.uses[-1] + 1))

    for k in sorted(range(len(choice.levels)), key=lambda k: joint.residences[k].born):
        now = moved(choice, k)
        for level in range(len(joint.residences[k].banks) - 1, 0, -1):
            mine = joint.residences[k].all_along(level)
            tried = replace(choice, levels=(*choice.levels[:k], mine, *choice.levels[k + 1 :]))
            if moved(tried, k) < now:
                choice = tried
                break
    return joint.price(choice.levels)


def in_sequence(tables: Tables, clock: Clock) -> Joint:
    """Tile plans first, each layer alone: the problem of the best use of what they leave."""
    joint = _searched(tables, clock)
    steps = []
    for step in joint.steps:
        alone = step.plans((0,) * len(step.axes))
        need = alone[-1][0] if alone else 0
        steps.append(replace(step, extra=np.where(step.rooms < need, NEVER, step.extra)))
    return replace(joint, steps=tuple(steps))

"""How little memory a network needs: the least time, or the fewest bytes, of memories up to a machine's.

A plan for less memory is one for more, so the least value never rises with the memory. Memories are solved from the
middle: between two with the same value lie others with it. An example: a network moves 900 bytes in 8 banks and in 5,
1,200 in 4 and 3, 1,500 in 2, and has no plan in 1: solved are 8, 4, 2, 6, 1, 3 and 5; of 7 it is known.

Of bytes the front is exact where all these are proven. Of time values are those of plans that are found, each with its
bound; one that is slower than a plan for less memory is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from formulations.clock import Clock
from instances.machine.machine import Machine
from solver.plan.plan import Plan

#: Fields of a machine that say how much there is.
SIZES = "ocm_bytes", "ocm_banks"
#: Memories without banks are looked at in so many equal steps.
STEPS = 64


@dataclass(frozen=True)
class Staircase:
    """Plans for less and less memory, each better than those for less; the most memory first."""

    plans: tuple[Plan, ...]
    complete: bool
    """Whether time was left for all memories."""
    proven: bool
    """Whether no memory has a better plan."""


def memories(machine: Machine) -> list[Machine]:
    """Return the same machine with less and less memory cut off: bank by bank, or in `STEPS` parts.

    All have more than what is reserved.
    """
    size, banks = machine.memories["ocm"], machine.ocm_banks
    count = banks or min(STEPS, size)
    none = -(-machine.reserved_bytes // machine.bank_bytes) if banks else machine.reserved_bytes * count // size
    return [
        machine.model_copy(update=dict(zip(SIZES, (size * k // count, k if banks else 0), strict=True)))
        for k in range(1 + none, count + 1)
    ]


def staircase(machines: Sequence[Machine], solve: Callable[[Machine, float | None], Plan], clock: Clock) -> Staircase:
    """Return the best plans of memories that ascend; `solve` has a time limit in seconds."""
    found = dict[int, Plan]()

    def value(k: int) -> float:
        plan = found.get(k)
        return inf if plan is None or plan.objective is None else plan.objective.value

    left, last = [(-1, len(machines) - 1)], len(machines) - 1
    found[last] = solve(machines[last], clock.half().left)
    while left and not clock.over:
        low, high = left.pop(0)
        if high - low > 1 and value(low) > value(high):
            middle = (low + high) // 2
            found[middle] = solve(machines[middle], clock.share(4).left)
            left += [(low, middle), (middle, high)]
    complete = all(high - low <= 1 or value(low) <= value(high) for low, high in left)
    kept, best = list[Plan](), inf
    for k in sorted(found):
        if value(k) < best:
            best = value(k)
            kept.append(found[k])
    decided = all(plan.status in ("OPTIMAL", "INFEASIBLE") for plan in found.values())
    return Staircase(tuple(kept[::-1]), complete, complete and decided)

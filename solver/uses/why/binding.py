"""What binds: every relaxation solved again, and what follows from the values and bounds.

Let v be the value of the plan, b its bound, v' and b' those of the relaxed question. There is a better plan without
what was relaxed, but none with it, exactly if the relaxed optimum is below b; so

    v' < b     it binds, and saves at least b - v' (exactly v - v' where v = b and v' = b');
    b' >= v    it does not bind: nothing is saved;
    else       not decided in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from instances.machine.machine import Machine
from solver.plan.why import Knee, Trial
from solver.uses.why.again import Again, Found
from solver.uses.why.relax import Relaxed, memory_field

#: Solves that the search for the nearest larger memory may take.
_KNEE_SOLVES = 24


def trials(again: Again, base: Found, relaxations: Iterable[Relaxed]) -> Iterator[Trial]:
    """Solve every relaxation and say whether it binds."""
    for one in relaxations:
        found = _coarser(again.solve(one.machine, one.pins, target=one.target), one.finer)
        yield Trial(
            cause=one.cause, name=one.name, change=one.change, status=found.status, value=found.value,
            bound=found.bound, saves=saves(base, found), binds=binds(base, found), exact=base.proven and found.proven,
        )  # fmt: skip


def _coarser(found: Found, finer: int) -> Found:
    """What was found in ticks of the plan, rounded up (the plan's own are whole)."""
    if finer == 1:
        return found
    value, bound = (None if x is None else -(-x // finer) for x in (found.value, found.bound))
    return Found(found.status, value, bound, found.plan)


def binds(base: Found, found: Found) -> bool | None:
    """Whether what was relaxed binds (the module's docstring)."""
    if base.value is None or found.value is None:
        return None
    if base.bound is not None and found.value < base.bound:
        return True
    return False if found.bound is not None and found.bound >= base.value else None


def saves(base: Found, found: Found) -> int | None:
    """What is saved, at least; where the relaxed search found nothing better: nothing."""
    if base.value is None or found.value is None:
        return None
    return max(0, base.value - found.value)


def next_memory(again: Again, base: Found, memory: str, most: int) -> tuple[Knee, Knee] | None:
    """Return the least size of a memory with which the optimum is better, and the least one that is as good as `most`.

    The optimum falls in steps as the memory grows. A plan for size s that takes o bytes is one for every size from o
    on: so each solve between the largest size that does not help and the smallest that does moves one of them.
    """
    best = again.solve(_with(again.question.machine, memory_field(memory), most))
    if base.value is None or best.value is None or best.value >= base.value:
        return None
    enough = _least(again, base, memory, best, _taken(best, memory, most), best.value)
    return _least(again, base, memory, best, enough.at, base.value - 1), enough


def _least(again: Again, base: Found, memory: str, best: Found, high: int, wanted: int) -> Knee:
    """The least size of which the optimum is at most `wanted`; size `high` has a plan that is."""
    machine, field = again.question.machine, memory_field(memory)
    value, low, exact = best.value or 0, machine.memories[memory], base.proven
    for _ in range(_KNEE_SOLVES):
        if high - low <= 1 or again.over:
            break
        middle = (low + high) // 2
        now = again.solve(_with(machine, field, middle))
        if now.value is None:
            break
        if now.value <= wanted:
            high, value = _taken(now, memory, middle), now.value
        else:
            low, exact = middle, exact and now.bound is not None and now.bound > wanted
    exact = exact and high - low <= 1
    saved = (base.value or 0) - value
    return Knee(field=field, at=high, more=high - machine.memories[memory], value=value, saves=saved, exact=exact)


def _with(machine: Machine, field: str, size: int) -> Machine:
    return machine.model_copy(update={field: size})


def _taken(found: Found, memory: str, most: int) -> int:
    """What the plan takes of a memory."""
    rows = getattr(found.plan, "layers", ())
    taken = [row.occupancy_bytes.get(memory, most) for row in rows if isinstance(row.occupancy_bytes, dict)]
    return min(most, max(taken, default=most))

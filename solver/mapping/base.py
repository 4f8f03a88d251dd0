"""What every engine for the problem ``mapping`` takes and returns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from formulations.mapping.latency import Order, dispatched, horizon, order_by, timetable
from formulations.mapping.parts import parts
from formulations.mapping.problem import Aim, Assignment, Limits, Mapping
from solver.plan import Stat, Status

__all__ = [
    "Asked", "Decided", "Timed", "begun", "best_of", "best_timed", "decided", "latency_of", "latest", "timed",
    "unproven", "usual", "value_of",
]  # fmt: skip

#: An assignment and an order of its tasks.
Timed = tuple[Assignment, Order]


@dataclass(frozen=True)
class Asked:
    """What an engine is asked: one configuration, what is minimised, the limits, and what is known already.

    Attributes
    ----------
    least : int
        A lower bound for all assignments, as far as known.
    known : tuple of Assignment
        Some that keep the limits.
    """

    mapping: Mapping
    aim: Aim
    limits: Limits
    time_limit_s: float | None
    least: int = 0
    known: tuple[Assignment, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether the latency of one inference counts, so that tasks need an order."""
        return self.aim == "latency" or self.limits.latency is not None

    @property
    def unit(self) -> int:
        """What every energy is a multiple of, 1 for periods."""
        return self.mapping.energy_unit if self.aim == "energy" else 1

    def value(self, at: Assignment, order: Order | None = None) -> int:
        """The objective of an assignment."""
        return value_of(self.mapping, at, self.aim, self.limits, order)

    def keeps(self, at: Assignment, order: Order | None = None) -> bool:
        """Whether an assignment keeps the limits."""
        price, limits = self.mapping.price(at, self.limits.cap), self.limits
        return not (
            (limits.period is not None and price.period > limits.period)
            or (limits.energy is not None and price.energy > limits.energy)
            or (limits.latency is not None and latency_of(self.mapping, at, order) > limits.latency)
        )


@dataclass(frozen=True)
class Decided:
    """An engine's answer; `bound` is in the unit of the objective, `order` that of the tasks of one inference alone."""

    at: Assignment | None
    bound: int | None
    status: Status
    versions: str = ""
    stats: dict[str, Stat] = field(default_factory=dict)
    order: Order | None = None


def latency_of(mapping: Mapping, at: Assignment, order: Order | None) -> int:
    """The latency of an assignment, in the usual order of its parts if none is given."""
    flat = parts(mapping, at)
    return timetable(flat.mapping, flat.at, order or dispatched(flat.mapping, flat.at)).latency


def value_of(mapping: Mapping, at: Assignment, aim: Aim, limits: Limits, order: Order | None = None) -> int:
    """The objective of an assignment."""
    if aim == "latency":
        return latency_of(mapping, at, order)
    price = mapping.price(at, limits.cap)
    return price.period if aim == "period" else price.energy


def best_of(asked: Asked, found: list[Assignment]) -> Assignment | None:
    """The assignment with the least objective of those that keep the limits."""
    return min((at for at in found if asked.keeps(at)), key=asked.value, default=None)


def latest(asked: Asked, known: list[Timed]) -> int:
    """Return a latency that the plans that are looked for keep."""
    if asked.limits.latency is not None:
        return min(asked.limits.latency, horizon(asked.mapping))
    first = best_timed(asked, known)
    return horizon(asked.mapping) if first is None else latency_of(asked.mapping, *first)


def best_timed(asked: Asked, found: Iterable[Timed]) -> Timed | None:
    """Return what has the least objective of all that keeps the limits."""
    return min((one for one in found if asked.keeps(*one)), key=lambda one: asked.value(*one), default=None)


def decided(asked: Asked, best: Timed | None, bound: int | None, versions: str, stats: dict[str, Stat]) -> Decided:
    """Return the answer of a solver that did not find the problem infeasible."""
    if best is None:
        return Decided(None, bound, "NO_SOLUTION_FOUND", versions, stats)
    value = asked.value(*best)
    status: Status = "OPTIMAL" if bound is not None and bound >= value else "FEASIBLE"
    return Decided(best[0], None if bound is None else min(bound, value), status, versions, stats, best[1])


def unproven(asked: Asked, said: Decided) -> Decided:
    """Return the answer to a part of a question for the whole: its bound is none."""
    status: Status = "NO_SOLUTION_FOUND" if said.at is None else "FEASIBLE"
    return replace(said, bound=asked.least or None, status=status)


def usual(mapping: Mapping, at: Assignment) -> Timed:
    """Return an assignment with the usual order of its parts."""
    flat = parts(mapping, at)
    return at, dispatched(flat.mapping, flat.at)


def timed(asked: Asked, at: Assignment, starts: dict[tuple[int, int], float]) -> Timed:
    """Return an assignment with the order of its parts that follows from starts by task and processor."""
    flat = parts(asked.mapping, at)
    keys = [(i, p) for (i, _), p in zip(flat.shares, flat.at, strict=True)]
    return at, order_by(flat.mapping, flat.at, [starts[key] for key in keys])


def begun(asked: Asked, known: Timed) -> dict[tuple[int, int], int]:
    """Return the starts of parts by task and processor."""
    flat = parts(asked.mapping, known[0])
    starts = timetable(flat.mapping, flat.at, known[1]).starts
    return {(i, p): start for (i, _), p, start in zip(flat.shares, flat.at, starts, strict=True)}

"""Engines for the problem ``mapping`` when the latency of one inference is minimised or limited."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Literal

import numpy as np

from formulations.mapping.latency import best_order, horizon, latencies
from formulations.mapping.parts import parts
from formulations.mapping.problem import Assignment, Ints
from formulations.mapping.search import MOST, assignments, everything, starts
from solver.mapping.base import Asked, Decided, Timed, best_timed, decided, latency_of, unproven, usual
from solver.plan import Stat

__all__ = ["WHOLE", "auto", "cbc", "cp_sat", "exhaustive", "ga", "ga_unseeded", "heuristic", "milp"]

#: Steps that all searches of orders may take; of the time limit that HiGHS may take before CP-SAT goes on.
_STEPS, _SHARE = 5_000_000, 0.8
#: Of a time limit, what goes to whole tasks first if tasks may be divided.
WHOLE = 0.3


def auto(asked: Asked) -> Decided:
    """HiGHS; if it ends without a proof CP-SAT, from the best timetable that is known."""
    start, limit, known = time.monotonic(), asked.time_limit_s, _known(asked)
    if asked.mapping.split is not None:  # the best of all whole tasks is a start
        first = auto(replace(asked, mapping=asked.mapping.whole, time_limit_s=limit and WHOLE * limit, known=()))
        if first.stats.get("interrupted"):
            return unproven(asked, first)
        if first.at is not None and first.order is not None:
            known = [*known, (first.at, first.order)]
        if limit is not None:
            start, limit = time.monotonic(), max(0.1, limit - (time.monotonic() - start))
    first = _milp(asked if limit is None else replace(asked, time_limit_s=_SHARE * limit), known)
    over = first.status == "OPTIMAL" or (first.status == "INFEASIBLE" and best_timed(asked, known) is None)
    if over or first.stats.get("interrupted"):
        return first
    if first.at is not None and first.order is not None:
        known = [*known, (first.at, first.order)]
    left = None if limit is None else max(0.1, limit - (time.monotonic() - start))
    then = _cp_sat(replace(asked, least=max(asked.least, first.bound or 0), time_limit_s=left), known)
    return replace(then, versions=f"{first.versions}; {then.versions}", stats={**first.stats, **then.stats})


def _known(asked: Asked) -> list[Timed]:
    """The usual starts of searches, in order."""
    found = dict.fromkeys((*asked.known, *starts(asked.mapping)))
    return [usual(asked.mapping, at) for at in found]


def _milp(asked: Asked, known: list[Timed], solver: Literal["highs", "cbc"] = "highs") -> Decided:
    from solver.engines import latency_milp  # late: the engines' package imports every solver

    return latency_milp.run(asked, known, solver=solver)


def _cp_sat(asked: Asked, known: list[Timed]) -> Decided:
    from solver.engines import latency_cp_sat

    return latency_cp_sat.run(asked, known)


def milp(asked: Asked) -> Decided:
    """HiGHS alone."""
    return _milp(asked, _known(asked))


def cbc(asked: Asked) -> Decided:
    """CBC alone."""
    return _milp(asked, _known(asked), "cbc")


def cp_sat(asked: Asked) -> Decided:
    """CP-SAT alone."""
    return _cp_sat(asked, _known(asked))


def heuristic(asked: Asked, found: list[Assignment]) -> Decided:
    """The best of some assignments, each in its usual order."""
    best = best_timed(asked, [usual(asked.mapping, at) for at in found])
    return decided(asked, best, None, "", {})


def ga(asked: Asked) -> Decided:
    """Genetic, from heuristics on."""
    from solver.engines import mapping_ga

    return _evolved(asked, mapping_ga.run(asked))


def ga_unseeded(asked: Asked) -> Decided:
    """Genetic, from random assignments."""
    from solver.engines import mapping_ga

    return _evolved(asked, mapping_ga.run(asked, seeded=False))


def _evolved(asked: Asked, said: Decided) -> Decided:
    return said if said.at is None else replace(said, order=usual(asked.mapping, said.at)[1])


def exhaustive(asked: Asked) -> Decided:
    """All assignments; of each that may be better all orders."""
    number = assignments(asked.mapping)
    if number > MOST:
        note = f"{number:.3g} assignments, at most {MOST:,} are tried"
        return Decided(None, None, "NO_SOLUTION_FOUND", stats={"note": note})
    search = _Search(asked)
    for at, periods, energies in everything(asked.mapping, asked.limits):
        search.block(at, energies if asked.aim == "energy" else periods)
    stats: dict[str, Stat] = {"assignments": number}
    if search.steps < 0:
        stats["note"] = f"the orders take more than {_STEPS:,} steps"
        return decided(asked, search.best, None, "", stats)
    if search.best is None:
        return Decided(None, None, "INFEASIBLE", stats=stats)
    return Decided(search.best[0], search.least, "OPTIMAL", stats=stats, order=search.best[1])


class _Search:
    """The best timetable so far."""

    def __init__(self, asked: Asked) -> None:
        self.asked, self.steps = asked, _STEPS
        self.best: Timed | None = None
        self.least: int | None = None

    def block(self, at: Ints, values: Ints) -> None:
        """Look at some assignments, the best ones by what is known without an order first."""
        least, _ = latencies(self.asked.mapping, at)
        if self.asked.aim == "latency":
            values = least
        for n in np.argsort(values, kind="stable"):
            if self.steps < 0 or (self.least is not None and values[n] >= self.least):
                return
            self._try(tuple(int(p) for p in at[n]), int(values[n]), int(least[n]))

    def _try(self, at: Assignment, value: int, least: int) -> None:
        """Look for an order of an assignment that is better than the best so far and keeps the limit."""
        most = self.asked.limits.latency
        below = horizon(self.asked.mapping) + 1 if most is None else most + 1
        if self.asked.aim == "latency" and self.least is not None:
            below = min(below, self.least)
        if least >= below:
            return
        flat = parts(self.asked.mapping, at)
        order, self.steps = best_order(flat.mapping, flat.at, below, self.steps)
        if order is not None:
            self.best = at, order
            self.least = latency_of(self.asked.mapping, at, order) if self.asked.aim == "latency" else value

"""Engines for the problem ``mapping``: one configuration of a board."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from formulations.clock import Clock
from formulations.mapping.latency import best_order, horizon, latencies, latency_of
from formulations.mapping.parts import parts
from formulations.mapping.problem import Assignment, Ints, Schedule
from formulations.mapping.search import MOST, Rule, assignments, everything, improved, list_scheduled, seeds, starts
from instances.errors import InputError
from solver.mapping.base import Asked, Decided, Engine
from solver.plan import Stat, Status

__all__ = ["MAPPING_ENGINES"]

#: Of the time limit that HiGHS may take before CP-SAT goes on, in a pipeline and of one inference alone.
_SHARE, _ALONE = 0.3, 0.8
#: Of a time limit, what goes to whole tasks first if tasks may be divided.
_WHOLE = 0.3
#: Steps that all searches of orders may take.
_STEPS = 5_000_000


def _auto(asked: Asked) -> Decided:
    """HiGHS; if it ends without a proof CP-SAT, from the best schedule that is known."""
    clock, asked = Clock.of(asked.time_limit_s), asked.started()
    if asked.mapping.split is not None:  # the best of all whole tasks is a start
        share = clock.share(1 / _WHOLE).left
        first = _auto(replace(asked, mapping=asked.mapping.whole, time_limit_s=share, known=(), least=0))
        if first.interrupted:  # a bound for whole tasks is none for all
            status: Status = "NO_SOLUTION_FOUND" if first.schedule is None else "FEASIBLE"
            return replace(first, bound=asked.least, status=status)
        asked = _knowing(asked, first)
    first = _milp(replace(asked, time_limit_s=clock.share(1 / (_ALONE if asked.alone else _SHARE)).left))
    over = first.status == "OPTIMAL" or (first.status == "INFEASIBLE" and not asked.known)
    if over or first.interrupted:
        return first
    asked = replace(_knowing(asked, first), least=max(asked.least, first.bound or 0), time_limit_s=clock.left)
    then = _cp_sat(asked)
    return replace(then, versions=f"{first.versions}; {then.versions}", stats={**first.stats, **then.stats})


def _knowing(asked: Asked, said: Decided) -> Asked:
    """The same, with the schedule of an answer known."""
    return asked if said.schedule is None else replace(asked, known=(*asked.known, said.schedule))


def _milp(asked: Asked, **how: Any) -> Decided:
    from solver.engines import mapping_milp  # late: the engines' package imports every solver

    return mapping_milp.run(asked, **how)


def _cp_sat(asked: Asked) -> Decided:
    from solver.engines import mapping_cp_sat

    return mapping_cp_sat.run(asked)


def _from_starts(run: Callable[[Asked], Decided]) -> Callable[[Asked], Decided]:
    return lambda asked: run(asked.started())


def _clustered(asked: Asked, kind: Literal["=", "<="]) -> Decided:
    """The best clustering. A proof among clusterings is none among all assignments: its bound goes with the stats."""
    if asked.mapping.split is not None:
        raise InputError("engine clustering: a cluster is of whole tasks, leave out the pin split")
    if asked.alone:
        known = ", ".join(name for name, engine in MAPPING_ENGINES.items() if engine.alone)
        raise InputError(f"engine clustering: it does not decide latency; {known} do")
    said = _milp(asked, clustered=kind)
    if said.status == "INFEASIBLE":
        return replace(said, status="NO_SOLUTION_FOUND", stats={**said.stats, "note": "there is no such clustering"})
    stats = {**said.stats, "clustering_bound": said.bound, "clustering_proven": said.status == "OPTIMAL"}
    return asked.answer(said.schedule, None, said.versions, stats)


def _genetic(asked: Asked, *, seeded: bool) -> Decided:
    from solver.engines import mapping_ga

    return mapping_ga.run(asked, seeded=seeded)


def _heuristic(make: Callable[[Asked], list[Assignment]]) -> Callable[[Asked], Decided]:
    """The best of some assignments, each in its usual order where an order counts."""
    return lambda asked: asked.answer(asked.best(asked.scheduled(make(asked))), None)


def _listed(rule: Rule) -> Callable[[Asked], Decided]:
    return _heuristic(lambda asked: [list_scheduled(asked.mapping, rule)])


def _descent(asked: Asked) -> list[Assignment]:
    return [improved(asked.mapping, asked.limits, at, asked.aim) for at in starts(asked.mapping)]


def _exhaustive(asked: Asked) -> Decided:
    """All assignments; where latency counts all orders of each that may be better."""
    number = assignments(asked.mapping)
    if number > MOST:
        note = f"{number:.3g} assignments, at most {MOST:,} are tried"
        return asked.answer(None, None, stats={"note": note})
    search = _Search(asked)
    for at, periods, energies in everything(asked.mapping, asked.limits):
        search.block(at, energies if asked.aim == "energy" else periods)
    stats: dict[str, Stat] = {"assignments": number}
    if search.steps < 0:
        stats["note"] = f"the orders take more than {_STEPS:,} steps"
        return asked.answer(search.best, None, "", stats)
    if search.best is None:
        return Decided(None, None, "INFEASIBLE", stats=stats)
    return asked.answer(search.best, search.least, "", stats)


class _Search:
    """The best schedule so far."""

    def __init__(self, asked: Asked) -> None:
        self.asked, self.steps = asked, _STEPS
        self.best: Schedule | None = None
        self.least: int | None = None

    def block(self, at: Ints, values: Ints) -> None:
        """Look at some assignments, the best ones by what is known without an order first."""
        if not self.asked.alone:
            if len(values) and (self.least is None or values.min() < self.least):
                self.best, self.least = Schedule(tuple(at[values.argmin()].tolist())), int(values.min())
            return
        least, _ = latencies(self.asked.mapping, at)
        if self.asked.aim == "latency":
            values = least
        for n in np.argsort(values, kind="stable"):
            if self.steps < 0 or (self.least is not None and values[n] >= self.least):
                return
            self._try(tuple(at[n].tolist()), int(values[n]), int(least[n]))

    def _try(self, at: Assignment, value: int, least: int) -> None:
        """Look for an order of an assignment that is better than the best so far and keeps the limit."""
        mapping, most = self.asked.mapping, self.asked.limits.latency
        below = horizon(mapping) + 1 if most is None else most + 1
        if self.asked.aim == "latency" and self.least is not None:
            below = min(below, self.least)
        if least >= below:
            return
        flat = parts(mapping, at)
        order, self.steps = best_order(flat.mapping, flat.at, below, self.steps)
        if order is not None:
            self.best = Schedule(at, order)
            self.least = latency_of(mapping, self.best) if self.asked.aim == "latency" else value


def _named(*engines: Engine) -> dict[str, Engine]:
    return {engine.name: engine for engine in engines}


MAPPING_ENGINES = _named(
    Engine("auto", "milp, then cp-sat if that does not prove: the best bound of both", True, _auto),
    Engine("milp", "edge flows with HiGHS", True, _from_starts(_milp)),
    Engine("milp-cbc", "edge flows with CBC", True, _from_starts(partial(_milp, solver="cbc"))),
    Engine("cp-sat", "edge flows with CP-SAT, after a bound from merged cores", True, _from_starts(_cp_sat)),
    Engine("exhaustive", f"all assignments, up to {MOST:,}", True, _exhaustive),
    Engine(
        "clustering", "the source's task clustering (Eq. 3.1 to 3.8), the best of them", False,
        partial(_clustered, kind="="), alone=False,
    ),
    Engine(
        "clustering-most", "task clustering with idle processors allowed", False, partial(_clustered, kind="<="),
        alone=False,
    ),
    Engine("heft", "earliest finish by upward rank", False, _listed("heft")),
    Engine("cpop", "the critical path on one processor", False, _listed("cpop")),
    Engine("peft", "earliest finish with a look ahead", False, _listed("peft")),
    Engine(
        "descent", "from the heuristics below and above on, one task moved at a time while that helps", False,
        _heuristic(_descent),
    ),
    Engine("ga", "genetic, from the heuristics below on", False, partial(_genetic, seeded=True)),
    Engine("ga-unseeded", "genetic, from random assignments", False, partial(_genetic, seeded=False)),
    Engine("single", "one processor runs all that it can", False, _heuristic(lambda asked: seeds(asked.mapping))),
)  # fmt: skip

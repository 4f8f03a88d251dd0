"""Engines for the problem ``mapping``: one configuration of a board."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from formulations.mapping.problem import Assignment
from formulations.mapping.search import (
    MOST,
    Rule,
    assignments,
    everything,
    improved,
    list_scheduled,
    seeds,
    starts,
)
from instances.errors import InputError
from solver.mapping import latency_engines as alone
from solver.mapping.base import Asked, Decided, best_of, unproven

__all__ = ["HASTE", "MAPPING_ENGINES", "MappingEngine"]

#: Of the time limit that HiGHS may take before CP-SAT goes on.
_SHARE = 0.3


@dataclass(frozen=True)
class MappingEngine:
    """A way to decide; without `alone` it does not decide when latency counts."""

    name: str
    summary: str
    proves: bool
    pipelined: Callable[[Asked], Decided]
    alone: Callable[[Asked], Decided] | None = None

    def run(self, asked: Asked) -> Decided:
        """Decide; raises InputError if latency counts and the engine knows nothing of it."""
        if not asked.alone:
            return self.pipelined(asked)
        if self.alone is None:
            known = ", ".join(name for name, one in MAPPING_ENGINES.items() if one.alone is not None)
            raise InputError(f"engine {self.name}: it does not decide latency; {known} do")
        return self.alone(asked)


def _auto(asked: Asked) -> Decided:
    """HiGHS; if it ends without a proof CP-SAT, from the best assignment that is known."""
    start, limit = time.monotonic(), asked.time_limit_s
    known = (*asked.known, *starts(asked.mapping))
    if asked.mapping.split is not None:  # the best of all whole tasks is a start
        share = limit and alone.WHOLE * limit
        whole = _auto(replace(asked, mapping=asked.mapping.whole, time_limit_s=share, known=()))
        if whole.stats.get("interrupted"):
            return unproven(asked, whole)
        known = known if whole.at is None else (*known, whole.at)
        if limit is not None:
            start, limit = time.monotonic(), max(0.1, limit - (time.monotonic() - start))
    asked = replace(asked, known=tuple(at for at in dict.fromkeys(known) if asked.keeps(at)))
    first = _milp(asked if limit is None else replace(asked, time_limit_s=_SHARE * limit))
    over = first.status == "OPTIMAL" or (first.status == "INFEASIBLE" and not asked.known)
    if over or first.stats.get("interrupted"):
        return first
    left = None if limit is None else max(0.1, limit - (time.monotonic() - start))
    more = () if first.at is None else (first.at,)
    asked = replace(asked, known=(*asked.known, *more), least=max(asked.least, first.bound or 0), time_limit_s=left)
    then = _cp_sat(asked)
    return replace(then, versions=f"{first.versions}; {then.versions}", stats={**first.stats, **then.stats})


def _milp(asked: Asked) -> Decided:
    from solver.engines import mapping_milp  # late: the engines' package imports every solver

    return mapping_milp.run(asked)


def _cbc(asked: Asked) -> Decided:
    from solver.engines import mapping_milp

    return mapping_milp.run(asked, solver="cbc")


def _clustering(asked: Asked) -> Decided:
    return _clustered(asked, "=")


def _clustering_most(asked: Asked) -> Decided:
    return _clustered(asked, "<=")


def _clustered(asked: Asked, kind: Literal["=", "<="]) -> Decided:
    from solver.engines import mapping_milp

    if asked.mapping.split is not None:
        raise InputError("engine clustering: a cluster is of whole tasks, leave out the pin split")
    return _of_the_restricted(mapping_milp.run(asked, clustered=kind))


def _of_the_restricted(said: Decided) -> Decided:
    """A proof among clusterings is none among all assignments: the bound goes with the statistics."""
    if said.status == "INFEASIBLE":
        return replace(said, status="NO_SOLUTION_FOUND", stats={**said.stats, "note": "there is no such clustering"})
    stats = {**said.stats, "clustering_bound": said.bound, "clustering_proven": said.status == "OPTIMAL"}
    return replace(said, bound=None, status="NO_SOLUTION_FOUND" if said.at is None else "FEASIBLE", stats=stats)


def _cp_sat(asked: Asked) -> Decided:
    from solver.engines import mapping_cp_sat

    return mapping_cp_sat.run(asked)


def _ga(asked: Asked) -> Decided:
    from solver.engines import mapping_ga

    return mapping_ga.run(asked)


def _ga_unseeded(asked: Asked) -> Decided:
    from solver.engines import mapping_ga

    return mapping_ga.run(asked, seeded=False)


def _exhaustive(asked: Asked) -> Decided:
    number = assignments(asked.mapping)
    if number > MOST:
        note = f"{number:.3g} assignments, at most {MOST:,} are tried"
        return Decided(None, None, "NO_SOLUTION_FOUND", stats={"note": note})
    least, best = None, None
    for at, periods, energies in everything(asked.mapping, asked.limits):
        values = periods if asked.aim == "period" else energies
        if len(values) and (least is None or values.min() < least):
            least, best = int(values.min()), tuple(int(p) for p in at[values.argmin()])
    if best is None:
        return Decided(None, None, "INFEASIBLE", stats={"assignments": number})
    return Decided(best, least, "OPTIMAL", stats={"assignments": number})


def _heuristic(make: Callable[[Asked], list[Assignment]]) -> tuple[Callable[[Asked], Decided], ...]:
    """The best of some assignments: in a pipeline, and of one inference alone."""

    def run(asked: Asked) -> Decided:
        at = best_of(asked, make(asked))
        return Decided(at, None, "NO_SOLUTION_FOUND" if at is None else "FEASIBLE")

    return run, lambda asked: alone.heuristic(asked, make(asked))


def _listed(rule: Rule) -> tuple[Callable[[Asked], Decided], ...]:
    return _heuristic(lambda asked: [list_scheduled(asked.mapping, rule)])


MAPPING_ENGINES: dict[str, MappingEngine] = {
    engine.name: engine
    for engine in (
        MappingEngine(
            "auto", "milp, then cp-sat if that does not prove: the best bound of both", True, _auto, alone.auto
        ),
        MappingEngine("milp", "edge flows with HiGHS", True, _milp, alone.milp),
        MappingEngine("milp-cbc", "edge flows with CBC", True, _cbc, alone.cbc),
        MappingEngine("cp-sat", "edge flows with CP-SAT, after a bound from merged cores", True, _cp_sat, alone.cp_sat),
        MappingEngine("exhaustive", f"all assignments, up to {MOST:,}", True, _exhaustive, alone.exhaustive),
        MappingEngine(
            "clustering", "the source's task clustering (Eq. 3.1 to 3.8), the best of them", False, _clustering
        ),
        MappingEngine("clustering-most", "task clustering with idle processors allowed", False, _clustering_most),
        MappingEngine("heft", "earliest finish by upward rank", False, *_listed("heft")),
        MappingEngine("cpop", "the critical path on one processor", False, *_listed("cpop")),
        MappingEngine("peft", "earliest finish with a look ahead", False, *_listed("peft")),
        MappingEngine(
            "descent",
            "from the heuristics below and above on, one task moved at a time while that helps",
            False,
            *_heuristic(lambda a: [improved(a.mapping, a.limits, at, a.aim) for at in starts(a.mapping)]),
        ),
        MappingEngine("ga", "genetic, from the heuristics below on", False, _ga, alone.ga),
        MappingEngine("ga-unseeded", "genetic, from random assignments", False, _ga_unseeded, alone.ga_unseeded),
        MappingEngine("single", "one processor runs all that it can", False, *_heuristic(lambda a: seeds(a.mapping))),
    )
}
#: For searches that are stopped: the best of what they start from, and of what is known.
HASTE = MappingEngine(
    "haste", "the best of the usual starts", False, *_heuristic(lambda a: [*a.known, *starts(a.mapping)])
)

"""Engines for the problem ``banks``: whole networks on machines with memory banks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from formulations.banks.front import Aim, few_labels
from formulations.banks.graph import NEVER, OutOfTime
from formulations.banks.network import Walk
from formulations.banks.policies import double_buffer, hide, minimise, no_reuse
from formulations.banks.published import published
from formulations.banks.states import BankPlan
from formulations.clock import Clock
from instances.errors import InputError
from solver.banks.base import Asked, Decided, graph_of, tied
from solver.plan import Stat
from solver.watch import NO_LIMIT, Watch

__all__ = ["BANK_ENGINES", "HASTE", "BankEngine"]

#: Seconds that one policy may take where a search was stopped.
_HASTE_S = 1.0


@dataclass(frozen=True)
class BankEngine:
    """A way to decide.

    Attributes
    ----------
    objectives : tuple of str
        What it can minimise; a policy ignores the objective.
    chooses : bool
        Whether it chooses how the first layer is read (`solver.banks.readings`); published policies read patches.
    """

    name: str
    summary: str
    proves: bool
    run: Callable[[Asked], Decided]
    objectives: tuple[str, ...] = ("bytes", "time")
    chooses: bool = True


def _dynamic(asked: Asked) -> Decided:
    aim: Aim = "time" if asked.objective == "time" else "bytes"
    try:
        said = asked.front(aim, asked.time_limit_s)
    except InputError as error:
        return Decided(None, None, "INFEASIBLE", stats={"note": str(error)})
    bound = said.ticks_bound if aim == "time" else said.bytes_bound
    stats: dict[str, Stat] = {"labels": said.labels, "states": said.states}
    plans = [plan for plan, _ in said.plans]
    if said.proven:
        return Decided(plans[0] if plans else None, bound, "OPTIMAL", stats=stats)
    if not plans and not asked.rivals and (plan := _quick(asked)) is not None:
        plans = [plan]
    if not plans:
        return Decided(None, bound or None, "NO_SOLUTION_FOUND", stats=stats)
    return Decided(_best(asked, plans), bound or None, "FEASIBLE", stats=stats)


def _best(asked: Asked, plans: Sequence[BankPlan]) -> BankPlan | None:
    value = asked.times.of if asked.objective == "time" else lambda plan: plan.volume.total
    return min(plans, key=value, default=None)


def _quick(asked: Asked) -> BankPlan | None:
    """The best plan that takes no search; where paths join, policies try their orders, which takes longer."""
    names = ("hide", "double-buffer", "no-reuse", "min-all")
    ways: list[Callable[[], BankPlan | None]] = [partial(_POLICIES[name], asked) for name in names]
    joins = any(len(makers) > 1 for makers in Walk(asked.found, asked.banks).makers.values())
    ways.insert(0 if joins else len(ways), partial(_POLICIES["beam"], asked))
    return next((plan for way in ways if (plan := way()) is not None), None)


def _or_none(plan: Callable[[Asked], BankPlan | None]) -> Callable[[Asked], BankPlan | None]:
    def run(asked: Asked) -> BankPlan | None:
        try:
            return plan(asked)
        except InputError:
            return None

    return run


_POLICIES: dict[str, Callable[[Asked], BankPlan | None]] = {
    "min": _or_none(lambda asked: published(asked.found, asked.banks)),
    "min-all": _or_none(lambda asked: minimise(asked.found, asked.banks)),
    "dls": _or_none(lambda asked: minimise(asked.found, asked.banks, dram_first=False)),
    "hide": _or_none(lambda asked: hide(asked.found, asked.banks, asked.clock)),
    "double-buffer": _or_none(lambda asked: double_buffer(asked.found, asked.banks)),
    "no-reuse": _or_none(lambda asked: no_reuse(asked.found, asked.banks)),
    "beam": _or_none(lambda asked: few_labels(asked.found, asked.banks, asked.clock, waiting=asked.waiting)),
}


def _policy(name: str, summary: str, same_as: str = "") -> BankEngine:
    def run(asked: Asked) -> Decided:
        plan = _POLICIES[same_as or name](asked)
        if plan is None:
            return Decided(None, None, "NO_SOLUTION_FOUND", stats={"note": f"policy {name} gets stuck in these banks"})
        return Decided(plan, None, "FEASIBLE")

    return BankEngine(name, summary, proves=False, run=run, chooses=name == "beam")


def _arcs(engine: str) -> Callable[[Asked], Decided]:
    """A solver on the state arcs; of plans with the fewest bytes the fastest."""

    def run(asked: Asked) -> Decided:
        from formulations.banks.cp_sat import build_arcs  # late: models and engines import every solver
        from formulations.banks.milp import state_arcs
        from solver.engines.models import solve, versions

        begun, name = time.monotonic(), versions(engine)
        try:
            graph, left = graph_of(asked)
        except OutOfTime:
            return Decided(None, None, "NO_SOLUTION_FOUND", name)
        except InputError as error:  # a stage that finds no room
            return Decided(None, None, "INFEASIBLE", stats={"note": str(error)})
        stats: dict[str, Stat] = {"states": len(graph.number), "arcs": sum(map(len, graph.arcs))}
        if graph.bytes[0] == NEVER:
            return Decided(None, None, "INFEASIBLE", name, stats)
        made = build_arcs(graph) if engine == "cp-sat" else state_arcs(graph)
        said = solve(made, engine, left, lambda plan: plan.volume.total)
        stats |= said.stats
        if said.schedule is None:
            return Decided(None, said.bound, "NO_SOLUTION_FOUND", name, stats)
        if not said.proven:
            return Decided(said.schedule, said.bound, "FEASIBLE", name, stats)
        fastest, quickest = tied(asked, said.schedule, begun)
        return Decided(fastest, said.bound, "OPTIMAL", name, stats, tied=quickest)

    return run


BANK_ENGINES: dict[str, BankEngine] = {
    engine.name: engine
    for engine in (
        BankEngine("dynamic", "dynamic programming over what is on chip: exact in bytes and in time", True, _dynamic),
        BankEngine("milp", "state arcs with HiGHS: exact in bytes", True, _arcs("milp"), ("bytes",)),
        BankEngine("cp-sat", "state arcs with CP-SAT: exact in bytes", True, _arcs("cp-sat"), ("bytes",)),
        _policy("min", "MIN as published: fewest bytes stage by stage, a tile of each result stays"),
        _policy("min-all", "MIN with all orders of paths, also where nothing of a result stays"),
        _policy("dls", "MIN with DRAM-last storing"),
        _policy("hide", "HIDE: least delay stage by stage"),
        _policy("double-buffer", "naive reuse: half of the banks for tiles read, half for results, one tile a step"),
        _policy("naive-reuse", "another name of double-buffer, as the source calls it", "double-buffer"),
        _policy("greedy-multipath", "another name of min-all: shared tiles are chosen path after path", "min-all"),
        _policy("beam", "the first pass of dynamic: of every stage the few plans with the least time are followed"),
        _policy("no-reuse", "nothing stays between stages, all banks for tiles read"),
    )
}  # fmt: skip


def _in_haste(asked: Asked) -> Decided:
    """The best plan of the policies that take no time, one after the other; longer ones only if none finds a plan."""
    plans, soon = list[BankPlan](), Clock.of(_HASTE_S / 4)
    for name in ("min", "no-reuse", "hide", "double-buffer", "beam"):
        if plans and soon.over:
            break
        with Watch(_HASTE_S, NO_LIMIT) as watch:
            plan = watch.run(partial(_POLICIES[name], asked), lambda: None)
        plans += [plan] if plan is not None else []
    best = _best(asked, plans)
    stats: dict[str, Stat] = {"interrupted": True}
    return Decided(best, None, "NO_SOLUTION_FOUND" if best is None else "FEASIBLE", stats=stats)


#: For searches that are stopped.
HASTE = BankEngine("haste", "the best of the policies that take no time", proves=False, run=_in_haste)

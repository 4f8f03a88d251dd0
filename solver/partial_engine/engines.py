"""Engines for the problem ``engine``: one layer on a small engine with banks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from formulations.partial_engine.bounds import branch_bound
from formulations.partial_engine.orders import Order, greedy, plain
from formulations.partial_engine.problem import Branch, Game, Problem
from formulations.partial_engine.search import MOST_RUNS, best_order
from solver.partial_engine.base import RunsAsked, RunsDecided, RunsFound, best_passes, finished, made

__all__ = ["RUNS_ENGINES", "RunsEngine", "in_haste"]

#: Runs of a grid beyond which the greedy order takes long.
_MANY = 2_000


@dataclass(frozen=True)
class RunsEngine:
    """A way to decide.

    Attributes
    ----------
    gives_up : bool
        Whether it may find nothing although something fits.
    """

    name: str
    summary: str
    proves: bool
    run: Callable[[RunsAsked], RunsDecided]
    gives_up: bool = False


def _auto(asked: RunsAsked) -> RunsDecided:
    """Orders in passes against bounds; where they differ all orders, if they are few."""
    problem, start, limit = asked.problem, time.monotonic(), asked.time_limit_s
    bounds = sorted((branch_bound(b, stay=problem.stay), n) for n, b in enumerate(problem.branches))
    found: list[RunsFound] = []
    proven: list[int] = []
    for bound, n in bounds:
        if found and bound >= min(one.bytes for one in found):
            break
        if found and limit is not None and time.monotonic() - start > limit:
            proven.append(bound)
            break
        one, least = _closed(problem, problem.branches[n], bound)
        found.append(one)
        proven.append(least)
    return finished(found, min(proven), "", {"choices": len(bounds), "looked_at": len(found)})


def _closed(problem: Problem, branch: Branch, bound: int) -> tuple[RunsFound, int]:
    """The best known order of a choice, and a lower bound for all orders."""
    found = best_passes(problem, branch)
    if found.bytes <= bound:
        return found, bound
    searched = _searched(problem, branch)
    return (found, bound) if searched is None else (min(found, searched[0], key=lambda one: one.bytes), searched[1])


def _searched(problem: Problem, branch: Branch) -> tuple[RunsFound, int] | None:
    """The best of all orders of a choice, if they are few, and a lower bound for all orders."""
    game, number = branch.games[0]
    answer = best_order(game, stay=problem.stay)
    if answer is None:
        return None
    least, order = answer
    return made(problem, branch, order), branch.others + number * least


def _exhaustive(asked: RunsAsked) -> RunsDecided:
    problem = asked.problem
    found = [one for one in (_searched(problem, branch) for branch in problem.branches) if one is not None]
    if not found:
        note = f"{problem.work.inputs * problem.work.outputs} runs of a grid, at most {MOST_RUNS} are searched"
        return RunsDecided(None, None, "NO_SOLUTION_FOUND", stats={"note": note})
    return finished([one for one, _ in found], min(bound for _, bound in found), "", {"choices": len(found)})


def _cp_sat(asked: RunsAsked) -> RunsDecided:
    from solver.engines import partial_engine_cp_sat as runs_cp_sat  # late: the engines' package imports every solver

    return runs_cp_sat.run(asked)


def _milp(asked: RunsAsked) -> RunsDecided:
    from solver.engines import partial_engine_milp as runs_milp

    return runs_milp.run(asked)


def _cbc(asked: RunsAsked) -> RunsDecided:
    from solver.engines import partial_engine_milp as runs_milp

    return runs_milp.run(asked, solver="cbc")


def _heuristic(order: Callable[[Game], Order], *, wide: bool) -> Callable[[RunsAsked], RunsDecided]:
    """The fewest strips that fit, with the most places for inputs (`wide`) or for partial maps."""

    def run(asked: RunsAsked) -> RunsDecided:
        problem = asked.problem
        fewest = min(branch.strips for branch in problem.branches)
        branches = [branch for branch in problem.branches if branch.strips == fewest]
        branch = max(branches, key=lambda b: b.x if wide else b.y)
        found = made(problem, branch, order(branch.games[0][0]), recent=wide)
        if problem.stay and any(step.verb == "spill" for step in found.steps):
            return RunsDecided(None, None, "NO_SOLUTION_FOUND", stats={"note": "this order stores partial maps"})
        return RunsDecided(found, None, "FEASIBLE")

    return run


def in_haste(problem: Problem) -> RunsDecided:
    """A plan of the heuristics with a bound, for a search that was stopped."""
    asked, bound = RunsAsked(problem, None), min(branch_bound(b, stay=problem.stay) for b in problem.branches)
    several = problem.work.inputs * problem.work.outputs > _MANY
    names = ("paper", "greedy") if several else ("greedy", "paper")
    found = next((one for name in names if (one := RUNS_ENGINES[name].run(asked).found) is not None), None)
    if found is None:
        return RunsDecided(None, bound, "NO_SOLUTION_FOUND", stats={"interrupted": True})
    return finished([found], bound, "", {"interrupted": True})


RUNS_ENGINES: dict[str, RunsEngine] = {
    engine.name: engine
    for engine in (
        RunsEngine("auto", "orders in passes against bounds for all orders", True, _auto),
        RunsEngine("cp-sat", "bounds for all orders with CP-SAT, met by an order in passes", True, _cp_sat),
        RunsEngine("milp", "bounds for all orders with HiGHS, met by an order in passes", True, _milp),
        RunsEngine("milp-cbc", "bounds for all orders with CBC, met by an order in passes", True, _cbc),
        RunsEngine("exhaustive", f"all orders of grids of up to {MOST_RUNS} runs", True, _exhaustive,
                   gives_up=True),
        RunsEngine("greedy", "next what the places allow, else the group with the most runs a byte", False,
                   _heuristic(greedy, wide=False), gives_up=True),
        RunsEngine("paper", "the source's order, one output group after the other", False,
                   _heuristic(plain, wide=True), gives_up=True),
    )
}  # fmt: skip

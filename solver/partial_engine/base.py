"""What every engine for the problem ``engine`` takes and returns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from formulations.partial_engine.bounds import branch_bound
from formulations.partial_engine.orders import Order, Step, passes, price, program
from formulations.partial_engine.problem import Branch, Problem
from formulations.partial_engine.search import MOST_RUNS
from solver.plan import Stat, Status

__all__ = ["RunsAsked", "RunsDecided", "RunsFound", "best_passes", "closed", "finished", "made"]


@dataclass(frozen=True)
class RunsAsked:
    """A layer that is to be planned."""

    problem: Problem
    time_limit_s: float | None


@dataclass(frozen=True)
class RunsFound:
    """Strips and places, the steps in every strip, and the DRAM bytes."""

    branch: Branch
    steps: tuple[Step, ...]
    bytes: int


@dataclass(frozen=True)
class RunsDecided:
    """An engine's answer; `bound` in bytes."""

    found: RunsFound | None
    bound: int | None
    status: Status
    versions: str = ""
    stats: dict[str, Stat] = field(default_factory=dict)


def made(problem: Problem, branch: Branch, order: Order, *, recent: bool = False) -> RunsFound:
    """Return the program of an order with its bytes."""
    steps = program(
        branch.games[0][0], order, fresh=problem.fresh, recent=recent, before=problem.wanted.before,
        after=problem.wanted.after,
    )  # fmt: skip
    value = branch.fixed + sum(number * price(game, steps) for game, number in branch.games)
    return RunsFound(branch, tuple(steps), value)


def best_passes(problem: Problem, branch: Branch) -> RunsFound:
    """Return the best order in passes with these strips and places; the first that meets the bound ends the search."""
    bound, best = branch_bound(branch, stay=problem.stay), None
    for order in passes(branch.games[0][0]):
        found = made(problem, branch, order)
        if problem.stay and any(step.verb == "spill" for step in found.steps):
            continue
        if best is None or found.bytes < best.bytes:
            best = found
        if best.bytes == bound:
            break
    assert best is not None  # one of the orders stores no partial maps
    return best


def finished(found: Sequence[RunsFound], bound: int, versions: str, stats: dict[str, Stat]) -> RunsDecided:
    """Return the best of some answers with what is known to bound all."""
    best = min(found, key=lambda one: one.bytes)
    status: Status = "OPTIMAL" if bound >= best.bytes else "FEASIBLE"
    return RunsDecided(best, min(bound, best.bytes), status, versions, stats)


def closed(
    asked: RunsAsked, said: RunsDecided, stages: Callable[..., tuple[int, Order | None, bool]], start: float
) -> RunsDecided:
    """Close the gap of an answer on a small grid: the order itself by a solver, for every choice that may be better.

    Parameters
    ----------
    stages : callable
        ``(Game, known bytes, seconds, stay=) -> (bound, order or None, whether Ctrl-C ended the search)``.
    """
    problem, found, stats = asked.problem, said.found, dict(said.stats)
    if said.status != "FEASIBLE" or found is None or problem.work.inputs * problem.work.outputs > MOST_RUNS:
        return said
    least, best = found.bytes, found
    for branch in problem.branches:
        bound = branch_bound(branch, stay=problem.stay)
        if bound >= best.bytes:
            continue
        if stats.get("interrupted"):
            least = min(least, bound)
            continue
        game, number = branch.games[0]
        left = None if asked.time_limit_s is None else max(0.1, asked.time_limit_s - (time.monotonic() - start))
        proven, order, stopped = stages(game, -(-(best.bytes - branch.others) // number), left, stay=problem.stay)
        stats |= {"interrupted": True} if stopped else {}
        least = min(least, max(bound, branch.others + number * proven))
        if order is not None:
            best = min(best, made(problem, branch, order), key=lambda one: one.bytes)
    least = min(least, best.bytes)
    status: Status = "OPTIMAL" if least >= best.bytes else "FEASIBLE"
    return replace(said, found=best, bound=least, status=status, stats=stats)

"""What every engine for the problem ``engine`` takes and returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from formulations.runs import Branch, Problem
from formulations.runs_bounds import branch_bound
from formulations.runs_orders import Order, Step, passes, price, program
from solver.plan import Stat, Status

__all__ = ["RunsAsked", "RunsDecided", "RunsFound", "best_passes", "finished", "made"]


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


def finished(
    asked: RunsAsked, found: Sequence[RunsFound], bound: int, versions: str, stats: dict[str, Stat]
) -> RunsDecided:
    """Return the best of some answers with what is known to bound all."""
    best = min(found, key=lambda one: one.bytes)
    status: Status = "OPTIMAL" if bound >= best.bytes else "FEASIBLE"
    return RunsDecided(best, min(bound, best.bytes), status, versions, stats)

"""Engine ``cp-sat`` for runs: the least bound over all choices, and an order in passes that meets it."""

from __future__ import annotations

import time
from importlib.metadata import version

from formulations.partial_engine.cp_sat import runs_cp_model
from formulations.partial_engine.orders import Order
from formulations.partial_engine.problem import Game
from formulations.partial_engine.stages_cp_sat import MOST_STAGES, stages, stages_cp_model
from solver.engines.driver_cp_sat import solve
from solver.partial_engine.base import RunsAsked, RunsDecided, best_passes, closed, finished
from solver.plan import Stat

__all__ = ["run", "solve_stages"]

#: Of a search for the order itself.
_SECONDS = 20.0


def run(asked: RunsAsked) -> RunsDecided:
    """Solve."""
    start = time.monotonic()
    problem, versions = asked.problem, f"ortools {version('ortools')}"
    known = best_passes(problem, problem.branches[0])
    branches = [branch for branch in problem.branches if branch.least <= known.bytes]
    made = runs_cp_model(branches, known.bytes, stay=problem.stay)
    said = solve(made.model, asked.time_limit_s)
    found = [known]
    if said.solved:
        found.append(best_passes(problem, branches[made.chosen(said.solver)]))
    stats: dict[str, Stat] = {"choices": len(branches), "branches": said.solver.num_branches, **said.stats}
    return closed(asked, finished(found, made.base + said.least(), versions, stats), solve_stages, start)


def solve_stages(
    game: Game, known: int, seconds: float | None, *, stay: bool = False
) -> tuple[int, Order | None, bool]:
    """Return a bound, an order that moves fewer bytes than `known` if one is found, and whether Ctrl-C ended this.

    The bound is 0 if the model would have too many stages.
    """
    if stages(game, known) > MOST_STAGES:
        return 0, None, False
    built = stages_cp_model(game, known, stay=stay)
    limit = _SECONDS if seconds is None else min(seconds, _SECONDS)
    said = solve(built.model, limit, turns=True)
    if said.status == "INFEASIBLE":
        return known, None, False
    return said.least(game.base), built.chosen(said.solver) if said.solved else None, said.stopped

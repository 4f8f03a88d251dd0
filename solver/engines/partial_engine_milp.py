"""Engine ``milp`` for runs: the least bound over all choices with HiGHS or CBC, and an order in passes that meets it.

Believed as `solver.engines.driver_milp` says; else the answer has no bound.
"""

from __future__ import annotations

from formulations.partial_engine.milp import runs_model
from solver.engines.driver_milp import MilpSolver, solve, versions
from solver.partial_engine.base import RunsAsked, RunsDecided, best_passes, finished
from solver.plan import Stat

__all__ = ["run"]


def run(asked: RunsAsked, *, solver: MilpSolver = "highs") -> RunsDecided:
    """Solve."""
    problem = asked.problem
    known = best_passes(problem, problem.branches[0])
    branches = [branch for branch in problem.branches if branch.least <= known.bytes]
    made = runs_model(branches, known.bytes, stay=problem.stay)
    said = solve(solver, made.problem, asked.time_limit_s)
    found = [known]
    if said.solved:
        found.append(best_passes(problem, branches[made.chosen()]))
    stats: dict[str, Stat] = {"choices": len(branches), "variables": len(made.problem.variables()), **said.stats}
    if said.bound is None:
        stats["note"] = "no bound" if said.believed else "bytes are too large for a proof by this solver"
        best = min(found, key=lambda one: one.bytes)
        return RunsDecided(best, None, "FEASIBLE", versions(solver), stats)
    return finished(found, made.base + made.unit * said.least(), versions(solver), stats)

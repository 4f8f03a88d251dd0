"""Engine ``milp`` for runs: the least bound over all choices with HiGHS or CBC, and an order in passes that meets it.

A bound counts only if no coefficient is so large that a variable within the solver's tolerance of an integer changes a
row by a unit: else the answer has no bound.
"""

from __future__ import annotations

from importlib.metadata import version
from math import ceil

import pulp

from formulations.runs_milp import runs_model
from solver.engines.solvers_milp import bound_by
from solver.plan import Stat
from solver.runs_base import RunsAsked, RunsDecided, best_passes, finished

__all__ = ["run"]

#: Coefficients up to which HiGHS and CBC are believed: a millionth of one is at most a unit.
_LARGEST = 1_000_000


def run(asked: RunsAsked, *, solver: str = "highs") -> RunsDecided:
    """Solve."""
    problem = asked.problem
    package = "highspy" if solver == "highs" else "pulp"
    versions = f"pulp {version('pulp')}, {package} {version(package)}"
    known = best_passes(problem, problem.branches[0])
    branches = [branch for branch in problem.branches if branch.least <= known.bytes]
    made = runs_model(branches, known.bytes, stay=problem.stay)
    bound = bound_by(solver, made.problem, asked.time_limit_s)
    found = [known]
    if made.problem.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        found.append(best_passes(problem, branches[made.chosen()]))
    stats: dict[str, Stat] = {"choices": len(branches), "variables": len(made.problem.variables())}
    if made.largest > _LARGEST or bound is None:
        stats["note"] = "bytes are too large for a proof by this solver" if bound is not None else "no bound"
        best = min(found, key=lambda one: one.bytes)
        return RunsDecided(best, None, "FEASIBLE", versions, stats)
    return finished(found, made.base + made.unit * max(0, ceil(bound - 0.25)), versions, stats)

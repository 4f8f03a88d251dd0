"""Engine ``milp`` for runs: the least bound over all choices with HiGHS or CBC, and an order in passes that meets it.

A bound counts only if no coefficient is so large that a variable within the solver's tolerance of an integer changes a
row by a unit: else the answer has no bound.
"""

from __future__ import annotations

from importlib.metadata import version
from math import ceil

import pulp

from formulations.runs_milp import RunsModel, runs_model
from solver.engines.highs_milp import highs
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
    bound = (_highs if solver == "highs" else _cbc)(made, asked.time_limit_s)
    found = [known]
    if made.problem.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        found.append(best_passes(problem, branches[made.chosen()]))
    stats: dict[str, Stat] = {"choices": len(branches), "variables": len(made.problem.variables())}
    if made.largest > _LARGEST or bound is None:
        stats["note"] = "bytes are too large for a proof by this solver" if bound is not None else "no bound"
        best = min(found, key=lambda one: one.bytes)
        return RunsDecided(best, None, "FEASIBLE", versions, stats)
    return finished(found, made.base + made.unit * max(0, ceil(bound - 0.25)), versions, stats)


def _highs(made: RunsModel, limit: float | None) -> float | None:
    made.problem.solve(highs(limit))
    bound = made.problem.solverModel.getInfo().mip_dual_bound
    return None if abs(bound) == float("inf") else float(bound)


def _cbc(made: RunsModel, limit: float | None) -> float | None:
    made.problem.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=limit, gapRel=0.0, gapAbs=0.49, threads=1))
    if made.problem.sol_status != pulp.LpSolutionOptimal:
        return None
    return float(pulp.value(made.problem.objective)) - 0.49

"""Engines ``milp`` and ``milp-cbc`` for the problem mesh: `formulations.mesh_milp` with HiGHS or CBC.

The bound counts only where coefficients are so small that the solver's tolerances cannot hide a whole unit.
"""

from __future__ import annotations

from importlib.metadata import version
from math import ceil

import pulp

from formulations.mesh_milp import model_of
from formulations.mesh_search import Halves
from solver.engines.highs_milp import highs
from solver.mesh_base import Answer, Asked, Decided, led, searched

__all__ = ["run"]

#: Coefficients up to which the solvers are believed, as for mappings.
_LARGEST = 1_000_000
#: Pairs of options in a model.
_PAIRS = 60_000


def run(asked: Asked, *, solver: str = "highs") -> Decided:
    """Solve."""
    package = "highspy" if solver == "highs" else "pulp"
    versions = f"pulp {version('pulp')}, {package} {version(package)}"
    return searched(asked, led(lambda found, measure: _solve(found, measure, solver)), versions)


def _solve(found: Halves, measure: str, solver: str) -> Answer:
    try:
        made = model_of(found, measure, _PAIRS)
    except ValueError:
        return Answer(None, None, empty=True)
    if made is None:
        return Answer(None, None, stats={"note": f"more than {_PAIRS:,} pairs of options: too many for this engine"})
    seconds = found.member.setup.clock.left
    if solver == "highs":
        made.problem.solve(highs(seconds))
        bound = float(made.problem.solverModel.getInfo().mip_dual_bound)
    else:
        made.problem.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=seconds, gapRel=0.0, gapAbs=0.49, threads=1))
        optimal = made.problem.sol_status == pulp.LpSolutionOptimal
        bound = float(pulp.value(made.problem.objective) or 0.0) - 0.49 if optimal else -float("inf")
    solved = made.problem.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)
    believed = made.largest <= _LARGEST and abs(bound) != float("inf")
    least = made.least + made.unit * max(0, ceil(bound - 0.25)) if believed else made.least
    note = {} if made.largest <= _LARGEST else {"note": "values are too large for a proof by this solver"}
    return Answer(made.chosen() if solved else None, least, stats={**note})

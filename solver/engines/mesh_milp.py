"""Engines ``milp`` and ``milp-cbc`` for the problem mesh: `formulations.mesh_milp` with HiGHS or CBC.

The bound counts only where coefficients are so small that the solver's tolerances cannot hide a whole unit.
"""

from __future__ import annotations

from importlib.metadata import version
from math import ceil

import pulp

from formulations.mesh_milp import model_of
from formulations.mesh_search import Halves
from solver.engines.solvers_milp import bound_by
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
    bound = bound_by(solver, made.problem, found.member.setup.clock.left)
    solved = made.problem.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)
    least = made.least
    if bound is not None and made.largest <= _LARGEST:
        least += made.unit * max(0, ceil(bound - 0.25))
    note = {} if made.largest <= _LARGEST else {"note": "values are too large for a proof by this solver"}
    return Answer(made.chosen() if solved else None, least, stats={**note})

"""Engines ``milp`` and ``milp-cbc`` for the problem mesh: `formulations.mesh.milp` with HiGHS or CBC.

Believed as `solver.engines.driver_milp` says.
"""

from __future__ import annotations

from formulations.mesh.milp import model_of
from formulations.mesh.search import Halves
from solver.engines.driver_milp import MilpSolver, solve, versions
from solver.mesh.base import Answer, Asked, Decided, led, searched
from solver.plan import Stat

__all__ = ["run"]

#: Pairs of options in a model.
_PAIRS = 60_000


def run(asked: Asked, *, solver: MilpSolver = "highs") -> Decided:
    """Solve."""
    return searched(asked, led(lambda found, measure: _solve(found, measure, solver)), versions(solver))


def _solve(found: Halves, measure: str, solver: MilpSolver) -> Answer:
    try:
        made = model_of(found, measure, _PAIRS)
    except ValueError:
        return Answer(None, None, empty=True)
    if made is None:
        return Answer(None, None, stats={"note": f"more than {_PAIRS:,} pairs of options: too many for this engine"})
    left = found.member.setup.clock.left
    said = solve(solver, made.problem, left)
    least = made.least + made.unit * said.least()
    note: dict[str, Stat] = {} if said.believed else {"note": "values are too large for a proof by this solver"}
    return Answer(made.chosen() if said.solved else None, least, stats=note | said.stats)

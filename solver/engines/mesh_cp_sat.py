"""Engine ``cp-sat`` for the problem mesh: `formulations.mesh.cp_sat` with OR-tools."""

from __future__ import annotations

from importlib.metadata import version

from ortools.sat.python import cp_model

from formulations.mesh.cp_sat import cp_model_of
from formulations.mesh.search import Halves
from solver.engines.driver_cp_sat import solve
from solver.mesh.base import Answer, Asked, Decided, led, searched

__all__ = ["run"]


def run(asked: Asked) -> Decided:
    """Solve."""
    return searched(asked, led(_solve), f"ortools {version('ortools')}")


def _solve(found: Halves, measure: str) -> Answer:
    made = cp_model_of(found, measure)
    said = solve(made.model, found.member.setup.clock.left, tune=_tune)
    if said.status == "INFEASIBLE":
        return Answer(None, None, empty=True)
    return Answer(made.chosen(said.solver) if said.solved else None, said.bound, stats=said.stats)


def _tune(solver: cp_model.CpSolver) -> None:
    """Rows leave options out by propagation; probing and relaxations cost more here than they spare."""
    solver.parameters.cp_model_probing_level = 0
    solver.parameters.symmetry_level = 0
    solver.parameters.linearization_level = 0

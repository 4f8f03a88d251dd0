"""CP-SAT, set up in one place: engines build a model, and `solve` it here.

Seed       The same for every search.
Workers    One; of a model whose proof takes one worker long two, `TURNS`: one follows the linear relaxation, one the
           cores of what cannot be. They take turns in fixed portions (interleaved), so that a search without a time
           limit ends with the same plan every time, on any number of processors.
Ctrl-C     Left to itself CP-SAT takes the signal and leaves the default action behind, so that the next Ctrl-C kills
           the process without a word. Without its handler Python hears nothing until it returns. Here it runs in a
           thread and is told to stop; the answer has what it found until then, and its bound.
Bound      An integer, by `solver.search.driver`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ortools.sat.python import cp_model

from instances.errors import InputError
from solver.ask.progress import interruptible
from solver.plan.plan import Stat, Status
from solver.search.driver import Said, least_whole

#: Workers that take turns. Few, because every one of them has its portion before another one's answer is heard.
TURNS = ("max_lp", "core")
_LEAST_S = 0.01
_STATUS: dict[str, Status] = {"OPTIMAL": "OPTIMAL", "FEASIBLE": "FEASIBLE", "INFEASIBLE": "INFEASIBLE"}


@dataclass(frozen=True)
class CpAnswer(Said):
    """What CP-SAT said; `solver` has the values of the variables if the model is `solved`."""

    solver: cp_model.CpSolver

    @property
    def stats(self) -> dict[str, Stat]:
        """Figures of the search, and whether Ctrl-C ended it."""
        return {"branches": self.solver.num_branches, "conflicts": self.solver.num_conflicts, **super().stats}


def solve(
    model: cp_model.CpModel, time_limit_s: float | None = None, *, turns: bool = False, maximised: bool = False,
    parameters: Mapping[str, int | float] | None = None,
) -> CpAnswer:  # fmt: skip
    """Solve a model; raises InputError if it does not fit 64 bits.

    `turns`: whether two workers take turns, slower where one is done at once, and far sooner where it is not; of a
    model that is `maximised` the bound is rounded down; `parameters`: further ones of the solver.
    """
    solver = cp_model.CpSolver()
    asked = solver.parameters
    asked.num_workers, asked.random_seed, asked.log_search_progress, asked.catch_sigint_signal = 1, 0, False, False
    if time_limit_s is not None:
        asked.max_time_in_seconds = max(_LEAST_S, time_limit_s)
    if turns:
        asked.num_workers, asked.interleave_search = len(TURNS), True
        asked.subsolvers[:] = TURNS
    for name, value in (parameters or {}).items():
        setattr(asked, name, value)
    ended, stopped = interruptible(lambda: solver.solve(model), solver.stop_search)
    name = solver.status_name(ended)
    if name == "MODEL_INVALID":
        raise InputError(f"engine cp-sat: the model is not one of 64 bits: {model.validate()[:200]}")
    status = _STATUS.get(name, "NO_SOLUTION_FOUND")
    sign = -1 if maximised else 1
    least = None if status == "INFEASIBLE" else least_whole(sign * solver.best_objective_bound)
    return CpAnswer(status, None if least is None else sign * least, stopped, solver)

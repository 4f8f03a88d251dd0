"""CP-SAT, set up in one place: engines build a model, and `solve` it here.

Seed       The same for every search, unless the caller brings one.
Workers    One, and several take turns in fixed portions (interleaved): the same plan every time. Only a search that is
           told to `race` lets `WORKERS` of them go as fast as they can: it proves hard models far sooner, and of equal
           plans it may find another one next time.
Ctrl-C     Left to itself CP-SAT takes the signal and leaves the default action behind, so that the next Ctrl-C kills
           the process without a word. Without its handler Python hears nothing until it returns. Here it runs in a
           thread and is told to stop; the answer has what it found until then, and its bound.
Bound      An integer, by `solver.engines.rounding`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ortools.sat.python import cp_model

from instances.errors import InputError
from solver.engines.rounding import least_whole
from solver.plan import Stat, Status
from solver.progress import interruptible

__all__ = ["WORKERS", "CpAnswer", "solve"]

#: Workers that race; a number of its own, not the machine's.
WORKERS = 8
_LEAST_S = 0.01
_STATUS: dict[str, Status] = {"OPTIMAL": "OPTIMAL", "FEASIBLE": "FEASIBLE", "INFEASIBLE": "INFEASIBLE"}


@dataclass(frozen=True)
class CpAnswer:
    """What CP-SAT said.

    Attributes
    ----------
    solver : CpSolver
        Has the values of the variables if the model is `solved`.
    bound : int or None
        No solution has a smaller objective (a larger one if it is maximised); None if nothing is known.
    stopped : bool
        Whether Ctrl-C ended the search.
    """

    solver: cp_model.CpSolver
    status: Status
    bound: int | None
    stopped: bool

    @property
    def solved(self) -> bool:
        """Whether there is a solution."""
        return self.status in ("OPTIMAL", "FEASIBLE")

    def least(self, floor: int = 0) -> int:
        """The bound, or what is known without the solver if that is more."""
        return floor if self.bound is None else max(floor, self.bound)

    @property
    def stats(self) -> dict[str, Stat]:
        """Figures of the search, and whether Ctrl-C ended it."""
        counts: dict[str, Stat] = {"branches": self.solver.num_branches, "conflicts": self.solver.num_conflicts}
        return {**counts, "interrupted": True} if self.stopped else counts

    def heard(self) -> CpAnswer:
        """The same; raises KeyboardInterrupt if Ctrl-C ended the search."""
        if self.stopped:
            raise KeyboardInterrupt
        return self


def solve(
    model: cp_model.CpModel, time_limit_s: float | None = None, *, workers: int = 1, race: bool = False,
    seed: int = 0, maximised: bool = False, tune: Callable[[cp_model.CpSolver], None] | None = None,
) -> CpAnswer:  # fmt: skip
    """Solve a model.

    Parameters
    ----------
    workers : int
        Of a search that does not race.
    maximised : bool
        Whether the model maximises: the bound is rounded down then.
    tune : callable
        Sets further parameters of the solver.

    Raises
    ------
    InputError
        If the model does not fit 64 bits.
    """
    solver = cp_model.CpSolver()
    said = solver.parameters
    said.num_workers, said.interleave_search = WORKERS if race else workers, workers > 1 and not race
    said.random_seed, said.log_search_progress, said.catch_sigint_signal = seed, False, False
    if time_limit_s is not None:
        said.max_time_in_seconds = max(_LEAST_S, time_limit_s)
    if tune is not None:
        tune(solver)
    found, stopped = interruptible(lambda: solver.solve(model), solver.stop_search)
    if solver.status_name(found) == "MODEL_INVALID":
        raise InputError(f"engine cp-sat: the model is not one of 64 bits: {model.validate()[:200]}")
    status = _STATUS.get(solver.status_name(found), "NO_SOLUTION_FOUND")
    return CpAnswer(solver, status, None if status == "INFEASIBLE" else _bound(solver, maximised=maximised), stopped)


def _bound(solver: cp_model.CpSolver, *, maximised: bool) -> int | None:
    if not maximised:
        return least_whole(solver.best_objective_bound)
    bound = least_whole(-solver.best_objective_bound)
    return None if bound is None else -bound

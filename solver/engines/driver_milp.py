"""HiGHS and CBC, set up in one place: engines build a model of PuLP, and `solve` it here.

Every objective counts in a unit (the gcd of its coefficients), so that it is an integer: one thread, no relative gap,
an absolute one below half a unit, the seed the same for every search unless the caller brings one.

Presolve   Where a search is much faster with it. The presolve of HiGHS 1.11 calls some models infeasible that have a
           solution (found on mappings with divided tasks; alike: its issues 2432 and 2446): that a model is infeasible
           is believed only without presolve, so a presolved one is solved again.
Trust      Answers are decoded and priced in integers by the caller. A bound is believed less a quarter of a unit for
           the solver's tolerances, or 1e-9 of it where coefficients may be large, and rounded up (`MilpAnswer.bound`).
           Neither a bound nor "infeasible" is believed if a coefficient is above `LARGEST`: a variable within the
           solver's tolerance of an integer changes a row by a whole unit then (found wrong at 10**7). A model whose own
           solution is priced may say so instead: it is proven if the price is what the solver reports
           (`MilpAnswer.agrees`).
Ctrl-C     HiGHS is told to stop, and has its best solution and its bound until then. CBC is a process of its own that
           PuLP waits for: KeyboardInterrupt is raised.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal

import highspy
import pulp

from solver.engines.rounding import least_whole
from solver.plan import Status
from solver.progress import interruptible

__all__ = ["LARGEST", "MilpAnswer", "MilpSolver", "solve", "versions"]

MilpSolver = Literal["highs", "cbc"]
#: Coefficients up to which HiGHS and CBC are believed: a millionth of one is at most a unit.
LARGEST = 1_000_000
_IS_FEASIBLE = int(highspy.SolutionStatus.kSolutionStatusFeasible)
_GAP, _SLACK, _LEAST_S = 0.49, 0.25, 0.01
#: Feasibility tolerances add up in large objectives.
_RELATIVE = 1e-9


@dataclass(frozen=True)
class MilpAnswer:
    """What the solver said; objective and bound in units of the model's objective.

    Attributes
    ----------
    status : str
        "INFEASIBLE" only if that is believed.
    bound : int or None
        No solution has a smaller objective; None if nothing is known or believed.
    objective : float or None
        Of the solution, as the solver reports it.
    believed : bool
        Whether the coefficients are small enough for a proof.
    stopped : bool
        Whether Ctrl-C ended the search.
    """

    status: Status
    bound: int | None
    objective: float | None
    believed: bool
    stopped: bool

    @property
    def solved(self) -> bool:
        """Whether there is a solution: the variables have values."""
        return self.status in ("OPTIMAL", "FEASIBLE")

    def least(self, floor: int = 0) -> int:
        """The bound, or what is known without the solver if that is more."""
        return floor if self.bound is None else max(floor, self.bound)

    def agrees(self, value: float) -> bool:
        """Whether the search is over, and its solution is worth what the solver reports: `value` in units."""
        return self.status == "OPTIMAL" and self.objective is not None and abs(value - self.objective) <= 0.5

    def heard(self) -> MilpAnswer:
        """The same; raises KeyboardInterrupt if Ctrl-C ended the search."""
        if self.stopped:
            raise KeyboardInterrupt
        return self


def versions(solver: MilpSolver) -> str:
    """Name PuLP and the solver with their versions."""
    return f"pulp {version('pulp')}" + (f", highspy {version('highspy')}" if solver == "highs" else " (bundled CBC)")


def solve(
    solver: MilpSolver, problem: pulp.LpProblem, time_limit_s: float | None = None, *, presolve: bool = False,
    largest: int = 0, threads: int = 1, seed: int = 0,
) -> MilpAnswer:  # fmt: skip
    """Minimise.

    Parameters
    ----------
    largest : int
        The largest coefficient, if a row holds only where a variable is an integer.
    """
    begun, limit = time.monotonic(), None if time_limit_s is None else max(_LEAST_S, time_limit_s)
    if solver == "cbc":
        problem.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=limit, gapRel=0.0, gapAbs=_GAP, threads=threads))
        bound = _value(problem) - _GAP if problem.sol_status == pulp.LpSolutionOptimal else None
        return _answer(problem, bound, largest, stopped=False)
    with _quiet():
        made = _Highs(presolve=presolve, time_limit_s=limit, threads=threads, seed=seed)
        problem.solve(made)
        if presolve and problem.sol_status == pulp.LpSolutionInfeasible and not made.stopped:
            limit = None if limit is None else max(_LEAST_S, limit - (time.monotonic() - begun))
            made = _Highs(presolve=False, time_limit_s=limit, threads=threads, seed=seed)
            problem.solve(made)
    bound = float(problem.solverModel.getInfo().mip_dual_bound) + float(problem.objective.constant or 0.0)
    return _answer(problem, bound, largest, stopped=made.stopped)


def _answer(problem: pulp.LpProblem, bound: float | None, largest: int, *, stopped: bool) -> MilpAnswer:
    believed = largest <= LARGEST
    least = None if bound is None or not believed else least_whole(bound, _slack(bound, largest))
    if problem.sol_status == pulp.LpSolutionOptimal:
        return MilpAnswer("OPTIMAL", least, _value(problem), believed, stopped)
    if problem.sol_status == pulp.LpSolutionIntegerFeasible:
        return MilpAnswer("FEASIBLE", least, _value(problem), believed, stopped)
    infeasible = believed and problem.sol_status == pulp.LpSolutionInfeasible
    return MilpAnswer("INFEASIBLE" if infeasible else "NO_SOLUTION_FOUND", least, None, believed, stopped)


def _slack(bound: float, largest: int) -> float:
    """What a bound is believed less; if nothing is known of the coefficients, also for large sums of them."""
    return _SLACK if largest else max(_SLACK, abs(bound) * _RELATIVE)


def _value(problem: pulp.LpProblem) -> float:
    return float(pulp.value(problem.objective) or 0.0)


class _Highs(pulp.HiGHS):  # type: ignore[misc]  # PuLP has no types
    """HiGHS that can be told to stop, and that has a solution only if it is one."""

    def __init__(self, *, presolve: bool, time_limit_s: float | None, threads: int, seed: int) -> None:
        super().__init__(
            msg=False, timeLimit=time_limit_s, gapRel=0.0, gapAbs=_GAP, threads=threads,
            presolve="choose" if presolve else "off", random_seed=seed,
        )  # fmt: skip
        self.stopped = False

    def callSolver(self, lp: pulp.LpProblem) -> None:
        """Run it where Ctrl-C is heard."""
        lp.solverModel.HandleUserInterrupt = True
        _, self.stopped = interruptible(lp.solverModel.run, lp.solverModel.cancelSolve)

    def findSolutionValues(self, lp: pulp.LpProblem) -> tuple[int, int]:
        """The values; PuLP takes what an interrupted search leaves for a solution."""
        status, solution = super().findSolutionValues(lp)
        feasible = lp.solverModel.getInfo().primal_solution_status == _IS_FEASIBLE
        if solution == pulp.LpSolutionIntegerFeasible and not feasible:
            return pulp.LpStatusNotSolved, pulp.LpSolutionNoSolutionFound
        return status, solution


@contextmanager
def _quiet() -> Iterator[None]:
    """Send file descriptor 1 to nowhere: HiGHS prints some diagnostics past its own output switch."""
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)

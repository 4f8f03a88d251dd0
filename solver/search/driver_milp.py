"""HiGHS and CBC, set up in one place: engines build a model of PuLP, and `solve` it here.

Every objective counts in a unit (the gcd of its coefficients), so that it is an integer: one thread, no relative gap,
an absolute one below half a unit, the same seed for every search.

Presolve   Never with HiGHS. The presolve of the pinned 1.11 calls models infeasible that have a solution, and it also
           states wrong bounds: it proves an optimum of 1 for a model of four variables whose optimum is 0 (its issue
           3274; docs/versions.md). A bound cannot be checked by the solution that comes with it, so no bound and no
           "infeasible" of a presolved model could be believed.
Trust      Answers are decoded and priced in integers by the caller. A bound is believed less a quarter of a unit, or
           1e-9 of it if that is more, for the solver's tolerances, and rounded up (`MilpAnswer.bound`). Neither a bound
           nor "infeasible" is believed if some coefficient of the model is above `LARGEST` (`largest`): a variable
           within the solver's tolerance of an integer changes a row by a whole unit then (found wrong at 10**7). A
           model whose own solution is priced may say so instead: it is proven if the price is what the solver reports
           (`MilpAnswer.agrees`).
Ctrl-C     Both are told to stop, and have their best solution until then; HiGHS has its bound too. CBC is a process of
           its own, in a session of its own so that a terminal's Ctrl-C reaches it once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from math import gcd
from typing import Literal

import highspy
import pulp

from solver.ask.progress import interruptible
from solver.plan.plan import Status
from solver.search.driver import Said, least_whole

MilpSolver = Literal["highs", "cbc"]
#: Coefficients up to which HiGHS and CBC are believed: a millionth of one is at most a unit.
LARGEST = 1_000_000
_IS_FEASIBLE = int(highspy.SolutionStatus.kSolutionStatusFeasible)
_GAP, _SLACK, _LEAST_S = 0.49, 0.25, 0.01
_NULL = subprocess.DEVNULL
#: How often CBC is asked to end, and how long it may take each time.
_STOP, _TRIES, _PATIENCE_S = signal.SIGINT, 3, 1.0
#: Feasibility tolerances add up in large objectives.
_RELATIVE = 1e-9
_STATUS: dict[int, Status] = {
    pulp.LpSolutionOptimal: "OPTIMAL", pulp.LpSolutionIntegerFeasible: "FEASIBLE",
    pulp.LpSolutionInfeasible: "INFEASIBLE",
}  # fmt: skip


@dataclass(frozen=True)
class MilpAnswer(Said):
    """What the solver said; objective and bound in units of the model's objective.

    "INFEASIBLE" and a bound are there only if they are believed.
    """

    objective: float | None
    """Of the solution, as the solver reports it."""
    believed: bool
    """Whether the coefficients are small enough for a proof."""

    def agrees(self, value: float) -> bool:
        """Whether the search is over, and its solution is worth what the solver reports: `value` in units."""
        return self.status == "OPTIMAL" and self.objective is not None and abs(value - self.objective) <= 0.5


def versions(solver: MilpSolver) -> str:
    """Name PuLP and the solver with their versions."""
    return f"pulp {version('pulp')}" + (f", highspy {version('highspy')}" if solver == "highs" else " (bundled CBC)")


def largest(problem: pulp.LpProblem) -> float:
    """The largest coefficient of a model, in the unit of its row: ``100 x + 300 y <= 700`` has 3."""
    return max(_coefficient(list(row.values())) for row in (problem.objective, *problem.constraints.values()))


def _coefficient(row: list[float]) -> float:
    """The largest of a row over the gcd of all, which is 1 if they are not whole."""
    most = max(map(abs, row), default=0)
    return most / (gcd(*map(int, row)) or 1) if all(one == int(one) for one in row) else most


def solve(solver: MilpSolver, problem: pulp.LpProblem, time_limit_s: float | None = None) -> MilpAnswer:
    """Minimise."""
    limit = None if time_limit_s is None else max(_LEAST_S, time_limit_s)
    made = (_Highs if solver == "highs" else _Cbc)(limit)
    with _quiet():
        problem.solve(made)
    bound, believed = made.bound(problem), largest(problem) <= LARGEST
    status = _STATUS.get(problem.sol_status, "NO_SOLUTION_FOUND")
    if status == "INFEASIBLE" and not believed:
        status = "NO_SOLUTION_FOUND"
    least = None if bound is None or not believed else least_whole(bound, max(_SLACK, abs(bound) * _RELATIVE))
    value = _value(problem) if status in ("OPTIMAL", "FEASIBLE") else None
    return MilpAnswer(status, least, made.stopped, value, believed)


def _value(problem: pulp.LpProblem) -> float:
    return float(pulp.value(problem.objective) or 0.0)


class _Highs(pulp.HiGHS):  # type: ignore[misc]  # PuLP has no types
    """HiGHS that can be told to stop, and that has a solution only if it is one."""

    def __init__(self, time_limit_s: float | None) -> None:
        super().__init__(
            msg=False, timeLimit=time_limit_s, gapRel=0.0, gapAbs=_GAP, threads=1, presolve="off", random_seed=0
        )
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

    def bound(self, lp: pulp.LpProblem) -> float | None:
        """No solution has a smaller objective; HiGHS is not told of a constant."""
        return float(lp.solverModel.getInfo().mip_dual_bound) + float(lp.objective.constant or 0.0)


class _Cbc(pulp.PULP_CBC_CMD):  # type: ignore[misc]
    """CBC that can be told to stop: PuLP's own call waits for it and leaves it behind at Ctrl-C."""

    def __init__(self, time_limit_s: float | None) -> None:
        super().__init__(msg=False, timeLimit=time_limit_s, gapRel=0.0, gapAbs=_GAP, threads=1)
        self.stopped = False

    def actualSolve(self, lp: pulp.LpProblem) -> int:
        """Write the model, run CBC where Ctrl-C is heard, and read its solution."""
        model, solution = self.create_tmp_files(lp.name, "mps", "sol")
        variables, names, rows, _ = lp.writeMPS(model, rename=1)
        limit = [] if self.timeLimit is None else ["-sec", str(self.timeLimit)]
        options = [part for option in self.getOptions() for part in f"-{option}".split()]
        asked = [self.path, model, *limit, *options, "-solve", "-printingOptions", "all", "-solution", solution]
        with subprocess.Popen(asked, start_new_session=True, stdin=_NULL, stdout=_NULL, stderr=_NULL) as process:
            try:
                _, self.stopped = interruptible(process.wait, lambda: _stop(process))
            except BaseException:
                process.kill()
                raise
        status, found = pulp.LpStatusNotSolved, pulp.LpSolutionNoSolutionFound
        if os.path.exists(solution):
            status, values, *_, found = self.readsol_MPS(solution, lp, variables, names, rows)
            lp.assignVarsVals(values)
            if status == pulp.LpStatusInfeasible:  # PuLP says of "Integer infeasible" only that there is no solution
                found = pulp.LpSolutionInfeasible
        elif not self.stopped:
            raise pulp.PulpSolverError(f"CBC ended with {process.returncode} and no answer")
        lp.assignStatus(status, found)
        self.delete_tmp_files(model, solution)
        return int(status)

    def bound(self, lp: pulp.LpProblem) -> float | None:
        """No solution has a smaller objective; CBC says so only of an optimum."""
        return _value(lp) - _GAP if lp.sol_status == pulp.LpSolutionOptimal else None


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask CBC to write what it has and end; again if it has not heard, for it hears nothing before it has begun."""
    for _ in range(_TRIES):
        process.send_signal(_STOP)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
            return
    process.kill()


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

"""`check`: re-verify a plan from its decisions alone, whoever made it.

Everything but the decisions (the nests) is derived again: prices, counts, occupancy, totals, digests, status rules;
every schedule is replayed, and no plan is ok whose replay is not. Then the claims are doubted (`solver.calls.prove`):
an engine may claim only what it can prove, and no bound stands above the value of a quick heuristic's plan. That no
better plan exists is the engine's proof; with `prove` the request is solved again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from instances.errors import InputError
from solver.ask.options import check_jobs, check_time_limit
from solver.calls.prove import basics, doubts
from solver.calls.prove import prove as prove_again
from solver.plan.plan import Plan
from solver.problems.problem import Derived
from solver.problems.registry import problem_of

#: What is known of a plan that passes without being solved again.
UNPROVEN = "legal, claims re-priced; optimality not re-proven"
#: Characters of a mismatch that stands in a line about something else.
_LONGEST = 300
_NONE: dict[str, str] = {
    "INFEASIBLE": "no plan; derived again that there is none", "NO_SOLUTION_FOUND": "no plan, and nothing is claimed"
}  # fmt: skip


@dataclass(frozen=True)
class CheckReport:
    """The verdict on a plan."""

    ok: bool
    problems: tuple[str, ...]
    """Every mismatch and every claim that is refuted, one line each."""
    layers: int
    executed: int
    """`layers`, `executed`: schedules that were re-priced and replayed, and those that were also computed on integers.
    """
    verdict: str = UNPROVEN
    """What is known now, in words."""
    proof: Literal["none", "proven", "refuted", "undecided"] = "none"
    """What solving again says; "none" if it was not asked for, or the plan is not what it says anyway."""
    better: Plan | None = None
    """Plan, optional. A better one, if solving again found it."""

    def to_json(self) -> dict[str, object]:
        """Return the report as a JSON object."""
        better = None
        if self.better is not None and self.better.objective is not None:
            better = {"engine": self.better.engine, "objective": self.better.objective.model_dump()}
        return {
            "ok": self.ok, "verdict": self.verdict, "proof": self.proof, "problems": list(self.problems),
            "layers": self.layers, "executed": self.executed, "better": better,
        }  # fmt: skip


def faults_of(plan: Plan) -> list[str]:
    """Return every mismatch of a plan with what follows from its decisions, without doubting its claims."""
    return _mismatches(plan)[0]


def _mismatches(plan: Plan) -> tuple[list[str], Derived]:
    """These, and how much was replayed. Decisions that nothing could have made may break whatever derives from them."""
    derived = Derived((), 0)
    try:
        derived = problem_of(plan).derive(plan)
        found = [*derived.problems, *basics(plan)]
    except InputError as error:
        found = [str(error)]
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        found = [f"nothing can be derived from its decisions: {type(error).__name__} {error}"]
    return list(dict.fromkeys(found)), derived


def sound_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan file that is used and not only judged: all it says has to follow from its decisions.

    Raises
    ------
    InputError
        If the file is missing, no plan, or `check` finds a mismatch.
    """
    plan = Plan.load(path)
    if found := faults_of(plan):
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        name = os.fspath(path)
        first = found[0] if len(found[0]) <= _LONGEST else f"{found[0][:_LONGEST]}..."
        raise InputError(f"plan {name}: refused: {first}{more}; certile check {name} names all")
    return plan


def check(
    plan: Plan | str | os.PathLike[str], *, prove: bool = False, time_limit_s: float | None = None, jobs: int = 1
) -> CheckReport:
    """Re-verify a plan of any problem, or a plan file.

    Parameters
    ----------
    prove : bool
        Whether to solve the stored request again, by another engine where there is one.
    time_limit_s : float, optional
        For that.
    jobs : int
        Processes for that, where layers are planned one by one; 0 means all processors, 1 none but this one.

    Raises
    ------
    InputError
        If the file is missing or does not follow the plan schema (a plan that merely lies is reported instead).
    """
    limit, processes = check_time_limit(time_limit_s), check_jobs(jobs)
    if limit is not None and not prove:
        raise InputError("time limit: only proving again takes one, check with prove")
    if isinstance(plan, str | os.PathLike):
        plan = Plan.load(plan)
    found, derived = _mismatches(plan)
    layers, executed = derived.schedules, derived.executed
    if found:
        return CheckReport(False, tuple(found), layers, executed, f"refused: {len(found)} mismatches")
    found = list(doubts(plan, infeasible=not prove))
    if not prove:
        some = any(claim.values for claim in problem_of(plan).claims(plan))
        verdict = f"refuted: {len(found)} claims" if found else UNPROVEN if some else _NONE[plan.status]
        return CheckReport(not found, tuple(found), layers, executed, verdict)
    said = prove_again(plan, limit, processes)
    found = list(dict.fromkeys([*said.refutations, *found]))
    proof = "refuted" if found else said.state
    first = "legal, claims re-priced; " if plan.objective and not found else ""
    if found and said.state != "refuted":
        first = "refuted without solving; "
    return CheckReport(not found, tuple(found), layers, executed, f"{first}{said.said}", proof, said.better)

"""`check`: re-verify a plan from its decisions alone, whoever made it; doubt its claims; solve its request again.

Everything but the decisions (the nests) is derived again: prices, counts, occupancy, totals, digests, status rules;
every schedule is replayed, and no plan is ok whose replay is not (`basics`: settings and claims of engines too).

That no better plan exists is the engine's proof, which no legal plan by itself can show. `doubts` take no search: an
engine that proves nothing has no bounds but those that need no search; a plan of any heuristic refutes a bound above
its value (`solver.plan.claims`); that nothing fits is proven again. `prove_again` asks engines that prove, another than
the plan's first, until every claim is proven or one is refuted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hwmodels.blocks import broken_blocks
from instances.errors import InputError, PlanMismatch
from instances.load import unmet_overrides
from instances.network.network import Network
from instances.problems import PROBLEMS
from solver.ask.options import check_jobs, check_time_limit
from solver.plan.claims import Claim
from solver.plan.plan import Plan
from solver.problems.problem import Derived
from solver.problems.registry import claims_of, problem_of

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
        found = [*derived.faults, *basics(plan)]
    except InputError as error:
        found = [str(error)]
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        found = [f"nothing can be derived from its decisions: {type(error).__name__} {error}"]
    return list(dict.fromkeys(found)), derived


def sound_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan file that is used and not only judged: all it says has to follow from its decisions.

    Raises InputError if the file is missing, no plan, or `check` finds a mismatch.
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


#: Seconds after which no further heuristic is begun, and for proving again that nothing fits.
_QUICK_S, _AGAIN_S = 3.0, 10.0


@dataclass(frozen=True)
class Proof:
    """What solving again says."""

    state: Literal["proven", "refuted", "undecided"]
    refutations: tuple[str, ...]
    """One line for every claim that is refuted."""
    better: Plan | None
    """Plan, optional. One that is better than the plan, first objective first."""
    said: str
    """All of it in a few words."""


# ---- without solving -------------------------------------------------------------------------------------------------


def basics(plan: Plan) -> Iterator[str]:
    """Replay, blocks of channels, settings against the machine, and whether the engine may claim what is claimed."""
    for where, ok, faults in problem_of(plan).replays(plan):
        if ok is False:
            yield f"{where}replay is not ok: {'; '.join(faults[:3]) or 'a layer does not run as it is priced'}"
    if isinstance(plan.network_data, Network) and PROBLEMS[plan.problem].in_blocks:
        yield from broken_blocks(plan.network_data, plan.machine_data.channel_block)
    try:
        for setting in unmet_overrides(plan.machine_data, plan.options.settings):
            yield f"options.settings: {setting} is not what machine_data has"
    except InputError as error:
        yield f"options.settings: {error}"
    yield from _unfounded(plan)


def _unfounded(plan: Plan) -> Iterator[str]:
    """Claims of engines that do not exist, or that prove nothing."""
    problem = problem_of(plan)
    able = problem.able(plan)
    if plan.engine not in able:
        yield f"engine {plan.engine}: there is none of this name for problem {plan.problem} and what is minimised"
        return
    if able[plan.engine]:
        return
    claims = [one for one in claims_of(plan) if not one.nothing and one.status != "INFEASIBLE"]
    for engine in dict.fromkeys((*problem.doubting_engines[:1], plan.engine)) if problem.floors else ():
        shown = _claims_again(plan, engine, None) if claims else {}
        claims = [one for one in claims if one.part not in shown or not one.proven_by(shown[one.part])]
    for claim in claims:
        said = "status OPTIMAL" if claim.status == "OPTIMAL" else "bounds"
        yield f"{claim.where}{said}: engine {plan.engine} proves nothing"


def _claims_again(plan: Plan, engine: str, limit: float | None) -> dict[str, Claim]:
    """What an engine says to the request of a plan, by part; nothing if it cannot say anything."""
    try:
        return _by_part(plan, problem_of(plan).resolve(plan, engine, limit, 1))
    except (InputError, PlanMismatch):
        return {}


def _by_part(plan: Plan, found: Plan) -> dict[str, Claim]:
    claims = {one.part: one for one in claims_of(found)}
    if "" not in claims:  # of a plan without layers the other one's are asked for all together
        value = () if found.objective is None else (found.objective.value,) * len(plan.objectives)
        claims[""] = Claim("", found.status, plan.objectives, value, (None,) * len(plan.objectives))
    return claims


def doubts(plan: Plan, *, infeasible: bool = True) -> Iterator[str]:
    """Yield one line for every claim that a quick plan refutes, or (`infeasible`) that is not proven again quickly."""
    problem = problem_of(plan)
    known = problem.explains
    claims = [one for one in problem.doubted(plan) if not (one.nothing or (known and one.status == "INFEASIBLE"))]
    if not claims:
        return
    refuted = set[str]()
    for engine, found in problem.doubters(plan, lambda engine: _claims_again(plan, engine, _QUICK_S), _QUICK_S):
        for claim in claims:
            other = found.get(claim.part)
            said = None if other is None or claim.part in refuted else claim.refuted_by(other)
            if said is not None and other is not None:
                refuted.add(claim.part)
                yield f"{claim.where}{said}: engine {engine} has a plan of {_figures(claim, other)}"
        if len(refuted) == len(claims):
            return
    if infeasible and not refuted and not known and plan.status == "INFEASIBLE":
        yield from _impossible(plan)


def _figures(claim: Claim, other: Claim) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(claim.objectives, other.values, strict=False))


def _impossible(plan: Plan) -> Iterator[str]:
    """Whether nothing fits, by an engine that proves."""
    problem = problem_of(plan)
    able = problem.able(plan)
    engine = next(name for name in (*reversed(problem.others[""]), *able) if able.get(name))
    found = _claims_again(plan, engine, _AGAIN_S).get("")
    if found is not None and found.values:
        yield f"status INFEASIBLE: engine {engine} has a plan"
    elif found is None or found.status != "INFEASIBLE":
        yield f"status INFEASIBLE: not proven again in {_AGAIN_S:g} s; check with --prove takes its time"


# ---- solving again ---------------------------------------------------------------------------------------------------


def prove_again(plan: Plan, time_limit_s: float | None, jobs: int = 1) -> Proof:
    """Solve the request of a plan again, by another engine first where there is one.

    `time_limit_s` is for all engines together (without, the first one is asked until it has an answer), `jobs` for
    layers that are planned one by one.
    """
    start, claims = time.monotonic(), claims_of(plan)
    chain, settled, asked = problem_of(plan).chain(plan), set[str](), list[str]()
    better: Plan | None = None
    notes: list[str] = []
    refutations: dict[str, str] = {}
    for number, engine in enumerate(chain):
        left = None if time_limit_s is None else time_limit_s - (time.monotonic() - start)
        if left is not None and asked and left <= 0:
            break
        try:
            share = None if left is None else max(0.1, left / (len(chain) - number))
            found = problem_of(plan).resolve(plan, engine, share, jobs)
        except (InputError, PlanMismatch) as error:
            notes.append(f"engine {engine}: {error}")
            continue
        asked.append(engine)
        if _better(better or plan, found):
            better = found
        answers = _by_part(plan, found)
        for claim in claims:
            other = answers.get(claim.part)
            if other is None:
                continue
            said = claim.refuted_by(other)
            if said is not None:
                refutations[claim.part] = f"{claim.where}{said}: engine {engine} has a plan of {_figures(claim, other)}"
            elif other.status in ("OPTIMAL", "INFEASIBLE") if claim.nothing else claim.proven_by(other):
                settled.add(claim.part)
        if refutations or len(settled) == len(claims):
            break
    state: Literal["proven", "refuted", "undecided"] = "undecided"
    if refutations or len(settled) == len(claims):
        state = "refuted" if refutations else "proven"
    said = _said(plan, state, asked, better, notes)
    return Proof(state, tuple(refutations.values()), better, said)


def _better(plan: Plan, found: Plan) -> bool:
    """Whether another plan is better as a whole, first objective first."""
    mine, its = (_sums(claims_of(one)) for one in (plan, found))
    return bool(its) and (not mine or its < mine)


def _sums(claims: tuple[Claim, ...]) -> tuple[int, ...]:
    if not all(claim.values for claim in claims):
        return ()
    return tuple(map(sum, zip(*(claim.values for claim in claims), strict=True)))


def _said(plan: Plan, state: str, asked: list[str], better: Plan | None, notes: list[str]) -> str:
    by = " and ".join(asked) or "no engine"
    what = {"OPTIMAL": "optimality", "INFEASIBLE": "that there is no plan is"}.get(plan.status, "bound")
    if all(claim.nothing for claim in claims_of(plan)):
        what = "nothing was claimed; the optimum"
    said = {
        "proven": f"{what} proven again by {by}",
        "refuted": f"refuted by {by}",
        "undecided": f"{what} not decided by {by} in this time",
    }[state]
    if better is not None and better.objective is not None:
        said += f"; a better plan has {plan.objectives[0]} {better.objective.value:,} {better.objective.unit}"
    return "; ".join([said, *notes])

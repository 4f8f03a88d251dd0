"""Doubt a plan quickly, or solve its request again: what no legal plan by itself can show.

`basics` and `doubts` take no search: an engine that proves nothing has no bounds but those that need no search; a plan
of any heuristic refutes a bound above its value (`solver.plan.claims`); that nothing fits is proven again. `prove` asks
engines that prove, another than the plan's first, until every claim is proven or one is refuted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from instances.errors import InputError, PlanMismatch
from instances.load import unmet_overrides
from solver.ask.options import pick_nests, pick_pins
from solver.plan.claims import Claim
from solver.plan.plan import Plan
from solver.problems.layers import is_layers, layer_rows, part_of
from solver.problems.registry import claims_of, problem_of
from solver.problems.tiling import layer_claims
from solver.search.verdict import judgement

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
    """Replay, settings against the machine, and whether the engine may claim what the plan claims."""
    for where, ok, faults in problem_of(plan).replays(plan):
        if ok is False:
            yield f"{where}replay is not ok: {'; '.join(faults[:3]) or 'a layer does not run as it is priced'}"
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
    for engine in dict.fromkeys((*problem.quick[:1], plan.engine)) if problem.floors else ():
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
    known = problem_of(plan).explains
    said_of = [
        *claims_of(plan),
        *(layer_claims(plan) if is_layers(plan) and plan.shared is not None else ()),
    ]
    claims = [one for one in said_of if not (one.nothing or (known and one.status == "INFEASIBLE"))]
    if not claims:
        return
    refuted = set[str]()
    for engine, found in _quick(plan):
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


def _quick(plan: Plan) -> Iterator[tuple[str, dict[str, Claim]]]:
    """What heuristics find: engine, and its answer by part."""
    if is_layers(plan):
        yield "first pass", {claim.part: claim for claim in _first_pass(plan)}
        if plan.shared is not None and plan.engine != "greedy":
            yield "greedy", {part: one for part, one in _claims_again(plan, "greedy", _QUICK_S).items() if not part}
        return
    start = time.monotonic()
    for engine in problem_of(plan).quick:
        if time.monotonic() - start < _QUICK_S and engine != plan.engine:
            yield engine, _claims_again(plan, engine, _QUICK_S)


def _first_pass(plan: Plan) -> Iterator[Claim]:
    """The best plan of every layer among few candidates, and the largest tile: priced, and replayed if it matters."""
    from formulations.tiling.pick import complete, stages
    from formulations.tiling.problem import largest_tile
    from formulations.tiling.search import Search

    formulation, deadline = pick_nests(plan.problem), time.monotonic() + _QUICK_S
    pins = pick_pins(list(plan.options.pins), formulation)
    for row, claim in zip(layer_rows(plan), layer_claims(plan), strict=True):
        if claim.nothing or claim.status == "INFEASIBLE" or time.monotonic() > deadline:
            continue
        part = part_of(row, plan, formulation, pins)
        space = part.space
        search = Search(space, plan.objectives, deadline=deadline)
        for pick in (
            search.first(stages(plan.objectives, space.machine)[0]),
            largest_tile(space, complete(plan.objectives)),
        ):
            if pick is None:
                continue
            values = tuple(pick.measures[name] for name in plan.objectives)
            other = Claim(row.layer, "FEASIBLE", plan.objectives, values, (None,) * len(values))
            if claim.refuted_by(other) and not judgement(part, pick.nest.at(dict(part.homes))).faults:
                yield other
                break


def _impossible(plan: Plan) -> Iterator[str]:
    """Whether nothing fits, by an engine that proves."""
    problem = problem_of(plan)
    engine = problem.others[""][-1]
    found = _claims_again(plan, engine, _AGAIN_S).get("")
    if found is not None and found.values:
        yield f"status INFEASIBLE: engine {engine} has a plan"
    elif found is None or found.status != "INFEASIBLE":
        yield f"status INFEASIBLE: not proven again in {_AGAIN_S:g} s; check with --prove takes its time"


# ---- solving again ---------------------------------------------------------------------------------------------------


def prove(plan: Plan, time_limit_s: float | None, jobs: int = 1) -> Proof:
    """Solve the request of a plan again, by another engine first where there is one.

    Parameters
    ----------
    time_limit_s : float, optional
        For all engines together; without, the first one is asked until it has an answer.
    jobs : int
        Processes, where layers are planned one by one; 0: all processors.
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

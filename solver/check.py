"""`check`: re-verify a plan from its decisions alone, whoever made it.

Everything but the decisions (the nests) is derived again: prices, counts, occupancy, totals, digests, status rules;
every schedule is replayed, and no plan is ok whose replay is not. Then the claims are doubted (`solver.prove`): an
engine may claim only what it can prove, and no bound stands above the value of a quick heuristic's plan. That no better
plan exists is the engine's proof; with `prove` the request is solved again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from formulations.tiling.space import Space
from hwmodels.nest.homes import machine_for
from hwmodels.outcome import MEASURES, Outcome
from hwmodels.schedule import Nest
from instances.errors import InputError
from solver.applications.check import problems_of_applications
from solver.applications.plan import ApplicationsPlan
from solver.banks.check import problems_of
from solver.banks.plan import BankPlan
from solver.claims import claims_of
from solver.files import AnyPlan, load_plan
from solver.homes.check import problems_of_homes
from solver.joint.check import problems_of_joint
from solver.joint.plan import JointPlan
from solver.mapping.check import problems_of_mapping
from solver.mapping.plan import MappingPlan
from solver.mesh.check import problems_of_mesh
from solver.mesh.plan import MeshPlan
from solver.network_plan import WholePlan
from solver.options import check_jobs, check_time_limit, pick_pins, pick_problem
from solver.partial_engine.check import problems_of_engine
from solver.partial_engine.plan import EnginePlan
from solver.plan import LayerPlan, Plan, digest, network_digest
from solver.prove import basics, doubts
from solver.prove import prove as prove_again
from solver.solve import totals
from solver.verify import Verdict, counts_of, gap_of, limits_of, measures_of, objective_of, unequal, verify

__all__ = ["CheckReport", "check"]

#: What is known of a plan that passes without being solved again.
UNPROVEN = "legal, claims re-priced; optimality not re-proven"
_NONE: dict[str, str] = {
    "INFEASIBLE": "no plan; derived again that there is none", "NO_SOLUTION_FOUND": "no plan, and nothing is claimed"
}  # fmt: skip


@dataclass(frozen=True)
class CheckReport:
    """The verdict on a plan.

    Attributes
    ----------
    problems : tuple of str
        Every mismatch and every claim that is refuted, one line each.
    layers, executed : int
        Schedules that were re-priced and replayed, and those that were also computed on integers.
    verdict : str
        What is known now, in words.
    proof : {"none", "proven", "refuted", "undecided"}
        What solving again says; "none" if it was not asked for, or the plan is not what it says anyway.
    better : plan, optional
        A better one, if solving again found it.
    """

    ok: bool
    problems: tuple[str, ...]
    layers: int
    executed: int
    verdict: str = UNPROVEN
    proof: Literal["none", "proven", "refuted", "undecided"] = "none"
    better: AnyPlan | None = None

    def to_json(self) -> dict[str, object]:
        """Return the report as a JSON object."""
        better = None
        if self.better is not None and self.better.objective is not None:
            better = {"engine": self.better.engine, "objective": self.better.objective.model_dump()}
        return {
            "ok": self.ok, "verdict": self.verdict, "proof": self.proof, "problems": list(self.problems),
            "layers": self.layers, "executed": self.executed, "better": better,
        }  # fmt: skip


def check(
    plan: AnyPlan | str | os.PathLike[str], *, prove: bool = False, time_limit_s: float | None = None, jobs: int = 1
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
        plan = load_plan(plan)
    found, layers, executed = _derived(plan)
    found = list(dict.fromkeys([*found, *basics(plan)]))
    if found:
        return CheckReport(False, tuple(found), layers, executed, f"refused: {len(found)} mismatches")
    found = list(doubts(plan, infeasible=not prove))
    if not prove:
        some = any(claim.values for claim in claims_of(plan))
        verdict = f"refuted: {len(found)} claims" if found else UNPROVEN if some else _NONE[plan.status]
        return CheckReport(not found, tuple(found), layers, executed, verdict)
    said = prove_again(plan, limit, processes)
    found = list(dict.fromkeys([*said.refutations, *found]))
    proof = "refuted" if found else said.state
    first = "legal, claims re-priced; " if plan.objective and not found else ""
    if found and said.state != "refuted":
        first = "refuted without solving; "
    return CheckReport(not found, tuple(found), layers, executed, f"{first}{said.said}", proof, said.better)


def _derived(plan: AnyPlan) -> tuple[list[str], int, int]:
    """What does not follow from the decisions of a plan, and how many schedules were replayed and executed."""
    if isinstance(plan, EnginePlan):
        found, replayed = problems_of_engine(plan)
        return list(found), replayed, 0
    if not isinstance(plan, Plan):
        return _of_a_network(plan), plan.parts, plan.replay.executed if isinstance(plan, JointPlan) else 0
    checker = _Checker(plan)
    problems = [*checker.head(), *checker.layers(), *checker.sums()]
    return problems, len(checker.verdicts), checker.executed


def _of_a_network(plan: WholePlan) -> list[str]:
    """The mismatches of a plan of a whole network."""
    if isinstance(plan, MappingPlan):
        return problems_of_mapping(plan)
    if isinstance(plan, ApplicationsPlan):
        return problems_of_applications(plan)
    if isinstance(plan, MeshPlan):
        return problems_of_mesh(plan)
    if isinstance(plan, JointPlan):
        return problems_of_joint(plan)
    assert isinstance(plan, BankPlan)
    return problems_of(plan)


class _Checker:
    """Walks a plan; identical layers with identical schedules are replayed once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.verdicts: dict[tuple[object, ...], Verdict | str] = {}

    @property
    def executed(self) -> int:
        """Schedules that were also computed on integers."""
        return sum(isinstance(v, Verdict) and v.replay.executed for v in self.verdicts.values())

    def head(self) -> Iterator[str]:
        """Digests, names, units and pins."""
        plan = self.plan
        yield from unequal("network_digest", plan.network_digest, network_digest(p.workload for p in plan.layers))
        yield from unequal("machine_digest", plan.machine_digest, digest(plan.machine_data.model_dump(mode="json")))
        yield from unequal("machine", plan.machine, plan.machine_data.name)
        yield from unequal("unit", plan.unit, MEASURES[plan.objectives[0]])
        if len(set(plan.objectives)) < len(plan.objectives):
            yield f"objectives: {', '.join(plan.objectives)} name one twice"
        names = [p.layer for p in plan.layers]
        for name in sorted({n for n in names if names.count(n) > 1}):
            yield f"layers: {name} stands {names.count(name)} times"

    def layers(self) -> Iterator[str]:
        """Every layer by itself."""
        for i, layer in enumerate(self.plan.layers):
            where = f"layers[{i}] {layer.layer}"
            yield from unequal(f"{where}: workload.name", layer.workload.name, layer.layer)
            yield from self._status(where, layer)
            if layer.schedule is not None:
                yield from self._schedule(where, layer, layer.schedule.to_nest())
            elif layer.status == "INFEASIBLE":
                yield from self._infeasible(where, layer)

    def _status(self, where: str, layer: LayerPlan) -> Iterator[str]:
        solved = layer.status in ("OPTIMAL", "FEASIBLE")
        for field in ("schedule", "objective", "measures", "counts", "occupancy_bytes", "replay", "decision"):
            if (getattr(layer, field) is not None) != solved:
                yield f"{where}: status {layer.status} {'needs' if solved else 'cannot have'} field {field}"
        if bool(layer.conflicts) != (layer.status == "INFEASIBLE"):
            yield f"{where}: status {layer.status} with {len(layer.conflicts)} conflicts"
        value = layer.objective.value if layer.objective else None
        yield from unequal(f"{where}: gap", layer.gap, gap_of(value, layer.bound))
        if layer.bound is not None and value is not None and layer.bound > value:
            yield f"{where}: bound {layer.bound} is above the value {value}"
        if layer.status == "OPTIMAL" and layer.bound != value:
            yield f"{where}: status OPTIMAL, but bound {layer.bound} is not the value {value}"

    def _schedule(self, where: str, layer: LayerPlan, nest: Nest) -> Iterator[str]:
        key = (layer.workload.signature(), nest)
        if key not in self.verdicts:
            try:
                self.verdicts[key] = verify(layer.workload, self.plan.machine_data, nest)
            except InputError as error:
                self.verdicts[key] = str(error)
        verdict = self.verdicts[key]
        if isinstance(verdict, str):
            yield f"{where}: {verdict}"
            return
        for fault in verdict.faults:
            yield f"{where}: {fault}"
        yield from self._figures(where, layer, verdict.outcome)
        for field, value in verdict.replay:
            yield from unequal(f"{where}: replay.{field}", getattr(layer.replay, field, None), value)
        if layer.same_as is not None:
            yield from self._same(where, layer)
        yield from self._decision(where, layer, nest)

    def _same(self, where: str, layer: LayerPlan) -> Iterator[str]:
        first = next((one for one in self.plan.layers if one.layer == layer.same_as), layer)
        if first is layer or (first.workload.signature(), first.schedule) != (
            layer.workload.signature(), layer.schedule
        ):  # fmt: skip
            yield f"{where}: same_as {layer.same_as}: there is no such layer with the same schedule"

    def _figures(self, where: str, layer: LayerPlan, outcome: Outcome) -> Iterator[str]:
        machine, measure = self.plan.machine_data, self.plan.objectives[0]
        yield from unequal(f"{where}: measures", layer.measures, measures_of(outcome))
        homes = layer.schedule.to_nest().homes if layer.schedule else ()
        expected = objective_of(measure, layer.workload, machine, outcome, dict(homes))
        yield from unequal(f"{where}: objective", layer.objective, expected)
        if layer.limits is not None:
            yield from unequal(f"{where}: limits", layer.limits, limits_of(layer.workload, machine))
        yield from unequal(f"{where}: counts", layer.counts, counts_of(outcome))
        yield from unequal(f"{where}: occupancy_bytes", layer.occupancy_bytes, dict(outcome.occupancy_bytes))

    def _decision(self, where: str, layer: LayerPlan, nest: Nest) -> Iterator[str]:
        """Compare the stated decisions with those of the nest, and see that the problem and the pins allow them."""
        stated = layer.schedule.decision if layer.schedule else {}
        yield from unequal(f"{where}: decision", layer.decision, stated)
        try:
            space = self._space(layer)
            read = space.decision(nest)
            contained = space.contains(nest)
        except InputError as error:
            yield f"{where}: {error}"
            return
        yield from unequal(f"{where}: decision", stated, read)
        if not contained:
            demands = f" with {', '.join(self.plan.pins)}" if self.plan.pins else ""
            yield f"{where}: the schedule is no plan of problem {self.plan.problem}{demands}"

    def _space(self, layer: LayerPlan) -> Space:
        """Build the space of a layer with the plan's pins."""
        formulation = pick_problem(self.plan.problem)
        pins = pick_pins(list(self.plan.pins), formulation)
        homes = layer.schedule.to_nest().homes if layer.schedule else None
        machine = machine_for(layer.workload, self.plan.machine_data, None if homes is None else dict(homes))
        return formulation.build(layer.workload, machine, pins)

    def _infeasible(self, where: str, layer: LayerPlan) -> Iterator[str]:
        try:
            conflicts = self._space(layer).explain()
        except InputError as error:
            yield f"{where}: {error}"
            return
        if not conflicts:
            yield f"{where}: status INFEASIBLE, but there is a plan that fits"
        else:
            yield from unequal(f"{where}: conflicts", layer.conflicts, conflicts)

    def sums(self) -> Iterator[str]:
        """Totals over the layers."""
        plan = self.plan
        total = totals(plan.layers, literal=plan.machine_data.reading == "literal")
        if plan.homes is not None:
            total = total.over(plan.status, plan.bound)
        try:
            yield from problems_of_homes(plan, pick_pins(list(plan.pins), pick_problem(plan.problem)))
        except InputError as error:
            yield str(error)
        for field in ("status", "objective", "bound", "gap", "measures", "replay"):
            yield from unequal(field, getattr(plan, field), getattr(total, field))

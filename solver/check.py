"""`check`: re-verify a plan from its decisions alone, whoever made it.

Everything but the decisions (the nests) is derived again: prices, counts, occupancy, totals, digests, status rules;
every schedule is replayed. What cannot be re-verified without solving again is optimality itself: that OPTIMAL
carries a bound equal to its value is checked, that no better plan exists is the engine's proof.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from formulations.space import Space
from hwmodels.outcome import MEASURES, Outcome
from hwmodels.schedule import Nest
from instances.errors import InputError
from solver.applications_check import problems_of_applications
from solver.applications_plan import ApplicationsPlan
from solver.bank_check import problems_of
from solver.bank_plan import BankPlan
from solver.files import AnyPlan, load_plan
from solver.joint_check import problems_of_joint
from solver.joint_plan import JointPlan
from solver.mapping_check import problems_of_mapping
from solver.mapping_plan import MappingPlan
from solver.mesh_check import problems_of_mesh
from solver.mesh_plan import MeshPlan
from solver.network_plan import WholePlan
from solver.options import pick_pins, pick_problem
from solver.plan import LayerPlan, Plan, digest, network_digest
from solver.runs_check import problems_of_engine
from solver.runs_plan import EnginePlan
from solver.solve import totals
from solver.verify import Verdict, counts_of, gap_of, limits_of, measures_of, objective_of, unequal, verify

__all__ = ["CheckReport", "check"]


@dataclass(frozen=True)
class CheckReport:
    """The verdict on a plan: every mismatch, one line each."""

    ok: bool
    problems: tuple[str, ...]
    layers: int
    executed: int

    def to_json(self) -> dict[str, object]:
        """Return the report as a JSON object."""
        return {"ok": self.ok, "problems": list(self.problems), "layers": self.layers, "executed": self.executed}


def check(plan: AnyPlan | str | os.PathLike[str]) -> CheckReport:
    """Re-verify a plan of any problem, or a plan file.

    Raises
    ------
    InputError
        If the file is missing or does not follow the plan schema (a plan that merely lies is reported instead).
    """
    if isinstance(plan, str | os.PathLike):
        plan = load_plan(plan)
    if isinstance(plan, EnginePlan):
        found, replayed = problems_of_engine(plan)
        return CheckReport(not found, found, replayed, 0)
    if not isinstance(plan, Plan):
        found = tuple(_of_a_network(plan))
        executed = plan.replay.executed if isinstance(plan, JointPlan) else 0
        return CheckReport(not found, found, plan.parts, executed)
    checker = _Checker(plan)
    problems = tuple(dict.fromkeys([*checker.head(), *checker.layers(), *checker.sums()]))
    return CheckReport(not problems, problems, len(checker.verdicts), checker.executed)


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
        yield from unequal(f"{where}: replay", _verdict_of(layer), (verdict.replay.ok, verdict.replay.compared))
        if layer.replay is not None:
            yield from unequal(f"{where}: replay.measures", layer.replay.measures, verdict.replay.measures)
        yield from self._decision(where, layer, nest)

    def _figures(self, where: str, layer: LayerPlan, outcome: Outcome) -> Iterator[str]:
        machine, measure = self.plan.machine_data, self.plan.objectives[0]
        yield from unequal(f"{where}: measures", layer.measures, measures_of(outcome))
        expected = objective_of(measure, layer.workload, machine, outcome)
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
        return formulation.build(layer.workload, self.plan.machine_data, pins)

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
        for field in ("status", "objective", "bound", "gap", "measures", "replay"):
            yield from unequal(field, getattr(plan, field), getattr(total, field))


def _verdict_of(layer: LayerPlan) -> tuple[bool, bool] | None:
    return (layer.replay.ok, layer.replay.compared) if layer.replay else None

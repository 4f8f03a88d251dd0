"""Re-verify plans of layers from their nests alone, whoever made them."""

from __future__ import annotations

from collections.abc import Iterator

from formulations.tiling.space import Space
from hwmodels.nest.homes import machine_for
from hwmodels.outcome import MEASURES, Outcome
from hwmodels.schedule import Nest
from instances.errors import InputError
from solver.homes.check import problems_of_homes
from solver.options import pick_nests, pick_pins
from solver.plan import digest, network_digest
from solver.problem import Derived
from solver.tiling.buffers import buffers
from solver.tiling.plan import LayerPlan, LayersPlan
from solver.tiling.solve import totals
from solver.verify import Verdict, counts_of, gap_of, limits_of, measures_of, objective_of, unequal, verify

__all__ = ["problems_of_layers"]


def problems_of_layers(plan: LayersPlan) -> Derived:
    """Return every mismatch, and how many schedules were replayed and executed."""
    checker = _Checker(plan)
    problems = (*checker.head(), *checker.layers(), *checker.sums())
    return Derived(problems, len(checker.verdicts), checker.executed)


class _Checker:
    """Walks a plan; identical layers with identical schedules are replayed once."""

    def __init__(self, plan: LayersPlan) -> None:
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
        if layer.buffers is not None and layer.schedule is not None:
            made = buffers(layer.workload, machine, layer.schedule.to_nest())
            yield from unequal(f"{where}: buffers", layer.buffers, made)
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
        formulation = pick_nests(self.plan.problem)
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
            yield from problems_of_homes(plan, pick_pins(list(plan.pins), pick_nests(plan.problem)))
        except InputError as error:
            yield str(error)
        for field in ("status", "objective", "bound", "gap", "measures", "replay"):
            yield from unequal(field, getattr(plan, field), getattr(total, field))

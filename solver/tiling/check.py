"""Re-verify plans of layers from their nests alone, whoever made them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from formulations.pins import Pins
from formulations.tiling.nests import Nests
from formulations.tiling.part import NestPart
from hwmodels.nest.homes import assignments
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from instances.errors import InputError
from solver.claims import bounds_of
from solver.homes.check import problems_of_homes
from solver.options import pick_nests, pick_pins
from solver.plan import Schedule, digest, network_digest
from solver.problem import Derived
from solver.search import Answer, Judged
from solver.tiling.plan import GIVEN, LayerPlan, LayersPlan
from solver.tiling.rows import row, totals
from solver.verdict import judged, judgement
from solver.verify import gap_of, unequal

#: What follows from a schedule.
_FIGURES = ("measures", "objective", "counts", "occupancy_bytes", "limits", "buffers")


def part_of(layer: LayerPlan, plan: LayersPlan, formulation: Nests, pins: Pins) -> NestPart:
    """The layer that a row is about, with the homes of its schedule; with some where it has none."""
    homes = layer.schedule.to_nest().homes if layer.schedule else None
    if homes is None:  # memory on chip does not depend on them
        homes = tuple(assignments(layer.workload, plan.machine_data)[0].items())
    given = plan.engine == GIVEN
    return NestPart(layer.workload, plan.machine_data, formulation.build, pins, homes=homes, given=given)


def answer_of(layer: LayerPlan, plan: LayersPlan) -> Answer[Nest]:
    """The answer that a row states."""
    values = layer.measures.model_dump() if layer.measures else {}
    picked = tuple(values[name] for name in plan.objectives) if values else ()
    bounds = bounds_of(layer.status, layer.bound, picked, len(plan.objectives))
    return Answer(
        None if layer.schedule is None else layer.schedule.to_nest(), values,
        dict(zip(plan.objectives, bounds, strict=True)), layer.status, stats=layer.stats, conflicts=layer.conflicts,
    )  # fmt: skip


def problems_of_layers(plan: LayersPlan) -> Derived:
    """Return every mismatch, and how many schedules were replayed and executed."""
    checker = _Checker(plan)
    problems = (*checker.head(), *checker.layers(), *checker.sums())
    executed = sum(
        not isinstance(one, str) and bool(one[0].walked.counts["executed"]) for one in checker.known.values()
    )
    return Derived(problems, len(checker.known), executed)


class _Checker:
    """Walks a plan; identical layers with identical schedules are replayed once."""

    def __init__(self, plan: LayersPlan) -> None:
        self.plan = plan
        self.known: dict[tuple[object, ...], tuple[Judged, LayerPlan] | str] = {}

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
            faults = [*self._status(layer), *self._same(layer)]
            if layer.schedule is not None:
                faults += self._schedule(layer, layer.schedule)
            elif layer.status == "INFEASIBLE":
                faults += self._infeasible(layer)
            yield from (f"{where}: {fault}" for fault in faults)

    def _status(self, layer: LayerPlan) -> Iterator[str]:
        solved = layer.status in ("OPTIMAL", "FEASIBLE")
        for field in ("schedule", "objective", "measures", "counts", "occupancy_bytes", "replay", "decision"):
            if (getattr(layer, field) is not None) != solved:
                yield f"status {layer.status} {'needs' if solved else 'cannot have'} field {field}"
        if bool(layer.conflicts) != (layer.status == "INFEASIBLE"):
            yield f"status {layer.status} with {len(layer.conflicts)} conflicts"
        value = layer.objective.value if layer.objective else None
        yield from unequal("gap", layer.gap, gap_of(value, layer.bound))
        if layer.status == "OPTIMAL" and layer.bound != value:
            yield f"status OPTIMAL, but bound {layer.bound} is not the value {value}"

    def _same(self, layer: LayerPlan) -> Iterator[str]:
        first = next((one for one in self.plan.layers if one.layer == layer.same_as), layer)
        same = (first.workload.signature(), first.schedule) == (layer.workload.signature(), layer.schedule)
        if layer.same_as is not None and (first is layer or not same):
            yield f"same_as {layer.same_as}: there is no such layer with the same schedule"

    def _schedule(self, layer: LayerPlan, schedule: Schedule) -> Iterator[str]:
        """What does not follow from a schedule."""
        key = layer.workload.signature(), schedule.to_nest()
        if key not in self.known:
            self.known[key] = self._derived(layer)
        known = self.known[key]
        if isinstance(known, str):
            yield known
            return
        found, made = known
        yield from found.faults
        if layer.bound is not None and layer.objective is not None and layer.bound > layer.objective.value:
            yield f"bound {layer.bound} is above the value {layer.objective.value}"
        for field in _FIGURES:
            yield from unequal(field, getattr(layer, field), getattr(made, field))
        for field, value in made.replay or ():
            yield from unequal(f"replay.{field}", getattr(layer.replay, field, None), value)
        for stated in (layer.decision, schedule.decision):
            yield from unequal("decision", stated, made.decision)

    def _derived(self, layer: LayerPlan) -> tuple[Judged, LayerPlan] | str:
        """Price, replay and all figures of a schedule; or why there are none."""
        try:
            part, said = self._part(layer), answer_of(layer, self.plan)
            known = judgement(part, said.schedule)
            return known, row(*judged([(part, replace(said, judged=known))]))
        except InputError as error:
            return str(error)

    def _part(self, layer: LayerPlan) -> NestPart:
        formulation = pick_nests(self.plan.problem)
        return part_of(layer, self.plan, formulation, pick_pins(list(self.plan.pins), formulation))

    def _infeasible(self, layer: LayerPlan) -> Iterator[str]:
        try:
            conflicts = self._part(layer).explain()
        except InputError as error:
            yield str(error)
            return
        if not conflicts:
            yield "status INFEASIBLE, but there is a plan that fits"
        else:
            yield from unequal("conflicts", layer.conflicts, conflicts)

    def sums(self) -> Iterator[str]:
        """Totals over the layers."""
        plan = self.plan
        housed = (plan.status, plan.bound) if plan.homes is not None else None
        try:
            yield from problems_of_homes(plan, pick_pins(list(plan.pins), pick_nests(plan.problem)))
        except InputError as error:
            yield str(error)
        for field, value in totals(plan.layers, plan.machine_data, housed).items():
            yield from unequal(field, getattr(plan, field), value)

"""Plans of any formulation: a formulation that implements `formulations.problem` needs nothing else in `solver`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from formulations.pins import parse_pins
from formulations.problem import Formulation, Part, Priced
from instances.errors import InputError
from instances.jsonfile import Json
from solver.claims import Claim
from solver.front import Front, FrontPart, FrontPoint
from solver.network_check import head_of
from solver.network_plan import WholePlan, head
from solver.network_show import known_parts
from solver.options import unknown
from solver.plan import Frozen, Gap, Natural, Options, Plan, Stat, Status, worst
from solver.problem import Derived, EngineInfo, Explained, Problem
from solver.question import Question
from solver.report import ABSENT, GAP, Column, Sheet, name_column, percent
from solver.search import Answer, settled, status_of
from solver.verify import PlanMismatch, gap_of, unequal
from solver.watch import Watch

__all__ = ["GenericOptions", "GenericPlan", "GenericProblem", "PartPlan"]

_SUMMARIES = {
    "exact": "the formulation's own exact search", "cp-sat": "CP-SAT (ortools)", "milp": "MILP with HiGHS",
    "milp-cbc": "MILP with CBC",
}  # fmt: skip


class GenericOptions(Options):
    """What else was asked for; no `layers` are all of them."""

    layers: tuple[str, ...]
    pins: tuple[str, ...]


class PartReplay(Frozen):
    """What the referee found."""

    ok: bool
    faults: tuple[str, ...]


class PartPlan(Frozen):
    """A part that is decided by itself.

    Attributes
    ----------
    layer : str
        Its name.
    measures, terms : dict
        All measures, and what sums to each; empty without a schedule.
    bounds : dict
        By objective what no schedule is below, given what the objectives before it ended with.
    schedule : dict or None
        As the formulation writes it.
    """

    layer: str
    status: Status
    measures: dict[str, Natural]
    terms: dict[str, dict[str, int]]
    bounds: dict[str, Natural | None]
    gap: Gap | None
    schedule: dict[str, Any] | None
    replay: PartReplay | None
    conflicts: tuple[str, ...]
    stats: dict[str, Stat]


class GenericPlan(WholePlan):
    """A plan of a formulation."""

    unit: str
    options: GenericOptions
    measures: dict[str, Natural] | None
    layers: tuple[PartPlan, ...]


@dataclass(frozen=True)
class _Engine:
    name: str
    summary: str
    proves: bool


class GenericProblem(Problem[GenericPlan]):
    """A formulation, as the rest of `solver` sees it."""

    plan = GenericPlan
    takes = frozenset({"layers"})
    floors = True
    explains = True
    front_engines = True

    def __init__(self, formulation: Formulation[Any]) -> None:
        self.formulation = formulation
        self.name, self.summary = formulation.name, formulation.summary
        self.measures, self.usual = formulation.measures, next(iter(formulation.measures))
        self.pins = {name: str(decision) for name, decision in formulation.decisions.items()}
        self.auto, self.quick = formulation.engines[0], tuple(formulation.heuristics)
        others = {name: tuple(o for o in formulation.engines if o != name) or (name,) for name in formulation.engines}
        self.others = {**others, "": formulation.engines}
        self.axes = formulation.measures if len(formulation.measures) > 1 else {}
        Plan.KINDS[self.name] = GenericPlan

    @property
    def engines(self) -> Mapping[str, EngineInfo]:
        """Those of the formulation, and its heuristics."""
        exact = [_Engine(name, _SUMMARIES[name], proves=True) for name in self.formulation.engines]
        guesses = [_Engine(name, about, proves=False) for name, (about, _) in self.formulation.heuristics.items()]
        return {engine.name: engine for engine in (*exact, *guesses)}

    # ---- solving -----------------------------------------------------------------------------------------------------

    def solve(self, question: Question) -> GenericPlan:
        """Decide every part."""
        start, rows, versions = time.monotonic(), list[PartPlan](), ""
        with question.watch() as watch:
            parts = self._parts(question)
            for number, part in enumerate(parts):
                said = self._settled(part, question, watch, len(parts) - number)
                versions = versions or said.versions
                rows.append(_row(part, said, question))
        pins, layers = question.pins, question.layers or ()
        options = GenericOptions(
            time_limit_s=question.time_limit_s, settings=question.settings, layers=layers, pins=pins
        )
        sums = _sums(rows, question.objectives, self.measures)
        fields = head(
            question, self.name, question.engine, status=worst(row.status for row in rows), start=start,
            engine_version=versions, unit=self.measures[question.objectives[0]],
        )  # fmt: skip
        return GenericPlan.model_validate({**fields, **sums, "options": options, "layers": tuple(rows)})

    def _settled(self, part: Part[Any], question: Question, watch: Watch, waiting: int) -> Answer[Any]:
        """Decide a part in its share of the time; a heuristic answers for a search that is stopped."""
        if part.explain():
            return Answer(None, {}, {}, "INFEASIBLE")
        share = watch.clock.share(waiting)
        hasty = self.quick[0] if self.quick else question.engine
        with watch.part(share.left) as mine:
            return mine.run(
                lambda: settled(self.formulation, part, question.objectives, question.engine, share.left),
                lambda: settled(self.formulation, part, question.objectives, hasty, 0.0),
            )

    def _parts(self, question: Question) -> Sequence[Part[Any]]:
        pins = parse_pins(question.pins, self.formulation.decisions)
        parts = self.formulation.read(question.network, question.machine, pins)
        if question.layers is None:
            return parts
        known = {part.name: part for part in parts}
        for name in question.layers:
            if name not in known:
                raise unknown("layer", name, known)
        return [known[name] for name in question.layers]

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of two measures: the least first one, of these the least second one; then with less of it."""
        wanted = axes or tuple(self.axes)[:2]
        if len(wanted) != 2:
            raise InputError(f"axes {','.join(wanted)}: fronts of problem {self.name} have two")
        parts = []
        for part in self._parts(question):
            points, cap, proven = list[FrontPoint](), dict[str, int](), True
            while True:
                said = settled(self.formulation, part, wanted, question.engine, question.time_limit_s, most=cap)
                if said.schedule is None:
                    proven = proven and said.status == "INFEASIBLE"
                    break
                proven = proven and said.status == "OPTIMAL"
                row = _row(part, said, question)
                body = {"schedule": row.schedule, "measures": row.measures}
                points.append(
                    FrontPoint({axis: row.measures[axis] for axis in wanted}, body, part.label(said.schedule))
                )
                cap = {wanted[1]: row.measures[wanted[1]] - 1}
                if cap[wanted[1]] < 0:
                    break
            parts.append(FrontPart(part.name, tuple(points), complete=proven, proven=proven))
        units = {axis: self.axes[axis] for axis in wanted}
        return Front(self.name, question.network.name, question.machine.name, units, tuple(parts))

    def explain(self, question: Question) -> Iterator[Explained]:
        """Part by part."""
        for part in self._parts(question):
            yield Explained(part.name, part.explain(), {})

    # ---- plans -------------------------------------------------------------------------------------------------------

    def derive(self, plan: GenericPlan) -> Derived:
        """Price and replay every schedule again."""
        return Derived(tuple(dict.fromkeys(self._faults(plan))), plan.size)

    def _faults(self, plan: GenericPlan) -> Iterator[str]:
        yield from head_of(plan, unit=self.measures.get(plan.objectives[0]))
        try:
            parts = {part.name: part for part in self._parts(self.question(plan))}
        except InputError as error:
            yield str(error)
            return
        if [row.layer for row in plan.layers] != list(parts):
            yield f"layers: the plan has {', '.join(row.layer for row in plan.layers)}, there are {', '.join(parts)}"
            return
        for row in plan.layers:
            yield from (f"{row.layer}: {fault}" for fault in self._faults_of(plan, row, parts[row.layer]))
        sums = _sums(plan.layers, plan.objectives, self.measures)
        sums["status"] = worst(row.status for row in plan.layers)
        for name, value in sums.items():
            yield from unequal(name, _plain(getattr(plan, name)), _plain(value))

    def _faults_of(self, plan: GenericPlan, row: PartPlan, part: Part[Any]) -> Iterator[str]:
        conflicts = part.explain()
        yield from unequal("conflicts", row.conflicts, conflicts)
        if row.schedule is None:
            if (row.status == "INFEASIBLE") != bool(conflicts) and row.status in ("INFEASIBLE", "OPTIMAL", "FEASIBLE"):
                yield f"status {row.status} without a schedule"
            return
        try:
            schedule = self.formulation.schedule.model_validate(row.schedule)
            priced, faults = _verified(part, schedule)
        except (InputError, ValidationError) as error:
            yield f"schedule: {' '.join(str(error).split())}"
            return
        yield from faults
        yield from unequal("measures", row.measures, dict(priced.measures))
        yield from unequal("terms", row.terms, {k: dict(v) for k, v in priced.terms.items()})
        values = {name: priced.measures[name] for name in plan.objectives}
        yield from unequal("status", row.status, status_of(values, row.bounds, empty=False))
        first = plan.objectives[0]
        yield from unequal("gap", row.gap, gap_of(values[first], row.bounds.get(first)))
        yield from unequal("replay", row.replay, PartReplay(ok=not faults, faults=tuple(faults)))
        for name, bound in row.bounds.items():
            if bound is not None and (name not in values or bound > values[name]):
                yield f"bounds: {name} {bound} is above the value {values.get(name)}"

    def claims(self, plan: GenericPlan) -> Iterator[Claim]:
        """Part by part."""
        for row in plan.layers:
            values = tuple(row.measures[name] for name in plan.objectives) if row.measures else ()
            bounds = tuple(row.bounds.get(name) for name in plan.objectives)
            yield Claim(row.layer, row.status, plan.objectives, values, bounds)

    def figures(self, plan: GenericPlan) -> Mapping[str, int]:
        """Sums over the parts."""
        return plan.measures or {}

    def status(self, plan: GenericPlan) -> list[str]:
        """What is known."""
        return [*known_parts(plan), *(["replay agrees"] if plan.objective is not None else [])]

    def sheet(self, plan: GenericPlan) -> Sheet:
        """A row a part: the objective, gap, the other measures, and the schedule in short."""
        parts, rows = {part.name: part for part in self._parts(self.question(plan))}, plan.layers
        measures = [
            Column(
                f"{name} ({self.measures[name]})",
                [f"{row.measures[name]:,}" if row.measures else ABSENT for row in rows],
                total=f"{plan.measures[name]:,}" if plan.measures else "",
            )
            for name in dict.fromkeys((plan.objectives[0], *self.measures))
        ]
        gaps = [row.status if row.schedule is None else percent(row.gap) for row in rows]
        made = [
            parts[row.layer].label(self.formulation.schedule.model_validate(row.schedule)) if row.schedule else ABSENT
            for row in rows
        ]
        return Sheet(
            [
                name_column("part", [row.layer for row in rows]),
                measures[0],
                Column("gap (%)", gaps, GAP, percent(plan.gap)),
                *measures[1:],
                Column("schedule", made, words=True),
            ]
        )

    def details(self, plan: GenericPlan, layer: str | None) -> Iterator[str]:
        """Schedules as the formulation writes them."""
        parts = {part.name: part for part in self._parts(self.question(plan))}
        for row in plan.layers:
            if row.schedule is not None and layer in (None, row.layer):
                schedule = self.formulation.schedule.model_validate(row.schedule)
                yield from (f"{row.layer}: {row.status}", parts[row.layer].show(schedule), "")

    def question(self, plan: GenericPlan) -> Question:
        """What a stored plan was asked."""
        return Question(
            plan.network_data, plan.machine_data, plan.objectives, self.name, self.auto, pins=plan.options.pins,
            layers=plan.options.layers or None,
        )  # fmt: skip


def _verified(part: Part[Any], schedule: BaseModel) -> tuple[Priced, list[str]]:
    """Return the price, and everything in which space, price and replay disagree."""
    priced, walked = part.price(schedule), part.replay(schedule)
    faults = [*part.contains(schedule), *walked.faults]
    if not faults:
        names = sorted({*priced.measures, *walked.measures})
        pairs = [(name, priced.measures.get(name), walked.measures.get(name)) for name in names]
        faults += [f"{name}: priced {one}, replayed {two}" for name, one, two in pairs if one != two]
        sums = [(name, priced.measures.get(name), sum(terms.values())) for name, terms in priced.terms.items()]
        faults += [f"{name}: {one}, but its terms sum to {two}" for name, one, two in sums if one != two]
    return priced, faults


def _row(part: Part[Any], said: Answer[Any], question: Question) -> PartPlan:
    """Return the plan of a part; raises PlanMismatch if its price, its replay or its proof disagree."""
    row = PartPlan(
        layer=part.name, status=said.status, measures={}, terms={}, bounds=dict(said.bounds), gap=None, schedule=None,
        replay=None, conflicts=part.explain() if said.status == "INFEASIBLE" else (), stats=dict(said.stats),
    )  # fmt: skip
    if said.schedule is None:
        return row
    priced, faults = _verified(part, said.schedule)
    above = {name: bound for name, bound in said.bounds.items() if bound is not None and bound > said.values[name]}
    faults += [f"bound {bound} of {name} is above the value {said.values[name]}" for name, bound in above.items()]
    if faults:
        raise PlanMismatch(f"{part.name}, engine {question.engine}: {'; '.join(faults[:5])}")
    first = next(iter(said.values))
    return row.model_copy(update={
        "measures": dict(priced.measures), "terms": {name: dict(terms) for name, terms in priced.terms.items()},
        "gap": gap_of(said.values[first], said.bounds.get(first)),
        "schedule": said.schedule.model_dump(mode="json"), "replay": PartReplay(ok=True, faults=()),
    })  # fmt: skip


def _sums(rows: Sequence[PartPlan], objectives: Sequence[str], units: Mapping[str, str]) -> dict[str, object]:
    """What a plan says of all parts together."""
    first, names = objectives[0], list(units)
    measures = {name: sum(row.measures[name] for row in rows) for name in names} if _all_planned(rows) else None
    bounds = [row.bounds.get(first) for row in rows]
    bound = None if None in bounds else sum(one for one in bounds if one is not None)
    objective = None
    if measures is not None:
        terms = {row.layer: row.measures[first] for row in rows}
        objective = {"value": measures[first], "unit": units[first], "terms": terms}
    conflicts = tuple(f"{row.layer}: {line}" for row in rows for line in row.conflicts)
    value = None if measures is None else measures[first]
    return {
        "measures": measures, "objective": objective, "bound": bound, "gap": gap_of(value, bound),
        "conflicts": conflicts,
    }  # fmt: skip


def _all_planned(rows: Sequence[PartPlan]) -> bool:
    return bool(rows) and all(row.measures for row in rows)


def _plain(value: object) -> Json | object:
    return value.model_dump() if isinstance(value, BaseModel) else value

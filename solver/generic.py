"""Plans of any formulation: one that implements `formulations.problem` needs nothing else in `solver`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from solver.network_show import known_parts
from solver.parts import PartsPlan, PartsProblem
from solver.plan import Frozen, Gap, Natural, Stat, Status
from solver.search import Answer
from solver.tables import ABSENT, GAP, Column, Sheet, name_column, percent
from solver.verdict import Verdict


class PartReplay(Frozen):
    """What the referee found."""

    ok: bool
    faults: tuple[str, ...]


class PartPlan(Frozen):
    """A part that is decided by itself."""

    layer: str
    """Its name."""
    status: Status
    measures: dict[str, Natural]
    terms: dict[str, dict[str, int]]
    """`measures`, `terms`: all measures, and what sums to each; empty without a schedule."""
    bounds: dict[str, Natural | None]
    """By objective what no schedule is below, given what the objectives before it ended with."""
    gap: Gap | None
    schedule: dict[str, Any] | None
    """As the formulation writes it."""
    replay: PartReplay | None
    conflicts: tuple[str, ...]
    stats: dict[str, Stat]


class GenericPlan(PartsPlan):
    """A plan of a formulation."""

    measures: dict[str, Natural] | None
    layers: tuple[PartPlan, ...]

    @property
    def decided(self) -> bool:
        """Whether every part has a schedule."""
        return all(row.schedule is not None for row in self.layers)


class GenericProblem(PartsProblem[GenericPlan]):
    """A formulation with plans that are alike for all formulations."""

    plan = GenericPlan

    def row(self, verdict: Verdict) -> PartPlan:
        """Return the schedule as the formulation writes it, and what it costs."""
        said, priced = verdict.said, verdict.priced
        return PartPlan(
            layer=verdict.part.name, status=said.status, measures=dict(priced.measures) if priced else {},
            terms={name: dict(terms) for name, terms in priced.terms.items()} if priced else {},
            bounds=dict(said.bounds), gap=verdict.gap, conflicts=said.conflicts, stats=dict(said.stats),
            schedule=self._json.dump_python(said.schedule, mode="json") if priced else None,
            replay=PartReplay(ok=not verdict.disagreements, faults=verdict.disagreements) if priced else None,
        )  # fmt: skip

    def said(self, row: PartPlan) -> Answer[Any]:
        """Return what a row says of measures and bounds."""
        return Answer(None, row.measures, row.bounds, row.status, stats=row.stats, conflicts=row.conflicts)

    def decided(self, row: PartPlan) -> Any:
        """Return the schedule of a row."""
        return None if row.schedule is None else self._json.validate_python(row.schedule)

    @property
    def _json(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.formulation.schedule)

    def totals(self, objectives: Sequence[str], verdicts: Sequence[Verdict]) -> dict[str, Any]:
        """Sum all measures."""
        priced = [one.priced.measures for one in verdicts if one.priced is not None]
        sums = {name: sum(one[name] for one in priced) for name in self.measures}
        return {**super().totals(objectives, verdicts), "measures": sums if len(priced) == len(verdicts) else None}

    def figures(self, plan: GenericPlan) -> Mapping[str, int]:
        """Sums over the parts."""
        return plan.measures or {}

    def status(self, plan: GenericPlan) -> list[str]:
        """What is known."""
        return [*known_parts(plan), *(["replay agrees"] if plan.objective is not None else [])]

    def sheet(self, plan: GenericPlan) -> Sheet:
        """A row a part: the objective, gap, the other measures, and the schedule in short."""
        parts, rows = self.parts(self.question(plan)), plan.layers
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
            part.label(self.decided(row)) if row.schedule else ABSENT for part, row in zip(parts, rows, strict=True)
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
        for part, row in zip(self.parts(self.question(plan)), plan.layers, strict=True):
            if row.schedule is not None and layer in (None, row.layer):
                yield from (f"{row.layer}: {row.status}", part.show(self.decided(row)), "")

"""Plans of layers, layer by layer, for those who show and compare them; and the part that a row is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from formulations.pins import Pins
from formulations.tiling.part import NestFigures, NestPart
from formulations.tiling.problem import Nests
from hwmodels.nest.homes import assignments
from hwmodels.outcome import MEASURES, Counts
from hwmodels.schedule import Nest
from instances.network.workload import Layer
from solver.plan.plan import Measures, Objective, PartPlan, PartReplay, Plan, Stat, Status

#: The engine of plans that nobody decided here: a mapping was given, priced and replayed (docs/mappings.md).
GIVEN = "given"


@dataclass(frozen=True)
class LayerRow:
    """A layer of a plan, with what was planned for it; what follows from a schedule is None without one."""

    part: PartPlan
    workload: Layer
    first: str
    """The first objective."""

    @property
    def name(self) -> str:
        """Of the layer."""
        return self.part.name

    @property
    def layer(self) -> str:
        """The same."""
        return self.part.name

    @property
    def status(self) -> Status:
        """Of the layer alone; with homes over all nests for the homes that it has."""
        return self.part.status

    @property
    def schedule(self) -> Nest | None:
        """The nest."""
        nest: Nest | None = self.part.schedule
        return nest

    @property
    def figures(self) -> NestFigures | None:
        """What follows from the nest beside its measures."""
        figures: NestFigures | None = self.part.figures
        return figures

    @property
    def measures(self) -> Measures | None:
        """All three."""
        found = {name: self.part.measures[name] for name in MEASURES} if self.part.measures else None
        return None if found is None else Measures(**found)

    @property
    def objective(self) -> Objective | None:
        """The first objective with its terms."""
        if not self.part.measures:
            return None
        terms = self.part.terms.get(self.first, {})
        return Objective(value=self.part.measures[self.first], unit=MEASURES[self.first], terms=terms)

    @property
    def bound(self) -> int | None:
        """Of the first objective."""
        return self.part.bounds.get(self.first)

    @property
    def gap(self) -> float | None:
        """Of the first objective."""
        return self.part.gap

    @property
    def decision(self) -> Mapping[str, int | str] | None:
        """The decisions that the nest stands for."""
        return None if self.figures is None else self.figures.decision

    @property
    def counts(self) -> Counts | None:
        """All that moves."""
        return None if self.figures is None else self.figures.total

    @property
    def occupancy_bytes(self) -> Mapping[str, int] | None:
        """The most that is taken of every memory."""
        return None if self.figures is None else self.figures.occupancy_bytes

    @property
    def lower_bound_bytes(self) -> int | None:
        """What no plan of the layer can do without; None without a nest, or where printed equations are the price."""
        return None if self.figures is None else self.figures.lower_bound_bytes

    @property
    def replay(self) -> PartReplay | None:
        """What the referee found."""
        return self.part.replay

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Demands that cannot be met together."""
        return self.part.conflicts

    @property
    def stats(self) -> Mapping[str, Stat]:
        """Of the engine."""
        return self.part.stats

    @property
    def same_as(self) -> str | None:
        """The layer before it that it equals."""
        return self.part.same_as

    @property
    def wall_s(self) -> float:
        """Seconds it took to decide."""
        return self.part.wall_s


def is_layers(plan: Plan) -> bool:
    """Whether a plan is of layers by themselves, with a nest each."""
    return bool(plan.TYPES[plan.problem].figures == NestFigures)


def layer_rows(plan: Plan) -> tuple[LayerRow, ...]:
    """Return the layers of a plan in their order."""
    pairs = zip(plan.parts, plan.network_data, strict=True)
    return tuple(LayerRow(part, layer, plan.objectives[0]) for part, layer in pairs)


def part_of(row: LayerRow, plan: Plan, formulation: Nests, pins: Pins) -> NestPart:
    """The layer that a row is about, with the homes of its schedule; with some where it has none."""
    homes = row.schedule.homes if row.schedule else None
    if homes is None:  # memory on chip does not depend on them
        homes = tuple(assignments(row.workload, plan.machine_data)[0].items())
    given = plan.engine == GIVEN
    return NestPart(row.workload, plan.machine_data, formulation.build, pins, homes=homes, given=given)

"""What plans of layers by themselves (tiling, slicing) say of each: a nest, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from formulations.tiling.part import NestFigures
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
    name: str
    layer: str
    """`name`, `layer`: of the layer."""
    status: Status
    """Of the layer alone; with homes over all nests for the homes that it has."""
    schedule: Nest | None
    figures: NestFigures | None
    """`schedule`, `figures`: the nest, and what follows from it beside its measures."""
    measures: Measures | None
    objective: Objective | None
    bound: int | None
    gap: float | None
    """`objective`, `bound`, `gap`: of the first objective."""
    decision: Mapping[str, int | str] | None
    """The decisions that the nest stands for."""
    counts: Counts | None
    """All that moves."""
    occupancy_bytes: Mapping[str, int] | None
    """The most that is taken of every memory."""
    lower_bound_bytes: int | None
    """What no plan of the layer can do without; None without a nest, or where printed equations are the price."""
    replay: PartReplay | None
    conflicts: tuple[str, ...]
    """Demands that cannot be met together."""
    stats: Mapping[str, Stat]
    same_as: str | None
    """The layer before it that it equals."""
    wall_s: float

    @classmethod
    def of(cls, part: PartPlan, workload: Layer, first: str) -> LayerRow:
        """The row of a layer; `first` is the first objective."""
        known, figures = part.measures, part.figures or None
        terms = part.terms.get(first, {})
        return cls(
            part, workload, part.name, part.name, part.status, part.schedule, figures,
            Measures(**{name: known[name] for name in MEASURES}) if known.keys() >= MEASURES.keys() else None,
            Objective(value=known[first], unit=MEASURES.get(first, ""), terms=terms) if first in known else None,
            part.bounds.get(first), part.gap,
            figures and figures.decision, figures and figures.total, figures and figures.occupancy_bytes,
            figures and figures.lower_bound_bytes,
            part.replay, part.conflicts, part.stats, part.same_as, part.wall_s,
        )  # fmt: skip


def is_layers(plan: Plan) -> bool:
    """Whether a plan is of layers by themselves, with a nest each."""
    return bool(plan.types.figures == NestFigures)


def layer_rows(plan: Plan) -> tuple[LayerRow, ...]:
    """Return the layers of a plan in their order."""
    pairs = zip(plan.parts, plan.network_data, strict=True)
    return tuple(LayerRow.of(part, layer, plan.objectives[0]) for part, layer in pairs)

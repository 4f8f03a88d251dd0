"""The part that a row of a plan is about, whoever made the plan."""

from __future__ import annotations

from formulations.pins import Pins
from formulations.tiling.nests import Nests
from formulations.tiling.part import NestPart
from hwmodels.nest.homes import assignments
from solver.plan import Plan
from solver.tiling.rows import GIVEN, LayerRow


def part_of(row: LayerRow, plan: Plan, formulation: Nests, pins: Pins) -> NestPart:
    """The layer that a row is about, with the homes of its schedule; with some where it has none."""
    homes = row.schedule.homes if row.schedule else None
    if homes is None:  # memory on chip does not depend on them
        homes = tuple(assignments(row.workload, plan.machine_data)[0].items())
    given = plan.engine == GIVEN
    return NestPart(row.workload, plan.machine_data, formulation.build, pins, homes=homes, given=given)

"""The stages of plans in memory banks, as they are shown: what is decided, what the network says, what was counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from formulations.banks.readings import readings
from hwmodels.banks.replay_time import StageFigures
from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.stage import FeatureMap, Stage
from solver.plan import Plan

#: The kind of a layer whose work the layer before it does: an average.
FUSED = "fused"
_NOTHING = StageFigures(0, 0, 0, 0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class StageRow:
    """A stage, or the pool that is fused with it, which moves nothing and takes no time of its own."""

    name: str
    kind: str
    run: StageRun
    stage: Stage
    source: FeatureMap
    target: FeatureMap
    seen: StageFigures

    @property
    def initial(self) -> int:
        """Tiles of the source on chip when the stage begins."""
        return sum(not tile.loaded for tile in self.run.tiles)

    @property
    def code(self) -> str:
        """The control code as the source writes it, and what stays."""
        if self.kind == FUSED:
            return f"fused with {self.stage.name}"
        run = self.run
        stays = f", {len(run.results)} stay" + (" mirrored" if run.last else "") if run.results else ""
        return f"{self.initial} there: {actions(run)}{stays}"


def actions(run: StageRun) -> str:
    """The control code of a stage: L loads, P processes so many tiles."""
    return " ".join(f"{do[0].upper()}{tiles}" for do, tiles in run.actions)


def rows_of(plan: Plan) -> list[StageRow]:
    """Return the stages of a plan in the order that they run, fused pools behind theirs; none without a schedule.

    Raises
    ------
    InputError
        If the schedule is none of this network, or the figures are not those of the schedule.
    """
    with fitting():
        return [] if plan.schedule is None else list(_rows(plan))


@contextmanager
def fitting() -> Iterator[None]:
    """Say that a plan does not fit what it is for, where something in it is not found."""
    try:
        yield
    except (LookupError, TypeError, ValueError):
        raise InputError("schedule and figures of the plan do not fit its network: check the plan") from None


def _rows(plan: Plan) -> Iterator[StageRow]:
    program, seen = plan.schedule, plan.part.figures
    found = readings(plan.network_data, plan.machine_data, program.first_layer)[program.first_layer]
    for run in program.runs:
        stage = found.named(run.stage)
        maps = found.maps[run.source], found.maps[stage.target]
        yield StageRow(stage.name, stage.kind, run, stage, *maps, seen[stage.name])
        if stage.pooled is not None:
            yield StageRow(stage.target, FUSED, run, stage, *maps, _NOTHING)


def waits_of(plan: Plan) -> int:
    """Return the delay of the processing elements: ticks in which they wait for DRAM."""
    return sum(one.waits for one in (plan.part.figures or {}).values())

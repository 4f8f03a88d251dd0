"""One layer, decided and verified: the unit of work that runs here or in another process."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hwmodels.nest.homes import settled
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.jsonfile import LARGEST_INTEGER
from instances.machine import Machine
from instances.workload import Layer
from solver.plan import Schedule, Stat, Status
from solver.progress import Interrupts
from solver.tiling.buffers import buffers
from solver.tiling.plan import LayerPlan
from solver.verify import PlanMismatch, counts_of, gap_of, limits_of, measures_of, objective_of, verify

if TYPE_CHECKING:
    from formulations.pins import Pins
    from formulations.registry import Builder
    from formulations.tiling.space import Space
    from solver.engines.base import Engine, EngineResult, Limits

__all__ = ["Answer", "Job", "decide", "unanswered"]


@dataclass(frozen=True)
class Job:
    """One layer to plan, and how.

    `homes` of its operands where the machine has several memories off the chip. `build` and `engine.run` are
    module-level functions, so that a job can be sent to another process.
    """

    layer: Layer
    machine: Machine
    build: Builder
    pins: Pins
    full: bool
    engine: Engine
    objectives: tuple[str, ...]
    bounding: bool
    homes: tuple[tuple[str, str], ...] = ()

    def space(self) -> Space:
        """Build the space; raises InputError if the problem or the homes do not fit the machine."""
        machine = settled(self.layer, self.machine, dict(self.homes))
        return self.build(self.layer, machine, self.pins, full=self.full)


@dataclass(frozen=True)
class Answer:
    """The plan of one layer and the engine's version; `interrupted` if Ctrl-C cut the search short."""

    plan: LayerPlan
    versions: str
    interrupted: bool


def decide(job: Job, time_limit_s: float | None, interrupts: Interrupts) -> Answer:
    """Build the space, run the engine, and verify its schedule.

    Ctrl-C during building or deciding gives what the engine returns, or NO_SOLUTION_FOUND if it returns nothing;
    the verification that follows is finished in any case (a second Ctrl-C ends it).

    Raises
    ------
    InputError
        If the problem does not fit the machine.
    PlanMismatch
        If engine, price and replay do not agree.
    """
    if interrupts.pressed:
        return Answer(unanswered(job.layer), "", interrupted=True)
    start = time.monotonic()
    space: Space | None = None
    result: EngineResult | None = None
    try:
        with interrupts.armed():
            space = job.space()
            built = time.monotonic() - start
            result = job.engine.run(space, job.objectives, _limits(job, time_limit_s, built))
    except KeyboardInterrupt:
        pass
    wall = time.monotonic() - start
    if space is None or result is None:
        return Answer(unanswered(job.layer, wall_s=wall), "", interrupted=True)
    plan = _verified(job, space, result, wall)
    return Answer(plan, result.versions, interrupts.pressed or bool(result.stats.get("interrupted")))


def _limits(job: Job, time_limit_s: float | None, spent_s: float) -> Limits:
    from solver.engines.base import Limits  # late: importing the engines' package imports every solver

    # A limit of zero would mean none to some solvers.
    left = None if time_limit_s is None else max(0.01, time_limit_s - spent_s)
    return Limits(time_limit_s=left, bounding=job.bounding)


def unanswered(layer: Layer, *, wall_s: float = 0.0, note: str = "") -> LayerPlan:
    """Return the plan of a layer for which nothing was found in time."""
    return _plan(layer, "NO_SOLUTION_FOUND", wall_s=wall_s, stats={"note": note} if note else {})


def _plan(layer: Layer, status: Status, **found: object) -> LayerPlan:
    fields: dict[str, object] = {
        "objective": None, "bound": None, "gap": None, "wall_s": 0.0, "schedule": None, "decision": None,
        "measures": None, "counts": None, "occupancy_bytes": None, "replay": None, "conflicts": (), "size": {},
        "stats": {}, "same_as": None,
    }  # fmt: skip
    return LayerPlan.model_validate({"layer": layer.name, "workload": layer, "status": status, **fields, **found})


def _verified(job: Job, space: Space, result: EngineResult, wall_s: float) -> LayerPlan:
    """Turn an engine's answer into a plan, or refuse it."""
    common = {"wall_s": wall_s, "size": _integers(space.size), "stats": _stats(result.stats)}
    if result.nest is None:
        if result.status == "INFEASIBLE":
            return _plan(job.layer, "INFEASIBLE", conflicts=space.explain(), **common)
        return _plan(job.layer, "NO_SOLUTION_FOUND", bound=_bound(result), **common)
    nest = result.nest.at(dict(job.homes))
    try:
        verdict = verify(job.layer, job.machine, nest)
    except InputError as error:
        raise PlanMismatch(f"layer {job.layer.name}, engine {job.engine.name}: {error}") from error
    outcome = verdict.outcome
    value, bound = outcome.measures[job.objectives[0]], _bound(result)
    faults = [*verdict.faults, *_claims(result, outcome.measures, value, bound)]
    if faults:
        raise PlanMismatch(f"layer {job.layer.name}, engine {job.engine.name}: {'; '.join(faults)}")
    decision = _decision(space, nest)
    return _plan(
        job.layer, result.status, **common,
        objective=objective_of(job.objectives[0], job.layer, job.machine, outcome, dict(job.homes)),
        bound=bound, gap=gap_of(value, bound), schedule=Schedule.of(nest, decision), decision=decision,
        limits=limits_of(job.layer, job.machine),
        measures=measures_of(outcome), counts=counts_of(outcome), occupancy_bytes=outcome.occupancy_bytes,
        replay=verdict.replay, buffers=buffers(job.layer, job.machine, nest),
    )  # fmt: skip


def _claims(result: EngineResult, priced: Mapping[str, int], value: int, bound: int | None) -> list[str]:
    """Compare what the engine claims with the price."""
    claimed = result.measures or {}
    faults = [
        f"{measure} [{unit}]: engine says {claimed.get(measure)}, priced {priced[measure]}"
        for measure, unit in MEASURES.items()
        if claimed.get(measure) != priced[measure]
    ]
    if bound is not None and bound > value:
        faults.append(f"bound {bound} is above the value {value}")
    if result.status == "OPTIMAL" and bound != value:
        faults.append(f"status OPTIMAL with bound {bound} and value {value}")
    if result.status not in ("OPTIMAL", "FEASIBLE"):
        faults.append(f"status {result.status} comes with a schedule")
    return faults


def _decision(space: Space, nest: Nest) -> dict[str, int | str]:
    return {name: v if isinstance(v, str) else int(v) for name, v in space.decision(nest).items()}


def _bound(result: EngineResult) -> int | None:
    return None if result.bound is None else int(result.bound)


def _integers(size: Mapping[str, int]) -> dict[str, int]:
    # Plan files carry no integer beyond 2**53; a space that large is "at least that".
    return {name: min(int(count), LARGEST_INTEGER) for name, count in size.items()}


def _stats(stats: Mapping[str, object]) -> dict[str, Stat]:
    """Return engine statistics as plain JSON values."""
    plain: dict[str, Stat] = {}
    for name, value in stats.items():
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            value = None
        plain[name] = value if value is None or isinstance(value, bool | int | float | str) else str(value)
    return plain

"""One layer, decided and verified: the unit of work that runs here or in another process."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from solver.tiling.buffers import buffers
from solver.tiling.plan import LayerPlan
from solver.verify import PlanMismatch, counts_of, gap_of, limits_of, measures_of, objective_of, verify
from solver.watch import NO_LIMIT, Watch

if TYPE_CHECKING:
    from formulations.pins import Pins
    from formulations.registry import Builder
    from formulations.tiling.space import Space
    from solver.engines.base import Engine, EngineResult, Limits

__all__ = ["Answer", "Job", "unanswered"]

#: Seconds below which a search is not begun, those that a quick plan may take, and those after the limit in which spare
#: jobs are still planned.
WORTH_S, QUICK_S, SPARE_S = 0.1, 5.0, 1.0


@dataclass(frozen=True)
class Answer:
    """The plan of one layer and the engine's version; `interrupted` if a signal cut the search short."""

    plan: LayerPlan
    versions: str
    interrupted: bool

    def noted(self, note: str) -> Answer:
        """The same with a note in its stats."""
        return replace(self, plan=self.plan.model_copy(update={"stats": {**self.plan.stats, "note": note}}))


@dataclass(frozen=True)
class Job:
    """One layer to plan, and how.

    `homes` of its operands where the machine has several memories off the chip; it is `spare` if there is a job for
    other homes, so that nobody hurries to plan it. `build` and `engine.run` are module-level functions, so that a job
    can be sent to another process.
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
    spare: bool = False

    @property
    def name(self) -> str:
        """Of the layer, for messages."""
        return f"layer {self.layer.name}"

    def space(self) -> Space:
        """Build the space; raises InputError if the problem or the homes do not fit the machine."""
        machine = settled(self.layer, self.machine, dict(self.homes))
        return self.build(self.layer, machine, self.pins, full=self.full)

    def decide(self, time_limit_s: float | None, watch: Watch) -> Answer:
        """Build the space, run the engine, and verify its schedule.

        A limit or a signal during building or deciding gives what the engine returns, or else a quick plan
        (`solver.quick`), which is also what there is after a signal and in less than `WORTH_S`. What follows is
        verified in any case (a second signal ends it).

        Parameters
        ----------
        time_limit_s : float or None
            This job's share of the time of `watch`.

        Raises
        ------
        InputError
            If the problem does not fit the machine.
        PlanMismatch
            If engine, price and replay do not agree.
        """
        if self.spare and watch.clock.later(SPARE_S).over:
            return Answer(unanswered(self.layer, note="stopped by time limit"), "", False)
        start = time.monotonic()
        space: Space | None = None
        result: EngineResult | None = None
        with watch.part(time_limit_s) as mine:
            try:
                with mine.armed():
                    space = self.space()
                    if time_limit_s is None or time_limit_s >= WORTH_S:
                        result = self.engine.run(space, self.objectives, _limits(self, mine, watch))
                        mine.heard(result.stats)
            except KeyboardInterrupt:
                if mine.urgent:
                    raise
        why = mine.reason or "time limit"
        if result is None or (result.status == "NO_SOLUTION_FOUND" and self.engine.proves):
            space, result = _hasty(self, space, result, why)
        wall = time.monotonic() - start
        signalled = watch.signalled
        if space is None or result is None:
            return Answer(unanswered(self.layer, wall_s=wall, note=f"stopped by {why}"), "", signalled)
        try:
            return Answer(_verified(self, space, result, wall), result.versions, signalled)
        except MemoryError:
            return Answer(unanswered(self.layer, wall_s=wall, note="no memory to verify a plan"), "", signalled)


def _hasty(
    job: Job, space: Space | None, found: EngineResult | None, why: str
) -> tuple[Space | None, EngineResult | None]:
    """A quick plan, with the bound of the engine if that is better; nothing if even that takes too long."""
    from solver.quick import quick  # late: the engines' package imports every solver

    with Watch(QUICK_S, NO_LIMIT) as watch:
        try:
            with watch.armed():
                space = space or job.space()
                said = quick(space, job.objectives, why)
        except KeyboardInterrupt:
            if watch.urgent:
                raise
            return space, found
    if found is not None:
        bound = max((one.bound for one in (found, said) if one.bound is not None), default=None)
        value = None if said.measures is None else said.measures[job.objectives[0]]
        bound = bound if value is None or bound is None else min(bound, value)
        said = replace(said, bound=bound, versions=found.versions, stats={**found.stats, **said.stats})
    return space, said


def _limits(job: Job, mine: Watch, whole: Watch) -> Limits:
    from solver.engines.base import Limits  # late: importing the engines' package imports every solver

    # A limit of zero would mean none to some solvers.
    left = None if mine.clock.left is None else max(0.01, mine.clock.remaining)
    return Limits(time_limit_s=left, end_s=whole.end_s, bounding=job.bounding)


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

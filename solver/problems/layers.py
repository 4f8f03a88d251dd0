"""Layers, each by itself: what plans say of them, how one or every layer of a network is planned, and exact fronts.

**Planning** (`prepare`, `searched`, `decide`): by the loop of all formulations, or with hardly any time by the first
plan that fits.

**Fronts** (`front`): which plans no other beats in all of bytes, time and on-chip memory. Two axes (a, b): minimise a,
then b among the least a; then the same below that b, until nothing is left. Where each step is a proven lexicographic
optimum the points are the whole front (`Front.proven`: bytes and memory; time seldom, where they are the front of the
candidates). With three axes (bytes, time, memory) the front of two is found for the whole memory and again for one byte
less than the largest point of it took, and so on: a point of the front is found at the first memory size that no point
of the front for it exceeds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

from formulations.clock import ENDLESS, Clock
from formulations.homes.space import Places, check_home_pins, places_of
from formulations.pins import Pins, parse_pins
from formulations.tiling.part import Assignment, NestFigures, NestPart
from formulations.tiling.problem import NESTS, Nests
from formulations.tiling.search import Search
from formulations.tiling.space import Space
from hwmodels.nest.homes import assignments
from hwmodels.outcome import MEASURES, Counts
from hwmodels.schedule import Nest
from instances.applications import Applications
from instances.errors import InputError, PlanMismatch, choices
from instances.machine.machine import Machine
from instances.network.buffers import Buffers
from instances.network.variants import Variants
from instances.network.workload import Layer
from instances.problems import nested
from solver.ask.options import pick_layers, pick_nests
from solver.ask.question import Question
from solver.plan.plan import Measures, Objective, PartPlan, PartReplay, Plan, Stat, Status, proof
from solver.search.deciding import Job
from solver.search.loop import Answer, decide_part, fallback
from solver.search.verdict import price_and_replay

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
    return bool(plan.TYPES[plan.problem].figures == NestFigures)


def layer_rows(plan: Plan) -> tuple[LayerRow, ...]:
    """Return the layers of a plan in their order."""
    pairs = zip(plan.parts, plan.network_data, strict=True)
    return tuple(LayerRow.of(part, layer, plan.objectives[0]) for part, layer in pairs)


def part_of(row: LayerRow, plan: Plan, formulation: Nests, pins: Pins) -> NestPart:
    """The layer that a row is about, with the homes of its schedule; with some where it has none."""
    homes = row.schedule.homes if row.schedule else some_homes(row.workload, plan.machine_data)
    given = plan.engine == GIVEN
    return NestPart(row.workload, plan.machine_data, formulation.build, pins, homes=homes, given=given)


def some_homes(layer: Layer, machine: Machine) -> Assignment:
    """Homes that the operands of a layer may have: memory on chip does not depend on them."""
    return tuple(assignments(layer, machine)[0].items())


# ---- planning --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """What is asked about layers, checked; `places` where the machine has several memories off the chip."""

    asked: Question
    """About the layers themselves."""
    layers: tuple[Layer, ...]
    formulation: Nests
    pins: Pins
    places: Places | None = None

    def part(self, layer: Layer, homes: Assignment = (), *, optional: bool = False) -> NestPart:
        """A layer with homes of its operands."""
        return NestPart(
            layer, self.asked.machine, self.formulation.build, self.pins, full=self.asked.full, homes=homes,
            optional=optional, bounding=self.asked.bounding,
        )  # fmt: skip


def prepare(question: Question, places: Places | None = None) -> Request:
    """Check everything that is asked, before any time is spent; raises InputError.

    Layers of a plan are given with their `places`, if they have any.
    """
    machine, target = question.machine, question.target
    if isinstance(target, Applications):
        raise InputError("several applications are planned together, by problem applications only")
    if isinstance(target, Buffers | Variants):
        raise InputError(f"target {target.name}: problem {question.problem} plans networks, this is something else")
    if machine.problem not in nested():
        raise InputError(f"machine {machine.name}: it is meant for problem {machine.problem}, not {question.problem}")
    formulation = pick_nests(question.problem)
    demands = parse_pins(question.pins, formulation.decisions)
    check_home_pins(machine, demands)
    if isinstance(target, tuple):
        return Request(question, target, formulation, demands, places)
    picked = pick_layers(target, question.layers, all_kinds=question.all_kinds)
    if machine.off_chip:
        places = places_of(target, picked, machine, demands)
    return Request(replace(question, target=picked, title=target.name), picked, formulation, demands, places)


#: Seconds that a quick plan may take.
_QUICK_S = 5.0


def job_of(formulation: Nests, part: NestPart, objectives: tuple[str, ...], engine: str) -> Job:
    """Return the work of deciding a layer."""
    return Job(part, objectives, partial(searched, formulation, engine), partial(fallback, formulation), _QUICK_S)


def searched(
    formulation: Nests, engine: str, part: NestPart, objectives: tuple[str, ...], clock: Clock
) -> Answer[Nest]:  # fmt: skip
    """Decide a layer, and say which of several objectives are proven; it is one piece, whatever was asked."""
    said = decide_part(formulation, part, objectives, engine, clock)
    proven = takewhile(lambda name: said.bounds[name] == said.values.get(name), objectives)
    claims = proof(objectives, proven) if said.values and engine in formulation.engines else {}
    stats = {**said.stats, **claims}
    return replace(said, stats={name: value for name, value in stats.items() if name != "pieces"})


def decide(
    space: Space, objectives: Sequence[str], engine: str = "exhaustive", clock: Clock = ENDLESS, *,
    bounding: bool = True,
) -> Answer[Nest]:  # fmt: skip
    """Decide a space by an engine of its problem; the values are time, bytes and energy."""
    start, part = time.monotonic(), NestPart.of(space, bounding=bounding)
    said = searched(NESTS[space.problem], engine, part, tuple(objectives), clock)
    values = {name: said.values[name] for name in MEASURES if said.values}
    return replace(said, values=values, wall_s=time.monotonic() - start)


#: What a front may be about, with units.
AXES: dict[str, str] = {"bytes": "bytes", "time": "ticks", "ocm": "bytes on chip"}


@dataclass(frozen=True)
class Point:
    """One plan of a front: its values along the axes, all its measures, its bytes on chip and its nest."""

    values: tuple[int, ...]
    measures: dict[str, int]
    ocm: int
    nest: Nest


@dataclass(frozen=True)
class Front:
    """The points in ascending order of the first axis; `complete` unless the time ran out.

    `proven` if no nest whatever lies below the front; else it is that of the candidates.
    """

    axes: tuple[str, ...]
    points: tuple[Point, ...]
    complete: bool
    proven: bool


def front(space: Space, axes: Sequence[str] = ("bytes", "time"), *, time_limit_s: float | None = None) -> Front:
    """Return all plans of `space` that no other is at or below in all `axes` and below in one.

    Raises InputError if the axes are not two or three different ones of `AXES`, the machine has no shared memory
    ("ocm"), or its time is a timeline, which ties cannot be broken for exactly.
    """
    wanted = tuple(axes)
    if not 2 <= len(wanted) <= 3 or len(set(wanted)) < len(wanted) or set(wanted) - set(AXES):
        raise InputError(f"axes {','.join(wanted)}: expected two or three of {choices(AXES)}")
    if "ocm" in wanted and space.machine.ocm_bytes is None:
        raise InputError(f"machine {space.machine.name}: axis ocm needs a shared memory (ocm_bytes)")
    if "time" in wanted and any(member.timeline for member in space.members):
        raise InputError(f"machine {space.machine.name}: double-buffered time has no exact front; set overlap=serial")
    deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
    points, complete, proven = _front(space, wanted, {}, deadline)
    return Front(wanted, tuple(sorted(_undominated(points), key=lambda p: p.values)), complete, complete and proven)


def _front(
    space: Space, axes: tuple[str, ...], limits: dict[str, int], deadline: float | None
) -> tuple[list[Point], bool, bool]:
    found: list[Point] = []
    proven = True
    if len(axes) == 3:
        last = axes.index("ocm")
        order = (*(a for a in axes if a != "ocm"), "ocm")
        while True:
            layer, complete, sure = _two(space, order, axes, dict(limits), deadline)
            found, proven = found + layer, proven and sure
            if not layer or not complete:
                return found, complete, proven
            limits = {"ocm": max(p.values[last] for p in layer) - 1}
    return _two(space, axes, axes, limits, deadline)


def _two(
    space: Space, order: tuple[str, ...], axes: tuple[str, ...], limits: dict[str, int], deadline: float | None
) -> tuple[list[Point], bool, bool]:
    """The front of the first two axes of `order` within limits, ties by the third; whether it is whole, and proven."""
    found: list[Point] = []
    proven = True
    while True:
        search = Search(space, order, deadline=deadline, kept=dict(limits))
        pick = search.run()
        proven &= search.whole if pick is None else search.proven == search.aims
        late = search.stopped and search.ties  # else only ties by other measures were cut short
        if pick is None or late:
            return found, not late, proven
        outcome = pick.branch.outcome(pick.s, pick.q)
        values = tuple(pick.measures[a] for a in axes)
        found.append(Point(values, outcome.measures, max(outcome.occupancy_bytes.values()), pick.nest))
        limits[order[1]] = pick.measures[order[1]] - 1


def _undominated(points: list[Point]) -> list[Point]:
    def beaten(one: Point) -> bool:
        return any(
            two.values != one.values and all(b <= a for a, b in zip(one.values, two.values, strict=True))
            for two in points
        )

    return list({p.values: p for p in points if not beaten(p)}.values())


# ---- whole requests ------------------------------------------------------------------------------------------


def fronts(request: Request, axes: Sequence[str], *, time_limit_s: float | None = None) -> dict[str, Front]:
    """Return the front of every layer of a request, each point replayed; equal layers are searched once.

    Raises InputError as `front`, and PlanMismatch if price and replay of a point do not agree.
    """
    found: dict[str, Front] = {}
    known: dict[object, Front] = {}
    end = None if time_limit_s is None else time.monotonic() + time_limit_s
    for layer in request.layers:
        if layer.signature() not in known:
            known[layer.signature()] = _housed(request, layer, axes, end)
            for point in known[layer.signature()].points:
                if faults := price_and_replay(request.part(layer, point.nest.homes), point.nest).faults:
                    raise PlanMismatch(f"layer {layer.name}: {'; '.join(faults)}")
        found[layer.name] = known[layer.signature()]
    return found


def _housed(request: Request, layer: Layer, axes: Sequence[str], end: float | None) -> Front:
    """The front of a layer by itself over all homes that its operands may have."""
    places = places_of(layer, (layer,), request.asked.machine, request.pins) if request.asked.machine.off_chip else None
    ways = [one for t in places.tables for one in places.assignments(t.operands)] if places else [{}]
    found = []
    for number, homes in enumerate(ways):
        left = None if end is None else max(0.0, end - time.monotonic()) / (len(ways) - number)
        space = request.part(layer, tuple(homes.items())).space
        found.append((homes, front(space, axes, time_limit_s=left)))
    points = [replace(point, nest=point.nest.at(homes)) for homes, one in found for point in one.points]
    kept = tuple(sorted(_undominated(points), key=lambda p: p.values))
    return Front(tuple(axes), kept, all(f.complete for _, f in found), all(f.proven for _, f in found))

"""Banks: a network on a machine with memory banks, and its pieces, the readings of its first layer.

A schedule is a program: the reading, and for every stage in the order that they run its control steps with the banks of
all tiles. It is priced by the closed form of the plan that it follows, and replayed bank by bank and in time. The
docstring of the package is a map of its files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

from formulations.banks.front import Aim, Found, decide, few_labels
from formulations.banks.network import NEVER, BankPlan, Graph, Point, Volume, Walk, lowest
from formulations.banks.numbers import numbered, plan_followed_by
from formulations.banks.policies import double_buffer, hide, minimise, no_reuse
from formulations.banks.published import published
from formulations.banks.readings import (
    FIRST_LAYERS,
    FirstLayer,
    FirstPin,
    Reading,
    Readings,
    clock_of,
    floor_of,
    may_wait,
    readings,
)
from formulations.banks.times import Times
from formulations.clock import Clock, TimeUp
from formulations.pins import Decision, Pins
from formulations.problem import Formulation, Goal, Model, Priced, Replayed, Steps, Unable
from formulations.rows import Build
from hwmodels.banks.replay.referee import replay_banks
from hwmodels.banks.replay.time import Moved, Spent, StageFigures, spent_on
from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.feature_maps import Stages
from instances.network.network import Network

#: So many faults of a program that no plan is like are named.
_FAULTS = 3


@dataclass(frozen=True)
class BankProgram:
    """How the first layer is read, and what every stage does."""

    first_layer: FirstLayer
    runs: tuple[StageRun, ...]


@dataclass(frozen=True)
class BankReplayed(Replayed):
    """What the replay of a program finds; of programs with faults no times."""

    moved: Moved = field(default_factory=Moved)
    spent: dict[str, Spent] = field(default_factory=dict)


class BankReading(Reading[BankProgram]):
    """The plans of one reading of the first layer.

    Searches break ties: of the plans with the fewest bytes they find the fastest one, of the fastest ones that with the
    fewest bytes. So what is proven says how little of one measure there is where the other one is least, too.
    """

    def __init__(self, part: BankPart, name: FirstLayer, found: Stages) -> None:
        self.part, self.first_layer, self.found = part, name, found
        self.least = floor_of(found, part.banks, part.clock)
        #: By the measure that comes first what is proven; of how many readings that are left this one is the first.
        self.proven: dict[Aim, Point] = {}
        self.left = 1

    @cached_property
    def walk(self) -> Walk:
        """The states of the stages; raises InputError if a column fits in no bank."""
        return Walk(self.found, self.part.banks, waiting=self.part.waiting)

    @cached_property
    def free(self) -> Walk:
        """The same if results may wait, as policies have it."""
        return self.walk if self.part.waiting else Walk(self.found, self.part.banks)

    @cached_property
    def times(self) -> Times:
        """What plans take."""
        return Times(self.walk, self.part.clock)

    def program(self, plan: BankPlan) -> BankProgram:
        """Return the plan with the banks of all tiles."""
        made = BankProgram(self.first_layer, tuple(numbered(plan, self.part.banks)))
        self.part.plans[made] = plan
        return made

    def floor(self, goal: Goal) -> int:
        """Return what no plan can do without, or what is proven."""
        most, least = self.part.most(goal.caps), list(self.least)
        for aim, point in self.proven.items():
            first = aim == "time"
            if most[first] < point[first]:
                return NEVER  # nothing meets the goal
            least[first] = point[first]
            if most[first] == point[first]:
                least[not first] = point[not first]
        return self.part.measured(Point(*least))[goal.measure]

    # ---- searches ----------------------------------------------------------------------------------------------------

    def steps(self, goal: Goal, engine: str) -> Steps[BankProgram]:
        """Search by an engine; by labels where it has no model of the goal."""
        try:
            return (yield from super().steps(goal, engine))
        except NotImplementedError:
            return self.exact(goal, engine)

    def exact(self, goal: Goal, engine: str) -> tuple[BankProgram | None, int | None]:
        """Search all labels; if the other measure has a cap, which is taken for its optimum, it comes first.

        What Ctrl-C leaves of a search is returned; the goal's stats say that it was interrupted.
        """
        part, second = self.part, goal.measure == "time"
        below = {} if goal.below is None else {goal.measure: goal.below - 1}
        most, caps = part.most({**goal.caps, **below}), part.most(goal.caps)
        capped = caps[not second] < NEVER
        aim: Aim = "time" if second != capped else "bytes"
        if capped:
            rivals = [Point(caps.bytes, most.ticks + 1) if second else Point(most.bytes + 1, caps.ticks)]
        else:
            rivals = [Point(0, most.ticks + 1) if second else Point(most.bytes + 1, 0)] if below else []
        try:
            said = self._decided(aim, goal, rivals)
        except InputError:  # no plan of this reading fits
            return None, None
        points = {Point(plan.volume.total, ticks): plan for plan, ticks in said.plans}
        good = [point for point in points if point.bytes <= most.bytes and point.ticks <= most.ticks]
        best = min(good, key=lambda point: (point[second], point[not second]), default=None)
        program = None if best is None else self.program(points[best])
        if not said.proven:
            return program, max(
                self.floor(goal), part.measured(Point(said.bytes_bound, said.ticks_bound))[goal.measure]
            )
        if not points:
            return None, None
        least = best is not None and (not capped or best[not second] == caps[not second])
        return program, part.measured(best)[goal.measure] if best and least else self.floor(goal)

    def _decided(self, aim: Aim, goal: Goal, rivals: Sequence[Point]) -> Found:
        """All labels; what is known if nothing rivals it is kept."""
        said = decide(self.walk, self.part.clock, aim, limit=goal.clock.share(self.left), rivals=rivals)
        goal.stats.update(labels=said.labels, states=said.states)
        if said.stopped:
            goal.stats["interrupted"] = True
        if said.proven and said.plans and not rivals:
            plan, ticks = said.plans[0]
            self.proven[aim] = Point(plan.volume.total, ticks)
        return said

    def model(self, goal: Goal, build: Build[BankProgram]) -> Model[BankProgram] | None:
        """A model of bytes; nothing of it asks for fewer than the goal has."""
        base, unit = self.part.scale(goal.measure)
        if goal.measure == "time" or "time" in goal.caps or not unit:
            raise NotImplementedError
        try:
            graph = Graph(self.walk, goal.clock)
        except InputError:
            return None
        goal.stats.update(states=len(graph.number), arcs=sum(map(len, graph.arcs)))
        if graph.bytes[0] == NEVER:
            return None
        rows = graph.rows()
        made = build(rows, lambda chosen: self.program(graph.chosen(chosen)))
        return replace(made, base=base, unit=unit * made.unit, seconds=goal.clock.share(self.left).left)


class BankPart(Readings[BankProgram, BankReading]):
    """A network on a machine with memory banks; `waiting`: whether results may wait on chip for a sum."""

    def __init__(self, network: Network, machine: Machine, first_layer: FirstPin | None, waiting: bool | None) -> None:
        found = readings(network, machine, first_layer)
        assert machine.banks is not None
        self.network, self.machine, self.banks = network, machine, machine.banks
        self.name, self.clock, self.waiting = network.name, clock_of(machine), may_wait(machine, waiting)
        self.readings = {name: BankReading(self, name, stages) for name, stages in found.items()}
        #: What programs follow, as far as it is known.
        self.plans: dict[BankProgram, BankPlan] = {}
        self._priced: dict[BankProgram, Priced] = {}

    # ---- measures ----------------------------------------------------------------------------------------------------

    def scale(self, measure: str) -> tuple[int, int]:
        """Return what a measure is without any bytes or ticks, and what each of them adds."""
        return (self.machine.mac_fj * self.network.macs, self.machine.byte_fj) if measure == "energy" else (0, 1)

    def measured(self, point: Point) -> dict[str, int]:
        """Return all measures."""
        base, unit = self.scale("energy")
        return {"time": point.ticks, "bytes": point.bytes, "energy": base + unit * point.bytes}

    def most(self, caps: Mapping[str, int]) -> Point:
        """Return how many bytes and ticks there may be."""
        base, unit = self.scale("energy")
        size = (caps["energy"] - base) // unit if "energy" in caps and unit else NEVER
        return Point(min(size, caps.get("bytes", NEVER)), caps.get("time", NEVER))

    def price(self, schedule: BankProgram) -> Priced:
        """Return bytes and time of the plan that a program follows; raises InputError if there is none."""
        if schedule not in self._priced:
            plan = self._plan(schedule)
            point = Point(plan.volume.total, self.readings[schedule.first_layer].times.of(plan))
            kinds, (base, unit) = plan.volume._asdict(), self.scale("energy")
            energy = {**{kind: unit * size for kind, size in kinds.items()}, "MAC": base}
            self._priced[schedule] = Priced(self.measured(point), {"bytes": kinds, "energy": energy}, counts=kinds)
        return self._priced[schedule]

    def _plan(self, schedule: BankProgram) -> BankPlan:
        """The plan that a program follows; raises InputError if there is none: what the referee says, and why."""
        if schedule not in self.plans:
            reading = self.reading(schedule.first_layer)
            try:
                self.plans[schedule] = self._followed(reading, schedule)
            except InputError as error:
                faults = replay_banks(reading.found, self.banks, schedule.runs).faults
                raise InputError("; ".join([str(error), *faults[:_FAULTS]])) from None
        return self.plans[schedule]

    @staticmethod
    def _followed(reading: BankReading, schedule: BankProgram) -> BankPlan:
        """The plan that a program follows, if need be one whose results wait though they may not."""
        with suppress(InputError):
            return plan_followed_by(reading.walk, schedule.runs)
        return plan_followed_by(reading.free, schedule.runs)

    def replay(self, schedule: BankProgram) -> BankReplayed:
        """Replay bank by bank, and in time."""
        found, banks, machine = self.reading(schedule.first_layer).found, self.banks, self.machine
        moved = replay_banks(found, banks, schedule.runs)
        if moved.faults:
            return BankReplayed({}, tuple(moved.faults), figures=moved.figures({}), moved=moved)
        writing = banks.writes == "bus"
        spent = spent_on(banks, moved, machine.transfer, machine.compute.cycle_ticks, writing=writing)
        ticks = sum(one.ticks for one in spent.values())
        waits = {
            f"wait_{kind}": sum(getattr(one, f"waits_for_{kind}") for one in spent.values())
            for kind in ("maps", "weights", *(["writes"] if writing else []))
        }
        return BankReplayed(
            self.measured(Point(moved.total, ticks)), counts=dict(zip(Volume._fields, moved.parts, strict=True)),
            figures=moved.figures(spent), terms={"time": {"compute": ticks - sum(waits.values()), **waits}},
            moved=moved, spent=spent,
        )  # fmt: skip

    # ---- space -------------------------------------------------------------------------------------------------------

    def pieces(self, goal: Goal) -> Iterator[BankReading]:
        """Yield the readings, those with lower floors first."""
        second = goal.measure == "time"
        ranked = sorted(self.readings.values(), key=lambda one: (one.least[second], one.least[not second]))
        for done, reading in enumerate(ranked):
            reading.left = len(ranked) - done
            yield reading

    def contains(self, schedule: BankProgram) -> tuple[str, ...]:
        """Return why a program is not of this space: no plan is like that, or a map waits that may not."""
        try:
            self._plan(schedule)
        except InputError as error:
            return (str(error),)
        return () if self.waiting else tuple(self._waiting(schedule))

    def _waiting(self, schedule: BankProgram) -> Iterator[str]:
        """What waits on chip for a sum."""
        walk, done = self.readings[schedule.first_layer].walk, 0
        number = {stage.name: at for at, stage in enumerate(walk.stages)}
        for run in schedule.runs:
            at = number[run.stage]
            done |= 1 << at
            for name, tiles in ((run.source, run.retain), (walk.stages[at].target, run.keep)):
                if tiles and walk.waits(name, done) and not walk.stays(name, done, at):
                    yield f"stage {run.stage}: {name} waits on chip for a sum, residuals say dram"

    def explain(self) -> tuple[str, ...]:
        """Return the stage that finds no room."""
        conflicts: tuple[str, ...] = ()
        for reading in self.readings.values():
            try:
                graph = Graph(reading.walk)
                if graph.bytes[0] < NEVER:
                    return ()
                conflicts = (str(graph.stuck()),)
            except InputError as error:
                conflicts = (str(error),)
        return conflicts

    # ---- the front ---------------------------------------------------------------------------------------------------

    def front(self, limit: Clock) -> tuple[list[BankProgram], Found]:
        """Return the front of bytes and time of all readings together, by bytes; with bounds, and whether it is proven.

        Raises InputError if no reading has a program in these banks.
        """
        known, said, refused = dict[Point, BankProgram](), list[Found](), list[InputError]()
        for done, reading in enumerate(self.readings.values()):
            share = limit.share(len(self.readings) - done)
            try:
                one = decide(reading.walk, self.clock, "front", limit=share, rivals=known)
            except InputError as error:
                refused.append(error)
                continue
            said.append(one)
            known |= {Point(plan.volume.total, ticks): reading.program(plan) for plan, ticks in one.plans}
        if not said:
            raise refused[0]
        whole = Found(
            (), min(one.bytes_bound for one in said), min(one.ticks_bound for one in said),
            all(one.proven for one in said), sum(one.labels for one in said), sum(one.states for one in said),
        )  # fmt: skip
        return [known[point] for point in lowest(known)], whole


# ---- the problem -----------------------------------------------------------------------------------------------------

Heuristic = Callable[[BankPart, Goal], BankProgram | None]
Policy = Callable[[BankReading, Clock], BankPlan | None]
#: Seconds that a policy may take once the time is up; after so many no further one is tried.
_HASTE_S, _SOON_S = 1.0, 0.25

_POLICIES: dict[str, tuple[str, Policy]] = {
    "min": ("MIN as published: fewest bytes stage by stage, a tile of each result stays",
            lambda one, limit: published(one.free, limit)),
    "min-all": ("MIN with all orders of paths, also where nothing of a result stays",
                lambda one, limit: minimise(one.free, limit=limit)),
    "dls": ("MIN with DRAM-last storing", lambda one, limit: minimise(one.free, dram_first=False, limit=limit)),
    "hide": ("HIDE: least delay stage by stage", lambda one, limit: hide(one.free, one.part.clock, limit)),
    "double-buffer": ("naive reuse: half of the banks for tiles read, half for results, one tile a step",
                      lambda one, limit: double_buffer(one.free, limit)),
    "no-reuse": ("nothing stays between stages, all banks for tiles read",
                 lambda one, limit: no_reuse(one.free, limit)),
    "beam": ("the first pass of dynamic: of every stage the few plans with the least time are followed",
             lambda one, limit: few_labels(one.walk, one.part.clock, limit)),
}  # fmt: skip
_OTHER_NAMES = {
    "naive-reuse": ("another name of double-buffer, as the source calls it", "double-buffer"),
    "greedy-multipath": ("another name of min-all: shared tiles are chosen path after path", "min-all"),
}


def _heuristic(name: str) -> Heuristic:
    """A policy for the first reading; `beam` tries all."""
    policy = _POLICIES[name][1]

    def run(part: BankPart, goal: Goal) -> BankProgram | None:
        limit, plans = Clock.of(_HASTE_S) if goal.clock.over else goal.clock, list[BankProgram]()
        for reading in part.pieces(goal) if name == "beam" else list(part.readings.values())[:1]:
            with suppress(InputError, TimeUp):
                plan = policy(reading, limit)
                plans += [reading.program(plan)] if plan else []
        if not plans:
            raise Unable(f"policy {name} {'is not done in time' if limit.over else 'gets stuck in these banks'}")
        second = "bytes" if goal.measure == "time" else "time"
        return min(plans, key=lambda one: [part.price(one).measures[measure] for measure in (goal.measure, second)])

    return run


def _best(part: BankPart, goal: Goal) -> BankProgram | None:
    """The best plan of some policies; once the time is up the later ones are tried only if there is none soon."""
    plans, soon = list[BankProgram](), Clock.of(_SOON_S if goal.clock.over else None)
    for name in ("min", "no-reuse", "hide", "double-buffer", "beam"):
        if plans and soon.over:
            break
        with suppress(Unable):
            made = _heuristic(name)(part, goal)
            plans += [made] if made and not part.contains(made) else []
    return min(plans, key=lambda one: part.price(one).measures[goal.measure], default=None)


class BankFormulation(Formulation[BankProgram]):
    """Which tiles of feature maps stay in which memory bank, over a whole network."""

    name = "banks"
    summary = "which tiles of feature maps stay in which memory bank, over a whole network"
    schedule = BankProgram
    figures = dict[str, StageFigures]
    whole = True
    measures = {"time": "ticks", "bytes": "bytes", "energy": "fJ"}  # noqa: RUF012
    ties = ("time", "bytes")
    decisions = {  # noqa: RUF012
        "residuals": Decision(
            "residuals=chip or residuals=dram: where the second operand of a sum may wait", ("chip", "dram")
        ),
        "first_layer": Decision(
            "first_layer=patches, plain or either: how the first convolution is read", FIRST_LAYERS
        ),
    }  # fmt: skip
    engines = {  # noqa: RUF012
        "dynamic": "dynamic programming over what is on chip: exact in bytes and in time",
        "milp": "state arcs with HiGHS: exact in bytes",
        "cp-sat": "state arcs with CP-SAT: exact in bytes",
    }
    heuristics = {  # noqa: RUF012
        **{name: (about, _heuristic(name)) for name, (about, _) in _POLICIES.items()},
        **{name: (about, _heuristic(same)) for name, (about, same) in _OTHER_NAMES.items()},
        "policies": ("the best of min, no-reuse, hide, double-buffer and beam", _best),
    }
    quick = ("policies",)

    def read(
        self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[BankPart]:  # fmt: skip
        """Return the network."""
        stated = {pin.name: pin for pin in pins.pins}
        if strange := [str(pin) for pin in stated.values() if pin.op != "="]:
            raise InputError(f"pin {strange[0]}: only = applies")
        first = cast(FirstPin, stated["first_layer"].value) if "first_layer" in stated else None
        waiting = stated["residuals"].value == "chip" if "residuals" in stated else None
        return [BankPart(network, machine, first, waiting)]

"""Partial engine as a formulation: a layer, all choices of strips and places as a piece, and each choice as one.

An example: a layer with 20 choices. Bounds for all orders of the runs (bounds.py), by themselves or as a model, say
that no choice is below 96,000 bytes; an order in passes (orders.py) moves as many: it is optimal. Where no order in
passes meets the bounds and grids are small, choices that may still be better are searched by all orders, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from formulations.clock import ENDLESS, Clock, TimeUp
from formulations.partial_engine.bounds import Bounded, branch_bound
from formulations.partial_engine.orders import (
    MOST_RUNS,
    Order,
    Step,
    as_text,
    best_order,
    from_text,
    greedy,
    passes,
    plain,
    price,
    priced,
    program,
)
from formulations.partial_engine.space import Branch, Choices, Demands, Game, branch_at, build
from formulations.pins import Decision, Pins
from formulations.problem import Formulation, Goal, Model, Part, Piece, Priced, Replayed, Unable
from hwmodels.partial_engine.price import engine_of, work_of
from hwmodels.partial_engine.replay import replay_engine
from hwmodels.partial_engine.schedule import EngineSchedule
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.workload import Layer

#: Runs of a grid beyond which all but the source's order take long, and that one, too.
_MANY, _HUGE = 2_000, 20_000
#: Seconds for a search of the order itself.
_SECONDS = 20.0
#: Kinds of DRAM bytes, the terms that sum to them.
_KINDS = ("inputs", "weights", "spilled", "reloaded", "results")
_NUMBERS = ("strips", "in_places", "part_places")
DECISIONS = {
    "strips": Decision("strips of rows that a layer is cut in: strips=1, strips<=4"),
    "in_places": Decision("places for input groups in every bank: in_places<=4"),
    "part_places": Decision("places for partial maps in every bank: part_places>=2"),
    "spill": Decision("spill=no: partial maps never go to DRAM", ("yes", "no")),
    "inputs": Decision("inputs=banks: the maps read are on chip before", ("dram", "banks")),
    "results": Decision("results=banks: the results stay on chip", ("dram", "banks")),
}


def demands(pins: Pins) -> Demands:
    """Return what pins demand; raises InputError for one that cannot be kept, or has a relation that is not for it."""
    for name in ("spill", "inputs", "results"):
        if not any(pins.allows(name, value) for value in DECISIONS[name].values):
            raise InputError(f"pins {', '.join(map(str, pins.of(name)))}: no value of {name} is left")
    ranges = {}
    for name in _NUMBERS:
        least, most = 1, 2**31
        for pin in pins.of(name):
            if pin.op not in ("=", "<=", ">="):
                raise InputError(f"pin {pin}: {name} takes =, <= and >=")
            least = least if pin.op == "<=" else max(least, int(pin.value))
            most = most if pin.op == ">=" else min(most, int(pin.value))
        ranges[name] = least, most
    strips, inputs, parts = (ranges[name] for name in _NUMBERS)
    return Demands(
        strips, inputs, parts, stay=not pins.allows("spill", "yes"), before=not pins.allows("inputs", "dram"),
        after=not pins.allows("results", "dram"),
    )  # fmt: skip


@dataclass(frozen=True)
class BankUse:
    """How full banks are."""

    peak_bytes: int
    """The most bytes that are ever used in a bank."""


class EnginePart(Part[EngineSchedule]):
    """A convolution with its maps in DRAM before and after, unless pins say otherwise; raises InputError for others."""

    def __init__(self, layer: Layer, machine: Machine, pins: Pins | None = None) -> None:
        self.name, self.layer, self.machine, self.pins = layer.name, layer, machine, pins or Pins()
        self.work, self.wanted = work_of(layer, engine_of(machine)), demands(self.pins)
        self.runs = self.work.inputs * self.work.outputs  # of a grid

    @property
    def key(self) -> Hashable:
        """Layers of one signature are alike."""
        return self.layer.signature()

    @cached_property
    def choices(self) -> Choices:
        """Strips and places that fit."""
        return build(self.work, self.machine, self.wanted)

    def pieces(self, goal: Goal) -> Iterator[Piece[EngineSchedule]]:
        """All choices together, if there are any."""
        if self.choices.branches:
            yield AllChoices(self)

    # ---- a schedule --------------------------------------------------------------------------------------------------

    def schedule(self, run: Ordered) -> EngineSchedule:
        """Return an order as a schedule."""
        branch, wanted = run.branch, self.wanted
        game = branch.games[0][0]
        return EngineSchedule(
            rows=branch.rows, strips=branch.strips, grids=sum(number for _, number in branch.games),
            inputs=game.inputs, outputs=game.outputs, in_places=branch.x, part_places=branch.y,
            fresh_places=self.work.fresh, in_place_bytes=branch.in_place, part_place_bytes=branch.part_place,
            inputs_at="banks" if wanted.before else "dram", results_at="banks" if wanted.after else "dram",
            program=as_text(run.steps),
        )  # fmt: skip

    def _branch(self, schedule: EngineSchedule) -> Branch:
        if schedule.rows > self.layer.r:
            raise InputError(f"strips of {schedule.rows} rows: there are {self.layer.r}")
        held = Demands(before=schedule.inputs_at == "banks", after=schedule.results_at == "banks")
        return branch_at(self.work, self.machine, schedule.rows, schedule.in_places, schedule.part_places, held)

    def price(self, schedule: EngineSchedule) -> Priced:
        """Bytes, runs, additions and cycles."""
        branch = self._branch(schedule)
        try:
            steps = from_text(schedule.program)
            moved = [(number, *priced(game, steps)) for game, number in branch.games]
        except (ValueError, IndexError) as error:
            reason = "there is no such group" if isinstance(error, IndexError) else error
            raise InputError(f"program: {reason}") from None
        runs, adds = self.work.runs * branch.strips, self.work.adds * branch.strips
        swapped = sum(number * one for number, _, one in moved) // 2
        terms = {"inputs": sum(number * one for number, one, _ in moved), "weights": branch.weights,
                 "spilled": swapped, "reloaded": swapped, "results": branch.results}  # fmt: skip
        measures = {"bytes": sum(terms.values()), "runs": runs, "adds": adds, "cycles": self.work.cycles(schedule.rows)}
        return Priced(measures, {"bytes": terms}, {**terms, "peak_bytes": self._peak(schedule, branch)})

    def _peak(self, schedule: EngineSchedule, branch: Branch) -> int:
        """Bytes of all places in a bank."""
        grids = sum(grid.number for grid in self.work.grids)
        inputs = schedule.in_places * (grids if schedule.inputs_at == "banks" else 1)
        parts = schedule.part_places * (grids if schedule.results_at == "banks" else 1)
        return inputs * branch.in_place + (parts + self.work.fresh) * branch.part_place

    def replay(self, schedule: EngineSchedule) -> Replayed:
        """Run the program in every strip and grid."""
        steps, places = from_text(schedule.program), (schedule.in_places, schedule.part_places)
        held = schedule.inputs_at == "banks", schedule.results_at == "banks"
        seen = replay_engine(self.layer, self.machine, schedule.rows, places, steps, held=held)
        faults = list(seen.faults)
        if seen.spilled != seen.reloaded:
            faults.append(f"spilled: {seen.spilled} bytes are stored, {seen.reloaded} are loaded again")
        measures = {name: getattr(seen, name) for name in ("bytes", "runs", "adds", "cycles")}
        counts = {**{kind: getattr(seen, kind) for kind in _KINDS}, "peak_bytes": seen.peak}
        return Replayed(measures, tuple(faults), counts, figures=BankUse(seen.peak))

    def contains(self, schedule: EngineSchedule) -> tuple[str, ...]:
        """What follows from strips and places, and the pins."""
        branch, wanted, found = self._branch(schedule), self.wanted, list[str]()
        fresh = int(self.work.engine.adds == "steps" and schedule.inputs > 1)
        pairs = [
            ("strips", schedule.strips, branch.strips),
            ("grids", schedule.grids, sum(grid.number for grid in self.work.grids)),
            ("groups", (schedule.inputs, schedule.outputs), (self.work.inputs, self.work.outputs)),
            ("bytes of places", (schedule.in_place_bytes, schedule.part_place_bytes),
             (branch.in_place, branch.part_place)),
            ("fresh_places", schedule.fresh_places, fresh),
            ("inputs_at", schedule.inputs_at, "banks" if wanted.before else "dram"),
            ("results_at", schedule.results_at, "banks" if wanted.after else "dram"),
        ]  # fmt: skip
        found += [f"{name}: the schedule says {stated}, it is {real}" for name, stated, real in pairs if stated != real]
        asked = zip(_NUMBERS, (wanted.strips, wanted.inputs, wanted.parts), strict=True)
        for name, (least, most) in asked:
            number = getattr(schedule, name)
            if not least <= number <= most:
                found.append(f"{name} {number}: the pins ask for {least} to {most}")
        if wanted.stay and any(step.verb == "spill" for step in from_text(schedule.program)):
            found.append("spill=no: the program stores partial maps")
        return tuple(found)

    def explain(self) -> tuple[str, ...]:
        """Why no choice of strips and places fits: a minimal set of pins, and the bank."""
        if self.choices.branches:
            return ()
        kept = self.pins
        for pin in self.pins.pins:
            if not build(self.work, self.machine, demands(kept.without(pin))).branches:
                kept = kept.without(pin)
        small, work = build(self.work, self.machine, demands(kept)).smallest, self.work
        said = f"pins {', '.join(map(str, kept.pins))}: " if kept.pins else ""
        if small.rows == 0 or small.bytes <= work.engine.bank_bytes:
            groups = f"{work.inputs} input and {work.outputs} output groups"
            return (f"{said}the layer has {self.layer.r} rows, {groups}, which leaves no such strips and places",)
        return (
            f"{said}strips of {small.rows} rows take {small.bytes} bytes of every bank, {self.machine.name} has "
            f"{work.engine.bank_bytes}: places for input groups {small.inputs} x {small.in_place} bytes, "
            f"for partial groups {small.parts} x {small.part_place}",
        )

    # ---- orders ------------------------------------------------------------------------------------------------------

    def bound(self, branch: Branch) -> int:
        """What no order with these strips and places is below."""
        return branch_bound(branch, stay=self.wanted.stay)

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """The bound of every choice, with its number, ascending."""
        return sorted((self.bound(branch), n) for n, branch in enumerate(self.choices.branches))

    def ordered(self, branch: Branch, order: Order, *, recent: bool = False, clock: Clock = ENDLESS) -> Ordered:
        """Return the program of an order; `recent` as in `formulations.partial_engine.orders.program`."""
        steps = program(
            branch.games[0][0], order, fresh=self.work.fresh, recent=recent, before=self.wanted.before,
            after=self.wanted.after, clock=clock,
        )  # fmt: skip
        return Ordered(branch, tuple(steps), branch.fixed + sum(n * price(game, steps) for game, n in branch.games))

    def in_passes(self, branch: Branch, clock: Clock = ENDLESS) -> Ordered:
        """The best order in passes; the first that meets the bound ends the search. Of a large grid raises TimeUp."""
        found: Ordered | None = None
        clock = clock if self.runs > _MANY else ENDLESS
        for order in passes(branch.games[0][0]):
            try:
                one = self.ordered(branch, order, clock=clock)
            except TimeUp:
                if found is None:
                    raise
                return found
            if self.wanted.stay and one.spills:
                continue
            if found is None or one.bytes < found.bytes:
                found = one
            if found.bytes == self.bound(branch):
                break
        assert found is not None  # one of the orders stores no partial maps
        return found

    def best_of_all(self, branch: Branch, clock: Clock) -> Ordered:
        """The best of all orders with these strips and places; raises Unable, and TimeUp by the clock."""
        answer = best_order(branch.games[0][0], stay=self.wanted.stay, clock=clock)
        if answer is None:
            raise Unable(f"{self.runs} runs of a grid, at most {MOST_RUNS} are searched")
        return self.ordered(branch, answer[1])


@dataclass(frozen=True)
class Ordered:
    """An order with strips and places: the steps in every strip, and the DRAM bytes."""

    branch: Branch
    steps: tuple[Step, ...]
    bytes: int

    @property
    def spills(self) -> bool:
        """Whether partial maps go to DRAM."""
        return any(step.verb == "spill" for step in self.steps)


class AllChoices(Piece[EngineSchedule]):
    """All strips and places: bounds for all orders, met by orders in passes."""

    def __init__(self, part: EnginePart) -> None:
        self.part, self.branches, self.bounds = part, part.choices.branches, part.bounds

    def floor(self, goal: Goal) -> int:
        """What no order of any choice is below."""
        return self.bounds[0][0]

    def exact(self, goal: Goal, engine: str) -> tuple[EngineSchedule | None, int | None]:
        """Orders in passes, the choices with the least bounds first; exhaustive: all orders of all choices."""
        best: Ordered | None = None
        for bound, n in self.bounds:
            if best is not None and (goal.clock.over or (bound >= best.bytes and engine != "exhaustive")):
                break
            search = self.part.best_of_all if engine == "exhaustive" else self.part.in_passes
            try:
                found = search(self.branches[n], goal.clock)
            except TimeUp:
                break
            best = found if best is None or found.bytes < best.bytes else best
        else:
            if engine == "exhaustive" and best is not None:
                return self.part.schedule(best), best.bytes
        return None if best is None else self.part.schedule(best), self.floor(goal)

    def cp_sat(self, goal: Goal) -> Model[EngineSchedule]:
        """The bounds as a model: an order in passes for the choice with the least one."""
        from formulations.partial_engine.cp_sat import runs_cp_model  # late: solvers are slow to import

        return self._bounded(runs_cp_model, lambda solver: solver.value, goal.clock)

    def milp(self, goal: Goal) -> Model[EngineSchedule]:
        """The same, linear."""
        from formulations.partial_engine.milp import runs_model

        return self._bounded(runs_model, lambda _: lambda z: z.value(), goal.clock)

    def _bounded(
        self, build: Callable[..., tuple[Any, Bounded]], values: Callable[[Any], Any], clock: Clock
    ) -> Model[EngineSchedule]:
        """A model of the choices that may be as good as a known order; `values` reads variables."""
        known = self.part.in_passes(self.branches[0], clock)
        branches = [branch for branch in self.branches if branch.least <= known.bytes]
        model, made = build(branches, known.bytes, stay=self.part.wanted.stay)

        def decode(solver: Any) -> EngineSchedule:
            try:
                found = self.part.in_passes(branches[made.chosen(values(solver))], clock)
            except TimeUp:
                found = known
            return self.part.schedule(min(known, found, key=lambda one: one.bytes))

        return Model(model, decode, base=made.base, unit=made.unit)

    def split(self, goal: Goal) -> Sequence[OneChoice]:
        """Every choice by itself, if grids are small."""
        small = self.part.runs <= MOST_RUNS
        return [OneChoice(self.part, self.branches[n], bound) for bound, n in self.bounds] if small else ()


class OneChoice(Piece[EngineSchedule]):
    """All orders with these strips and places."""

    def __init__(self, part: EnginePart, branch: Branch, bound: int) -> None:
        self.part, self.branch, self.bound = part, branch, bound

    def floor(self, goal: Goal) -> int:
        """What no order is below."""
        return self.bound

    def exact(self, goal: Goal, engine: str) -> tuple[EngineSchedule | None, int | None]:
        """All orders."""
        found = self.part.best_of_all(self.branch, goal.clock)
        return self.part.schedule(found), found.bytes

    def cp_sat(self, goal: Goal) -> Model[EngineSchedule]:
        """The order itself as a model."""
        from formulations.partial_engine.cp_sat import MOST_STAGES, stages, stages_cp_model

        (game, number), others, known = self.branch.games[0], self.branch.others, goal.below
        assert known is not None  # only pieces with a schedule are split
        least = -(-(known - others) // number)
        if stages(game, least) > MOST_STAGES:
            raise Unable(f"more than {MOST_STAGES} stages of an order")
        built = stages_cp_model(game, least, stay=self.part.wanted.stay)

        def decode(solver: Any) -> EngineSchedule:
            return self.part.schedule(self.part.ordered(self.branch, built.chosen(solver)))

        return Model(built.model, decode, base=others, unit=number, turns=True, seconds=_SECONDS)


# ---- heuristics ------------------------------------------------------------------------------------------------------

Heuristic = Callable[[EnginePart, Goal], EngineSchedule | None]


def _in_passes(part: EnginePart, goal: Goal) -> EngineSchedule | None:
    """Orders in passes, for one choice at least."""
    if not part.choices.branches or (goal.clock.over and part.runs > _MANY):
        return None
    return AllChoices(part).exact(goal, "auto")[0]


def _heuristic(order: Callable[[Game, Clock], Order], *, wide: bool) -> Heuristic:
    """The fewest strips that fit, with the most places for inputs (`wide`) or for partial maps."""

    def run(part: EnginePart, goal: Goal) -> EngineSchedule | None:
        branches = part.choices.branches
        clock = goal.clock if part.runs > (_HUGE if wide else _MANY) else ENDLESS
        if not branches or clock.over:
            return None
        fewest = min(branch.strips for branch in branches)
        branch = max((b for b in branches if b.strips == fewest), key=lambda b: b.x if wide else b.y)
        found = part.ordered(branch, order(branch.games[0][0], clock), recent=wide, clock=clock)
        if part.wanted.stay and found.spills:
            raise Unable("this order stores partial maps")
        return part.schedule(found)

    return run


class EngineFormulation(Formulation[EngineSchedule]):
    """Runs of layers on a small engine."""

    name = "partial_engine"
    summary = "runs of layers on a small engine, and where maps lie in its banks; how large it should be"
    schedule = EngineSchedule
    figures = BankUse
    measures = {"bytes": "bytes"}  # noqa: RUF012
    decisions = DECISIONS
    engines = {  # noqa: RUF012
        "auto": "orders in passes against bounds for all orders",
        "cp-sat": "bounds for all orders with CP-SAT, met by an order in passes",
        "milp": "bounds for all orders with HiGHS, met by an order in passes",
        "milp-cbc": "bounds for all orders with CBC, met by an order in passes",
        "exhaustive": f"all orders of grids of up to {MOST_RUNS} runs",
    }
    heuristics = {  # noqa: RUF012
        "passes": ("orders in passes, those of `auto`", _in_passes),
        "greedy": (
            "next what the places allow, else the group with the most runs a byte", _heuristic(greedy, wide=False),
        ),
        "paper": ("the source's order, one output group after the other", _heuristic(plain, wide=True)),
    }  # fmt: skip
    quick = ("passes", "greedy", "paper")
    floors = False

    def read(
        self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[EnginePart]:
        """Return the convolutions, or the layers named."""
        engine_of(machine)
        demands(pins)
        found = network.conv_layers if layers is None else [network.layer(name) for name in layers]
        if not found:
            raise InputError(f"network {network.name}: no conv or matmul layers to plan")
        return [EnginePart(layer, machine, pins) for layer in found]

"""F10 joint as a formulation: a network on a machine with a shared memory, and all levels of its maps as one piece.

An example: ResNet-50 on 48 banks. `Levels` is solved with lower bounds in place of searches that have not been made;
the searches that its solution relies on are made, and it is solved again (`formulations.joint.tables`): 95 searches
instead of 72 x 49 x 49. Where no nest reaches the bound of a search, a gap is left; then `Levels` is solved with what
searches have found in place of such bounds, which leads to the best plan there is, and proves nothing.

A schedule is a `LayerRun` for every layer. Bytes decide: energy rises with them and with nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property
from math import inf
from typing import Any

from formulations.clock import Clock
from formulations.joint.heuristics import in_order, in_sequence, no_reuse
from formulations.joint.places import Places, left_of
from formulations.joint.plans import Bound
from formulations.joint.problem import NEVER, Choice, Joint, TooLarge, least
from formulations.joint.tables import Tables
from formulations.pins import Pins
from formulations.problem import Formulation, Goal, Model, Part, Piece, Priced, Replayed, Unable
from formulations.tiling import problem as tiling
from formulations.tiling.search import search_nests
from hwmodels.joint.figures import RunFigures, layer_figures
from hwmodels.joint.loading import ran
from hwmodels.joint.replay import JointReplay, replay_joint
from hwmodels.nest.buffers import buffers
from hwmodels.nest.homes import operand_of
from hwmodels.nest.price import price
from hwmodels.outcome import OPERANDS, Outcome
from hwmodels.schedule import FusedRun, LayerRun, Loop, Nest, Run
from instances.errors import InputError
from instances.machine import Machine
from instances.network import Network
from instances.stores import Stores, stores
from instances.workload import Layer, refuse_long

#: A schedule: every layer's nest, what is on chip while it runs, and where.
Runs = tuple[LayerRun, ...]
#: The fastest nests of layers, by what they find on chip, room for tiles and bytes.
Fastest = dict[tuple[object, int, int], Nest]


class JointPart(Part[Runs]):
    """A network; raises InputError without layers."""

    def __init__(self, network: Network, machine: Machine, pins: Pins) -> None:
        self.name, self.machine, self.pins = network.name, machine, pins
        self.found = stores(network)
        self.tables = Tables(self.found, machine, pins)
        self._outcomes: dict[object, Outcome] = {}
        self._priced: dict[Runs, Priced] = {}
        self._walked: tuple[Runs, JointReplay] | None = None

    @property
    def stats(self) -> Mapping[str, int]:
        """Searches of single layers."""
        return {"searches": self.tables.searches}

    def pieces(self, goal: Goal) -> Iterator[Piece[Runs]]:
        """All levels of all maps, unless a layer is known to fit nowhere."""
        if self.tables.possible:
            yield Levels(self)

    def rising(self, measure: str) -> tuple[int, int]:
        """How much a measure is for every byte, and beside the bytes."""
        return (self.machine.byte_fj_of("IN"), self._mac_fj) if measure == "energy" else (1, 0)

    @cached_property
    def _mac_fj(self) -> int:
        return self.machine.mac_fj * sum(layer.macs for layer in self.found.layers)

    # ---- a schedule --------------------------------------------------------------------------------------------------

    def layer(self, step: int, run: LayerRun) -> Layer:
        """A layer with what it finds on chip."""
        return self.found.layer(step, run.rows, run.unwritten)

    def outcome(self, layer: Layer, nest: Nest) -> Outcome:
        """What a nest of a layer costs."""
        key = layer.signature(), nest
        if key not in self._outcomes:
            self._outcomes[key] = price(layer, self.machine, nest)
        return self._outcomes[key]

    def ran(self, step: int, run: LayerRun, before: LayerRun | FusedRun | None) -> Outcome:
        """What a layer costs after another run, with the loading of weights that stay."""
        outcome = self.outcome(self.layer(step, run), run.nest)
        priced = self.outcome(*ran(self.found, step, run, before))
        return replace(priced, occupancy_bytes=outcome.occupancy_bytes)  # weights that stay are no tile

    def price(self, runs: Runs) -> Priced:
        """Sums over the layers; counts are all figures of every layer."""
        if runs not in self._priced:
            outcomes = [
                self.ran(t, run, before) for t, (run, before) in enumerate(zip(runs, (None, *runs), strict=False))
            ]
            moved = {o: sum(one.by_operand[o].bytes for one in outcomes if o in one.by_operand) for o in OPERANDS}
            energy = {o: self.machine.byte_fj_of(operand_of(o)) * number for o, number in moved.items()}
            terms = {"bytes": moved, "energy": {**energy, "MAC": self._mac_fj}}
            self._priced[runs] = Priced(_sums(outcomes), terms, self._figures(outcomes))
        return self._priced[runs]

    def walked(self, runs: Runs) -> JointReplay:
        """What the referee sees; raises InputError for nests that are malformed."""
        if self._walked is None or self._walked[0] != runs:
            self._walked = runs, replay_joint(self.found, self.machine, runs)
        return self._walked[1]

    def replay(self, runs: Runs) -> Replayed:
        """Layer by layer and bank by bank."""
        walked = self.walked(runs)
        outcomes = [one.outcome for one in walked.layers]
        figures = tuple(map(layer_figures, self.found.layers, outcomes))
        executed = sum(one.executed for one in walked.layers)
        return Replayed(_sums(outcomes), walked.faults, self._figures(outcomes), figures=figures, executed=executed)

    def figures_of(self, runs: Runs, walked: Replayed) -> tuple[RunFigures, ...]:
        """What the referee saw, and where tiles lie."""
        pairs = enumerate(zip(runs, walked.figures, strict=False))
        return tuple(self.figured(t, run, seen) for t, (run, seen) in pairs)

    def figured(self, step: int, run: LayerRun, seen: RunFigures) -> RunFigures:
        """What is said of a layer by itself."""
        lie = buffers(self.layer(step, run), self.machine, run.nest)
        return replace(seen, buffers=lie, on_chip=on_chip(self.found, self.machine, run))

    @property
    def must(self) -> dict[str, int]:
        """Every weight, and every input and result of the network once."""
        return {"bytes": self.tables.compulsory_bytes}

    def _figures(self, outcomes: Sequence[Outcome]) -> dict[str, int]:
        pairs = zip(self.found.layers, outcomes, strict=False)  # a walk that is broken off has fewer
        return {name: number for layer, one in pairs for name, number in _flat(f"layer {layer.name}:", asdict(one))}

    def contains(self, runs: Runs) -> tuple[str, ...]:
        """Every nest is a plan of problem tiling, with the pins."""
        demands = f" with {', '.join(self.pins.to_json())}" if self.pins.pins else ""
        return tuple(
            f"layer {self.found.layers[t].name}: the schedule is no plan of problem tiling{demands}"
            for t, run in enumerate(runs)
            if not self.holds(t, run)
        )

    def holds(self, step: int, run: LayerRun) -> bool:
        """Whether a nest is a plan of problem tiling, with the pins."""
        return tiling.build(self.layer(step, run), self.machine, self.pins).contains(run.nest)

    def explain(self) -> tuple[str, ...]:
        """The demands that a layer cannot meet even with all banks to itself."""
        machine = self.machine.model_copy(update={"ocm_bytes": self.machine.bank_count * self.machine.bank_bytes})
        for layer in self.found.layers:
            if said := tiling.build(layer, machine, self.pins).explain():
                return tuple(f"layer {layer.name}: {line}" for line in said)
        return ("no layer by itself conflicts with the machine, all of them together do",)

    # ---- banks -------------------------------------------------------------------------------------------------------

    def runs(self, choice: Choice) -> Runs:
        """Return levels as a schedule with the best nests that are known.

        Raises
        ------
        RuntimeError
            If tables and closed form disagree: a defect of certile.
        """
        tables, joint = self.tables, self.tables.joint(bound="known")
        places, made = Places(self.machine), []
        for t, live in enumerate(joint.live):
            levels = {k: joint.level(choice, k, t) for k in live}
            sizes = {k: joint.residences[k].taken(t)[level] for k, level in levels.items()}
            held, free = places.given({k: number for k, number in sizes.items() if number})
            on_chip = [(joint.residences[k], level, held[k]) for k, level in levels.items() if sizes[k]]
            residents = {r.store: (r.rows[level], banks) for r, level, banks in on_chip}
            plans, rows, room = tables.place(joint, choice, t)
            run = LayerRun(plans.nest(rows, room), residents, self._unwritten(choice, t), free)
            made.append(self.trimmed(t, run))
        runs, said = tuple(made), joint.price(choice.levels).bytes
        if self.price(runs).measures["bytes"] != said:
            raise RuntimeError(f"{self.name}: tables say {said} bytes, prices {self.price(runs).measures['bytes']}")
        return runs

    def _unwritten(self, choice: Choice, step: int) -> int:
        """Rows of the result that never go to DRAM: those on chip until the last use."""
        store, tables = self.found.writes[step], self.tables
        k = tables.number.get(store)
        return 0 if k is None or self.found.stores[store].results else tables.residences[k].rows[choice.levels[k][-1]]

    def trimmed(self, step: int, run: LayerRun) -> LayerRun:
        """A run with those banks alone that the tiles take; without banks as it is."""
        taken = self.outcome(self.layer(step, run), run.nest).occupancy_bytes["ocm"]
        return replace(run, banks=run.banks[: -(-taken // self.machine.bank_bytes)])

    def polished(self, runs: Runs, clock: Clock) -> Runs:
        """Every layer with the fastest of equal nests."""
        known: Fastest = {}
        return tuple(self.faster(t, run, known, clock) for t, run in enumerate(runs))

    def faster(self, step: int, run: LayerRun, known: Fastest, clock: Clock) -> LayerRun:
        """The fastest nest that moves as little in the room that is free; without time a coarser one."""
        layer, (free, room) = self.layer(step, run), left_of(self.found, self.machine, run)
        key = layer.signature(), room, self.outcome(layer, run.nest).bytes
        if key not in known:
            known[key] = self._faster(layer, run.nest, room, clock)
        return self.trimmed(step, replace(run, nest=known[key], banks=free))

    def _faster(self, layer: Layer, nest: Nest, room: int, clock: Clock) -> Nest:
        most = {"ocm": room, "bytes": self.outcome(layer, nest).bytes}
        space = tiling.build(layer, self.machine, self.pins)
        if not clock.over:
            said = search_nests(space, ("bytes",), clock, most=most, proving=(), known=most).nest or nest
            return min(said, nest, key=lambda one: ((of := self.outcome(layer, one)).bytes, of.time_ticks))
        for item in nest.items:  # without loops that save nothing there are fewer tiles, which take time to replay, too
            fewer = replace(nest, items=tuple(one for one in nest.items if one is not item))
            if isinstance(item, Loop) and space.contains(fewer):
                outcome = self.outcome(layer, fewer)
                if outcome.bytes <= most["bytes"] and outcome.occupancy_bytes["ocm"] <= most["ocm"]:
                    nest = fewer
        return nest


def on_chip(found: Stores, machine: Machine, run: Run) -> dict[str, int]:
    """Return the bytes of what stays on chip while a layer or a group runs, by name."""
    rows = {found.stores[s]: count for s, (count, _) in run.residents.items()}
    return {store.name: count * store.row_bytes(machine) for store, count in rows.items()}


def _sums(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """The measures of all layers together, which run one after the other."""
    return {name: sum(one.measures[name] for one in outcomes) for name in ("bytes", "energy", "time")}


def _flat(where: str, value: Any) -> Iterator[tuple[str, int]]:
    """All numbers in a tree, by the way to each."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _flat(f"{where} {name}", one)
    else:
        yield where, value


class Levels(Piece[Runs]):
    """All levels of all maps, with tables of one kind: "proven" bounds, or what searches have "found".

    Attributes
    ----------
    best : Choice or None
        The best levels so far, with nests that are known.
    least : int
        What dynamic programming proved that nothing moves less than.
    """

    def __init__(self, part: JointPart, bound: Bound = "proven", best: Choice | None = None) -> None:
        self.part, self.bound, self.best = part, bound, best
        self.least, self._begun, self._cost = 0, False, 0

    def floor(self, goal: Goal) -> int:
        """What must move: what cannot stay, and what is proven of bytes or energy already."""
        factor, constant = self.part.rising(goal.measure)
        moved = max(self.least, self.part.tables.floor())
        for measure, value in goal.least.items():
            each, rest = self.part.rising(measure)
            moved = max(moved, -((rest - value) // each) if each else 0)
        return constant + factor * moved

    def so_far(self) -> Runs | None:
        """The best levels with the best nests that are known by now."""
        return None if self.best is None else self.part.runs(self.best)

    def split(self, goal: Goal) -> Sequence[Piece[Runs]]:
        """The same with what searches have found: the best there is where no nest reaches a bound."""
        return [Levels(self.part, "found", self.best)] if self.bound == "proven" else ()

    # ---- searching ---------------------------------------------------------------------------------------------------

    def exact(self, goal: Goal, engine: str) -> tuple[Runs | None, int | None]:
        """Dynamic programming, again and again with tables that become exact where it matters; raises TooLarge."""
        self._begin(goal.clock)
        for moved in self._rounds(goal.clock):
            if self.bound == "proven":
                self.least = max(self.least, moved)
        return self.so_far(), None if self.least >= NEVER else self.floor(goal)

    def cp_sat(self, goal: Goal) -> Model[Runs]:
        """The tables as they are, on Booleans; raises TimeUp."""
        from formulations.joint.cp_sat import cp_sat  # late: solvers are slow to import

        return self._model(goal, lambda joint: cp_sat(joint, self.best))

    def milp(self, goal: Goal) -> Model[Runs]:
        """The same, linear; raises TimeUp."""
        from formulations.joint.milp import milp

        return self._model(goal, milp)

    def _model(self, goal: Goal, build: Callable[[Joint], Model[Choice]]) -> Model[Runs]:
        if not self._begun:
            self._begin(goal.clock)
            with suppress(TooLarge):  # the quickest way to the searches that matter
                for _ in self._rounds(goal.clock):
                    pass
        goal.clock.tick()
        joint = self.part.tables.joint(bound=self.bound)
        made, (factor, constant) = build(joint), self.part.rising(goal.measure)

        def decode(solution: Any) -> Runs | None:
            choice = made.decode(solution)
            assert choice is not None
            self._cost = constant + factor * choice.bytes
            clock = Clock(0.0) if goal.stats.get("interrupted") else goal.clock
            return self.so_far() if self._is_known(joint, choice, clock) else None

        return Model(
            made.model, decode, constant + factor * made.base, factor * made.unit, made.parameters, made.turns,
            priced=made.priced and factor > 0, cost=lambda: self._cost, proves=self.bound == "proven",
        )  # fmt: skip

    def _begin(self, clock: Clock) -> None:
        """Begin with the greedy choice; if there is a time limit, with some nest for every layer."""
        if not self._begun and self.bound == "proven":
            if clock.until < inf:
                self.part.tables.hurry(clock.half())
            self._take(in_order(self.part.tables, clock))
        self._begun = True

    def _rounds(self, clock: Clock) -> Iterator[int]:
        """Yield optima for tables that grow tighter, at least `NEVER` if nothing fits."""
        while True:
            joint = self.part.tables.joint(bound=self.bound)
            choice = least(joint)
            yield NEVER if choice is None else choice.bytes
            if choice is None or self._is_known(joint, choice, clock):
                return

    def _is_known(self, joint: Joint, choice: Choice, clock: Clock) -> bool:
        """Search where a choice relies on bounds; whether it relied on none, or the time has run out."""
        places = self.part.tables.relied(joint, choice)
        again = bool(places) and self.part.tables.search(places, clock)
        self._take(choice)
        return not again

    def _take(self, choice: Choice) -> None:
        """Keep the best choice that plans are known for."""
        real = self.part.tables.joint(bound="known").price(choice.levels)
        if real.bytes < NEVER and (self.best is None or real.bytes < self.best.bytes):
            self.best = real


def _heuristic(choose: Callable[[Tables, Clock], Choice]) -> Callable[[JointPart, Goal], Runs]:
    """A choice as a schedule, with the best plans for what it leaves; raises Unable if some layer has no place."""

    def run(part: JointPart, goal: Goal) -> Runs:
        tables = part.tables
        if goal.clock.until < inf:
            tables.hurry(goal.clock.half())
        choice = choose(tables, goal.clock)
        tables.search(tables.relied(tables.joint(bound="proven"), choice), goal.clock)
        choice = tables.joint(bound="known").price(choice.levels)
        if choice.bytes >= NEVER:
            raise Unable("this heuristic finds no place for some layer")
        runs = part.runs(choice)
        return part.polished(runs, goal.clock) if goal.clock.over else runs

    return run


class JointFormulation(Formulation[Runs]):
    """Tile plans of all layers, and what stays on chip between them."""

    name = "joint"
    summary = "F10: tile plans of all layers and what stays in a shared memory between them"
    schedule = Runs
    figures = tuple[RunFigures, ...]
    whole = True
    measures = {"bytes": "bytes", "energy": "fJ"}  # noqa: RUF012
    decisions = tiling.DECISIONS
    engines = {  # noqa: RUF012
        "dynamic": "dynamic programming over the rows of all maps on chip: exact",
        "milp": "one-hot levels and plans with HiGHS: exact",
        "cp-sat": "one-hot levels and plans with CP-SAT: exact",
    }
    heuristics = {  # noqa: RUF012
        "no-reuse": ("every layer's best plan alone, every map through DRAM", _heuristic(no_reuse)),
        "greedy": ("map after map stays as far as it fits", _heuristic(in_order)),
        "sequence": (
            "tile plans first, layer by layer; then the best use of what they leave", _heuristic(in_sequence),
        ),
    }  # fmt: skip
    quick = ("greedy", "sequence", "no-reuse")

    def read(
        self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[JointPart]:  # fmt: skip
        """The network; raises InputError for machines without a shared memory, and for layers that no nest plans."""
        check_machine(machine)
        for layer in network.layers:
            refuse_long(layer)
            if layer.kind == "correlation":
                raise InputError(f"layer {layer.name}: only problem mesh plans correlations")
        return [JointPart(network, machine, pins)]


def check_machine(machine: Machine, problem: str = "joint") -> None:
    """Raise InputError unless the problem can be asked of a machine."""
    if not machine.bank_count:
        raise InputError(
            f"machine {machine.name}: problem {problem} needs a memory that all operands share (ocm_bytes), "
            "such as scratchpad_768k has"
        )
    if machine.in_bytes != machine.out_bytes:
        raise InputError(
            f"machine {machine.name}: in_bytes {machine.in_bytes} and out_bytes {machine.out_bytes} differ; "
            "a map that stays on chip is read as it was written"
        )
    if machine.edge_tiles == "uniform" or machine.reading == "literal" or machine.tles * machine.tlts > 1:
        raise InputError(
            f"machine {machine.name}: problem {problem} needs one core, edge_tiles 'true' and reading 'consistent'"
        )

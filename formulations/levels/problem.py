"""Levels as a formulation: a layer is decided order by order, each by branch and bound over chains, or by CP-SAT."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from formulations.levels.orders import Order, orders
from formulations.levels.overlap import AllOrders, hunted
from formulations.levels.pieces import CLOSE, PAIRS, OneOrder
from formulations.levels.search import NOTHING
from formulations.levels.terms import sources
from formulations.pins import Decision, Pins
from formulations.problem import Formulation, Goal, Part, Piece, Priced, Replayed
from hwmodels.levels.price import Cost, Moved, lanes_of, levels_of, price, window_of, windowed
from hwmodels.levels.replay.walk import walk
from hwmodels.levels.schedule import Cut, LevelNest, Stay
from hwmodels.outcome import Natural
from instances.errors import InputError, choices
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.workload import DIMS, RELEVANT, Layer, refuse_long

DECISIONS: Mapping[str, Decision] = {
    "resident": Decision("an operand that lies whole in a memory, such as W@l2", ("X@MEMORY",), open=True),
}
#: Schedules whose cost is kept.
_KEPT = 64


@dataclass(frozen=True)
class LevelFigures:
    """What follows from a nest beside its measures."""

    moved: tuple[Moved, ...]
    """By Stay, outermost first."""
    occupancy_bytes: dict[str, Natural]
    """By memory the most that lies there."""
    compute_ticks: Natural


class LevelPart(Part[LevelNest]):
    """A layer on memories in levels; raises InputError if the machine cannot run it, or pins name what there is not."""

    def __init__(self, layer: Layer, machine: Machine, pins: Pins | None = None) -> None:
        self.levels = levels_of(layer, machine)
        refuse_long(layer)
        self.name, self.layer, self.machine, self.pins = layer.name, layer, machine, pins or Pins()
        self.residents = frozenset(self._resident(pin.value, pin.op) for pin in self.pins.pins)
        self.latest: tuple[Order, LevelNest] | None = None
        """The best plan that was found last, and its order: where objectives follow, their plans begin with it."""
        self._costs: dict[LevelNest, Cost] = {}
        self._searched: dict[tuple[object, ...], list[OneOrder]] = {}

    def _resident(self, value: str, op: str) -> Stay:
        """What a pin says that lies whole in a memory; raises InputError for what the machine does not have."""
        operand, _, memory = value.partition("@")
        known = [f"{x}@{one.name}" for one in self.levels.memories[1:] for x in one.operands]
        if op != "=" or value not in known:
            raise InputError(f"pin resident{op}{value}: expected resident=X@MEMORY with {choices(known)}")
        return Stay(operand, memory)  # type: ignore[arg-type]

    @property
    def key(self) -> Hashable:
        """Layers of one signature are alike."""
        return self.layer.signature()

    # ---- the space ---------------------------------------------------------------------------------------------------

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """All orders of Stays that have what is pinned."""
        asked = {one for one in self.residents if one.operand in self.layer.operands}
        return tuple(one for one in orders(self.layer, self.machine) if asked <= set(one.stays))

    def pieces(self, goal: Goal) -> Iterator[Piece[LevelNest]]:
        """A piece an order; those with good plans first, as far as heuristics have looked; or one of them all."""
        yield from [AllOrders(self)] if self.follows(goal) else self.ordered(goal)

    def follows(self, goal: Goal) -> bool:
        """Whether rows are bounds of time alone, which is found by following all transfers."""
        return "time" in (goal.measure, *goal.caps) and self.levels.queues != "serial"

    def ordered(self, goal: Goal) -> list[OneOrder]:
        """The orders for a goal, made once."""
        key = goal.measure, tuple(sorted(goal.caps.items()))
        if key not in self._searched:
            made = [OneOrder(self, order, goal) for order in self.orders]
            made.sort(key=lambda one: self.latest is None or one.order != self.latest[0])
            self._searched = {key: made}
        return self._searched[key]

    def least(self, measure: str) -> int:
        """A bound of a measure that takes no search: what must move, products and rounds of lanes."""
        layer, machine = self.layer, self.machine
        prices = {one.name: one for one in self.levels.memories}
        across = dict.fromkeys(prices, 0)
        for operand, names in self._sources.items():
            for name in names:
                across[name] += self._sizes[operand]
        if measure == "energy":
            return layer.macs * machine.mac_fj + sum(across[name] * one.byte_fj for name, one in prices.items())
        if measure == "time":
            return self._least_time(across)
        return sum(self._sizes.values()) if measure == "bytes" else across[measure.partition("@")[2]]

    def _least_time(self, across: Mapping[str, int]) -> int:
        """A bound of time: a transfer of every operand from every memory, and one after the other what has to be."""
        machine, layer, prices = self.machine, self.layer, {one.name: one for one in self.levels.memories}
        lanes, unit = lanes_of(layer, machine), machine.compute
        rounds = prod(-(-layer.extent(d) // lanes.get(d, 1)) for d in DIMS) * layer.inputs
        compute = (layer.cycles if unit.model == "none" else rounds) * unit.cycle_ticks
        calls = {x: [prices[name].call_ticks for name in names] for x, names in self._sources.items()}
        moving = {
            name: across[name] * one.byte_ticks
            + one.call_ticks * sum(name in names for names in self._sources.values())
            for name, one in prices.items()
        }
        if self.levels.queues == "serial":
            return compute + sum(moving.values())
        loads = [each for x, each in calls.items() if x != "OUT"]
        compute += sum(each[0] for each in loads) + min(sum(each[1:]) for each in loads) + sum(calls["OUT"])
        return max(compute, *(moving.values() if self.levels.queues == "each" else [sum(moving.values())]))

    @cached_property
    def _sources(self) -> dict[str, list[str]]:
        """By operand the memories that its tiles come from in any case."""
        return {x: sources(self.levels, x) for x in self.layer.operands}

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """Bytes of every operand, each element that is read once."""
        layer, machine = self.layer, self.machine
        found = {"OUT": layer.b * layer.g * layer.m * layer.r * layer.c * machine.out_bytes}
        if "W" in layer.operands:
            found["W"] = layer.weight_elements * machine.w_bytes + layer.g * layer.m * layer.bias * machine.bias_bytes
        rows, columns = (self._read(d) for d in "rc")
        found["IN"] = layer.b * layer.g * layer.n * rows * columns * layer.inputs * machine.in_bytes
        return found

    def _read(self, axis: str) -> int:
        """Rows (columns) that windows read, in whole tiles the fewest: those between two windows need not be."""
        window, number = window_of(self.layer, axis), self.layer.extent(axis)
        places = np.arange(number)[:, None] * window.stride - window.pad + np.arange(window.reach)[None, :]
        return len(np.unique(places[(places >= 0) & (places < window.size)]))

    @property
    def must(self) -> dict[str, int]:
        """Every operand once."""
        return {"bytes": sum(self._sizes.values())}

    # ---- a schedule --------------------------------------------------------------------------------------------------

    def cost(self, schedule: LevelNest) -> Cost:
        """What a schedule costs; the latest ones are kept, as following transfers that overlap takes time."""
        if schedule not in self._costs:
            if len(self._costs) >= _KEPT:
                self._costs.pop(next(iter(self._costs)))
            self._costs[schedule] = price(self.layer, self.machine, schedule)
        return self._costs[schedule]

    def price(self, schedule: LevelNest) -> Priced:
        """Bytes by memory, energy, time."""
        cost = self.cost(schedule)
        memories = {one.name: one for one in self.levels.memories}
        moving = {
            f"{one.operand} {one.source} to {one.memory}": one.calls * memories[one.source].call_ticks
            + one.bytes * memories[one.source].byte_ticks
            for one in cost.moved
        }
        terms: dict[str, dict[str, int]] = {f"bytes@{name}": {} for name in [*memories][:-1]}
        for one in cost.moved:
            terms[f"bytes@{one.source}"][f"{one.operand} to {one.memory}"] = one.bytes
        terms["bytes"] = terms[f"bytes@{self.levels.memories[0].name}"]
        energy = {
            f"bytes of {name}": cost.measures[f"bytes@{name}"] * memories[name].byte_fj for name in [*memories][:-1]
        }
        terms["energy"] = {"products": self.layer.macs * self.machine.mac_fj, **energy}
        if self.levels.queues == "serial":
            terms["time"] = {"compute": cost.compute_ticks, **moving}
        return Priced(cost.measures, terms)

    def replay(self, schedule: LevelNest) -> Replayed:
        """Walk all iterations; small layers are executed."""
        seen = walk(self.layer, self.machine, schedule)
        first = self.levels.memories[0].name
        measures = {"time": seen.time, "bytes": seen.bytes[first], "energy": seen.energy}
        measures |= {f"bytes@{one.name}": seen.bytes[one.name] for one in self.levels.memories[:-1]}
        return Replayed(measures, tuple(seen.faults), executed=int(seen.executed), tally=seen.calls)

    def figures_of(self, schedule: LevelNest, walked: Replayed) -> LevelFigures:
        """What moves for every Stay, and what the memories take."""
        cost = self.cost(schedule)
        return LevelFigures(cost.moved, cost.occupancy_bytes, cost.compute_ticks)

    def steps(self, schedule: LevelNest) -> int:
        """How many steps a nest has at most: pieces of all dimensions that loops outside the last Stay make."""
        last, total = max(k for k, _ in schedule.stays()), 1
        for d, steps in schedule.steps(last).items():
            length = self.layer.extent(d)
            for step in steps:
                total *= -(-length // step)
                length = step
        return total

    def contains(self, schedule: LevelNest) -> tuple[str, ...]:
        """Memories that overflow, and pins that are not kept."""
        cost = self.cost(schedule)
        found = []
        for one in self.levels.memories[1:]:
            taken = cost.occupancy_bytes[one.name]
            if one.bytes is not None and taken > one.bytes:
                found.append(f"{one.name}: {taken} bytes are taken, it has {one.bytes}")
        for k, stay in schedule.stays():
            steps = schedule.steps(k)
            cut = [d for d in RELEVANT[stay.operand] if steps[d] and steps[d][-1] < self.layer.extent(d)]
            if stay in self.residents and cut:
                found.append(f"pin resident={stay.operand}@{stay.memory}: its tile there is not whole")
        stays = {stay for _, stay in schedule.stays()}
        missing = [one for one in self.residents if one not in stays and one.operand in self.layer.operands]
        return (*found, *(f"pin resident={one.operand}@{one.memory}: it does not lie there" for one in missing))

    def show(self, schedule: LevelNest) -> str:
        """The nest, a line a loop or Stay."""
        cost, lines, indent = self.cost(schedule), list[str](), "  "
        tiles = {(one.operand, one.memory): one for one in cost.moved}
        for item in schedule.items:
            if isinstance(item, Cut):
                lines.append(f"{indent}for {item.dim} in steps of {item.step}:")
                indent += "  "
            else:
                one = tiles[item.operand, item.memory]
                said = f"{one.tile_bytes:,} bytes, {one.calls:,} transfers, {one.bytes:,} bytes in all"
                lines.append(f"{indent}{item.operand} in {item.memory} from {one.source}: {said}")
        return "\n".join([*lines, f"{indent}compute the tile"])

    def label(self, schedule: LevelNest) -> str:
        """Loops by letter and step, Stays by operand and memory."""
        said = [f"{i.dim}{i.step}" if isinstance(i, Cut) else f"{i.operand}@{i.memory}" for i in schedule.items]
        return " ".join(said)

    # ---- without a search --------------------------------------------------------------------------------------------

    def smallest(self, goal: Goal) -> LevelNest | None:
        """Uniform tiles: all Stays inside loops with one step a dimension, halved in turns until they fit."""
        sides = {d: self.layer.extent(d) for d in DIMS}
        stays = [
            Stay(x, one.name) for one in self.levels.memories[1:] for x in ("IN", "W", "OUT")
            if x in one.operands and x in self.layer.operands
        ]  # fmt: skip
        while True:
            loops = [Cut(d, sides[d]) for d in DIMS[:6] if sides[d] < self.layer.extent(d)]  # type: ignore[arg-type]
            taps = [Cut(d, sides[d]) for d in ("i", "j") if sides[d] < self.layer.extent(d)]
            inner = [one for one in stays if one.operand != "IN"]
            made = LevelNest((*loops, *(one for one in stays if one.operand == "IN"), *taps, *inner))
            if not self.contains(made):
                return made
            if all(size == 1 for size in sides.values()):
                return None
            widest = max(sides, key=lambda d: (d not in "ij" and sides[d] > 1, sides[d]))
            sides[widest] = -(-sides[widest] // 2)

    def descended(self, goal: Goal) -> LevelNest | None:
        """The best plan of descents: of all orders chain by chain, of the best ones pair by pair."""
        if self.follows(goal):
            return hunted(self, goal)
        best: tuple[int, LevelNest | None] = (NOTHING, None)
        pieces = self.ordered(goal)
        first = pieces[:1] if goal.caps else []
        for pairs, some in ((PAIRS, first), (0, pieces), (PAIRS, pieces)):
            for one in sorted(some, key=lambda one: one.value)[: CLOSE if pairs else None]:
                if best[1] is not None and (goal.clock.over or best[0] <= self.least(goal.measure)):
                    break
                begin = one.searched.terms.picks(self.latest[1]) if some is first and self.latest else None
                made = one.searched.descend(pairs, begin)
                if made is None:
                    continue
                one.value = min(one.value, made[0])
                if made[0] < best[0] and (pairs or best[1] is None):
                    best = made[0], one.searched.terms.nest(made[1])
                    self.latest = one.order, best[1]
        pieces.sort(key=lambda one: one.value)
        return best[1]

    def explain(self) -> tuple[str, ...]:
        """The memory that the smallest tiles overflow; or pins that leave no plan."""
        found = tuple(self._overflows())
        if found or self.smallest(Goal("bytes")) is not None or self._any():
            return found
        pins = self.pins.pins
        spared = [pin for pin in pins if LevelPart(self.layer, self.machine, self.pins.without(pin))._any()]
        together = f"pins {', '.join(map(str, pins))} together leave no plan" if pins else "no tiles fit all memories"
        return tuple(f"without pin {pin} there is a plan" for pin in spared) or (together,)

    def _any(self) -> bool:
        """Whether there is any plan."""
        return any(one.exact(Goal("bytes"), "")[0] is not None for one in self.pieces(Goal("bytes")))

    def _overflows(self) -> Iterator[str]:
        window = prod(min(self._smallest_window(d)) for d in "rc")
        least = {
            "IN": window * self.layer.inputs * self.machine.in_bytes, "OUT": self.machine.out_bytes,
            "W": self.machine.w_bytes + self.machine.bias_bytes * self.layer.bias,
        }  # fmt: skip
        for one in self.levels.memories[1:]:
            held = [x for x in one.operands if x in self.layer.operands and x not in one.passed]
            taken = one.reserved_bytes + sum(least[x] for x in held)
            if one.bytes is not None and taken > one.bytes:
                yield f"{one.name}: the smallest tiles of {', '.join(held)} take {taken} bytes, it has {one.bytes}"

    def _smallest_window(self, axis: str) -> list[int]:
        """The extents of the windows of single outputs."""
        found = windowed(self.layer, axis, np.ones((1, 1), np.int64))
        return [int(size) for size, count in zip(found.length[0], found.count[0], strict=True) if count]


def _descended(part: LevelPart, goal: Goal) -> LevelNest | None:
    return part.descended(goal)


class _Measures(Mapping[str, str]):
    """The measures: bytes of a memory by its name, too."""

    _known: Mapping[str, str] = {"time": "ticks", "bytes": "bytes", "energy": "fJ", "bytes@MEMORY": "bytes"}

    def __getitem__(self, name: str) -> str:
        kind, at, memory = name.partition("@")
        return self._known["bytes@MEMORY" if at and memory and kind == "bytes" else name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class LevelsFormulation(Formulation[LevelNest]):
    """Layers on memories in levels."""

    name = "levels"
    summary = "one nest of a layer over memories in levels: DRAM, L2, L1, accumulators"
    schedule, figures, target = LevelNest, LevelFigures, tuple[Layer, ...]
    measures = _Measures()
    decisions = DECISIONS
    engines = {  # noqa: RUF012
        "search": "branch and bound over the chains of every order",
        "cp-sat": "CP-SAT, a model an order: for small layers",
    }
    heuristics = {  # noqa: RUF012
        "descend": ("of every order the best chain of a dimension beside the others, in turns", _descended),
        "halving": ("one tile for all memories, halved until it fits", LevelPart.smallest),
    }
    starts = ("halving", "descend")
    quick = ("halving",)
    floors = False
    ties = ("time", "bytes")
    tie_share = 0.5

    def read(self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None) -> Sequence[LevelPart]:
        """Return every conv and matmul layer, or those named."""
        picked = network.conv_layers if layers is None else [network.layer(name) for name in layers]
        return [LevelPart(layer, machine, pins) for layer in picked]

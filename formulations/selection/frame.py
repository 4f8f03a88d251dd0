"""A frame of selection (all numbers of one input size, frequency and set of cuts, as integers), and its normal form.

**Frame.** Example: conv1 takes 3,100 us at the profile's clocks. At a frequency that scales its stage by 1.261 and with
ticks of a microsecond it takes 3,909.

**Normal form** (`Form`): every objective is the largest of some rows, every constraint is a row with a limit.

Example: two threads with loads a and b. The objective period has the rows a and b; the limit "period <= 20" has the
same two rows, each with the limit 20. With base power 5, energy has the rows 5 a + w and 5 b + w, where w is what the
stages consume beside it.

    row = const + weights @ total           of the quantities of the frame
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from formulations.problem import Goal
from hwmodels.selection.schedule import Choice, Selection
from instances.errors import InputError
from instances.machine.boards import Frequency, Platform
from instances.network.variants import PPM, Option, Size, VariantLayer, Variants

Ints = NDArray[np.int64]
#: Stage (its number) and element type.
State = tuple[int, str]
#: Sums up to which engines count in 64 bits.
LARGEST = 2**61


@dataclass(frozen=True)
class Setting:
    """Variants on a platform; of a board in one configuration of its cores."""

    variants: Variants
    platform: Platform
    tick_ps: int
    configuration: str = ""

    @cached_property
    def begins(self) -> Ints:
        """By layer the number of its first option, of all."""
        return np.cumsum([0, *(len(layer.options) for layer in self.variants.layers[:-1])])

    @cached_property
    def stage_of(self) -> Ints:
        """By option the number of its stage."""
        number = {stage.name: s for s, stage in enumerate(self.platform.stages)}
        return np.array([number[option.stage] for _, option in self.variants.choices], np.int64)

    @cached_property
    def amounts(self) -> Ints:
        """What options take beside time, of shape (options, quantities); it is the same in all frames."""
        budgets, stages = [budget.name for budget in self.platform.budgets], len(self.platform.stages)
        rows = [[option.loss_ppm, option.bytes, *(option.uses.get(name, 0) for name in budgets)]
                for _, option in self.variants.choices]  # fmt: skip
        return np.hstack([np.zeros((len(rows), stages), np.int64), np.array(rows, np.int64)])

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """All sizes, frequencies and cuts."""
        return tuple(
            Frame(self, size, frequency, cuts)
            for size in self.variants.sizes for frequency in self.platform.frequencies for cuts in self.platform.cuts
        )  # fmt: skip


class Frame:
    """One size, frequency and set of cuts."""

    def __init__(self, setting: Setting, size: Size, frequency: Frequency, cuts: tuple[str, ...]) -> None:
        self.setting, self.size, self.frequency, self.cuts = setting, size, frequency, cuts
        platform = setting.platform
        self.stages = tuple(stage.name for stage in platform.stages)
        self.scales = tuple(frequency.scale.get(name, 1.0) for name in self.stages)
        self.threads = threads(self.stages, cuts)
        self.budgets = tuple(budget.name for budget in platform.budgets)
        self._hands = {(h.source, h.target): h for h in platform.handovers}
        self._converts = {(c.stage, c.source, c.target): c for c in platform.conversions}
        self._bytes = {one.name: one.bytes for one in platform.types}

    @property
    def name(self) -> str:
        """For people."""
        cut = "cut at " + ", ".join(self.cuts) if self.cuts else "one thread"
        parts = (self.setting.configuration, self.size.name, self.frequency.name, cut)
        return " ".join(part for part in parts if part)

    # ---- quantities --------------------------------------------------------------------------------------------------

    @property
    def loss(self) -> int:
        """The number of the quantity loss; memory follows, then the budgets. Those before are stages."""
        return len(self.stages)

    @property
    def memory(self) -> int:
        """The number of the quantity memory."""
        return self.loss + 1

    @property
    def quantities(self) -> int:
        """How many there are."""
        return self.memory + 1 + len(self.budgets)

    def ticks(self, ps: float, stage: int) -> int:
        """A time at this frequency."""
        return round(ps * self.scales[stage] / self.setting.tick_ps)

    # ---- layers ------------------------------------------------------------------------------------------------------

    @property
    def layers(self) -> tuple[VariantLayer, ...]:
        """All of them, in topological order."""
        return self.setting.variants.layers

    @cached_property
    def table(self) -> Ints:
        """What all options take, layer by layer, of shape (options, quantities)."""
        setting, unit = self.setting, self.setting.variants.unit
        table = setting.amounts.copy()
        ps = np.array([option.ps(unit, self.size) for _, option in setting.variants.choices], np.float64)
        scale = np.array(self.scales)[setting.stage_of]
        table[np.arange(len(ps)), setting.stage_of] = np.rint(ps * scale / setting.tick_ps)
        return table

    @cached_property
    def takes(self) -> tuple[Ints, ...]:
        """By layer what its options take, of shape (options, quantities)."""
        return tuple(np.split(self.table, self.setting.begins[1:]))

    @cached_property
    def states(self) -> tuple[tuple[State, ...], ...]:
        """By layer the states that its options have."""
        return tuple(tuple(dict.fromkeys(map(self._state, layer.options))) for layer in self.layers)

    @cached_property
    def state(self) -> tuple[tuple[int, ...], ...]:
        """By layer and option the number of its state."""
        return tuple(
            tuple(states.index(self._state(option)) for option in layer.options)
            for layer, states in zip(self.layers, self.states, strict=True)
        )

    def _state(self, option: Option) -> State:
        return self.stages.index(option.stage), option.type

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """By layer those that read its map."""
        found: list[list[int]] = [[] for _ in self.layers]
        for i, j in self.setting.variants.edges:
            found[i].append(j)
        return tuple(map(tuple, found))

    # ---- between layers ----------------------------------------------------------------------------------------------

    def convert(self, i: int, u: State, kind: str) -> int | None:
        """Ticks to convert the map of a layer, made in state `u`, to a type; None if there is no way."""
        stage, source = u
        if kind == source:
            return 0
        found = self._converts.get((self.stages[stage], source, kind), self._converts.get((None, source, kind)))
        if found is None:
            return None
        return self.ticks(found.call_ns * 1000 + found.element_ps * self._elements(i), stage)

    def hand(self, i: int, u: State, v: State) -> dict[int, int]:
        """What it takes to hand the map of a layer, made in state `u`, to a reader in state `v`, by quantity."""
        p, q = u[0], v[0]
        rule = self._hands.get((self.stages[p], self.stages[q])) if p != q else None
        if rule is None:
            return {}
        if self.threads[p] == self.threads[q]:
            return {p: self.ticks(rule.serial_ns * 1000, p)}
        size = self._elements(i) * self._bytes[v[1]]
        sent = rule.send_ns * 1000 + rule.byte_ps * size + rule.square_fs * size * size / 1000
        return {
            p: self.ticks(sent, p), q: self.ticks(rule.receive_ns * 1000, q), self.memory: rule.buffer_bytes,
        }  # fmt: skip

    def _elements(self, i: int) -> float:
        return self.layers[i].elements * self.size.scale

    # ---- schedules ---------------------------------------------------------------------------------------------------

    def total(self, chosen: Sequence[int]) -> list[int] | None:
        """What the chosen options take by quantity, with all that is between them; None if types do not meet."""
        rows = [takes[o].tolist() for takes, o in zip(self.takes, chosen, strict=True)]
        total = [sum(column) for column in zip(*rows, strict=True)]
        for i, readers in enumerate(self.readers):
            u = self.states[i][self.state[i][chosen[i]]]
            reading = [self.states[j][self.state[j][chosen[j]]] for j in readers]
            for kind in dict.fromkeys(v[1] for v in reading):
                ticks = self.convert(i, u, kind)
                if ticks is None:
                    return None
                total[u[0]] += ticks
            for v in reading:
                for q, amount in self.hand(i, u, v).items():
                    total[q] += amount
        return total

    def chosen(self, schedule: Selection) -> list[int]:
        """The options of a schedule by number; raises InputError for others than the layers have."""
        if [choice.layer for choice in schedule.choices] != [layer.name for layer in self.layers]:
            raise InputError(f"choices: {len(self.layers)} layers are to be chosen, the plan has other ones")
        found = []
        for layer, choice in zip(self.layers, schedule.choices, strict=True):
            places = [(option.variant, option.stage) for option in layer.options]
            if (choice.variant, choice.stage) not in places:
                raise InputError(f"layer {layer.name}: no variant {choice.variant} on {choice.stage} is allowed")
            found.append(places.index((choice.variant, choice.stage)))
        return found

    def schedule(self, chosen: Sequence[int]) -> Selection:
        """Options as a schedule."""
        rows = [(layer.name, layer.options[o]) for layer, o in zip(self.layers, chosen, strict=True)]
        choices = tuple(Choice(name, option.variant, option.stage) for name, option in rows)
        return Selection(self.size.name, self.frequency.name, self.cuts, choices, self.setting.configuration)

    def is_of(self, schedule: Selection) -> bool:
        """Whether a schedule is of this frame."""
        mine = (self.size.name, self.frequency.name, self.cuts, self.setting.configuration)
        return mine == (schedule.size, schedule.frequency, schedule.cuts, schedule.configuration)

    @cached_property
    def largest(self) -> int:
        """What no total is above."""
        return self._most(self.quantities)

    @cached_property
    def longest(self) -> int:
        """What no total of ticks is above, of all stages together."""
        return self._most(self.loss)

    def _most(self, end: int) -> int:
        """What no total of the first quantities is above."""
        most = sum(int(takes[:, :end].max()) for takes in self.takes)
        for i, readers in enumerate(self.readers):
            kinds = {v[1] for j in readers for v in self.states[j]}
            most += sum(max((self.convert(i, u, kind) or 0 for u in self.states[i]), default=0) for kind in kinds)
            hands = ((self.hand(i, u, v) for u in self.states[i] for v in self.states[j]) for j in readers)
            most += sum(max((sum(a for q, a in one.items() if q < end) for one in some), default=0) for some in hands)
        return most


def threads(stages: Sequence[str], cuts: Sequence[str]) -> tuple[int, ...]:
    """Return by stage the number of its thread."""
    number, found = 0, [0]
    for name in stages[1:]:
        number += name in cuts
        found.append(number)
    return tuple(found)


#: What may be minimised, with units, in the order that breaks ties.
MEASURES = {"period": "ticks", "time": "ticks", "energy": "fJ", "error": "ppm", "memory": "bytes", "score": "nJ"}


@dataclass(frozen=True)
class Row:
    """A linear form of the quantities, and the most that it may be."""

    name: str
    const: int
    weights: tuple[int, ...]
    """None is negative."""
    most: int | None = None

    def on(self, takes: Mapping[int, int]) -> int:
        """What some quantities add to it."""
        return sum(self.weights[q] * amount for q, amount in takes.items())

    def of(self, total: Sequence[int]) -> int:
        """Its value."""
        return self.const + sum(w * t for w, t in zip(self.weights, total, strict=True) if w)


@dataclass(frozen=True)
class Form:
    """What is asked of a frame."""

    objective: tuple[Row, ...]
    """Rows with one and the same constant; the largest is minimised."""
    caps: tuple[Row, ...]
    below: int | None = None
    """Only what is less is of interest."""

    @property
    def const(self) -> int:
        """Of all rows of the objective."""
        return self.objective[0].const

    def value(self, total: Sequence[int]) -> int:
        """The objective."""
        return max(row.of(total) for row in self.objective)

    def keeps(self, total: Sequence[int]) -> bool:
        """Whether all limits are kept."""
        return all(row.most is None or row.of(total) <= row.most for row in self.caps)


def measure_rows(frame: Frame, measure: str) -> tuple[Row, ...]:
    """Return the rows whose largest is a measure; not of score, which is a ratio."""
    number, stages = frame.quantities, range(len(frame.stages))

    def row(const: int, weights: Mapping[int, int]) -> Row:
        return Row(measure, const, tuple(weights.get(q, 0) for q in range(number)))

    if measure == "time":
        return (row(0, dict.fromkeys(stages, 1)),)
    if measure == "error":
        return (row(PPM - frame.size.accuracy_ppm, {frame.loss: 1}),)
    if measure == "memory":
        return (row(0, {frame.memory: 1}),)
    tick_ps, powers = frame.setting.tick_ps, stage_powers(frame)
    rows = []
    for thread in range(max(frame.threads) + 1):
        mine = [s for s in stages if frame.threads[s] == thread]
        if measure == "period":
            rows.append(row(0, dict.fromkeys(mine, 1)))
        else:
            base = frame.frequency.power_mw
            rows.append(row(0, {s: tick_ps * (powers[s] + (base if s in mine else 0)) for s in stages}))
    return tuple(dict.fromkeys(rows))


def stage_powers(frame: Frame) -> tuple[int, ...]:
    """Return by stage its power while it works [mW], beside that of the board."""
    own = frame.frequency.stage_mw
    return tuple(own.get(stage.name, stage.power_mw) for stage in frame.setting.platform.stages)


def score_rows(frame: Frame, factor: int) -> tuple[Row, ...]:
    """Return energy - factor * accuracy: negative if and only if energy / accuracy is below the factor."""
    accuracy = frame.size.accuracy_ppm
    rows = []
    for row in measure_rows(frame, "energy"):
        weights = list(row.weights)
        weights[frame.loss] += factor
        rows.append(Row("score", -factor * accuracy, tuple(weights)))
    return tuple(rows)


def measured(frame: Frame, total: Sequence[int]) -> dict[str, int]:
    """Return all measures of a total."""
    found = {name: max(row.of(total) for row in measure_rows(frame, name)) for name in MEASURES if name != "score"}
    return {**found, "score": found["energy"] // (PPM - found["error"]) if found["error"] < PPM else 0}


def caps(frame: Frame, most: Mapping[str, int]) -> Iterator[Row]:
    """Yield the constraints: some accuracy is left, memory and budgets of the platform, and limits of measures."""
    platform = frame.setting.platform
    (error,) = measure_rows(frame, "error")
    yield replace(error, most=PPM - 1)
    if platform.memory_bytes is not None:
        (memory,) = measure_rows(frame, "memory")
        yield replace(memory, name="memory_bytes", most=platform.memory_bytes)
    for k, budget in enumerate(platform.budgets, frame.memory + 1):
        yield Row(budget.name, 0, tuple(int(q == k) for q in range(frame.quantities)), budget.most)
    for name, limit in most.items():
        if name == "score":
            yield from (replace(row, most=-1) for row in score_rows(frame, limit + 1))
        else:
            yield from (replace(row, most=limit) for row in measure_rows(frame, name))


def form(frame: Frame, goal: Goal, most: Mapping[str, int]) -> Form:
    """Return what a goal asks of a frame, with limits that stand beside it; not for score, which is a ratio."""
    return Form(measure_rows(frame, goal.measure), tuple(caps(frame, tighter(most, goal.caps))), goal.below)


def tighter(one: Mapping[str, int], two: Mapping[str, int]) -> dict[str, int]:
    """Return the tighter of both limits, by measure."""
    return {name: min(limits[name] for limits in (one, two) if name in limits) for name in (*one, *two)}

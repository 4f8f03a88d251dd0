"""Search over nests of any kind: simulated annealing from random nests and from given ones.

    minimise  ln v_1 + ln v_2 / 64 + .. + (overrun of memories) + (demands not met)

v_k are the measures asked for, the most important first; a nest that fits and meets the demands is remembered if its
vector of measures is the least so far. Prices are those of `tests.adversary.pricing`, on machines with lines or snake
order those of replay; where a timeline decides, replay tells the time of the nests that may be accepted. What a search
returns is confirmed by replay, layers of moderate size executed on integers.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log

from hwmodels.nest.homes import machine_with_homes
from hwmodels.nest.replay.referee import EXECUTE_WORK, replay
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import Layer
from tests.adversary.demands import broken
from tests.adversary.moves import Form, Moves, nest_of
from tests.adversary.pricing import Priced, Pricer

#: First temperatures of walks from a random nest and from a given one, last temperature of both.
_HOT, _WARM, _COLD = 0.2, 0.02, 0.0005
#: A demand that is not met, or a memory overrun twice, costs as much as a value e times larger.
_WRONG = 1.0
#: Replayed timelines cost as much as so many prices.
_WALK = 8


@dataclass(frozen=True)
class Goal:
    """What is asked: the least vector of these measures, under these demands."""

    layer: Layer
    machine: Machine
    measures: tuple[str, ...]
    pins: tuple[str, ...] = ()

    def at(self, homes: Mapping[str, str]) -> Goal:
        """The same with the operands in these memories off the chip."""
        return replace(self, machine=machine_with_homes(self.layer, self.machine, homes)) if homes else self

    @property
    def timeline(self) -> bool:
        """Whether a timeline decides."""
        return "time" in self.measures and self.machine.timing == "double_buffered"

    @property
    def able(self) -> bool:
        """Whether the machine has lines or snake order, which replay alone prices."""
        return self.machine.line or self.machine.snake


def replayed(goal: Goal, form: Form) -> Priced:
    """Return the price that replay tells."""
    outcome = replay(goal.layer, goal.machine, nest_of(goal.layer, form), execute=False).outcome
    rooms, sizes = outcome.occupancy_bytes, goal.machine.memories
    over = sum(max(0, rooms[name] - size) / size for name, size in sizes.items())
    return Priced(outcome.time_ticks, outcome.bytes, outcome.energy_fj, over, sum(rooms.values()))


@dataclass(frozen=True)
class Witness:
    """A nest that replay accepts, with its vector of measures and the bytes that it takes on chip."""

    form: Form
    nest: Nest
    vector: tuple[int, ...]
    room: int = 0


def vector_of(goal: Goal, priced: Priced) -> tuple[int, ...]:
    """Return the measures asked for, in their order."""
    return tuple(int(getattr(priced, name)) for name in goal.measures)


def confirmed(goal: Goal, form: Form, *, execute: bool | None = None) -> Witness | str:
    """Replay a form: a witness, or what is wrong with it."""
    nest = nest_of(goal.layer, form)
    try:
        walked = replay(goal.layer, goal.machine, nest, execute=execute)
    except InputError as error:
        return str(error)
    if not walked.ok:
        return "; ".join(walked.faults)
    if broken(goal.layer, goal.machine, goal.pins, form):
        return "it does not meet the pins"
    measures = walked.outcome.measures
    room = sum(walked.outcome.occupancy_bytes.values())
    return Witness(form, nest, tuple(measures[name] for name in goal.measures), room)


class _Walker:
    """Prices forms, times by replay where a timeline decides; counts the work."""

    def __init__(self, goal: Goal, pricer: Pricer) -> None:
        self.goal, self.pricer, self.spent = goal, pricer, 0
        self._times: dict[Form, int] = {}

    def price(self, form: Form) -> Priced:
        self.spent += 1
        if self.goal.able:
            return replayed(self.goal, form)
        return self.pricer.price(form.spread, form.items)

    def exact(self, form: Form, priced: Priced) -> Priced:
        if not self.goal.timeline:
            return priced
        if form not in self._times:
            self.spent += _WALK
            walked = replay(self.goal.layer, self.goal.machine, nest_of(self.goal.layer, form), execute=False)
            self._times[form] = walked.outcome.time_ticks
        return priced._replace(time=self._times[form])

    def score(self, form: Form, priced: Priced) -> float:
        goal = self.goal
        total, weight = 0.0, 1.0
        for value in vector_of(goal, priced):
            total, weight = total + weight * log(max(value, 1)), weight / 64
        return total + _WRONG * (priced.over + (0.1 if priced.over else 0.0) + self.wrong(form))

    def wrong(self, form: Form) -> int:
        return broken(self.goal.layer, self.goal.machine, self.goal.pins, form) if self.goal.pins else 0


def searched(
    goal: Goal, given: Sequence[Form], fresh: int, rng: random.Random, *, tries: int, pricer: Pricer | None = None,
    below: tuple[int, ...] | None = None,
) -> Witness | None:  # fmt: skip
    """Return the best nest found, confirmed by replay, or None.

    Parameters
    ----------
    given : sequence of forms
        Where walks begin, beside `fresh` random ones; each has `tries` prices.
    below : tuple of int, optional
        Stop as soon as a vector less than this is found.

    Raises
    ------
    ArithmeticError
        If replay does not confirm what the search found: one of the two is wrong.
    """
    pricer = pricer or Pricer(goal.layer, goal.machine)
    moves = Moves(goal.layer, goal.machine, rng)
    starts = [*((form, _WARM) for form in given), *((moves.start(), _HOT) for _ in range(fresh))]
    best: tuple[tuple[int, ...], Form] | None = None
    for form, heat in starts:
        found = _walk(_Walker(goal, pricer), moves, form, heat, tries, below)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
        if below is not None and best is not None and best[0] < below:
            break
    return None if best is None else agreed(goal, *best)


def agreed(goal: Goal, vector: tuple[int, ...], form: Form) -> Witness:
    """Confirm a form that a search prices at `vector`; raises ArithmeticError if replay does not agree."""
    found = confirmed(goal, form, execute=True if goal.layer.macs <= EXECUTE_WORK else None)
    if isinstance(found, str) or found.vector != vector:
        said = found if isinstance(found, str) else found.vector
        raise ArithmeticError(f"the search prices a nest at {vector}, replay says {said}: {nest_of(goal.layer, form)}")
    return found


def _walk(
    walker: _Walker, moves: Moves, form: Form, heat: float, tries: int, below: tuple[int, ...] | None
) -> tuple[tuple[int, ...], Form] | None:  # fmt: skip
    """One walk: the best form that fits, with its vector."""
    goal, rng = walker.goal, moves.rng
    best: tuple[tuple[int, ...], Form] | None = None
    now, new = inf, form
    while walker.spent < tries:
        cool = heat * (_COLD / heat) ** (walker.spent / tries)
        priced, limit = walker.price(new), now - cool * log(rng.random() or 1e-12)
        score = walker.score(new, priced)
        if score <= limit and goal.timeline:
            priced = walker.exact(new, priced)
            score = walker.score(new, priced)
        if score <= limit:
            form, now = new, score
            vector = vector_of(goal, priced)
            if (best is None or vector < best[0]) and not priced.over and not walker.wrong(form):
                best = vector, form
                if below is not None and vector < below:
                    break
        new = moves.changed(form)
    return best

"""The normal form of F8: every objective is the largest of some rows, every constraint is a row with a limit.

Example: two threads with loads a and b. The objective period has the rows a and b; the limit "period <= 20" has the
same two rows, each with the limit 20. With base power 5, energy has the rows 5 a + w and 5 b + w, where w is what the
stages consume beside it.

    row = const + weights @ total           of the quantities of `formulations.selection.frame`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from formulations.problem import Goal
from formulations.selection.frame import Frame
from instances.variants import PPM

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
    """Return what a goal asks of a frame, with limits that stand beside it; not for score (`scored`)."""
    return Form(measure_rows(frame, goal.measure), tuple(caps(frame, tighter(most, goal.caps))), goal.below)


def scored(frame: Frame, goal: Goal, most: Mapping[str, int], below: int) -> Form:
    """Return the form whose objective is negative for schedules with a score below a value."""
    return Form(score_rows(frame, below), tuple(caps(frame, tighter(most, goal.caps))), None)


def tighter(one: Mapping[str, int], two: Mapping[str, int]) -> dict[str, int]:
    """Return the tighter of both limits, by measure."""
    return {name: min(limits[name] for limits in (one, two) if name in limits) for name in (*one, *two)}

"""Banks, one stage in one direction: the data from which the time of its programs follows.

An example: a stage of 4 columns takes 10 ticks a column and group, has 2 groups of filters, and processes all columns
in one step. It computes for 2*4*10 ticks; the rest of its time are waits.

Sets
    x       columns of the result, in the order of the pass; g = 1 .. groups
    units   a group in a process step; of a sum: a column
Given (class `Timing`; times in ticks from the begin of the stage, sizes in bytes)
    ticks[x]    until the first x columns of one group are done, if nothing is waited for
    share       weights of a unit, loaded once, or with every process step (`anew`); a sum: `streams` by column
    following   what is asked for ahead of the next stage: its first weights and its biases (`First`)
    wait, owed  when the stage's own first weights, and its biases, are there
    writes      what it writes, where that takes time (`Writes`)
Derived, for a program (the loads and process steps of `formulations.banks.tasks`)
    end         when its last unit ends; a unit lasts ``ticks[last] - ticks[first]`` beside its waits for weights, tiles
                and biases. The bus is `hwmodels.banks.steps`
    wait'       ticks from the end until the first weights of the next stage are there; late' the same for its biases
    ready       ``end + max(wait', late' - lead, 0)``: when the next stage may begin to work
Objective
    Programs are compared in (bytes, end, end + wait'); `undominated` keeps those that no other is at or below in all
    three.

`formulations.banks.search` (first come, first served), `formulations.banks.cycles` and `formulations.banks.overtaking`
(weights first) find the programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import Literal, NamedTuple, Protocol, TypeVar

from formulations.banks.tasks import Program, Task
from hwmodels.banks.steps import Columns, DramClock, Pass


@dataclass(frozen=True)
class Writes:
    """What a stage writes, where that takes time."""

    column: int
    """Bytes of a column of the result."""
    stays: tuple[int, int] | None = None
    """Columns that are not written, in the order in which they are made, from the first to before the second; those
    that the goal keeps by default.
    """
    alone: int = 0
    dropped: int = 0
    """`alone`, `dropped`: first columns of the map that is read that only the chip has though other stages will read
    them; bytes of each. Those that do not stay are written as the stage begins.
    """
    late: int = 0
    """Bytes of columns that are streamed from DRAM, though only the chip has them: written as the stage begins."""

    def sizes(self, task: Task) -> tuple[int, ...]:
        """Bytes of the columns of the result that are written: ``sizes[x]`` of the first x."""
        stays = task.goal.stays if self.stays is None else self.stays
        if task.goal.average:  # leaves with the last column
            return *(0,) * task.goal.average, *_sizes(self.column, stays, 1)[1:]
        return _sizes(self.column, stays, task.stage.results)

    def at_first(self, task: Task) -> int:
        """Bytes that are written as the stage begins."""
        return max(0, self.alone - task.retain * task.stage.tile) * self.dropped + self.late


@cache
def _sizes(column: int, stays: tuple[int, int], columns: int) -> tuple[int, ...]:
    return tuple(accumulate((0 if stays[0] <= x < stays[1] else column for x in range(columns)), initial=0))


class First(NamedTuple):
    """What a stage finds asked for as it begins, or leaves asked for."""

    weights: int
    """Bytes of the first weights (a sum: of the first streamed column) of the next stage that has any."""
    bias: int = 0
    """Bytes of its biases, by cycle."""
    waits: bool = True
    """Whether the stage that comes next waits for them; pooling hands them on."""
    lead: int = 0
    """Ticks from when its first weights are there until it needs its biases, if it waits for nothing else."""

    def ready(self, ticks: int, wait: int, late: int = 0) -> int:
        """When what comes next may begin to work: its first weights are there, and its biases are when it needs them.

        If it waits for any; so it is ready at `ticks` at the earliest.
        """
        return ticks + max(wait, late - self.lead, 0) if self.waits and self.weights else ticks


class Script(NamedTuple):
    """What a process step does, but for time."""

    first: tuple[tuple[int, int, tuple[int, ...]], ...]
    """Of the first group: a tile (-1: none), the work that waits for it, after how much of it banks become free. -2:
    the biases, for which its first pixel waits.
    """
    freed: tuple[int, ...]
    """After how much work of the last group banks become free."""
    work: int
    """Of a group."""
    adder: int = 0
    """How much later than the first group ends its biases are needed, if they are not needed before."""


@dataclass(frozen=True)
class Timing:
    """What a stage takes, in one direction."""

    clock: DramClock
    ticks: tuple[int, ...]
    """Until each column of the result is done, for one group of filters: ``ticks[x]`` for the first x columns."""
    groups: int = 1
    """A step goes through its columns once for each."""
    share: int = 0
    """Bytes of the weights of one group."""
    anew: bool = False
    """Whether they come with every process step."""
    streams: tuple[int, ...] = ()
    """Of a sum: bytes that are streamed for every column; else empty."""
    following: First = First(0)  # noqa: RUF009
    """What is asked for ahead of the stages that follow."""
    asks: Literal["each", "first", "never"] = "each"
    """Which units ask for the weights of the next one: each, the first one of the stage, none."""
    biases: tuple[int, ...] = ()
    """Bytes of the biases that are asked for as the stage begins: its own, if none has asked for them, and those of the
    next stage that has weights.
    """
    columns: Columns | None = None
    """What `ticks` are made of, by cycle; if not given, first come, first served."""
    owed: int = 0
    """Ticks until its own biases are there, or those that pooling hands on, if they were asked for before."""
    late: bool = False
    """Whether loads wait for the end of the step before them (a coarser estimate)."""
    writes: Writes | None = None
    """What is written; nothing that takes time by default."""
    scripts: dict[Pass, dict[object, Script]] = field(default_factory=dict, repr=False, compare=False)
    """By pass, then by step: what process steps do, as far as it is known. All with the same `ticks` may share it."""

    def ready(self, ticks: int, wait: int, late: int = 0) -> int:
        """When what comes next may begin to work (`First.ready`)."""
        return self.following.ready(ticks, wait, late)


@dataclass(frozen=True)
class Timed:
    """A program with its bytes, ticks until it ends, and ticks then until the next stage's first weights are there.

    `late`: the same for its biases.
    """

    program: Program
    bytes: int
    ticks: int
    wait: int
    late: int = 0


class _Costs(Protocol):
    """Bytes, ticks, and ticks that are then waited."""

    @property
    def bytes(self) -> int: ...
    @property
    def ticks(self) -> int: ...
    @property
    def wait(self) -> int: ...


C = TypeVar("C", bound=_Costs)


def undominated(found: Iterable[C]) -> list[C]:
    """The undominated ones in bytes, ticks and the end of the wait; the first of those that are equal."""
    best: list[C] = []
    for one in sorted(found, key=lambda t: (t.bytes, t.ticks, t.wait)):
        if not any(o.ticks <= one.ticks and o.ticks + o.wait <= one.ticks + one.wait for o in best):
            best.append(one)
    return best

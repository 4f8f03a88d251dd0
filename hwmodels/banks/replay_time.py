"""Replay of a bank program in time: one processing element and one DRAM bus, event by event.

The element goes through units of work, one after the other: a unit is one group of filters over the columns of one
process step (a sum: one column). Before a unit it waits for the unit's weights (a sum: its streamed column), before a
column for the tiles that the column needs. DRAM requests are served in the order in which they are made. When a unit
begins, the weights of the next group (a sum: the next column) are asked for, then the loads that open the stage, then,
in the last group of a step, the weights of the step or stage that follows. Later loads are asked for when a bank
becomes free in the last group. A request that is made at t is on the bus from
``max(t + latency, end of the request before)``.

Writes take no time, or are requests like others. Then a unit, as it begins, first asks for what the unit before has
left to write, the first one of a stage for what leaves the chip though others read it; the last one of a step, ahead of
the weights of what follows, for columns that the step drops and a load brings again. A stage ends when all is written.

Source: `heterogeneous_mapping_and_banks` 4.1.2.1 (Eq. 4.1, 4.2), 4.2.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from instances.machine import Transfer


@dataclass(frozen=True)
class Column:
    """A column of the result: cycles, and the last load that brings what it needs.

    `waits`: by cycles all such loads, each with the cycles of the column ahead of what reads it first; `pixel`: cycles
    of its first pixel.
    """

    cycles: int
    needs: int | None
    waits: tuple[tuple[int, int], ...] = ()
    pixel: int = 0


@dataclass
class Unit:
    """One group of filters over one process step."""

    stage: str
    weights: int
    """Bytes that have to come for it."""
    more: bool = False
    """Whether another group of the step (a sum: another column) comes after it."""
    opening: list[int] = field(default_factory=list)
    """Loads that are asked for when it begins."""
    script: list[Column | int] = field(default_factory=list)
    """Columns, and loads (their numbers) that are asked for between them."""
    drops: int = 0
    again: int = 0
    left: int = 0
    """`drops`, `again`, `left`: bytes to write: as the unit begins, ahead of all else; ahead of the weights of what
    follows; of its own result.
    """
    bias: int = 0
    """Bytes of the biases of its stage."""
    asks: Literal["each", "first", "never"] = "each"
    """Which units of its stage ask for the weights of the next one: each, the first one of the stage, none."""
    alone: bool = False
    """Whether the first weights of its stage are asked for as the stage begins, not before."""
    average: int = 0
    """Cycles for the average of what the stage computed, once its last unit is done."""


@dataclass
class Spent:
    """Ticks of a stage: until it ends, and waiting among them for tiles, for weights, and at its end for writes."""

    ticks: int = 0
    waits_for_maps: int = 0
    waits_for_weights: int = 0
    waits_for_writes: int = 0


@dataclass(frozen=True)
class StageFigures:
    """What a stage moves, in bytes by what they are, and takes, in ticks."""

    load: int
    """Of the map that is read from banks."""
    weight: int
    streamed: int
    """Of the second operands of sums."""
    bias: int
    write: int
    """Also of columns that this stage drops, or loads again."""
    ticks: int
    """Until the stage ends, from the end of the one before."""
    waits_for_maps: int
    waits_for_weights: int
    waits_for_writes: int
    """`waits_for_maps`, `waits_for_weights`, `waits_for_writes`: what of it the processing elements wait."""

    @property
    def bytes(self) -> int:
        """All bytes."""
        return self.load + self.weight + self.streamed + self.bias + self.write

    @property
    def waits(self) -> int:
        """All ticks of waiting."""
        return self.waits_for_maps + self.waits_for_weights + self.waits_for_writes


def latency(dram: Transfer, size: int) -> int:
    """Ticks before a request of so many bytes is on the bus, if that is free."""
    ticks = dram.call_ticks
    if dram.row_bytes:
        ticks += dram.row_ticks * (size // dram.row_bytes)
    if dram.refresh_bytes:
        ticks += dram.refresh_ticks * -(-size // dram.refresh_bytes)
    return ticks


class _Bus:
    """DRAM, one request after the other."""

    def __init__(self, dram: Transfer) -> None:
        self.dram, self.end = dram, 0

    def ask(self, now: int, size: int) -> int:
        """Return when a request is served."""
        if not size:
            return now
        self.end = max(now + latency(self.dram, size), self.end) + self.dram.byte_ticks * size
        return self.end


def clocked(
    units: Sequence[Unit],
    loads: Sequence[int],
    dram: Transfer,
    cycle: int,
    fixed_cycles: int = 0,
    *,
    writing: bool = False,
) -> dict[str, Spent]:
    """Follow the units in time.

    Parameters
    ----------
    loads : sequence of int
        Bytes of every load.
    cycle : int
        Ticks of a cycle.
    fixed_cycles : int
        Of every stage beside its columns.
    writing : bool
        Whether writes take time.
    """
    bus, now, written, left = _Bus(dram), 0, 0, 0
    spent: dict[str, Spent] = {}
    there = bus.ask(0, units[0].weights) if units else 0
    arrived: dict[int, int] = {}
    for unit, after in zip(units, [*units[1:], None], strict=True):
        begin, mine, needed = now, spent.setdefault(unit.stage, Spent()), there
        if writing:
            written = max([written, *(bus.ask(now, size) for size in (left, unit.drops))])
            left = unit.left
        if after is not None and unit.more:
            there = bus.ask(now, after.weights)
        for load in unit.opening:
            arrived[load] = bus.ask(now, loads[load])
        if writing:
            written = max(written, bus.ask(now, unit.again))
        if after is not None and not unit.more:
            there = bus.ask(now, after.weights)
        if needed > now:
            mine.waits_for_weights += needed - now
            now = needed
        for item in unit.script:
            if isinstance(item, int):
                arrived[item] = bus.ask(now, loads[item])
                continue
            if item.needs is not None and arrived[item.needs] > now:
                mine.waits_for_maps += arrived[item.needs] - now
                now = arrived[item.needs]
            now += item.cycles * cycle
        if after is None or after.stage != unit.stage:
            written, left = max(written, bus.ask(now, left)), 0
            now += (fixed_cycles + unit.average) * cycle
            if written > now:
                mine.waits_for_writes += written - now
                now = written
        mine.ticks += now - begin
    return spent


#: What a bank holds: a letter, the map, its first column.
Held = tuple[str, str, int]


@dataclass
class Moved:
    """Bytes that went over the bus, and what was wrong with the program."""

    load: int = 0
    weight: int = 0
    streamed: int = 0
    bias: int = 0
    write: int = 0
    faults: list[str] = field(default_factory=list)
    stages: dict[str, tuple[int, int, int, int, int]] = field(default_factory=dict)
    """The same for every stage: load, weight, streamed, bias, write."""
    history: list[tuple[str, str, dict[int, Held]]] = field(default_factory=list)
    """After every action: the stage, the action, and what each bank holds as (letter, map, first column); L is being
    loaded, P processed, O made, I there.
    """
    units: list[Unit] = field(default_factory=list)
    loads: list[int] = field(default_factory=list)
    """`units`, `loads`: what `hwmodels.banks.replay_time.clocked` follows in time."""

    def figures(self, spent: Mapping[str, Spent]) -> dict[str, StageFigures]:
        """Return what every stage moves and takes, by its name, in the order that they run; `spent` may be empty."""
        return {name: StageFigures(*parts, **vars(spent.get(name, Spent()))) for name, parts in self.stages.items()}

    @property
    def parts(self) -> tuple[int, int, int, int, int]:
        """Bytes by what they are."""
        return self.load, self.weight, self.streamed, self.bias, self.write

    @property
    def total(self) -> int:
        """All bytes."""
        return self.load + self.weight + self.streamed + self.bias + self.write

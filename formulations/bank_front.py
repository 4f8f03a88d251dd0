"""F6 banks in time: the exact front of bytes and ticks over a whole network.

Sets
    states of `formulations.bank_network`, with the bytes of the first weights of the stage that comes next; labels of a
    state: bytes, ticks and the wait for those weights that a path to it has cost
Given
    for a stage in one direction, what it finds and leaves, and the wait for its first weights: all programs that no
    other beats in bytes, ticks and the next stage's wait (`formulations.bank_time`)
Variables
    those of `formulations.bank_network`, and one of these programs for every stage
Objectives
    min bytes, min ticks until the last stage ends
Constraints
    those of `formulations.bank_network` and `formulations.bank_time`
Optimal means
    A label that is nowhere greater stays so (all times are sums and maxima), so dominated ones are dropped; so are
    those that cannot end below the plans known, by the fewest bytes from a state on and the least ticks of the stages
    to come. What is left is the exact front.

Source: `heterogeneous_mapping_and_banks` 4.1.3 (two objectives), 4.2.3; the front is ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from formulations.bank_network import State, Visit, Walk
from formulations.bank_time import Timed, Timing, timed
from formulations.banks import Prices, Task
from hwmodels.bank_clock import Clock
from instances.feature_maps import Stages
from instances.machine import Banks

__all__ = ["Times"]


class Times:
    """What the stages of a network take, in every state that they may find."""

    def __init__(self, walk: Walk, clock: Clock) -> None:
        self.walk, self.clock = walk, clock
        self._ticks: dict[tuple[int, int], tuple[int, ...]] = {}
        self._timed: dict[object, list[Timed]] = {}

    def ticks(self, at: int, direction: int) -> tuple[int, ...]:
        """Ticks until each column of the result is done, for one group of filters."""
        key = at, direction
        if key not in self._ticks:
            stage, maps = self.walk.stages[at], self.walk.found.maps
            source, results = maps[stage.source].columns, range(maps[stage.target].columns)
            taps = [1] * len(results)
            if stage.kind not in ("patches", "sum"):
                firsts = [x * stage.stride - stage.before for x in results]
                taps = [sum(0 <= f + t * stage.dilation < source for t in range(stage.taps)) for f in firsts]
            if direction:
                taps.reverse()
            column = stage.tap_cycles * self.clock.cycle
            self._ticks[key] = tuple(accumulate((column * n for n in taps), initial=0))
        return self._ticks[key]

    def streams(self, state: State, at: int, source: str, direction: int) -> tuple[int, ...]:
        """Bytes that are streamed for each column of a sum, in the order of the pass."""
        walk, stage = self.walk, self.walk.stages[at]
        if stage.kind != "sum":
            return ()
        columns = walk.found.maps[source].columns
        found = [0] * columns
        for name in walk.sources(at):
            if name == source:
                continue
            resident = state.of(name)
            there = walk.columns(resident) if resident else 0
            outside = range(there, columns) if resident is None or not resident.end else range(columns - there)
            for column in outside:
                found[column] += walk.found.maps[name].column_bytes
        return tuple(reversed(found)) if direction else tuple(found)

    def first(self, state: State, at: int, source: str, direction: int) -> int:
        """Bytes of the first weights of a stage, or of its first streamed column."""
        stage = self.walk.stages[at]
        if stage.kind == "sum":
            return self.streams(state, at, source, direction)[0]
        return -(-stage.weight_bytes // stage.groups)

    def timing(self, state: State, at: int, source: str, direction: int, following: int) -> Timing:
        """What a stage takes."""
        stage = self.walk.stages[at]
        anew = bool(self.walk.prices(state, at, source).step)
        share = 0 if stage.kind == "sum" else -(-stage.weight_bytes // stage.groups)
        streams = self.streams(state, at, source, direction)
        return Timing(self.clock, self.ticks(at, direction), stage.groups, share, anew, streams, following)

    def programs(self, task: Task, prices: Prices, timing: Timing, wait: int) -> list[Timed]:
        """All programs that no other beats."""
        key = task, prices, id(timing.ticks), timing.share, timing.anew, timing.streams, timing.following, wait
        if key not in self._timed:
            self._timed[key] = timed(task, prices, timing, wait)
        return self._timed[key]

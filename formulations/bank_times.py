"""What the stages of a network take, in every state that they may find (`formulations.bank_time` for one stage)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from formulations.bank_labels import along
from formulations.bank_network import Visit, Walk
from formulations.bank_states import BankPlan, State
from formulations.bank_tasks import Prices
from formulations.bank_time import Programs
from formulations.bank_timing import Script, Timing, Writes
from hwmodels.bank_clock import Clock
from hwmodels.bank_columns import column_cycles
from hwmodels.bank_steps import Pass

__all__ = ["Times"]


class Times:
    """What the stages of a network take, in every state that they may find.

    Parameters
    ----------
    shifting : bool
        Whether programs for a wait that hides all latencies are found first, to bound those for other waits: it pays
        if they are needed anyway (`formulations.bank_bounds.ByNode`).
    lean : bool
        Whether only programs with the fewest bytes are asked for.
    """

    def __init__(self, walk: Walk, clock: Clock, *, shifting: bool = True, lean: bool = False) -> None:
        self.walk, self.clock, self.shifting, self.lean = walk, clock, shifting, lean
        self.writing = walk.banks.writes == "bus"
        self._ticks: dict[tuple[int, int], tuple[int, ...]] = {}
        self._same: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._programs: dict[object, Programs] = {}
        self._equal: dict[object, Programs] = {}
        self._scripts: dict[tuple[int, ...], dict[Pass, dict[object, Script]]] = {}
        self._starts: dict[State, dict[int, list[tuple[int, str, int]]]] = {}
        #: A wait that hides the latency of every request.
        self.hidden = max(map(clock.latency, self._requests()))

    def _requests(self) -> Iterator[int]:
        """Bytes of the largest requests that there can be."""
        maps, tile = self.walk.found.maps, self.walk.tile
        yield from (one.column_bytes * tile[name] for name, one in maps.items())
        for at, stage in enumerate(self.walk.stages):
            yield -(-stage.weight_bytes // stage.groups)
            yield sum(maps[name].column_bytes for name in self.walk.sources(at))
            if self.writing:
                yield stage.written * maps[stage.target].columns
        if self.writing:
            yield from (one.columns * self.walk.written[name] for name, one in maps.items())

    def ticks(self, at: int, direction: int) -> tuple[int, ...]:
        """Ticks until each column of the result is done, for one group of filters."""
        key = at, direction
        if key not in self._ticks:
            stage, maps = self.walk.stages[at], self.walk.found.maps
            source, results = maps[stage.source], self.walk.found.computed(stage)[0]
            cycles = column_cycles(stage, self.walk.banks, source, results, backwards=bool(direction))
            ticks = tuple(accumulate((self.clock.cycle * n for n in cycles), initial=0))
            self._ticks[key] = self._same.setdefault(ticks, ticks)
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

    def writes(self, visit: Visit, direction: int) -> Writes | None:
        """What a stage writes, if that takes time."""
        return visit.writes(direction) if self.writing else None

    def timing(
        self, state: State, at: int, source: str, direction: int, following: int, writes: Writes | None = None
    ) -> Timing:
        """What a stage takes."""
        stage = self.walk.stages[at]
        anew = self.walk.anew[at]
        share = 0 if stage.kind == "sum" else -(-stage.weight_bytes // stage.groups)
        streams = self.streams(state, at, source, direction)
        ticks = self.ticks(at, direction)
        scripts, clock = self._scripts.setdefault(ticks, {}), self.clock
        if stage.pooled is not None:
            clock = replace(clock, fixed=clock.fixed + stage.pooled.cycles * clock.cycle)
        return Timing(clock, ticks, stage.groups, share, anew, streams, following, writes=writes, scripts=scripts)

    def starts(self, state: State) -> dict[int, list[tuple[int, str, int]]]:
        """The stages that may come next, with operand and direction, by the bytes of their first weights.

        At the end none, and 0 bytes.
        """
        if state not in self._starts:
            self._starts[state] = self._started(state)
        return self._starts[state]

    def _started(self, state: State) -> dict[int, list[tuple[int, str, int]]]:
        found: dict[int, list[tuple[int, str, int]]] = {0: []} if state.done == self.walk.all else {}
        for at in self.walk.next(state):
            for source in self.walk.operands(state, at):
                for direction in self.walk.directions(state, at, source):
                    found.setdefault(self.first(state, at, source, direction), []).append((at, source, direction))
        return found

    def programs(self, visit: Visit, direction: int, *, following: int, wait: int) -> Programs:
        """The programs of a visit that no other beats, if the first weights come after `wait` ticks."""
        state, at, source = visit.state, visit.at, visit.source
        others = tuple(map(state.of, self.walk.sources(at))) if self.walk.stages[at].kind == "sum" else state.of(source)
        writes = self.writes(visit, direction)
        key = at, source, others, visit.prices, direction, following, wait, writes
        found = self._programs.get(key)
        if found is None:
            self._programs[key] = found = self._shared(visit, direction, following, wait, writes)
        return found

    def _shared(self, visit: Visit, direction: int, following: int, wait: int, writes: Writes | None) -> Programs:
        """Those of an equal visit: equal stages share their answers."""
        timing = self.timing(visit.state, visit.at, visit.source, direction, following, writes)
        one, resident = self.walk.passed(visit.at, visit.source, direction), visit.state.of(visit.source)
        return self._alike(one, resident.tiles if resident else 0, visit.prices, timing, wait)

    def _alike(self, one: Pass, on_chip: int, prices: Prices, timing: Timing, wait: int) -> Programs:
        key = one, on_chip, prices, timing, wait
        if key not in self._equal:
            hidden = cheaper = None
            if self.shifting and wait != self.hidden:
                hidden = self._alike(one, on_chip, prices, timing, self.hidden)
            if prices.reload and not self.lean:
                cheaper = self._alike(one, on_chip, prices._replace(reload=0), timing, wait)
            self._equal[key] = Programs(prices, timing, wait, hidden, cheaper, lean=self.lean)
        return self._equal[key]

    def of(self, plan: BankPlan) -> int:
        """Ticks of a plan."""
        state, total, wait = State(), 0, 0
        for step, after in zip(plan.steps, [*plan.steps[1:], None], strict=True):
            at = self.walk.stages.index(step.stage)
            if not state.done:
                wait = self.clock.served(0, 0, self.first(state, at, step.source, step.direction))
            following = 0
            if after is not None:
                onward = self.walk.stages.index(after.stage)
                following = self.first(step.after, onward, after.source, after.direction)
            writes = self.writes(Visit(self.walk, state, at, step.source), step.direction)
            timing = self.timing(state, at, step.source, step.direction, following, writes)
            one = along(step.task, self.walk.prices(state, at, step.source), timing, step.program, wait)
            state, total, wait = step.after, total + one.ticks, one.wait
        return total

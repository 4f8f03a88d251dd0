"""Banks over a network: the data of every stage's time, in every state in which it may begin.

An example: two stages may come next, and their first weights have 4 and 9 KiB. What the stage before asks for at its
end depends on which of them follows. So a stage has programs for each of the two, and `starts` lists both.

Sets
    s       states of `formulations.banks.network`: stages that are done, the last one, tiles that wait on chip
    visits  (s, a, x, d): stage a may come next in s and reads map x from the banks in direction d
    f       what was asked for ahead of a visit (`formulations.banks.timing.First`)
Given
    clock   bytes of a request -> ticks on the bus, latency (`hwmodels.banks.steps`); cycles of every column
            (`hwmodels.banks.steps`)
Derived (times in ticks, sizes in bytes)
    starts[s]   the visits of s, by the f that each of them needs; the end needs nothing
    timing      of a visit and the f' that follows it: a `formulations.banks.timing.Timing`
    hidden      a wait that hides the latency of every request: the longest latency of any request. By cycle, as loads
                are asked for one after the other, banks + 2 cycles more
    programs    of a visit, f' and the wait for its first weights: the undominated programs, searched once for all
                visits that are equal (`formulations.banks.search`)
    of(plan)    ``sum over stages of their ticks``, each stage beginning with the wait that the one before leaves
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Literal, NamedTuple

from formulations.banks.labels import along
from formulations.banks.network import BankPlan, State, Step, Visit, Walk
from formulations.banks.search import Programs
from formulations.banks.tasks import Prices, Program, Task
from formulations.banks.timing import First, Script, Timing, Writes
from hwmodels.banks.steps import Columns, DramClock, Pass, column_cycles
from instances.machine.sections import ADDER_CYCLES


class Node(NamedTuple):
    """A state, and what was asked for ahead of the stages that come next."""

    state: State
    following: First


class Times:
    """What the stages of a network take, in every state that they may find.

    `shifting`: whether programs for a wait that hides all latencies are found first, to bound those for other waits: it
    pays if they are needed anyway (`formulations.banks.bounds.ByNode`). `lean`: whether only programs with the fewest
    bytes are asked for.
    """

    def __init__(self, walk: Walk, clock: DramClock, *, shifting: bool = True, lean: bool = False) -> None:
        self.walk, self.clock, self.shifting, self.lean = walk, clock, shifting, lean
        self.writing = walk.banks.writes == "bus"
        self.by_cycle = walk.banks.by_cycle
        self._ticks: dict[tuple[int, int], tuple[tuple[int, ...], Columns | None]] = {}
        self._same: dict[object, tuple[tuple[int, ...], Columns | None]] = {}
        self._programs: dict[object, Programs] = {}
        self._equal: dict[object, Programs] = {}
        self._scripts: dict[object, dict[Pass, dict[object, Script]]] = {}
        self._starts: dict[State, dict[First, list[tuple[int, str, int]]]] = {}
        self._weighted = sum(1 << at for at, stage in enumerate(self.walk.stages) if not stage.weightless)
        #: A wait that hides the latency of every request; by cycle loads are asked for one after the other.
        self.hidden = max(map(clock.latency, self._requests()))
        if self.by_cycle:
            self.hidden += (walk.banks.count + 2) * clock.cycle

    def _requests(self) -> Iterator[int]:
        """Bytes of the largest requests that there can be."""
        maps, tile = self.walk.found.maps, self.walk.tile
        yield from (one.column_bytes * tile[name] for name, one in maps.items())
        for at, stage in enumerate(self.walk.stages):
            yield max(stage.share, stage.bias_bytes)
            yield sum(maps[name].column_bytes for name in self.walk.sources(at))
            if self.writing:
                yield stage.written * maps[stage.target].columns
        if self.writing:
            yield from (one.columns * self.walk.written[name] for name, one in maps.items())

    def ticks(self, at: int, direction: int) -> tuple[tuple[int, ...], Columns | None]:
        """Ticks until each column of the result is done, for one group; by cycle what they are made of."""
        key = at, direction
        if key not in self._ticks:
            stage, maps = self.walk.stages[at], self.walk.found.maps
            source, results = maps[stage.source], self.walk.found.computed(stage)[0]
            columns = column_cycles(stage, self.walk.banks, source, results, backwards=bool(direction))
            ticks = tuple(accumulate((self.clock.cycle * n for n in columns.cycles), initial=0))
            made = ticks, columns if self.by_cycle else None
            self._ticks[key] = self._same.setdefault(made, made)
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
            resident = state.of(name) if walk.banks.residuals == "chip" else None
            there = walk.columns(resident) if resident else 0
            outside = range(there, columns) if resident is None or not resident.end else range(columns - there)
            for column in outside:
                found[column] += walk.found.maps[name].column_bytes
        return tuple(reversed(found)) if direction else tuple(found)

    def alone(self, state: State, at: int, source: str) -> bool:
        """Whether, by cycle, no stage before can ask for a stage's first weights.

        None with weights has run, or the stage before makes what is streamed.
        """
        if not self.by_cycle:
            return False
        last = self.walk.stages[state.last].target if state.last >= 0 else source
        streamed = self.walk.stages[at].kind == "sum" and last != source and last in self.walk.sources(at)
        return streamed or not state.done & self._weighted

    def _share(self, state: State, at: int, source: str, direction: int) -> int:
        """Bytes of the first weights of a stage, or of its first streamed column."""
        stage = self.walk.stages[at]
        return self.streams(state, at, source, direction)[0] if stage.kind == "sum" else stage.share

    def first(self, state: State, at: int, source: str, direction: int) -> First:
        """What a stage with weights needs to be asked for before it begins."""
        if self.alone(state, at, source):
            return First(0, waits=False)
        share, columns = self._share(state, at, source, direction), self.ticks(at, direction)[1]
        if columns is None:
            return First(share)
        return First(share, self.walk.stages[at].bias_bytes, lead=(columns.pixel + ADDER_CYCLES - 1) * self.clock.cycle)

    def wait(self, state: State, at: int, source: str, direction: int, wait: int) -> int:
        """When a stage's first weights are there, if those that were asked for before it are after a wait."""
        if not self.alone(state, at, source) or self.walk.stages[at].weightless:
            return wait
        return max(wait, self.clock.served(0, wait, self._share(state, at, source, direction)))

    def base(self, visit: Visit, direction: int) -> tuple[int, int]:
        """A wait for which programs of a visit are bounds, and what of it is not theirs (`Programs.hidden`)."""
        stage = self.walk.stages[visit.at]
        if self.by_cycle and (stage.weightless or not self._share(visit.state, visit.at, visit.source, direction)):
            return 0, 0
        if self.alone(visit.state, visit.at, visit.source):
            return self.wait(visit.state, visit.at, visit.source, direction, 0), 0
        return self.hidden, self.hidden

    def timing(
        self, state: State, at: int, source: str, direction: int, following: First, writes: Writes | None = None
    ) -> Timing:
        """What a stage takes."""
        stage = self.walk.stages[at]
        anew = self.walk.anew[at]
        share = 0 if stage.kind == "sum" else stage.share
        streams = self.streams(state, at, source, direction)
        ticks, columns = made = self.ticks(at, direction)
        clock = self.clock
        if stage.pooled is not None:
            clock = replace(clock, fixed=clock.fixed + stage.pooled.cycles * clock.cycle)
        asks: Literal["each", "first", "never"] = "each"
        biases: tuple[int, ...] = ()
        if self.by_cycle:
            asks = stage.asks
            mine = 0 if state.done & self._weighted else stage.bias_bytes
            biases = () if stage.weightless else (mine, following.bias)
        return Timing(
            clock, ticks, stage.groups, share, anew, streams, following, asks, biases, columns, writes=writes,
            scripts=self._scripts.setdefault(made, {}),
        )  # fmt: skip

    def starts(self, state: State) -> dict[First, list[tuple[int, str, int]]]:
        """The stages that may come next, with operand and direction, by what they need to be asked for before.

        A stage that pools hands on what those behind it need. At the end nothing follows.
        """
        if state not in self._starts:
            self._starts[state] = self._started(state)
        return self._starts[state]

    def _started(self, state: State) -> dict[First, list[tuple[int, str, int]]]:
        found: dict[First, list[tuple[int, str, int]]] = (
            {First(0, waits=False): []} if state.done == self.walk.all else {}
        )
        for at in self.walk.next(state):
            for source in self.walk.operands(state, at):
                for direction in self.walk.directions(state, at, source):
                    if self.by_cycle and self.walk.stages[at].weightless:
                        firsts = self._handed(state, at, source, direction)
                    else:
                        firsts = {self.first(state, at, source, direction)}
                    for first in firsts:
                        found.setdefault(first, []).append((at, source, direction))
        return found

    def _handed(self, state: State, at: int, source: str, direction: int) -> set[First]:
        """What stages need that may come behind one that pools."""
        visit = Visit(self.walk, state, at, source)
        tasks = self.walk.programs(state, at, source, direction, visit.prices)
        after = {visit.after(direction, task) for task, _ in tasks}
        return {first._replace(waits=False) for onward in after for first in self.starts(onward)}

    def onward(self, visit: Visit, asked: First, after: State) -> list[First]:
        """What may be asked for ahead of the stages behind a visit; a stage that pools hands on what was asked for."""
        firsts = list(self.starts(after))
        if not self.by_cycle or not self.walk.stages[visit.at].weightless:
            return firsts
        return [first for first in firsts if first._replace(waits=False) == asked]

    def visits(self, node: Node) -> Iterator[tuple[Visit, int, list[tuple[Task, Program]]]]:
        """Those of `Walk.visits` that need what was asked for ahead of them."""
        visit = None
        for at, source, direction in self.starts(node.state).get(node.following, ()):
            if visit is None or (visit.at, visit.source) != (at, source):  # both directions are one visit
                visit = Visit(self.walk, node.state, at, source)
            yield visit, direction, self.walk.programs(node.state, at, source, direction, visit.prices)

    def programs(self, visit: Visit, direction: int, *, following: First, wait: int, late: int = 0) -> Programs:
        """The undominated programs of a visit, if the first weights come after `wait`, biases after `late`."""
        state, at, source = visit.state, visit.at, visit.source
        others = tuple(map(state.of, self.walk.sources(at))) if self.walk.stages[at].kind == "sum" else state.of(source)
        writes = visit.writes(direction) if self.writing else None
        key = at, source, others, visit.prices, direction, following, wait, late, writes
        found = self._programs.get(key)
        if found is None:
            timing = replace(self.timing(state, at, source, direction, following, writes), owed=late)
            one, resident = self.walk.passed(at, source, direction), state.of(source)
            found = self._alike(one, resident.tiles if resident else 0, visit.prices, timing, wait)
            self._programs[key] = found
        return found

    def _alike(self, one: Pass, on_chip: int, prices: Prices, timing: Timing, wait: int) -> Programs:
        """Those of an equal visit: equal stages share their answers."""
        key = one, on_chip, prices, timing, wait
        if key not in self._equal:
            hidden = cheaper = None
            if self.shifting and wait != self.hidden and timing.asks != "never":
                hidden = self._alike(one, on_chip, prices, timing, self.hidden)
            if prices.reload and not self.lean:
                cheaper = self._alike(one, on_chip, prices._replace(reload=0), timing, wait)
            self._equal[key] = Programs(prices, timing, wait, hidden, cheaper, lean=self.lean)
        return self._equal[key]

    def of(self, plan: BankPlan) -> int:
        """Ticks of a plan."""
        state, total, wait, late, steps = State(), 0, 0, 0, list[tuple[State, Step]]()
        for step in plan.steps:
            steps.append((state, step))
            state = step.after
        firsts = [First(0, waits=False)]
        for state, step in reversed(steps):
            at = self.walk.stages.index(step.stage)
            handed = firsts[-1] if self.by_cycle and step.stage.weightless else None
            firsts.append(handed or self.first(state, at, step.source, step.direction))
        if not self.by_cycle:
            wait = self.clock.served(0, 0, firsts[-1].weights)
        for (state, step), following in zip(steps, firsts[-2::-1], strict=True):
            at, direction = self.walk.stages.index(step.stage), step.direction
            writes = Visit(self.walk, state, at, step.source).writes(direction) if self.writing else None
            timing = replace(self.timing(state, at, step.source, direction, following, writes), owed=late)
            wait = self.wait(state, at, step.source, direction, wait)
            one = along(step.task, self.walk.prices(state, at, step.source), timing, step.program, wait)
            total, wait, late = total + one.ticks, one.wait, one.late
        return total

    def begun(self, first: First) -> int:
        """When what the network's first stage asks for is there: by cycle it asks itself."""
        return 0 if self.by_cycle else self.clock.served(0, 0, first.weights)

"""When everything happens in a plan of a network in a shared memory: lines for `certile show`, figures, and a table.

`Timetable` has the events of the plan's queue (`formulations.fusion.latency.events`): steps of the engine, loads and
stores of the DMA, in ticks. A plan of many events is drawn in as many columns as there is room for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from string import ascii_lowercase, ascii_uppercase, digits

import numpy as np
from numpy.typing import NDArray

from formulations.fusion.latency.events import Event
from solver.plan.figures import Arrow, Axis, Box, Boxes
from solver.plan.plan import Plan
from solver.show.common import us
from solver.show.tables import Column, Sheet
from solver.show.words import microseconds

#: Columns of the lines, letters of layers and groups (after the last one "+"), and heights of memory.
_WIDE, _LETTERS, _HEIGHTS = 100, ascii_uppercase + ascii_lowercase + digits, " ▁▂▃▄▅▆▇█"
_LANES = {"engine": "engine", "load": "loads", "store": "stores"}
#: Of a line what is ahead of its columns, at least.
_TITLE = 7
#: Boxes of a lane at the most (what follows at once, for the same layer or group, is one), and of memory.
_BOXES, _BARS = 400, 150
#: Arrows of a figure, and lines of arrows, at the most: those that hide the most time.
_ARROWS, _LINES = 24, 3


@dataclass(frozen=True)
class Ahead:
    """What is loaded for a layer, by itself or in a group, while earlier layers or groups run."""

    first: Event
    """The first such load."""
    step: Event
    """The first of the layer that reads some of it."""
    ticks: int
    """Of these loads, while earlier layers or groups run."""
    bytes: int


@dataclass(frozen=True)
class Timetable:
    """The events of a plan, and the names of its layers and groups in their order."""

    plan: Plan
    events: tuple[Event, ...]
    names: tuple[str, ...]

    @cached_property
    def latency(self) -> int:
        """Ticks until all has ended."""
        return max((one.end for one in self.events), default=0)

    @cached_property
    def memories(self) -> list[str]:
        """The memories whose transfers have a queue each; where one queue moves all, one without a name."""
        return sorted({one.memory for one in self.events if one.lane != "engine"}) or [""]

    @cached_property
    def lanes(self) -> dict[tuple[str, str], str]:
        """Titles by lane and memory: the engine, loads of every memory, stores of those that have any."""
        stored, made = {one.memory for one in self.events if one.lane == "store"}, {("engine", ""): _LANES["engine"]}
        for lane in ("load", "store"):
            for memory in (one for one in self.memories if lane == "load" or not one or one in stored):
                made[lane, memory] = f"{memory} {_LANES[lane]}".strip()
        return made

    @property
    def steps(self) -> Iterator[Event]:
        """Those of the engine."""
        return (one for one in self.events if one.lane == "engine")

    def ends(self, run: int) -> int:
        """When the last step of a layer or group ends."""
        return max((one.end for one in self.steps if one.run == run), default=0)

    def waits(self, run: int) -> int:
        """Ticks that the steps of a layer or group wait for transfers."""
        return sum(one.waits for one in self.steps if one.run == run)

    @cached_property
    def ahead(self) -> list[Ahead]:
        """What layers have loaded while earlier layers or groups run, what hides the most time first."""
        steps, found = list(self.steps), defaultdict[tuple[int, str], list[tuple[Event, int]]](list)
        run_ends = dict[int, int]()  # by layer or group, when the one before it has ended
        for before, one in pairwise(steps):
            if before.run != one.run:
                run_ends[one.run] = before.end
        for one in self.events:
            if one.lane == "load" and one.begin < (until := run_ends.get(one.run, 0)):
                found[one.run, steps[one.step - 1].what].append((one, min(one.end, until) - one.begin))
        made = list[Ahead]()
        for loads in found.values():
            first, step = min((one for one, _ in loads), key=lambda one: one.begin), min(one.step for one, _ in loads)
            made.append(Ahead(first, steps[step - 1], sum(t for _, t in loads), sum(one.bytes for one, _ in loads)))
        return sorted(made, key=lambda one: (-one.ticks, one.step.step))

    # ---- lines -------------------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        """Engine, loads, stores and memory over time, a letter for each layer or group."""
        if not self.latency:
            return
        edges = np.linspace(0, self.latency, _WIDE + 1)
        wide = max(_TITLE, *map(len, self.lanes.values()))
        for (lane, memory), title in self.lanes.items():
            mine = [one for one in self.events if (one.lane, one.memory) == (lane, memory)]
            yield f"{title:{wide}} {''.join(self._letters(mine, edges, 2 if lane == 'engine' else 8))}"
        yield from (f"{'ahead' if not k else '':{wide}} {line}" for k, line in enumerate(self._ahead_lines()))
        yield f"{'memory':{wide}} {''.join(self._heights(edges))}"
        marks = [microseconds(self.plan, self.latency * k // 4) for k in range(5)]
        yield f"{'us':{wide}} " + "".join(f"{mark:<{_WIDE // 4}}" for mark in marks).rstrip()
        named = ", ".join(f"{letter(k)} {name}" for k, name in enumerate(self.names[: len(_LETTERS)]))
        arrows = "; ahead: from a load to the layer that reads it, what hides the most time" if self.ahead else ""
        yield f"{named}; a point: (hardly) nothing runs; memory: eighths of it{arrows}"

    def _ahead_lines(self) -> list[str]:
        """Arrows from loads to the steps that read them, where a column is free on both sides."""
        lines = list[list[str]]()
        for one in self.ahead:
            begin, end = (min(_WIDE - 1, at * _WIDE // self.latency) for at in (one.first.begin, one.step.begin))
            if end < begin + 2:
                continue
            near = slice(max(0, begin - 1), end + 2)
            line = next((line for line in lines if not "".join(line[near]).strip()), None)
            if line is None and len(lines) < _LINES:
                lines.append(line := [" "] * _WIDE)
            if line is not None:
                line[begin : end + 1] = [letter(one.step.run), *"─" * (end - begin - 1), "▶"]
        return ["".join(line).rstrip() for line in lines]

    def _letters(self, events: Sequence[Event], edges: NDArray[np.float64], part: int) -> Iterator[str]:
        """By column the layer or group that has the most of it, a point if all have less than such a part of it."""
        shares = np.zeros((len(self.names), _WIDE))
        for one in events:
            shares[one.run] += np.clip(np.minimum(edges[1:], one.end) - np.maximum(edges[:-1], one.begin), 0, None)
        for column, whole in zip(shares.T, np.diff(edges), strict=True):
            yield letter(int(column.argmax())) if part * column.sum() >= whole else "."

    def _heights(self, edges: NDArray[np.float64]) -> Iterator[str]:
        steps, size = list(self.steps), self.plan.machine_data.memories["ocm"]
        ends, bytes_ = np.array([one.end for one in steps]), np.array([one.bytes for one in steps])
        first, last = np.searchsorted(ends, edges[:-1]), np.searchsorted(ends, edges[1:])
        for low, high in zip(first, last, strict=True):
            most = int(bytes_[low : high + 1].max(initial=0))
            yield _HEIGHTS[min(len(_HEIGHTS) - 1, -(-most * (len(_HEIGHTS) - 1) // size))]

    # ---- figures and tables ------------------------------------------------------------------------------------------

    def figures(self) -> Iterator[Boxes]:
        """Engine and DMA over time, and the memory beneath."""
        if not self.latency:
            return
        lanes = tuple((len(self.lanes) - k - 0.5, title) for k, title in enumerate(self.lanes.values()))
        time = Axis("time (us)", limits=(0, us(self.plan, self.latency)))
        yield Boxes(
            "timeline", "Engine and DMA over time",
            "What runs when, a colour for each layer or group: a load in the colour of a later one is prefetched, from "
            "where arrows begin. Blank on the engine's lane: it waits.",
            time, Axis("", ticks=lanes, limits=(0, len(lanes))), self.names, tuple(self._boxes()),
            tall=2 * len(lanes), keyed=False, arrows=tuple(self._arrows()), pointed=self._pointed,
        )  # fmt: skip
        size = self.plan.machine_data.memories["ocm"]
        yield Boxes(
            "memory-time", "Memory over time",
            "Bytes on chip by step: what it reads and makes, maps and weights that stay, what is prefetched and what "
            "is yet to be stored. The line is the end of the memory.",
            time, Axis("bytes on chip", limits=(0, size * 1.05)), self.names, tuple(self._used()), limit=size,
            keyed=False,
        )  # fmt: skip

    @property
    def _pointed(self) -> str:
        what, count = "from the first load that is prefetched for a layer to its step", len(self.ahead)
        return what if count <= _ARROWS else f"{what} ({_ARROWS} of {count}: the most time)"

    def _arrows(self) -> Iterator[Arrow]:
        """From the middle of a load on its lane to the begin of the step on that of the engine."""
        for one in self.ahead[:_ARROWS]:
            load, step = one.first, one.step
            begin, end = us(self.plan, load.begin + load.end) / 2, us(self.plan, step.begin)
            top, at = len(self.lanes), [*self.lanes].index((load.lane, load.memory))
            yield Arrow(
                begin, top - at - 0.4, end, top - 0.8, f"{load.what} for step {step.step}, {step.what}",
                f"{one.bytes:,} bytes, {us(self.plan, one.ticks):,.3f} us of loading hidden, "
                f"from {us(self.plan, step.begin - load.begin):,.3f} us before it on",
            )  # fmt: skip

    def _used(self) -> Iterator[Box]:
        """The most that lies on chip in steps of a layer or group that follow each other, long enough to be seen."""
        for run, mine in groupby(self.steps, key=lambda one: one.run):
            each = list(mine)
            while each:
                count = next(
                    (n for n, one in enumerate(each, 1) if one.end - each[0].begin >= self.latency // _BARS), len(each)
                )
                some, each = each[:count], each[count:]
                most, end = max(one.bytes for one in some), us(self.plan, some[-1].end)
                yield Box(us(self.plan, some[0].begin), end, 0, most, some[0].what, run, f"{most:,} bytes")

    def _boxes(self) -> Iterator[Box]:
        for k, lane in enumerate(self.lanes):
            mine = sorted((one for one in self.events if (one.lane, one.memory) == lane), key=lambda one: one.begin)
            gap = self.latency // _BOXES
            for run, some in groupby(mine, key=lambda one: one.run):
                begin = end = -1
                for one in some:
                    if begin >= 0 and one.begin - end > gap:
                        yield self._box(k, run, begin, end)
                        begin = -1
                    begin, end = one.begin if begin < 0 else begin, one.end
                yield self._box(k, run, begin, end)

    def _box(self, lane: int, run: int, begin: int, end: int) -> Box:
        top = len(self.lanes) - lane
        return Box(us(self.plan, begin), us(self.plan, end), top - 0.9, top - 0.1, self.names[run], run)

    def sheet(self) -> Sheet:
        """A row an event, in the order of time."""
        rows = sorted(self.events, key=lambda one: (one.begin, one.end))
        return Sheet([
            Column("begin (us)", [self._exactly(one.begin) for one in rows]),
            Column("end (us)", [self._exactly(one.end) for one in rows]),
            Column("lane", [one.lane for one in rows], words=True),
            *([Column("memory", [one.memory for one in rows], "off the chip, with a queue of its own", words=True)]
              if any(self.memories) else []),
            Column("what", [one.what for one in rows], "the layer of a step, or what is moved", words=True),
            Column("bytes", [f"{one.bytes:,}" for one in rows], "on chip in a step, or that are moved"),
            Column("step", [str(one.step) for one in rows],
                   "its number; of a load the step that reads it, of a store the step that makes it"),
            Column("beside", [str(one.when) if one.when else "" for one in rows],
                   "of a load the first step that it may lie beside; of a store the step that waits for it"),
            Column("waits (us)", [self._exactly(one.waits) if one.waits else "" for one in rows],
                   "time that a step waits for transfers"),
            Column("for", [one.waits_for for one in rows], "the last one that it waits for", words=True),
            Column("group", [self.names[one.run] for one in rows], "the layer or group that it is part of", words=True),
        ])  # fmt: skip

    def _exactly(self, ticks: int) -> str:
        """Microseconds, to the nanosecond."""
        return f"{us(self.plan, ticks):,.3f}"


def letter(run: int) -> str:
    """The letter of a layer or group."""
    return _LETTERS[run] if run < len(_LETTERS) else "+"

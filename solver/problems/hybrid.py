"""Problem hybrid, as the rest of `solver` sees it: its front, and how its plans are shown.

A row (`GroupRow`) says of a group what is decided, what the network says, and what was counted. Drawn are groups over
the network, and times and bytes by group.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from formulations.banks.network import NEVER, Point, lowest
from formulations.banks.readings import clock_of, readings
from formulations.clock import Clock, TimeUp
from formulations.hybrid.problem import HybridFormulation, HybridPart
from hwmodels.banks.replay.time import StageFigures
from hwmodels.hybrid.schedule import HybridRun, PieceRun
from instances.network.feature_maps import FeatureMap, Stage
from instances.network.pieces import Group, Piece
from solver.ask.question import Question
from solver.plan.figures import Figure
from solver.plan.front import Front
from solver.plan.plan import Plan
from solver.problems.banks import actions, fitting
from solver.problems.problem import Problem
from solver.search.loop import Answer, quickest, status_of
from solver.show.common import by_row, graph, stacked, us
from solver.show.tables import Column, Sheet, name_column, percent
from solver.show.words import agreement, bytes_moved, microseconds


@dataclass(frozen=True)
class ProgramRow:
    """A bank program, how many pieces run it, and what it does in one of them."""

    run: PieceRun
    last: FeatureMap
    """The piece's part of the last map."""
    seen: dict[str, StageFigures]

    @property
    def bytes(self) -> int:
        """Of one piece."""
        return sum(one.bytes for one in self.seen.values())

    @property
    def ticks(self) -> int:
        """Of one piece."""
        return sum(one.ticks for one in self.seen.values())


@dataclass(frozen=True)
class GroupRow:
    """Stages that run together, one after the other in each piece."""

    stages: tuple[Stage, ...]
    columns: int
    rows: int
    """`columns`, `rows`: of a piece of the last map, at most; all of the map if the group runs whole."""
    programs: tuple[ProgramRow, ...]
    cycles: int
    once: int
    """`cycles`, `once`: of computing all pieces, and of computing each number once."""
    least: int
    """Ticks of computing each number once, and of what every stage takes beside it."""

    @property
    def name(self) -> str:
        """Its first and last stage."""
        names = [stage.name for stage in self.stages]
        return names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"

    @property
    def pieces(self) -> int:
        """How many there are."""
        return sum(one.run.count for one in self.programs)

    @property
    def bytes(self) -> int:
        """Of all pieces."""
        return sum(one.run.count * one.bytes for one in self.programs)

    @property
    def ticks(self) -> int:
        """Of all pieces."""
        return sum(one.run.count * one.ticks for one in self.programs)

    @property
    def delay(self) -> int:
        """Ticks beyond those of computing each number once."""
        return max(0, self.ticks - self.least)


def rows_of(plan: Plan) -> list[GroupRow]:
    """Return the groups of a plan in the order that they run (`fitting`)."""
    return fitting(_rows, plan)


def _rows(plan: Plan) -> Iterator[GroupRow]:
    machine, first = plan.machine_data, plan.schedule.first_layer
    found, clock = readings(plan.network_data, machine, first)[first], clock_of(machine)
    begin = 0
    for run, seen in zip(plan.schedule.groups, plan.part.figures, strict=True):
        group = Group(found, begin, begin + run.length)
        begin += run.length
        pieces = group.pieces(run.columns, run.rows) or {}
        programs = [
            ProgramRow(one, _last(piece), {stage.stage: figures[stage.stage] for stage in one.stages})
            for piece, kind, mine in zip(pieces, run.pieces, seen, strict=True)
            for one, figures in zip(kind, mine, strict=True)
        ]
        cycles = sum(many * _cycles(piece.found.stages) for piece, many in pieces.items())
        once = _cycles(group.stages)
        least = once * clock.cycle + clock.fixed * run.length
        yield GroupRow(group.stages, run.columns, run.rows, tuple(programs), cycles, once, least)


def _last(piece: Piece) -> FeatureMap:
    return piece.found.maps[piece.found.stages[-1].target]


def _cycles(stages: Sequence[Stage]) -> int:
    return sum(stage.cycles for stage in stages)


class HybridProblem(Problem):
    """Which layers run together, piece by piece, with a bank program for every piece."""

    front_engines = False

    def __init__(self) -> None:
        super().__init__(HybridFormulation())
        self.others = {"dynamic": ("milp", "cp-sat", "dynamic"), "": ("dynamic",)}

    # ---- the front ---------------------------------------------------------------------------------------------------

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of bytes and time; if the time is up, per-layer plans and what was come by.

        The front says whether it is proven. Its plans are FEASIBLE, unless they move and take what no plan can do
        without: each is the best only of those that are no slower.
        """
        limit, proven = Clock.of(question.time_limit_s), True
        part = cast(HybridPart, self.parts(question)[0])
        found = dict[HybridRun, dict[str, int]]()
        for reading in part.readings.values():
            try:
                chains, complete = reading.front(Point(NEVER, NEVER), limit)
                runs, proven = [reading.program(chain) for chain in chains], proven and complete
            except TimeUp:
                known = quickest(self.formulation, part, "bytes", self.formulation.quick), reading.so_far()
                runs, proven = [run for run in known if run is not None], False
            found |= {run: dict(part.price(run).measures) for run in runs}
        points = lowest(Point(one["bytes"], one["time"]) for one in found.values())
        kept = {Point(one["bytes"], one["time"]): run for run, one in found.items()}
        question = replace(question, objectives=("bytes", "time"), engine="dynamic")
        bounds: dict[str, int | None] = {"bytes": part.least.bytes, "time": part.least.ticks}
        said = [
            Answer(run, found[run], bounds, status_of(found[run], bounds, empty=False))
            for run in map(kept.__getitem__, points)
        ]
        start = time.monotonic()
        return self.front_of(question, [self.made(question, [(part, one)], start) for one in said], proven)

    # ---- for people --------------------------------------------------------------------------------------------------

    def items(self, plan: Plan) -> list[tuple[str, object]]:
        """The groups."""
        shown = ("columns", "rows", "pieces", "bytes", "ticks", "cycles", "once")
        return [(row.name, {name: getattr(row, name) for name in shown}) for row in rows_of(plan)]

    def names(self, plan: Plan) -> list[str]:
        """The groups, by their first stages."""
        return [row.stages[0].name for row in rows_of(plan)]

    def said(self, plan: Plan) -> Iterator[str]:
        """What is left to win, and replay."""
        rows, took = rows_of(plan), microseconds(plan, plan.part.measures["time"])
        yield bytes_moved(plan)
        delay = microseconds(plan, sum(row.delay for row in rows))
        yield f"{took} us, {delay} us of them beyond computing all once"
        fused = sum(row.pieces > 1 for row in rows)
        yield f"{fused} of {len(rows)} groups in pieces" if fused else "nothing is fused: per-layer"
        yield agreement(plan)

    def sheet(self, plan: Plan) -> Sheet:
        """The table of groups."""
        rows, total = rows_of(plan), plan.measures
        moved = Column("bytes", [f"{row.bytes:,}" for row in rows], "to and from DRAM",
                       f"{total['bytes']:,}" if total else "")  # fmt: skip
        time = Column("time (us)", [microseconds(plan, row.ticks) for row in rows], "of all pieces",
                      microseconds(plan, total["time"]) if total else "")  # fmt: skip
        return Sheet(
            [
                name_column("group", [row.name for row in rows]),
                Column("stages", [str(len(row.stages)) for row in rows], "that run together"),
                Column("pieces", [str(row.pieces) for row in rows], "of the last map, one after the other"),
                Column("size", [f"{row.columns} x {row.rows}" for row in rows], "columns and rows of a piece"),
                *((moved, time) if plan.objectives[0] == "bytes" else (time, moved)),
                Column("delay (us)", [microseconds(plan, row.delay) for row in rows],
                       "time beyond computing every number once",
                       microseconds(plan, sum(row.delay for row in rows)), spare=1),
                Column("again (%)", [percent(row.cycles / row.once - 1) if row.once else "0" for row in rows],
                       "work that is done again", spare=2),
            ]
        )  # fmt: skip

    def drawings(self, plan: Plan, plans: Mapping[str, Plan]) -> list[Figure]:
        """Groups over the network, times and bytes."""
        every = {engine: rows_of(one) for engine, one in plans.items()}
        rows = every[plan.engine]
        if not rows:
            return []
        groups = {row.name: tuple(stage.name for stage in row.stages) for row in rows}
        notes = {row.name: f"{row.pieces} pieces of {row.columns} x {row.rows}, {row.bytes:,} bytes" for row in rows}
        caption = (
            "Operators of a frame run together, piece by piece if there is more than one piece. Operators of no colour "
            "move nothing of their own."
        )
        times = by_row(every, lambda row: {
            "computes once": us(plan, row.ticks - row.delay), "waits, and computes again": us(plan, row.delay),
        })  # fmt: skip
        caption_of_times = "Computing every number once, and the time beyond that."
        moved = by_row(every, lambda row: {"bytes": row.bytes})
        return [
            graph("groups", "Groups over the network", caption, plan.network_data, groups, notes),
            stacked("time-by-group", "Time by group", caption_of_times, "time (us)", times),
            stacked("bytes-by-group", "Bytes by group", "To and from DRAM.", "bytes", moved),
        ]

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """The programs of a group, or all."""
        for row in rows_of(plan):
            if layer is None or any(stage.name == layer for stage in row.stages):
                yield from _group_lines(plan, row)


def _group_lines(plan: Plan, row: GroupRow) -> Iterator[str]:
    """A group with the programs of its pieces."""
    yield f"{row.name}: {row.pieces} pieces of {row.columns} x {row.rows}, {row.bytes:,} bytes"
    for number, stage in enumerate(row.stages):
        yield f"  s{number} {stage.name}"
    for program in row.programs:
        last, time = program.last, microseconds(plan, program.ticks)
        yield f"  {program.run.count} of {last.columns} x {last.rows}: {program.bytes:,} bytes, {time} us each"
        for run in program.run.stages:
            stays = f", {len(run.results)} of the result stay" if run.results else ""
            there, moved = sum(not tile.loaded for tile in run.tiles), program.seen[run.stage].bytes
            yield f"    {run.stage}: {there} tiles there: {actions(run)}{stays}, {moved:,} bytes"
    yield ""


PROBLEM = HybridProblem

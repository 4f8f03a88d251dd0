"""Problem hybrid, as the rest of `solver` sees it: what its plans say, and how they are shown."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from formulations.banks.bounds import Point, lowest
from formulations.banks.graph import NEVER
from formulations.clock import Clock, TimeUp
from formulations.hybrid.part import HybridPart, HybridReplayed, Reading
from formulations.hybrid.problem import HybridFormulation
from formulations.hybrid.space import Cut
from hwmodels.hybrid.replay import PieceReplay
from hwmodels.hybrid.schedule import GroupRun, HybridRun, PieceRun
from instances.errors import InputError
from instances.pieces import Piece
from solver.banks.plan import FUSED
from solver.banks.problem import stage_rows
from solver.front import Front
from solver.hybrid.figures import figures
from solver.hybrid.plan import (
    GroupPlan,
    HybridMeasures,
    HybridOptions,
    HybridPlan,
    HybridReplay,
    KindPlan,
    ProgramPlan,
)
from solver.network_show import known_parts, microseconds
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.plan import Objective
from solver.problem import front_of_plans
from solver.question import Question
from solver.search import Answer, quickest
from solver.tables import Column, Sheet, name_column, percent, ratio
from solver.verdict import Verdict
from solver.whole import WholeProblem


class HybridProblem(WholeProblem[HybridPlan]):
    """F7: which layers run together, piece by piece, with a bank program for every piece."""

    plan = HybridPlan

    front_engines = False

    def __init__(self) -> None:
        super().__init__(HybridFormulation())
        self.others = {"dynamic": ("milp", "cp-sat", "dynamic"), "": ("dynamic",)}

    # ---- plans -------------------------------------------------------------------------------------------------------

    def options(self, question: Question) -> HybridOptions:
        """Return what else was asked."""
        return HybridOptions(time_limit_s=question.time_limit_s, settings=question.settings, pins=question.pins)

    def question(self, plan: HybridPlan) -> Question:
        """What a stored plan was asked."""
        return Question(plan.network_data, plan.machine_data, plan.objectives, self.name, pins=plan.options.pins)

    def body(self, verdict: Verdict, question: Question) -> dict[str, Any]:
        """Return figures and groups."""
        part, walked, run = cast(HybridPart, verdict.part), verdict.walked, verdict.said.schedule
        fields = {"compulsory_bytes": part.least.bytes}
        if run is None or not isinstance(walked, HybridReplayed):
            return {
                **fields, "objective": None, "first_layer": None, "measures": None, "delay_ticks": None, "layers": (),
                "replay": HybridReplay(ok=None, faults=()),
            }  # fmt: skip
        groups = tuple(_groups(part, run, walked))
        first, measures = question.objectives[0], HybridMeasures(**walked.measures)
        terms = {group.layer: getattr(group.measures, first) for group in groups}
        return {
            **fields, "first_layer": run.first_layer, "measures": measures, "layers": groups,
            "objective": Objective(value=walked.measures[first], unit=self.measures[first], terms=terms),
            "delay_ticks": sum(group.delay_ticks for group in groups), "replay": HybridReplay(ok=True, faults=()),
        }  # fmt: skip

    def decided(self, plan: HybridPlan, part: Any) -> HybridRun | None:
        """Return the schedule that a plan states."""
        if not plan.layers or plan.first_layer is None:
            return None
        reading = cast(HybridPart, part).reading(HybridRun(plan.first_layer, ()))
        begin, groups = 0, []
        for row in plan.layers:
            cut = Cut(begin, begin + len(row.stages), whole=row.pieces == 1)
            groups.append(_run(reading, cut, row))
            begin = cut.end
        return HybridRun(plan.first_layer, tuple(groups))

    # ---- the front ---------------------------------------------------------------------------------------------------

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of bytes and time; if the time is up, per-layer plans and what was come by.

        The front says whether it is proven, its plans are FEASIBLE: each is the best only of those that are no slower.
        """
        start, limit, proven = time.monotonic(), Clock.of(question.time_limit_s), True
        (part,) = self.parts(question)
        assert isinstance(part, HybridPart)
        found = dict[HybridRun, dict[str, int]]()
        for reading in part.readings.values():
            try:
                chains, complete = reading.front(Point(NEVER, NEVER), limit)
                runs, proven = [reading.program(chain) for chain in chains], proven and complete
            except TimeUp:
                known = quickest(self.formulation, part, "bytes", self.quick), reading.so_far()
                runs, proven = [run for run in known if run is not None], False
            found |= {run: dict(part.price(run).measures) for run in runs}
        points = lowest(Point(one["bytes"], one["time"]) for one in found.values())
        kept = {Point(one["bytes"], one["time"]): run for run, one in found.items()}
        plans, question = [], replace(question, objectives=("bytes", "time"), engine="dynamic")
        for run in map(kept.__getitem__, points):
            said = Answer(run, found[run], {"bytes": part.least.bytes, "time": part.least.ticks}, "FEASIBLE")
            plans.append(self.made(question, part, said, start))
        return front_of_plans(self, question, plans, proven=proven, details=lambda _: {})

    # ---- for people --------------------------------------------------------------------------------------------------

    def status(self, plan: HybridPlan) -> list[str]:
        """What is known: status, value, bound, gap, what is left to win, and replay."""
        parts = known_parts(plan)
        if plan.measures is None or plan.delay_ticks is None:
            return parts
        times = ratio(plan.measures.bytes, plan.compulsory_bytes)
        parts.append(f"{plan.measures.bytes:,} bytes move, {times} times what must ({plan.compulsory_bytes:,})")
        delay = microseconds(plan, plan.delay_ticks)
        parts.append(f"{microseconds(plan, plan.measures.time)} us, {delay} us of them beyond computing all once")
        fused = [group for group in plan.layers if group.pieces > 1]
        parts.append(f"{len(fused)} of {len(plan.layers)} groups in pieces" if fused else "nothing is fused: per-layer")
        parts.append("replay agrees" if plan.replay.ok else "replay does not agree")
        return parts

    def sheet(self, plan: HybridPlan) -> Sheet:
        """The table of groups."""
        rows, total = plan.layers, plan.measures
        moved = Column("bytes", [f"{row.measures.bytes:,}" for row in rows], "to and from DRAM",
                       f"{total.bytes:,}" if total else "")  # fmt: skip
        time = Column("time (us)", [microseconds(plan, row.measures.time) for row in rows], "of all pieces",
                      microseconds(plan, total.time) if total else "")  # fmt: skip
        return Sheet(
            [
                name_column("group", [_name(row) for row in rows]),
                Column("stages", [str(len(row.stages)) for row in rows], "that run together"),
                Column("pieces", [str(row.pieces) for row in rows], "of the last map, one after the other"),
                Column("size", [f"{row.columns} x {row.rows}" for row in rows], "columns and rows of a piece"),
                *((moved, time) if plan.objectives[0] == "bytes" else (time, moved)),
                Column("delay (us)", [microseconds(plan, row.delay_ticks) for row in rows],
                       "time beyond computing every number once", microseconds(plan, plan.delay_ticks or 0), spare=1),
                Column("again (%)", [percent(row.cycles / row.once - 1) if row.once else "0" for row in rows],
                       "work that is done again", spare=2),
            ]
        )  # fmt: skip

    def pictures(self, plan: HybridPlan, others: Mapping[str, HybridPlan]) -> Pictures:
        """Groups over the network, times and bytes."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

    def details(self, plan: HybridPlan, layer: str | None) -> Iterable[str]:
        """The programs of a group, or all."""
        for row in plan.layers:
            if layer is None or layer in row.stages:
                yield from _group_lines(plan, row)


def _groups(part: HybridPart, run: HybridRun, walked: HybridReplayed) -> Iterator[GroupPlan]:
    """The rows of a plan."""
    cycle = part.costs.clock.cycle
    for (cut, option, group), kinds in zip(part.options(run), walked.seen.groups, strict=True):
        stages, pieces = option.group.stages, [one for kind in kinds for one in kind]
        once = sum(stage.cycles for stage in stages)
        ticks = sum(one.ticks for one in pieces)
        fixed = part.costs.clock.fixed * (cut.end - cut.begin)
        yield GroupPlan(
            layer=stages[0].name, stages=tuple(stage.name for stage in stages), columns=group.columns, rows=group.rows,
            pieces=sum(option.pieces.values()), once=once,
            cycles=option.cycles,
            measures=HybridMeasures(bytes=sum(one.bytes for one in pieces), time=ticks),
            delay_ticks=max(0, ticks - once * cycle - fixed),
            kinds=tuple(
                _kind(part, piece, kind, runs)
                for piece, kind, runs in zip(option.pieces, kinds, group.pieces, strict=True)
            ),
        )  # fmt: skip


def _kind(part: HybridPart, piece: Piece, kind: list[PieceReplay], runs: tuple[PieceRun, ...]) -> KindPlan:
    last = piece.found.maps[piece.found.stages[-1].target]
    programs = tuple(
        ProgramPlan(
            count=one.pieces, measures=HybridMeasures(bytes=one.moved.total, time=one.ticks // one.pieces),
            stages=tuple(
                row for row in stage_rows(part.costs.banks, run.stages, one.moved, one.spent) if row.kind != FUSED
            ),
        )
        for one, run in zip(kind, runs, strict=True)
    )  # fmt: skip
    return KindPlan(columns=last.columns, rows=last.rows, programs=programs)


def _run(reading: Reading, cut: Cut, row: GroupPlan) -> GroupRun:
    """The schedule of a row; raises InputError for one that is no group."""
    names = tuple(stage.name for stage in reading.found.stages[cut.begin : cut.end])
    if names != row.stages or row.layer not in names[:1]:
        raise InputError(f"layers: group {row.layer} has stages {', '.join(row.stages)}, expected {', '.join(names)}")
    group = reading.group(cut)
    pieces = list(group.pieces(row.columns, row.rows) or ())
    if len(pieces) != len(row.kinds):
        raise InputError(f"layers: group {row.layer} has {len(row.kinds)} kinds of pieces, expected {len(pieces)}")
    kinds = []
    for piece, kind in zip(pieces, row.kinds, strict=True):
        stages = {stage.name: stage for stage in piece.found.stages}
        if any(one.layer not in stages for program in kind.programs for one in program.stages):
            raise InputError(f"layers: group {row.layer}: its pieces have stages {', '.join(stages)}")
        kinds.append(
            tuple(
                PieceRun(program.count, tuple(one.to_run(stages[one.layer]) for one in program.stages))
                for program in kind.programs
            )
        )
    return GroupRun(len(names), row.columns, row.rows, tuple(kinds))


def _name(row: GroupPlan) -> str:
    return row.layer if len(row.stages) == 1 else f"{row.layer} .. {row.stages[-1]}"


def _group_lines(plan: HybridPlan, row: GroupPlan) -> Iterator[str]:
    """A group with the programs of its pieces."""
    yield f"{_name(row)}: {row.pieces} pieces of {row.columns} x {row.rows}, {row.measures.bytes:,} bytes"
    for number, stage in enumerate(row.stages):
        yield f"  s{number} {stage}"
    for kind in row.kinds:
        for program in kind.programs:
            time = microseconds(plan, program.measures.time)
            yield f"  {program.count} of {kind.columns} x {kind.rows}: {program.measures.bytes:,} bytes, {time} us each"
            for one in program.stages:
                code = " ".join(f"{action.do[0].upper()}{action.tiles}" for action in one.actions)
                stays = f", {len(one.results)} of the result stay" if one.results else ""
                yield f"    {one.layer}: {one.initial} tiles there: {code}{stays}, {one.volume.total:,} bytes"
    yield ""

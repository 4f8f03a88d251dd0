"""Problem hybrid, as the rest of `solver` sees it: its front, and how its plans are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

from formulations.banks.bounds import Point, lowest
from formulations.banks.graph import NEVER
from formulations.clock import Clock, TimeUp
from formulations.hybrid.part import HybridPart
from formulations.hybrid.problem import HybridFormulation
from hwmodels.hybrid.schedule import HybridRun
from solver.banks.rows import actions
from solver.front import Front
from solver.generic import GenericProblem
from solver.hybrid.figures import figures
from solver.hybrid.rows import GroupRow, rows_of
from solver.network_show import known_parts, microseconds
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.plan import Plan
from solver.question import Question
from solver.search import Answer, quickest, status_of
from solver.tables import Column, Sheet, name_column, percent, ratio


class HybridProblem(GenericProblem):
    """F7: which layers run together, piece by piece, with a bank program for every piece."""

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
                known = quickest(self.formulation, part, "bytes", self.quick), reading.so_far()
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
        return self.front_of(question, said, part, proven=proven)

    # ---- for people --------------------------------------------------------------------------------------------------

    def items(self, plan: Plan) -> list[tuple[str, object]]:
        """The groups."""
        shown = ("columns", "rows", "pieces", "bytes", "ticks", "cycles", "once")
        return [(row.name, {name: getattr(row, name) for name in shown}) for row in rows_of(plan)]

    def names(self, plan: Plan) -> list[str]:
        """The groups, by their first stages."""
        return [row.stages[0].name for row in rows_of(plan)]

    def status(self, plan: Plan) -> list[str]:
        """What is known: status, value, bound, gap, what is left to win, and replay."""
        parts, rows = known_parts(plan), rows_of(plan)
        if plan.measures is None:
            return parts
        moved, must, ticks = plan.measures["bytes"], plan.part.must["bytes"], plan.measures["time"]
        delay = microseconds(plan, sum(row.delay for row in rows))
        parts.append(f"{moved:,} bytes move, {ratio(moved, must)} times what must ({must:,})")
        parts.append(f"{microseconds(plan, ticks)} us, {delay} us of them beyond computing all once")
        fused = sum(row.pieces > 1 for row in rows)
        parts.append(f"{fused} of {len(rows)} groups in pieces" if fused else "nothing is fused: per-layer")
        agrees = plan.part.replay is not None and plan.part.replay.ok
        return [*parts, "replay agrees" if agrees else "replay does not agree"]

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

    def pictures(self, plan: Plan, others: Mapping[str, Plan]) -> Pictures:
        """Groups over the network, times and bytes."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

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

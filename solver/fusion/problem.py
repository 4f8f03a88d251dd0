"""Problem fusion, as the rest of `solver` sees it: how its plans are shown."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from formulations.fusion.formulation import FusionFormulation
from formulations.fusion.part import FusionPart
from hwmodels.schedule import FusedRun, Run
from instances.errors import InputError
from solver.front import Front
from solver.fusion.figures import figures
from solver.fusion.show import drawn, halo_words
from solver.generic import GenericProblem
from solver.joint.homes import check_homes
from solver.joint.rows import RunRow, rooms_of, rows_of
from solver.network_show import known_parts, microseconds
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.plan import Plan
from solver.problem import front_of_plans
from solver.question import Question
from solver.search import status_of
from solver.tables import ABSENT, Column, Sheet, name_column, ratio

FUSION = FusionFormulation()
_AGAIN = "recompute=any"


class FusionProblem(GenericProblem):
    """F11: groups of layers, strips, and what stays on chip between groups."""

    def __init__(self) -> None:
        super().__init__(FUSION)
        self.axes = {"bytes": "bytes", "macs": "MACs"}

    def parts(self, question: Question) -> Sequence[FusionPart]:
        """The network; raises InputError unless its homes are settled and all memory is free."""
        machine = question.machine
        if machine.reserved_bytes or machine.im2col_rows:
            raise InputError(
                f"machine {machine.name}: problem fusion keeps no room for reserved_bytes and im2col_rows beside strips"
            )
        parts = cast(Sequence[FusionPart], super().parts(question))
        check_homes(question.network, question.machine, question.objectives)
        return parts

    # ---- the front ---------------------------------------------------------------------------------------------------

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of bytes and MACs; what strips need again may be computed again, unless a pin says no.

        The front says whether it is proven; of its plans each is the best of those with no more MACs.
        """
        start = time.monotonic()
        pins = question.pins if any(pin.startswith("recompute") for pin in question.pins) else (*question.pins, _AGAIN)
        engine = "cp-sat" if question.engine == self.auto else question.engine  # dynamic does not cap MACs
        question = replace(question, objectives=("bytes", "macs"), pins=pins, engine=engine)
        (part,) = self.parts(question)
        verdicts, proven = self.lowest(part, question, ("bytes", "macs"))
        fewest = verdicts[-1].values["macs"] if verdicts and proven else None
        plans, bounds = [], {"bytes": part.compulsory_bytes, "macs": fewest}
        for verdict in verdicts:
            status = status_of(verdict.values, bounds, empty=False)
            said = replace(verdict.said, status=status, bounds=bounds, judged=None)
            plans.append(self.made(question, [(part, said)], start))
        return front_of_plans(self, question, plans, proven=proven, details=lambda _: {})

    # ---- showing -----------------------------------------------------------------------------------------------------

    def status(self, plan: Plan) -> list[str]:
        """What is known: status, value, bound, gap, what is left to win, and replay."""
        parts = known_parts(plan)
        if plan.measures is None:
            return parts
        moved, least = plan.measures["bytes"], plan.part.must["bytes"]
        if moved == least:
            parts.append(f"{moved:,} bytes move, what must: optimal for every schedule")
        else:
            parts.append(f"{moved:,} bytes move, {ratio(moved, least)} times what must ({least:,})")
        once = sum(layer.macs for layer in plan.network_data.layers)
        if once and plan.measures["macs"] != once:
            parts.append(f"{ratio(plan.measures['macs'], once)} times the MACs of every layer once")
        parts.append("replay agrees" if plan.part.replay and plan.part.replay.ok else "replay does not agree")
        return parts

    def sheet(self, plan: Plan) -> Sheet:
        """The table of groups."""
        rows = rows_of(plan)

        def moved(operand: str, means: str) -> Column:
            return Column(operand, [f"{row.figures.bytes.get(operand, 0):,}" for row in rows], means, spare=4)

        return Sheet(
            [
                name_column("group", [row.name for row in rows]),
                Column("layers", [str(len(row.layers)) for row in rows], total=str(sum(len(r.layers) for r in rows))),
                Column("bytes", [f"{row.figures.moved:,}" for row in rows], "to and from DRAM",
                       f"{plan.measures['bytes']:,}" if plan.measures else ABSENT),
                Column("strip", [_strip(row.run) for row in rows],
                       "rows (x columns, if not all) of the last layer that a step makes; none: a layer by itself, "
                       "whose nest `certile show --layer` draws"),
                Column("halo", [halo_words(row.run) for row in rows],
                       "rows that two strips read: kept on chip, or computed again; warm-up: steps before the first",
                       words=True, spare=2),
                Column("visits", [f"{row.figures.visits:,}" for row in rows],
                       "steps of rows times steps of columns, warm-up included", spare=3),
                Column("on chip (rows)", [", ".join(f"{one.map} {one.rows}" for one in row.on_chip) for row in rows],
                       "maps that stay on chip while the group runs, and how many of their first rows", words=True),
                Column("weights kept", [_kept(row.run) for row in rows],
                       "bytes that stay while the group runs; the others are loaded again in every visit", spare=1),
                Column("room", [f"{row.figures.occupancy_bytes:,}" for row in rows],
                       "most bytes on chip beside those maps: strips and weights, or tiles", spare=1),
                Column("time (us)", [microseconds(plan, row.figures.ticks) for row in rows],
                       "visit by visit the longer of computing and moving, not decided",
                       microseconds(plan, sum(row.figures.ticks for row in rows)), spare=2),
                Column("turns", [_turns(row) for row in rows],
                       "layers that take turns for so many channels of the maps between them", words=True, spare=3),
                moved("IN", "bytes of maps that are loaded"), moved("W", "of weights"), moved("OUT", "of results"),
            ]
        )  # fmt: skip

    def layer_rows(self, plan: Plan) -> tuple[RunRow, ...]:
        """Layers and groups."""
        return tuple(rows_of(plan))

    def items(self, plan: Plan) -> list[tuple[str, object]]:
        """Layers and groups."""
        return [(row.name, row.figures) for row in rows_of(plan)]

    def rooms(self, plan: Plan) -> Iterator[tuple[str, int, int]]:
        """The shared memory."""
        yield from rooms_of(plan)

    def names(self, plan: Plan) -> list[str]:
        """Groups, and the layers in them."""
        return list(dict.fromkeys(name for row in rows_of(plan) for name in (row.name, *row.layers)))

    def pictures(self, plan: Plan, others: Mapping[str, Plan]) -> Pictures:
        """Groups over the network, what stays on chip, bytes, roofline."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """A group, or all."""
        for row in rows_of(plan):
            if layer is None or layer in row.layers or layer == row.name:
                yield from drawn(plan, row)


def _strip(run: Run) -> str:
    if not isinstance(run, FusedRun):
        return ABSENT
    last = run.streams[run.last - run.first]
    wide = last.columns.step < last.columns.end
    return f"{last.rows.step} x {last.columns.step}" if wide else str(last.rows.step)


def _kept(run: Run) -> str:
    return f"{sum(run.weights):,}" if isinstance(run, FusedRun) else ABSENT


def _turns(row: RunRow) -> str:
    blocks = row.run.blocks if isinstance(row.run, FusedRun) else ()
    named = [(row.layers[one.first - row.step], row.layers[one.last - row.step], one.channels) for one in blocks]
    return ", ".join(f"{first}..{last} by {channels}" for first, last, channels in named)


PROBLEM = FusionProblem

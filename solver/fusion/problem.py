"""Problem fusion, as the rest of `solver` sees it: what its plans say, and how they are shown."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, cast

from formulations.fusion.formulation import FusionFormulation
from formulations.fusion.groups import Net
from formulations.fusion.part import FusionPart, Runs
from formulations.tiling.problem import read
from hwmodels.fusion.replay import FusedReplay
from hwmodels.schedule import Blocks, FusedRun, LayerRun, Pace, Steps, Stream
from instances.errors import InputError
from solver.front import Front
from solver.fusion.figures import figures
from solver.fusion.plan import (
    BlocksPlan,
    FusionGroup,
    FusionMeasures,
    FusionPlan,
    FusionReplay,
    PacePlan,
    StepsPlan,
    StreamPlan,
    StripsPlan,
)
from solver.fusion.show import drawn, halo_words
from solver.joint.homes import check_homes
from solver.joint.plan import residents_of
from solver.network_show import known_parts, microseconds
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.plan import Objective, Options, Schedule
from solver.problem import Derived, front_of_plans
from solver.question import Question
from solver.tables import ABSENT, Column, Sheet, name_column, ratio
from solver.verdict import Verdict
from solver.whole import WholeProblem

FUSION = FusionFormulation()
_AGAIN = "recompute=any"


class FusionProblem(WholeProblem[FusionPlan]):
    """F11: groups of layers, strips, and what stays on chip between groups."""

    plan = FusionPlan

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

    # ---- what a plan says --------------------------------------------------------------------------------------------

    def options(self, question: Question) -> Options:
        """Nothing else."""
        return Options(time_limit_s=question.time_limit_s, settings=question.settings)

    def body(self, verdict: Verdict, question: Question) -> dict[str, Any]:
        """Sums, replay and a row a group: figures are what the replay counts."""
        part, priced = cast(FusionPart, verdict.part), verdict.priced
        fields = {"pins": tuple(part.pins.to_json()), "compulsory_bytes": part.compulsory_bytes}
        if priced is None:
            none = FusionReplay(ok=None, executed=0, faults=())
            return {**fields, "measures": None, "objective": None, "replay": none, "layers": ()}
        first, runs = question.objectives[0], cast(Runs, verdict.said.schedule)
        walked = part.walked(runs).runs
        return {
            **fields,
            "measures": FusionMeasures(**priced.measures),
            "objective": Objective(
                value=priced.measures[first], unit=self.measures[first], terms=dict(priced.terms[first])
            ),
            "replay": FusionReplay(ok=True, executed=sum(said.executed for said in walked), faults=()),
            "layers": tuple(
                _group(part, *named, said) for named, said in zip(part.numbered(runs), walked, strict=True)
            ),
        }

    def decided(self, plan: FusionPlan, part: Any) -> Runs | None:
        """The schedule of the rows; raises InputError for one that the referee refuses."""
        if not plan.layers:
            return None
        runs = runs_in(plan)
        if faults := part.walked(runs).faults:
            raise InputError("; ".join(faults))
        return runs

    def question(self, plan: FusionPlan) -> Question:
        """What a stored plan was asked."""
        return Question(plan.network_data, plan.machine_data, plan.objectives, self.name, pins=plan.pins)

    def derive(self, plan: FusionPlan) -> Derived:
        """Replay group by group."""
        return replace(super().derive(plan), executed=plan.replay.executed)

    # ---- the front ---------------------------------------------------------------------------------------------------

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of bytes and MACs; what strips need again may be computed again, unless a pin says no.

        The front says whether it is proven, its plans are FEASIBLE: each is the best only of those with no more MACs.
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
            said = replace(verdict.said, status="FEASIBLE", bounds=bounds, judged=None)
            plans.append(self.made(question, part, said, start))
        return front_of_plans(self, question, plans, proven=proven, details=lambda _: {})

    # ---- showing -----------------------------------------------------------------------------------------------------

    def status(self, plan: FusionPlan) -> list[str]:
        """What is known: status, value, bound, gap, what is left to win, and replay."""
        parts = known_parts(plan)
        if plan.measures is None:
            return parts
        moved, least = plan.measures.bytes, plan.compulsory_bytes
        if moved == least:
            parts.append(f"{moved:,} bytes move, what must: optimal for every schedule")
        else:
            parts.append(f"{moved:,} bytes move, {ratio(moved, least)} times what must ({least:,})")
        once = sum(layer.macs for layer in plan.network_data.layers)
        if once and plan.measures.macs != once:
            parts.append(f"{ratio(plan.measures.macs, once)} times the MACs of every layer once")
        parts.append("replay agrees" if plan.replay.ok else "replay does not agree")
        return parts

    def sheet(self, plan: FusionPlan) -> Sheet:
        """The table of groups."""
        rows = plan.layers

        def moved(operand: str, means: str) -> Column:
            return Column(operand, [f"{row.by_operand.get(operand, 0):,}" for row in rows], means, spare=4)  # type: ignore[call-overload]

        return Sheet(
            [
                name_column("group", [row.layer for row in rows]),
                Column("layers", [str(len(row.layers)) for row in rows], total=str(sum(len(r.layers) for r in rows))),
                Column("bytes", [f"{row.bytes:,}" for row in rows], "to and from DRAM",
                       f"{plan.measures.bytes:,}" if plan.measures else ABSENT),
                Column("strip", [_strip(row) for row in rows],
                       "rows (x columns, if not all) of the last layer that a step makes; none: a layer by itself, "
                       "whose nest `certile show --layer` draws"),
                Column("halo", [halo_words(row) for row in rows],
                       "rows that two strips read: kept on chip, or computed again; warm-up: steps before the first",
                       words=True, spare=2),
                Column("visits", [f"{row.visits:,}" for row in rows],
                       "steps of rows times steps of columns, warm-up included", spare=3),
                Column("on chip (rows)", [", ".join(f"{one.map} {one.rows}" for one in row.on_chip) for row in rows],
                       "maps that stay on chip while the group runs, and how many of their first rows", words=True),
                Column("weights kept", [f"{sum(row.strips.weights):,}" if row.strips else ABSENT for row in rows],
                       "bytes that stay while the group runs; the others are loaded again in every visit", spare=1),
                Column("room", [f"{row.occupancy_bytes:,}" for row in rows],
                       "most bytes on chip beside those maps: strips and weights, or tiles", spare=1),
                Column("time (us)", [microseconds(plan, row.time_ticks) for row in rows],
                       "visit by visit the longer of computing and moving, not decided",
                       microseconds(plan, sum(row.time_ticks for row in rows)), spare=2),
                Column("turns", [_turns(row) for row in rows],
                       "layers that take turns for so many channels of the maps between them", words=True, spare=3),
                moved("IN", "bytes of maps that are loaded"), moved("W", "of weights"), moved("OUT", "of results"),
            ]
        )  # fmt: skip

    def names(self, plan: FusionPlan) -> list[str]:
        """Groups, and the layers in them."""
        return list(dict.fromkeys(name for row in plan.layers for name in (row.layer, *row.layers)))

    def pictures(self, plan: FusionPlan, others: Mapping[str, FusionPlan]) -> Pictures:
        """Groups over the network, what stays on chip, bytes, roofline."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

    def details(self, plan: FusionPlan, layer: str | None) -> Iterable[str]:
        """A group, or all."""
        runs = runs_in(plan)
        for row, run in zip(plan.layers, runs, strict=True):
            if layer is None or layer in row.layers or layer == row.layer:
                yield from drawn(plan, row, run)


def _strip(row: FusionGroup) -> str:
    if row.strips is None:
        return ABSENT
    last = row.strips.streams[len(row.layers) - 1]
    wide = last.columns.step < last.columns.end
    return f"{last.rows.step} x {last.columns.step}" if wide else str(last.rows.step)


def _turns(row: FusionGroup) -> str:
    blocks = row.strips.blocks if row.strips else ()
    return ", ".join(f"{one.layers[0]}..{one.layers[-1]} by {one.channels}" for one in blocks)


def _group(
    part: FusionPart, first: int, last: int, run: FusedRun | LayerRun, said: Any
) -> FusionGroup:  # fmt: skip
    """A group with its figures."""
    net = part.net
    names = [layer.name for layer in net.layers]
    if isinstance(said, FusedReplay):
        by_operand, macs, taken, visits = dict(said.operand_bytes), said.macs, said.peak_bytes, said.visits
        ticks = said.ticks
    else:
        outcome = said.outcome
        by_operand = {operand: count.bytes for operand, count in outcome.by_operand.items()}
        macs, taken, visits = net.layers[first].macs, outcome.occupancy_bytes["ocm"], 1
        ticks = outcome.time_ticks
    schedule = strips = None
    if isinstance(run, FusedRun):
        strips = StripsPlan(
            rows=StepsPlan(**asdict(run.rows)), columns=StepsPlan(**asdict(run.columns)),
            streams=tuple(_stream(net, names, stream) for stream in run.streams), weights=run.weights,
            blocks=tuple(
                BlocksPlan(layers=tuple(names[one.first : one.last + 1]), channels=one.channels) for one in run.blocks
            ),
        )  # fmt: skip
    else:
        layer = part.joint.layer(first, run)
        schedule = Schedule.of(run.nest, read(layer, part.machine, run.nest))
    return FusionGroup(
        layers=tuple(names[first : last + 1]),
        on_chip=residents_of(net, part.machine, run),
        unwritten=run.unwritten if isinstance(run, FusedRun) else (run.unwritten,), banks=run.banks,
        schedule=schedule, strips=strips, bytes=sum(by_operand.values()), by_operand=by_operand, macs=macs,
        occupancy_bytes=taken, visits=visits, time_ticks=ticks,
    )  # fmt: skip


def _stream(net: Net, names: Sequence[str], stream: Stream) -> StreamPlan:
    return StreamPlan(
        map=net.stores[stream.store].name, layer=names[stream.maker], readers=tuple(names[t] for t in stream.readers),
        loaded=stream.outside, rows=PacePlan(**asdict(stream.rows)), columns=PacePlan(**asdict(stream.columns)),
    )  # fmt: skip


def runs_in(plan: FusionPlan) -> Runs:
    """Return the schedule of a plan; raises InputError for names that are not the network's."""
    net = Net.read(plan.network_data, plan.machine_data)
    names = [layer.name for layer in net.layers]
    if [name for row in plan.layers for name in row.layers] != names:
        raise InputError(f"layers: the groups do not have the {len(names)} layers of the network in their order")
    layers = {name: t for t, name in enumerate(names)}
    maps = {store.name: s for s, store in enumerate(net.stores)}
    made: list[FusedRun | LayerRun] = []
    for row in plan.layers:
        residents = {_number(maps, "map", one.map): (one.rows, one.banks) for one in row.on_chip}
        if (row.schedule is None) == (row.strips is None) or len(row.unwritten) != len(row.layers):
            raise InputError(f"group {row.layer}: a layer by itself has a schedule, several have strips")
        if row.schedule is not None:
            if len(row.layers) > 1:
                raise InputError(f"group {row.layer}: a schedule is for one layer")
            made.append(LayerRun(row.schedule.to_nest(), residents, row.unwritten[0], row.banks))
            continue
        strips = cast(StripsPlan, row.strips)
        streams = tuple(
            Stream(
                _number(maps, "map", one.map), _number(layers, "layer", one.layer),
                tuple(_number(layers, "layer", name) for name in one.readers), one.loaded,
                Pace(**one.rows.model_dump()), Pace(**one.columns.model_dump()),
            )
            for one in strips.streams
        )  # fmt: skip
        blocks = tuple(_blocks(layers, names, one) for one in strips.blocks)
        made.append(
            FusedRun(
                layers[row.layers[0]], layers[row.layers[-1]], Steps(**strips.rows.model_dump()),
                Steps(**strips.columns.model_dump()), streams, strips.weights, residents, row.unwritten, row.banks,
                blocks,
            )
        )  # fmt: skip
    return tuple(made)


def _blocks(layers: dict[str, int], names: Sequence[str], blocks: BlocksPlan) -> Blocks:
    first, last = (_number(layers, "layer", name) for name in (blocks.layers[0], blocks.layers[-1]))
    if tuple(names[first : last + 1]) != blocks.layers:
        raise InputError(f"layers {', '.join(blocks.layers)} take turns, but do not follow each other")
    return Blocks(first, last, blocks.channels)


def _number(known: dict[str, int], what: str, name: str) -> int:
    if name not in known:
        raise InputError(f"no {what} is called {name}")
    return known[name]

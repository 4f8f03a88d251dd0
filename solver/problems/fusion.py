"""Problem fusion, as the rest of `solver` sees it: how its plans are shown.

A group is shown by its strips layer by layer, what is kept, and where everything lies (`drawn`). Figures (`drawings`)
are groups over the network, what stays on chip, bytes by group, and the roofline.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from formulations.clock import Clock
from formulations.fusion.problem import FusionFormulation
from hwmodels.fusion.replay.count import weight_bytes
from hwmodels.fusion.replay.strips import Span, Walk, as_seen
from hwmodels.levels.near import near_price
from hwmodels.nest.buffers import buffer_lines, buffers
from hwmodels.schedule import FusedRun, LayerRun, NetworkRun, Run, Steps
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.stores import Stores
from solver.ask.question import Question
from solver.plan.figures import Figure
from solver.plan.front import Front
from solver.plan.plan import Plan
from solver.problems.joint import RunRow, SharedProblem, moved_column, moved_figures, on_chip, ranges, rows_of
from solver.search.deciding import lowest
from solver.search.loop import Answer, status_of
from solver.show.common import graph
from solver.show.pseudo_code import pseudo_code
from solver.show.tables import ABSENT, Column, Sheet, name_column, ratio
from solver.show.words import agreement, bytes_moved, microseconds, workload_text


def _note(row: RunRow) -> str:
    how = f"strips in {row.figures.visits} visits" if isinstance(row.run, FusedRun) else "by itself"
    return f"{how}, {row.figures.moved:,} bytes"


#: Of more steps than this only the first three and the last two are drawn.
_DRAWN = 6


def halo_words(run: FusedRun | LayerRun) -> str:
    """What is done with halos, in a few words."""
    if isinstance(run, LayerRun):
        return ""
    axes = ((run.rows, ""), (run.columns, "columns "))
    return "; ".join(f"{what}{_steps(steps)}" for steps, what in axes if steps.first < steps.last) or "one step"


def _steps(steps: Steps) -> str:
    if steps.halo == "recompute":
        return "computed again"
    return f"kept, {1 - steps.first} warm-up" if steps.first < 1 else "kept"


def drawn(plan: Plan, row: RunRow) -> Iterator[str]:
    """Lines about a group."""
    figures = row.figures
    yield f"{row.name} on {plan.machine}: {figures.moved:,} bytes move, {figures.macs:,} MACs"
    for one in row.on_chip:
        total = next(store.rows for store in row.found.stores if store.name == one.map)
        yield f"  {one.rows} of {total} rows of {one.map} {one.where}"
    what = "tiles" if isinstance(row.run, LayerRun) else "strips and weights"
    where = f" in {_banks(row.run.banks)}" if plan.machine_data.ocm_banks else ""
    yield f"  {what} take at most {figures.occupancy_bytes:,} bytes{where}"
    if isinstance(row.run, LayerRun):
        yield from _alone(plan, row, row.run)
    else:
        yield from _together(plan, row, row.run, row.found)
    yield from _near(plan, row)
    yield ""


def _near(plan: Plan, row: RunRow) -> Iterator[str]:
    """How the boxes of steps go through nearer memories."""
    for one in plan.schedule.near:
        if row.found.layers[one.layer].name not in row.layers:
            continue
        layer, box = row.found.layers[one.layer], one.box
        took = near_price(layer, plan.machine_data, one)
        size = f"{box.groups * box.filters} channels of {box.rows} x {box.columns}"
        yield f"  {layer.name}, {size}: {one.nest.words}; {microseconds(plan, took.ticks)} us, {took.bytes:,} bytes"


def _banks(banks: tuple[int, ...]) -> str:
    return f"bank {banks[0]}" if len(banks) == 1 else f"banks {ranges(banks)}" if banks else "no bank"


def _alone(plan: Plan, row: RunRow, run: LayerRun) -> Iterator[str]:
    yield f"  {workload_text(row.layer)}"
    yield from (f"  {line}" for line in buffer_lines(buffers(row.layer, plan.machine_data, run.nest)))
    yield from (f"  {line}" for line in pseudo_code(row.layer, plan.machine_data, run.nest).splitlines())


# ---- strips ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Strips:
    """Of every step of rows what each stream makes or loads; rows of it that a later step reads too, the most."""

    steps: tuple[int, ...]
    made: tuple[dict[int, Span], ...]
    kept: dict[int, int]


def _together(plan: Plan, row: RunRow, run: FusedRun, found: Stores) -> Iterator[str]:
    seen, count = _walked(found, run), len(row.layers)
    lines = [["rows in step", *(str(k) if k is not None else "..." for k in _chosen(seen.steps)), "kept", "weights"]]
    for t, name in enumerate(row.layers, run.first):
        loads = [k for k in range(count, len(run.streams)) if run.streams[k].maker == t]
        for k in loads:
            lines.append([f"  load {found.stores[run.streams[k].store].name}", *_rows(seen, k), ""])
        stay, whole = run.weights[t - run.first], weight_bytes(found.layers[t], plan.machine_data)
        lines.append([f"  {name}", *_rows(seen, t - run.first), f"{stay:,} of {whole:,}" if whole else "none"])
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = [first.ljust(widths[0]), *(x.rjust(n) for x, n in zip(others, widths[1:], strict=True))]
        yield f"  {'  '.join(cells)}".rstrip()
    for one in run.blocks:
        names, makes = row.layers[one.first - run.first : one.last - run.first + 1], found.layers[one.first]
        sums = f"adds up in sums of {plan.machine_data.psum_bytes} bytes"
        yield (
            f"  {', '.join(names)} take turns: {one.channels} of {makes.g * makes.m} channels of the maps between them "
            f"in each, which {names[-1]} {sums if found.layers[one.last].g == 1 else 'takes one by one'}"
        )
    for s in run.sampled:
        reader = next(t for t in range(run.first, run.last + 1) if s in found.reads[t])
        skips = as_seen(found, run).pitch[reader]
        yield (
            f"  {found.stores[s].name} is sampled: of {skips.rows} x {skips.columns} pixels those are loaded, and "
            f"counted above, that {found.layers[reader].name} reads, {skips.down} rows and {skips.across} columns apart"
        )
    across = run.columns
    if across.first < across.last:
        yield f"  every step of rows goes through steps {across.first} to {across.last} of columns"
    yield "  kept: the most rows that later steps read again; weights: bytes that stay, of all"


def _walked(found: Stores, run: FusedRun) -> _Strips:
    steps = tuple(range(run.rows.first, run.rows.last + 1))
    made: tuple[dict[int, Span], ...] = tuple({} for _ in steps)
    kept = dict.fromkeys(range(len(run.streams)), 0)
    across = run.columns.last - run.columns.first + 1
    if run.rows.halo == "retain":
        for rows in list(Walk(found, run).steps("rows"))[:-1]:
            kept = {k: max(kept[k], step.end - step.need_after) for k, step in enumerate(rows)}
    for number, moments in enumerate(Walk(found, run).each_visit()):
        for moment in moments:
            if moment.kind in ("load", "make") and moment.rows[0] < moment.rows[1]:
                made[number // across][moment.stream] = moment.rows
    return _Strips(steps, made, kept)


def _chosen(steps: tuple[int, ...]) -> list[int | None]:
    """The steps that are drawn; None for those between."""
    return [*steps] if len(steps) <= _DRAWN else [*steps[:3], None, *steps[-2:]]


def _rows(seen: _Strips, stream: int) -> list[str]:
    """The rows of a stream step by step, first to last, and how many of them stay."""
    cells = []
    for k in _chosen(seen.steps):
        first, end = seen.made[k - seen.steps[0]].get(stream, (0, 0)) if k is not None else (0, 0)
        cells.append(
            "..." if k is None else "-" if first >= end else f"{first}-{end - 1}" if first < end - 1 else str(first)
        )
    return [*cells, str(seen.kept[stream])]


FUSION = FusionFormulation()
_AGAIN = "recompute=any"
#: What fronts are of.
_FRONTS = "bytes,macs, time,bytes, time,memory or bytes,memory"
#: The engine that decides fronts of time, and that all others begin with where time is asked for.
_OF_TIME = "dynamic"


class FusionProblem(SharedProblem):
    """Groups of layers, strips, and what stays on chip between groups."""

    def __init__(self) -> None:
        super().__init__(FUSION)
        self.axes = {"bytes": "bytes", "macs": "MACs", "time": "ticks", "memory": "bytes on chip"}
        self.front_axes = "bytes", "macs"

    def solve(self, question: Question) -> Plan:
        """Plan the network; raises InputError for heuristics of time where something else is asked for."""
        if question.engine in FUSION.timed and question.objectives[0] != "time":
            raise InputError(
                f"engine {question.engine}: it plans for time alone, not for {question.objectives[0]}; leave out "
                "--objective, or ask for --objective time"
            )
        return super().solve(question)

    def elsewhere(self, plan: Plan, machine: Machine) -> int | None:
        """The time of the same groups, with the best order of transfers there; None if there is less memory."""
        mine = plan.machine_data
        less = machine.memories["ocm"] < mine.memories["ocm"] or machine.ocm_banks < mine.ocm_banks
        if plan.objectives[0] != "time" or not plan.decided or less:
            return None
        runs = NetworkRun(plan.part.schedule.runs)
        with suppress(InputError):
            (part,) = self.parts(replace(self.question(plan), machine=machine))
            return None if part.contains(runs) else part.price(runs).measures["time"]
        return None

    def able(self, plan: Plan) -> Mapping[str, bool]:
        """Engines that decide what the plan was asked."""
        timed = set[str]() if plan.objectives[0] == "time" else {*FUSION.timed}
        return {name: proves for name, proves in super().able(plan).items() if name not in timed}

    def chain(self, plan: Plan) -> tuple[str, ...]:
        """The engines to ask for a proof; of time one, which all others that prove begin with."""
        return (_OF_TIME,) if "time" in plan.objectives else super().chain(plan)

    # ---- the front ---------------------------------------------------------------------------------------------------

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of bytes and MACs, plans between the least time and the fewest bytes, or of less memory.

        Raises InputError for other axes.
        """
        wanted, question = axes or self.front_axes, self.settled(question)
        if set(wanted) in ({"time", "memory"}, {"bytes", "memory"}):
            return self.over_memory(question, wanted)
        if set(wanted) == {"time", "bytes"}:
            return self._over_time(question, wanted)
        if set(wanted) != {"bytes", "macs"}:
            raise InputError(f"axes {','.join(wanted)}: fronts of problem {self.name} are of {_FRONTS}")
        return self._over_macs(question)

    def _over_time(self, question: Question, axes: tuple[str, ...]) -> Front:
        """Plans that no other one that was found beats in time and bytes, with what no plan is below."""
        start, limit = time.monotonic(), Clock.of(question.time_limit_s)
        question = replace(question, objectives=axes, engine=_OF_TIME)
        (part,) = self.parts(question)
        found = [(dict(part.price(runs).measures), runs) for runs in part.front(limit)]
        fastest = min((values["time"] for values, _ in found), default=0)
        ticks = part.least_ticks if part.least_ticks <= fastest else part.compulsory_ticks  # another kind of plan
        known = {"time": ticks, "bytes": part.compulsory_bytes}
        least: dict[str, int | None] = {name: known[name] for name in axes}
        said, second = [], inf
        for values, runs in sorted(found, key=lambda one: [one[0][name] for name in axes]):
            if values[axes[1]] < second:
                second = values[axes[1]]
                status = status_of({name: values[name] for name in axes}, least, empty=False)
                said.append(Answer(runs, values, least, status))
        plans = [self.made(question, [(part, one)], start) for one in said]
        units = {axis: self.axes[axis] for axis in axes}
        return self.front_of(question, plans, len(plans) == 1 and plans[0].status == "OPTIMAL", units)

    def _over_macs(self, question: Question) -> Front:
        """The exact front of bytes and MACs; what strips need again may be computed again, unless a pin says no.

        The front says whether it is proven; of its plans each is the best of those with no more MACs.
        """
        start = time.monotonic()
        pins = question.pins if any(pin.startswith("recompute") for pin in question.pins) else (*question.pins, _AGAIN)
        engine = "cp-sat" if question.engine == self.auto else question.engine  # dynamic does not cap MACs
        question = replace(question, objectives=("bytes", "macs"), pins=pins, engine=engine)
        (part,) = self.parts(question)
        verdicts, proven = lowest(FUSION, part, question, ("bytes", "macs"))
        fewest = verdicts[-1].values["macs"] if verdicts and proven else None
        plans, bounds = [], {"bytes": part.compulsory_bytes, "macs": fewest}
        for verdict in verdicts:
            status = status_of(verdict.values, bounds, empty=False)
            said = replace(verdict.said, status=status, bounds=bounds, judged=None)
            plans.append(self.made(question, [(part, said)], start))
        return self.front_of(question, plans, proven, {axis: self.axes[axis] for axis in self.front_axes})

    # ---- showing -----------------------------------------------------------------------------------------------------

    def said(self, plan: Plan) -> Iterator[str]:
        """What is left to win, and replay."""
        moved, macs = plan.part.measures["bytes"], plan.part.measures["macs"]
        best = moved == plan.part.must["bytes"]
        yield f"{moved:,} bytes move, what must: optimal for every schedule" if best else bytes_moved(plan)
        once = sum(layer.macs for layer in plan.network_data.layers)
        if once and macs != once:
            yield f"{ratio(macs, once)} times the MACs of every layer once"
        yield from self.through(plan)
        yield from self.prefetched(plan)
        yield agreement(plan)

    def sheet(self, plan: Plan) -> Sheet:
        """The table of groups."""
        rows = rows_of(plan)
        moved = partial(moved_column, rows)
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
                Column("on chip (rows)", [", ".join(one.brief for one in row.on_chip) for row in rows],
                       "maps that stay on chip while the group runs, and how many of their first rows; in place of: "
                       "a sum lies where the map lay that it is the last to read", words=True),
                Column("weights kept", [_kept(row.run) for row in rows],
                       "bytes that stay while the group runs; the others are loaded again in every visit", spare=1),
                Column("room", [f"{row.figures.occupancy_bytes:,}" for row in rows],
                       "most bytes on chip beside those maps: strips and weights, or tiles", spare=1),
                Column("time (us)", [microseconds(plan, row.figures.ticks) for row in rows],
                       "of each by itself: visit by visit the longer of computing and moving",
                       microseconds(plan, sum(row.figures.ticks for row in rows)), spare=2),
                *self.timed(plan),
                Column("turns", [_turns(row) for row in rows],
                       "layers that take turns for so many channels of the maps between them", words=True, spare=3),
                moved("IN", "bytes of maps that are loaded"), moved("W", "of weights"), moved("OUT", "of results"),
            ]
        )  # fmt: skip

    def names(self, plan: Plan) -> list[str]:
        """Groups, and the layers in them."""
        return list(dict.fromkeys(name for row in rows_of(plan) for name in (row.name, *row.layers)))

    def drawings(self, plan: Plan, plans: Mapping[str, Plan]) -> list[Figure]:
        """Groups over the network, what stays on chip, bytes, roofline."""
        every = {engine: rows_of(one) for engine, one in plans.items()}
        rows = every[plan.engine]
        groups = {row.name: row.layers for row in rows}
        notes = {row.name: _note(row) for row in rows}
        caption = (
            "Operators of a frame run together, strip by strip; the others of a colour by themselves. Operators of no "
            "colour move nothing of their own."
        )
        return [
            graph("groups", "Groups over the network", caption, plan.network_data, groups, notes),
            *self.timetable(plan).figures(),
            on_chip(plan.machine_data, rows, "group", "strips, weights and tiles"),
            *moved_figures(plan, every, "group"),
        ]

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

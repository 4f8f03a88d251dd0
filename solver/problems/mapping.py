"""Problem mapping, as the rest of `solver` sees it: its front, and its plans for people.

The front has all mappings of a network that no other beats in period and energy. Drawn are processors over a
period (or one inference), and how busy they are.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from formulations.clock import Clock
from formulations.mapping.board import Request
from formulations.mapping.problem import MappingFormulation, MappingPart
from formulations.mapping.space import Schedule
from formulations.problem import Formulation, Goal
from hwmodels.board.schedule import MappingSchedule
from instances.errors import InputError
from instances.network.tasks import tasks
from solver.ask.question import Question
from solver.plan.figures import Axis, Bars, Figure, Series
from solver.plan.front import Front
from solver.plan.plan import Plan
from solver.problems.problem import Problem
from solver.search.loop import Answer, decide_part, status_of
from solver.show.common import LETTERS, WIDTH, drawn, gantt, us
from solver.show.tables import Column, Sheet
from solver.show.words import agreement, labels


@dataclass(frozen=True)
class TaskRow:
    """A task, or a part of one that is divided, on its processor; times are in ticks."""

    task: str
    processor: str
    start: int
    """In the period, after the begin of one inference, or after the release of its application."""
    time: int
    """What it computes."""
    copies: int
    """What it copies to other processors then."""
    stage: int = 0
    """In the n-th period it works on inference ``n - stage``."""
    share: int = 1
    of: int = 1
    """`share`, `of`: how many shares of the task, and how many there are."""

    @property
    def name(self) -> str:
        """The task, and the share of it that a part is."""
        return self.task if self.share == self.of else f"{self.task} {self.share}/{self.of}"

    @property
    def part(self) -> str:
        """What it is called where results wait."""
        return self.task if self.share == self.of else f"{self.task}@{self.processor}"


class BoardProblem(Problem):
    """Tasks on processors; a subclass has their rows (`layer_rows`), and what is shown of all."""

    item = "task"

    def __init__(self, formulation: Formulation[Any]) -> None:
        super().__init__(formulation)
        self.takes = frozenset({"profile"})

    def request(self, question: Question, pins: tuple[str, ...]) -> Request:
        """Read pins and times; raises InputError for bad ones."""
        return Request.of(tasks(question.network), question.machine, pins, question.profile)

    def items(self, plan: Plan) -> list[tuple[str, object]]:
        """The tasks."""
        return [(row.task, row) for row in self.layer_rows(plan)]


def whole_us(plan: Plan, ticks: int) -> str:
    """Ticks of the plan's machine in whole microseconds."""
    return f"{ticks * plan.machine_data.tick_ps / 1e6:,.0f}"


#: Of the time limit that the exact walk may take, and of that the next point; periods that are tried after it.
_WALK, _EACH, _POINTS = 0.5, 4 / 3, 8


@dataclass(frozen=True)
class _Point:
    """An answer for the least energy up to a period."""

    said: Answer[MappingSchedule]
    most: int
    period: int
    energy: int


def _beats(one: _Point, other: _Point) -> bool:
    mine, yours = (one.period, one.energy), (other.period, other.energy)
    return mine != yours and one.period <= other.period and one.energy <= other.energy


class _Walk:
    """Answers for caps of the period."""

    def __init__(self, problem: Problem, question: Question) -> None:
        self.problem, self.question = problem, question
        (part,) = problem.parts(question)
        assert isinstance(part, MappingPart)
        self.part = part

    def asked(self, measures: tuple[str, ...], most: int | None, clock: Clock) -> Answer[MappingSchedule]:
        """Minimise, with a period of at most so much."""
        caps = {} if most is None else {"period": most}
        return decide_part(self.problem.formulation, self.part, measures, self.question.engine, clock, most=caps)

    def point(self, said: Answer[MappingSchedule], most: int | None) -> _Point:
        """A point of the front, maybe."""
        known = [one for one in (most, self.part.limits.period) if one is not None]
        period, energy = said.values["period"], said.values["energy"]
        return _Point(said, max([period, *([min(known)] if known else [])]), period, energy)

    def evolved(self, clock: Clock) -> list[_Point]:
        """What a genetic search finds on every configuration."""
        from formulations.mapping.genetic import front as evolved  # late: DEAP

        found = []
        for piece in self.part.pieces(Goal("energy", clock=clock)):
            for at in evolved(piece.asked(Goal("energy", clock=clock))):
                schedule = piece.named(Schedule(at))
                values = self.part.price(schedule).measures
                said = Answer(schedule, values, {"energy": None, "period": None}, "FEASIBLE")
                found.append(self.point(said, None))
        return found

    def exact(self, clock: Clock) -> tuple[list[_Point], bool]:
        """The exact front from the least energy on, and whether it is all of it."""
        most, found = None, list[_Point]()
        while not clock.over:
            said = self.asked(("energy", "period"), most, clock.share(_EACH))
            if said.schedule is None:
                return found, said.status == "INFEASIBLE"
            point = self.point(said, most)
            if said.status != "OPTIMAL":
                return [*found, point], False
            found.append(replace(point, most=point.period))
            most = point.period - 1
        return found, False

    def between(self, known: Sequence[_Point], clock: Clock) -> list[_Point]:
        """The least period, and the least energies at some periods above it."""
        quick, found = self.asked(("period",), None, clock.share(_POINTS + 1)), list[_Point]()
        if quick.schedule is None:
            return found
        first = self.point(quick, None)
        last = min((one.period for one in known), default=2 * first.period)
        for number in range(_POINTS):
            period = first.period + (last - first.period) * number // _POINTS
            if clock.over:
                break
            least = self.asked(("energy",), period, clock.share(_POINTS - number))
            if least.schedule is not None:
                found.append(self.point(least, period))
        if not any(one.period <= first.period for one in found):  # the plan that is known, with no bound of its energy
            found.append(replace(first, said=replace(quick, bounds={"energy": None})))
        return found

    def planned(self, point: _Point, start: float) -> Plan:
        """The plan, with the period up to which its energy is the least one as a pin."""
        question = replace(self.question, pins=(*self.question.pins, f"period<={point.most}"))
        bounds = {name: point.said.bounds.get(name) for name in question.objectives}
        values = {name: point.said.values[name] for name in bounds}
        said = replace(point.said, bounds=bounds, status=status_of(values, bounds, empty=False))
        (part,) = self.problem.parts(question)
        return self.problem.made(question, [(part, said)], start)


def alone(plan: Plan) -> bool:
    """Whether a plan is of one inference alone, and not of a pipeline."""
    return "latency" in plan.part.measures


def _loads(plans: Mapping[str, Plan]) -> Bars:
    """How long every processor is busy in a period, beside other engines'; the mark is the period."""
    known = {engine: one for engine, one in plans.items() if one.decided}
    bars = [(group, engine, one) for engine, one in known.items() for group in one.part.figures.processors]
    order = list(dict.fromkeys(group.name for group, *_ in bars))
    bars.sort(key=lambda bar: order.index(bar[0].name))
    return Bars(
        "load", "Load of the processors", "Busy time in a period of the pipeline; the mark is the period.",
        Axis("time (us)"), tuple(group.name for group, *_ in bars),
        (Series("busy", tuple(us(one, sum(group.loads)) for group, _, one in bars)),),
        tuple(engine for _, engine, _ in bars) if len(plans) > 1 else (),
        tuple(us(one, one.part.measures["period"]) for *_, one in bars), "period",
    )  # fmt: skip


class MappingProblem(BoardProblem):
    """Tasks of a network on the processors of a board."""

    def __init__(self) -> None:
        super().__init__(MappingFormulation())
        self.axes = {name: self.measures[name] for name in ("period", "energy")}
        self.others = {"cp-sat": ("milp", "auto"), "exhaustive": ("auto", "exhaustive"), "": ("cp-sat", "auto")}

    def parts(self, question: Question) -> Sequence[MappingPart]:
        """A network on a board; raises InputError for bad pins and profiles."""
        request, aims = self.request(question, question.pins), question.objectives
        limits = request.demands.limits
        once = "latency" in aims or limits.latency is not None
        cap = any(text.startswith("cap") for text in question.pins)
        if once and cap and "period" not in aims and limits.period is None:
            raise InputError(
                "pin cap: how busy cores are is counted over periods, and one inference alone has none: "
                "add period to the objectives or pin period<=N"
            )
        return [MappingPart.of(request, aims)]

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of period and energy: plans by period, each with the least energy up to it (its last pin).

        From the least energy on: the least energy below the last period, then the least period with it (epsilon
        constraint). If half of the time limit does not suffice for all of it, the rest goes to the least period and
        some periods in between: each plan then says how far its energy is from the least one at most. Engine ``ga`` is
        the source's: SPEA2 on both objectives, without bounds.
        """
        start, walk = time.monotonic(), _Walk(self, replace(question, objectives=("energy", "period")))
        clock = Clock.of(question.time_limit_s)
        if question.engine == "ga":
            points, proven = walk.evolved(clock), False
        else:
            points, proven = walk.exact(Clock.of(None if clock.left is None else _WALK * clock.left))
            points += [] if proven else walk.between(points, clock)
        kept = [one for one in points if not any(_beats(other, one) for other in points)]
        kept = list({(one.period, one.energy): one for one in reversed(kept)}.values())
        if not kept:
            why = "no plan keeps the pins" if proven else "no plan in this time, give a larger --time-limit"
            raise InputError(f"network {question.network.name}: {why}")
        plans = [walk.planned(one, start) for one in sorted(kept, key=lambda one: one.period)]
        return self.front_of(question, plans, proven)

    def able(self, plan: Plan) -> Mapping[str, bool]:
        """Those that know of latency, where it counts."""
        once = "latency" in plan.objectives or any(pin.startswith("latency") for pin in plan.options.pins)
        return {name: proves for name, proves in super().able(plan).items() if not once or "clustering" not in name}

    # ---- showing -----------------------------------------------------------------------------------------------------

    def noted(self, plan: Plan) -> Mapping[str, str]:
        """Energy, how far from the least it is at most, and cores."""
        gap = "no bound" if plan.gap is None else f"{100 * plan.gap:.3g} %"
        energy = f"{plan.part.measures['energy'] / 1e12:,.2f}"
        return {"energy (mJ)": energy, "energy gap": gap, "cores": ",".join(map(str, plan.schedule.cpu_config))}

    def figures(self, plan: Plan) -> dict[str, int]:
        """The measures, and in a pipeline the latency, too."""
        return {} if plan.measures is None else {**plan.measures, "latency": plan.part.figures.latency}

    def layer_rows(self, plan: Plan) -> tuple[TaskRow, ...]:
        """The tasks, or parts of tasks; none without a schedule."""
        if not plan.decided:
            return ()
        made, of = plan.schedule.tasks, Counter[str]()
        for row in made:
            of[row.task] += row.share
        return tuple(
            TaskRow(row.task, row.processor, row.start, one.time, one.copies, row.stage, row.share, of[row.task])
            for row, one in zip(made, plan.part.figures.tasks, strict=True)
        )

    def said(self, plan: Plan) -> list[str]:
        """Energy, latency, and simulation."""
        known, cores = self.figures(plan), ",".join(map(str, plan.schedule.cpu_config))
        every, mj = f"every {whole_us(plan, known['period'])} us", f"{known['energy'] / 1e12:,.1f} mJ"
        took = whole_us(plan, known["latency"])
        if alone(plan):
            said = f"one inference alone in {took} us, {mj}; in a pipeline one {every}"
        else:
            said = f"an inference {every}, {mj} each, {took} us from release to end"
        return [f"cores ({cores}): {said}", agreement(plan, "simulation")]

    def sheet(self, plan: Plan) -> Sheet:
        """Return the table of tasks."""
        rows, once = self.layer_rows(plan), alone(plan)
        late = [Column("inference", [_late(row) for row in rows], "in period n the task works on this one", words=True)]
        return Sheet(
            [
                Column("task", labels([row.name for row in rows], plan.network_data.layers), words=True),
                Column("processor", [row.processor for row in rows], words=True),
                Column("start (us)", [whole_us(plan, row.start) for row in rows],
                       f"from the begin of {'the inference' if once else 'a period'} on"),
                Column("runs (us)", [whole_us(plan, row.time) for row in rows]),
                Column("copies (us)", [whole_us(plan, row.copies) for row in rows], "then, to other processors"),
                *([] if once else late),
            ]
        )  # fmt: skip

    def drawings(self, plan: Plan, plans: Mapping[str, Plan]) -> list[Figure]:
        """Processors over time, and their load."""
        if plan.measures is None:
            return []
        once, lanes = alone(plan), [one.name for one in plan.part.figures.processors]
        what = "One inference" if once else "One period of the pipeline"
        caption = (
            f"{what}: each task on its processor, then its copies to others. "
            + ("" if once else "In one period tasks work on different inferences. ")
            + "Blank is idle."
        )
        work = [(row.processor, row.name, row) for row in plan.layers]
        return [
            gantt("processors", "Processors over time", caption, plan, lanes, work),
            _loads(plans),
        ]

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """Return a task with what it reads and hands on; or one period of every processor, and all tasks."""
        rows = self.layer_rows(plan)
        if layer is None:
            yield from _processors(plan, rows)
        request = self.request(self.question(plan), plan.options.pins)
        times = {task.name: row for task, row in zip(request.graph.tasks, request.rows, strict=True)}
        for name in self.names(plan):
            if layer in (None, name):
                yield from _task(plan, rows, name, times[name])


# ---- for people ------------------------------------------------------------------------------------------------------


def _late(row: TaskRow) -> str:
    return f"n - {row.stage}" if row.stage else "n"


def _processors(plan: Plan, tasks: Sequence[TaskRow]) -> list[str]:
    """One period of every processor, or one inference."""
    once, known = alone(plan), plan.part.figures
    span = max(1, known.latency) if once else plan.part.measures["period"]
    lines = [f"{'one inference' if once else 'one period'}; a letter is a task, = its copies to other processors, "
             ". idle", ""]  # fmt: skip
    width = max((len(one.name) for one in known.processors), default=0)
    for one in known.processors:
        rows = sorted((row for row in tasks if row.processor == one.name), key=lambda row: row.start)
        lines.append(f"{one.name:<{width}} |{drawn(rows, span)}| {100 * sum(one.loads) / span:.1f} %")
        named = [row.name if once else f"{row.name} ({_late(row)})" for row in rows]
        lines += [f"{'':<{width}}  {text}" for text in _legend(named)]
    return [*lines, ""]


def _legend(names: Sequence[str]) -> list[str]:
    lines, at = [""], 0
    for n, name in enumerate(names):
        part = f"{LETTERS[n % len(LETTERS)]} {name}"
        if len(lines[at]) + len(part) > WIDTH:
            lines.append("")
            at += 1
        lines[at] += ("; " if lines[at] else "") + part
    return [line for line in lines if line]


def _task(plan: Plan, tasks: Sequence[TaskRow], name: str, times: Mapping[str, float | None]) -> list[str]:
    rows = [row for row in tasks if row.task == name]
    where, lines = {one.part: one.processor for one in tasks}, list[str]()
    for row in rows:
        when = "" if alone(plan) else f"; in period n it works on inference {_late(row)}"
        lines.append(
            f"{row.name} on {row.processor}: from {whole_us(plan, row.start)} us of "
            f"{'a period' if when else 'an inference'} on, {whole_us(plan, row.time)} us, "
            f"then {whole_us(plan, row.copies)} us of copies{when}"
        )
    lines.append("profile (us): " + ", ".join(f"{k} {'-' if t is None else f'{t:,.0f}'}" for k, t in times.items()))
    mine = {row.part for row in rows}
    for one, size in zip(plan.schedule.waiting, plan.part.figures.waiting_bytes, strict=True):
        if one.target in mine:
            lines.append(f"reads {one.source} of {where[one.source]}")
        if one.source in mine:
            lines.append(f"hands to {one.target} on {where[one.target]}, {one.buffers} buffers, {size:,} bytes")
    return lines


PROBLEM = MappingProblem

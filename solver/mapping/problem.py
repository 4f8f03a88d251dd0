"""Problem mapping, as the rest of `solver` sees it, and its plans for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from formulations.mapping.formulation import MappingFormulation
from formulations.mapping.part import MappingPart, Timed, Worked
from formulations.mapping.parts import parts
from formulations.mapping.pipeline import Pipeline, busy
from formulations.mapping.problem import Assignment, Schedule
from formulations.mapping.problem import Mapping as Instance
from instances.errors import InputError
from solver.front import Front
from solver.mapping.board import BoardProblem, whole_us
from solver.mapping.drawn import LETTERS, WIDTH, drawn
from solver.mapping.figures import figures
from solver.mapping.front import front
from solver.mapping.plan import (
    MappingMeasures,
    MappingOptions,
    MappingPlan,
    MappingReplay,
    ProcessorPlan,
    TaskPlan,
    Waiting,
)
from solver.network_show import known_parts
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.problem import front_of_plans
from solver.question import Question
from solver.tables import Column, Sheet
from solver.verdict import Verdict
from solver.words import labels

#: Stages that a task may need: it and its copies take at most a period, and wait for at most one.
_STAGES = 3


class MappingProblem(BoardProblem[MappingPlan]):
    """F5: tasks of a network on the processors of a board."""

    plan = MappingPlan

    def __init__(self) -> None:
        super().__init__(MappingFormulation())
        self.axes = {name: self.measures[name] for name in ("period", "energy")}
        self.others = {"cp-sat": ("milp", "auto"), "exhaustive": ("auto", "exhaustive"), "": ("cp-sat", "auto")}

    def parts(self, question: Question) -> Sequence[MappingPart]:
        """A network on a board; raises InputError for bad pins and profiles."""
        request, aims = self.request(question), question.objectives
        limits = request.demands.limits
        once = "latency" in aims or limits.latency is not None
        cap = any(text.startswith("cap") for text in question.pins)
        if once and cap and "period" not in aims and limits.period is None:
            raise InputError(
                "pin cap: how busy cores are is counted over periods, and one inference alone has none: "
                "add period to the objectives or pin period<=N"
            )
        return [MappingPart.of(request, aims)]

    def options(self, question: Question) -> MappingOptions:
        """What else was asked."""
        request = self.request(question)
        return MappingOptions(
            cap=request.demands.limits.cap, shares=request.demands.shares, pins=question.pins, profile=request.profile,
            time_limit_s=question.time_limit_s, settings=question.settings,
        )  # fmt: skip

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of period and energy."""
        made = front(self, question)
        if not made.plans:
            why = "no plan keeps the pins" if made.proven else "no plan in this time, give a larger --time-limit"
            raise InputError(f"network {question.network.name}: {why}")
        return front_of_plans(self, question, made.plans, proven=made.proven, details=_details)

    # ---- a plan ------------------------------------------------------------------------------------------------------

    def planned(self, verdict: Verdict, question: Question) -> dict[str, Any]:
        """The tasks, when they run, and the results that wait."""
        part, wrong, walked = verdict.part, verdict.disagreements, verdict.walked
        assert isinstance(part, MappingPart)
        said: dict[str, Any] = {
            "pipelined": not part.alone, "measures": None, "replay": MappingReplay(ok=None, latency=0, faults=()),
            "processors": (), "tasks": (), "waiting": (),
        }  # fmt: skip
        if verdict.said.schedule is None or walked is None:
            return said
        made = part.worked(verdict.said.schedule)
        price, mapping = made.price, made.flat.mapping
        return said | {
            "measures": MappingMeasures(period=price.period, energy=price.energy, latency=made.pipeline.latency),
            "replay": MappingReplay(ok=not wrong, latency=walked.counts["latency"], faults=wrong),
            "processors": tuple(
                ProcessorPlan(name=group.name, cores=group.cores, load=load)
                for group, load in zip(mapping.processors, price.loads, strict=True)
            ),
            "tasks": tuple(_tasks(part.instance(verdict.said.schedule), made)),
            "waiting": tuple(_waiting(made)),
        }  # fmt: skip

    def placed(self, plan: MappingPlan, part: MappingPart) -> Timed:
        """Return the assignment of a plan with its starts, stages and buffers."""
        made = part.instance(Schedule((), (), plan.cpu_config))
        at = _assignment(plan, made)
        flat, graph = parts(made, at), parts(made, at).mapping.graph
        edges = [(graph.tasks[i].name, graph.tasks[j].name) for i, j in graph.edges]
        if [(row.source, row.target) for row in plan.waiting] != edges:
            raise InputError(
                f"waiting: the plan has {len(plan.waiting)} edges, the network {len(edges)}, or other ones"
            )
        starts, stages = tuple(row.start for row in plan.tasks), tuple(row.stage for row in plan.tasks)
        buffers = tuple(row.buffers for row in plan.waiting)
        if max(stages) > _STAGES * len(stages):
            raise InputError(f"stages: above {_STAGES} for each of {len(stages)} tasks")
        if part.alone and (any(stages) or any(number != 1 for number in buffers)):
            raise InputError("stages, buffers: one inference alone has no stages and a buffer an edge")
        durations, period = busy(flat.mapping, flat.at), made.price(at, part.limits.cap).period
        ends = [s + period * k + d for s, k, d in zip(starts, stages, durations, strict=True)]
        pipeline = Pipeline(starts, stages, durations, buffers, max(*ends, int(part.alone)))
        return Timed(at, configuration=plan.cpu_config, pipeline=pipeline)

    def able(self, plan: MappingPlan) -> Mapping[str, bool]:
        """Those that know of latency, where it counts."""
        alone = "latency" in plan.objectives or any(pin.startswith("latency") for pin in plan.options.pins)
        return {name: proves for name, proves in super().able(plan).items() if not alone or "clustering" not in name}

    def status(self, plan: MappingPlan) -> list[str]:
        """Return what is known, a part each: status, value, bound, gap, energy, latency, and simulation."""
        parts = known_parts(plan)
        if plan.measures is None:
            return parts
        cores = ",".join(map(str, plan.cpu_config))
        every, mj = f"every {whole_us(plan, plan.measures.period)} us", f"{plan.measures.energy / 1e12:,.1f} mJ"
        took = whole_us(plan, plan.measures.latency)
        if plan.pipelined:
            said = f"an inference {every}, {mj} each, {took} us from release to end"
        else:
            said = f"one inference alone in {took} us, {mj}; in a pipeline one {every}"
        parts += [
            f"cores ({cores}): {said}",
            "simulation agrees" if plan.replay.ok else "simulation does not agree",
        ]
        return parts

    def sheet(self, plan: MappingPlan) -> Sheet:
        """Return the table of tasks."""
        rows = plan.tasks
        late = [Column("inference", [_late(row) for row in rows], "in period n the task works on this one", words=True)]
        names = [_label(plan, row) for row in rows]
        return Sheet(
            [
                Column("task", labels(names, plan.network_data.layers), words=True),
                Column("processor", [row.processor for row in rows], words=True),
                Column("start (us)", [whole_us(plan, row.start) for row in rows],
                       f"from the begin of {'a period' if plan.pipelined else 'the inference'} on"),
                Column("runs (us)", [whole_us(plan, row.time) for row in rows]),
                Column("copies (us)", [whole_us(plan, row.copies) for row in rows], "then, to other processors"),
                *(late if plan.pipelined else []),
            ]
        )  # fmt: skip

    def pictures(self, plan: MappingPlan, others: Mapping[str, MappingPlan]) -> Pictures:
        """Processors over time, and their load."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

    def details(self, plan: MappingPlan, layer: str | None) -> Iterator[str]:
        """Return a task with what it reads and hands on; or one period of every processor, and all tasks."""
        if layer is None:
            yield from _processors(plan)
        for name in dict.fromkeys(row.task for row in plan.tasks if layer in (None, row.task)):
            yield from _task(plan, name)


def _assignment(plan: MappingPlan, made: Instance) -> Assignment:
    """The place of every task; raises InputError where it cannot be."""
    graph, names = made.graph, {group.name: p for p, group in enumerate(made.processors)}
    places = {place: a for a, place in enumerate(made.places)}
    groups = [(task, list(rows)) for task, rows in groupby(plan.tasks, key=lambda row: row.task)]
    if [task for task, _ in groups] != [task.name for task in graph.tasks]:
        raise InputError(f"tasks: the plan has {len(groups)}, the network {len(graph.tasks)}, or other ones")
    found = []
    for i, (task, rows) in enumerate(groups):
        place = places.get(tuple((names.get(row.processor, -1), row.share) for row in rows), -1)
        if place not in made.able[i]:
            able = ", ".join(_place(made, a) for a in made.able[i])
            said = " and ".join(f"{row.processor} ({row.share} of {made.shares})" for row in rows)
            where = said if made.split else rows[0].processor
            raise InputError(f"task {task}: it cannot run on {where}, but on {able}")
        found.append(place)
    return tuple(found)


def _place(made: Instance, a: int) -> str:
    place = [(made.processors[p].name, k) for p, k in made.places[a]]
    return place[0][0] if len(place) == 1 else "+".join(f"{name}:{k}" for name, k in place)


def _tasks(whole: Instance, made: Worked) -> Iterator[TaskPlan]:
    """A row for every task, or part of one."""
    mapping, pipeline = made.flat.mapping, made.pipeline
    for i, ((task, share), p) in enumerate(zip(made.flat.shares, made.flat.at, strict=True)):
        took = mapping.times[i][p] or 0
        yield TaskPlan(
            task=whole.graph.tasks[task].name, processor=mapping.processors[p].name, share=share,
            start=pipeline.starts[i], stage=pipeline.stages[i], time=took, copies=pipeline.durations[i] - took,
        )  # fmt: skip


def _waiting(made: Worked) -> Iterator[Waiting]:
    """A row for every edge."""
    graph, size = made.flat.mapping.graph, made.flat.mapping.element_bytes
    for (i, j), number in zip(graph.edges, made.pipeline.buffers, strict=True):
        source, target = graph.tasks[i], graph.tasks[j]
        yield Waiting(
            source=source.name, target=target.name, buffers=number, bytes=number * source.results * size
        )  # fmt: skip


# ---- for people ------------------------------------------------------------------------------------------------------


def _details(plan: MappingPlan) -> Mapping[str, str]:
    assert plan.measures is not None
    gap = "no bound" if plan.gap is None else f"{100 * plan.gap:.3g} %"
    energy = f"{plan.measures.energy / 1e12:,.2f}"
    return {"energy (mJ)": energy, "energy gap": gap, "cores": ",".join(map(str, plan.cpu_config))}


def _label(plan: MappingPlan, row: TaskPlan) -> str:
    """The task, and the share of it that a part is."""
    return row.task if row.share == plan.options.shares else f"{row.task} {row.share}/{plan.options.shares}"


def _late(row: TaskPlan) -> str:
    return f"n - {row.stage}" if row.stage else "n"


def _processors(plan: MappingPlan) -> list[str]:
    """One period of every processor, or one inference."""
    shown = "one period" if plan.pipelined else "one inference"
    lines = [f"{shown}; a letter is a task, = its copies to other processors, . idle", ""]

    def named(row: TaskPlan) -> str:
        return _label(plan, row) + (f" ({_late(row)})" if plan.pipelined else "")

    width = max((len(one.name) for one in plan.processors), default=0)
    for one in plan.processors:
        rows = sorted((row for row in plan.tasks if row.processor == one.name), key=lambda row: row.start)
        percent = 100 * one.load / _span(plan)
        lines.append(f"{one.name:<{width}} |{drawn(rows, _span(plan))}| {percent:.1f} %")
        lines += [f"{'':<{width}}  {text}" for text in _legend(rows, named)]
    return [*lines, ""]


def _span(plan: MappingPlan) -> int:
    """Ticks of what is shown."""
    assert plan.measures is not None
    return plan.measures.period if plan.pipelined else max(1, plan.measures.latency)


def _legend(rows: Sequence[TaskPlan], named: Callable[[TaskPlan], str]) -> list[str]:
    parts = [f"{LETTERS[n % len(LETTERS)]} {named(row)}" for n, row in enumerate(rows)]
    lines, at = [""], 0
    for part in parts:
        if len(lines[at]) + len(part) > WIDTH:
            lines.append("")
            at += 1
        lines[at] += ("; " if lines[at] else "") + part
    return [line for line in lines if line]


def _task(plan: MappingPlan, name: str) -> list[str]:
    rows = [row for row in plan.tasks if row.task == name]
    where, lines = {_part(plan, one): one.processor for one in plan.tasks}, list[str]()
    for row in rows:
        when = f"; in period n it works on inference {_late(row)}" if plan.pipelined else ""
        lines.append(
            f"{_label(plan, row)} on {row.processor}: from {whole_us(plan, row.start)} us of "
            f"{'a period' if when else 'an inference'} on, {whole_us(plan, row.time)} us, "
            f"then {whole_us(plan, row.copies)} us of copies{when}"
        )
    times = plan.profile.get(name, {}).items()
    lines.append("profile (us): " + ", ".join(f"{k} {'-' if t is None else f'{t:,.0f}'}" for k, t in times))
    mine = {_part(plan, row) for row in rows}
    for one in plan.waiting:
        if one.target in mine:
            lines.append(f"reads {one.source} of {where.get(one.source, '?')}")
        if one.source in mine:
            lines.append(
                f"hands to {one.target} on {where.get(one.target, '?')}, {one.buffers} buffers, {one.bytes:,} bytes"
            )
    return lines


def _part(plan: MappingPlan, row: TaskPlan) -> str:
    """The name of a task, or of a part of one, where results wait."""
    return row.task if row.share == plan.options.shares else f"{row.task}@{row.processor}"


PROBLEM = MappingProblem

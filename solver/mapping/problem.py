"""Problem mapping, as the rest of `solver` sees it, and its plans for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from instances.errors import InputError
from solver.front import Front
from solver.mapping.ask import MappingSetting, ask
from solver.mapping.board import BoardProblem, whole_us
from solver.mapping.check import mapping_faults
from solver.mapping.drawn import LETTERS, WIDTH, drawn
from solver.mapping.engines import MAPPING_ENGINES
from solver.mapping.front import front
from solver.mapping.plan import MappingPlan, TaskPlan
from solver.network_show import known_parts
from solver.problem import front_of_plans
from solver.question import Question
from solver.report import Column, Sheet
from solver.words import labels

__all__ = ["MappingProblem"]


class MappingProblem(BoardProblem[MappingPlan]):
    """F5: tasks of a network on the processors of a board."""

    name = "mapping"
    summary = "F5: which processor of a board runs which task of a network, in a pipeline"
    plan = MappingPlan
    ways = MAPPING_ENGINES
    measures = {"period": "ticks", "energy": "fJ", "latency": "ticks"}
    usual = "period"
    pins = {
        "cpu_config": "configuration of the cores: cpu_config=1,1,1,1; by default all are tried",
        "cap": "percent of the cores that may be busy: cap=50",
        "period": "most ticks from one inference to the next: period<=20000",
        "latency": "most ticks of one inference alone: latency<=20000",
        "energy": "most fJ an inference: energy<=100000000000000",
        "split": "split=on: a task may be divided between two processors, in quarters; split=8: in eighths",
        "TASK": "the processor of a task by its name: conv1=gpu",
    }
    front_engines = True
    axes = {"period": "ticks", "energy": "fJ"}
    quick = ("heft", "peft", "cpop", "single", "descent")
    others = {"cp-sat": ("milp", "auto"), "exhaustive": ("auto", "exhaustive"), "": ("cp-sat", "auto")}

    def ask(self, question: Question) -> MappingSetting:
        """A network on a board."""
        return ask(question)

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of period and energy."""
        made = front(question)
        if not made.plans:
            why = "no plan keeps the pins" if made.proven else "no plan in this time, give a larger --time-limit"
            raise InputError(f"network {question.network.name}: {why}")
        return front_of_plans(self, question, made.plans, proven=made.proven, details=_details)

    def derived(self, plan: MappingPlan, setting: Any) -> Iterator[str]:
        """Simulate again."""
        return mapping_faults(plan, setting)

    def able(self, plan: MappingPlan) -> Mapping[str, bool]:
        """Those that know of latency, where it counts."""
        alone = "latency" in plan.objectives or any(pin.startswith("latency") for pin in plan.options.pins)
        return {name: one.proves for name, one in MAPPING_ENGINES.items() if not alone or one.alone}

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

    def details(self, plan: MappingPlan, layer: str | None) -> Iterator[str]:
        """Return a task with what it reads and hands on; or one period of every processor, and all tasks."""
        if layer is None:
            yield from _processors(plan)
        for name in dict.fromkeys(row.task for row in plan.tasks if layer in (None, row.task)):
            yield from _task(plan, name)


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

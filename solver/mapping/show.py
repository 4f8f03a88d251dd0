"""A mapping for people: a table of tasks, and one period of every processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from solver.mapping.plan import MappingPlan, TaskPlan
from solver.network_show import known_parts
from solver.report import Column, Sheet
from solver.words import labels

__all__ = ["Drawn", "drawn", "mapping_details", "mapping_status", "mapping_table"]

#: Characters of a period.
_WIDTH = 96


def _us(plan: MappingPlan, ticks: int) -> str:
    return f"{ticks * plan.machine_data.tick_ps / 1e6:,.0f}"


def mapping_status(plan: MappingPlan) -> list[str]:
    """Return what is known, a part each: status, value, bound, gap, energy, latency, and simulation."""
    parts = known_parts(plan)
    if plan.measures is None:
        return parts
    cores = ",".join(map(str, plan.cpu_config))
    every, mj = f"every {_us(plan, plan.measures.period)} us", f"{plan.measures.energy / 1e12:,.1f} mJ"
    took = _us(plan, plan.measures.latency)
    if plan.pipelined:
        said = f"an inference {every}, {mj} each, {took} us from release to end"
    else:
        said = f"one inference alone in {took} us, {mj}; in a pipeline one {every}"
    parts += [
        f"cores ({cores}): {said}",
        "simulation agrees" if plan.replay.ok else "simulation does not agree",
    ]
    return parts


def mapping_table(plan: MappingPlan) -> Sheet:
    """Return the table of tasks."""
    rows = plan.tasks
    late = [Column("inference", [_late(row) for row in rows], "in period n the task works on this one", words=True)]
    names = [_label(plan, row) for row in rows]
    return Sheet(
        [
            Column("task", labels(names, plan.network_data.layers), words=True),
            Column("processor", [row.processor for row in rows], words=True),
            Column("start (us)", [_us(plan, row.start) for row in rows],
                   f"from the begin of {'a period' if plan.pipelined else 'the inference'} on"),
            Column("runs (us)", [_us(plan, row.time) for row in rows]),
            Column("copies (us)", [_us(plan, row.copies) for row in rows], "then, to other processors"),
            *(late if plan.pipelined else []),
        ]
    )  # fmt: skip


def _label(plan: MappingPlan, row: TaskPlan) -> str:
    """The task, and the share of it that a part is."""
    return row.task if row.share == plan.options.shares else f"{row.task} {row.share}/{plan.options.shares}"


def _late(row: TaskPlan) -> str:
    return f"n - {row.stage}" if row.stage else "n"


def mapping_details(plan: MappingPlan, task: str | None = None) -> Iterator[str]:
    """Return a task with what it reads and hands on; or one period of every processor, and all tasks."""
    if task is None:
        yield from _processors(plan)
    for name in dict.fromkeys(row.task for row in plan.tasks if task in (None, row.task)):
        yield from _task(plan, name)


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


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Drawn(Protocol):
    """What `drawn` needs of a task."""

    @property
    def start(self) -> int:
        """When it begins."""

    @property
    def time(self) -> int:
        """What it computes."""

    @property
    def copies(self) -> int:
        """What it copies then."""


def drawn(rows: Sequence[Drawn], length: int) -> str:
    """Return a line of what runs from 0 to `length`: a character is what runs in the middle of its part."""
    line = ["."] * _WIDTH
    for column in range(_WIDTH):
        now = (2 * column + 1) * length // (2 * _WIDTH)
        for number, row in enumerate(rows):
            if row.start <= now < row.start + row.time:
                line[column] = _LETTERS[number % len(_LETTERS)]
            elif row.start + row.time <= now < row.start + row.time + row.copies:
                line[column] = "="
    return "".join(line)


def _legend(rows: Sequence[TaskPlan], named: Callable[[TaskPlan], str]) -> list[str]:
    parts = [f"{_LETTERS[n % len(_LETTERS)]} {named(row)}" for n, row in enumerate(rows)]
    lines, at = [""], 0
    for part in parts:
        if len(lines[at]) + len(part) > _WIDTH:
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
            f"{_label(plan, row)} on {row.processor}: from {_us(plan, row.start)} us of "
            f"{'a period' if when else 'an inference'} on, {_us(plan, row.time)} us, "
            f"then {_us(plan, row.copies)} us of copies{when}"
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

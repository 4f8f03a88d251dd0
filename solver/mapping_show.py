"""A mapping for people: a table of tasks, and one period of every processor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from instances.errors import InputError
from solver.mapping_plan import MappingPlan, TaskPlan
from solver.network_show import known_parts

__all__ = ["Drawn", "drawn", "mapping_rows", "mapping_status", "show_mapping"]

_HEADS = ("task", "processor", "start (us)", "runs (us)", "copies (us)", "inference")
#: Characters of a period.
_WIDTH = 96


def _us(plan: MappingPlan, ticks: int) -> str:
    return f"{ticks * plan.machine_data.tick_ps / 1e6:,.0f}"


def mapping_status(plan: MappingPlan) -> str:
    """Return one line that says what is known: status, value, bound, gap, energy, latency, and simulation."""
    parts = known_parts(plan)
    if plan.measures is None:
        return "; ".join(parts)
    cores = ",".join(map(str, plan.cpu_config))
    parts += [
        f"cores ({cores}): an inference every {_us(plan, plan.measures.period)} us, "
        f"{plan.measures.energy / 1e12:,.1f} mJ each, {_us(plan, plan.measures.latency)} us from release to end",
        "simulation agrees" if plan.replay.ok else "simulation does not agree",
    ]
    return "; ".join(parts)


def mapping_rows(plan: MappingPlan) -> tuple[Sequence[str], list[list[str]]]:
    """Return heads and rows of the table of tasks."""
    rows = [
        [row.task, row.processor, _us(plan, row.start), _us(plan, row.time), _us(plan, row.copies), _late(row)]
        for row in plan.tasks
    ]
    return _HEADS, rows


def _late(row: TaskPlan) -> str:
    return f"n - {row.stage}" if row.stage else "n"


def show_mapping(plan: MappingPlan, task: str | None = None) -> str:
    """Return one period of every processor, or one task with what it reads and hands on.

    Raises
    ------
    InputError
        If the plan has no such task.
    """
    if task is not None:
        return "\n".join(_task(plan, task))
    if plan.measures is None:
        return mapping_status(plan)
    lines = [mapping_status(plan), "", "one period; a letter is a task, = its copies to other processors, . idle", ""]
    width = max((len(one.name) for one in plan.processors), default=0)
    for one in plan.processors:
        rows = sorted((row for row in plan.tasks if row.processor == one.name), key=lambda row: row.start)
        percent = 100 * one.load / plan.measures.period
        lines.append(f"{one.name:<{width}} |{drawn(rows, plan.measures.period)}| {percent:.1f} %")
        lines += [f"{'':<{width}}  {text}" for text in _legend(rows)]
    return "\n".join(lines)


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


def _legend(rows: Sequence[TaskPlan]) -> list[str]:
    parts = [f"{_LETTERS[n % len(_LETTERS)]} {row.task} ({_late(row)})" for n, row in enumerate(rows)]
    lines, at = [""], 0
    for part in parts:
        if len(lines[at]) + len(part) > _WIDTH:
            lines.append("")
            at += 1
        lines[at] += ("; " if lines[at] else "") + part
    return [line for line in lines if line]


def _task(plan: MappingPlan, name: str) -> list[str]:
    row = next((row for row in plan.tasks if row.task == name), None)
    if row is None:
        raise InputError(f"plan of {plan.network} has no task {name!r}; it has {', '.join(r.task for r in plan.tasks)}")
    where = {one.task: one.processor for one in plan.tasks}
    lines = [
        f"{row.task} on {row.processor}: from {_us(plan, row.start)} us of a period on, {_us(plan, row.time)} us, "
        f"then {_us(plan, row.copies)} us of copies; in period n it works on inference {_late(row)}",
        "profile (us): "
        + ", ".join(f"{k} {'-' if t is None else f'{t:,.0f}'}" for k, t in plan.profile.get(row.task, {}).items()),
    ]
    for one in plan.waiting:
        if one.target == name:
            lines.append(f"reads {one.source} of {where.get(one.source, '?')}")
        if one.source == name:
            lines.append(
                f"hands to {one.target} on {where.get(one.target, '?')}, {one.buffers} buffers, {one.bytes:,} bytes"
            )
    return lines

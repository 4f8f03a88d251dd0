"""What is drawn of plans of several applications: responses beside deadlines, processors over one inference of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from solver.plan.figures import Axis, Bars, Figure, Series
from solver.plan.plan import Plan
from solver.show.common import gantt, us


@dataclass(frozen=True)
class ApplicationRow:
    """An application, with what a plan says of it in ticks."""

    name: str
    period_us: int
    deadline_us: int
    alone: int
    """An inference that nothing else delays."""
    response: int
    """From release to the last result at most, by the plan's rule."""
    seen: int
    """The longest response in the simulation."""


def rows_of(plan: Plan) -> list[ApplicationRow]:
    """Return the applications, the most urgent one first; nothing without a schedule."""
    if not plan.decided:
        return []
    part = plan.part
    return [
        ApplicationRow(
            one.name, one.period_us, one.deadline_us, alone, part.measures[f"response:{one.name}"],
            part.replay.counts.get(one.name, 0) if part.replay else 0,
        )
        for one, alone in zip(plan.network_data.applications, part.figures.alone, strict=True)
    ]  # fmt: skip


def figures(plan: Plan, others: Mapping[str, Plan]) -> list[Figure]:
    """Return all figures."""
    if plan.measures is None:
        return []
    names = [one.name for one in rows_of(plan)]
    work = [(f"{_application(names, row.task)}, {row.processor}", _short(row.task), row) for row in plan.layers]
    lanes = [
        lane
        for name in names
        for processor in plan.part.figures.processors
        if (lane := f"{name}, {processor.name}") in {name for name, *_ in work}
    ]
    caption = (
        "One inference of each application from its release on, if nothing delays it: each task on its processor, then "
        "its copies to others."
    )
    return [
        _responses({plan.engine: plan, **others}),
        gantt("processors", "Processors over time", caption, plan, lanes, work),
    ]


def _application(names: list[str], task: str) -> str:
    """The application of a task, by the name in front of it."""
    return next((name for name in names if task.startswith(f"{name}:")), "")


def _short(task: str) -> str:
    return task.partition(":")[2] or task


def _responses(plans: Mapping[str, Plan]) -> Bars:
    """The response of every application, alone and what others add; the mark is its deadline."""
    bars = [(one, engine, plan) for engine, plan in plans.items() for one in rows_of(plan)]
    order = list(dict.fromkeys(one.name for one, *_ in bars))
    bars.sort(key=lambda bar: order.index(bar[0].name))
    alone = tuple(us(plan, one.alone) for one, _, plan in bars)
    more = tuple(us(plan, one.response - one.alone) for one, _, plan in bars)
    return Bars(
        "responses", "Responses and deadlines",
        "From release to the last result, at most: what the application takes alone, and what others may add. The mark "
        "is the deadline.",
        Axis("time (us)"), tuple(one.name for one, *_ in bars),
        (Series("alone", alone), Series("delayed by others", more)),
        tuple(engine for _, engine, _ in bars) if len(plans) > 1 else (),
        tuple(float(one.deadline_us) for one, *_ in bars), "deadline",
    )  # fmt: skip

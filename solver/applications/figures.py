"""What is drawn of plans of several applications: responses beside deadlines, processors over one inference of each."""

from __future__ import annotations

from collections.abc import Mapping

from solver.applications.plan import ApplicationsPlan
from solver.pages.common import gantt, us
from solver.pages.data import Axis, Bars, Figure, Series


def figures(plan: ApplicationsPlan, others: Mapping[str, ApplicationsPlan]) -> list[Figure]:
    """Return all figures."""
    if plan.measures is None:
        return []
    work = [(f"{_application(plan, row.task)}, {row.processor}", _short(row.task), row) for row in plan.tasks]
    lanes = [
        lane
        for one in plan.applications
        for processor in plan.processors
        if (lane := f"{one.name}, {processor.name}") in {name for name, *_ in work}
    ]
    caption = (
        "One inference of each application from its release on, if nothing delays it: each task on its processor, then "
        "its copies to others."
    )
    return [
        _responses({plan.engine: plan, **others}),
        gantt("processors", "Processors over time", caption, plan, lanes, work),
    ]


def _application(plan: ApplicationsPlan, task: str) -> str:
    """The application of a task, by the name in front of it."""
    return next((one.name for one in plan.applications if task.startswith(f"{one.name}:")), "")


def _short(task: str) -> str:
    return task.partition(":")[2] or task


def _responses(plans: Mapping[str, ApplicationsPlan]) -> Bars:
    """The response of every application, alone and what others add; the mark is its deadline."""
    bars = [(one, engine, plan) for engine, plan in plans.items() for one in plan.applications]
    order = list(dict.fromkeys(one.name for one, *_ in bars))
    bars.sort(key=lambda bar: order.index(bar[0].name))
    alone = tuple(us(plan, one.alone or 0) for one, _, plan in bars)
    more = tuple(us(plan, (one.response or 0) - (one.alone or 0)) for one, _, plan in bars)
    return Bars(
        "responses", "Responses and deadlines",
        "From release to the last result, at most: what the application takes alone, and what others may add. The mark "
        "is the deadline.",
        Axis("time (us)"), tuple(one.name for one, *_ in bars),
        (Series("alone", alone), Series("delayed by others", more)),
        tuple(engine for _, engine, _ in bars) if len(plans) > 1 else (),
        tuple(float(one.deadline_us) for one, *_ in bars), "deadline",
    )  # fmt: skip

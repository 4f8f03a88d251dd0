"""What is drawn of mappings: processors over a period (or one inference), and how busy they are."""

from __future__ import annotations

from collections.abc import Mapping

from solver.mapping.plan import MappingPlan, TaskPlan
from solver.pages.common import gantt, us
from solver.pages.data import Axis, Bars, Figure, Series


def figures(plan: MappingPlan, others: Mapping[str, MappingPlan]) -> list[Figure]:
    """Return all figures."""
    if plan.measures is None:
        return []
    lanes = [one.name for one in plan.processors]
    what = "One period of the pipeline" if plan.pipelined else "One inference"
    caption = (
        f"{what}: each task on its processor, then its copies to others. "
        + ("In one period tasks work on different inferences. " if plan.pipelined else "")
        + "Blank is idle."
    )
    work = [(row.processor, _name(plan, row), row) for row in plan.tasks]
    return [
        gantt("processors", "Processors over time", caption, plan, lanes, work),
        _loads({plan.engine: plan, **others}),
    ]


def _name(plan: MappingPlan, row: TaskPlan) -> str:
    return row.task if row.share == plan.options.shares else f"{row.task} {row.share}/{plan.options.shares}"


def _loads(plans: Mapping[str, MappingPlan]) -> Bars:
    """How long every processor is busy in a period, beside other engines'; the mark is the period."""
    bars = [(group.name, engine, one, group) for engine, one in plans.items() for group in one.processors]
    order = list(dict.fromkeys(name for name, *_ in bars))
    bars.sort(key=lambda bar: order.index(bar[0]))
    periods = tuple(us(one, one.measures.period) if one.measures else None for _, _, one, _ in bars)
    return Bars(
        "load", "Load of the processors", "Busy time in a period of the pipeline; the mark is the period.",
        Axis("time (us)"), tuple(name for name, *_ in bars),
        (Series("busy", tuple(us(one, group.load) for _, _, one, group in bars)),),
        tuple(engine for _, engine, *_ in bars) if len(plans) > 1 else (), periods, "period",
    )  # fmt: skip

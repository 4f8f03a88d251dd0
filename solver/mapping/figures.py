"""What is drawn of mappings: processors over a period (or one inference), and how busy they are."""

from __future__ import annotations

from collections.abc import Mapping

from solver.pages.common import gantt, us
from solver.pages.data import Axis, Bars, Figure, Series
from solver.plan import Plan


def alone(plan: Plan) -> bool:
    """Whether a plan is of one inference alone, and not of a pipeline."""
    return "latency" in plan.part.measures


def figures(plan: Plan, others: Mapping[str, Plan]) -> list[Figure]:
    """Return all figures."""
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
        _loads({plan.engine: plan, **others}),
    ]


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

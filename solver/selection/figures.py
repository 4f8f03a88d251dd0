"""What is drawn of selections: threads of the pipeline over an image, times by layer, loss of accuracy by layer."""

from __future__ import annotations

from collections.abc import Mapping

from formulations.selection.figures import LayerFigures
from hwmodels.selection.schedule import Choice
from solver.pages.common import stacked, us
from solver.pages.data import Axis, Box, Boxes, Figure
from solver.plan import Plan


def rows_of(plan: Plan) -> list[tuple[Choice, LayerFigures]]:
    """Return what is chosen for every layer, and what it takes; nothing without a schedule."""
    return list(zip(plan.schedule.choices, plan.part.figures.layers, strict=True)) if plan.decided else []


def figures(plan: Plan, others: Mapping[str, Plan]) -> list[Figure]:
    """Return all figures."""
    if plan.measures is None:
        return []
    plans = {plan.engine: plan, **others}
    times = {
        engine: {
            row.layer: {"computes": us(plan, row.time), "converts and hands over": us(plan, row.between)}
            for _, row in rows_of(one)
        }
        for engine, one in plans.items()
    }  # fmt: skip
    made: list[Figure] = [
        _threads(plan),
        stacked(
            "time-by-layer", "Time by layer", "Of an image; conversions and hand-overs beside.", "time (us)", times
        ),
    ]
    if any(row.loss_ppm for _, row in rows_of(plan)):
        loss = {engine: {row.layer: {"loss": row.loss_ppm} for _, row in rows_of(one)} for engine, one in plans.items()}
        caption = "Millionths of accuracy that the variant of a layer costs."
        made.append(stacked("loss-by-layer", "Loss by layer", caption, "loss of accuracy (ppm)", loss))
    return made


def _threads(plan: Plan) -> Boxes:
    """Every thread with the layers of its stages, one after the other as the network has them."""
    groups, boxes, lanes = ("computes", "converts and hands over"), list[Box](), list[tuple[float, str]]()
    for y, thread in enumerate(plan.part.figures.threads):
        lanes.append((float(y), f"thread {y + 1}: {', '.join(thread.stages)}"))
        now = 0.0
        for one, row in (pair for pair in rows_of(plan) if pair[0].stage in thread.stages):
            for group, ticks in enumerate((row.time, row.between)):
                if ticks:
                    end, said = now + us(plan, ticks), f"{one.variant} on {one.stage}, {us(plan, ticks):,.1f} us"
                    boxes.append(Box(now, end, y - 0.4, y + 0.4, row.layer, group, said))
                    now = end
    caption = (
        "What a thread does for one image; threads work on different images at the same time, so the longest one "
        "decides the period."
    )
    axis = Axis("", ticks=tuple(lanes), downwards=True, limits=(-0.6, len(lanes) - 0.4))
    return Boxes(
        "threads", "Threads of the pipeline", caption, Axis("time (us)"), axis, groups, tuple(boxes), len(lanes)
    )

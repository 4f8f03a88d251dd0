"""What is drawn of plans for a small engine: bytes by layer and kind, runs and additions, room in the banks."""

from __future__ import annotations

from collections.abc import Mapping

from solver.pages.common import stacked
from solver.pages.data import Axis, Bars, Figure, Series
from solver.plan import PartPlan, Plan

_KINDS = {
    "inputs": "inputs", "weights": "weights", "spilled": "sums spilled",
    "reloaded": "sums reloaded", "results": "results",
}  # fmt: skip


def figures(plan: Plan, others: Mapping[str, Plan]) -> list[Figure]:
    """Return all figures."""
    plans = {plan.engine: plan, **others}

    def rows(words: Mapping[str, str]) -> dict[str, dict[str, dict[str, float]]]:
        return {engine: {name: _of(counts, words) for name, counts in _counted(one)} for engine, one in plans.items()}

    steps = {"runs": "runs", "adds": "additions of groups of maps"}
    made: list[Figure] = [
        stacked("bytes-by-layer", "Bytes by layer", "To and from DRAM, by what moves.", "bytes", rows(_KINDS)),
        stacked(
            "steps-by-layer",
            "Runs by layer",
            "Runs of the engine, and additions of partial maps.",
            "steps",
            rows(steps),
        ),
    ]
    engine = plan.machine_data.engine
    if engine is not None:
        mine = list(_counted(plan))
        made.append(
            Bars(
                "banks", "Room in the banks", "The fullest bank of every layer; the mark is the size of a bank.",
                Axis("bytes"), tuple(name for name, _ in mine),
                (Series("fullest bank", tuple(counts["peak_bytes"] for _, counts in mine)),),
                marks=tuple(engine.bank_bytes for _ in mine), marked="size of a bank",
            )
        )  # fmt: skip
    return made


def counted(row: PartPlan) -> dict[str, int]:
    """Return what a layer takes: measures, bytes by kind, the fullest bank; nothing without a schedule."""
    if row.schedule is None:
        return {}
    return {**row.measures, **row.terms["bytes"], "peak_bytes": row.figures.peak_bytes}


def _counted(plan: Plan) -> list[tuple[str, Mapping[str, int]]]:
    return [(row.name, counted(row)) for row in plan.parts if row.schedule is not None]


def _of(counts: Mapping[str, int], words: Mapping[str, str]) -> dict[str, float]:
    return {said: counts[name] for name, said in words.items()}

"""What is drawn of plans for a small engine: bytes by layer and kind, runs and additions, room in the banks."""

from __future__ import annotations

from collections.abc import Mapping

from solver.pages.common import stacked
from solver.pages.data import Axis, Bars, Figure, Series
from solver.partial_engine.plan import EngineCounts, EnginePlan

_KINDS = {
    "inputs": "inputs", "weights": "weights", "spilled": "sums spilled",
    "reloaded": "sums reloaded", "results": "results",
}  # fmt: skip


def figures(plan: EnginePlan, others: Mapping[str, EnginePlan]) -> list[Figure]:
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
                (Series("fullest bank", tuple(counts.peak_bytes for _, counts in mine)),),
                marks=tuple(engine.bank_bytes for _ in mine), marked="size of a bank",
            )
        )  # fmt: skip
    return made


def _counted(plan: EnginePlan) -> list[tuple[str, EngineCounts]]:
    return [(row.layer, row.counts) for row in plan.layers if row.counts is not None]


def _of(counts: EngineCounts, words: Mapping[str, str]) -> dict[str, float]:
    return {said: getattr(counts, name) for name, said in words.items()}

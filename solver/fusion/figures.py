"""What is drawn of fusion plans: groups over the network, what stays on chip, bytes by group, the roofline."""

from __future__ import annotations

from collections.abc import Mapping

from solver.fusion.plan import FusionGroup, FusionPlan
from solver.joint.figures import MOVED, on_chip
from solver.pages.common import stacked
from solver.pages.data import Figure
from solver.pages.network import graph
from solver.pages.roofline import Rate, roofline


def figures(plan: FusionPlan, others: Mapping[str, FusionPlan]) -> list[Figure]:
    """Return all figures."""
    plans = {plan.engine: plan, **others}
    groups = {row.layer: row.layers for row in plan.layers}
    notes = {row.layer: _note(row) for row in plan.layers}
    caption = (
        "Operators of a frame run together, strip by strip; the others of a colour by themselves. Operators of no "
        "colour move nothing of their own."
    )
    bytes_ = {
        engine: {row.layer: {words: row.by_operand.get(o, 0) for o, words in MOVED.items()} for row in one.layers}  # type: ignore[call-overload]
        for engine, one in plans.items()
    }
    rates = {
        engine: [Rate(row.layer, row.macs, row.bytes, row.time_ticks) for row in one.layers]
        for engine, one in plans.items()
    }
    rows = [(row.layer, row.on_chip, row.banks, row.occupancy_bytes) for row in plan.layers]
    return [
        graph("groups", "Groups over the network", caption, plan.network_data, groups, notes),
        on_chip(plan.machine_data, rows, "group", "strips, weights and tiles"),
        stacked("bytes-by-group", "Bytes by group", "To and from DRAM, by what moves.", "bytes", bytes_),
        roofline(plan.machine_data, rates, "group"),
    ]


def _note(row: FusionGroup) -> str:
    how = f"strips in {row.visits} visits" if row.strips else "by itself"
    return f"{how}, {row.bytes:,} bytes"

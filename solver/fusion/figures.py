"""What is drawn of fusion plans: groups over the network, what stays on chip, bytes by group, the roofline."""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.schedule import FusedRun
from solver.joint.figures import MOVED, on_chip
from solver.joint.rows import RunRow, rows_of
from solver.pages.common import stacked
from solver.pages.data import Figure
from solver.pages.network import graph
from solver.pages.roofline import Rate, roofline
from solver.plan import Plan


def figures(plan: Plan, others: Mapping[str, Plan]) -> list[Figure]:
    """Return all figures."""
    rows = rows_of(plan)
    plans = {plan.engine: rows, **{engine: rows_of(one) for engine, one in others.items()}}
    groups = {row.name: row.layers for row in rows}
    notes = {row.name: _note(row) for row in rows}
    caption = (
        "Operators of a frame run together, strip by strip; the others of a colour by themselves. Operators of no "
        "colour move nothing of their own."
    )
    bytes_ = {
        engine: {row.name: {words: row.figures.bytes.get(o, 0) for o, words in MOVED.items()} for row in mine}
        for engine, mine in plans.items()
    }
    rates = {
        engine: [Rate(row.name, row.figures.macs, row.figures.moved, row.figures.ticks) for row in mine]
        for engine, mine in plans.items()
    }
    return [
        graph("groups", "Groups over the network", caption, plan.network_data, groups, notes),
        on_chip(plan.machine_data, rows, "group", "strips, weights and tiles"),
        stacked("bytes-by-group", "Bytes by group", "To and from DRAM, by what moves.", "bytes", bytes_),
        roofline(plan.machine_data, rates, "group"),
    ]


def _note(row: RunRow) -> str:
    how = f"strips in {row.figures.visits} visits" if isinstance(row.run, FusedRun) else "by itself"
    return f"{how}, {row.figures.moved:,} bytes"

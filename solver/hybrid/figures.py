"""What is drawn of hybrid plans: groups over the network, times and bytes by group."""

from __future__ import annotations

from collections.abc import Mapping

from solver.hybrid.rows import rows_of
from solver.pages.common import stacked, us
from solver.pages.data import Figure
from solver.pages.network import graph
from solver.plan import Plan


def figures(plan: Plan, others: Mapping[str, Plan]) -> list[Figure]:
    """Return all figures."""
    plans = {engine: rows_of(one) for engine, one in {plan.engine: plan, **others}.items()}
    rows = plans[plan.engine]
    if not rows:
        return []
    groups = {row.name: tuple(stage.name for stage in row.stages) for row in rows}
    notes = {row.name: f"{row.pieces} pieces of {row.columns} x {row.rows}, {row.bytes:,} bytes" for row in rows}
    caption = (
        "Operators of a frame run together, piece by piece if there is more than one piece. Operators of no colour "
        "move nothing of their own."
    )
    return [
        graph("groups", "Groups over the network", caption, plan.network_data, groups, notes),
        stacked(
            "time-by-group", "Time by group", "Computing every number once, and the time beyond that.", "time (us)",
            {
                engine: {
                    row.name: {
                        "computes once": us(plan, row.ticks - row.delay),
                        "waits, and computes again": us(plan, row.delay),
                    }
                    for row in mine
                }
                for engine, mine in plans.items()
            },
        ),
        stacked(
            "bytes-by-group", "Bytes by group", "To and from DRAM.", "bytes",
            {engine: {row.name: {"bytes": row.bytes} for row in mine} for engine, mine in plans.items()},
        ),
    ]  # fmt: skip

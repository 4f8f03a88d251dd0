"""What is drawn of hybrid plans: groups over the network, times and bytes by group."""

from __future__ import annotations

from collections.abc import Mapping

from solver.hybrid.plan import GroupPlan, HybridPlan
from solver.pages.common import stacked, us
from solver.pages.data import Figure
from solver.pages.network import graph


def figures(plan: HybridPlan, others: Mapping[str, HybridPlan]) -> list[Figure]:
    """Return all figures."""
    plans = {plan.engine: plan, **others}
    groups = {_name(row): row.stages for row in plan.layers}
    notes = {
        _name(row): f"{row.pieces} pieces of {row.columns} x {row.rows}, {row.measures.bytes:,} bytes"
        for row in plan.layers
    }
    caption = (
        "Operators of a frame run together, piece by piece if there is more than one piece. Operators of no colour "
        "move nothing of their own."
    )
    made: list[Figure] = []
    if plan.layers:
        made.append(graph("groups", "Groups over the network", caption, plan.network_data, groups, notes))
        made.append(
            stacked(
                "time-by-group", "Time by group", "Computing every number once, and the time beyond that.", "time (us)",
                {
                    engine: {
                        _name(row): {
                            "computes once": us(plan, row.measures.time - row.delay_ticks),
                            "waits, and computes again": us(plan, row.delay_ticks),
                        }
                        for row in one.layers
                    }
                    for engine, one in plans.items()
                },
            )
        )  # fmt: skip
        made.append(
            stacked(
                "bytes-by-group", "Bytes by group", "To and from DRAM.", "bytes",
                {
                    engine: {_name(row): {"bytes": row.measures.bytes} for row in one.layers}
                    for engine, one in plans.items()
                },
            )
        )  # fmt: skip
    return made


def _name(row: GroupPlan) -> str:
    return row.layer if len(row.stages) == 1 else f"{row.layer} .. {row.stages[-1]}"

"""What is drawn of plans for a mesh: bytes of both memories by layer, the roofline."""

from __future__ import annotations

from collections.abc import Mapping

from solver.pages.common import stacked
from solver.pages.data import Figure
from solver.pages.roofline import Rate, roofline
from solver.plan import Plan


def figures(plan: Plan, others: Mapping[str, Plan]) -> list[Figure]:
    """Return all figures."""
    plans = {
        engine: [row for row in one.parts if row.schedule is not None]
        for engine, one in {plan.engine: plan, **others}.items()
    }
    macs = {layer.name: layer.macs for layer in plan.network_data.layers}
    rates = {
        engine: [Rate(row.name, macs[row.name], row.measures["dram"], row.measures["time"]) for row in rows]
        for engine, rows in plans.items()
    }
    dram = {
        engine: {
            row.name: {
                "what must move": min(row.must["dram"], row.measures["dram"]),
                "moved again": max(0, row.measures["dram"] - row.must["dram"]),
            }
            for row in rows
        }
        for engine, rows in plans.items()
    }
    buffer = {engine: {row.name: {"bytes": row.measures["glb"]} for row in rows} for engine, rows in plans.items()}
    return [
        stacked(
            "dram", "DRAM bytes by layer", "Every input, weight and result once, and what moves again.", "bytes", dram
        ),
        stacked("buffer", "Global buffer by layer", "Bytes to and from the global buffer.", "bytes", buffer),
        roofline(plan.machine_data, rates),
    ]

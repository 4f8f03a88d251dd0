"""What is drawn of plans for a mesh: bytes of both memories by layer, the roofline."""

from __future__ import annotations

from collections.abc import Mapping

from solver.mesh.plan import MeshPlan
from solver.pages.common import stacked
from solver.pages.data import Figure
from solver.pages.roofline import Rate, roofline


def figures(plan: MeshPlan, others: Mapping[str, MeshPlan]) -> list[Figure]:
    """Return all figures."""
    plans = {plan.engine: plan, **others}
    rates = {
        engine: [Rate(row.layer, row.workload.macs, row.measures.dram, row.measures.time) for row in one.layers]
        for engine, one in plans.items()
    }
    dram = {
        engine: {
            row.layer: {
                "what must move": min(row.compulsory_bytes, row.measures.dram),
                "moved again": max(0, row.measures.dram - row.compulsory_bytes),
            }
            for row in one.layers
        }
        for engine, one in plans.items()
    }
    buffer = {engine: {row.layer: {"bytes": row.measures.glb} for row in one.layers} for engine, one in plans.items()}
    return [
        stacked(
            "dram", "DRAM bytes by layer", "Every input, weight and result once, and what moves again.", "bytes", dram
        ),
        stacked("buffer", "Global buffer by layer", "Bytes to and from the global buffer.", "bytes", buffer),
        roofline(plan.machine_data, rates),
    ]

"""Layers of a schedule as they count: one that loads weights that stay does so before all else, and holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hwmodels.schedule import Hold, LayerRun, Nest
from instances.stores import Stores
from instances.workload import Layer


def ran(found: Stores, runs: Sequence[LayerRun], step: int) -> tuple[Layer, Nest]:
    """Return a layer of a schedule and its nest as they count: weights that were not on chip before are loaded."""
    run, store = runs[step], found.shared[step]
    layer = found.layer(step, run.rows, run.unwritten)
    there = not layer.resident_w or (step > 0 and store in runs[step - 1].residents)
    if there:
        return layer, run.nest
    return layer.model_copy(update={"resident_w": False}), replace(run.nest, items=(Hold("W"), *run.nest.items))

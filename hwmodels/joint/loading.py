"""Layers of a schedule as they count: one that loads weights that stay does so before all else, and holds them."""

from __future__ import annotations

from dataclasses import replace

from hwmodels.schedule import FusedRun, Hold, LayerRun, Nest
from instances.stores import Stores
from instances.workload import Layer


def ran(found: Stores, step: int, run: LayerRun, before: LayerRun | FusedRun | None) -> tuple[Layer, Nest]:
    """Return a layer of a schedule and its nest as they count, after the run `before`.

    Weights that were not on chip before are loaded.
    """
    layer = found.layer(step, run.rows, run.unwritten)
    there = not layer.resident_w or (before is not None and found.shared[step] in before.residents)
    if there:
        return layer, run.nest
    return layer.model_copy(update={"resident_w": False}), replace(run.nest, items=(Hold("W"), *run.nest.items))

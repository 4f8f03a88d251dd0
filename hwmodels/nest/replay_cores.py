"""The cores of a replay: every unit's share of the layer, and what is wrong with how they share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hwmodels.schedule import Nest, Spatial
from instances.errors import InputError
from instances.machine import Machine
from instances.workload import DIMS, Layer

__all__ = ["MAX_CORES", "ReplayCore", "cover_faults", "replay_cores", "unit_faults"]

#: Nests that need more cores are refused.
MAX_CORES = 65_536


@dataclass(frozen=True)
class ReplayCore:
    """One core's number in its cluster and its half-open range of every dimension."""

    tle: int
    tlt: int
    ranges: Mapping[str, tuple[int, int]]


def replay_cores(layer: Layer, nest: Nest) -> list[ReplayCore]:
    """Give every unit its piece; units of a level are numbered in the order of the pieces."""
    cores = [ReplayCore(0, 0, {d: (0, layer.extent(d)) for d in DIMS})]
    for item in nest.items:
        if not isinstance(item, Spatial):
            continue
        split = []
        for core in cores:
            lo, hi = core.ranges[item.dim]
            pieces = [(a, min(a + item.step, hi)) for a in range(lo, hi, item.step)]
            if len(cores) * len(pieces) > MAX_CORES:
                raise InputError(f"nest: more than {MAX_CORES:,} cores; use larger steps in the spatial cuts")
            most = -(-layer.extent(item.dim) // item.step)
            for i, piece in enumerate(pieces):
                tle = core.tle * most + i if item.over == "tle" else core.tle
                tlt = core.tlt * most + i if item.over == "tlt" else core.tlt
                split.append(ReplayCore(tle, tlt, {**core.ranges, item.dim: piece}))
        cores = split
    return cores


def unit_faults(machine: Machine, cores: Sequence[ReplayCore]) -> list[str]:
    """Say where there are more clusters or cores than the machine has."""
    clusters: dict[int, int] = {}
    for core in cores:
        clusters[core.tle] = clusters.get(core.tle, 0) + 1
    faults = []
    if len(clusters) > machine.tles:
        faults.append(f"level tle: {len(clusters)} units of {machine.tles}")
    if max(clusters.values()) > machine.tlts:
        faults.append(f"level tlt: {max(clusters.values())} units of {machine.tlts}")
    return faults


def cover_faults(layer: Layer, cores: Sequence[ReplayCore]) -> list[str]:
    """Paint every core's share of the output and look for elements painted twice or never.

    A cut of the reduction over units paints the same outputs several times: the units' sums would never meet.
    """
    dims = ("b", "g", "m", "r", "c")
    marks = {d: sorted({0, layer.extent(d)} | {e for core in cores for e in core.ranges[d]}) for d in dims}
    at = {d: {v: i for i, v in enumerate(marks[d])} for d in dims}
    painted = np.zeros([len(marks[d]) - 1 for d in dims], np.int64)
    for core in cores:
        painted[tuple(slice(at[d][core.ranges[d][0]], at[d][core.ranges[d][1]]) for d in dims)] += 1
    faults = []
    if (painted == 0).any():
        faults.append("output: some elements belong to no core")
    if (painted > 1).any():
        faults.append("output: some elements are produced by several cores")
    return faults

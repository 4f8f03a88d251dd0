"""Bounds that need no search, for what an engine leaves out when its time is up.

`closed` prices nothing at all, for when there is no time even for `least_of`.

No combination is priced: every plan takes some chain of every axis, and costs at least what the cheapest one does with
all other factors at their least.
"""

from __future__ import annotations

import numpy as np

from formulations.tiling.bounding import AXES
from formulations.tiling.member import Member
from formulations.tiling.space import Space, stage_of
from hwmodels.nest.price.choices import Choices
from hwmodels.nest.price.limits import least_energy, least_time, lower_bound_bytes
from hwmodels.nest.price.tables import nest_tables
from instances.machine.machine import Machine
from instances.network.workload import Layer


def least_of(member: Member, measure: str) -> int:
    """A bound on "time", "bytes" or "energy" of all plans of a member, without pricing any (see above)."""
    member = member.unlined
    ideal = not member.exact((measure,))
    steps, tiles = member.chains((measure,), ideal=ideal)
    if not all(map(len, tiles.values())):
        return 0
    choices = Choices.floor(steps, tiles, member.slides, member.ideal() if ideal else None)
    tables = nest_tables(member.layer, member.machine, member.skeleton, choices, measures=(measure,))
    rooms = [table for parts in tables.capacity.values() for table in parts]
    parts = {"time": tables.time, "ocm": rooms, "energy": (tables.energy,)}.get(measure, (tables.bytes,))
    values = np.max([(t.a * t.b).sum(axis=0) for t in parts], axis=0)
    slides = max(1, len(member.slides))
    ends = np.cumsum([slides * len(tiles[d]) for d in AXES])[:-1]
    return int(max(axis.min() for axis in np.split(values, ends)))


def floor(space: Space, measure: str, known: int | None = None, *, hurry: bool = False) -> int:
    """A bound on a measure that needs no search, in its unit; `known` is one of the measure's stage."""
    machine, layer = space.machine, space.layer
    key = stage_of(measure, machine)
    least: int = known or 0
    if not known and not hurry:
        least = min((least_of(member, key) for member in space.members), default=0)
    if key != "time" or hurry:
        least = max(least, closed(layer, machine, key))
    return in_unit(layer, machine, measure, least)


def closed(layer: Layer, machine: Machine, key: str) -> int:
    """A bound on "time", "bytes" or "energy" of all nests, 0 where nothing is known (`hwmodels.nest.price.limits`)."""
    if key == "energy":
        return least_energy(layer, machine)
    if machine.reading == "literal":
        return 0
    return {"time": least_time, "bytes": lower_bound_bytes}[key](layer, machine) if key in ("time", "bytes") else 0


def in_unit(layer: Layer, machine: Machine, measure: str, least: int) -> int:
    """A bound of the measure's stage (bytes may stand for energy) in the measure's unit."""
    if measure == stage_of(measure, machine):
        return least
    return least * machine.byte_fj_of("IN") + machine.mac_fj * layer.macs

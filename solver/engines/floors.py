"""Bounds that need no search, for what an engine leaves out when its time is up.

No combination is priced: every plan takes some chain of every axis, and costs at least what the cheapest one does with
all other factors at their least.
"""

from __future__ import annotations

import numpy as np

from formulations.tiling.bounding import AXES
from formulations.tiling.member import Member
from formulations.tiling.space import Space
from hwmodels.nest.choices import Choices
from hwmodels.nest.limits import least_energy, lower_bound_bytes
from hwmodels.nest.tables import nest_tables
from solver.engines.base import stage_of

__all__ = ["floor", "in_unit", "least_of"]


def least_of(member: Member, measure: str) -> int:
    """A bound on "time", "bytes" or "energy" of all plans of a member, without pricing any (see above)."""
    member = member.unlined
    ideal = not member.exact((measure,))
    steps, tiles = member.chains((measure,), ideal=ideal)
    if not all(map(len, tiles.values())):
        return 0
    choices = Choices.floor(steps, tiles, member.slides, member.how(ideal=ideal))
    tables = nest_tables(member.layer, member.machine, member.skeleton, choices, measures=(measure,))
    rooms = [table for parts in tables.capacity.values() for table in parts]
    parts = {"time": tables.time, "ocm": rooms, "energy": (tables.energy,)}.get(measure, (tables.bytes,))
    values = np.max([(t.a * t.b).sum(axis=0) for t in parts], axis=0)
    slides = max(1, len(member.slides))
    ends = np.cumsum([slides * len(tiles[d]) for d in AXES])[:-1]
    return int(max(axis.min() for axis in np.split(values, ends)))


def floor(space: Space, measure: str, known: int | None = None) -> int:
    """A bound on a measure that needs no search, in its unit; `known` is one of the measure's stage."""
    machine, layer = space.machine, space.layer
    key = stage_of(measure, machine)
    least: int = known or min((least_of(member, key) for member in space.members), default=0)
    if key == "bytes" and machine.reading != "literal":
        least = max(least, lower_bound_bytes(layer, machine))
    elif key == "energy":
        least = max(least, least_energy(layer, machine))
    return in_unit(space, measure, least)


def in_unit(space: Space, measure: str, least: int) -> int:
    """A bound of the measure's stage (bytes may stand for energy) in the measure's unit."""
    machine = space.machine
    if measure == stage_of(measure, machine):
        return least
    return least * machine.byte_fj_of("IN") + machine.mac_fj * space.layer.macs

"""A finite search space of nests: members, each a skeleton with the steps that its loops may take (docs/tiling.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from formulations.pins import Pins
from formulations.tiling.bounding import AXES
from formulations.tiling.branch import Branch
from formulations.tiling.classes import classes_of
from formulations.tiling.listing import Steps
from formulations.tiling.member import Member
from hwmodels.nest.price.choices import Choices, Ideals, Slides
from hwmodels.nest.price.limits import compulsory_bytes, least_energy, least_time, lower_bound_bytes
from hwmodels.nest.price.tables import nest_tables
from hwmodels.nest.price.turning import moved_again
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from instances.machine.machine import Machine
from instances.network.workload import Layer


@dataclass(frozen=True)
class Space:
    """All plans a problem allows for one layer on one machine."""

    problem: str
    layer: Layer
    machine: Machine
    pins: Pins
    members: tuple[Member, ...]
    build: Callable[[Machine, Pins], Space]
    """Rebuilds the space with another machine and other pins (`explain`, heuristics)."""
    read: Callable[[Nest], dict[str, int | str]] = field(repr=False)
    """The decisions that a nest of this problem stands for."""

    @cached_property
    def size(self) -> dict[str, int]:
        """Nests of the space (all allowed steps) and skeletons."""
        return {"points": sum(m.points for m in self.members), "skeletons": len(self.members)}

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """All members, priced in time and bytes, that have a plan which may fit."""
        made = (m.branch(("time", "bytes")) for m in self.members)
        return tuple(b for b in made if not b.empty)

    def uniform(self) -> Space:
        """The plans of this space that hold all operands at one common depth, as textbooks and papers do."""
        return self._uniform

    @cached_property
    def _uniform(self) -> Space:
        return self.build(self.machine, self.pins.plus("holds", "uniform"))

    def contains(self, nest: Nest) -> bool:
        """Whether the nest is a plan of this space, or of `uniform`, memories aside."""
        return any(m.holds(nest) for m in self.members) or any(m.holds(nest) for m in self._uniform.members)

    def decision(self, nest: Nest) -> dict[str, int | str]:
        """The decisions that a nest of this problem stands for."""
        return self.read(nest)

    @cached_property
    def crowded(self) -> bool:
        """Whether it is seen at once that no plan fits: not with the smallest tiles that pins leave."""
        return all(member.crowded for member in self.members)

    @cached_property
    def infeasible(self) -> bool:
        """Whether no plan fits, decided exactly."""
        if self.crowded:
            return True
        branches = (m.branch(()) for m in self.members)
        return not any(bool(b.feasible().any()) for b in branches if not b.empty)

    def explain(self) -> tuple[str, ...]:
        """Name a minimal set of demands (memory sizes and pins) that no plan meets together; empty if one does.

        Deletion filter: drop a demand if the rest is still infeasible; what remains conflicts, and any part of it
        does not.
        """
        if not self.infeasible:
            return ()
        pins, machine = self.pins, self.machine
        memories = list(machine.memories)
        kept_memories: list[str] = []
        roomy = {m: ("ocm_bytes" if m == "ocm" else f"{m}_buffer_bytes") for m in memories}
        for memory in memories:
            wider = machine.model_copy(update={roomy[memory]: 2**50})
            if self.build(wider, pins).infeasible:
                machine = wider
            else:
                kept_memories.append(memory)
        for pin in self.pins.pins:
            fewer = pins.without(pin)
            if self.build(machine, fewer).infeasible:
                pins = fewer
        return tuple([self._smallest(m, pins) for m in kept_memories] + [f"pin {p}" for p in pins.pins])

    def _smallest(self, memory: str, pins: Pins) -> str:
        """Say how much of `memory` the least demanding plan needs."""
        update = {("ocm_bytes" if m == "ocm" else f"{m}_buffer_bytes"): 2**50 for m in self.machine.memories}
        roomy = self.build(self.machine.model_copy(update=update), pins)
        branches = [b for m in roomy.members if not (b := m.branch(())).empty]
        need = [int(max(t.matrix().min() for name, t, _ in b.capacity if name == memory)) for b in branches]
        size = self.machine.memories[memory]
        label = "memory ocm" if memory == "ocm" else f"memory {memory}"
        return (
            f"{label}: the smallest tile of {self.layer.name} needs {min(need):,} bytes, "
            f"{self.machine.name} has {size:,}"
            if need
            else label
        )


# ---- plans of a space, as searches compare them: by the measures asked for, then by all others -----------------------


def stage_of(measure: str, machine: Machine) -> str:
    """The measure that is minimised for one asked for: energy rises with bytes alone if all bytes take the same."""
    return "bytes" if measure == "energy" and machine.one_energy else measure


@dataclass(frozen=True)
class Pick:
    """One plan of a space: a branch, a spatial and a channel choice, with its exact measures.

    `order` is its nest with loops between Holds in another order, where that counts (`formulations.tiling.turns`).
    """

    branch: Branch
    s: int
    q: int
    measures: dict[str, int]
    order: Nest | None = None

    @property
    def nest(self) -> Nest:
        """The nest of the plan."""
        return self.order or self.branch.nest(self.s, self.q)


def complete(objectives: tuple[str, ...]) -> tuple[str, ...]:
    """Append the measures not named, in the fixed order that breaks ties."""
    return (*objectives, *(m for m in MEASURES if m not in objectives))


def aims(objectives: tuple[str, ...], machine: Machine) -> tuple[str, ...]:
    """The measures to prove for these objectives, by `stage_of`."""
    return tuple(dict.fromkeys(stage_of(m, machine) for m in objectives))


def stages(objectives: tuple[str, ...], machine: Machine) -> tuple[str, ...]:
    """The measures to settle one after the other."""
    return aims(complete(objectives), machine)


def vector(measures: dict[str, int], objectives: tuple[str, ...]) -> tuple[int, ...]:
    """The full objective vector of a plan."""
    return tuple(measures[m] for m in complete(objectives))


# ---- bounds that need no search --------------------------------------------------------------------------------------
# For what an engine leaves out when its time is up. No combination is priced: every plan takes some chain of every
# axis, and costs at least what the cheapest one does with all other factors at their least.
# `closed_form_bound` prices nothing.


def least_of(member: Member, measure: str) -> int:
    """A bound on "time", "bytes" or "energy" of all plans of a member, without pricing any."""
    member = member.unlined
    if not member.exact((measure,)):
        found = [one for one in classes_of(member, (measure,)) if all(map(len, one.tiles.values()))]
        every = (_least(member, measure, one.slides(member), one.steps, one.tiles, one.ideal) for one in found)
        return min(every, default=0)
    return _least(member, measure, member.slides, *member.chains((measure,)))


def _least(member: Member, measure: str, along: Slides, steps: Steps, tiles: Steps, ideal: Ideals = None) -> int:
    """The same of some chains."""
    if not all(map(len, tiles.values())):
        return 0
    choices = Choices.floor(steps, tiles, along, ideal)
    tables = nest_tables(member.layer, member.machine, member.skeleton, choices, measures=(measure,))
    rooms = [table for parts in tables.capacity.values() for table in parts]
    parts = {"time": tables.time, "ocm": rooms, "energy": (tables.energy,)}.get(measure, (tables.bytes,))
    values = np.max([(t.a * t.b).sum(axis=0) for t in parts], axis=0)
    slides = max(1, len(along))
    ends = np.cumsum([slides * len(tiles[d]) for d in AXES])[:-1]
    return int(max(axis.min() for axis in np.split(values, ends)))


def bound_without_search(space: Space, measure: str, known: int | None = None, *, hurry: bool = False) -> int:
    """A bound on a measure that needs no search, in its unit; `known` is one of the measure's stage."""
    machine, layer = space.machine, space.layer
    key = stage_of(measure, machine)
    least: int = known or 0
    if not known and not hurry:
        least = min((least_of(member, key) for member in space.members), default=0)
    if key != "time" or hurry:
        least = max(least, closed_form_bound(layer, machine, key))
    return in_unit(layer, machine, measure, least)


def closed_form_bound(layer: Layer, machine: Machine, key: str) -> int:
    """A bound on "time", "bytes" or "energy" of all nests, 0 where nothing is known (`hwmodels.nest.price.limits`)."""
    if key == "energy":
        return least_energy(layer, machine) + _turning(layer, machine, key)
    if machine.reading == "literal" or key not in ("time", "bytes"):
        return 0
    return {"time": least_time, "bytes": lower_bound_bytes}[key](layer, machine) + _turning(layer, machine, key)


def _turning(layer: Layer, machine: Machine, key: str) -> int:
    """What is moved again in snake order beyond the bytes of `lower_bound_bytes`, as that bound counts them."""
    if not machine.snake or machine.timing == "double_buffered" or machine.off_chip:
        return 0
    prices = {"time": [price.byte_ticks for price in machine.transfers], "bytes": [1]}
    each = min(prices[key] if key in prices else [machine.byte_fj_of(operand) for operand in layer.operands])
    known = lower_bound_bytes(layer, machine) - compulsory_bytes(layer, machine)
    return max(0, moved_again(layer, machine, key) - each * known)


def in_unit(layer: Layer, machine: Machine, measure: str, least: int) -> int:
    """A bound of the measure's stage (bytes may stand for energy) in the measure's unit."""
    if measure == stage_of(measure, machine):
        return least
    return least * machine.byte_fj_of("IN") + machine.mac_fj * layer.macs

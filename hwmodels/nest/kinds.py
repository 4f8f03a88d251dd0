"""Which cores are alike: of each kind one is priced, for all that move and hold the same.

Cores differ in the extents of their ranges and in how far their windows lie beyond the map. Where bursts are counted by
address (`hwmodels.nest.addresses`), they differ in where their ranges begin too, modulo a burst.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from hwmodels.nest.boxes import input_windows, pitches_of
from hwmodels.nest.broadcast import loads
from hwmodels.nest.skeleton import Core
from instances.machine import Broadcast, Machine
from instances.workload import DIMS, Layer

__all__ = ["OPERANDS", "Key", "Load", "loads_of"]

OPERANDS = ("IN", "W", "OUT")
#: Dimensions and bytes from one index to the next; bytes of a burst.
Pitches = tuple[tuple[tuple[str, int], ...], int]


class Key(NamedTuple):
    """What the tables of a core depend on: cores with equal keys have equal tables.

    Attributes
    ----------
    extents : tuple of int
        Of its ranges.
    clipped : tuple of (int, int)
        Rows and columns of its windows beyond the map.
    places : tuple of tuple of int
        By operand where its ranges begin, in bytes modulo a burst; empty unless bursts are counted by address.
    """

    extents: tuple[int, ...]
    clipped: tuple[tuple[int, int], ...]
    places: tuple[tuple[int, ...], ...]

    def of(self, operand: str) -> tuple[object, ...]:
        """What the rows of one operand depend on."""
        place = self.places[OPERANDS.index(operand)] if self.places else ()
        return (operand, self.extents, place, self.clipped if operand == "IN" else ())


#: A core's key, and which rows it moves (`hwmodels.nest.broadcast.ROWS`).
Load = tuple[Key, str]


def loads_of(
    layer: Layer, machine: Machine, share: tuple[Core, ...]
) -> tuple[dict[Key, Core], dict[int, Counter[Load]], Counter[Load]]:
    """Return a core of every kind, and how often each kind moves what, on the bus of every cluster and for the chip."""
    first: dict[Key, Core] = {}
    clusters: dict[int, Counter[Load]] = {}
    every: Counter[Load] = Counter()
    pitches = _pitches(layer, machine)
    for core, inside, once in _alike(share, machine.broadcast, bool(pitches)):
        key = _key(layer, core, pitches)
        first.setdefault(key, core)
        for (tle, group), number in inside.items():
            clusters.setdefault(tle, Counter())[key, group] += number
        for group, number in once.items():
            every[key, group] += number
    return first, clusters, every


@lru_cache(maxsize=1024)
def _alike(
    share: tuple[Core, ...], broadcast: Broadcast, by_address: bool
) -> tuple[tuple[Core, Mapping[tuple[int, str], int], Mapping[str, int]], ...]:
    """One core for all with the same rows and columns and equal extents (by address: each for itself).

    With how many of them move what (`hwmodels.nest.broadcast`) on the bus of each cluster, and how many count for the
    chip.
    """
    first: dict[object, Core] = {}
    inside: dict[object, Counter[tuple[int, str]]] = {}
    once: dict[object, Counter[str]] = {}
    for core, (on_bus, on_chip) in zip(share, loads(share, broadcast), strict=True):
        place = tuple(r if by_address or d in ("r", "c") else r[1] - r[0] for d, r in core.ranges)
        first.setdefault(place, core)
        inside.setdefault(place, Counter()).update((core.tle, group) for group in on_bus)
        once.setdefault(place, Counter()).update(on_chip)
    return tuple((core, inside[place], once[place]) for place, core in first.items())


def _key(layer: Layer, core: Core, pitches: tuple[Pitches, ...]) -> Key:
    """Tell what a core's tables depend on."""
    clipped = tuple(w.clipping(*core.range(d)) for d, w in input_windows(layer).items())
    places = tuple(tuple(core.range(d)[0] * pitch % burst for d, pitch in of) for of, burst in pitches)
    return Key(tuple(core.extent(d) for d in DIMS), clipped, places)


def _pitches(layer: Layer, machine: Machine) -> tuple[Pitches, ...]:
    """By operand the bytes from one index of each dimension to the next in its tensors, and those of a burst.

    Empty where addresses do not matter.
    """
    if not any(transfer.by_address for transfer in machine.transfers):
        return ()
    stride = {"r": layer.stride_h, "c": layer.stride_w}
    result = []
    for operand in OPERANDS:
        transfer = machine.transfer_of(operand)
        tensors = {"W": ("W", "BIAS"), "OUT": ("OUT", "PSUM")}.get(operand, (operand,))
        steps = [pair for tensor in tensors for pair in pitches_of(layer, machine, tensor)]
        if operand == "IN":
            steps = [(d, pitch * stride.get(d, 1)) for d, pitch in steps]
        result.append((tuple(steps) if transfer.by_address else (), transfer.burst_bytes))
    return tuple(result)

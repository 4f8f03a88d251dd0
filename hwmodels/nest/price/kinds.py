"""Which cores are alike: of each kind one is priced, for all that move and hold the same.

Cores differ in the extents of their ranges and in how far their windows lie beyond the map. Where bursts are counted by
address (`hwmodels.nest.price.boxes`), they differ in where their ranges begin too, modulo a burst.

On machines with `broadcast` a core may load an operand for others. Cores of a cluster (or of the chip) with the same
ranges of all dimensions that an operand depends on form a group, and its first core loads for all of it. Ranges are cut
from their begins and the last piece is the smallest, so the first core has the largest ranges of the other dimensions
too; the others run its program without the last iterations of some loops. What they need in an iteration is what the
first core needs there. It was on chip before the iteration for the first core exactly if it was for them: the
iterations that they leave out are passes over the same tiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from hwmodels.nest.price.boxes import input_windows, pitches_of
from hwmodels.nest.price.skeleton import Core
from instances.machine.machine import Broadcast, Machine
from instances.network.workload import DIMS, RELEVANT, Layer

OPERANDS = ("IN", "W", "OUT")
#: The rows of counts that a core moves by itself, or loads for its group; "" stands for all rows.
ROWS: Mapping[str, frozenset[str]] = {
    "IN": frozenset({"IN"}),
    "W": frozenset({"W"}),
    "OUT": frozenset({"OUT", "PSUM_READ", "PSUM_WRITE"}),
    "": frozenset({"IN", "W", "OUT", "PSUM_READ", "PSUM_WRITE"}),
}
#: Dimensions and bytes from one index to the next; bytes of a burst.
Pitches = tuple[tuple[tuple[str, int], ...], int]


class Key(NamedTuple):
    """What the tables of a core depend on: cores with equal keys have equal tables."""

    extents: tuple[int, ...]
    """Of its ranges."""
    clipped: tuple[tuple[int, int], ...]
    """Rows and columns of its windows beyond the map."""
    places: tuple[tuple[int, ...], ...]
    """By operand where its ranges begin, in bytes modulo a burst; empty unless bursts are counted by address."""

    def of(self, operand: str) -> tuple[object, ...]:
        """What the rows of one operand depend on."""
        place = self.places[OPERANDS.index(operand)] if self.places else ()
        return (operand, self.extents, place, self.clipped if operand == "IN" else ())


#: A core's key, and which rows it moves (`ROWS`).
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

    With how many of them move what (`loads`) on the bus of each cluster, and how many count for the
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
        ways = dict.fromkeys(layer.patterns) if operand == "IN" else ("",)
        steps = [pair for tensor in tensors for lacks in ways for pair in pitches_of(layer, machine, tensor, lacks)]
        if operand == "IN":
            steps = [(d, pitch * stride.get(d, 1)) for d, pitch in steps]
        result.append((tuple(steps) if transfer.by_address else (), transfer.burst_bytes))
    return tuple(result)


@lru_cache(maxsize=1024)
def loads(share: tuple[Core, ...], broadcast: Broadcast) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """By core which of `ROWS` it moves on its cluster's bus, and which of these count once for the chip."""
    if broadcast.none:
        return ((("",), ("",)),) * len(share)
    on_bus, on_chip = {}, {}
    for operand, level in broadcast.levels.items():
        on_bus[operand] = _first(share, operand, "tle" if level == "chip" else level)
        on_chip[operand] = _first(share, operand, level)
    return tuple((_moved(k, on_bus), _moved(k, on_chip)) for k in range(len(share)))


def _first(share: tuple[Core, ...], operand: str, level: str) -> set[int]:
    """The numbers of the cores that load an operand, for themselves or for their group."""
    first: dict[object, int] = {}
    for number, core in enumerate(share):
        place = {"none": number, "tle": core.tle, "chip": None}[level]
        first.setdefault((place, *(core.range(d) for d in RELEVANT[operand])), number)
    return set(first.values())


def _moved(core: int, loading: Mapping[str, set[int]]) -> tuple[str, ...]:
    return (*(operand for operand, cores in loading.items() if core in cores), "OUT")

"""The least memory that buffers of one memory fit in: capacities in turn, by `formulations.placement.search`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from formulations.clock import ENDLESS, Clock
from formulations.placement.packing import Packing
from formulations.placement.search import fit, patience

#: Nodes of the first search, and how much more the next ones have.
_NODES, _GROWTH = 4_000, 4


@dataclass(frozen=True)
class Least:
    """Addresses that reach `peak`, None if none are known; no addresses reach less than `bound`."""

    addresses: tuple[int, ...] | None
    peak: int | None
    bound: int
    witness: tuple[str, ...] = ()
    """Buffers that by themselves take no less than `bound`."""


def least_peak(
    packing: Packing, capacity: int, clock: Clock = ENDLESS, known: Sequence[int] | None = None, *,
    nodes: int | None = None,
) -> Least:  # fmt: skip
    """Return the least peak of at most a capacity; without addresses and with ``bound > capacity`` if there is none.

    Parameters
    ----------
    known : sequence of int, optional
        Addresses to begin with.
    nodes : int, optional
        The most of one search.
    """
    most_nodes = min(patience(packing), nodes or patience(packing))
    bound, addresses = packing.least, dict[str, int]()
    before = {} if known is None else {b.name: a for b, a in zip(packing.buffers, known, strict=True)}
    parts = sorted(packing.parts(), key=lambda part: -part.least)
    lost, witness = False, tuple(b.name for b in parts[0].buffers)  # it has the load of all
    for part in parts:
        mine = tuple(before[b.name] for b in part.buffers) if before else None
        told = _least(part, capacity, clock, mine, bound, most_nodes)
        if told.bound > bound:
            bound, witness = told.bound, tuple(b.name for b in part.buffers)
        if told.addresses is None:
            lost = True
            if told.bound > capacity:
                return Least(None, None, bound, witness)
            continue
        addresses |= {b.name: a for b, a in zip(part.buffers, told.addresses, strict=True)}
    if lost:
        return Least(None, None, bound, witness)
    ordered = tuple(addresses[b.name] for b in packing.buffers)
    return Least(ordered, max((addresses[b.name] + b.size for b in packing.buffers), default=0), bound, witness)


def _least(
    packing: Packing, capacity: int, clock: Clock, known: tuple[int, ...] | None, enough: int, most_nodes: int
) -> Least:  # fmt: skip
    """The same of buffers that live together; `enough`: a peak that need not be beaten."""
    unit = packing.unit
    bound, addresses = -(-packing.least // unit) * unit, known
    peak = None if known is None else max(a + b.size for a, b in zip(known, packing.buffers, strict=True))
    nodes = min(_NODES, most_nodes)
    while not clock.over and nodes <= most_nodes and (peak is None or peak > max(bound, enough)):
        start = max(bound, enough)
        for tried in _capacities(start, capacity if peak is None else peak - unit, unit):
            told = fit(packing, tried, clock, nodes=nodes)
            if told.status == "fits":
                addresses, peak = told.addresses, told.peak(packing)
                break
            if told.status == "does not fit":
                bound = tried // unit * unit + unit
                break
        else:
            nodes *= _GROWTH
        if bound > capacity:
            return Least(None, None, bound)
    return Least(addresses, peak, min(bound, peak) if peak is not None else bound)


def _capacities(bound: int, most: int, unit: int) -> Sequence[int]:
    """What is tried in turn: the bound, halfway, and the most."""
    middle = (bound + most) // 2 // unit * unit
    return sorted({size for size in (bound, middle, most) if bound <= size <= most}) or [bound]

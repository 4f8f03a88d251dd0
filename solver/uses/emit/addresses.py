"""Addresses for what lies on chip while a network runs: the tiles of every layer, and the maps that stay between.

An example: conv1 keeps 83 rows of its map, 300 KB from layer 0 to 1, beside its tiles, 180 KB in layer 0. Plans count
banks; a bank is no place, so here every buffer gets one range of addresses. A map that loses rows keeps its first ones
where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from formulations.clock import Clock
from formulations.placement.instance import GREEDY, Rooms
from formulations.placement.instance import placed as by_heuristic
from formulations.placement.packing import Block, Packing
from formulations.placement.search import fit
from instances.network.buffers import Memory

_NAME = "ocm"


def placed(blocks: Sequence[Block], capacity: int, seconds: float = 30) -> Mapping[str, int] | None:
    """Return an address for every buffer: by heuristics, else by the exact search; None if that finds none in time."""
    buffers = [block.buffer() for block in blocks]
    rooms = Rooms([Memory(name=_NAME, bytes=capacity)], {_NAME: capacity}, {})
    for name in GREEDY:
        if (made := by_heuristic(buffers, rooms, name)) is not None:
            return {place.buffer: place.address for place in made.places}
    told = fit(Packing(buffers, {}, 0), capacity, Clock.of(seconds))
    if told.status != "fits":
        return None
    return {buffer.name: address for buffer, address in zip(buffers, told.addresses, strict=True)}

"""Addresses for what lies on chip while a network runs: the tiles of every layer, and the maps that stay between.

An example: conv1 keeps 83 rows of its map, 300 KB from layer 0 to 1, beside its tiles, 180 KB in layer 0. Plans count
banks; a bank is no place, so here every buffer gets one range of addresses. A map that loses rows keeps its first ones
where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from formulations.placement.blocks import ORDERS, Block, first_fit
from formulations.placement.cp_sat import build
from solver.engines import driver_cp_sat


def placed(blocks: Sequence[Block], capacity: int, seconds: float = 30) -> Mapping[str, int] | None:
    """Return an address for every buffer: by the greedy orders, else by CP-SAT; None if that finds none in time."""
    for order in ORDERS:
        if (found := first_fit(blocks, capacity, order)) is not None:
            return found
    if (made := build(blocks, capacity)) is None:
        return None
    answer = driver_cp_sat.solve(made.model, seconds, parameters={"num_workers": 2})
    return made.decode(answer.solver) if answer.status in ("OPTIMAL", "FEASIBLE") else None

"""Spaces of nests whose inputs are broadcast: every engine against every nest there is, priced by a count of its own.

The judge lists all nests of tiny layers (up to two loops a dimension in any order, both Holds anywhere), and counts
their bytes and their memory from the definition (docs/nest.md), without a table, a price or a replay.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest

from certile import solve
from formulations.pins import Pins
from formulations.tiling.tiling import build
from formulations.tiling.turns import orders_of
from instances.machine.machine import Machine, Transfer
from instances.network.workload import Layer
from tests.hwmodels.test_broadcast_inputs import layer_of, machine_of

Chain = tuple[int, ...]


def chains(extent: int) -> Iterator[Chain]:
    """Steps of up to two loops over a dimension that both cut something."""
    yield ()
    for outer in range(1, extent):
        yield (outer,)
        yield from ((outer, inner) for inner in range(1, outer))


@lru_cache(maxsize=4096)
def pieces(extent: int, chain: Chain) -> tuple[int, ...]:
    found = [extent]
    for step in chain:
        found = [min(step, size - at) for size in found for at in range(0, size, step)]
    return tuple(found)


def interleaved(left: tuple[tuple[str, Chain], ...]) -> Iterator[tuple[str, ...]]:
    """All orders of loops, those over one dimension as their chain says."""
    if not any(chain for _, chain in left):
        yield ()
    for k, (dim, chain) in enumerate(left):
        if chain:
            for rest in interleaved((*left[:k], (dim, chain[1:]), *left[k + 1 :])):
                yield (dim, *rest)


def everything(layer: Layer) -> Iterator[tuple[int, int]]:
    """Bytes and memory of every nest, with elements of one byte."""
    extents = {d: layer.extent(d) for d in "bgrc"}
    own = [tuple(d for d in "bgrc" if d not in lacks) for lacks in layer.broadcast]
    result = prod(extents.values())
    for choice in product(*(chains(extents[d]) for d in "bgrc")):
        steps = dict(zip("bgrc", choice, strict=True))
        for order in set(interleaved(tuple(steps.items()))):
            for held in range(len(order) + 1):
                outside = order[:held]
                moved = tiles = 0
                for mine in own:
                    last = max((k + 1 for k, d in enumerate(outside) if d in mine), default=0)
                    again = {d: outside[:last].count(d) for d in "bgrc" if d not in mine}
                    passes = prod(len(pieces(extents[d], steps[d][:n])) for d, n in again.items())
                    moved += passes * prod(extents[d] for d in mine)
                    tiles += prod(max(pieces(extents[d], steps[d][: outside.count(d)])) for d in mine)
                for kept in range(len(order) + 1):
                    out = prod(max(pieces(extents[d], steps[d][: order[:kept].count(d)])) for d in "bgrc")
                    yield moved + result, tiles + out


@cache
def front(name: str) -> dict[int, int]:
    """For every memory that some nest needs, the fewest bytes of nests that need no more."""
    least: dict[int, int] = {}
    for moved, room in set(everything(LAYERS[name])):
        least[room] = min(least.get(room, moved), moved)
    best, found = 1 << 60, {}
    for room in sorted(least):
        best = min(best, least[room])
        found[room] = best
    return found


LAYERS = {
    "gate": layer_of("", "rc", g=3, r=2, c=2),
    "rows by columns": layer_of("c", "r", g=2, r=3, c=3),
    "rows by columns of a map": layer_of("", "c", "r", r=4, c=3),
    "mask and gate": layer_of("", "g", "rc", g=3, r=2, c=2),
    "layer norm": layer_of("", "g", "g", "r", g=4, r=3),
    "positions": layer_of("", "b", b=3, g=2, r=2),
    "batch and gate": layer_of("bg", "rc", b=2, g=2, r=2, c=2),
    "where": layer_of("g", "r", "bgr", b=2, g=2, r=2),
    "three faces": layer_of("g", "r", "c", g=2, r=2, c=2),
    "a batch and its map": layer_of("grc", "b", b=2, g=2, r=2, c=2),
    "outer of four": layer_of("rc", "bg", b=2, g=2, r=2, c=2),
    "two masks": layer_of("", "gc", "gr", g=2, r=3, c=2),
}  # fmt: skip


#: Of three or four orders and all dimensions.
_LONG = {"where", "three faces", "two masks", "mask and gate", "a batch and its map"}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in _LONG)) for n in LAYERS])
def test_every_memory_has_its_fewest_bytes(name: str, engine: str) -> None:
    found = front(name)
    rooms = sorted(found)
    falls = [rooms[0], *(here for before, here in pairwise(rooms) if found[before] > found[here])]
    for room in falls:
        plan = solve(LAYERS[name], machine_of(ocm_bytes=room), objective="bytes", engine=engine)
        assert (plan.status, plan.objective and plan.objective.value) == ("OPTIMAL", found[room]), room
    least = falls[-1] - 1 if len(falls) > 1 else rooms[0]  # a byte less than the least memory for the fewest of all
    before = max(room for room in rooms if room <= least)
    plan = solve(LAYERS[name], machine_of(ocm_bytes=least), objective="bytes", engine=engine)
    assert plan.objective.value == found[before]
    assert solve(LAYERS[name], machine_of(ocm_bytes=rooms[0] - 1), engine=engine).status == "INFEASIBLE"


@pytest.mark.parametrize("name", ["gate", "rows by columns of a map", "positions", "layer norm"])
def test_the_reduced_space_has_an_optimum_of_the_whole(name: str) -> None:
    """With prices of calls and runs, against all chains of the same members."""
    rng = random.Random(name)
    for measure in ("time", "bytes"):
        machine = machine_of(
            ocm_bytes=rng.choice(sorted(front(name))), in_layout=rng.choice(["CHW", "HWC"]),
            transfer=Transfer(byte_ticks=1, segment_ticks=rng.randint(0, 3), call_ticks=rng.randint(0, 9)),
        )  # fmt: skip
        reduced, whole = (_least(LAYERS[name], machine, measure, full) for full in (False, True))
        assert reduced == whole


def _least(layer: Layer, machine: Machine, measure: str, full: bool) -> int:
    """The least value of a measure among all choices of the space."""
    found = []
    for member in build(layer, machine, Pins(()), full=full).members:
        branch = member.branch((measure,))
        if not branch.empty:
            values = np.max([table.matrix() for table in branch.tables(measure)], axis=0)
            found.append(int(np.where(branch.feasible(), values, 1 << 60).min()))
    return min(found)


def test_orders_that_stand_for_all() -> None:
    # one pattern: first what it depends on; two that share nothing: either first; nobody depends on b: last
    assert [*orders_of(layer_of("", "rc", g=2, r=2, c=2), ("g", "r", "c"))] == [("g", "r", "c")]
    assert [*orders_of(layer_of("", "g", g=2, r=2, c=2), ("g", "r", "c"))] == [("r", "c", "g")]
    assert [*orders_of(layer_of("c", "r", g=2, r=2, c=2), ("g", "r", "c"))] == [("g", "r", "c"), ("g", "c", "r")]
    three = layer_of("", "bgr", "bgc", b=2, g=2, r=2, c=2)
    assert [*orders_of(three, ("b", "g", "r", "c"))] == [("r", "c", "b", "g"), ("c", "r", "b", "g")]
    assert [*orders_of(layer_of("", "", g=2, r=2), ("r", "g"))] == [("r", "g")]

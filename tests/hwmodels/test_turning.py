"""What is moved again in snake order at least: against all walks of small numbers, and against nests as priced."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice, product

import numpy as np
import pytest

from formulations.tiling.space import closed_form_bound
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import tensor_bytes
from hwmodels.nest.price.turning import moved_again, walk
from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.machine.machine import Transfer
from instances.network.workload import DIMS, Layer
from solver import solve
from tests.effort import tries
from tests.small import byte_machine


def least_walk(every: tuple[int, ...], tile: tuple[int, ...]) -> int:
    """The least of all walks in whole steps, one axis at a time, until nothing is moved again."""
    ends = [max(-(-v // t) for v, t in zip(every, tile, strict=True)) + 1] * 3
    costs = np.full([e + 2 for e in ends], 1 << 40)
    costs[1, 1, 1], found = 0, []
    for place in product(*(range(1, e + 1) for e in ends)):
        others = [place[1] * place[2], place[0] * place[2], place[0] * place[1]]
        left = [max(0, v - n * t) for v, n, t in zip(every, others, tile, strict=True)]
        found += [] if any(left) else [int(costs[place])]
        for axis, step in enumerate(left):
            onward = tuple(x + (k == axis) for k, x in enumerate(place))
            costs[onward] = min(costs[onward], costs[place] + step)
    return min(found)


def test_no_walk_is_shorter() -> None:
    rng, equal = random.Random(5), 0
    for _ in range(tries(60, 2_000)):
        every = tuple(rng.randint(2, 24) for _ in range(3))
        tile = tuple(rng.randint(2, 9) for _ in range(3))
        said = float(walk(np.array(every, float)[:, None], np.array(tile, float)[:, None])[0])
        true = least_walk(every, tile)
        assert said <= true + 1e-9, (every, tile)
        equal += said > 0 and said == true
    assert equal > 5


def nests(layer: Layer, rng: random.Random) -> Iterator[Nest]:
    """Nests with a loop or two over most dimensions, in any order, and Holds anywhere."""
    while True:
        chains = list[list[Item]]()
        for d in DIMS:
            sizes = sorted(rng.sample(range(1, layer.extent(d)), min(layer.extent(d) - 1, rng.choice((0, 1, 1, 1, 2)))))
            chains.append([Loop(d, size) for size in reversed(sizes)])
        rows = [chain for chain in chains if chain] + [[Hold(op)] for op in layer.operands]
        items = list[Item]()
        while rows:
            items.append(rng.choice(rows).pop(0))
            rows = [row for row in rows if row]
        yield Nest(tuple(items))


@pytest.mark.parametrize("sliding", [False, True])
def test_no_nest_moves_less_again(sliding: bool) -> None:
    """Each nest is held against the memory that it takes: what it moves beyond everything once is not below."""
    rng, reached = random.Random(9), set[int]()
    for _ in range(tries(4, 200)):
        layer = Layer.conv(
            "x", channels=rng.randint(1, 3), filters=rng.randint(2, 4), size=(rng.randint(2, 4), rng.randint(1, 3)),
            kernel=(rng.choice((1, 2)), 1), batch=rng.choice((1, 2)),
        )  # fmt: skip
        sizes = {f"{name}_bytes": rng.choice((1, 2)) for name in ("in", "w", "out", "psum")}
        prices = Transfer(call_ticks=rng.choice((0, 7)), segment_ticks=rng.choice((0, 2)), byte_ticks=1)
        machine = byte_machine(ocm_bytes=1, snake=True, sliding=sliding, transfer=prices, **sizes)
        once = sum(tensor_bytes(layer, machine).values())
        for nest in islice(nests(layer, rng), 6):
            outcome = price(layer, machine, nest)
            tight = machine.model_copy(update={"ocm_bytes": outcome.occupancy_bytes["ocm"]})
            again = moved_again(layer, tight, "bytes")
            assert once + again <= outcome.bytes, (layer, machine, nest)
            assert once + moved_again(layer, tight, "time") <= outcome.transfer_ticks, (layer, machine, nest)
            reached.add(again)
    assert len(reached) > 2


@pytest.mark.parametrize(("ocm", "again", "tiles"), [(8, 0, 0), (7, 3, 1), (6, 4, 2)])
def test_by_hand(ocm: int, again: int, tiles: int) -> None:
    """Six rows times six filters over one channel: IN and W 6 bytes each.

    8 bytes hold all of IN, a filter and a result. 7 hold 3 + 3 and a result: the second half of IN meets the filters
    that are there, and then the first half of W anew, 3. 6 hold 3 + 2 and a result: 4 of 6 filters come again, by twos.
    """
    layer = Layer.matmul("x", rows=6, inner=1, cols=6)
    machine = byte_machine(ocm_bytes=ocm, snake=True, transfer=Transfer(call_ticks=4, segment_ticks=1, byte_ticks=1))
    assert moved_again(layer, machine, "time") == again + tiles * (4 + 1)
    assert moved_again(layer, machine, "bytes") == again
    assert closed_form_bound(layer, machine, "bytes") == 6 + 6 + 36 + again
    assert closed_form_bound(layer, machine, "time") == 6 + 6 + 36 + again + tiles * (4 + 1)
    plan = solve(layer, machine, objective="bytes")
    assert (plan.objective.value, plan.status) == (6 + 6 + 36 + again, "OPTIMAL")

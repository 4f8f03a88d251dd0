"""Candidate chains: by hand, and complete in the sense of their claims, checked against the whole grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.pareto import pareto
from formulations.tiling.chains import Edge, cheapest, divisors, even_steps, grid, rounded, undominated
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import Window, cut, windows
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.machine.machine import Machine, Transfer
from instances.network.workload import DIMS, RELEVANT, Layer
from tests.effort import tries


def every(extent: int) -> Ints:
    return np.arange(1, extent + 1, dtype=np.int64)


def test_even_steps_and_multiples_of_lanes() -> None:
    """Of 10: ceil(10 / k) for every number k of pieces; beside these what fills 4 lanes, 4 and 8; of one lane none."""
    assert [rounded((10,), every(10), lanes).tolist() for lanes in (4, 1, 0)] == [
        [1, 2, 3, 4, 5, 8, 10], [1, 2, 3, 4, 5, 10], [1, 2, 3, 4, 5, 10]
    ]  # fmt: skip


def pairs(chains: Ints) -> set[tuple[int, ...]]:
    return {tuple(int(t) for t in chain) for chain in chains}


def test_small_lists_by_hand() -> None:
    assert divisors(12).tolist() == [1, 2, 3, 4, 6, 12]
    # 7 in 7, 4, 3, 2 pieces of 1, 2, 3 (3 + 3 + 1), 4 (4 + 3), 1 piece of 7; 5 and 6 make 2 pieces as 4 does
    assert even_steps((7,), every(7)).tolist() == [1, 2, 3, 4, 7]
    # on cores with 7 and 6 a step of 6 leaves the second one whole
    assert even_steps((7, 6), every(7)).tolist() == [1, 2, 3, 4, 6, 7]
    assert pairs(grid(every(3), every(3), 2)) == {(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)}
    assert grid(every(3), np.array([2]), 1).tolist() == [[2]]
    assert pairs(cheapest((4,), every(4), every(4), 2)) == {(1, 1), (2, 2), (4, 4), (2, 1), (4, 1)}
    assert cheapest((4,), every(4), np.array([2, 3]), 1).tolist() == [[2]]


def test_a_longer_step_that_saves_a_piece_of_the_next_loop_is_kept() -> None:
    # 10 by 5 then 3: 3 + 2, 3 + 2: 4 pieces. 10 by 6 then 4: 4 + 2, 4: 3 pieces. Both make 2 pieces of the first loop.
    assert {(5, 3), (6, 4)} <= pairs(undominated((10,), every(10), every(10), 2))
    # 11 by 6 then 5: 5 + 1, 5: 3 pieces; 11 by 7 then 5 makes as many with a longer first step
    assert (6, 5) in pairs(undominated((11,), every(11), every(11), 2))
    assert (7, 5) not in pairs(undominated((11,), every(11), every(11), 2))


@given(st.integers(1, 20), st.sampled_from([0, 2, 3, 4]), st.booleans())
def test_every_chain_has_one_at_or_below_it(extent: int, lanes: int, skipping: bool) -> None:
    kept = undominated((extent,), every(extent), every(extent), 2, lanes=lanes, skipping=skipping)
    everything = grid(every(extent), every(extent), 2)

    def features(chains: Ints) -> Ints:
        once, twice = cut(extent, chains[:, :1]), cut(extent, chains)
        rows = [chains[:, 0], chains[:, 1], once.number, twice.number, twice.ceil_sum(max(1, lanes))]
        return np.stack([*rows, -once.number, -twice.number] if skipping else rows)

    mine, all_ = features(kept), features(everything)
    for column in all_.T:
        assert (mine <= column[:, None]).all(axis=0).any()


@settings(max_examples=tries(37, 150))
@given(st.data())
def test_no_padding_hides_a_smaller_tile_or_fewer_rows(data: st.DataObject) -> None:
    """For any padding up to the reach: what a chain fetches at both levels, slid or not, some kept chain undercuts."""
    stride, taps = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5))
    extent = data.draw(st.integers(1, 14))
    pad, below = (data.draw(st.integers(0, taps - 1)) for _ in range(2))
    size = (extent - 1) * stride + taps - pad - below
    if size < 1 or (extent - 1) * stride - pad >= size:
        return
    window = Window(stride, 1, taps, pad, size)
    before, behind = window.clipping(0, extent)
    beyond = max(before, behind) > stride or before > behind
    edge = Edge(
        max(0, (before - 1) // stride), behind // stride, (window,) if beyond else (), ((0, extent),),
        before - behind > stride,
    )  # fmt: skip
    kept = undominated((extent,), every(extent), every(extent), 2, skipping=window.reach < stride, edge=edge)
    whole = np.zeros((1, 0), np.int64)

    def features(chains: Ints) -> Ints:
        rows = [chains[:, 0], chains[:, 1], cut(extent, chains[:, :1]).number, cut(extent, chains).number]
        for level in (1, 2):
            for slide in ("", "outer"):
                found = windows(0, extent, chains[:, :level], whole, window, slide)
                rows += [found.sum, found.number]
            rows.append(windows(0, extent, chains[:, :level], whole, window).largest)
        return np.stack(rows)

    mine, all_ = features(kept), features(grid(every(extent), every(extent), 2))
    for column in all_.T:
        assert (mine <= column[:, None]).all(axis=0).any()


def test_nothing_allowed_gives_nothing() -> None:
    none = np.zeros(0, np.int64)
    assert undominated((4,), every(4), none, 2).shape == (0, 2)
    assert cheapest((4,), every(4), none, 1).shape == (0, 1)


@pytest.mark.parametrize("count", [1, 3, 300])
def test_pareto_keeps_exactly_the_undominated(count: int) -> None:
    features = np.random.default_rng(7).integers(0, 6, (3, count))
    kept = set(pareto(features).tolist())
    for k in range(count):
        below = [j for j in range(count) if (features[:, j] <= features[:, k]).all()]
        better = [j for j in below if (features[:, j] < features[:, k]).any()]
        assert (k in kept) == (not better and min(below) == k)
    assert pareto(features[:0]).tolist() == [0]


# ---- The argument of `formulations.tiling.tiling`, step by step: each exchange moves no more bytes in no
#
# Random nests of tiny layers (several loops of a dimension, free places, Holds at any depth), each step alone on a nest
# that meets its precondition, priced by replay. No formulation and no engine takes part.

Items = tuple[Item, ...]


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    kernel = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    pad = tuple(draw(st.integers(0, kernel[i % 2] - 1)) for i in range(4))
    layer = Layer.conv(
        "x", channels=draw(st.integers(1, 2)), filters=draw(st.integers(1, 3)),
        size=(draw(st.integers(kernel[0], 5)), draw(st.integers(kernel[1], 4))), kernel=kernel,
        stride=(draw(st.integers(1, 2)), 1), pad=(pad[0], pad[1], pad[2], pad[3]), bias=draw(st.booleans()),
    )  # fmt: skip
    rows = draw(st.sampled_from([0, 0, 0, 1, 2]))
    return layer.model_copy(update={"resident_in": (min(rows, layer.h),)}) if rows else layer


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    return Machine(
        name="m", tick_ps=1, in_bytes=draw(st.sampled_from([1, 2])), w_bytes=1, out_bytes=draw(st.sampled_from([1, 2])),
        psum_bytes=draw(st.sampled_from([1, 4])), bias_bytes=draw(st.sampled_from([0, 4])), ocm_bytes=10**6,
        sliding=draw(st.booleans()), psum_first_read=draw(st.booleans()), transfer=Transfer(byte_ticks=1),
    )  # fmt: skip


def marks_of(layer: Layer, items: Items) -> Iterator[dict[str, tuple[int, ...]]]:
    """Where the pieces of every dimension begin, before the first item and after every one."""
    marks = dict.fromkeys(DIMS, (0,))
    yield dict(marks)
    for item in items:
        if isinstance(item, Loop):
            ends = (*marks[item.dim][1:], layer.extent(item.dim))
            ranges = zip(marks[item.dim], ends, strict=True)
            marks[item.dim] = tuple(a for lo, hi in ranges for a, _ in item.pieces(lo, hi, 0))
        yield dict(marks)


def loop_of(layer: Layer, dim: str, marks: tuple[int, ...]) -> Loop:
    """A loop that makes pieces begin at these marks."""
    ends = (*marks[1:], layer.extent(dim))
    return Loop(dim, max(b - a for a, b in zip(marks, ends, strict=True)), marks[1:])


def real(layer: Layer, items: Items) -> Items:
    """(0) Without the loops that cut nothing; the others stated by all their places."""
    marks = list(marks_of(layer, items))
    kept: list[Item] = []
    for item, before, after in zip(items, marks, marks[1:], strict=False):
        if isinstance(item, Hold):
            kept.append(item)
        elif before[item.dim] != after[item.dim]:
            kept.append(loop_of(layer, item.dim, after[item.dim]))
    return tuple(kept)


@st.composite
def nests(draw: st.DrawFn, layer: Layer) -> Items:
    """Any loops in any order, in steps or at free places, Holds anywhere."""
    dims = [d for d in DIMS if layer.extent(d) > 1]
    loops: list[Item] = []
    for _ in range(draw(st.integers(0, 7)) if dims else 0):
        dim = draw(st.sampled_from(dims))
        extent = layer.extent(dim)
        places = draw(st.sets(st.integers(1, extent - 1), min_size=1))
        step = draw(st.integers(1, extent - 1))
        loops.append(Loop(dim, 1, tuple(sorted(places))) if draw(st.booleans()) else Loop(dim, step))
    for operand in layer.operands:
        loops.insert(draw(st.integers(0, len(loops))), Hold(operand))
    return real(layer, tuple(loops))


def outwards(layer: Layer, items: Items) -> Iterator[Items]:
    """(1) A Hold moves outwards over the last loop outside it, if its operand does not depend on that."""
    for at, hold in enumerate(items):
        outside = [k for k in range(at) if isinstance(items[k], Loop)]
        if isinstance(hold, Hold) and outside:
            loop = items[outside[-1]]
            assert isinstance(loop, Loop)
            if loop.dim not in RELEVANT[hold.operand]:
                k = outside[-1]
                yield (*items[:k], hold, *items[k:at], *items[at + 1 :])


def inwards(layer: Layer, items: Items) -> Iterator[Items]:
    """(2) A loop between two Holds that the inner operand does not depend on moves inwards over the inner Hold.

    Of Holds with no loop between them that of IN is the first, so that the last loop outside it stays.
    """
    items = tuple(item for _, run in groupby(items, lambda i: isinstance(i, Hold)) for item in sorted(run, key=_later))
    holds = [k for k, item in enumerate(items) if isinstance(item, Hold)]
    for before, at in zip((-1, *holds), holds, strict=False):
        hold = items[at]
        assert isinstance(hold, Hold)
        for k in range(before + 1, at):
            loop = items[k]
            if isinstance(loop, Loop) and loop.dim not in RELEVANT[hold.operand]:
                yield (*items[:k], *items[k + 1 : at + 1], loop, *items[at + 1 :])


def _later(item: Item) -> bool:
    return isinstance(item, Hold) and item.operand != "IN"


def joined(layer: Layer, items: Items) -> Iterator[Items]:
    """(3) Two loops over a dimension with no Hold between them become one where the inner one is."""
    for k, one in enumerate(items):
        for n in range(k + 1, len(items)):
            two = items[n]
            if isinstance(two, Hold):
                break
            if isinstance(one, Loop) and isinstance(two, Loop) and one.dim == two.dim:
                marks = list(marks_of(layer, items))[n + 1][one.dim]
                yield (*items[:k], *items[k + 1 : n], loop_of(layer, one.dim, marks), *items[n + 1 :])
                break


def inside(layer: Layer, items: Items) -> Iterator[Items]:
    """(4) A loop inside all Holds is left out."""
    if items and isinstance(items[-1], Loop):
        yield items[:-1]


Step = Callable[[Layer, Items], Iterator[Items]]


def settled(layer: Layer, items: Items, steps: tuple[Step, ...]) -> Items:
    """The nest after the steps, as long as one of them moves anything."""
    while True:
        moved = next((after for step in steps for after in step(layer, items)), None)
        if moved is None:
            return items
        items = real(layer, moved)


CASES: dict[str, tuple[tuple[Step, ...], Step]] = {
    "1 outwards": ((), outwards),
    "2 inwards": ((outwards,), inwards),
    "3 joined": ((outwards, inwards), joined),
    "4 inside": ((), inside),
}


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=tries(25, 250), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_step_never_costs(name: str, data: st.DataObject) -> None:
    before, step = CASES[name]
    layer, machine = data.draw(layers()), data.draw(machines())
    items = settled(layer, data.draw(nests(layer)), before)
    one = replay(layer, machine, Nest(items), execute=False).outcome
    for after in step(layer, items):
        two = replay(layer, machine, Nest(real(layer, after)), execute=False).outcome
        assert two.bytes <= one.bytes
        assert two.occupancy_bytes["ocm"] <= one.occupancy_bytes["ocm"]


def test_a_loop_that_passes_another_hold_may_end_a_slide() -> None:
    """Step (2) without its order of Holds: r moves over W and stands last outside IN, which slid along j."""
    layer = Layer.conv("x", channels=1, filters=2, size=(2, 4), kernel=(1, 2))
    machine = Machine(
        name="m", tick_ps=1, in_bytes=2, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=64, sliding=True,
        transfer=Transfer(byte_ticks=1),
    )  # fmt: skip
    r, j, w, i = Loop("r", 1), Loop("j", 1), Hold("W"), Hold("IN")
    orders = ((r, j, w, i), (r, j, i, w), (j, w, r, i))
    moved = [replay(layer, machine, Nest((Hold("OUT"), *order))).outcome.bytes for order in orders]
    assert moved == [36, 36, 40]
    assert [n for n in inwards(layer, (Hold("OUT"), r, j, w, i)) if n.index(r) > n.index(i)] == []


def test_one_loop_in_equal_steps_is_no_such_step() -> None:
    """The old third step: columns 2, 1, 2 by loops of 3 and 2 need tiles of 3 columns, one loop of 2 needs 4."""
    layer = Layer.conv("five", channels=1, filters=1, size=(5, 5), kernel=(3, 3), pad=(1, 1, 1, 1))
    machine = Machine(
        name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=64, sliding=True,
        transfer=Transfer(byte_ticks=1),
    )  # fmt: skip

    def occupied(*loops: Loop) -> tuple[int, int]:
        items = (Hold("W"), *loops, Loop("r", 1), Hold("IN"), Loop("c", 1), Hold("OUT"))
        outcome = replay(layer, machine, Nest(items)).outcome
        return outcome.bytes, outcome.occupancy_bytes["ocm"]

    # 9 weights, 3 rows of 3 columns, 1 result; one pass over the input for each of three strips
    assert occupied(Loop("c", 3), Loop("c", 2)) == occupied(Loop("c", 2, (2, 3))) == (79, 19)
    assert occupied(Loop("c", 2)) == (79, 22)

"""Branch and bound over numbers and sizes of pieces: halves, and bounds against plans."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, islice

import numpy as np
import pytest

from formulations.pins import Pins
from formulations.tiling.problem import NESTS
from formulations.tiling.search import Search
from formulations.tiling.settling import Settled, Work
from formulations.tiling.splitting import Splitting, _bounds, _Search, flagged, halves, mirrors, places
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.hidden import Hidden
from hwmodels.nest.price.ranges import Ranges
from hwmodels.nest.price.sequences import cutting, orders
from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.load import load_machine, load_network
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import Layer
from solver.problems.tiling import decide_space
from tests.hwmodels.test_hidden import nests, proper
from tests.small import machine


def test_halves_share_what_a_class_says() -> None:
    # Any values of a class are in one of its halves, and in one only.
    rng = random.Random(3)
    for _ in range(200):
        pairs = [sorted((rng.randint(1, 9), rng.randint(1, 9))) for _ in range(8)]
        if all(low == high for low, high in pairs):
            continue
        table = np.array(pairs, np.int64).reshape(2, 4, 2)
        one = Ranges.of(*(table[:, kind, end][:, None].copy() for kind in range(4) for end in range(2)))
        parts = halves(one)
        for _ in range(20):
            value = np.array([rng.randint(low, high) for low, high in pairs]).reshape(2, 4)
            inside = [
                all(
                    (below[:, k] <= value[:, kind]).all() and (value[:, kind] <= above[:, k]).all()
                    for kind, (below, above) in enumerate(parts.pairs)
                )
                for k in range(2)
            ]
            assert sum(inside) == 1


def test_a_loop_that_may_cut_does_in_one_half_only() -> None:
    # Two loops: of the first it is known that it cuts.
    one = Ranges.of(*(np.array([[2], [1]]) for _ in range(8)))
    one.cuts[0] = 1
    parts = flagged(one)
    assert [parts.cuts.tolist(), parts.cuts_most.tolist()] == [[[1, 1], [0, 1]], [[1, 1], [0, 1]]]


def test_places_begin_and_end_with_the_pieces_asked_for() -> None:
    # 10 in four pieces, 1 first and 3 last: 1 + 3 + 3 + 3; two are all there is; too little for so many: equal steps.
    assert places(10, 4, 1, 3) == (1, 4, 7)
    assert places(10, 2, 4, 6) == (4,)
    assert places(5, 4, 2, 2) == 2


def drawn(seed: int) -> tuple[Layer, Machine]:
    """A small convolution, and a machine with two buffers."""
    rng = random.Random(seed)
    taps = rng.choice((1, 3))
    layer = Layer.conv(
        "x", channels=rng.randint(1, 4), filters=rng.randint(2, 5), size=(rng.randint(3, 6), rng.randint(3, 4)),
        kernel=(taps, taps), pad=(taps // 2,) * 4,
    )  # fmt: skip
    on = machine(
        ocm_bytes=rng.randint(150, 300), buffering="double", overlap="double_buffered", sliding=seed % 2 == 0,
        compute=Compute(model="array", rows=2, cols=2, cycle_ticks=3), in_layout="HWC", out_layout="HWC",
        transfer=Transfer(call_ticks=20, segment_ticks=2, byte_ticks=1),
    )  # fmt: skip
    return layer, on


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_left_to_another_skeleton_is_bounded_there(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # The least bound of all is the same where every skeleton bounds all of its nests itself.
    layer, on = drawn(seed)
    members = NESTS["tiling"].build(layer, on, Pins()).members

    def least() -> int:
        return min(one.bound for one in Splitting(members).least_times(2**30, lambda: False) if one is not None)

    monkeypatch.setattr("formulations.tiling.splitting.NODES", 10**9)
    monkeypatch.setattr("formulations.tiling.splitting.WORK", 2_000_000)
    bound = least()
    monkeypatch.setattr(_Search, "_key", lambda self, one: object())
    assert bound == least()


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_proven_from_below_is_no_more_than_the_optimum(seed: int) -> None:
    """From nothing, for a plan of twice the least time: values above the optimum are tried, and proven are others."""
    layer, on = drawn(seed)
    space = NESTS["tiling"].build(layer, on, Pins())
    best = decide_space(space, ("time",)).values["time"]
    raised = Splitting(space.members).raised(0, 2 * best, lambda parts: lambda: False)
    assert 0.7 * best < raised <= best


SQUARE = (
    Layer(name="x", b=1, g=5, m=1, n=1, r=4, c=4, kh=3, kw=3, h=4, l=4, pad_top=1, pad_left=1),
    Layer(name="x", b=1, g=1, m=3, n=4, r=3, c=3, kh=2, kw=2, h=4, l=4),
    Layer(name="x", b=1, g=1, m=3, n=2, r=3, c=3, kh=1, kw=1, h=5, l=5, stride_h=2, stride_w=2),
)


def test_nests_are_left_to_those_with_columns_for_rows_that_take_the_same_ticks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Of all that do not have it so, some take other ticks: rows in one run beside columns in several.
    monkeypatch.setattr("tests.hwmodels.test_hidden.random_layer", lambda rng, tiny: rng.choice(SQUARE))
    small = drawn(2)[1].model_copy(update={"ocm_bytes": 100})
    tall = small.model_copy(update={"out_layout": "CHW"})
    monkeypatch.setattr("tests.hwmodels.test_hidden.drawn", lambda rng, layer: rng.choice((small, small, tall)))
    mirror, left, other = dict(zip("rcij", "crji", strict=True)), 0, 0
    for nest, time, hidden, one in islice(nests(random.Random(3), 40), 110):
        some, _ = hidden.tightened(one)
        swapped = (
            replace(item, dim=mirror.get(item.dim, item.dim)) if isinstance(item, Loop) else item for item in nest.items
        )
        ticks = price(hidden.layer, hidden.machine, Nest(tuple(swapped))).time_ticks
        if some.told[0] and mirrors(hidden, *cutting(hidden, some)):
            assert ticks == time, (hidden.layer, hidden.machine, nest)
            left += any(isinstance(item, Loop) and item.dim in mirror for item in nest.items)
        else:
            other += ticks != time
    assert min(left, other) > 4, (left, other)


@pytest.mark.parametrize("sliding", [False, True])
def test_classes_of_one_key_hold_the_same_nests(sliding: bool) -> None:
    # The first loop over a dimension halves it, the second one cuts it in single elements.
    layer, on = drawn(1)
    on = on.model_copy(update={"sliding": sliding})
    listings = NESTS["tiling"].build(layer, on, Pins()).members
    times, several = dict[object, set[frozenset[int]]](), 0
    for listing, hidden in ((one, hidden) for one in listings for hidden in _bounds(one)):
        search = _Search(listing, Settled(hidden, Work(0)), 1, {})
        free = [n for n, (d, k) in enumerate(hidden.loops) if layer.extent(d) > 1 and (k == 1 or layer.extent(d) > 2)]
        for some in (list(some) for number in (1, 2, 3) for some in combinations(free, number)):
            one = hidden.classes([{}])
            one.cuts[some] = 1
            nests = [ordered(layer, hidden, one, order) for order in orders(hidden, one)]
            assert all(proper(nest) for nest in nests)
            found = frozenset(price(layer, on, nest).time_ticks for nest in nests)
            times.setdefault(search._key(one), set()).add(found)
            several += len(found) > 1
    assert all(len(found) == 1 for found in times.values())
    assert min(several, len(times)) > 5


def ordered(layer: Layer, hidden: Hidden, one: Ranges, order: Sequence[int]) -> Nest:
    """The nest of a class, its loops in some order: the first one over a dimension halves it, in ones the second."""
    _, outside = cutting(hidden, one)
    items = list[Item]()
    for k in range(len(order) + 1):
        items += [hidden.skeleton.hold(op) for op in hidden.ops if outside[op] == k]
        for d, level in (hidden.loops[n] for n in order[k : k + 1]):
            items.append(Loop(d, 1 if level == 2 else -(-layer.extent(d) // 2)))
    return Nest(tuple(items))


@pytest.mark.parametrize("buffering", ["double", "choose"])
def test_loops_between_two_holds_stand_in_any_order(buffering: str) -> None:
    """3 x 2 elements one by one, a load (store) of 5 ticks, compute of 1: all six steps take 39 or 42.

    In 10 bytes two tiles of IN and two of OUT. Nests of larger tiles have fewer steps, but store more behind the last.
    With c outside r a row of a column follows another; each of the bounds holds for both orders.
    """
    layer = Layer(name="x", kind="eltwise", g=1, m=1, n=1, r=3, c=2, h=3, l=2, weights="none")
    on = Machine(
        name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=10, buffering=buffering,
        transfer=Transfer(call_ticks=2, byte_ticks=3), compute=Compute(model="array", cycle_ticks=1),
    )  # fmt: skip
    known = Nest((Loop("c", 1, (1,)), Loop("r", 2, (1,)), Hold("IN", 2), Hold("OUT", 2)))
    least = price(layer, on, known).time_ticks
    found = decide_space(NESTS["tiling"].build(layer, on, Pins()), ("time",))
    assert found.bound is not None
    assert (least, found.values["time"], found.bound) == (39, 39, 39)


@pytest.mark.parametrize("seed", range(4))
def test_no_bound_of_a_member_is_above_its_candidates(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # All nests that are listed, laid out one by one; one of several members counts for one of them.
    monkeypatch.setattr("formulations.tiling.splitting.NODES", 20_000)
    monkeypatch.setattr("formulations.tiling.splitting.WORK", 1_000_000)
    layer, on = drawn(seed)
    members = NESTS["tiling"].build(layer, on, Pins()).members
    leasts, compared = Splitting(members).least_times(2**30, lambda: False), 0
    least = min(one.bound for one in leasts if one is not None)
    for member in members:
        branch = member.branch(("time",), coarse=True)
        if branch.empty:
            continue
        fits = np.argwhere(branch.feasible())
        for s, q in fits[:: max(1, len(fits) // 20)]:
            assert least <= branch.measures(s, q)["time"]
            compared += 1
    assert compared > 20


@pytest.mark.parametrize(("network", "name", "least"), [("squeezenet1_1", "pool5", 206_240), ("lenet5", "s2", 10_268)])
def test_poolings_that_take_as_long_as_any_are_proven(network: str, name: str, least: int) -> None:
    # With two buffers; s2 cuts rows in groups, and is proven piece by piece.
    layer = next(one for one in load_network(network).layers if one.name == name)
    space = NESTS["tiling"].build(layer, load_machine("scratchpad_64k", {"buffering": "double"}), Pins())
    answer = decide_space(space, ("time",))
    assert (answer.status, answer.values["time"]) == ("OPTIMAL", least)


def searched(channels: int = 3) -> Search:
    """The search of a layer with two buffers, done."""
    layer = Layer.conv("x", channels=channels, filters=4, size=(5, channels))
    on = machine(
        ocm_bytes=60, buffering="double", overlap="double_buffered", sliding=True,
        compute=Compute(model="array", rows=2, cols=2, cycle_ticks=3),
        transfer=Transfer(call_ticks=20, segment_ticks=2, byte_ticks=1),
    )  # fmt: skip
    search = Search(NESTS["tiling"].build(layer, on, Pins()), ("time",))
    search.run()
    return search


def test_what_was_bounded_before_time_was_up_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is up when the classes have been bounded, before any member was looked at: their bounds are the layer's."""
    split = Search._split

    def hurried(search: Search, measure: str) -> None:
        split(search, measure)
        search.deadline = 0.0

    monkeypatch.setattr(Search, "_split", hurried)
    assert searched(2).proven == ("time",)
    monkeypatch.setattr("formulations.tiling.splitting.WORK", 0)
    search = searched(2)
    assert min(least.bound for least in search._leasts.values() if least) == search.bounds["time"]


def test_a_gap_names_the_class_that_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without work piece by piece the layer is not proven.
    monkeypatch.setattr("formulations.tiling.splitting.WORK", 0)
    search = searched()
    assert search.bounds["time"] < search.kept["time"]
    assert search.stats["gap"].endswith("transfers that overlap are bounded, not laid out")

"""Time of fusion: matrices against the recurrence, options against their timelines, bounds against plans."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement, product
from math import inf
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from formulations.clock import ENDLESS
from formulations.fusion.groups import Group
from formulations.fusion.latency import bounds, search
from formulations.fusion.latency.bounds import Floors, _Visits
from formulations.fusion.latency.options import Options, Passed, There
from formulations.fusion.latency.paths import Paths, applied, undominated
from formulations.fusion.latency.products import Flow, caps, fresh, joint, matrices, products
from formulations.fusion.latency.search import Fastest
from formulations.fusion.latency.timelines import Timelines
from formulations.fusion.orders import WHOLE
from formulations.fusion.part import FusionPart
from formulations.fusion.pins import DECISIONS
from formulations.fusion.steps import GroupSteps, Part, Piece, joined
from formulations.pins import Pins, parse_pins
from hwmodels.schedule import FusedRun, Hold, LayerRun, Loop, Nest, NetworkRun
from hwmodels.timeline.price import occupancy
from hwmodels.timeline.schedule import Load, Step
from instances.load import load_machine, load_network
from instances.network.network import Network
from instances.network.operators import Conv, Input
from instances.zoo.builder import Builder
from instances.zoo.chains import chain, skip
from solver import check, show
from solver.calls.solve import solve
from solver.problems.registry import PROBLEMS
from tests.effort import tries

#: No time but for bytes.
BYTES = {"transfer.call_ticks": "0", "transfer.segment_ticks": "0", "compute.cycle_ticks": "1"}


def part_of(network: Network | str, *, calls: bool = True, **memory: int) -> FusionPart:
    settings = {name: str(value) for name, value in memory.items()} | ({} if calls else BYTES)
    net = load_network(network) if isinstance(network, str) else network
    return FusionPart(net, load_machine("scratchpad_768k", settings), Pins(()))


def flow_of(rng: random.Random, *sizes: int) -> tuple[Flow, int]:
    count = sum(sizes)
    columns = np.array([[rng.randint(0, 9) for _ in range(7)] for _ in range(count)], np.int64).T
    columns[5:] *= [rng.random() < 0.3 for _ in range(count)]
    room = int(columns[4].max(initial=0)) + rng.randint(0, 9)
    return Flow(np.cumsum([0, *sizes]), *columns), room


def after(flow: Flow, steps: range, room: int, clocks: tuple[int, ...]) -> tuple[int, ...]:
    """The recurrence of the docstring of products, step by step, with what is ahead by its definition.

    Two clocks: stores in order.
    """
    end, *queue = clocks
    for t in steps:
        ahead = room - int(flow.held[t])
        for s in range(t + 1, steps.stop):
            due = int(flow.due[t + 1 : s + 1].sum()) + int(flow.heavy[t + 1 : s].sum())
            ahead = min(ahead, room - int(flow.held[s]) + due)
        load, late = int(flow.load[t]), room - int(flow.held[t])
        begin = max(end, queue[0] + load, *(at + load - late for at in queue[1:]))
        queue = [at + load + int(flow.weights[t]) for at in queue]
        end = max(begin + int(flow.compute[t]), queue[0])
        queue = [max(at, end - ahead) for at in queue]
        queue[-1] += int(flow.store[t])
    return end, *queue


@pytest.mark.parametrize("in_order", [False, True])
def test_a_matrix_is_what_its_steps_do(in_order: bool) -> None:
    """Ways of one to nine steps, from any clocks."""
    rng = random.Random(1)
    for _ in range(tries(60, 600)):
        sizes = [rng.randint(1, 9) for _ in range(rng.randint(1, 4))]
        flow, room = flow_of(rng, *sizes)
        made = products(matrices(flow, room, 1, in_order=in_order), flow.first)
        for way, matrix in enumerate(made):
            clocks = tuple(rng.randint(0, 30) for _ in range(2 if in_order else 3))
            clocks = clocks[0], *sorted(clocks[1:])
            steps = range(int(flow.first[way]), int(flow.first[way + 1]))
            assert tuple((matrix + np.array(clocks)).max(axis=1).tolist()) == after(flow, steps, room, clocks)


def after_two(flows: list[Flow], steps: range, room: int, clocks: tuple[int, ...]) -> tuple[int, ...]:
    """The same of two queues, the second one with stores: each waits for itself, the engine for both."""
    end, other, *queue = clocks
    for t in steps:
        begin = end
        for flow, line in ((flows[0], [other]), (flows[1], queue)):
            late = 3 * (room - int(flow.held[t]))
            begin = max(begin, line[0] + int(flow.load[t]), *(at + int(flow.load[t]) - late for at in line[1:]))
        other += int(flows[0].load[t] + flows[0].weights[t])
        queue = [at + int(flows[1].load[t] + flows[1].weights[t]) for at in queue]
        end = max(begin + int(flows[1].compute[t]), other, queue[0])
        ahead = []
        for flow in flows:
            least = room - int(flow.held[t])
            for s in range(t + 1, steps.stop):
                due = int(flow.due[t + 1 : s + 1].sum()) + int(flow.heavy[t + 1 : s].sum())
                least = min(least, room - int(flow.held[s]) + due)
            ahead.append(least)
        other, queue = max(other, end - 2 * ahead[0]), [max(at, end - 3 * ahead[1]) for at in queue]
        queue[-1] += int(flows[1].store[t])
    return end, other, *queue


@pytest.mark.parametrize("in_order", [False, True])
def test_a_matrix_of_two_queues_is_what_its_steps_do(in_order: bool) -> None:
    """Bytes take two ticks in the first queue, which loads alone, and three in the other."""
    rng = random.Random(6)
    for _ in range(tries(60, 600)):
        sizes = [rng.randint(1, 9) for _ in range(rng.randint(1, 4))]
        (first, _), (last, room) = flow_of(rng, *sizes), flow_of(rng, *sizes)
        flows = [replace(first, compute=last.compute, held=last.held, store=0 * first.store), last]
        made = products(joint(flows, room, (2, 3), 3, in_order=in_order), last.first)
        for way, matrix in enumerate(made):
            end, other, *queue = (rng.randint(0, 30) for _ in range(3 if in_order else 4))
            clocks = end, other, *sorted(queue)
            steps = range(int(last.first[way]), int(last.first[way + 1]))
            assert tuple((matrix + np.array(clocks)).max(axis=1).tolist()) == after_two(flows, steps, room, clocks)


def test_what_is_stored_at_the_end_is_loaded_behind_it() -> None:
    """Two ways of loads of 5, 0 and 4 ticks that begin when they do, and 3 ticks a step.

    The first step waits for 5, the third for 9 less 6 that were computed before. Way two: 2 ticks, then 1 behind 3.
    """
    flow = Flow(np.array([0, 3, 5]), *np.array([[3] * 5, *([0] * 5 for _ in range(6))], np.int64))
    assert fresh(flow, np.array([5, 0, 4, 2, 1])).tolist() == [5, 2]
    assert fresh(flow, np.array([1, 0, 9, 0, 3])).tolist() == [4, 0]


def test_labels_behind_a_result_that_is_stored_at_its_end() -> None:
    """The engine has ended at 10, stores at 14: 5 ticks of loading begin then, and the next 3 ticks end at 22."""
    matrix, clocks = np.array([[[3, 0, 0], [0, 2, 0], [0, 0, 2]]], np.int64), np.array([[10, 12, 14]], np.int64)
    late, soon = (applied(matrix, np.array([5]), clocks, late=late)[0, 0].tolist() for late in (True, False))
    assert (late, soon) == ([22, 19, 19], [14, 14, 16])
    assert applied(matrix, np.array([0]), clocks, late=True)[0, 0].tolist() == soon


def test_what_is_ahead_by_hand() -> None:
    """12 bytes, steps of 6, 8 and 4: the second is the tightest, beside it lie 4; 2 of those are due in it."""
    flow = Flow(
        np.array([0, 3]), *np.array([[1] * 3, [0] * 3, [0] * 3, [0, 2, 9], [6, 8, 4], *[[0] * 3] * 2], np.int64)
    )
    assert caps(flow, 12).tolist() == [6, 4, 8]


def test_weights_that_come_block_by_block_lie_ahead_when_their_step_begins() -> None:
    """Steps of 6 and 8 bytes in 12, the second with 9 of weights: 4 of them lie beside it when it begins, no more.

    Maps of 9 bytes are among the bytes of the second: 6 of them lie beside the first.
    """
    flow = np.array([[1] * 2, [0] * 2, [0] * 2, [0] * 2, [6, 8], [0] * 2, [0, 9]], np.int64)
    assert caps(Flow(np.array([0, 2]), *flow), 12).tolist() == [4, 4]
    flow[[3, 6]] = flow[[6, 3]]
    assert caps(Flow(np.array([0, 2]), *flow), 12).tolist() == [6, 4]


def test_steps_that_each_load_behind_the_one_before_overlap() -> None:
    """The example of the docstring: 6 ticks of loading, then 10 a step."""
    flow = Flow(np.array([0, 3]), *np.array([[10] * 3, [6] * 3, [0] * 3, [6] * 3, [6] * 3, *[[0] * 3] * 2], np.int64))
    (matrix,) = products(matrices(flow, 12, 1), flow.first)
    assert (matrix + 0).max(axis=1)[0] == 6 + 30
    (alone,) = products(matrices(flow, 6, 1), flow.first)
    assert (alone + 0).max(axis=1)[0] == 3 * 16


def test_labels_that_others_are_below_go() -> None:
    rng = random.Random(2)
    for _ in range(tries(50, 500)):
        clocks = np.array([[rng.randint(0, 4) for _ in range(3)] for _ in range(rng.randint(1, 12))])
        kept = {tuple(clocks[k]) for k in undominated(clocks, 99)}
        all_ = {tuple(one) for one in clocks.tolist()}
        assert kept == {one for one in all_ if not any(o != one and all(np.array(o) <= one) for o in all_)}


def pooled() -> Network:
    """A layer of 32 filters whose channels are pooled, so that both may take turns, and one more."""
    net = Builder("pooled", "")
    x = net.conv(net.input(1, 8, 6, 6, name="in"), "a", 32, 1, batch_norm=False, act="")
    net.conv(net.pool(x, "pool", "max", 2, 2), "b", 8, 1, batch_norm=False, act="")
    return net.build()


NETS = {
    "chain": chain(4, 8, 4, size=12),
    "skip": skip(8, 8),
    "wide": chain(32, 8, size=6, channels=8, taps=1),
    "pooled": pooled(),
}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("kib", [2, 4])
def test_options_are_runs_that_fit(name: str, kib: int) -> None:
    """Every option of every group and place, as a run of its own: its bytes are those that fusion counts."""
    part = part_of(NETS[name], ocm_bytes=1024 * kib, ocm_banks=16 * kib)
    options = Options(part.groups, 512)
    for first, last in product(range(len(part.net.layers)), repeat=2):
        if first > last:
            continue
        places = {
            options.near(first, last, there, after): (there, after)
            for there in options.states(first) for after in options.states(last + 1)
            if options.near(first, last, there, after)[1] >= 0
        }  # fmt: skip
        for place, ways in options.ways(first, last, places).items():
            for way in ways:
                (run,) = options.runs([Passed(way, *places[place])])
                assert isinstance(run, FusedRun)
                assert part.prices.price(run).peak_bytes <= place[1]
                assert run.weights == way.kept
                assert max(way.matrix[0]) >= sum(_least_ticks(part, t) for t in range(first, last + 1))


@pytest.mark.parametrize(("most", "filters", "expected"), [
    (2**10, 96, [16, 32, 48]),  # 96 filters of 8 bytes, 6 rounds of 16 lanes each; 24 would take 2 rounds a block, 8
    (2**8, 96, [16, 32]),  # no more than 256 bytes
    (64, 96, [16, 8]),  # a block has 8 filters, or a round of lanes
    (2**10, 22, [11]),  # 2 rounds, by 2 channels it would be 11
])  # fmt: skip
def test_channels_of_turns_by_hand(most: int, filters: int, expected: list[int]) -> None:
    """Of all divisors those with the fewest rounds of lanes, the small ones first."""
    net = Builder("pooled", "")
    net.pool(net.conv(net.input(1, 8, 6, 6, name="in"), "a", filters, 1, batch_norm=False, act=""), "pool", "max", 2, 2)
    part = part_of(net.build(), ocm_bytes=4096, ocm_banks=64)
    assert [*Options(part.groups, most)._channels(Group(part.net, 0, 1))] == expected


def _least_ticks(part: FusionPart, t: int) -> int:
    layer = part.net.layers[t]
    return layer.r * layer.c * layer.kh * layer.kw * 8 * -(-layer.m // 16) * -(-layer.n // 64)


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("kib", [2, 4])
def test_many_ways_at_once_are_each_by_itself(name: str, kib: int) -> None:
    """The timeline of a run has the steps and transfers that its option was priced by."""
    part = part_of(NETS[name], ocm_bytes=1024 * kib, ocm_banks=16 * kib)
    options, last, most = Options(part.groups, 512), len(part.net.layers) - 1, 0
    for way in options.ways(0, last, [(frozenset(), options.room)])[frozenset(), options.room]:
        runs = options.runs([Passed(way, There(), There())])
        timeline = part.timelines.timeline(part.numbered(runs), 512, WHOLE)
        steps, loads = len(timeline.steps), [one for one in timeline.transfers if isinstance(one, Load)]
        stores = [one for one in timeline.transfers if not isinstance(one, Load)]

        def by_step(moves: list[tuple[int, int]], steps: int = steps) -> np.ndarray:
            at, values = np.array(moves or [(0, 0)]).T
            return np.bincount(at, values, steps).astype(np.int64)

        flow = Flow(
            np.array([0, steps]), np.array([one.ticks for one in timeline.steps]),
            by_step([(one.due - 1, one.ticks) for one in loads]),
            by_step([(one.released - 1, one.ticks) for one in stores]),
            by_step([(one.due - 1, one.bytes) for one in loads]), np.array([one.bytes for one in timeline.steps]),
            *np.zeros((2, steps), np.int64),
        )  # fmt: skip
        assert (products(matrices(flow, options.room, 1), flow.first)[0] == way.matrix).all()
        most = max(most, steps)
    assert most


def test_what_is_stored_is_loaded_behind_that() -> None:
    """A run stores rows 0-1 in step 1 and rows 2-3 in step 2; the next one loads rows 1-2, then row 0."""
    writes, reads = Part([Step(1, 9)] * 2), Part([Step(1, 9)] * 2)
    writes.store(("OUT", 0), 1, 4, 1, Piece(7, 0, 2))
    writes.store(("OUT", 0), 1, 4, 2, Piece(7, 2, 4))
    reads.load(("OUT", 0), 1, 4, 1, Piece(7, 1, 3))
    reads.load(("OUT", 0), 1, 4, 2, Piece(7, 0, 1))
    reads.load(("OUT", 0), 1, 4, 2)
    timeline = joined([writes, reads])
    assert [(one.due, one.ready) for one in timeline.transfers if isinstance(one, Load)] == [(3, 3), (4, 2), (4, 1)]


def test_channels_that_are_stored_are_loaded_behind_that() -> None:
    """Step 1 stores channels 0-1 of all rows, step 2 channels 2-3; rows alone are of all channels."""
    writes, reads = Part([Step(1, 9)] * 2), Part([Step(1, 9)] * 2)
    writes.store(("OUT", 0), 1, 4, 1, Piece(7, 0, 4, 0, 2))
    writes.store(("OUT", 0), 1, 4, 2, Piece(7, 0, 4, 2, 4))
    reads.load(("OUT", 0), 1, 4, 1, Piece(7, 1, 3, 0, 2))
    reads.load(("OUT", 0), 1, 4, 1, Piece(7, 1, 3, 1, 3))
    reads.load(("OUT", 0), 1, 4, 2, Piece(7, 0, 1))
    timeline = joined([writes, reads])
    assert [(one.due, one.ready) for one in timeline.transfers if isinstance(one, Load)] == [(3, 2), (3, 3), (4, 3)]


def _classifier() -> Network:
    """A 1x1 convolution of 4 -> 12 channels on 4 x 4 pixels, which are averaged."""
    net = Builder("classifier", "")
    net.pool(net.conv(net.input(1, 4, 4, 4, name="in"), "conv", 12, batch_norm=False, act=""), "pool", "avg", 4)
    return net.build()


def test_pooled_channels_are_loaded_as_blocks_of_filters_are_stored() -> None:
    """Blocks of 5 filters are stored by steps 1 to 3; channels are pooled in blocks of 3 in the steps behind.

    Channels 0-2 wait for filters 0-4, channels 3-5 and 6-8 for filters 5-9, channels 9-11 for all.
    """
    part = part_of(_classifier(), ocm_bytes=1024, ocm_banks=16)
    filters = Nest((Hold("IN"), Loop("m", 5), Hold("W"), Hold("OUT")))
    channels = Nest((Loop("g", 3), Hold("IN"), Hold("OUT")))
    runs = LayerRun(filters, {}, 0, ()), LayerRun(channels, {}, 0, ())
    timeline = joined([part.timelines.alone(t, run, 0) for t, run in enumerate(runs)])
    loads = [one for one in timeline.transfers if isinstance(one, Load) and one.due > 3]
    assert [(one.due, one.ready) for one in loads] == [(4, 2), (5, 3), (6, 3), (7, 4)]


@pytest.mark.parametrize("name", NETS)
def test_runs_of_other_plans_serve_again(name: str) -> None:
    """Steps and transfers in two sizes, after those of other plans, and by a part that has seen none."""
    part, new = (part_of(NETS[name], ocm_bytes=4096, ocm_banks=64) for _ in range(2))
    options, rng = Options(part.groups, 512), random.Random(5)
    paths = [path for path in (_any(options, rng) for _ in range(tries(8, 60))) if path]
    for path in paths:
        runs = options.runs(path)
        numbered = [*part.numbered(runs)]
        for size in ((512, None), (64, 32)):
            other = Timelines(new.prices, new.layers, new.demands.order)
            assert part.timelines.parts(numbered, *size) == other.parts(numbered, *size)


class _Looks:
    """A search of which each look finds plans of some ticks."""

    least, _widest = 1000, 0
    groups = SimpleNamespace(demands=SimpleNamespace(order=SimpleNamespace(largest=1)))

    def __init__(self, found: list[float]) -> None:
        self.found, self.asked, self._ticks = iter(found), list[float](), inf

    def _looked(self, below: float, *_: object) -> int:
        self.asked.append(below)
        self._ticks = min(self._ticks, next(self.found))
        return 10


@pytest.mark.parametrize(("many", "found", "asked"), [
    (0, [1020, 1010], [1031.25, 1020]),  # one near the bound; blocks of another size have strips for better ones alone
    (0, [2000, 1100, 1090], [1031.25, 1125, 1100]),  # none below 1,031: on to 1,125
    (0, [inf] * 5, [1031.25, 1125, 1500, inf]),  # none at all
    (1, [1020, 1010], [inf, 1020]),  # of few strips all at once
])  # fmt: skip
def test_of_many_strips_those_near_the_bound_come_first(
    monkeypatch: pytest.MonkeyPatch, many: int, found: list[float], asked: list[float]
) -> None:
    """The bound is 1,000; then 1/32, 1/8 and 1/2 more, until a plan is as near."""
    monkeypatch.setattr(search, "Paths", lambda below, *_: below)
    monkeypatch.setattr(search, "MANY_STRIPS", many)
    looks, goal = _Looks(found), SimpleNamespace(clock=ENDLESS)
    sizes = [(2, True), (1, True)][: 1 if inf in found else 2]
    Fastest._all(looks, sizes, lambda *made: min(made[2]), lambda below: {below}, goal)  # type: ignore[arg-type,return-value]
    assert looks.asked == asked


def test_layers_by_themselves_in_blocks_of_channels() -> None:
    """64 bytes of input, 48 of weights and 192 of results: blocks of 4 filters, or of 2 channels that are pooled."""
    part = part_of(_classifier(), ocm_bytes=1024, ocm_banks=16)
    conv, pool = (LayerRun(Nest(()), {}, 0, ()) for _ in range(2))
    assert part.layers.in_blocks(0, conv, 303, 16) == Nest((Hold("IN"), Loop("m", 4), Hold("W"), Hold("OUT")))
    assert part.layers.in_blocks(0, conv, 304, 16) is None  # all of it finds room: strips do
    assert part.layers.in_blocks(0, conv, 60, 16) is None
    assert part.layers.in_blocks(1, pool, 300, 32) == Nest((Loop("g", 2), Hold("IN"), Hold("OUT")))
    assert part.layers.in_blocks(1, pool, 300, 200) is None


def test_what_every_schedule_takes_by_hand() -> None:
    """64 bytes of input, 48 of weights, 12 results: 124 ticks; 16 pixels of 1 and of 16 cycles: 16 + 16 = 32 cycles."""
    part = part_of(_classifier(), calls=False, ocm_bytes=1024, ocm_banks=16)
    assert part.compulsory_ticks == 124 == part.must["time"]
    assert part_of(_classifier(), ocm_bytes=1024, ocm_banks=16).compulsory_ticks == 32 * 8


@pytest.mark.parametrize(("name", "kib", "calls"), [
    *((name, kib, True) for name, kib in zip(NETS, (2, 4, 16, 2), strict=True)),
    *((name, kib, False) for name in NETS for kib in (2, 4)),
])  # fmt: skip
def test_no_plan_is_below_the_bound(name: str, kib: int, calls: bool) -> None:
    """Random paths of options, and those that the search lays out, by their own groups too; some come near."""
    part = part_of(NETS[name], calls=calls, ocm_bytes=1024 * kib, ocm_banks=16 * kib)
    options, rng, found = Options(part.groups, 512), random.Random(3), list[int]()
    floors = Floors(part.groups, part.tables.nests.arcs("proven"), options.suited)
    least = Paths(floors).ends()[0][0]
    best = Paths(options)
    paths = [best.path(label) for _, label in best.ends()] + [_any(options, rng) for _ in range(tries(20, 300))]
    for path in (path for path in paths if path):
        runs = options.runs(path)
        assert not part.contains(runs)
        laid = part.laid(runs)
        assert max(least, part.least_time(runs), _floor(floors, path)) <= laid.ticks
        assert int(occupancy(laid.timeline).max()) <= part.timelines.room
        found.append(laid.ticks)
    assert len(found) > 3
    assert calls or least > 0.7 * min(found)


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("kib", [1, 2, 4])
def test_no_option_is_below_all_floors(name: str, kib: int) -> None:
    """Entry by entry, with blocks of two sizes, and with weights that stay in more or less of the room.

    Without what is known of the ends of a network: labels let a first load be ahead of everything.
    """
    part, compared = part_of(NETS[name], ocm_bytes=1024 * kib, ocm_banks=16 * kib), 0
    several = [Options(part.groups, most) for most in (64, 512)]
    floors = Floors(part.groups, part.tables.nests.arcs("proven"), several[0].suited)
    floors._ended = lambda made, begin, drain: made  # type: ignore[method-assign]
    for first, last in combinations_with_replacement(range(len(part.net.layers)), 2):
        states = product(floors.states(first), floors.states(last + 1))
        every = {floors.near(first, last, a, b) for a, b in states}
        near = {place for place in every if place[1] >= 0}
        least = floors.ways(first, last, near)
        for place, ways in ((place, ways) for one in several for place, ways in one.ways(first, last, near).items()):
            below = np.stack([way.matrix for way in least[place]] or [np.zeros((3, 3))])
            assert bool(ways) <= bool(least[place])
            assert all((way.matrix >= below).all(axis=(1, 2)).any() for way in ways)
            compared += sum(way.option.height < part.net.layers[last].r for way in ways)
    assert compared or kib == 1


def test_calls_of_what_is_ahead_are_not_counted() -> None:
    """Rows of 24 bytes take 888 ticks: each fits beside the step before, so ahead are more ticks than bytes.

    A plan that was found by hand takes 45,864 ticks: one group, strips of a row, all weights stay, those of `a` in two
    transfers. With calls in the clocks the bound was 55,134.
    """
    net = Builder("rows", "")
    x = net.input(1, 2, 12, 12, name="in")
    net.conv(net.conv(x, "a", 64, 3, batch_norm=False, act=""), "b", 2, 1, batch_norm=False, act="")
    part = part_of(net.build(), ocm_bytes=2304, ocm_banks=36)
    floors = Floors(part.groups, part.tables.nests.arcs("proven"), Options(part.groups, 512).suited)
    assert Paths(floors).ends()[0][0] <= 45_864


def test_what_stays_is_not_there_before_its_step() -> None:
    """Weights that stay and are read first in a step may be loaded ahead of it: they do not lie beside themselves.

    A plan of one group in strips of a row takes 10,418 ticks, found by code of its own.
    """
    net = Builder("later", "")
    x = net.conv(net.input(1, 1, 9, 1, name="in"), "a", 32, 3, batch_norm=False, act="")
    net.conv(net.pool(x, "pool", "max", 7, 1, pad=3), "b", 8, 3, batch_norm=False, act="")
    memory = {"ocm_bytes": "2922", "ocm_banks": "1", "compute.cycle_ticks": "15"}
    part = FusionPart(net.build(), load_machine("scratchpad_768k", BYTES | memory), Pins(()))
    floors = Floors(part.groups, part.tables.nests.arcs("proven"), lambda _: True)
    place = frozenset[int](), floors.room
    every = Options.ways(floors, 0, 2, [place])[place]
    rows = [way.matrix.max(axis=1) for way in every]
    assert min(max(clocks[0], clocks[2]) for clocks in rows) <= 10_418


def test_a_plan_outside_the_space_of_the_bound_is_not_bounded_by_it() -> None:
    """The fewest bytes of a layer that strips suit are moved by a nest, faster than strips are: what is compulsory."""
    settings = BYTES | {"ocm_bytes": "1024", "ocm_banks": "16", "transfer.byte_ticks": "2"}
    plan = solve(chain(48, size=9, channels=4), "scratchpad_768k", problem="fusion", objective="bytes,time",
                 settings=settings)  # fmt: skip
    assert plan.part.bounds["time"] <= plan.part.measures["time"]


def test_both_ends_of_a_network_by_hand() -> None:
    """One 3x3 layer of 6 filters on 8 x 8 pixels of one channel, 54 bytes of weights, in strips of at least a row.

    The first row needs two rows of the input: 800 + 64 + 16 ticks, and 864 + 54 for all weights (with fewer filters the
    rows take one round more, 8 * 9 * 8 ticks or more). Then 64 * 9 cycles of 8 ticks, and 864 + 48 for the last row.
    """
    part = part_of(chain(6, size=8, channels=1), ocm_bytes=1024, ocm_banks=16)
    floors = Floors(part.groups, part.tables.nests.arcs("proven"), lambda _: True)
    place = frozenset[int](), floors.room
    clocks = [way.matrix.max(axis=1) for way in Options.ways(floors, 0, 0, [place])[place] if way.option.height]
    assert min(max(each[0], each[2]) for each in clocks) == 880 + 918 + 4608 + 912
    nests = floors._by_itself(0, place)  # a byte of weights first, above the first row; a byte of the result last
    assert min(max(nest.matrix.max(axis=1)[[0, 2]]) for nest in nests) == 865 + 4608 + 865
    assert min(nest.moving for nest in nests) == (64 + 54 + 384 + 3 * 864,)
    part = part_of(chain(6, size=8, channels=1, taps=1), ocm_bytes=1024, ocm_banks=16)
    floors = Floors(part.groups, part.tables.nests.arcs("proven"), lambda _: True)
    nests = floors._by_itself(0, place)  # without padding a byte of each operand first
    assert min(max(nest.matrix.max(axis=1)[[0, 2]]) for nest in nests) == 2 * 865 + 512 + 865


def test_a_nest_may_begin_in_the_padding() -> None:
    """8 rows of 16 pixels under 3 taps of a column: taps outside, rows inside, all results on chip.

    Above the first row there is nothing to load: 801 ticks for a tap, 3 * 8 rows of 16 cycles of 100 ticks each, and
    all 512 bytes of results behind them. Meanwhile the rows are loaded again for each tap, in 816 ticks.
    """
    conv = Conv(name="a", inputs=("x",), shape=(1, 1, 8, 16), filters=1, kernel=(3, 1), pad=(1, 0, 1, 0))
    network = Network(name="padded", operators=(Input(name="x", shape=(1, 1, 8, 16)), conv))
    prices = {"transfer.segment_ticks": "0", "transfer.byte_ticks": "1", "compute.cycle_ticks": "100"}
    machine = load_machine("scratchpad_768k", prices | {"ocm_bytes": "4096", "ocm_banks": "1"})
    nest = Nest((Hold("OUT"), Loop("i", 1), Hold("W"), Loop("r", 1), Hold("IN")))
    part, runs = FusionPart(network, machine, Pins(())), NetworkRun((LayerRun(nest, {}, 0, (0,)),))
    assert not part.contains(runs)
    assert not part.replay(runs).faults
    floors = Floors(part.groups, part.tables.nests.arcs("proven"), lambda _: True)
    assert Paths(floors).ends()[0][0] <= part.laid(runs).ticks == 801 + 3 * 8 * 1600 + 800 + 128


def test_a_first_block_may_have_few_filters_by_hand() -> None:
    """16 filters of 1,000 bytes on one pixel take 16 cycles of 8 ticks; all of them are loaded by the end.

    The first step may wait for one filter alone, where the layer takes two rounds: 1,864 ticks for the input, as many
    for the filter, 128 for a round more and 128 for the other. That is less than what 17,000 bytes take.
    """
    part = part_of(chain(16, size=1, channels=1000, taps=1), ocm_bytes=32768, ocm_banks=16)
    floors = Floors(part.groups, part.tables.nests.arcs("proven"), lambda _: True)
    place = frozenset[int](), floors.room
    (way,) = (way for way in Options.ways(floors, 0, 0, [place])[place] if way.option.height)
    assert way.matrix[0, :2].tolist() == [2 * 1864 + 128 + 128, 17_000]


def test_weights_that_stay_by_hand() -> None:
    """Two 1x1 layers of 16 bytes of weights each in two strips: steps a, b, a, b; a's are gone in the last one.

    If 20 bytes of both stay, at least 4 of them are of b, and lie beside its last step: 16 may be of a. The second
    strip loads nothing for a, and 32 - 20 bytes by the end of b.
    """
    part = FusionPart(
        chain(4, 4, size=8, taps=1), load_machine("scratchpad_768k", {"ocm_bytes": "1024", "ocm_banks": "16"}),
        parse_pins(["strip=4"], DECISIONS),
    )  # fmt: skip
    floors, flows = Floors(part.groups, part.tables.nests.arcs("proven"), lambda _: True), list[Flow]()
    product = floors._product
    floors._product = lambda some: [flows.append(some[-1]), product(some)][1]  # type: ignore[func-returns-value, method-assign, return-value]
    place = frozenset[int](), floors.room
    assert Options.ways(floors, 0, 1, [place])[place]
    none, all_ = flows[0], flows[-1]
    assert (all_.held - none.held).tolist() == [0, 16, 32, 16]
    assert all_.heavy.tolist() == [16, 16, 0, 0]
    assert (flows[5].held - none.held).tolist() == [0, 4, 20, 4]  # at least five eighths of 32
    assert flows[4].heavy.tolist() == [16, 16, 0, 32 - 20]  # at most as many


def test_weights_of_a_single_visit_do_not_count_as_staying() -> None:
    """Of two layers the second has one visit: a visit before loads 16 bytes of the first, of which 10 stay."""
    steps = SimpleNamespace(
        pixels=np.array([[[1, 0]], [[1, 1]]]), way=np.zeros(2, np.int64), kept=np.array([[16, 16]]), runs=np.arange(2)
    )  # fmt: skip
    visits = _Visits(cast("GroupSteps", steps))
    assert visits.several.tolist() == [[True, False]]
    assert visits.needed(np.array([16, 8]), np.array([10])).tolist() == [16, 0, 6, 8]


def test_transfers_by_themselves_bound_small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers of 4 channels on 4 x 4 pixels: 64 bytes in and out, 144 of weights each, in at least four calls.

    In one group or two: 4 * 864 + 64 + 64 + 2 * 144 ticks; computing takes 2 * 16 * 9 * 8 = 2,304.
    """
    part = part_of(chain(4, 4, size=4), ocm_bytes=1024, ocm_banks=16)
    floors = Floors(part.groups, part.tables.nests.arcs("proven"), lambda _: True)
    assert Paths(floors).moving == 3456 + 416
    for first, last, place in ((0, 0, (frozenset({0}), 960)), (0, 0, (There(), 1024)), (0, 1, (There(), 1024))):
        kept = floors.ways(first, last, [place])[place]
        with monkeypatch.context() as changed:
            changed.setattr(bounds, "_kept", lambda matrix, _: [*range(len(matrix))])
            every = floors.ways(first, last, [place])[place]
        assert len(kept) < len(every)
        assert min(way.moving for way in kept) == min(way.moving for way in every)
    plan = solve(chain(4, 4, size=4), "scratchpad_768k", problem="fusion", objective="time",
                 settings={"ocm_bytes": "1024", "ocm_banks": "16"})  # fmt: skip
    assert plan.part.bounds["time"] >= 3456 + 416


def test_bounds_of_a_layer_by_hand() -> None:
    """3x3, 4 -> 4 channels on 8 x 8 pixels: 64 x 9 = 576 ticks; 256 bytes of input and 144 of weights are loaded.

    In 4 KiB the queue may be so far ahead that it has done that, and no more, by then: all sums are one tile, of 1,024
    bytes, and something of the kernel lies beside them; or all weights, which the first step waits for, 144 ticks. In
    100 bytes weights are loaded three times: every row needs two of three taps, so 2 * 96 bytes more, and a third of
    the input, 86 bytes, is a tile. A result that stays is not stored, else it is 256 bytes. Before the first layer a
    byte of weights is loaded, behind the last one a byte is stored.
    """
    part = part_of(chain(4, 4, size=8), calls=False, ocm_bytes=4096, ocm_banks=64)
    floors, (k,) = Floors(part.groups, part.tables.nests.arcs("proven"), lambda _: False), (0,)
    for near, free, clocks in [
        (frozenset({k}), 4096 - 256, [[577, 400, 400], [720, 400, 400]]),
        (There(), 4096, [[577, 400, 656], [720, 400, 656]]), (There(), 100, [[592, 592, 848]]),
    ]:  # fmt: skip
        made = [way.matrix.max(axis=1).tolist() for way in floors._by_itself(0, (near, free))]
        assert all(one in made for one in clocks)
        assert [592, 592, 848 - 256 * bool(near)] in made
        assert min(made) == min(clocks)
    made = [way.matrix.max(axis=1).tolist() for way in floors._by_itself(1, (frozenset({k}), 4096 - 256))]
    assert min(made) == [576, 144, 576 + 1]  # its input is there


def _floor(floors: Floors, path: list[Passed]) -> int:
    """What the groups of a path are not below, with the same maps on chip."""
    clocks = np.zeros(3, np.int64)
    for way, there, after in path:
        place = floors.near(way.first, way.last, there, after)
        several = np.stack([one.matrix for one in floors.ways(way.first, way.last, [place])[place]])
        clocks = (several.min(axis=0) + clocks).max(axis=1)
    return int(max(clocks[0], clocks[2]))


def _any(options: Options, rng: random.Random) -> list[Passed]:
    """A path of any groups and options, none if one is not found at once."""
    path, first, there = list[Passed](), 0, There()
    while first < len(options.net.layers):
        last = rng.randrange(first, len(options.net.layers))
        after = rng.choice([one for one in options.states(last + 1) if _follows(options, first, last, there, one)])
        place = options.near(first, last, there, after)
        ways = options.ways(first, last, [place])[place] if place[1] >= 0 else []
        if not ways:
            return []
        path.append(Passed(rng.choice(ways), there, after))
        first, there = last + 1, after
    return path


def _follows(options: Options, first: int, last: int, there: frozenset[int], after: frozenset[int]) -> bool:
    going = {k for k in there if options.residence(k).uses[-1] > last}
    return going <= after and all(k in going or options.residence(k).born >= first for k in after)


def test_least_time_of_two_layers_by_hand() -> None:
    """Two 1x1 layers of 4 -> 4 channels on 2 x 2 pixels in 1 KiB, 16 bytes of weights each.

    Nothing begins before the input and the first weights are there: a call of 800 ticks, a segment of 64 and 16 bytes
    each, 1,760 ticks; then 4 pixels in 8 ticks each. The weights of the second come meanwhile: 880 ticks. Then another
    32 ticks, and the result is stored: 880. 1,760 + 880 + 32 + 880 = 3,552.
    """
    plan = solve(chain(4, 4, size=2, taps=1), "scratchpad_768k", problem="fusion", objective="time",
                 settings={"ocm_bytes": "1024", "ocm_banks": "16"})  # fmt: skip
    assert plan.part.measures["time"] == 2 * 880 + 880 + 32 + 880
    measures = PROBLEMS["fusion"].parts_of(plan)[0].price(plan.part.schedule).measures
    assert pickle.loads(pickle.dumps(measures)) == dict(measures) == dict(plan.part.measures)  # noqa: S301 - our own
    assert check(plan).ok


@pytest.mark.parametrize(("network", "settings"), [
    ("lenet5", {"ocm_bytes": "65536", "ocm_banks": "16"}),
    (NETS["chain"], {"ocm_bytes": "4096", "ocm_banks": "64"}),
    (NETS["skip"], {"ocm_bytes": "2048", "ocm_banks": "32"}),
    (chain(32), {"ocm_bytes": "1024", "ocm_banks": "16"}),  # a nest is faster than strips
])  # fmt: skip
def test_time_is_no_more_than_that_of_the_fewest_bytes(network: str | Network, settings: dict[str, str]) -> None:
    fewest = solve(network, "scratchpad_768k", problem="fusion", objective="bytes", settings=settings)
    fastest = solve(network, "scratchpad_768k", problem="fusion", objective="time", settings=settings)
    assert fastest.part.measures["time"] <= fewest.part.measures["time"]
    assert fastest.part.bounds["time"] <= fastest.part.measures["time"]
    assert check(fastest).ok
    assert "us with prefetch, no order of its transfers is below" in show(fastest)


def test_layers_that_no_strips_suit_run_by_themselves() -> None:
    """A product of two maps that are computed: its right operand must be there as a whole."""
    net = Builder("scores", "")
    x = net.input(1, 8, 4, 4, name="in")
    a, b = (net.conv(x, name, 8, batch_norm=False, act="") for name in "ab")
    net.matmul(a, b, "ab") if hasattr(net, "matmul") else net.eltwise("add", (a, b), "ab")
    plan = solve(net.build(), "scratchpad_768k", problem="fusion", objective="time",
                 settings={"ocm_bytes": "4096", "ocm_banks": "16"})  # fmt: skip
    assert any(isinstance(run, LayerRun | FusedRun) for run in plan.part.schedule)
    assert check(plan).ok


def test_a_group_has_all_ways_to_read_a_map_of_two_readers() -> None:
    part = part_of(skip(8, 8), ocm_bytes=4096, ocm_banks=16)
    options = Options(part.groups, 512)
    assert {one.twice for one in options.of(1, 3)} == {frozenset(), frozenset({part.net.writes[0]})}
    assert isinstance(options.of(1, 3)[0], Group)


@pytest.mark.parametrize("objective", ["time", "bytes", "bytes,time", "time,bytes"])
def test_where_no_plan_is(objective: str) -> None:
    """Two layers in one group take more than 100 bytes (a window of 4 channels has 36); by themselves less."""
    asked = partial(solve, chain(4, 4, size=4), "scratchpad_768k", problem="fusion", objective=objective,
                    settings={"ocm_bytes": "100", "ocm_banks": "0"})  # fmt: skip
    none = asked(pins=["fuse=c0..c1"])
    assert none.status == "INFEASIBLE"
    assert check(none).ok
    plan = asked()
    assert check(plan).ok
    assert plan.part.bounds.get("bytes") is None or plan.part.bounds["bytes"] >= 416


@pytest.mark.parametrize(("network", "settings"), [
    ("lenet5", {"ocm_bytes": "4096", "ocm_banks": "0"}), (NETS["skip"], {"ocm_bytes": "2048", "ocm_banks": "32"}),
    (chain(32, size=8, channels=8, taps=3), {"ocm_bytes": "2048", "ocm_banks": "32", **BYTES}),
])  # fmt: skip
def test_of_the_fewest_bytes_a_faster_plan(network: str | Network, settings: dict[str, str]) -> None:
    """LeNet-5 on 4 KiB: in 336,920 ticks, 346,816 as the search of bytes alone leaves it."""
    fewest, both = (solve(network, "scratchpad_768k", problem="fusion", objective=objective, settings=settings)
                    for objective in ("bytes", "bytes,time"))  # fmt: skip
    assert both.part.measures["bytes"] == fewest.part.measures["bytes"] == both.part.bounds["bytes"]
    assert both.part.measures["time"] <= fewest.part.measures["time"] - (9000 if network == "lenet5" else 0)


def test_time_is_no_more_than_that_of_any_plan_with_the_fewest_bytes() -> None:
    """Two layers, an array that is never busy: the map between them stays on chip, which labels take for slower."""
    net = Builder("two", "")
    x = net.input(1, 32, 5, 5, name="in")
    net.conv(net.conv(x, "a", 4, 3, batch_norm=False, act="relu"), "b", 2, 3, batch_norm=False, act="")
    settings = {"ocm_bytes": "2048", "ocm_banks": "8", "transfer.call_ticks": "0"}
    fastest, fewest = (
        solve(net.build(), "scratchpad_768k", problem="fusion", objective=objective, settings=settings)
        for objective in ("time", "bytes,time")
    )
    assert fastest.part.measures["time"] <= fewest.part.measures["time"]


def test_ways_within_a_cap() -> None:
    """What is left within a cap has a path of no more bytes through each way; none is left below the least."""
    part = part_of(chain(4, 4, 4, size=8), ocm_bytes=1024, ocm_banks=32)
    paths = Paths(Options(part.groups, 4096, None, in_order=True), longest=3)
    least = part.compulsory_bytes
    assert not Paths(paths.options, longest=3).within(least - 1)
    assert paths.within(least)
    paths.again({})
    for _, end in paths.ends():
        assert sum(way.bytes for way, *_ in paths.path(end)) == least


def test_the_best_plan_of_every_layer_by_itself_is_tried_too() -> None:
    """Beside the fewest bytes, and what a heuristic has layer by layer: the optimum of problem joint."""
    net, settings = chain(4, 4, size=8), {"ocm_bytes": "512", "ocm_banks": "16"}
    part = FusionPart(net, load_machine("scratchpad_768k", settings), Pins(()))
    others = part._others(ENDLESS) or []
    alone = [
        part.price(runs).measures["bytes"]
        for runs in others
        if runs.queue is None and all(isinstance(run, LayerRun) for run in runs.runs)
    ]
    joint = solve(net, "scratchpad_768k", problem="joint", settings=settings)
    assert [runs.queue is None for runs in others] == [True] * 3 + [
        False
    ] * 3  # two rules and annealing say their order
    assert (joint.measures or {})["bytes"] in alone

"""Maps of which only the pixels are loaded that 1 x 1 windows with strides read (docs/fusion.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from formulations.fusion.group_time import Around, GroupTime
from formulations.fusion.groups import Group
from formulations.fusion.latency.options import Options
from formulations.fusion.memory import Option
from formulations.fusion.part import FusionPart
from formulations.fusion.schedule import option_of, streams_of
from formulations.fusion.steps import Piece, joined
from formulations.fusion.strips import strips
from formulations.pins import Pins
from hwmodels.schedule import FusedRun, NetworkRun
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Machine, Transfer
from instances.network.network import Network
from instances.zoo.builder import Builder
from solver import show
from solver.calls.check import faults_of
from solver.calls.solve import solve

DMA = Transfer(call_ticks=5, segment_ticks=2, byte_ticks=1)


def machine(**fields: object) -> Machine:
    """One core with 64 KiB and no banks."""
    usual = {"ocm_bytes": 65536, "ocm_banks": 0, "transfer": DMA}
    return load_machine("scratchpad_768k").model_copy(update=usual | fields)


def shortcut(stride: tuple[int, int] = (2, 2), size: tuple[int, int] = (8, 8), kernel: int = 1) -> Network:
    """A layer of 4 channels, a shortcut that strides over its result, a layer of 1 x 1 behind that."""
    net = Builder("shortcut", "")
    made = net.conv(net.input(1, 2, *size), "a", 4, 3)
    made = net.conv(made, "b", 4, kernel, stride=stride, pad=0)
    net.conv(made, "c", 3)
    return Network(name="shortcut", operators=tuple(net.operators.values()))


def group_of(part: FusionPart, first: int, last: int, *, sampled: bool = True) -> Group:
    """Some layers, with what may be sampled."""
    plain = Group(part.net, first, last)
    return Group(part.net, first, last, frozenset(), plain.sampleable if sampled else frozenset())


def load(group: Group, on: Machine, height: int) -> list[int]:
    """Ticks of the pieces of the map from outside, in strips of so many rows."""
    down, across = strips(group, "rows", [("lead", height)]), strips(group, "columns", [("lead", 99)])
    assert down is not None
    assert across is not None
    time = GroupTime(group, on, Around({}, [0] * len(group.layers)), down, across)
    k = len(group.layers)
    return time.boxes(k, *time.spans(k)).ravel().tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("layout", "stride", "ticks"),
    [
        # 4 x 4 pixels of 4 bytes, in strips of 2 rows: 8 runs of 4 bytes; of each of 4 channels 8 runs of a byte
        ("HWC", (2, 2), [5 + 8 * 2 + 32] * 2), ("CHW", (2, 2), [5 + 32 * 2 + 32] * 2),
        # 4 rows of 8 pixels: 2 runs of 32 bytes a strip; in each channel 2 of 8
        ("HWC", (2, 1), [5 + 2 * 2 + 64] * 2), ("CHW", (2, 1), [5 + 8 * 2 + 64] * 2),
        # 8 rows of 4 pixels: columns 0, 2, 4, 6 adjoin nothing: 8 runs a strip
        ("HWC", (1, 2), [5 + 8 * 2 + 32] * 4),
    ],
)  # fmt: skip
def test_runs_by_hand(layout: str, stride: tuple[int, int], ticks: list[int]) -> None:
    part = FusionPart(shortcut(stride), machine(in_layout=layout, out_layout=layout), Pins(()))
    assert load(group_of(part, 1, 2), part.machine, 2) == ticks


def test_runs_that_adjoin_are_one() -> None:
    """Of 7 columns 0, 2, 4 and 6 are read, of all rows: the last one of a row lies before the first one of the next.

    Strips of 2 rows: of 8 pixels two adjoin, 7 runs.
    """
    part = FusionPart(shortcut((1, 2), (8, 7)), machine(in_layout="HWC", out_layout="HWC"), Pins(()))
    assert load(group_of(part, 1, 2), part.machine, 2) == [5 + 7 * 2 + 32] * 4


def test_bursts_by_hand() -> None:
    """Rows 0, 2, 4 and 6 of 32 bytes lie at 0, 64, 128 and 192: in 1, 1, 2 and 1 windows of 48 bytes."""
    bursts = Transfer(call_ticks=3, burst_ticks=7, burst_bytes=48, burst_count="address", byte_ticks=1)
    on = machine(in_layout="HWC", out_layout="HWC", transfer=bursts)
    part = FusionPart(shortcut((2, 1)), on, Pins(()))
    assert load(group_of(part, 1, 2), on, 2) == [3 + 2 * 7 + 64, 3 + 3 * 7 + 64]


def test_bytes_by_hand() -> None:
    """Of 7 x 7 pixels of 4 bytes 16 are loaded, and no more lie on chip; 64 bytes of `b`, 16 and 12 of weights."""
    part = FusionPart(shortcut(), machine(), Pins(()))
    whole, sampled = (run_of(part, sampled=some) for some in (False, True))
    prices = [part.prices.price(run) for run in (whole, sampled)]
    assert [price.bytes["IN"] for price in prices] == [196, 64]
    assert [price.peak_bytes for price in prices] == [196 + 64 + 28, 64 + 64 + 28]
    assert part.walked(NetworkRun((_first(part), sampled))).faults == ()
    assert option_of(sampled).sampled == {part.net.writes[0]}


def run_of(part: FusionPart, *, sampled: bool = True, height: int = 4) -> FusedRun:
    """Layers `b` and `c` in strips of so many rows, all weights stay."""
    group = group_of(part, 1, 2, sampled=sampled)
    option = Option(height, 4, "lead", "lead", sampled=group.sampled)
    return FusedRun(1, 2, *streams_of(group, option), (16, 12), {}, (4, 0), (), sampled=tuple(sorted(group.sampled)))


def _first(part: FusionPart) -> FusedRun:
    """The first layer, whole."""
    steps = streams_of(Group(part.net, 0, 0), Option(8, 8, "lead", "lead"))
    return FusedRun(0, 0, *steps, (72,), {}, (0,), ())


def test_a_sampled_load_waits_for_its_rows() -> None:
    """Rows 0 and 2 are loaded for the first strip, 4 and 6 for the second: these are stored behind the first five."""
    part = FusionPart(shortcut(), machine(), Pins(()))
    (made,) = part.timelines.parts([(1, 2, run_of(part, height=2))], 2**16)
    pieces = [piece for pieces, (operand, _) in zip(made.pieces, made.names, strict=True) if operand == "IN"
              for piece in pieces]  # fmt: skip
    store = part.net.writes[0]
    assert pieces == [Piece(store, 0, 3), Piece(store, 4, 7)]
    steps = streams_of(Group(part.net, 0, 0), Option(1, 8, "lead", "lead"))
    rows = FusedRun(0, 0, *steps, (72,), {}, (0,), ())
    both = part.timelines.parts([(0, 0, rows), (1, 2, run_of(part, height=2))], 2**16)
    loads = [one for one in joined(both).transfers if getattr(one, "due", 0) > 8 and one.bytes == 32]
    assert [one.ready for one in loads] == [4, 8]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kernel", "stride", "may"), [(1, (2, 2), True), (1, (1, 2), True), (1, (1, 1), False), (3, (2, 2), False)]
)
def test_what_may_be_sampled(kernel: int, stride: tuple[int, int], may: bool) -> None:
    part = FusionPart(shortcut(stride, kernel=kernel), machine(), Pins(()))
    assert Group(part.net, 1, 2).sampleable == ({part.net.writes[0]} if may else frozenset())
    assert Group(part.net, 0, 2).sampleable == frozenset()  # the map is made in the group


def test_another_reader_needs_all_pixels() -> None:
    """A map that a 3 x 3 window reads in the group as well is loaded whole; of two strides as well."""
    for other in (3, 1):
        net = Builder("both", "")
        made = net.conv(net.input(1, 2, 8, 8), "a", 4, 3)
        one, two = net.conv(made, "b", 4, 1, stride=2), net.conv(made, "c", 4, other, stride=2)
        net.eltwise("add", (one, two), "d")
        part = FusionPart(Network(name="both", operators=tuple(net.operators.values())), machine(), Pins(()))
        assert Group(part.net, 1, 3).sampleable == (frozenset() if other == 3 else {part.net.writes[0]})
        assert Group(part.net, 1, 1).sampleable == {part.net.writes[0]}


def test_a_map_on_chip_is_not_sampled() -> None:
    part = FusionPart(shortcut(), machine(ocm_banks=64), Pins(()))
    fast = part._fastest
    options = Options(part.groups, part.groups.demands.order.largest, fast.alone)
    room = options.room
    (k,) = (k for k in part.groups.maps if part.groups.residences[k].store == part.net.writes[0])
    for near in (frozenset[int](), frozenset({k})):
        place = near, room - options.bytes(near)
        ways = options.ways(1, 2, [place])[place]
        assert {way.option.sampled for way in ways} == {frozenset(), *([part_of(part)] if not near else [])}


def part_of(part: FusionPart) -> frozenset[int]:
    """What is sampled of `shortcut`."""
    return frozenset({part.net.writes[0]})


def test_faults_of_the_referee() -> None:
    part = FusionPart(shortcut(), machine(), Pins(()))
    run, first, store = run_of(part), _first(part), part.net.writes[0]
    for wrong, said in (
        (replace(run, sampled=(store, store)), "they ascend"),
        (replace(run, sampled=(part.net.writes[1],)), "is not what is loaded from outside"),
        (replace(run, residents={store: (8, ())}), "is not what is loaded from outside"),
        (replace(run, sampled=()), "are not all on chip"),
    ):
        assert any(said in fault for fault in part.walked(NetworkRun((first, wrong))).faults), said
    plain = FusionPart(shortcut((2, 2), kernel=3), machine(), Pins(()))
    group = Group(plain.net, 1, 2)
    other = FusedRun(1, 2, *streams_of(group, Option(3, 3, "lead", "lead")), (0, 0), {}, (3, 0), (), sampled=(store,))
    assert any("reads pixels beside each other" in fault for fault in plain.walked(NetworkRun((first, other))).faults)


def test_readers_of_a_stream_skip_alike() -> None:
    """Strides of 3 and 4 leave 3 of 9 rows, but other ones."""
    net = Builder("unlike", "")
    made = net.conv(net.input(1, 2, 9, 9), "a", 4, 3)
    net.eltwise("add", (net.conv(made, "b", 4, 1, stride=3), net.conv(made, "c", 4, 1, stride=4)), "d")
    part = FusionPart(Network(name="unlike", operators=tuple(net.operators.values())), machine(), Pins(()))
    store = part.net.writes[0]
    assert Group(part.net, 1, 3).sampleable == frozenset()
    streams = streams_of(Group(part.net, 1, 3, frozenset(), frozenset({store})), Option(3, 3, "lead", "lead"))
    first = FusedRun(0, 0, *streams_of(Group(part.net, 0, 0), Option(9, 9, "lead", "lead")), (72,), {}, (0,), ())
    run = FusedRun(1, 3, *streams, (16, 16, 0), {}, (3, 3, 0), (), sampled=(store,))
    said = part.walked(NetworkRun((first, run))).faults
    assert said == ("layers b to d: readers of a stream of a see other rows or columns of it",)


def test_wrong_runs_have_no_price() -> None:
    part = FusionPart(shortcut(), machine(), Pins(()))
    run, store = run_of(part), part.net.writes[0]
    for wrong in (replace(run, sampled=(99,)), replace(run, residents={store: (8, ())}), replace(run, sampled=())):
        with pytest.raises(InputError):
            part.prices.price(wrong)


def test_a_plan_that_samples() -> None:
    """In memory for few rows the shortcut of a block is loaded with every fourth pixel, and its sum is in its group."""
    net = Builder("block", "")
    made = net.conv(net.input(1, 4, 8, 8), "c0", 8, 3)
    one, two = net.conv(made, "c1", 8, 3, stride=2), net.conv(made, "ds", 8, 1, stride=2)
    net.eltwise("add", (one, two), "add")
    network = Network(name="block", operators=tuple(net.operators.values()))
    plans = [
        solve(network, "scratchpad_768k", problem="fusion", objective="bytes",
              settings={"ocm_bytes": str(64 * banks), "ocm_banks": str(banks)})
        for banks in (5, 10)
    ]  # fmt: skip
    (run,) = (run for run in plans[0].part.schedule.runs if getattr(run, "sampled", ()))
    assert (run.first, run.last) == (2, 3)
    assert faults_of(plans[0]) == []
    assert "2 rows and 2 columns apart" in show(plans[0], layer="ds")
    assert plans[1].measures["bytes"] == 1_984  # with rows of the map on chip nothing of it is sampled


def test_the_least_time_samples() -> None:
    """A layer of 1 x 1 on every fourth of 16 x 16 pixels, from outside: 64 of them are loaded, one run each."""
    net = Builder("one", "")
    net.conv(net.conv(net.input(1, 64, 16, 16), "a", 8, 1, stride=2), "b", 8, 1)
    network = Network(name="one", operators=tuple(net.operators.values()))
    plan = solve(network, "scratchpad_768k", problem="fusion", pins=["fuse=a..b"], settings={"ocm_bytes": "65536"})
    (run,) = plan.part.schedule.runs
    assert run.sampled == (run.streams[-1].store,)
    loads = [one for one in plan.timeline if one.lane == "load" and one.what.startswith("input")]
    assert sum(one.bytes for one in loads) == 64 * 64
    assert faults_of(plan) == []

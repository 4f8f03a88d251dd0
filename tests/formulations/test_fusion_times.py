"""The time of strips in closed form: by hand, and as the referee counts it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from formulations.clock import Clock
from formulations.fusion.arcs import MODES
from formulations.fusion.group_time import ticks_of_call
from formulations.fusion.groups import Group
from formulations.fusion.memory import Option, turns_of
from formulations.fusion.part import FusionPart
from formulations.fusion.schedule import streams_of
from formulations.fusion.strips import Mode
from formulations.pins import Pins, parse_pins
from hwmodels.schedule import Blocks, FusedRun, Hold, LayerRun, Loop, Nest, NetworkRun
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.network import Network
from instances.zoo import chains
from instances.zoo.builder import Builder
from instances.zoo.chains import CHAINS
from solver import check, show
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.problems.fusion import FUSION
from tests.effort import thinned
from tests.golden_plans import chain
from tests.lies import changed

DMA = Transfer(call_ticks=5, segment_ticks=2, byte_ticks=1)
BURSTS = Transfer(call_ticks=3, burst_ticks=7, burst_bytes=16, byte_ticks=1)
ADDRESSES = BURSTS.model_copy(update={"burst_count": "address"})


def test_a_call_by_hand() -> None:
    """Two rows of 4 channels, 8 x 8 pixels: 4 runs of 16 bytes, or one of 64; with bursts of 16 bytes 4 windows."""
    apart, together = [(16, 16, ((4, 64),))], [(64, 64, ())]
    assert (ticks_of_call(DMA, apart), ticks_of_call(DMA, together)) == (5 + 8 + 64, 5 + 2 + 64)
    assert (ticks_of_call(BURSTS, apart), ticks_of_call(ADDRESSES, apart)) == (3 + 28 + 64, 3 + 28 + 64)
    assert ticks_of_call(BURSTS, [(8, 16, ((4, 64),))]) == 3 + 28 + 64  # as if every run began a window
    assert ticks_of_call(ADDRESSES, [(8, 16, ((4, 64),))]) == 3 + 56 + 64  # each touches two
    runs = [(8, 16, ((2, 24),))]  # from 8 and from 32 on: two windows, and one
    assert (ticks_of_call(BURSTS, runs), ticks_of_call(ADDRESSES, runs)) == (3 + 14 + 32, 3 + 21 + 32)
    assert ticks_of_call(DMA, [(0, 0, ())]) == 0


def run_of(machine: Machine, mode: Mode, width: int, kept: tuple[int, int]) -> tuple[FusionPart, FusedRun]:
    """Two layers of 4 channels on 8 x 8 pixels, in strips of 2 rows, halos as `mode` says."""
    part = FusionPart(chain(4, 4, size=8), machine, Pins(()))
    steps = streams_of(Group(part.net, 0, 1), Option(2, width, mode, "lead" if width == 8 else mode))
    return part, FusedRun(0, 1, *steps, kept, {}, (8, 0), tuple(range(40)))


@pytest.mark.few(16)
@pytest.mark.parametrize("transfer", [DMA, BURSTS, ADDRESSES], ids=["dma", "bursts", "addresses"])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize(("mode", "width"), [("lead", 8), ("retain", 3), ("recompute", 8), ("recompute", 3)])
def test_price_and_replay_count_alike(transfer: Transfer, layout: str, mode: Mode, width: int) -> None:
    """Whole rows and parts of them, with weights that stay whole, in part and not at all."""
    machine = load_machine("scratchpad_768k", {"ocm_bytes": "1024", "ocm_banks": "40"})
    unit = Compute(model="array", rows=3, cols=2, cycle_ticks=1)
    machine = machine.model_copy(
        update={"transfer": transfer, "in_layout": layout, "out_layout": layout, "compute": unit}
    )
    for kept in ((144, 144), (100, 0)):
        part, run = run_of(machine, mode, width, kept)
        (seen,) = part.walked(NetworkRun((run,))).runs
        assert part.prices.price(run).ticks == seen.ticks


@pytest.mark.parametrize(("pins", "banks", "said"), [
    ((), 40, "layers c0..c1: recomputes, which needs pin recompute=any"), (("recompute=any",), 40, ""),
    # strips of 2 of 8 rows need 3 + 4 + 4 + 3 of the first layer, 9,216 * 14 / 8 MACs, and 9,216: 1.375 of 18,432
    (("macs<=1.374",), 40, "MACs are above 25,325"), (("macs<=1.375",), 40, ""),
    (("recompute=any", "strip>=3"), 40, "layers c0..c1: strips of 2 rows are not strip>=3"),
    (("recompute=any",), 2, "layers c0..c1: 608 bytes on chip, there is room for 50"),
    (("recompute=any", "cut=c0"), 40, "layers c0..c1: breaks cut=c0"),
])  # fmt: skip
def test_what_a_group_may_not(pins: tuple[str, ...], banks: int, said: str) -> None:
    machine = load_machine("scratchpad_768k", {"ocm_bytes": "1024", "ocm_banks": "40"})
    _, run = run_of(machine, "recompute", 8, (144, 144))
    part = FusionPart(chain(4, 4, size=8), machine, parse_pins(pins, FUSION.decisions))
    assert part.contains(NetworkRun((replace(run, banks=tuple(range(banks))),))) == ((said,) if said else ())
    for wrong in ((), (replace(run, first=1),), (run, run)):
        with pytest.raises(InputError, match=r"does not follow layer|the plan has 0 layers, the network 2"):
            part.contains(NetworkRun(wrong))


def test_every_schedule_is_replayed() -> None:
    """Of one part, whichever of as many groups came before: whole rows move fewer bytes than parts of them."""
    machine = load_machine("scratchpad_768k", {"ocm_bytes": "1024", "ocm_banks": "40"})
    machine = machine.model_copy(update={"byte_fj": 7, "mac_fj": 3})
    part, one = run_of(machine, "lead", 8, (144, 144))
    other, two = run_of(machine, "recompute", 3, (144, 144))
    seen = [part.replay(NetworkRun((run,))).measures for run in (one, two, one)]
    assert seen == [part.price(NetworkRun((one,))).measures, other.replay(NetworkRun((two,))).measures, seen[0]]
    assert seen[0] != seen[1]
    assert seen[0]["energy"] == 7 * seen[0]["bytes"] + 3 * 2 * 9216  # two layers of 4 x 4 x 9 x 64 MACs


# ---- Layers of a group that take turns for channels: which may, bytes on chip, and what it is worth ------------------


def inverted(wide: int = 8, last: int = 3, stride: int = 2, size: int = 8, batch: int = 1) -> Network:
    """Wider, depthwise, narrower, and one more."""
    net = Builder("inverted", "wider, depthwise, narrower")
    x = net.conv(net.input(batch, 4, size, 6), "expand", wide)
    x = net.conv(x, "dw", wide, 3, stride=stride, groups=wide)
    x = net.conv(x, "project", last, act="")
    net.conv(x, "next", 5)
    return net.build()


def part_of(network: Network, **settings: int) -> FusionPart:
    machine = load_machine("scratchpad_768k", {name: str(value) for name, value in settings.items()})
    return FusionPart(network, machine, Pins(()))


@pytest.mark.parametrize(
    ("wide", "last", "stride", "turns"),
    [
        # sums of 4 bytes take 3 more a channel of the last: 8 channels x stride 4 > 3 x 3, and 8 of dw alone are not
        (8, 3, 2, ((0, 2),)),
        (10, 3, 1, ((0, 2), (1, 2))),
        (9, 3, 1, ()),  # 9 channels are not more than 3 x 3
        (8, 2, 1, ((0, 2), (1, 2))),
    ],
)
def test_which_layers_may_take_turns(wide: int, last: int, stride: int, turns: tuple[tuple[int, int], ...]) -> None:
    net = part_of(inverted(wide, last, stride)).net
    assert sorted(turns_of(Group(net, 0, 3))) == list(turns)
    assert sorted(turns_of(Group(net, 1, 3))) == [pair for pair in turns if pair[0] > 0]
    assert turns_of(Group(net, 0, 1)) == ()


@pytest.mark.slow(4)
@pytest.mark.parametrize(("rows", "columns"), thinned(product(MODES, MODES), 4))
def test_price_is_what_the_referee_counts(rows: str, columns: str) -> None:
    part = part_of(inverted(12, 2, 2), psum_bytes=2)
    count = 0
    for height, width in product((1, 2, 4), (1, 3)):
        option = Option(height, width, rows, columns)
        steps = streams_of(Group(part.net, 0, 3), option)
        for (first, last), channels in product(turns_of(Group(part.net, 0, 3)), (1, 4)):
            for weights in ((0, 0, 0, 0), (48, 20, 24, 0)):
                blocks = (Blocks(first, last, channels),)
                run = FusedRun(0, 3, *steps, weights, {}, (8, 4, 4, 0), tuple(range(part.machine.ocm_banks)), blocks)
                price, (seen,) = part.prices.price(run), part.walked(NetworkRun((run,))).runs
                assert (price.bytes, price.macs, price.peak_bytes) == (seen.operand_bytes, seen.macs, seen.peak_bytes)
                assert seen.executed
                count += 1
    assert count == 48


def test_sums_of_all_images_lie_in_memory() -> None:
    """The case above with two images and one option."""
    part = part_of(inverted(12, 2, 2, batch=2), psum_bytes=2)
    group = Group(part.net, 0, 3)
    for first, last in turns_of(group):
        steps = streams_of(group, Option(2, 3, "lead", "lead"))
        run = FusedRun(0, 3, *steps, (0,) * 4, {}, (8, 4, 4, 0), tuple(range(part.machine.ocm_banks)),
                       (Blocks(first, last, 1),))  # fmt: skip
        (seen,) = part.walked(NetworkRun((run,))).runs
        assert (part.prices.price(run).peak_bytes, seen.executed) == (seen.peak_bytes, True)


def test_prices_refuse_other_turns() -> None:
    part = part_of(inverted())
    steps = streams_of(Group(part.net, 0, 3), Option(2, 3, "lead", "lead"))
    for blocks in ((Blocks(0, 3, 1),), (Blocks(0, 2, 3),), (Blocks(0, 2, 8),), (Blocks(0, 2, 2), Blocks(0, 2, 2))):
        run = FusedRun(0, 3, *steps, (0,) * 4, {}, (8, 4, 4, 0), tuple(range(part.machine.ocm_banks)), blocks)
        with pytest.raises(InputError, match="layers do not take turns for"):
            part.prices.price(run)


def products(*pins: str) -> Plan:
    """Two matrix products on 64 KiB, sums of 1 byte."""
    memory = {"ocm_bytes": 65_536, "ocm_banks": 16, "psum_bytes": 1}
    return solve(
        CHAINS["products"](), "scratchpad_768k", problem="fusion", objective="bytes", settings=memory, pins=pins
    )


@pytest.mark.slow(2)
def test_two_products_by_hand() -> None:
    """Two strips of 256 rows: input and sums take 256 x 64 bytes each, a channel of the inner map 256.

    65,536 - 33,024 = 32,512 bytes are left for weights; a filter of 512 bytes is loaded again, 32,000 stay. So
    32,768 bytes of the input, as many of the result, 65,536 of weights and again 33,536 of them are moved.
    """
    plan = products()
    assert (plan.status, plan.measures and plan.measures["bytes"], plan.bound) == ("OPTIMAL", 164_608, 164_608)
    ((group,), (figures,)) = plan.schedule, plan.part.figures
    assert [(one.first, one.last, one.channels) for one in group.blocks] == [(0, 1, 1)]
    assert (figures.occupancy_bytes, figures.bytes["W"]) == (65_536, 65_536 + 33_536)
    assert "first, second take turns: 1 of 512 channels" in show(plan, layer="first")
    assert "first..second by 1" in show(plan)
    assert check(plan).ok


@pytest.mark.slow(1)
def test_without_turns_more_is_moved() -> None:
    plan = products("turns=no")
    assert (plan.status, plan.measures and plan.measures["bytes"]) == ("OPTIMAL", 370_432)
    plan = products()
    edited = plan.model_copy(update={"options": plan.options.model_copy(update={"pins": ("turns=no",)})})
    assert not check(edited).ok


def test_turns_are_of_as_many_channels_as_fit() -> None:
    """With 256 KiB weights and strips of one step fit beside half of the inner map, so a turn has 256 channels."""
    memory = {"ocm_bytes": 2**18 + 2**12, "ocm_banks": 65, "psum_bytes": 1}
    plan = solve(CHAINS["products"](), "scratchpad_768k", problem="fusion", objective="bytes", settings=memory)
    ((group,), (figures,)) = plan.schedule, plan.part.figures
    assert figures.moved == plan.part.must["bytes"]
    assert group.blocks == () or group.blocks[0].channels >= 64


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [("channels", 3, "turns"), ("channels", 512, "turns"), ("last", 0, "turns"), ("last", 2, "turns")],
)
def test_edited_turns_are_refused(field: str, value: int, said: str) -> None:
    report = check(changed(products(), (f"parts.0.schedule.runs.0.blocks.0.{field}", value)))
    assert not report.ok
    assert said in str(report)


def test_tiles_of_one_element_are_made_larger() -> None:
    """Without time for a search: rows, columns and filters one by one become what finds room.

    8 x 8 pixels of 4 channels, 4 filters: with 16 weights on chip and room for 256 bytes of each map nothing is cut.
    """
    part = FusionPart(
        chains.chain(4, 4, size=8, taps=1), load_machine("scratchpad_768k", {"psum_bytes": "1"}), Pins(())
    )
    loops = Loop("r", 1), Hold("IN"), Loop("m", 1), Loop("c", 1)
    run = LayerRun(Nest((Hold("W"), *loops, Hold("OUT"))), {}, 0, tuple(range(part.machine.ocm_banks)))
    made = part.layers.faster(0, run, {}, Clock(0.0)).nest
    assert not any(isinstance(item, Loop) for item in made.items)

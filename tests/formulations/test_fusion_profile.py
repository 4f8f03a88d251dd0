"""Measured times of layers: by hand, shares of pieces, price against replay, what is refused, and plans that lie."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from formulations.fusion.group_time import cycles_of
from formulations.fusion.groups import Group
from formulations.fusion.memory import Option, turns_of
from formulations.fusion.part import FusionPart
from formulations.fusion.schedule import streams_of
from formulations.fusion.strips import Mode
from formulations.pins import Pins
from formulations.tiling import tiling
from hwmodels.nest.price.choices import trees_of
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.overlap import Timeline
from hwmodels.nest.price.skeleton import cores, skeleton_of
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Blocks, FusedRun, Hold, Loop, Nest, NetworkRun
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Compute
from instances.measured import Profile, load_profile, measured
from instances.network.workload import Layer
from instances.zoo.builder import Builder
from instances.zoo.chains import chain
from solver import check, show
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.uses.why.parts import plan_splits
from tests.effort import tries
from tests.lies import problems

TWO = {"ocm_bytes": "2048", "ocm_banks": "0"}


def times(*ticks: float, unit: Any = "cycles") -> Profile:
    """Of layers c0, c1, ...: on scratchpad_768k a cycle is 8 ticks."""
    return Profile(unit=unit, times={f"c{k}": {"1": one} for k, one in enumerate(ticks)})


def planned(profile: Profile | None, *pins: str, problem: str = "fusion", **settings: str) -> Plan:
    """Two 3x3 layers of 4 channels on 8 x 8 pixels."""
    return solve(
        chain(4, 4, size=8), "scratchpad_768k", problem=problem, pins=pins, profile=profile, settings=TWO | settings
    )


@pytest.mark.parametrize(("unit", "each"), [("cycles", 1.0), ("ns", 1.0), ("us", 0.001), ("ms", 0.000001)])
def test_two_layers_by_hand(unit: str, each: float) -> None:
    """A call takes 800 ticks, a run of addresses 64, a byte 1.

    c1 is made in one step, c0 in two: one row, then the others. The first row needs two rows of the input (928 ticks)
    and the weights (1,008): it takes an eighth of 1,250 cycles = 10,000 ticks, the others 8,750. Meanwhile all else is
    loaded. c1 takes 2,500 cycles = 20,000 ticks, its result of 256 bytes is stored in 1,120.
    """
    profile = times(1250 * each, 2500 * each, unit=unit)
    plan = planned(profile, "fuse=c0..c1", "strip>=8")
    assert [one.end - one.begin for one in plan.timeline if one.lane == "engine"] == [1_250, 8_750, 20_000]
    assert plan.measures["time"] == 928 + 1_008 + 10_000 + 20_000 + 1_120
    assert plan.part.must["time"] == 30_000  # of computing
    assert check(plan).ok
    assert planned(profile).measures["time"] < 33_056  # in strips the result leaves in pieces, too


def test_times_are_rounded_up() -> None:
    """To ticks of 125 ps: 0.1 ns is one; 0.3 us, as it is written, is 2,400 and not 2,401."""
    machine = load_machine("scratchpad_768k")
    layers = chain(4, 4, size=8).layers
    assert [one.cycles for one in times(0.1, 0, unit="ns").layers(layers, machine)] == [1, 0]
    assert [one.cycles for one in times(0.3, 1e-6, unit="us").layers(layers, machine)] == [2_400, 1]
    assert [one.cycles for one in times(0.3, 3).layers(layers, machine)] == [3, 24]


def test_a_layer_by_itself_takes_its_transfers_and_its_time() -> None:
    """Whatever its nest: 2,128 + 800 + 1,120 for transfers in problem joint, if maps go through DRAM once each."""
    profile = times(7, 9)
    plan = planned(profile, problem="joint", ocm_bytes="640")
    for figures, ticks in zip(plan.part.figures, (56, 72), strict=True):
        moved = sum(800 * one.calls + 64 * one.segments + one.bytes for one in figures.counts.values())
        assert figures.ticks == moved + ticks
    assert check(plan).ok


# ---- shares ----------------------------------------------------------------------------------------------------------


def test_pieces_take_no_less_than_the_layer() -> None:
    """Random times in random strips, in turns too: each piece at most a cycle more than its share, a turn likewise."""
    rng, machine = random.Random(3), measured(load_machine("scratchpad_768k"))
    for _ in range(tries(200, 2000)):
        rows, columns, whole, turns = rng.randint(1, 40), rng.randint(1, 40), rng.randint(0, 10**6), rng.randint(1, 9)
        layer = Layer(name="c", m=3, n=2, r=rows, c=columns, h=rows, l=columns, cycles=whole)
        cuts = sorted({0, rows, *(rng.randint(0, rows) for _ in range(rng.randint(0, 5)))})
        pixels = np.diff(cuts) * columns
        taken = cycles_of(layer, machine, pixels, turns)
        assert taken.sum() >= whole
        assert (taken * rows * columns < whole * pixels + turns * rows * columns).all()
        assert int(cycles_of(layer, machine, np.array(rows * columns))) == whole


def test_tiles_take_just_the_layer() -> None:
    """10 ticks in three equal tiles: 4 by the first, 7 by the second, 10 by the last."""
    layer = Layer(name="c", m=3, n=1, r=1, c=1, h=1, l=1, cycles=10)
    machine, nest = measured(load_machine("scratchpad_768k")), Nest((Hold("IN"), Loop("m", 1), Hold("W"), Hold("OUT")))
    skeleton = skeleton_of(layer, nest)
    trees = trees_of(cores(layer, skeleton.spatial)[0], nest.loops())
    assert Timeline(layer, machine, skeleton, nest.loops(), trees).compute().tolist() == [4, 3, 3]
    plain = layer.model_copy(update={"cycles": 0})
    assert Timeline(plain, machine, skeleton, nest.loops(), trees).compute().tolist() == [0, 0, 0]


def test_nests_are_priced_as_they_are_replayed() -> None:
    """What they move, and the layer's time, in both; so the fastest nest is one that moves the least ticks."""
    machine = measured(load_machine("scratchpad_768k", TWO))
    layer = chain(4, size=8).layers[0].model_copy(update={"cycles": 777})
    for nest in (
        Nest((Hold("IN"), Hold("W"), Hold("OUT"))),
        Nest((Loop("r", 3), Hold("IN"), Loop("m", 3), Hold("W"), Hold("OUT"))),
    ):
        outcome = price(layer, machine, nest)
        assert outcome == replay(layer, machine, nest).outcome
        assert (outcome.compute_ticks, outcome.time_ticks) == (777, 777 + outcome.transfer_ticks)
    assert tiling.build(layer, machine, Pins(())).contains(nest)


@pytest.mark.parametrize(("mode", "width"), [("lead", 8), ("retain", 3), ("recompute", 3)])
def test_groups_are_priced_as_they_are_replayed(mode: Mode, width: int) -> None:
    """Of computing so long that it decides: pieces of 2 rows (and 3 columns), some of them computed again."""
    machine = load_machine("scratchpad_768k", {"ocm_bytes": "1024", "ocm_banks": "40"})
    part = FusionPart(chain(4, 4, size=8), machine, Pins(()), times(10_001, 777_777))
    steps = streams_of(Group(part.net, 0, 1), Option(2, width, mode, "lead" if width == 8 else mode))
    run = FusedRun(0, 1, *steps, (144, 0), {}, (8, 0), tuple(range(40)))
    (seen,) = part.walked(NetworkRun((run,))).runs
    assert part.prices.price(run).ticks == seen.ticks >= 8 * 777_777


def test_turns_are_priced_as_they_are_replayed() -> None:
    """Layers that take turns for 2 of 8 channels: each turn its share."""
    net = Builder("inverted", "wider, depthwise, narrower")
    x = net.conv(net.input(1, 4, 8, 6), "expand", 8)
    x = net.conv(x, "dw", 8, 3, stride=2, groups=8)
    net.conv(x, "project", 3, act="")
    network = net.build()
    profile = Profile(unit="cycles", times={layer.name: {"1": 1001 + k} for k, layer in enumerate(network.layers)})
    part = FusionPart(network, load_machine("scratchpad_768k"), Pins(()), profile)
    group = Group(part.net, 0, 2)
    assert (0, 2) in turns_of(group)
    steps = streams_of(group, Option(1, part.net.layers[2].c, "lead", "lead"))
    run = FusedRun(0, 2, *steps, (0, 0, 0), {}, (8, 4, 0), tuple(range(48)), (Blocks(0, 2, 2),))
    (seen,) = part.walked(NetworkRun((run,))).runs
    assert part.prices.price(run).ticks == seen.ticks


def test_steps_that_are_too_short_are_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """The referee adds up what is computed, and wants as much of the timeline: here it has half of it."""
    plan = planned(times(1250, 2500), "fuse=c0..c1")
    machine = load_machine("scratchpad_768k", TWO)
    part = FusionPart(chain(4, 4, size=8), machine, Pins(()), times(625, 1250))
    honest = FusionPart(chain(4, 4, size=8), machine, Pins(()), times(1250, 2500))
    monkeypatch.setattr(part, "net", honest.net)  # whom the referee asks
    faults = part.replay(plan.part.schedule).faults
    assert any("its steps take" in fault and "to compute takes 30,0" in fault for fault in faults), faults
    assert not honest.replay(plan.part.schedule).faults


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "settings", "said"), [
    (times(1), {}, ["no time in column 1 of layers ['c1']"]),
    (times(1, 2, 3), {}, ["the network has no layers ['c2']"]),
    (Profile(times={"c0": {"1": 2}, "c1": {"1": None}}), {}, ["no time in column 1 of layers ['c1']"]),
    (Profile(times={"c0": {"1": 2, "gpu": 3}, "c1": {"1": 2}}), {}, ["columns ['gpu']: times of layers stand in"]),
    (times(1, 2).model_copy(update={"clock": "alone"}), {}, ["clock alone is for boards"]),
    (times(1, 2), {"buffering": "double"}, ["times of whole layers need overlap serial, it has double_buffered"]),
    (times(1, 2), {"compute.cycle_ticks": "0"}, ["unit cycles: compute.cycle_ticks of scratchpad_768k is 0"]),
    (times(1, 1e300), {}, ["c1: too long"]),
    (Profile(clock="alone", times={"c1": {"4": 2}, "c7": {"1": 2}}), {"buffering": "double"},
     ["no layers ['c7']", "no time in column 1 of layers ['c0', 'c1']", "columns ['4']", "clock alone", "overlap"]),
])  # fmt: skip
def test_what_does_not_fit_is_refused(profile: Profile, settings: dict[str, str], said: list[str]) -> None:
    """All of it in one line."""
    with pytest.raises(InputError) as raised:
        planned(profile, **settings)
    line = str(raised.value)
    assert all(part in line for part in said), line
    assert "\n" not in line


def test_negative_times_are_refused(tmp_path: Any) -> None:
    path = tmp_path / "times.csv"
    path.write_text("task,1\nc0,-1\nc1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match="greater than or equal to 0"):
        load_profile(path)
    path.write_text("task,1\nc0,1\nc1,2\n", encoding="utf-8")
    assert load_profile(path) == times(1, 2, unit="us")


def test_a_board_has_no_cycle() -> None:
    times_of = {"input": {"4": 1.0}}
    with pytest.raises(InputError, match="unit cycles: a board has no cycle of its own"):
        Profile(unit="cycles", times=times_of).rows(["input"], ["4"])


# ---- plans -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "said"), [
    (None, "does not hold"),  # rows are computed in fewer steps, which the queue does not know
    (times(1250, 2400).model_dump(mode="json"), "time: the plan says"),
    (times(1250).model_dump(mode="json"), "no time in column 1 of layers ['c1']"),
])  # fmt: skip
def test_a_plan_with_other_times_is_found_out(value: object, said: str) -> None:
    """One that has none, one with a shorter layer, one with a layer less."""
    plan = planned(times(1250, 2500), "fuse=c0..c1")
    found = problems(plan, ("options.profile", value))
    assert any(said in line for line in found), found


def test_a_plan_is_shown_with_its_times() -> None:
    """What it computes is as long as was measured: no lanes are blamed, and no roof is above it."""
    plan = planned(times(1250, 2500), "fuse=c0..c1", "strip>=8")
    assert "33,056 ticks" in show(plan)
    assert Plan.from_json(plan.to_json()).options.profile == times(1250, 2500)
    assert load_machine("scratchpad_768k").compute == Compute(model="array", rows=16, cols=64, cycle_ticks=8)
    (split,) = (one for one in plan_splits(plan, {}, {}) if one.measure == "time")
    assert {part.cause: part.value for part in split.parts}["compute"] == 30_000
    assert "lanes" not in {part.cause for part in split.parts}

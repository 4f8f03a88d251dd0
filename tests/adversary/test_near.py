"""Networks on memories in levels: boxes and nests counted here, schedules of tiny networks against their bounds.

What is marked `xfail` is outside the space: docs/levels.md says so.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest

from formulations.fusion.problem import FusionFormulation
from formulations.pins import Pins
from hwmodels.levels.near import near_price
from hwmodels.levels.replay.near import NearReplay
from hwmodels.levels.schedule import Box, Cut, LevelNest, NearStep, Stay
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, Operator
from instances.network.workload import Layer
from solver.calls.solve import solve
from solver.cli.main import main
from tests.adversary.near import Close, attacked, case_of
from tests.adversary.near_boxes import near_of
from tests.adversary.near_events import Axis, Work, simulated
from tests.adversary.network_time import planned
from tests.effort import tries


def machine(ocm: int, *near: dict[str, object], **more: object) -> Machine:
    """A call of the far level takes 5 ticks, one of the near level 3; a byte takes one in both."""
    return Machine.model_validate(
        {
            "name": "t", "tick_ps": 1, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 4,
            "in_layout": "HWC", "out_layout": "HWC", "w_layout": "OHWI", "ocm_bytes": ocm, "sliding": True,
            "transfer": {"model": "dma", "call_ticks": 5, "byte_ticks": 1},
            "near": {"queues": "each", "memories": [{"name": "l2", "call_ticks": 3, "byte_ticks": 1}, *near]},
            "compute": {"model": "array", "cycle_ticks": 1},
        } | more
    )  # fmt: skip


def network(shape: tuple[int, int, int], *operators: Operator) -> Network:
    """A chain, or whatever reads `in`."""
    return Network(name="net", operators=(Input(name="in", shape=(1, *shape)), *operators))


def conv(name: str, reads: str, made: tuple[int, int, int], kernel: int = 1, groups: int = 1) -> Conv:
    """One that keeps rows and columns."""
    pad = kernel // 2
    return Conv(name=name, inputs=(reads,), shape=(1, *made), filters=made[0], kernel=(kernel, kernel),
                pad=(pad,) * 4, groups=groups)  # fmt: skip


# ---- steps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("buffers", "ticks"), [(1, 5 + 20 + 5 + 5 + 20 + 5), (2, 5 + 20 + 20 + 5)])
def test_two_tiles_by_hand(buffers: int, ticks: int) -> None:
    """Two rows of 5 pixels: each is loaded in 5 ticks, takes 20, and is stored in 5.

    With one buffer the store of the first row goes ahead of the second load, and both wait for the first step.
    """
    size = dict.fromkeys("bgmnrcij", 1) | {"r": 2, "c": 5}
    price, each = {"IN": 1, "W": 1, "OUT": 1, "PSUM": 1}, dict.fromkeys(("IN", "W", "OUT"), buffers)
    work = Work(size, Axis(1, 1, 0, 2), Axis(1, 1, 0, 5), 1, False, price, 0, 0, 1, 4, {}, each)
    seen = simulated(work, [("r", 1), ("IN", ""), ("OUT", "")])
    assert (seen.ticks, seen.moved, seen.held) == (ticks, 20, {"IN": 5, "OUT": 5})


def test_a_step_in_one_tile_by_hand() -> None:
    """A row of 4 pixels of 2 channels by a filter: (5 + 8) + (5 + 2) + 4 * 2 * 2 + (5 + 4)."""
    case = Close((2, 1, 4), (("conv", (0,), 1, 1, 1, 0),), 99, cycle=2, near_call=5, near_byte=1, l1=14)
    assert case.step(0, {}) == 13 + 7 + 16 + 9


@pytest.mark.parametrize("first", range(0, tries(120, 3000), 40))
def test_nests_of_boxes_take_what_is_counted(first: int) -> None:
    """Price and referee, with padding at all sides, dilation, groups, and parts of sums; or both see what overflows."""
    for seed in range(first, first + 40):
        if (near := near_of(seed)) is None:
            continue
        ticks, moved, fits = near.counted()
        seen, faults = NearReplay([near.layer], near.machine).ticks([near.step], [(0, near.step.box)])
        if not fits:
            assert faults, seed
            with pytest.raises(InputError):
                near_price(near.layer, near.machine, near.step)
            continue
        price = near_price(near.layer, near.machine, near.step)
        assert (price.ticks, price.bytes) == (ticks, moved), seed
        assert not faults, seed
        assert seen == [ticks] or _outside(near.step), seed


def _outside(step: NearStep) -> bool:
    """Whether a loop over what is added up stands outside of the results' Stay: `test_sums_...` below."""
    at = next(k for k, x in enumerate(step.nest.items) if isinstance(x, Stay) and x.operand == "OUT")
    return step.box.sums and any(isinstance(x, Cut) and x.dim in "nij" for x in step.nest.items[:at])


# ---- networks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [5001, 5004, 5005, 5007, 5009, 5010])
def test_no_schedule_is_below_the_bound(seed: int) -> None:
    """One or two layers; plans take what is counted here."""
    found = attacked(case_of(seed), random.Random(seed), 0.2)
    assert not found.faults
    assert found.bound is not None or found.status in ("refused", "INFEASIBLE")


@pytest.mark.slow(200)
@pytest.mark.parametrize("seed", [*range(1, 40), *range(1001, 1020), *range(5011, 5060)])
def test_no_schedule_of_more_networks_is_below_the_bound(seed: int) -> None:
    """Up to three layers, with pins, sampled maps, weights in flash."""
    assert not attacked(case_of(seed), random.Random(seed), 1).faults


@pytest.mark.parametrize(
    ("prices", "least"),
    [
        ({"cycle": 0, "near_call": 3, "near_byte": 2}, 60 * 2 + 3 * 3),
        ({"cycle": 1, "near_call": 50, "near_byte": 0}, 6 * 18 * 2 + 3 * 50),
    ],
)
def test_a_layer_in_one_step_by_hand(prices: dict[str, Any], least: int) -> None:
    """12 bytes of the input, 36 of weights, 12 of the result, in 3 calls; 6 pixels of 18 products for 2 filters.

    All schedules take that and some ticks of DRAM, so a bound that counts a call twice is above some.
    """
    case = Close((2, 3, 2), (("conv", (0,), 2, 3, 1, 1),), 400, **prices)
    assert planned(case).part.must["time"] == least
    found = attacked(case, random.Random(1), 3)
    assert not found.faults
    assert found.bound is not None
    assert found.bound >= least


def test_calls_of_two_layers_in_a_group_by_hand() -> None:
    """Both in a step each: 216 ticks of products, 3 calls of 50; DRAM adds 12 bytes at both ends, and a filter of 18.

    What counts calls twice is above the plan that is found, and gives way to a weaker bound: so this is the very value.
    """
    layers = ("conv", (0,), 2, 3, 1, 1), ("conv", (1,), 2, 3, 1, 1)
    found = attacked(Close((2, 3, 2), layers, 400, near_call=50, fused=(0, 1), height=3), random.Random(1), 3)
    assert not found.faults
    assert found.bound == 2 * (216 + 150) + 12 + 18 + 12


@pytest.mark.parametrize("seed", range(5101, 5101 + tries(6, 60)))
def test_the_fewest_bytes_are_those_without_near_memories(seed: int) -> None:
    """What fits moves what it moves without them, in no turns; what does not is refused."""
    case = replace(case_of(seed), sums=1)
    bare = machine_without(case)
    asked: dict[str, Any] = {"problem": "fusion", "objective": "bytes"}
    if not case.roomy:
        with pytest.raises(InputError, match="smallest tiles"):
            solve(case.network, case.machine, pins=case.pins, **asked)
        return
    plan = solve(case.network, case.machine, pins=case.pins, **asked)
    other = solve(case.network, bare, pins=[*case.pins, "turns=no"], **asked)
    assert (plan.part.status, plan.part.measures.get("bytes")) == (
        other.part.status, other.part.measures.get("bytes"))  # fmt: skip


def machine_without(case: Close) -> Machine:
    """The same machine, without near memories."""
    return case.machine.model_copy(update={"near": None})


def boxes_of(net: Network, on: Machine, schedule: Any) -> list[list[tuple[int, Box]]]:
    """Of every step of a plan the boxes."""
    (part,) = FusionFormulation().read(net, on, Pins(), None)
    return [step for run in part.timelines.near_steps(schedule, part.numbered(schedule)) for step in run]


@pytest.mark.parametrize("pins", [["length=1"], ["fuse=a..b"]])
def test_boxes_make_every_result_once(pins: list[str]) -> None:
    """Products of boxes are those of the layers, pools' too; in strips, and by nests."""
    net = network((4, 6, 3), conv("a", "in", (4, 6, 3), 3), conv("b", "a", (4, 6, 3), 3, groups=4))
    on = machine(220, {"name": "l1", "bytes": 90})
    plan = solve(net, on, problem="fusion", objective="time", pins=pins)
    made = [0, 0]
    for t, box in (one for step in boxes_of(net, on, plan.part.schedule) for one in step):
        made[t] += prod((box.batch, box.groups, box.filters, box.channels, box.rows, box.columns, box.high, box.wide))
    assert made == [6 * 3 * 4 * 4 * 9, 6 * 3 * 4 * 9]


# ---- files -----------------------------------------------------------------------------------------------------------


Change = Callable[[dict[str, Any], list[dict[str, Any]]], object]


def _doubled(_: dict[str, Any], near: list[dict[str, Any]]) -> None:
    next(item for one in near for item in one["nest"]["items"] if "step" in item)["step"] *= 2


def _smaller(plan: dict[str, Any], _: object) -> None:
    plan["machine_data"]["near"]["memories"][1]["bytes"] -= 30


#: By name what is changed by hand, and what is said.
CHANGES: dict[str, tuple[Change, str]] = {
    "removed": (lambda _, near: near.pop(0), "no nest for"),
    "doubled": (_doubled, "tiles take"),
    "larger": (lambda _, near: near[0]["box"].update(rows=near[0]["box"]["rows"] + 1), "no nest for"),
    "padding": (lambda _, near: near[0]["box"].update(top=0), "no nest for"),
    "beyond": (lambda _, near: near[0].update(layer=99), "layer 99 of 2"),
    "before": (lambda _, near: near[0].update(layer=-1), "greater than or equal to 0"),
    "smaller": (_smaller, "fit in l1"),
    "unknown": (lambda _, near: near[0]["nest"]["items"][-1].update(memory="l9"), "stay in l9"),
}


@pytest.fixture(scope="module")
def filed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan in strips on 40 bytes."""
    case = Close(
        (2, 5, 3), (("conv", (0,), 3, 3, 1, 1), ("deep", (1,), 0, 3, 1, 1)), 90, l1=40, near_byte=2, near_call=3
    )
    path = tmp_path_factory.mktemp("near") / "plan.json"
    path.write_text(planned(case).file_text(path))
    assert main(["check", str(path)]) == 0
    return path


@pytest.mark.parametrize("name", CHANGES)
def test_a_plan_that_is_changed_is_refused(
    filed: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    plan, (change, said) = json.loads(filed.read_text()), CHANGES[name]
    change(plan, plan["parts"][0]["schedule"]["near"])
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(plan))
    assert main(["check", str(path)]) != 0
    told = "".join(capsys.readouterr())
    assert said in told
    assert "Traceback" not in told


# ---- faults that were, and what is outside the space -----------------------------------------------------------------


def test_sums_that_find_no_room_are_refused_in_a_line() -> None:
    """A memory of 2 bytes holds two results, and no sum of 4 that an L2 of 120 bytes needs for 64 channels."""
    net = network((64, 4, 4), conv("a", "in", (4, 4, 4)))
    inner = {"name": "l1", "bytes": 4000, "operands": ["IN", "W"]}, {"name": "acc", "bytes": 2, "operands": ["OUT"]}
    try:
        plan = solve(net, machine(120, *inner), problem="fusion", objective="bytes")
    except InputError:
        return
    assert plan.part.status in ("OPTIMAL", "FEASIBLE", "INFEASIBLE")


def test_blocks_of_filters_that_cross_groups_read_both() -> None:
    """9 filters of 3 groups, two by two: filters 2 and 3 are of two groups, so their box reads channels of both."""
    net = network((6, 4, 4), conv("a", "in", (9, 4, 4), 3, groups=3), conv("b", "a", (4, 4, 4), 3))
    on = machine(260, {"name": "l1", "bytes": 150})
    plan = solve(net, on, problem="fusion", objective="time", pins=["fuse=a..b"])
    done, wrong = 0, []
    for step in boxes_of(net, on, plan.part.schedule):
        mine = [box for t, box in step if t == 0]
        number = sum(box.groups * box.filters for box in mine)
        touched = {(done + k) // 3 for k in range(number)}
        wrong += [(done, number)] * (sum(box.groups for box in mine) < len(touched))
        done = (done + number) % 9
    assert not wrong


TWICE: dict[str, tuple[tuple[Operator, ...], int]] = {
    "sum": ((Eltwise(name="a", inputs=("in", "in"), shape=(1, 4, 4, 4), fn="add"),), 64),
    "joined": ((Concat(name="j", inputs=("in", "in"), shape=(1, 8, 4, 4)), conv("a", "j", (1, 4, 4))), 8 + 16),
}


@pytest.mark.parametrize("name", TWICE)
def test_a_map_that_a_layer_reads_twice_comes_once(name: str) -> None:
    """64 bytes from DRAM, through L1 once (3 + 640 ticks), weights and results too, the results to DRAM.

    Products take nothing. The layer says so: elements that are copies of others need not move (`Layer.copies`).
    """
    operators, others = TWICE[name]
    memories = [{"name": "l2", "call_ticks": 3, "byte_ticks": 10}, {"name": "l1", "bytes": 600}]
    near = {"queues": "each", "memories": memories}
    on = machine(600, compute={"model": "array", "cycle_ticks": 0}, near=near)
    bound = solve(network((4, 4, 4), *operators), on, problem="fusion", objective="time").part.bounds["time"]
    assert bound is not None
    assert bound <= 64 + 640 + 11 * others + 3 * (5 + 3)


def test_sums_of_a_tile_that_stays_come_once() -> None:
    """A loop over taps outside the results' Stay moves no tile of results: one load, one store, a call of sums more."""
    layer = Layer.conv("x", channels=1, filters=1, size=(2, 2), kernel=(2, 1), pad=(0, 0, 1, 0))
    box = Box(1, 1, 1, 1, 1, 1, 2, 1, 0, 0, 0, 0, sums=True)
    nest = LevelNest((Stay("IN", "l1"), Stay("W", "l1"), Cut("i", 1), Stay("OUT", "l1")))
    on, step = machine(99, {"name": "l1", "bytes": 99}), NearStep(0, box, 1, nest)
    ticks, faults = NearReplay([layer], on).ticks([step], [(0, box)])
    assert (ticks, faults) == ([near_price(layer, on, step).ticks], [])


@pytest.mark.xfail(strict=True, raises=InputError, reason="a step has 200,000 tiles at the most")
def test_a_large_layer_on_a_small_memory_has_a_plan() -> None:
    """8 x 512 x 512 on 12 bytes: strips of it, or the layer as strips, are steps that can be followed."""
    net = network((8, 512, 512), conv("a", "in", (8, 512, 512)))
    plan = solve(net, machine(10**8, {"name": "l1", "bytes": 12}), problem="fusion", objective="bytes")
    assert plan.part.status == "OPTIMAL"


def test_nests_that_nobody_uses_are_told(filed: Path, tmp_path: Path) -> None:
    """The same box twice, with another nest ahead."""
    plan = json.loads(filed.read_text())
    near = plan["parts"][0]["schedule"]["near"]
    other = json.loads(json.dumps(near[0]))
    other["nest"]["items"] = [{"dim": "m", "step": 77}, *other["nest"]["items"]]
    near.insert(0, other)
    path = tmp_path / "twice.json"
    path.write_text(json.dumps(plan))
    assert main(["check", str(path)]) != 0


@pytest.mark.xfail(strict=True, raises=InputError, reason="windows, and filters of a group, are not cut near the PEs")
@pytest.mark.parametrize(
    ("made", "kernel", "groups"), [((4, 4, 4), 3, 1), ((32, 4, 4), 1, 2)], ids=["kernel", "filters of groups"]
)
def test_what_has_tiles_that_fit_is_planned(made: tuple[int, int, int], kernel: int, groups: int) -> None:
    """On 15 bytes problem levels cuts the kernel outside of W, or the filters of a group; here neither is looked at."""
    net = network((4, 4, 4), conv("a", "in", made, kernel, groups))
    assert solve(net, machine(2000, {"name": "l1", "bytes": 15}), problem="fusion", objective="bytes").part.schedule

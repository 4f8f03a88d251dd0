"""Networks on memories in levels: steps whose tiles go through a nearer memory, by hand and by the referee."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from formulations.fusion.near import Near
from formulations.fusion.part import FusionPart
from formulations.pins import Pins
from hwmodels.levels.near import near_price, near_ticks
from hwmodels.levels.replay.near import NearReplay
from hwmodels.levels.schedule import Box, Cut, LevelNest, NearStep, Stay, layer_of, near_machine
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver import check, show
from solver.calls.solve import solve
from solver.plan.plan import Plan
from tests.golden_plans import chain


def machine(l1: int = 20, l2: int = 4000, **fields: object) -> Machine:
    """DRAM, an L2 and an L1 with two buffers; a call takes 3 ticks, a byte 1, in DRAM 2."""
    memories = [
        {"name": "dram", "call_ticks": 3, "byte_ticks": 2},
        {"name": "l2", "bytes": l2, "call_ticks": 3, "byte_ticks": 1, "byte_fj": 2},
        {"name": "l1", "bytes": l1, "buffers": 2},
    ]
    given = {
        "name": "tiny", "problem": "levels", "tick_ps": 1000, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1,
        "psum_bytes": 4, "in_layout": "HWC", "w_layout": "OHWI", "out_layout": "HWC", "sliding": True,
        "levels": {"queues": "each", "memories": memories}, "compute": {"model": "array", "cycle_ticks": 1},
    }  # fmt: skip
    return Machine.model_validate(given | fields).in_network


def test_a_step_by_hand() -> None:
    """Four rows of a pixel, 2 channels to 2 filters, in two tiles of two rows; 24 bytes of L1 hold two of each.

    Weights (3 + 4) and the first rows (3 + 4) are there at 14, the others at 21. The array computes 8 ticks a tile, to
    22 and to 30; the first result leaves until 29, the second one from 30 to 37.
    """
    layer, on = Layer.conv("x", channels=2, filters=2, size=(4, 1), kernel=(1, 1)), machine(l1=24)
    box = Box(1, 1, 2, 2, 4, 1, 1, 1, 0, 0, 0, 0)
    nest = LevelNest((Stay("W", "l1"), Cut("r", 2), Stay("IN", "l1"), Stay("OUT", "l1")))
    step = NearStep(0, box, 1, nest)
    took = near_price(layer, on, step)
    assert (took.ticks, took.bytes) == (37, 4 + 8 + 8)
    assert NearReplay([layer], on).ticks([step], [(0, box)]) == ([37], [])
    with pytest.raises(InputError, match="layer x: l1 has 20 bytes, tiles take 24"):
        near_price(layer, machine(l1=20), step)
    # half of the channels: 8 sums of 4 bytes come before (3 + 32 for one tile), and go as sums
    whole = LevelNest((Stay("W", "l1"), Stay("IN", "l1"), Stay("OUT", "l1")))
    part = NearStep(0, replace(box, channels=1, sums=True), 1, whole)
    alone = (3 + 2) + (3 + 4) + 8 + (3 + 32)
    assert near_price(layer, machine(l1=200), part).ticks == alone + 35
    assert NearReplay([layer], machine(l1=200)).ticks([part], [(0, part.box)]) == ([alone + 35], [])


def test_the_bound_of_a_step_is_met() -> None:
    """Where bytes take no time a step takes its 32 products, a call for each operand before, and one for the result."""
    levels = {
        "memories": [{"name": "dram"}, {"name": "l2", "bytes": 900, "call_ticks": 3}, {"name": "l1", "bytes": 90}]
    }
    near = Near(
        [Layer.conv("x", channels=2, filters=2, size=(4, 2), kernel=(1, 1))],
        machine(levels={**levels, "queues": "each"}),
    )
    (box,) = near.boxes(0, near.kinds(0, np.array([[0], [4]]), np.array([[0], [2]]))[0][0], 2)
    assert near.step(0, box)[1] == near.least(0, 32) == 32 + 3 * 3


def layers(rng: random.Random) -> Layer:
    """A small layer of any kind."""
    kind = rng.choice(("conv", "conv", "deep", "grouped", "sum", "pool"))
    size, taps, stride = (rng.randint(3, 7), rng.randint(3, 7)), rng.randint(1, 3), rng.randint(1, 2)
    if kind == "sum":
        return Layer(name="x", kind="eltwise", inputs=2, weights="none", g=rng.randint(1, 5), m=1, n=1, r=size[0],
                     c=size[1], h=size[0], l=size[1])  # fmt: skip
    pad = rng.randint(0, taps - 1)
    r, c = ((one + 2 * pad - taps) // stride + 1 for one in size)
    g, m, n = {"conv": (1, rng.randint(1, 6), rng.randint(1, 5)), "grouped": (2, 2, 3)}.get(
        kind, (rng.randint(1, 6), 1, 1)
    )
    return Layer(
        name="x", kind="pool" if kind == "pool" else "conv", weights="none" if kind == "pool" else "constant", g=g, m=m,
        n=n, r=r, c=c, kh=taps, kw=taps, stride_h=stride, stride_w=stride, pad_top=pad, pad_left=pad, h=size[0],
        l=size[1],
    )  # fmt: skip


def fitting(layer: Layer, on: Machine) -> Near | None:
    """The table of a layer; None if no tile of it fits."""
    try:
        return Near([layer], on)
    except InputError as error:
        if "not even the smallest tiles of x fit in l1" in str(error):
            return None
        raise


def pieces(rng: random.Random, size: int) -> list[tuple[int, int]]:
    """A range cut at random."""
    places = sorted(rng.sample(range(1, size), rng.randint(0, min(2, size - 1))))
    return [*zip([0, *places], [*places, size], strict=True)]


def test_boxes_and_bounds_at_random() -> None:
    """Layers cut in boxes of rows, columns and filters: these make all of it, replay agrees, and none beats `least`."""
    executed = 0
    for seed in range(60):
        rng = random.Random(seed)
        layer, on = layers(rng), machine(l1=rng.choice((60, 120, 400)), psum_bytes=rng.choice((1, 4)))
        if (near := fitting(layer, on)) is None:
            continue
        rows, columns, filters = (pieces(rng, size) for size in (layer.r, layer.c, layer.g * layer.m))
        kinds, which = near.kinds(0, np.array(rows).T, np.array(columns).T)
        assert which.shape == (len(rows), len(columns))
        ticks, made, referee = 0, 0, NearReplay([layer], on)
        for k in which.ravel().tolist():
            for first, last in filters:
                for box in near.boxes(0, kinds[k], last - first):
                    step, taken = near.step(0, box)
                    assert referee.ticks([step], [(0, box)]) == ([taken], [])
                    assert near_ticks(layer, near_machine(on), step) == near_price(layer, on, step).ticks == taken
                    ticks, made = ticks + taken, made + box.groups * box.filters * box.rows * box.columns
        assert made == layer.g * layer.m * layer.r * layer.c
        computed = layer.macs if layer.weights != "none" else made * layer.kh * layer.kw * layer.inputs
        assert ticks >= near.least(0, computed)
        executed += 1
    assert executed > 40


def test_windows_of_boxes_read_what_the_layer_reads() -> None:
    """Rows that boxes read, with the padding of the map's ends, counted tap by tap."""
    for seed in range(80):
        rng = random.Random(seed)
        layer = layers(rng)
        near = Near([layer], machine(l1=10_000))
        kinds, which = near.kinds(0, np.array(rows := pieces(rng, layer.r)).T, np.array([[0], [layer.c]]))
        for (begin, end), k in zip(rows, which[:, 0].tolist(), strict=True):
            taps = [r * layer.stride_h - layer.pad_top + i for r in range(begin, end) for i in range(layer.kh)]
            inside = [one for one in taps if 0 <= one < layer.h]
            box = next(near.boxes(0, kinds[k], layer.g * layer.m))
            if inside:
                assert layer_of(layer, box).h == max(inside) - min(inside) + 1
                assert box.top == max(0, -min(taps))


#: Two layers of 4 channels on 8 x 8 pixels.
NETWORK = chain(4, 4, 4, size=8)
LAYERS = NETWORK.layers


@pytest.fixture(scope="module")
def planned() -> Plan:
    """Two layers of 4 channels on 8 x 8 pixels, where L1 holds a few rows."""
    return solve(NETWORK, machine(l1=900, l2=1200), problem="fusion")


def test_a_plan_says_how_tiles_go_through_the_nearer_memory(planned: Plan, tmp_path: Path) -> None:
    """Every box of a step has a nest; the plan is checked as it was read, and shown."""
    runs = planned.schedule
    assert runs.near
    path = tmp_path / "plan.json"
    planned.save(path)
    assert check(path).ok
    through = sum(one.times * near_price(LAYERS[one.layer], planned.machine_data, one).bytes for one in runs.near)
    assert planned.part.terms["energy"] == {"IN": 0, "W": 0, "OUT": 0, "PSUM": 0, "MAC": 0, "l2": 2 * through}
    assert "IN@l1" in show(planned, details=True)
    assert planned.measures["time"] >= planned.bounds["time"]
    assert planned.machine_data.near is not None


def test_plans_of_no_search_name_their_nests_too(planned: Plan) -> None:
    """Those by which steps were priced: the time stays."""
    part = FusionPart(NETWORK, planned.machine_data, Pins(()))
    bare = replace(planned.schedule, near=(), queue=None)
    named = part.completed(bare)
    assert named.near
    assert named.queue is not None
    assert part.price(named).measures["time"] == part.price(bare).measures["time"]
    assert solve(NETWORK, machine(l1=900, l2=1200), problem="fusion", time_limit_s=0.01).schedule.near


@pytest.mark.parametrize("fault", ["missing", "larger", "faster", "strange", "small", "seldom"])
def test_a_plan_with_other_nests_is_refused(planned: Plan, tmp_path: Path, fault: str) -> None:
    """A nest that is missing, too large, of another box, of a layer that there is not, or in a smaller memory."""
    data = json.loads(planned.file_text(tmp_path / "x.json"))
    near = data["parts"][0]["schedule"]["near"]
    if fault == "missing":
        del near[0]
    elif fault == "larger":
        near[0]["nest"]["items"] = [one for one in near[0]["nest"]["items"] if "dim" not in one]
        data["machine_data"]["near"]["memories"][1]["bytes"] = 60
    elif fault == "faster":
        near[0]["box"]["rows"] += 1
    elif fault == "seldom":
        near[0]["times"] += 1
    elif fault == "strange":
        near[0]["layer"] = 7
    else:
        data["machine_data"]["near"]["memories"][1]["bytes"] = 40
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(data))
    try:
        report = check(path)
    except InputError:
        return
    assert not report.ok


def test_without_a_nearer_memory_plans_are_as_before() -> None:
    """No nests are written; and with an L1 that costs nothing and holds everything time is that of one level."""
    memories = {"memories": [{"name": "l2"}, {"name": "l1", "bytes": 10**6}], "queues": "each"}
    alone = machine(l2=1200).model_copy(update={"near": None})
    free = Machine.model_validate(dict(alone) | {"near": memories})
    one, two = (solve(NETWORK, on, problem="fusion", pins="turns=no") for on in (alone, free))
    assert "near" not in json.loads(one.file_text("x.json"))["parts"][0]["schedule"]
    assert one.measures["time"] == two.measures["time"]
    assert one.bounds["time"] == two.bounds["time"]


def test_what_is_refused_is_said_at_once() -> None:
    """Machines whose levels networks cannot have, and layers that fit nowhere."""
    net = NETWORK
    with pytest.raises(InputError, match=r"not even the smallest tiles of c0 fit in l1 \(20 bytes\)"):
        FusionPart(net, machine(l1=20), Pins(()))
    with pytest.raises(InputError, match=r"levels\.queues is 'serial'; .* 'each' is accepted"):
        solve(net, "dram_l2_l1", problem="fusion")
    with pytest.raises(InputError, match="networks need spad to hold all operands"):
        solve(net, "gemmini_levels", problem="fusion")
    with pytest.raises(InputError, match="counted, not minimised: ask for time or bytes"):
        solve(net, machine(l1=900), problem="fusion", objective="energy")
    with pytest.raises(InputError, match="turns"):
        solve(net, machine(l1=900), problem="fusion", pins="turns=any")


@pytest.mark.parametrize("objective", ["bytes", "bytes,time"])
def test_the_fewest_bytes_are_those_of_one_level(objective: str) -> None:
    """Nearer memories change no byte of DRAM."""
    net, on = NETWORK, machine(l1=900, l2=700)
    plan = solve(net, on, problem="fusion", objective=objective)
    alone = solve(net, on.model_copy(update={"near": None}), problem="fusion", objective="bytes", pins="turns=no")
    assert plan.measures["bytes"] == alone.measures["bytes"] == alone.bounds["bytes"]


@pytest.mark.slow(130)
@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet50"])
def test_networks_on_gap9(name: str) -> None:
    """L3, 1.5 MiB of L2 and 120,000 bytes of L1: a gap below 5 % in two minutes."""
    plan = solve(name, load_machine("gap9_levels"), problem="fusion", time_limit_s=120)
    assert plan.measures["time"] <= 1.05 * plan.bounds["time"]

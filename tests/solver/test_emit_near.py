"""C of networks on memories in levels: results, and what moves between L2 and the nearer memories, as planned."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest

from certile import InputError, Plan, compile_model, emit_c, solve
from formulations.fusion.part import FusionPart
from formulations.pins import Pins
from hwmodels.levels.price import price
from hwmodels.levels.replay.walk import walk
from hwmodels.levels.schedule import Cut, LevelNest, NearStep, Stay, layer_of, near_machine
from hwmodels.schedule import NetworkRun
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, MatMul, Pool, Reshape
from instances.network.workload import Layer
from solver.uses.emit.ahead.program import AheadPlanned
from solver.uses.emit.emit import files_of
from tests.emitted import build_and_run, needs_gcc, random_network, write
from tests.onnx_models import quantised

pytestmark = needs_gcc

SANITIZED = "-O0 -fsanitize=address,undefined -fno-sanitize-recover=all"


def machine(l1: int, l2: int = 4000, *, accumulators: int = 0, **fields: object) -> Machine:
    """DRAM, an L2 and an L1, with accumulators apart if these have bytes."""
    nearest = {"name": "l1", "bytes": l1, "reserved_bytes": 3}
    memories = [
        {"name": "dram", "call_ticks": 3, "byte_ticks": 2},
        {"name": "l2", "bytes": l2, "call_ticks": 3, "byte_ticks": 1},
        {**nearest, "operands": ["IN", "W"]} if accumulators else nearest,
    ]
    memories += [{"name": "acc", "bytes": accumulators, "operands": ["OUT"]}] if accumulators else []
    given = {
        "name": "tiny", "problem": "levels", "tick_ps": 1000, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1,
        "psum_bytes": 4, "in_layout": "HWC", "w_layout": "OHWI", "out_layout": "HWC", "sliding": True,
        "levels": {"queues": "each", "memories": memories}, "compute": {"model": "array", "cycle_ticks": 1},
    }  # fmt: skip
    return Machine.model_validate(given | fields)


def counted(plan: Plan, runs: NetworkRun[Any], on: Machine) -> str:
    """What the program has to say of its transfers: the referee's count of every nest, as often as it is planned."""
    calls = size = 0
    for one in runs.near:
        seen = walk(layer_of(plan.network_data.layers[one.layer], one.box), near_machine(on), one.nest)
        calls, size = calls + one.times * seen.calls["l2"], size + one.times * seen.bytes["l2"]
    return f"channel 1, l2: {size} bytes in {calls} transfers\n"


def ran(plan: Plan, folder: Path, files: Mapping[str, str | bytes] | None = None, flags: str = SANITIZED) -> str:
    """Build the program of a plan and run it; returns what it prints."""
    write(files_of(plan) if files is None else files, folder)
    said = build_and_run(folder, flags, guarded=False)
    assert f"{len(plan.network_data.layers)} layers as one network: results and transfers as planned" in said
    return said


def network() -> Network:
    """Padding, strides, a bias; depthwise; windows; a sum; maps that are joined; elements read as channels."""
    shape, half = (1, 4, 9, 6), (1, 4, 5, 3)
    return Network(name="all", operators=(
        Input(name="x", shape=(1, 3, 9, 6)),
        Conv(name="a", inputs=("x",), shape=shape, filters=4, kernel=(3, 3), pad=(1, 1, 1, 1), bias=True),
        Conv(name="b", inputs=("a",), shape=half, filters=4, kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 0), groups=4),
        Pool(name="p", inputs=("a",), shape=half, fn="max", kernel=(1, 2), stride=(2, 2)),
        Eltwise(name="s", inputs=("b", "p"), shape=half, fn="add"),
        Concat(name="j", inputs=("s", "b"), shape=(1, 8, 5, 3)),
        Conv(name="c", inputs=("j",), shape=(1, 6, 3, 3), filters=6, kernel=(3, 1), bias=True),
        Conv(name="d", inputs=("c",), shape=(1, 4, 3, 3), filters=4, kernel=(1, 1), groups=2),
        Reshape(name="f", inputs=("d",), shape=(1, 36)),
        MatMul(name="e", inputs=("f",), shape=(1, 5), out_features=5, bias=True),
    ))  # fmt: skip


#: By what is tried: machines on which tiles are cut.
MACHINES = {
    "rows slide": machine(90, 1500),
    "planes, channels cut": machine(
        50, 3000, accumulators=40, in_layout="CHW", out_layout="CHW", w_layout="OIHW", bias_bytes=4
    ),
}


@pytest.mark.parametrize("kind", MACHINES)
def test_layers_of_all_kinds(kind: str, tmp_path: Path) -> None:
    """Results as naive loops have them, transfers as the referee counts them."""
    plan = solve(network(), MACHINES[kind], problem="fusion", objective="bytes")
    assert any(isinstance(item, Cut) for one in plan.schedule.near for item in one.nest.items)
    assert counted(plan, plan.schedule, plan.machine_data) in ran(plan, tmp_path / "c")


def test_a_layer_by_hand(tmp_path: Path) -> None:
    """A 3x3 layer of 8 x 8 pixels with padding, 2 channels to 2 filters, in tiles of 2 rows; L2 holds all of it.

    Weights (36 bytes) come once. Windows of two rows have 3, 4, 4 and 3 rows of 16 bytes, of which 2 slide: 3 + 2 + 2
    + 1 rows come, which is the input once. Four tiles of results go.
    """
    layer = Conv(name="a", inputs=("x",), shape=(1, 2, 8, 8), filters=2, kernel=(3, 3), pad=(1, 1, 1, 1))
    whole = Network(name="one", operators=(Input(name="x", shape=(1, 2, 8, 8)), layer))
    plan = solve(whole, machine(140), problem="fusion", objective="bytes", pins="strip=8")
    (one,) = plan.schedule.near
    nest = LevelNest((Stay("W", "l1"), Cut("r", 2), Stay("IN", "l1"), Stay("OUT", "l1")))
    files = with_nests(plan, [replace(one, nest=nest)], machine(3 + 36 + 64 + 32))
    assert "channel 1, l2: 292 bytes in 9 transfers\n" in ran(plan, tmp_path / "c", files)
    assert 36 + 128 + 128 == 292


# ---- nests that nobody plans -----------------------------------------------------------------------------------------


def with_nests(plan: Plan, nests: Sequence[NearStep], on: Machine) -> Mapping[str, str | bytes]:
    """The files of a plan whose steps go through the memories of a machine by other nests."""
    runs, network = replace(plan.schedule, near=tuple(nests)), plan.network_data
    on = on.in_network
    return AheadPlanned(network, on, runs.runs, carried=FusionPart(network, on, Pins(())).carried(runs)).files()


def random_nest(rng: random.Random, layer: Layer, on: Machine) -> LevelNest:
    """Loops and Stays in any order, of which sums do not leave the nearest memory before they are complete."""
    assert on.levels is not None
    at = {operand: one.name for one in on.levels.memories[1:] for operand in one.operands}
    while True:
        size, items = {d: layer.extent(d) for d in "bgmnrc"}, list[Cut | Stay]()
        for _ in range(rng.randint(0, 6)):
            d: Any = rng.choice([d for d in size if size[d] > 1] or ["r"])
            size[d] = rng.randint(max(1, size[d] // 4), size[d])
            items.append(Cut(d, size[d]))
        for operand in rng.sample(layer.operands, len(layer.operands)):
            stay: Any = Stay(operand, at[operand])  # type: ignore[arg-type]
            items.insert(rng.randint(0, len(items)), stay)
        before = [one.dim for one in items[: items.index(Stay("OUT", at["OUT"]))] if isinstance(one, Cut)]
        if "n" not in before or set(before[before.index("n") :]) == {"n"}:
            return LevelNest(tuple(items))


def random_machine(rng: random.Random) -> Machine:
    """Any elements and layouts."""
    size, layout = rng.choice((1, 1, 2)), rng.choice(("CHW", "HWC"))
    room = rng.choice((60, 120, 300, 900))
    fields: dict[str, object] = {
        "in_bytes": size, "out_bytes": size, "w_bytes": rng.choice((1, 2)), "psum_bytes": size * rng.choice((1, 2)),
        "bias_bytes": rng.choice((0, 4)), "in_layout": layout, "sliding": rng.random() < 0.7,
        "out_layout": layout if rng.random() < 0.8 else rng.choice(("CHW", "HWC")),
        "w_layout": rng.choice(("OIHW", "OHWI")),
    }  # fmt: skip
    apart = room if rng.random() < 0.3 else 0
    return machine(room, rng.choice((1200, 2500, 6000, 20000)), accumulators=apart, **fields)


#: Why no C is written of a plan, or there is none.
REFUSED = "smallest tiles|nest cuts|strips have columns|addresses|reshaped|is joined with|samples|in two|add up"


def random_plan(rng: random.Random) -> Plan:
    """A random network on levels of whose plan C is written."""
    while True:
        network, on = random_network(rng), random_machine(rng)
        try:
            plan = solve(network, on, problem=rng.choice(("fusion", "fusion", "joint")), objective="bytes")
            files_of(plan)
        except InputError as error:
            said = str(error)
        else:
            return plan
        assert re.search(REFUSED, said), said


def anew(plan: Plan, rng: random.Random) -> tuple[NetworkRun[Any], Machine]:
    """The runs of a plan with any nests, on a machine whose nearer memories have not one byte more than these take."""
    on, made = near_machine(plan.machine_data), list[NearStep]()
    assert on.levels is not None
    taken = {one.name: 1 for one in on.levels.memories[1:]}
    wide = [one.model_copy(update={"bytes": one.bytes and 10**6}) for one in on.levels.memories]
    roomy = on.model_copy(update={"levels": on.levels.model_copy(update={"memories": tuple(wide)})})
    for one in plan.schedule.near:
        layer = layer_of(plan.network_data.layers[one.layer], one.box)
        nest = random_nest(rng, layer, on)
        made.append(replace(one, nest=nest))
        for name, size in price(layer, roomy, nest).occupancy_bytes.items():
            taken[name] = max(taken[name], size)
    assert plan.machine_data.near is not None
    tight = [one.model_copy(update={"bytes": taken.get(one.name)}) for one in plan.machine_data.near.memories]
    near = plan.machine_data.near.model_copy(update={"memories": tuple(tight)})
    return replace(plan.schedule, near=tuple(made)), plan.machine_data.model_copy(update={"near": near})


def both_ways(seed: int, folder: Path, others: int) -> None:
    """Run a random network as it is planned, then by other nests."""
    rng = random.Random(seed)
    plan = random_plan(rng)
    assert counted(plan, plan.schedule, plan.machine_data) in ran(plan, folder / "planned")
    for number in range(others):
        runs, on = anew(plan, rng)
        assert counted(plan, runs, on) in ran(plan, folder / f"{number}", with_nests(plan, runs.near, on))


def test_a_random_network_and_other_nests(tmp_path: Path) -> None:
    """The referee's transfers and bytes, and results as naive loops have them; L1 has no byte more than is taken."""
    both_ways(1, tmp_path, 1)


@pytest.mark.slow(15)
@pytest.mark.parametrize("seed", range(100, 124))
def test_random_networks_and_other_nests(seed: int, tmp_path: Path) -> None:
    """The same."""
    both_ways(seed, tmp_path, 2)


# ---- models, and targets without an operating system -----------------------------------------------------------------


def test_a_quantised_model(tmp_path: Path) -> None:
    """As onnxruntime computes it, in arithmetic of 8 bits; and without a C library."""
    onnx.save(quantised(), tmp_path / "m.onnx")
    on = machine(700, 3000)
    found = compile_model(tmp_path / "m.onnx", on, tmp_path / "c", objective="bytes", problem="fusion")
    said = build_and_run(tmp_path / "c", SANITIZED, guarded=False)
    assert re.search(r"channel 1, l2: \d+ bytes in \d+ transfers\n", said)
    assert "4 layers as one network: transfers as planned" in said
    assert re.search(r"25\d|24\d of 256 elements exact, the others within 1 steps", said)  # sums of maps are of floats
    assert found.plan.schedule.near
    subprocess.run(["make", "-s", "bare"], cwd=tmp_path / "c", check=True, capture_output=True)


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> Plan:
    """A product of 4 channels to 4 filters in groups of 2, on 4 pixels; it is one box."""
    layer = Conv(name="a", inputs=("x",), shape=(1, 4, 2, 2), filters=4, kernel=(1, 1), groups=2)
    whole = Network(name="one", operators=(Input(name="x", shape=(1, 4, 2, 2)), layer))
    return solve(whole, machine(200), problem="fusion", objective="bytes", pins="strip=2")


def test_transfers_with_their_steps_are_refused(small: Plan, tmp_path: Path) -> None:
    """In one line, before any search or file."""
    said = "transfers steps: on memories in levels C is written of transfers that run ahead alone"
    with pytest.raises(InputError, match=f"^{said}$"):
        emit_c(small, tmp_path / "c", transfers="steps")
    onnx.save(quantised(), tmp_path / "m.onnx")
    with pytest.raises(InputError, match=f"^{said}$"):
        compile_model(tmp_path / "m.onnx", "gap9_levels", tmp_path / "c", transfers="steps")
    assert not (tmp_path / "c").exists()


def test_sums_that_leave_the_nearest_memory_are_refused(small: Plan) -> None:
    """A nest that comes back to tiles of OUT with other channels."""
    nest = LevelNest((Cut("n", 1), Cut("g", 1), Stay("W", "l1"), Stay("IN", "l1"), Stay("OUT", "l1")))
    (one,) = small.schedule.near
    with pytest.raises(InputError, match=r"^a: its nest n1 g1 W@l1 IN@l1 OUT@l1 adds up more than channels of a tile"):
        with_nests(small, [replace(one, nest=nest)], machine(200))


def test_steps_that_add_up_are_refused() -> None:
    """L2 holds half of the weights of a product of 64 channels: its nest brings some channels after others."""
    whole = Network(name="one", operators=(
        Input(name="x", shape=(1, 64, 1, 1)),
        Conv(name="a", inputs=("x",), shape=(1, 8, 1, 1), filters=8, kernel=(1, 1)),
    ))  # fmt: skip
    plan = solve(whole, machine(60, 90), problem="joint", objective="bytes")
    assert any(one.box.sums for one in plan.schedule.near)
    with pytest.raises(InputError, match=r"^a: its steps add up parts of sums, through memories in levels$"):
        files_of(plan)

"""Transfers of plans as lines of DRAM: the trace by hand and on small networks; in DRAMsim3 where it is there.

CERTILE_DRAMSIM3 names the folder of its clone, with the library built (CONTRIBUTING.md).
"""

from __future__ import annotations

import os
from functools import cache
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from formulations.fusion.part import FusionPart
from formulations.pins import Pins
from hwmodels.schedule import FusedRun, Hold, LayerRun, Loop, Nest, NetworkRun
from hwmodels.timeline.schedule import Load
from instances.errors import InputError
from instances.load import load_machine
from instances.network.network import Network
from instances.zoo.builder import Builder
from instances.zoo.chains import chain, skip
from solver.calls.solve import solve
from solver.plan.plan import Plan
from tests.referees.dram.__main__ import main
from tests.referees.dram.layout import Box, Dram, runs
from tests.referees.dram.ranks import kendall, spearman, swapped
from tests.referees.dram.simulator import CONFIG, Simulator
from tests.referees.dram.trace import Trace, Transfer, taken, trace_of, traced

DRAMSIM3 = os.environ.get("CERTILE_DRAMSIM3", "")
simulated = pytest.mark.skipif(not DRAMSIM3, reason="CERTILE_DRAMSIM3 does not say where DRAMsim3 is")


def planned(net: Network | str, ocm_bytes: int, *pins: str, engine: str = "auto", problem: str = "fusion") -> Plan:
    """The fewest bytes, in banks of 16 bytes."""
    memory = {"ocm_bytes": str(ocm_bytes), "ocm_banks": str(ocm_bytes // 16)}
    asked = {"problem": problem, "objective": "bytes", "engine": engine, "pins": pins, "settings": memory}
    return solve(net, "scratchpad_768k", **asked)


def joined() -> Network:
    """Two convolutions side by side of 4 and 8 filters, and a third of what both make."""
    net = Builder("joined", "")
    x = net.input(1, 4, 8, 8, name="in")
    both = [net.conv(x, name, filters, 3, batch_norm=False, act="") for name, filters in (("a", 4), ("b", 8))]
    net.conv(net.concat(both, "both"), "c", 4, 3, batch_norm=False, act="")
    return net.build()


# ---- by hand ---------------------------------------------------------------------------------------------------------


def test_runs_by_hand() -> None:
    """8 x 8 pixels of 4 channels from byte 1,000 on, channels innermost: a row has 32 bytes."""
    sizes = (8, 8, 4)
    assert runs(sizes, ((2, 4), (0, 8), (0, 4)), 1000, 1).tolist() == [[1064, 64]]  # rows 2 and 3
    assert runs(sizes, ((2, 4), (1, 4), (0, 4)), 1000, 1).tolist() == [[1068, 12], [1100, 12]]  # columns 1 to 3
    assert runs(sizes, ((2, 3), (0, 2), (1, 3)), 1000, 1).tolist() == [[1065, 2], [1069, 2]]  # channels 1 and 2
    assert runs(sizes, ((0, 2**60),) * 3, 1000, 4).tolist() == [[1000, 1024]]  # all of it, in four bytes each
    assert runs(sizes, ((9, 10), (0, 8), (0, 4)), 1000, 1).tolist() == []


def test_strips_by_hand() -> None:
    """Two 3x3 layers of 4 channels on 8 x 8 pixels in strips of 2 rows, in the queue's order.

    Maps have 256 bytes: c0 at 0, c1 at 256, the input at 512. Weights of c0 are 4 filters of 36 bytes at 768, to 912,
    so its sums of 4 bytes lie from 960 to 1,984, and the weights of c1 from there on. Of the input rows 0-3 (128
    bytes), 4-5 and 6-7 are loaded, of the result two rows (64 bytes) are stored in each of four visits; nothing of c0.
    """
    trace = trace_of(planned(chain(4, 4, size=8), 544, "fuse=c0..c1", "strip=2"))
    assert {key: place for key, place in trace.dram.places.items() if key[0] != "sums"} == {
        ("map", 0): (0, 256), ("map", 1): (256, 256), ("map", 2): (512, 256),
        ("weights", 0): (768, 144), ("weights", 1): (1984, 144),
    }  # fmt: skip
    moved = [(one.operand, one.layer, one.runs.tolist()) for one in trace.transfers]
    by_kind = {kind: [told[2][0] for told in moved if told[0] == kind] for kind in ("IN", "W", "OUT")}
    assert by_kind == {
        "IN": [[512, 128], [640, 64], [704, 64]],
        "W": [[768, 144], [1984, 144]],
        "OUT": [[256, 64], [320, 64], [384, 64], [448, 64]],
    }
    assert {len(told[2]) for told in moved} == {1}


def test_a_joined_map_by_hand() -> None:
    """Parts of 4 and 8 channels on 8 x 8 pixels lie one behind the other: 256 and 512 bytes, rows of 32 and 64."""
    found = trace_of(planned(joined(), 2048, engine="per-layer")).dram
    start, size = found.places["map", found.net.reads[2][0]]
    assert size == 768
    assert found.read(2, found.net.reads[2][0], Box(rows=(2, 3))).tolist() == [
        [start + 64, 32], [start + 256 + 128, 64]
    ]  # fmt: skip
    channels = ((2, 6),)  # two of each: 2 bytes a pixel
    read = found.read(2, found.net.reads[2][0], Box((0, 1), (0, 2), channels)).tolist()
    assert read == [[start + 2, 2], [start + 6, 2], [start + 256, 2], [start + 264, 2]]
    assert found.made(1, Box(rows=(7, 8))).tolist() == [[start + 256 + 448, 64]]


def test_partial_sums_by_hand() -> None:
    """1x1, 4 channels to 2 filters on 2 x 2 pixels: channels two by two, within these row by row.

    The map of 8 bytes lies at 0, the input of 16 at 64, weights of 2 x 4 bytes at 128, sums of 32 at 192. The first two
    channels of every pixel, and of every filter, are runs of 2 bytes. A row of sums is stored for the first two, loaded
    for the others, and stored as a row of the map.
    """
    net = chain(2, size=2, taps=1)
    part = FusionPart(net, load_machine("scratchpad_768k"), Pins(()))
    nest = Nest((Loop("n", 2), Loop("r", 1), Hold("IN"), Hold("W"), Hold("OUT")))
    trace = traced(part, NetworkRun((LayerRun(nest, {}, 0, tuple(range(part.machine.ocm_banks))),)))
    assert sorted((one.operand, isinstance(one.move, Load), one.runs.tolist()) for one in trace.transfers) == [
        *(("IN", True, [[at, 2], [at + 4, 2]]) for at in (64, 66, 72, 74)),
        ("OUT", False, [[0, 4]]),
        ("OUT", False, [[4, 4]]),
        ("PSUM", False, [[192, 16]]),
        ("PSUM", False, [[208, 16]]),
        ("PSUM", True, [[192, 16]]),
        ("PSUM", True, [[208, 16]]),
        ("W", True, [[128, 2], [132, 2]]),
        ("W", True, [[130, 2], [134, 2]]),
    ]
    assert trace.by_operand() == {"IN": 16, "OUT": 8, "PSUM": 64, "W": 8}


def test_turns_by_hand() -> None:
    """32 filters of 4 bytes and 4 filters of 32 in turns of a channel on 192 bytes, with sums of a byte, in two strips.

    Maps take 32 x 32, 32 x 4 and 32 x 4 bytes, so the input lies at 1,152 and the first weights at 1,280, behind which
    are 1,024 bytes of sums. Each strip has 16 rows. Of the first weights 4 filters stay; the others and the second ones
    come for each strip in one transfer of 28 + 4 calls: 16 + 2 x (112 + 128) bytes.
    """
    net = Builder("turns", "")
    x = net.conv(net.input(1, 4, 32, 1, name="in"), "c0", 32, act="", batch_norm=False)
    net.conv(x, "c1", 4, act="", batch_norm=False)
    settings = {"ocm_bytes": "192", "ocm_banks": "12", "psum_bytes": "1"}
    plan = solve(net.build(), "scratchpad_768k", problem="fusion", objective="bytes", settings=settings)
    trace = trace_of(plan)
    others = [[at, 4] for at in range(1296, 1408, 4)] + [[at, 32] for at in range(2432, 2560, 32)]
    moved = [(one.operand, one.runs.tolist(), one.calls) for one in trace.transfers if one.operand in ("IN", "W")]
    assert sorted(moved) == [
        ("IN", [[1152, 64]], 1), ("IN", [[1216, 64]], 1), ("W", [[1280, 16]], 1), ("W", others, 32), ("W", others, 32)
    ]  # fmt: skip
    assert trace.by_operand()["W"] == 496
    for one in trace.transfers:
        assert taken(trace.dram.machine, one.operand, one.runs, one.calls) == one.move.ticks


# ---- small networks --------------------------------------------------------------------------------------------------

#: Network, bytes on chip, pins, engine: groups in strips of rows and of columns, filters that come again, layers by
#: themselves in boxes of columns and of channels, and plans of problem joint.
CASES = [
    ("chain", 544, (), "auto"), ("chain", 400, ("strip=2", "fuse=c0..c1"), "auto"), ("chain", 176, (), "per-layer"),
    ("chain", 176, ("prefetch=no",), "per-layer"), ("skip", 256, (), "auto"), ("skip", 128, (), "greedy"),
    ("joined", 512, (), "per-layer"), ("joined", 800, (), "strips"), ("sums", 48, (), "per-layer"),
    ("lenet5", 8192, (), "auto"), ("lenet5", 1024, ("holds=uniform", "order=OS"), "per-layer"),
]  # fmt: skip
NETWORKS = {
    "chain": chain(4, 4, size=8),
    "skip": skip(4, 8),
    "joined": joined(),
    "sums": chain(16, size=2, channels=16),
}


@cache
def small(name: str, size: int, pins: tuple[str, ...], engine: str) -> tuple[Plan, Trace]:
    problem = "joint" if engine == "greedy" else "fusion"
    plan = planned(NETWORKS.get(name, name), size, *pins, engine=engine, problem=problem)
    return plan, trace_of(plan)


on_small_networks = pytest.mark.parametrize(("name", "size", "pins", "engine"), CASES)


def touched(trace: Trace, key: tuple[str, int], some: list[Transfer]) -> np.ndarray:
    """How often transfers move each byte of a tensor."""
    start, size = trace.dram.places[key]  # type: ignore[index]
    found = np.zeros(size, int)
    for begin, length in np.concatenate([one.runs for one in some], axis=0).tolist():
        found[max(0, begin - start) : max(0, begin + length - start)] += 1
    return found


@on_small_networks
def test_a_trace_moves_what_the_plan_says(name: str, size: int, pins: tuple[str, ...], engine: str) -> None:
    """Bytes of every operand of every layer or group, in as many runs as it counts; of two parts in more."""
    plan, trace = small(name, size, pins, engine)
    assert sum(one.bytes for one in trace.transfers) == plan.measures["bytes"]
    for row in plan.part.figures:
        mine = [one for one in trace.transfers if trace.dram.net.layers[one.layer].name in row.layers]
        for operand, number in row.bytes.items():
            assert sum(one.bytes for one in mine if one.operand == operand) == number
    for one in trace.transfers:
        more = taken(trace.dram.machine, one.operand, one.runs, one.calls) - one.move.ticks
        assert more == 0 or (name == "joined" and one.operand == "IN" and more % 64 == 0)


@on_small_networks
def test_tensors_lie_apart(name: str, size: int, pins: tuple[str, ...], engine: str) -> None:
    """Each begins behind the end of the one before; what is moved lies in one of them, all of it."""
    _, trace = small(name, size, pins, engine)
    places = sorted(trace.dram.places.values())
    assert all(start + length <= after for (start, length), (after, _) in pairwise(places))
    kinds = {"IN": "map", "OUT": "map", "W": "weights", "PSUM": "sums"}
    for one in trace.transfers:
        for begin, length in one.runs.tolist():
            home = [kind for (kind, _), (at, there) in trace.dram.places.items()
                    if at <= begin and begin + length <= at + there]  # fmt: skip
            assert home == [kinds[one.operand]]


@on_small_networks
def test_all_weights_are_read(name: str, size: int, pins: tuple[str, ...], engine: str) -> None:
    _, trace = small(name, size, pins, engine)
    loads = [one for one in trace.transfers if isinstance(one.move, Load)]
    for key in trace.dram.places:
        if key[0] == "weights":
            assert touched(trace, key, loads).min() > 0


@on_small_networks
def test_what_is_loaded_was_stored(name: str, size: int, pins: tuple[str, ...], engine: str) -> None:
    """Of what layers make and of sums: by a transfer ahead in the queue. All of the result is there at the end."""
    _, trace = small(name, size, pins, engine)
    net = trace.dram.net
    there = np.zeros(trace.dram.end, bool)
    for s, store in enumerate(net.stores):
        if not store.parts and ("map", s) in trace.dram.places:
            start, length = trace.dram.places["map", s]
            there[start : start + length] = True
    for one in trace.transfers:
        for begin, length in one.runs.tolist():
            if isinstance(one.move, Load):
                assert one.operand == "W" or there[begin : begin + length].all()
            else:
                there[begin : begin + length] = True
    for s, store in enumerate(net.stores):
        if store.results:
            start, length = trace.dram.places["map", s]
            assert there[start : start + length].all()


def test_small_plans_have_what_is_to_be_traced() -> None:
    """Weights that come again, and boxes of many runs, in groups and in layers by themselves."""
    seen = set()
    for case in CASES:
        plan, trace = small(*case)
        group = "group" if any(isinstance(run, FusedRun) for run in plan.part.schedule) else "layers"
        once = sum(size for (kind, _), (_, size) in trace.dram.places.items() if kind == "weights")
        seen |= {(group, "runs") for one in trace.transfers if len(one.runs) > 2}
        seen |= {(group, "again")} if trace.by_operand()["W"] > once else set()
    assert seen == {(group, what) for group in ("group", "layers") for what in ("runs", "again")}


def test_other_plans_are_refused() -> None:
    plan = solve("lenet5", "scratchpad_64k", objective="bytes")
    with pytest.raises(InputError, match="fusion or joint"):
        trace_of(plan)
    biased = chain(4, size=4)
    part = trace_of(planned(biased, 512)).dram
    with pytest.raises(InputError, match="biases"):
        Dram(part.net, part.machine.model_copy(update={"bias_bytes": 4}))


# ---- orders ----------------------------------------------------------------------------------------------------------


def test_correlations_by_hand() -> None:
    """1 2 3 4 and 1 3 2 4: one of six pairs is swapped, (5 - 1) / 6; ranks differ by 1 twice, 1 - 6 * 2 / (4 * 15).

    With 1 1 2 beside 1 2 3 two of three pairs count on one side: 2 / sqrt(2 * 3); ranks 1.5 1.5 3 and 1 2 3 vary by 1.5
    and 2, together by 1.5: 1.5 / sqrt(3).
    """
    one, other = [1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]
    assert kendall(one, other) == pytest.approx(4 / 6)
    assert spearman(one, other) == pytest.approx(1 - 12 / 60)
    assert swapped(one, other) == [(1, 2)]
    assert kendall([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / 6**0.5)
    assert spearman([1, 1, 2], [1, 2, 3]) == pytest.approx(1.5 / 3**0.5)
    assert (kendall([1, 1], [1, 2]), spearman([1, 1], [1, 2])) == (0, 0)


# ---- DRAMsim3 --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Simulator:
    return Simulator(Path(DRAMSIM3), tmp_path_factory.mktemp("driver"))


@simulated
@on_small_networks
def test_the_driver_knows_the_events(
    simulator: Simulator, name: str, size: int, pins: tuple[str, ...], engine: str
) -> None:
    """With the durations that are planned it ends when the plan does; with others each line is moved once."""
    _, trace = small(name, size, pins, engine)
    tick = trace.dram.machine.tick_ps
    assert simulator.run(trace, "planned").latency_ps == trace.latency * tick
    seen = simulator.run(trace)
    assert (seen.read_lines + seen.written_lines) * 64 >= sum(one.bytes for one in trace.transfers)
    assert seen.latency_ps >= sum(step.ticks for step in trace.timeline.steps) * tick


WAYS = [
    ("time", "auto", ()), ("time", "auto", ("prefetch=no",)), ("time", "auto", ("prefetch<=1",)),
    ("time", "auto", ("queue=due",)), ("time", "auto", ("transfer<=16KiB",)), ("bytes", "auto", ()),
    ("bytes", "auto", ("prefetch=no",)), ("bytes", "per-layer", ()), ("bytes", "per-layer", ("prefetch=no",)),
    ("bytes", "strips", ()), ("bytes", "cascade", ()),
]  # fmt: skip


@simulated
@pytest.mark.slow(240, every=True)
@pytest.mark.parametrize(("kib", "config", "bus_bits"), [(512, CONFIG, 0), (256, "LPDDR3_8Gb_x32_1866", 32)])
def test_dram_keeps_the_order_of_plans(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kib: int, config: str, bus_bits: int
) -> None:
    """Plans of SqueezeNet 1.1 that differ by 1 % or more come in the order that is planned."""
    simulator, times = Simulator(Path(DRAMSIM3), tmp_path, config, bus_bits), []
    for n, (objective, engine, pins) in enumerate(WAYS):
        asked = {"problem": "fusion", "objective": objective, "engine": engine, "pins": pins}
        memory = {"ocm_bytes": str(kib * 1024), "ocm_banks": str(kib // 8)}
        plan = solve("squeezenet1_1", "scratchpad_768k", settings=memory, **asked)
        plan.save(tmp_path / f"{n}.json")
        trace = trace_of(plan)
        times.append((trace.latency * plan.machine_data.tick_ps, simulator.run(trace).latency_ps))
    assert kendall(*zip(*times, strict=True)) >= 0.9
    for (one, mine), (other, theirs) in product(times, times):
        assert mine < theirs or 1.01 * one >= other
    assert main([str(tmp_path / "0.json"), str(tmp_path / "7.json"), "--simulator", DRAMSIM3]) == 0
    assert f"{kib} KiB: 2 plans, Spearman 1.0000, Kendall 1.0000, 0 pairs swapped" in capsys.readouterr().out

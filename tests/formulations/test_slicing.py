"""Slicing by hand: Alg. 2's slices, Eq. 2-8, the literal alphas, pins and laws."""

from __future__ import annotations

from functools import partial

import pytest

from formulations.pins import Pins, parse_pins
from formulations.tiling.problem import NESTS
from formulations.tiling.slicing import DATAFLOWS, PARTITIONS, partition_cuts
from formulations.tiling.space import Space, closed_form_bound
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Loop, Nest, Spatial
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import Layer
from solver import solve
from solver.problems.tiling import decide_space
from tests.small import byte_machine

SLICING = NESTS["slicing"]
#: M = 8 filters over N = 2 channels of 4x4, 1x1 kernel.
LAYER = Layer.conv("x", channels=2, filters=8, size=(4, 4))


#: 2 TLEs of 2 TLTs, one byte an element, one tick a byte, buffers that hold anything small.
machine = partial(
    byte_machine, problem="slicing", in_buffer_bytes=64, w_buffer_bytes=64, out_buffer_bytes=64, tles=2, tlts=2,
    dram="per_tle", compute=Compute(model="tile", cycle_ticks=2, macs_per_cycle=4),
)  # fmt: skip


def build(layer: Layer, on: Machine, *pins: str, full: bool = False) -> Space:
    return SLICING.build(layer, on, parse_pins(pins, SLICING.decisions), full=full)


def paper(layer: Layer, on: Machine, *pins: str, full: bool = False) -> Space:
    """The paper's dataflows."""
    return build(layer, on, "holds=uniform", *pins, full=full)


def best(space: Space, objective: str = "time", engine: str = "exhaustive") -> dict[str, int] | None:
    return decide_space(space, (objective,), engine).values


def test_slices_of_algorithm_2() -> None:
    nmp = load_machine("nmp")
    layer = Layer.conv("x", channels=3, filters=100, size=(30, 30))
    # KS: ceil(100/4) = 25 filters a TLE, ceil(25/8) = 4 a TLT; KS&OFM: 50 and 15 rows; OFM: ceil(30/4) = 8 rows
    assert partition_cuts(layer, nmp, "KS") == (Spatial("m", 25, "tle"), Spatial("m", 4, "tlt"))
    assert partition_cuts(layer, nmp, "KS&OFM") == (
        Spatial("m", 50, "tle"), Spatial("r", 15, "tle"), Spatial("m", 7, "tlt"),
    )  # fmt: skip
    assert partition_cuts(layer, nmp, "OFM") == (Spatial("r", 8, "tle"), Spatial("m", 13, "tlt"))
    depthwise = Layer.conv("d", channels=64, filters=64, groups=64, size=(30, 30))
    assert partition_cuts(depthwise, nmp, "KS") == (Spatial("g", 16, "tle"), Spatial("g", 2, "tlt"))
    assert partition_cuts(layer, machine(tles=3), "KS&OFM") is None


def test_whole_slices_by_hand(engine: str) -> None:
    # KS: each TLT has 2 filters. It loads IN 32, W 4 and stores OUT 32: 68; a TLE serves two one after the other: 136.
    # Eq. 7: T_N*T_M*ceil(16/4) = 2*2*4 = 16 cycles of 2 ticks = 32. time 136 + 32 = 168; bytes 4 * 68 = 272.
    pins = ("partition=KS", "T_R=4", "T_C=4", "T_N=2", "T_M=2")
    assert best(paper(LAYER, machine(), *pins), engine=engine) == {"time": 168, "bytes": 272, "energy": 0}
    # OFM: a TLE has 2 rows, a TLT 4 filters: IN 16 + W 8 + OUT 32 = 56, two of them 112; 2*4*ceil(8/4)*2 = 32: 144
    pins = ("partition=OFM", "T_R=2", "T_C=4", "T_N=2", "T_M=4")
    assert best(paper(LAYER, machine(), *pins), engine=engine) == {"time": 144, "bytes": 224, "energy": 0}
    # the same when all clusters share the DRAM: 224 + 32
    shared = machine(dram="shared")
    assert best(paper(LAYER, shared, *pins), engine=engine) == {"time": 256, "bytes": 224, "energy": 0}


def test_weights_are_held_above_the_channel_loop_in_ws() -> None:
    # WS, KS, T_N = 1, T_R = T_C = 4, T_M = 1: a TLT has 2 filters. W 1x2 twice = 4, IN 2 channels x 16
    # for each filter = 64, OUT 32 (held over n): 100 a core; compute 2*2*1*1*ceil(16/4)*2 = 32. time = 200 + 32.
    pins = ("partition=KS", "dataflow=WS", "T_R=4", "T_C=4", "T_N=1", "T_M=1")
    assert best(build(LAYER, machine(), *pins)) == {"time": 232, "bytes": 400, "energy": 0}


@pytest.mark.parametrize("partition", ["KS", "OFM"])
@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_literal_alphas_by_hand(partition: str, dataflow: str) -> None:
    """Eq. 3-9 with #TLE = #TLT = 2, T_N = 1, T_R = 2, T_C = 4, T_M = 2 (IS: all filters of a core)."""
    on = machine(reading="literal")
    pins = [f"partition={partition}", f"dataflow={dataflow}", "T_N=1", "T_R=2", "T_C=4"]
    tle_filters, tle_rows = (4, 4) if partition == "KS" else (8, 2)
    t_m = -(-tle_filters // 2) if dataflow == "IS" else 2
    if dataflow != "IS":
        pins.append("T_M=2")
    rows, columns, channels, filters = tle_rows // 2, 1, 2, tle_filters // t_m
    alpha = {
        "IS": (2 * rows * columns * channels, 2 * rows * columns * channels, 2 * 1),
        "OS": (2 * rows * columns * channels * filters,) * 2 + (2 * 1 * (8 // t_m),),
        "WS": (2 * rows * columns * channels * filters, 2 * filters, 2 * 1 * (8 // t_m)),
    }[dataflow]
    w_tile = t_m * (2 if dataflow == "WS" else 1)
    moved = alpha[0] * 8 + alpha[1] * w_tile + alpha[2] * t_m * 8
    # Eq. 7-8: ceil(M/T_M)*ceil(N/T_N)*ceil(R/T_R)*ceil(C/T_C) tiles of T_N*T_M*ceil(8/4) cycles of 2 ticks,
    # over #TLTs = 2
    mac = -(-8 // t_m) * 2 * 2 * 1 * (1 * t_m * 2) * 2 // 2
    assert best(build(LAYER, on, *pins)) == {"time": moved + mac, "bytes": moved, "energy": 0}


def test_is_is_contained_in_os() -> None:
    """Leaving IS to OS loses nothing: the pinned IS optimum is never below the free one."""
    for name in ("in", "w", "out"):
        on = machine(**{f"{name}_buffer_bytes": 12})
        free = best(paper(LAYER, on))
        for dataflow in DATAFLOWS:
            pinned = best(paper(LAYER, on, f"dataflow={dataflow}"))
            assert pinned is None or pinned["time"] >= free["time"]
        full = decide_space(paper(LAYER, on, full=True), ("time",), bounding=False).values
        assert full == free
    # as printed it is not: Eq. 3 lacks the filter trips
    printed = {flow: best(build(LAYER, machine(reading="literal"), f"dataflow={flow}"))["time"] for flow in DATAFLOWS}
    assert best(build(LAYER, machine(reading="literal")))["time"] == printed["IS"] < min(printed["OS"], printed["WS"])
    # and may be below what must move: no bound in closed form ends a search
    assert {closed_form_bound(LAYER, machine(reading="literal"), measure) for measure in ("time", "bytes")} == {0}


@pytest.mark.slow(2)
def test_fixed_partitions_and_dataflows_are_never_better_on_nmp() -> None:
    layer = Layer.conv("c", channels=40, filters=96, size=(28, 28), kernel=(3, 3))
    free = best(build(layer, load_machine("nmp")))
    for pin in [*(f"partition={p}" for p in PARTITIONS), *(f"dataflow={d}" for d in DATAFLOWS)]:
        pinned = best(build(layer, load_machine("nmp"), pin))
        assert pinned["time"] >= free["time"]


@pytest.mark.slow(3)
def test_free_hold_depths_are_never_worse_than_the_dataflows() -> None:
    """The paper's nests are contained in the canonical ones, in time and in bytes."""
    for name, size in (("in", 12), ("w", 6), ("out", 12), ("out", 40)):
        on = machine(**{f"{name}_buffer_bytes": size})
        for objective in ("time", "bytes"):
            free, own = best(build(LAYER, on), objective), best(paper(LAYER, on), objective)
            assert free[objective] <= own[objective]


def test_a_resident_operand_is_whole_in_every_core_s_share(engine: str) -> None:
    # KS: each of two TLEs has one channel of 2x2: it loads 4 bytes, stores 1. Both: 10. All of IN (8) fits no buffer.
    pool = Layer(name="p", kind="pool", g=2, m=1, n=1, r=1, c=1, h=2, l=2, kh=2, kw=2, weights="none")
    on = machine(tlts=1, in_buffer_bytes=4)
    for holds in ("uniform", "free"):
        found = best(build(pool, on, f"holds={holds}", "resident=IN"), "bytes", engine)
        assert found["bytes"] == 10


def test_plan_that_fits_no_buffer_says_which() -> None:
    on = machine(w_buffer_bytes=1, tlts=1)
    space = build(LAYER, on, "dataflow=WS")
    assert space.explain() == ("memory w: the smallest tile of x needs 2 bytes, m has 1", "pin dataflow=WS")


@pytest.mark.slow(5)
def test_heuristics_are_never_below_the_optimum() -> None:
    layer = Layer.conv("c", channels=30, filters=50, size=(20, 20), kernel=(3, 3), pad=(1, 1, 1, 1))
    space = build(layer, load_machine("nmp"))
    optimum = best(space)
    for engine in ("greedy", "naive", "tso-noburst"):
        found = decide_space(space, ("time",), engine)
        assert found.values
        assert found.values["time"] >= optimum["time"]
        assert found.schedule is not None
        assert price(layer, space.machine, found.schedule).measures == found.values


def test_literal_reading_needs_whole_ticks() -> None:
    on = machine(reading="literal", tlts=3)
    with pytest.raises(InputError, match="multiple of tlts 3"):
        best(build(LAYER, on))


def test_one_core_is_refused() -> None:
    with pytest.raises(InputError, match="use tiling"):
        SLICING.build(LAYER, load_machine("scratchpad_64k"), Pins())


def test_all_steps_are_not_all_nests() -> None:
    """A loop inside all Holds makes tiles of one column, which round less: 5 cycles of 4 ticks, not 3 tiles of 2.

    ``c(2) c(3)`` outside Hold(OUT): pieces of 2, 1 and 2 columns, 5 calls of 2 ticks. The unreduced space has no such
    loop, so what it finds (34) is proven no more than what the reduced one finds.
    """
    layer = Layer(name="x", m=1, n=1, r=1, c=5, h=1, l=5, kw=2)
    on = machine(
        out_bytes=2, in_buffer_bytes=10, w_buffer_bytes=3, out_buffer_bytes=4, dram="shared",
        transfer=Transfer(call_ticks=2), compute=Compute(model="tile", cycle_ticks=4, macs_per_cycle=3),
    )  # fmt: skip
    nest = Nest((
        Spatial("m", 1, "tle"), Spatial("m", 1, "tlt"), Hold("IN"), Loop("c", 3, (2,)), Loop("c", 2, (3,)),
        Hold("W"), Hold("OUT"), Loop("c", 1),
    ))  # fmt: skip
    assert replay(layer, on, nest).ok
    assert price(layer, on, nest).time_ticks == 30
    for full in (False, True):
        plan = solve(layer, on, objective="time", full=full, bounding=not full)
        assert plan.objective.value >= 30
        assert plan.bound <= 30
        assert plan.status == "FEASIBLE" or plan.objective.value == 30

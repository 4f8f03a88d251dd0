"""Global average pools that are fused with the stage before them: when, what it moves, and what it takes."""

from __future__ import annotations

import pytest

from formulations.banks.front import decide
from formulations.banks.network import Point, Walk, lowest
from formulations.banks.readings import clock_of, readings
from formulations.banks.tasks import Task
from hwmodels.banks.steps import Pass, TileGoal
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Banks, Machine
from instances.network.feature_maps import stages
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, Operator, Pool
from solver import check, pareto, solve
from solver.calls.solve import show
from solver.plan.plan import Plan
from solver.problems.banks import stage_rows
from solver.uses.bench.banks import midap
from tests.lies import problems
from tests.small import byte_machine


def averaged(*operators: Operator) -> Network:
    return Network(name="t", operators=operators)


def row(columns: int = 4) -> Input:
    return Input(name="x", shape=(1, 1, 1, columns))


def pointwise(name: str, before: str, columns: int = 4, *, bias: bool = True) -> Conv:
    return Conv(name=name, inputs=(before,), shape=(1, 1, 1, columns), filters=1, kernel=(1, 1), bias=bias)


def mean(before: str, name: str = "mean", channels: int = 1) -> Pool:
    return Pool(name=name, inputs=(before,), shape=(1, channels, 1, 1), fn="global_avg")


def in_banks(byte: int = 1, cycle: int = 10, **banks: object) -> Machine:
    """Banks; requests have no latency, a byte takes a tick on the bus, a cycle ten."""
    banks = {"filters": 1, "lanes": 1, "patch_channels": 0} | banks
    transfer = {"call_ticks": 0, "row_ticks": 0, "row_bytes": 9, "refresh_ticks": 0, "refresh_bytes": 9}
    return byte_machine(
        problem="banks", in_layout="HWC", w_layout="OHWI", out_layout="HWC", banks=banks, byte_fj=1, mac_fj=0,
        transfer={"model": "lpddr4", "byte_ticks": byte, **transfer},
        compute={"model": "array", "rows": 1, "cols": 1, "cycle_ticks": cycle},
    )  # fmt: skip


def machine(count: int, channels: int, **fields: object) -> Machine:
    """Banks of a byte."""
    return in_banks(count=count, map_bytes=count, weight_bytes=9, pool_channels=channels, **fields)


CHAIN = averaged(row(), pointwise("conv", "x"), mean("conv"))


@pytest.mark.parametrize("engine", ["dynamic", "milp", "cp-sat", "min"])
def test_bytes_by_hand(engine: str) -> None:
    """4 columns, a weight and a bias come, the average goes: 7 bytes in any number of banks, even one.

    A pool of its own wants the 4 columns of the convolution at once: 4 banks, and one more to have none of them moved.
    """
    for count in (1, 2, 5):
        plan = solve(CHAIN, machine(count, 1), objective="bytes", engine=engine, problem="banks")
        assert plan.measures["bytes"] == 4 + 1 + 1 + 1
        assert check(plan).ok
    if engine == "dynamic":
        assert solve(CHAIN, machine(3, 0), objective="bytes", problem="banks").status == "INFEASIBLE"
        alone = solve(CHAIN, machine(5, 0), objective="bytes", problem="banks")
        assert alone.measures["bytes"] == 7
        assert [row.kind for row in stage_rows(alone)] == ["conv", "whole"]


def test_time_by_hand() -> None:
    """The weight is there at 1, the first tile at 2; four columns and the average of ten ticks each: 52.

    As a stage of its own the pool reads the four columns, a cycle each, at 42, and does not add up meanwhile.
    """
    assert solve(CHAIN, machine(5, 1), problem="banks").objective.value == 2 + 4 * 10 + 10
    assert solve(CHAIN, machine(5, 0), problem="banks").objective.value == 2 + 4 * 10 + 4 * 10


def test_the_average_takes_its_bank_when_the_tiles_have_left_theirs() -> None:
    """One bank: the last tile is in it while it is processed, the average afterwards, from where the next one reads."""
    network = averaged(row(2), pointwise("conv", "x", 2), mean("conv"), pointwise("last", "mean", 1))
    plan = solve(network, machine(1, 1), objective="bytes", problem="banks")
    assert plan.measures["bytes"] == 2 + 2 + 2 + 1  # nothing between the two stages leaves the chip
    first, fused, last = stage_rows(plan)
    assert (first.target.name, fused.name, fused.kind, fused.code, last.initial) == (
        "mean", "mean", "fused", "fused with conv", 1
    )  # fmt: skip
    assert first.run.results == (last.run.tiles[0],)
    assert (fused.seen.bytes, fused.seen.ticks) == (0, 0)
    assert [run.stage for run in plan.schedule.runs] == list(plan.part.figures) == ["conv", "last"]
    goal = TileGoal(1, 1, 1, mirrored=False, average=2)
    assert goal.banks == (0, 0, 0)
    assert Task(Pass(2, 1, 2), 1, 1, goal).begin() is not None
    assert Task(Pass(2, 1, 2), 1, 1, goal, retain=1).begin() is None  # the tile stays: no bank is left


def test_what_stays_of_a_map_that_others_read_leaves_a_bank() -> None:
    """The input stays for the second reader, the average for the sum: 3 + 1 banks; nothing but weights moves again."""
    network = averaged(
        row(3), pointwise("a", "x", 3), mean("a", "ma"), pointwise("b", "x", 3), mean("b", "mb"),
        Eltwise(name="sum", inputs=("ma", "mb"), shape=(1, 1, 1, 1), fn="add"),
    )  # fmt: skip
    for engine in ("dynamic", "milp"):
        plan = solve(network, machine(4, 1), objective="bytes", engine=engine, problem="banks")
        assert plan.measures["bytes"] == 3 + 2 + 2 + 1
    tight = solve(network, machine(3, 1), objective="bytes", problem="banks")
    assert tight.measures["bytes"] == 8 + 1  # a column of the input comes twice


@pytest.mark.parametrize(
    ("kind", "channels", "cycles"), [("conv", 64, 4), ("conv", 80, 8), ("depthwise", 80, 2), ("sum", 64, 1)]
)
def test_cycles_are_those_of_the_published_simulator(kind: str, channels: int, cycles: int) -> None:
    """16 channels a cycle after a convolution, 64 after what works channel by channel; stored ones, multiples of 64."""
    shape, groups = (1, channels, 8, 8), channels if kind == "depthwise" else 1
    before: Operator = Conv(name="y", inputs=("x",), shape=shape, filters=channels, kernel=(1, 1), groups=groups)
    if kind == "sum":
        before = Eltwise(name="y", inputs=("x", "x"), shape=shape, fn="add")
    found = stages(averaged(Input(name="x", shape=shape), before, mean("y", channels=channels)), midap())
    (stage,) = found.stages
    alone, _ = stages(averaged(Input(name="x", shape=shape), before, mean("y", channels=channels)),
                      midap().model_copy(update={"pool_channels": 0})).stages  # fmt: skip
    assert stage.kind == kind
    assert (stage.pooled.columns, stage.pooled.rows, stage.pooled.cycles) == (8, 8, cycles)
    assert stage.cycles == alone.cycles + cycles
    assert found.computed(stage) == (8, 8)
    assert (stage.written, found.maps["mean"].stored) == (-(-channels // 64) * 64,) * 2
    assert "y" not in found.maps


@pytest.mark.parametrize(
    ("operators", "channels"),
    [
        ((pointwise("y", "x"), Pool(name="max", inputs=("y",), shape=(1, 1, 1, 1), fn="global_max")), 1),
        ((pointwise("y", "x"), mean("y"), pointwise("z", "y")), 1),  # others read it
        ((mean("x"),), 1),  # nothing computes the input
        ((pointwise("y", "x"), mean("y")), 0),
        ((pointwise("y", "x"), mean("y", "m"), mean("m")), 1),  # one is fused, the other is not
        (
            (pointwise("a", "x"), pointwise("b", "x"),
             Concat(name="y", inputs=("a", "b"), shape=(1, 2, 1, 4), axis=1), mean("y", channels=2)),
            2,
        ),
    ],
)  # fmt: skip
def test_other_pools_are_stages(operators: tuple[Operator, ...], channels: int) -> None:
    banks = Banks(count=9, map_bytes=18, weight_bytes=9, filters=1, lanes=1, patch_channels=0, pool_channels=channels)
    assert [s.kind for s in stages(averaged(row(), *operators), banks).stages if s.kind == "whole"] == ["whole"]


def test_older_machines_are_as_before() -> None:
    """The field is named where it says something only: digests of other machines stay."""
    plain = load_machine("midap", {"banks.pool_channels": "0"})
    assert "pool_channels" not in plain.model_dump()["banks"]
    assert load_machine("midap").model_dump()["banks"]["pool_channels"] == 4096


def test_a_plan_that_lies_about_a_fused_pool_is_found_out() -> None:
    """It has no stage of its own: what is said of it is said of the convolution, whose figures are counted."""
    plan = solve(CHAIN, machine(2, 1), objective="bytes", problem="banks")
    runs, figures = "parts.0.schedule.runs", "parts.0.figures"
    for place, value, said in (
        (runs, lambda rows: [*rows, rows[0] | {"stage": "mean", "source": "conv"}], "mean: no such stage; there are"),
        (figures, lambda rows: rows | {"mean": rows["conv"]}, "figures"),
        (f"{runs}.0.keep", 1, "stage conv: no choice"),
        (f"{figures}.conv.ticks", lambda ticks: ticks - 10, "figures.conv.ticks"),
        (runs, lambda rows: rows * 2, "stage conv: no choice"),
    ):
        found = problems(plan, (place, value))
        assert any(said in line for line in found), (place, found)


def test_a_fused_pool_is_shown() -> None:
    text = show(solve(CHAIN, machine(2, 1), objective="bytes", problem="banks"), details=True)
    assert "conv: conv of 4 columns, averaged at its end" in text
    assert "mean: fused with conv, which ends with it" in text


def test_writes_on_the_bus_wait_for_the_average() -> None:
    """Nothing is written before the last step: its byte leaves with it, and the stage ends no earlier than without."""
    free = solve(CHAIN, machine(5, 1), problem="banks")
    bus = solve(CHAIN, machine(5, 1, writes="bus"), problem="banks")
    assert bus.status == "OPTIMAL"
    assert bus.objective.value == free.objective.value  # a tick to write, ten for the average
    slow = machine(5, 1, writes="bus").model_copy()
    slow = slow.model_copy(update={"transfer": slow.transfer.model_copy(update={"call_ticks": 100})})
    assert solve(CHAIN, slow, problem="banks").objective.terms["wait_writes"] == 91


# ---- The first layer as a product over patches or as it is: engines that optimise choose, pins and polici


def patched(cycle: int = 10, byte: int = 1, *, lanes: int = 4, channels: int = 1, bank: int = 4) -> Machine:
    """Three banks, and a first layer that may be a product over patches."""
    banks = {"lanes": lanes, "patch_channels": channels, "first_layer": "either"}
    return in_banks(byte, cycle, count=3, map_bytes=3 * bank, weight_bytes=99, **banks)


def network(taps: int, stride: int = 1, columns: int = 4, rows: int = 1, *more: Operator) -> Network:
    """A convolution of one row of taps over one channel, of which it reads the first row."""
    width = (columns - 1) // stride + 1
    first = Conv(
        name="c", inputs=("x",), shape=(1, 1, 1, width), filters=1, kernel=(1, taps), stride=(rows, stride),
        pad=(0, taps // 2, 0, taps // 2),
    )  # fmt: skip
    return Network(name="t", operators=(Input(name="x", shape=(1, 1, rows, columns)), first, *more))


ROW = network(3)


def moved(plan: Plan) -> tuple[int, int, str]:
    assert plan.status == "OPTIMAL"
    assert check(plan).ok
    return plan.measures["bytes"], plan.measures["time"], plan.schedule.first_layer


@pytest.mark.parametrize("engine", ["dynamic", "milp", "cp-sat"])
def test_bytes_of_either_reading_by_hand(engine: str) -> None:
    """Every second pixel: 2 patches of a byte, or 4 pixels; a weight, 2 results. Windows of three: the other way round.

    There 4 patches take 4 bytes each, as many as the weights, and 4 results: 24 bytes. 4 pixels, 3 x 4 bytes of
    weights, and 4 results are 20.
    """
    thin = patched(lanes=1)
    assert moved(solve(network(1, 2), thin, objective="bytes", engine=engine, problem="banks"))[::2] == (
        2 + 1 + 2,
        "patches",
    )
    pinned = solve(network(1, 2), thin, objective="bytes", engine=engine, pins=["first_layer=plain"], problem="banks")
    assert moved(pinned)[::2] == (4 + 1 + 2, "plain")
    assert moved(solve(ROW, patched(), objective="bytes", engine=engine, problem="banks"))[::2] == (4 + 12 + 4, "plain")
    pinned = solve(ROW, patched(), objective="bytes", engine=engine, pins=["first_layer=patches"], problem="banks")
    assert moved(pinned)[::2] == (16 + 4 + 4, "patches")


def test_time_of_either_reading_by_hand() -> None:
    """Patches take a cycle a column, windows 2, 3, 3 and 2. A slow element waits for 4 weights and a patch: 8 + 40.

    As pixels it waits for 12 weights and all 4 pixels, a tile: 16 + 100. A slow bus brings 4 weights and 4 patches of 4
    bytes, the last one ten ticks a byte behind the others: 200 + 1; or 12 weights and 4 pixels: 160 + 10.
    """
    assert moved(solve(ROW, patched(), problem="banks"))[1:] == (8 + 40, "patches")
    assert moved(solve(ROW, patched(), pins=["first_layer=plain"], problem="banks"))[1:] == (16 + 100, "plain")
    assert moved(solve(ROW, patched(1, 10), problem="banks"))[1:] == (160 + 10, "plain")
    assert moved(solve(ROW, patched(1, 10), pins=["first_layer=patches"], problem="banks"))[1:] == (200 + 1, "patches")


def test_front_by_hand() -> None:
    """Neither reading beats the other one: 20 bytes in 116 ticks, 24 in 48."""
    assert [moved(plan) for plan in pareto(ROW, patched(), problem="banks").plans] == [
        (20, 116, "plain"),
        (24, 48, "patches"),
    ]
    assert [moved(plan)[2] for plan in pareto(ROW, patched(), pins=["first_layer=plain"], problem="banks").plans] == [
        "plain"
    ]


CHAINS = [
    network(3, 1, 6, 1, Conv(name="d", inputs=("c",), shape=(1, 2, 1, 6), filters=2, kernel=(1, 1))),
    network(3, 2, 7, 1, Conv(name="d", inputs=("c",), shape=(1, 2, 1, 4), filters=2, kernel=(1, 3), pad=(0, 1, 0, 1))),
    network(1, 2, 7, 2, Conv(name="d", inputs=("c",), shape=(1, 1, 1, 4), filters=1, kernel=(1, 1))),
]


@pytest.mark.few(3)
@pytest.mark.parametrize("chain", range(len(CHAINS)))
@pytest.mark.parametrize(("cycle", "byte", "lanes"), [(10, 1, 4), (1, 10, 4), (2, 1, 4), (1, 1, 2)])
def test_the_optimum_and_the_front_are_those_of_both(chain: int, cycle: int, byte: int, lanes: int) -> None:
    """Found with the other reading as a rival, or each alone: the same bytes, ticks and front."""
    real, target = patched(cycle, byte, lanes=lanes), CHAINS[chain]
    alone = [point for found in readings(target, real).values() for point in front_of_one(found, real)]
    assert [moved(plan)[:2] for plan in pareto(target, real, problem="banks").plans] == lowest(alone)
    assert moved(solve(target, real, objective="bytes", problem="banks"))[:2] == min(alone)
    assert moved(solve(target, real, problem="banks"))[1::-1] == min((ticks, size) for size, ticks in alone)


def front_of_one(found: object, real: Machine) -> list[Point]:
    assert real.banks is not None
    said = decide(Walk(found, real.banks, waiting=False), clock_of(real), "front")
    return [Point(plan.volume.total, ticks) for plan, ticks in said.plans]


def test_rivals_leave_what_beats_them() -> None:
    """A plan that is as good as a rival is no better; one that is better in one measure is on the front."""
    real = patched()
    found = readings(ROW, real)["patches"]
    assert real.banks is not None
    for aim, rival, left in (
        ("bytes", Point(24, 48), 0), ("bytes", Point(24, 49), 1), ("bytes", Point(25, 1), 1),
        ("bytes", Point(23, 99), 0),
        ("time", Point(24, 48), 0), ("time", Point(25, 48), 1), ("time", Point(1, 49), 1), ("time", Point(99, 47), 0),
        ("front", Point(24, 48), 0), ("front", Point(23, 49), 1), ("front", Point(23, 48), 0),
    ):  # fmt: skip
        said = decide(Walk(found, real.banks), clock_of(real), aim, rivals=(rival,))
        assert (said.proven, len(said.plans)) == (True, left), (aim, rival)


def test_published_policies_read_patches() -> None:
    """As their compiler does, though plain moves less; their bound is that of both readings."""
    for engine in ("min", "min-all", "hide", "double-buffer", "no-reuse"):
        plan = solve(ROW, patched(), objective="bytes", engine=engine, problem="banks")
        assert (plan.schedule.first_layer, plan.bound, plan.part.must["bytes"]) == ("patches", 20, 20)
        assert check(plan).ok
        assert (
            solve(ROW, patched(), objective="bytes", engine=engine, pins=["first_layer=plain"], problem="banks").gap
            == 0
        )
    assert solve(ROW, patched(), objective="bytes", engine="beam", problem="banks").schedule.first_layer == "plain"
    assert solve(ROW, patched(), engine="beam", problem="banks").schedule.first_layer == "patches"


def test_a_reading_that_does_not_fit_leaves_the_other() -> None:
    """A column of 8 pixels fits in no bank of 4 bytes, a patch does; and a patch of 5 bytes does not."""
    high = network(1, 1, 2, 8)
    assert moved(solve(high, patched(lanes=1), problem="banks"))[2] == "patches"
    assert [moved(plan)[2] for plan in pareto(high, patched(lanes=1), problem="banks").plans] == ["patches"]
    assert moved(solve(network(5), patched(lanes=1), problem="banks"))[2] == "plain"
    assert [moved(plan)[2] for plan in pareto(network(5), patched(lanes=1), problem="banks").plans] == ["plain"]
    assert solve(high, patched(lanes=1), pins=["first_layer=plain"], problem="banks").status == "INFEASIBLE"
    neither = solve(network(5, 1, 5, 8), patched(lanes=1), problem="banks")
    assert (neither.status, neither.schedule) == ("INFEASIBLE", None)
    assert check(neither).ok


def test_pins_are_checked() -> None:
    plan = solve(ROW, patched(), objective="bytes", problem="banks")
    said = plan.model_copy(update={"options": plan.options.model_copy(update={"pins": ("first_layer=patches",)})})
    assert any("first layer is plain, it may be patches" in line for line in check(said).problems)
    assert problems(plan, ("parts.0.schedule.first_layer", "patches"))
    with pytest.raises(InputError, match="no first layer on machine m is a product over patches"):
        solve(ROW, patched(channels=0), pins=["first_layer=patches"], problem="banks")
    assert moved(solve(ROW, patched(channels=0), problem="banks"))[2] == "plain"


def test_the_reading_is_shown() -> None:
    assert "first layer plain, not patches" in show(solve(ROW, patched(), objective="bytes", problem="banks"))
    assert "first layer over patches" in show(solve(ROW, patched(), problem="banks"))
    assert "first layer" not in show(solve(ROW, patched(channels=0), problem="banks"))


@pytest.mark.slow(3)
def test_a_time_limit_is_shared() -> None:
    """Whatever is not proven of either reading is not OPTIMAL."""
    plan = solve("mobilenet_v2", "midap", time_limit_s=0.05, problem="banks")
    assert plan.status in ("FEASIBLE", "NO_SOLUTION_FOUND")
    assert check(plan).ok

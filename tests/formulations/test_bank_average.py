"""Global average pools that are fused with the stage before them: when, what it moves, and what it takes."""

from __future__ import annotations

import pytest

from formulations.banks.tasks import Task
from hwmodels.banks.price import Goal, Pass
from instances.load import load_machine
from instances.machine.machine import Banks, Machine
from instances.network.feature_maps import stages
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, Operator, Pool
from solver import check, solve
from solver.calls.solve import show
from solver.problems.banks import rows_of
from solver.uses.bench.banks import midap
from tests.lies import problems


def averaged(*operators: Operator) -> Network:
    return Network(name="t", operators=operators)


def row(columns: int = 4) -> Input:
    return Input(name="x", shape=(1, 1, 1, columns))


def pointwise(name: str, before: str, columns: int = 4, *, bias: bool = True) -> Conv:
    return Conv(name=name, inputs=(before,), shape=(1, 1, 1, columns), filters=1, kernel=(1, 1), bias=bias)


def mean(before: str, name: str = "mean", channels: int = 1) -> Pool:
    return Pool(name=name, inputs=(before,), shape=(1, channels, 1, 1), fn="global_avg")


def machine(count: int, channels: int, **fields: object) -> Machine:
    """Banks of a byte; a byte takes a tick on the bus, a cycle ten."""
    banks = {
        "count": count, "map_bytes": count, "weight_bytes": 9, "filters": 1, "lanes": 1, "patch_channels": 0,
        "pool_channels": channels, **fields,
    }  # fmt: skip
    return Machine.model_validate({
        "name": "m", "problem": "banks", "tick_ps": 1, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 1,
        "in_layout": "HWC", "w_layout": "OHWI", "out_layout": "HWC", "banks": banks, "byte_fj": 1, "mac_fj": 0,
        "transfer": {"model": "lpddr4", "call_ticks": 0, "row_ticks": 0, "row_bytes": 9, "refresh_ticks": 0,
                     "refresh_bytes": 9, "byte_ticks": 1},
        "compute": {"model": "array", "rows": 1, "cols": 1, "cycle_ticks": 10},
    })  # fmt: skip


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
        assert [row.kind for row in rows_of(alone)] == ["conv", "whole"]


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
    first, fused, last = rows_of(plan)
    assert (first.target.name, fused.name, fused.kind, fused.code, last.initial) == (
        "mean", "mean", "fused", "fused with conv", 1
    )  # fmt: skip
    assert first.run.results == (last.run.tiles[0],)
    assert (fused.seen.bytes, fused.seen.ticks) == (0, 0)
    assert [run.stage for run in plan.schedule.runs] == list(plan.part.figures) == ["conv", "last"]
    goal = Goal(1, 1, 1, mirrored=False, average=2)
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

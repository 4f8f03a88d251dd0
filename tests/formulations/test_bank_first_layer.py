"""The first layer as a product over patches or as it is: engines that optimise choose, pins and policies do not."""

from __future__ import annotations

import pytest

from formulations.banks.bounds import Point, lowest
from formulations.banks.front import decide
from formulations.banks.network import Walk
from formulations.banks.readings import clock_of, readings
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Conv, Input, Operator
from solver import check, pareto, solve
from solver.calls.solve import show
from solver.plan.plan import Plan
from tests.lies import problems


def machine(cycle: int = 10, byte: int = 1, *, lanes: int = 4, channels: int = 1, bank: int = 4) -> Machine:
    """Three banks; requests have no latency."""
    banks = {
        "count": 3, "map_bytes": 3 * bank, "weight_bytes": 99, "filters": 1, "lanes": lanes, "patch_channels": channels,
        "first_layer": "either",
    }  # fmt: skip
    return Machine.model_validate({
        "name": "m", "problem": "banks", "tick_ps": 1, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 1,
        "in_layout": "HWC", "w_layout": "OHWI", "out_layout": "HWC", "banks": banks, "byte_fj": 1, "mac_fj": 0,
        "transfer": {"model": "lpddr4", "call_ticks": 0, "row_ticks": 0, "row_bytes": 9, "refresh_ticks": 0,
                     "refresh_bytes": 9, "byte_ticks": byte},
        "compute": {"model": "array", "rows": 1, "cols": 1, "cycle_ticks": cycle},
    })  # fmt: skip


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
def test_bytes_by_hand(engine: str) -> None:
    """Every second pixel: 2 patches of a byte, or 4 pixels; a weight, 2 results. Windows of three: the other way round.

    There 4 patches take 4 bytes each, as many as the weights, and 4 results: 24 bytes. 4 pixels, 3 x 4 bytes of
    weights, and 4 results are 20.
    """
    thin = machine(lanes=1)
    assert moved(solve(network(1, 2), thin, objective="bytes", engine=engine, problem="banks"))[::2] == (
        2 + 1 + 2,
        "patches",
    )
    pinned = solve(network(1, 2), thin, objective="bytes", engine=engine, pins=["first_layer=plain"], problem="banks")
    assert moved(pinned)[::2] == (4 + 1 + 2, "plain")
    assert moved(solve(ROW, machine(), objective="bytes", engine=engine, problem="banks"))[::2] == (4 + 12 + 4, "plain")
    pinned = solve(ROW, machine(), objective="bytes", engine=engine, pins=["first_layer=patches"], problem="banks")
    assert moved(pinned)[::2] == (16 + 4 + 4, "patches")


def test_time_by_hand() -> None:
    """Patches take a cycle a column, windows 2, 3, 3 and 2. A slow element waits for 4 weights and a patch: 8 + 40.

    As pixels it waits for 12 weights and all 4 pixels, a tile: 16 + 100. A slow bus brings 4 weights and 4 patches of 4
    bytes, the last one ten ticks a byte behind the others: 200 + 1; or 12 weights and 4 pixels: 160 + 10.
    """
    assert moved(solve(ROW, machine(), problem="banks"))[1:] == (8 + 40, "patches")
    assert moved(solve(ROW, machine(), pins=["first_layer=plain"], problem="banks"))[1:] == (16 + 100, "plain")
    assert moved(solve(ROW, machine(1, 10), problem="banks"))[1:] == (160 + 10, "plain")
    assert moved(solve(ROW, machine(1, 10), pins=["first_layer=patches"], problem="banks"))[1:] == (200 + 1, "patches")


def test_front_by_hand() -> None:
    """Neither reading beats the other one: 20 bytes in 116 ticks, 24 in 48."""
    assert [moved(plan) for plan in pareto(ROW, machine(), problem="banks").plans] == [
        (20, 116, "plain"),
        (24, 48, "patches"),
    ]
    assert [moved(plan)[2] for plan in pareto(ROW, machine(), pins=["first_layer=plain"], problem="banks").plans] == [
        "plain"
    ]


CHAINS = [
    network(3, 1, 6, 1, Conv(name="d", inputs=("c",), shape=(1, 2, 1, 6), filters=2, kernel=(1, 1))),
    network(3, 2, 7, 1, Conv(name="d", inputs=("c",), shape=(1, 2, 1, 4), filters=2, kernel=(1, 3), pad=(0, 1, 0, 1))),
    network(1, 2, 7, 2, Conv(name="d", inputs=("c",), shape=(1, 1, 1, 4), filters=1, kernel=(1, 1))),
]


@pytest.mark.slow(1)
@pytest.mark.parametrize("chain", range(len(CHAINS)))
@pytest.mark.parametrize(("cycle", "byte", "lanes"), [(10, 1, 4), (1, 10, 4), (2, 1, 4), (1, 1, 2)])
def test_the_optimum_and_the_front_are_those_of_both(chain: int, cycle: int, byte: int, lanes: int) -> None:
    """Found with the other reading as a rival, or each alone: the same bytes, ticks and front."""
    real, target = machine(cycle, byte, lanes=lanes), CHAINS[chain]
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
    real = machine()
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
        plan = solve(ROW, machine(), objective="bytes", engine=engine, problem="banks")
        assert (plan.schedule.first_layer, plan.bound, plan.part.must["bytes"]) == ("patches", 20, 20)
        assert check(plan).ok
        assert (
            solve(ROW, machine(), objective="bytes", engine=engine, pins=["first_layer=plain"], problem="banks").gap
            == 0
        )
    assert solve(ROW, machine(), objective="bytes", engine="beam", problem="banks").schedule.first_layer == "plain"
    assert solve(ROW, machine(), engine="beam", problem="banks").schedule.first_layer == "patches"


def test_a_reading_that_does_not_fit_leaves_the_other() -> None:
    """A column of 8 pixels fits in no bank of 4 bytes, a patch does; and a patch of 5 bytes does not."""
    high = network(1, 1, 2, 8)
    assert moved(solve(high, machine(lanes=1), problem="banks"))[2] == "patches"
    assert [moved(plan)[2] for plan in pareto(high, machine(lanes=1), problem="banks").plans] == ["patches"]
    assert moved(solve(network(5), machine(lanes=1), problem="banks"))[2] == "plain"
    assert [moved(plan)[2] for plan in pareto(network(5), machine(lanes=1), problem="banks").plans] == ["plain"]
    assert solve(high, machine(lanes=1), pins=["first_layer=plain"], problem="banks").status == "INFEASIBLE"
    neither = solve(network(5, 1, 5, 8), machine(lanes=1), problem="banks")
    assert (neither.status, neither.schedule) == ("INFEASIBLE", None)
    assert check(neither).ok


def test_pins_are_checked() -> None:
    plan = solve(ROW, machine(), objective="bytes", problem="banks")
    said = plan.model_copy(update={"options": plan.options.model_copy(update={"pins": ("first_layer=patches",)})})
    assert any("first layer is plain, it may be patches" in line for line in check(said).problems)
    assert problems(plan, ("parts.0.schedule.first_layer", "patches"))
    with pytest.raises(InputError, match="no first layer on machine m is a product over patches"):
        solve(ROW, machine(channels=0), pins=["first_layer=patches"], problem="banks")
    assert moved(solve(ROW, machine(channels=0), problem="banks"))[2] == "plain"


def test_the_reading_is_shown() -> None:
    assert "first layer plain, not patches" in show(solve(ROW, machine(), objective="bytes", problem="banks"))
    assert "first layer over patches" in show(solve(ROW, machine(), problem="banks"))
    assert "first layer" not in show(solve(ROW, machine(channels=0), problem="banks"))


@pytest.mark.slow(3)
def test_a_time_limit_is_shared() -> None:
    """Whatever is not proven of either reading is not OPTIMAL."""
    plan = solve("mobilenet_v2", "midap", time_limit_s=0.05, problem="banks")
    assert plan.status in ("FEASIBLE", "NO_SOLUTION_FOUND")
    assert check(plan).ok

"""Joint: operands that are broadcast are maps like any other; against all schedules there are, and by hand."""

from __future__ import annotations

import pytest

from formulations.pins import Pins
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Conv, Eltwise, Input, MatMul, Operator, Pool, Reshape
from instances.network.stores import stores
from solver import check, solve
from solver.problems.joint import JOINT, rows_of
from solver.search.loop import settled
from tests.adversary.joint import best


def machine(memory: int, banks: int = 0) -> Machine:
    return Machine.model_validate({
        "name": "m", "tick_ps": 1, "ocm_bytes": memory, "ocm_banks": banks, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1,
        "psum_bytes": 1, "transfer": {"byte_ticks": 1}, "byte_fj": 1, "mac_fj": 1,
    })  # fmt: skip


def network(*operators: Operator) -> Network:
    return Network(name="n", operators=operators)


def conv(name: str, source: str, shape: tuple[int, ...]) -> Conv:
    return Conv(name=name, inputs=(source,), shape=shape, filters=shape[1], kernel=(1, 1))


def of_two(name: str, one: str, two: str, shape: tuple[int, ...]) -> Eltwise:
    return Eltwise(name=name, inputs=(one, two), shape=shape, fn="mul")


X = Input(name="x", shape=(1, 2, 3, 1))
GATE = network(X, conv("g", "x", (1, 1, 3, 1)), of_two("m", "x", "g", (1, 2, 3, 1)))
SQUEEZE = network(
    X, conv("a", "x", (1, 2, 3, 1)), Pool(name="p", inputs=("a",), shape=(1, 2, 1, 1), fn="global_avg"),
    of_two("m", "a", "p", (1, 2, 3, 1)),
)  # fmt: skip
OUTER = network(
    Input(name="x", shape=(1, 1, 3, 1)), Input(name="y", shape=(1, 1, 1, 3)), of_two("m", "x", "y", (1, 1, 3, 3)),
)  # fmt: skip
#: Each token over the sum of its row, which a product makes: tokens of three features, no feature maps.
ROWS = network(
    Input(name="x", shape=(2, 3)), MatMul(name="s", inputs=("x",), shape=(2, 1), out_features=1),
    Eltwise(name="m", inputs=("x", "s"), shape=(2, 3), fn="div"),
)  # fmt: skip
CASES = {
    f"{name}, {memory} in {banks}": (made, machine(memory, banks))
    for name, made, memories in (
        ("gate", GATE, ((3, 0), (5, 0), (8, 0), (12, 4))), ("squeeze", SQUEEZE, ((3, 0), (6, 0), (12, 4))),
        ("outer", OUTER, ((3, 0), (4, 0), (6, 3))), ("rows", ROWS, ((4, 0), (6, 0), (9, 3))),
    )
    for memory, banks in memories
}  # fmt: skip


@pytest.mark.slow(1)
@pytest.mark.parametrize("case", CASES)
def test_the_optimum_is_that_of_all_schedules(case: str) -> None:
    made, on = CASES[case]
    found = best(made, on)
    for engine in ("dynamic", "milp"):
        (part,) = JOINT.read(made, on, Pins(()), None)
        said = settled(JOINT, part, ("bytes",), engine)
        assert (said.status, said.values["bytes"]) == ("OPTIMAL", found.bytes), engine


@pytest.mark.slow(4)
def test_a_gate_stays_or_lies_in_memory() -> None:
    """An image of 12,288 read twice, 27 weights, the result of 12,288; in DRAM the gate is written and read: 8,192."""
    image = Input(name="in", shape=(1, 3, 64, 64))
    gate = Conv(name="gate", inputs=("in",), shape=(1, 1, 64, 64), filters=1, kernel=(3, 3), pad=(1, 1, 1, 1))
    made = network(image, gate, of_two("mul", "in", "gate", image.shape))
    on = machine(32_768)
    plan = solve(made, on, problem="joint")
    assert (plan.status, plan.objective.value, plan.part.must["bytes"]) == ("OPTIMAL", 36_891, 24_603)
    assert [(one.map, one.rows) for one in rows_of(plan)[1].on_chip] == [("gate", 64)]
    assert check(plan).ok
    away = solve(made.model_copy(update={"in_dram": ("gate",)}), on, problem="joint")
    assert (away.status, away.objective.value) == ("OPTIMAL", 36_891 + 2 * 4096)


def test_one_map_seen_with_unlike_rows_lies_in_memory() -> None:
    """A map of three rows, as it is and as three channels of one: the layer that reads both has it in DRAM."""
    flat = Reshape(name="f", inputs=("a",), shape=(1, 3, 1, 1))
    source = Input(name="x", shape=(1, 1, 3, 1))
    made = network(source, conv("a", "x", (1, 1, 3, 1)), flat, of_two("m", "a", "f", (1, 3, 3, 1)))
    assert {store.name: store.dram for store in stores(made).stores} == {"a": True, "m": False, "x": True}

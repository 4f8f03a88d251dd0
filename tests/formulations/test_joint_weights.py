"""Joint: weights that several layers read and operands that are broadcast; against all schedules, and by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from formulations.pins import Pins
from hwmodels.fusion.replay.referee import replay_fusion
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Conv, Eltwise, Input, MatMul, Operator, Pool, Reshape
from instances.network.stores import stores
from solver import check, solve
from solver.plan.plan import Plan
from solver.problems.joint import JOINT, rows_of
from solver.search.loop import decide_part
from tests.adversary.joint import best
from tests.effort import in_turn, thinned, tries
from tests.small import byte_machine

ENGINES = ("dynamic", "milp", "cp-sat")


def machine(memory: int, banks: int = 0, **fields: object) -> Machine:
    price = {"call_ticks": 7, "byte_ticks": 1}
    return byte_machine(ocm_bytes=memory, ocm_banks=banks, transfer=price, byte_fj=1, mac_fj=1, **fields)


def conv(name: str, source: str, rows: int, of: str = "", filters: int = 2, **fields: object) -> Conv:
    """A 1x1 convolution of a map of `rows` rows of one pixel."""
    return Conv.model_validate({
        "name": name, "inputs": (source,), "shape": (1, filters, rows, 1), "filters": filters, "kernel": (1, 1),
        "weights_of": of, **fields,
    })  # fmt: skip


def network(*operators: Operator) -> Network:
    return Network(name="n", operators=operators)


X = Input(name="x", shape=(1, 2, 2, 1))
#: Three layers with the same four weights on a map of four elements.
THREE = network(X, conv("a", "x", 2), conv("b", "a", 2, "a"), conv("c", "b", 2, "b"))
#: The same weights first and last; between them a layer with weights of its own, eight, and one that reads eight maps.
FAR = network(X, conv("a", "x", 2), conv("u", "a", 2, filters=4), conv("v", "u", 2), conv("b", "v", 2, "a"))
#: Two tensors, by turns.
TURNS = network(
    X, conv("a", "x", 2), conv("p", "a", 2), conv("b", "p", 2, "a"), conv("q", "b", 2, "p"),
)  # fmt: skip
#: Wide first, then narrow: the second and third reader have room that the first has not.
LATE = network(
    Input(name="x", shape=(1, 2, 4, 1)), conv("a", "x", 4), Conv(
        name="s", inputs=("a",), shape=(1, 2, 1, 1), filters=2, kernel=(4, 1)),
    conv("b", "s", 1, "a"), conv("c", "b", 1, "a"),
)  # fmt: skip
#: A matrix from outside that two products read, and a skip.
MATRIX = network(
    Input(name="y", shape=(2, 2)), Input(name="w", shape=(2, 2)), MatMul(name="a", inputs=("y", "w"), shape=(2, 2)),
    MatMul(name="b", inputs=("a", "w"), shape=(2, 2)), Eltwise(name="s", inputs=("a", "b"), shape=(2, 2), fn="add"),
)  # fmt: skip
#: A state of zeros, and two steps.
STEPS = network(
    Input(name="h", shape=(1, 2), zeros=True), Input(name="x1", shape=(1, 2)), Input(name="x2", shape=(1, 2)),
    MatMul(name="a", inputs=("h",), shape=(1, 2), out_features=2),
    Eltwise(name="s", inputs=("a", "x1"), shape=(1, 2), fn="add"),
    MatMul(name="b", inputs=("s",), shape=(1, 2), out_features=2, weights_of="a"),
    Eltwise(name="t", inputs=("b", "x2"), shape=(1, 2), fn="add"),
)  # fmt: skip


def of_two(name: str, one: str, two: str, shape: tuple[int, ...]) -> Eltwise:
    return Eltwise(name=name, inputs=(one, two), shape=shape, fn="mul")


MAP = Input(name="x", shape=(1, 2, 3, 1))
GATE = network(MAP, conv("g", "x", 3, filters=1), of_two("m", "x", "g", (1, 2, 3, 1)))
SQUEEZE = network(
    MAP, conv("a", "x", 3), Pool(name="p", inputs=("a",), shape=(1, 2, 1, 1), fn="global_avg"),
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
        ("three", THREE, ((6, 0), (9, 0), (12, 0), (12, 3), (16, 4))), ("far", FAR, ((12, 0), (14, 0), (18, 6))),
        ("turns", TURNS, ((8, 0), (12, 0), (16, 4))), ("late", LATE, ((6, 0), (11, 0), (10, 5))),
        ("matrix", MATRIX, ((6, 0), (10, 0), (12, 6))), ("steps", STEPS, ((5, 0), (8, 0), (8, 4))),
        ("gate", GATE, ((3, 0), (5, 0), (8, 0), (12, 4))), ("squeeze", SQUEEZE, ((3, 0), (6, 0), (12, 4))),
        ("outer", OUTER, ((3, 0), (4, 0), (6, 3))), ("rows", ROWS, ((4, 0), (6, 0), (9, 3))),
    )
    for memory, banks in memories
}  # fmt: skip


@pytest.mark.slow(3)
@pytest.mark.parametrize("case", thinned(CASES, 4))
def test_the_optimum_is_that_of_all_schedules(case: str) -> None:
    made, on = CASES[case]
    found = best(made, on)
    assert sum(one.outcome.bytes for one in replay_fusion(stores(made), on, found.runs).runs) == found.bytes
    for engine in ENGINES:
        (part,) = JOINT.read(made, on, Pins(()), None)
        said = decide_part(JOINT, part, ("bytes",), engine)
        assert (said.status, said.values["bytes"]) == ("OPTIMAL", found.bytes), engine


def joint(made: Network, on: Machine) -> Plan:
    plan = solve(made, on, problem="joint")
    assert check(plan).ok
    return plan


@pytest.mark.slow(2)
@pytest.mark.parametrize(("memory", "made"), in_turn([(16,), (18,), (10,), (13,)], [THREE, TURNS])[: tries(2, 8)])
def test_tiles_are_double_buffered_and_weights_that_stay_are_not(made: Network, memory: int) -> None:
    """Weights that are loaded take their bytes once: 4 of them, 8 of two maps and two buffers of tiles fit in 18."""
    on = machine(memory, buffering="double")
    found = best(made, on)
    plan = joint(made, on)
    assert (plan.status, plan.objective.value) == ("OPTIMAL", found.bytes)
    assert not replay_fusion(stores(made), on, found.runs).faults


def there(plan: Plan, name: str = "a (weights)") -> list[str]:
    """The layers during which weights are on chip."""
    return [row.name for row in plan.part.figures if name in row.on_chip]


def test_weights_stay_for_all_readers() -> None:
    """4 weights once, 4 in, 4 out; in DRAM they would be 12. On chip: 4 weights, two maps of 4, and tiles."""
    plan = joint(THREE, machine(16))
    assert (plan.objective.value, plan.part.must["bytes"], there(plan)) == (12, 12, ["a", "b", "c"])
    assert [row.counts["W"].bytes for row in plan.part.figures] == [4, 0, 0]
    assert plan.part.figures[0].occupancy_bytes <= 16 - 4 - 4  # weights and the map that stays are no tiles
    assert "a (weights)" in plan.part.figures[0].on_chip


@pytest.mark.slow(3)
def test_weights_come_when_there_is_room() -> None:
    """First two rows of a map stay, which is worth more; the later readers keep the weights between them."""
    plan = joint(LATE, machine(11))
    assert there(plan) == ["b", "c"]
    assert [row.counts["W"].bytes for row in plan.part.figures] == [4, 16, 4, 0]


@pytest.mark.slow(3)
def test_biases_come_with_the_weights_or_keep_them_off_the_chip() -> None:
    """Six bytes with two biases of a byte; where the layers have biases of their own, weights are loaded each time."""
    one = network(X, conv("a", "x", 2, bias=True), conv("b", "a", 2, "a", bias=True))
    plan = joint(one, machine(100, bias_bytes=1))
    assert (plan.objective.value, list(plan.part.figures[0].on_chip.values())[-1], plan.part.must["bytes"]) == (
        4 + 2 + 8,
        6,
        14,
    )
    own = network(X, conv("a", "x", 2, bias=True), conv("b", "a", 2, "a", bias=True, own_bias=True))
    plan = joint(own, machine(100, bias_bytes=1))
    assert (plan.objective.value, there(plan), plan.part.must["bytes"]) == (2 * 6 + 8, [], 4 + 2 * 2 + 8)
    assert joint(own, machine(100)).objective.value == 4 + 8


def test_a_state_of_zeros_is_read_from_nowhere() -> None:
    """4 weights, two inputs of 2, a result of 2."""
    assert joint(STEPS, machine(100)).objective.value == 4 + 2 + 2 + 2


def test_a_plan_with_weights_that_were_never_loaded_is_refused() -> None:
    """Weights come for a layer that reads them; they are in the same banks until then."""
    plan = joint(TURNS, machine(32, 8))
    found, runs = stores(TURNS), list(plan.schedule)
    number = {store.name: s for s, store in enumerate(found.stores)}["p (weights)"]
    assert not replay_fusion(found, plan.machine_data, runs).faults
    early = [replace(runs[0], residents={**runs[0].residents, number: runs[1].residents[number]}), *runs[1:]]
    faults = replay_fusion(found, plan.machine_data, early).faults
    assert "layer a: p (weights) is on chip, no layer has loaded it yet" in faults
    gone = [*runs[:2], replace(runs[2], residents={s: x for s, x in runs[2].residents.items() if s != number}), runs[3]]
    walked = replay_fusion(found, plan.machine_data, gone)
    assert [one.outcome.by_operand["W"].bytes for one in walked.runs if "W" in one.outcome.by_operand][-1] == 4


def test_time_and_energy_count_the_loading() -> None:
    """Every byte and every call costs: price and replay agree, and a load is a call of its own."""
    plan = joint(THREE, machine(100))
    assert plan.part.figures[0].counts["W"].calls == 1
    assert plan.measures["energy"] == 12 + 3 * 8  # 8 MACs a layer
    times = [row.ticks for row in plan.part.figures]
    assert all(earlier >= later for earlier, later in pairwise(times[:2]))


def test_weights_stay_where_buffers_are_double() -> None:
    """They are loaded before all else, whatever the machine says of tiles: 12 bytes as above."""
    plan = joint(THREE, machine(32, buffering="double"))
    assert (plan.objective.value, there(plan)) == (12, ["a", "b", "c"])
    assert [row.counts["W"].bytes for row in plan.part.figures] == [4, 0, 0]


# ---- operands that are broadcast -------------------------------------------------------------------------------------


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
    made = network(source, conv("a", "x", 3, filters=1), flat, of_two("m", "a", "f", (1, 3, 3, 1)))
    assert {store.name: store.dram for store in stores(made).stores} == {"a": True, "m": False, "x": True}

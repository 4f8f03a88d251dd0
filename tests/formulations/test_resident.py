"""Rows that stay on chip: what a layer moves when some of its first rows are there already, or need not leave."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.tiling.problem import NESTS
from formulations.tiling.search import Search
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import compulsory_bytes
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Loop, Nest
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Machine
from instances.network.feature_maps import stages
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, Operator, Pool, Reshape
from instances.network.tasks import tasks, tensors
from instances.network.workload import Layer
from solver import solve
from tests.effort import tries
from tests.formulations.test_exactness import any_nest, layers, machines, space
from tests.hwmodels.test_core import machine

#: 6x4 map of 2 channels, 3x3 kernel, padding 1: a row of the input is 8 bytes, of the result 12.
LAYER = Layer.conv("x", channels=2, filters=3, size=(6, 4), kernel=(3, 3), pad=(1, 1, 1, 1))
ROWS = Nest((Loop("r", 2), Hold("IN"), Hold("W"), Hold("OUT")))


def with_rows(layer: Layer, given: tuple[int, ...], kept: int) -> Layer:
    return Layer.model_validate({**layer.model_dump(), "resident_in": given, "resident_out": kept})


@st.composite
def resident_layers(draw: st.DrawFn, *, tiny: bool = False) -> Layer:
    layer = draw(layers(tiny=tiny))
    rows = tuple(draw(st.integers(0, layer.h)) for _ in range(layer.inputs))
    return with_rows(layer, rows, draw(st.integers(0, layer.r)))


def possible(on: Machine) -> Machine:
    return on.model_copy(update={"edge_tiles": "true"})


def test_resident_rows_are_not_moved() -> None:
    # tiles of two result rows need input rows 0-2, 1-4, 3-5; two rows on chip leave 1, 3, 3 of them, two in no tile
    found = replay(with_rows(LAYER, (2,), 3), machine(), ROWS)
    assert found.executed
    assert not found.faults
    assert found.outcome.by_operand["IN"].bytes == (1 + 3 + 3) * 8
    # of the result rows 0-1 and 2 stay: one row of the second tile and two of the third are written
    assert found.outcome.by_operand["OUT"].bytes == 3 * 12
    assert found.outcome.by_operand["OUT"].calls == 2


def test_what_is_all_on_chip_needs_no_tile() -> None:
    whole, none = (price(with_rows(LAYER, rows, 0), machine(), ROWS) for rows in ((6,), (0,)))
    assert whole.by_operand["IN"].calls == 0
    # the largest tile of IN has four rows of 8 bytes
    assert none.occupancy_bytes["ocm"] - whole.occupancy_bytes["ocm"] == 32


def test_inputs_of_a_sum_stay_apart() -> None:
    layer = Layer(name="x", kind="eltwise", g=2, m=1, n=1, r=6, c=4, h=6, l=4, inputs=2, weights="none")
    nest = Nest((Loop("r", 3), Hold("IN"), Hold("OUT")))
    # one input has its first three rows on chip, the other none: 3 and 6 rows of 8 bytes
    found = replay(with_rows(layer, (3, 0), 6), machine(), nest)
    assert not found.faults
    assert found.outcome.by_operand["IN"].bytes == (3 + 6) * 8
    assert found.outcome.by_operand["OUT"].calls == 0


@settings(max_examples=tries(15, 60))
@given(resident_layers(), machines(cores=False), st.data())
def test_price_is_replay(layer: Layer, on: Machine, data: st.DataObject) -> None:
    on = possible(on)
    nest = data.draw(st.composite(any_nest)(layer, on))
    assert price(layer, on, nest) == (found := replay(layer, on, nest, execute=True)).outcome
    assert [fault for fault in found.faults if "memory" not in fault] == []


@settings(max_examples=tries(3, 25))
@given(resident_layers(tiny=True), machines(cores=False, serial=True), st.data())
def test_fewest_bytes_are_fewest_of_all(layer: Layer, on: Machine, data: st.DataObject) -> None:
    on = possible(on)
    nest = data.draw(st.composite(any_nest)(layer, on))
    moved = price(layer, on, nest)
    on = on.model_copy(update={"ocm_bytes": moved.occupancy_bytes["ocm"]})
    best = Search(space(layer, on, ()), ("bytes",)).run()
    assert compulsory_bytes(layer, on) <= best.measures["bytes"] <= moved.bytes
    whole = Search(space(layer, on, (), full=True), ("bytes",), bounding=False)
    if sum(m.points for m in whole.space.members) < 100_000:
        pick = whole.run()
        assert best.measures["bytes"] == pick.measures["bytes"]


def test_resident_rows_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="the result 6"):
        with_rows(LAYER, (7,), 0)
    with pytest.raises(ValueError, match="each of 1 inputs"):
        with_rows(LAYER, (1, 1), 0)
    uniform = machine(edge_tiles="uniform")
    with pytest.raises(InputError, match="resident rows need one core"):
        price(with_rows(LAYER, (2,), 0), uniform, ROWS)


def test_a_layer_without_resident_rows_is_stored_as_before() -> None:
    assert "resident_in" not in LAYER.model_dump()
    assert NESTS["tiling"].build  # the problem is the same


# ---- A map that is a result and is read inside as well is written whole, whatever stays on chip of it: by hand -------
#
# Layers of 64 channels on 8 x 8, 1 x 1: maps and weights are 4,096 bytes each.

SHAPE, EACH = (1, 64, 8, 8), 4096
X = Input(name="x", shape=SHAPE)


def conv(name: str, source: str) -> Conv:
    return Conv(name=name, inputs=(source,), shape=SHAPE, filters=64, kernel=(1, 1))


def result(name: str) -> Reshape:
    return Reshape(name=f"{name} (result)", inputs=(name,), shape=SHAPE, fn="identity")


def relu(name: str, source: str) -> Eltwise:
    return Eltwise(name=name, inputs=(source,), shape=SHAPE, fn="relu")


def network(*operators: Operator) -> Network:
    return Network(name="n", operators=(X, *operators))


#: What must move, in maps and weights of 4,096 bytes: x, one for every layer with weights, results.
CASES: dict[str, tuple[tuple[Operator, ...], int]] = {
    "none": ((conv("a", "x"), conv("b", "a")), 1 + 2 + 1),
    "the first of two": ((conv("a", "x"), result("a"), conv("b", "a")), 1 + 2 + 2),
    "the first and the last": ((conv("a", "x"), result("a"), conv("b", "a"), result("b")), 1 + 2 + 2),
    "the second of three": ((conv("a", "x"), conv("b", "a"), conv("c", "b"), result("b")), 1 + 3 + 2),
    "behind a ReLU": ((conv("a", "x"), relu("r", "a"), result("r"), conv("b", "r")), 1 + 2 + 2),
    "a ReLU that nobody reads": ((conv("a", "x"), relu("r", "a"), conv("b", "a")), 1 + 2 + 2),
    "an operand of a sum": (
        (conv("a", "x"), result("a"), conv("b", "a"), Eltwise(name="s", inputs=("b", "a"), shape=SHAPE, fn="add")),
        1 + 2 + 2,
    ),
    "two of them": ((conv("a", "x"), result("a"), conv("b", "a"), result("b"), conv("c", "b")), 1 + 3 + 3),
    "the input, too": ((result("x"), conv("a", "x"), conv("b", "a")), 1 + 2 + 1),
}  # fmt: skip


@pytest.mark.few(7)
@pytest.mark.parametrize("problem", ["joint", "fusion", "banks", "hybrid"])
@pytest.mark.parametrize("case", CASES)
def test_results_that_are_read_inside_are_written(problem: str, case: str) -> None:
    operators, wanted = CASES[case]
    banked = problem in ("banks", "hybrid")
    on = load_machine("midap", {"banks.residuals": "chip"}) if banked else load_machine("scratchpad_768k")
    plan = solve(network(*operators), on, problem=problem, objective="bytes")
    assert (plan.objective.value, plan.bound) == (wanted * EACH,) * 2


def test_an_average_is_not_fused_with_what_is_a_result() -> None:
    """The convolution's map is needed as it is: the pool is a stage of its own, and reads it."""
    pool = Pool(name="p", inputs=("a",), shape=(1, 64, 1, 1), fn="global_avg")
    banks = load_machine("midap").banks
    assert banks is not None
    fused, apart = (stages(network(conv("a", "x"), *more, pool), banks) for more in ((), (result("a"),)))
    assert [stage.name for stage in fused.stages] == ["a"]
    assert [stage.name for stage in apart.stages] == ["a", "p"]
    assert not fused.leaving
    assert apart.leaving == {"a"}


TWO = (conv("a", "x"), conv("b", "x"), Concat(name="j", inputs=("a", "b"), shape=(1, 128, 8, 8)))
#: What must move of x, weights, joined maps that hold results, other results; c reads all and has weights for each.
JOINED: dict[str, tuple[tuple[Operator, ...], int]] = {
    "a part": ((*TWO, result("a"), conv("c", "j")), 1 + 4 + 2 + 1),
    "both parts": ((*TWO, result("a"), result("b"), conv("c", "j")), 1 + 4 + 2 + 1),
    "a ReLU of a part, which nobody reads": ((*TWO, relu("r", "a"), conv("c", "j")), 1 + 4 + 2 + 1),
    "the whole, which nobody reads": ((*TWO, result("a")), 1 + 2 + 2),
    "a concatenation in another one": (
        (
            *TWO, Reshape(name="inner", inputs=("j",), shape=(1, 128, 8, 8), fn="identity"), conv("d", "x"),
            Concat(name="k", inputs=("j", "d"), shape=(1, 192, 8, 8)), conv("c", "k"),
        ),
        1 + 6 + 3 + 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("problem", ["banks", "hybrid"])
@pytest.mark.parametrize("case", JOINED)
def test_parts_of_concatenations_may_be_results(problem: str, case: str) -> None:
    """They are written where the whole lies, and all of that is written."""
    operators, wanted = JOINED[case]
    plan = solve(network(*operators), load_machine("midap"), problem=problem, objective="bytes")
    assert (plan.objective.value, plan.bound) == (wanted * EACH,) * 2


def test_parts_of_concatenations_that_others_read_are_refused() -> None:
    with pytest.raises(InputError, match="or read by others too; banks hold one copy of a map"):
        solve(network(*TWO, conv("c", "a")), load_machine("midap"), problem="banks")


# ---- tasks of processors ---------------------------------------------------------------------------------------------

CHAIN = (conv("a", "x"), conv("b", "a"), conv("c", "b"), conv("d", "c"))
#: What is added to the chain x a b c d, and the tasks that hand results over, each with the one before it.
HANDED: dict[str, tuple[tuple[Operator, ...], dict[str, str]]] = {
    "none": ((), {}),
    "an inner result": ((result("b"),), {"b (result)": "b"}),
    "a ReLU that nobody reads": ((relu("r", "b"),), {"r": "b"}),
    "two functions of one map": ((relu("r", "b"), relu("s", "r"), relu("t", "b")), {"s": "b", "t": "b"}),
    "a ReLU that is read, too": ((relu("r", "b"), conv("e", "r")), {"e": "b"}),
    "both": ((result("b"), relu("r", "b")), {"b (result)": "b", "r": "b"}),
    "the input": ((result("x"),), {"x (result)": "x"}),
    "behind the last one": ((relu("r", "d"),), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", HANDED)
def test_every_result_is_a_last_task(case: str) -> None:
    """Where it is part of a task that others read, it has one of its own; last tasks run on the host."""
    more, handed = HANDED[case]
    graph = tasks(network(*CHAIN, *more))
    names = [task.name for task in graph.tasks]
    assert names == ["x", "a", "b", "c", "d", *handed]
    edges = [(names[i], names[j]) for i, j in graph.edges]
    assert edges == [("x", "a"), ("a", "b"), ("b", "c"), ("c", "d"), *((name, task) for task, name in handed.items())]
    assert {names[i] for i in graph.last} == {"d", *handed}


@pytest.mark.parametrize("case", ["none", "an inner result", "a ReLU that nobody reads", "both", "behind the last one"])
def test_results_on_other_processors_are_handed_to_the_host(case: str) -> None:
    """64 x 8 x 8 numbers of 4 bytes are D = 1.6384 units: 604.88 us to map, and 2.18 to copy what the GPU leaves.

    b and c run on the GPU; the sender is busy with each copy, and d waits for it: 607 us for every inner result.
    """
    more, handed = HANDED[case]
    pins = ["cpu_config=4", "b=gpu", "c=gpu"]
    plain, plan = (
        solve(network(*CHAIN, *some), load_machine("galaxy_s9"), problem="mapping", objective="latency", pins=pins)
        for some in ((), more)
    )
    assert plan.status == "OPTIMAL"
    assert plan.objective.value - plain.objective.value == 607 * len(handed)


# ---- what does not look at other layers ------------------------------------------------------------------------------


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("problem", "machine"),
    [
        ("tiling", "scratchpad_64k"),
        ("slicing", "nmp"),
        ("mesh", "vectormesh_128"),
        ("partial_engine", "partial_cnn_16"),
    ],
)
def test_layer_by_layer_every_map_is_written_once(problem: str, machine: str) -> None:
    """Whoever reads it: a result costs nothing more, inside or at the end."""
    x = Input(name="x", shape=(1, 2, 2, 2))
    a, b = (Conv(name=n, inputs=(s,), shape=x.shape, filters=2, kernel=(1, 1)) for n, s in (("a", "x"), ("b", "a")))
    values = [
        solve(Network(name="n", operators=(x, a, b, *more)), load_machine(machine), problem=problem).objective
        for more in ((), *((Eltwise(name="r", inputs=(name,), shape=x.shape, fn="relu"),) for name in "ab"))
    ]
    assert None not in values
    assert len({one.value for one in values if one is not None}) == 1


@pytest.mark.parametrize("more", [(result("a"),), (relu("r", "a"),), (result("a"), relu("r", "a"))])
def test_a_result_is_in_its_home_until_the_end(more: tuple[Operator, ...]) -> None:
    """Maps of a, b, c, d are there until they are read, results until the last operator; a map is there once."""
    found = {one.name: (one.first, one.last) for one in tensors(network(*CHAIN)).maps}
    assert found == {"x": (0, 1), "a": (1, 2), "b": (2, 3), "c": (3, 4), "d": (4, 4)}
    last = 4 + len(more)
    found = {one.name: (one.first, one.last) for one in tensors(network(*CHAIN, *more)).maps}
    assert found == {"x": (0, 1), "a": (1, last), "b": (2, 3), "c": (3, 4), "d": (4, last)}

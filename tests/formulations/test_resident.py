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
from instances.machine.machine import Machine
from instances.network.workload import Layer
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


@pytest.mark.slow(2)
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

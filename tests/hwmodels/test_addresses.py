"""Burst windows by address: by hand, against a count of every byte, and in plans that ceil counts cannot tell apart."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwmodels.nest.price.bilinear import Bilinear
from hwmodels.nest.price.boxes import Box, Stored, box_bursts, burst_products, windows_touched
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.pieces import cut, nominal
from hwmodels.nest.price.tables import _distinct
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Loop, Nest, Spatial
from instances.errors import InputError
from instances.machine.machine import Transfer
from instances.network.workload import Layer
from solver import solve
from tests.effort import tries
from tests.hwmodels.test_replay_walk import layers, machines, nests
from tests.small import byte_machine

HOLDS = (Hold("IN"), Hold("W"), Hold("OUT"))
#: One channel of 4 rows and 6 columns, a byte each.
ROWS = Layer.conv("rows", channels=1, filters=1, size=(4, 6))


machine = partial(byte_machine, ocm_bytes=999, transfer=Transfer(burst_ticks=1, burst_bytes=4, burst_count="address"))


def chains(*steps: int) -> np.ndarray:
    return np.array(steps, np.int64)[:, None]


def test_windows_of_a_run() -> None:
    # bytes 3 and 4 lie in two windows of 4, bytes 4 to 7 in one, 2 to 8 in three
    touched = windows_touched(np.array([3, 0, 2]), np.array([2, 4, 7]), 4)
    assert touched.tolist() == [2, 1, 3]


def test_the_example_of_the_docstring() -> None:
    # rows begin at 0, 6, 12 and 18: 0, 2, 0, 2 (mod 4). By 3: 0-2 is one window, 3-5 two; 6-8 two, 9-11 one: 3 a row.
    # By 4: 0-3 and 4-5 one each; 6-9 two, 10-11 one: 2 and 3. By 5: 0-4 two, 5 one; 6-10 two, 11 one: 3 and 3.
    rows = Stored("g", 6, 4, cut(4, chains(1)))
    (factors,) = burst_products((rows,), Stored("c", 1, 6, cut(6, chains(3, 4, 5))), 4)
    assert factors["c"].tolist() == [12, 10, 12]


def test_tiles_that_ceil_counts_cannot_tell_apart() -> None:
    # as above: by 3 each row takes 1 + 1 windows if every run began one, and so by 4; in truth 3, and 2 or 3
    for step, windows in ((3, 12), (4, 10)):
        nest = Nest((Loop("c", step), *HOLDS))
        assert price(ROWS, machine(), nest).by_operand["IN"].bursts == windows
        assert replay(ROWS, machine(), nest).outcome.by_operand["IN"].bursts == windows
        aligned = machine(transfer=Transfer(burst_ticks=1, burst_bytes=4))
        assert price(ROWS, aligned, nest).by_operand["IN"].bursts == 8


def test_windows_that_slide_over_rows_depend_on_rows_and_columns_together() -> None:
    # 3x3 over 5x6 without padding: outputs 3x4. T_R = 1 fetches rows 0-2, 1-3, 2-4: rows 0..4 come 1, 2, 3, 2, 1 times.
    # T_C = 2 fetches columns 0-3 and 2-5. Rows begin at 0, 2, 0, 2, 0 (mod 4). At 0: 0-3 one, 2-5 two: 3 windows;
    # at 2: 2-5 two, 4-7 one: 3. 9 rows of 3 = 27. T_C = 3: columns 0-4 and 3-5: at 0 2 + 2, at 2 (2-6, 5-7) 2 + 1:
    # rows 0, 2, 4 come 5 times and rows 1, 3 come 4 times: 5*4 + 4*3 = 32
    layer = Layer.conv("x", channels=1, filters=1, size=(5, 6), kernel=(3, 3))
    for step, windows in ((2, 27), (3, 32)):
        nest = Nest((Loop("r", 1), Loop("c", step), *HOLDS))
        assert price(layer, machine(), nest).by_operand["IN"].bursts == windows
        assert replay(layer, machine(), nest).outcome.by_operand["IN"].bursts == windows


def test_cores_begin_at_different_addresses() -> None:
    # 2 filters of 3 weights of a byte on two cores: bytes 0-2 are one window of 4, bytes 3-5 two
    layer = Layer.matmul("x", rows=1, inner=3, cols=2)
    on = machine(tles=2, dram="per_tle", ocm_bytes=None, in_buffer_bytes=9, w_buffer_bytes=9, out_buffer_bytes=9)
    outcome = price(layer, on, Nest((Spatial("m", 1, "tle"), *HOLDS)))
    assert outcome.by_operand["W"].bursts == 3
    # the slower cluster: IN 1 window, W 2, OUT 1
    assert outcome.time_ticks == 4
    assert replay(layer, on, Nest((Spatial("m", 1, "tle"), *HOLDS))).outcome == outcome


def test_a_function_with_two_terms_of_one_factor_is_not_below_each_of_them() -> None:
    # 3*8 + 2*8 = 40 exceeds 4*8 = 32, though 3*8 and 2*8 do not
    one = Bilinear(np.array([[3], [2]]), np.array([[8], [8]]))
    two = Bilinear(np.array([[4]]), np.array([[8]]))
    (left,) = _distinct([one, two])
    assert left.at(0, 0) == 40


def test_the_optimum_is_of_windows_as_they_lie() -> None:
    # rows in two pieces of columns, IN and OUT alike: by 4, 10 windows each, is less than by 3 and by 5 (12 each)
    found = solve(ROWS, machine(), objective="time", pins=["holds=uniform", "T_R=4", "T_C>=3", "T_C<=5", "order=OS"])
    assert found.layers[0].decision["T_C"] == 4


def test_too_many_ways_to_cut_rows_and_columns_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwmodels.nest.price.boxes._TABLE", 10)
    layer = Layer.conv("big", channels=1, filters=1, size=(9, 13), kernel=(3, 3))
    with pytest.raises(InputError, match=r"cut in 4 x 5 ways, too many for bursts by address: set transfer"):
        solve(layer, machine(), pins=["holds=uniform"])


def test_nominal_tiles_have_no_addresses() -> None:
    with pytest.raises(InputError, match="edge_tiles 'uniform' has no addresses"):
        solve(ROWS, machine(edge_tiles="uniform"))
    with pytest.raises(TypeError, match="no places"):
        _ = nominal(np.array([2]), np.array([3])).placed


@settings(max_examples=tries(15, 60), deadline=None)
@given(st.data())
def test_boxes_touch_the_windows_that_their_bytes_lie_in(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    element, burst = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 9))
    first = [data.draw(st.integers(0, s - 1)) for s in sizes]
    length = [data.draw(st.integers(0, s - f)) for s, f in zip(sizes, first, strict=True)]
    axes = [Box(s, np.array([f]), np.array([n])) for s, f, n in zip(sizes, first, length, strict=True)]
    place = np.zeros(sizes, np.bool_)
    place[tuple(slice(f, f + n) for f, n in zip(first, length, strict=True))] = True
    taken = np.flatnonzero(np.repeat(place.ravel(), element))
    runs = np.split(taken, np.flatnonzero(np.diff(taken) > 1) + 1) if len(taken) else []
    # a run ends where its axis does, even if the next one begins at the next byte
    if [n for n, s in zip(length, sizes, strict=True)] == sizes or all(len(r) for r in runs):
        inner = element
        for n, s in reversed(list(zip(length, sizes, strict=True))):
            inner *= n
            if n < s:
                break
        parts = [r[k : k + inner] for r in runs for k in range(0, len(r), inner)] if inner else []
        assert box_bursts(axes, element, burst).tolist() == [
            sum(len({b // burst for b in part.tolist()}) for part in parts)
        ]


@pytest.mark.slow(1)
@settings(max_examples=tries(40, 150), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_closed_form_counts_what_the_walk_does(data: st.DataObject) -> None:
    layer, on = data.draw(layers()), data.draw(machines())
    transfer = on.transfer.model_copy(update={"row_ticks": 0, "row_bytes": 0, "refresh_ticks": 0, "refresh_bytes": 0})
    if on.edge_tiles == "true":
        transfer = transfer.model_copy(update={"burst_count": "address"})
    on = on.model_copy(update={"transfer": transfer})
    nest = data.draw(nests(layer, on.tles > 1, on.buffering == "choose", on.line))
    assert price(layer, on, nest) == replay(layer, on, nest, execute=False).outcome

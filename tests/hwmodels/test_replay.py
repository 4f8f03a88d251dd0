"""Replay of hand-counted nests: volumes, orders, partial sums, time, memories, cores and faults."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from hwmodels.nest.price.closed_form import price
from hwmodels.nest.replay import referee
from hwmodels.nest.replay.cores import cover_faults, replay_cores
from hwmodels.nest.replay.referee import replay
from hwmodels.outcome import Counts
from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from instances.errors import InputError
from instances.machine.machine import Compute, Transfer
from instances.network.workload import Layer
from tests.small import ALL, POINT, TINY, machine, rows_of

# ---- hand-counted: volumes, halo, layouts -------------------------------------------------------------------------


def test_everything_held_at_once() -> None:
    result = replay(TINY, machine(), Nest(ALL))
    rows = result.outcome.by_operand
    assert rows["IN"] == Counts(calls=1, segments=1, bytes=2 * 16)
    assert rows["W"] == Counts(calls=1, segments=1, bytes=3 * 2 * 9)
    assert rows["OUT"] == Counts(calls=1, segments=1, bytes=3 * 16)
    assert rows["PSUM"] == Counts()
    assert result.outcome.occupancy_bytes == {"ocm": 32 + 54 + 48}
    assert result.outcome.bytes == result.outcome.time_ticks == 134
    assert (result.steps, result.ok, result.executed) == (1, True, True)


@pytest.mark.parametrize(("layout", "in_runs", "out_runs"), [("CHW", 4, 6), ("HWC", 2, 2)])
def test_row_tiles_with_halo_in_both_layouts(layout: str, in_runs: int, out_runs: int) -> None:
    on = machine(in_layout=layout, out_layout=layout)
    rows = rows_of(TINY, on, Loop("r", 2), *ALL)
    # output rows 0-1 need input rows -1..2, clipped to 0..2; rows 2-3 need 1..4, clipped to 1..3: three rows each.
    # CHW: 2 channels x 12 adjoining elements = 2 runs a call; HWC: rows of 4x2 elements adjoin, 1 run
    assert rows["IN"] == Counts(calls=2, segments=in_runs, bytes=2 * 3 * 4 * 2)
    # weights do not depend on rows: fetched once
    assert rows["W"] == Counts(calls=1, segments=1, bytes=54)
    # CHW: 3 channels x 8 elements; HWC: one run of 2 rows x 4 x 3
    assert rows["OUT"] == Counts(calls=2, segments=out_runs, bytes=48)


def test_dilated_columns() -> None:
    layer = Layer.conv("d", channels=1, filters=1, size=(1, 8), kernel=(1, 2), dilation=(1, 3))
    rows = rows_of(layer, machine(), Loop("c", 2), *ALL)
    # 5 output columns; 0-1 need 0..4, 2-3 need 2..6, 4 needs 4..7: 5 + 5 + 4
    assert rows["IN"] == Counts(calls=3, segments=3, bytes=14)


def test_column_tiles_in_hwc() -> None:
    on = machine(in_layout="HWC", out_layout="HWC")
    rows = rows_of(TINY, on, Loop("c", 3), *ALL)
    # columns 0-2 need -1..3 -> 0..3, the whole width (1 run, 32 bytes); column 3 needs 2..4 -> 2..3 (4 runs of 2x2)
    assert rows["IN"] == Counts(calls=2, segments=1 + 4, bytes=32 + 16)
    assert rows["OUT"] == Counts(calls=2, segments=4 + 4, bytes=48)


def test_input_channels_cut_in_hwc_break_every_pixel() -> None:
    rows = rows_of(TINY, machine(in_layout="HWC"), Loop("n", 1), *ALL)
    # each of the 2 calls takes 1 of 2 channels at 16 pixels; weights OIHW (3, 2, 3, 3): 3 runs of 9 a call
    assert rows["IN"] == Counts(calls=2, segments=32, bytes=32)
    assert rows["W"] == Counts(calls=2, segments=6, bytes=54)


def test_ohwi_weights_cut_in_n() -> None:
    rows = rows_of(TINY, machine(w_layout="OHWI"), Loop("n", 1), *ALL)
    # (3, 3, 3, 2) with one of two n: every one of 27 (m, i, j) is its own run, twice
    assert rows["W"] == Counts(calls=2, segments=54, bytes=54)


def test_stride_two_keeps_the_dense_box() -> None:
    layer = Layer.conv("s2", channels=1, filters=1, size=(6, 6), kernel=(1, 1), stride=(2, 2))
    rows = rows_of(layer, machine(), Loop("r", 1), *ALL)
    # output rows 0, 1, 2 need input rows 0, 2, 4; columns 0..4 are fetched densely (5 of 6)
    assert rows["IN"] == Counts(calls=3, segments=3, bytes=15)


def test_dilation_and_asymmetric_kernel() -> None:
    layer = Layer.conv("d", channels=1, filters=1, size=(7, 3), kernel=(3, 1), dilation=(2, 1), pad=(2, 0, 2, 0))
    rows = rows_of(layer, machine(), Loop("r", 4), *ALL)
    # 7 output rows; 0-3 need -2..5 -> 0..5 (6 rows), 4-6 need 2..8 -> 2..6 (5 rows), 3 columns whole
    assert rows["IN"] == Counts(calls=2, segments=2, bytes=(6 + 5) * 3)


def test_depthwise_groups() -> None:
    layer = Layer.conv("dw", channels=4, filters=4, size=(4, 4), kernel=(3, 3), pad=(1, 1, 1, 1), groups=4)
    rows = rows_of(layer, machine(in_layout="HWC"), Loop("g", 3), *ALL)
    # groups 0-2 and 3; HWC (16 pixels x 4 groups) partial in g: 16 runs a call
    assert rows["IN"] == Counts(calls=2, segments=32, bytes=64)
    assert rows["W"] == Counts(calls=2, segments=2, bytes=36)


def test_matmul_and_batch() -> None:
    layer = Layer.matmul("mm", rows=3, inner=4, cols=2, batch=2, activation=True)
    rows = rows_of(layer, machine(), Loop("g", 1), Loop("n", 2), *ALL)
    # IN (g 2, n 4, r 3, c 1) in CHW: half of n is one run of 2*3; 4 calls. W (g, m 2, n 4): 2 runs of 2 a call
    assert rows["IN"] == Counts(calls=4, segments=4, bytes=24)
    assert rows["W"] == Counts(calls=4, segments=8, bytes=16)
    assert rows["OUT"] == Counts(calls=2, segments=2, bytes=12)


def test_eltwise_moves_every_input() -> None:
    layer = Layer(name="add", kind="eltwise", g=2, m=1, n=1, r=4, c=4, h=4, l=4, inputs=3, weights="none")
    on = machine(compute=Compute(model="array", rows=1, cols=2, cycle_ticks=1))
    result = replay(layer, on, Nest((Loop("r", 2), Hold("IN"), Hold("OUT"))))
    assert result.ok
    assert result.executed
    # 2 tiles x 3 inputs; each 2 channels x 8 adjoining elements
    assert result.outcome.by_operand["IN"] == Counts(calls=6, segments=12, bytes=96)
    # on chip: 3 boxes of 16 in, 16 out
    assert result.outcome.occupancy_bytes == {"ocm": 64}
    # per step 2 x 4 pixels x ceil(2/2) groups x 3 inputs
    assert result.outcome.compute_ticks == 2 * 8 * 3
    assert result.outcome.energy_fj == 0


def test_pool_has_no_weights() -> None:
    layer = Layer(
        name="pool", kind="pool", g=2, m=1, n=1, r=2, c=2, kh=2, kw=2, stride_h=2, stride_w=2, h=4, l=4, weights="none"
    )
    rows = rows_of(layer, machine(), Hold("OUT"), Loop("r", 1), Hold("IN"))
    assert rows["IN"] == Counts(calls=2, segments=4, bytes=32)
    assert rows["OUT"] == Counts(calls=1, segments=1, bytes=8)


# ---- hand-counted: orders and partial sums ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "fetch_in", "fetch_w", "visits"),
    [
        # m, n, r cut in two each: 8 steps. Weights stay while r runs: 4 W; IN changes every step; OUT changes with r
        ("mnr", 8, 4, 8),
        ("nmr", 8, 4, 8),
        # output stays while n runs: 4 visits; W (m,n) changes at every step
        ("mrn", 8, 8, 4),
        ("rmn", 8, 8, 4),
        # input stays while m runs: 4 IN
        ("rnm", 4, 8, 8),
        ("nrm", 4, 8, 8),
    ],
)
def test_stationary_orders(order: str, fetch_in: int, fetch_w: int, visits: int) -> None:
    step = {"m": 2, "n": 2, "r": 1}
    rows = rows_of(POINT, machine(), *(Loop(d, step[d]) for d in order), *ALL)
    # tiles: IN 2 channels x 1 row x 2 = 4 bytes; W 2x2 = 4 bytes; OUT 2 x 1 x 2 = 4 elements, 4 tiles
    assert (rows["IN"].calls, rows["IN"].bytes) == (fetch_in, 4 * fetch_in)
    assert (rows["W"].calls, rows["W"].bytes) == (fetch_w, 4 * fetch_w)
    assert (rows["OUT"].calls, rows["OUT"].bytes) == (4, 16)
    # 8 visits: every tile is visited twice, once written as partial sum and once read: 2 x 4 calls of 4 x 4 bytes
    spilled = visits - 4
    assert (rows["PSUM"].calls, rows["PSUM"].bytes) == (2 * spilled, 2 * spilled * 16)


def test_psum_first_read() -> None:
    rows = rows_of(POINT, machine(psum_first_read=True), Loop("n", 2), Loop("m", 2), *ALL)
    # OUT tiles m0, m1, m0, m1: 4 reads and 2 partial writes of 2 x 4 elements at 4 bytes, then 2 results
    assert (rows["PSUM"].calls, rows["PSUM"].bytes) == (6, 6 * 8 * 4)
    assert (rows["OUT"].calls, rows["OUT"].bytes) == (2, 16)


def test_held_outside_the_loops() -> None:
    result = replay(POINT, machine(), Nest((Hold("OUT"), Loop("m", 2), Hold("W"), Loop("n", 2), Hold("IN"))))
    rows = result.outcome.by_operand
    # OUT 16 elements stay; W: 2 tiles of 2 x 4; IN: n0 n1 n0 n1 = 4 fetches of 2 x 4
    assert (rows["OUT"].calls, rows["PSUM"].calls) == (1, 0)
    assert (rows["W"].calls, rows["W"].bytes) == (2, 16)
    assert (rows["IN"].calls, rows["IN"].bytes) == (4, 32)
    # n is cut, so the held output counts at 4 bytes: 64 + 8 + 8
    assert result.outcome.occupancy_bytes == {"ocm": 80}
    assert (result.steps, result.executed) == (4, True)


def test_inner_loop_of_one_trip_is_no_loop() -> None:
    # r has one trip: IN stays while m runs although a loop over r is innermost
    rows = rows_of(POINT, machine(), Loop("m", 2), Loop("r", 2), *ALL)
    assert rows["IN"].calls == 1


def test_a_dimension_looped_twice() -> None:
    rows = rows_of(POINT, machine(), Loop("m", 3), Hold("OUT"), Loop("n", 2), Hold("IN"), Loop("m", 2), Hold("W"))
    # m in [0,3) and [3,4), then [0,2) [2,3) and [3,4): W 2 n x 3 pieces; IN n0 n1 n0 n1; OUT twice, never spilled
    assert (rows["W"].calls, rows["W"].bytes) == (6, 16)
    assert (rows["IN"].calls, rows["OUT"].calls, rows["PSUM"].calls) == (4, 2, 0)


def test_loops_inside_every_hold_only_compute() -> None:
    on = machine(compute=Compute(model="tile", macs_per_cycle=1, cycle_ticks=1))
    result = replay(POINT, on, Nest((*ALL, Loop("m", 3), Loop("c", 1))))
    assert [result.outcome.by_operand[k].calls for k in ("IN", "W", "OUT", "PSUM")] == [1, 1, 1, 0]
    # 2 x 2 steps of the full tile program: 3 m x 4 n x ceil(2 rows x 1 column)
    assert (result.steps, result.outcome.compute_ticks) == (4, 4 * 24)


# ---- hand-counted: time, memories, cores --------------------------------------------------------------------------


def test_double_buffered_time() -> None:
    on = machine(buffering="double", compute=Compute(model="array", rows=4, cols=4, cycle_ticks=10))
    result = replay(POINT, on, Nest((Loop("r", 1), *ALL)))
    # L(0) = IN 8 + W 16, L(1) = 8; S(0) = S(1) = 8; C = 2 columns x 1 x 1 x 10 = 20
    # 24 + max(20, 8, 0) + max(20, 0, 8) + 8
    assert result.outcome.time_ticks == 72
    assert (result.outcome.transfer_ticks, result.outcome.compute_ticks) == (48, 40)
    # (8 + 16 + 8) twice
    assert result.outcome.occupancy_bytes == {"ocm": 64}


def test_double_buffered_partial_sums() -> None:
    on = machine(buffering="double", psum_bytes=2)
    result = replay(POINT, on, Nest((Loop("n", 2), Loop("m", 2), *ALL)))
    # IN 8 per n; W 4 per step; OUT tile 8 elements: psum 16 bytes; steps (n0m0) (n0m1) (n1m0) (n1m1), compute 0
    # L = 8+4, 4, 8+4+16, 4+16;  S = 16, 16, 8, 8
    # 12 + max(L1 = 4) + max(L2 = 28, S0 = 16) + max(L3 = 20, S1 = 16) + max(0, S2 = 8) + S3 = 8
    assert result.outcome.time_ticks == 12 + 4 + 28 + 20 + 8 + 8


def test_serial_and_transfer_only() -> None:
    nest = Nest((Loop("r", 1), *ALL))
    fields = {"compute": Compute(model="array", rows=4, cols=4, cycle_ticks=10)}
    # 16 in, 16 weights, 16 out; compute 40
    assert replay(POINT, machine(**fields), nest).outcome.time_ticks == 88
    assert replay(POINT, machine(**fields, overlap="transfer_only"), nest).outcome.time_ticks == 48
    assert replay(POINT, machine(**fields, buffering="double", overlap="serial"), nest).outcome.time_ticks == 88


def test_spatial_over_clusters_and_cores() -> None:
    nest = Nest((Spatial("m", 3, "tle"), Spatial("r", 1, "tlt"), *ALL))
    compute = Compute(model="array", rows=1, cols=4, cycle_ticks=1)
    for dram, time in (("shared", 80 + 6), ("per_tle", 52 + 6)):
        result = replay(POINT, machine(tles=2, tlts=2, dram=dram, compute=compute), nest)
        assert result.ok
        assert result.executed
        assert result.steps == 4
        rows = result.outcome.by_operand
        # m in [0,3) and [3,4); one row each: IN 4 x 8; W 2 x 12 + 2 x 4; OUT 2 x 6 + 2 x 2
        assert [rows[k].bytes for k in ("IN", "W", "OUT")] == [32, 32, 16]
        # TLE 0: 16 + 24 + 12 = 52 moving; compute 2 columns x 3 = 6; TLE 1: 16 + 8 + 4 = 28, compute 2
        assert result.outcome.transfer_ticks == 80
        assert result.outcome.compute_ticks == 6
        assert result.outcome.time_ticks == time
        assert result.outcome.occupancy_bytes == {"ocm": 8 + 12 + 6}


def test_places_are_counted_from_the_begin_of_a_core() -> None:
    # rows [0,2) and [2,4), each cut at its own row 1: windows of rows 0-1 0-2 | 1-3 2-3, 10 rows of 4 in 2 channels
    rows = rows_of(TINY, machine(tles=2), Spatial("r", 2, "tle"), Loop("r", 1, (1,)), *ALL)
    assert (rows["IN"].calls, rows["IN"].bytes) == (4, 80)


def test_the_busiest_cluster_is_one_cluster() -> None:
    layer = Layer.conv("top", channels=1, filters=1, size=(5, 1), kernel=(5, 1), pad=(4, 0, 0, 0))
    nest = Nest((Spatial("r", 3, "tle"), *ALL))
    compute = Compute(model="array", cycle_ticks=1)
    # TLE 0 makes rows 0-2 from input rows -4..2 -> 0..2: moves 3 + 5 + 3, computes 3 x 5;
    # TLE 1 makes rows 3-4 from input rows -1..4 -> 0..4: moves 5 + 5 + 2, computes 2 x 5
    for dram, time in (("per_tle", 11 + 15), ("shared", 11 + 12 + 15)):
        assert replay(layer, machine(tles=2, dram=dram, compute=compute), nest).outcome.time_ticks == time


def test_tile_compute_uses_the_nominal_tile() -> None:
    on = machine(tlts=2, compute=Compute(model="tile", macs_per_cycle=4, cycle_ticks=1))
    result = replay(POINT, on, Nest((Spatial("m", 3, "tlt"), Loop("n", 3), *ALL)))
    # per step 3 n x 3 m x ceil(4/4); two steps; the second core runs the same tile program
    assert result.outcome.compute_ticks == 18
    assert result.outcome.time_ticks == result.outcome.transfer_ticks + 18


def test_array_compute_rounds_up_true_pieces() -> None:
    on = machine(compute=Compute(model="array", rows=2, cols=3, cycle_ticks=1))
    result = replay(TINY, on, Nest((Loop("m", 2), *ALL)))
    # 16 pixels x 9 taps x (ceil(2/2) + ceil(1/2)) x ceil(2/3)
    assert result.outcome.compute_ticks == 288


def test_three_buffers_reserved_and_faults() -> None:
    on = machine(in_buffer_bytes=40, w_buffer_bytes=61, out_buffer_bytes=56, reserved_bytes=8)
    result = replay(TINY, on, Nest(ALL))
    assert result.outcome.occupancy_bytes == {"in": 40, "w": 62, "out": 56}
    assert result.faults == ("memory w: 62 bytes of 61",)
    assert not result.ok
    assert result.executed


def test_scratch_counts_once() -> None:
    nest = Nest((Loop("n", 1), *ALL))
    for channels, scratch in (("layer", 4 * 9 * 2), ("tile", 4 * 9 * 1)):
        on = machine(im2col_rows=4, im2col_channels=channels, reserved_bytes=5, buffering="double", overlap="serial")
        # double: IN 16, W 27, OUT 48 at 4 bytes
        assert replay(TINY, on, nest).outcome.occupancy_bytes == {"ocm": 2 * (16 + 27 + 192) + scratch + 5}


def test_thousands_in_messages() -> None:
    layer = Layer.conv("big", channels=64, filters=64, size=(56, 56))
    result = replay(layer, machine(), Nest(ALL))
    # 2 x 64 x 3136 + 4096
    assert result.faults == ("memory ocm: 405,504 bytes of 65,536",)


def test_energy() -> None:
    outcome = replay(TINY, machine(byte_fj=3, mac_fj=2), Nest(ALL)).outcome
    assert outcome.energy_fj == 3 * 134 + 2 * 3 * 2 * 16 * 9


# ---- faults and bad input -----------------------------------------------------------------------------------------


def test_too_many_units() -> None:
    result = replay(POINT, machine(), Nest((Spatial("m", 1, "tle"), Spatial("r", 1, "tlt"), *ALL)))
    assert result.faults == ("level tle: 4 units of 1", "level tlt: 2 units of 1")
    four = Nest((Spatial("m", 1, "tle"), *ALL))  # clusters, of cores there would be enough
    assert replay(POINT, machine(tles=2, tlts=2), four).faults == ("level tle: 4 units of 2",)
    # 4 filters by 3 and 2: two cores in the first cluster, one in the second
    uneven = Nest((Spatial("m", 3, "tle"), Spatial("m", 2, "tlt"), *ALL))
    assert replay(POINT, machine(tles=2), uneven).faults == ("level tlt: 2 units of 1",)
    with pytest.raises(InputError, match="uses 2 clusters of up to 2 cores"):
        price(POINT, machine(tles=2), uneven)


def test_reduction_over_cores_never_meets() -> None:
    result = replay(POINT, machine(tlts=2), Nest((Spatial("n", 2, "tlt"), *ALL)))
    assert "output: some elements are produced by several cores" in result.faults
    assert any("differ from the direct convolution" in f or "exactly once" in f for f in result.faults)
    assert not result.executed


@pytest.mark.parametrize(("buffering", "wrong", "right"), [("single", 2, 1), ("double", 1, 2)])
def test_buffers_that_the_machine_does_not_have(buffering: str, wrong: int, right: int) -> None:
    """Refused even in enough memory; a machine that leaves the choice has either."""
    for on, number, ok in ((buffering, wrong, False), (buffering, right, True), ("choose", wrong, True)):
        found = replay(TINY, machine(buffering=on), Nest((Hold("W"), Hold("IN", number), Hold("OUT"))))
        assert found.ok == ok
        assert ok or f"Hold(IN) states {wrong} buffers" in found.faults[0]


def test_an_execution_that_moves_otherwise_than_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transfer of weights that the walk has not, and a place in lines more than 2 rows of 4 and one of 3."""
    run = referee.executed_nest
    more = {"W": 2, "OUT": 1, "PSUM": 0, "IN": 4}
    monkeypatch.setattr(referee, "executed_nest", lambda *a: replace(run(*a), calls=more, places=12))
    layer = Layer.conv("square", channels=1, filters=1, size=(4, 4), kernel=(3, 3))
    lined = (Hold("W"), Hold("OUT"), Loop("r", 1), Loop("c", 1), Hold("IN", line=True))
    assert replay(layer, machine(sliding=True, line=True), Nest(lined)).faults == (
        "execution: 2 W transfers of layer square, the walk counted 1",
        "execution: 12 elements in lines, the walk counted 11 bytes",
    )


def test_outputs_of_no_core() -> None:
    halves = replay_cores(TINY, Nest((Spatial("r", 2, "tle"), *ALL)))
    assert cover_faults(TINY, halves) == []
    assert cover_faults(TINY, halves[1:]) == ["output: some elements belong to no core"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (3, "expected an object"),
        ({"loop": "z", "step": 1}, "unknown dimension"),
        *(({"loop": "r", "step": step}, "step must be a positive integer") for step in (0, True, 1.0)),
        *(({"loop": "r", "step": 1, "cuts": cuts}, "cuts must be a list of integers") for cuts in (3, [True], [1.0])),
        ({"hold": "X"}, "unknown operand"),
        *(({"hold": "IN", "buffers": number}, "buffers must be 1 or 2") for number in (0, 3, True, 1.0)),
        ({"hold": "IN", "line": 1}, "line must be true or false"),
        ({"spatial": "r", "step": 1, "over": "mesh"}, "unknown level"),
        ({"spatial": "r", "step": 1}, "keys"),
        ({"spatial": "r", "step": 1, "over": "tle", "cuts": [1]}, "keys"),
        ({"loop": "r", "step": 1, "over": "tle"}, "keys"),
        ({"hold": "IN", "step": 1}, "keys"),
    ],
)
def test_items_of_files_are_refused(row: object, said: str) -> None:
    with pytest.raises(InputError, match=rf"^nest\[1\]: .*{said}"):
        Nest.from_json([{"hold": "W"}, row])


def test_nests_in_files() -> None:
    """As they are written they are read; what is missing, unknown or no home of an operand is refused."""
    nest = Nest((Spatial("m", 2, "tle"), Loop("r", 3, (1, 4)), Hold("IN", 2, line=True), Hold("W"), Hold("OUT", 1)))
    files = TypeAdapter(Nest)
    for one in (nest, nest.at({"IN": "a", "OUT": "b"})):
        assert files.validate_json(files.dump_json(one)) == files.validate_python(one) == one
    rows = nest.to_json()
    for wrong in ({}, {"nest": rows, "more": 1}, {"nest": rows, "homes": {"X": "a"}}, {"nest": rows, "homes": {"W": 1}},
                  {"nest": rows, "homes": ["a"]}, {"nest": 3}, 3):  # fmt: skip
        with pytest.raises(ValueError, match=r"homes|expected a list"):
            files.validate_python(wrong)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ((Loop("r", 3, (0, 3)), *ALL), "must ascend from 1 to at most 3"),
        ((Loop("r", 4, (4,)), *ALL), "must ascend from 1 to at most 3"),
        ((Spatial("r", 2, "tle"), Loop("r", 2, (2,)), *ALL), "must ascend from 1 to at most 1"),
        ((Loop("r", 2, (2, 2)), *ALL), "must ascend"),
        *(((Loop("r", step, (1,)), *ALL), f"the largest piece has 3, step says {step}") for step in (2, 4)),
        ((Loop("r", 3, (1,)), Loop("r", 1, (2,)), *ALL), "the largest piece has 2, step says 1"),
        ((Hold("IN"), Hold("W", line=True), Hold("OUT")), "only IN is held in lines"),
        ((Hold("IN", line=True), Hold("W"), Hold("OUT")), "has none"),
        ((Loop("m", 0), *ALL), r"must be 1\.\.3"),
        ((Loop("m", 2), Spatial("r", 1, "tle"), *ALL), "stands inside a loop"),
        ((Hold("W"), Spatial("r", 1, "tle"), Hold("IN"), Hold("OUT")), "stands inside a hold"),
        ((Spatial("m", 2, "tlt"), Spatial("r", 1, "tle"), *ALL), "stands inside tlt"),
        ((Spatial("m", 2, "mesh"), *ALL), "unknown level 'mesh'"),
        ((Loop("z", 2), *ALL), "unknown dimension 'z'"),
        ((Loop("m", 4), *ALL), r"must be 1\.\.3"),
        ((Loop("m", 2), Loop("m", 3), *ALL), r"must be 1\.\.2"),
        ((*ALL, Hold("W")), "holds"),
        ((Hold("IN"), Hold("OUT")), "holds"),
    ],
)
def test_malformed_nests(items: tuple[Item, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replay(TINY, machine(), Nest(items))


def test_undefined_settings() -> None:
    with pytest.raises(InputError, match="uniform"):
        replay(POINT, machine(edge_tiles="uniform", transfer=Transfer(burst_bytes=8, burst_count="address")), Nest(ALL))
    for reader in (replay, price):  # tiles of one size are those of equal steps
        with pytest.raises(InputError, match="equal tiles"):
            reader(TINY, machine(edge_tiles="uniform"), Nest((Loop("r", 3, (1,)), *ALL)))
    with pytest.raises(InputError, match="single core"):
        price(POINT, machine(buffering="double", tlts=2), Nest((Spatial("r", 1, "tlt"), *ALL)))
    with pytest.raises(InputError, match="one core"):
        replay(POINT, machine(buffering="double", tlts=2), Nest(ALL))
    huge = Layer.conv("huge", channels=4096, filters=4096, size=(64, 64))
    with pytest.raises(InputError, match="steps"):
        replay(huge, machine(), Nest((Loop("m", 1), Loop("n", 1), Loop("r", 1), *ALL)))
    with pytest.raises(InputError, match="cores"):
        replay(huge, machine(), Nest((Spatial("m", 1, "tle"), Spatial("r", 1, "tle"), *ALL)))


def test_execution_is_for_small_layers_unless_asked() -> None:
    layer = Layer.conv("mid", channels=64, filters=64, size=(32, 32))  # 4.2 M multiply-accumulates
    nest = Nest((Loop("m", 16), *ALL))
    on = machine(ocm_bytes=1 << 20)
    assert not replay(layer, on, nest).executed
    assert replay(layer, on, nest, execute=True).executed
    assert not replay(TINY, on, Nest(ALL), execute=False).executed


# ---- Counting on addresses, by hand: segments, burst windows, DRAM rows, refreshes, biases and the uniform count -----


def test_aligned_and_address_bursts() -> None:
    layer = Layer.conv("b", channels=1, filters=1, size=(3, 6))
    for how, want in (("aligned", 6), ("address", 9)):
        on = machine(transfer=Transfer(burst_bytes=4, burst_count=how))
        rows = rows_of(layer, on, Loop("c", 3), *ALL)
        # runs of 3 bytes at 0 6 12 | 3 9 15: windows of 4 touched 1 2 1 | 2 1 2; aligned: 1 each
        assert rows["IN"] == Counts(calls=2, segments=6, bursts=want, bytes=18)


def test_tiles_of_one_size_at_different_addresses() -> None:
    layer = Layer.conv("a", channels=1, filters=1, size=(1, 12))
    rows = rows_of(layer, machine(transfer=Transfer(burst_bytes=8, burst_count="address")), Loop("c", 3), *ALL)
    # runs 0-2 3-5 6-8 9-11: the third crosses into the second window
    assert rows["IN"] == Counts(calls=4, segments=4, bursts=5, bytes=12)


def test_bursts_of_merged_rows() -> None:
    on = machine(transfer=Transfer(burst_bytes=8, burst_count="address", burst_ticks=5, byte_ticks=1))
    result = replay(TINY, on, Nest((Loop("r", 2), *ALL)))
    # IN runs of 12 bytes at 0 and 16 (channels) for rows 0-2: 2 windows each; rows 1-3: 4..15 -> 2, 20..31 -> 2
    # W 54 bytes: 7. OUT runs of 8 at 0 16 32 | 8 24 40: 1 each
    assert [result.outcome.by_operand[k].bursts for k in ("IN", "W", "OUT")] == [8, 7, 6]
    assert result.outcome.time_ticks == 5 * 21 + 48 + 54 + 48


def test_tso_figure_1() -> None:
    """TSO Fig. 1: 1024, 512, 256 bursts and 84, 58, 46 us (50 ns per 128-byte burst and 1 byte per ns)."""
    layer = Layer.conv("fig1", channels=1, filters=1, size=(128, 128))
    on = machine(
        in_bytes=2, w_bytes=2, out_bytes=2,
        transfer=Transfer(model="burst", burst_bytes=128, burst_ticks=50, byte_ticks=1),
        ocm_bytes=1 << 20,
    )  # fmt: skip
    for rows, columns, bursts, micros in ((128, 16, 1024, 84), (128, 32, 512, 58), (64, 64, 256, 46)):
        nest = Nest((Loop("r", rows), Loop("c", columns), *ALL))
        counted = replay(layer, on, nest, execute=False).outcome.by_operand["IN"]
        assert counted.bursts == bursts
        assert abs((50 * counted.bursts + counted.bytes) / 1000 - micros) < 1


def test_pages_and_refreshes_are_counted_per_call() -> None:
    on = machine(transfer=Transfer(row_bytes=10, refresh_bytes=10, row_ticks=3, refresh_ticks=7), bias_bytes=4)
    layer = TINY.model_copy(update={"bias": True})
    result = replay(layer, on, Nest((Loop("m", 2), *ALL)))
    rows = result.outcome.by_operand
    # IN: one call of 32. W: 36 + 2 biases of 4 = 44, then 18 + 4 = 22. OUT: 32 and 16
    assert (rows["IN"].rows, rows["IN"].refreshes) == (3, 4)
    assert rows["W"] == Counts(calls=2, segments=4, rows=4 + 2, refreshes=5 + 3, bytes=66)
    assert (rows["OUT"].rows, rows["OUT"].refreshes) == (3 + 1, 4 + 2)
    assert result.outcome.transfer_ticks == 3 * 13 + 7 * (4 + 8 + 6)
    # 32 + (36 + 8) + 32 on chip
    assert result.outcome.occupancy_bytes == {"ocm": 108}


def test_bias_windows_are_its_own() -> None:
    layer = POINT.model_copy(update={"bias": True})
    on = machine(transfer=Transfer(burst_bytes=8, burst_count="address"), bias_bytes=4)
    rows = rows_of(layer, on, Loop("m", 1), *ALL)
    # W runs of 4 bytes at 0 4 8 12: 1 window each; biases of 4 bytes at 0 4 8 12: 1 each
    assert rows["W"] == Counts(calls=4, segments=8, bursts=8, bytes=32)


def test_uniform_counts_nominal_tiles() -> None:
    on = machine(edge_tiles="uniform", transfer=Transfer(burst_bytes=16))
    result = replay(TINY, on, Nest((Loop("r", 1), *ALL)))
    # nominal: 3 rows x 4 of 6 columns (the map has 4) x 2 channels = 24 bytes; rows do not reach: 2 runs of 12 bytes,
    # 1 burst each; 4 calls. OUT: 1 row x 4 x 3 channels, 3 runs of 4
    assert result.outcome.by_operand["IN"] == Counts(calls=4, segments=8, bursts=8, bytes=96)
    assert result.outcome.by_operand["OUT"] == Counts(calls=4, segments=12, bursts=12, bytes=48)
    assert result.outcome.occupancy_bytes == {"ocm": 24 + 54 + 12}
    # 3 rows nominal: 5 input rows reach all 4, the whole tensor is one run of 32; the last tile costs the same
    whole = replay(TINY, on, Nest((Loop("r", 3), *ALL))).outcome.by_operand
    assert whole["IN"] == Counts(calls=2, segments=2, bursts=4, bytes=64)
    assert whole["OUT"] == Counts(calls=2, segments=6, bursts=6, bytes=72)
    # two of three taps: two rows of stride 2 reach over 2 + 1 + 1 of 9, two columns of dilation 2 over 1 + 2 + 1
    layer = Layer.conv("u", channels=1, filters=1, size=(9, 9), kernel=(3, 3), stride=(2, 1), dilation=(1, 2))
    for dim, kernel, calls in (("r", "i", 2 * 2), ("c", "j", 3 * 2)):
        nest = Nest((Loop(dim, 2), Loop(kernel, 2), *ALL))
        for reader in (price(layer, on, nest), replay(layer, on, nest).outcome):
            assert (reader.by_operand["IN"].calls, reader.by_operand["IN"].bytes) == (calls, calls * 4 * 9)

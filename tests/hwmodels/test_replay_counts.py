"""Counting on addresses, by hand: segments, burst windows, DRAM rows, refreshes, biases and the uniform count."""

from __future__ import annotations

from hwmodels.nest.replay.referee import replay
from hwmodels.outcome import Counts
from hwmodels.schedule import Loop, Nest
from instances.machine.machine import Transfer
from instances.network.workload import Layer
from tests.small import ALL, POINT, TINY, machine, rows_of


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

"""The transfer model: its four published instances by hand, burst windows, requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.outcome import Counts
from hwmodels.transfer import COUNTS, bursts_of_segment, lpddr4, request, ticks
from instances.load import load_machine
from instances.machine.machine import Transfer


def test_every_count_has_its_price() -> None:
    price = Transfer(
        call_ticks=1, segment_ticks=10, burst_ticks=100, burst_bytes=8, row_ticks=1_000, row_bytes=8,
        refresh_ticks=10_000, refresh_bytes=8, byte_ticks=100_000,
    )  # fmt: skip
    assert ticks(price, Counts(1, 2, 3, 4, 5, 6)) == 654_321
    assert set(COUNTS.values()) == {f for f in Transfer.model_fields if f.endswith("_ticks")}


@pytest.mark.parametrize(
    ("address", "length", "touched"),
    [
        # bursts of 128 bytes: windows [0,128), [128,256), ...
        (0, 0, 0),
        (100, 0, 0),
        (0, 1, 1),
        (0, 128, 1),
        (0, 129, 2),
        (127, 1, 1),
        (127, 2, 2),  # bytes 127 and 128
        (100, 56, 2),  # 100..155
        (100, 28, 1),  # 100..127
        (128, 128, 1),
        (129, 128, 2),  # 129..256
        (200, 300, 3),  # 200..499: windows 1, 2, 3
        (127, 258, 4),  # 127..384: windows 0, 1, 2, 3
    ],
)
def test_burst_windows_by_hand(address: int, length: int, touched: int) -> None:
    assert bursts_of_segment(address, length, 128) == touched


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 40))
def test_burst_windows_are_what_a_loop_finds(address: int, length: int, size: int) -> None:
    windows = {byte // size for byte in range(address, address + length)}
    assert bursts_of_segment(address, length, size) == len(windows)
    aligned = -(-length // size)
    # an unaligned start costs at most one more window; a start on a window none
    assert aligned <= len(windows) <= aligned + 1
    assert bursts_of_segment(address * size, length, size) == aligned


def test_volume_is_bytes_over_bandwidth() -> None:
    price = Transfer(byte_ticks=3)
    assert ticks(price, request(price, 1_000, segments=50)) == 3_000


def test_burst_adds_a_latency_for_every_window() -> None:
    # 4 segments of 100 bytes are 4 bursts: 4*40 + 400*2
    price = Transfer(model="burst", burst_ticks=40, burst_bytes=128, byte_ticks=2)
    assert ticks(price, request(price, 400, segments=4, bursts=4)) == 960


def test_pl330_equation_1() -> None:
    # T = C + s*p + n*t with C = 400, p = 40, t = 4 ticks an element of 4 bytes: 12 runs of 25 elements, 300 in all
    price = Transfer(model="dma", call_ticks=400, segment_ticks=40, byte_ticks=1)
    assert ticks(price, request(price, 300 * 4, segments=12)) == 400 + 12 * 40 + 300 * 4


@pytest.mark.parametrize(("bursts", "published_us"), [(1024, 84), (512, 58), (256, 46)])
def test_tso_figure_1_with_the_constants_of_nmp(bursts: int, published_us: int) -> None:
    # 16 channels of 32x32 16-bit elements, 32,768 bytes, cut in runs of 32, 64 and 128 bytes: one burst a run.
    # 1 ns a byte and 50 ns a burst: 32.768 us + bursts * 0.050 us = 83.97, 58.37, 45.57 us
    machine = load_machine("nmp")
    run = 32_768 // bursts
    count = bursts * bursts_of_segment(0, run, machine.transfer.burst_bytes)
    picoseconds = ticks(machine.transfer, request(machine.transfer, 32_768, bursts, count)) * machine.tick_ps
    assert picoseconds == 32_768_000 + bursts * 50_000
    assert abs(picoseconds / 1e6 - published_us) <= 1


@pytest.mark.parametrize(
    ("size", "rows", "refreshes"),
    [(0, 0, 0), (1, 0, 1), (8_191, 0, 1), (8_192, 1, 1), (89_856, 10, 1), (89_857, 10, 2), (1_000_000, 122, 12)],
)
def test_lpddr4_equations_4_1_and_4_2(size: int, rows: int, refreshes: int) -> None:
    # latency(B) = 41.25 + 14.625*floor(B/8192) + 235*ceil(B/89856) ns and 25 B/ns, here in femtoseconds
    price = lpddr4()
    counts = request(price, size)
    assert (counts.rows, counts.refreshes) == (rows, refreshes)
    femtoseconds = 41_250_000 + 14_625_000 * rows + 235_000_000 * refreshes + 40_000 * size
    assert ticks(price, counts) * 5_000 == femtoseconds


def test_lpddr4_needs_a_tick_that_divides_its_constants() -> None:
    assert lpddr4(1).byte_ticks == 40
    with pytest.raises(ValueError, match="tick_ps 3 does not divide"):
        lpddr4(3)


def test_requests_count_rows_and_refreshes_only_where_priced() -> None:
    assert request(Transfer(byte_ticks=1), 10**6) == Counts(calls=1, segments=1, bytes=10**6)

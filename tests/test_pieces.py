"""Pieces of a dimension, their input windows and the sums over them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hwmodels.bilinear import Ints
from hwmodels.pieces import Pieces, Window, cut, nominal, trips, windows


def steps(*values: int) -> Ints:
    return np.array(values, np.int64)


def one(pieces: Pieces) -> list[int]:
    """The lengths of the pieces of the first step, longest first."""
    return sorted(np.repeat(pieces.length[0], pieces.count[0]).tolist(), reverse=True)


def test_trips_round_up() -> None:
    assert trips(10, steps(1, 3, 4, 10)).tolist() == [10, 4, 3, 1]


def test_sums_over_the_pieces_of_ten() -> None:
    # steps 4 and 5 cut 10 in 4 + 4 + 2 and 5 + 5; step 10 leaves it whole
    pieces = cut(10, steps(4, 5, 10))
    assert pieces.number.tolist() == [3, 2, 1]
    assert pieces.sum.tolist() == [10, 10, 10]
    assert pieces.largest.tolist() == [4, 5, 10]
    assert pieces.full(10).tolist() == [0, 0, 1]
    assert pieces.partial(10).tolist() == [3, 2, 0]
    # lanes of 3: ceil(4/3) + ceil(4/3) + ceil(2/3) = 5; 2 + 2 = 4; ceil(10/3) = 4
    assert pieces.ceil_sum(3).tolist() == [5, 4, 4]


def test_burst_windows_of_pieces_that_break_the_run() -> None:
    # 3 bytes an element, bursts of 8: 12 B -> 2, 12 B -> 2, 6 B -> 1; 15 B -> 2 twice; a whole axis is no break
    assert cut(10, steps(4, 5, 10)).partial_windows(10, 3, 8).tolist() == [5, 4, 0]


def test_input_windows_by_hand() -> None:
    # 3 taps, padding 1, map of 5: outputs [0,2) read rows -1..2, clipped 0..2; [2,4) read 1..4; [4,5) read 3..5: 3..4
    window = Window(stride=1, reach=3, pad=1, size=5)
    pieces = windows(0, 5, steps(2), window)
    assert one(pieces) == [4, 3, 2]
    assert pieces.sum.tolist() == [9]
    # a core that has outputs [2, 5) only: [2,4) and [4,5)
    assert one(windows(2, 5, steps(2), window)) == [4, 2]


def test_a_stride_beyond_the_kernel_skips_rows_between_tiles_only() -> None:
    # stride 3, 1 tap, map of 7: outputs 0, 1, 2 at rows 0, 3, 6. Tile [0,2) spans rows 0..3 (4 rows, two skipped
    # inside);
    # [2,3) row 6. One by one nothing is skipped inside: 1 + 1 + 1.
    window = Window(stride=3, reach=1, pad=0, size=7)
    assert one(windows(0, 3, steps(2), window)) == [4, 1]
    assert one(windows(0, 3, steps(1), window)) == [1, 1, 1]
    assert one(windows(0, 3, steps(3), window)) == [7]


def test_dilation_counts_the_reach() -> None:
    # 3 taps at dilation 2 reach over 5 rows, padding 2, map of 6: output 0 reads -2..2 -> 0..2; output 5 reads 3..7
    # -> 3..5
    window = Window(stride=1, reach=5, pad=2, size=6)
    assert windows(0, 6, steps(1), window).length[0].tolist() == [3, 4, 5, 5, 4, 3]


def test_uniform_counts_full_pieces_at_most_the_map() -> None:
    window = Window(stride=2, reach=3, pad=1, size=9)
    # (T-1)*2 + 3: 3, 5, 9 and 11, cut to the map of 9
    assert window.nominal(steps(1, 2, 4, 5)).tolist() == [3, 5, 9, 9]
    pieces = nominal(steps(2, 5), steps(3, 1), window)
    assert pieces.number.tolist() == [3, 1]
    assert pieces.sum.tolist() == [15, 9]
    assert nominal(steps(2, 5), steps(3, 1)).sum.tolist() == [6, 5]


def test_unused_places_count_nothing() -> None:
    pieces = Pieces(steps(3, 0)[None, :], steps(2, 7)[None, :])
    assert (pieces.number.tolist(), pieces.sum.tolist(), pieces.largest.tolist()) == ([2], [6], [3])


def test_a_plain_window_is_a_plain_cut() -> None:
    window = Window(stride=1, reach=1, pad=0, size=9)
    assert windows(2, 9, steps(3), window) is cut(7, steps(3))


@pytest.mark.parametrize("lo", [0, 2])
@given(st.data())
def test_windows_are_what_a_loop_finds(lo: int, data: st.DataObject) -> None:
    stride, reach = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 7))
    pad, size = data.draw(st.integers(0, reach - 1)), data.draw(st.integers(1, 12))
    hi = data.draw(st.integers(lo + 1, lo + 8))
    assume((hi - 1) * stride - pad < size)
    step = data.draw(st.integers(1, hi - lo))
    expected = []
    for start in range(lo, hi, step):
        stop = min(start + step, hi)
        rows = {r * stride - pad + k for r in range(start, stop) for k in range(reach)}
        inside = [r for r in rows if 0 <= r < size]
        expected.append(max(inside) - min(inside) + 1 if inside else 0)
    pieces = windows(lo, hi, steps(step), Window(stride, reach, pad, size))
    assert int(pieces.sum[0]) == sum(expected)
    assert int(pieces.largest[0]) == max(expected)
    assert int(pieces.number[0]) == sum(e > 0 for e in expected)

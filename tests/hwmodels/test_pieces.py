"""Pieces of a dimension, their input windows and the sums over them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import Pieces, Window, cut, nominal, trips, windows


def steps(*values: int) -> Ints:
    return np.array(values, np.int64)


def chains(*values: int | tuple[int, ...]) -> Ints:
    """Chains (T, L) of steps; a bare number is a chain of one."""
    return np.array([(v,) if isinstance(v, int) else v for v in values], np.int64)


#: The kernel in one piece.
WHOLE = np.zeros((1, 0), np.int64)


def one(pieces: Pieces) -> list[int]:
    """The lengths of the pieces of the first step, longest first."""
    return sorted(np.repeat(pieces.length[0], pieces.count[0]).tolist(), reverse=True)


def test_trips_round_up() -> None:
    assert trips(10, steps(1, 3, 4, 10)).tolist() == [10, 4, 3, 1]


def test_sums_over_the_pieces_of_ten() -> None:
    # steps 4 and 5 cut 10 in 4 + 4 + 2 and 5 + 5; step 10 leaves it whole
    pieces = cut(10, chains(4, 5, 10))
    assert pieces.number.tolist() == [3, 2, 1]
    assert pieces.sum.tolist() == [10, 10, 10]
    assert pieces.largest.tolist() == [4, 5, 10]
    assert pieces.full(10).tolist() == [0, 0, 1]
    assert pieces.partial(10).tolist() == [3, 2, 0]
    # lanes of 3: ceil(4/3) + ceil(4/3) + ceil(2/3) = 5; 2 + 2 = 4; ceil(10/3) = 4
    assert pieces.ceil_sum(3).tolist() == [5, 4, 4]


def test_burst_windows_of_pieces_that_break_the_run() -> None:
    # 3 bytes an element, bursts of 8: 12 B -> 2, 12 B -> 2, 6 B -> 1; 15 B -> 2 twice; a whole axis is no break
    assert cut(10, chains(4, 5, 10)).partial_windows(10, 3, 8).tolist() == [5, 4, 0]


def test_input_windows_by_hand() -> None:
    # 3 taps, padding 1, map of 5: outputs [0,2) read rows -1..2, clipped 0..2; [2,4) read 1..4; [4,5) read 3..5: 3..4
    window = Window(stride=1, dilation=1, taps=3, pad=1, size=5)
    pieces = windows(0, 5, chains(2), WHOLE, window)
    assert one(pieces) == [4, 3, 2]
    assert pieces.sum.tolist() == [9]
    # a core that has outputs [2, 5) only: [2,4) and [4,5)
    assert one(windows(2, 5, chains(2), WHOLE, window)) == [4, 2]


def test_a_stride_beyond_the_kernel_skips_rows_between_tiles_only() -> None:
    # stride 3, 1 tap, map of 7: outputs 0, 1, 2 at rows 0, 3, 6. Tile [0,2) spans rows 0..3 (4 rows, two skipped
    # inside);
    # [2,3) row 6. One by one nothing is skipped inside: 1 + 1 + 1.
    window = Window(stride=3, dilation=1, taps=1, pad=0, size=7)
    assert one(windows(0, 3, chains(2), WHOLE, window)) == [4, 1]
    assert one(windows(0, 3, chains(1), WHOLE, window)) == [1, 1, 1]
    assert one(windows(0, 3, chains(3), WHOLE, window)) == [7]


def test_dilation_counts_the_reach() -> None:
    # 3 taps at dilation 2 reach over 5 rows, padding 2, map of 6: output 0 reads -2..2 -> 0..2; output 5 reads 3..7
    # -> 3..5
    window = Window(stride=1, dilation=2, taps=3, pad=2, size=6)
    assert one(windows(0, 6, chains(1), WHOLE, window)) == [5, 5, 4, 4, 3, 3]


def test_uniform_counts_full_pieces_at_most_the_map() -> None:
    window = Window(stride=2, dilation=1, taps=3, pad=1, size=9)
    # (T-1)*2 + 3: 3, 5, 9 and 11, cut to the map of 9
    assert window.nominal(steps(1, 2, 4, 5)).tolist() == [3, 5, 9, 9]
    # one tap of three: (T-1)*2 + 1
    assert window.nominal(steps(2, 5), 1).tolist() == [3, 9]
    pieces = nominal(window.nominal(steps(2, 5)), steps(3, 1))
    assert pieces.number.tolist() == [3, 1]
    assert pieces.sum.tolist() == [15, 9]
    assert nominal(steps(2, 5), steps(3, 1)).sum.tolist() == [6, 5]


def test_unused_places_count_nothing() -> None:
    pieces = Pieces(steps(3, 0)[None, :], steps(2, 7)[None, :])
    assert (pieces.number.tolist(), pieces.sum.tolist(), pieces.largest.tolist()) == ([2], [6], [3])


def test_a_plain_window_is_a_plain_cut() -> None:
    window = Window(stride=1, dilation=1, taps=1, pad=0, size=9)
    assert windows(2, 9, chains(3), WHOLE, window) is cut(7, chains(3), 2)


def test_pieces_are_cut_again() -> None:
    # 10 by 6: 6 + 4; each by 4: 4 + 2, 4
    assert one(cut(10, chains((6, 4)))) == [4, 4, 2]


def test_kernel_rows_cut_the_input_once_more() -> None:
    # 3 taps by 2 (0-1, 2), outputs of 4 by 2, no padding, map of 6: taps 0-1 read 0..2, 2..4; tap 2 reads 2..3, 4..5
    window = Window(stride=1, dilation=1, taps=3, pad=0, size=6)
    assert one(windows(0, 4, chains(2), chains(2), window)) == [3, 3, 2, 2]


def test_sliding_moves_what_the_pass_did_not_hold() -> None:
    # 3 taps, outputs of 5 by 2, map of 7: 0..3, 2..5, 4..6; new: 4, 2, 1
    window = Window(stride=1, dilation=1, taps=3, pad=0, size=7)
    assert one(windows(0, 5, chains(2), WHOLE, window, "outer")) == [4, 2, 1]
    # passes of 4 outputs: 0..3 and 2..5 (new: 4, 2), then a new pass: 4..6 whole
    assert one(windows(0, 5, chains((4, 2)), WHOLE, window, "outer")) == [4, 3, 2]
    # along the kernel, tap by tap, for all outputs at once: 0..4, 1..5, 2..6; new: 5, 1, 1
    assert one(windows(0, 5, chains(5), chains(1), window, "inner")) == [5, 1, 1]


def brute(lo: int, hi: int, steps: tuple[int, ...], taps: tuple[int, ...], window: Window, slide: str) -> list[int]:
    """Walk the loops and collect what every tile fetches."""

    def pieces(start: int, stop: int, chain: tuple[int, ...]) -> list[tuple[tuple[int, ...], int, int]]:
        found = [((), start, stop)]
        for step in chain:
            found = [((*path, k), a, min(a + step, y)) for path, x, y in found for k, a in enumerate(range(x, y, step))]
        return found

    outer, inner = pieces(lo, hi, steps), pieces(0, window.taps, taps)
    pairs = [(o, i) for i in inner for o in outer] if slide == "outer" else [(o, i) for o in outer for i in inner]
    fetched, held = [], {}
    for (path, r0, r1), (route, i0, i1) in pairs:
        first = max(0, r0 * window.stride - window.pad + i0 * window.dilation)
        end = min(window.size, (r1 - 1) * window.stride - window.pad + (i1 - 1) * window.dilation + 1)
        key = {"outer": (path[:-1], route), "inner": (path, route[:-1])}.get(slide)
        begin = max(first, held.get(key, first)) if key is not None else first
        held[key] = max(end, held.get(key, end))
        fetched.append(max(0, end - begin))
    return sorted((f for f in fetched if f), reverse=True)


@pytest.mark.parametrize("lo", [0, 2])
@given(st.data())
def test_windows_are_what_a_loop_finds(lo: int, data: st.DataObject) -> None:
    stride, dilation, taps = (data.draw(st.integers(1, n)) for n in (4, 3, 4))
    reach = (taps - 1) * dilation + 1
    pad, size = data.draw(st.integers(0, reach - 1)), data.draw(st.integers(1, 12))
    hi = data.draw(st.integers(lo + 1, lo + 8))
    window = Window(stride, dilation, taps, pad, max(size, (hi - 1) * stride - pad + 1))  # the last one begins on it

    def chain(extent: int) -> tuple[int, ...]:
        return tuple(sorted(data.draw(st.lists(st.integers(1, extent), max_size=2)), reverse=True))

    steps, kernel = chain(hi - lo), chain(taps)
    slides = [s for s, c in (("", (0,)), ("outer", steps), ("inner", kernel)) if c]
    slide = data.draw(st.sampled_from(slides))
    found = windows(
        lo, hi, np.array([steps], np.int64).reshape(1, -1), np.array([kernel], np.int64).reshape(1, -1), window, slide
    )
    assert one(found) == brute(lo, hi, steps, kernel, window, slide)
    assert (int(found.sum[0]), int(found.number[0])) == (sum(one(found)), len(one(found)))


def test_chains_that_make_the_same_pieces_share_them() -> None:
    window = Window(stride=1, dilation=1, taps=3, pad=1, size=9)
    found = windows(0, 9, chains(4, 3, 4), WHOLE, window)
    assert found.sum.tolist() == [9 + 2 * 2, 9 + 2 * 2, 9 + 2 * 2]
    assert found.number.tolist() == [3, 3, 3]
    assert found.largest.tolist() == [6, 5, 6]
    assert (found.full(9).tolist(), found.partial(9).tolist()) == ([0, 0, 0], [3, 3, 3])
    assert found.partial_windows(9, 1, 4).tolist() == [2 + 2 + 1, 1 + 2 + 1, 2 + 2 + 1]


def test_windows_do_not_depend_on_what_was_asked_before() -> None:
    """More steps than have a code, and large ones: no answer is taken for that to another question."""
    window = Window(stride=3, dilation=1, taps=2, pad=0, size=28)
    for chain in ([9, 9, 9, 9], [9, 4, 4, 1], [5, 5, 2, 2], [1, 1, 1, 1]):
        found = windows(0, 9, np.array([chain], np.int64), np.array([[2]], np.int64), window)
        last = chain[-1]
        # Pieces of `last` outputs need 3*last - 1 rows; the chains here cut 9 in these pieces.
        cut = {9: [9], 1: [1] * 9, 2: [2, 2, 2, 2, 1]}[last] if chain[0] != 5 else [2, 2, 1, 2, 2]
        assert one(found) == sorted((3 * n - 1 for n in cut), reverse=True)
    wide = Window(stride=1, dilation=1, taps=3, pad=1, size=40_000)
    for step in (40_000, 39_999, 1 << 15):
        rest = 40_000 - step
        found = windows(0, 40_000, np.array([[step]], np.int64), WHOLE, wide)
        assert one(found) == ([step + 1, rest + 1] if rest else [40_000])


@pytest.mark.parametrize("slide", ["", "outer", "inner"])
@pytest.mark.parametrize("taps", [WHOLE, np.array([[2]], np.int64), np.zeros((0, 1), np.int64)], ids=len)
def test_no_chains_have_no_windows(taps: Ints, slide: str) -> None:
    none = windows(0, 8, np.zeros((0, 2), np.int64), taps, Window(2, 1, 3, 1, 16), slide)
    assert none.number.shape == none.sum.shape == none.largest.shape == none.full(16).shape == (0,)

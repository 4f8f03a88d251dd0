"""Bounded least squares and what it identifies, by hand, against brute force, and on random systems."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.calibration import Price, bounded_least_squares, identify, rounded, singular_values, student


def prices(count: int, high: int = 100, value: int = 10) -> tuple[Price, ...]:
    return tuple(Price(f"p{j}", 0, high, value) for j in range(count))


def squares(matrix, target, x) -> float:
    return float(np.sum((np.asarray(matrix) @ np.asarray(x, float) - target) ** 2))


# --- bounded least squares -------------------------------------------------------------------------------------------


def test_two_rows_one_price_by_hand() -> None:
    # (x - 1)^2 + (2x - 4)^2 has its least at 5x = 9.
    x = bounded_least_squares(np.array([[1.0], [2.0]]), np.array([1.0, 4.0]), np.zeros(1), np.full(1, 9.0))
    assert x == pytest.approx([1.8])


def test_a_bound_that_binds_moves_the_other_price_by_hand() -> None:
    # Free: x + y = 3 and x - y = 5, so x = 4, y = -1. With y >= 0: (x - 3)^2 + (x - 5)^2 is least at x = 4, y = 0.
    # With y >= 1: (x - 2)^2 + (x - 6)^2 is least at x = 4 too; with x <= 3 and y >= 0 the corner (3, 0) is:
    # the gradient of F there is 2*((3-3) + (3-5)) = -4 along x (wants up), 2*(0 + 2) = 4 along y (wants down).
    matrix, target = np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([3.0, 5.0])
    for low, high, expected in (
        ([-9, -9], [9, 9], [4, -1]),
        ([0, 0], [9, 9], [4, 0]),
        ([0, 1], [9, 9], [4, 1]),
        ([0, 0], [3, 9], [3, 0]),
    ):
        x = bounded_least_squares(matrix, target, np.array(low, float), np.array(high, float))
        assert x == pytest.approx(expected)


def test_a_price_that_nothing_counts_stays_where_it_was() -> None:
    matrix = np.array([[1.0, 0.0], [1.0, 0.0]])
    x = bounded_least_squares(matrix, np.array([2.0, 4.0]), np.zeros(2), np.full(2, 9.0), np.array([0.0, 7.0]))
    assert x == pytest.approx([3, 7])


def test_bad_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match="low <= high"):
        bounded_least_squares(np.eye(1), np.ones(1), np.ones(1), np.zeros(1))


def corners(matrix, target, low, high) -> float:
    """The least F over all choices of which prices rest at which bound: shares nothing with the active-set method."""
    best = math.inf
    for states in itertools.product("lhf", repeat=matrix.shape[1]):
        x = np.array([{"l": lo, "h": hi, "f": 0.0}[s] for s, lo, hi in zip(states, low, high, strict=True)])
        free = np.array([s == "f" for s in states])
        if free.any():
            x[free] = np.linalg.lstsq(matrix[:, free], target - matrix @ x, rcond=None)[0]
        if (x >= low - 1e-9).all() and (x <= high + 1e-9).all():
            best = min(best, squares(matrix, target, x))
    return best


numbers = st.integers(-6, 6)


@given(st.data())
def test_no_choice_of_bounds_is_better(data) -> None:
    rows, columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    matrix = np.array(data.draw(st.lists(numbers, min_size=rows * columns, max_size=rows * columns)), float)
    matrix = matrix.reshape(rows, columns)
    target = np.array(data.draw(st.lists(numbers, min_size=rows, max_size=rows)), float)
    low = np.array(data.draw(st.lists(numbers, min_size=columns, max_size=columns)), float)
    high = low + np.array(data.draw(st.lists(st.integers(0, 5), min_size=columns, max_size=columns)), float)
    x = bounded_least_squares(matrix, target, low, high)
    assert (x >= low).all()
    assert (x <= high).all()
    assert squares(matrix, target, x) == pytest.approx(corners(matrix, target, low, high), abs=1e-7)


# --- identification --------------------------------------------------------------------------------------------------


def test_interval_of_a_mean_by_hand() -> None:
    # One price, counted once by four rows that say 8, 10, 10, 12: the mean is 10, F* = 8, 3 degrees of freedom.
    # phi(t) = 8 + 4*(t-10)^2 <= 8 + t95^2 * 8/3: |t-10| <= 3.182 * sqrt(8/12) = 2.598.
    fit = identify(np.ones((4, 1)), np.array([8.0, 10, 10, 12]), prices(1), [0])
    (estimate,) = fit.estimates
    assert (estimate.verdict, fit.freedom) == ("identified", 3)
    assert estimate.value == pytest.approx(10)
    assert (estimate.low, estimate.high) == pytest.approx((7.402, 12.598), abs=5e-3)
    assert fit.rms == pytest.approx(math.sqrt(2))
    # At the ends F is 8 * (1 + 3.182^2/3) = 8 * 4.376: the root mean square residual grows to 2.092 times.
    assert estimate.rise == pytest.approx(1.092, abs=5e-3)


@pytest.mark.parametrize(
    ("freedom", "expected"), [(1, 12.706), (2, 4.303), (3, 3.182), (10, 2.228), (11, 2.201), (30, 2.042)]
)
def test_quantiles_of_the_table(freedom: int, expected: float) -> None:
    assert student(freedom) == pytest.approx(expected, abs=6e-4)


def test_prices_that_only_occur_together_are_said() -> None:
    # Every row pays p1 twice as often as p0: only p0 + 2*p1 = 50 is known. One keeps its value 10, the other one takes
    # what is left: p0 = 30 beside p1 = 10, or p1 = 20 beside p0 = 10.
    matrix = np.array([[1.0, 2, 0], [3, 6, 1], [2, 4, 5], [1, 2, 1]])
    fit = identify(matrix, matrix @ [30.0, 10, 7], prices(3), [10, 10, 10])
    verdicts = {e.name: e.verdict for e in fit.estimates}
    held = [name for name, verdict in verdicts.items() if verdict == "not identified"]
    assert len(held) == 1
    assert held[0] in ("p0", "p1")
    (pair,) = fit.pairs
    assert pair[:2] == ("p0", "p1")
    assert fit.rank == 2
    values = {e.name: e.value for e in fit.estimates}
    assert values["p0"] + 2 * values["p1"] == pytest.approx(50)
    assert values[held[0]] == 10
    assert values["p2"] == pytest.approx(7)
    loose = next(e for e in fit.estimates if e.name == held[0])
    assert set(loose.along) == {"p0", "p1"} - {held[0]}


def test_a_price_that_no_row_counts_is_said_and_kept() -> None:
    matrix = np.array([[1.0, 0], [2, 0], [3, 0]])
    fit = identify(matrix, np.array([4.0, 8, 12]), prices(2), [10, 10])
    assert [e.verdict for e in fit.estimates] == ["identified", "not identified"]
    assert fit.estimates[1].reason == "no row counts it"
    assert fit.estimates[1].value == 10
    assert (fit.estimates[1].low, fit.estimates[1].high) == (0, 100)


def test_forced_prices_are_fitted_and_said() -> None:
    matrix = np.array([[1.0, 1e-6], [1, 2e-6], [1, 0]])  # p1 hardly matters
    free = identify(matrix, np.array([5.0, 5.1, 4.9]), prices(2), [0, 10])
    assert free.estimates[1].verdict == "not identified"
    forced = (prices(1)[0], Price("p1", 0, 100, 10, forced=True))
    fit = identify(matrix, np.array([5.0, 5.1, 4.9]), forced, [0, 10])
    assert fit.estimates[1].verdict == "forced"
    assert fit.estimates[1].value == pytest.approx(100)


def test_bounds_that_bind_are_said() -> None:
    fit = identify(np.ones((3, 1)), np.array([101.0, 102, 100]), prices(1), [0])
    assert fit.estimates[0].verdict == "at its upper bound"
    low = identify(np.ones((3, 1)), np.array([-1.0, -2, 0]), prices(1), [0])
    assert low.estimates[0].verdict == "at its lower bound"


def test_kept_prices_that_the_rows_identify_are_open() -> None:
    matrix = np.array([[1.0, 0], [0, 1], [1, 1]])
    fit = identify(matrix, matrix @ [3.0, 4], prices(2), [10, 10], kept=["p1"])
    assert fit.estimates[1].verdict == "not identified"
    assert fit.estimates[1].open
    assert fit.estimates[1].value == 10


def test_as_many_prices_as_rows_leave_no_freedom() -> None:
    fit = identify(np.eye(2), np.array([3.0, 4]), prices(2), [0, 0])
    assert fit.freedom == 0
    assert [e.value for e in fit.estimates] == pytest.approx([3, 4])


@given(st.data())
def test_random_true_prices_come_back(data) -> None:
    """Rows made from whole prices give these prices again, unless the columns say that they cannot."""
    columns = data.draw(st.integers(1, 4))
    rows = columns + data.draw(st.integers(1, 4))
    counts = data.draw(st.lists(st.integers(0, 50), min_size=rows * columns, max_size=rows * columns))
    matrix = np.array(counts, float).reshape(rows, columns)
    truth = np.array(data.draw(st.lists(st.integers(1, 99), min_size=columns, max_size=columns)), float)
    target = matrix @ truth
    fields = prices(columns)
    fit = identify(matrix, target, fields, [10] * columns)
    ticks = rounded(matrix, target, fields, fit)
    _, rank = singular_values(matrix, fields)
    loose = {e.name for e in fit.estimates if e.verdict == "not identified"}
    if rank == columns and np.linalg.cond(matrix) < 1e5:
        assert not loose
    if not loose:
        assert list(ticks.values()) == list(truth)
    if rank < columns:
        for name in loose:
            assert ticks[name] == 10


def test_rounding_one_after_the_other_by_hand() -> None:
    # 100*x + y = 250 with x + 0*y ... : x = 2.4, y = 10 exactly; x becomes 2 first (it matters more), and y makes up
    # for 40 of the first row as far as the second row (y = 10, counted ten times) lets it: minimise
    # (200 + y - 250)^2 + (10y - 100)^2: 101 y = 50 + 1000, y = 10.396, rounded 10.
    matrix, target = np.array([[100.0, 1.0], [0.0, 10.0]]), np.array([250.0, 100.0])
    fit = identify(matrix, target, prices(2), [0, 0])
    assert [e.value for e in fit.estimates] == pytest.approx([2.4, 10])
    assert rounded(matrix, target, prices(2), fit) == {"p0": 2, "p1": 10}


@pytest.mark.slow(2)
def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    """100 draws of independent errors of 2 %: intervals of 95 % miss either price between 2 and 9 % of the time."""
    random = np.random.default_rng(5)
    matrix, truth = random.integers(1, 20, (9, 2)).astype(float), np.array([40.0, 25.0])
    exact = matrix @ truth
    missed = 0
    for _ in range(100):
        target = exact * (1 + 0.02 * random.standard_normal(9))
        fit = identify(matrix / exact[:, None], target / exact, prices(2), [10, 10])
        missed += sum(not e.low <= t <= e.high for e, t in zip(fit.estimates, truth, strict=True))
    assert 0.02 <= missed / 200 <= 0.09

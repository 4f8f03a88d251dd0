"""Calibration: the prices of a machine that explain measured times best, and of which of them the times say nothing.

Sets. I measured rows, J prices to be fitted (fields of the machine).

Parameters. y[i] > 0 measured time; a[i,j] how often the plan of row i pays price j (`hwmodels.nest.price.closed_form`);
c[i] what the plan pays beside the fitted prices; l[j] <= u[j] bounds; w[i] = 1/y[i] (relative residuals) or 1
(absolute).

Variables. x[j] in [l[j], u[j]], ticks; real while fitted, whole afterwards.

Objective. F(x) = sum_i (w[i] * (c[i] + sum_j a[i,j]*x[j] - y[i]))^2. With A[i,j] = w[i]*a[i,j] and
b[i] = w[i]*(y[i] - c[i]): F = |A x - b|^2, a convex quadratic over a box.

Solution: least squares in a box (below).

Identification (`identify`). The profile of price j is phi_j(t) = min F(x) with x[j] = t, all others free in their
bounds: convex in t. Its interval is {t : phi_j(t) <= F* + q} with q = t95^2 * F* / f, Student's quantile squared times
the variance of the residuals, f = |I| less the rank of the columns of prices that are not at a bound: the values of
x[j] that the rows do not contradict (95 %, if residuals were independent; they hardly are, so more may be open; with
f <= 0 residuals say nothing about errors and q is that of arithmetic, which is said). A price is *not identified* if
no row counts it, if its interval fills `SPAN` of its bounds, or if the ends of its interval differ by a factor above
`FACTOR` and by more than `SHARE` of the bounds. This covers prices that only occur together (their profile is flat:
others make up for them), prices too small to matter, and bounds too narrow to tell. Of those not identified the one
with the widest interval is held at the machine's value, and the rest is fitted again, until all that are left are
identified. So of two prices that always occur together one is held and the other one fitted: identified given the
first, which is said.

Rounding (`rounded`). One price after the other becomes whole, the one whose rounding matters most first; the others are
fitted again around it.

Least squares in a box (`bounded_least_squares`). Minimise F(x) = |A x - b|^2 over l <= x <= u, all real. F is convex,
so x is a minimum if and only if g = A^T (b - A x), half of the steepest descent of F, is 0 in every free column, <= 0
at a lower bound and >= 0 at an upper one.

Method: active sets (Lawson and Hanson 1974, ch. 23, for two bounds). Columns at a bound rest, the others take the
least-squares step as far as the box allows; what reaches a bound rests there. Then the column whose g points furthest
into the box is freed. F falls from one set of free columns to the next, so no set comes twice and the method ends.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

#: Gradients and descents this small (relative) are arithmetic.
_TINY = 1e-12
#: 97.5 % quantiles for 1, 2, ... degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def bounded_least_squares(
    matrix: Floats, target: Floats, low: Floats, high: Floats, start: Floats | None = None
) -> Floats:
    """Return x that minimises ``|matrix @ x - target|`` with ``low <= x <= high``.

    Where several x do, the one is returned that the steps from `start` (default: the lower bounds) lead to: a price
    that no row counts keeps its value of `start`.

    Raises ValueError if a lower bound is above the upper one, or a number is not finite.
    """
    if (low > high).any() or not all(np.isfinite(v).all() for v in (matrix, target, low, high)):
        raise ValueError("bounded least squares needs finite numbers and low <= high")
    norms = np.linalg.norm(matrix, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    A, lo, hi = matrix / scale, low * scale, high * scale
    x = np.clip(lo if start is None else start * scale, lo, hi)
    free = (x > lo) & (x < hi)
    tolerance = _TINY * max(float(np.linalg.norm(target)), float(np.abs(A @ x).max(initial=0.0)))
    blocked: set[int] = set()
    for _ in range(20 * 3 ** min(len(x), 8) + 20):
        before = float(np.sum((A @ x - target) ** 2))
        x, free = _descend(A, target, lo, hi, x, free)
        if float(np.sum((A @ x - target) ** 2)) < before * (1 - _TINY):
            blocked.clear()
        gradient = A.T @ (target - A @ x)
        gain = np.where(~free & (lo < hi), np.where(x <= lo, gradient, 0.0) + np.where(x >= hi, -gradient, 0.0), 0.0)
        gain[list(blocked)] = 0.0
        column = int(gain.argmax()) if len(gain) else 0
        if not len(gain) or gain[column] <= tolerance:
            return np.clip(np.where(norms > 0, x / scale, x), low, high)
        free[column] = True
        blocked.add(column)
    raise RuntimeError("bounded least squares did not end")


def _descend(
    A: Floats, target: Floats, lo: Floats, hi: Floats, x: Floats, free: NDArray[np.bool_]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Take least-squares steps of the free columns until one fits the box; those that reach a bound rest there."""
    x, free = x.copy(), free.copy()
    while free.any():
        step = np.linalg.lstsq(A[:, free], target - A @ x, rcond=1e-11)[0]
        here = x[free]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step > 0, (hi[free] - here) / step, np.where(step < 0, (lo[free] - here) / step, np.inf))
        share = min(1.0, float(room.min()))
        moved = here + share * step
        if share < 1.0:
            hit = room <= share
            moved[hit] = np.where(step > 0, hi[free], lo[free])[hit]
        x[free] = np.clip(moved, lo[free], hi[free])
        if share >= 1.0:
            break
        free[np.flatnonzero(free)[hit]] = False
    return x, free


def student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t: up to 10 degrees of freedom by table, then by a series."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1] if freedom > 0 else math.inf
    z, n = 1.959964, float(freedom)
    return (
        z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )  # fmt: skip


Floats = NDArray[np.float64]
Verdict = Literal["identified", "at its lower bound", "at its upper bound", "forced", "not identified"]

#: Why a price is not identified: its column is zero.
UNCOUNTED = "no row counts it"
#: A price is not identified if its interval fills this part of its bounds,
SPAN = 0.9
#: or if its ends differ by more than this factor and this part of the bounds.
FACTOR, SHARE = 3.0, 0.05
#: Columns whose cosine is above this are named as pairs.
COSINE = 0.995
#: A price that goes along with another one through more than this part of its bounds is named beside it.
_ALONG = 0.05
#: Residuals this small (relative to the target) are arithmetic, not errors of measurement.
_NOISE = 1e-9
_HALVINGS = 50


@dataclass(frozen=True)
class Price:
    """A price to be fitted: bounds and the machine's value in ticks; `forced` if it is fitted identified or not."""

    name: str
    low: int
    high: int
    value: int
    forced: bool = False

    @property
    def span(self) -> int:
        """Upper less lower bound."""
        return self.high - self.low


@dataclass(frozen=True)
class Estimate:
    """What the rows say about a price."""

    name: str
    value: float
    """The fitted value in ticks; of a price that is not identified the machine's value."""
    low: float
    high: float
    """`low`, `high`: any value between them is about as good: see `rise`. Of a price that is not identified, with all
    prices free; of the others, with those that are not identified held.
    """
    rise: float
    """By how much of itself the root mean square residual grows at the worse end of the interval."""
    verdict: Verdict
    reason: str = ""
    """Why it is not identified."""
    along: tuple[str, ...] = ()
    """Prices that make up for a change of this one."""
    open: bool = False
    """Whether it is held although these rows identify it."""
    ends: tuple[tuple[float, ...], ...] = ()
    """All prices at the lower and at the upper end of the interval, in ticks."""


@dataclass(frozen=True)
class Identified:
    """One fit: an estimate for every price, the least root mean square residual, and what the columns look like."""

    estimates: tuple[Estimate, ...]
    rms: float
    freedom: int
    """F of the module docstring: below 1 the rows cannot contradict any fit."""
    singular: tuple[float, ...]
    """Of the columns scaled by the spans of the bounds, over the largest one."""
    rank: int
    """How many of them are not zero."""
    pairs: tuple[tuple[str, str, float], ...]
    """Prices whose columns are nearly parallel, with the cosine."""


@dataclass(frozen=True)
class _System:
    """min |A x - b| over a box, reduced by QR to as many rows as columns and one: F differs by nothing."""

    matrix: Floats
    target: Floats
    low: Floats
    high: Floats
    rows: int

    def fixed(self, column: int, value: float) -> _System:
        low, high = self.low.copy(), self.high.copy()
        low[column] = high[column] = value
        return _System(self.matrix, self.target, low, high, self.rows)

    def solve(self, start: Floats) -> tuple[Floats, float]:
        x = bounded_least_squares(self.matrix, self.target, self.low, self.high, start)
        return x, float(np.sum((self.matrix @ x - self.target) ** 2))


def singular_values(matrix: Floats, prices: Sequence[Price]) -> tuple[tuple[float, ...], int]:
    """Return the singular values of the scaled columns over the largest one, and how many are not zero."""
    values = np.linalg.svd(matrix * [max(p.span, 1) for p in prices], compute_uv=False)
    largest = float(values.max(initial=0.0))
    if not largest:
        return (0.0,) * len(prices), 0
    shares = tuple(float(v) / largest for v in values)
    padded = (*shares, *(0.0,) * (len(prices) - len(shares)))
    return padded, sum(v > _NOISE for v in shares)


def identify(
    matrix: Floats, target: Floats, prices: Sequence[Price], start: Sequence[float], kept: Collection[str] = ()
) -> Identified:
    """Fit all prices that the rows identify; hold the others at the machine's values.

    Parameters
    ----------
    matrix : ndarray (I, J)
        A of the module docstring.
    target : ndarray (I,)
        b.
    start : sequence of float
        Where the search for a fit begins; decides only where several fits are equally good.
    kept : names
        Prices that are held whatever the rows say.
    """
    system = _system(matrix, target, prices)
    singular, rank = singular_values(matrix, prices)
    every = range(len(prices))
    x, least = system.solve(np.asarray(start, np.float64))
    free = _estimates(system, prices, every, x, least)
    held: dict[int, Estimate] = {}
    while True:
        loose = [j for j in free if prices[j].name in kept and j not in held]
        loose = loose or _widest(prices, free)
        if not loose:
            break
        for j in loose:
            held[j] = _held(prices[j], free[j])
            system = system.fixed(j, prices[j].value)
            x[j] = prices[j].value
        rest = [j for j in every if j not in held]
        x, least = system.solve(x)
        free = _estimates(system, prices, rest, x, least)
    estimates = tuple({**free, **held}[j] for j in every)
    rms = math.sqrt(least / max(1, len(target)))
    return Identified(estimates, rms, _freedom(system, x), singular, rank, _pairs(matrix, prices))


def _estimates(
    system: _System, prices: Sequence[Price], free: Sequence[int], x: Floats, least: float
) -> dict[int, Estimate]:
    limit = least + _allowed(system, least, _freedom(system, x))
    return {j: _estimate(system, prices, j, x, least, limit) for j in free}


def _widest(prices: Sequence[Price], free: Mapping[int, Estimate]) -> list[int]:
    """Of the prices that are not identified the one with the widest interval; none if all are."""
    loose = [j for j, e in free.items() if e.verdict == "not identified"]
    return sorted(loose, key=lambda j: -(free[j].high - free[j].low) / max(prices[j].span, 1))[:1]


def _held(price: Price, estimate: Estimate) -> Estimate:
    """A price that keeps the machine's value."""
    if estimate.verdict == "not identified":
        return estimate
    reason = "not identified by the plans of an earlier round"
    return replace(estimate, value=float(price.value), verdict="not identified", reason=reason, open=True)


def _system(matrix: Floats, target: Floats, prices: Sequence[Price]) -> _System:
    low, high = (np.array([float(v) for v in side]) for side in ([p.low for p in prices], [p.high for p in prices]))
    stacked = np.column_stack([matrix, target])
    if len(stacked) > stacked.shape[1]:
        stacked = np.asarray(np.linalg.qr(stacked, mode="r"), np.float64)
    return _System(stacked[:, :-1], stacked[:, -1], low, high, len(matrix))


def _allowed(system: _System, least: float, freedom: int) -> float:
    """By how much F may exceed the least one before a value is contradicted."""
    noise = _noise(system)
    return noise if freedom < 1 else max(noise, student(freedom) ** 2 * least / freedom)


def _freedom(system: _System, x: Floats) -> int:
    """Rows less the rank of the columns of prices that are not at a bound."""
    inside = (x > system.low) & (x < system.high)
    return system.rows - (int(np.linalg.matrix_rank(system.matrix[:, inside])) if inside.any() else 0)


def _noise(system: _System) -> float:
    return (_NOISE * float(np.linalg.norm(system.target))) ** 2


def _estimate(system: _System, prices: Sequence[Price], column: int, x: Floats, least: float, limit: float) -> Estimate:
    price = prices[column]
    low, at_low = _end(system, column, x, limit, price.low)
    high, at_high = _end(system, column, x, limit, price.high)
    worst = max(at_low[1], at_high[1])
    # Where residuals are arithmetic alone, their ratio says nothing.
    rise = math.sqrt(worst / least) - 1 if least > _noise(system) else 0.0
    reason = _loose(system, column, price, low, high)
    if reason and not price.forced:
        along = _along(prices, column, x, (at_low[0], at_high[0]))
        ends = tuple(tuple(float(v) for v in end[0]) for end in (at_low, at_high))
        return Estimate(price.name, float(price.value), low, high, rise, "not identified", reason, along, ends=ends)
    verdict: Verdict = "identified"
    if reason:
        verdict = "forced"
    elif price.span and x[column] - price.low < 0.5:
        verdict = "at its lower bound"
    elif price.span and price.high - x[column] < 0.5:
        verdict = "at its upper bound"
    return Estimate(price.name, float(x[column]), low, high, rise, verdict, reason)


def _end(system: _System, column: int, x: Floats, limit: float, bound: int) -> tuple[float, tuple[Floats, float]]:
    """Return how far a price may go towards a bound, and the fit there."""
    fit = system.fixed(column, float(bound)).solve(x)
    if fit[1] <= limit:
        return float(bound), fit
    inside, outside = float(x[column]), float(bound)
    fit = system.fixed(column, inside).solve(x)
    for _ in range(_HALVINGS):
        if abs(outside - inside) < 1e-3:
            break
        middle = (inside + outside) / 2
        attempt = system.fixed(column, middle).solve(x)
        if attempt[1] <= limit:
            inside, fit = middle, attempt
        else:
            outside = middle
    return inside, fit


def _loose(system: _System, column: int, price: Price, low: float, high: float) -> str:
    """Why a price is not identified; empty if it is."""
    if not np.abs(system.matrix[:, column]).max(initial=0.0):
        return UNCOUNTED
    if not price.span:
        return ""
    width = (high - low) / price.span
    if width >= SPAN:
        return "the rows allow all of its bounds" if width >= 1 - _NOISE else "the rows allow nearly all of its bounds"
    if width > SHARE and high > FACTOR * low:
        return "the rows allow values from nothing up" if low <= 0 else f"the ends differ by a factor {high / low:.1f}"
    return ""


def _along(prices: Sequence[Price], column: int, x: Floats, ends: tuple[Floats, Floats]) -> tuple[str, ...]:
    """The prices that move when one goes to the ends of its interval."""
    moved = np.max([np.abs(end - x) for end in ends], axis=0)
    others = [(moved[j] / p.span, p.name) for j, p in enumerate(prices) if j != column and p.span]
    return tuple(name for share, name in sorted(others, reverse=True) if share > _ALONG)


def _pairs(matrix: Floats, prices: Sequence[Price]) -> tuple[tuple[str, str, float], ...]:
    norms = np.linalg.norm(matrix, axis=0)
    pairs = []
    for i, j in combinations(np.flatnonzero(norms).tolist(), 2):
        cosine = float(matrix[:, i] @ matrix[:, j] / (norms[i] * norms[j]))
        if cosine > COSINE:
            pairs.append((prices[i].name, prices[j].name, min(cosine, 1.0)))
    return tuple(pairs)


def rounded(matrix: Floats, target: Floats, prices: Sequence[Price], fit: Identified) -> dict[str, int]:
    """Return whole ticks for all prices; those not identified keep the machine's value."""
    system = _system(matrix, target, prices)
    x = np.array([e.value for e in fit.estimates])
    whole = {j: p.value for j, p in enumerate(prices) if fit.estimates[j].verdict == "not identified"}
    for j, value in whole.items():
        system = system.fixed(j, value)
    weight = np.linalg.norm(matrix, axis=0)
    for j in sorted((j for j in range(len(prices)) if j not in whole), key=lambda j: -weight[j]):
        x, _ = system.solve(x)
        whole[j] = min(max(round(float(x[j])), prices[j].low), prices[j].high)
        system = system.fixed(j, whole[j])
    return {p.name: whole[j] for j, p in enumerate(prices)}

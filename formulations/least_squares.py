"""Least squares in a box, and Student's quantiles.

Model. Minimise F(x) = |A x - b|^2 over l <= x <= u, all real. F is convex, so x is a minimum if and only if
g = A^T (b - A x), half of the steepest descent of F, is 0 in every free column, <= 0 at a lower bound and >= 0 at an
upper one.

Method: active sets (Lawson and Hanson 1974, ch. 23, for two bounds). Columns at a bound rest, the others take the
least-squares step as far as the box allows; what reaches a bound rests there. Then the column whose g points furthest
into the box is freed. F falls from one set of free columns to the next, so no set comes twice and the method ends.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
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

    Raises
    ------
    ValueError
        If a lower bound is above the upper one, or a number is not finite.
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

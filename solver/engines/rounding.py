"""Bounds that solvers state as floats, as integers that hold."""

from __future__ import annotations

from math import ceil, isfinite, ulp

__all__ = ["least_whole"]

#: What an exact search over integers may be off by once its bound is a float.
_EXACT = 1e-6


def least_whole(bound: float, slack: float = _EXACT) -> int | None:
    """Return the least integer that is not below a bound less its slack; None if the bound is infinite.

    An integer objective is at least that. From 2**53 on floats are too coarse to hold every integer: two steps of them
    are taken off, for rounding while the solver scales and shifts.
    """
    if not isfinite(bound):
        return None
    if abs(bound) >= 2**53:
        return int(bound) - 2 * int(ulp(bound)) - ceil(slack - _EXACT)
    return ceil(bound - slack)

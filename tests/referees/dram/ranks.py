"""How far two measures put the same things in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import sqrt


def _sign(one: float, other: float) -> int:
    return (one > other) - (one < other)


def kendall(one: Sequence[float], other: Sequence[float]) -> float:
    """Kendall's tau-b: 1 for the same order; pairs that are alike in both count in neither. 0 if there are no pairs."""
    signs = [(_sign(*a), _sign(*b)) for a, b in zip(combinations(one, 2), combinations(other, 2), strict=True)]
    first, second = sum(a != 0 for a, _ in signs), sum(b != 0 for _, b in signs)
    return sum(a * b for a, b in signs) / sqrt(first * second) if first and second else 0.0


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rho: the correlation of ranks; those that are alike share the mean of theirs."""
    first, second = _ranks(one), _ranks(other)
    mean = Fraction(len(one) + 1, 2)
    both = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
    spread = sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second)
    return float(both) / sqrt(spread) if spread else 0.0


def _ranks(values: Sequence[float]) -> list[Fraction]:
    return [Fraction(2 * sum(a < b for a in values) + sum(a == b for a in values) + 1, 2) for b in values]


def swapped(one: Sequence[float], other: Sequence[float]) -> list[tuple[int, int]]:
    """Return the pairs, by number, that the two put in opposite orders."""
    pairs = combinations(range(len(one)), 2)
    return [(a, b) for a, b in pairs if _sign(one[a], one[b]) * _sign(other[a], other[b]) < 0]

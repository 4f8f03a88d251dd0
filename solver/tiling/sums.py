"""Sums of loop variables as texts: where pieces and windows begin and end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Sum:
    """Loop variables, each times a number, and a number."""

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    @classmethod
    def of(cls, name: str) -> Sum:
        """A variable."""
        return cls(((name, 1),))

    def __add__(self, other: Sum | int) -> Sum:
        """The sum of both; equal variables become one term."""
        if isinstance(other, int):
            return Sum(self.terms, self.constant + other)
        factors = Counter(dict(self.terms))
        factors.update(dict(other.terms))
        return Sum(tuple(factors.items()), self.constant + other.constant)

    def __mul__(self, factor: int) -> Sum:
        """All of it so many times."""
        return Sum(tuple((name, number * factor) for name, number in self.terms), self.constant * factor)

    def __str__(self) -> str:
        parts = [name if factor == 1 else f"{name}*{factor}" for name, factor in self.terms]
        parts += [str(self.constant)] if self.constant or not parts else []
        return " + ".join(parts).replace("+ -", "- ")


def least(sums: Iterable[Sum]) -> str:
    """The smallest of some sums; of those that are numbers only the smallest is named."""
    return _chosen("min", sums, largest=False)


def most(sums: Iterable[Sum]) -> str:
    """The largest of some sums, likewise."""
    return _chosen("max", sums, largest=True)


def _chosen(name: str, sums: Iterable[Sum], *, largest: bool) -> str:
    found = tuple(dict.fromkeys(sums))
    numbers = [one.constant for one in found if not one.terms]
    texts = [str(one) for one in found if one.terms]
    if numbers:
        number = str(max(numbers) if largest else min(numbers))
        texts = [number, *texts] if largest else [*texts, number]
    return texts[0] if len(texts) == 1 else f"{name}({', '.join(texts)})"

"""Integer bilinear tables: ``f(s, q) = sum_k a[k, s] * b[k, q]`` over spatial choices s and channel choices q.

Every count of a nest whose loops cut each dimension once is such a sum (`hwmodels.nest.price.core`), because a tile is
a box and the sum over all tiles of a product of per-axis quantities is the product of per-axis sums. The tables are
what the exhaustive search, CP-SAT and MILP all read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from instances.errors import InputError

Ints = NDArray[np.int64]
_EXACT_FLOAT = 2**53
_EXACT_INT = 2**62
#: Bytes of a vector up to which it is a key itself; longer ones are told apart by their sums first.
_SHORT = 2048


@dataclass(frozen=True)
class Bilinear:
    """Non-negative integer tables `a` of shape (K, S) and `b` of shape (K, Q)."""

    a: Ints
    b: Ints

    @classmethod
    def of(cls, terms: Iterable[tuple[Ints, Ints]], shape: tuple[int, int]) -> Bilinear:
        """Collect rank-1 terms, adding up those that share a factor and dropping zeros.

        Parameters
        ----------
        terms : iterable of (ndarray (S,), ndarray (Q,))
        shape : (S, Q)
        """
        rows = [(a, b) for b, a in _merged([(b, a) for a, b in terms])]
        rows = _merged(rows)
        if not rows:
            return cls(np.zeros((0, shape[0]), np.int64), np.zeros((0, shape[1]), np.int64))
        a, b = np.array([a for a, _ in rows]), np.array([b for _, b in rows])
        used = a.any(axis=1) & b.any(axis=1)
        return cls(a, b) if used.all() else cls(a[used], b[used])

    @property
    def terms(self) -> list[tuple[Ints, Ints]]:
        """The rank-1 terms."""
        return [(self.a[k], self.b[k]) for k in range(len(self.a))]

    @property
    def shape(self) -> tuple[int, int]:
        """(S, Q)."""
        return self.a.shape[1], self.b.shape[1]

    def times(self, factor: int) -> list[tuple[Ints, Ints]]:
        """The rank-1 terms of the scaled function."""
        return [(a * factor, b) for a, b in self.terms] if factor else []

    def take(self, s: Ints | None = None, q: Ints | None = None) -> Bilinear:
        """Restrict to some spatial and channel choices."""
        return Bilinear(self.a if s is None else self.a[:, s], self.b if q is None else self.b[:, q])

    def at(self, s: int, q: int) -> int:
        """Return f(s, q) in unbounded Python integers."""
        return sum(int(x) * int(y) for x, y in zip(self.a[:, s], self.b[:, q], strict=True))

    def ceiling(self) -> int:
        """Return a number that no f(s, q) exceeds, in unbounded Python integers."""
        if 0 in self.a.shape or 0 in self.b.shape:
            return 0
        return sum(int(x) * int(y) for x, y in zip(self.a.max(axis=1), self.b.max(axis=1), strict=True))

    def matrix(self) -> NDArray[np.float64] | Ints:
        """Return f as a matrix (S, Q), exact: float64 while every value is below 2**53, int64 above.

        Raises InputError if a value could exceed 2**62.
        """
        top = self.ceiling()
        if top < _EXACT_FLOAT:
            return self.a.T.astype(np.float64) @ self.b.astype(np.float64)
        if top >= _EXACT_INT:
            raise InputError(f"a price of up to {top:.3g} ticks or bytes exceeds 2**62: choose a larger tick_ps")
        return self.a.T @ self.b


def _merged(rows: list[tuple[Ints, Ints]]) -> list[tuple[Ints, Ints]]:
    """Add up the second factors of terms with the same first one."""
    found: list[tuple[Ints, list[Ints]]] = []
    by_key: dict[bytes | int, list[int]] = {}
    for shared, other in rows:
        short = shared.nbytes <= _SHORT
        alike = by_key.setdefault(shared.tobytes() if short else int(shared.sum()), [])
        at = next((k for k in alike if short or np.array_equal(found[k][0], shared)), None)
        if at is None:
            alike.append(len(found))
            found.append((shared, [other]))
        else:
            found[at][1].append(other)
    return [(shared, _total(others)) for shared, others in found]


def _total(vectors: list[Ints]) -> Ints:
    """Their sum, in one array."""
    if len(vectors) == 1:
        return vectors[0]
    total = vectors[0] + vectors[1]
    for vector in vectors[2:]:
        total += vector
    return total

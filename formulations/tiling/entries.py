"""Entries of chains: a step, or the number of a list of places where a loop cuts (`hwmodels.nest.price.pieces`)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np

from formulations.tiling.chains import even_steps
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import begins, code_of, how


def ends_of(row: Ints) -> tuple[int, ...]:
    """Where pieces end, ascending, each place once."""
    return tuple(int(x) for x in np.unique(row))


def entry(ends: tuple[int, ...]) -> int:
    """The entry of a chain for pieces with these ends: a step if they are equal steps."""
    step = ends[0]
    if all(b - a == step for a, b in pairwise(ends[:-1])) and (len(ends) == 1 or ends[-1] - ends[-2] <= step):
        return step
    return code_of(ends[:-1])


def even(extent: int, inner: Ints) -> Ints:
    """Of the steps allowed the smallest for every number of pieces, as chains (T, 1)."""
    return even_steps((extent,), inner)[:, None]


def sizes(entry: int, extent: int) -> list[int]:
    """The pieces that an entry of a chain makes."""
    step = how(entry)
    ends = (*range(step, extent, step), extent) if isinstance(step, int) else (*step, extent)
    return [b - a for a, b in zip((0, *ends[:-1]), ends, strict=True)]


def chain(groups: list[list[int]]) -> tuple[int, int]:
    """The entries of both loops."""
    inner = tuple(accumulate(size for group in groups for size in group))
    outer = tuple(accumulate(map(sum, groups)))
    step = max(b - a for a, b in zip((0, *inner[:-1]), inner, strict=True))
    steps = {x for a, b in pairwise((0, *outer)) for x in range(a + step, b, step)}
    return entry(outer), step if steps | set(outer) == set(inner) else code_of(inner[:-1])


def groups_of(extent: int, row: Ints) -> list[list[int]]:
    """The pieces that a chain (L,) makes, by those of the loops before the last."""
    outer, inner = (begins(extent, row[None, :end])[0][0] for end in (len(row) - 1, len(row)))
    places = np.append(np.flatnonzero(inner), extent)
    found: list[list[int]] = []
    for begin, size in zip(places[:-1].tolist(), np.diff(places).tolist(), strict=True):
        if outer[begin]:
            found.append([])
        found[-1].append(size)
    return found


def trim(groups: list[list[int]], surplus: int) -> None:
    """Take `surplus` outputs away, leaving at least one in every piece, from the last but first pieces on."""
    for group in reversed(groups):
        for j in range(len(group) - 1, -1, -1):
            taken = min(surplus, group[j] - 1)
            group[j], surplus = group[j] - taken, surplus - taken


def every_chain(extent: int, depth: int, inner: Ints) -> Ints:
    """All chains (T, depth) that cut an extent in pieces, the largest among `inner`: ``(depth + 1)**(extent - 1)``."""
    return _every(extent, depth, frozenset(inner.tolist()))


@lru_cache(maxsize=64)
def _every(extent: int, depth: int, largest: frozenset[int]) -> Ints:
    rows = []
    for pieces in _compositions(extent) if depth else ():
        if max(pieces) not in largest:
            continue
        if depth == 1:
            rows.append([entry(tuple(accumulate(pieces)))])
            continue
        for numbers in _compositions(len(pieces)):
            marks = (0, *accumulate(numbers))
            rows.append(list(chain([pieces[a:b] for a, b in pairwise(marks)])))
    return np.array(rows, np.int64).reshape(-1, depth) if depth else np.zeros((1, 0), np.int64)


def _compositions(number: int) -> Iterator[list[int]]:
    """All lists of positive integers with this sum."""
    if not number:
        yield []
    for first in range(1, number + 1):
        for rest in _compositions(number - first):
            yield [first, *rest]

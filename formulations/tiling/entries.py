"""Entries of chains: a step, or the number of a list of places where a loop cuts (`hwmodels.nest.price.pieces`)."""

from __future__ import annotations

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

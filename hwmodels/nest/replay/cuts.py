"""How the loops of a nest cut ranges, which of them fetch every operand, and along which IN slides (docs/nest.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hwmodels.schedule import Hold, Loop, Nest, Step
from instances.network.workload import DIMS, RELEVANT

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cuts:
    """How the loops cut one dimension's range: level 0 is the whole range, level k the pieces of its k-th loop."""

    start: tuple[Ints, ...]
    stop: tuple[Ints, ...]
    """`start`, `stop`: tuple of arrays. Per level, the half-open range of every piece, in ascending order."""
    first: tuple[Ints, ...]
    number: tuple[Ints, ...]
    """`first`, `number`: tuple of arrays. Per level but the last, the first child of every piece at the next level and
    the number of its children.
    """

    @property
    def leaves(self) -> int:
        """Number of pieces at the innermost level."""
        return len(self.start[-1])

    @property
    def lengths(self) -> Ints:
        """Sizes of the innermost pieces."""
        return self.stop[-1] - self.start[-1]

    def ancestor(self, level: int) -> Ints:
        """For every innermost piece, the piece at `level` that it lies in."""
        found = np.arange(len(self.start[level]), dtype=np.int64)
        for number in self.number[level:]:
            found = np.repeat(found, number)
        return found

    def partition(self) -> bool:
        """Whether the pieces of every level cover the whole range, each element once."""
        lo, hi = self.start[0][0], self.stop[0][0]
        return all(
            bool(a[0] == lo and b[-1] == hi and (a < b).all() and (a[1:] == b[:-1]).all())
            for a, b in zip(self.start, self.stop, strict=True)
        )


def cut_range(lo: int, hi: int, steps: Sequence[Step]) -> Cuts:
    """Cut [lo, hi) by the loops of one dimension, outermost first: in equal steps, or at places counted from `lo`."""
    starts, stops = [np.array([lo], np.int64)], [np.array([hi], np.int64)]
    firsts, numbers = [], []
    for step in steps:
        begins = [_begins(a, b, lo, step) for a, b in zip(starts[-1], stops[-1], strict=True)]
        ends = [np.append(x[1:], b) for x, b in zip(begins, stops[-1], strict=True)]
        number = np.array([len(x) for x in begins], np.int64)
        numbers.append(number)
        firsts.append(np.cumsum(number) - number)
        starts.append(np.concatenate(begins))
        stops.append(np.concatenate(ends))
    return Cuts(tuple(starts), tuple(stops), tuple(firsts), tuple(numbers))


def _begins(first: int, end: int, lo: int, step: Step) -> Ints:
    """Where the pieces of [first, end) begin."""
    if isinstance(step, int):
        return np.arange(first, end, step, dtype=np.int64)
    places = lo + np.array(step, np.int64)
    return np.append(first, places[(first < places) & (places < end)]).astype(np.int64)


@dataclass(frozen=True)
class Held:
    """How many loops over each dimension stand outside a Hold, and which of them fetch the operand."""

    levels: Mapping[str, int]
    """Loops over the relevant dimensions outside the Hold."""
    visits: Mapping[str, int]
    """Loops over every dimension down to the innermost one that the operand depends on and that cuts something."""
    slides: tuple[str, int] | None
    """(str, int) or None. The dimension of that loop, if it moves the window of IN, and the level of the pieces it
    makes.
    """
    lines: tuple[tuple[str, int], tuple[str, int]] | None
    """Pair of (str, int) or None. The loop next to it outside and that loop, if they move the window of IN over rows
    and columns.
    """


def loops_of(nest: Nest) -> list[tuple[str, int]]:
    """The loops, outermost first: dimension, and how many loops over it stand outside."""
    count = dict.fromkeys(DIMS, 0)
    order = []
    for item in nest.items:
        if isinstance(item, Loop):
            order.append((item.dim, count[item.dim]))
            count[item.dim] += 1
    return order


def row_of(lacks: str) -> str:
    """Name the inputs that are broadcast along some dimensions: ``IN``, or ``IN-rc`` if along rows and columns."""
    return f"IN-{lacks}" if lacks else "IN"


def operand_at(row: str) -> str:
    """Return the operand, named as its Hold, that a row of counts or tensors belongs to."""
    return {"PSUM": "OUT", "SLID": "IN"}.get(row, row.partition("-")[0])


def holds_of(nest: Nest, cuts: Mapping[str, Cuts], patterns: Sequence[str] = ("",)) -> dict[str, Held]:
    """Find the loops that fetch every operand; inputs by their `patterns` (`row_of`)."""
    found: dict[str, Held] = {}
    outside: list[str] = []
    for item in nest.items:
        if isinstance(item, Loop):
            outside.append(item.dim)
        elif isinstance(item, Hold):
            if item.operand == "IN":
                found |= {row_of(lacks): _held(outside, cuts, "IN", lacks) for lacks in patterns}
            else:
                found[item.operand] = _held(outside, cuts, item.operand, "")
    return found


def _held(outside: Sequence[str], cuts: Mapping[str, Cuts], operand: str, lacks: str) -> Held:
    """Find which of the loops outside its Hold fetch an operand (of an input one that is broadcast along `lacks`)."""
    mine = tuple(d for d in DIMS if d in RELEVANT[operand] and d not in lacks)
    last, slides, lines = 0, None, None
    real: list[tuple[str, int]] = []
    for k, dim in enumerate(outside):
        level = outside[: k + 1].count(dim)
        cuts_something = len(cuts[dim].start[level]) > len(cuts[dim].start[level - 1])
        real += [(dim, level)] if cuts_something else []
        if dim in mine and cuts_something:
            last, slides = k + 1, (dim, level) if dim in "rcij" else None
            over = {d for d, _ in real[-2:]}
            lines = (real[-2], real[-1]) if over == {"r", "c"} else None
    fetching = outside[:last]
    return Held(
        {d: outside.count(d) for d in mine}, {d: fetching.count(d) for d in DIMS if d in fetching}, slides, lines
    )  # fmt: skip

"""Which loops of a nest fetch every operand, and along which of them IN slides (docs/nest.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hwmodels.nest.replay_counts import relevant
from hwmodels.nest.replay_walk import Cuts
from hwmodels.schedule import Hold, Loop, Nest
from instances.workload import DIMS

__all__ = ["Held", "holds_of", "loops_of"]


@dataclass(frozen=True)
class Held:
    """How many loops over each dimension stand outside a Hold, and which of them fetch the operand.

    Attributes
    ----------
    levels : mapping
        Loops over the relevant dimensions outside the Hold.
    visits : mapping
        Loops over every dimension down to the innermost one that the operand depends on and that cuts something.
    slides : (str, int) or None
        The dimension of that loop, if it moves the window of IN, and the level of the pieces it makes.
    lines : pair of (str, int) or None
        The loop next to it outside and that loop, if they move the window of IN over rows and columns.
    """

    levels: Mapping[str, int]
    visits: Mapping[str, int]
    slides: tuple[str, int] | None
    lines: tuple[tuple[str, int], tuple[str, int]] | None


def loops_of(nest: Nest) -> list[tuple[str, int]]:
    """The loops, outermost first: dimension, and how many loops over it stand outside."""
    count = dict.fromkeys(DIMS, 0)
    order = []
    for item in nest.items:
        if isinstance(item, Loop):
            order.append((item.dim, count[item.dim]))
            count[item.dim] += 1
    return order


def holds_of(nest: Nest, cuts: Mapping[str, Cuts]) -> dict[str, Held]:
    """Find the loops that fetch every operand."""
    found = {}
    outside: list[str] = []
    for item in nest.items:
        if isinstance(item, Loop):
            outside.append(item.dim)
        elif isinstance(item, Hold):
            mine = relevant(item.operand)
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
            found[item.operand] = Held(
                {d: outside.count(d) for d in mine},
                {d: fetching.count(d) for d in DIMS if d in fetching},
                slides,
                lines,
            )
    return found

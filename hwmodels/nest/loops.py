"""How the loops of one nest cut the ranges of a core, piece by piece, and which of them fetch an operand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from hwmodels.nest.bilinear import Ints
from hwmodels.nest.skeleton import Core, Skeleton
from hwmodels.schedule import Step
from instances.workload import DIMS, depends

#: By dimension how the loops over it cut, outermost first.
Steps = Mapping[str, tuple[Step, ...]]
#: Loops, outermost first: dimension and level.
Loops = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Tree:
    """The pieces of one dimension, level by level: ranges, first child, number of children, position, sign."""

    start: list[Ints]
    stop: list[Ints]
    first: list[Ints]
    number: list[Ints]
    position: list[Ints]
    sign: list[Ints]

    @classmethod
    def of(cls, lo: int, hi: int, steps: tuple[Step, ...]) -> Tree:
        """Cut a core's range."""
        one = np.ones(1, np.int64)
        tree = cls([one * lo], [one * hi], [], [], [one * 0], [one])
        for step in steps:
            outer, stop = tree.start[-1], tree.stop[-1]
            if isinstance(step, int):
                number = -(-(stop - outer) // step)
            else:
                begin = np.union1d(outer, lo + np.array([x for x in step if x < hi - lo], np.int64))
                number = np.bincount(np.searchsorted(outer, begin, "right") - 1, minlength=len(outer))
            first = np.cumsum(number) - number
            position = np.arange(number.sum()) - np.repeat(first, number)
            if isinstance(step, int):
                begin = np.repeat(outer, number) + position * step
            tree.number.append(number)
            tree.first.append(first)
            tree.position.append(position)
            tree.sign.append(np.repeat(tree.sign[-1], number) * (1 - 2 * (position % 2)))
            tree.start.append(begin)
            tree.stop.append(np.append(begin[1:], hi))
        return tree

    def trips(self, level: int) -> int:
        """Pieces at a level."""
        return len(self.start[level])


def trees_of(core: Core, steps: Steps) -> dict[str, Tree]:
    """How the loops of a nest cut a core's ranges."""
    return {d: Tree.of(*core.range(d), steps[d]) for d in DIMS}


def numbered(dims: Iterable[str]) -> Loops:
    """Loops over these dimensions with their levels."""
    seen = dict.fromkeys(DIMS, -1)
    return tuple((d, seen[d]) for d in dims if not seen.update({d: seen[d] + 1}))


def fetching(order: Loops, trees: Mapping[str, Tree], operand: str, lacks: str = "") -> list[int]:
    """The numbers of the loops that cut something, down to the innermost one that the operand depends on.

    Of an input that is broadcast `lacks` has the dimensions that it does not depend on.
    """
    real = [j for j, (d, k) in enumerate(order) if trees[d].trips(k + 1) > trees[d].trips(k)]
    while real and order[real[-1]][0] not in depends(operand, lacks):
        real.pop()
    return real


def lined(skeleton: Skeleton, trees: Mapping[str, Tree], steps: Steps) -> tuple[Skeleton, Steps]:
    """The same nest with IN in lines as tables know it: directly inside the two loops that slide, no loop cuts nothing.

    The two loops are neighbours among those that cut, one over rows and one over columns; where no such two are, IN
    moves as without lines.
    """
    order = numbered(skeleton.order)
    slide = fetching(order[: skeleton.depth["IN"]], trees, "IN")[-2:]
    if {order[j][0] for j in slide} != {"r", "c"}:
        return skeleton, steps
    real = [j for j, (d, k) in enumerate(order) if trees[d].trips(k + 1) > trees[d].trips(k)]
    depth = {op: sum(j < end for j in real) for op, end in {**skeleton.depth, "IN": slide[1] + 1}.items()}
    kept = {d: tuple(steps[d][k] for dim, k in (order[j] for j in real) if dim == d) for d in DIMS}
    dims = tuple(order[j][0] for j in real)
    return Skeleton(skeleton.spatial, dims, depth, skeleton.buffers, line=True), kept

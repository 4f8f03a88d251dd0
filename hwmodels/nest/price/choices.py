"""Candidate chains of steps and the combinations of them that tables are made for; and the loops of one nest as trees.

A `Tree` says how the loops of a nest cut a range of a core, piece by piece; `fetching`, which of them fetch an operand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.pieces import how
from hwmodels.nest.price.skeleton import Core, Skeleton
from hwmodels.schedule import Step
from instances.network.workload import DIMS, depends

S_DIMS = ("b", "r", "c")
Q_DIMS = ("g", "m", "n")
#: Kernel dimensions are chosen together with the output dimension whose input axis they share.
AXIS = {**{d: d for d in (*S_DIMS, *Q_DIMS)}, "i": "r", "j": "c"}
#: The dimension of the kernel along rows and columns of the input.
KERNELS = {"r": "i", "c": "j"}
#: The key of a factor that depends on the chains of rows and of columns, an array (chains of r, chains of c).
JOINT = "rc"
Term = tuple[Ints, Ints]
Factors = Mapping[str, Ints]
#: Of which dimensions tables are lower bounds, and how (`Choices.ideal`); and how IN is held.
Ideals = Mapping[str, str] | None
#: Loops (dimension, level) along which IN may slide.
Slides = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Choices:
    """Candidate chains of steps, and the combinations of them that are looked at."""

    steps: Factors
    """Dict of str to ndarray (T, L). Per dimension the steps of its L loops, outermost first (entries below 0: lists of
    places, `hwmodels.nest.price.pieces`); dimensions of one axis (r and i, c and j) share T.
    """
    tiles: Factors
    """Dict of str to ndarray (T,). Per dimension the size of its innermost pieces."""
    index: Factors
    """Dict of str to ndarray (S,) or (Q,). Per axis (`S_DIMS`, `Q_DIMS`) which chain every choice uses; under "slide"
    which of the `slides`.
    """
    slides: Slides = ()
    """The loops (dimension, level) along which IN may slide, if that is a choice; else the
    skeleton's order tells.
    """
    log: dict[str, dict[bytes, Ints]] | None = None
    """If given, every vector (T,) that some table multiplies is noted here, axis by axis: a chain that is nowhere above
    another one can replace it (`formulations.tiling.space`).
    """
    bound: bool = False
    """Whether an index of -1 stands for the least value of every factor: tables are then lower bounds."""
    ideal: Ideals = None
    """Dict of str to {"steps", "counts", "numbers", "vectors", "sums", "listed", "exact"}, optional. If given, tables
    are lower bounds for all ways to cut (`hwmodels.nest.price.relaxed`): of dimensions under "steps" chains say only
    how large the largest pieces are, under "counts" only how many pieces there are (under "numbers" how many at least),
    under "vectors" both and the rounds of lanes (`hwmodels.nest.price.relaxed.packed`); under "sums" windows have the
    sizes of the chains, but fetch the least that
    so many can; under "listed" no way to cut is better than all chains (the kernel is whole where IN is held), under
    "exact" as they are, kernels in parts too if these are "exact"; other dimensions are candidates, whose fetches of
    nothing do not count. Under "IN" it says "lines" where IN is held so.
    """
    more: bool = False
    """Whether there may be more pieces than chains say, so that any may have one element."""

    @classmethod
    def product(cls, steps: Mapping[str, Ints], tiles: Mapping[str, Ints], slides: Slides = ()) -> Choices:
        """All combinations of the candidate chains, the last axis running fastest."""
        index: dict[str, Ints] = {}
        for dims in ((*S_DIMS, "slide"), Q_DIMS):
            sizes = [max(1, len(slides)) if d == "slide" else len(tiles[d]) for d in dims]
            grids = np.meshgrid(*(np.arange(n) for n in sizes), indexing="ij")
            index.update({d: g.ravel() for d, g in zip(dims, grids, strict=True)})
        return cls(steps, tiles, index, slides)

    @classmethod
    def logging(cls, steps: Factors, tiles: Factors, slides: Slides = (), ideal: Ideals = None) -> Choices:
        """No combination at all, but a log of what tables multiply."""
        index = dict.fromkeys((*S_DIMS, "slide", *Q_DIMS), np.zeros(0, np.int64))
        return cls(steps, tiles, index, slides, {d: {} for d in (*S_DIMS, *Q_DIMS)}, ideal=ideal)

    @classmethod
    def floor(cls, steps: Factors, tiles: Factors, slides: Slides, ideal: Ideals = None) -> Choices:
        """One choice for every chain of every axis with every slide, with the least factors of all other axes."""
        axes, ways = (*S_DIMS, *Q_DIMS), max(1, len(slides))
        counts = [len(tiles[d]) * ways for d in axes]
        ends = np.cumsum(counts)
        index = {d: np.full(int(ends[-1]), -1) for d in axes}
        for d, end, count in zip(axes, ends, counts, strict=True):
            index[d][end - count : end] = np.repeat(np.arange(count // ways), ways)
        index["slide"] = np.tile(np.arange(ways), int(ends[-1]) // ways)
        return cls(steps, tiles, index, slides, bound=True, ideal=ideal)

    def at(self, dim: str, vector: Ints) -> Ints:
        """Lay a vector (T,) of one dimension out over the choices."""
        self.note(dim, vector)
        index = self.index[AXIS[dim]]
        if len(vector) == 1:
            return np.full(len(index), vector[0])
        return (np.concatenate((vector, vector.min(keepdims=True))) if self.bound else vector)[index]

    def take(self, s: Ints | None = None, q: Ints | None = None) -> Choices:
        """Keep some of the combinations."""
        keep = {**dict.fromkeys((*S_DIMS, "slide"), s), **dict.fromkeys(Q_DIMS, q)}
        index = {d: i if (k := keep[d]) is None else i[k] for d, i in self.index.items()}
        return Choices(self.steps, self.tiles, index, self.slides, ideal=self.ideal)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of spatial and of channel choices."""
        return len(self.index["r"]), len(self.index["m"])

    def values(self, dim: str) -> Ints:
        """The innermost tile size of `dim` in every choice."""
        return self.tiles[dim][self.index[AXIS[dim]]]

    def chain(self, s: int, q: int) -> dict[str, tuple[Step, ...]]:
        """How the loops over every dimension cut it in spatial choice s with channel choice q."""
        at = {d: int(i[q if d in Q_DIMS else s]) for d, i in self.index.items()}
        return {d: tuple(how(int(t)) for t in self.steps[d][at[AXIS[d]]]) for d in DIMS}

    def slide(self, s: int) -> tuple[str, int] | None:
        """The loop that IN slides along in spatial choice s, if that is a choice."""
        return self.slides[int(self.index["slide"][s])] if self.slides else None

    def note(self, dim: str, vector: Ints) -> None:
        """Log a vector (T,) of one dimension that tables depend on."""
        if self.log is not None:
            self.log[AXIS[dim]][vector.tobytes()] = vector

    def _both(self, table: Ints) -> Ints:
        """Lay a matrix over the chains of r and of c out over the choices."""
        for number in range(table.shape[1]) if self.log is not None else ():
            self.note("r", table[:, number])
        for number in range(table.shape[0]) if self.log is not None else ():
            self.note("c", table[number])
        if self.bound:
            table = np.pad(table, ((0, 1), (0, 1)), mode="minimum")
        return table[self.index["r"], self.index["c"]]

    def spread(self, factors: Factors) -> Term:
        """Turn per-candidate vectors of some dimensions (and a matrix of r and c) into their products per choice."""
        joint: dict[str, Ints] = {}
        for d, vector in factors.items():
            if d != JOINT and (len(vector) > 1 or vector[0] != 1):
                joint[AXIS[d]] = joint[AXIS[d]] * vector if AXIS[d] in joint else vector
        sides = []
        for dims, size in zip((S_DIMS, Q_DIMS), self.shape, strict=True):
            side = self._both(factors[JOINT]) if JOINT in factors and dims is S_DIMS else None
            for d in dims:
                if d in joint:
                    part = self.at(d, joint[d])
                    side = part if side is None else side * part
            sides.append(np.ones(size, np.int64) if side is None else side)
        return sides[0], sides[1]


def times(factors: Factors, more: Factors) -> Factors:
    """Per-dimension products of two sets of factors."""
    result = dict(factors)
    for d, vector in more.items():
        result[d] = result[d] * vector if d in result else vector
    return result


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
            tree.grow(step)
        return tree

    def grow(self, step: Step) -> None:
        """Cut every piece of the last level again, at places counted from where the range begins."""
        start, stop = self.start[-1], self.stop[-1]
        if isinstance(step, int):
            number = -(-(stop - start) // step)
        else:
            places = self.start[0][0] + np.array(step, np.int64)
            before = np.searchsorted(places, start, "right")
            number = np.searchsorted(places, stop, "left") - before + 1
        first = np.cumsum(number) - number
        parent = np.repeat(np.arange(len(number)), number)
        position = np.arange(len(parent)) - first[parent]
        if isinstance(step, int):
            begin = start[parent] + position * step
        else:
            begin = np.append(places, 0)[before[parent] + position - 1]
            begin[first] = start
        end = np.append(begin[1:], 0)
        end[first + number - 1] = stop
        self.add(begin, end, number)

    def add(self, start: Ints, stop: Ints, number: Ints) -> None:
        """One more level: pieces, the children of one piece after those of another, so many of each."""
        first = np.cumsum(number) - number
        position = np.arange(number.sum()) - np.repeat(first, number)
        self.number.append(number)
        self.first.append(first)
        self.position.append(position)
        self.sign.append(np.repeat(self.sign[-1], number) * (1 - 2 * (position % 2)))
        self.start.append(start)
        self.stop.append(stop)

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
    return real[: fetched([order[j][0] for j in real], operand, lacks)]


def fetched(dims: Sequence[str], operand: str, lacks: str = "") -> int:
    """How many loops over these dimensions, which all cut something, fetch an operand: to the last it depends on."""
    needed = depends(operand, lacks)
    return max((number for number, d in enumerate(dims, 1) if d in needed), default=0)


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

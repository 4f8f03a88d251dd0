"""F7 hybrid: the best chain of groups, as a shortest path whose arcs are known as well as needed.

Sets
    cut points 0 to T between the stages; arcs: the groups [a, b) of the space, in one piece or in several, each with
    its options
Given
    least[a, b], a lower bound on all options of a group; exact for those that have been searched (`Pair`)
Variables
    the groups, each with an option and the programs of its pieces
Objective
    min sum of what the groups cost
Constraints
    (MERGE)  two groups in one piece do not follow each other: their stages are a group
Optimal means
    A piece begins and ends with empty banks, so costs add up. The shortest path by lower bounds is a lower bound; if
    all its arcs are exact, it is the optimum. Else they are made exact, one by one, and the path is looked for again.

With a cap on the other measure: `formulations.hybrid.front`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from formulations.banks.bounds import Point
from formulations.banks.graph import NEVER
from formulations.clock import Clock
from formulations.hybrid.costs import Program
from formulations.hybrid.options import Option, Pair
from formulations.hybrid.space import Cut


class Chosen(NamedTuple):
    """An option with the programs of its pieces: of every kind of piece each program, and how many run it."""

    cut: Cut
    option: Option
    programs: tuple[tuple[tuple[Program, int], ...], ...]

    @property
    def point(self) -> Point:
        """What it costs."""
        points = [(one.point, many) for kind in self.programs for one, many in kind]
        return Point(sum(p.bytes * n for p, n in points), sum(p.ticks * n for p, n in points))


Arcs = Mapping[Cut, int]


def forward(arcs: Arcs, stages: int) -> list[tuple[int, int]]:
    """The least cost up to every cut point: before any group, and before one in pieces."""
    least = [(0, 0), *[(NEVER, NEVER)] * stages]
    for cut in sorted(arcs):
        fresh, any_way = least[cut.end]
        cost = arcs[cut] + least[cut.begin][not cut.whole]
        least[cut.end] = (fresh if cut.whole else min(fresh, cost)), min(any_way, cost)
    return least


def backward(arcs: Arcs, stages: int) -> list[tuple[int, int]]:
    """The least cost from every cut point to the end: with any group first, and with one in pieces first."""
    least = [*[(NEVER, NEVER)] * stages, (0, 0)]
    for cut in sorted(arcs, reverse=True):
        any_way, pieces = least[cut.begin]
        cost = arcs[cut] + least[cut.end][cut.whole]
        least[cut.begin] = min(any_way, cost), (pieces if cut.whole else min(pieces, cost))
    return least


def path(arcs: Arcs, stages: int) -> list[Cut]:
    """The arcs of a shortest path; none if there is none."""
    least, at, whole, made = backward(arcs, stages), 0, False, list[Cut]()
    if least[0][0] >= NEVER:
        return []
    onward: dict[int, list[Cut]] = {}
    for cut in arcs:
        onward.setdefault(cut.begin, []).append(cut)
    while at < stages:
        cut = next(
            c for c in onward[at]
            if not (whole and c.whole) and arcs[c] + least[c.end][c.whole] == least[at][whole]
        )  # fmt: skip
        made.append(cut)
        at, whole = cut.end, cut.whole
    return made


class Chain:
    """The search for one measure; `bound` rises while it goes on."""

    def __init__(self, pairs: Mapping[Cut, Pair], stages: int, measure: str) -> None:
        self.pairs, self.stages, self.measure = pairs, stages, measure
        self.arcs = {cut: pair.least for cut, pair in pairs.items() if pair.least < NEVER}
        self.stuck: set[Cut] = set()

    @property
    def bound(self) -> int:
        """What no chain is below; `NEVER` if there is none."""
        return backward(self.arcs, self.stages)[0][0]

    def run(self, limit: Clock, below: int) -> list[Chosen] | None:
        """The best chain, None if none costs less than `below`, or the time is up: then `bound` is not exact."""
        while True:
            groups = path(self.arcs, self.stages)
            if not groups or sum(self.arcs[cut] for cut in groups) >= below:
                return None
            vague = [cut for cut in groups if self.pairs[cut].best is None and cut not in self.stuck]
            if not vague:
                return None if self.stuck & {*groups} else [self.chosen(cut) for cut in groups]
            for cut in vague:
                limit.tick()
                self.refine(cut, limit)

    def refine(self, cut: Cut, limit: Clock) -> None:
        """Know more of a group."""
        if not self.pairs[cut].refine(limit):
            self.stuck.add(cut)
        if self.pairs[cut].least < NEVER:
            self.arcs[cut] = self.pairs[cut].least
        else:
            del self.arcs[cut]

    def chosen(self, cut: Cut) -> Chosen:
        """The best option of a group that is exact."""
        option = self.pairs[cut].best
        assert option is not None
        return best_of(cut, option, self.measure)

    def so_far(self) -> list[Chosen] | None:
        """The best chain of options that are known exactly; None if there is none."""
        known = {cut: pair.incumbent for cut, pair in self.pairs.items() if pair.incumbent is not None}
        groups = path({cut: value for cut, (value, _) in known.items()}, self.stages)
        return [best_of(cut, known[cut][1], self.measure) for cut in groups] or None


def best_of(cut: Cut, option: Option, measure: str) -> Chosen:
    """An option with its best programs for a measure."""
    known = option.known(measure)
    kinds = []
    for piece, many in option.pieces.items():
        one = known[piece]
        assert one is not None
        kinds.append(((one.programs[0], many),))
    return Chosen(cut, option, tuple(kinds))

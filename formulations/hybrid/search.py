"""Hybrid: the best chain of groups, and all chains that no other beats in bytes and ticks.

**The best chain** (`Chain`) is a shortest path whose arcs are known as well as needed.

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

**With a cap** on the other measure, and for the front (`Fronts`): all chains that no other beats in both, within caps.

Sets
    options of groups, with all undominated programs of their pieces; labels of a cut point: bytes and ticks of a chain
    up to it, by whether its last group is in one piece
Optimal means
    Costs add up, so a label that another one beats in both measures is superfluous. Left out are options, and labels,
    that with the least they need before and behind them are above a cap: bounds as in `Chain`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from formulations.banks.network import NEVER, Point, lowest_by
from formulations.clock import Clock
from formulations.hybrid.bounds import Program
from formulations.hybrid.space import Cut, Option, Pair


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


class Mix(NamedTuple):
    """What pieces cost together, and which of their programs run how often."""

    point: Point
    uses: tuple[tuple[Program, int], ...]


def mixes(programs: Sequence[Program], many: int) -> list[Mix]:
    """What so many pieces that are alike may cost together: `found` numbers how often each program runs."""
    found = {(0,) * len(programs): Point(0, 0)}
    for _ in range(many if len(programs) > 1 else 0):
        more: dict[tuple[int, ...], Point] = {}
        for counts, point in found.items():
            for at, one in enumerate(programs):
                key = (*counts[:at], counts[at] + 1, *counts[at + 1 :])
                more[key] = plus(point, one.point)
        found = dict(lowest_by(more.items(), lambda item: item[1]))
    if len(programs) == 1:
        found = {(many,): Point(many * programs[0].point.bytes, many * programs[0].point.ticks)}
    return [
        Mix(point, tuple((p, n) for p, n in zip(programs, key, strict=True) if n)) for key, point in found.items()
    ]  # fmt: skip


def plus(one: Point, two: Point) -> Point:
    """Both together."""
    return Point(one.bytes + two.bytes, one.ticks + two.ticks)


def choices(cut: Cut, option: Option, limit: Clock) -> tuple[list[Chosen], bool]:
    """An option with all programs of its pieces that no other beats, and whether these are all."""
    known = option.known("front", limit)
    ready = [one for one in known.values() if one is not None]
    if len(ready) < len(option.pieces):
        return [], True
    totals: list[tuple[Point, tuple[tuple[tuple[Program, int], ...], ...]]] = [(Point(0, 0), ())]
    for one, many in zip(ready, option.pieces.values(), strict=True):
        kind = mixes(one.programs, many)
        joined = ((plus(point, mix.point), (*uses, mix.uses)) for point, uses in totals for mix in kind)
        totals = lowest_by(joined, lambda pair: pair[0])
    return [Chosen(cut, option, uses) for _, uses in totals], all(one.proven for one in ready)


class Label(NamedTuple):
    """A chain up to a cut point."""

    point: Point
    before: Label | None
    chosen: Chosen | None

    def chain(self) -> list[Chosen]:
        """Its groups in order."""
        made, label = list[Chosen](), self
        while label.before is not None and label.chosen is not None:
            made.append(label.chosen)
            label = label.before
        return made[::-1]


@dataclass
class Fronts:
    """The search, by the chains of both measures."""

    chains: Mapping[str, Chain]
    caps: Point
    limit: Clock
    proven: bool = True

    def run(self) -> list[list[Chosen]]:
        """The chains that no other beats within the caps, fewest bytes first; `proven` says whether these are all."""
        stages = self.chains["bytes"].stages
        found = self._within()
        #: By cut point the labels whose last group is in pieces, and those whose last group is whole.
        labels: list[tuple[list[Label], list[Label]]] = [([], []) for _ in range(stages + 1)]
        labels[0][0].append(Label(Point(0, 0), None, None))
        for begin in range(stages):
            for cut, chosen in sorted(found.get(begin, {}).items()):
                self.limit.tick()
                mine = labels[begin][0] if cut.whole else [*labels[begin][0], *labels[begin][1]]
                there = labels[cut.end][cut.whole]
                there += [Label(plus(label.point, one.point), label, one) for label in mine for one in chosen]
                fitting = (label for label in there if self._fits(label.point, cut))
                there[:] = lowest_by(fitting, lambda label: label.point)
        ends = [*labels[stages][0], *labels[stages][1]]
        return [label.chain() for label in lowest_by(ends, lambda label: label.point)]

    def _fits(self, point: Point, cut: Cut) -> bool:
        behind = [self._behind[name][cut.end][cut.whole] for name in ("bytes", "time")]
        return point.bytes + behind[0] <= self.caps.bytes and point.ticks + behind[1] <= self.caps.ticks

    def _within(self) -> dict[int, dict[Cut, list[Chosen]]]:
        """By first stage the groups with all options that may be part of a chain within the caps."""
        ahead = {name: forward(chain.arcs, chain.stages) for name, chain in self.chains.items()}
        self._behind = {name: backward(chain.arcs, chain.stages) for name, chain in self.chains.items()}
        found: dict[int, dict[Cut, list[Chosen]]] = {}
        for cut in set.intersection(*(set(chain.arcs) for chain in self.chains.values())):
            spare = Point(*(
                cap - ahead[name][cut.begin][not cut.whole] - self._behind[name][cut.end][cut.whole]
                for name, cap in zip(("bytes", "time"), self.caps, strict=True)
            ))  # fmt: skip
            for option in self._options(cut, spare):
                self.limit.tick()
                chosen, proven = choices(cut, option, self.limit)
                self.proven &= proven
                found.setdefault(cut.begin, {}).setdefault(cut, []).extend(chosen)
        return found

    def _options(self, cut: Cut, spare: Point) -> Iterator[Option]:
        """The options of a group that do not cost more than there is to spare, by bounds that take little."""
        pair = self.chains["bytes"].pairs[cut]
        if any(self.chains[name].arcs[cut] > most for name, most in zip(("bytes", "time"), spare, strict=True)):
            return
        rough = self.chains["time"].pairs[cut].every()
        for grid, (option, least) in pair.every().items():
            self.limit.tick()
            if least > spare.bytes or rough[grid][1] > spare.ticks:
                continue
            floor = option.floor("time")
            if floor.bytes <= spare.bytes and floor.ticks <= spare.ticks:
                point, _ = option.bound("bytes", self.limit)
                if point.bytes <= spare.bytes:
                    yield option

"""Time where transfers overlap: plans by following them, and bounds of all orders together.

Rows are bounds alone (`Terms`), so no order is settled by its search: the time of the best rows may be above. `hunted`
looks for plans: descents by a guess in which queues take a little longer than they are busy, as full ones make others
wait; the best are followed (`hwmodels.levels.pipeline`) and mended by their true time. `AllOrders` has the bound: the
largest of bounds by queue, of orders of those Stays alone that it feeds (`orders.fed`), and the least of all orders.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from formulations.clock import Clock
from formulations.levels.orders import fed
from formulations.levels.pieces import CLOSE, OneOrder, Space
from formulations.levels.search import NOTHING, Judge, Searched
from formulations.problem import Goal, Model, Piece, Unable
from hwmodels.levels.pipeline import overlapped
from hwmodels.levels.schedule import LevelNest

#: Orders that are looked at before the best of them are closely; nests that come close to the rows of an order.
_SOME, _FOLLOWED = 48, 40
#: How much longer queues are taken to be; steps of nests that are followed, at most; chains of a dimension that are
#: tried where a nest is mended.
_STRAINS, _STEPS, _TRIED, _PAIRS = (1.25, 1.0, 1.1, 1.5, 2.0), 50_000, 6, 40_000


class _Enough(Exception):
    """As many nests of an order were followed as are worth it."""


class _Hunt:
    """A search for plans by following nests."""

    def __init__(self, part: Space, goal: Goal) -> None:
        self.part, self.goal = part, goal
        self.best: tuple[int, LevelNest | None] = (NOTHING, None)
        self.known: dict[LevelNest, int] = {}

    @property
    def ended(self) -> bool:
        """Whether there is no time left, or nothing to gain."""
        over = self.goal.clock.over or self.best[0] <= self.part.least(self.goal.measure)
        return self.best[1] is not None and over

    def cost(self, one: OneOrder, searched: Searched, picks: tuple[int, ...]) -> int:
        """What picks truly cost; `NOTHING` if they do not keep to the caps, or have too many steps to follow."""
        nest = searched.terms.nest(picks)
        if nest not in self.known:
            self.known[nest] = NOTHING
            if self.part.steps(nest) <= _STEPS:
                self.known[nest] = self._true(nest)
        value = self.known[nest]
        if value < self.best[0]:
            self.best = value, nest
            self.part.latest = one.order, nest
        if value < one.value:
            one.value, one.nest = value, nest
        return value

    def _true(self, nest: LevelNest) -> int:
        """The measure of a nest that fits; `NOTHING` if it does not keep to the caps."""
        if self.goal.measure == "time" and not self.goal.caps:
            return overlapped(self.part.layer, self.part.machine, nest)
        measures = self.part.cost(nest).measures
        kept = all(measures[name] <= most for name, most in self.goal.caps.items())
        return measures[self.goal.measure] if kept else NOTHING

    def judge(self, one: OneOrder) -> Judge:
        """What picks truly cost; raises _Enough when so many were followed."""
        left = iter(range(_FOLLOWED))

        def cost(picks: tuple[int, ...]) -> int:
            if next(left, None) is None:
                raise _Enough
            return self.cost(one, one.searched, picks)

        return cost

    def descents(self, one: OneOrder, pairs: int, strains: Iterable[float]) -> None:
        """Descend by guesses, follow what is found, and mend the best of it."""
        searched, found = one.made("some"), list[tuple[int, tuple[int, ...]]]()
        for strain in strains:
            if self.ended:
                break
            if searched.terms.guess is not None:
                searched.terms.guess.strain = strain
            made = searched.descend(pairs)
            if made is not None:
                found.append((self.cost(one, searched, made[1]), made[1]))
        if pairs and found:
            self.mend(one, searched, *min(found))

    def refine(self, one: OneOrder) -> None:
        """Mend the nest of an order by chains that differ from its own in one step, until nothing is gained."""
        before = NOTHING
        while one.value < before and one.nest is not None:
            before, searched = one.value, one.made("some")
            picks = searched.terms.picks(one.nest)
            if picks is not None:
                self.mend(one, searched, one.value, tuple(picks), 3 * _TRIED)

    def mend(self, one: OneOrder, searched: Searched, value: int, picks: tuple[int, ...], tried: int = _TRIED) -> None:
        """Exchange the chains of one dimension after the other, those with the best guess tried, by the true cost."""
        gained = value < NOTHING
        while gained:
            gained = False
            for a in range(len(picks)):
                for pick in searched.ranked(picks, a)[:tried]:
                    if self.ended:
                        return
                    other = (*picks[:a], pick, *picks[a + 1 :])
                    cost = self.cost(one, searched, other)
                    if cost < value:
                        value, picks, gained = cost, other, True


def hunted(part: Space, goal: Goal) -> LevelNest | None:
    """The best nest that is found: orders by one descent, some at a time, the best of them closely."""
    hunt, pieces, closely = _Hunt(part, goal), part.ordered(goal), set[int]()
    number = -(-len(pieces) // _SOME)
    for k in range(number):
        for one in pieces[k::number]:
            if not hunt.ended:
                hunt.descents(one, 0, _STRAINS[:1])
        best = sorted((one for one in pieces if id(one) not in closely), key=lambda one: one.value)
        for one in best[: -(-CLOSE // number)]:
            if not hunt.ended:
                closely.add(id(one))
                hunt.descents(one, _PAIRS, _STRAINS)
    pieces.sort(key=lambda one: one.value)
    for one in pieces[:CLOSE]:
        hunt.refine(one)
    return hunt.best[1]


class AllOrders(Piece[LevelNest]):
    """The nests of all orders."""

    def __init__(self, part: Space) -> None:
        self.part = part
        self.bound = 0

    def floor(self, goal: Goal) -> int:
        """What takes no search, and what was found."""
        return max(self.part.least(goal.measure), self.bound)

    def cp_sat(self, goal: Goal) -> Model[LevelNest] | None:
        """There is none."""
        raise Unable("transfers that overlap have no CP-SAT model: use --engine search")

    def exact(self, goal: Goal, engine: str) -> tuple[LevelNest | None, int | None]:
        """Bounds by queue, then of all orders, as far as the time lasts; plans are those that were found before."""
        goal.clock.tick()
        part, clock = self.part, goal.clock
        assert part.machine.levels is not None
        for level in part.machine.levels.memories[:-1]:
            some = [OneOrder(part, order, goal) for order in fed(part.orders, level.name)]
            if len({name for order in part.orders for name in order.sources}) == 1:
                break
            bound = self._least(some, goal.below, clock)
            if some and bound is None:
                return None, None
            self.bound = max(self.bound, bound or 0)
        nest, below = self._followed(goal, clock.half())
        bound = self._least(part.ordered(goal), below, clock)
        if bound is None and nest is not None:
            bound = below
        return nest, None if bound is None else max(bound, self.floor(goal))

    def _followed(self, goal: Goal, clock: Clock) -> tuple[LevelNest | None, int | None]:
        """A nest below the goal of those that come close to the rows of their order, and what it costs."""
        hunt = _Hunt(self.part, replace(goal, clock=clock))
        hunt.best = NOTHING if goal.below is None else goal.below, None
        for one in self.part.ordered(goal):
            judge, below = hunt.judge(one), hunt.best[0] if hunt.best[0] < NOTHING else None
            if clock.over or (below is not None and below <= self.floor(goal)):
                break
            with suppress(_Enough):
                one.searched.best(below, clock, judge)
        return hunt.best[1], hunt.best[0] if hunt.best[1] is not None else goal.below

    def _least(self, orders: Iterable[OneOrder], below: int | None, clock: Clock) -> int | None:
        """A bound of some orders together; None if nothing is below."""
        found = list[int]()
        for one in orders:
            if below is not None and below <= self.bound:
                return self.bound if found else None
            if clock.over:
                return min([*found, self.bound])
            picks, bound = one.bounded(below, clock)
            if bound is not None:
                found.append(bound)
                below = bound if picks is not None and (below is None or bound < below) else below
        return min(found, default=None)

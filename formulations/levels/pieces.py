"""The nests of one order as a piece: branch and bound over chains, or CP-SAT."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

from formulations.clock import Clock
from formulations.levels.axes import How, complete
from formulations.levels.orders import Order
from formulations.levels.search import Searched
from formulations.levels.terms import Terms
from formulations.problem import Goal, Model, Piece, Unable
from hwmodels.levels.price import Cost
from hwmodels.levels.schedule import LevelNest, Stay
from instances.machine.machine import Machine
from instances.network.workload import Layer

#: Orders that `descend` looks at closely, and pairs of chains it compares there at a time.
CLOSE, PAIRS = 12, 300_000


class Space(Protocol):
    """What orders ask of the part that they are of."""

    layer: Layer
    machine: Machine
    residents: frozenset[Stay]
    latest: tuple[Order, LevelNest] | None

    @property
    def orders(self) -> tuple[Order, ...]:
        """All of them."""

    def ordered(self, goal: Goal) -> list[OneOrder]:
        """As pieces for a goal."""

    def least(self, measure: str) -> int:
        """A bound that takes no search."""

    def cost(self, schedule: LevelNest) -> Cost:
        """What a nest costs."""

    def steps(self, schedule: LevelNest) -> int:
        """How many steps it has at most."""


class OneOrder(Piece[LevelNest]):
    """The nests of one order."""

    def __init__(self, part: Space, order: Order, goal: Goal) -> None:
        self.part, self.order, self.asked = part, order, goal
        self.value = 1 << 62
        """The best plan that a descent has found."""
        self.nest: LevelNest | None = None
        """Of a time with transfers that overlap the nest of that value."""
        self.measures = tuple(dict.fromkeys((goal.measure, *goal.caps)))
        self._searched: Searched | None = None

    @property
    def searched(self) -> Searched:
        """The search of the goal that the piece was made for, built when it is needed."""
        if self._searched is None:
            self._searched = self.made("")
        return self._searched

    def made(self, how: How) -> Searched:
        """A search over some chains, with those beside a nest that is known."""
        part, near = self.part, self.nest
        if near is None and part.latest is not None and part.latest[0] == self.order:
            near = part.latest[1]
        terms = Terms(part.layer, part.machine, self.order, self.measures, residents=part.residents, how=how, near=near)
        return Searched(terms, self.asked.measure, self.asked.caps)

    def floor(self, goal: Goal) -> int:
        """What holds for all orders; of one that was looked at, its least factors."""
        least = self.part.least(goal.measure)
        own = None if self._searched is None or not self.complete else self._searched.floor()
        return least if own is None else max(least, own)

    @cached_property
    def complete(self) -> bool:
        """Whether all chains are listed."""
        return all(complete(self.part.layer, one.dim, one.layout) for one in self.searched.terms.axes)

    def exact(self, goal: Goal, engine: str) -> tuple[LevelNest | None, int | None]:
        """Branch and bound; where chains are left out, once more over cells of them for the bound."""
        goal.clock.tick()
        picks, bound = self.bounded(goal.below, goal.clock)
        found = None if picks is None else self.searched.terms.nest(picks)
        self.part.latest = self.part.latest if found is None else (self.order, found)
        goal.stats["boxes"] = self.searched.nodes
        return found, None if bound is None else max(bound, self.part.least(goal.measure))

    def bounded(self, below: int | None, clock: Clock) -> tuple[tuple[int, ...] | None, int | None]:
        """Picks of the least value below a limit, if there are any, and a bound; None if nothing is below."""
        picks, bound = self.searched.best(below, clock)
        if not self.complete:
            below = below if picks is None or bound is None else bound
            _, bound = self.made("cells").best(below, clock)
            if bound is None and picks is not None:
                bound = below
        return picks, bound

    def cp_sat(self, goal: Goal) -> Model[LevelNest] | None:
        """Chains by number, products step by step."""
        from formulations.levels.cp_sat import cp_model_of  # late: solvers are slow to import

        if not self.complete:
            raise Unable("a dimension has too many chains to list: use --engine search")
        made = cp_model_of(self.searched, goal.below)
        return (
            None
            if made is None
            else Model(made.model, lambda solver: self.searched.terms.nest(made.chosen(solver)), base=made.constant)
        )

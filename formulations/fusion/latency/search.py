"""The search for the least latency: paths of options (`formulations.fusion.latency.paths`), of which some are laid out.

The labels of paths are fluid: a load may be done in parts. So the best paths by labels, for blocks of several sizes,
are priced by their timelines, and the best of these is the plan. The bound is that of
`formulations.fusion.latency.bounds`; where a plan meets it, it is optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from formulations.fusion.arcs import Groups
from formulations.fusion.latency.bounds import Floors, promising
from formulations.fusion.latency.options import Alone, Key, Options, Runs
from formulations.fusion.latency.paths import Paths
from formulations.fusion.latency.timelines import MOST_BYTES, sizes_of
from formulations.fusion.space import Arc
from formulations.problem import Goal, Model, Piece, Unable

#: The most layers of a group, at first and in the end; labels of a state, and paths by labels that are laid out.
SHORT, LONGEST, LABELS, TRIED = (1, 3), 10, 100, 4
#: Blocks of other sizes are tried after so many options at the most.
MANY = 20_000


class Fastest(Piece[Runs]):
    """All plans of groups in strips of whole rows, maps on chip as a whole or not at all.

    Parameters
    ----------
    groups : Groups
    alone : Alone
        How layers run that no strips suit.
    nests : sequence of Arc
        What layers by themselves load at least.
    time_of : function of a schedule
        Its latency in ticks.
    least : int
        What no plan is below, by counting alone.
    """

    def __init__(
        self, groups: Groups, alone: Alone, nests: Sequence[Arc], time_of: Callable[[Runs], int], least: int
    ) -> None:
        self.groups, self.alone, self.nests, self.time_of = groups, alone, nests, time_of
        self.least: int = least
        self.best: Runs | None = None

    def floor(self, goal: Goal) -> int:
        """What is proven; of other measures nothing."""
        return self.least if goal.measure == "time" else 0

    def so_far(self) -> Runs | None:
        """The best plan so far."""
        return self.best

    def cp_sat(self, goal: Goal) -> Model[Runs] | None:
        """Raise Unable."""
        raise Unable("engine cp-sat does not minimise time of fusion; engine dynamic does")

    def milp(self, goal: Goal) -> Model[Runs] | None:
        """Raise Unable."""
        raise Unable("engine milp does not minimise time of fusion; engine dynamic does")

    def exact(self, goal: Goal, engine: str) -> tuple[Runs | None, int | None]:
        """The best path that was laid out, and the bound; raises TimeUp, and Unable for other measures."""
        if goal.measure != "time":
            raise Unable(f"dynamic programming does not minimise {goal.measure} with a cap on time")
        first = Options(self.groups, MOST_BYTES, self.alone, in_order=True)
        for few in SHORT:
            self._looked(first, few, goal)
        allowed, looked = self._bounded(goal, first.suited), 0
        for in_order in (True, False):
            for most in sorted({MOST_BYTES, *sizes_of(first.room)}, reverse=True):
                if looked <= MANY:
                    some = Options(self.groups, most, self.alone, allowed, in_order=in_order, suited=first.suited)
                    looked += self._looked(some, LONGEST, goal)
        below = goal.below is None or (self.best is not None and self.time_of(self.best) < goal.below)
        return self.best if below else None, self.least

    def _looked(self, options: Options, longest: int, goal: Goal) -> int:
        """Lay the best paths of groups of so many layers out; return how many options there were."""
        paths = Paths(options, goal.clock, longest, LABELS)
        for _, end in paths.ends()[:TRIED]:
            goal.clock.tick()
            self._try(options.runs(paths.path(end)))
        goal.stats["options"] = int(str(goal.stats.get("options", 0))) + paths.looked
        return paths.looked

    def _bounded(self, goal: Goal, suited: Callable[[int], bool]) -> set[Key]:
        """Find the bound; return the strips that may be part of a better plan."""
        paths = Paths(Floors(self.groups, self.nests, suited), goal.clock, LONGEST)
        self.least = max(self.least, *(value for value, _ in paths.ends()[:1]))
        return promising(paths, 2**62 if self.best is None else self.time_of(self.best))

    def _try(self, runs: Runs) -> None:
        """Keep a plan if it is the best so far."""
        if self.best is None or self.time_of(runs) < self.time_of(self.best):
            self.best = runs

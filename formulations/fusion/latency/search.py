"""The search for the least latency: paths of options (`formulations.fusion.latency.paths`), of which some are laid out.

The labels of paths are fluid: a load may be done in parts. So the best path by labels, for blocks of several sizes, is
laid out as a timeline; ways that take longer there are charged with it, the labels are found again, and so on. The best
timeline is that of the plan. The bound is that of
`formulations.fusion.latency.bounds`; where a plan meets it, it is optimal.

Engine cp-sat then decides among all options of small networks, with all orders (`formulations.fusion.latency.whole`);
of large ones the order of the best plan, window by window (`formulations.prefetch.windows`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain, pairwise, product
from math import inf
from typing import Any, NamedTuple

import numpy as np

from formulations.clock import Clock
from formulations.fusion.arcs import Groups
from formulations.fusion.latency.bounds import Floors, promising, through
from formulations.fusion.latency.options import Alone, Key, Options, Passed, Way
from formulations.fusion.latency.paths import Paths
from formulations.fusion.latency.timelines import Laid
from formulations.fusion.latency.whole import MOST_OPTIONS, Candidate, PartOf, Whole, sizes_of, too_many
from formulations.fusion.schedule import Runs
from formulations.fusion.space import Arc
from formulations.fusion.steps import joined
from formulations.prefetch.guards import Draft
from formulations.prefetch.windows import window, windows
from formulations.problem import SOLVERS, Goal, Model, Piece, Report, Steps, Unable
from hwmodels.schedule import Queue

#: The most layers of a group, at first and in the end; labels of a state, and paths by labels that are laid out.
SHORT, LONGEST, LABELS, TRIED = (1, 3), 10, 100, 16
#: How far above the bound plans are looked for at first, as parts of it: strips on paths with such a bound alone.
SLACK = 1 / 32, 1 / 8, 1 / 2, inf
#: Of more strips than this.
MANY_STRIPS = 1_000
#: Paths one after the other that are no better than the best one, until no more are laid out.
PATIENCE = 8
#: The best order is looked for where a first one takes no more than so many times the best plan.
CLOSE = 1.05
#: Paths are laid out if their labels say no more than so many times the best plan: a timeline may take less. Of many
#: options, and of few.
NEAR, FAR = 1.0, 1.5
#: Plans of other kinds are tried where a gap of more than this is left, for so many seconds at the most.
MOST_GAP, SECONDS = 0.03, 60
#: Paths that are laid out for a front at the most.
MOST_BETWEEN = 40
#: Blocks of further sizes, and plans of other kinds, are tried after so many options at the most.
MANY = 10_000
#: Steps of a window.
STEPS = 50
#: Ways of groups of a MILP model at the most.
MOST_WAYS = 3_000


class Looked(NamedTuple):
    """Paths of options, and by way how many ticks it takes longer in a timeline than its labels say."""

    paths: Paths
    late: dict[Way, int]

    def best(self) -> tuple[list[Passed], int] | None:
        """The best path by its labels, and what these say; None if there is none."""
        value, end = min(self.paths.ends(), default=(0, None))
        return None if end is None else (self.paths.path(end), value)

    def charge(self, path: Sequence[Passed], laid: Laid) -> None:
        """Charge the ways of a path that take longer in its timeline."""
        labels = self.paths.clocks(path, self.late)
        more = np.diff([end - label for end, label in zip(laid.ends, labels, strict=True)], prepend=0).tolist()
        more[-1] = max(0, more[-1]) + laid.ticks - laid.ends[-1]
        for (way, *_), ticks in zip(path, more, strict=True):
            self.late[way] = self.late.get(way, 0) + max(0, ticks)


class Fastest(Piece[Runs]):
    """All plans of groups in strips of whole rows, maps on chip as a whole or not at all.

    Parameters
    ----------
    groups : Groups
    alone : Alone
        How layers run that no strips suit.
    nests : sequence of Arc
        What layers by themselves load at least.
    laid, about : function of a schedule
        Its timeline; a first one, which is as long or longer.
    least : int
        What no plan is below, by counting alone.
    floors : function of a goal
        What no plan is below of other measures.
    measured : function of a schedule
        Its measures.
    others : function of a clock
        Plans of other kinds, which are tried where a gap is left and few options were looked at, or with a cap; None if
        there is no plan of the fewest bytes.
    part : function of a run
        Its steps and transfers.
    resized : function of a schedule and a clock
        With sizes of transfers run by run.
    """

    def __init__(
        self, groups: Groups, alone: Alone, nests: Sequence[Arc], laid: Callable[[Runs], Laid],
        about: Callable[[Runs], Laid], least: int,
        others: Callable[[Clock], Sequence[Runs] | None], floors: Callable[[Goal], int],
        measured: Callable[[Runs], Mapping[str, int]], part: PartOf, resized: Callable[[Runs, Clock], Runs],
    ) -> None:  # fmt: skip
        self.groups, self.alone, self.nests, self.laid, self.others = groups, alone, nests, laid, others
        self.about, self.least, self.counted, self.floors, self.measured = about, least, least, floors, measured
        self.best: Runs | None = None
        self.part, self.resized = part, resized
        self._widest = 0
        """The most options of one size that were looked at."""
        self._last: tuple[set[Key], Callable[[int], bool]] | None = None
        """Strips that may be part of a better plan, and what layers strips suit, of the last search."""

    def floor(self, goal: Goal) -> int:
        """What is proven; of other measures what can be counted."""
        return self.least if goal.measure == "time" else self.floors(goal)

    def so_far(self) -> Runs | None:
        """The best plan so far."""
        return self.best

    def steps(self, goal: Goal, engine: str) -> Steps[Runs]:
        """Of cp-sat all options of a small network, with a model for the orders of each path; of milp a bound."""
        if engine not in SOLVERS:
            return super().steps(goal, engine)
        return self._whole(goal) if engine == "cp-sat" else self._relaxed(goal)

    def _whole(self, goal: Goal) -> Steps[Runs]:
        """Begin with the plan of dynamic programming, and its bound; raises Unable for networks that are too large."""
        found = self.exact(replace(goal, clock=goal.clock.half()), "dynamic")
        if found == (None, None) or self._last is None:
            return found
        demands, (allowed, suited) = self.groups.demands.order, self._last
        blocks = dict.fromkeys((demands.largest, *(weights for weights, _ in sizes_of(self.groups, demands))))
        every = [Options(self.groups, most, self.alone, allowed, suited=suited) for most in blocks]
        try:
            if self._widest > MOST_OPTIONS:
                raise Unable(too_many(self._widest))
            whole, open_ = Whole(every, demands, self.part, goal.clock, LONGEST), inf
        except Unable as error:
            goal.stats["note"] = str(error)
            return (yield from self._windows(goal))
        goal.stats.update(options=whole.looked, paths=0)
        for looked, made in enumerate(whole.candidates(lambda: self._limit(goal)), 1):
            goal.stats.update(paths=looked, least_of_options=int(min(open_, max(self.least, whole.left))))
            if (model := self._model(whole, made, goal)) is not None:
                told = yield model
                open_ = min(open_, self._told(told, made, goal))
                if goal.stats.get("interrupted"):
                    break
        else:
            least = min(open_, self._limit(goal))
            goal.stats["least_of_options"] = None if least == inf else int(least)
        return self.best if self._ticks <= self._limit(goal) else None, self.least

    def _windows(self, goal: Goal) -> Steps[Runs]:
        """The order of the best plan, window by window, until none is better."""
        best, demands = self.best, self.groups.demands.order
        queue = None if best is None else self.laid(best).queue
        better = best is not None and queue is not None and not demands.fixed
        while better and best is not None and queue is not None and not goal.stats.get("interrupted"):
            better = False
            draft = Draft(joined(self.laid(best).parts, demands.groups), self._room)
            for first in windows(draft, STEPS):
                goal.clock.tick()
                if (made := self._window(best, queue, draft, first)) is not None:
                    goal.stats["windows"] = int(str(goal.stats.get("windows", 0))) + 1
                    found = (yield made).schedule
                    if found is not None and found.queue is not None:
                        queue, better = found.queue, True
                        self._try(found, goal)
        return self.best if self._ticks <= self._limit(goal) else None, self.least

    def _window(self, runs: Runs, queue: Queue, draft: Draft, first: int) -> Model[Runs] | None:
        """The model of a window of an order; None if only one transfer is free."""
        when = draft.close.copy()
        for k, at in zip(queue.order, queue.when, strict=True):
            when[k] = at
        now = window(draft, [*queue.order], when, first, STEPS)
        if len(now.free) < 2:
            return None
        from formulations.prefetch.window_cp_sat import build  # late: solvers are slow to import

        model = build(now)

        def decode(solution: Any) -> Runs | None:
            chosen = model.decode(solution)
            if chosen is None:
                return None
            order, found = chosen
            return replace(runs, queue=replace(queue, order=tuple(order), when=tuple(found[k] for k in order)))

        return Model(model.model, decode, parameters=model.parameters, own_bound=True)

    @property
    def _room(self) -> int:
        return self.groups.machine.bank_count * self.groups.machine.bank_bytes

    def _limit(self, goal: Goal) -> float:
        """Only plans with less are of interest."""
        return min(inf if goal.below is None else goal.below, self._ticks)

    def _model(self, whole: Whole, made: Candidate, goal: Goal) -> Model[Runs] | None:
        """The model of the orders of a path; None if one that is found quickly is as good as any, or no better."""
        runs, demands = whole.options.runs(made.path), self.groups.demands.order
        if not self._keeps(runs, goal):
            return None
        order, when, ticks = whole.quick(made)
        if ticks < self._limit(goal):
            self._try(replace(runs, queue=made.queue(order, when)), goal)
        if not demands.ahead or made.least >= self._limit(goal):
            return None
        from formulations.prefetch.cp_sat import ordered  # late: solvers are slow to import

        model = ordered(made.timeline, whole.room, int(self._limit(goal)), made.least, due=demands.due)

        def decode(solution: Any) -> Runs | None:
            chosen = model.decode(solution)
            return None if chosen is None else replace(runs, queue=made.queue(*chosen))

        return Model(model.model, decode, own_bound=True)

    def _told(self, told: Report[Runs], made: Candidate, goal: Goal) -> float:
        """Keep a plan that was found; return what no order of the path that is better is below."""
        if told.schedule is not None:
            self._try(told.schedule, goal)
        return inf if told.bound is None else max(told.bound, made.least)

    def _relaxed(self, goal: Goal) -> Steps[Runs]:
        """The plan of dynamic programming, and a bound by clocks and transfers; raises Unable for too many ways."""
        found = self.exact(replace(goal, clock=goal.clock.half()), "dynamic")
        if self._last is None or self.best is None or goal.caps or self._ticks <= self.least:
            return found
        most = int(self._limit(goal))
        paths = Paths(Floors(self.groups, self.nests, self._last[1]), goal.clock, LONGEST)
        moves = [*through(paths, most)]
        if (number := sum(len(move.ways) for move in moves)) > MOST_WAYS:
            raise Unable(f"engine milp looks at {MOST_WAYS:,} ways of groups at the most, here are {number:,}")
        if not moves:
            return found[0], None
        from formulations.fusion.latency.milp import build  # late: solvers are slow to import

        told = yield build(moves, paths.count, most, paths.options.ends, lambda _: self.best)
        if told.bound is not None and told.bound <= most:
            self.least = max(self.least, told.bound)
        return found[0], self.least

    def exact(self, goal: Goal, engine: str) -> tuple[Runs | None, int | None]:
        """The best path that was laid out, and the bound; raises TimeUp, and Unable for other measures."""
        if goal.measure != "time":
            raise Unable(f"dynamic programming does not minimise {goal.measure} with a cap on time")
        if self.best is not None and not self._keeps(self.best, goal):
            self.best = None
        demands, self._last = self.groups.demands.order, None
        some = partial(Options, self.groups, alone=self.alone)
        first = some(demands.largest, in_order=True)
        self._short(first, goal)
        bounded = self._bounded(goal, first.suited)
        better = cache(partial(promising, bounded))
        blocks, *smaller = dict.fromkeys(weights for weights, _ in demands.sizes(first.room))
        sizes = dict.fromkeys((blocks, demands.largest, *smaller))

        def made(most: int, in_order: bool, allowed: set[Key]) -> Options:
            return some(most, allowed=allowed, in_order=in_order, suited=first.suited)

        every = [(most, in_order) for in_order, most in product((True, False), sizes)]
        looked = self._all(every, made, better, goal)
        self._last = better(self._ticks), first.suited
        if self.best is None or goal.caps or (looked <= MANY and self.least < self._ticks * (1 - MOST_GAP)):
            needed = self.best is None or bool(goal.caps)
            others = self.others(goal.clock if needed else goal.clock.most(SECONDS))
            if others is None:
                moves = chain.from_iterable(bounded[0].moves)
                if self.best is None and not any(way.blocks for move in moves for way in move.ways):
                    return None, None
                others = []  # where layers take turns for nothing that is added up there may be plans of least time
            for runs in others:
                self._try(runs, goal)
            if others and not goal.caps:
                fewest = self.measured(others[0])["bytes"]
                self._short(first, goal, fewest)
                self._all(every, made, better, goal, fewest)
        if self.best is not None and self.best.queue is None and self.least < self._ticks:
            self._try(self.resized(self.best, goal.clock), goal)
        below = inf if goal.below is None else goal.below
        if goal.caps or self.least > min(below, self._ticks):
            self.least = self.counted  # a plan that is known is outside this space, or may be
        return self.best if self._ticks < below else None, self.least

    def _short(self, options: Options, goal: Goal, cap: int | None = None) -> None:
        """Lay out the best path of layers by themselves, and of short groups where these have few options."""
        for few in SHORT:
            if self._looked(Paths(options, goal.clock, few, LABELS), goal, cap) > MANY_STRIPS:
                break

    def _all(
        self, every: Sequence[tuple[int, bool]], made: Callable[[int, bool, set[Key]], Options],
        better: Callable[[float], set[Key]], goal: Goal, cap: int | None = None,
    ) -> int:  # fmt: skip
        """Lay out paths of options with blocks of so many bytes, stores in order or not; return how many there were.

        When MANY were looked at, only those of the largest blocks with stores in order are, too. Strips are those that
        may be part of a plan that is `better` than the one that is known by then. Of many at first those of a plan that
        is near the bound: if one is found, they are all there are.
        """
        looked, largest = 0, self.groups.demands.order.largest
        near = iter(SLACK if len(better(self._ticks)) > MANY_STRIPS else ())
        for most, in_order in every:
            if looked <= MANY or (most == largest and in_order):
                number, below = 0, -inf
                while below < self._ticks:
                    below = min(self._ticks, self.least * (1 + next(near, inf)))
                    options = made(most, in_order, better(below))
                    number = self._looked(Paths(options, goal.clock, LONGEST, LABELS), goal, cap)
                looked, self._widest = looked + number, max(self._widest, number)
        return looked

    @property
    def _ticks(self) -> float:
        """Of the best plan so far."""
        return inf if self.best is None else self.laid(self.best).ticks

    def _looked(self, paths: Paths, goal: Goal, cap: int | None = None) -> int:
        """Lay the best paths of some bytes out, until the last ones were no better; return how many options they have.

        Of short groups only one.
        """
        looked, seen, late = Looked(paths, {}), set[Runs](), 0
        cap = goal.caps.get("bytes", cap)
        if cap is not None and not paths.within(cap):
            return paths.looked
        near = FAR if paths.looked <= MANY else NEAR
        for tried in range(TRIED if paths.longest == LONGEST else 1):
            goal.clock.tick()
            if tried or cap is not None:
                paths.again(looked.late)
            found = looked.best()
            if found is None or found[1] >= self._ticks * near or late > PATIENCE:
                break
            runs, before = paths.options.runs(found[0]), self.best
            if runs in seen:
                break
            seen.add(runs)
            looked.charge(found[0], self._try(runs, goal))
            late = 0 if self.best is not before else late + 1
        goal.stats["options"] = int(str(goal.stats.get("options", 0))) + paths.looked
        return paths.looked

    def _bounded(self, goal: Goal, suited: Callable[[int], bool]) -> list[Paths]:
        """Find the bound; return its paths."""
        every = self._floors(goal.clock, suited)
        for paths in every:
            self.least = max([self.least, paths.moving, *(value for value, _ in paths.ends()[:1])])
        return every

    def _floors(self, clock: Clock, suited: Callable[[int], bool]) -> list[Paths]:
        """Paths of bounds: by the queues of the machine, and as if each of several memories had one."""
        first, other = (Floors(self.groups, self.nests, suited, apart=apart) for apart in (False, True))
        every = [first] if first.channels.number == other.channels.number else [first, other]
        return [Paths(floors, clock, LONGEST) for floors in every]

    def between(self, clock: Clock, ends: Sequence[Runs]) -> Iterator[Runs]:
        """Yield plans between those at the ends of a front: the fastest, and the one of the fewest bytes.

        Of two neighbours, t and t' ticks and b and b' bytes, bytes are priced by (t' - t) / (b - b'): the best path by
        its labels lies below their chord, or on it. Then between it and each of them, and so on; MOST_BETWEEN paths are
        laid out at the most, until time is up. One with as few bytes takes the place of the slower neighbour.
        """
        chords = deque(pairwise(map(self._point, ends)))
        known = {point for chord in chords for point in chord}
        looked = self._slower(clock, max((ticks for ticks, _ in known), default=0))
        for _ in range(MOST_BETWEEN):
            if not chords or clock.over:
                return
            (ticks, moved), (slower, fewer) = chords.popleft()
            if slower <= ticks or fewer >= moved:
                continue
            looked.paths.again(looked.late, (slower - ticks) / (moved - fewer))
            found = looked.best()
            if found is None:
                return
            runs = looked.paths.options.runs(found[0])
            looked.charge(found[0], self.laid(runs))
            point = self._point(runs)
            yield runs
            if point not in known and fewer <= point[1] < moved and point[0] < slower:
                known.add(point)
                chords += [((ticks, moved), point), (point, (slower, fewer))]

    def _slower(self, clock: Clock, ticks: int) -> Looked:
        """Paths of the options that may be part of a plan of no more than so many ticks."""
        most = self.groups.demands.order.largest
        suited = Options(self.groups, most, self.alone).suited
        allowed = promising(self._floors(clock, suited), ticks + 1)
        options = Options(self.groups, most, self.alone, allowed, in_order=True, suited=suited)
        return Looked(Paths(options, clock, LONGEST, LABELS), {})

    def _point(self, runs: Runs) -> tuple[int, int]:
        return self.laid(runs).ticks, self.measured(runs)["bytes"]

    def _keeps(self, runs: Runs, goal: Goal) -> bool:
        measures = self.measured(runs) if goal.caps else {}
        return all(measures[name] <= most for name, most in goal.caps.items())

    def _try(self, runs: Runs, goal: Goal) -> Laid:
        """Keep a plan within the caps if it is the best so far; return its timeline, a first one if that is far off."""
        laid = self.about(runs)
        if laid.ticks < self._ticks * CLOSE:
            laid = self.laid(runs)
            if self._keeps(runs, goal) and laid.ticks < self._ticks:
                self.best = runs
        return laid

"""Banks, inside one stage, in time: all undominated programs in bytes, ticks and what the next stage waits.

Sets
    states s = (first, loaded, made), actions as in `formulations.banks.stage`; labels of a state: what a path to it
    has cost
Given
    the task and its prices; cycles of every column; bytes of the weights of a group of filters (a sum: of a streamed
    column), of the first weights of the stage that follows; when the stage's own first weights arrive
Variables
    a path of actions from the first state to one with all columns processed
Objectives
    bytes; ticks until the stage ends; ticks that the next stage then waits for its first weights
Constraints
    (LOAD), (PROCESS) of `formulations.banks.stage`
    (BUS)      requests are served in the order in which they are made; one made at t is on the bus from
               max(t + latency, end of the one before)
    (ORDER)    a unit (a group of filters in a process step; a sum: a column) begins when the one before ends; it then
               asks for the weights of the next unit: ahead of the loads that open the stage, unless the next unit is of
               another step or stage
    (WAIT)     a unit waits for its weights, a column for the tiles that its window needs
    (FREE)     in the last group of a step a tile's bank is free when the last column is done whose window begins in the
               tile; the i-th load after a step is asked for when the i-th bank that the step frees is free, or with the
               step's end
    (WRITE)    where writes take time (`Banks.writes`) each is a request. As a unit begins, ahead of all else, it asks
               for what the unit before has left: its part of the columns that do not stay, rounded up to bytes; the
               first unit for what leaves the chip though others will read it. The last unit of a step asks, ahead of
               the weights of the step or stage to come, for what the step drops and DRAM lacks though it is loaded
               again. A stage ends when all its writes are served
Optimal means
    All times are sums and maxima of times of the label before, so a label that is nowhere greater stays so: labels that
    another one of the same state dominates are dropped, the rest is the exact front. Writes only delay: times without
    them are bounds.

Source: `heterogeneous_mapping_and_banks` 4.1.2.1 (Eq. 4.1, 4.2), 4.2.3, Appendix A.3.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import accumulate

from formulations.banks.labels import Label, Labels
from formulations.banks.stage import Rest, fewest, policy
from formulations.banks.tasks import Action, Prices, Program, Task, actions
from formulations.banks.timing import Timed, Timing, undominated
from hwmodels.banks.steps import PassState

#: Bytes, ticks until a stage ends, ticks until the first weights of the next one are there.
Cost = tuple[int, int, int]


class Search(Labels):
    """The search through all labels of one stage."""

    def __init__(self, task: Task, prices: Prices, timing: Timing, wait: int) -> None:
        super().__init__(task, prices, timing, wait)
        self.known: list[Timed] = []
        #: Fronts of lower bounds, of which every program exceeds or meets one; those that known programs do not reach.
        self.open: list[Cost] = [(0, 0, 0)]
        #: Programs with more bytes are not searched.
        self.most: int | None = None
        self.rest, stage, ticks = Rest(task, prices), task.stage, timing.ticks
        # without overlaps tiles never begin elsewhere
        tile = stage.columns - 1 if stage.reach else (stage.columns - 1) // stage.tile * stage.tile
        #: Work of one group on the columns that need the last tile, and on the last column.
        self.last, self.column = ticks[-1] - ticks[stage.complete(tile)], ticks[-1] - ticks[-2]
        #: Ticks of a tile on the bus, and before it.
        size = stage.tile * prices.column
        self.load, self.lag = self.clock.dram.byte_ticks * size, self.clock.latency(size)
        #: By cycle: how much of what waits for a tile may be done before it is read; columns that windows read.
        self.ahead, self.read = self._read()
        #: Bytes streamed from a column on.
        self.streamed = (*tuple(accumulate(reversed(timing.streams), initial=0))[::-1], 0)

    def _read(self) -> tuple[int, int]:
        columns, cycle = self.timing.columns, self.clock.cycle
        if columns is None or self.stage.patches:
            return 0 if columns is None else cycle, self.stage.columns
        touched = [one for places in columns.touched for one in places]
        behind = max((place + 1 for place, _ in touched), default=0)
        return max((spent for _, spent in touched), default=0) * cycle + cycle, min(behind, self.stage.columns)

    def settled(self, new: Label, state: PassState) -> Label:
        """The label with times as late as they may be without delaying anything: more labels dominate others then.

        No column needs a tile before those that need only the tiles ahead of it are done; no load is on the bus before
        it is free, or the loads ahead of it are served.
        """
        now, ready, freed = new.now, list(new.ready), new.freed
        stage, at = self.stage, state.first
        late = now - self._work_ahead(at, state.made)
        for number in range(1, len(ready)) if self.calm(state) else ():
            at += stage.tile
            ready[number] = max(ready[number], late + self._work_ahead(at, stage.completes[at]))
        if freed:
            later = [max(time, new.bus + i * self.load - self.lag) for i, time in enumerate(freed)]
            freed = tuple(time for time in later if time < now or self.by_cycle)
        return new._replace(ready=tuple(ready), freed=freed)

    def _work_ahead(self, columns: int, made: int) -> int:
        """Ticks of a group on what needs nothing beyond the first columns of the map."""
        return self.by_cycle.place(columns, made) if self.by_cycle else self.timing.ticks[made]

    def calm(self, state: PassState) -> bool:
        """Whether no weights delay loads any more: none are asked for while a column may still wait."""
        timing = self.timing
        if not self.clock.overtakes or timing.asks == "never":
            return True
        quiet = timing.asks == "first" or (not timing.anew and not timing.streams and timing.groups > 1)
        return quiet and bool(state.first or state.made)

    def least(self, begun: PassState) -> Timed:
        """Lower bounds on the costs of a program: the fewest bytes, and the ticks of one step with all tiles on chip.

        They are there once the first one is. Or the lower bound on what is left from here, if that is more.
        Where weights overtake, they bound the times of that clock: by `DramClock.relaxed` several steps of a sum may be
        quicker, as each of them forgets what its last stream delays.
        """
        stage = self.stage
        begin, end = PassState(0, stage.columns, 0), PassState(stage.columns, stage.columns, stage.results)
        free = self
        if self.timing.writes:  # one step leaves more to write at its end than several do
            free = Search(self.task, self.prices, replace(self.timing, writes=None), self.wait)
        elif self.clock.overtakes:  # what is under way as columns wait may be delayed by less
            free = Search(self.task, self.prices, replace(self.timing, clock=self.clock.bound()), self.wait)
        label = free.begin(begin)
        if begun.loaded == 0:
            there = self.clock.served(label.now, label.bus, stage.tile * self.prices.column)
            now = label.now + self.clock.cycle if free.by_cycle else 0
            label = label._replace(now=now, ready=(there,) * len(label.ready))
        (one,) = free.timed([free.process(label, begin, begin, Action("process", stage.tiles(begin)), end)])
        leanest, left = fewest(self.task, self.prices), self.rest(begun)
        assert leanest is not None
        assert left is not None
        ends, ready = self.earliest(self.begin(begun), begun, left)
        ticks = max(one.ticks, ends)
        return replace(
            one,
            bytes=leanest.bytes(self.prices),
            ticks=ticks,
            wait=max(self.timing.ready(one.ticks, one.wait), ready, ticks) - ticks,
        )

    def hopeless(self, label: Label, state: PassState) -> bool:
        """Whether known programs are nowhere greater than all that the label can still become."""
        left = self.rest(state)
        if left is None or (self.most is not None and label.bytes + left > self.most):
            return True
        ends, ready = self.earliest(label, state, left)
        spent = label.bytes + left
        return all(self._reached((max(spent, b), max(ends, t), max(ready, r))) for b, t, r in self.open)

    def close(self, fronts: Iterable[Sequence[Cost]]) -> bool:
        """Whether the known programs reach one of the fronts of lower bounds; else the closest is open."""
        self.open = min(([cost for cost in front if not self._reached(cost)] for front in fronts), key=len)
        return not self.open

    def _reached(self, cost: Cost) -> bool:
        """Whether a known program is nowhere greater."""
        b, t, r = cost
        return any([k.bytes <= b and k.ticks <= t and k.ticks + k.wait <= r for k in self.known])  # noqa: C419 (quicker)

    def earliest(self, label: Label, state: PassState, left: int) -> tuple[int, int]:
        """Lower bounds on ticks: until the stage ends, until the first weights of the next one are there.

        What is left to compute, and what is left to come over the bus (`_coming`): the columns that need the next tile
        wait for it in all groups, as do those of the last tile; something follows whatever comes last. Whatever is
        still to be written is written before the stage ends (`_writing`).
        """
        stage, timing, byte = self.stage, self.timing, self.clock.dram.byte_ticks
        ticks, bus, groups = timing.ticks, label.bus, timing.groups
        loads, coming, beside, behind = self._coming(state, left)
        worked = ends = label.now + (ticks[-1] - ticks[state.made]) * groups
        if loads:
            tile = min(stage.tile, stage.columns - state.loaded) * self.prices.column
            waiting = ticks[-1] - ticks[max(state.made, stage.complete(state.loaded))]
            if waiting or not self.by_cycle:
                ends = max(ends, bus + tile * byte + waiting * groups - self.ahead)
            ends = max(ends, bus + loads * byte + self.last * groups - self.ahead)
        if self.by_cycle and coming:  # weights overtake biases
            ends = max(ends, label.weights + coming * byte + behind - self.ahead)
        if loads or (coming and not self.by_cycle):
            bus += (loads + beside) * byte
            ends = max(ends, bus + behind - self.ahead)
        asked = self._asked_at(label, state, worked)
        if not self.clock.overtakes:
            asked = max(asked, bus + timing.following.weights * byte)
        ends += self.clock.fixed
        write, after = self._writing(label, state)
        if write:
            ends = max(ends, bus + (write + after) * byte)
            asked = max(asked, bus + (write + timing.following.weights) * byte)
        return ends, max(ends, asked) if timing.following.weights and timing.following.waits else ends

    def _asked_at(self, label: Label, state: PassState, worked: int) -> int:
        """When the first weights of the next stage are there at the earliest, if all is worked off then."""
        timing = self.timing
        if timing.asks == "never" or (timing.asks == "first" and (state.first or state.made)):
            return label.weights
        if timing.asks == "first":
            return label.now + self.following
        unit = self.column if timing.streams else timing.ticks[-1] - timing.ticks[state.made]
        return worked - unit + self.following

    def _writing(self, label: Label, state: PassState) -> tuple[int, int]:
        """Bytes yet to be written, and bytes that are asked for beside them ahead of the last write.

        The last unit asks for the next stage's first weights, and leaves something to write if it makes a column that
        does not stay. It does, if tiles go on as they lie; else a column at least is loaded once more.
        """
        if not self.sizes:
            return 0, 0
        stage, sizes = self.stage, self.sizes
        at = state.loaded if state.loaded < stage.columns else state.first
        made = stage.begun(at + (stage.columns - 1 - at) // stage.tile * stage.tile)
        left = sizes[-1] > sizes[-2 if self.timing.streams else made]
        after = min(self.timing.following.weights, self.prices.column) if left else 0
        return label.pending + sizes[-1] - sizes[state.made], after

    def _coming(self, state: PassState, left: int) -> tuple[int, int, int, int]:
        """Bytes of columns to load, of weights or streams yet to be asked for; ticks of work after all of them.

        Third: what of the weights delays loads; for bounds not what each step asks for last (`DramClock.relaxed`).
        """
        timing, price = self.timing, self.prices.column
        whole, loads = (self.stage.columns - state.loaded) * price, max(0, self.read - state.loaded) * price
        every = self.last * timing.groups
        if timing.streams:
            coming = self.streamed[max(2, state.made + 1)]
            return loads, coming, 0 if self.clock.relaxed else coming, self.column
        if timing.anew:
            steps = (left - whole) // self.prices.step if self.prices.step else 0
            steps -= self._vain
            coming = max(0, steps * timing.groups - 2) * timing.share
            beside = max(0, steps * (timing.groups - self.clock.relaxed) - 2) * timing.share
            last = 0 if self.by_cycle else self.last
            return loads, coming, beside, last if coming else every
        if state.made or state.first or timing.groups < 3 or timing.asks != "each":
            return loads, 0, 0, every
        coming = (timing.groups - 2) * timing.share
        return loads, coming, coming, min(every, timing.ticks[-1])

    @cached_property
    def _vain(self) -> int:
        """By cycle: steps at the end that may make no column, whose weights nobody waits for."""
        stage = self.stage
        behind = stage.columns - max(0, (stage.results - 1) * stage.stride - stage.before) - 1
        return behind // stage.tile + 1 if self.by_cycle and behind > 0 and not stage.patches else 0

    def run(self, begun: PassState) -> list[Timed]:
        """All undominated programs, `known` among them."""
        return undominated([*self.known, *self.timed(self.ends(begun))])

    def ends(self, begun: PassState) -> list[Label]:
        """Follow all labels that are not hopeless, and that no other one of their state beats."""
        labels: dict[PassState, list[Label]] = {begun: [self.begin(begun)]}
        heap = [order_of(begun)]
        ends: list[Label] = []
        while heap:
            state = state_of(heapq.heappop(heap))
            here = labels.pop(state)
            self.followed(len(here))
            if state.first == self.stage.columns:
                ends.extend(here)
                continue
            steps = list(actions(self.task, state))
            for label in here:
                if self.hopeless(label, state):
                    continue
                for action, after in steps:
                    new = self.settled(self.follow(label, begun, state, action, after), after)
                    if after not in labels:
                        heapq.heappush(heap, order_of(after))
                    known = labels.setdefault(after, [])
                    beats = self.rule(after, known)
                    if not any(beats(other, new) for other in known):
                        labels[after] = [other for other in known if not beats(new, other)] + [new]
        return ends

    def followed(self, labels: int) -> None:
        """So many labels are followed from a state."""

    def rule(self, state: PassState, known: list[Label]) -> Callable[[Label, Label], bool]:
        """When one label of a state beats another, as a new one is compared with those that are known."""
        return self.beats

    def beats(self, one: Label, other: Label) -> bool:
        """Whether nothing of a label is greater; by cycle a load takes a cycle where no bank is awaited."""
        return one.dominates(other) and (not self.by_cycle or len(one.freed) >= len(other.freed))


def order_of(state: PassState) -> tuple[int, int, int, bool]:
    """No action leads to an earlier one."""
    return state.first, state.made, state.loaded, state.again


def state_of(order: tuple[int, int, int, bool]) -> PassState:
    """The state of such an order."""
    return PassState(order[0], order[2], order[1], order[3])


# ---- all tasks of a stage --------------------------------------------------------------------------------------------


class Programs:
    """The undominated programs, for all tasks of one stage that find the same tiles and differ in what stays.

    Whatever leaves more banks free at every column, and lets more tiles go, allows more programs, none of them slower.
    So a task whose programs come to what a freer task comes to needs no search of its own.

    Parameters
    ----------
    wait : int
        Ticks until the first weights are there, and the bus is free.
    hidden : Programs, optional
        The same for a wait that hides the latency of every request. A longer wait delays these programs by as much as
        it is longer, and no program gains more by a shorter one than that it is shorter.
    cheaper : Programs, optional
        The same if reloads cost nothing beside the load: as long as these programs reload nothing, none beats them.
    lean : bool
        Whether of every task those programs are enough that move the fewest bytes.
    """

    def __init__(
        self,
        prices: Prices,
        timing: Timing,
        wait: int = 0,
        hidden: Programs | None = None,
        cheaper: Programs | None = None,
        *,
        lean: bool = False,
    ) -> None:
        self.prices, self.timing, self.wait = prices, timing, wait
        self.hidden, self.cheaper, self.lean = hidden, cheaper, lean
        #: Where weights overtake, programs that are bounds, or good ones: `formulations.banks.overtaking` has all.
        self.answers: dict[Task, list[Timed]] = {}
        self._leasts: dict[Task, Timed] = {}

    def of(self, task: Task) -> list[Timed]:
        """All undominated programs, by bytes; none if the task does not fit."""
        found = self.answers.get(task)
        if found is None:
            begun = task.begin()
            fits = begun is not None and fewest(task, self.prices) is not None
            self.answers[task] = found = self._found(task, begun) if begun is not None and fits else []
        return found

    def good(self, task: Task, others: Iterable[Timed]) -> list[Timed]:
        """Some programs that are quick: those of others, that with the fewest bytes, and those of the policies."""
        found = self.answers.get(task)
        if found is None:
            begun, search = task.begin(), Search(task, self.prices, self.timing, self.wait)
            assert begun is not None
            programs = dict.fromkeys((*(one.program for one in others), *self._ways(task)))
            priced = [one for program in programs if (one := search.along(begun, program)) is not None]
            self.answers[task] = found = undominated(priced)
        return found

    def bound(self, task: Task) -> int:
        """A lower bound over all programs of a task: ticks until the next stage may begin to work (`Timing.ready`).

        As long as the task has not been asked for, it is not searched for this.
        """
        found = self.answers.get(task)
        if found is not None:
            return min([self.timing.ready(one.ticks, one.wait) for one in found])
        begun = task.begin()
        assert begun is not None
        least = self._least(task, begun)
        return self.timing.ready(least.ticks, least.wait)

    def _least(self, task: Task, begun: PassState) -> Timed:
        """Lower bounds on the costs of all programs of a task."""
        if task not in self._leasts:
            self._leasts[task] = Search(task, self.prices, self.timing, self.wait).least(begun)
        return self._leasts[task]

    def _found(self, task: Task, begun: PassState) -> list[Timed]:
        ahead = self._ahead(task)
        if ahead and self.hidden and self.wait >= self.hidden.wait:
            return ahead
        if self.cheaper and not any(one.program.reloaded for one in self.cheaper.of(task)):
            return self.cheaper.of(task)
        if not self.lean and (easier := _easier(task)) and self._freer(easier, task):
            self.of(easier)
        solved = [] if self.lean else [(other, found) for other, found in self.answers.items() if found]
        freer = {_costs(found) for other, found in solved if self._freer(other, task)}
        for other, found in solved:
            if _costs(found) in freer and self._freer(task, other):
                return found
        search = Search(task, self.prices, self.timing, self.wait)
        least = self._least(task, begun)
        if self.lean:
            search.most = least.bytes
        fronts = [*freer, _costs([least])]
        if ahead:
            fronts.append(_costs(ahead))
        for program in dict.fromkeys((*(one.program for one in ahead), *self._ways(task))):
            one = search.along(begun, program)
            if one is not None:
                search.known = undominated([*search.known, one])
                if search.close(fronts):
                    return search.known
        return search.run(begun)

    def _freer(self, one: Task, other: Task) -> bool:
        """Whether a task allows all programs of another one, none of them slower: it must write the same columns."""
        writes = self.timing.writes
        if writes and (writes.at_first(one), writes.sizes(one)) != (writes.at_first(other), writes.sizes(other)):
            return False
        return one.freer(other)

    def _ahead(self, task: Task) -> list[Timed]:
        """What the programs are at best, going by those of `hidden`."""
        if self.hidden is None:
            return []
        gained = self.hidden.wait - self.wait
        return [replace(one, ticks=one.ticks - gained) for one in self.hidden.of(task)]

    def _ways(self, task: Task) -> Iterator[Program]:
        """Programs that are known, that with the fewest bytes, and those of the policies."""
        for found in list(self.answers.values())[-4:]:
            yield from (one.program for one in found)
        leanest = fewest(task, self.prices)
        assert leanest is not None
        yield leanest
        yield from _policies(task)


def _easier(task: Task) -> Task | None:
    """A freer task, from which the programs of many tasks are known: first nothing is retained, then nothing kept."""
    if task.retain:
        return replace(task, retain=0)
    return replace(task, goal=replace(task.goal, keep=0, mirrored=False)) if task.goal.keep else None


@lru_cache(maxsize=100_000)
def _policies(task: Task) -> tuple[Program, ...]:
    """The programs of the policies with 1, 2, ... tiles a step."""
    tried = (policy(task, most=most) for most in range(1, task.banks + 1))
    return tuple(dict.fromkeys(one for one in tried if one is not None))


def _costs(found: Iterable[Timed]) -> tuple[Cost, ...]:
    return tuple((one.bytes, one.ticks, one.ticks + one.wait) for one in found)

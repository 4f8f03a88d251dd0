"""Published policies for banks: stage by stage, path by path (`heterogeneous_mapping_and_banks` 4.2, 4.4.1.2).

MIN
    Of every result the number of tiles stays that has the least weights and twice the spilled bytes (4.2.2, Algorithm
    4), the last ones (DRAM-first storing, 4.2.1). Of maps that wait for other paths only what `Paths` says stays.
HIDE
    Of every result the number of tiles stays with the least delay of the stage (4.2.3, Algorithm 5), of equal ones the
    most; steps as in `hiding`, one tile in depthwise and pooling stages. The published compiler
    adds the delay of the next stage; its byte counts are met within 1.3 % without.
Double buffer
    Half of the banks for tiles that are read, half for results, one tile a step (4.4.1.2).
Paths (4.2.4)
    Where several paths read a map: their order, how many of the map's tiles stay during each path but the last, and how
    many tiles of a concatenation stay (its banks are set aside from the first path on). `greedy` tries every order, and
    for each chooses the tiles path after path, as if later paths kept none; `best` tries all numbers of tiles; a number
    fixes them, at most the map's tiles. Concatenated tiles are the number with the fewest bytes under `greedy`.

All of them raise InputError if they get stuck: some stage finds too few banks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import permutations, product
from typing import Literal

from formulations.banks.labels import Label, Labels, along
from formulations.banks.network import BankPlan, State, Step, Walk
from formulations.banks.stage import policy
from formulations.banks.tasks import Action, Prices, Program, Task, told
from formulations.banks.times import Times
from formulations.banks.timing import First, Timing
from formulations.clock import ENDLESS, Clock
from hwmodels.banks.steps import DramClock, PassState, TileGoal
from instances.errors import InputError
from instances.network.feature_maps import LANEWISE

#: How many tiles of a shared map stay during each path.
Reuse = Literal["greedy", "best"] | int
#: Tasks of a stage with the direction that each reads in; one of them with its program.
Offers = list[tuple[int, Task]]
Offer = tuple[int, Task, Program]
Choose = Callable[[State, int, str, Offers], Offer | None]


@dataclass
class Run:
    """One pass over the network by a policy."""

    walk: Walk
    choose: Choose
    reuse: Reuse
    dram_first: bool = True
    """Whether what does not stay of a result goes to DRAM first (4.2.1)."""
    limit: Clock = ENDLESS
    """When to give up, by TimeUp."""
    joined: dict[str, int] = field(default_factory=dict)
    """For the concatenations of the fork that is planned, how many of their tiles stay."""
    _steps: dict[object, Step | None] = field(default_factory=dict)

    def run(self) -> BankPlan:
        """Plan all stages."""
        state, steps = State(), list[Step]()
        while state.done != self.walk.all:
            more = self._onward(state, inside=False)
            if not more:
                name = self.walk.stages[self.walk.next(state)[0]].name
                raise InputError(f"stage {name}: the policy gets stuck in {self.walk.banks.count} banks")
            steps += more
            state = more[-1].after
        return BankPlan(tuple(steps))

    def _onward(self, state: State, *, inside: bool) -> list[Step] | None:
        """The next stage, or all paths of a fork; None if the policy gets stuck."""
        ready = self.walk.next(state)
        shared = self.walk.stages[ready[0]].source
        heads = tuple(at for at in ready if self.walk.stages[at].source == shared)
        if len(heads) > 1:
            return self._fork(state, heads, inside=inside)
        step = self._step(state, ready[0], 0, inside=inside)
        return None if step is None else [step]

    # ---- one stage ---------------------------------------------------------------------------------------------

    def _step(self, state: State, at: int, stay: int, *, inside: bool) -> Step | None:
        """One stage, `stay` tiles of its map kept for other paths; orders that come to the same state share it."""
        key = state, at, stay, inside, tuple(self.joined.items())
        if key not in self._steps:
            self.limit.tick()
            self._steps[key] = self._stepped(state, at, stay, inside=inside)
        return self._steps[key]

    def _stepped(self, state: State, at: int, stay: int, *, inside: bool) -> Step | None:
        walk, stage = self.walk, self.walk.stages[at]
        last = walk.stages[state.last].target if state.last >= 0 else ""
        source = last if last in stage.streamed else stage.source
        retained = (
            min(stay, walk.tiles[source], walk.banks.count - 1) if walk.waits(source, state.done | 1 << at) else 0
        )
        aside = 0
        if inside and stage.target not in self.joined:  # banks that wait for the first part of a concatenation
            aside = max((n for name, n in self.joined.items() if walk.first(state, name)), default=0)
        keeps = self._keeps(state, at)
        tasks = [
            (direction, replace(task, banks=task.banks - aside))
            for direction, task in walk.tasks_from(state, at, source)
            if task.retain == retained and task.goal.keep in keeps and self._storing(task.goal)
        ]
        found = self.choose(state, at, source, tasks)
        return None if found is None else walk.step(state, at, source, *found)

    def _keeps(self, state: State, at: int) -> Collection[int]:
        """How many tiles of a result may stay: those of a part of a concatenation are given."""
        walk, target = self.walk, self.walk.stages[at].target
        if target in self.joined:
            return (min(self.joined[target], walk.tiles[target]),) if walk.first(state, target) else (0,)
        after = State(state.done | 1 << at, at)
        onward = any(target in walk.sources(n) for n in walk.next(after))
        return range(walk.banks.count + 1 if onward else 1)

    def _storing(self, goal: TileGoal) -> bool:
        """Whether the right tiles stay: the last ones made, or the first ones."""
        return not goal.keep or goal.mirrored == (self.dram_first and goal.keep < goal.tiles)

    # ---- forks -------------------------------------------------------------------------------------------------

    def _fork(self, state: State, heads: tuple[int, ...], *, inside: bool) -> list[Step] | None:
        """All paths, in the best order, with the best number of concatenated tiles."""
        region = self.walk.between(heads)
        targets = {self.walk.stages[at].target for at in region}
        whole = [n for n in sorted(targets) if len(self.walk.makers[n]) > 1 and n not in self.joined]
        if not whole:
            return self._orders(state, heads, region, self.reuse, inside=inside)

        def joined(number: int, reuse: Reuse) -> list[Step] | None:
            self.joined |= dict.fromkeys(whole, number)
            steps = self._orders(state, heads, region, reuse, inside=inside)
            for name in whole:
                del self.joined[name]
            return steps

        best = min(range(self.walk.banks.count), key=lambda number: self._weight(joined(number, "greedy")))
        return joined(best, self.reuse)

    def _orders(
        self, state: State, heads: tuple[int, ...], region: frozenset[int], reuse: Reuse, *, inside: bool
    ) -> list[Step] | None:
        """The best of all orders."""
        shared = self.walk.stages[heads[0]].source
        if isinstance(reuse, int) and reuse > self.walk.tiles[shared] and not inside:
            return None
        found = (
            self._all(state, order, stay, region)
            for order in permutations(heads)
            for stay in self._stays(state, order, region, reuse)
        )
        return min(found, key=self._weight, default=None)

    def _stays(
        self, state: State, order: tuple[int, ...], region: frozenset[int], reuse: Reuse
    ) -> Iterator[tuple[int, ...]]:
        """The numbers of tiles to try during each path but the last."""
        most, last = range(self.walk.banks.count), len(order) - 1
        if isinstance(reuse, int):
            yield (reuse,) * last
        elif reuse == "best":
            yield from product(most, repeat=last)
        else:
            chosen: tuple[int, ...] = ()
            while len(chosen) < last:
                later = (0,) * (last - len(chosen) - 1)
                tried = {n: self._weight(self._all(state, order, (*chosen, n, *later), region)) for n in most}
                chosen = (*chosen, min(tried, key=lambda n: tried[n]))
            yield chosen

    def _all(
        self, state: State, order: tuple[int, ...], stay: tuple[int, ...], region: frozenset[int]
    ) -> list[Step] | None:
        """All paths of a fork, one after the other."""
        steps: list[Step] = []
        for head, tiles in zip(order, (*stay, 0), strict=True):
            first = self._step(state, head, tiles, inside=True)
            more = None if first is None else [first]
            while more:
                steps += more
                state = more[-1].after
                if not any(at in region and at not in order for at in self.walk.next(state)):
                    break
                more = self._onward(state, inside=True)
            if not more:
                return None
        return steps

    def _weight(self, steps: list[Step] | None) -> int:
        """Bytes, and those that the next stage will load of the last result."""
        if not steps:
            return 2**62
        name, state = steps[-1].stage.target, steps[-1].after
        there = state.of(name)
        columns = self.walk.found.maps[name].columns - (self.walk.columns(there) if there else 0)
        return sum(s.volume.total for s in steps) + columns * self.walk.found.maps[name].column_bytes


def minimise(
    walk: Walk, *, reuse: Reuse = "greedy", dram_first: bool = True, limit: Clock = ENDLESS
) -> BankPlan:  # fmt: skip
    """Return the plan of the policy MIN with all orders of paths and results of which nothing stays.

    The published rules are those of `formulations.banks.published`.

    `dram_first`: false for DRAM-last storing: of every result the first tiles stay (4.2.1, Fig. 4.6).
    """
    return Run(walk, lambda _, at, __, tasks: choice(walk, tasks, at), reuse, dram_first, limit).run()


def choice(walk: Walk, tasks: Offers, at: int) -> Offer | None:
    """Return the first task with the least weights and twice the spilled bytes; None if none has a program."""
    stage, least, chosen = walk.stages[at], 0, None
    for direction, task in tasks:
        program = _policy(task)
        if program is None:
            continue
        weights = stage.weight_bytes * (program.steps if walk.anew[at] else 1)
        cost = (weights if stage.kind not in LANEWISE else 0) + 2 * task.goal.spilled * stage.written
        if chosen is None or cost < least:
            least, chosen = cost, (direction, task, program)
    return chosen


def double_buffer(walk: Walk, limit: Clock = ENDLESS) -> BankPlan:
    """Return the plan with half of the banks for tiles that are read, half for results, one tile a step."""
    half = walk.banks.count // 2

    def choose(state: State, at: int, source: str, tasks: Offers) -> Offer | None:
        for direction, task in sorted(tasks, key=lambda t: -t[1].goal.keep):
            program = _policy(task, most=1, inputs=half) if task.goal.keep <= half else None
            if program is not None:
                return direction, task, program
        return None

    return Run(walk, choose, 0, limit=limit).run()


def no_reuse(walk: Walk, limit: Clock = ENDLESS) -> BankPlan:
    """Return the plan that keeps nothing between stages: all banks for tiles read, one tile a step (4.4.1.2)."""

    def choose(state: State, at: int, source: str, tasks: Offers) -> Offer | None:
        for direction, task in tasks:
            whole = task.stage.reach + 1 >= task.stage.columns  # all of the map is needed at once
            program = None if task.goal.keep else _policy(task, most=None if whole else 1)
            if program is not None:
                return direction, task, program
        return None

    return Run(walk, choose, 0, limit=limit).run()


def hide(walk: Walk, clock: DramClock, limit: Clock = ENDLESS) -> BankPlan:
    """Return the plan of the policy HIDE: of every result the most tiles stay that delay the stage least.

    Delays are predicted as the source says them (4.1.2.1): first come, first served, all channels at once.
    """
    simple = replace(walk.found, stages=tuple(stage.at_once() for stage in walk.stages))
    served = walk.banks.model_copy(update={"bus": "first_come"})
    times = Times(Walk(simple, served), replace(clock, overtakes=False))

    def delay(state: State, at: int, source: str, direction: int, task: Task) -> tuple[int, Program] | None:
        """Ticks of a stage if loads wait for the ends of steps, and its program."""
        timing, prices = (
            times.timing(state, at, source, direction, First(0, waits=False)),
            walk.prices(state, at, source),
        )
        program = hiding(task, prices, timing, most=1 if walk.stages[at].kind in ("depthwise", "pool") else None)
        if program is None:
            return None
        return along(task, prices, replace(timing, late=True), program).ticks, program

    def choose(state: State, at: int, source: str, tasks: Offers) -> Offer | None:
        least, chosen = 0, None
        for direction, task in tasks:
            said = delay(state, at, source, direction, task)
            if said is None:
                continue
            if chosen is None or said[0] <= least:
                least, chosen = said[0], (direction, task, said[1])
        return chosen

    return Run(walk, choose, "greedy", limit=limit).run()


@lru_cache(maxsize=100_000)
def _policy(task: Task, most: int | None = None, inputs: int | None = None) -> Program | None:
    return policy(task, most=most, inputs=inputs)


def hiding(task: Task, prices: Prices, timing: Timing, most: int | None = None) -> Program | None:
    """Return the program of the policy HIDE: loads as `policy`, every step of as many tiles as have the least stall.

    A step's stall is predicted as what it waits, and what is left, when it ends, of the loads under way when it begins;
    of equal ones the most tiles, but one stays for the next step as long as tiles are to come (Appendix A.3,
    Algorithm 5).

    `most`: tiles of one step.
    """
    search, state = Labels(task, prices, timing, 0), task.begin()
    if state is None:
        return None
    begun, label = state, search.begin(state)
    path, done = [state], list[Action]()
    while state.first < task.stage.columns:
        after = task.load(state)
        if after is not None and task.process(after, 1) is not None:
            action = Action("load", 1)
        else:
            found = _hidden(search, label, begun, state, most)
            if found is None:
                return None
            action, after = found
        label, state = search.follow(label, begun, state, action, after), after
        path.append(after)
        done.append(action)
    return told(path, done)


def _hidden(
    search: Labels, label: Label, begun: PassState, state: PassState, most: int | None
) -> tuple[Action, PassState] | None:
    """The process step with the least stall."""
    on_chip, timing = search.stage.tiles(state), search.timing
    more = state.loaded < search.stage.columns
    least, chosen = 0, None
    for tiles in range(1, min(on_chip, most or on_chip) + 1):
        after = search.task.process(state, tiles)
        if after is None or (chosen is not None and tiles == on_chip and more):
            continue
        action = Action("process", tiles)
        end = search.follow(label, begun, state, action, after)
        work = timing.groups * (timing.ticks[after.made] - timing.ticks[state.made])
        stall = max(end.now, *label.ready) - label.now - work
        if chosen is None or stall <= least:
            least, chosen = stall, (action, after)
    return chosen

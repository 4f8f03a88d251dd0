"""Banks, inside one stage: the control program with the fewest bytes.

Sets
    states s = (first, loaded, made) of `hwmodels.banks.steps`; actions load, process 1, process 2, ...
Given
    B banks; tiles on chip at the start; the goal (tiles of the result that stay); how many of the first tiles stay for
    other stages; bytes of a column that is loaded, of the weights of a process step (0 if they are loaded once), of a
    column that has to be written for its reload
Variables
    a path of actions from the first state to one with all columns processed
Objective
    min bytes = loaded columns + weights of every process step + reloaded columns that were only on chip
Constraints
    (LOAD)     tiles on chip + 1 + tiles that stay + banks of the result <= B
    (PROCESS)  tiles on chip, those processed included, + tiles that stay + banks of the result after the step <= B
Optimal means
    Shortest path over all sequences of these actions (A*, unless windows do not overlap: then a program that reaches
    the lower bound on bytes is written down, `Rest`). Tiles are processed in order, those on chip first.

The policies of the paper are paths of the same graph: `policy` loads whenever a tile fits and leaves room for the
result of the next tile, else processes all tiles that it may (Appendix A.2, Algorithm 4).

Source: `heterogeneous_mapping_and_banks` 4.1.3, 4.2.2, Appendix A.
"""

from __future__ import annotations

import heapq
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from formulations.banks.tasks import Action, Prices, Program, Task, actions, reloaded, told
from hwmodels.banks.steps import Pass, PassState, TileGoal

#: More steps than any program has.
_NEVER = 2**40


@lru_cache(maxsize=200_000)
def fewest(task: Task, prices: Prices) -> Program | None:
    """Return what `best` does: for equal tasks once, and without a search if other tasks bound it from both sides.

    The price of reloads matters only where a program without it reloads.
    """
    if task.begin() is None:
        return None
    if prices.reload:
        free = fewest(task, prices._replace(reload=0))
        if free is None or not free.reloaded:
            return free
    known = _family(task.stage, task.on_chip, task.banks, prices)
    least = max((size for other, _, size in known if other.freer(task)), default=-1)
    for other, program, size in known:
        if size == least and task.freer(other):
            return program
    found = best(task, prices)
    if found is not None:
        known.append((task, found, found.bytes(prices)))
    return found


@lru_cache(maxsize=20_000)
def _family(stage: Pass, on_chip: int, banks: int, prices: Prices) -> list[tuple[Task, Program, int]]:
    """The tasks that differ in what stays only, as far as they are known: empty at first."""
    return []


def best(task: Task, prices: Prices) -> Program | None:
    """Return the program with the fewest bytes, or None if there is none in these banks."""
    begin = task.begin()
    if begin is None:
        return None
    order, rest = count(), Rest(task, prices)
    if (quick := rest.greedy()) is not None:
        return quick
    known = _ways_on(task.stage, task.banks, task.goal, task.retain, prices, task.on_chip if prices.reload else None)
    heap: list[tuple[int, int, int, PassState, bool]] = [(0, 0, next(order), begin, False)]
    reached: dict[PassState, int] = {begin: 0}
    came: dict[PassState, tuple[PassState, Action]] = {}
    done: set[PassState] = set()
    while heap:
        *_, state, ends = heapq.heappop(heap)
        if ends:
            return _program(task, prices, state, came, known)
        cost = reached.pop(state, None)
        if cost is None:
            continue  # it was here before, for less
        done.add(state)
        if state in known:  # nothing but the end of its way is searched
            if (way := known[state]) is not None:
                heapq.heappush(heap, (cost + way.bytes, -task.stage.columns, next(order), state, True))
            continue
        for action, after in actions(task, state):
            after = _alike(prices, after)
            spent = cost + _bytes(prices, begin, state, action, after)
            if after not in done and spent < reached.get(after, spent + 1):
                reached[after] = spent
                came[after] = state, action
                least = rest(after)
                if least is not None:
                    heapq.heappush(heap, (spent + least, -after.first, next(order), after, False))
    known |= dict.fromkeys(done)
    return None


class _Way(NamedTuple):
    """The best way on from a state: its bytes, and its first action if it has one."""

    bytes: int
    action: Action | None


@lru_cache(maxsize=2_000)
def _ways_on(
    stage: Pass, banks: int, goal: TileGoal, retain: int, prices: Prices, on_chip: int | None
) -> dict[PassState, _Way | None]:
    """By state what is known of the way on, None if there is none; without a price of reloads for any tiles on chip."""
    return {PassState(stage.columns, stage.columns, stage.results): _Way(0, None)}


@lru_cache(maxsize=100_000)
def _steps_from(stage: Pass, banks: int, goal: TileGoal, retain: int) -> dict[int, tuple[int, int]]:
    """By column the fewest steps from there on, and where the first one ends, as far as `Rest` knows.

    They are the same whatever is on chip at the start.
    """
    return {stage.columns: (0, stage.columns)}


class Rest:
    """A lower bound on the bytes to the end: what is not loaded yet, and the fewest steps that could do the rest.

    A step may process k tiles only if these, those that stay and the results that need nothing else fit side by side.
    The next one begins behind it, where windows overlap anywhere up to there: tiles that are cut anew may fit better or
    worse. Without overlaps as few steps suffice from further on, so they process as many as they may.
    """

    def __init__(self, task: Task, prices: Prices) -> None:
        self.task, self.prices = task, prices
        self.steps = _steps_from(task.stage, task.banks, task.goal, task.retain)

    def __call__(self, state: PassState) -> int | None:
        """The bytes, or None if the stage cannot be ended from there."""
        steps, _ = self._step(state.first)
        if steps >= _NEVER:
            return None
        return (self.task.stage.columns - state.loaded) * self.prices.column + steps * self.prices.step

    def greedy(self) -> Program | None:
        """The program with these steps, if windows do not overlap and no tile that is on chip takes a bank it needs."""
        task, stage = self.task, self.task.stage
        first, on_chip, done = 0, min(task.on_chip, stage.all_tiles), list[Action]()
        while first < stage.columns:
            steps, end = self._step(first)
            if stage.reach or steps >= _NEVER:
                return None
            tiles = -(-(end - first) // stage.tile)
            if on_chip < tiles:
                done.append(Action("load", tiles - on_chip))
            elif on_chip + task.goal.banks[stage.complete(end)] > self._room(first):
                return None
            done.append(Action("process", tiles))
            first, on_chip = end, max(0, on_chip - tiles)
        return Program(tuple(done), stage.columns - stage.start(task.on_chip).loaded, 0, self._step(0)[0])

    def _step(self, first: int) -> tuple[int, int]:
        """The fewest steps from a column on, and where the first one ends."""
        known = self.steps.get(first)
        return self._fewest(first) if known is None else known

    def _fewest(self, first: int) -> tuple[int, int]:
        """All that is needed to know a column: of every column on, or where windows do not overlap of a path."""
        steps, columns = self.steps, self.task.stage.columns
        if self.task.stage.reach:
            for at in range(columns - 1, -1, -1):
                end = self._furthest(at) or at
                after = min(range(end, at, -1), key=lambda x: steps[x][0], default=None)
                steps[at] = (_NEVER, at) if after is None else (min(_NEVER, steps[after][0] + 1), after)
            return steps[first]
        path = [first]
        while path[-1] not in steps:
            onward = self._furthest(path[-1])
            if onward is None:
                steps[path[-1]] = _NEVER, path[-1]
                break
            path.append(onward)
        for before, after in zip(path[-2::-1], path[:0:-1], strict=True):
            steps[before] = min(_NEVER, steps[after][0] + 1), after
        return steps[first]

    def _furthest(self, first: int) -> int | None:
        """Where the longest step from a column ends, None if there is no step."""
        task, stage = self.task, self.task.stage
        room = self._room(first)
        for tiles in range(min(room, -(-(stage.columns - first) // stage.tile)), 0, -1):
            end = min(stage.columns, first + tiles * stage.tile)
            if tiles + task.goal.banks[stage.complete(end)] <= room:
                return end
        return None

    def _room(self, first: int) -> int:
        """Banks that no tile takes that stays of those ahead of a column."""
        return self.task.banks - min(self.task.retain, -(-first // self.task.stage.tile))


def _bytes(prices: Prices, begin: PassState, state: PassState, action: Action, after: PassState) -> int:
    if action.name == "process":
        return prices.step + reloaded(begin, state, after) * prices.reload
    return (after.loaded - state.loaded) * prices.column


def _program(
    task: Task, prices: Prices, met: PassState, came: dict[PassState, tuple[PassState, Action]],
    known: dict[PassState, _Way | None],
) -> Program:  # fmt: skip
    """The program on the path to a state and on from it; the ways on from the path are known then."""
    path, done = [met], list[Action]()
    while path[-1] in came:
        state, action = came[path[-1]]
        path.append(state)
        done.append(action)
    begin, way = path[-1], known[met]
    assert way is not None
    left = way.bytes
    for after, state, action in zip(path[:-1], path[1:], done, strict=True):
        left += _bytes(prices, begin, state, action, after)
        known[state] = _Way(left, action)
    path, done = [begin], []
    while (way := known[_alike(prices, path[-1])]) is not None and way.action is not None:
        onward = task.follow(path[-1], way.action)
        assert onward is not None
        path.append(onward)
        done.append(way.action)
    return told(path, done)


def _alike(prices: Prices, state: PassState) -> PassState:
    """Without a price of reloads it makes no difference whether there were some."""
    return PassState(state.first, state.loaded, state.made) if state.again and not prices.reload else state


def policy(task: Task, *, most: int | None = None, inputs: int | None = None) -> Program | None:
    """Return the program of the paper's MOM manager for this goal, or None if it gets stuck.

    `most`: tiles of one process step; all that may be by default (MIN). `inputs`: banks for tiles that are read; all
    that are free by default.
    """
    begin = task.begin()
    if begin is None:
        return None
    path, done = [begin], []
    while path[-1].first < task.stage.columns:
        state = path[-1]
        room = task.stage.tiles(state) < inputs if inputs else True
        step = (_load(task, state) if room else None) or _process(task, state, most) or _forced(task, state)
        if step is None:
            return None
        action, after = step
        path.append(after)
        done.append(action)
    return told(path, done)


def _load(task: Task, state: PassState) -> tuple[Action, PassState] | None:
    """One tile, if the result of the next process step still finds a bank."""
    after = task.load(state)
    return (Action("load", 1), after) if after is not None and task.process(after, 1) is not None else None


def _forced(task: Task, state: PassState) -> tuple[Action, PassState] | None:
    """One tile because nothing can be processed without it (a window over the whole map)."""
    after = task.load(state)
    return None if after is None else (Action("load", 1), after)


def _process(task: Task, state: PassState, most: int | None) -> tuple[Action, PassState] | None:
    """As many tiles as may be."""
    on_chip = task.stage.tiles(state)
    for tiles in range(min(on_chip, most or on_chip), 0, -1):
        after = task.process(state, tiles)
        if after is not None:
            return Action("process", tiles), after
    return None

"""F6 banks, inside one stage: the control program with the fewest bytes.

Sets
    states s = (first, loaded, made) of `hwmodels.bank_steps`; actions load, process 1, process 2, ...
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
    Shortest path over all sequences of these actions (Dijkstra, unless the policy below loads every column once and
    weights are not loaded anew). Tiles are processed in order, those on chip first.

The policies of the paper are paths of the same graph: `policy` loads whenever a tile fits and leaves room for the
result of the next tile, else processes all tiles that it may (Appendix A.2, Algorithm 4).

Source: `heterogeneous_mapping_and_banks` 4.1.3, 4.2.2, Appendix A.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import count
from typing import NamedTuple

from hwmodels.bank_steps import Goal, Pass, State

__all__ = [
    "Action",
    "Prices",
    "Program",
    "Rest",
    "Task",
    "actions",
    "best",
    "fewest",
    "policy",
    "reloaded",
    "told",
    "told_apart",
]


@dataclass(frozen=True)
class Action:
    """``load`` or ``process`` a number of tiles."""

    name: str
    tiles: int


_LOAD = Action("load", 1)
#: More steps than any program has.
_NEVER = 2**40


class Prices(NamedTuple):
    """Bytes that a program is charged.

    Attributes
    ----------
    column, step : int
        Of a column that is loaded, of a process step (its weights, if they are loaded anew).
    reload : int
        Of a column that is reloaded though it was on chip: its producer has to write it too.
    """

    column: int
    step: int = 0
    reload: int = 0


@dataclass(frozen=True)
class Program:
    """A control program and what it moves.

    Attributes
    ----------
    loaded : int
        Columns loaded, reloads included.
    reloaded : int
        Columns loaded though they were on chip at the start.
    steps : int
        Process steps.
    """

    actions: tuple[Action, ...]
    loaded: int
    reloaded: int
    steps: int

    def bytes(self, prices: Prices) -> int:
        """What the program moves, the result and weights that are loaded once aside."""
        return self.loaded * prices.column + self.steps * prices.step + self.reloaded * prices.reload


@dataclass(frozen=True)
class Task:
    """One stage in one direction, and what it finds and leaves.

    Attributes
    ----------
    banks : int
        Those that no other map takes.
    on_chip : int
        First tiles of the map that are there at the start.
    goal : Goal
        What stays of the result.
    retain : int
        First tiles of the map that stay for other stages.
    """

    stage: Pass
    banks: int
    on_chip: int
    goal: Goal
    retain: int = 0

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.stage, self.banks, self.on_chip, self.goal, self.retain))

    def freer(self, other: Task) -> bool:
        """Whether it leaves as much room as another task of the same pass and start, so allows all its programs."""
        return self.retain <= other.retain and _excess(self.goal, other.goal) <= self.banks - other.banks

    def begin(self) -> State | None:
        """The first state, if it fits and the last step may: a tile to process beside all that stays."""
        state, tiles = self.stage.start(self.on_chip), -(-self.stage.columns // self.stage.tile)
        last = min(self.retain + 1, tiles) + self.goal.keep
        return state if max(last, self.taken(state)) <= self.banks else None

    def taken(self, state: State) -> int:
        """Banks in use."""
        return self._read(state) + self.goal.banks(state.made)

    def _read(self, state: State) -> int:
        """Banks with tiles that are read, or stay of those that were."""
        tile, retain = self.stage.tile, self.retain
        on_chip = -(-(state.loaded - state.first) // tile)
        return on_chip + (min(retain, -(-state.first // tile)) if retain else 0)

    def load(self, state: State) -> State | None:
        """Load one tile, if there is one and a bank for it."""
        if state.loaded == self.stage.columns or self.taken(state) >= self.banks:
            return None
        return self.stage.load(state)

    def process(self, state: State, tiles: int, room: int | None = None) -> State | None:
        """Process the first tiles, if their results fit beside them and no tile that stays is cut by a reload.

        Parameters
        ----------
        room : int, optional
            Banks for results (the same for all numbers of tiles).
        """
        after = self.stage.process(state, tiles)
        if after is None or self.goal.banks(after.made) > (self.room(state) if room is None else room):
            return None
        if self.retain:
            end = min(state.loaded, state.first + tiles * self.stage.tile)
            if after.first < min(end, self.retain * self.stage.tile):
                return None
        if after.again and after.first >= min(self.stage.columns, self.on_chip * self.stage.tile):
            return State(after.first, after.loaded, after.made)  # nothing of the start is needed any more
        return after

    def room(self, state: State) -> int:
        """Banks for results while tiles of a state are processed."""
        return self.banks - self._read(state)


@cache
def _excess(one: Goal, other: Goal) -> int:
    """How many banks more results take at most than those of another goal."""
    return max(one.banks(made) - other.banks(made) for made in range(one.columns + 1))


@lru_cache(maxsize=200_000)
def fewest(task: Task, prices: Prices) -> Program | None:
    """Return what `best` does: for equal tasks once, and without a search if other tasks bound it from both sides."""
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
    greedy = None if prices.step else policy(task)
    if greedy is not None and greedy.loaded == task.stage.columns - begin.loaded:
        return greedy  # what is not on chip, once
    order, rest = count(), Rest(task, prices)
    heap: list[tuple[int, int, int, State]] = [(0, 0, next(order), begin)]
    reached: dict[State, int] = {begin: 0}
    came: dict[State, tuple[State, Action]] = {}
    done: set[State] = set()
    while heap:
        _, _, _, state = heapq.heappop(heap)
        if state.first == task.stage.columns:
            return _program(begin, state, came)
        cost = reached.pop(state, None)
        if cost is None:
            continue  # it was here before, for less
        done.add(state)
        for action, after in actions(task, state):
            known = cost + _bytes(prices, begin, state, action, after)
            if after not in done and known < reached.get(after, known + 1):
                reached[after] = known
                came[after] = state, action
                least = rest(after)
                if least is not None:
                    heapq.heappush(heap, (known + least, -after.first, next(order), after))
    return None


@lru_cache(maxsize=100_000)
def _steps_from(stage: Pass, banks: int, goal: Goal, retain: int) -> dict[int, int]:
    """By column the fewest steps from there on, as far as `Rest` knows; the same whatever is on chip at the start."""
    return {stage.columns: 0}


class Rest:
    """Bytes that nothing onward undercuts: what is not loaded yet, and the fewest steps that could do the rest.

    A step may process k tiles only if these, those that stay and the results that need nothing else fit side by side;
    from further on as few steps suffice. So the fewest steps are those that process as many as they may.
    """

    def __init__(self, task: Task, prices: Prices) -> None:
        self.task, self.prices = task, prices
        self.steps = _steps_from(task.stage, task.banks, task.goal, task.retain)

    def __call__(self, state: State) -> int | None:
        """The bytes, or None if the stage cannot be ended from there."""
        steps = self.steps.get(state.first)
        if steps is None:
            steps = self._fewest(state.first)
        if steps >= _NEVER:
            return None
        return (self.task.stage.columns - state.loaded) * self.prices.column + steps * self.prices.step

    def _fewest(self, first: int) -> int:
        path = [first]
        while path[-1] not in self.steps:
            end = self._furthest(path[-1])
            if end is None:
                self.steps[path[-1]] = _NEVER
                break
            path.append(end)
        for before, after in zip(path[-2::-1], path[:0:-1], strict=True):
            self.steps[before] = min(_NEVER, self.steps[after] + 1)
        return self.steps[first]

    def _furthest(self, first: int) -> int | None:
        """Where the longest step from a column ends, None if there is no step."""
        task, stage = self.task, self.task.stage
        room = task.banks - min(task.retain, -(-first // stage.tile))
        for tiles in range(min(room, -(-(stage.columns - first) // stage.tile)), 0, -1):
            end = min(stage.columns, first + tiles * stage.tile)
            if tiles + task.goal.banks(stage.complete(end)) <= room:
                return end
        return None


@cache
def _processing(tiles: int) -> Action:
    return Action("process", tiles)


def actions(task: Task, state: State) -> Iterator[tuple[Action, State]]:
    """All actions from a state, with the states they lead to."""
    loaded = task.load(state)
    if loaded is not None:
        yield _LOAD, loaded
    room = task.room(state)
    for tiles in range(1, task.stage.tiles(state) + 1):
        after = task.process(state, tiles, room)
        if after is not None:
            yield _processing(tiles), after


def _bytes(prices: Prices, begin: State, state: State, action: Action, after: State) -> int:
    if action.name == "process":
        return prices.step + reloaded(begin, state, after) * prices.reload
    return (after.loaded - state.loaded) * prices.column


def reloaded(begin: State, state: State, after: State) -> int:
    """Columns of the start that a process step makes the next loads bring again: once, DRAM has them then."""
    return max(0, begin.loaded - after.first) if after.again and not state.again else 0


def _program(begin: State, end: State, came: dict[State, tuple[State, Action]]) -> Program:
    """Follow a path back, and join loads that follow each other."""
    path = [end]
    done: list[Action] = []
    while path[-1] != begin:
        state, action = came[path[-1]]
        path.append(state)
        done.append(action)
    return told(path[::-1], done[::-1])


def told(path: list[State], done: list[Action]) -> Program:
    """Return the program of a path: loads that follow each other are one action."""
    loaded = again = 0
    joined: list[Action] = []
    for action, state, after in zip(done, path[:-1], path[1:], strict=True):
        if action.name == "load":
            loaded += after.loaded - state.loaded
            if joined and joined[-1].name == "load":
                joined[-1] = Action("load", joined[-1].tiles + action.tiles)
                continue
        else:
            again += reloaded(path[0], state, after)
        joined.append(action)
    return Program(tuple(joined), loaded, again, sum(a.name == "process" for a in joined))


def told_apart(program: Program) -> Iterator[Action]:
    """The actions of a program with a load for every tile."""
    for action in program.actions:
        yield from [Action("load", 1)] * action.tiles if action.name == "load" else [action]


def policy(task: Task, *, most: int | None = None, inputs: int | None = None) -> Program | None:
    """Return the program of the paper's MOM manager for this goal, or None if it gets stuck.

    Parameters
    ----------
    most : int, optional
        Tiles of one process step; all that may be by default (MIN).
    inputs : int, optional
        Banks for tiles that are read; all that are free by default.
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


def _load(task: Task, state: State) -> tuple[Action, State] | None:
    """One tile, if the result of the next process step still finds a bank."""
    after = task.load(state)
    return (Action("load", 1), after) if after is not None and task.process(after, 1) is not None else None


def _forced(task: Task, state: State) -> tuple[Action, State] | None:
    """One tile because nothing can be processed without it (a window over the whole map)."""
    after = task.load(state)
    return None if after is None else (Action("load", 1), after)


def _process(task: Task, state: State, most: int | None) -> tuple[Action, State] | None:
    """As many tiles as may be."""
    on_chip = task.stage.tiles(state)
    for tiles in range(min(on_chip, most or on_chip), 0, -1):
        after = task.process(state, tiles)
        if after is not None:
            return Action("process", tiles), after
    return None

"""Banks, inside one stage: tasks, the actions they allow, and control programs.

Sets, actions and constraints are those of `formulations.banks.stage`, which chooses among the programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import repeat
from typing import Literal, NamedTuple

from hwmodels.banks.steps import Pass, PassState, TileGoal


@dataclass(frozen=True)
class Action:
    """``load`` or ``process`` a number of tiles."""

    name: Literal["load", "process"]
    tiles: int


_LOAD = Action("load", 1)


class Prices(NamedTuple):
    """Bytes that a program is charged."""

    column: int
    step: int = 0
    """`column`, `step`: of a column that is loaded, of a process step (its weights, if they are loaded anew)."""
    reload: int = 0
    """Of a column that is reloaded though it was on chip: its producer has to write it too."""


@dataclass(frozen=True)
class Program:
    """A control program and what it moves."""

    actions: tuple[Action, ...]
    loaded: int
    """Columns loaded, reloads included."""
    reloaded: int
    """Columns loaded though they were on chip at the start."""
    steps: int
    """Process steps."""

    def bytes(self, prices: Prices) -> int:
        """What the program moves, the result and weights that are loaded once aside."""
        return self.loaded * prices.column + self.steps * prices.step + self.reloaded * prices.reload


@dataclass(frozen=True)
class Task:
    """One stage in one direction, and what it finds and leaves."""

    stage: Pass
    banks: int
    """Those that no other map takes."""
    on_chip: int
    """First tiles of the map that are there at the start."""
    goal: TileGoal
    """What stays of the result."""
    retain: int = 0
    """First tiles of the map that stay for other stages."""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.stage, self.banks, self.on_chip, self.goal, self.retain))

    def freer(self, other: Task) -> bool:
        """Whether it leaves as much room as another task of its pass and start, so allows all its programs."""
        if self.stage is not other.stage:
            return False
        return self.retain <= other.retain and _excess(self.goal, other.goal) <= self.banks - other.banks

    def staying(self, state: PassState) -> int:
        """How many of the first tiles that are left stay for another stage."""
        return self.retain - min(self.retain, -(-state.first // self.stage.tile)) if self.retain else 0

    def begin(self) -> PassState | None:
        """The first state, if it fits and the last step may: a tile to process beside all that stays."""
        state, last = self.stage.start(self.on_chip), self.goal.beside(self.retain, self.stage.all_tiles)
        return state if max(last, self.taken(state)) <= self.banks else None

    def taken(self, state: PassState) -> int:
        """Banks in use."""
        return self._read(state) + self.goal.banks[state.made]

    def _read(self, state: PassState) -> int:
        """Banks with tiles that are read, or stay of those that were."""
        tile, retain = self.stage.tile, self.retain
        on_chip = -(-(state.loaded - state.first) // tile)
        return on_chip + (min(retain, -(-state.first // tile)) if retain else 0)

    def load(self, state: PassState) -> PassState | None:
        """Load one tile, if there is one and a bank for it."""
        if state.loaded == self.stage.columns or self.taken(state) >= self.banks:
            return None
        return self.stage.load(state)

    def process(self, state: PassState, tiles: int, room: int | None = None) -> PassState | None:
        """Process the first tiles, if their results fit beside them and no tile that stays is cut by a reload.

        `room`: banks for results (the same for all numbers of tiles).
        """
        after = self.stage.process(state, tiles)
        if after is None or self.goal.banks[after.made] > (self.room(state) if room is None else room):
            return None
        if self.retain:
            end = min(state.loaded, state.first + tiles * self.stage.tile)
            if after.first < min(end, self.retain * self.stage.tile):
                return None
        if after.again and after.first >= min(self.stage.columns, self.on_chip * self.stage.tile):
            return PassState(after.first, after.loaded, after.made)  # nothing of the start is needed any more
        return after

    def follow(self, state: PassState, action: Action) -> PassState | None:
        """Load one tile or process some, if that may be."""
        return self.load(state) if action.name == "load" else self.process(state, action.tiles)

    def room(self, state: PassState) -> int:
        """Banks for results while tiles of a state are processed."""
        return self.banks - self._read(state)


@cache
def _excess(one: TileGoal, other: TileGoal) -> int:
    """How many banks more results take at most than those of another goal."""
    return max(mine - others for mine, others in zip(one.banks, other.banks, strict=True))


@cache
def _processing(tiles: int) -> Action:
    return Action("process", tiles)


def actions(task: Task, state: PassState) -> Iterator[tuple[Action, PassState]]:
    """All actions from a state, with the states they lead to."""
    loaded = task.load(state)
    if loaded is not None:
        yield _LOAD, loaded
    room = task.room(state)
    for tiles in range(1, task.stage.tiles(state) + 1):
        after = task.process(state, tiles, room)
        if after is not None:
            yield _processing(tiles), after


def reloaded(begin: PassState, state: PassState, after: PassState) -> int:
    """Columns of the start that a process step makes the next loads bring again: once, DRAM has them then."""
    return max(0, begin.loaded - after.first) if after.again and not state.again else 0


def told(path: list[PassState], done: list[Action]) -> Program:
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


def followed(task: Task, some: Iterable[Action]) -> Program | None:
    """Return the program with these actions; None if the task does not allow them, or they do not end it."""
    state = task.begin()
    if state is None:
        return None
    path, done = [state], list[Action]()
    for action in told_apart(some):
        after = task.follow(path[-1], action)
        if after is None:
            return None
        path.append(after)
        done.append(action)
    return told(path, done) if path[-1].first == task.stage.columns else None


def told_apart(some: Iterable[Action]) -> Iterator[Action]:
    """Actions with a load for every tile."""
    for action in some:
        yield from repeat(_LOAD, action.tiles) if action.name == "load" else (action,)

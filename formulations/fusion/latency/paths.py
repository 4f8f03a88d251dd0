"""The least latency over cuts, by dynamic programming with labels.

State   a cut, the maps on chip there, whether the result of the way before is stored only at its end; labels
        (E, A1, A2), none of which is at least another one everywhere
Arc     a way of a group (`formulations.fusion.latency.options`): a matrix that is applied to every label; behind a
        way whose result is stored at its end, E is at first max(E, A2) and the ticks until that is loaded again
Value   max(E, A2) at the last cut; with several queues (`products.joint`) the most of E and the last clock of each

Where the timeline of a path takes longer than its labels say, those of its ways that do are charged with it, and the
labels are found again (`again`). With a cap on bytes ways are left out that no path within it has (`within`); where the
cap is the least there is, every path of those that are left moves as much.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from formulations.clock import ENDLESS, Clock
from formulations.fusion.latency.options import Options, Passed, Place, There, Way
from formulations.fusion.strips import Ints, Mask
from formulations.processes import elsewhere, processes

#: Of so many cuts ways are found in several processes, where there may be some.
MANY_CUTS = 16
State = tuple[int, There, bool]
#: The ways from a cut, by last layer and place.
From = dict[int, dict[Place, list[Way]]]
#: At the end, the last of the state, and the number of a label.
End = tuple[bool, int]


@dataclass
class Labels:
    """Clocks at a state, with the way and the label that each comes from."""

    clocks: Ints
    """(labels, clocks)."""
    way: list[Way | None]
    before: list[tuple[State, int] | None]


def undominated(clocks: Ints, most: int) -> Ints:
    """Numbers of labels of which none is at most another one's, at most so many of them.

    In the order of the first clock, a label is kept if none of those before it is at most this one in the others.
    """
    order = np.lexsort(clocks.T[::-1])
    rest = clocks[order, 1:]
    if rest.shape[1] == 1:
        kept = np.flatnonzero(np.append(True, rest[1:, 0] < np.minimum.accumulate(rest[:-1, 0])))
    else:
        kept = np.array(_stair(*rest.T.tolist()) if rest.shape[1] == 2 else _front(rest), np.int64)
    if len(kept) > most:
        kept = kept[np.unique(np.linspace(0, len(kept) - 1, most).astype(int))]
    return order[kept]


def _front(rest: Ints) -> list[int]:
    """The numbers of those that none before them is at most."""
    kept, front = list[int](), rest[:0]
    for at, mine in enumerate(rest):
        if len(front) and (front <= mine).all(axis=1).any():
            continue
        kept.append(at)
        front = np.vstack([front[~(mine <= front).all(axis=1)], mine])
    return kept


def _stair(second: list[int], last: list[int]) -> list[int]:
    """The same of two clocks: those that are least form a stair, which falls from each step to the next."""
    kept, across, down = list[int](), list[int](), list[int]()
    for at, (x, y) in enumerate(zip(second, last, strict=True)):
        place = bisect_right(across, x)
        if place and down[place - 1] <= y:
            continue
        kept.append(at)
        begin = place - 1 if place and across[place - 1] == x else place
        end = place
        while end < len(down) and down[end] >= y:
            end += 1
        across[begin:end], down[begin:end] = [x], [y]
    return kept


def _arcs(ways: Sequence[Way]) -> Iterator[tuple[bool, Ints, Ints, Ints, Ints, list[Way]]]:
    """Yield the ways that are stored at their end, and the others: matrices, ticks of `fresh`, bytes, `moving`."""
    for whole in (False, True):
        if some := [way for way in ways if way.whole == whole]:
            fresh, moved = np.array([(way.fresh, way.bytes) for way in some], np.int64).T
            moving = np.array([way.moving for way in some], np.int64)
            yield whole, np.stack([way.matrix for way in some]), fresh, moved, moving, some


def applied(matrix: Ints, fresh: Ints, clocks: Ints, *, late: bool) -> Ints:
    """Labels behind some ways, (ways, labels, clocks)."""
    clocks = np.broadcast_to(clocks, (len(matrix), *clocks.shape))
    if late and fresh.any():
        engine, stored = clocks[..., 0], clocks[..., -1]
        clocks = clocks.copy()
        clocks[..., 0] = np.where(fresh[:, None] > 0, np.maximum(engine, stored) + fresh[:, None], engine)
    reached: Ints = (matrix[:, None] + clocks[:, :, None, :]).max(axis=3)
    return reached


class Move(NamedTuple):
    """The ways from a state to another one."""

    state: State
    after: State
    matrix: Ints
    """(ways, clocks, clocks)."""
    fresh: Ints
    bytes: Ints
    """`fresh`, `bytes`: of every way, (ways,)."""
    moving: Ints
    """(ways, channels); of options no channel."""
    ways: list[Way]

    def some(self, which: Mask) -> Move:
        """Some of the ways."""
        ways = [way for way, kept in zip(self.ways, which.tolist(), strict=True) if kept]
        matrix, fresh, moved, moving = (one[which] for one in (self.matrix, self.fresh, self.bytes, self.moving))
        return Move(self.state, self.after, matrix, fresh, moved, moving, ways)

    def onward(self, clocks: Ints, late: Mapping[Way, int], price: float = 0) -> Ints:
        """Labels behind all ways, (ways, labels, clocks).

        Some end later by so many ticks; a byte adds a `price` to all clocks.
        """
        reached = applied(self.matrix, self.fresh, clocks, late=self.state[2])
        if late:
            reached[..., 0] += np.array([late.get(way, 0) for way in self.ways], np.int64)[:, None]
        if price:
            reached += np.rint(price * self.bytes).astype(np.int64)[:, None, None]
        return reached


class Paths:
    """Labels at every cut, and the ways back; raises TimeUp.

    Groups have `longest` layers at most, and a state keeps so many `labels` at most: all of them for a bound. `apart`:
    nothing of a group begins before all of the one before it has ended.
    """

    def __init__(
        self, options: Options, clock: Clock = ENDLESS, longest: int = 2**30, labels: int = 2**30, *,
        apart: bool = False,
    ) -> None:  # fmt: skip
        self.options, self.longest, self.most, self.apart = options, longest, labels, apart
        self.count, self.clock, self.looked = len(options.net.layers), clock, 0
        #: By cut, of all states there.
        self.moves: list[list[Move]] = []
        with ExitStack() as stack:
            number = processes() if self.count >= MANY_CUTS else 1
            #: The ways from every so many cuts, from another process; not from the first one.
            self._others: list[Iterator[From]] = [
                stack.enter_context(elsewhere(partial(self._from, range(cut, self.count, number))))
                for cut in range(1, number)
            ]
            self._labelled(lambda cut: self.moves.append([*self._moves(cut)]), {})
        self._others = []

    def again(self, late: Mapping[Way, int], price: float = 0) -> None:
        """Find labels anew, with ways that end later by so many ticks, and a price of a byte in ticks."""
        self._labelled(lambda _: self.clock.tick(), late, price)

    def within(self, cap: int) -> bool:
        """Leave ways out that no path of so many bytes has; whether one is left. Labels are to be found again."""
        start, end = self._least(self.moves), [(self.count, frozenset[int](), whole) for whole in (False, True)]
        behind = self._least(self.moves, dict.fromkeys(end, 0))
        left: list[list[Move]] = []
        for moves in self.moves:
            some = ((move, start.get(move.state), behind.get(move.after)) for move in moves)
            left.append([kept for move, before, after in some if before is not None and after is not None
                         and (kept := move.some(move.bytes <= cap - before - after)).ways])  # fmt: skip
        self.moves = left
        return any(left)

    @property
    def fewest(self) -> int:
        """The fewest bytes of all paths."""
        return self._at_the_end(self._least(self.moves))

    @property
    def moving(self) -> int:
        """Of bounds (`Floors`): what the transfers of a channel take by themselves, on any path; the most of all."""
        every = (self._least(self.moves, of=lambda move, c=c: move.moving[:, c])  # type: ignore[misc]
                 for c in range(self.options.channels.number))  # fmt: skip
        return max(map(self._at_the_end, every))

    def _at_the_end(self, least: Mapping[State, int]) -> int:
        return min((value for (cut, *_), value in least.items() if cut == self.count), default=0)

    def _least(
        self, moves: Sequence[Sequence[Move]], ends: Mapping[State, int] | None = None,
        of: Callable[[Move], Ints] = attrgetter("bytes"),
    ) -> dict[State, int]:  # fmt: skip
        """The fewest bytes (or what is asked `of` ways) from the begin to every state; or from it to some ends."""
        least = {(0, frozenset[int](), False): 0} if ends is None else dict(ends)
        for some in moves if ends is None else reversed(moves):
            for move in some:
                here, there = (move.state, move.after) if ends is None else (move.after, move.state)
                if here in least:
                    value = least[here] + int(of(move).min())
                    least[there] = min(value, least.get(there, value))
        return least

    def _labelled(self, reach: Callable[[int], None], late: Mapping[Way, int], price: float = 0) -> None:
        start = Labels(np.zeros((1, self.options.clocks), np.int64), [None], [None])
        self.labels: dict[State, Labels] = {(0, frozenset(), False): start}
        opened = defaultdict[State, list[tuple[Ints, State, list[Way]]]](list)
        for cut in range(self.count):
            reach(cut)
            for move in self.moves[cut]:
                if move.state not in self.labels:
                    continue
                reached = move.onward(self.labels[move.state].clocks, late, price)
                if self.apart:
                    reached[:] = reached.max(axis=2, keepdims=True)
                opened[move.after].append((reached, move.state, move.ways))
            for state in [state for state in opened if state[0] == cut + 1]:
                self.labels[state] = self._best(opened.pop(state))

    def _moves(self, first: int) -> Iterator[Move]:
        """Yield the ways of all groups from a cut."""
        states, theirs = [state for state in self.labels if state[0] == first], self._theirs(first)
        for last in self._lasts(first):
            self.clock.tick()
            places = self._places(first, last, {there for _, there, _ in states})
            wanted = dict.fromkeys(places.values())
            ways = self.options.ways(first, last, wanted) if theirs is None else {p: theirs[last][p] for p in wanted}
            self.looked += sum(map(len, ways.values()))
            arcs = {place: [*_arcs(some)] for place, some in ways.items()}
            for state in states:
                for (there, after), place in places.items():
                    for whole, matrix, fresh, moved, moving, some in arcs[place] if there == state[1] else ():
                        yield Move(state, (last + 1, after, whole), matrix, fresh, moved, moving, some)

    def _lasts(self, first: int) -> range:
        """The last layers of groups from a cut."""
        return range(first, min(self.count, first + self.longest))

    def _places(self, first: int, last: int, before: Iterable[There]) -> dict[tuple[There, There], Place]:
        """By maps on chip before and after a group its place."""
        cuts = ((there, after) for there in before for after in self._after(first, last, there))
        return {cut: self.options.near(first, last, *cut) for cut in cuts}

    def _theirs(self, first: int) -> From | None:
        """The ways from a cut that another process has found; None if they are to be found here."""
        at = first % (len(self._others) + 1) - 1
        try:
            return next(self._others[at], None) if at >= 0 else None
        except EOFError:  # it was killed: all is found here
            self._others = []
            return None

    def _from(self, cuts: Iterable[int]) -> Iterator[From]:
        """Yield the ways from some cuts, with any maps on chip there."""
        for first in cuts:
            before = self.options.states(first)
            each = ((last, self._places(first, last, before).values()) for last in self._lasts(first))
            yield {last: self.options.ways(first, last, dict.fromkeys(places)) for last, places in each}

    def _after(self, first: int, last: int, there: There) -> Iterator[There]:
        """Maps on chip after a group, for those before it."""
        options = self.options
        going = frozenset(k for k in there if options.residence(k).uses[-1] > last)
        born = frozenset(k for k in options.alive(last + 1) if options.residence(k).born >= first)
        for some in options.states(last + 1):
            if some <= going | born and going <= some and options.near(first, last, there, some)[1] >= 0:
                yield some

    def _best(self, made: Sequence[tuple[Ints, State, list[Way]]]) -> Labels:
        """Of all labels of a state those that are kept."""
        clocks = np.concatenate([one.reshape(-1, one.shape[2]) for one, _, _ in made])
        source = np.repeat(np.arange(len(made)), [one.shape[0] * one.shape[1] for one, _, _ in made])
        begin = np.cumsum([0, *(one.shape[0] * one.shape[1] for one, _, _ in made)])
        kept = undominated(clocks, self.most)
        ways, before = list[Way | None](), list[tuple[State, int] | None]()
        for at in kept.tolist():
            reached, comes, some = made[source[at]]
            way, label = divmod(at - int(begin[source[at]]), reached.shape[1])
            ways.append(some[way])
            before.append((comes, label))
        return Labels(clocks[kept], ways, before)

    def ends(self) -> list[tuple[int, End]]:
        """Latency of every label at the end, the least first."""
        found = list[tuple[int, End]]()
        for whole in (False, True):
            if last := self.labels.get((self.count, frozenset(), whole)):
                latency = last.clocks[:, self.options.ends].max(axis=1).tolist()
                found += [(value, (whole, k)) for k, value in enumerate(latency)]
        return sorted(found)

    def clocks(self, path: Sequence[Passed], late: Mapping[Way, int]) -> list[int]:
        """When every way of a path ends on the engine, by labels."""
        clocks, whole, found = np.zeros((1, self.options.clocks), np.int64), False, list[int]()
        for way, *_ in path:
            clocks = applied(way.matrix[None], np.array([way.fresh]), clocks, late=whole)[0]
            clocks[:, 0] += late.get(way, 0)
            whole = way.whole
            found.append(int(clocks[0, 0]))
        return found

    def path(self, end: End) -> list[Passed]:
        """The ways to a label at the end, each with all maps on chip while it runs."""
        (whole, label), found = end, list[Passed]()
        state: State = (self.count, frozenset(), whole)
        while True:
            mine = self.labels[state]
            way, before = mine.way[label], mine.before[label]
            if way is None or before is None:
                return found[::-1]
            found.append(Passed(way, before[0][1], state[1]))
            state, label = before

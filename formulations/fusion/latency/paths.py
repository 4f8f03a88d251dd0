"""The least latency over cuts, by dynamic programming with labels.

State   a cut, the maps on chip there; labels (E, A1, A2), none of which is at least another one everywhere
Arc     a way of a group (`formulations.fusion.latency.options`): a matrix that is applied to every label
Value   max(E, A2) at the last cut
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.clock import ENDLESS, Clock
from formulations.fusion.latency.options import Options, There, Way
from formulations.fusion.strips import Ints

State = tuple[int, There]


@dataclass
class Labels:
    """Clocks at a state, with the way and the label that each comes from."""

    clocks: Ints
    """(labels, 3)."""
    way: list[Way | None]
    before: list[tuple[State, int] | None]


def undominated(clocks: Ints, most: int) -> Ints:
    """Numbers of labels of which none is at most another one's, at most so many of them."""
    order = np.lexsort(clocks.T[::-1])
    clocks = clocks[order]
    kept = list[int]()
    front = np.empty((0, 2), np.int64)
    for at in range(len(clocks)):
        mine = clocks[at, 1:]
        if len(front) and (front <= mine).all(axis=1).any():
            continue
        kept.append(at)
        front = np.vstack([front[~(mine <= front).all(axis=1)], mine])
    if len(kept) > most:
        kept = [kept[k] for k in np.unique(np.linspace(0, len(kept) - 1, most).astype(int))]
    return order[kept]


class Paths:
    """Labels at every cut, and the ways back; raises TimeUp.

    Groups have `longest` layers at most, and a state keeps so many `labels` at most: all of them for a bound.
    """

    def __init__(self, options: Options, clock: Clock = ENDLESS, longest: int = 2**30, labels: int = 2**30) -> None:
        self.options, self.longest, self.most = options, longest, labels
        self.count, self.clock, self.looked = len(options.net.layers), clock, 0
        start = Labels(np.zeros((1, 3), np.int64), [None], [None])
        self.labels: dict[State, Labels] = {(0, frozenset()): start}
        self._open: dict[State, list[tuple[Ints, State, list[Way]]]] = {}
        for cut in range(self.count):
            self._onward(cut, [there for at, there in self.labels if at == cut])
            for there in options.states(cut + 1):
                self._close((cut + 1, there))

    def _onward(self, first: int, states: Sequence[There]) -> None:
        """Apply the ways of all groups from a cut."""
        for last in range(first, min(self.count, first + self.longest)):
            self.clock.tick()
            moves = [(there, after) for there in states for after in self._after(first, last, there)]
            places = {move: self.options.near(first, last, move[0] | move[1]) for move in moves}
            ways = self.options.ways(first, last, dict.fromkeys(places.values()))
            self.looked += sum(map(len, ways.values()))
            for there, after in moves:
                if some := ways[places[there, after]]:
                    clocks = self.labels[first, there].clocks
                    stacked = np.stack([way.matrix for way in some])
                    reached = (stacked[:, None] + clocks[None, :, None, :]).max(axis=3)
                    self._open.setdefault((last + 1, after), []).append((reached, (first, there), some))

    def _after(self, first: int, last: int, there: There) -> Iterator[There]:
        """Maps on chip after a group, for those before it."""
        options = self.options
        going = frozenset(k for k in there if options.residence(k).uses[-1] > last)
        born = frozenset(k for k in options.alive(last + 1) if options.residence(k).born >= first)
        for some in options.states(last + 1):
            if some <= going | born and going <= some and options.bytes(there | some) <= options.room:
                yield some

    def _close(self, state: State) -> None:
        """Keep what is best at a state."""
        made = self._open.pop(state, [])
        if not made:
            return
        clocks = np.concatenate([one.reshape(-1, 3) for one, _, _ in made])
        source = np.repeat(np.arange(len(made)), [one.shape[0] * one.shape[1] for one, _, _ in made])
        begin = np.cumsum([0, *(one.shape[0] * one.shape[1] for one, _, _ in made)])
        kept = undominated(clocks, self.most)
        ways, before = list[Way | None](), list[tuple[State, int] | None]()
        for at in kept.tolist():
            reached, comes, some = made[source[at]]
            way, label = divmod(at - int(begin[source[at]]), reached.shape[1])
            ways.append(some[way])
            before.append((comes, label))
        self.labels[state] = Labels(clocks[kept], ways, before)

    def ends(self) -> list[tuple[int, int]]:
        """Latency and number of every label at the end, the least first."""
        last = self.labels.get((self.count, frozenset()))
        if last is None:
            return []
        latency = last.clocks[:, [0, 2]].max(axis=1)
        return sorted(zip(latency.tolist(), range(len(latency)), strict=True))

    def path(self, label: int) -> list[tuple[Way, There]]:
        """The ways to a label at the end, each with all maps on chip while it runs."""
        state, found = (self.count, frozenset[int]()), list[tuple[Way, There]]()
        while True:
            mine = self.labels[state]
            way, before = mine.way[label], mine.before[label]
            if way is None or before is None:
                return found[::-1]
            found.append((way, state[1] | before[0][1]))
            state, label = before

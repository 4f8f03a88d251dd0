"""Referee for several applications: releases at given offsets, processors that take what is ready by priority.

A task is ready when its operands are there and the task before it in its application's list for the processor has
ended; its processor takes, whenever it is free, the ready task of the highest priority, the oldest inference first, and
runs it with the copies of its result without interruption. Nothing is taken from the formulation but the lists.

Source: `heterogeneous_mapping_and_banks` 3.3.5.1 (non-preemptive, relative offsets unknown).
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Referee", "Repeated"]


@dataclass(frozen=True)
class Repeated:
    """An application: by processor its tasks in order, and ticks between releases."""

    lists: tuple[tuple[int, ...], ...]
    period: int


class Referee:
    """Simulates one plan for many offsets.

    Parameters
    ----------
    edges : pairs of tasks
    times : by task and processor, None where a task cannot run
    copies : ticks by (edge, processor before, processor after)
    streams : by priority, the highest first

    Raises
    ------
    ValueError
        If a task is in no list or two, or a processor cannot run what its list has.
    """

    def __init__(
        self, edges: Sequence[tuple[int, int]], times: Sequence[Sequence[int | None]],
        copies: Mapping[tuple[int, int, int], int], streams: Sequence[Repeated],
    ) -> None:  # fmt: skip
        self.streams, self.number = streams, len(streams[0].lists)
        at = {i: p for stream in streams for p, few in enumerate(stream.lists) for i in few}
        if sorted(i for s in streams for few in s.lists for i in few) != list(range(len(times))):
            raise ValueError(f"the lists hold {len(at)} tasks, or some twice; there are {len(times)}")
        self.at, self.ticks = [at[i] for i in range(len(times))], [0] * len(times)
        for i, p in at.items():
            time = times[i][p]
            if time is None:
                raise ValueError(f"task {i}: processor {p} cannot run it")
            self.ticks[i] = time
        self.after: list[list[int]] = [[] for _ in times]
        self.needs = [0] * len(times)
        for e, (i, j) in enumerate(edges):
            self._follows(i, j)
            if at[i] != at[j]:
                self.ticks[i] += copies[e, at[i], at[j]]
        for stream in streams:
            for few in stream.lists:
                for i, j in pairwise(few):
                    self._follows(i, j)
        self.tasks = [sorted(i for few in stream.lists for i in few) for stream in streams]

    def _follows(self, i: int, j: int) -> None:
        self.after[i].append(j)
        self.needs[j] += 1

    def run(self, offsets: Sequence[int], until: int) -> list[int]:
        """Return the longest response of every application over all inferences released before a time.

        An application whose inference is never done has twice the time from its offset on.
        """
        events: list[tuple[int, int, int, int]] = []
        for a, (stream, offset) in enumerate(zip(self.streams, offsets, strict=True)):
            events += [(t, 0, a, t) for t in range(offset, until, stream.period)]
        heapq.heapify(events)
        ready: list[list[tuple[int, int, int]]] = [[] for _ in range(self.number)]
        free = [True] * self.number
        open_: dict[tuple[int, int], list[int]] = {}
        worst = [0] * len(self.streams)
        while events:
            now, touched = events[0][0], set[int]()
            while events and events[0][0] == now:
                _, kind, first, released = heapq.heappop(events)
                if kind == 0:
                    self._release(first, released, open_, ready, touched)
                else:
                    free[self.at[first]] = True
                    touched.add(self.at[first])
                    self._end(first, kind - 1, released, now, open_, ready, touched, worst)
            for p in touched:
                if free[p] and ready[p]:
                    a, released, i = heapq.heappop(ready[p])
                    free[p] = False
                    heapq.heappush(events, (now + self.ticks[i], a + 1, i, released))
        for a, released in open_:
            worst[a] = max(worst[a], 2 * until - released)
        return worst

    def _release(
        self, a: int, released: int, open_: dict[tuple[int, int], list[int]], ready: list[list[tuple[int, int, int]]],
        touched: set[int],
    ) -> None:  # fmt: skip
        open_[a, released] = [*self.needs, len(self.tasks[a])]
        for i in self.tasks[a]:
            if not self.needs[i]:
                heapq.heappush(ready[self.at[i]], (a, released, i))
                touched.add(self.at[i])

    def _end(
        self, i: int, a: int, released: int, now: int, open_: dict[tuple[int, int], list[int]],
        ready: list[list[tuple[int, int, int]]], touched: set[int], worst: list[int],
    ) -> None:  # fmt: skip
        needs = open_[a, released]
        for j in self.after[i]:
            needs[j] -= 1
            if not needs[j]:
                heapq.heappush(ready[self.at[j]], (a, released, j))
                touched.add(self.at[j])
        needs[-1] -= 1
        if not needs[-1]:
            del open_[a, released]
            worst[a] = max(worst[a], now - released)

    def hunt(self, draws: int, seed: int = 0) -> list[int]:
        """Return the longest responses seen over random offsets, each for three of the longest periods.

        Every other draw lets the applications of higher priority, or lower, arrive while one of them is on its way.
        """
        rng, worst = random.Random(seed), [0] * len(self.streams)
        longest = max(stream.period for stream in self.streams)
        for draw in range(draws):
            offsets = [rng.randrange(stream.period) for stream in self.streams]
            if draw % 2:
                base = rng.choice(offsets)
                near = [self.ticks[rng.choice(few)] for few in self.tasks]
                offsets = [
                    (base + rng.randrange(-ticks, ticks + 1)) % stream.period
                    for ticks, stream in zip(near, self.streams, strict=True)
                ]
            seen = self.run(offsets, 3 * longest)
            worst = [max(a, b) for a, b in zip(worst, seen, strict=True)]
        return worst

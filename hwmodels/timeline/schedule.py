"""Schedules of a timeline: steps of the engine in their order, and transfers in the order of their DMA queues.

Memory is guarded by steps, not by the clock. A load begins at its **guard**, the step from whose begin on its bytes may
lie beside those of the steps that run; a store ends by its **limit**, the step that waits for it to have its bytes.
So a slow transfer delays and never overflows, and a processor carries the schedule out by a few commands (`orders`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple


@dataclass(frozen=True)
class Step:
    """A run of the engine without interruption: a strip of a layer, a block of filters."""

    ticks: int
    bytes: int
    """On chip while it runs, all that it reads and makes included."""


@dataclass(frozen=True)
class Load:
    """A transfer to the chip; steps count from 1."""

    ticks: int
    bytes: int
    due: int
    """The first step that reads it, among whose bytes it is from then on."""
    guard: int
    """The first step beside whose bytes it lies; at most `due`."""
    queue: int = 0
    ready: int = 1
    """The least guard: what steps before it store, in the same queue, is stored before it is loaded."""


@dataclass(frozen=True)
class Store:
    """A transfer from the chip."""

    ticks: int
    bytes: int
    """That nobody needs but the store; 0 if what it stores stays on chip."""
    released: int
    """The step that ends before it begins, among whose bytes it is until then."""
    limit: int
    """The first step that has its bytes, which waits for it; one more than there are steps if none does."""
    queue: int = 0


Move = Load | Store


def begins(one: Move) -> int:
    """The event that lets a transfer begin: 2 t is the end of step t - 1, 2 t + 1 room for step t."""
    return 2 * one.guard + 1 if isinstance(one, Load) else 2 * (one.released + 1)


def awaits(one: Move) -> int:
    """The event that waits for the end of a transfer: 2 t is room for step t, 2 t + 1 its begin."""
    return 2 * one.due + 1 if isinstance(one, Load) else 2 * one.limit


class Order(NamedTuple):
    """A command of the processor: queue a transfer, wait for its end, or run a step and wait for its end."""

    do: Literal["push", "wait", "run"]
    at: int
    """The step (from 1), or the transfer (from 0)."""


@dataclass(frozen=True)
class Timeline:
    """Steps in their order, and transfers: those of a queue in the order of that queue."""

    steps: tuple[Step, ...]
    transfers: tuple[Move, ...]

    def orders(self) -> Iterator[Order]:
        """Yield what the processor does.

        Before a step it queues the stores that were released, waits for those that have the step as their limit, queues
        the loads that are guarded by it, waits for those that are due, and runs it. A transfer behind one in its queue
        that is queued later waits for that.
        """
        last = len(self.steps) + 1
        queues, awaited = defaultdict[int, deque[int]](deque), defaultdict[tuple[int, type], list[int]](list)
        for k, one in enumerate(self.transfers):
            queues[one.queue].append(k)
            awaited[one.limit if isinstance(one, Store) else one.due, type(one)].append(k)
        for step in range(1, last + 1):
            for kind in (Store, Load):
                for queue in queues.values():
                    while queue and _may_begin(self.transfers[queue[0]], step, kind):
                        yield Order("push", queue.popleft())
                yield from (Order("wait", k) for k in awaited[step, kind])
            if step < last:
                yield Order("run", step)


def _may_begin(one: Move, step: int, kind: type) -> bool:
    """Whether a transfer may be queued before a step: stores first, and then loads as well."""
    if isinstance(one, Store):
        return one.released < step
    return one.guard < step + (kind is Load)

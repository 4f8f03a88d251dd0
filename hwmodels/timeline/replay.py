"""The referee of timelines: a processor, an engine and DMA queues, event by event.

The processor carries out the orders one after the other (`Timeline.orders`): it queues transfers, waits for them, and
runs steps. A queue moves one transfer at a time, in the order they came. What lies on chip is summed whenever something
begins or ends: the bytes of the step that runs; between two steps, the most that may stay from one to the next; and
transfers beside them, loads from their begin on and stores to their end.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from hwmodels.timeline.schedule import Load, Store, Timeline


@dataclass
class Replayed:
    """What was seen; times in ticks. With faults nothing else is said."""

    latency: int = 0
    peak_bytes: int = 0
    """The most that lay on chip at any time."""
    begin: dict[int, int] = field(default_factory=dict)
    """By step, when it began."""
    moved: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By transfer, when it began and ended."""
    faults: list[str] = field(default_factory=list)


def replay(timeline: Timeline) -> Replayed:
    """Carry the orders of a timeline out.

    Faults are a transfer that is waited for for ever, one that was never queued, and a step that runs without a load
    that is due or with a store left that it was to wait for.
    """
    machine = _Machine(timeline)
    orders = timeline.orders()
    order = next(orders, None)
    while order is not None or machine.events:
        while order is not None and not machine.running and (order.do != "wait" or order.at in machine.done):
            if order.do == "push":
                machine.push(order.at)
            elif order.do == "run":
                machine.run(order.at)
            order = next(orders, None)
        if not machine.events:
            break
        machine.next_event()
    return machine.seen_by_the_end(order.at if order else None)


class _Machine:
    """What happens, and what lies on chip."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline, self.clock, self.seen = timeline, 0, Replayed()
        self.events: list[tuple[int, int, int]] = []
        """When something ends, 0 and a transfer or 1 and a step."""
        self.queues, self.busy = defaultdict[int, deque[int]](deque), set[int]()
        self.done, self.beside, self.running, self.ended = set[int](), set[int](), 0, 0
        self.due, self.released, self.limit = (defaultdict[int, list[int]](list) for _ in range(3))
        for k, one in enumerate(timeline.transfers):
            if isinstance(one, Load):
                self.due[one.due].append(k)
            else:
                self.released[one.released].append(k)
                self.limit[one.limit].append(k)

    def push(self, number: int) -> None:
        self.queues[self.timeline.transfers[number].queue].append(number)
        self._begin()

    def run(self, step: int) -> None:
        late = [k for k in (*self.due[step], *self.limit[step]) if k not in self.done]
        self.seen.faults += [f"step {step} runs, and transfer {k} has not ended" for k in late]
        self.running, self.seen.begin[step] = step, self.clock
        self.beside -= {*self.due[step]}  # they are among the bytes of the step
        heapq.heappush(self.events, (self.clock + self.timeline.steps[step - 1].ticks, 1, step))
        self._look()

    def next_event(self) -> None:
        self.clock, is_step, number = heapq.heappop(self.events)
        if is_step:
            self.running, self.ended = 0, number
            self.beside |= {*self.released[number]}
        else:
            self.done.add(number)
            one, (begin, _) = self.timeline.transfers[number], self.seen.moved[number]
            self.seen.moved[number] = begin, self.clock
            self.busy.discard(one.queue)
            self.beside -= {number} if isinstance(one, Store) else set()
        self._begin()
        self._look()

    def seen_by_the_end(self, waited: int | None) -> Replayed:
        """All that was seen, if nothing is left."""
        if waited is not None:
            self.seen.faults.append(f"transfer {waited} is waited for for ever after step {self.ended}")
        elif len(self.done) < len(self.timeline.transfers):
            left = min(k for k in range(len(self.timeline.transfers)) if k not in self.done)
            self.seen.faults.append(f"transfer {left} is never queued")
        if self.seen.faults:
            return Replayed(faults=self.seen.faults)
        self.seen.latency = self.clock
        return self.seen

    def _begin(self) -> None:
        """Let queues go on."""
        for queue, waiting in self.queues.items():
            if waiting and queue not in self.busy:
                number = waiting.popleft()
                one = self.timeline.transfers[number]
                self.busy.add(queue)
                self.seen.moved[number] = self.clock, -1
                self.beside |= {number} if isinstance(one, Load) else set()
                heapq.heappush(self.events, (self.clock + one.ticks, 0, number))

    def _look(self) -> None:
        beside = sum(self.timeline.transfers[k].bytes for k in self.beside)
        self.seen.peak_bytes = max(self.seen.peak_bytes, sum(self._own()) + beside)

    def _own(self) -> Iterator[int]:
        """The bytes of the step that runs; between two steps what is no load of the next and no store of the last."""
        steps, moved = self.timeline.steps, self.timeline.transfers
        if self.running:
            yield steps[self.running - 1].bytes
        elif 0 < self.ended < len(steps):
            last = steps[self.ended - 1].bytes - sum(moved[k].bytes for k in self.released[self.ended])
            after = steps[self.ended].bytes - sum(moved[k].bytes for k in self.due[self.ended + 1])
            yield min(last, after)

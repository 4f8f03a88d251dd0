"""An order of transfers as a DMA would choose it while steps run: what is due next, as soon as it finds room.

While step t runs, a queue that is idle takes the first load by due step that may begin (what it loads is there), if it
finds room beside all steps from t on to the one that reads it; else it waits for the next step. Loads of maps that are
not there yet stand aside, as what is due later need not wait for them. A load that is due in t and was not taken begins
before t. Stores are queued when they are released: their bytes are kept free beside the next step, as far as there are
any, and a later step that has no room beside it waits for them.

Guards and limits are those of this course, so the timeline is the one that was gone through (`Draft.clocks`).

Example: steps of 10, 2 and 10 ticks; step 1 stores a map in 4 ticks that step 2 loads again in 4, step 3 loads weights
in 6. By due step these stand behind the map, and step 3 waits for 4 ticks; here they are loaded beside step 1.

Why: of loads that may be divided this order takes the least time (exchange two of them), and it is the one that labels
of paths count with (`formulations.fusion.latency.products`): as early as memory allows, stores as they come.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from formulations.prefetch.guards import Draft, Order, When


def forward(draft: Draft) -> tuple[Order, When]:
    """Return the order with its guards and limits."""
    return _Forward(draft).gone()


class _Forward:
    """Goes from step to step."""

    def __init__(self, draft: Draft) -> None:
        self.draft, self.left = draft, np.array(draft.beside, np.int64)
        self.order, self.when = list[int](), draft.close.copy()
        self.waiting = draft.loads.copy()
        """Loads that are not taken yet, by due step."""
        self.due, self.released = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        for k in draft.apart():
            (self.due if draft.load[k] else self.released)[draft.fixed[k]].append(k)
        self.idle = dict.fromkeys(draft.queue, 0)
        """By queue when it has done all that it took."""
        self.ends = dict[int, int]()
        """Of transfers that were taken."""
        self.stores = list[int]()
        """Those that may not have ended."""

    def gone(self) -> tuple[Order, When]:
        """All steps, one after the other."""
        end = 0
        for step, ticks in enumerate(self.draft.steps, 1):
            room = self._room(step, end)
            for k in self.due[step]:
                if k not in self.ends:
                    self._take(k, room, step)
            end = max(room, *(self.ends[k] for k in self.due[step])) + ticks if self.due[step] else room + ticks
            self._ahead(step, room, end)
            for k in self.released[step]:
                self._take(k, end)
            self.stores += self.released[step]
        for k in self.stores:
            self.when[k] = self.draft.last
        return self.order, self.when

    def _take(self, k: int, now: int, guard: int | None = None) -> None:
        """A transfer behind all others of its queue; a load beside the steps from its guard on."""
        queue = self.draft.queue[k]
        self.ends[k] = self.idle[queue] = max(self.idle[queue], now) + self.draft.ticks[k]
        self.order.append(k)
        if guard is not None:
            self.when[k] = guard
            self.left[guard : self.draft.fixed[k]] -= self.draft.bytes[k]

    def _room(self, step: int, end: int) -> int:
        """When a step has room: stores that lie beside it find bytes, or have ended."""
        room, still = end, list[int]()
        for k in self.stores:
            if self.ends[k] > end and self.left[step] >= self.draft.bytes[k]:
                self.left[step] -= self.draft.bytes[k]
                still.append(k)
            else:
                self.when[k], room = step, max(room, self.ends[k])
        self.stores = still
        return room

    def _ahead(self, step: int, room: int, end: int) -> None:
        """Take loads while a step runs, as long as queues are idle and memory has room for what is next."""
        draft, left, free = self.draft, self.left, {queue for queue, at in self.idle.items() if max(at, room) < end}
        kept = min(sum(draft.bytes[k] for k in self.released[step]), max(0, int(left[step + 1])))
        left[step + 1] -= kept  # for what the step stores
        waiting = list[int]()
        for n, k in enumerate(self.waiting):
            if k in self.ends:
                continue
            if not free:
                waiting += self.waiting[n:]
                break
            queue = draft.queue[k]
            if queue not in free or draft.ready[k] > step:
                waiting.append(k)
            elif int(left[step : draft.fixed[k]].min()) < draft.bytes[k]:
                free.discard(queue)
                waiting.append(k)
            else:
                self._take(k, room, step)
                if self.idle[queue] >= end:
                    free.discard(queue)
        self.waiting = waiting
        left[step + 1] += kept

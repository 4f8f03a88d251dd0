"""Guards of loads and limits of stores: what an order of transfers takes at the best, and what no order is below.

**Problem.** Given steps t = 1..N (c_t ticks, A_t bytes), loads i (tau_i, b_i, due u_i), stores k (tau_k, b_k, released
by r_k), each with its queue, and B bytes of memory. Decide

    the order of every queue, guards 1 <= g_i <= u_i, limits r_k < z_k <= N + 1
    so that  A_t + sum b_i over g_i <= t < u_i + sum b_k over r_k < t < z_k <= B   for every t
    minimise the latency of the timeline (`hwmodels.timeline.price`), in ticks

An example: three steps of 10 ticks and 6 bytes, a load of 6 ticks and 6 bytes for each. In 6 bytes nothing lies beside
a step: 3 * (6 + 10) = 48 ticks. In 12 bytes each load lies beside the step before its own: 6 + 30 = 36 ticks.

**Given an order and limits, earliest guards are the best** (`earliest`). A transfer waits for all ahead of it in its
queue, so guards that do not decrease along a queue lose nothing: raise each to the most of those ahead of it, and no
event is later, no byte more is on chip. From such guards g' lower one after the other, in the order of the queue, as
far as it fits, not below the one ahead of it, nor below the step by which what it loads is there. Of one queue no
other guards h that fit are earlier anywhere, by induction: at steps t >= h_i the same loads ahead of i lie on chip by
g and by h, for their guards are at most h_i by both; those behind i lie there from g'_i on only, beside i as before. So
h_i fits, and g_i <= h_i. An event is a maximum of events that guards choose the earlier of, so nothing is later. Of
several queues, which share memory, who is asked first counts, and no guard rises. Behind a store no guard is below the
step after its release: it would take room for nothing.

**Orders** (`soon`). A store that stands behind loads for later steps holds its bytes too long; loads behind a store
come too late. So several orders are tried (`urgent`): each load so long before its step that it is there in time if
stores did not exist, or up to as much earlier as memory may hold; stores between them as they are released. All
are priced with one turn of limits and guards, and orders that are found otherwise (`formulations.prefetch.forward`);
the best of them are settled.

**Limits.** Later limits make no event later, and take room (`lenient`: each as late as fits). A store that has ended
before step t begins to wait may have t as its limit: no event is later, and guards find room (`free`). So limits and
guards in turns never take longer (`settled`).

**Bound** (`bound`). For every step j, and every queue with its loads and stores,

    ends of the steps up to j, then steps after j:           sum of c
    what must be loaded by j, then the steps from j on:      sum tau_i (u_i <= j) + sum c_t (t >= j)
    the steps up to j, then what is stored by then:          sum c_t (t <= j) + sum tau_k (r_k >= j)
    the steps up to j, then what finds no room before:       sum c_t (t <= j) + rest_j
    all transfers of a queue, the least step ahead of it:    sum tau

where rest_j is the time of loads due after j that have not begun when step j ends: those that have lie beside it in
B - A_j bytes, so by their ticks a byte at most the best of them are gone (a knapsack's relaxation, rounded down), and
what is stored by steps j and later comes then, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from formulations.prefetch.room import Ints, later, lie, lowered, raised, sooner
from hwmodels.timeline.price import Clocks, Times, clocks, times
from hwmodels.timeline.schedule import Load, Store, Timeline

#: Orders that are settled, of those that are tried; eighths of the memory's worth of time that loads come earlier.
SETTLED, EARLIER = 2, (1, 1.5, 2, 3, 4, 6, 8)
#: Steps that are looked at together.
AT_ONCE = 256
#: A guard or a limit of every transfer.
When = list[int]
#: Transfers by number, in the order of their queues.
Order = list[int]


class Rows(NamedTuple):
    """What is known of transfers, by number."""

    load: Ints
    """1, or 0 for a store."""
    ticks: Ints
    bytes: Ints
    fixed: Ints
    """The step that a load is due in, or that releases a store."""
    ready: Ints
    queue: Ints
    """From 0."""


def _row(numbers: Sequence[int] | Ints) -> Ints:
    return np.asarray(numbers, np.int64)


class Draft:
    """Steps and transfers by number, and what becomes of them in some order, with guards and limits.

    Guards and limits are `When`, orders are `Order`; both are changed in copies.
    """

    def __init__(self, timeline: Timeline, room: int) -> None:
        self.timeline, self.room, self.last = timeline, room, len(timeline.steps) + 1
        moves = self.moves = timeline.transfers
        self.load = [isinstance(one, Load) for one in moves]
        self.ticks, self.bytes = [one.ticks for one in moves], [one.bytes for one in moves]
        self.fixed = [one.due if isinstance(one, Load) else one.released for one in moves]
        self.ready = [one.ready if isinstance(one, Load) else 0 for one in moves]
        self.queue = [one.queue for one in moves]
        self.steps = [one.ticks for one in timeline.steps]
        self.beside = [0, *(room - one.bytes for one in timeline.steps), 0]
        self.given: When = [one.guard if isinstance(one, Load) else one.limit for one in moves]
        self.order: Order = [*range(len(moves))]
        lines = {queue: n for n, queue in enumerate(sorted({*self.queue}))}
        queues, fixed = [lines[queue] for queue in self.queue], self.fixed
        self.queues, self.durations = len(lines), _row(self.steps)
        rows = [int(load) for load in self.load], self.ticks, self.bytes, fixed, self.ready, queues
        self.rows = Rows(*(_row(one) for one in rows))

    def keep(self, steps: range, spare: int) -> None:
        """Keep bytes free beside some steps."""
        for t in steps:
            self.beside[t] -= spare

    def made(self, order: Sequence[int], when: Sequence[int]) -> Timeline:
        """An order with guards and limits as a timeline."""
        moves = (
            replace(one, guard=when[k]) if isinstance(one, Load) else replace(one, limit=when[k])
            for k, one in ((k, self.moves[k]) for k in order)
        )
        return replace(self.timeline, transfers=tuple(moves))

    def clocks(self, order: Sequence[int] | Ints, when: Sequence[int] | Ints) -> Clocks:
        """When everything happens."""
        order, when, (load, ticks, _, fixed, _, queue) = _row(order), _row(when), self.rows
        begins, awaits = np.where(load, 2 * when + 1, 2 * fixed + 2), np.where(load, 2 * fixed + 1, 2 * when)
        return clocks(self.durations, ticks, begins, awaits, order, queue)

    def left(self, order: Sequence[int] | Ints, when: Sequence[int] | Ints) -> Ints:
        """Bytes that no step has beside what lies there, (N + 2,); a step is its index."""
        left = _row(self.beside).copy()
        lie(_row(order), _row(when), self.rows.load, self.rows.fixed, self.rows.bytes, left)
        return left

    def possible(self, order: Sequence[int], when: Sequence[int]) -> bool:
        """Whether an order with guards and limits is a timeline (`hwmodels.timeline.price.refusals`)."""
        latest, stored = dict[int, int](), dict[int, int]()
        for k in order:
            queue, load, fixed, at = self.queue[k], self.load[k], self.fixed[k], when[k]
            if (load and at > fixed) or latest.get(queue, 0) > (2 * fixed + 1 if load else 2 * at):
                return False
            latest[queue] = max(latest.get(queue, 0), 2 * at + 1 if load else 2 * (fixed + 1))
        for k in reversed(order):
            before = stored.get(self.queue[k], self.last)
            if not self.load[k]:
                stored[self.queue[k]] = min(before, self.fixed[k])
            elif self.ready[k] > 1 and before < self.ready[k]:
                return False
        return True

    # ---- guards and limits -------------------------------------------------------------------------------------------

    @cached_property
    def close(self) -> When:
        """Nothing beside a step: a step waits for its loads, the next one for stores."""
        return [fixed if load else fixed + 1 for load, fixed in zip(self.load, self.fixed, strict=True)]

    def earliest(self, order: Sequence[int], when: When, floor: Mapping[int, int] | None = None) -> When:
        """Guards as early as memory allows; `floor`: by transfer, no earlier than that."""
        least = self.rows.ready
        if floor:
            least = np.maximum(least, _row([floor.get(k, 1) for k in range(len(least))]))
        found: When = self._earliest(_row(order), _row(when), least).tolist()
        return found

    def _earliest(self, order: Ints, when: Ints, least: Ints | None = None) -> Ints:
        load, _, size, fixed, ready, queue = self.rows
        when = when.copy()
        raised(order, when, load, fixed, queue, self._ahead_of(1))
        ready = ready if least is None else least
        lowered(order, when, load, fixed, size, ready, queue, self._ahead_of(1), self.left(order, when))
        return when

    def _ahead_of(self, first: int) -> Ints:
        return np.full(self.queues, first, np.int64)

    def lenient(self, order: Sequence[int], when: When, most: Sequence[int] = ()) -> When:
        """Limits as late as memory allows, of the stores that are released first before others.

        `most`: by transfer how late, at the most, if no later than that is of use.
        """
        found: When = self._lenient(_row(order), _row(when), _row(most) if most else self._last).tolist()
        return found

    @cached_property
    def _last(self) -> Ints:
        return np.full(len(self.moves), self.last, np.int64)

    def _lenient(self, order: Ints, when: Ints, most: Ints) -> Ints:
        stores = order[self.rows.load[order] == 0]
        stores = stores[np.argsort(self.rows.fixed[stores], kind="stable")]
        when = when.copy()
        later(stores, when, self.rows.bytes, most, self.left(order, when))
        return when

    def free(self, order: Sequence[int], when: When, found: Clocks) -> When:
        """The earliest limits that no step waits for more than by these times."""
        sooner_: When = self._free(_row(order), _row(when), found).tolist()
        return sooner_

    def _free(self, order: Ints, when: Ints, found: Clocks) -> Ints:
        load, _, _, fixed, _, queue = self.rows
        ends = np.append(0, found.end)  # ends[t - 1]: before step t
        when = when.copy()
        sooner(order, when, load, fixed, queue, self._ahead_of(0), 1 + np.searchsorted(ends, found.last))
        return when

    def _wanted(self, order: Ints, when: Ints) -> Ints:
        """By transfer the limit that no step would wait for if none of them waited for any store."""
        late = np.where(self.rows.load, when, self.last)
        return self._free(order, late, self.clocks(order, late))

    def _loosened(self, order: Ints, when: Ints, most: Ints) -> Ints:
        """Later limits, as far as some step would wait, and earlier guards in what is left."""
        late = self._lenient(order, when, most)
        return self._earliest(order, self._free(order, late, self.clocks(order, late)))

    def _turned(self, order: Ints, when: Ints) -> tuple[Ints, Clocks]:
        ways = [self._loosened(order, when, most) for most in (self._last, self._wanted(order, when))]
        return min(((way, self.clocks(order, way)) for way in ways), key=lambda pair: quality(pair[1]))

    def turned(self, order: Sequence[int], when: When) -> tuple[When, Clocks]:
        """Limits as late as fits, or as is wanted, and earlier guards: the best of both."""
        found, times_ = self._turned(_row(order), _row(when))
        return found.tolist(), times_

    def settled(self, order: Sequence[int], when: When) -> When:
        """Guards and limits in turns until nothing gets better."""
        numbers = _row(order)
        now = self._earliest(numbers, _row(when))
        found = self.clocks(numbers, now)
        while True:
            other, sooner_ = self._turned(numbers, now)
            if quality(sooner_) >= quality(found):
                made: When = now.tolist()
                return made
            now, found = other, sooner_

    # ---- orders ------------------------------------------------------------------------------------------------------

    def apart(self) -> Order:
        """Loads by due step, each behind what was released before it."""
        return sorted(self.order, key=lambda k: (2 * self.fixed[k] + (1 if self.load[k] else 2), self.ready[k]))

    @cached_property
    def loads(self) -> Order:
        """Loads alone, by due step."""
        return [k for k in self.apart() if self.load[k]]

    def ahead(self, floor: Mapping[int, int] | None = None) -> tuple[Order, When]:
        """Loads by due step, as early as memory allows (`earliest`), stores behind those that may begin before."""
        when = self.earliest(self.loads, self.close, floor)
        key = [2 * at + 1 if load else 2 * fixed + 2
               for load, at, fixed in zip(self.load, when, self.fixed, strict=True)]  # fmt: skip
        return sorted(self.apart(), key=key.__getitem__), when

    def doubled(self) -> tuple[Order, When]:
        """Two buffers: a load lies beside the step before its own, a store beside the one after it, as far as fits."""
        order, when = self.ahead({k: self.fixed[k] - 1 for k in self.loads})
        return order, self.lenient(order, when, [min(self.last, fixed + 2) for fixed in self.fixed])

    def greedy(self) -> tuple[Order, When]:
        """Loads by due step, each as early as memory allows, stores as late as the rest of it does."""
        order, when = self.ahead()
        return order, self.lenient(order, when)

    @cached_property
    def eager(self) -> tuple[Order, When, Clocks]:
        """Loads by due step, as early as memory allows, stores behind those that may begin before; without stores."""
        order, when = self.ahead()
        return order, when, self.clocks(self.loads, when)

    def urgent(self, spare: int) -> tuple[Order, When]:
        """Loads so many ticks before they must begin so that steps begin in time, stores between them.

        In time is when steps begin without stores. A load waits for one that is due before only if what that loads is
        there by then, or if memory has no room.
        """
        base, when, found = self.eager
        begin, end = found.begin.tolist(), found.end.tolist()
        ends = [0, *end]  # ends[t - 1]: before step t
        loads = [k for k in base if self.load[k]]
        latest = self._latest(loads, begin, end)
        keys = [max(at - spare, ends[self.ready[k] - 1]) for at, k in zip(latest, loads, strict=True)]
        when = when.copy()
        order = self._ahead(loads, keys, when)
        least = np.searchsorted(np.array(ends), np.array([key for key, _ in order], np.int64), side="right").tolist()
        numbers = [k for _, k in order]
        when = self.earliest(numbers, when, dict(zip(numbers, least, strict=True)))
        moves = [(end[self.fixed[k] - 1], 0, n, k) for n, k in enumerate(base) if not self.load[k]]
        at = dict[int, int]()
        for n, (key, k) in enumerate(order):
            at[self.queue[k]] = max(at.get(self.queue[k], 0), key, ends[when[k] - 1])
            moves.append((at[self.queue[k]], 1, n, k))
        return [k for *_, k in sorted(moves)], when

    def _latest(self, loads: Sequence[int], begin: Sequence[int], end: Sequence[int]) -> list[int]:
        """When loads, by due step, begin at the latest so that no step begins later."""
        at, latest, latency = dict[int, int](), list[int](), max(end, default=0)
        for k in reversed(loads):
            at[self.queue[k]] = min(begin[self.fixed[k] - 1], at.get(self.queue[k], latency)) - self.ticks[k]
            latest.append(at[self.queue[k]])
        return latest[::-1]

    def _ahead(self, loads: Sequence[int], keys: Sequence[int], when: When) -> list[tuple[int, int]]:
        """Loads in the order of their keys, with guards by which all behind them are in time, and memory has room."""
        left, order = self.beside.copy(), list[tuple[int, int]]()
        for key, k in zip(keys, loads, strict=True):
            at, guard, size = len(order), self.fixed[k], self.bytes[k]
            while at and order[at - 1][0] > key:
                first = self.fixed[order[at - 1][1]]
                if first < guard and min(left[first:guard]) < size:
                    key = order[at - 1][0]
                    break
                at, guard = at - 1, min(guard, first)
            for t in range(guard, self.fixed[k]):
                left[t] -= size
            order.insert(at, (key, k))
            when[k] = guard
        return order

    def soon(self, *others: tuple[Order, When], due: bool = False) -> tuple[Order, When]:
        """The best of some orders, guards and limits: loads just in time, or up to as much earlier as fits; and others.

        Loads may have to stay in the order in which they are `due`.
        """
        filled = self.room * sum(self.ticks) // max(1, sum(self.bytes))
        tried = [(self.apart(), self.close), *others]
        if due:
            tried.append(self.eager[:2])
        else:
            tried += [self.urgent(int(filled * share) // 8) for share in EARLIER]
        once = [(order, *self.turned(order, self.earliest(order, when))) for order, when in tried]
        best = sorted(once, key=lambda one: quality(one[2]))[:SETTLED]
        return min(
            ((order, self.settled(order, when)) for order, when, _ in best),
            key=lambda pair: quality(self.clocks(*pair)),
        )


def quality(found: Clocks) -> tuple[int, int]:
    """Latency, and all ends together: the less, the better."""
    latency = max(int(found.end[-1:].max(initial=0)), int(found.last.max(initial=0)))
    return latency, int(found.end.sum() + found.last.sum())


def apart(timeline: Timeline) -> Timeline:
    """The same with nothing beside a step, loads by due step: a step waits for its loads, the next one for stores.

    It fits in the bytes of the largest step.
    """
    draft = Draft(timeline, 0)
    return draft.made(draft.apart(), draft.close)


def earliest(timeline: Timeline, room: int) -> Timeline:
    """The same order and limits with guards as early as `room` bytes allow.

    What stands behind a store begins behind its release: a guard before that takes room for nothing.
    """
    draft = Draft(timeline, room)
    return draft.made(draft.order, draft.earliest(draft.order, draft.given))


def settled(timeline: Timeline, room: int) -> tuple[Timeline, Times]:
    """Guards and limits in turns until nothing gets better; those that are given must fit in `room` bytes."""
    draft = Draft(timeline, room)
    return _timed(draft.made(draft.order, draft.settled(draft.order, draft.given)))


def urgent(timeline: Timeline, room: int, spare: int) -> Timeline:
    """Loads so many ticks before they must begin so that steps begin in time, stores between them (`Draft.urgent`)."""
    draft = Draft(timeline, room)
    return draft.made(*draft.urgent(spare))


def soon(timeline: Timeline, room: int) -> tuple[Timeline, Times]:
    """The best of some orders, guards and limits: loads that come just in time, or up to as much earlier as fits."""
    draft = Draft(timeline, room)
    return _timed(draft.made(*draft.soon()))


def _timed(timeline: Timeline) -> tuple[Timeline, Times]:
    return timeline, times(timeline)


def bound(timeline: Timeline, room: int) -> int:
    """What no order, guards and limits of these steps and transfers are below, in ticks."""
    cycles = np.array([step.ticks for step in timeline.steps], np.int64)
    before = np.concatenate([[0], np.cumsum(cycles)])
    beside = np.array([room - step.bytes for step in timeline.steps], np.int64)
    least = int(before[-1])
    for queue in {one.queue for one in timeline.transfers}:
        mine = [one for one in timeline.transfers if one.queue == queue]
        loads = sorted((one for one in mine if isinstance(one, Load)), key=lambda one: one.due)
        stores = [one for one in mine if isinstance(one, Store)]
        stored, gone = (np.zeros(len(cycles) + 2, np.int64) for _ in range(2))
        for store in stores:
            stored[store.released] += store.ticks
        for load in loads:
            gone[load.due] += load.ticks
        stored, gone = stored[::-1].cumsum()[::-1], gone.cumsum()
        least = max(least, int(gone[-1] + stored[0]))
        rest = gone[-1] - gone[1:-1] - _most(loads, beside) + stored[1:-1]
        least = max(least, int((gone[1:-1] + before[-1] - before[:-1]).max()), int((before[1:] + rest).max()))
    return least


def _most(loads: Sequence[Load], room: Ints) -> Ints:
    """By step the most ticks of loads for later ones that so many bytes hold, parts of one included, rounded up."""
    found, some = np.zeros(len(room), np.int64), sorted(loads, key=lambda one: one.bytes / max(1, one.ticks))
    if not some:
        return found
    ticks, size, due = np.array([(one.ticks, one.bytes, one.due) for one in some], np.int64).T
    for at in range(0, len(room), AT_ONCE):
        mine = room[at : at + AT_ONCE, None]
        late = due > 1 + at + np.arange(len(mine))[:, None]  # (steps, loads)
        taken = np.where(late, size, 0).cumsum(axis=1)
        part = late & (taken > mine)
        first = part.argmax(axis=1)[:, None]
        left = mine - np.take_along_axis(taken, first, axis=1) + size[first]
        more = -(-ticks[first] * np.maximum(left, 0) // np.maximum(1, size[first])) * part.any(axis=1)[:, None]
        found[at : at + AT_ONCE] = np.where(late & (taken <= mine), ticks, 0).sum(axis=1) + more[:, 0]
    return found

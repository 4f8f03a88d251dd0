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
far as it fits, not below the one ahead of it. Of one queue no other guards h that fit are earlier anywhere, by
induction: at steps t >= h_i the same loads ahead of i lie on chip by g and by h, for their guards are at most h_i by
both; those behind i lie there from g'_i on only, beside i as before. So h_i fits, and g_i <= h_i. An event is a maximum
of events that guards choose the earlier of, so nothing is later. Of several queues, which share memory, who is asked
first counts, and no guard rises.

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

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hwmodels.timeline.price import Times, occupancy, times
from hwmodels.timeline.schedule import Load, Move, Store, Timeline, begins

Ints = NDArray[np.int64]


def apart(timeline: Timeline) -> Timeline:
    """The same with nothing beside a step, loads by due step: a step waits for its loads, the next one for stores.

    It fits in the bytes of the largest step.
    """
    moves = [
        replace(one, guard=one.due) if isinstance(one, Load) else replace(one, limit=one.released + 1)
        for one in timeline.transfers
    ]
    return replace(timeline, transfers=tuple(sorted(moves, key=begins)))


def earliest(timeline: Timeline, room: int) -> Timeline:
    """The same order and limits with guards as early as `room` bytes allow."""
    made, least = list(timeline.transfers), dict[int, int]()
    for k, one in enumerate(made):
        if isinstance(one, Load):
            least[one.queue] = max(least.get(one.queue, 1), one.guard)
            made[k] = replace(one, guard=least[one.queue])
    left, least = _left(timeline, made, room), {}
    for k, one in enumerate(made):
        if isinstance(one, Load):
            low = least.get(one.queue, 1)
            short = np.flatnonzero(left[low : one.guard] < one.bytes)
            guard = low + int(short[-1]) + 1 if len(short) else low
            left[guard : one.guard] -= one.bytes
            made[k], least[one.queue] = replace(one, guard=guard), guard
    return replace(timeline, transfers=tuple(made))


def lenient(timeline: Timeline, room: int) -> Timeline:
    """The same with limits as late as `room` bytes allow, of the stores that are released first before others."""
    made = list(timeline.transfers)
    left = _left(timeline, made, room)
    for k, one in sorted(enumerate(made), key=lambda pair: begins(pair[1])):
        if isinstance(one, Store):
            short = np.flatnonzero(left[one.limit : len(timeline.steps) + 1] < one.bytes)
            limit = one.limit + int(short[0]) if len(short) else len(timeline.steps) + 1
            left[one.limit : limit] -= one.bytes
            made[k] = replace(one, limit=limit)
    return replace(timeline, transfers=tuple(made))


def free(timeline: Timeline, found: Times) -> Timeline:
    """The same with the earliest limits that no step waits for more than by these times."""
    ends = np.array([0, *found.end], np.int64)  # ends[t - 1]: before step t
    made, ahead = list(timeline.transfers), dict[int, int]()
    for k, one in enumerate(made):
        if isinstance(one, Load):
            ahead[one.queue] = max(ahead.get(one.queue, 0), one.guard)
            continue
        after = 1 + int(np.searchsorted(ends, found.transfer_end[k]))
        least = max(one.released, ahead.get(one.queue, 0)) + 1  # what stands ahead of it waits for the step itself
        made[k] = replace(one, limit=min(one.limit, max(least, after)))
    return replace(timeline, transfers=tuple(made))


def settled(timeline: Timeline, room: int) -> tuple[Timeline, Times]:
    """Guards and limits in turns until nothing begins earlier; those that are given must fit in `room` bytes."""
    now = earliest(timeline, room)
    found = times(now)
    while True:
        late = lenient(now, room)
        other = earliest(free(late, times(late)), room)
        earlier = times(other)
        if _sum(earlier) >= _sum(found):
            return now, found
        now, found = other, earlier


def _sum(found: Times) -> int:
    return sum(found.end) + sum(found.transfer_end)


def _left(timeline: Timeline, moves: Sequence[Move], room: int) -> Ints:
    """Bytes that no step has beside what lies there, (N + 2,); a step is its index."""
    left = np.full(len(timeline.steps) + 2, room, np.int64)
    left[1:-1] -= occupancy(replace(timeline, transfers=tuple(moves)))
    return left


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
        for j in range(1, len(cycles) + 1):
            late = [load for load in loads if load.due > j]
            rest = int(gone[-1] - gone[j]) - _most(late, int(beside[j - 1])) + int(stored[j])
            least = max(least, int(gone[j] + before[-1] - before[j - 1]), int(before[j]) + rest)
    return least


def _most(loads: Sequence[Load], room: int) -> int:
    """The most ticks of loads that so many bytes hold, parts of one included, rounded up."""
    total = 0
    for one in sorted(loads, key=lambda one: one.bytes / max(1, one.ticks)):
        if one.bytes > room:
            return total - (-one.ticks * room // one.bytes)
        total, room = total + one.ticks, room - one.bytes
    return total

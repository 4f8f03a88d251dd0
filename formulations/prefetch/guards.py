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
stores did not exist, or up to as much earlier as memory may hold; stores between them as they are released.

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


def earliest(timeline: Timeline, room: int, floor: Sequence[int] = ()) -> Timeline:
    """The same order and limits with guards as early as `room` bytes allow; `floor`: by transfer, no earlier than that.

    What stands behind a store begins behind its release: a guard before that takes room for nothing.
    """
    made, least = list(timeline.transfers), dict[int, int]()
    for k, one in enumerate(made):
        ahead = least.get(one.queue, 1)
        if isinstance(one, Load):
            made[k] = one = replace(one, guard=max(ahead, one.guard))
        least[one.queue] = max(ahead, one.guard if isinstance(one, Load) else one.released + 1)
    left, least = _left(timeline, made, room), {}
    for k, one in enumerate(made):
        low = least.get(one.queue, 1)
        if isinstance(one, Load):
            low = min(one.guard, max(low, one.ready, floor[k] if floor else 1))
            short = np.flatnonzero(left[low : one.guard] < one.bytes)
            guard = low + int(short[-1]) + 1 if len(short) else low
            left[guard : one.guard] -= one.bytes
            made[k] = replace(one, guard=guard)
            least[one.queue] = guard
        else:
            least[one.queue] = max(low, one.released + 1)
    return replace(timeline, transfers=tuple(made))


def eager(timeline: Timeline, room: int) -> Timeline:
    """Loads by due step, as early as memory allows; a store stands behind those that may begin before its release."""
    there = apart(timeline)
    loads = tuple(one for one in there.transfers if isinstance(one, Load))
    stores = (one for one in there.transfers if isinstance(one, Store))
    moves = *earliest(replace(timeline, transfers=loads), room).transfers, *stores
    return replace(timeline, transfers=tuple(sorted(moves, key=begins)))


def urgent(timeline: Timeline, room: int, spare: int, known: Times | None = None) -> Timeline:
    """Loads so many ticks before they must begin so that steps begin in time, stores between them.

    In time is when steps begin without stores, or in `known` times. A load waits for one that is due before only if
    what that loads is there by then, or if memory has no room.
    """
    there = eager(timeline, room)
    loads = tuple(one for one in there.transfers if isinstance(one, Load))
    found = known or times(replace(there, transfers=loads), known=True)
    ends = np.array([0, *found.end], np.int64)  # ends[t - 1]: before step t
    keys = [max(at - spare, int(ends[one.ready - 1])) for at, one in zip(_latest(loads, found), loads, strict=True)]
    order = _ahead(timeline, loads, keys, room)
    least = [int(np.searchsorted(ends, key, side="right")) for key, _ in order]
    early = earliest(replace(timeline, transfers=tuple(one for _, one in order)), room, least)
    moves: list[tuple[int, int, int, Move]] = [
        (found.end[one.released - 1], 0, k, one)
        for k, one in enumerate(there.transfers) if isinstance(one, Store)
    ]  # fmt: skip
    at = dict[int, int]()
    for k, ((key, _), load) in enumerate(zip(order, early.transfers, strict=True)):
        assert isinstance(load, Load)
        at[load.queue] = max(at.get(load.queue, 0), key, int(ends[load.guard - 1]))
        moves.append((at[load.queue], 1, k, load))
    return replace(timeline, transfers=tuple(one for *_, one in sorted(moves, key=lambda move: move[:3])))


def _latest(loads: Sequence[Load], found: Times) -> list[int]:
    """When loads, by due step, begin at the latest so that no step begins later."""
    at, latest = dict[int, int](), list[int]()
    for load in reversed(loads):
        at[load.queue] = min(found.begin[load.due - 1], at.get(load.queue, found.latency)) - load.ticks
        latest.append(at[load.queue])
    return latest[::-1]


def _ahead(timeline: Timeline, loads: Sequence[Load], keys: Sequence[int], room: int) -> list[tuple[int, Load]]:
    """Loads in the order of their keys, with guards by which all behind them are in time, and memory has room."""
    left, order = _left(timeline, (), room), list[tuple[int, int, Load]]()
    for k, (key, load) in enumerate(zip(keys, loads, strict=True)):
        at = len(order)
        guard = load.due
        while at and order[at - 1][0] > key:
            first = order[at - 1][2].due
            if (left[first:guard] < load.bytes).any():
                key = order[at - 1][0]
                break
            at, guard = at - 1, min(guard, first)
        left[guard : load.due] -= load.bytes
        order.insert(at, (key, k, replace(load, guard=guard)))
    return [(key, load) for key, _, load in order]


def lenient(timeline: Timeline, room: int, most: Sequence[int] = ()) -> Timeline:
    """The same with limits as late as `room` bytes allow, of the stores that are released first before others.

    `most`: by transfer how late, at the most, if no later than that is of use.
    """
    made, last = list(timeline.transfers), len(timeline.steps) + 1
    left = _left(timeline, made, room)
    for k, one in sorted(enumerate(made), key=lambda pair: begins(pair[1])):
        if isinstance(one, Store):
            end = max(one.limit, most[k]) if most else last
            short = np.flatnonzero(left[one.limit : end] < one.bytes)
            limit = one.limit + int(short[0]) if len(short) else end
            left[one.limit : limit] -= one.bytes
            made[k] = replace(one, limit=limit)
    return replace(timeline, transfers=tuple(made))


def wanted(timeline: Timeline) -> list[int]:
    """By transfer the limit that no step would wait for if none of them waited for any store."""
    last = len(timeline.steps) + 1
    none = tuple(replace(one, limit=last) if isinstance(one, Store) else one for one in timeline.transfers)
    unlimited = replace(timeline, transfers=none)
    return [
        one.limit if isinstance(one, Store) else 0 for one in free(unlimited, times(unlimited, known=True)).transfers
    ]


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
    """Guards and limits in turns until nothing gets better; those that are given must fit in `room` bytes."""
    now = earliest(timeline, room)
    found = times(now)
    while True:
        ways = [(way := _loosened(now, room, most), times(way, known=True)) for most in ((), wanted(now))]
        other, earlier = min(ways, key=lambda pair: (pair[1].latency, _sum(pair[1])))
        if (earlier.latency, _sum(earlier)) >= (found.latency, _sum(found)):
            return now, times(now)
        now, found = other, earlier


def soon(timeline: Timeline, room: int) -> tuple[Timeline, Times]:
    """The best of some orders, guards and limits: loads that come just in time, or up to as much earlier as fits."""
    moves = timeline.transfers
    filled = room * sum(one.ticks for one in moves) // max(1, sum(one.bytes for one in moves))
    orders = (apart(timeline), *(urgent(timeline, room, filled * share // 8) for share in (1, 2, 4, 6, 8)))
    return min((settled(order, room) for order in orders), key=_quality)


def _quality(pair: tuple[Timeline, Times]) -> tuple[int, int]:
    return pair[1].latency, _sum(pair[1])


def _loosened(timeline: Timeline, room: int, most: Sequence[int]) -> Timeline:
    """Later limits, as far as some step would wait, and earlier guards in what is left."""
    late = lenient(timeline, room, most)
    return earliest(free(late, times(late, known=True)), room)


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

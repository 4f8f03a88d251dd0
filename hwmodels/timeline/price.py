"""Times of a timeline: the longest path through its events, and the bytes on chip in every step.

An example, three steps of 10 ticks. Loads of 6 ticks are due in steps 1, 2 and 3, a store of 4 ticks is released by
step 3. If the second load may begin in step 1 and the third in step 2, step 1 waits 6 ticks for its load, and no other
step waits: 6 + 30 + 4 = 40 ticks. If every load has the step that reads it as its guard, each step waits 6: 52 ticks.

**Model.**

SETS        steps t = 1..N with c_t ticks and A_t bytes; transfers q with tau_q ticks and b_q bytes, in the order of
            their queues: loads i (due u_i, guard g_i <= u_i) and stores k (released by r_k < limit z_k <= N + 1)
EVENTS      room(t)  = max(E_(t-1), ends of stores with limit t)            the bytes of step t are free
            begin(q) = max(end of the transfer before q in its queue, room(g_q) of a load, E_(r_q) of a store)
            end(q)   = begin(q) + tau_q
            S_t      = max(room(t), ends of loads due in t);   E_t = S_t + c_t
LATENCY     max(E_N, last end of a transfer)                                                             ticks
MEMORY      for every t:  A_t + sum b_i over g_i <= t < u_i + sum b_k over r_k < t < z_k                 bytes

**What follows.**

1. Every event is a maximum of sums of durations, so latency is monotone in each: a faster transfer or step never makes
   it longer. With the same order, guards and limits a schedule that was checked with the longest durations is safe.
2. The bytes on chip at any time are at most those of a step. Between E_(t-1) and room(t) lie what stays from step
   t - 1 to step t, which is among A_(t-1), loads with a guard below t, and stores that are released before t and have
   a limit of t at least: each of them is counted in step t - 1. From room(t) to E_t all is counted in step t: stores
   with limit t have ended, and a load with guard t begins at room(t) at the earliest.
3. There are no times (the events run in a circle) if and only if a step waits for a transfer that stands in its queue
   behind one that waits for this step or a later one: a load due in t behind a load with a guard above t or a store
   that is released by t or later; a store with limit t behind a load with a guard of t or more, or behind such a store.
   Several queues make no other circles: room(t), S_t, E_t, room(t+1), ... follow each other, so in a circle some
   transfers lead from one of these events to one that is not behind it; and a transfer waits for others of its own
   queue alone, so those are of one queue, the first of them waits for the one event, and the last is waited for by the
   other. So each queue by itself is refused or none.
4. A timeline with several queues takes no longer than the same order with one: there every transfer waits for as many
   others, or more.

Source: the timeline of SoMa (HPCA 2025) with one queue, there with tensors; guards, limits and the proofs are ours.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodels.compiled import compiled
from hwmodels.timeline.schedule import Load, Move, Store, Timeline, awaits, begins
from instances.errors import InputError

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Wait:
    """What a step waits for, beyond the end of the step before it."""

    step: int
    transfer: int
    """The last one that it waits for; from 0."""
    ticks: int


@dataclass(frozen=True)
class Times:
    """When everything happens, in ticks."""

    room: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    """`room`, `begin`, `end`: by step, the first is step 1."""
    transfer_begin: tuple[int, ...]
    transfer_end: tuple[int, ...]
    waits: tuple[Wait, ...]
    """Of the steps that wait for transfers, in their order."""

    @property
    def latency(self) -> int:
        """Until the last step and the last transfer have ended."""
        return max((*self.end[-1:], *self.transfer_end), default=0)

    @property
    def drain(self) -> int:
        """Ticks after the last step, in which stores end."""
        return self.latency - max(self.end, default=0)


def refusals(timeline: Timeline) -> list[str]:
    """Return what makes a timeline none, a line each; an empty list if it is one."""
    last = len(timeline.steps)
    faults = [f"step {t}: its ticks and bytes are 0 or more" for t, s in enumerate(timeline.steps, 1) if _negative(s)]
    for k, one in enumerate(timeline.transfers):
        if _negative(one):
            faults.append(f"transfer {k}: its ticks and bytes are 0 or more")
        if isinstance(one, Load) and not 1 <= one.guard <= one.due <= last:
            faults.append(f"transfer {k}: 1 <= guard {one.guard} <= due {one.due} <= {last} does not hold")
        if isinstance(one, Store) and not 1 <= one.released < one.limit <= last + 1:
            faults.append(f"transfer {k}: 1 <= released {one.released} < limit {one.limit} <= {last + 1} does not hold")
    return faults or [*_too_small(timeline), *_circles(timeline.transfers), *_early(timeline.transfers)]


def _negative(one: object) -> bool:
    return min(getattr(one, "ticks", 0), getattr(one, "bytes", 0)) < 0


def _too_small(timeline: Timeline) -> Iterator[str]:
    """Yield the steps that have fewer bytes than the loads that are due, or the stores that they release."""
    for kind, word in ((Load, "are due in it"), (Store, "it releases")):
        moved = Counter[int]()
        for one in timeline.transfers:
            if isinstance(one, kind):
                moved[one.due if isinstance(one, Load) else one.released] += one.bytes
        for t, step in enumerate(timeline.steps, 1):
            if moved[t] > step.bytes:
                yield f"step {t}: {kind.__name__.lower()}s that {word} have {moved[t]} bytes, it has {step.bytes}"


def _circles(transfers: Sequence[Move]) -> Iterator[str]:
    """Yield the transfers that are waited for before what stands ahead of them in their queue may begin (claim 3)."""
    latest: dict[int, tuple[int, int]] = {}
    for k, one in enumerate(transfers):
        before = latest.get(one.queue)
        if before and before[0] > awaits(one):
            step = awaits(one) // 2
            yield f"transfer {k}: step {step} waits for it, transfer {before[1]} ahead of it waits for that step"
        latest[one.queue] = max(before or (begins(one), k), (begins(one), k))


def _early(transfers: Sequence[Move]) -> Iterator[str]:
    """Yield the loads that may begin before what they load is stored."""
    first = dict[int, int]()  # by queue the first step that releases a store of those that follow
    for k, one in reversed([*enumerate(transfers)]):
        if isinstance(one, Store):
            first[one.queue] = min(first.get(one.queue, one.released), one.released)
        elif not one.ready <= one.guard:
            yield f"transfer {k}: what it loads is there by step {one.ready}, its guard is {one.guard}"
        elif one.ready > 1 and first.get(one.queue, one.ready) < one.ready:
            yield f"transfer {k}: a store that is released before step {one.ready} stands behind it"


#: Reasons that are said.
_SAID = 3


def times(timeline: Timeline, *, known: bool = False) -> Times:
    """Return when every step and transfer begins and ends.

    Raises InputError with the first reasons if there are no times (`refusals`), unless it is `known` that there are.
    """
    faults = [] if known else refusals(timeline)
    if faults:
        more = f"; and {len(faults) - _SAID} more" if len(faults) > _SAID else ""
        raise InputError("; ".join(faults[:_SAID]) + more)
    moves, steps = timeline.transfers, [step.ticks for step in timeline.steps]
    rows = steps, [one.ticks for one in moves], [*map(begins, moves)], [*map(awaits, moves)], range(len(moves))
    queue = np.unique([one.queue for one in moves], return_inverse=True)[1]
    found = clocks(*(np.array(row, np.int64) for row in (*rows, queue)))
    room, begin, end, first, last = (tuple(row.tolist()) for row in found)
    return Times(room, begin, end, first, last, tuple(_waits((room, begin, end, first, last), moves)))


class Clocks(NamedTuple):
    """When everything happens."""

    room: Ints
    """When there is room for a step."""
    begin: Ints
    end: Ints
    """`room`, `begin`, `end`: by step."""
    first: Ints
    last: Ints
    """`first`, `last`: when a transfer begins and has ended, by number; 0 of those that are left out."""


def clocks(steps: Ints, ticks: Ints, begins: Ints, awaits: Ints, order: Ints, queue: Ints) -> Clocks:
    """When everything happens, for ticks of steps and transfers, their events and queues; transfers in their order.

    Queues have the numbers from 0 on.
    """
    lines = int(queue.max(initial=-1)) + 1
    found = Clocks(*(np.zeros(len(row), np.int64) for row in (steps, steps, steps, ticks, ticks)))
    following, late = np.full(len(ticks), -1, np.int64), np.zeros(2 * len(steps) + 3, np.int64)
    head, tail = np.full((2, lines), -1, np.int64)
    free = np.zeros(lines, np.int64)
    _gone(steps, ticks, begins, awaits, order, queue, head, tail, free, following, late, *found)
    return found


@compiled
def _gone(
    steps: Ints, ticks: Ints, begins: Ints, awaits: Ints, order: Ints, queue: Ints, head: Ints, tail: Ints, free: Ints,
    following: Ints, late: Ints, room: Ints, begin: Ints, end: Ints, first: Ints, last: Ints,
) -> None:  # fmt: skip
    """Go through all events, in which queues go on; of each queue `head` is the next transfer, `free` its last end."""
    for k in order:
        q = queue[k]
        if head[q] < 0:
            head[q] = k
        else:
            following[tail[q]] = k
        tail[q] = k
    now, count = 0, len(steps)
    for event in range(2, 2 * count + 3):
        for q in range(len(head)):
            k = head[q]
            while k >= 0 and begins[k] <= event:
                first[k] = max(free[q], now)
                free[q] = last[k] = first[k] + ticks[k]
                late[awaits[k]] = max(late[awaits[k]], last[k])
                k = following[k]
            head[q] = k
        now = max(now, late[event])
        t = event // 2 - 1
        if event % 2:
            begin[t] = now
            now += steps[t]
            end[t] = now
        elif t < count:
            room[t] = now


def _waits(found: tuple[Sequence[int], ...], moves: Sequence[Move]) -> Iterator[Wait]:
    """Yield what steps wait for."""
    by_step = defaultdict[int, list[int]](list)
    for k, one in enumerate(moves):
        by_step[awaits(one) // 2].append(k)
    _, begin, end, _, ended = found
    for step, (now, before) in enumerate(zip(begin, [0, *end], strict=False), 1):
        if now > before:
            last = next(k for k in by_step[step] if ended[k] == now)
            yield Wait(step, last, now - before)


def occupancy(timeline: Timeline) -> Ints:
    """Return the bytes on chip in every step, (N,); the first is step 1."""
    change = np.zeros(len(timeline.steps) + 2, np.int64)
    for one in timeline.transfers:
        first, end = (one.guard, one.due) if isinstance(one, Load) else (one.released + 1, one.limit)
        change[first] += one.bytes
        change[end] -= one.bytes
    beside: Ints = np.cumsum(change)[1:-1]
    return beside + np.array([step.bytes for step in timeline.steps], np.int64)

"""What would have hidden the waits of a timeline: more memory, or faster transfers, one wait at a time.

Step t waits for a transfer k of w ticks too long: k ends at D + w, and step t - 1 at D.

**Memory** (`sooner`). Go back from k in its queue: a load that is too late is done as late as is in time, between what
is ahead of it. What does not leave it room there is done sooner, too, if it is a load whose map is there by then; else
it keeps its time, and the loads go ahead of it. A store that t waits for has a step as its limit that begins when it
has ended, if no step waits any more. So no event is later, and step t begins at D. What the steps then have beyond the
memory is what would have to be added.

**Rate** (`quicker`). The transfers up to k that run back to back begin when they did. If their bytes take P ticks of
the time, bytes that are P / (P - w) times as fast are there in time.

An example: steps of 10 and 10 ticks; a load of 14 ticks and 6 bytes for the second one begins with the first one, which
leaves no room before: w = 4. Nothing runs before it, so no memory hides that; if its bytes take 12 of its ticks, they
are to be 12 / 8 times as fast. With another step of 10 ticks ahead of both, its memory would need 6 bytes more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from formulations.prefetch.guards import Draft, Order, When
from hwmodels.timeline.price import Times, Wait, occupancy
from hwmodels.timeline.schedule import Timeline, awaits


@dataclass(frozen=True)
class Stall:
    """A wait, and what hides it."""

    wait: Wait
    bytes: int | None
    """More of them on chip; None if nothing runs before that could hide it, or what is loaded is not there before."""
    faster: Fraction | None
    """How many times as fast bytes move; None if calls alone take too long."""


def stalls(timeline: Timeline, times: Times, room: int, byte_ticks: Sequence[int], most: int) -> Iterator[Stall]:
    """Yield the longest waits, `most` of them; `room`: bytes on chip; `byte_ticks`: of a byte of each transfer."""
    for wait in sorted(times.waits, key=lambda one: -one.ticks)[:most]:
        found = sooner(timeline, times, wait)
        beyond = None if found is None else max(0, int(occupancy(Draft(timeline, 0).made(*found)).max()) - room)
        yield Stall(wait, beyond, quicker(timeline, times, wait, byte_ticks))


def sooner(timeline: Timeline, times: Times, wait: Wait) -> tuple[Order, When] | None:
    """An order with guards and limits in which a step begins in time, in any memory; None if none is found."""
    draft, now = Draft(timeline, 0), times.end[wait.step - 2] if wait.step > 1 else 0
    order = [k for k in draft.order if draft.queue[k] == draft.queue[wait.transfer]]
    behind = order.index(wait.transfer) + 1
    when, begins, early, need = draft.given.copy(), dict(enumerate(times.transfer_begin)), list[int](), now
    for k in reversed(order[:behind]):
        begin, end = times.transfer_begin[k], times.transfer_end[k]
        need = _placed(draft, early, begins, need, end)
        late = end > now and awaits(draft.moves[k]) // 2 <= wait.step
        if end <= now and not early:
            break
        if draft.load[k] and (late or (early and draft.ready[k] == 1)):
            early.insert(0, k)
            need = min(need, now)
            continue
        if late:
            when[k] = _after(draft, times, wait)
        need = min(need, begin)
    _placed(draft, early, begins, need, 0)
    for k in order[:behind]:
        if begins[k] < times.transfer_begin[k]:
            guard = bisect_right(times.room, begins[k])
            when[k] = min(when[k], guard if guard >= draft.ready[k] else 0)
    others = [k for k in draft.order if draft.queue[k] != draft.queue[wait.transfer]]
    changed = [*sorted(order[:behind], key=begins.__getitem__), *order[behind:], *others]
    return (changed, when) if not early and min(when) > 0 and draft.possible(changed, when) else None


def _placed(draft: Draft, early: list[int], begins: dict[int, int], need: int, end: int) -> int:
    """Place the last of some loads one after the other before a time, as far as they fit behind an end.

    Returns the begin of the first one that is placed.
    """
    while early and need - draft.ticks[early[-1]] >= end:
        need -= draft.ticks[early[-1]]
        begins[early.pop()] = need
    return need


def _after(draft: Draft, times: Times, wait: Wait) -> int:
    """A step that begins when the transfer that is waited for has ended, if no step waits from the one on that does."""
    now, end = times.begin[wait.step - 1] - wait.ticks, times.transfer_end[wait.transfer]
    ends = now + np.concatenate([[0], np.cumsum(draft.steps[wait.step - 1 :])])
    return min(draft.last, wait.step + int(np.searchsorted(ends, end)))


def quicker(timeline: Timeline, times: Times, wait: Wait, byte_ticks: Sequence[int]) -> Fraction | None:
    """How many times as fast bytes have to be for a step not to wait; None if that is not enough."""
    moves, queue = timeline.transfers, timeline.transfers[wait.transfer].queue
    paid, begin = 0, times.transfer_end[wait.transfer]
    for k in range(wait.transfer, -1, -1):
        if moves[k].queue != queue:
            continue
        if times.transfer_end[k] < begin:
            break
        begin = times.transfer_begin[k]
        paid += min(moves[k].ticks, moves[k].bytes * byte_ticks[k])
    return Fraction(paid, paid - wait.ticks) if paid > wait.ticks else None

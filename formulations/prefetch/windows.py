"""Windows of a timeline: some steps with the transfers that begin beside them, and what all others ask of them.

**Problem.** Given an order with guards and limits, and steps a..z. Events up to the end of step a - 1 are before the
window, those behind the end of step z are after it. The transfers that begin between, by the events that they wait for
and those ahead of them in their queue wait for, are free: decide their order, guards and limits, so that the latency is
the least, where everything else stays as it is.

**Frame.** What is before does not depend on the window: its times are numbers. What is after is a longest path from
events of the window to the end, and these *tails* are numbers, too. So the latency is

    L = max over events v of the window of (time of v + tail of v)

An example: three steps of 10 ticks, of which the last waits for a load of 5 that begins behind step 1. From the end of
step 1 on it is 5 + 10 by the load, 10 + 10 by step 2: the tail of step 1 is 20.

A load that is due behind the window keeps its bytes until then; its guard stays inside. A store whose limit is behind
the window keeps that limit, or gets an earlier one in it. So no step outside has a byte more.

`formulations.prefetch.window_cp_sat` decides a window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from formulations.prefetch.guards import Draft, Order, When, quality


@dataclass(frozen=True)
class Tails:
    """Ticks of the longest paths from events to the end of everything."""

    begins: list[int]
    """By place in the order the event behind which a transfer begins, those ahead of it included."""
    transfer: list[int]
    """By place in the order, from when a transfer begins."""
    room: list[int]
    step: list[int]
    end: list[int]
    """`room`, `step`, `end`: by step, from when there is room for it, it begins, and it has ended."""


def in_turn(draft: Draft, order: Order, when: When) -> tuple[Order, list[int]]:
    """An order by the events behind which transfers begin, those ahead of them in their queue included; and these.

    Of every queue it is the same order.
    """
    latest, begins = dict[int, int](), dict[int, int]()
    for k in order:
        event = 2 * when[k] + 1 if draft.load[k] else 2 * (draft.fixed[k] + 1)
        latest[draft.queue[k]] = begins[k] = max(latest.get(draft.queue[k], 0), event)
    order = sorted(order, key=begins.__getitem__)
    return order, [begins[k] for k in order]


def tails(draft: Draft, order: Order, when: When) -> Tails:
    """Return them for an order (`in_turn`), guards and limits."""
    order, begins = in_turn(draft, order, when)
    count, at, following = draft.last, len(order) - 1, dict[int, int]()
    made = Tails(begins, [0] * len(order), *([0] * (count + 2) for _ in range(3)))
    for event in range(2 * count, 1, -1):
        t, is_room = divmod(event, 2)
        if is_room:
            made.step[t] = draft.steps[t - 1] + made.end[t]
        begun = 0
        while at >= 0 and begins[at] >= event:
            k = order[at]
            queue, waits = draft.queue[k], made.step[draft.fixed[k]] if draft.load[k] else made.room[when[k]]
            following[queue] = made.transfer[at] = draft.ticks[k] + max(0, waits, following.get(queue, 0))
            begun = max(begun, following[queue])
            at -= 1
        if is_room:
            made.room[t] = max(made.step[t], begun)
        else:
            made.end[t - 1] = max(made.room[t], begun)
    return made


@dataclass(frozen=True)
class Window:
    """Steps `first` up to `last`, which is behind them, and the transfers between two places of an order."""

    draft: Draft
    order: Order
    when: When
    first: int
    last: int
    places: tuple[int, int]
    idle: dict[int, int]
    """When every queue has done what is ahead."""
    behind: dict[int, int]
    """The tail of what is next in every queue."""
    room: dict[int, int]
    begin: dict[int, int]
    """`room`, `begin`: by step, no earlier than that."""
    left: dict[int, int]
    """By step, bytes beside it that others leave."""
    tails: Tails
    least: int
    """Latency by what is ahead, whatever is done in the window."""
    latency: int

    @property
    def free(self) -> Order:
        """Transfers that are free."""
        return self.order[slice(*self.places)]

    def changed(self, free: Order, when: When) -> tuple[Order, When]:
        """The whole order with another one of what is free."""
        begin, end = self.places
        return [*self.order[:begin], *free, *self.order[end:]], when


def window(draft: Draft, order: Order, when: When, first: int, steps: int) -> Window:
    """Return the window of so many steps from one on."""
    (order, _), found = in_turn(draft, order, when), tails(draft, order, when)
    after = min(draft.last, first + steps)
    clocks = draft.clocks(order, when)
    end, ends = clocks.end.tolist(), clocks.last.tolist()
    places = (
        next((n for n, at in enumerate(found.begins) if at > 2 * event), len(order)) for event in (first, after)
    )  # fmt: skip
    low, high = places
    within, ahead = range(first, after), order[:low]
    start = end[first - 2] if first > 1 else 0
    room, begin = dict.fromkeys(within, start), dict.fromkeys(within, start)
    queues = dict.fromkeys(draft.queue, 0)
    idle = queues | {draft.queue[k]: ends[k] for k in ahead}
    behind = queues | {draft.queue[k]: found.transfer[n] for n, k in reversed([*enumerate(order)][high:])}
    least = max((idle[queue] + behind[queue] for queue in queues), default=0)
    for k in ahead:
        step, within_it, tail = (
            (draft.fixed[k], begin, found.step) if draft.load[k] else (when[k], room, found.room)
        )  # fmt: skip
        if step in within_it:
            within_it[step] = max(within_it[step], ends[k])
        elif step >= after:
            least = max(least, ends[k] + tail[step])
    every = draft.left([*ahead, *order[high:]], when).tolist()
    left = {t: every[t] for t in within}
    latency, _ = quality(clocks)
    return Window(draft, order, when, first, after, (low, high), idle, behind, room, begin, left, found, least, latency)


def windows(draft: Draft, steps: int) -> Iterator[int]:
    """Yield where windows of so many steps begin, each in the middle of the one before it."""
    yield from range(1, max(2, draft.last - steps // 2), max(1, steps // 2))

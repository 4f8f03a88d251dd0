"""Orders of transfers that are mended where steps wait: what a step waits for goes ahead of what is due later.

A step waits for a transfer that stands behind others, back to back. One of these of which a later step is the first to
wait is put off, behind the transfer that is waited for, or further, as far as those that are due before it. And if the
first of them is a store, for whose release the queue waited, loads behind it are pulled ahead of it, as many as the
queue has time for. Guards and limits follow (`Draft.turned`); what makes nothing better is taken back. The longest
waits are the first.

Example: step 2 waits for a load of 2 ticks behind one of 50 for step 9: 52 ticks, with the two exchanged 2. And if the
load stands behind what step 1 stores, it begins when that has ended; ahead of the store it may lie beside step 1.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from formulations.prefetch.guards import Draft, Order, When, quality

#: Orders that are tried at the most; transfers that are put off for one wait, the longest of so many; how far ahead.
TRIED, PUT_OFF, NEAR, FAR = 60, 3, 8, 200
#: Loads are pulled ahead of a store for such a part of the time that the queue waits for it.
PARTS = 1, 2, 4, 8


def mended(draft: Draft, order: Order, when: When) -> tuple[Order, When]:
    """An order with guards and limits that takes no longer."""
    made, left, known, pulled = _Mended(draft, order, when), TRIED, set[tuple[int, int]](), set[tuple[int, int]]()
    while left > 0:
        for step, late in made.waits():
            for others in (made.pulled(late, pulled), made.others(step, late, known)):
                tried = [*others]
                left -= len(tried)
                better = min((one for one in tried if one.possible), key=_Mended.quality, default=made)
                if better.quality() < made.quality():
                    break
            if left <= 0 or better.quality() < made.quality():
                made = min(made, better, key=_Mended.quality)
                break
        else:
            break
    return made.order, made.when


class _Mended:
    """An order, its guards and limits, and when everything happens."""

    def __init__(self, draft: Draft, order: Order, when: When) -> None:
        self.draft, self.order, self.when = draft, order, when
        self.found = draft.clocks(order, when)
        self.possible = True
        self._places: dict[int, tuple[Order, dict[int, int]]] = {}

    @classmethod
    def of(cls, draft: Draft, order: Order, when: When) -> _Mended:
        """With the best guards and limits that are found, if there are any."""
        when = draft.earliest(order, when)
        possible = draft.possible(order, when)
        made = cls(draft, order, draft.turned(order, when)[0] if possible else when)
        made.possible = possible
        return made

    def quality(self) -> tuple[int, int]:
        """The less, the better."""
        return quality(self.found)

    def due(self, k: int) -> int:
        """The step that waits for a transfer."""
        return self.draft.fixed[k] if self.draft.load[k] else self.when[k]

    def back_to_back(self, late: int) -> Iterator[int]:
        """Yield the transfer before the one of the same queue that it waits for, the one before that, and so on."""
        mine, places = self._in(self.draft.queue[late])
        first, last = self.found.first, self.found.last
        at = places[late]
        while at and first[mine[at]] == last[mine[at - 1]]:
            at -= 1
            yield mine[at]

    def _in(self, queue: int) -> tuple[Order, dict[int, int]]:
        """The transfers of a queue in their order, and the place of each."""
        if queue not in self._places:
            mine = [k for k in self.order if self.draft.queue[k] == queue]
            self._places[queue] = mine, {k: at for at, k in enumerate(mine)}
        return self._places[queue]

    def waits(self) -> list[tuple[int, int]]:
        """Steps that wait with the transfer that each waits for the longest; the longest waits are the first."""
        end, last = self.found.end.tolist(), self.found.last.tolist()
        late = dict[int, int]()
        for k in self.order:
            step = self.due(k)
            before = end[step - 2] if step > 1 else 0
            if step < self.draft.last and last[k] > max(before, last[late[step]] if step in late else 0):
                late[step] = k
        return sorted(late.items(), key=lambda item: (end[item[0] - 2] if item[0] > 1 else 0) - last[item[1]])

    def others(self, step: int, late: int, known: set[tuple[int, int]]) -> Iterator[_Mended]:
        """Yield orders with a transfer put off that stands ahead of the one that a step waits for."""
        for ahead in self.put_off(step, late, known):
            known.add((ahead, late))
            yield from self.behind(step, late, ahead)

    def pulled(self, late: int, known: set[tuple[int, int]]) -> Iterator[_Mended]:
        """Yield orders with loads pulled ahead of the store that begins what runs back to back up to a transfer."""
        draft, first, last = self.draft, self.found.first, self.found.last
        *_, store = late, *self.back_to_back(late)
        mine, places = self._in(draft.queue[late])
        at = places[store]
        idle = int(first[store] - (last[mine[at - 1]] if at else 0))
        if draft.load[store] or (store, idle) in known:
            return
        loads, ends = list[int](), list[int]()
        for k in mine[at + 1 :]:
            if ends and ends[-1] >= idle:
                break
            if draft.load[k] and draft.ready[k] <= draft.fixed[store]:
                loads.append(k)
                ends.append(draft.ticks[k] + (ends[-1] if ends else 0))
        if not loads:
            return
        known.add((store, idle))
        for number in sorted({min(len(loads), 1 + bisect_left(ends, idle // part)) for part in PARTS}):
            some = loads[:number]
            rest = [k for k in self.order if k not in some]
            place = rest.index(store)
            yield self.of(draft, [*rest[:place], *some, *rest[place:]], self.when)

    def put_off(self, step: int, late: int, known: set[tuple[int, int]]) -> list[int]:
        """Transfers back to back ahead of the one that a step waits for, which later steps wait for."""
        draft, found = self.draft, list[int]()
        for k in self.back_to_back(late):
            if len(found) == NEAR:
                break
            stored = not draft.load[k] and draft.load[late] and draft.fixed[k] < draft.ready[late]
            if self.due(k) > step and (k, late) not in known and not stored:
                found.append(k)
        return sorted(found, key=lambda k: -draft.ticks[k])[:PUT_OFF]

    def behind(self, step: int, late: int, ahead: int) -> Iterator[_Mended]:
        """Yield orders with one transfer put off behind another."""
        order = [k for k in self.order if k != ahead]
        at, due = order.index(late) + 1, self.due(ahead)
        then = [self.due(k) for k in order[at : at + FAR]]
        far = {
            max((n for n, other in enumerate(then, 1) if other < most), default=0) for most in (due, (step + due) // 2)
        }
        for n in sorted({0, *far}):
            yield self.of(self.draft, [*order[: at + n], ahead, *order[at + n :]], self.when)

"""One engine and one or two queues of transfers, event by event, and the least time over all orders of these.

An example: two steps of 10 ticks and 4 bytes in 6 bytes; 2 bytes are loaded in 5 ticks for each. The first step waits
for its load until 5, the second load lies beside it from 5 on: 5 + 10 + 10 = 25. In 5 bytes it waits for its place
until 15, and is there at 20: 30.

`simulate` runs a schedule that is given, `Search` all schedules: what comes next in the queue, from which step on it
lies beside the steps, and for which stores a step waits. What lies on chip counts by step, as the pages say:

    step + loads from the step that they may lie beside to the one that reads them + stores until a step waits for them

Of two labels (times of the engine, the queue, and of transfers that somebody has yet to wait for) with the same
transfers done, one that is nowhere earlier is dropped. Nothing else is left out but what cannot be below the best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Move:
    """A transfer: a load for a step (from 1), or a store of what a step has made."""

    load: bool
    ticks: int
    size: int
    step: int
    store: int = -1
    """The map; below 0: weights."""
    rows: tuple[int, int] = (0, 0)
    channels: tuple[int, int] = (0, 2**30)
    queue: int = 0


@dataclass(frozen=True)
class Job:
    """Steps, as ticks and bytes, and transfers."""

    steps: tuple[tuple[int, int], ...]
    moves: tuple[Move, ...]

    def needs(self) -> list[list[int]]:
        """Of every transfer the stores that must stand ahead of it: those of what it loads."""
        return [[k for k, one in enumerate(self.moves) if _overlap(mine, one)] for mine in self.moves]


def _with(queues: tuple[int, int], queue: int, end: int) -> tuple[int, int]:
    """The same, where one of them ends then."""
    return (end, queues[1]) if queue == 0 else (queues[0], end)


def _overlap(load: Move, store: Move) -> bool:
    if not load.load or store.load or load.store < 0 or load.store != store.store:
        return False
    return all(a < d and c < b for (a, b), (c, d) in ((load.rows, store.rows), (load.channels, store.channels)))


def simulate(job: Job, room: int, order: Sequence[int], when: Sequence[int]) -> int | str:
    """The time of a schedule, or what is wrong with it.

    Parameters
    ----------
    order : sequence of int
        The queue; of two queues transfers of each in their order.
    when : sequence of int
        Of every transfer of the job the step beside which a load may lie first, the step that waits for a store.
    """
    moves, number, needs = job.moves, len(job.steps), job.needs()
    at = {k: n for n, k in enumerate(order)}
    if sorted(order) != list(range(len(moves))):
        return "the queue does not have every transfer once"
    for k, one in enumerate(moves):
        if not (1 <= when[k] <= one.step if one.load else one.step < when[k] <= number + 1):
            return f"transfer {k} has no such step"
        if any(at[s] > at[k] or when[k] <= moves[s].step for s in needs[k]):
            return f"transfer {k} loads what is not stored yet"
    for t, (_, size) in enumerate(job.steps, 1):
        beside = sum(
            one.size for k, one in enumerate(moves)
            if (when[k] <= t < one.step if one.load else one.step < t < when[k])
        )  # fmt: skip
        if size + beside > room:
            return f"step {t} has {size + beside} bytes, there are {room}"
    ended, free, queues, done = [0], [0], [0, 0], dict[int, int]()
    lines = [[k for k in order if moves[k].queue == queue] for queue in (0, 1)]
    for t in range(1, number + 2):
        for late in (False, True):
            for n, waiting in enumerate(lines):
                while waiting:
                    one = moves[waiting[0]]
                    if one.load:
                        if when[waiting[0]] > t - (not late):
                            break
                        begin = free[when[waiting[0]]]
                    elif one.step >= t:
                        break
                    else:
                        begin = ended[one.step]
                    queues[n] = max(queues[n], begin) + one.ticks
                    done[waiting.pop(0)] = queues[n]
            awaited = [
                k for k, one in enumerate(moves) if one.load == late and (one.step if late else when[k]) == t
            ]  # fmt: skip
            if any(k not in done for k in awaited):
                return f"step {t} waits for ever"
            begin = max([free[t] if late else ended[-1], *(done[k] for k in awaited)])
            if not late:
                free.append(begin)
        if t <= number:
            ended.append(begin + job.steps[t - 1][0])
    return max([ended[-1], *done.values()])


Ends = tuple[tuple[int, int], ...]


class Label(NamedTuple):
    """What has been done so far."""

    step: int
    """Steps before it have ended."""
    there: bool
    """Whether it has its room."""
    pushed: int
    """Transfers in the queues, by bit."""
    waited: int
    """Stores that a step has waited for."""
    now: int
    """When the step before has ended, or when this one has its room."""
    queues: tuple[int, int]
    """When each has ended."""
    ends: tuple[int, ...]
    """Of all steps so far."""
    stores: Ends
    """Those in the queue that nobody has waited for, with their ends, in their order."""
    loads: Ends
    """Steps with loads in the queue, and when these have ended."""
    path: tuple[Any, ...]


@dataclass
class Search:
    """All schedules of a job in so many bytes that take less than so many ticks."""

    job: Job
    room: int
    below: int
    until: float = inf
    """When it stops, by the clock; it is not `complete` then."""
    labels: int = 0
    complete: bool = True
    found: tuple[int, list[int], list[int]] | None = None
    """Ticks, the queue, and the step of every transfer."""
    _seen: dict[tuple[int, ...], list[tuple[int, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        job, moves = self.job, self.job.moves
        self.number, self.count = len(job.steps), len(moves)
        needs = job.needs()
        self.needs = [sum(1 << k for k in some) for some in needs]
        self.earliest = [1 + max((moves[k].step for k in some), default=0) for some in needs]
        steps = range(self.number + 2)
        self.loads = [sum(1 << k for k, one in enumerate(moves) if one.load and one.step == t) for t in steps]
        self.ahead = [[(1 << k, one.size) for k, one in enumerate(moves) if one.load and one.step > t] for t in steps]
        self.leaving = [
            [(1 << k, one.size) for k, one in enumerate(moves) if not one.load and one.step < t] for t in steps
        ]
        self.releasing = [
            [(1 << k, one.step) for k, one in enumerate(moves) if not one.load and one.step < t]
            for t in range(self.number + 3)
        ]
        #: An equal transfer, which goes first.
        self.before = [next((1 << j for j in reversed(range(k)) if self._alike(j, k)), 0) for k in range(self.count)]
        behind = [sum(one.ticks for one in moves if not one.load and one.step >= t) for t in steps]
        left = [sum(ticks for ticks, _ in job.steps[t - 1 :]) for t in range(1, self.number + 3)]
        #: From the end of the step before: the engine up to some step, and all that is stored from then on.
        self.tail = [0] + [
            max([left[t - 1], *(left[t - 1] - left[r] + behind[r] for r in range(t, self.number + 1))])
            for t in range(1, self.number + 2)
        ]
        self.by_due = sorted((one.step, 1 << k, one.ticks, one.queue) for k, one in enumerate(moves) if one.load)
        self.stored = [(1 << k, one.ticks, one.queue) for k, one in enumerate(moves) if not one.load]

    def _alike(self, j: int, k: int) -> bool:
        mine, other = self.job.moves[k], self.job.moves[j]
        if mine.queue != other.queue:
            return False
        if (mine.load, mine.ticks, mine.size, mine.step) != (other.load, other.ticks, other.size, other.step):
            return False
        if self.needs[j] != self.needs[k]:
            return False
        return mine.load or all((one >> j) & 1 == (one >> k) & 1 for one in self.needs)

    @property
    def floor(self) -> int:
        """What no schedule is below."""
        return self._floor(Label(1, False, 0, 0, 0, (0, 0), (), (), (), ()))

    def run(self) -> int | None:
        """The least ticks below the limit; None if there is no such schedule."""
        if any(size > self.room for _, size in self.job.steps) or self.floor >= self.below:
            return None
        stack = [Label(1, False, 0, 0, 0, (0, 0), (), (), (), ())]
        while stack:
            label = stack.pop()
            if self._floor(label) >= self.below or self._dropped(label):
                continue
            if self.labels % 64 == 0 and monotonic() > self.until:
                self.complete = False
                break
            self.labels += 1
            if label.step > self.number:
                self._drained(label)
            else:
                stack += reversed(list(self._next(label)))
        return None if self.found is None else self.found[0]

    def _floor(self, label: Label) -> int:
        least = label.now + self.tail[label.step]
        for step, end in label.loads:
            least = max(least, end + self.tail[step])
        at = [*label.queues]
        for step, bit, ticks, queue in self.by_due:
            if not label.pushed & bit:
                at[queue] += ticks
                least = max(least, at[queue] + self.tail[step])
        for bit, ticks, queue in self.stored:
            at[queue] += 0 if label.pushed & bit else ticks
        return max(least, *at)

    def _dropped(self, label: Label) -> bool:
        now, moves = label.now, self.job.moves
        waiting = [max(label.queues[moves[bit.bit_length() - 1].queue], label.ends[r - 1])
                   for bit, r in self.releasing[label.step] if not label.pushed & bit]  # fmt: skip
        times = (
            now, *label.queues, *waiting,
            *(max(end, now) for _, end in sorted(label.stores)), *(max(end, now) for _, end in label.loads),
        )  # fmt: skip
        others = self._seen.setdefault((label.step, label.there, label.pushed, label.waited), [])
        if any(all(a <= b for a, b in zip(one, times, strict=True)) for one in others):
            return True
        others[:] = [one for one in others if not all(b <= a for a, b in zip(one, times, strict=True))]
        others.append(times)
        return False

    def _taken(self, t: int, pushed: int, waited: int, *, stores: bool = True) -> int:
        """Bytes of a step, of loads that lie beside it, and of stores."""
        taken = self.job.steps[t - 1][1] + sum(size for bit, size in self.ahead[t] if pushed & bit)
        return taken + (sum(size for bit, size in self.leaving[t] if not waited & bit) if stores else 0)

    def _next(self, label: Label) -> Iterator[Label]:
        t, there, pushed, waited, now, queues, ends, stores, loads, path = label
        for k, one in enumerate(self.job.moves):
            bit, queue = 1 << k, queues[one.queue]
            if pushed & bit or self.before[k] & ~pushed:
                continue
            if one.load:
                beside = t if there else t - 1
                if self.needs[k] & ~pushed or not max(1, self.earliest[k]) <= beside <= one.step:
                    continue
                if (there or queue >= now) and self._fits(one, pushed, waited, beside):
                    end = max(queue, now) + one.ticks  # behind the step before: the queue has ended later
                    last = max(end, dict(loads).get(one.step, 0))
                    more = tuple(sorted((dict(loads) | {one.step: last}).items()))
                    after = _with(queues, one.queue, end)
                    yield label._replace(pushed=pushed | bit, queues=after, loads=more, path=(path, k, beside))
            elif one.step < t:
                end = max(queue, ends[one.step - 1]) + one.ticks
                after, both = _with(queues, one.queue, end), (*stores, (k, end))
                yield label._replace(pushed=pushed | bit, queues=after, stores=both, path=(path, k, 0))
        if not there:
            yield from self._waits(label)
        elif not self.loads[t] & ~pushed and self._taken(t, pushed, waited) <= self.room:
            end = max([now, *(end for step, end in loads if step == t)]) + self.job.steps[t - 1][0]
            rest = tuple(one for one in loads if one[0] > t)
            yield Label(t + 1, False, pushed, waited, end, queues, (*ends, end), stores, rest, (path, -1, ()))

    def _fits(self, one: Move, pushed: int, waited: int, beside: int) -> bool:
        """Whether a load finds room from a step on; of stores those count that lie beside this one."""
        return all(
            self._taken(t, pushed, waited, stores=t == beside) + one.size <= self.room for t in range(beside, one.step)
        )

    def _waits(self, label: Label) -> Iterator[Label]:
        """Wait for the stores that have ended, and for some more."""
        stores = tuple(sorted(label.stores, key=lambda one: one[1]))
        for number in range(sum(end <= label.now for _, end in stores), len(stores) + 1):
            some = stores[:number]
            now, waited = max([label.now, *(end for _, end in some)]), label.waited
            for k, _ in some:
                waited |= 1 << k
            path = label.path, -2, tuple(k for k, _ in some)
            yield label._replace(there=True, now=now, waited=waited, stores=stores[number:], path=path)

    def _drained(self, label: Label) -> None:
        """Store what is left, and keep the best schedule."""
        queues, path = [*label.queues], label.path
        left = [(one.step, k) for k, one in enumerate(self.job.moves) if not label.pushed >> k & 1]
        for step, k in sorted(left):
            one = self.job.moves[k]
            queues[one.queue] = max(queues[one.queue], label.ends[step - 1]) + one.ticks
            path = path, k, 0
        ticks = max(label.now, *queues)
        if ticks < self.below:
            self.below, self.found = ticks, (ticks, *self._schedule(path))

    def _schedule(self, path: tuple[Any, ...]) -> tuple[list[int], list[int]]:
        done = list[tuple[int, Any]]()
        while path:
            path, *last = path
            done.append((last[0], last[1]))
        order, when, t = list[int](), [self.number + 1] * self.count, 1
        for k, more in reversed(done):
            if k == -1:
                t += 1
            elif k == -2:
                for store in more:
                    when[store] = t
            else:
                order.append(k)
                if self.job.moves[k].load:
                    when[k] = more
        return order, when

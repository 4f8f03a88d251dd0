"""Schedules of several applications to start from: each application on one processor, or all by a list schedule."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from formulations.applications.problem import Goal, Several, responses
from formulations.mapping.problem import Assignment, Schedule
from formulations.mapping.search import list_scheduled

#: Schedules that are tried at most.
_MOST = 3_000


def apart(several: Several) -> Iterator[Assignment]:
    """All assignments with each application on one processor; what cannot run there is on a core of its own."""
    mapping = several.mapping
    choices = product(range(len(mapping.processors)), repeat=len(several.streams))
    for chosen in islice(choices, _MOST):
        at: list[int] = []
        for a, (stream, p) in enumerate(zip(several.streams, chosen, strict=True)):
            spare = mapping.host[a % len(mapping.host)]
            for i in stream.tasks:
                able = mapping.able[i]
                at.append(p if p in able else spare if spare in able else able[0])
        yield tuple(at)


def starts(several: Several, goal: Goal, number: int = 20) -> list[Schedule]:
    """The best of these by deadlines missed, then by the objective; each in the order of the graph."""
    lists = (list_scheduled(several.mapping, rule) for rule in ("heft", "cpop", "peft"))
    found = [several.plain(at) for at in dict.fromkeys([*apart(several), *lists])]

    def key(one: Schedule) -> tuple[int, int]:
        """Deadlines missed; the responses together, periods twice where unknown, or if none is missed the objective."""
        known = responses(several, one)
        late = sum(r is None or r > s.deadline for r, s in zip(known, several.streams, strict=True))
        total = [2 * s.period if r is None else r for r, s in zip(known, several.streams, strict=True)]
        return late, sum(total) if late else several.figure(one, goal, total)

    return sorted(found, key=key)[:number]

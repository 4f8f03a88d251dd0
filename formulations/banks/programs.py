"""Banks, inside one stage: the programs of all its tasks that find the same tiles, and share what they know.

Optimal means
    Whatever leaves more banks free at every column, and lets more tiles go, allows more programs, none of them slower.
    So a task whose programs come to what a freer task comes to needs no search of its own
    (`formulations.banks.search`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from formulations.banks.search import Cost, Search
from formulations.banks.stage import fewest, policy
from formulations.banks.tasks import Prices, Program, Task
from formulations.banks.timing import Timed, Timing, undominated
from hwmodels.banks.price import State


class Programs:
    """The undominated programs, for all tasks of one stage that find the same tiles and differ in what stays.

    Whatever leaves more banks free at every column, and lets more tiles go, allows more programs, none of them slower.
    So a task whose programs come to what a freer task comes to needs no search of its own.

    Parameters
    ----------
    wait : int
        Ticks until the first weights are there, and the bus is free.
    hidden : Programs, optional
        The same for a wait that hides the latency of every request. A longer wait delays these programs by as much as
        it is longer, and no program gains more by a shorter one than that it is shorter.
    cheaper : Programs, optional
        The same if reloads cost nothing beside the load: as long as these programs reload nothing, none beats them.
    lean : bool
        Whether of every task those programs are enough that move the fewest bytes.
    """

    def __init__(
        self,
        prices: Prices,
        timing: Timing,
        wait: int = 0,
        hidden: Programs | None = None,
        cheaper: Programs | None = None,
        *,
        lean: bool = False,
    ) -> None:
        self.prices, self.timing, self.wait = prices, timing, wait
        self.hidden, self.cheaper, self.lean = hidden, cheaper, lean
        #: Where weights overtake, programs that are bounds, or good ones: `formulations.banks.overtaking` has all.
        self.answers: dict[Task, list[Timed]] = {}
        self._leasts: dict[Task, Timed] = {}

    def of(self, task: Task) -> list[Timed]:
        """All undominated programs, by bytes; none if the task does not fit."""
        found = self.answers.get(task)
        if found is None:
            begun = task.begin()
            fits = begun is not None and fewest(task, self.prices) is not None
            self.answers[task] = found = self._found(task, begun) if begun is not None and fits else []
        return found

    def good(self, task: Task, others: Iterable[Timed]) -> list[Timed]:
        """Some programs that are quick: those of others, that with the fewest bytes, and those of the policies."""
        found = self.answers.get(task)
        if found is None:
            begun, search = task.begin(), Search(task, self.prices, self.timing, self.wait)
            assert begun is not None
            programs = dict.fromkeys((*(one.program for one in others), *self._ways(task)))
            priced = [one for program in programs if (one := search.along(begun, program)) is not None]
            self.answers[task] = found = undominated(priced)
        return found

    def bound(self, task: Task) -> int:
        """A lower bound over all programs of a task: ticks until the next stage may begin to work (`Timing.ready`).

        As long as the task has not been asked for, it is not searched for this.
        """
        found = self.answers.get(task)
        if found is not None:
            return min([self.timing.ready(one.ticks, one.wait) for one in found])
        begun = task.begin()
        assert begun is not None
        least = self._least(task, begun)
        return self.timing.ready(least.ticks, least.wait)

    def _least(self, task: Task, begun: State) -> Timed:
        """Lower bounds on the costs of all programs of a task."""
        if task not in self._leasts:
            self._leasts[task] = Search(task, self.prices, self.timing, self.wait).least(begun)
        return self._leasts[task]

    def _found(self, task: Task, begun: State) -> list[Timed]:
        ahead = self._ahead(task)
        if ahead and self.hidden and self.wait >= self.hidden.wait:
            return ahead
        if self.cheaper and not any(one.program.reloaded for one in self.cheaper.of(task)):
            return self.cheaper.of(task)
        if not self.lean and (easier := _easier(task)) and self._freer(easier, task):
            self.of(easier)
        solved = [] if self.lean else [(other, found) for other, found in self.answers.items() if found]
        freer = {_costs(found) for other, found in solved if self._freer(other, task)}
        for other, found in solved:
            if _costs(found) in freer and self._freer(task, other):
                return found
        search = Search(task, self.prices, self.timing, self.wait)
        least = self._least(task, begun)
        if self.lean:
            search.most = least.bytes
        fronts = [*freer, _costs([least])]
        if ahead:
            fronts.append(_costs(ahead))
        for program in dict.fromkeys((*(one.program for one in ahead), *self._ways(task))):
            one = search.along(begun, program)
            if one is not None:
                search.known = undominated([*search.known, one])
                if search.close(fronts):
                    return search.known
        return search.run(begun)

    def _freer(self, one: Task, other: Task) -> bool:
        """Whether a task allows all programs of another one, none of them slower: it must write the same columns."""
        writes = self.timing.writes
        if writes and (writes.at_first(one), writes.sizes(one)) != (writes.at_first(other), writes.sizes(other)):
            return False
        return one.freer(other)

    def _ahead(self, task: Task) -> list[Timed]:
        """What the programs are at best, going by those of `hidden`."""
        if self.hidden is None:
            return []
        gained = self.hidden.wait - self.wait
        return [replace(one, ticks=one.ticks - gained) for one in self.hidden.of(task)]

    def _ways(self, task: Task) -> Iterator[Program]:
        """Programs that are known, that with the fewest bytes, and those of the policies."""
        for found in list(self.answers.values())[-4:]:
            yield from (one.program for one in found)
        leanest = fewest(task, self.prices)
        assert leanest is not None
        yield leanest
        yield from _policies(task)


def _easier(task: Task) -> Task | None:
    """A freer task, from which the programs of many tasks are known: first nothing is retained, then nothing kept."""
    if task.retain:
        return replace(task, retain=0)
    return replace(task, goal=replace(task.goal, keep=0, mirrored=False)) if task.goal.keep else None


@lru_cache(maxsize=100_000)
def _policies(task: Task) -> tuple[Program, ...]:
    """The programs of the policies with 1, 2, ... tiles a step."""
    tried = (policy(task, most=most) for most in range(1, task.banks + 1))
    return tuple(dict.fromkeys(one for one in tried if one is not None))


def _costs(found: Iterable[Timed]) -> tuple[Cost, ...]:
    return tuple((one.bytes, one.ticks, one.ticks + one.wait) for one in found)

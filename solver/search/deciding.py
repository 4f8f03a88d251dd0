"""How parts are decided, here or in other processes, and which of their answers is accepted."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from formulations.clock import Clock
from formulations.problem import Formulation, Part
from instances.errors import InputError, PlanMismatch
from solver.ask.options import processors
from solver.ask.question import Question
from solver.ask.watch import NO_LIMIT, Watch
from solver.search.loop import Answer, decide_part, status_of, unanswered
from solver.search.verdict import Verdict, in_unit, price_and_replay, verdicts_of
from solver.search.workers import run, share_of

#: Seconds below which a part is decided without a search.
_WORTH_S = 0.05
#: Seconds after the time limit in which parts that are optional are still decided.
_SPARE_S = 1.0
#: Parts that are not proven are tried again with the time left over, but only if that is this many times what they had.
_AGAIN = 2.0


@dataclass(frozen=True)
class Job:
    """A part to decide, here or in another process: by a search, or by a fallback of at most `fallback_s` seconds."""

    part: Part[Any]
    objectives: tuple[str, ...]
    search: Callable[..., Answer[Any]]
    otherwise: Callable[[Any, tuple[str, ...]], Answer[Any]]
    """`search`, `otherwise`: of part and objectives (a search by a clock, too); both can be pickled."""
    fallback_s: float | None = None

    @property
    def name(self) -> str:
        """Of the part, for messages."""
        return f"layer {self.part.name}"

    def decide(self, time_limit_s: float | None, watch: Watch) -> Answer[Any]:
        """Decide in a share of the time of `watch`, and judge the schedule.

        By what is quick if the search is stopped, or if there is hardly time; a part that is optional is left out then.
        """
        if self.part.optional and watch.clock.later(_SPARE_S).over:
            return self.unanswered("stopped by time limit")
        start = time.monotonic()
        said: Answer[Any] | None = None
        with watch.part(time_limit_s) as mine:
            if time_limit_s is None or time_limit_s > _WORTH_S:
                said = mine.run(lambda: self._searched(mine.clock, watch.end_s), _nothing)
                mine.heard({} if said is None else said.stats)
        why = mine.reason or "time limit"
        said = self.fallback(why) if said is None else said
        if mine.reason or (mine.clock.over and said.status in ("FEASIBLE", "NO_SOLUTION_FOUND")):
            said = replace(said, stats={**said.stats, "stopped": why})
        return replace(self._judged(said), wall_s=time.monotonic() - start)

    def _searched(self, clock: Clock, end_s: float | None) -> Answer[Any]:
        clock = clock if end_s is None else replace(clock, end=clock.now() + end_s)
        return self._explained(self.search(self.part, self.objectives, clock=clock))

    def _explained(self, said: Answer[Any]) -> Answer[Any]:
        return replace(said, conflicts=self.part.explain()) if said.status == "INFEASIBLE" else said

    def fallback(self, why: str) -> Answer[Any]:
        """Decide without a search; nothing if even that takes too long."""
        with Watch(self.fallback_s, NO_LIMIT) as watch:
            said = watch.run(lambda: self._explained(self.otherwise(self.part, self.objectives)), _nothing)
        if said is None:
            return self.unanswered(f"stopped by {why}")
        return replace(said, stats={**said.stats, "stopped": why})

    def unanswered(self, note: str = "") -> Answer[Any]:
        """What is known if nobody has time for it."""
        return unanswered(self.part, self.objectives, note)

    def _judged(self, said: Answer[Any]) -> Answer[Any]:
        """The answer with price and replay, which may take as long as the search: so they are made side by side too."""
        try:
            if said.schedule is None:
                return said
            schedule = self.part.completed(said.schedule)
            if schedule is not said.schedule:
                said = replace(said, schedule=schedule, values=self.part.price(schedule).measures)
            return replace(said, judged=price_and_replay(self.part, schedule))
        except MemoryError:
            return self.unanswered("no memory to verify a plan")
        except InputError as error:
            raise PlanMismatch(f"{self.name}: {error}") from error


def _nothing() -> None:
    """What there is of a search that was stopped."""


def answers_of(
    jobs: Mapping[Hashable, Job], question: Question, watch: Watch, *, proves: bool
) -> dict[Hashable, Answer[Any]]:  # fmt: skip
    """Return the answers of jobs by key, here or from other processes; what jobs leave over of the time goes to others.

    One is missing if its process died, or there was no time; `proves`: whether more time may prove more.
    """
    keys, numbered = list(jobs), dict(enumerate(jobs.values()))
    best: dict[int, Answer[Any]] = {}

    def on_done(number: int, said: Answer[Any]) -> None:
        if number not in best:
            question.progress.advance(f"{numbered[number].part.name}: {said.status}")
        best[number] = _better(best.get(number), said)

    waiting = numbered
    question.progress.begin(len(jobs), question.name)
    try:
        while waiting:
            outcome = run(waiting, question.jobs, watch, on_done)
            waiting = {
                number: job for number, job in numbered.items()
                if number not in best or best[number].status not in ("OPTIMAL", "INFEASIBLE")
            }  # fmt: skip
            share = share_of(watch.clock, len(waiting), min(question.jobs or processors(), len(waiting)))
            had = max((outcome.shares_s.get(number, 0.0) for number in waiting), default=0.0)
            if outcome.stopped or not proves or share is None or share <= _AGAIN * had:
                break
    finally:
        question.progress.end()
    return {keys[number]: said for number, said in best.items()}


def _better(one: Answer[Any] | None, two: Answer[Any]) -> Answer[Any]:
    """Return the better of two answers for one part, with the better first bound of both and the time of both."""
    if one is None or two.status in ("OPTIMAL", "INFEASIBLE"):
        return two

    def rank(said: Answer[Any]) -> tuple[int, ...]:
        values = said.values
        return (said.schedule is None, *(values[name] for name in (*said.bounds, *values) if name in values))

    winner, first = min(one, two, key=rank), next(iter(one.bounds))
    bounds = {**winner.bounds, first: max((b for b in (one.bound, two.bound) if b is not None), default=None)}
    values = {name: winner.values[name] for name in bounds if name in winner.values}
    return replace(
        winner, bounds=bounds, status=status_of(values, bounds, empty=False), wall_s=one.wall_s + two.wall_s,
        versions=winner.versions or one.versions,
    )  # fmt: skip


def lowest(
    formulation: Formulation[Any], part: Part[Any], question: Question, axes: tuple[str, str]
) -> tuple[list[Verdict], bool]:
    """Return the front of two measures of a part, and whether all of it is proven.

    It is the least first one, of these the least second one; then the same with less of the second.
    """
    points, cap, proven = list[Verdict](), dict[str, int](), True
    with question.watch() as watch:
        while True:
            said = decide_part(formulation, part, axes, question.engine, watch.clock, most=cap)
            if said.schedule is None:
                return points, proven and said.status == "INFEASIBLE"
            proven = proven and said.status == "OPTIMAL"
            points += accepted([(part, said)], question.where)
            cap = {axes[1]: points[-1].values[axes[1]] - 1}
            if cap[axes[1]] < 0:
                return points, proven
            if said.interrupted or watch.stopped or watch.clock.over:
                return points, False


def accepted(answers: Iterable[tuple[Part[Any], Answer[Any]]], where: str = "") -> list[Verdict]:
    """Return the verdicts on answers; raises PlanMismatch, with the part's name and `where`, if one is not so."""
    verdicts = verdicts_of(answers)
    for one in verdicts:
        if faults := [*one.faults, *_claims(one)]:
            raise PlanMismatch(f"{one.part.name}{where}: {'; '.join(faults[:5])}")
    return verdicts


def _claims(one: Verdict) -> Iterator[str]:
    """What an answer claims of its schedule, and is not so."""
    if one.priced is not None:
        for name, claimed in one.said.values.items():
            if claimed != one.priced.measures.get(name):
                yield f"{in_unit(name)}: engine says {claimed}, priced {one.priced.measures.get(name)}"
        if one.said.status not in ("OPTIMAL", "FEASIBLE"):
            yield f"status {one.said.status} comes with a schedule"
        if one.said.status == "OPTIMAL" and dict(one.said.bounds) != one.values:
            yield f"status OPTIMAL with bound {one.said.bound} and value {next(iter(one.values.values()))}"

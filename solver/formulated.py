"""Problems that are formulations: their parts are decided one by one, and every answer is priced and replayed.

`solver.generic` makes plans with a row for every part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from formulations.clock import Clock
from formulations.pins import parse_pins
from formulations.problem import Formulation, Part
from instances.errors import InputError
from instances.network import Network
from solver.jobs import share_of
from solver.options import processors, unknown
from solver.plan import Plan
from solver.problem import EngineInfo, Problem
from solver.question import Question
from solver.search import Answer, hasty, quickest, settled, status_of, unanswered
from solver.verdict import Verdict, in_unit, judged, judgement
from solver.verify import PlanMismatch
from solver.watch import NO_LIMIT, Watch
from solver.workers import run

#: Seconds below which a part is decided in haste.
_WORTH_S = 0.05
#: Seconds after the time limit in which parts that are spare are still decided.
_SPARE_S = 1.0
#: Parts that are not proven are tried again with the time left over, but only if that is this many times what they had.
_AGAIN = 2.0

P = TypeVar("P", bound=Plan)


@dataclass(frozen=True)
class _Engine:
    name: str
    summary: str
    proves: bool


#: A search of a part that can be pickled: of part, objectives and clock; and what there is without a search.
Search = Callable[[Any, tuple[str, ...], Clock], Answer[Any]]
Haste = Callable[[Any, tuple[str, ...]], Answer[Any]]


@dataclass(frozen=True)
class Job:
    """A part to decide, here or in another process: by a search, or in haste, which may take `haste_s` seconds."""

    part: Part[Any]
    objectives: tuple[str, ...]
    search: Search
    haste: Haste
    haste_s: float | None = None

    @property
    def name(self) -> str:
        """Of the part, for messages."""
        return f"layer {self.part.name}"

    def decide(self, time_limit_s: float | None, watch: Watch) -> Answer[Any]:
        """Decide in a share of the time of `watch`, and judge the schedule.

        In haste if the search is stopped, or if there is hardly time; a part that is spare is left out then.
        """
        if self.part.spare and watch.clock.later(_SPARE_S).over:
            return self.unanswered("stopped by time limit")
        start = time.monotonic()
        said: Answer[Any] | None = None
        with watch.part(time_limit_s) as mine:
            if time_limit_s is None or time_limit_s > _WORTH_S:
                said = mine.run(lambda: self._searched(mine.clock, watch.end_s), _nothing)
                mine.heard({} if said is None else said.stats)
        why = mine.reason or "time limit"
        said = self.hasty(why) if said is None else said
        if mine.reason or (mine.clock.over and said.status in ("FEASIBLE", "NO_SOLUTION_FOUND")):
            said = replace(said, stats={**said.stats, "stopped": why})
        return replace(self._judged(said), wall_s=time.monotonic() - start)

    def _searched(self, clock: Clock, end_s: float | None) -> Answer[Any]:
        clock = clock if end_s is None else replace(clock, end=clock.now() + end_s)
        return self._explained(self.search(self.part, self.objectives, clock))

    def _explained(self, said: Answer[Any]) -> Answer[Any]:
        return replace(said, conflicts=self.part.explain()) if said.status == "INFEASIBLE" else said

    def hasty(self, why: str) -> Answer[Any]:
        """Decide without a search; nothing if even that takes too long."""
        with Watch(self.haste_s, NO_LIMIT) as watch:
            said = watch.run(lambda: self._explained(self.haste(self.part, self.objectives)), _nothing)
        if said is None:
            return self.unanswered(f"stopped by {why}")
        return replace(said, stats={**said.stats, "stopped": why})

    def unanswered(self, note: str = "") -> Answer[Any]:
        """What is known if nobody has time for it."""
        return unanswered(self.part, self.objectives, note)

    def _judged(self, said: Answer[Any]) -> Answer[Any]:
        """The answer with price and replay, which may take as long as the search: so they are made side by side too."""
        try:
            schedule = said.schedule
            return said if schedule is None else replace(said, judged=judgement(self.part, schedule))
        except MemoryError:
            return self.unanswered("no memory to verify a plan")
        except InputError as error:
            raise PlanMismatch(f"{self.name}: {error}") from error


def _nothing() -> None:
    """What there is of a search that was stopped."""


class FormulationProblem(Problem[P]):
    """A formulation, as the rest of `solver` sees it; a subclass says what stands in its plans."""

    front_engines = True

    def __init__(self, formulation: Formulation[Any]) -> None:
        self.formulation = formulation
        self.name, self.summary = formulation.name, formulation.summary
        self.measures, self.usual = formulation.measures, next(iter(formulation.measures))
        self.pins = {name: str(decision) for name, decision in formulation.decisions.items()}
        names = tuple(formulation.engines)
        self.auto, self.quick, self.floors = names[0], formulation.quick, formulation.floors
        self.others = {**{name: tuple(o for o in names if o != name) or (name,) for name in names}, "": names}
        self.axes = formulation.measures if len(formulation.measures) > 1 else {}

    @property
    def engines(self) -> Mapping[str, EngineInfo]:
        """Those of the formulation, and its heuristics."""
        exact = [_Engine(name, about, proves=True) for name, about in self.formulation.engines.items()]
        guesses = [_Engine(name, about, proves=False) for name, (about, _) in self.formulation.heuristics.items()]
        return {engine.name: engine for engine in (*exact, *guesses)}

    # ---- deciding ----------------------------------------------------------------------------------------------------

    def parts(self, question: Question) -> Sequence[Part[Any]]:
        """Return what is decided, in the order of the plan; raises InputError for bad pins and layers."""
        pins = parse_pins(question.pins, self.formulation.decisions)
        target = question.network if self.formulation.target is Network else question.subject
        parts = self.formulation.read(target, question.machine, pins, question.layers)
        known = {part.name: part for part in parts}
        for name in question.layers or ():
            if name not in known:
                raise unknown("layer", name, known)
        return parts if question.layers is None else [known[name] for name in question.layers]

    def ready(self, question: Question) -> None:
        """Make the parts."""
        self.parts(question)

    def job(self, part: Part[Any], question: Question) -> Job:
        """Return how a part is decided."""
        search = partial(_settled, self.formulation, question.engine)
        return Job(part, question.objectives, search, partial(hasty, self.formulation))

    def answers(self, parts: Sequence[Part[Any]], question: Question, watch: Watch) -> dict[Hashable, Answer[Any]]:
        """Return an answer by key, here or from other processes; what parts leave over of the time goes to others."""
        distinct: dict[Hashable, Part[Any]] = {}
        for part in parts:
            distinct.setdefault(part.key, part)
        jobs = {number: self.job(part, question) for number, part in enumerate(distinct.values())}
        best: dict[int, Answer[Any]] = {}

        def on_done(number: int, said: Answer[Any]) -> None:
            if number not in best:
                question.progress.advance(f"{jobs[number].part.name}: {said.status}")
            best[number] = _better(best.get(number), said)

        proves, waiting = self.engines[question.engine].proves, jobs
        question.progress.begin(len(jobs), question.name)
        try:
            while waiting:
                outcome = run(waiting, question.jobs, watch, on_done)
                proven = {number for number, said in best.items() if said.status in ("OPTIMAL", "INFEASIBLE")}
                waiting = {number: job for number, job in jobs.items() if number not in proven}
                share = share_of(watch.clock, len(waiting), min(question.jobs or processors(), len(waiting)))
                had = max((outcome.shares_s.get(number, 0.0) for number in waiting), default=0.0)
                if outcome.stopped or not proves or share is None or share <= _AGAIN * had:
                    break
        finally:
            question.progress.end()
        return {key: best.get(number) or self.lost(jobs[number]) for number, key in enumerate(distinct)}

    def lost(self, job: Job) -> Answer[Any]:
        """Return an answer for a part that has none: its process died, or there was no time."""
        return job.hasty("time limit")

    def doubting(self, part: Part[Any], plan: P, *, proves: bool) -> Iterator[str]:
        """Yield quick heuristics that have a schedule where a plan has none: its own, or any if its engine proves."""
        for name in self.quick if proves else {plan.engine} & set(self.quick):
            if quickest(self.formulation, part, plan.objectives[0], [name]) is not None:
                yield name

    def verified(self, parts: Sequence[Part[Any]], answers: Sequence[Answer[Any]], question: Question) -> list[Verdict]:
        """Judge what a search says; raises PlanMismatch if it is not so."""
        return refused(zip(parts, answers, strict=True), f" on {question.machine.name}, engine {question.engine}")

    def lowest(
        self, part: Part[Any], question: Question, axes: tuple[str, str]
    ) -> tuple[list[Verdict], bool]:  # fmt: skip
        """Return the front of two measures, and whether all of it is proven.

        It is the least first one, of these the least second one; then the same with less of the second.
        """
        points, cap, proven = list[Verdict](), dict[str, int](), True
        with question.watch() as watch:
            while True:
                said = settled(self.formulation, part, axes, question.engine, watch.clock, most=cap)
                if said.schedule is None:
                    return points, proven and said.status == "INFEASIBLE"
                proven = proven and said.status == "OPTIMAL"
                points += self.verified([part], [said], question)
                cap = {axes[1]: points[-1].values[axes[1]] - 1}
                if cap[axes[1]] < 0:
                    return points, proven
                if said.interrupted or watch.stopped or watch.clock.over:
                    return points, False


def refused(answers: Iterable[tuple[Part[Any], Answer[Any]]], where: str = "") -> list[Verdict]:
    """Judge answers; raises PlanMismatch, with the part's name and `where`, if one is not so."""
    verdicts = judged(answers)
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


def _settled(
    formulation: Formulation[Any], engine: str, part: Part[Any], objectives: tuple[str, ...], clock: Clock
) -> Answer[Any]:  # fmt: skip
    """Decide a part by the loop of all formulations."""
    return settled(formulation, part, objectives, engine, clock)

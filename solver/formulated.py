"""Problems that are formulations: their parts are decided one by one, and every answer is priced and replayed.

`solver.parts` makes plans with a row for every part, `solver.whole` plans of one part, the network.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from formulations.clock import Clock
from formulations.pins import parse_pins
from formulations.problem import Formulation, Part
from solver.network_plan import WholePlan
from solver.options import unknown
from solver.plan import Plan
from solver.problem import EngineInfo, Problem
from solver.question import Question
from solver.search import Answer, hasty, settled
from solver.verdict import Verdict, judged
from solver.verify import PlanMismatch
from solver.watch import Watch
from solver.workers import run

__all__ = ["FormulationProblem"]

#: Seconds below which a part is decided in haste.
_WORTH_S = 0.05

P = TypeVar("P", bound=WholePlan)


@dataclass(frozen=True)
class _Engine:
    name: str
    summary: str
    proves: bool


@dataclass(frozen=True)
class _Job:
    """A part to decide, here or in another process."""

    formulation: Formulation[Any]
    part: Part[Any]
    objectives: tuple[str, ...]
    engine: str

    @property
    def name(self) -> str:
        """Of the part."""
        return self.part.name

    def decide(self, time_limit_s: float | None, watch: Watch) -> Answer[Any]:
        """Decide in a share of the time of `watch`; in haste if the search is stopped, or if there is hardly time."""
        start = time.monotonic()
        in_time = time_limit_s is None or time_limit_s > _WORTH_S
        with watch.part(time_limit_s if in_time else None) as mine:
            said = mine.run(lambda: self._search(mine.clock) if in_time else self.hasty(), self.hasty)
            if in_time:
                mine.heard(said.stats)
        return replace(said, wall_s=time.monotonic() - start)

    def _search(self, clock: Clock) -> Answer[Any]:
        return self._explained(settled(self.formulation, self.part, self.objectives, self.engine, clock))

    def hasty(self) -> Answer[Any]:
        """Decide without a search."""
        return self._explained(hasty(self.formulation, self.part, self.objectives))

    def _explained(self, said: Answer[Any]) -> Answer[Any]:
        return replace(said, conflicts=self.part.explain()) if said.status == "INFEASIBLE" else said


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
        Plan.KINDS[self.name] = self.plan

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
        parts = self.formulation.read(question.network, question.machine, pins, question.layers)
        known = {part.name: part for part in parts}
        for name in question.layers or ():
            if name not in known:
                raise unknown("layer", name, known)
        return parts if question.layers is None else [known[name] for name in question.layers]

    def answers(self, parts: Sequence[Part[Any]], question: Question, watch: Watch) -> dict[Hashable, Answer[Any]]:
        """Return an answer by key, here or from other processes."""
        distinct: dict[Hashable, Part[Any]] = {}
        for part in parts:
            distinct.setdefault(part.key, part)
        jobs = {
            number: _Job(self.formulation, part, question.objectives, question.engine)
            for number, part in enumerate(distinct.values())
        }
        question.progress.begin(len(jobs), question.network.name)
        try:
            answers = run(
                jobs, question.jobs, watch,
                lambda number, said: question.progress.advance(f"{jobs[number].part.name}: {said.status}"),
            ).answers  # fmt: skip
        finally:
            question.progress.end()
        return {key: answers.get(number) or jobs[number].hasty() for number, key in enumerate(distinct)}

    def verified(self, parts: Sequence[Part[Any]], answers: Sequence[Answer[Any]], question: Question) -> list[Verdict]:
        """Judge what a search says; raises PlanMismatch if it is not so."""
        verdicts = judged(zip(parts, answers, strict=True))
        for one in verdicts:
            if one.faults:
                where = f"{one.part.name} on {question.machine.name}, engine {question.engine}"
                raise PlanMismatch(f"{where}: {'; '.join(one.faults[:5])}")
        return verdicts

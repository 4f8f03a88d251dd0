"""Plans of any formulation: one that implements `formulations.problem` needs nothing else in `solver`.

A plan has a row for every part. What stands in a row, and what a plan says of all rows, follows from the `Verdict` on
every part; so a check takes the decisions out of the rows, makes both anew, and compares.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from pydantic_core import to_jsonable_python

from formulations.clock import Clock
from formulations.pins import parse_pins
from formulations.problem import Formulation, Part
from instances.errors import InputError
from instances.jsonfile import LARGEST_INTEGER
from instances.network.network import Network
from instances.validation import adapter_of
from solver.ask.names import version
from solver.ask.options import processors, unknown
from solver.ask.question import Question
from solver.ask.watch import Watch
from solver.plan.claims import Claim, differences, gap_of, picked, unequal
from solver.plan.front import Front, FrontPart, FrontPoint
from solver.plan.plan import (
    FORMAT,
    Asked,
    Objective,
    PartPlan,
    PartReplay,
    Plan,
    PlanTypes,
    Stat,
    digest,
    proof,
    worst,
)
from solver.problems.columns import known_parts
from solver.problems.problem import Derived, EngineInfo, Explained, Problem, front_of_plans
from solver.search.deciding import Job, refused
from solver.search.jobs import share_of
from solver.search.loop import Answer, fallback, quickest, settled, status_of
from solver.search.verdict import Verdict, judged, proven_of, sum_of
from solver.search.workers import run
from solver.show.tables import ABSENT, GAP, Column, Sheet, name_column, percent

#: Notes that a plan repeats.
_NOTES = 3


#: Parts that are not proven are tried again with the time left over, but only if that is this many times what they had.
_AGAIN = 2.0


@dataclass(frozen=True)
class _Engine:
    name: str
    summary: str
    proves: bool


class GenericProblem(Problem):
    """A formulation; a subclass says how its plans are shown, and what of a question it reads in its own way."""

    front_engines = True
    shared_type: Any = None
    """Of what parts share in a plan."""
    front_axes: tuple[str, ...] = ()
    """What a front is about if nothing is asked for."""

    def __init__(self, formulation: Formulation[Any]) -> None:
        self.formulation = formulation
        self.name, self.summary = formulation.name, formulation.summary
        self.measures, self.usual = formulation.measures, next(iter(formulation.measures))
        self.pins = {name: str(decision) for name, decision in formulation.decisions.items()}
        names = tuple(formulation.engines)
        self.auto, self.quick, self.floors = names[0], formulation.quick, formulation.floors
        self.others = {**{name: tuple(o for o in names if o != name) or (name,) for name in names}, "": names}
        self.axes = formulation.measures if len(formulation.measures) > 1 else {}
        self.explains = not formulation.whole
        self.takes = frozenset() if formulation.whole else frozenset({"layers"})
        self.types = PlanTypes(formulation.target, formulation.schedule, formulation.figures, self.shared_type)
        Plan.TYPES[self.name] = self.types

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
        return Job(part, question.objectives, search, partial(fallback, self.formulation))

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
        return job.fallback("time limit")

    def doubting(self, part: Part[Any], plan: Plan, *, proves: bool) -> Iterator[str]:
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

    # ---- solving -----------------------------------------------------------------------------------------------------

    def solve(self, question: Question) -> Plan:
        """Decide every part, those that are alike once."""
        start = time.monotonic()
        with question.watch() as watch:
            parts = self.parts(question)
            answers = self.answers(parts, question, watch)
            return self.made(question, [(part, answers[part.key]) for part in parts], start)

    def made(self, question: Question, answers: Sequence[tuple[Part[Any], Answer[Any]]], start: float) -> Plan:
        """Return the plan of answers; raises PlanMismatch if replay or proof disagrees."""
        parts, said = zip(*answers, strict=True)
        return self.planned(question, self.verified(parts, said, question), start)

    def planned(self, question: Question, verdicts: Sequence[Verdict], start: float, **more: object) -> Plan:
        """Return the plan of verdicts; `more` are fields that are known better."""
        machine, target = question.machine, self.target_of(question)
        rows = self.rows(verdicts)
        return Plan.model_validate({
            "format": FORMAT, "certile": version(), "problem": self.name, "network": question.name,
            "machine": machine.name, "engine": question.engine, "objectives": question.objectives,
            "engine_version": next((one.said.versions for one in verdicts if one.said.versions), ""),
            "unit": self.unit(question.objectives[0]), "options": self.asked(question),
            "network_digest": digest(as_json(self.types.target, target)), "network_data": target,
            "machine_digest": digest(machine.model_dump(mode="json")), "machine_data": machine,
            "wall_s": time.monotonic() - start, "stats": self._stats(question.objectives, verdicts, rows),
            **self.totals(question.objectives, rows), "parts": rows, **more,
        })  # fmt: skip

    def asked(self, question: Question) -> Asked:
        """Return what a plan says of a question beside network, machine and objectives."""
        return Asked(
            time_limit_s=question.time_limit_s, settings=question.settings, layers=question.layers or (),
            pins=question.pins, full=question.full, bounding=question.bounding, all_kinds=question.all_kinds,
            profile=question.profile,
        )  # fmt: skip

    def question(self, plan: Plan) -> Question:
        """What a stored plan was asked."""
        asked = plan.options
        return Question(
            plan.network_data, plan.machine_data, plan.objectives, self.name, self.auto, pins=asked.pins,
            settings=asked.settings, layers=asked.layers or None, full=asked.full, bounding=asked.bounding,
            all_kinds=asked.all_kinds, profile=asked.profile,
        )  # fmt: skip

    @staticmethod
    def _stats(objectives: Sequence[str], verdicts: Sequence[Verdict], rows: Sequence[PartPlan]) -> dict[str, Stat]:
        notes = [f"{row.name}: {row.stats['note']}" for row in rows if "note" in row.stats]
        noted = {"note": "; ".join(notes[:_NOTES])} if notes else {}
        distinct = sum(row.same_as is None for row in rows)
        return {"parts": len(rows), "distinct": distinct, **proof(objectives, proven_of(objectives, verdicts)), **noted}

    def target_of(self, question: Question) -> Any:
        """Return what is planned, as the plan holds it."""
        return question.subject

    def parts_of(self, plan: Plan) -> Sequence[Part[Any]]:
        """Return what is decided by a plan."""
        return self.parts(self.question(plan))

    def frame_rows(self, plan: Plan) -> list[dict[str, Any]]:
        """What a plan says of its parts; where all is one part, what is known of each of `items`."""
        if self.formulation.whole:
            return [{"layer": name, **to_jsonable_python(record)} for name, record in self.items(plan)]
        fields = plan.model_dump(mode="json")
        layers = fields["network_data"] if isinstance(fields["network_data"], list) else [{}] * len(plan.parts)
        pairs = zip(fields["parts"], layers, strict=True)
        return [{"layer": row.pop("name"), "workload": layer, **row} for row, layer in pairs]

    def items(self, plan: Plan) -> Iterable[tuple[str, object]]:
        """Return what one part decides, by name, as records: by default the part itself."""
        return [(row.name, row) for row in plan.parts]

    def layer_rows(self, plan: Plan) -> tuple[Any, ...]:
        """Return the rows of `plan.layers`: by default its parts."""
        return plan.parts

    # ---- what a plan says --------------------------------------------------------------------------------------------

    def rows(self, verdicts: Sequence[Verdict]) -> tuple[PartPlan, ...]:
        """Return what is said of parts; those that equal one before them with its schedule say so."""
        made: list[PartPlan] = []
        firsts: dict[Any, PartPlan] = {}
        for one in verdicts:
            first = firsts.get(one.part.key)
            if first is None or first.schedule != one.said.schedule:
                made.append(self.row(one))
                firsts.setdefault(one.part.key, made[-1])
            else:
                made.append(first.model_copy(update={"name": one.part.name, "wall_s": 0.0, "same_as": first.name}))
        return tuple(made)

    @staticmethod
    def row(verdict: Verdict) -> PartPlan:
        """Return what follows from the schedule of a part, or that there is none."""
        part, said, priced, walked = verdict.part, verdict.said, verdict.priced, verdict.walked
        faults = verdict.disagreements
        return PartPlan(
            name=part.name, status=said.status, measures=dict(priced.measures) if priced else {},
            terms={name: dict(terms) for one in (walked, priced) if one for name, terms in one.terms.items()},
            bounds=dict(said.bounds), gap=verdict.gap, must=dict(part.must), schedule=said.schedule,
            figures=None if walked is None else part.figures_of(said.schedule, walked),
            replay=None if priced is None or walked is None else PartReplay(
                ok=not (faults or walked.faults), faults=faults or walked.faults, measures=dict(walked.measures),
                compared=walked.compared, executed=walked.executed,
                counts={**{name: n for name, n in walked.counts.items() if name not in priced.counts}, **walked.tally},
            ),
            conflicts=said.conflicts, stats=dict(said.stats), wall_s=said.wall_s,
            size={name: min(int(count), LARGEST_INTEGER) for name, count in part.size.items()},
        )  # fmt: skip

    def totals(self, objectives: Sequence[str], rows: Sequence[PartPlan]) -> dict[str, Any]:
        """Return what a plan says of all parts together."""
        first, solved = objectives[0], all(row.measures for row in rows)
        status = worst(row.status for row in rows)
        bound = None if status == "INFEASIBLE" else sum_of(row.bounds.get(first) for row in rows)
        values = {row.name: row.measures[first] for row in rows if row.measures}
        value = sum(values.values()) if solved else None
        terms = Counter[str]()
        for row in rows:
            terms.update(row.terms.get(first, {}))
        names = rows[0].measures if solved else ()
        return {
            "status": status, "bound": bound, "gap": gap_of(value, bound),
            "objective": None if value is None else Objective(
                value=value, unit=str(self.unit(first)), terms=dict(terms) or values
            ),
            "conflicts": tuple(f"{self._where(row)}{line}" for row in rows for line in row.conflicts),
            "measures": {name: sum(row.measures[name] for row in rows) for name in names} if solved else None,
        }  # fmt: skip

    def _where(self, row: PartPlan) -> str:
        return "" if self.formulation.whole else f"{row.name}: "

    # ---- other questions ---------------------------------------------------------------------------------------------

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of two measures: the least first one, of these the least second one; then with less of it."""
        wanted = axes or self.front_axes or tuple(self.axes)[:2]
        if len(wanted) != 2:
            raise InputError(f"axes {','.join(wanted)}: fronts of problem {self.name} have two")
        units = {axis: self.axes[axis] for axis in wanted}
        if self.formulation.whole:
            (part,) = self.parts(question)
            verdicts, proven = self.lowest(part, question, (wanted[0], wanted[1]))
            front = self.front_of(question, [verdict.said for verdict in verdicts], part, proven=proven)
            points = [replace(one, values={axis: one.values[axis] for axis in wanted}) for one in front.parts[0].points]
            return replace(front, units=units, parts=(replace(front.parts[0], points=tuple(points)),))
        parts = []
        for part in self.parts(question):
            points, (verdicts, proven) = list[FrontPoint](), self.lowest(part, question, (wanted[0], wanted[1]))
            for verdict in verdicts:
                body = {name: value for name, value in self.row(verdict).model_dump(mode="json").items()
                        if name not in ("stats", "wall_s", "same_as")}  # fmt: skip
                points.append(FrontPoint(verdict.values, body, part.label(verdict.said.schedule)))
            parts.append(FrontPart(part.name, tuple(points), complete=proven, proven=proven))
        return Front(self.name, question.subject.name, question.machine.name, units, tuple(parts))

    def noted(self, plan: Plan) -> Mapping[str, str]:
        """Return what the table of a front says of a plan beside its values."""
        return {}

    def front_of(self, question: Question, said: Sequence[Answer[Any]], part: Part[Any], *, proven: bool) -> Front:
        """Return a front of whole plans, one for each answer."""
        start = time.monotonic()
        plans = [self.made(question, [(part, one)], start) for one in said]
        return front_of_plans(self, question, plans, proven=proven, details=self.noted)

    def _explained(self, question: Question) -> Iterator[Explained]:
        """The quickest engine has a plan, or one that proves has none."""
        plan = self.solve(replace(question, engine=self.quick[0]))
        if plan.objective is None:
            plan = self.solve(question)
        none = () if plan.objective is not None else ("no plan was found",)
        yield Explained("", plan.conflicts or none, {})

    def explain(self, question: Question) -> Iterator[Explained]:
        """Part by part; where a part cannot say by itself what conflicts, by solving."""
        if not self.explains:
            yield from self._explained(question)
            return
        for part in self.parts(question):
            yield Explained(part.name, part.explain(), {})

    # ---- checking ----------------------------------------------------------------------------------------------------

    def derive(self, plan: Plan) -> Derived:
        """Price and replay every schedule again."""
        verdicts: list[Verdict] = []
        problems = tuple(dict.fromkeys(self.faults(plan, verdicts)))
        executed = sum(one.walked.executed for one in verdicts if one.walked is not None)
        made = [one.said.schedule for one in verdicts if one.priced is not None]
        return Derived(problems, sum(len(one) if isinstance(one, tuple) else 1 for one in made), executed)

    def faults(self, plan: Plan, verdicts: list[Verdict]) -> Iterator[str]:
        """Yield what does not follow from the decisions of a plan; a verdict for each row that can be read."""
        if strange := [name for name in plan.objectives if self.unit(name) is None]:
            yield f"objectives: {', '.join(strange)}: problem {self.name} minimises {' and '.join(self.measures)}"
            return
        yield from self.head(plan)
        yield from _contradictions(plan)
        try:
            question = self.question(plan)
            parts = self.parts_of(plan)
        except InputError as error:
            yield str(error)
            return
        asked = self.asked(question)
        for name in sorted(Asked.model_fields.keys() - {"time_limit_s", "settings", "most"}):
            yield from unequal(f"options.{name}", getattr(plan.options, name), getattr(asked, name))
        if [row.name for row in plan.parts] != [part.name for part in parts]:
            names = ", ".join(row.name for row in plan.parts), ", ".join(part.name for part in parts)
            yield f"parts: the plan has {names[0] or 'none'}, there are {names[1]}"
            return
        stated = []
        for row, part in zip(plan.parts, parts, strict=True):
            try:
                stated.append((row, part, self._restated(plan, row, part)))
            except InputError as error:
                yield f"{self._named(row)}{error}"
        try:
            verdicts += judged((part, said) for _, part, said in stated)
        except InputError as error:
            yield str(error)
            return
        made = self.rows(verdicts)
        for (row, _, _), verdict, again in zip(stated, verdicts, made, strict=True):
            yield from (f"{self._named(row)}{line}" for line in self._faults_of(plan, row, verdict, again))
        if len(verdicts) == len(parts):
            for name, value in self.totals_of(plan, made).items():
                yield from unequal(name, getattr(plan, name), value)

    def head(self, plan: Plan) -> Iterator[str]:
        """Yield what is wrong with names, digests, unit and objectives."""
        yield from unequal("network", plan.network, getattr(plan.network_data, "name", plan.network))
        yield from unequal("machine", plan.machine, plan.machine_data.name)
        yield from unequal("network_digest", plan.network_digest, digest(as_json(self.types.target, plan.network_data)))
        yield from unequal("machine_digest", plan.machine_digest, digest(plan.machine_data.model_dump(mode="json")))
        yield from unequal("unit", plan.unit, self.unit(plan.objectives[0]))
        if len(set(plan.objectives)) < len(plan.objectives):
            yield f"objectives: {', '.join(plan.objectives)}: one stands twice"

    def totals_of(self, plan: Plan, rows: Sequence[PartPlan]) -> dict[str, Any]:
        """Return what a plan says of all parts together, by its rows made anew."""
        return self.totals(plan.objectives, rows)

    def _named(self, row: PartPlan) -> str:
        """How to begin a line about a part."""
        return "" if self.formulation.whole else _part(row)

    def _restated(self, plan: Plan, row: PartPlan, part: Part[Any]) -> Answer[Any]:
        """What a row states, with the status that follows from values and bounds, and with conflicts found again."""
        said: Answer[Any] = Answer(
            None, row.measures, row.bounds, row.status, stats=row.stats, conflicts=row.conflicts, wall_s=row.wall_s
        )
        if row.schedule is None:
            conflicts = part.explain() if self.explains or row.status == "INFEASIBLE" else ()
            return replace(said, status="INFEASIBLE" if conflicts else "NO_SOLUTION_FOUND", conflicts=conflicts)
        measures = part.price(row.schedule).measures
        status = status_of({name: measures[name] for name in plan.objectives}, said.bounds, empty=False)
        return replace(said, schedule=row.schedule, values=measures, status=status, conflicts=())

    def _faults_of(self, plan: Plan, row: PartPlan, verdict: Verdict, again: PartPlan) -> Iterator[str]:
        """What does not follow from a row's decisions."""
        yield from verdict.faults
        if verdict.priced is None:
            yield from self._lost(plan, verdict)
        yield from unequal("bounds: objectives", list(verdict.said.bounds), list(plan.objectives))
        for name in PartPlan.model_fields:
            if name not in ("schedule", "wall_s", "same_as", "size", "stats"):
                yield from differences(name, getattr(row, name), getattr(again, name))
        if row.same_as != again.same_as:
            yield f"same_as: the plan says {row.same_as}, it equals {again.same_as}"

    def _lost(self, plan: Plan, verdict: Verdict) -> Iterator[str]:
        """What a part without a schedule may not say: it has none only if quick heuristics have none."""
        status = verdict.said.status
        if status == "INFEASIBLE":
            yield from (f"{name}: bound {bound} of nothing" for name, bound in verdict.said.bounds.items() if bound)
            if self.explains:
                return
        proves = status == "INFEASIBLE" or plan.engine in self.formulation.engines
        for name in islice(self.doubting(verdict.part, plan, proves=proves), 1):
            yield f"status {status}: engine {name} has a schedule"

    def claims(self, plan: Plan) -> Iterator[Claim]:
        """Part by part."""
        for row in plan.parts:
            values, bounds = picked(plan.objectives, row.measures), tuple(map(row.bounds.get, plan.objectives))
            name = "" if self.formulation.whole else row.name
            yield Claim(name, row.status, plan.objectives, values, bounds)

    def replays(self, plan: Plan) -> Iterator[tuple[str, bool | None, tuple[str, ...]]]:
        """Yield where, verdict and faults of every replay that a plan states."""
        for row in plan.parts:
            if row.replay is not None:
                yield self._named(row), row.replay.ok, row.replay.faults

    def figures(self, plan: Plan) -> Mapping[str, int]:
        """Sums over the parts."""
        return plan.measures or {}

    # ---- showing -----------------------------------------------------------------------------------------------------

    def status(self, plan: Plan) -> list[str]:
        """What is known."""
        return [*known_parts(plan), *(["replay agrees"] if plan.objective is not None else [])]

    def names(self, plan: Plan) -> list[str]:
        """The parts of a plan; nothing if all is one part without a schedule."""
        return [] if self.formulation.whole and not plan.decided else [row.name for row in plan.parts]

    def sheet(self, plan: Plan) -> Sheet:
        """A row a part: the objective, gap, the other measures, and the schedule in short."""
        parts, rows = self.parts(self.question(plan)), plan.parts
        measures = [
            Column(
                f"{name} ({self.measures[name]})",
                [f"{row.measures[name]:,}" if row.measures else ABSENT for row in rows],
                total=f"{plan.measures[name]:,}" if plan.measures else "",
            )
            for name in dict.fromkeys((plan.objectives[0], *self.measures))
        ]
        gaps = [row.status if row.schedule is None else percent(row.gap) for row in rows]
        made = [ABSENT if row.schedule is None else part.label(row.schedule)
                for part, row in zip(parts, rows, strict=True)]  # fmt: skip
        return Sheet(
            [
                name_column("part", [row.name for row in rows]),
                measures[0],
                Column("gap (%)", gaps, GAP, percent(plan.gap)),
                *measures[1:],
                Column("schedule", made, words=True),
            ]
        )

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """Schedules as the formulation writes them."""
        for part, row in zip(self.parts(self.question(plan)), plan.parts, strict=True):
            if row.schedule is not None and layer in (None, row.name):
                yield from (f"{row.name}: {row.status}", part.show(row.schedule), "")

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the plans."""
        return self.types.schema(Plan.model_json_schema())


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


def _contradictions(plan: Plan) -> Iterator[str]:
    """Status, objective, bound and gap against each other."""
    value, solved = plan.objective.value if plan.objective else None, plan.status in ("OPTIMAL", "FEASIBLE")
    yield from unequal("gap", plan.gap, gap_of(value, plan.bound))
    if (value is not None) != plan.decided:
        yield "objective: a plan has one if and only if it has layers"
    if solved != plan.decided:
        yield f"status {plan.status}: a plan is OPTIMAL or FEASIBLE if and only if it has layers"
    if plan.decided and plan.conflicts:
        yield f"conflicts: a plan that has layers has none, it names {len(plan.conflicts)}"
    if plan.status == "OPTIMAL" and plan.bound != value:
        yield f"status OPTIMAL with bound {plan.bound} and value {value}"
    if plan.bound is not None and value is not None and plan.bound > value:
        yield f"bound {plan.bound} is above the value {value}"


def _part(row: PartPlan) -> str:
    """How to begin a line about a part."""
    return f"layer {row.name}: "


def as_json(kind: Any, value: object) -> Any:
    """Return a schedule or figures of a type as JSON data."""
    return adapter_of(kind).dump_python(value, mode="json")

"""What a problem is to the rest of `solver`: behind solve, check, show, pareto, list and the command line.

Every problem is a line in `instances.problems`, by which `solver.problems.registry` finds it: a `Problem` of its
`Formulation`. A subclass says how its plans are shown, and what of a question it reads in its own way; a formulation
alone needs none.

A plan has a row for every part. What stands in a row, and what a plan says of all rows, follows from the `Verdict` on
every part; so a check takes the decisions out of the rows, makes both anew, and compares.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from formulations.clock import Clock
from formulations.pins import Pins, parse_pins
from formulations.problem import Formulation, Part
from hwmodels.schedule import NetworkRun
from instances.applications import Applications
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.buffers import Buffers
from instances.network.network import Network
from instances.network.variants import Variants
from instances.network.workload import Layer
from instances.validation import adapter_of
from solver.ask.names import AUTO, unknown, version
from solver.ask.options import parse_objectives
from solver.ask.question import Question
from solver.ask.watch import Watch
from solver.plan.claims import Claim, differences, picked, unequal
from solver.plan.front import Front, FrontPart, FrontPoint
from solver.plan.plan import FORMAT, Asked, PartPlan, Plan, PlanTypes, Stat, contradictions, digest, proof
from solver.plan.why import Stall
from solver.search.deciding import Job, accepted, answers_of, lowest
from solver.search.loop import Answer, decide_part, fallback, quickest, status_of
from solver.search.verdict import Verdict, proven_of, row_of, rows_of, totals_of, verdicts_of
from solver.show.tables import ABSENT, GAP, Column, Sheet, name_column, percent, render
from solver.show.words import agreement, known_parts, ratios

if TYPE_CHECKING:
    from rich.console import RenderableType

    from solver.plan.figures import Block, Figure, Pictures

#: What may be planned.
Target = Network | Layer | Applications | Buffers | Variants
#: Notes that a plan repeats.
_NOTES = 3


@dataclass(frozen=True)
class Engine:
    """What is known of an engine without running it."""

    summary: str
    proves: bool
    """Whether its bounds count."""


@dataclass(frozen=True)
class Derived:
    """What does not follow from the decisions of a plan, and how many schedules were replayed, and executed."""

    faults: tuple[str, ...]
    schedules: int
    executed: int = 0


@dataclass(frozen=True)
class Explained:
    """Whether a layer, or (`part` is empty) all of it, can be planned."""

    part: str
    conflicts: tuple[str, ...]
    """A minimal set of demands that cannot be met together; none if a plan exists."""
    size: Mapping[str, int]
    """Of the search space, where it is known without searching."""


class Problem:
    """A decision problem: a formulation, and how it is asked and shown."""

    takes: frozenset[str]
    """Options that not all problems take: layers, all_kinds, full, bounding, profile."""
    item: str = "layer"
    """What plans have a row for, in a word."""
    single: bool = False
    """Whether a single layer may be the target."""
    front_engines: bool = True
    axes: Mapping[str, str]
    """What fronts may be about, with units; `front_engines`: whether engines find it in different ways."""
    front_axes: tuple[str, ...] = ()
    """What a front is about if nothing is asked for."""
    others: Mapping[str, tuple[str, ...]]
    """By engine of a plan the ones to ask for a proof, the best first; "" for engines that are not named."""
    doubting_engines: tuple[str, ...]
    """What doubts claims in a check, the quickest first: `Formulation.quick`, or quick engines in place of these."""
    explains: bool
    """Whether a check derives itself, exactly, that nothing fits."""
    shared_type: Any = None
    """Of what parts share in a plan."""

    def __init__(self, formulation: Formulation[Any]) -> None:
        self.formulation = formulation
        self.name, self.summary = formulation.name, formulation.summary
        self.measures, self.usual = formulation.measures, next(iter(formulation.measures))
        self.pins = {name: str(decision) for name, decision in formulation.decisions.items()}
        names = tuple(formulation.engines)
        self.auto, self.floors = names[0], formulation.floors
        self.doubting_engines = formulation.quick
        self.others = {**{name: tuple(o for o in names if o != name) or (name,) for name in names}, "": names}
        self.axes = formulation.measures if len(formulation.measures) > 1 else {}
        self.explains = not formulation.whole
        self.takes = frozenset() if formulation.whole else frozenset({"layers"})
        self.types = PlanTypes(formulation.target, formulation.schedule, formulation.figures, self.shared_type)

    @property
    def engines(self) -> Mapping[str, Engine]:
        """The ways to decide, by name: engines of the formulation, and its heuristics."""
        exact = {name: Engine(about, proves=True) for name, about in self.formulation.engines.items()}
        return exact | {name: Engine(about, False) for name, (about, _) in self.formulation.heuristics.items()}

    # ---- what is asked -----------------------------------------------------------------------------------------------

    def engine(self, name: str, objectives: tuple[str, ...]) -> str:
        """Return the name of an engine that can minimise the objectives; raises InputError.

        `auto` is the first of `Formulation.engines`.
        """
        chosen = self.auto if name == AUTO else name
        if chosen not in self.engines:
            raise unknown(f"engine for problem {self.name}", name, {AUTO, *self.engines})
        return chosen

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """Return the measures to minimise, the first one first; raises InputError if one is unknown or stands twice."""
        return parse_objectives(self.usual if asked is None else asked, self.measures, self.name)

    def unit(self, objective: str) -> str | None:
        """Return the unit of a measure, of response:NAME whatever the name; None if there is no such measure."""
        kind, named, _ = objective.partition(":")
        return self.measures.get(f"{kind}:NAME" if named else kind)

    def parts(self, question: Question) -> Sequence[Part[Any]]:
        """Return what is decided, in the order of the plan; raises InputError for bad pins and layers."""
        pins = parse_pins(question.pins, self.formulation.decisions)
        parts = self.read(question, pins)
        known = {part.name: part for part in parts}
        for name in question.layers or ():
            if name not in known:
                raise unknown("layer", name, known)
        return parts if question.layers is None else [known[name] for name in question.layers]

    def read(self, question: Question, pins: Pins) -> Sequence[Part[Any]]:
        """Return all that may be decided; raises InputError for bad pins and layers."""
        target = question.network if self.formulation.target is Network else question.subject
        return self.formulation.read(target, question.machine, pins, question.layers)

    def ready(self, question: Question) -> None:
        """Make what a solve makes before it decides, to see whether it is refused: raises InputError as `solve`."""
        self.parts(question)

    def target_of(self, question: Question) -> Any:
        """Return what is planned, as a plan holds it."""
        return question.subject

    def options_of(self, question: Question) -> Asked:
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

    # ---- deciding ----------------------------------------------------------------------------------------------------

    def job(self, part: Part[Any], question: Question) -> Job:
        """Return how a part is decided."""
        search = partial(decide_part, self.formulation, engine=question.engine)
        return Job(part, question.objectives, search, partial(fallback, self.formulation))

    def answers(self, parts: Sequence[Part[Any]], question: Question, watch: Watch) -> dict[Hashable, Answer[Any]]:
        """Return an answer by key; parts of one key are decided once."""
        jobs = dict[Hashable, Job]()
        for part in parts:
            if part.key not in jobs:
                jobs[part.key] = self.job(part, question)
        found = answers_of(jobs, question, watch, proves=self.engines[question.engine].proves)
        return {key: found.get(key) or self.lost(job) for key, job in jobs.items()}

    def lost(self, job: Job) -> Answer[Any]:
        """Return an answer for a part that has none: its process died, or there was no time."""
        return job.fallback("time limit")

    def solve(self, question: Question) -> Plan:
        """Decide every part, those that are alike once."""
        start = time.monotonic()
        with question.watch() as watch:
            parts = self.parts(question)
            answers = self.answers(parts, question, watch)
            return self.made(question, [(part, answers[part.key]) for part in parts], start)

    def made(self, question: Question, answers: Sequence[tuple[Part[Any], Answer[Any]]], start: float) -> Plan:
        """Return the plan of answers; raises PlanMismatch if replay or proof disagrees."""
        return self.planned(question, accepted(answers, question.where), start)

    def planned(self, question: Question, verdicts: Sequence[Verdict], start: float, **more: object) -> Plan:
        """Return the plan of verdicts; `more` are fields that are known better."""
        machine, target = question.machine, self.target_of(question)
        rows = rows_of(verdicts)
        return Plan.model_validate({
            "format": FORMAT, "certile": version(), "problem": self.name, "network": question.name,
            "machine": machine.name, "engine": question.engine, "objectives": question.objectives,
            "engine_version": next((one.said.versions for one in verdicts if one.said.versions), ""),
            "unit": self.unit(question.objectives[0]), "options": self.options_of(question),
            "network_digest": digest(as_json(self.types.target, target)), "network_data": target,
            "machine_digest": digest(machine.model_dump(mode="json")), "machine_data": machine,
            "wall_s": time.monotonic() - start, "stats": self._stats(question.objectives, verdicts, rows),
            **self._totals(question.objectives, rows), "parts": rows, **more,
        })  # fmt: skip

    @staticmethod
    def _stats(objectives: Sequence[str], verdicts: Sequence[Verdict], rows: Sequence[PartPlan]) -> dict[str, Stat]:
        notes = [f"{row.name}: {row.stats['note']}" for row in rows if "note" in row.stats]
        noted = {"note": "; ".join(notes[:_NOTES])} if notes else {}
        distinct = sum(row.same_as is None for row in rows)
        return {"parts": len(rows), "distinct": distinct, **proof(objectives, proven_of(objectives, verdicts)), **noted}

    # ---- other questions ---------------------------------------------------------------------------------------------

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of two measures: the least first one, of these the least second one; then with less of it."""
        wanted = axes or self.front_axes or tuple(self.axes)[:2]
        if len(wanted) != 2:
            raise InputError(f"axes {','.join(wanted)}: fronts of problem {self.name} have two")
        units = {axis: self.axes[axis] for axis in wanted}
        if self.formulation.whole:
            (part,) = self.parts(question)
            verdicts, proven = lowest(self.formulation, part, question, (wanted[0], wanted[1]))
            start = time.monotonic()
            return self.front_of(question, [self.planned(question, [one], start) for one in verdicts], proven, units)
        parts = []
        for part in self.parts(question):
            points = list[FrontPoint]()
            verdicts, proven = lowest(self.formulation, part, question, (wanted[0], wanted[1]))
            for verdict in verdicts:
                body = {name: value for name, value in row_of(verdict).model_dump(mode="json").items()
                        if name not in ("stats", "wall_s", "same_as")}  # fmt: skip
                points.append(FrontPoint(verdict.values, body, part.label(verdict.said.schedule)))
            parts.append(FrontPart(part.name, tuple(points), complete=proven, proven=proven))
        return Front(self.name, question.subject.name, question.machine.name, units, tuple(parts))

    def front_of(
        self, question: Question, plans: Sequence[Plan], proven: bool, units: Mapping[str, str] | None = None
    ) -> Front:
        """Return a front of whole plans; of some axes only, if they are named with their units."""
        units = units or self.axes
        points = [
            FrontPoint(
                {axis: self.figures(plan)[axis] for axis in units}, {"plan": plan.model_dump(mode="json")},
                "" if plan.gap is None or proven else f"gap {percent(plan.gap)} %", plan, self.noted(plan),
            )
            for plan in plans
        ]  # fmt: skip
        part = FrontPart("", tuple(points), complete=proven, proven=proven)
        return Front(self.name, question.subject.name, question.machine.name, units, (part,))

    def noted(self, plan: Plan) -> Mapping[str, str]:
        """Return what the table of a front says of a plan beside its values."""
        return {}

    def explain(self, question: Question) -> Iterator[Explained]:
        """Say which demands conflict, part by part; where a part cannot say so by itself, by solving.

        Then the quickest engine has a plan, or one that proves has none.
        """
        if self.explains:
            yield from (Explained(part.name, part.explain(), {}) for part in self.parts(question))
            return
        plan = self.solve(replace(question, engine=self.doubting_engines[0]))
        plan = self.solve(question) if plan.objective is None else plan
        none = () if plan.objective is not None else ("no plan was found",)
        yield Explained("", plan.conflicts or none, {})

    # ---- checking ----------------------------------------------------------------------------------------------------

    def parts_of(self, plan: Plan) -> Sequence[Part[Any]]:
        """Return what is decided by a plan."""
        return self.parts(self.question(plan))

    def derive(self, plan: Plan) -> Derived:
        """Price and replay every schedule again."""
        verdicts: list[Verdict] = []
        faults = tuple(dict.fromkeys(self.faults(plan, verdicts)))
        executed = sum(one.walked.executed for one in verdicts if one.walked is not None)
        made = [one.said.schedule for one in verdicts if one.priced is not None]
        return Derived(faults, sum(len(one) if isinstance(one, NetworkRun | tuple) else 1 for one in made), executed)

    def faults(self, plan: Plan, verdicts: list[Verdict]) -> Iterator[str]:
        """Yield what does not follow from a plan's decisions; fill `verdicts`, one of each row that can be read."""
        if strange := [name for name in plan.objectives if self.unit(name) is None]:
            yield f"objectives: {', '.join(strange)}: problem {self.name} minimises {' and '.join(self.measures)}"
            return
        yield from self.head(plan)
        yield from contradictions(plan)
        try:
            question = self.question(plan)
            parts = self.parts_of(plan)
        except InputError as error:
            yield str(error)
            return
        options = self.options_of(question)
        for name in sorted(Asked.model_fields.keys() - {"time_limit_s", "settings", "most"}):
            yield from unequal(f"options.{name}", getattr(plan.options, name), getattr(options, name))
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
            verdicts += verdicts_of((part, said) for _, part, said in stated)
        except InputError as error:
            yield str(error)
            return
        made = rows_of(verdicts)
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
        return self._totals(plan.objectives, rows)

    def _totals(self, objectives: Sequence[str], rows: Sequence[PartPlan]) -> dict[str, Any]:
        where = (lambda row: "") if self.formulation.whole else (lambda row: f"{row.name}: ")
        return totals_of(objectives, rows, str(self.unit(objectives[0])), where)

    def _named(self, row: PartPlan) -> str:
        """How to begin a line about a part."""
        return "" if self.formulation.whole else f"layer {row.name}: "

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
        for name in islice(self.heuristics_that_fit(verdict.part, plan, proves=proves), 1):
            yield f"status {status}: engine {name} has a schedule"

    def heuristics_that_fit(self, part: Part[Any], plan: Plan, *, proves: bool) -> Iterator[str]:
        """Yield quick heuristics that have a schedule where a plan has none: its own, or any if its engine proves."""
        for name in self.doubting_engines if proves else {plan.engine} & set(self.doubting_engines):
            if quickest(self.formulation, part, plan.objectives[0], [name]) is not None:
                yield name

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

    def doubted(self, plan: Plan) -> Iterator[Claim]:
        """Yield the claims that a quick plan may refute."""
        return self.claims(plan)

    def doubters(
        self, plan: Plan, again: Callable[[str], dict[str, Claim]], seconds: float
    ) -> Iterator[tuple[str, dict[str, Claim]]]:
        """Yield what is found in so many seconds, by whom and by part; `again` has an engine solve the question."""
        end = Clock.of(seconds)
        for engine in self.doubting_engines:
            if not end.over and engine != plan.engine:
                yield engine, again(engine)

    # ---- proving again -----------------------------------------------------------------------------------------------

    def resolve(self, plan: Plan, engine: str, time_limit_s: float | None, jobs: int) -> Plan:
        """Solve what a stored plan was asked, by any engine; nothing of its decisions is used."""
        question = replace(self.question(plan), engine=engine, time_limit_s=time_limit_s, jobs=jobs)
        return self.solve(question).model_copy(update={"options": plan.options})

    def able(self, plan: Plan) -> Mapping[str, bool]:
        """Return the engines for what a plan was asked, and whether each proves."""
        return {name: engine.proves for name, engine in self.engines.items()}

    def chain(self, plan: Plan) -> tuple[str, ...]:
        """The engines to ask for a proof: another one than the plan's first, where there is one."""
        able = self.able(plan)
        return tuple(name for name in self.others.get(plan.engine, self.others[""]) if able.get(name))

    # ---- showing -----------------------------------------------------------------------------------------------------

    def figures(self, plan: Plan) -> Mapping[str, int]:
        """Sums over the parts."""
        return plan.measures or {}

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

    def file_text(self, plan: Plan, path: str) -> str | None:
        """Return what a file of this name says of a plan, if it is not JSON."""
        return None

    def rooms(self, plan: Plan) -> Iterable[tuple[str, int, int]]:
        """Return memories by name: the most bytes that lie there at a time, and how many it has."""
        return ()

    def status(self, plan: Plan) -> list[str]:
        """Return what is known, a part each: network, machine, problem, engine, status; objective, bound, gap; more."""
        return [*known_parts(plan), *([] if plan.measures is None else self.said(plan))]

    def said(self, plan: Plan) -> Iterable[str]:
        """Return what else is known of a plan with a schedule: whether replay agrees."""
        return [agreement(plan)]

    def known(self, plan: Plan) -> list[str]:
        """Return the status, and what ended the search if it did not end by itself."""
        said = [plan.stats, *(row.stats for row in plan.parts)]
        open_ = plan.status not in ("OPTIMAL", "INFEASIBLE")
        reasons = dict.fromkeys(str(stats["stopped"]) for stats in said if open_ and "stopped" in stats)
        return [*self.status(plan), *(f"stopped by {reason}: the best so far" for reason in reasons)]

    def names(self, plan: Plan) -> list[str]:
        """Return what a plan has a row for, by name; nothing if all is one part without a schedule."""
        nothing = self.formulation.whole and not plan.decided
        return [] if nothing else list(dict.fromkeys(name for name, _ in self.items(plan)))

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

    def table(self, plan: Plan, others: Mapping[str, Plan]) -> list[RenderableType]:
        """Return the table of a plan, and lines below it; beside others by engine."""
        lines = [ratios(plan, others)] if others else []
        lines.append("; ".join(self.known(plan)))
        return [self.sheet(plan), "", *lines] if self.names(plan) else list(lines)

    def show(self, plan: Plan, layer: str | None = None, *, details: bool = False) -> str:
        """Return a summary of a plan, what is known and the table; or a layer or task, or all, in detail.

        Raises InputError if the plan has no such layer.
        """
        names = self.names(plan)
        if layer is not None and layer not in names:
            those = ", ".join(names) or "none"
            raise InputError(f"plan of {plan.network} has no {self.item} {layer!r}; it has {those}")
        if names and (details or layer is not None):
            return "\n".join(self.details(plan, layer))
        table: list[RenderableType] = ["", self.sheet(plan)] if names else []
        return render(*self.known(plan), *table)

    def stalls(self, plan: Plan) -> Sequence[Stall]:
        """Return the longest waits of a plan that says when everything happens."""
        return ()

    def elsewhere(self, plan: Plan, machine: Machine) -> int | None:
        """Return what the first objective of a plan's decisions is on another machine; None if that takes a search."""
        return None

    def timeline(self, plan: Plan) -> Any:
        """Return when everything happens; raises InputError for problems whose plans have no timeline."""
        why = f"problem {plan.problem} decides no order of transfers" if plan.decided else "it has no schedule"
        raise InputError(f"plan of {plan.network}: no timeline, {why}")

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """Schedules as the formulation writes them."""
        for part, row in zip(self.parts(self.question(plan)), plan.parts, strict=True):
            if row.schedule is not None and layer in (None, row.name):
                yield from (f"{row.name}: {row.status}", part.show(row.schedule), "")

    def pictures(self, plan: Plan, others: Mapping[str, Plan]) -> Pictures:
        """Return what a report draws of a plan, beside plans of other engines, and its parts in detail."""
        from solver.plan.figures import Pictures  # late: only reports are drawn
        from solver.show.common import terms

        return Pictures((*self.drawings(plan, {plan.engine: plan, **others}), *terms(plan, others)), self.blocks(plan))

    def drawings(self, plan: Plan, plans: Mapping[str, Plan]) -> Sequence[Figure]:
        """Return what is drawn beside the terms of the objective; `plans`: by engine, the plan itself first."""
        return ()

    def blocks(self, plan: Plan) -> tuple[Block, ...]:
        """Return the details of a plan for a report: all together, unless a subclass has them part by part."""
        from solver.plan.figures import Block

        text = "\n".join(self.details(plan, None)).strip() if self.names(plan) else ""
        return (Block("All of the plan", "", text),) if text else ()

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the plans."""
        return self.types.schema(Plan.model_json_schema())


def as_json(kind: Any, value: object) -> Any:
    """Return a schedule or figures of a type as JSON data."""
    return adapter_of(kind).dump_python(value, mode="json")

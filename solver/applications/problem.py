"""Problem applications, as the rest of `solver` sees it, and its plans for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from formulations.applications.part import DRAWS, ApplicationsFormulation, ApplicationsPart, Drawn, rule_of
from formulations.applications.problem import begins
from formulations.mapping.board import Request
from formulations.mapping.pipeline import busy
from formulations.mapping.problem import Schedule
from instances.applications import Application, Applications
from instances.errors import InputError
from instances.tasks import tasks
from solver.applications.figures import figures
from solver.applications.plan import (
    ApplicationPlan,
    ApplicationsMeasures,
    ApplicationsOptions,
    ApplicationsPlan,
    ApplicationsReplay,
    OrderedTask,
    SharedProcessor,
)
from solver.mapping.board import BoardProblem, whole_us
from solver.mapping.drawn import drawn
from solver.network_show import known_parts
from solver.options import as_texts
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.problem import Target
from solver.question import Question
from solver.tables import Column, Sheet
from solver.verdict import Verdict

#: Draws of offsets that a check repeats at most.
_MOST_DRAWS = 20_000


class ApplicationsProblem(BoardProblem[ApplicationsPlan]):
    """F5: several networks with periods on one board."""

    plan = ApplicationsPlan
    front_engines = False

    def __init__(self) -> None:
        super().__init__(ApplicationsFormulation())
        self.axes, self.others = {}, {"exhaustive": ("cp-sat", "exhaustive"), "": ("exhaustive", "cp-sat")}

    # ---- what is asked -----------------------------------------------------------------------------------------------

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """Read ``response``, ``response:NAME`` (or its number), ``energy``, the first one first.

        Raises
        ------
        InputError
            If one is unknown or stands twice, or if the target has no periods.
        """
        if not isinstance(target, Applications):
            raise InputError(
                "problem applications: name networks with their periods, such as squeezenet1_1@33ms,mobilenet_v1@40ms"
            )
        names = [one.name for one in target.applications]
        known = ("response", "energy", *(f"response:{name}" for name in names))
        numbers = {f"response:{a}": f"response:{name}" for a, name in enumerate(names, 1)}
        found: list[str] = []
        texts = as_texts("objective", self.usual if asked is None else asked)
        for text in (part.strip() for whole in texts for part in whole.split(",")):
            name = numbers.get(text, text)
            if name not in known or name in found:
                raise InputError(f"objective {text!r}: several applications minimise {', '.join(known)}, each once")
            found.append(name)
        return tuple(found)

    def request(self, question: Question) -> Request:
        """Read pins, but for the rule, and times."""
        pins = rule_of(question.pins)[1]
        return Request.of(tasks(question.applications.network), question.machine, pins, question.profile)

    def parts(self, question: Question) -> Sequence[ApplicationsPart]:
        """Applications on a board; raises InputError for bad objectives, pins and profiles."""
        self.objectives(question.objectives, question.applications)
        rule, _ = rule_of(question.pins)
        return [ApplicationsPart.of(self.request(question), question.applications.applications, rule)]

    def options(self, question: Question) -> ApplicationsOptions:
        """What else was asked."""
        return ApplicationsOptions(
            analysis=rule_of(question.pins)[0], pins=question.pins, profile=self.request(question).profile,
            time_limit_s=question.time_limit_s, settings=question.settings,
        )  # fmt: skip

    def target(self, plan: ApplicationsPlan) -> Applications:
        """The applications as parts of the network."""
        asked = [Application(**one.model_dump(exclude={"alone", "response", "seen"})) for one in plan.applications]
        names = [name for one in asked for name in [one.name] * one.operators]
        operators = [operator.name.partition(":")[0] for operator in plan.network_data.operators]
        if names != operators or len({one.name for one in asked}) < len(asked):
            raise InputError("applications: their operators are not those of the network")
        return Applications(plan.network_data, tuple(asked))

    # ---- a plan ------------------------------------------------------------------------------------------------------

    def planned(self, verdict: Verdict, question: Question) -> dict[str, Any]:
        """Responses, tasks in their order, and the simulation of release offsets."""
        part, schedule, asked = verdict.part, verdict.said.schedule, question.applications.applications
        assert isinstance(part, ApplicationsPart)
        if schedule is None or verdict.priced is None or verdict.walked is None:
            return {
                "measures": None, "replay": ApplicationsReplay(ok=None, draws=0, faults=()), "processors": (),
                "tasks": (), "applications": tuple(ApplicationPlan(**one.model_dump()) for one in asked),
            }  # fmt: skip
        several, measures, seen = part.instance(schedule), verdict.priced.measures, verdict.walked.counts
        mapping, graph, at = several.mapping, several.mapping.graph, schedule.at
        durations, begun = busy(mapping, at), begins(several, schedule)
        faults = part.late(schedule, seen)
        draws = schedule.draws if isinstance(schedule, Drawn) else DRAWS
        return {
            "measures": ApplicationsMeasures(response=measures["response"], energy=measures["energy"]),
            "replay": ApplicationsReplay(ok=not faults, draws=draws, faults=faults),
            "applications": tuple(
                ApplicationPlan(
                    **one.model_dump(), alone=max(begun[i] + durations[i] for i in stream.tasks),
                    response=measures[f"response:{one.name}"], seen=seen[one.name],
                )
                for stream, one in zip(several.streams, asked, strict=True)
            ),
            "processors": tuple(
                SharedProcessor(name=group.name, cores=group.cores, loads=tuple(load))
                for group, load in zip(mapping.processors, part.loads(schedule), strict=True)
            ),
            "tasks": tuple(
                OrderedTask(
                    task=graph.tasks[i].name, processor=mapping.processors[at[i]].name, start=begun[i],
                    time=mapping.times[i][at[i]] or 0, copies=durations[i] - (mapping.times[i][at[i]] or 0),
                )
                for i in schedule.order
            ),
        }  # fmt: skip

    def placed(self, plan: ApplicationsPlan, part: ApplicationsPart) -> Drawn:
        """Return the processors and the order of a plan."""
        mapping = part.instance(Schedule((), (), plan.cpu_config)).mapping
        graph, places = mapping.graph, {group.name: p for p, group in enumerate(mapping.processors)}
        numbers = {task.name: i for i, task in enumerate(graph.tasks)}
        order = [numbers.get(row.task, -1) for row in plan.tasks]
        if sorted(order) != list(range(len(graph.tasks))):
            raise InputError(f"tasks: the plan has {len(plan.tasks)}, the network {len(graph.tasks)}, or other ones")
        at = dict[int, int]()
        for i, row in zip(order, plan.tasks, strict=True):
            if any(k not in at for k in graph.before[i]):
                raise InputError(f"task {row.task}: it stands before a task whose result it reads")
            at[i] = places.get(row.processor, -1)
            if at[i] not in mapping.able[i]:
                able = ", ".join(mapping.processors[p].name for p in mapping.able[i])
                raise InputError(
                    f"task {row.task}: it cannot run on {row.processor}, or the pins forbid it, but on {able}"
                )
        if not DRAWS <= plan.replay.draws <= _MOST_DRAWS:
            raise InputError(f"replay: {plan.replay.draws} draws; {DRAWS} to {_MOST_DRAWS} are repeated")
        return Drawn(tuple(at[i] for i in range(len(at))), tuple(order), plan.cpu_config, plan.replay.draws)

    def figures(self, plan: ApplicationsPlan) -> Mapping[str, int]:
        """Measures, and the response of every application."""
        if plan.measures is None:
            return {}
        return plan.measures.model_dump() | {f"response:{row.name}": row.response or 0 for row in plan.applications}

    def status(self, plan: ApplicationsPlan) -> list[str]:
        """Return what is known, a part each: status, value, bound, gap, energy, and simulation."""
        parts = known_parts(plan)
        if plan.measures is None:
            return parts
        cores = ",".join(map(str, plan.cpu_config))
        agrees = "stays within all responses" if plan.replay.ok else "disagrees: " + "; ".join(plan.replay.faults)
        parts += [
            f"cores ({cores}), {plan.options.analysis} analysis",
            f"one inference of each takes {plan.measures.energy / 1e12:,.1f} mJ",
            f"simulation of {plan.replay.draws:,} offsets {agrees}",
        ]
        return parts

    def sheet(self, plan: ApplicationsPlan) -> Sheet:
        """Return the table of applications, the most urgent one first."""
        rows = plan.applications
        return Sheet(
            [
                Column("application", [row.name for row in rows], "the most urgent first", words=True),
                Column("response (us)", [whole_us(plan, row.response) for row in rows], "at most, from release to end"),
                Column("deadline (us)", [f"{row.deadline_us:,}" for row in rows]),
                Column("period (us)", [f"{row.period_us:,}" for row in rows]),
                Column("alone (us)", [whole_us(plan, row.alone) for row in rows], "response if nothing else runs"),
                Column(
                    "simulated (us)",
                    [whole_us(plan, row.seen) for row in rows],
                    "the longest response in the simulation",
                ),
            ]
        )

    def pictures(self, plan: ApplicationsPlan, others: Mapping[str, ApplicationsPlan]) -> Pictures:
        """Responses beside deadlines, processors over time."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

    def details(self, plan: ApplicationsPlan, layer: str | None) -> Iterator[str]:
        """Return one inference of every application by processor, and a line for each task; or one task."""
        if layer is None:
            for one in plan.applications:
                yield from (*_application(plan, one), "")
        for row in plan.tasks:
            if layer in (None, row.task):
                yield (
                    f"{row.task} on {row.processor}: from {whole_us(plan, row.start)} us after the release on if "
                    f"nothing delays it, {whole_us(plan, row.time)} us, then {whole_us(plan, row.copies)} us of copies"
                )


def _application(plan: ApplicationsPlan, one: ApplicationPlan) -> list[str]:
    rows = [row for row in plan.tasks if row.task.startswith(f"{one.name}:")]
    lines = [
        f"{one.name}: every {one.period_us:,} us, alone {whole_us(plan, one.alone)} us (drawn), "
        f"response {whole_us(plan, one.response)} us"
    ]
    width = max(len(processor.name) for processor in plan.processors)
    for processor in plan.processors:
        few = sorted((row for row in rows if row.processor == processor.name), key=lambda row: row.start)
        if few:
            lines.append(f"{processor.name:<{width}} |{drawn(few, one.alone or 1)}|")
    return lines


PROBLEM = ApplicationsProblem

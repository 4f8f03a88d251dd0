"""Problem applications, as the rest of `solver` sees it, and its plans for people.

Drawn are responses beside deadlines, and processors over one inference of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from formulations.applications.problem import ApplicationsFormulation, ApplicationsPart, rule_of
from instances.applications import Applications
from instances.errors import InputError
from solver.ask.options import as_texts
from solver.ask.question import Question
from solver.plan.figures import Axis, Bars, Figure, Series
from solver.plan.plan import Plan
from solver.problems.mapping import BoardProblem, TaskRow, whole_us
from solver.problems.problem import Target
from solver.show.common import drawn, gantt, us
from solver.show.tables import Column, Sheet


@dataclass(frozen=True)
class ApplicationRow:
    """An application, with what a plan says of it in ticks."""

    name: str
    period_us: int
    deadline_us: int
    alone: int
    """An inference that nothing else delays."""
    response: int
    """From release to the last result at most, by the plan's rule."""
    seen: int
    """The longest response in the simulation."""


def rows_of(plan: Plan) -> list[ApplicationRow]:
    """Return the applications, the most urgent one first; nothing without a schedule."""
    if not plan.decided:
        return []
    part = plan.part
    return [
        ApplicationRow(
            one.name, one.period_us, one.deadline_us, alone, part.measures[f"response:{one.name}"],
            part.replay.counts.get(one.name, 0) if part.replay else 0,
        )
        for one, alone in zip(plan.network_data.applications, part.figures.alone, strict=True)
    ]  # fmt: skip


def _owner(names: list[str], task: str) -> str:
    """The application of a task, by the name in front of it."""
    return next((name for name in names if task.startswith(f"{name}:")), "")


def _short(task: str) -> str:
    return task.partition(":")[2] or task


def _responses(plans: Mapping[str, Plan]) -> Bars:
    """The response of every application, alone and what others add; the mark is its deadline."""
    bars = [(one, engine, plan) for engine, plan in plans.items() for one in rows_of(plan)]
    order = list(dict.fromkeys(one.name for one, *_ in bars))
    bars.sort(key=lambda bar: order.index(bar[0].name))
    alone = tuple(us(plan, one.alone) for one, _, plan in bars)
    more = tuple(us(plan, one.response - one.alone) for one, _, plan in bars)
    return Bars(
        "responses", "Responses and deadlines",
        "From release to the last result, at most: what the application takes alone, and what others may add. The mark "
        "is the deadline.",
        Axis("time (us)"), tuple(one.name for one, *_ in bars),
        (Series("alone", alone), Series("delayed by others", more)),
        tuple(engine for _, engine, _ in bars) if len(plans) > 1 else (),
        tuple(float(one.deadline_us) for one, *_ in bars), "deadline",
    )  # fmt: skip


class ApplicationsProblem(BoardProblem):
    """Several networks with periods on one board."""

    front_engines = False

    def __init__(self) -> None:
        super().__init__(ApplicationsFormulation())
        self.axes, self.others = {}, {"exhaustive": ("cp-sat", "exhaustive"), "": ("exhaustive", "cp-sat")}

    # ---- what is asked -----------------------------------------------------------------------------------------------

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """Read ``response``, ``response:NAME`` (or its number), ``energy``, the first one first.

        Raises InputError if one is unknown or stands twice, or if the target has no periods.
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

    def parts(self, question: Question) -> Sequence[ApplicationsPart]:
        """Applications on a board; raises InputError for bad objectives, pins and profiles."""
        self.objectives(question.objectives, question.applications)
        rule, pins = rule_of(question.pins)
        return [ApplicationsPart.of(self.request(question, pins), question.applications.applications, rule)]

    # ---- showing -----------------------------------------------------------------------------------------------------

    def layer_rows(self, plan: Plan) -> tuple[TaskRow, ...]:
        """The tasks in their order; none without a schedule."""
        if not plan.decided:
            return ()
        found = plan.part.figures
        return tuple(
            TaskRow(row.task, row.processor, start, one.time, one.copies)
            for row, start, one in zip(plan.schedule.tasks, found.starts, found.tasks, strict=True)
        )

    def said(self, plan: Plan) -> list[str]:
        """Energy, and simulation."""
        replay = plan.part.replay
        if plan.measures is None or replay is None:
            return []
        cores = ",".join(map(str, plan.schedule.cpu_config))
        agrees = "stays within all responses" if replay.ok else "disagrees: " + "; ".join(replay.faults)
        return [
            f"cores ({cores}), {rule_of(plan.options.pins)[0]} analysis",
            f"one inference of each takes {plan.measures['energy'] / 1e12:,.1f} mJ",
            f"simulation of {plan.schedule.draws:,} offsets {agrees}",
        ]

    def sheet(self, plan: Plan) -> Sheet:
        """Return the table of applications, the most urgent one first."""
        rows = rows_of(plan)
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

    def drawings(self, plan: Plan, plans: Mapping[str, Plan]) -> list[Figure]:
        """Responses beside deadlines, processors over time."""
        if plan.measures is None:
            return []
        names = [one.name for one in rows_of(plan)]
        work = [(f"{_owner(names, row.task)}, {row.processor}", _short(row.task), row) for row in plan.layers]
        lanes = [
            lane
            for name in names
            for processor in plan.part.figures.processors
            if (lane := f"{name}, {processor.name}") in {name for name, *_ in work}
        ]
        caption = (
            "One inference of each application from its release on, if nothing delays it: each task on its processor, "
            "then its copies to others."
        )
        return [
            _responses(plans),
            gantt("processors", "Processors over time", caption, plan, lanes, work),
        ]

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """Return one inference of every application by processor, and a line for each task; or one task."""
        tasks = self.layer_rows(plan)
        if layer is None:
            for one in rows_of(plan):
                yield from (*_application(plan, one, tasks), "")
        for row in tasks:
            if layer in (None, row.task):
                yield (
                    f"{row.task} on {row.processor}: from {whole_us(plan, row.start)} us after the release on if "
                    f"nothing delays it, {whole_us(plan, row.time)} us, then {whole_us(plan, row.copies)} us of copies"
                )


def _application(plan: Plan, one: ApplicationRow, tasks: Sequence[TaskRow]) -> list[str]:
    mine, processors = [row for row in tasks if row.task.startswith(f"{one.name}:")], plan.part.figures.processors
    lines = [
        f"{one.name}: every {one.period_us:,} us, alone {whole_us(plan, one.alone)} us (drawn), "
        f"response {whole_us(plan, one.response)} us"
    ]
    width = max(len(processor.name) for processor in processors)
    for processor in processors:
        few = sorted((row for row in mine if row.processor == processor.name), key=lambda row: row.start)
        if few:
            lines.append(f"{processor.name:<{width}} |{drawn(few, one.alone or 1)}|")
    return lines


PROBLEM = ApplicationsProblem

"""Problem applications, as the rest of `solver` sees it, and its plans for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from instances.applications import Application, Applications
from instances.errors import InputError
from solver.applications.ask import ApplicationsSetting, ask, goals_of
from solver.applications.check import applications_faults
from solver.applications.engines import APPLICATION_ENGINES
from solver.applications.plan import ApplicationPlan, ApplicationsPlan
from solver.mapping.board import BoardProblem, whole_us
from solver.mapping.drawn import drawn
from solver.network_show import known_parts
from solver.problem import Target
from solver.question import Question
from solver.report import Column, Sheet

__all__ = ["ApplicationsProblem"]


class ApplicationsProblem(BoardProblem[ApplicationsPlan]):
    """F5: several networks with periods on one board."""

    name = "applications"
    summary = "F5: the same for several networks with periods, deadlines and priorities"
    plan = ApplicationsPlan
    ways = APPLICATION_ENGINES
    measures = {"response": "ticks", "response:NAME": "ticks", "energy": "fJ"}
    usual = "response"
    pins = {
        "analysis": "analysis=safe (the default) or analysis=printed (Eq. 3.11): by which rule deadlines are kept",
        "cpu_config": "configuration of the cores: cpu_config=1,1,1,1; by default all are tried",
        "TASK": "the processor of a task by its name: squeezenet1_1:conv1=gpu",
    }
    quick = ("apart",)
    others = {"exhaustive": ("cp-sat", "exhaustive"), "": ("exhaustive", "cp-sat")}

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """Responses by application, and energy."""
        if not isinstance(target, Applications):
            raise InputError(
                "problem applications: name networks with their periods, such as squeezenet1_1@33ms,mobilenet_v1@40ms"
            )
        return goals_of(self.usual if asked is None else asked, [one.name for one in target.applications])[0]

    def ask(self, question: Question) -> ApplicationsSetting:
        """Applications on a board."""
        return ask(question)

    def target(self, plan: ApplicationsPlan) -> Applications:
        """The applications as parts of the network."""
        asked = [Application(**one.model_dump(exclude={"alone", "response", "seen"})) for one in plan.applications]
        names = [name for one in asked for name in [one.name] * one.operators]
        operators = [operator.name.partition(":")[0] for operator in plan.network_data.operators]
        if names != operators or len({one.name for one in asked}) < len(asked):
            raise InputError("applications: their operators are not those of the network")
        return Applications(plan.network_data, tuple(asked))

    def derived(self, plan: ApplicationsPlan, setting: Any) -> Iterator[str]:
        """Simulate again."""
        return applications_faults(plan, setting)

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

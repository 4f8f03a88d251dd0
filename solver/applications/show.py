"""Several applications for people: responses, and the processors of one inference of each."""

from __future__ import annotations

from collections.abc import Iterator

from solver.applications.plan import ApplicationPlan, ApplicationsPlan
from solver.mapping.show import drawn
from solver.network_show import known_parts
from solver.report import Column, Sheet

__all__ = ["applications_details", "applications_status", "applications_table"]


def _us(plan: ApplicationsPlan, ticks: int | None) -> str:
    return "-" if ticks is None else f"{ticks * plan.machine_data.tick_ps / 1e6:,.0f}"


def applications_status(plan: ApplicationsPlan) -> list[str]:
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


def applications_table(plan: ApplicationsPlan) -> Sheet:
    """Return the table of applications, the most urgent one first."""
    rows = plan.applications
    return Sheet(
        [
            Column("application", [row.name for row in rows], "the most urgent first", words=True),
            Column("response (us)", [_us(plan, row.response) for row in rows], "at most, from release to end"),
            Column("deadline (us)", [f"{row.deadline_us:,}" for row in rows]),
            Column("period (us)", [f"{row.period_us:,}" for row in rows]),
            Column("alone (us)", [_us(plan, row.alone) for row in rows], "response if nothing else runs"),
            Column("simulated (us)", [_us(plan, row.seen) for row in rows], "the longest response in the simulation"),
        ]
    )


def applications_details(plan: ApplicationsPlan, task: str | None = None) -> Iterator[str]:
    """Return one inference of every application by processor, and a line for each task; or one task."""
    if task is None:
        for one in plan.applications:
            yield from (*_application(plan, one), "")
    for row in plan.tasks:
        if task in (None, row.task):
            yield (
                f"{row.task} on {row.processor}: from {_us(plan, row.start)} us after the release on if nothing delays "
                f"it, {_us(plan, row.time)} us, then {_us(plan, row.copies)} us of copies"
            )


def _application(plan: ApplicationsPlan, one: ApplicationPlan) -> list[str]:
    rows = [row for row in plan.tasks if row.task.startswith(f"{one.name}:")]
    lines = [
        f"{one.name}: every {one.period_us:,} us, alone {_us(plan, one.alone)} us (drawn), "
        f"response {_us(plan, one.response)} us"
    ]
    width = max(len(processor.name) for processor in plan.processors)
    for processor in plan.processors:
        few = sorted((row for row in rows if row.processor == processor.name), key=lambda row: row.start)
        if few:
            lines.append(f"{processor.name:<{width}} |{drawn(few, one.alone or 1)}|")
    return lines

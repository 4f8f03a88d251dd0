"""Several applications for people: responses, and the processors of one inference of each."""

from __future__ import annotations

from collections.abc import Sequence

from instances.errors import InputError
from solver.applications.plan import ApplicationPlan, ApplicationsPlan
from solver.mapping.show import drawn
from solver.network_show import known_parts

__all__ = ["applications_rows", "applications_status", "show_applications"]

_HEADS = ("application", "period (us)", "deadline (us)", "alone (us)", "response (us)", "simulated (us)")


def _us(plan: ApplicationsPlan, ticks: int | None) -> str:
    return "-" if ticks is None else f"{ticks * plan.machine_data.tick_ps / 1e6:,.0f}"


def applications_status(plan: ApplicationsPlan) -> str:
    """Return one line that says what is known: status, value, bound, gap, energy, and simulation."""
    parts = known_parts(plan)
    if plan.measures is None:
        return "; ".join(parts)
    cores = ",".join(map(str, plan.cpu_config))
    agrees = "stays within all responses" if plan.replay.ok else "disagrees: " + "; ".join(plan.replay.faults)
    parts += [
        f"cores ({cores}), {plan.options.analysis} analysis",
        f"one inference of each takes {plan.measures.energy / 1e12:,.1f} mJ",
        f"simulation of {plan.replay.draws:,} offsets {agrees}",
    ]
    return "; ".join(parts)


def applications_rows(plan: ApplicationsPlan) -> tuple[Sequence[str], list[list[str]]]:
    """Return heads and rows of the table of applications."""
    rows = [
        [one.name, f"{one.period_us:,}", f"{one.deadline_us:,}", _us(plan, one.alone), _us(plan, one.response),
         _us(plan, one.seen)]
        for one in plan.applications
    ]  # fmt: skip
    return _HEADS, rows


def show_applications(plan: ApplicationsPlan, task: str | None = None) -> str:
    """Return one inference of every application by processor, or one task.

    Raises
    ------
    InputError
        If the plan has no such task.
    """
    if task is not None:
        row = next((row for row in plan.tasks if row.task == task), None)
        if row is None:
            known = ", ".join(row.task for row in plan.tasks)
            raise InputError(f"plan of {plan.network} has no task {task!r}; it has {known}")
        return (
            f"{row.task} on {row.processor}: from {_us(plan, row.start)} us after the release on if nothing delays it, "
            f"{_us(plan, row.time)} us, then {_us(plan, row.copies)} us of copies"
        )
    lines = [applications_status(plan)]
    for one in plan.applications if plan.tasks else ():
        lines += ["", *_application(plan, one)]
    return "\n".join(lines)


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

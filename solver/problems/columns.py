"""What is said alike of all plans that have measures of layers, or of whole networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from solver.plan.plan import Plan
from solver.show.tables import ABSENT, Column, percent, ratio

_UNITS = {"time": " (us)", "bytes": "", "energy": " (uJ)"}
_MEANS = {"bytes": "to and from off-chip memory"}
#: What is left out first where there is no room.
_SPARE = {"bytes": 1, "time": 2, "energy": 3}


def microseconds(plan: Plan, ticks: int) -> str:
    """Ticks of the plan's machine in microseconds."""
    return f"{ticks * plan.machine_data.tick_ps / 1e6:,.1f}"


def measure_columns(
    plan: Plan, rows: Sequence[Mapping[str, int] | None], total: Mapping[str, int] | None
) -> list[Column]:  # fmt: skip
    """Return time, bytes and energy of the rows and their sums, the objective first; None of rows without a plan."""
    first = plan.objectives[0]

    def shown(name: str, row: Mapping[str, int] | None) -> str:
        if not row:
            return ABSENT
        value = row[name]
        if name == "time":
            return microseconds(plan, value)
        return f"{value:,}" if name == "bytes" else f"{value / 1e9:,.1f}"

    return [
        Column(
            name + _UNITS[name],
            [shown(name, row) for row in rows],
            _MEANS.get(name, ""),
            shown(name, total),
            spare=0 if name == first else _SPARE[name],
        )
        for name in dict.fromkeys((first, "bytes", "time", "energy"))
    ]


def known_parts(plan: Plan) -> list[str]:
    """Status, value, bound and gap; why there is no plan if there is none."""
    parts = [f"{plan.network} on {plan.machine} ({plan.problem}, {plan.engine}): {plan.status}"]
    bound = "no bound" if plan.bound is None else f"bound {plan.bound:,}"
    if plan.objective is None:
        note = [str(plan.stats["note"])] if "note" in plan.stats and not plan.conflicts else []
        return [*parts, *([] if plan.bound is None else [bound]), *plan.conflicts, *note]
    gap = "no gap" if plan.gap is None else f"gap {percent(plan.gap)} %"
    said = plan.stats.get("proven")
    part = (
        [] if said is None or plan.status == "OPTIMAL" else [f"proven of {','.join(plan.objectives)}: {said or 'none'}"]
    )
    return [*parts, f"{plan.objectives[0]} {plan.objective.value:,} {plan.objective.unit}, {bound}, {gap}", *part]


def bytes_moved(plan: Plan) -> str:
    """Return what a plan of one part moves, beside what must."""
    moved, must = plan.part.measures["bytes"], plan.part.must["bytes"]
    return f"{moved:,} bytes move, {ratio(moved, must)} times what must ({must:,})"


def agreement(plan: Plan, what: str = "replay") -> str:
    """Return whether the replay of every part agrees with its price."""
    return f"{what} agrees" if all(row.replay and row.replay.ok for row in plan.parts) else f"{what} does not agree"

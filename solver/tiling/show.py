"""Plans of layers (tiling, slicing) for people: a table of the layers, and a layer's buffers and loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from solver.network_show import measure_columns
from solver.report import GAP, Column, Sheet, conflicts_of, few, name_column, percent, ratio
from solver.tiling.buffers import buffer_lines, buffers
from solver.tiling.plan import LayerPlan, LayersPlan
from solver.tiling.pseudo_code import pseudo_code
from solver.words import decision_columns, label, workload_text

__all__ = ["nest_details", "nest_status", "nest_table"]

# ---- the table ----------------------------------------------------------------------------------------------------


def nest_table(plan: LayersPlan, others: Mapping[str, LayersPlan]) -> Sheet:
    """Return the table of a plan: one row a layer and one for the sum.

    Parameters
    ----------
    others : mapping of engine name to LayersPlan
        Plans of the same layers by other engines: each adds a column with its objective over ours.
    """
    rows, first = plan.layers, plan.objectives[0]
    copied = sum(row.same_as is not None for row in rows)
    distinct = f", {len(rows) - copied} distinct" * (copied > 0)
    ratios = [
        Column(
            name,
            [ratio(_value(a), _value(b)) for a, b in zip(other.layers, rows, strict=True)],
            f"its {first} over that of {plan.engine}", ratio(_value(other), _value(plan)),
        )
        for name, other in others.items()
    ]  # fmt: skip
    objective, *measures = measure_columns(plan, rows)
    return Sheet(
        [
            name_column("layer", [label(row.layer, row.workload) for row in rows], distinct),
            objective,
            Column("gap (%)", [_gap(row) for row in rows],
                   GAP, percent(plan.gap)),
            *ratios,
            *measures,
            Column("x limit", [ratio(_bytes(row), _limit([row])) for row in rows],
                   "bytes over the least that any plan moves", ratio(_bytes(plan), _limit(rows)), spare=2),
            *decision_columns([row.decision for row in rows]),
            Column("wall (s)", ["same" if row.same_as else f"{row.wall_s:.2f}" for row in rows],
                   "search, same: as an equal layer above", f"{plan.wall_s:.2f}", spare=4),
        ],
        conflicts_of(rows),
    )  # fmt: skip


def _gap(row: LayerPlan) -> str:
    """The gap; or why there is none."""
    return row.status if row.schedule is None else percent(row.gap)


def _limit(rows: Sequence[LayerPlan]) -> int | None:
    """The bytes that no plan of these layers can do without."""
    limits = [row.limits for row in rows]
    return sum(limit.lower_bound_bytes for limit in limits if limit) if all(limits) else None


def _bytes(row: LayersPlan | LayerPlan) -> int | None:
    return row.measures.bytes if row.measures else None


def _value(row: LayersPlan | LayerPlan) -> int | None:
    return row.objective.value if row.objective else None


# ---- the status ---------------------------------------------------------------------------------------------------


def nest_status(plan: LayersPlan) -> list[str]:
    """Return what is known, a part each: status, value, bound, gap and replay."""
    parts = [f"{plan.network} on {plan.machine} ({plan.problem}, {plan.engine}): {plan.status}"]
    if plan.objective is not None:
        said = f"{plan.objectives[0]} {plan.objective.value:,} {plan.objective.unit}"
        bound = "no bound" if plan.bound is None else f"bound {plan.bound:,}, gap {percent(plan.gap)} %"
        parts.append(f"{said}, {bound}")
    missing = [p.layer for p in plan.layers if p.schedule is None]
    asked = ",".join(plan.objectives)
    half = [p.layer for p in plan.layers if p.schedule and p.stats.get("proven", asked) not in (asked, "")]
    if half:
        parts.append(f"only some of {asked} proven in {len(half)} of {len(plan.layers)} layers: {few(half)}")
    if missing:
        parts.append(f"{len(missing)} of {len(plan.layers)} layers without a schedule: {few(missing)}")
    if plan.replay.ok is not None:
        verdict = "replayed, not compared (literal reading)" if plan.replay.note else "replay agrees"
        failed = [p.layer for p in plan.layers if p.replay is not None and not p.replay.ok]
        reading = " by the paper's literal equations" if plan.replay.note else ""
        refused = f"replay is not ok: {few(failed)} cannot run as priced{reading}, certile check refuses this plan"
        parts.append(refused if failed else verdict)
    return parts


# ---- a layer --------------------------------------------------------------------------------------------------------


def nest_details(plan: LayersPlan, layer: str | None = None) -> Iterable[str]:
    """Return the buffers and the loops of one layer or all, line by line."""
    for row in plan.layers:
        if layer in (None, row.layer):
            yield from _layer(plan, row)


def _layer(plan: LayersPlan, row: LayerPlan) -> Iterable[str]:
    yield f"{row.layer}: {workload_text(row.workload)}, on {plan.machine}"
    if row.schedule is None or row.objective is None or row.measures is None:
        why = f": {'; '.join(row.conflicts)}" if row.conflicts else ""
        yield from (f"{row.status}, there is no schedule{why}", "")
        return
    known = "no bound" if row.bound is None else f"bound {row.bound:,}"
    yield f"{plan.objectives[0]} {row.objective.value:,} {row.objective.unit} ({row.status}, {known})"
    if row.limits is not None:
        limit = row.limits.lower_bound_bytes
        yield f"{row.measures.bytes:,} bytes move; no plan moves fewer than {limit:,}"
    machine, nest = plan.machine_data, row.schedule.to_nest()
    if nest.homes:
        yield f"off the chip: {', '.join(f'{operand} in {name}' for operand, name in nest.homes)}"
    placed = row.buffers or buffers(row.workload, machine, nest)
    for memory, size in machine.memories.items():
        mine = [b for b in placed if b.memory == memory]
        left = size - sum(b.copies * b.bytes for b in mine)
        yield from ("", f"memory {memory}, {size:,} bytes of a core, {left:,} free:")
        yield from buffer_lines(mine)
    yield from ("", *pseudo_code(row.workload, machine, nest).splitlines(), "")
    if machine.timing == "double_buffered":
        yield (
            "time = loads of the first step + sum over the steps of max(compute, loads of the next, stores of the one "
            "before) + stores of the last;"
        )
        yield from ("operands with one buffer are loaded and stored between the steps", "")

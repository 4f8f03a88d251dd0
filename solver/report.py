"""Tables for people: what was decided for each layer, what it costs, and how sure that is."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from solver.plan import Measures
from solver.tiling.plan import LayerPlan, LayersPlan

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

    from solver.problem import Front

__all__ = [
    "console",
    "front_line",
    "front_table",
    "names_table",
    "plan_table",
    "ratio",
    "render",
    "rows_table",
    "shorten",
    "status_line",
]

_ABSENT = "-"
#: Columns of a table that goes to a file or a pipe.
_WIDE = 200


def console() -> Console:
    """Return the console of stdout: as wide as the terminal, or wide and plain where there is none."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    return Console(width=None if terminal or "COLUMNS" in os.environ else _WIDE, highlight=False, soft_wrap=False)


def render(*things: RenderableType) -> str:
    """Return tables and texts as they are to appear on stdout."""
    out = console()
    with out.capture() as captured:
        for thing in things:
            if isinstance(thing, str):
                out.print(thing, markup=False, overflow="ignore", no_wrap=True, crop=False)
            else:
                out.print(thing)
    return captured.get()


def names_table(rows: Mapping[str, str], head: tuple[str, str]) -> Table:
    """Return a table of names with one line about each."""
    table = _table()
    table.add_column(head[0], no_wrap=True)
    table.add_column(head[1], overflow="fold")
    for name, about in rows.items():
        table.add_row(_plain(name), _plain(about))
    return table


def rows_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table of texts; the first and the last column are words, the others numbers."""
    table = _table()
    for k, head in enumerate(heads):
        words = k in (0, len(heads) - 1)
        table.add_column(head, justify="left" if words else "right", overflow="fold", no_wrap=not words)
    for row in rows:
        table.add_row(*map(_plain, row))
    return table


def front_table(front: Front) -> Table:
    """Return the table of a front: one row a point, its axes and its decisions in short."""
    points = [point for part in front.parts for point in part.points]
    details = list(points[0].details) if points else []
    heads = ["part", *(f"{axis} ({unit})" for axis, unit in front.units.items()), *details, "decisions"]
    rows = []
    for part in front.parts:
        note = " (incomplete)" if not part.complete else "" if part.proven else " (not proven)"
        name = part.name or front.network
        if not part.points:
            rows.append(
                [name, *[_ABSENT] * (len(front.axes) + len(details)), "INFEASIBLE" if part.complete else "time ran out"]
            )
        for number, point in enumerate(part.points):
            values = [f"{point.values[axis]:,}" for axis in front.axes]
            rows.append(["" if number else name + note, *values, *point.details.values(), point.label])
    return rows_table(heads, rows)


def front_line(front: Front) -> str:
    """Return one line that says how sure a front is."""
    number = sum(len(part.points) for part in front.parts)
    said = "proven: no other plan is on the front" if front.proven else "not all of the front is proven"
    return f"{number} plans, {said}; each replayed"


def _table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)


def _plain(text: str) -> str:
    """Return a text from a file so that rich does not read markup in it, nor a terminal its control characters."""
    from rich.markup import escape

    return escape("".join(ch if ch.isprintable() else "?" for ch in text))


def plan_table(plan: LayersPlan, others: Mapping[str, LayersPlan] | None = None) -> Table:
    """Return the table of a plan: one row a layer and one for the sum.

    Parameters
    ----------
    others : mapping of engine name to LayersPlan, optional
        Plans of the same layers by other engines: each adds a column with its objective over ours.
    """
    others = others or {}
    table = _table()
    table.add_column("layer", overflow="fold", ratio=2 if len(plan.layers[0].layer) > 40 else None)
    table.add_column("decision", overflow="fold")
    for head in ("time (us)", "bytes", "/limit", "energy (uJ)", f"bound ({_unit(plan)})", "gap", *others, "wall (s)"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in plan.layers:
        ratios = [ratio(_layer_value(other, row.layer), _value(row)) for other in others.values()]
        first = [_plain(row.layer), _plain(_decided(row))]
        wall = "same" if row.same_as else f"{row.wall_s:.2f}"
        measures = _measures(plan, row.measures, _limit([row]))
        table.add_row(*first, *measures, _bound(plan, row.bound), _gap(row.gap), *ratios, wall)
    table.add_section()
    ratios = [ratio(_value(other), _value(plan)) for other in others.values()]
    first = ["total", f"{len(plan.layers)} layers, {sum(p.same_as is None for p in plan.layers)} distinct"]
    measures = _measures(plan, plan.measures, _limit(plan.layers))
    table.add_row(*first, *measures, _bound(plan, plan.bound), _gap(plan.gap), *ratios, f"{plan.wall_s:.2f}")
    return table


def _limit(rows: Sequence[LayerPlan]) -> int | None:
    """The bytes that no plan of these layers can do without."""
    limits = [row.limits for row in rows]
    return sum(limit.lower_bound_bytes for limit in limits if limit) if all(limits) else None


def _unit(plan: LayersPlan) -> str:
    return {"time": "us", "bytes": "bytes", "energy": "uJ"}[plan.objectives[0]]


def _shown(plan: LayersPlan, measure: str, value: int) -> str:
    if measure == "time":
        return f"{value * plan.machine_data.tick_ps / 1e6:,.1f}"
    return f"{value / 1e9:,.1f}" if measure == "energy" else f"{value:,}"


def _measures(plan: LayersPlan, found: Measures | None, limit: int | None) -> list[str]:
    """Time, bytes, bytes over what no plan can do without, energy."""
    if found is None:
        return [_ABSENT] * 4
    time, moved, energy = (_shown(plan, name, value) for name, value in found.model_dump().items())
    return [time, moved, ratio(found.bytes, limit), energy]


def _bound(plan: LayersPlan, bound: int | None) -> str:
    return _ABSENT if bound is None else _shown(plan, plan.objectives[0], bound)


def _gap(gap: float | None) -> str:
    if gap is None:
        return _ABSENT
    # A gap that is not zero is never shown as zero.
    return "0" if gap == 0 else f"{100 * gap:.2f}%" if gap >= 0.00005 else "<0.01%"


def _value(plan: LayersPlan | LayerPlan) -> int | None:
    return plan.objective.value if plan.objective else None


def _layer_value(plan: LayersPlan, name: str) -> int | None:
    return next((_value(p) for p in plan.layers if p.layer == name), None)


def ratio(value: int | None, reference: int | None) -> str:
    """Return ``value / reference`` with three digits, or a dash."""
    if value is None or reference is None:
        return _ABSENT
    if reference == 0:
        return "1.000" if value == 0 else "inf"
    return f"{value / reference:.3f}"


def _decided(row: LayerPlan) -> str:
    """Return the decisions in short: ``OS M16 R4 C73``; or why there are none."""
    if row.decision is None:
        return row.status if not row.conflicts else f"INFEASIBLE: {'; '.join(row.conflicts)}"
    return shorten(row.decision)


def shorten(decision: Mapping[str, int | str]) -> str:
    """Return decisions in short: ``T_M = 16`` as ``M16``, of free pieces the largest as ``R<=5``; choices by value.

    Homes off the chip are ``W@flash``.
    """
    words = []
    for name, value in decision.items():
        dim = name.removeprefix("T_")
        if name.startswith("home_"):
            words.append(f"{name.removeprefix('home_')}@{value}")
        elif isinstance(value, str):
            words += [] if name.startswith("cuts_") else [value]
        else:
            words.append(f"{dim}<={value}" if f"cuts_{dim}" in decision else f"{dim}{value}")
    return " ".join(words)


def status_line(plan: LayersPlan) -> str:
    """Return one line that says what is known: status, value, bound, gap and replay."""
    parts = [f"{plan.network} on {plan.machine} ({plan.problem}, {plan.engine}): {plan.status}"]
    if plan.objective is not None:
        said = f"{plan.objectives[0]} {plan.objective.value:,} {plan.objective.unit}"
        bound = "no bound" if plan.bound is None else f"bound {plan.bound:,}, gap {_gap(plan.gap)}"
        parts.append(f"{said}, {bound}")
    missing = [p.layer for p in plan.layers if p.schedule is None]
    asked = ",".join(plan.objectives)
    half = [p.layer for p in plan.layers if p.schedule and p.stats.get("proven", asked) not in (asked, "")]
    if half:
        parts.append(f"only some of {asked} proven in {len(half)} of {len(plan.layers)} layers: {_few(half)}")
    if missing:
        parts.append(f"{len(missing)} of {len(plan.layers)} layers without a schedule: {_few(missing)}")
    if plan.replay.ok is not None:
        verdict = "replayed, not compared (literal reading)" if plan.replay.note else "replay agrees"
        failed = [p.layer for p in plan.layers if p.replay is not None and not p.replay.ok]
        reading = " by the paper's literal equations" if plan.replay.note else ""
        refused = f"replay is not ok: {_few(failed)} cannot run as priced{reading}, certile check refuses this plan"
        parts.append(refused if failed else verdict)
    return "; ".join(parts)


def _few(names: Sequence[str], most: int = 3) -> str:
    shown = [_printable(n) for n in names[:most]]
    return ", ".join(shown) + (f" and {len(names) - most} more" if len(names) > most else "")


def _printable(text: str) -> str:
    return "".join(ch if ch.isprintable() else "?" for ch in text)

"""Figures that several problems have: parts of a sum, times by layer, processors over time, memories by layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from solver.mapping.drawn import Drawn
from solver.pages.data import Axis, Bars, Box, Boxes, Figure, Series
from solver.plan import Plan

#: So many names stand below an axis; more are numbered.
_NAMED = 12
#: So many terms of a sum are drawn.
_TERMS = 60


def microseconds(plan: Plan, ticks: int | None) -> float | None:
    """Ticks of the plan's machine in microseconds."""
    return None if ticks is None else ticks * plan.machine_data.tick_ps / 1e6


def us(plan: Plan, ticks: int) -> float:
    """The same of what is known."""
    return ticks * plan.machine_data.tick_ps / 1e6


# ---- sums ------------------------------------------------------------------------------------------------------------


def terms(plan: Plan, others: Mapping[str, Plan]) -> tuple[Figure, ...]:
    """Return what sums to the objective, as a bar for every engine; nothing where there is one term or none."""
    plans = {plan.engine: plan, **others}
    known = {name: one.objective for name, one in plans.items() if one.objective is not None}
    if plan.objective is None or not known:
        return ()
    names = list(dict.fromkeys(term for one in known.values() for term, value in one.terms.items() if value))
    if len(names) < 2 or len(names) > _TERMS:
        return ()
    what = plan.objectives[0]
    unit = Axis(what if what == plan.objective.unit else f"{what} ({plan.objective.unit})")
    if len(names) > _NAMED:
        bars = Bars(
            "objective", f"What the {what} is made of", f"The parts that sum to the {what} of this plan.",
            unit, tuple(names),
            (Series(plan.engine, tuple(plan.objective.terms.get(name) for name in names)),),
        )  # fmt: skip
        return (bars,)
    series = tuple(Series(term, tuple(one.terms.get(term) for one in known.values())) for term in names)
    caption = f"The parts that sum to the {what}, for this plan ({plan.engine})"
    caption += " and for other engines." if others else "."
    return (Bars("objective", f"What the {what} is made of", caption, unit, tuple(known), series),)


def stacked(
    key: str, title: str, caption: str, axis: str, rows: Mapping[str, Mapping[str, Mapping[str, float]]],
    order: Sequence[str] = (),
) -> Bars:  # fmt: skip
    """Return bars by name and engine.

    Parameters
    ----------
    rows : mapping of engine to mapping of name to mapping of part to value
        The first engine is the plan's own; names are those of the first.
    order : sequence of str
        Parts in the order of drawing; others stand behind them.
    """
    engines = list(rows)
    names = list(rows[engines[0]]) if engines else []
    parts = list(dict.fromkeys([*order, *(part for one in rows.values() for row in one.values() for part in row)]))
    bars = [(name, engine) for name in names for engine in engines if name in rows[engine]]
    series = tuple(
        Series(part, tuple(rows[engine][name].get(part) for name, engine in bars))
        for part in parts
        if any(rows[engine][name].get(part) for name, engine in bars)
    )
    return Bars(
        key, title, caption, Axis(axis), tuple(name for name, _ in bars), series,
        tuple(engine for _, engine in bars) if len(engines) > 1 else (),
    )  # fmt: skip


def total(rows: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the sums over all names, by engine."""
    sums: dict[str, dict[str, float]] = {}
    for engine, named in rows.items():
        mine = sums.setdefault(engine, {})
        for row in named.values():
            for part, value in row.items():
                mine[part] = mine.get(part, 0) + value
    return sums


# ---- along layers ----------------------------------------------------------------------------------------------------


def layer_axis(names: Sequence[str], what: str = "layer") -> Axis:
    """Return an axis on which layer k lies from k to k + 1: with names if they are few, else with numbers."""
    if len(names) <= _NAMED:
        ticks = tuple((k + 0.5, name) for k, name in enumerate(names))
        return Axis(what, ticks=ticks, limits=(0, max(1, len(names))))
    shown = [0, *range(9, len(names), 10)]
    return Axis(f"{what}, by number in the table's order", ticks=tuple((k + 0.5, str(k + 1)) for k in shown),
                limits=(0, len(names)))  # fmt: skip


@dataclass(frozen=True)
class Stay:
    """Something in a memory while one layer runs: addresses, or numbers of banks, from `low` to `high`."""

    step: int
    low: float
    high: float
    name: str
    kind: str
    note: str


def residency(
    key: str, title: str, caption: str, names: Sequence[str], stays: Sequence[Stay], axis: Axis,
    limit: float | None = None, order: Sequence[str] = (),
) -> Boxes:  # fmt: skip
    """Return what lies in a memory layer by layer; what stays where it is over several layers is one box.

    Kinds have their colours by `order`, others follow.
    """
    kinds = tuple(dict.fromkeys([*order, *(stay.kind for stay in stays)]))
    open_: dict[tuple[float, float, str, str], Box] = {}
    closed = list[Box]()
    for stay in sorted(stays, key=lambda one: one.step):
        place = (stay.low, stay.high, stay.name, stay.kind)
        before = open_.get(place)
        if before is not None and before.x_end == stay.step:
            open_[place] = Box(before.x, stay.step + 1, stay.low, stay.high, stay.name, before.group, before.note)
            continue
        if before is not None:
            closed.append(before)
        open_[place] = Box(stay.step, stay.step + 1, stay.low, stay.high, stay.name, kinds.index(stay.kind), stay.note)
    boxes = sorted([*closed, *open_.values()], key=lambda box: (box.x, box.y, box.name))
    return Boxes(key, title, caption, layer_axis(names), axis, kinds, tuple(boxes), limit=limit)


# ---- processors ------------------------------------------------------------------------------------------------------


def gantt(
    key: str, title: str, caption: str, plan: Plan, lanes: Sequence[str], work: Iterable[tuple[str, str, Drawn]],
) -> Boxes:  # fmt: skip
    """Return processors over time.

    Parameters
    ----------
    work : iterable of (lane, name, work)
    """
    groups, boxes = ("computes", "copies to other processors"), list[Box]()
    for lane, name, one in work:
        y = lanes.index(lane)
        begin, middle, end = (us(plan, t) for t in (one.start, one.start + one.time, one.start + one.time + one.copies))
        note = f"from {begin:,.1f} us, {middle - begin:,.1f} us and {end - middle:,.1f} us of copies"
        boxes.append(Box(begin, middle, y - 0.4, y + 0.4, name, 0, note))
        if one.copies:
            boxes.append(Box(middle, end, y - 0.4, y + 0.4, name, 1, note))
    ticks = tuple((float(k), lane) for k, lane in enumerate(lanes))
    y_axis = Axis("", ticks=ticks, downwards=True, limits=(-0.6, len(lanes) - 0.4))
    return Boxes(key, title, caption, Axis("time (us)"), y_axis, groups, tuple(boxes), tall=len(lanes))

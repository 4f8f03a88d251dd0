"""What is drawn of plans of tiling and slicing: roofline, times, memories layer by layer, the tile of every layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hwmodels.nest.buffers import Buffer
from hwmodels.nest.price.causes import terms_of
from hwmodels.nest.price.closed_form import price
from solver.plan.figures import Axis, Bars, Block, Boxes, Figure, Pictures
from solver.plan.plan import Plan
from solver.problems.layers import LayerRow
from solver.show.common import Stay, residency, stacked, tensors, tile_drawing, total, us
from solver.show.roofline import Rate, roofline
from solver.show.style import slugs
from solver.show.tables import percent

#: What the terms of time are called, in the order of drawing.
_WORDS = {
    "IN": "load inputs", "W": "load weights", "transfer": "load and store", "PSUM": "partial sums",
    "OUT": "store results", "compute": "compute (MAC)", "layer": "fixed",
}  # fmt: skip
_OPERANDS = ("IN", "W", "OUT")
Parts = dict[str, dict[str, dict[str, float]]]


def pictures(plan: Plan, others: Mapping[str, Plan], texts: Mapping[str, str]) -> Pictures:
    """Return all figures; `texts` are the layers in detail."""
    plans = {plan.engine: plan, **others}
    times: Parts = {engine: dict(times_of(one)) for engine, one in plans.items()}
    figures: list[Figure] = [
        roofline(plan.machine_data, {engine: _rates(one) for engine, one in plans.items()}),
        *time_figures(times),
        *memory_maps(plan),
    ]
    return Pictures(tuple(figures), tuple(_blocks(plan, texts)))


def time_figures(times: Parts, what: str = "layer") -> list[Bars]:
    """Return the time of the network and of every layer, by what it is spent on, beside those of other engines."""
    overlaps = any(row.get("overlap") for one in times.values() for row in one.values())
    side = "Loads, stores and computing that run side by side stand one after the other here. " * overlaps
    compared = "The first bar is this plan, those below it are other engines. " if len(times) > 1 else ""
    named = {
        engine: {name: {_WORDS[term]: row[term] for term in _WORDS if row.get(term)} for name, row in one.items()}
        for engine, one in times.items()
    }
    whole = {engine: {"network": row} for engine, row in total(named).items()}
    captions = (
        f"What the time of all {what}s is spent on. {compared}{side}",
        f"What the time of every {what} is spent on. {compared}{side}",
    )
    order = tuple(_WORDS.values())
    made = [stacked("time-by-layer", f"Time by {what}", captions[1].strip(), "time (us)", named, order)]
    if len(times) > 1:
        made.insert(0, stacked("time", "Time of the network", captions[0].strip(), "time (us)", whole, order))
    return [_marked(bars, times) for bars in made] if overlaps else made


def _marked(bars: Bars, times: Parts) -> Bars:
    """Bars with a mark at what time is with overlap."""
    engines = bars.beside or (next(iter(times)),) * len(bars.names)
    marks = tuple(
        sum(times[engine][name].values())
        if name in times[engine]
        else sum(sum(r.values()) for r in times[engine].values())
        for name, engine in zip(bars.names, engines, strict=True)
    )
    return replace(bars, marks=marks, marked="time with overlap")


def times_of(plan: Plan) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield every layer with the terms of its time in microseconds; overlap is negative."""
    known: dict[str, Mapping[str, int]] = {}
    for row in plan.layers:
        if row.schedule is None or row.objective is None:
            continue
        if row.same_as in known:
            found = known[row.same_as]
        elif row.objective.unit == "ticks":
            found = row.objective.terms
        else:
            homes = {str(operand): name for operand, name in (row.schedule.homes or {}).items()}
            outcome = price(row.workload, plan.machine_data, row.schedule)
            found = terms_of("time", row.workload, plan.machine_data, outcome, homes)
        known[row.layer] = found
        yield row.layer, {term: us(plan, ticks) for term, ticks in found.items()}


def _rates(plan: Plan) -> list[Rate]:
    return [
        Rate(row.layer, row.workload.macs, row.measures.bytes, row.measures.time) for row in plan.layers if row.measures
    ]


# ---- memories --------------------------------------------------------------------------------------------------------


def memory_maps(plan: Plan) -> list[Boxes]:
    """Return what lies where in every memory of a core, layer by layer."""
    placed = {row.layer: placed_in(row) for row in plan.layers}
    names, made = list(placed), []
    for memory, size in plan.machine_data.memories.items():
        stays = [
            Stay(step, begin, begin + one.bytes, f"{one.name}{' (2)' if copy else ''}", one.name,
                 f"{names[step]}: {one.bytes:,} bytes at {begin:,}")
            for step, name in enumerate(names)
            for one in placed[name] if one.memory == memory and one.bytes
            for copy, begin in enumerate(range(one.address, one.address + one.copies * one.bytes, one.bytes))
        ]  # fmt: skip
        caption = (
            f"Addresses upwards, a layer after the other to the right; the line is the end of the memory ({size:,} "
            "bytes). Blank is free."
        )
        made.append(
            residency(
                f"memory-{memory}", f"Memory {memory}", caption, names, stays, Axis("address (bytes)"), size, _OPERANDS
            )
        )
    return made


def placed_in(row: LayerRow) -> Sequence[Buffer]:
    """The buffers of a layer; none without a schedule."""
    return row.figures.buffers if row.figures else ()


# ---- layers ----------------------------------------------------------------------------------------------------------


def _blocks(plan: Plan, texts: Mapping[str, str]) -> Iterator[Block]:
    for row, key in zip(plan.layers, slugs(row.layer for row in plan.layers), strict=True):
        line: str = row.status
        if row.objective is not None:
            value = f"{row.objective.value:,} {row.objective.unit}"
            line += f", {plan.objectives[0]} {value}, gap {percent(row.gap)} %"
        if row.same_as:
            line += f", the same as {row.same_as}"
        found = tensors(row.workload, placed_in(row))
        title = f"Tile of {row.layer}"
        figures = (tile_drawing(f"tile-{key}", title, found),) if found and not row.same_as else ()
        text = "" if row.same_as else texts.get(row.layer, "")
        yield Block(row.layer, line, text, figures)

"""A plan for a small engine for people: a table of layers, the banks of each, and a layer's program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from formulations.partial_engine.orders import from_text
from instances.errors import InputError
from solver.partial_engine.plan import EngineLayer, EnginePlan

__all__ = ["engine_rows", "engine_status", "show_engine"]

_HEADS = ("layer", "moves (bytes)", "inputs", "weights", "partial maps", "results", "strips", "groups", "places",
          "runs", "adds", "cycles", "status")  # fmt: skip
#: Steps of a program that are shown.
_MOST = 200


def engine_status(plan: EnginePlan) -> str:
    """Return one line that says what is known: status, value, bound, gap, runs, additions, time of them, replay."""
    parts = [f"{plan.network} on {plan.machine} (engine, {plan.engine}): {plan.status}"]
    bound = "no bound" if plan.bound is None else f"bound {plan.bound:,}"
    if plan.objective is None or plan.counts is None:
        missing = [row.layer for row in plan.layers if row.schedule is None]
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        said = f"{len(missing)} of {len(plan.layers)} layers without a schedule: {', '.join(missing[:3])}{more}"
        return "; ".join([*parts, said, *plan.conflicts[:1]])
    gap = "no gap" if plan.gap is None else f"gap {100 * plan.gap:.3g} %"
    hertz = plan.machine_data.engine.clock_hz if plan.machine_data.engine else 1
    parts += [
        f"bytes {plan.objective.value:,}, {bound}, {gap}",
        f"{plan.counts.runs:,} runs and {plan.counts.adds:,} additions, "
        f"{plan.counts.cycles:,} cycles or {1e3 * plan.counts.cycles / hertz:,.2f} ms of the engine",
        "replay agrees" if plan.replay.ok else "replay does not agree",
    ]
    return "; ".join(parts)


def engine_rows(plan: EnginePlan) -> tuple[Sequence[str], list[list[str]]]:
    """Return heads and rows of the table of layers."""
    rows = []
    for row in plan.layers:
        if row.counts is None or row.schedule is None:
            rows.append([row.layer, *["-"] * (len(_HEADS) - 2), row.status])
            continue
        counts, plan_ = row.counts, row.schedule
        moved = (counts.bytes, counts.inputs, counts.weights, counts.spilled + counts.reloaded, counts.results)
        grid = f"{plan_.inputs} x {plan_.outputs}" + (f" ({plan_.grids})" if plan_.grids > 1 else "")
        places = f"{plan_.in_places} + {plan_.part_places}" + (" + 1" if plan_.fresh_places else "")
        done = (counts.runs, counts.adds, counts.cycles)
        texts = [f"{number:,}" for number in moved], [f"{number:,}" for number in done]
        rows.append([row.layer, *texts[0], str(plan_.strips), grid, places, *texts[1], row.status])
    return _HEADS, rows


def show_engine(plan: EnginePlan, layer: str | None = None) -> str:
    """Return a line for every layer, or one layer's banks and program.

    Raises
    ------
    InputError
        If the plan has no such layer.
    """
    if layer is None:
        width = max(len(row.layer) for row in plan.layers)
        lines = [f"{row.layer:<{width}}  {_line(row)}" for row in plan.layers]
        return "\n".join([engine_status(plan), "", *lines])
    found = next((row for row in plan.layers if row.layer == layer), None)
    if found is None:
        known = ", ".join(row.layer for row in plan.layers)
        raise InputError(f"plan of {plan.network} has no layer {layer!r}; it has {known}")
    return "\n".join(_layer(found))


def _line(row: EngineLayer) -> str:
    if row.schedule is None or row.counts is None:
        return f"{row.status}: {'; '.join(row.conflicts)}"
    plan, counts = row.schedule, row.counts
    fresh = f" + 1 fresh x {plan.part_place_bytes:,}" if plan.fresh_places else ""
    return (
        f"{plan.strips} strips of {plan.rows} rows, {plan.inputs} x {plan.outputs} groups; a bank: {plan.in_places} "
        f"inputs x {plan.in_place_bytes:,} + {plan.part_places} partial x {plan.part_place_bytes:,}{fresh} = "
        f"{counts.peak_bytes:,} bytes; {counts.runs:,} runs, {counts.adds:,} adds"
    )


def _layer(row: EngineLayer) -> Iterable[str]:
    yield f"{row.layer}: {_line(row)}"
    if row.schedule is None or row.counts is None:
        return
    counts, plan = row.counts, row.schedule
    yield (
        f"moves {counts.bytes:,} bytes: inputs {counts.inputs:,}, weights {counts.weights:,}, partial maps "
        f"{counts.spilled:,} out and {counts.reloaded:,} in, results {counts.results:,}; {counts.cycles:,} cycles"
    )
    if plan.grids > 1:
        yield f"the program runs for each of {plan.grids} grids, one after the other"
    yield "addresses in every bank: " + ", ".join(_addresses(row))
    yield "program of a strip:"
    steps = from_text(plan.program)
    for verb, i, o, place in steps[:_MOST]:
        where = "the fresh place" if place < 0 else f"{'input' if verb == 'load' else 'partial'} place {place}"
        yield "  " + {
            "load": f"load input group {i} to {where}", "back": f"load partial maps {o} again to {where}",
            "run": f"run {i} x {o}, result to {where}", "add": f"add the fresh maps to output group {o} in {where}",
            "spill": f"store partial maps {o} of {where}", "store": f"store result {o} of {where}",
        }[verb]  # fmt: skip
    if len(steps) > _MOST:
        yield f"  and {len(steps) - _MOST:,} more steps"


def _addresses(row: EngineLayer) -> Iterable[str]:
    plan, at = row.schedule, 0
    assert plan is not None
    ins = plan.in_places * (plan.grids if plan.inputs_at == "banks" else 1)
    parts = plan.part_places * (plan.grids if plan.results_at == "banks" else 1)
    for kind, number, size in (
        ("input", ins, plan.in_place_bytes), ("partial", parts, plan.part_place_bytes),
        ("fresh", plan.fresh_places, plan.part_place_bytes),
    ):  # fmt: skip
        if number:
            names = f"{kind} places 0 to {number - 1}" if number > 1 else f"{kind} place"
            yield f"{names} from {at:,}, {size:,} each"
        at += number * size

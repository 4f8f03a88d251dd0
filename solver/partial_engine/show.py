"""A plan for a small engine for people: a table of layers, the banks of each, and a layer's program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from formulations.partial_engine.orders import from_text
from hwmodels.partial_engine.schedule import EngineSchedule
from solver.partial_engine.plan import EngineCounts, EngineLayer, EnginePlan
from solver.report import ABSENT, GAP, Column, Sheet, conflicts_of, few, name_column, percent
from solver.words import labels

__all__ = ["engine_details", "engine_status", "engine_table"]

#: Steps of a program that are shown.
_MOST = 200


def engine_status(plan: EnginePlan) -> list[str]:
    """Return what is known, a part each: status, value, bound, gap, runs, additions, time of them, replay."""
    parts = [f"{plan.network} on {plan.machine} (engine, {plan.engine}): {plan.status}"]
    bound = "no bound" if plan.bound is None else f"bound {plan.bound:,}"
    if plan.objective is None or plan.counts is None:
        missing = [row.layer for row in plan.layers if row.schedule is None]
        said = f"{len(missing)} of {len(plan.layers)} layers without a schedule: {few(missing)}"
        return [*parts, said, *plan.conflicts[:1]]
    gap = "no gap" if plan.gap is None else f"gap {percent(plan.gap)} %"
    hertz = plan.machine_data.engine.clock_hz if plan.machine_data.engine else 1
    parts += [
        f"bytes {plan.objective.value:,}, {bound}, {gap}",
        f"{plan.counts.runs:,} runs and {plan.counts.adds:,} additions, "
        f"{plan.counts.cycles:,} cycles or {1e3 * plan.counts.cycles / hertz:,.2f} ms of the engine",
        "replay agrees" if plan.replay.ok else "replay does not agree",
    ]
    return parts


def engine_table(plan: EnginePlan) -> Sheet:
    """Return the table of layers."""
    rows, named = plan.layers, labels([row.layer for row in plan.layers], plan.network_data.layers)

    def count(head: str, names: str, means: str, spare: int) -> Column:
        def of(counts: EngineCounts | None) -> str:
            return ABSENT if counts is None else f"{sum(getattr(counts, name) for name in names.split()):,}"

        return Column(head, [of(row.counts) for row in rows], means, of(plan.counts), spare=spare)

    def decided(head: str, text: Callable[[EngineSchedule], str], means: str, spare: int) -> Column:
        cells = [ABSENT if row.schedule is None else text(row.schedule) for row in rows]
        return Column(head, cells, means, spare=spare)

    return Sheet(
        [
            name_column("layer", named),
            count("bytes", "bytes", "to and from DRAM", 0),
            Column("gap (%)", [row.status if row.schedule is None else percent(row.gap) for row in rows], GAP,
                   percent(plan.gap)),
            decided("strips", lambda made: f"{made.strips}", "of rows, one after the other", 0),
            decided("groups", _groups, "of input x of output maps, in so many grids", 0),
            decided("places", _places, "for input + partial maps in a bank, + 1 for a fresh one", 0),
            count("cycles", "cycles", "of the engine", 1),
            count("runs", "runs", "of the engine", 2),
            count("adds", "adds", "of partial maps", 2),
            count("inputs", "inputs", "their bytes", 3),
            count("weights", "weights", "their bytes", 3),
            count("partial maps", "spilled reloaded", "their bytes, out and in", 3),
            count("results", "results", "their bytes", 3),
        ],
        conflicts_of(rows),
    )  # fmt: skip


def _groups(made: EngineSchedule) -> str:
    return f"{made.inputs} x {made.outputs}" + (f" ({made.grids})" if made.grids > 1 else "")


def _places(made: EngineSchedule) -> str:
    return f"{made.in_places} + {made.part_places}" + (" + 1" if made.fresh_places else "")


def engine_details(plan: EnginePlan, layer: str | None = None) -> Iterator[str]:
    """Return the banks and the program of one layer or all, line by line."""
    for row in plan.layers:
        if layer in (None, row.layer):
            yield from (*_layer(row), "")


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

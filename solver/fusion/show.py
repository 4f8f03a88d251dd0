"""A group for people: its strips layer by layer, what is kept, and where everything lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hwmodels.fusion.replay_count import weight_bytes
from hwmodels.fusion.replay_strips import Span, Walk
from hwmodels.nest.buffers import buffer_lines, buffers
from hwmodels.schedule import FusedRun, LayerRun, Steps
from instances.stores import Stores
from solver.joint.rows import RunRow, ranges
from solver.plan import Plan
from solver.tiling.pseudo_code import pseudo_code
from solver.words import workload_text

#: Of more steps than this only the first three and the last two are drawn.
_DRAWN = 6


def halo_words(run: FusedRun | LayerRun) -> str:
    """What is done with halos, in a few words."""
    if isinstance(run, LayerRun):
        return ""
    axes = ((run.rows, ""), (run.columns, "columns "))
    return "; ".join(f"{what}{_steps(steps)}" for steps, what in axes if steps.first < steps.last) or "one step"


def _steps(steps: Steps) -> str:
    if steps.halo == "recompute":
        return "computed again"
    return f"kept, {1 - steps.first} warm-up" if steps.first < 1 else "kept"


def drawn(plan: Plan, row: RunRow) -> Iterator[str]:
    """Lines about a group."""
    figures = row.figures
    yield f"{row.name} on {plan.machine}: {figures.moved:,} bytes move, {figures.macs:,} MACs"
    for one in row.on_chip:
        total = next(store.rows for store in row.found.stores if store.name == one.map)
        yield f"  {one.rows} of {total} rows of {one.map} {one.where}"
    what = "tiles" if isinstance(row.run, LayerRun) else "strips and weights"
    where = f" in {_banks(row.run.banks)}" if plan.machine_data.ocm_banks else ""
    yield f"  {what} take at most {figures.occupancy_bytes:,} bytes{where}"
    if isinstance(row.run, LayerRun):
        yield from _alone(plan, row, row.run)
    else:
        yield from _together(plan, row, row.run, row.found)
    yield ""


def _banks(banks: tuple[int, ...]) -> str:
    return f"bank {banks[0]}" if len(banks) == 1 else f"banks {ranges(banks)}" if banks else "no bank"


def _alone(plan: Plan, row: RunRow, run: LayerRun) -> Iterator[str]:
    yield f"  {workload_text(row.layer)}"
    yield from (f"  {line}" for line in buffer_lines(buffers(row.layer, plan.machine_data, run.nest)))
    yield from (f"  {line}" for line in pseudo_code(row.layer, plan.machine_data, run.nest).splitlines())


# ---- strips ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Strips:
    """Of every step of rows what each stream makes or loads; rows of it that a later step reads too, the most."""

    steps: tuple[int, ...]
    made: tuple[dict[int, Span], ...]
    kept: dict[int, int]


def _together(plan: Plan, row: RunRow, run: FusedRun, found: Stores) -> Iterator[str]:
    seen, count = _walked(found, run), len(row.layers)
    lines = [["rows in step", *(str(k) if k is not None else "..." for k in _chosen(seen.steps)), "kept", "weights"]]
    for t, name in enumerate(row.layers, run.first):
        loads = [k for k in range(count, len(run.streams)) if run.streams[k].maker == t]
        for k in loads:
            lines.append([f"  load {found.stores[run.streams[k].store].name}", *_rows(seen, k), ""])
        stay, whole = run.weights[t - run.first], weight_bytes(found.layers[t], plan.machine_data)
        lines.append([f"  {name}", *_rows(seen, t - run.first), f"{stay:,} of {whole:,}" if whole else "none"])
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = [first.ljust(widths[0]), *(x.rjust(n) for x, n in zip(others, widths[1:], strict=True))]
        yield f"  {'  '.join(cells)}".rstrip()
    for one in run.blocks:
        names, count = row.layers[one.first - run.first : one.last - run.first + 1], found.layers[one.last].n
        yield (
            f"  {', '.join(names)} take turns: {one.channels} of {count} channels of the maps between them in each, "
            f"which {names[-1]} adds up in sums of {plan.machine_data.psum_bytes} bytes"
        )
    across = run.columns
    if across.first < across.last:
        yield f"  every step of rows goes through steps {across.first} to {across.last} of columns"
    yield "  kept: the most rows that later steps read again; weights: bytes that stay, of all"


def _walked(found: Stores, run: FusedRun) -> _Strips:
    steps = tuple(range(run.rows.first, run.rows.last + 1))
    made: tuple[dict[int, Span], ...] = tuple({} for _ in steps)
    kept = dict.fromkeys(range(len(run.streams)), 0)
    across = run.columns.last - run.columns.first + 1
    if run.rows.halo == "retain":
        for rows in list(Walk(found, run).steps("rows"))[:-1]:
            kept = {k: max(kept[k], step.end - step.need_after) for k, step in enumerate(rows)}
    for number, moments in enumerate(Walk(found, run).each_visit()):
        for moment in moments:
            if moment.kind in ("load", "make") and moment.rows[0] < moment.rows[1]:
                made[number // across][moment.stream] = moment.rows
    return _Strips(steps, made, kept)


def _chosen(steps: tuple[int, ...]) -> list[int | None]:
    """The steps that are drawn; None for those between."""
    return [*steps] if len(steps) <= _DRAWN else [*steps[:3], None, *steps[-2:]]


def _rows(seen: _Strips, stream: int) -> list[str]:
    """The rows of a stream step by step, first to last, and how many of them stay."""
    cells = []
    for k in _chosen(seen.steps):
        first, end = seen.made[k - seen.steps[0]].get(stream, (0, 0)) if k is not None else (0, 0)
        cells.append(
            "..." if k is None else "-" if first >= end else f"{first}-{end - 1}" if first < end - 1 else str(first)
        )
    return [*cells, str(seen.kept[stream])]

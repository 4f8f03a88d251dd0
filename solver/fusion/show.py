"""A group for people: its strips layer by layer, what is kept, and where everything lies."""

from __future__ import annotations

from collections.abc import Iterator

from hwmodels.schedule import FusedRun, LayerRun
from instances.stores import stores
from solver.fusion.plan import FusionGroup, FusionPlan, StepsPlan, StreamPlan
from solver.joint.problem import ranges
from solver.tiling.buffers import buffer_lines, buffers
from solver.tiling.pseudo_code import pseudo_code
from solver.words import workload_text


def halo_words(row: FusionGroup) -> str:
    """What is done with halos, in a few words."""
    if row.strips is None:
        return ""
    return "; ".join(_steps(steps, what) for steps, what in ((row.strips.rows, ""), (row.strips.columns, "columns ")))


def _steps(steps: StepsPlan, what: str) -> str:
    if steps.first == steps.last:
        return f"{what}in one step"
    if steps.halo == "recompute":
        return f"{what}computed again"
    warm = f", {1 - steps.first} steps of warm-up" if steps.first < 1 else ""
    return f"{what}kept{warm}"


def drawn(plan: FusionPlan, row: FusionGroup, run: FusedRun | LayerRun) -> Iterator[str]:
    """Lines about a group."""
    yield f"{row.layer} on {plan.machine}: {row.bytes:,} bytes move, {row.macs:,} MACs"
    for one in row.on_chip:
        yield f"  {one.rows} rows of {one.map} lie in banks {ranges(one.banks)}"
    yield f"  {row.occupancy_bytes:,} bytes are in use in banks {ranges(row.banks)}"
    if isinstance(run, LayerRun):
        yield from _alone(plan, row, run)
    elif row.strips is not None:
        yield from _together(row)
    yield ""


def _alone(plan: FusionPlan, row: FusionGroup, run: LayerRun) -> Iterator[str]:
    found = stores(plan.network_data)
    step = next(t for t, layer in enumerate(found.layers) if layer.name == row.layers[0])
    layer = found.layer(step, run.rows, run.unwritten)
    yield f"  {workload_text(layer)}"
    yield from (f"  {line}" for line in buffer_lines(buffers(layer, plan.machine_data, run.nest)))
    yield from (f"  {line}" for line in pseudo_code(layer, plan.machine_data, run.nest).splitlines())


def _together(row: FusionGroup) -> Iterator[str]:
    strips = row.strips
    assert strips is not None
    yield f"  for row step {strips.rows.first}..{strips.rows.last}:"
    if strips.columns.first != strips.columns.last:
        yield f"    for column step {strips.columns.first}..{strips.columns.last}:"
    count = len(row.layers)
    kept = dict(zip(row.layers, strips.weights, strict=True))
    for name, made in zip(row.layers, strips.streams[:count], strict=True):
        for one in strips.streams[count:]:
            if one.layer == name:
                yield f"      load {one.map} {_rows(one, strips.rows)} for {', '.join(one.readers)}"
        written = "" if made.readers else " -> out of the group"
        yield f"      {name}: {_rows(made, strips.rows)}{written}; {kept[name]:,} bytes of weights stay"


def _rows(one: StreamPlan, steps: StepsPlan) -> str:
    """The rows of a step in the middle, and what they are of."""
    middle = (steps.first + steps.last + 1) // 2
    front = _clip(one.rows.step * middle + one.rows.ahead, one.rows.end)
    before = one.rows.step * middle + one.rows.behind if steps.halo == "recompute" else (
        one.rows.step * (middle - 1) + one.rows.ahead if middle > steps.first else 0
    )  # fmt: skip
    wide = f", {one.columns.step} columns a step" if one.columns.step < one.columns.end else ""
    return f"rows {_clip(before, one.rows.end)}..{front} of {one.rows.end} in step {middle}{wide}"


def _clip(row: int, end: int) -> int:
    return max(0, min(row, end))

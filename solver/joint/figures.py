"""What is drawn of joint plans: what stays on chip layer by layer, bytes and times by layer, the roofline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hwmodels.joint.loading import ran
from hwmodels.nest.price import price
from hwmodels.schedule import LayerRun, Nest
from instances.machine import Machine
from instances.stores import stores
from instances.workload import Layer
from solver.joint.plan import JointLayer, JointPlan, Resident
from solver.pages.common import Stay, residency, stacked, us
from solver.pages.data import Axis, Boxes, Figure
from solver.pages.roofline import Rate, roofline
from solver.tiling.figures import time_figures
from solver.verify import objective_of

#: What moves, by operand.
MOVED = {"IN": "inputs", "W": "weights", "PSUM": "partial sums", "OUT": "results"}


def figures(plan: JointPlan, others: Mapping[str, JointPlan]) -> list[Figure]:
    """Return all figures."""
    plans = {plan.engine: plan, **others}
    macs = {layer.name: layer.macs for layer in plan.network_data.layers}
    rates = {
        engine: [Rate(row.layer, macs[row.layer], row.measures.bytes, row.measures.time) for row in one.layers]
        for engine, one in plans.items()
    }
    bytes_ = {
        engine: {
            row.layer: {words: row.counts.by_operand[operand].bytes for operand, words in MOVED.items()}  # type: ignore[index]
            for row in one.layers
        }
        for engine, one in plans.items()
    }
    times = {engine: dict(_times(one)) for engine, one in plans.items()}
    return [
        on_chip(plan.machine_data, [(row.layer, row.on_chip, row.banks, row.occupancy_bytes) for row in plan.layers]),
        stacked("bytes-by-layer", "Bytes by layer", "To and from DRAM, by what moves.", "bytes", bytes_),
        *time_figures(times),
        roofline(plan.machine_data, rates),
    ]


def _times(plan: JointPlan) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield every layer with the terms of its time in microseconds."""
    found = stores(plan.network_data)
    number = {store.name: at for at, store in enumerate(found.stores)}
    runs = [
        LayerRun(
            row.schedule.to_nest(), {number[x.map]: (x.rows, x.banks) for x in row.on_chip}, row.unwritten, row.banks
        )
        for row in plan.layers
    ]
    for step, row in enumerate(plan.layers):
        yield row.layer, nest_times(plan, *ran(found, step, runs[step], runs[step - 1] if step else None), row)


def nest_times(plan: JointPlan, layer: Layer, nest: Nest, row: JointLayer) -> dict[str, float]:
    """Return the terms of a layer's time in microseconds."""
    outcome = price(layer, plan.machine_data, nest)
    homes = {str(operand): name for operand, name in (row.schedule.homes or {}).items()}
    terms = objective_of("time", layer, plan.machine_data, outcome, homes).terms
    return {term: us(plan, ticks) for term, ticks in terms.items()}


#: A layer or a group: its name, maps on chip, the banks and the bytes of its tiles.
Row = tuple[str, Sequence[Resident], Sequence[int], int]


def on_chip(machine: Machine, rows: Sequence[Row], what: str = "layer", tiles: str = "tiles") -> Boxes:
    """Return what lies in the shared memory while each layer runs: in its banks; or, without banks, how much of it."""
    stays = list(_in_banks(rows, tiles) if machine.ocm_banks else _in_bytes(rows, tiles))
    names = [row[0] for row in rows]
    size = machine.memories["ocm"]
    if machine.ocm_banks:
        axis, limit = Axis(f"bank of {machine.bank_bytes:,} bytes"), machine.ocm_banks
        how = f"Banks upwards, a {what} after the other to the right."
    else:
        axis, limit = Axis("bytes on chip"), size
        how = (
            f"Bytes, one on the other, a {what} after the other to the right: the plan has no addresses, problem "
            "placement gives them."
        )
    caption = f"{how} Maps that stay, {tiles}, and (blank) what is free; the line is the end of the memory."
    return residency("memory-ocm", "What lies on chip", caption, names, stays, axis, limit)


def _in_banks(rows: Sequence[Row], tiles: str) -> Iterator[Stay]:
    for step, (name, residents, banks, taken) in enumerate(rows):
        held = [(one.map, "maps that stay", one.banks, f"{one.rows} rows") for one in residents]
        held.append((tiles, tiles, tuple(banks), f"{taken:,} bytes"))
        for what, kind, mine, note in held:
            for low, high in _runs(mine):
                yield Stay(step, low, high, what, kind, f"{name}: {what}, {note}")


def _in_bytes(rows: Sequence[Row], tiles: str) -> Iterator[Stay]:
    for step, (name, residents, _, taken) in enumerate(rows):
        top = 0
        for one in residents:
            size = one.bytes or 0
            yield Stay(
                step, top, top + size, one.map, "maps that stay", f"{name}: {one.map}, {one.rows} rows, {size:,} bytes"
            )
            top += size
        if taken:
            yield Stay(step, top, top + taken, tiles, tiles, f"{name}: {tiles}, {taken:,} bytes")


def _runs(banks: Sequence[int]) -> list[tuple[int, int]]:
    """Numbers as ranges, the end excluded."""
    made: list[tuple[int, int]] = []
    for bank in sorted(banks):
        if made and made[-1][1] == bank:
            made[-1] = (made[-1][0], bank + 1)
        else:
            made.append((bank, bank + 1))
    return made

"""What is drawn of joint plans: what stays on chip layer by layer, bytes and times by layer, the roofline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hwmodels.joint.loading import ran
from hwmodels.nest.price import price
from hwmodels.nest.terms import terms_of
from hwmodels.schedule import LayerRun
from instances.machine import Machine
from solver.joint.rows import RunRow, rows_of
from solver.pages.common import Stay, residency, stacked, us
from solver.pages.data import Axis, Boxes, Figure
from solver.pages.roofline import Rate, roofline
from solver.plan import Plan
from solver.tiling.figures import time_figures

#: What moves, by operand.
MOVED = {"IN": "inputs", "W": "weights", "PSUM": "partial sums", "OUT": "results"}


def figures(plan: Plan, others: Mapping[str, Plan]) -> list[Figure]:
    """Return all figures."""
    rows = rows_of(plan)
    plans = {plan.engine: rows, **{engine: rows_of(one) for engine, one in others.items()}}
    rates = {
        engine: [Rate(row.name, row.figures.macs, row.figures.moved, row.figures.ticks) for row in mine]
        for engine, mine in plans.items()
    }
    bytes_ = {
        engine: {row.name: {words: row.figures.bytes[operand] for operand, words in MOVED.items()} for row in mine}
        for engine, mine in plans.items()
    }
    times = {engine: dict(_times(plan, mine)) for engine, mine in plans.items()}
    return [
        on_chip(plan.machine_data, rows),
        stacked("bytes-by-layer", "Bytes by layer", "To and from DRAM, by what moves.", "bytes", bytes_),
        *time_figures(times),
        roofline(plan.machine_data, rates),
    ]


def _times(plan: Plan, rows: Sequence[RunRow]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield every layer with the terms of its time in microseconds."""
    before: LayerRun | None = None
    for row in rows:
        run = row.run
        assert isinstance(run, LayerRun)
        layer, nest = ran(row.found, row.step, run, before)
        outcome = price(layer, plan.machine_data, nest)
        terms = terms_of("time", layer, plan.machine_data, outcome, dict(run.nest.homes))
        yield row.name, {term: us(plan, ticks) for term, ticks in terms.items()}
        before = run


def on_chip(machine: Machine, rows: Sequence[RunRow], what: str = "layer", tiles: str = "tiles") -> Boxes:
    """Return what lies in the shared memory while each layer runs: in its banks; or, without banks, how much of it."""
    stays = list(_in_banks(rows, tiles) if machine.ocm_banks else _in_bytes(rows, tiles))
    names = [row.name for row in rows]
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


def _in_banks(rows: Sequence[RunRow], tiles: str) -> Iterator[Stay]:
    for step, row in enumerate(rows):
        name, taken = row.name, row.figures.occupancy_bytes
        held = [(one.map, "maps that stay", one.banks, f"{one.rows} rows") for one in row.on_chip]
        held.append((tiles, tiles, row.run.banks, f"{taken:,} bytes"))
        for what, kind, mine, note in held:
            for low, high in _runs(mine):
                yield Stay(step, low, high, what, kind, f"{name}: {what}, {note}")


def _in_bytes(rows: Sequence[RunRow], tiles: str) -> Iterator[Stay]:
    for step, row in enumerate(rows):
        name, taken, top = row.name, row.figures.occupancy_bytes, 0
        for one in row.on_chip:
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

"""What is drawn of plans in memory banks: banks step by step, times and bytes by stage, the roofline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hwmodels.banks.replay_time import Held
from solver.banks.rows import FUSED, StageRow, rows_of
from solver.pages.common import stacked, us
from solver.pages.data import Axis, Bars, Box, Boxes, Figure
from solver.pages.roofline import Rate, roofline, unpadded
from solver.plan import Plan

#: Stage, action, and what every bank holds after it.
History = Sequence[tuple[str, str, Mapping[int, Held]]]

#: What a letter of the replay means.
_STATES = {
    "I": "input that is there", "L": "being loaded", "P": "being read", "O": "result", "R": "waits for another stage",
}  # fmt: skip
_NOTE = "MACs of padding are left out, which the machine skips."
_BYTES = {"load": "maps in", "weight": "weights", "streamed": "other operands", "bias": "biases", "write": "maps out"}


def figures(plan: Plan, others: Mapping[str, Plan], history: History) -> list[Figure]:
    """Return all figures."""
    rows = {engine: rows_of(one) for engine, one in {plan.engine: plan, **others}.items()}
    banks = plan.machine_data.banks
    assert banks is not None
    return [
        banks_by_step(rows[plan.engine], history, banks.count),
        *stage_bars(plan, rows),
        roofline(plan.machine_data, {name: _rates(plan, mine) for name, mine in rows.items()}, "stage", _NOTE),
    ]


def stage_bars(plan: Plan, rows: Mapping[str, Sequence[StageRow]]) -> list[Bars]:
    """Return time and bytes of every stage by what they are, beside those of other engines."""

    def time(row: StageRow) -> dict[str, float]:
        seen = row.seen
        waits = {
            "waits for maps": seen.waits_for_maps, "waits for weights": seen.waits_for_weights,
            "waits for writes": seen.waits_for_writes,
        }  # fmt: skip
        return {"computes": us(plan, seen.ticks - seen.waits), **{name: us(plan, n) for name, n in waits.items()}}

    def moved(row: StageRow) -> dict[str, float]:
        return {words: getattr(row.seen, name) for name, words in _BYTES.items()}

    stages = {engine: [row for row in mine if row.kind != FUSED] for engine, mine in rows.items()}
    return [
        stacked(
            "time-by-stage", "Time by stage", "From the end of the stage before; waiting is for DRAM.", "time (us)",
            {engine: {row.name: time(row) for row in mine} for engine, mine in stages.items()},
        ),
        stacked(
            "bytes-by-stage", "Bytes by stage", "What moves between DRAM and the chip.", "bytes",
            {engine: {row.name: moved(row) for row in mine} for engine, mine in stages.items()},
        ),
    ]  # fmt: skip


def banks_by_step(stages: Sequence[StageRow], history: History, count: int) -> Boxes:
    """Return what every bank holds after every action of every stage; what stays is one box."""
    rows = {row.name: row for row in stages}
    groups, boxes = tuple(_STATES.values()), list[Box]()
    open_: dict[int, tuple[int, int, str, str]] = {}  # of a bank: since when, what state, map, stage
    lines, before, step = list[float](), "", 0

    def close(bank: int, end: int) -> None:
        since, state, name, stage = open_.pop(bank)
        boxes.append(
            Box(since, end, bank - 0.45, bank + 0.45, name, state, f"{stage}: bank {bank}, steps {since} to {end}")
        )

    for step, (stage, _, held) in enumerate(history):
        if stage != before:
            lines += [step] if before else []
            before = stage
        for bank in range(count):
            now = _state(held.get(bank), rows.get(stage))
            if bank in open_ and (now is None or open_[bank][1:] != (*now, stage)):
                close(bank, step)
            if now is not None and bank not in open_:
                open_[bank] = (step, *now, stage)
    for bank in sorted(open_):
        close(bank, step + 1)
    lanes = tuple((float(k), f"bank {k}") for k in range(count))
    caption = (
        "What each bank holds, action after action (a load of tiles, or a process step; all steps are as wide). Dotted "
        "lines part stages; blank is free. Times of stages are in the next figure."
    )
    lanes_axis = Axis("", ticks=lanes, downwards=True, limits=(-0.6, count - 0.4))
    return Boxes(
        "banks", "Banks over time", caption, Axis("step"), lanes_axis, groups, tuple(boxes), count, tuple(lines)
    )


def _state(held: Held | None, row: StageRow | None) -> tuple[int, str] | None:
    """The state of a bank by its number, and whose map it holds."""
    if held is None:
        return None
    letter, name, _ = held
    if letter == "I" and row is not None and name == row.target.name:
        letter = "O"
    elif letter == "I" and row is not None and name != row.source.name:
        letter = "R"
    return list(_STATES).index(letter), name


def _rates(plan: Plan, rows: Sequence[StageRow]) -> list[Rate]:
    macs = {layer.name: unpadded(layer) for layer in plan.network_data.layers}
    return [Rate(row.name, macs.get(row.name, 0), row.seen.bytes, row.seen.ticks) for row in rows]

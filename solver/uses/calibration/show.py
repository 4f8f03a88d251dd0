"""A calibration for people: tables of fields and rows, and what cannot be said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from formulations.calibration import UNCOUNTED, Estimate, Price
from solver.show.tables import rows_table
from solver.uses.calibration.result import MEMORY, Calibration, Cross, Probe, RowResult, median_of

if TYPE_CHECKING:
    from rich.console import RenderableType


def calibration_tables(result: Calibration) -> list[RenderableType]:
    """Return tables and lines of text, in the order of reading."""
    us = result.machine_before.tick_ps / 1e6
    fields = zip(result.prices, result.estimates, result.ticks, strict=True)
    tables = {
        ("field", "before", "after", "after (us)", "bounds", "interval", "verdict"): [_field(*f, us) for f in fields],
        ("row", "measured", "before", "after", "error before", "error after", ""): _rows(result),
        ("left out", "rows", "error of the others", "before", "after", "prices (ticks)"): [
            _cross(result, cross) for cross in result.cross
        ],
    }
    parts: list[RenderableType] = []
    for heads, rows in tables.items():
        parts += [rows_table(list(heads), rows), ""] if rows else []
    return [*parts, *lines(result)]


def lines(result: Calibration) -> Iterator[str]:
    """What cannot be identified, what did not settle, and the errors: one line each."""
    us = result.machine_before.tick_ps / 1e6
    for price, estimate in zip(result.prices, result.estimates, strict=True):
        if estimate.verdict == "not identified":
            kept = f"{price.name} stays at {_ticks(price.value, us)}"
            yield f"cannot be identified from these rows: {_unknown(estimate, us)}; {kept}"
            yield from _anew(result, estimate.name)
        elif estimate.verdict == "forced":
            yield f"forced although it cannot be identified from these rows: {_unknown(estimate, us)}"
        elif estimate.verdict != "identified":
            yield f"{price.name} is {estimate.verdict}: other bounds would give another value"
    for a, b, cosine in result.fit.pairs:
        yield f"{a} and {b} are paid for together in all rows (cosine {cosine:.4f})"
    if result.fit.freedom < 1 and result.fitted():
        yield "as many prices as rows are free: residuals say nothing about errors, intervals are those of arithmetic"
    if result.probe is not None:
        yield _probed(result.probe)
    for row in result.rows:
        if row.missing:
            yield f"left aside: row {row.name}: {row.missing}"
    for cross in result.cross:
        if cross.note or not cross.settled:
            yield f"without {cross.name}: {cross.note}{'' if cross.settled else '; prices did not settle'}"
    settled = "settled" if result.settled else "NOT SETTLED"
    yield f"{settled} after {result.rounds} rounds{': ' if result.note else ''}{result.note}"
    used, said = result.used_rows()
    yield f"{result.machine_before.name} on {result.source}: {used} rows{', ' if said else ''}{said}"


def _unknown(estimate: Estimate, us: float) -> str:
    if estimate.reason in (UNCOUNTED, MEMORY):
        return f"{estimate.name} ({estimate.reason})"
    changed = f"by at most {max(estimate.rise, 0.001):.1%}" if estimate.rise else "by nothing"
    along = f", along with {', '.join(estimate.along)}," if estimate.along else ""
    ends = f"{_ticks(estimate.low, us)} and {_ticks(estimate.high, us)}"
    return (
        f"{estimate.name} ({estimate.reason}; with the plans of now any value between {ends}{along} changes the root "
        f"mean square residual {changed})"
    )


def _anew(result: Calibration, name: str) -> Iterator[str]:
    ends = [*result.anew.get(name, ()), result.rms]
    if len(ends) == 3:
        low, high, here = (f"{v:.2%}" if result.relative else f"{v:,.4g} us" for v in ends)
        yield f"  with plans made anew at the ends of {name}: {low} and {high} root mean square, {here} as fitted"


def _probed(probe: Probe) -> str:
    ranges = ", ".join(f"{name} {low:,}..{high:,}" for name, (low, high) in probe.ranges.items())
    return (
        f"rows that measure memory have no slope; of {probe.settings} settings within the bounds none has more than "
        f"{probe.hits} of {probe.rows} rows within one point; their mean distance is {probe.best:.1f} to "
        f"{probe.worst:.1f} points ({probe.before:.1f} before), within a point of the best are {probe.near} settings "
        f"with {ranges} ticks"
    )


def _ticks(value: float, us: float) -> str:
    return f"{value:,.0f} ticks ({value * us:,.4g} us)"


def _field(price: Price, estimate: Estimate, ticks: int, us: float) -> list[str]:
    return [
        price.name, f"{price.value:,}", f"{ticks:,}", f"{ticks * us:,.4g}", f"{price.low:,}..{price.high:,}",
        f"{estimate.low:,.1f}..{estimate.high:,.1f}", estimate.verdict,
    ]  # fmt: skip


def _rows(result: Calibration) -> list[list[str]]:
    rows = [_row(row) for row in result.rows]
    medians = (median_of(result.rows, after=after) for after in (False, True))
    return [*rows, ["median", "", "", "", *("-" if m is None else f"{m:.1%}" for m in medians), ""]]


def _row(row: RowResult) -> list[str]:
    digits = 1 if row.unit != "us" or row.measured < 1000 else 0
    values = ["-" if v is None else f"{v:,.{digits}f}" for v in (row.measured, row.before, row.after)]
    errors = ["-" if e is None else f"{e:+.1%}" for e in (row.error_before, row.error_after)]
    return [row.name, *values, *errors, row.unit + (", no plan" if row.missing else "")]


def _cross(result: Calibration, cross: Cross) -> list[str]:
    medians = [cross.learnt, median_of(cross.rows, after=False), median_of(cross.rows, after=True)]
    names = [p.name.rpartition(".")[2].removesuffix("_ticks") for p in result.prices]
    prices = ", ".join(f"{name} {ticks:,}" for name, ticks in zip(names, cross.ticks, strict=False))
    return [cross.name, str(len(cross.rows)), *("-" if m is None else f"{m:.1%}" for m in medians), prices]

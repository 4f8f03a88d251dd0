"""What a calibration says: as data, as the machine file that it writes, and for people."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from formulations.calibration import UNCOUNTED, Estimate, Identified, Price
from instances.jsonfile import write_atomically
from instances.machine.machine import Machine
from solver.plan.plan import digest
from solver.show.tables import rows_table

if TYPE_CHECKING:
    from rich.console import RenderableType

#: The first field of what ``--json`` prints.
FORMAT = "certile-calibration/1"
#: Why rows that measure memory identify no price.
MEMORY = "the rows measure memory, which a price changes only where another plan becomes best"


@dataclass(frozen=True)
class RowResult:
    """A row: measured, modelled by the machine before and after (None: no plan), in `unit` (us or %ocm)."""

    name: str
    group: str
    line: int
    unit: str
    measured: float
    before: float | None
    after: float | None
    counts: tuple[int, ...]
    missing: str

    @property
    def error_before(self) -> float | None:
        """Modelled over measured, less one."""
        return None if self.before is None else self.before / self.measured - 1

    @property
    def error_after(self) -> float | None:
        """Modelled over measured, less one."""
        return None if self.after is None else self.after / self.measured - 1

    def to_json(self) -> dict[str, object]:
        """Return the row as a JSON object."""
        return {
            "row": self.name, "group": self.group, "line": self.line, "unit": self.unit, "measured": self.measured,
            "before": self.before, "after": self.after, "error_before": self.error_before,
            "error_after": self.error_after, "missing": self.missing,
        }  # fmt: skip


def median_of(rows: Sequence[RowResult], *, after: bool) -> float | None:
    """The median of the absolute relative errors of the rows that have a plan; None without any."""
    errors = [row.error_after if after else row.error_before for row in rows]
    return median(known) if (known := [abs(error) for error in errors if error is not None]) else None


@dataclass(frozen=True)
class Cross:
    """Rows that were left out, predicted by a machine that was calibrated on the others."""

    name: str
    ticks: tuple[int, ...]
    """The prices; empty where nothing could be fitted."""
    settled: bool
    rows: tuple[RowResult, ...]
    """Those left out, `after` by that machine."""
    note: str
    learnt: float | None = None
    """Median error of the rows that it was calibrated on."""

    def to_json(self, names: Sequence[str]) -> dict[str, object]:
        """Return it as a JSON object; `names` are the fields."""
        return {
            "left_out": self.name, "prices": dict(zip(names, self.ticks, strict=False)), "settled": self.settled,
            "note": self.note, "median_error_calibrated": self.learnt,
            "median_error_before": median_of(self.rows, after=False), "median_error": median_of(self.rows, after=True),
            "rows": [row.to_json() for row in self.rows],
        }  # fmt: skip


@dataclass(frozen=True)
class Probe:
    """Rows that measure memory, planned at settings spread over the bounds."""

    settings: int
    rows: int
    hits: int
    """Most rows within a point of what was measured, at any setting."""
    before: float
    """Mean distance in points of the machine as it is."""
    best: float
    """Mean distance of the best setting."""
    worst: float
    """Mean distance of the worst setting."""
    near: int
    """Settings within a point of the best one."""
    ranges: dict[str, tuple[int, int]]
    """By field the least and the largest ticks among these."""


@dataclass(frozen=True)
class Calibration:
    """The answer of `solver.uses.calibration.calibrate`."""

    source: str
    digest: str
    relative: bool
    fixed_plans: bool
    machine_before: Machine
    machine_after: Machine
    """Keeps the name; `to_machine` is what is written."""
    prices: tuple[Price, ...]
    """The fields with their bounds, in ticks."""
    ticks: tuple[int, ...]
    """Their values after."""
    fit: Identified
    """Estimates before rounding, intervals, verdicts."""
    rounds: int
    settled: bool
    """False: prices still changed when the rounds were used up."""
    note: str
    """What else there is to say about the rounds."""
    rows: tuple[RowResult, ...]
    rms: float
    """Root mean square residual of the rows at the end: relative, or in us with absolute weights."""
    anew: Mapping[str, tuple[float, ...]]
    """The same at both ends of the interval of every price that is not identified, with plans made anew there."""
    cross: tuple[Cross, ...] = ()
    probe: Probe | None = None

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """By field, in the order of `prices`."""
        return self.fit.estimates

    @property
    def unidentified(self) -> tuple[str, ...]:
        """The fields that keep the machine's value because the rows do not identify them."""
        return tuple(e.name for e in self.estimates if e.verdict == "not identified")

    def median_error(self, *, after: bool = True) -> float | None:
        """The median of the absolute relative errors, None without any row that has a plan."""
        return median_of(self.rows, after=after)

    def used_rows(self) -> tuple[int, str]:
        """Say how many rows have a plan, and their median error before and after; an empty text without any."""
        before, after = self.median_error(after=False), self.median_error()
        said = "" if before is None or after is None else f"median error {before:.1%} before, {after:.1%} after"
        return sum(row.after is not None for row in self.rows), said

    def fitted(self) -> tuple[str, ...]:
        """The fields whose values come from the rows."""
        return tuple(e.name for e in self.estimates if e.verdict != "not identified")

    def to_machine(self) -> Machine:
        """Return the calibrated machine; every fitted field's source names the rows, the method and the residual."""
        used, said = self.used_rows()
        method = "relative" if self.relative else "absolute"
        plans = "plans of the machine before" if self.fixed_plans else "plans made anew at every change"
        errors_said = f"; {said}" if said else ""
        unsettled = "" if self.settled else "; not settled"
        sources = dict(self.machine_before.sources)
        for e, p in zip(self.estimates, self.prices, strict=True):
            if e.verdict == "not identified":
                continue
            sources[e.name] = (
                f"certile calibrate, from {self.source} ({self.digest}): bounded least squares of {method} residuals "
                f"of {used} rows in {p.low}..{p.high} ticks, {plans}{errors_said}{unsettled}; {e.verdict}, "
                f"interval {e.low:,.1f}..{e.high:,.1f} ticks"
            )
        base = self.machine_before
        unknown = f" (not identified there: {', '.join(self.unidentified)})" if self.unidentified else ""
        said = f"{base.description}; prices calibrated on {self.source}{unknown}".lstrip("; ")
        changed = {"name": f"{base.name}_calibrated", "sources": sources, "description": said}
        return self.machine_after.model_copy(update=changed)

    def machine_text(self) -> str:
        """Return the text of the machine file."""
        data = self.to_machine().model_dump(mode="json", exclude_none=True)
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the machine file, atomically; raises InputError if it cannot be written."""
        write_atomically(path, self.machine_text())

    def to_json(self) -> dict[str, object]:
        """Return everything as a JSON object."""
        names = [p.name for p in self.prices]
        return {
            "format": FORMAT, "machine": self.machine_before.name, "tick_ps": self.machine_before.tick_ps,
            "machine_digest": digest(self.machine_before.model_dump(mode="json")),
            "rows_source": self.source, "rows_digest": self.digest,
            "weights": "relative" if self.relative else "absolute", "fixed_plans": self.fixed_plans,
            "rounds": self.rounds, "settled": self.settled, "note": self.note,
            "fields": [
                _field(p, e, ticks) for p, e, ticks in zip(self.prices, self.estimates, self.ticks, strict=True)
            ],
            "unidentified": list(self.unidentified),
            "singular_values": list(self.fit.singular), "rank": self.fit.rank,
            "freedom": self.fit.freedom,
            "pairs": [{"fields": [a, b], "cosine": c} for a, b, c in self.fit.pairs],
            "rms_residual": self.rms, "rms_at_ends": {name: list(ends) for name, ends in self.anew.items()},
            "median_error_before": self.median_error(after=False), "median_error": self.median_error(),
            "rows": [{**row.to_json(), "counts": dict(zip(names, row.counts, strict=True))} for row in self.rows],
            "left_out": [cross.to_json(names) for cross in self.cross],
            "probe": None if self.probe is None else vars(self.probe),
        }  # fmt: skip


def _field(price: Price, estimate: Estimate, ticks: int) -> dict[str, object]:
    return {
        "field": price.name, "before": price.value, "after": ticks, "bounds": [price.low, price.high],
        "estimate": estimate.value, "interval": [estimate.low, estimate.high], "rise": estimate.rise,
        "verdict": estimate.verdict, "reason": estimate.reason, "along": list(estimate.along),
    }  # fmt: skip


# ---- tables of fields and rows, and what cannot be said --------------------------------------------------------------


def calibration_tables(result: Calibration) -> list[RenderableType]:
    """Return tables and lines of text, in the order of reading."""
    us = result.machine_before.tick_ps / 1e6
    medians = [_percent(result.median_error(after=after)) for after in (False, True)]
    tables = {
        ("field", "before", "after", "after (us)", "bounds", "interval", "verdict"): [
            [price.name, f"{price.value:,}", f"{ticks:,}", f"{ticks * us:,.4g}", f"{price.low:,}..{price.high:,}",
             f"{estimate.low:,.1f}..{estimate.high:,.1f}", estimate.verdict]
            for price, estimate, ticks in zip(result.prices, result.estimates, result.ticks, strict=True)
        ],
        ("row", "measured", "before", "after", "error before", "error after", ""): [
            *map(_row, result.rows), ["median", "", "", "", *medians, ""],
        ],
        ("left out", "rows", "error of the others", "before", "after", "prices (ticks)"): [
            _cross(result, cross) for cross in result.cross
        ],
    }  # fmt: skip
    parts: list[RenderableType] = []
    for heads, rows in tables.items():
        parts += [rows_table(list(heads), rows), ""] if rows else []
    return [*parts, *lines(result)]


def _percent(error: float | None) -> str:
    return "-" if error is None else f"{error:.1%}"


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


def _row(row: RowResult) -> list[str]:
    digits = 1 if row.unit != "us" or row.measured < 1000 else 0
    values = ["-" if v is None else f"{v:,.{digits}f}" for v in (row.measured, row.before, row.after)]
    errors = ["-" if e is None else f"{e:+.1%}" for e in (row.error_before, row.error_after)]
    return [row.name, *values, *errors, row.unit + (", no plan" if row.missing else "")]


def _cross(result: Calibration, cross: Cross) -> list[str]:
    medians = (cross.learnt, median_of(cross.rows, after=False), median_of(cross.rows, after=True))
    names = [p.name.rpartition(".")[2].removesuffix("_ticks") for p in result.prices]
    prices = ", ".join(f"{name} {ticks:,}" for name, ticks in zip(names, cross.ticks, strict=False))
    return [cross.name, str(len(cross.rows)), *map(_percent, medians), prices]

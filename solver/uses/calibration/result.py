"""What a calibration says, as data; and the machine file that it writes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from formulations.calibration import Estimate, Identified, Price
from instances.jsonfile import write_atomically
from instances.machine.machine import Machine
from solver.plan.plan import digest

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

"""`calibrate`: the prices of a machine that explain measured rows best, and those of which the rows say nothing.

Model: `formulations.calibration`. Two kinds of rows: those with a plan file take its schedules at any prices; of the
others the plan is decided again whenever prices change: what was measured was the best plan of the true machine.
So rounds alternate: plan all rows at the prices x, count what the plans pay, fit prices y to these counts, go to y if
the squared residuals fall there with the plans made anew (else half, a quarter, an eighth of the way), until nothing
changes. Every residual that is reported is of plans made and priced at whole ticks.

Nothing is silent: rows without a plan, prices that are held, and rounds that did not settle are all in the result.

`pick_prices` reads which prices are fitted, between which bounds: ``transfer.burst_ticks=0..500ns``; `finer` makes
machines in finer ticks.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median

import numpy as np
from numpy.typing import NDArray

from formulations.calibration import UNCOUNTED, Identified, Price, identify, rounded
from hwmodels.nest.price.closed_form import PRICE_FIELDS, prices_of, with_prices
from hwmodels.transfer import PRICES
from instances.errors import InputError, choices, did_you_mean
from instances.jsonfile import shown
from instances.machine.machine import Machine
from instances.measured import UNITS_PS, Measured, MeasuredRows, load_measured, parse_number
from instances.problems import either, nested
from solver.ask.options import as_texts, check_jobs, pick_machine
from solver.ask.progress import Progress, Silent
from solver.uses.calibration.result import MEMORY, Calibration, Cross, Probe, RowResult
from solver.uses.calibration.rows import Case, Priced, Pricing, cases_of

#: Default bounds: from nothing to so many times the machine's value; of a fixed time per layer, 100 us.
_TIMES = 10
_LAYER_PS = 100 * UNITS_PS["us"]
#: A price above this is a typing error (in ticks).
_LARGEST = 10**9
_AMOUNT = re.compile(r"(?P<number>[-+0-9.]*([eE][-+]?[0-9]+)?)\s*(?P<unit>[A-Za-z]*)")
_EXAMPLE = "transfer.burst_ticks=0..500ns"


def pick_prices(machine: Machine, texts: Sequence[str], force: Sequence[str]) -> tuple[Price, ...]:
    """Read ``--fit`` and ``--force``; without texts every price that the machine has, and `layer_ticks`.

    Raises InputError for unknown fields, bounds that are none, a field named twice, or one that the machine cannot
    price.
    """
    values = prices_of(machine)
    wanted: dict[str, str] = {}
    for text in texts:
        name, _, bounds = (part.strip() for part in text.partition("="))
        field = _resolve(name)
        if field in wanted:
            raise InputError(f"--fit {text}: {field} is named twice")
        wanted[field] = bounds
    forced = {_resolve(name) for name in force}
    if not texts:
        wanted = {field: "" for field, value in values.items() if value or field == "layer_ticks"}
    for field in forced - wanted.keys():
        raise InputError(f"--force {field}: only fields that are fitted can be forced: {', '.join(wanted)}")
    prices = []
    for field, bounds in wanted.items():
        _check(machine, field)
        low, high = _bounds(machine, field, bounds) if bounds else _default(machine, field, values[field])
        prices.append(Price(field, low, high, values[field], field in forced))
    return tuple(prices)


def _resolve(name: str) -> str:
    matches = [field for field in PRICE_FIELDS if name in (field, field.rpartition(".")[2])]
    if matches:
        return matches[0]
    hint = did_you_mean(name, [*PRICE_FIELDS, *(f.rpartition(".")[2] for f in PRICE_FIELDS)], 2, 0.5)
    raise InputError(f"price {shown(name)}: {hint}expected {', '.join(PRICE_FIELDS)}, as in --fit {_EXAMPLE}")


def _check(machine: Machine, field: str) -> None:
    count, price = next(((name, one) for name, one in PRICES.items() if field == f"transfer.{one.field}"), ("", None))
    if price and price.whole:
        raise InputError(f"--fit {field}: plans of problem {machine.problem} count no DRAM rows and no refresh periods")
    if price and price.size and not getattr(machine.transfer, price.size):
        raise InputError(f"--fit {field}: {machine.name} has no {count}: add --set transfer.{price.size}=128")


def _default(machine: Machine, field: str, value: int) -> tuple[int, int]:
    if value:
        return 0, min(_TIMES * value, _LARGEST)
    if field == "layer_ticks":
        return 0, _LAYER_PS // machine.tick_ps
    raise InputError(f"--fit {field}: is 0 on {machine.name}, so give bounds: --fit {field}=0..1us")


def _bounds(machine: Machine, field: str, text: str) -> tuple[int, int]:
    """Read ``LOW..HIGH``; a unit behind HIGH is LOW's too where that has none. Whole ticks inside the bounds."""
    where = f"--fit {field}={text}"
    low, dots, high = (part.strip() for part in text.partition(".."))
    if not dots:
        raise InputError(f"{where}: write LOW..HIGH in ticks or with a unit ({', '.join(UNITS_PS)}): {_EXAMPLE}")
    unit = _unit(high)
    top = _in_ticks(high, unit, machine, where)
    bottom = _in_ticks(low, _unit(low) or unit, machine, where)
    least, most = math.ceil(bottom), math.floor(top)
    if bottom > top:
        raise InputError(f"{where}: {low} is above {high}")
    if least > most:
        raise InputError(
            f"{where}: no whole number of ticks ({machine.tick_ps} ps) is inside; --tick-ps makes them finer"
        )
    if most > _LARGEST:
        raise InputError(f"{where}: {most} ticks, at most {_LARGEST} are fitted")
    return least, most


def _unit(text: str) -> str:
    match = _AMOUNT.fullmatch(text)
    return match["unit"] if match else ""


def _in_ticks(text: str, unit: str, machine: Machine, where: str) -> Fraction:
    if unit not in ("", "ticks", *UNITS_PS):
        raise InputError(f"{where}: unknown unit {shown(unit)}: expected ticks, {', '.join(UNITS_PS)}")
    match = _AMOUNT.fullmatch(text)
    number = parse_number(match["number"] if match else text, where)
    if number < 0:
        raise InputError(f"{where}: a price is not negative")
    return number * UNITS_PS[unit] / machine.tick_ps if unit in UNITS_PS else number


def finer(machine: Machine, tick_ps: int) -> Machine:
    """Return the same machine in ticks of `tick_ps` picoseconds; raises InputError unless they divide its own."""
    if isinstance(tick_ps, bool) or not isinstance(tick_ps, int) or tick_ps < 1 or machine.tick_ps % tick_ps:
        raise InputError(
            f"--tick-ps {shown(tick_ps)}: ticks of {machine.name} have {machine.tick_ps} ps; a divisor is needed"
        )
    factor = machine.tick_ps // tick_ps
    scaled = with_prices(machine, {field: value * factor for field, value in prices_of(machine).items()})
    said = f"{tick_ps} ps instead of {machine.tick_ps} ps, so that fitted prices are rounded less"
    return scaled.model_copy(update={"tick_ps": tick_ps, "sources": {**machine.sources, "tick_ps": said}})


Floats = NDArray[np.float64]
#: Of `leave_out`: every group in turn.
EACH = "each"
#: Settings within the bounds at which plans are made where rows measure memory, and what counts as a hit, in points.
PROBES, POINT = 64, 1.0
#: Squared residuals have to fall by this part.
_LESS = 1e-6
#: Prices at the ends of intervals are no whole ticks: these are so many times finer.
_FINE = 64
_HALVINGS = 3
MOST_ROUNDS = 1000


def calibrate(
    machine: Machine | str | os.PathLike[str],
    rows: MeasuredRows | str | os.PathLike[str],
    *,
    fit: str | Iterable[str] = (),
    force: str | Iterable[str] = (),
    leave_out: str | Iterable[str] = (),
    weights: str = "relative",
    fixed_plans: bool = False,
    rounds: int = 10,
    settings: str | Iterable[str] | Mapping[str, str | int] | None = None,
    tick_ps: int | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Calibration:
    """Fit prices of a machine to measured rows.

    Parameters
    ----------
    machine : Machine, str or path
        Of problem tiling or slicing.
    rows : MeasuredRows, str or path
        A bundled name (``certile list rows``) or a CSV file (`instances.measured`).
    fit : texts
        ``FIELD=LOW..HIGH`` with units (``transfer.burst_ticks=0..500ns``), or ``FIELD`` for default bounds; by default
        every price that the machine has, and `layer_ticks`.
    force : texts
        Fields to fit even if the rows do not identify them.
    leave_out : texts
        Groups of rows (or single rows) that are left out one after the other, each predicted by the others; ``each``:
        every group in turn.
    weights : {"relative", "absolute"}
        Of the residuals whose squares are minimised.
    fixed_plans : bool
        Keep the plans that are best on the machine as it is.
    rounds : int
        At most so many times plans are made anew.
    settings : texts or mapping
        Machine fields to override first.
    tick_ps : int, optional
        Express the machine in finer ticks first, so that rounding costs less.
    jobs : int
        Processes; 0 means all processors.

    Returns
    -------
    Calibration
        With the calibrated machine, the residuals of every row, and a verdict on every field.

    Raises
    ------
    InputError
        For bad input.
    """
    before = pick_machine(machine, as_texts("settings", settings))
    if before.problem not in nested("layers"):
        fitted = either(nested("layers"))
        raise InputError(f"machine {before.name}: calibrate fits prices of problems {fitted}, not {before.problem}")
    if weights not in ("relative", "absolute"):
        raise InputError(f"weights {shown(weights)}: expected relative or absolute")
    if isinstance(rounds, bool) or not isinstance(rounds, int) or not 1 <= rounds <= MOST_ROUNDS:
        raise InputError(f"rounds {shown(rounds)}: a number from 1 to {MOST_ROUNDS} is needed")
    processes = check_jobs(jobs)
    table = rows if isinstance(rows, MeasuredRows) else load_measured(rows)
    before = before if tick_ps is None else finer(before, tick_ps)
    prices = pick_prices(before, as_texts("fit", fit), as_texts("force", force))
    _refuse_cycles(table.rows, prices)
    cases = cases_of(table.rows, before, f"rows {table.source}")
    groups = _groups(cases, as_texts("leave_out", leave_out))
    pricing = Pricing(
        before, [p.name for p in prices], fixed=fixed_plans, jobs=processes, progress=progress or Silent()
    )
    return _Calibrator(before, table, prices, cases, pricing, weights == "relative", rounds).run(groups)


def _refuse_cycles(rows: Iterable[Measured], prices: Sequence[Price]) -> None:
    cycles = next((row for row in rows if row.unit == "cycles"), None)
    if cycles is not None and any(p.name == "compute.cycle_ticks" for p in prices):
        raise InputError(
            f"line {cycles.line}: a row in cycles says nothing about the length of a cycle: "
            "leave compute.cycle_ticks out of --fit, or write a unit of time"
        )


def _groups(cases: Sequence[Case], names: Sequence[str]) -> list[tuple[str, frozenset[str]]]:
    """The names of the rows to leave out together."""
    known = dict.fromkeys(case.row.group for case in cases)
    wanted = [group for name in names for group in (known if name == EACH else [name])]
    groups = []
    for name in dict.fromkeys(wanted):
        members = frozenset(case.row.name for case in cases if name in (case.row.group, case.row.name))
        if not members:
            raise InputError(
                f"--leave-out {shown(name)}: no such rows; expected {EACH}, {choices(known)}, or a row's name"
            )
        if len(members) == len(cases):
            raise InputError(f"--leave-out {shown(name)}: these are all rows, nothing would be left to calibrate on")
        groups.append((name, members))
    return groups


@dataclass(frozen=True)
class _Settled:
    """Prices in ticks after rounds of planning and fitting."""

    ticks: tuple[int, ...]
    fit: Identified
    rounds: int
    settled: bool
    note: str


@dataclass
class _Calibrator:
    machine: Machine
    table: MeasuredRows
    prices: tuple[Price, ...]
    cases: tuple[Case, ...]
    pricing: Pricing
    relative: bool
    rounds: int

    def run(self, groups: Sequence[tuple[str, frozenset[str]]]) -> Calibration:
        start = tuple(p.value for p in self.prices)
        first = self.pricing.at(start, self.cases, "rows as the machine is")
        usable = [now.case for now in first if now.value is not None]
        if not usable:
            raise InputError(f"rows {self.table.source}: no row has a plan on {self.machine.name}: {first[0].missing}")
        result = self._settle(usable, "all rows")
        last = self.pricing.at(result.ticks, self.cases, "rows after")
        after = with_prices(self.machine, {p.name: t for p, t in zip(self.prices, result.ticks, strict=True)})
        fit = result.fit
        if all(case.row.occupancy for case in usable):  # they have no slope
            fit = replace(fit, estimates=tuple(replace(e, reason=MEMORY) for e in fit.estimates))
        return Calibration(
            source=self.table.source, digest=self.table.digest, relative=self.relative,
            fixed_plans=self.pricing.fixed, machine_before=self.machine, machine_after=after, prices=self.prices,
            ticks=result.ticks, fit=fit, rounds=result.rounds, settled=result.settled, note=result.note,
            rows=tuple(_row(*x, self.machine.tick_ps) for x in zip(first, last, strict=True)),
            cross=tuple(self._cross(name, members, usable) for name, members in groups),
            probe=self._probe(usable),
            rms=self._rms(self.pricing.at(result.ticks, usable, "rows after")),
            anew=self._anew(usable, result.fit),
        )  # fmt: skip

    def _cross(self, name: str, members: frozenset[str], usable: Sequence[Case]) -> Cross:
        """Calibrate without some rows, and look at them then."""
        rest = [case for case in usable if case.row.name not in members]
        out = [case for case in usable if case.row.name in members]
        if not rest or not out:
            missing = "left out" if not out else "others"
            return Cross(name, (), True, (), f"none of the rows {missing} has a plan")
        result = self._settle(rest, f"without {name}")
        first = self.pricing.at(tuple(p.value for p in self.prices), out, name)
        last = self.pricing.at(result.ticks, out, name)
        rows = tuple(_row(*x, self.machine.tick_ps) for x in zip(first, last, strict=True))
        now = self.pricing.at(result.ticks, rest, name)
        learnt = median(abs((p.value or 0) / float(p.case.measured) - 1) for p in now)
        held = ", ".join(e.name for e in result.fit.estimates if e.verdict == "not identified")
        note = f"held: {held}" if held else ""
        return Cross(name, result.ticks, result.settled, rows, note, learnt)

    # --- rounds ------------------------------------------------------------------------------------------------------

    def _settle(self, cases: Sequence[Case], what: str) -> _Settled:
        """Plan, fit, and go where the residuals fall, until nothing changes."""
        x = tuple(p.value for p in self.prices)
        held: frozenset[str] = frozenset()
        released: set[str] = set()
        now = self.pricing.at(x, cases, f"{what}, round 1")
        for number in range(1, self.rounds + 1):
            system = self._system(now, x)
            fit = identify(*system, self.prices, x, held - released)
            left_over = {e.name for e in fit.estimates if e.verdict == "not identified"}
            y = tuple(rounded(*system, self.prices, fit)[p.name] for p in self.prices)
            if y == x:
                again = {e.name for e in fit.estimates if e.open and e.name in held} - released
                if not again:
                    return _Settled(x, fit, number, True, "")
                released |= again  # with the plans of now the rows say something about it
                continue
            if number == self.rounds:
                break
            note = f"{what}, round {number + 1}"
            if left_over != held:  # another set of prices: squares of before do not compare
                held, x = frozenset(left_over), y
                now = self.pricing.at(x, cases, note)
                continue
            step = self._step(cases, now, x, y, note)
            if step is None:
                said = "the fit asks for other prices, with which plans change and residuals do not fall: a kink"
                return _Settled(x, fit, number, True, said)
            x, now = step
        said = f"prices still change after {self.rounds} rounds: the last ones are reported"
        return _Settled(x, fit, self.rounds, False, said)

    def _step(
        self, cases: Sequence[Case], now: list[Priced], x: tuple[int, ...], y: tuple[int, ...], note: str
    ) -> tuple[tuple[int, ...], list[Priced]] | None:
        """The first prices on the way from x to y with smaller squares; None if there are none."""
        least = self._squares(now)
        for _ in range(_HALVINGS + 1):
            then = self.pricing.at(y, cases, note)
            if self._squares(then) < least * (1 - _LESS):
                return y, then
            y = tuple(round((a + b) / 2) for a, b in zip(x, y, strict=True))
            if y == x:
                break
        return None

    def _weight(self, case: Case) -> float:
        return 1 / float(case.measured) if self.relative else 1.0

    def _squares(self, priced: Sequence[Priced]) -> float:
        return sum((self._weight(p.case) * p.residual) ** 2 for p in priced)

    def _rms(self, priced: Sequence[Priced], scale: int = 1) -> float:
        """Root mean square residual: relative, or in us; of values that are `scale` times too large."""
        real = [replace(p, value=(p.value or 0) / (1 if p.case.row.occupancy else scale)) for p in priced]
        rms = math.sqrt(self._squares(real) / len(real))
        return rms if self.relative else rms * self.machine.tick_ps / 1e6

    def _anew(self, usable: Sequence[Case], fit: Identified) -> dict[str, tuple[float, ...]]:
        """The residuals at the ends of what is open, with plans made anew: intervals know the plans of now only."""
        scale = _FINE
        fine = with_prices(self.machine, {f: v * scale for f, v in prices_of(self.machine).items()})
        old = self.pricing
        pricing = Pricing(fine, old.fields, fixed=False, jobs=old.jobs, progress=old.progress)
        anew = {}
        for e in fit.estimates:
            if e.verdict == "not identified" and e.ends and not self.pricing.fixed and e.reason != UNCOUNTED:
                ends = [tuple(round(v * scale) for v in end) for end in e.ends]
                priced = pricing.at_all(ends, usable, f"ends of {e.name}")
                anew[e.name] = tuple(self._rms(end, scale) for end in priced)
        return anew

    def _system(self, now: Sequence[Priced], x: Sequence[int]) -> tuple[Floats, Floats]:
        """A and b of the model: the weighted counts, and what the fitted prices have to explain."""
        weights = np.array([self._weight(p.case) for p in now])
        counts = np.array([p.counts for p in now], np.float64).reshape(len(now), len(self.prices))
        explained = counts @ np.array(x, np.float64) - np.array([p.residual for p in now])
        return counts * weights[:, None], weights * explained

    # --- rows that measure memory ------------------------------------------------------------------------------------

    def _probe(self, usable: Sequence[Case]) -> Probe | None:
        """Plan the rows that measure memory at settings spread over the bounds: they have no slope to follow."""
        cases = [case for case in usable if case.row.occupancy]
        if not cases or self.pricing.fixed:
            return None
        settings = [tuple(_spread(p, k, j) for j, p in enumerate(self.prices)) for k in range(1, PROBES + 1)]
        settings.insert(0, tuple(p.value for p in self.prices))
        errors, hits = [], []
        for priced in self.pricing.at_all(settings, cases, "settings within the bounds"):
            points = [abs(p.residual) for p in priced]
            errors.append(sum(points) / len(points))
            hits.append(sum(p <= POINT for p in points))
        near = [s for s, e in zip(settings, errors, strict=True) if e <= min(errors) + POINT]
        ranges = {p.name: (min(s[j] for s in near), max(s[j] for s in near)) for j, p in enumerate(self.prices)}
        return Probe(len(settings), len(cases), max(hits), errors[0], min(errors), max(errors), len(near), ranges)


def _spread(price: Price, number: int, axis: int) -> int:
    """The van der Corput sequence of an axis, squared so that small prices come often."""
    base, share, part = (2, 3, 5, 7, 11, 13, 17, 19)[axis], 0.0, 1.0
    while number:
        part /= base
        share += part * (number % base)
        number //= base
    return price.low + round(price.span * share**2)


def _row(first: Priced, last: Priced, tick_ps: int) -> RowResult:
    case = first.case
    per = 1.0 if case.row.occupancy else tick_ps / 1e6
    before, after = (None if p.value is None else p.value * per for p in (first, last))
    return RowResult(
        case.row.name, case.row.group, case.row.line, "%ocm" if case.row.occupancy else "us",
        float(case.measured) * per, before, after, last.counts, last.missing,
    )  # fmt: skip

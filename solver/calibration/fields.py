"""Which prices are fitted, between which bounds: ``transfer.burst_ticks=0..500ns``; and machines in finer ticks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

from formulations.calibration import Price
from hwmodels.nest.sensitivity import PRICES, prices_of, with_prices
from instances.errors import InputError, did_you_mean
from instances.jsonfile import shown
from instances.machine import Machine
from instances.measured import UNITS_PS, parse_number

#: Default bounds: from nothing to so many times the machine's value; of a fixed time per layer, 100 us.
_TIMES = 10
_LAYER_PS = 100 * UNITS_PS["us"]
#: A price above this is a typing error (in ticks).
_LARGEST = 10**9
_AMOUNT = re.compile(r"(?P<number>[-+0-9.]*([eE][-+]?[0-9]+)?)\s*(?P<unit>[A-Za-z]*)")
_EXAMPLE = "transfer.burst_ticks=0..500ns"


def pick_prices(machine: Machine, texts: Sequence[str], force: Sequence[str]) -> tuple[Price, ...]:
    """Read ``--fit`` and ``--force``; without texts every price that the machine has, and `layer_ticks`.

    Raises
    ------
    InputError
        For unknown fields, bounds that are none, a field named twice, or one that the machine cannot price.
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
        low, high = (
            _bounds(machine, field, bounds, values[field]) if bounds else _default(machine, field, values[field])
        )
        prices.append(Price(field, low, high, values[field], field in forced))
    return tuple(prices)


def _resolve(name: str) -> str:
    matches = [field for field in PRICES if name in (field, field.rpartition(".")[2])]
    if matches:
        return matches[0]
    hint = did_you_mean(name, [*PRICES, *(f.rpartition(".")[2] for f in PRICES)], 2, 0.5)
    raise InputError(f"price {shown(name)}: {hint}expected {', '.join(PRICES)}, as in --fit {_EXAMPLE}")


def _check(machine: Machine, field: str) -> None:
    kind = field.rpartition(".")[2].removesuffix("_ticks")
    if kind in ("row", "refresh"):
        raise InputError(f"--fit {field}: plans of problem {machine.problem} count no DRAM rows and no refresh periods")
    if kind == "burst" and not machine.transfer.burst_bytes:
        raise InputError(f"--fit {field}: {machine.name} has no bursts: add --set transfer.burst_bytes=128")


def _default(machine: Machine, field: str, value: int) -> tuple[int, int]:
    if value:
        return 0, min(_TIMES * value, _LARGEST)
    if field == "layer_ticks":
        return 0, _LAYER_PS // machine.tick_ps
    raise InputError(f"--fit {field}: is 0 on {machine.name}, so give bounds: --fit {field}=0..1us")


def _bounds(machine: Machine, field: str, text: str, value: int) -> tuple[int, int]:
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

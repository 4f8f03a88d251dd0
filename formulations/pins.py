"""Pins: the user's word on any decision, as ``name op value`` texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.bilinear import Ints
from instances.errors import InputError, choices

_PIN = re.compile(r"\s*([A-Za-z_]+)\s*(<=|>=|!=|=|%)\s*(.+?)\s*")


@dataclass(frozen=True)
class Decision:
    """One decision that may be pinned: a tile size (`values` empty) or a choice among `values`.

    `open` choices take further values that the formulation itself checks.
    """

    help: str
    values: tuple[str, ...] = ()
    open: bool = False
    decimal: bool = False
    """Whether it takes a number with decimals."""
    least: int | None = None
    """Beside `values` it takes numbers from this one on, if it is given."""
    sized: bool = False
    """Whether its number is one of bytes, such as 16KiB."""

    def __str__(self) -> str:
        return self.help


@dataclass(frozen=True)
class Pin:
    """One demand: ``T_C = 73``, ``T_C <= 73``, ``T_C % 16``, ``dataflow != OS``."""

    name: str
    op: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}{self.op}{self.value}"

    def keeps(self, values: Ints) -> NDArray[np.bool_]:
        """Which of these tile sizes the demand allows."""
        number = int(self.value)
        tests = {"=": values == number, "!=": values != number, "<=": values <= number, ">=": values >= number}
        kept: NDArray[np.bool_] = tests[self.op] if self.op in tests else values % number == 0
        return kept


@dataclass(frozen=True)
class Pins:
    """All demands of one call."""

    pins: tuple[Pin, ...] = ()

    def of(self, name: str) -> tuple[Pin, ...]:
        """The demands on one decision."""
        return tuple(p for p in self.pins if p.name == name)

    def sizes(self, name: str, values: Ints) -> Ints:
        """The tile sizes that all demands on `name` allow."""
        for pin in self.of(name):
            values = values[pin.keeps(values)]
        return values

    def allows(self, name: str, value: str) -> bool:
        """Whether a choice is allowed."""
        return all((p.value == value) == (p.op == "=") for p in self.of(name))

    def without(self, pin: Pin) -> Pins:
        """All demands but one."""
        return Pins(tuple(p for p in self.pins if p != pin))

    def plus(self, name: str, value: str) -> Pins:
        """These demands and ``name = value``."""
        return Pins(tuple(dict.fromkeys((*self.pins, Pin(name, "=", value)))))

    def to_json(self) -> list[str]:
        """The demands as texts."""
        return [str(p) for p in self.pins]


def parse_pins(texts: Sequence[str], decisions: Mapping[str, Decision]) -> Pins:
    """Read pins; a demand stated twice counts once, so that `without` can take it away.

    Raises InputError if a text is malformed, or names an unknown decision or value.
    """
    return Pins(tuple(dict.fromkeys(_pin(text, decisions) for text in texts)))


def _pin(text: str, decisions: Mapping[str, Decision]) -> Pin:
    match = _PIN.fullmatch(text)
    if not match:
        raise InputError(f"pin {text!r}: expected NAME=VALUE, NAME!=VALUE, NAME<=N, NAME>=N or NAME%N")
    name, op, value = match.groups()
    if name not in decisions:
        close = get_close_matches(name, decisions, 1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        if name.startswith("cuts_") and "pieces" in decisions:
            hint = " (where loops cut cannot be pinned; pieces=even wants equal steps)"
        raise InputError(f"pin {text!r}: unknown decision {name!r}{hint}, expected {choices(decisions)}")
    decision = decisions[name]
    if decision.decimal:
        if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", value):
            raise InputError(f"pin {text!r}: {name} takes a number such as 1.05, got {value!r}")
        return Pin(name, op, value)
    if decision.least is not None:
        if re.fullmatch(r"[0-9]{1,9}", value) and int(value) >= decision.least:
            return Pin(name, op, str(int(value)))
        if value not in decision.values or op not in ("=", "!="):
            words = f"{', '.join(decision.values)} or an integer from {decision.least} on"
            raise InputError(f"pin {text!r}: {name} takes {words}, such as {name}<=1, got {value!r}")
    if decision.sized and (sized := re.fullmatch(r"([0-9]{1,6}) *[Kk](i?[Bb])?", value)):
        value = str(1024 * int(sized[1]))
    if not decision.values:
        if not re.fullmatch(r"[0-9]{1,9}", value) or int(value) < 1:
            raise InputError(f"pin {text!r}: {name} takes a positive integer, got {value!r}")
        return Pin(name, op, str(int(value)))
    if op not in ("=", "!="):
        raise InputError(f"pin {text!r}: {name} is one of {choices(decision.values)}; only = and != apply")
    value = {v.lower(): v for v in decision.values}.get(value.lower(), value)
    if value not in decision.values and not decision.open:
        raise InputError(f"pin {text!r}: {name} takes {choices(decision.values)}, got {value!r}")
    return Pin(name, op, value)

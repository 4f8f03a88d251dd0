"""Rules that keep points of a sweep or leave them out, and filters of its rows: names with values.

A rule holds where all its names do; a name holds where one of its values does. A value is a text that is compared as
it is, or begins with ``<=``, ``>=``, ``<``, ``>`` or ``!=`` and a number or a size: ``>=64KiB``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from instances.errors import InputError, choices, did_you_mean
from solver.uses.sweep.spec import as_number

#: Names of a point beside the fields in `set` (`solver.uses.sweep.tasks.Point.values` has them).
NAMES = ("network", "layer", "machine", "problem", "objective", "engine", "pins")
_COMPARED = re.compile(r"(<=|>=|!=|<|>|=)?\s*(.*)", re.DOTALL)


def matches(value: str, wanted: str) -> bool:
    """Whether a value is what a rule wants."""
    match = _COMPARED.fullmatch(wanted)
    sign, text = (match[1] or "=", match[2]) if match else ("=", wanted)
    left, right = _number(value), _number(text)
    if sign in ("=", "!="):
        same = value == text or (left is not None and left == right)
        return same == (sign == "=")
    if left is None or right is None:
        return False
    return {"<=": left <= right, ">=": left >= right, "<": left < right, ">": left > right}[sign]


def _number(text: str) -> int | None:
    try:
        return as_number(text)
    except ValueError:
        return None


class Rules:
    """What is kept and what is left out."""

    def __init__(
        self, include: Sequence[Mapping[str, Sequence[str]]], exclude: Sequence[Mapping[str, Sequence[str]]]
    ) -> None:
        self.include, self.exclude = include, exclude

    def __bool__(self) -> bool:
        """Whether there is a rule at all."""
        return bool(self.include or self.exclude)

    def keep(self, values: Mapping[str, str]) -> bool:
        """Whether a point with these values, by name, is asked."""
        if self.include and not any(_holds(rule, values) for rule in self.include):
            return False
        return not any(_holds(rule, values) for rule in self.exclude)

    def faults(self, path: str, fields: Iterable[str]) -> Iterator[str]:
        """Names and comparisons in rules that mean nothing."""
        known = [*NAMES, *fields]
        for kind, rules in (("include", self.include), ("exclude", self.exclude)):
            for k, rule in enumerate(rules):
                for name, values in rule.items():
                    where = f"{path}{kind}[{k}].{name}"
                    if name not in known:
                        yield f"{where}: unknown name, {did_you_mean(name, known)}expected {choices(known)}"
                    yield from (f"{where}: {text}: {fault}" for text in values if (fault := comparison_fault(text)))


def comparison_fault(text: str) -> str:
    """Return what is wrong with a value of a rule, empty if nothing is."""
    match = _COMPARED.fullmatch(text)
    if match is None or match[1] in (None, "=", "!="):
        return ""
    try:
        number = as_number(match[2])
    except ValueError as error:
        return str(error)
    return "" if number is not None else f"{match[1]} is followed by a number or a size, such as {match[1]}64KiB"


def _holds(rule: Mapping[str, Sequence[str]], values: Mapping[str, str]) -> bool:
    return all(any(matches(values.get(name, ""), wanted) for wanted in rule[name]) for name in rule)


def parse_filters(texts: Iterable[str], known: Iterable[str]) -> list[tuple[str, str]]:
    """Read filters ``NAME=VALUE``, ``NAME>=64KiB``; raises InputError for others."""
    names, found = list(known), []
    for text in texts:
        match = re.fullmatch(r"\s*([\w.]+)\s*((?:<=|>=|!=|<|>|=).+)", text, re.DOTALL)
        if match is None or (fault := comparison_fault(match[2])):
            said = "" if match is None else f": {fault}"
            raise InputError(f"filter {text!r}{said or ': write NAME=VALUE, such as layer=conv1, ocm_bytes>=64KiB'}")
        if match[1] not in names:
            hint = did_you_mean(match[1], names)
            raise InputError(f"filter {text!r}: unknown name {match[1]!r}: {hint}expected {choices(names)}")
        found.append((match[1], match[2].strip()))
    return found

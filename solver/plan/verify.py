"""Figures of schedules as plans state them, for `solve` and `check` alike, and how these disagree."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pydantic_core import to_jsonable_python

from instances.errors import PlanMismatch as PlanMismatch

LITERAL_NOTE = (
    "priced by the paper's literal equations; replay executes the nest physically, its figures stand beside the price"
)


def gap_of(value: int | None, bound: int | None) -> float | None:
    """Return ``(value - bound) / value``: 0.0 when equal, None when either is unknown."""
    if value is None or bound is None:
        return None
    return 0.0 if value == bound or value == 0 else (value - bound) / value


def unequal(where: str, stated: object, derived: object) -> Iterator[str]:
    """Yield one line if what a plan states is not what follows from its decisions."""
    if stated != derived:
        yield f"{where}: the plan says {stated}, it is {derived}"


#: Lines about one field of a plan.
_MOST = 5


def differences(where: str, stated: object, derived: object) -> Iterator[str]:
    """Yield a line for every place, five at most, where what a plan states is not what follows from its decisions."""
    yield from islice(_differences(where, to_jsonable_python(stated), to_jsonable_python(derived)), _MOST)


def _differences(where: str, one: object, two: object) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        for name in one:
            yield from _differences(f"{where}.{name}", one[name], two[name])
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for number, pair in enumerate(zip(one, two, strict=True)):
            yield from _differences(f"{where}[{number}]", *pair)
    else:
        yield from unequal(where, one, two)

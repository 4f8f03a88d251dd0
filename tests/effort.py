"""How much is tried: a little at every change, everything where `CERTILE_THOROUGH` is set (`make thorough`)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

#: Whether everything is asked for: tests marked ``thorough``, and as many random cases as `tries` has.
THOROUGH = bool(os.environ.get("CERTILE_THOROUGH"))


def tries(few: int, many: int) -> int:
    """As many random cases as are tried: `many` where everything is asked for, else `few`."""
    return many if THOROUGH else few


def thinned(cases: Iterable[T], step: int) -> list[T]:
    """Every `step`-th of the cases, beginning with the first; all where everything is asked for."""
    return list(cases)[:: 1 if THOROUGH else step]


def in_turn(cases: Iterable[tuple[object, ...]], others: Sequence[object]) -> list[tuple[object, ...]]:
    """Each case with one of the others, in turn; with each of them where everything is asked for."""
    return [
        (*case, other)
        for k, case in enumerate(cases)
        for other in (others if THOROUGH else [others[k % len(others)]])
    ]  # fmt: skip

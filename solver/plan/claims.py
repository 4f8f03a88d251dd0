"""What a plan claims, part by part, how another plan of the same request refutes or proves it, and how plans disagree.

Let v = (v_1, ..., v_n) be the objectives of a part (a layer, or a whole network) in their order, and b_k a bound of the
k-th: no plan whose objectives before the k-th are at most v_1, ..., v_(k-1) is below b_k in the k-th. OPTIMAL says that
b_k = v_k for all k.

* A plan of the same request with objectives w **refutes** b_k if w_j <= v_j for all j < k and w_k < b_k. Where there
  is no v (nothing is planned), b_1 is refuted by w_1 < b_1, and INFEASIBLE by any plan.
* Another answer with objectives w and proven bounds c **proves** b_k if c_k >= b_k and v_j <= w_j for all j < k: what
  c_k holds for then contains what b_k is claimed for. INFEASIBLE is proven by INFEASIBLE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Literal

from pydantic import Field
from pydantic_core import to_jsonable_python

Status = Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "NO_SOLUTION_FOUND"]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Bounds = tuple[int | None, ...]
#: Lines about one field of a plan.
_MOST = 5


@dataclass(frozen=True)
class Claim:
    """What is said of one part."""

    part: str
    """A layer's name; empty: all of the network."""
    status: Status
    objectives: tuple[str, ...]
    values: tuple[int, ...]
    """The objectives in their order; none without a plan."""
    bounds: Bounds
    """For each objective."""

    @property
    def where(self) -> str:
        """How to begin a line about it."""
        return f"layer {self.part}: " if self.part else ""

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to prove."""
        return self.status not in ("OPTIMAL", "INFEASIBLE") and not any(bound is not None for bound in self.bounds)

    def refuted_by(self, other: Claim) -> str | None:
        """Return what is wrong if the other plan exists, None if it refutes nothing."""
        if not other.values:
            return None
        if self.status == "INFEASIBLE":
            return "status INFEASIBLE"
        pairs = zip(self.objectives, self.bounds, other.values, strict=True)
        for k, (name, bound, value) in enumerate(pairs):
            if bound is not None and value < bound:
                said = f"status OPTIMAL in {name} {bound}" if self.status == "OPTIMAL" else f"bound {bound}"
                return said
            if not self.values or value > self.values[k]:
                return None
        return None

    def proven_by(self, other: Claim) -> bool:
        """Whether the other answer, proven by its engine, shows all that is claimed."""
        if self.status == "INFEASIBLE":
            return other.status == "INFEASIBLE"
        if other.status == "INFEASIBLE":
            return False
        for bound, shown in zip(self.bounds, other.bounds, strict=True):
            if bound is not None and (shown is None or shown < bound):
                return False
        # What is claimed of a later objective holds up to the values of the earlier ones.
        last = max((k for k, bound in enumerate(self.bounds) if bound is not None), default=0)
        return all(mine <= known for mine, known in zip(self.values[:last], other.values, strict=False)) and (
            last == 0 or bool(other.values)
        )


def bounds_of(status: Status, bound: int | None, values: tuple[int, ...], number: int) -> Bounds:
    """The bound of the first objective, and of the others what OPTIMAL says."""
    rest = values[1:] if status == "OPTIMAL" and values else (None,) * (number - 1)
    return (bound, *rest)


def picked(names: tuple[str, ...], figures: Mapping[str, int]) -> tuple[int, ...]:
    """Return the figures of some names; nothing unless all are known."""
    return tuple(figures[name] for name in names) if set(names) <= set(figures) else ()


# ---- what a plan states, and what is so ------------------------------------------------------------------------------


def gap_of(value: int | None, bound: int | None) -> float | None:
    """Return ``(value - bound) / value``: 0.0 when equal, None when either is unknown."""
    if value is None or bound is None:
        return None
    return 0.0 if value == bound or value == 0 else (value - bound) / value


def unequal(where: str, stated: object, derived: object) -> Iterator[str]:
    """Yield one line if what a plan states is not what follows from its decisions."""
    if stated != derived:
        yield f"{where}: the plan says {stated}, it is {derived}"


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

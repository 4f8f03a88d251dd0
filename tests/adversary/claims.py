"""What engines claim of a case, and what contradicts it: (EQUAL), (ABOVE) and (RULES) of `tests.adversary`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Claim:
    """An engine's answer: `value` as replay counts it, None without a schedule; `bound` as the engine says.

    `schedule` is what rules, and searches that do not look at every one, may begin from.
    """

    engine: str
    status: str
    value: int | None = None
    bound: int | None = None
    faults: tuple[str, ...] = ()
    schedule: object = None

    def __str__(self) -> str:
        return f"{self.engine} says {self.status} {self.value} with bound {self.bound}"


def asked(engine: str, ask: Callable[[], Claim]) -> Claim:
    """Return the claim, or a crash as one that is at fault."""
    try:
        return ask()
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        return Claim(engine, "CRASHED", faults=(f"{type(error).__name__}: {said}",))


def contradictions(claims: Sequence[Claim], least: int | None, *, complete: bool) -> Iterator[str]:
    """Yield one line for everything that cannot be.

    Parameters
    ----------
    least : int or None
        The least value of all schedules that a search found, None if it found none.
    complete : bool
        Whether it looked at every schedule.
    """
    values = [claim.value for claim in claims if claim.value is not None]
    known = min([*values, *([] if least is None else [least])], default=None)
    other = "brute force" if least == known else next(c.engine for c in claims if c.value == known)
    for one in claims:
        yield from (f"{one.engine}: {fault}" for fault in one.faults)
        if one.status == "CRASHED":
            continue
        if one.status == "OPTIMAL" and (one.value is None or one.bound != one.value):
            yield f"{one}: not the same"
        too_much = {"OPTIMAL": one.value, "INFEASIBLE": inf}.get(one.status)
        for said in (too_much, None if one.status == "INFEASIBLE" else one.bound):
            if known is not None and said is not None and said > known:
                yield f"{one}, {other} finds {known}"
        if complete and one.value is not None and (least is None or one.value < least):
            yield f"{one}, the least of all schedules is {least} by brute force"

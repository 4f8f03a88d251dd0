"""What the drivers of CP-SAT and of MILP solvers share: the form of an answer, and bounds as integers."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite, ulp

from solver.plan.plan import Stat, Status

#: What an exact search over integers may be off by once its bound is a float.
_EXACT = 1e-6


@dataclass(frozen=True)
class Said:
    """What a solver said of a model."""

    status: Status
    bound: int | None
    """No solution has a smaller objective (a larger one if it is maximised); None if nothing is known or believed."""
    stopped: bool
    """Whether Ctrl-C ended the search. The answer is what was found until then: whoever asks in a loop stops."""

    @property
    def solved(self) -> bool:
        """Whether there is a solution: the variables have values."""
        return self.status in ("OPTIMAL", "FEASIBLE")

    @property
    def stats(self) -> dict[str, Stat]:
        """For the plan: ``interrupted`` if Ctrl-C ended the search, else nothing."""
        return {"interrupted": True} if self.stopped else {}

    def agrees(self, value: float) -> bool:
        """Whether an optimum is worth what the solver reports: `value` in units; False where that is no proof."""
        return False

    def least(self, floor: int = 0) -> int:
        """The bound, or what is known without the solver if that is more."""
        return floor if self.bound is None else max(floor, self.bound)


def least_whole(bound: float, slack: float = _EXACT) -> int | None:
    """Return the least integer that is not below a bound less its slack; None if the bound is infinite.

    An integer objective is at least that. From 2**53 on floats are too coarse to hold every integer: two steps of them
    are taken off, for rounding while the solver scales and shifts.
    """
    if not isfinite(bound):
        return None
    if abs(bound) >= 2**53:
        return int(bound) - 2 * int(ulp(bound)) - ceil(slack - _EXACT)
    return ceil(bound - slack)

"""Engine ``cp-sat`` for several applications, in two phases.

First the objective is minimised. If that proves nothing in its share of the time, better schedules are refuted: a model
without an objective, only with a cap just below the best value, is found infeasible far sooner (or has a better one).
"""

from __future__ import annotations

import time
from importlib.metadata import version

from formulations.applications.cp_sat import applications_cp_model
from formulations.mapping.problem import Schedule
from solver.applications.base import Asked
from solver.engines.driver_cp_sat import solve
from solver.mapping.base import Decided
from solver.plan import Stat, Status

__all__ = ["run"]

#: Of the time limit that the first phase may take; if there is none, seconds. Of what is left a refutation may take.
_SHARE, _FIRST_S, _REST = 0.4, 60.0, 0.8
_LEAST_S = 0.1


def run(asked: Asked) -> Decided:
    """Solve."""
    return _Search(asked).run()


class _Search:
    """What is known: the best schedule, its value, and a lower bound for all schedules."""

    def __init__(self, asked: Asked) -> None:
        self.asked, self.begun = asked, time.monotonic()
        known = asked.starts()
        self.best, self.hint = asked.best(known), known[0]
        self.unit = 1 if asked.goal.streams else asked.several.mapping.energy_unit
        self.bound = 0
        self.stats: dict[str, Stat] = {"branches": 0, "conflicts": 0}

    @property
    def value(self) -> int | None:
        """Of the best schedule."""
        return None if self.best is None else self.asked.worth(self.best)

    def run(self) -> Decided:
        """Minimise, then refute."""
        limit, versions = self.asked.time_limit_s, f"ortools {version('ortools')}"
        status = self._solve(self.value, _FIRST_S if limit is None else _SHARE * limit)
        if status == "INFEASIBLE":
            return Decided(None, None, "INFEASIBLE", versions, self.stats)
        if status == "NO_SOLUTION_FOUND" and self.best is None and not self.stats.get("interrupted"):
            status = self._solve(None, self._left())
            if status == "INFEASIBLE":
                return Decided(None, None, "INFEASIBLE", versions, self.stats)
        if not self.stats.get("interrupted"):
            self._refute()
        return self.asked.answer(self.best, self.bound, versions, self.stats)

    def _left(self, share: float = 1.0) -> float | None:
        limit = self.asked.time_limit_s
        return None if limit is None else max(_LEAST_S, share * (limit - (time.monotonic() - self.begun)))

    def _refute(self) -> None:
        """Ask for better schedules; if that takes too long, for much better ones."""
        share, cap = _REST, None if self.value is None else self.value - self.unit
        while (value := self.value) is not None and cap is not None and self.bound < value:
            seconds = self._left(share)
            if seconds is not None and seconds <= _LEAST_S:
                return
            status = self._solve(cap, seconds, aimless=True)
            if self.stats.get("interrupted"):
                return
            if status == "INFEASIBLE":
                self.bound = max(self.bound, cap + self.unit)
            elif status == "NO_SOLUTION_FOUND":
                share = 1.0
                cap = (self.bound + cap) // 2
                continue
            cap = None if self.value is None else self.value - self.unit

    def _solve(self, cap: int | None, seconds: float | None, *, aimless: bool = False) -> Status:
        """Solve with a cap of the objective, or for any schedule within it."""
        asked = self.asked
        caps = [*asked.caps, *([] if cap is None else [(asked.goal, cap)])]
        built = applications_cp_model(asked.several, asked.goal, caps)
        if aimless:
            built.model.clear_objective()  # type: ignore[no-untyped-call]
        built.hint(self.hint if self.best is None else self.best)
        said = solve(built.model, seconds, turns=True)
        self.stats |= said.stats
        if not aimless:
            self.bound = max(self.bound, self.unit * said.least())
        if said.solved:
            self._keep(built.chosen(said.solver))
        return said.status

    def _keep(self, found: Schedule) -> None:
        self.best = self.asked.best([found, *([] if self.best is None else [self.best])])

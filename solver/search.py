"""The loop for `formulations.registry.PROBLEMS`: goals in lexicographic order, settled piece by piece, with bounds.

The eight older problems have loops of their own still (CONTRIBUTING.md says where).

Let f_1, ..., f_n be the objectives. Goal k minimises f_k over the schedules with f_j <= v_j for all j < k, where v_j is
what goal j ended with. Its bound is the least bound of the pieces that may hold a better schedule, or v_k. OPTIMAL says
that v_k is the bound of every goal k; there is no other rule.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar, cast

from pydantic import BaseModel

from formulations.problem import Formulation, Goal, Part, Piece
from instances.errors import InputError
from solver.plan import Stat, Status

__all__ = ["Answer", "settled", "status_of"]

S = TypeVar("S", bound=BaseModel)
#: Cuts of one piece, after which its bound is what is known.
_MOST_CUTS = 1000


@dataclass(frozen=True)
class Answer(Generic[S]):
    """What a search says of a part; bounds by objective, None where nothing is known."""

    schedule: S | None
    values: Mapping[str, int]
    bounds: Mapping[str, int | None]
    status: Status
    versions: str = ""
    stats: Mapping[str, Stat] = field(default_factory=dict)


@dataclass(frozen=True)
class _Piece(Generic[S]):
    """What is said of one piece: the bound is None if nothing in it is below the goal, or, if `open`, unknown."""

    schedule: S | None
    bound: int | None
    open: bool = False


def status_of(values: Mapping[str, int], bounds: Mapping[str, int | None], *, empty: bool) -> Status:
    """Return the status that follows from values and bounds; `empty`: it is proven that there is no schedule."""
    if not values:
        return "INFEASIBLE" if empty else "NO_SOLUTION_FOUND"
    return "OPTIMAL" if all(bounds.get(name) == value for name, value in values.items()) else "FEASIBLE"


def settled(
    formulation: Formulation[S], part: Part[S], objectives: Sequence[str], engine: str, time_limit_s: float | None, *,
    most: Mapping[str, int] | None = None,
) -> Answer[S]:  # fmt: skip
    """Decide a part; `most` of some measures; raises InputError if a model does not fit a solver."""
    end = None if time_limit_s is None else time.monotonic() + time_limit_s
    if engine in formulation.heuristics:
        return _guessed(formulation, part, objectives, engine)
    best: S | None = None
    bounds: dict[str, int | None] = dict.fromkeys(objectives)
    caps, empty, stats = dict(most or {}), False, dict[str, Stat]()
    versions = ""
    for number, measure in enumerate(objectives):
        left = None if end is None else max(0.0, end - time.monotonic()) / (len(objectives) - number)
        search = _Search(formulation, part, Goal(measure, dict(caps)), engine, left)
        best, bound, empty = search.run(best)
        versions, stats = search.versions or versions, {**stats, **search.stats}
        bounds[measure] = bound
        if best is None or stats.get("interrupted"):
            break
        value = part.price(best).measures[measure]
        caps[measure] = min(value, caps.get(measure, value))
    values = {} if best is None else {name: part.price(best).measures[name] for name in objectives}
    return Answer(best, values, bounds, status_of(values, bounds, empty=empty), versions, stats)


def _guessed(formulation: Formulation[S], part: Part[S], objectives: Sequence[str], engine: str) -> Answer[S]:
    """The answer of a heuristic, with what no schedule is below."""
    goal = Goal(objectives[0])
    found = formulation.heuristics[engine][1](part, goal)
    floor = min((piece.floor(goal) for piece in part.pieces(goal)), default=None)
    values = {} if found is None else {name: part.price(found).measures[name] for name in objectives}
    bounds: dict[str, int | None] = {**dict.fromkeys(objectives), objectives[0]: floor}
    return Answer(found, values, bounds, status_of(values, bounds, empty=False))


class _Search(Generic[S]):
    """One goal on one part."""

    def __init__(
        self, formulation: Formulation[S], part: Part[S], goal: Goal, engine: str, time_limit_s: float | None
    ) -> None:
        self.part, self.goal, self.formulation = part, goal, formulation
        self.ask: Callable[[Piece[S], Goal], _Piece[S]] = {
            "exact": self._exact, "cp-sat": self._cp_sat, "milp": self._highs, "milp-cbc": self._cbc,
        }[engine]  # fmt: skip
        self.until = None if time_limit_s is None else time.monotonic() + time_limit_s
        self.versions = ""
        self.stats: dict[str, Stat] = {"pieces": 0}

    @property
    def left(self) -> float | None:
        """Seconds."""
        return None if self.until is None else max(0.0, self.until - time.monotonic())

    def over(self) -> bool:
        """Whether the time is up."""
        return self.until is not None and time.monotonic() > self.until

    def interrupt(self) -> None:
        """Ctrl-C: as if the time were up."""
        self.stats["interrupted"], self.until = True, time.monotonic()

    def value(self, schedule: S) -> int:
        """The measure of a schedule."""
        return self.part.price(schedule).measures[self.goal.measure]

    def run(self, known: S | None) -> tuple[S | None, int | None, bool]:
        """Return the best schedule, a bound, and whether there is proven to be none."""
        guesses = [function(self.part, self.goal) for _, function in self.formulation.heuristics.values()]
        best = min(
            (one for one in [known, *guesses] if one is not None and self.keeps(one)), key=self.value, default=None
        )
        floors: list[int | None] = []
        for piece in self.part.pieces(self.goal):
            value = None if best is None else self.value(best)
            floor = piece.floor(self.goal)
            if value is not None and floor >= value:
                continue
            if self.over():
                floors.append(floor)
                continue
            self.stats["pieces"] = cast(int, self.stats["pieces"]) + 1
            try:
                said = self.ask(piece, replace(self.goal, below=value))
            except KeyboardInterrupt:
                self.interrupt()
                said = _Piece(None, None, open=True)
            if said.schedule is not None and (value is None or self.value(said.schedule) < value):
                best = said.schedule
            if said.open:
                floors.append(floor if said.bound is None else max(floor, said.bound))
            elif said.bound is not None:
                floors.append(max(floor, said.bound))
        value = None if best is None else self.value(best)
        known_floors = [one for one in floors if one is not None]
        lowest = min([*known_floors, *([] if value is None else [value])], default=None)
        return best, lowest, best is None and not floors

    def keeps(self, schedule: S) -> bool:
        """Whether a schedule is of the space and keeps the caps."""
        measures = self.part.price(schedule).measures
        return not self.part.contains(schedule) and all(measures[m] <= most for m, most in self.goal.caps.items())

    def _exact(self, piece: Piece[S], goal: Goal) -> _Piece[S]:
        found, bound = piece.exact(goal, self.over)
        return _Piece(found, bound, open=found is None and bound is not None)

    def _cp_sat(self, piece: Piece[S], goal: Goal) -> _Piece[S]:
        from importlib.metadata import version

        from solver.engines.driver_cp_sat import solve  # late: importing the engines imports every solver

        self.versions = f"ortools {version('ortools')}"
        for _ in range(_MOST_CUTS):
            made = piece.cp_sat(goal)
            said = solve(made.model, self.left)
            if said.stopped:
                self.interrupt()
            if said.status == "INFEASIBLE":
                return _Piece(None, None)
            if not said.solved:
                return _Piece(None, said.bound, open=True)
            found = made.decode(said.solver)
            if piece.settle(found, self.value(found)):
                return _Piece(found, said.bound)
            if said.stopped:
                break
        return _Piece(None, None, open=True)

    def _highs(self, piece: Piece[S], goal: Goal) -> _Piece[S]:
        return self._milp(piece, goal, "highs")

    def _cbc(self, piece: Piece[S], goal: Goal) -> _Piece[S]:
        return self._milp(piece, goal, "cbc")

    def _milp(self, piece: Piece[S], goal: Goal, solver: str) -> _Piece[S]:
        from solver.engines.driver_milp import MilpSolver, solve, versions

        name = cast(MilpSolver, solver)
        self.versions = versions(name)
        for _ in range(_MOST_CUTS):
            made = piece.milp(goal)
            said = solve(name, made.model, self.left)
            if said.stopped:
                self.interrupt()
            if said.status == "INFEASIBLE":
                return _Piece(None, None)
            if not said.solved:
                return _Piece(None, said.bound, open=True)
            try:
                found = made.decode(made.model)
            except InputError:  # the solver's answer is no schedule
                return _Piece(None, said.bound, open=True)
            if piece.settle(found, self.value(found)):
                return _Piece(found, said.bound, open=said.bound is None)
            if said.stopped:
                break
        return _Piece(None, None, open=True)

"""The loop for every `formulations.problem.Formulation`: goals in lexicographic order, piece by piece, with bounds.

Let f_1, ..., f_n be the objectives. Goal k minimises f_k over the schedules with f_j <= v_j for all j < k, where v_j is
what goal j ended with. Its bound is the least bound of the pieces that may hold a better schedule, or v_k. OPTIMAL says
that v_k is the bound of every goal k; there is no other rule.

A search that is stopped, by its clock or by Ctrl-C, keeps the best schedule so far. Pieces that it has not searched to
the end, and objectives that it has not come to, are bounded by what takes no search.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from formulations.clock import ENDLESS, Clock, TimeUp
from formulations.problem import (
    SOLVERS,
    Formulation,
    Goal,
    Model,
    Part,
    Piece,
    Priced,
    Replayed,
    Report,
    Stats,
    Steps,
    Unable,
)
from instances.errors import InputError
from solver.plan.plan import Stat, Status

if TYPE_CHECKING:
    from solver.search.driver import Said

S = TypeVar("S")
_MILP = {"milp": "highs", "milp-cbc": "cbc"}
#: Seconds that ties may take at least.
_TIES_S = 1.0
#: What is said of a search, and not of a piece.
_PLAIN = frozenset({"interrupted", "note"})


@dataclass(frozen=True)
class Judged:
    """Price and replay of a schedule (`price_and_replay` of verdict.py); in what they differ, and demands not kept."""

    priced: Priced
    walked: Replayed
    disagreements: tuple[str, ...]
    unfit: tuple[str, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """All of these."""
        return (*self.disagreements, *self.unfit)


@dataclass(frozen=True)
class Answer(Generic[S]):
    """What a search says of a part."""

    schedule: S | None
    values: Mapping[str, int]
    """All measures of the schedule; none without one."""
    bounds: Mapping[str, int | None]
    """By objective; None where nothing is known."""
    status: Status
    versions: str = ""
    stats: Mapping[str, Stat] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()
    """Demands that cannot be met together, if it is proven that there is no schedule."""
    wall_s: float = 0.0
    judged: Judged | None = None
    """The schedule, where somebody has looked at it already (`Job.decide`)."""

    @property
    def bound(self) -> int | None:
        """Of the first objective."""
        return next(iter(self.bounds.values()), None)

    @property
    def interrupted(self) -> bool:
        """Whether a signal or a limit cut the search short."""
        return bool(self.stats.get("interrupted"))

    def noted(self, note: str) -> Answer[S]:
        """The same with a note for people."""
        return replace(self, stats={**self.stats, "note": note})


def status_of(values: Mapping[str, int], bounds: Mapping[str, int | None], *, empty: bool) -> Status:
    """Return the status that follows from values and bounds; `empty`: it is proven that there is no schedule."""
    if not values:
        return "INFEASIBLE" if empty else "NO_SOLUTION_FOUND"
    return "OPTIMAL" if all(bounds.get(name) == value for name, value in values.items()) else "FEASIBLE"


def decide_part(
    formulation: Formulation[S], part: Part[S], objectives: Sequence[str], engine: str, clock: Clock = ENDLESS, *,
    most: Mapping[str, int] | None = None,
) -> Answer[S]:  # fmt: skip
    """Decide a part; `most` of some measures; raises InputError if a model does not fit a solver."""
    search, caps = _PartSearch(formulation, part, engine), dict(most or {})
    best: S | None = None
    bounds: dict[str, int | None] = dict.fromkeys(objectives)
    least: dict[str, int] = {}
    empty = False
    ties = [name for name in formulation.ties if name not in objectives and search.proves]
    begin, tie_clock = time.monotonic(), clock
    for number, measure in enumerate((*objectives, *ties)):
        if number == len(objectives) and formulation.tie_share is not None:
            took = time.monotonic() - begin
            tie_clock = clock.most(max(_TIES_S, formulation.tie_share * took))
        share = clock.half() if formulation.halves and number + 1 < len(objectives) else tie_clock
        goal = Goal(measure, dict(caps), dict(least), clock=share, objectives=tuple(objectives), stats=search.stats)
        best, bound, empty = search.run(goal, best)
        bounds |= {measure: bound} if measure in bounds else {}
        if best is None or search.interrupted:
            break
        least |= {} if bound is None else {measure: bound}
        value = part.price(best).measures[measure]
        caps[measure] = min(value, caps.get(measure, value))
    if best is None and not empty and search.proves:
        best = quickest(formulation, part, objectives[0], formulation.quick, most)
    if not empty:
        bounds |= {name: _floor(part, name) for name, bound in bounds.items() if bound is None}
    if not (search.proves or formulation.floors):
        bounds = dict.fromkeys(objectives)
    if best is not None:
        best = search.polished(best, clock)
    stats = {**search.stats, **part.stats}
    return _answer(part, best, bounds, empty=empty, versions=search.versions, stats=stats)


def fallback(formulation: Formulation[S], part: Part[S], objectives: Sequence[str]) -> Answer[S]:
    """Return what takes no search: for one that is stopped, or that has hardly any time."""
    best = quickest(formulation, part, objectives[0], formulation.quick)
    bounds = {name: _floor(part, name) for name in objectives}
    return _answer(part, best, bounds, empty=not any(part.pieces(Goal(objectives[0]))), stats={"interrupted": True})


def unanswered(part: Part[S], objectives: Sequence[str], note: str = "") -> Answer[S]:
    """Return what is known of a part that nobody had time for."""
    bounds = {name: _floor(part, name) for name in objectives}
    return Answer(None, {}, bounds, "NO_SOLUTION_FOUND", stats={"note": note} if note else {})


def _answer(
    part: Part[S], best: S | None, bounds: Mapping[str, int | None], *, empty: bool = False, **said: Any
) -> Answer[S]:  # fmt: skip
    values = {} if best is None else part.price(best).measures
    status = status_of({name: values[name] for name in bounds if name in values}, bounds, empty=empty)
    return Answer(best, values, bounds, status, **said)


def quickest(
    formulation: Formulation[S], part: Part[S], measure: str, names: Iterable[str],
    most: Mapping[str, int] | None = None,
) -> S | None:  # fmt: skip
    """Return the schedule of the first of these heuristics that has one in no time."""
    goal = Goal(measure, dict(most or {}), clock=Clock(0.0, lambda: 0.0))
    for name in names:
        with suppress(Unable, TimeUp):
            found = formulation.heuristics[name][1](part, goal)
            if found is not None and not isinstance(found, Generator) and _keeps(part, found, goal):
                return found
    return None


def _floor(part: Part[S], measure: str) -> int | None:
    """What no schedule is below, without a search."""
    goal = Goal(measure)
    return min((piece.floor(goal) for piece in part.pieces(goal)), default=None)


def _keeps(part: Part[S], schedule: S, goal: Goal) -> bool:
    """Whether a schedule is of the space and keeps the caps."""
    return not part.contains(schedule) and _under(part.price(schedule).measures, goal)


def _under(measures: Mapping[str, int], goal: Goal) -> bool:
    return all(measures[name] <= most for name, most in goal.caps.items())


def _version(solver: str) -> str:
    if solver not in _MILP:
        return f"ortools {version('ortools')}"
    from solver.search.driver_milp import MilpSolver, versions  # late: engines import every solver

    return versions(cast(MilpSolver, _MILP[solver]))


class _PartSearch(Generic[S]):
    """An engine on one part."""

    def __init__(self, formulation: Formulation[S], part: Part[S], engine: str) -> None:
        self.formulation, self.part, self.engine = formulation, part, engine
        self.proves = engine not in formulation.heuristics
        self.stats: Stats = {"pieces": 0}
        self.known: S | None = None
        self.solvers = dict.fromkeys([engine] if engine in SOLVERS else ())
        self.proven = 0

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search."""
        return bool(self.stats.get("interrupted"))

    @property
    def versions(self) -> str:
        """Of the solvers that were asked, or of a heuristic's library."""
        library = self.formulation.libraries.get(self.engine)
        return "; ".join(map(_version, self.solvers)) if library is None else f"{library} {version(library)}"

    def run(self, goal: Goal, known: S | None) -> tuple[S | None, int | None, bool]:
        """Return the best schedule, a bound, and whether there is proven to be none."""
        self.known = self.first(goal, known)
        floors = self.floors(self.part.pieces(goal), goal)
        return self.known, min([*floors, *self.value(goal)], default=None), self.known is None and not floors

    def first(self, goal: Goal, known: S | None) -> S | None:
        """The best schedule without a search: the one that is known, or what heuristics find."""
        names, clock = (self.formulation.starts, goal.clock.half()) if self.proves else ((self.engine,), goal.clock)
        guesses = [known]
        for name in names:
            try:
                made, asked = self.formulation.heuristics[name][1], replace(goal, clock=clock)
                found = made(self.part, asked)
                guesses.append(self.run_search(found, asked)[0] if isinstance(found, Generator) else found)
            except Unable as error:
                self.stats["note"] = str(error)
            except TimeUp:
                pass
        kept = [one for one in guesses if one is not None and _keeps(self.part, one, goal)]
        return min(kept, key=lambda one: self.part.price(one).measures[goal.measure], default=None)

    def value(self, goal: Goal) -> list[int]:
        """The measure of the best schedule so far, nothing if there is none."""
        return [] if self.known is None else [self.part.price(self.known).measures[goal.measure]]

    def floors(self, pieces: Iterable[Piece[S]], goal: Goal) -> list[int]:
        """Search pieces; return bounds of those that may hold a better schedule than the best one in the end."""
        found: list[int] = []
        for piece in pieces:
            floor, value = piece.floor(goal), self.value(goal)
            if value and floor >= value[0]:
                continue
            if self.interrupted or goal.clock.over or not self.proves:
                found.append(floor)
                continue
            self.stats["pieces"] = cast(int, self.stats["pieces"]) + 1
            asked = replace(goal, below=min(value, default=None), known=self.known)
            schedule, bound = self.search_piece(piece, asked, floor)
            for one in (schedule, piece.so_far()):
                if one is not None:
                    self.take(one, goal)
            if bound is not None:
                found.append(max(bound, self.split(piece, goal, bound)))
        return found

    def take(self, schedule: S, goal: Goal) -> None:
        """Keep a schedule within the caps if it is the best so far."""
        measures, value = self.part.price(schedule).measures, self.value(goal)
        if _under(measures, goal) and (not value or measures[goal.measure] < value[0]):
            self.known = schedule

    def split(self, piece: Piece[S], goal: Goal, bound: int) -> int:
        """What the parts of a piece are not below, where the piece itself leaves a gap."""
        value = self.value(goal)
        parts = piece.split(replace(goal, below=value[0])) if value and bound < value[0] else ()
        return min([*self.floors(parts, goal), *self.value(goal)]) if parts else bound

    def search_piece(self, piece: Piece[S], goal: Goal, floor: int) -> tuple[S | None, int | None]:
        """Search a piece; the bound is None if nothing in it meets the goal, and the floor if nothing else is known."""
        self.proven = floor
        goal, where = replace(goal, stats={}), f" ({piece.name})" if piece.name else ""
        try:
            return self.run_search(piece.steps(goal, self.engine), goal)
        except Unable as error:
            self.stats["note"] = str(error)
        except (TimeUp, NotImplementedError):
            pass
        except KeyboardInterrupt:
            self.stats["interrupted"] = True
        finally:
            self.stats |= {name if name in _PLAIN else f"{name}{where}": said for name, said in goal.stats.items()}
        return None, max(self.proven, piece.floor(goal))

    def run_search(self, steps: Steps[S], goal: Goal) -> tuple[S | None, int | None]:
        """Have the models of a search solved, and return what it returns."""
        try:
            made = next(steps)
            while True:
                made = steps.send(self.report(made, goal))
        except StopIteration as end:
            schedule, bound = end.value
            return schedule, bound

    def report(self, made: Model[S], goal: Goal) -> Report[S]:
        """Have a model solved."""
        said, solution = self.solved(made, goal)
        goal.stats.update(said.stats)
        if said.status == "INFEASIBLE":
            return Report(None, None if made.proves else self.proven)
        least, proven = said.bound if made.proves else None, 0 if made.own_bound else self.proven
        bound = proven if least is None else made.base + made.unit * least
        bound = bound if said.status == "OPTIMAL" else max(proven, bound)
        if not said.solved:
            return Report(None, bound)
        try:
            schedule = made.decode(solution)
        except InputError:  # the solver's solution is out of the model
            return Report(None, bound)
        if made.priced and made.proves and schedule is not None:
            value = made.cost() if made.cost else self.part.price(schedule).measures[goal.measure]
            bound = value if said.agrees((value - made.base) / made.unit) else bound
        again = schedule is None and not said.stopped and not goal.clock.over
        self.proven = max(self.proven, bound) if again and not made.own_bound else self.proven
        return Report(schedule, bound, again=again)

    def polished(self, schedule: S, clock: Clock) -> S:
        """The same, better in what no measure says if there is time for it."""
        try:
            return self.part.polished(schedule, Clock(0.0) if self.interrupted else clock)
        except KeyboardInterrupt:
            self.stats["interrupted"] = True
            return schedule

    def solved(self, made: Model[S], goal: Goal) -> tuple[Said, Any]:
        """What the solver says, and what a solution is read from."""
        from solver.search import driver_cp_sat, driver_milp

        limits = [seconds for seconds in (goal.clock.left, made.seconds) if seconds is not None]
        limit, solver = min(limits, default=None), made.solver or self.engine
        self.solvers[solver] = None
        if solver == "cp-sat":
            cp_said = driver_cp_sat.solve(made.model, limit, turns=made.turns, parameters=made.parameters)
            return cp_said, cp_said.solver
        said = driver_milp.solve(cast(driver_milp.MilpSolver, _MILP[solver]), made.model, limit)
        if not said.believed:
            goal.stats["note"] = "values are too large for a proof by this solver"
        return said, made.model

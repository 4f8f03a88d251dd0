"""How a configuration is searched: latency in sections, HiGHS or CBC, CP-SAT after merged cores, all assignments.

An example: auto has HiGHS solve the MILP in a share of the time. If that proves nothing, the best schedule and the
bound go on to CP-SAT. Latencies are decided section by section before, if there are several. Where tasks may be
divided, the best schedule of whole tasks is a start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from formulations.mapping.board import Asking, BoardPart
from formulations.mapping.latency import best_order, floor, horizon, latencies, latency_of, usual
from formulations.mapping.search import MOST, assignments, everything, starts
from formulations.mapping.series import Series, settled
from formulations.mapping.space import Aim, Assignment, Ints, Limits, Mapping, Schedule, clusters, merged, parts
from formulations.problem import Goal, Model, Steps, Unable
from instances.errors import InputError

if TYPE_CHECKING:
    from formulations.mapping.cp_sat import MappingCpModel

S = TypeVar("S")
#: Of the time limit that HiGHS may take before CP-SAT goes on, in a pipeline and of one inference alone.
_SHARE, _ALONE = 0.3, 0.8
#: Of a time limit, what sections may take before models of all tasks; and where a limit couples them, so that the least
#: latency without it is a bound.
_SECTIONS, _COUPLED = 0.7, 0.3
#: Of a time limit, what goes to whole tasks first if tasks may be divided.
_WHOLE = 0.3
#: Of the time limit that the bound from merged cores may take; if there is none, seconds.
_MERGED, _MERGED_S = 0.4, 60.0
#: Steps that all searches of orders may take.
_STEPS = 5_000_000


@dataclass(frozen=True)
class Asked(Asking):
    """What is minimised on one configuration, the limits, and what is known already."""

    mapping: Mapping
    aim: Aim
    limits: Limits
    least: int = 0
    """A lower bound for all assignments, as far as known."""
    hint: Schedule | None = None
    """One that need not keep the limits."""

    @property
    def alone(self) -> bool:
        """Whether the latency of one inference counts, so that tasks need an order."""
        return self.aim == "latency" or self.limits.latency is not None

    @property
    def unit(self) -> int:
        """What every energy is a multiple of, 1 for periods."""
        return self.mapping.energy_unit if self.aim == "energy" else 1

    @property
    def latest(self) -> int:
        """A latency that all schedules keep that are looked for."""
        if self.limits.latency is not None:
            return min(self.limits.latency, horizon(self.mapping))
        first = self.best(self.known)
        return horizon(self.mapping) if first is None else latency_of(self.mapping, first)

    def figures(self, schedule: Schedule) -> dict[str, int]:
        """Period and energy, and latency where it counts."""
        price = self.mapping.price(schedule.at, self.limits.cap)
        latency = {"latency": latency_of(self.mapping, schedule)} if self.alone else {}
        return {"period": price.period, "energy": price.energy, **latency}

    def value(self, schedule: Schedule) -> int:
        """The objective of a schedule."""
        return self.figures(schedule)[self.aim]

    def worth(self, schedule: Schedule) -> int | None:
        """The same, None if a limit is not kept."""
        figures = self.figures(schedule)
        return None if any(self.limits.broken(figures)) else figures[self.aim]

    def floor(self) -> int:
        """By `formulations.mapping.latency`."""
        return floor(self.mapping, self.aim)

    def scheduled(self, found: Iterable[Assignment]) -> list[Schedule]:
        """Return assignments as schedules, in the usual order where an order counts."""
        return [usual(self.mapping, at) if self.alone else Schedule(at) for at in found]

    def started(self) -> Asked:
        """Return the same from the usual starts on, with the bound that takes no search."""
        found = dict.fromkeys([*self.known, *self.scheduled(dict.fromkeys(starts(self.mapping)))])
        kept = tuple(start for start in found if self.worth(start) is not None)
        return replace(self, known=kept, least=max(self.least, self.floor()))

    def proven(self, schedule: Schedule | None, bound: int | None) -> bool:
        """Whether an answer needs no other one."""
        if schedule is None:
            return bound is None and not self.known
        return bound is not None and bound >= self.value(schedule)


def _auto(asked: Asked) -> Steps[Schedule]:
    """Sections for latency, HiGHS; if it ends without a proof CP-SAT, from the best schedule that is known."""
    clock, asked = asked.clock, asked.started()
    if asked.mapping.split is not None:  # the best of all whole tasks is a start
        whole = replace(asked, mapping=asked.mapping.whole, clock=clock.share(1 / _WHOLE), known=(), least=0)
        schedule, _ = yield from _auto(whole)
        if asked.stats.get("interrupted"):  # a bound for whole tasks is none for all
            return schedule, asked.least
        asked = replace(asked, known=(*asked.known, *([] if schedule is None else [schedule])))
    if asked.aim == "latency":
        schedule, bound = yield from _in_sections(asked)
        if asked.proven(schedule, bound) or asked.stats.get("interrupted"):
            return schedule, bound
        asked = replace(asked, known=(schedule,) if schedule else (), least=max(asked.least, bound or 0))
    first = replace(asked, clock=clock.share(1 / (_ALONE if asked.alone else _SHARE)))
    schedule, bound = yield from _milp(first)
    if asked.proven(schedule, bound) or asked.stats.get("interrupted"):
        return schedule, bound
    known = (*asked.known, *([] if schedule is None else [schedule]))
    return (yield from _cp_sat(replace(asked, known=known, least=max(asked.least, bound or 0), clock=clock)))


def _in_sections(asked: Asked) -> Steps[Schedule]:
    """Latency in sections, in a share of the time; limits of period and energy are those of the whole schedule."""
    series, limits = Series(asked.mapping), asked.limits
    if len(series.parts) == 1:
        return asked.best(asked.known), asked.least
    for schedule in asked.known:
        series.start(schedule)
    share = _SECTIONS if limits.period is None and limits.energy is None else _COUPLED
    found, bound = yield from settled(series, asked.clock.share(1 / share), asked.stats)
    bound = max(asked.least, bound or 0)
    if limits.latency is not None and bound > limits.latency:
        return None, None
    return asked.best([*([] if found is None else [found]), *asked.known]), bound


def _sections(asked: Asked) -> Steps[Schedule]:
    """Latency in sections; CP-SAT for what that does not decide: one section, a limit, or another objective."""
    clock, asked = asked.clock, asked.started()
    if asked.aim == "latency":
        schedule, bound = yield from _in_sections(asked)
        if asked.proven(schedule, bound) or asked.stats.get("interrupted"):
            return schedule, bound
        asked = replace(asked, known=(schedule,) if schedule else (), least=max(asked.least, bound or 0), clock=clock)
    return (yield from _cp_sat(asked))


def _milp(asked: Asked, solver: str = "milp", kind: Literal["", "=", "<="] = "") -> Steps[Schedule]:
    """The MILP; latencies are proven quickly where few tasks may run side by side, for disjunctions bound poorly."""
    from formulations.mapping.milp import model  # late: models import their solvers

    latest = asked.latest if asked.alone else None
    problem, chosen = model(asked.mapping, asked.aim, asked.limits, clustered=kind, latest=latest)
    if asked.least:
        problem += problem.objective >= asked.least // asked.unit
    asked.stats.update(variables=len(problem.variables()), constraints=len(problem.constraints))
    report = yield Model(problem, lambda _: chosen(), unit=asked.unit, seconds=asked.clock.left, solver=solver)
    found = [] if report.schedule is None else [report.schedule]
    numbers = clusters(asked.mapping, found[0].at) if kind and found else ()
    if any(number > 1 or (kind == "=" and number < 1) for number in numbers):
        found, asked.stats["note"] = [], "the solver's answer is no clustering"
    if report.bound is None:
        return None, None
    return asked.best(found if kind else [*found, *asked.known]), max(asked.least, report.bound)


def _cp_sat(asked: Asked) -> Steps[Schedule]:
    """CP-SAT, from the best schedule that is known; in a pipeline a bound from the merged cores comes first."""
    from formulations.mapping.cp_sat import cp_model_of

    best, small = asked.best(asked.known), merged(asked.mapping)
    if not asked.alone and len(small.processors) < len(asked.mapping.processors):
        # The merged problem's own bounds only: a lower bound of this problem need not be one there.
        share = asked.clock.share(1 / _MERGED).left
        built = cp_model_of(small, asked.aim, asked.limits)
        report = yield _model(asked, built, _MERGED_S if share is None else share)
        if report.bound is None:
            return None, None
        asked = replace(asked, least=max(asked.least, report.bound))
        asked.stats["merged_bound"] = asked.least
        if asked.stats.get("interrupted"):
            return best, asked.least
    report = yield _model(asked, _encoded(asked, best), asked.clock.left)
    if report.bound is None:
        return None, None
    found = [] if report.schedule is None else [report.schedule]
    return asked.best([*found, *asked.known]), max(asked.least, report.bound)


def _model(asked: Asked, built: MappingCpModel, seconds: float | None) -> Model[Schedule]:
    return Model(built.model, built.chosen, unit=asked.unit, seconds=seconds, turns=True, solver="cp-sat")


def _encoded(asked: Asked, best: Schedule | None) -> MappingCpModel:
    """The model with what is known of the objective, and a hint."""
    from formulations.mapping.cp_sat import cp_model_of

    least, most = asked.least // asked.unit, None if best is None else asked.value(best) // asked.unit
    latest = asked.latest if asked.alone else None
    built = cp_model_of(asked.mapping, asked.aim, asked.limits, least=least, most=most, latest=latest)
    hint = best or asked.hint
    if hint is not None:
        built.hint(hint)
    return built


# ---- all assignments -------------------------------------------------------------------------------------------------


def exhaustive(asked: Asked) -> tuple[Schedule | None, int | None]:
    """All assignments; where latency counts all orders of each that may be better."""
    number = assignments(asked.mapping)
    if number > MOST:
        raise Unable(f"{number:.3g} assignments, at most {MOST:,} are tried")
    search = _Search(asked)
    asked.stats["assignments"] = number
    for at, periods, energies in everything(asked.mapping, asked.limits):
        search.block(at, energies if asked.aim == "energy" else periods)
        if asked.clock.over:
            return search.best, asked.floor()
    if search.steps < 0:
        asked.stats["note"] = f"the orders take more than {_STEPS:,} steps"
        return search.best, asked.floor()
    return search.best, search.least


class _Search:
    """The best schedule so far."""

    def __init__(self, asked: Asked) -> None:
        self.asked, self.steps = asked, _STEPS
        self.best: Schedule | None = None
        self.least: int | None = None

    def block(self, at: Ints, values: Ints) -> None:
        """Look at some assignments, the best ones by what is known without an order first."""
        if not self.asked.alone:
            if len(values) and (self.least is None or values.min() < self.least):
                self.best, self.least = Schedule(tuple(at[values.argmin()].tolist())), int(values.min())
            return
        least, _ = latencies(self.asked.mapping, at)
        if self.asked.aim == "latency":
            values = least
        for n in np.argsort(values, kind="stable"):
            if self.steps < 0 or (self.least is not None and values[n] >= self.least):
                return
            self._try(tuple(at[n].tolist()), int(values[n]), int(least[n]))

    def _try(self, at: Assignment, value: int, least: int) -> None:
        """Look for an order of an assignment that is better than the best so far and keeps the limit."""
        mapping, most = self.asked.mapping, self.asked.limits.latency
        below = horizon(mapping) + 1 if most is None else most + 1
        if self.asked.aim == "latency" and self.least is not None:
            below = min(below, self.least)
        if least >= below:
            return
        flat = parts(mapping, at)
        order, self.steps = best_order(flat.mapping, flat.at, below, self.steps)
        if order is not None:
            self.best = Schedule(at, order)
            self.least = latency_of(mapping, self.best) if self.asked.aim == "latency" else value


SEARCHES: dict[str, Callable[[Asked], Steps[Schedule]]] = {
    "auto": _auto,
    "milp": lambda asked: _milp(asked.started()),
    "milp-cbc": lambda asked: _milp(asked.started(), "milp-cbc"),
    "cp-sat": lambda asked: _cp_sat(asked.started()),
    "sections": _sections,
}


# ---- clusterings -----------------------------------------------------------------------------------------------------


def clustered(part: BoardPart[Mapping, S], goal: Goal, kind: Literal["=", "<="]) -> Steps[Any]:
    """The best clustering. A proof among clusterings is none among all assignments: its bound goes with the stats."""
    best: S | None = None
    below = goal.below
    for piece in part.pieces(goal):
        asked: Asked = piece.asked(replace(goal, below=below))
        if asked.mapping.split is not None:
            raise InputError("engine clustering: a cluster is of whole tasks, leave out the pin split")
        if asked.alone:
            raise InputError(f"engine clustering: it does not decide latency; {', '.join(SEARCHES)} and heuristics do")
        schedule, bound = yield from _milp(asked, kind=kind)
        if bound is None:
            goal.stats["note"] = "there is no such clustering"
        proven = schedule is not None and bound is not None and bound >= asked.value(schedule)
        where = f" ({piece.name})" if piece.name else ""
        goal.stats.update({f"clustering_bound{where}": bound, f"clustering_proven{where}": proven})
        if schedule is not None:
            best, below = piece.named(schedule), asked.value(schedule)
    return best, None

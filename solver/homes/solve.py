"""Homes over a network: every layer planned for all homes that its operands may have, then one home for every item.

The model is `formulations.homes.problem`; here its tables are filled with the plans of the layers, and an engine
chooses. The bound is the optimum of the same model with the bounds of the layers in place of their values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from formulations.clock import ENDLESS, Clock
from formulations.homes.places import TASTE, Chosen, Places, Table
from formulations.homes.problem import Homes, Housing
from formulations.problem import Goal
from formulations.tiling.part import Assignment
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from instances.errors import InfeasibleError
from instances.machine import Machine
from solver.plan import Status
from solver.search import Answer, settled

_HOMES = Homes()
#: Seconds that a choice takes at least if it has to; after Ctrl-C.
_LEAST_S, _HASTE_S = 0.5, 1.0


@dataclass(frozen=True)
class Choice:
    """The homes that are chosen."""

    chosen: Chosen | None
    layers: Mapping[str, Assignment]
    """The homes of the operands of every planned layer."""
    status: Status
    bound: int | None
    """`status`, `bound`: of the network: over all homes and all plans."""


def assignments(places: Places, table: Table) -> Iterator[Assignment]:
    """The homes that the operands of a layer may have."""
    return (tuple(one.items()) for one in places.assignments(table.operands))


def assigned(places: Places, chosen: Chosen) -> dict[str, Assignment]:
    """The homes of the operands of every planned layer."""
    return {t.layer: tuple((operand, chosen[x]) for operand, x in t.operands.items()) for t in places.tables}


def fitting(places: Places, machine: Machine) -> Chosen:
    """Return homes that fit the memories, the preferred ones as far as they do.

    Raises
    ------
    InfeasibleError
        If nothing fits, wherever it lies: in one line, which memory and how far.
    """
    free = replace(places, tables=())
    if not places.rooms and not places.ties:
        return tuple(item.homes[0] for item in places.items)
    said = settled(_HOMES, Housing(free), (TASTE,), "cp-sat")
    if said.stats.get("interrupted"):  # before anything is planned
        raise KeyboardInterrupt
    if said.schedule is None:
        raise InfeasibleError(f"machine {machine.name}: {next(places.faults(_least_overflow(free)))}")
    return said.schedule


def _least_overflow(places: Places) -> Chosen:
    """Homes that exceed the memories by the fewest bytes."""
    from formulations.homes.cp_sat import cp_sat  # late: ortools
    from solver.engines.driver_cp_sat import solve

    built = cp_sat(places, Goal(TASTE), overflow=True)
    chosen = built.decode(solve(built.model, 10.0).solver)
    assert chosen is not None
    return chosen


def choose(
    places: Places,
    plans: Mapping[tuple[str, Assignment], Answer[Nest]],
    objectives: tuple[str, ...],
    engine: str,
    clock: Clock = ENDLESS,
    known: Chosen | None = None,
) -> Choice:
    """Choose homes for the least sum of the layers' plans, lexicographically; ties by the other measures.

    Parameters
    ----------
    plans : mapping
        By layer and homes.
    engine : str
        The one that is asked for; CP-SAT stands in for those that are no solvers.
    known : tuple of str, optional
        Homes that fit.
    """
    engine = engine if engine in _HOMES.engines else "cp-sat"
    measures, first = tuple(dict.fromkeys((*objectives, *MEASURES))), objectives[0]
    filled = replace(places, measures=measures, tables=tuple(_tables(places, plans, measures, bounds=False)))
    start = {} if known is None else assigned(places, known)
    if any(plans[one].schedule is None for one in start.items()):
        known = None
    clock = clock if clock.remaining > _LEAST_S else Clock.of(_LEAST_S)
    said = settled(_HOMES, Housing(filled, known), (*measures, TASTE), engine, clock)
    if said.schedule is None:
        return Choice(None, {}, "NO_SOLUTION_FOUND", None)
    value, bound, stopped = said.values[first], None, bool(said.stats.get("interrupted"))
    if all(plan.bound is not None for plan in plans.values() if plan.status == "FEASIBLE"):
        least = replace(places, measures=(first,), tables=tuple(_tables(places, plans, (first,), bounds=True)))
        if least.costs(first) == filled.costs(first):
            bound = said.bounds[first]
        else:  # after Ctrl-C in haste
            clock = Clock.of(_HASTE_S) if stopped else clock
            bound = settled(_HOMES, Housing(least), (first,), engine, clock).bounds[first]
        bound = value if bound is None else min(bound, value)
    sure = not stopped and all(said.bounds[name] == said.values[name] for name in objectives)
    every = all(plan.status in ("OPTIMAL", "INFEASIBLE") for plan in plans.values())
    optimal = sure and (every or (len(objectives) == 1 and bound == value))
    return Choice(said.schedule, assigned(places, said.schedule), "OPTIMAL" if optimal else "FEASIBLE", bound)


def _tables(
    places: Places, plans: Mapping[tuple[str, Assignment], Answer[Nest]], measures: tuple[str, ...], *, bounds: bool
) -> Iterator[Table]:
    """The tables of the layers that have plans: their measures, or (`bounds`) what none is below in the first."""
    for table in places.tables:
        values: dict[tuple[str, ...], tuple[int, ...]] = {}
        for homes in assignments(places, table):
            plan, names = plans[table.layer, homes], tuple(name for _, name in homes)
            if bounds and plan.status != "INFEASIBLE":
                values[names] = (plan.bound or 0,)
            elif not bounds and plan.schedule is not None:
                values[names] = tuple(plan.values[m] for m in measures)
        if values:
            yield replace(table, values=values)

"""Homes over a network: every layer planned for all homes that its operands may have, then one home for every item.

The model is `formulations.homes.problem`; here its tables are filled with the plans of the layers, and an engine
chooses. The bound is the optimum of the same model with the bounds of the layers in place of their values.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from formulations.homes.problem import Chosen, Places, Table
from hwmodels.nest.homes import settled
from hwmodels.nest.limits import least_energy, lower_bound_bytes, tensor_bytes
from hwmodels.outcome import MEASURES
from instances.machine import Machine
from solver.homes.base import Houser
from solver.plan import Status
from solver.tiling.plan import LayerPlan

__all__ = ["Assignment", "Choice", "assignments", "choose"]

#: Homes of the operands of a layer: IN, W, OUT with a name each.
Assignment = tuple[tuple[str, str], ...]
_HASTE_S = 1.0


@dataclass(frozen=True)
class Choice:
    """The homes that are chosen.

    Attributes
    ----------
    layers : dict of str to tuple
        The homes of the operands of every planned layer.
    status, bound
        Of the network: over all homes and all plans.
    """

    chosen: Chosen | None
    layers: Mapping[str, Assignment]
    status: Status
    bound: int | None


def assignments(places: Places, table: Table) -> Iterator[Assignment]:
    """The homes that the operands of a layer may have."""
    return (tuple(one.items()) for one in places.assignments(table.operands))


def _houser(engine: str) -> Houser:
    """The engine that chooses homes: the asked one where it is a solver, else CP-SAT."""
    from solver.engines import homes_cp_sat, homes_milp  # late: every solver

    return {"milp": homes_milp.run_highs, "milp-cbc": homes_milp.run_cbc}.get(engine, homes_cp_sat.run)


def choose(
    places: Places,
    plans: Mapping[tuple[str, Assignment], LayerPlan],
    machine: Machine,
    objectives: tuple[str, ...],
    engine: str,
    time_limit_s: float | None,
) -> Choice:
    """Choose homes for the least sum of the layers' plans, lexicographically; ties by the other measures.

    Parameters
    ----------
    plans : mapping
        By layer and homes.
    """
    measures = (*objectives, *(m for m in MEASURES if m not in objectives))
    filled = replace(places, tables=tuple(_tables(places, plans, machine, measures, bounds=False)))
    run, end = _houser(engine), None if time_limit_s is None else time.monotonic() + time_limit_s

    def left() -> float | None:
        return None if end is None else end - time.monotonic()

    kept: list[int] = []
    proven: list[bool] = []
    chosen: Chosen | None = None
    for measure in (*range(len(measures)), None):
        said = run(filled, measure, kept, left())
        if said.chosen is None:  # the time is up, or a solver gave in to its floats: the ties that are left stay
            break
        chosen = said.chosen
        proven.append(said.proven)
        if measure is not None:
            kept.append((filled.price(chosen) or (0,) * len(measures))[measure])
        if said.stopped:  # by Ctrl-C: a bound is still asked for, in haste
            end = time.monotonic() + _HASTE_S
            break
    if chosen is None:
        return Choice(None, {}, "NO_SOLUTION_FOUND", None)
    layers = {t.layer: tuple((op, chosen[x]) for op, x in t.operands.items()) for t in places.tables}
    bound = None
    if all(plan.bound is not None for plan in plans.values() if plan.status == "FEASIBLE"):
        least = replace(places, tables=tuple(_tables(places, plans, machine, measures, bounds=True)))
        if least.tables == tuple(replace(t, values={a: v[:1] for a, v in t.values.items()}) for t in filled.tables):
            bound = kept[0] if proven[0] else None
        if bound is None:
            bound = min(kept[0], run(least, 0, (), left()).bound)
    asked = len(objectives)
    sure = len(proven) > asked and all(proven[:asked])
    every = all(plan.status in ("OPTIMAL", "INFEASIBLE") for plan in plans.values())
    optimal = sure and (every or (asked == 1 and bound == kept[0]))
    return Choice(chosen, layers, "OPTIMAL" if optimal else "FEASIBLE", bound)


def _tables(
    places: Places,
    plans: Mapping[tuple[str, Assignment], LayerPlan],
    machine: Machine,
    measures: tuple[str, ...],
    *,
    bounds: bool,
) -> Iterator[Table]:
    """The tables of the layers that have plans: their measures, or (`bounds`) what none is below in the first."""
    for table in places.tables:
        values: dict[tuple[str, ...], tuple[int, ...]] = {}
        for homes in assignments(places, table):
            plan, names = plans[table.layer, homes], tuple(name for _, name in homes)
            if bounds and plan.status != "INFEASIBLE":
                known = plan.bound
                values[names] = (_floor(plan, machine, homes, measures[0]) if known is None else known,)
            elif not bounds and plan.measures is not None:
                found = plan.measures.model_dump()
                values[names] = tuple(found[m] for m in measures)
        if values:
            yield replace(table, values=values)


def _floor(plan: LayerPlan, machine: Machine, homes: Assignment, measure: str) -> int:
    """What no plan of a layer with these homes is below, where time was up before anything was found."""
    layer, on = plan.workload, settled(plan.workload, machine, dict(homes))
    if measure == "bytes":
        return lower_bound_bytes(layer, on)
    if measure == "energy":
        return least_energy(layer, on)
    if on.tles * on.tlts > 1 or on.timing == "double_buffered":  # transfers run side by side
        return on.layer_ticks
    return on.layer_ticks + sum(on.transfer_of(op).byte_ticks * n for op, n in tensor_bytes(layer, on).items())

"""CP-SAT model of `formulations.homes.problem`: a Boolean for every home of an item and every assignment of a layer.

x[i, h] <=> home[i] = h;  y[t, a] <=> layer t has homes a: exactly one for every layer, and with it each home of a.
"""

from __future__ import annotations

from collections.abc import Sequence

from ortools.sat.python import cp_model

from formulations.homes.space import TASTE, Chosen, Places
from formulations.problem import Goal, Model


def cp_sat(places: Places, goal: Goal, *, overflow: bool = False) -> Model[Chosen]:
    """Build the model; with `overflow` the bytes beyond (ROOM) are minimised instead of the goal."""
    model = cp_model.CpModel()
    homes = [
        {name: model.new_bool_var(f"x{number}_{name}") for name in item.homes}
        for number, item in enumerate(places.items)
    ]
    for xs in homes:
        model.add_exactly_one(xs.values())
    for one, two in places.ties:
        for name in {*homes[one], *homes[two]}:
            model.add(homes[one].get(name, 0) == homes[two].get(name, 0))
    beyond = _room(model, places, homes, overflow=overflow)
    chosen = [] if overflow else _tables(model, places, homes)

    def cost(measure: str) -> cp_model.LinearExprT:
        costs = places.costs(measure)
        return sum(y * of[names] for ys, of in zip(chosen, costs, strict=True) for names, y in ys.items())

    for measure, most in goal.caps.items():
        model.add(cost(measure) <= most)
    if overflow:
        model.minimize(sum(beyond))
    elif goal.measure == TASTE:
        model.minimize(sum(k * x for xs in homes for k, x in enumerate(xs.values())))
    else:
        model.minimize(cost(goal.measure))
    return Model(
        model, lambda solver: tuple(next(name for name, x in xs.items() if solver.boolean_value(x)) for xs in homes)
    )


def _room(
    model: cp_model.CpModel, places: Places, of: Sequence[dict[str, cp_model.IntVar]], *, overflow: bool
) -> list[cp_model.IntVar]:
    """(ROOM), or how far each memory is beyond it."""
    beyond = []
    for name, room in places.rooms.items():
        most: cp_model.IntVar | int = 0
        if overflow:
            most = model.new_int_var(0, sum(item.bytes for item in places.items), f"over_{name}")
            beyond.append(most)
        for time in places.times:
            there = [x for x in places.there(time) if name in of[x]]
            model.add(sum(places.items[x].bytes * of[x][name] for x in there) - most <= room)
    return beyond


def _tables(
    model: cp_model.CpModel, places: Places, of: Sequence[dict[str, cp_model.IntVar]]
) -> list[dict[tuple[str, ...], cp_model.IntVar]]:
    """The assignments of all layers."""
    found = []
    for t, table in enumerate(places.tables):
        ys = {names: model.new_bool_var(f"y{t}_{number}") for number, names in enumerate(table.values)}
        model.add_exactly_one(ys.values())
        for names, y in ys.items():
            for x, name in zip(table.operands.values(), names, strict=True):
                model.add_implication(y, of[x][name])
        found.append(ys)
    return found

"""CP-SAT model of `formulations.homes.problem`: a Boolean for every home of an item and every assignment of a layer.

x[i, h] <=> home[i] = h;  y[t, a] <=> layer t has homes a: exactly one for every layer, and with it each home of a.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from formulations.homes.problem import Chosen, Places

__all__ = ["CpSat", "cp_sat"]


@dataclass(frozen=True)
class CpSat:
    """The model, and its homes (item, home)."""

    model: cp_model.CpModel
    homes: tuple[tuple[cp_model.IntVar, ...], ...]
    places: Places

    def chosen(self, solver: cp_model.CpSolver) -> Chosen:
        """The homes of a solution."""
        return tuple(
            next(name for name, x in zip(item.homes, xs, strict=True) if solver.boolean_value(x))
            for item, xs in zip(self.places.items, self.homes, strict=True)
        )


def cp_sat(places: Places, measure: int | None, kept: Sequence[int] = (), *, overflow: bool = False) -> CpSat:
    """Build the model.

    Parameters
    ----------
    measure : int or None
        The number of the measure that is minimised; None: the places of the homes.
    kept : sequence of int
        What the measures before it may be at most.
    overflow : bool
        Minimise the bytes beyond (ROOM) instead.
    """
    model = cp_model.CpModel()
    homes = tuple(
        tuple(model.new_bool_var(f"x{number}_{name}") for name in item.homes)
        for number, item in enumerate(places.items)
    )
    for xs in homes:
        model.add_exactly_one(xs)
    of = [dict(zip(item.homes, xs, strict=True)) for item, xs in zip(places.items, homes, strict=True)]
    for one, two in places.ties:
        for name in {*of[one], *of[two]}:
            model.add(of[one].get(name, 0) == of[two].get(name, 0))
    beyond = _room(model, places, of, overflow=overflow)
    if overflow:
        model.minimize(sum(beyond))
        return CpSat(model, homes, places)
    chosen = _tables(model, places, of)
    for number, most in enumerate(kept):
        model.add(sum(y * value[number] for y, value in chosen) <= most)
    if measure is None:
        model.minimize(sum(k * x for xs in homes for k, x in enumerate(xs)))
    else:
        model.minimize(sum(y * value[measure] for y, value in chosen))
    return CpSat(model, homes, places)


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
) -> list[tuple[cp_model.IntVar, tuple[int, ...]]]:
    """The assignments of all layers with their measures."""
    found = []
    for t, table in enumerate(places.tables):
        ys = [model.new_bool_var(f"y{t}_{number}") for number in range(len(table.values))]
        model.add_exactly_one(ys)
        for y, (names, value) in zip(ys, table.values.items(), strict=True):
            for x, name in zip(table.operands.values(), names, strict=True):
                model.add_implication(y, of[x][name])
            found.append((y, value))
    return found

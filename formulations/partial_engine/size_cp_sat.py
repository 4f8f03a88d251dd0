"""CP-SAT model of F4 engine size: the sets, variables and constraints of `formulations.partial_engine.size`."""

from __future__ import annotations

from collections.abc import Sequence

from ortools.sat.python import cp_model

from formulations.partial_engine.size import Rates, Size, ranked

__all__ = ["size_cp_model"]


def size_cp_model(sizes: Sequence[Size], aim: Rates, dsps: int, brams: int) -> tuple[cp_model.CpModel, list[int]]:
    """Return the model, which maximises a rank, and the levels."""
    model = cp_model.CpModel()
    y = [model.new_bool_var(f"y_{size.e_in}_{size.e_out}") for size in sizes]
    for name in ("e_in", "e_out"):
        values = sorted({getattr(size, name) for size in sizes})
        one = {value: model.new_bool_var(f"{name}_{value}") for value in values}
        model.add_exactly_one(one.values())
        for value in values:
            model.add(sum(v for v, s in zip(y, sizes, strict=True) if getattr(s, name) == value) == one[value])
    for chosen, size in zip(y, sizes, strict=True):
        if size.dsps > dsps or size.brams > brams:
            model.add(chosen == 0)
    levels, ranks = ranked(sizes, aim)
    k = model.new_int_var(0, len(levels) - 1, "k")
    for row in ranks:
        model.add(k <= cp_model.LinearExpr.weighted_sum(y, row))
    model.maximize(k)
    return model, levels

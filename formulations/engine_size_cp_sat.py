"""CP-SAT model of F4 engine size: the sets, variables and constraints of `formulations.engine_size`."""

from __future__ import annotations

from collections.abc import Sequence

from ortools.sat.python import cp_model

from formulations.engine_size import Rates, Size

__all__ = ["size_cp_model"]


def size_cp_model(
    sizes: Sequence[Size], aim: Rates, dsps: int, brams: int
) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    """Return the model and y, in the order of the sizes."""
    model = cp_model.CpModel()
    y = [model.new_bool_var(f"y_{size.e_in}_{size.e_out}") for size in sizes]
    for name in ("e_in", "e_out"):
        values = sorted({getattr(size, name) for size in sizes})
        one = {value: model.new_bool_var(f"{name}_{value}") for value in values}
        model.add_exactly_one(one.values())
        for value in values:
            model.add(sum(v for v, s in zip(y, sizes, strict=True) if getattr(s, name) == value) == one[value])
    model.add(cp_model.LinearExpr.weighted_sum(y, [size.dsps for size in sizes]) <= dsps)
    model.add(cp_model.LinearExpr.weighted_sum(y, [size.brams for size in sizes]) <= brams)
    if aim == "mean":
        model.maximize(cp_model.LinearExpr.weighted_sum(y, [size.value("mean") for size in sizes]))
        return model, y
    worst = model.new_int_var(0, max((max(size.rates) for size in sizes), default=0), "worst")
    for n in range(len(sizes[0].rates)):
        model.add(worst <= cp_model.LinearExpr.weighted_sum(y, [size.rates[n] for size in sizes]))
    model.maximize(worst)
    return model, y

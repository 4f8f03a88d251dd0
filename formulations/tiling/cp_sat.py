"""CP-SAT model of one branch (a skeleton with candidate tile sizes).

Sets         s in S spatial choices, q in Q channel choices; k rows of a table
Parameters   a[k,s], b[k,q] of every table (`hwmodels.nest.price.core`), limit of every capacity row      (integers)
Variables    y[s], x[q] in {0, 1}; B[k] integer; cost integer
Objective    min cost
Constraints  (CHOOSE)    sum_s y[s] = 1, sum_q x[q] = 1
             (FACTOR)    B[k] = sum_q b[k,q] x[q]
             (COST)      y[s] => sum_k a[k,s] B[k] <= cost                 for every objective table; the largest counts
             (CAPACITY)  x[q] => some y[s] that fits with q                for every q some s does not fit with
             (FIT)       y[s] => B[k] >= least b[k,q] over the q that fit with s
             (LEVEL)     y[s] => sum_k a[k,s] B[k] <= value                for every earlier objective
             (CUT)       not (y[s] and x[q])                               for plans already priced exactly
Of candidates a choice is a chain of steps of every dimension. Of bounds (`hwmodels.nest.price.choices.Choices.ideal`)
it is a class of ways to cut or a vector (`formulations.tiling.vectors`): with (n, t, C) for E in n pieces of at most t
and C rounds of lanes, n stands in a and b for trips, t for sizes of tiles, C for cycles. The least cost is then a bound
for every way to cut, and "infeasible" with `at_most` says that no nest of the skeleton is so good.
A choice pair fits if every capacity row holds: with one-hots this pair table states capacity exactly. Equal factors b
share one variable. Rows that cannot bind are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from formulations.tiling.branch import Branch
from hwmodels.nest.price.bilinear import Bilinear

TAGS = ("CHOOSE", "FACTOR", "COST", "CAPACITY", "FIT", "LEVEL", "CUT")


@dataclass
class CpSatModel:
    """A built model with what decodes its solution."""

    branch: Branch
    model: cp_model.CpModel
    spatial: list[cp_model.IntVar]
    channel: list[cp_model.IntVar]
    tags: set[str] = field(default_factory=set)
    factors: dict[bytes, cp_model.IntVar | int] = field(default_factory=dict)

    def decode(self, solver: cp_model.CpSolver) -> tuple[int, int]:
        """Return the chosen (s, q)."""
        s = next(i for i, v in enumerate(self.spatial) if solver.value(v))
        q = next(i for i, v in enumerate(self.channel) if solver.value(v))
        return s, q


def build_cp_sat(
    branch: Branch,
    objective: str,
    *,
    at_most: int | None = None,
    levels: Mapping[str, int] | None = None,
    cuts: Sequence[tuple[int, int]] = (),
) -> CpSatModel:
    """Build the model that minimises `objective` over `branch`.

    `at_most`: only plans with an objective up to this value are of interest. `levels`: values that earlier objectives
    must keep. `cuts`: plans to leave out.
    """
    model = cp_model.CpModel()
    built = CpSatModel(
        branch, model,
        [model.new_bool_var(f"y{s}") for s in range(branch.choices.shape[0])],
        [model.new_bool_var(f"x{q}") for q in range(branch.choices.shape[1])],
    )  # fmt: skip
    model.add_exactly_one(built.spatial)
    model.add_exactly_one(built.channel)
    built.tags.add("CHOOSE")
    top = max(t.ceiling() for t in branch.tables(objective))
    cost = model.new_int_var(0, top if at_most is None else min(top, at_most), "cost")
    for table in branch.tables(objective):
        _rows(built, table, cost, "COST")
    fits = branch.feasible()
    _capacity(built, fits)
    for table in branch.tables(objective):
        _fit(built, table, fits)
    for measure, value in (levels or {}).items():
        for table in branch.tables(measure):
            _rows(built, table, value, "LEVEL")
    for s, q in cuts:
        model.add_bool_or(built.spatial[s].negated(), built.channel[q].negated())
        built.tags.add("CUT")
    model.minimize(cost)
    return built


def _factor(built: CpSatModel, table: Bilinear) -> list[cp_model.IntVar | int]:
    """One variable per distinct channel factor, a constant where it does not vary."""
    columns, factors = [], built.factors
    for row in table.b:
        key = row.tobytes()
        if key not in factors:
            low, high = int(row.min()), int(row.max())
            if low == high:
                factors[key] = low
            else:
                column = built.model.new_int_var(low, high, f"B{len(factors)}")
                built.model.add(column == cp_model.LinearExpr.weighted_sum(built.channel, row.tolist()))
                factors[key] = column
                built.tags.add("FACTOR")
        columns.append(factors[key])
    return columns


def _rows(built: CpSatModel, table: Bilinear, right: cp_model.IntVar | int, tag: str) -> None:
    """y[s] => sum_k a[k,s] B[k] <= right, for every s where it can bind."""
    columns = _factor(built, table)
    highest = table.b.max(axis=1)
    for s, choice in enumerate(built.spatial):
        weights = [int(w) for w in table.a[:, s]]
        if isinstance(right, int) and sum(w * int(h) for w, h in zip(weights, highest, strict=True)) <= right:
            continue
        value = sum(w * column for w, column in zip(weights, columns, strict=True) if w)
        if isinstance(value, int) and isinstance(right, int):
            built.model.add(choice == 0)
        else:
            built.model.add(value <= right).only_enforce_if(choice)
        built.tags.add(tag)


def _capacity(built: CpSatModel, fits: NDArray[np.bool_]) -> None:
    for q, column in enumerate(fits.T):
        if not column.all():
            fitting = [built.spatial[s] for s in np.flatnonzero(column)]
            built.model.add_bool_or([built.channel[q].negated(), *fitting])
            built.tags.add("CAPACITY")


def _fit(built: CpSatModel, table: Bilinear, fits: NDArray[np.bool_]) -> None:
    """Implied by CAPACITY; tells the relaxation how small a factor can be beside each spatial choice."""
    for row, column in zip(table.b, _factor(built, table), strict=True):
        if isinstance(column, int):
            continue
        least = np.where(fits, row, row.max()).min(axis=1)
        for s in np.flatnonzero(least > row.min()):
            built.model.add(column >= int(least[s])).only_enforce_if(built.spatial[s])
            built.tags.add("FIT")

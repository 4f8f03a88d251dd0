"""MILP model of one branch: the perspective formulation (PuLP).

Sets         s in S spatial choices, q in Q channel choices; k rows of a table
Parameters   a[k,s], b[k,q] of every table (`hwmodels.nest.price.core`), limit of every capacity row      (integers)
Variables    y[s], x[q] in {0, 1}; P[k,s] >= 0 (B[k] where s is chosen, else 0); cost
Objective    min cost
Constraints  (CHOOSE)    sum_s y[s] = 1, sum_q x[q] = 1
             (FACTOR)    sum_s P[k,s] = sum_q b[k,q] x[q];  low[k,s] y[s] <= P[k,s] <= high[k,s] y[s], low and high the
                         least and largest b[k,q] over the q that fit with s
             (COST)      sum_{k,s} a[k,s] P[k,s] <= cost                   for every objective table; the largest counts
             (CAPACITY)  x[q] <= sum of y[s] over the s that fit with q    for every q some s does not fit with
             (LEVEL)     sum_{k,s} a[k,s] P[k,s] <= value                  for every earlier objective
             (CUT)       y[s] + x[q] <= 1                                  for plans already priced exactly
Choices are chains of steps, or of bounds classes of ways to cut and vectors, as in `formulations.tiling.cp_sat`.
A choice pair fits if every capacity row holds, so with one-hots the pair table states capacity exactly, and much
tighter in the relaxation than the rows themselves, where a huge tile and a tiny one average to one that fits. Choosing
s makes P[k,.] the product y[s] * B[k]: the convex hull of the product where a big-M would be loose. The only bounds
used are the least and largest factor of a row, so no constant is typed by hand. Equal factors share their variables; a
factor is divided by its gcd, cost rows by the gcd of their coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

import numpy as np
import pulp
from numpy.typing import NDArray

from formulations.tiling.branch import Branch
from hwmodels.nest.price.bilinear import Bilinear

TAGS = ("CHOOSE", "FACTOR", "COST", "CAPACITY", "LEVEL", "CUT")
#: A linear expression as (variable, coefficient) pairs.
Row = list[tuple[pulp.LpVariable, int]]


@dataclass
class MilpModel:
    """A built model with what decodes its solution; objective values are in units of `unit`."""

    branch: Branch
    problem: pulp.LpProblem
    spatial: list[pulp.LpVariable]
    channel: list[pulp.LpVariable]
    unit: int = 1
    tags: set[str] = field(default_factory=set)
    factors: dict[bytes, list[pulp.LpVariable] | int] = field(default_factory=dict)
    fits: NDArray[np.bool_] = field(default_factory=lambda: np.ones((0, 0), np.bool_))

    def decode(self) -> tuple[int, int]:
        """Return the chosen (s, q): the largest of each one-hot."""
        return (
            int(np.argmax([v.value() or 0.0 for v in self.spatial])),
            int(np.argmax([v.value() or 0.0 for v in self.channel])),
        )

    def add(self, row: Row, sense: int, right: int, tag: str) -> None:
        """Add ``sum row (<=, =, >=) right``; a variable may occur in several terms."""
        sums: dict[pulp.LpVariable, int] = {}
        for variable, coefficient in row:
            sums[variable] = sums.get(variable, 0) + coefficient
        divisor = gcd(right, *sums.values()) or 1
        expression = pulp.LpAffineExpression([(v, c // divisor) for v, c in sums.items() if c])
        self.problem.addConstraint(pulp.LpConstraint(expression, sense, rhs=right // divisor))
        self.tags.add(tag)


def build_milp(
    branch: Branch,
    objective: str,
    *,
    at_most: int | None = None,
    levels: Mapping[str, int] | None = None,
    cuts: Sequence[tuple[int, int]] = (),
) -> MilpModel:
    """Build the model that minimises `objective` over `branch`; parameters as in the CP-SAT model."""
    built = MilpModel(
        branch, pulp.LpProblem("branch", pulp.LpMinimize),
        [pulp.LpVariable(f"y{s}", cat="Binary") for s in range(branch.choices.shape[0])],
        [pulp.LpVariable(f"x{q}", cat="Binary") for q in range(branch.choices.shape[1])],
    )  # fmt: skip
    built.fits = branch.feasible()
    for one in (built.spatial, built.channel):
        built.add([(v, 1) for v in one], pulp.LpConstraintEQ, 1, "CHOOSE")
    _cost(built, branch.tables(objective), at_most)
    _capacity(built)
    for measure, value in (levels or {}).items():
        for table in branch.tables(measure):
            row = [term for part in _expressions(built, table) for term in part]
            built.add(row, pulp.LpConstraintLE, value, "LEVEL")
    for s, q in cuts:
        built.add([(built.spatial[s], 1), (built.channel[q], 1)], pulp.LpConstraintLE, 1, "CUT")
    return built


def _factor(built: MilpModel, row: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[pulp.LpVariable] | int:
    """The perspective variables P[k, .] of one channel factor, or its value where it does not vary."""
    key = row.tobytes()
    if key not in built.factors:
        low, high = int(row.min()), int(row.max())
        if low == high:
            built.factors[key] = low
            return low
        parts = [pulp.LpVariable(f"P{len(built.factors)}_{s}", 0) for s in range(len(built.spatial))]
        total: Row = [(p, 1) for p in parts]
        built.add(
            total + [(x, -int(v)) for x, v in zip(built.channel, row, strict=True)], pulp.LpConstraintEQ, 0, "FACTOR"
        )
        lows = np.where(built.fits, row, high).min(axis=1)
        highs = np.where(built.fits, row, low).max(axis=1)
        for part, choice, least, most in zip(parts, built.spatial, lows.tolist(), highs.tolist(), strict=True):
            built.add([(part, 1), (choice, -most)], pulp.LpConstraintLE, 0, "FACTOR")
            if least:
                built.add([(part, 1), (choice, -least)], pulp.LpConstraintGE, 0, "FACTOR")
        built.factors[key] = parts
    return built.factors[key]


def _expressions(built: MilpModel, table: Bilinear) -> list[Row]:
    """For every s the row ``sum_k a[k,s] P[k,s]``, equal to f(s, q) if s is chosen and 0 otherwise."""
    constant = [0] * len(built.spatial)
    rows: list[Row] = [[] for _ in built.spatial]
    for weights, channel in zip(table.a, table.b, strict=True):
        divisor = int(np.gcd.reduce(channel)) or 1
        parts = _factor(built, channel // divisor)
        for s, weight in enumerate(weights):
            if not weight:
                continue
            if isinstance(parts, int):
                constant[s] += int(weight) * divisor * parts
            else:
                rows[s].append((parts[s], int(weight) * divisor))
    return [row + ([(y, c)] if c else []) for row, y, c in zip(rows, built.spatial, constant, strict=True)]


def _cost(built: MilpModel, tables: Sequence[Bilinear], at_most: int | None) -> None:
    sums = [[term for row in _expressions(built, t) for term in row] for t in tables]
    built.unit = gcd(*(c for row in sums for _, c in row)) or 1
    cost = pulp.LpVariable("cost", 0, None if at_most is None else at_most // built.unit)
    built.problem.setObjective(pulp.LpAffineExpression([(cost, 1)]))
    for row in sums:
        scaled = [(v, c // built.unit) for v, c in row]
        built.add([*scaled, (cost, -1)], pulp.LpConstraintLE, 0, "COST")


def _capacity(built: MilpModel) -> None:
    for q, column in enumerate(built.fits.T):
        if not column.all():
            fitting: Row = [(built.spatial[s], -1) for s in np.flatnonzero(column)]
            built.add([(built.channel[q], 1), *fitting], pulp.LpConstraintLE, 0, "CAPACITY")

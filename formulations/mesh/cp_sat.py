"""CP-SAT model of mesh: one option of each half; a product of two halves is linear once an option of one is fixed.

Sets, parameters as in `formulations.mesh`; halves of a member as in `formulations.mesh.search`; the half with
fewer options is the outer one
    K, J        classes of options of the inner and the outer half that have equal terms in a sum
Variables    x[u], y[v] in {0, 1}: the options;  z[k], w[j]: whether the option taken is in a class;  T: the objective
Derived      value[j,k] = constant + sum of factor[t]*a[t,k]*b[t,j], for every sum
Objective    min T
Constraints  one option of each half; z, w are sums of x, y
             (DEMAND)  w[j] + sum of z[k] over k with value[j,k] above a demand or limit <= 1, the same for keys that
                       do not add up
             (VALUE)   w[j] = 1 -> rate*T >= least[j] + sum of (value[j,k] - least[j])*z[k], with least[j] the least of
                       value[j,k] that keeps its limit; for time once for each part of the roofline
             pairs that are forbidden (no layout) are not taken
Against products of variables: with the outer option fixed, (DEMAND) and (VALUE) leave out all that is not better by
propagation alone, and classes keep rows short: many options differ in what a layout needs only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from ortools.sat.python import cp_model

from formulations.mesh.price import Ints, Linear, roof
from formulations.mesh.search import Halves
from formulations.mesh.space import Group

Literals = list[cp_model.IntVar]


@dataclass
class MeshCpModel:
    """The model with its variables."""

    model: cp_model.CpModel
    left: Literals
    right: Literals

    def chosen(self, solver: cp_model.CpSolver) -> tuple[int, int]:
        """The pair of options of a solution."""
        left, right = (
            next(at for at, x in enumerate(half) if solver.boolean_value(x)) for half in (self.left, self.right)
        )
        return left, right


@dataclass
class _Half:
    """A half with its options' variables."""

    model: cp_model.CpModel
    name: str
    group: Group
    options: Literals
    made: dict[str, tuple[Ints, Literals]] = field(default_factory=dict)

    def classes(self, what: str, entries: Ints) -> tuple[Ints, Literals]:
        """Rows of entries that differ, and for each whether the option taken has it."""
        if what not in self.made:
            values, which = np.unique(entries, axis=0, return_inverse=True)
            order = np.argsort(which.reshape(-1), kind="stable")
            ends = np.cumsum(np.bincount(which.reshape(-1), minlength=len(values)))
            members = [[self.options[u] for u in part] for part in np.split(order, ends[:-1])]
            literals = [self._any(f"{self.name}_{what}_{k}", some) for k, some in enumerate(members)]
            self.made[what] = values, literals
        return self.made[what]

    def _any(self, name: str, options: Literals) -> cp_model.IntVar:
        if len(options) == 1:
            return options[0]
        taken = self.model.new_bool_var(name)
        self.model.add(cp_model.LinearExpr.sum(options) == taken)
        return taken


def cp_model_of(found: Halves, measure: str) -> MeshCpModel:
    """Return the model; both halves have options. Raises TimeUp."""
    model = cp_model.CpModel()
    left, right = (
        _Half(model, name, group, [model.new_bool_var(f"{name}_{at}") for at in range(len(group))])
        for name, group in (("x", found.left), ("y", found.right))
    )
    for half in (left, right):
        model.add_exactly_one(half.options)
    _Rows(model, found, *((left, right) if len(left.group) >= len(right.group) else (right, left))).add(measure)
    for u, v in found.forbidden:
        model.add_bool_or(left.options[u].negated(), right.options[v].negated())
    return MeshCpModel(model, left.options, right.options)


@dataclass
class _Rows:
    """The constraints on pairs."""

    model: cp_model.CpModel
    found: Halves
    inner: _Half
    outer: _Half

    def add(self, measure: str) -> None:
        """All of them, and the objective."""
        member = self.found.member
        total = np.array(member.total, dtype=np.int64)
        if len(total):
            keys, taken = self.inner.classes("key", self.inner.group.keys)
            for key, outer in zip(*self.outer.classes("key", self.outer.group.keys), strict=True):
                self._exclude(outer, taken, (keys + key != total).any(axis=1))
        for cap in member.caps:
            self._sum(cap.what, cap.limit)
        aims = roof(member.setup.mesh, measure)
        goal = self.model.new_int_var(0, 2**53, "T")
        for name, what in member.measures.items():
            self._sum(what, self.found.limits.get(name), goal * aims[name] if name in aims else None)
        self.model.minimize(goal)

    def _sum(self, what: Linear, limit: int | None, goal: cp_model.LinearExprT | None = None) -> None:
        """A sum of products is at most a limit, and at most the objective."""
        names = [name for name in self.found.member.names if name in what.factors]
        at = [self.found.member.names.index(name) for name in names]
        factors = np.array([what.factors[name] for name in names], dtype=np.int64)
        tag = "+".join(names)
        inner, taken = self.inner.classes(tag, self.inner.group.terms[:, at])
        for entries, outer in zip(*self.outer.classes(tag, self.outer.group.terms[:, at]), strict=True):
            self.found.member.setup.clock.tick()
            values = inner @ (factors * entries) + what.constant
            over = values > limit if limit is not None else np.zeros(len(values), dtype=bool)
            self._exclude(outer, taken, over)
            if goal is not None and not over.all():
                self._value(goal, outer, taken, np.where(over, values.min(), values))

    def _exclude(self, outer: cp_model.IntVar, taken: Literals, which: Sequence[bool] | np.ndarray) -> None:
        """None of these classes with an outer class."""
        if np.any(which):
            self.model.add_at_most_one([outer, *(taken[k] for k in np.flatnonzero(which))])

    def _value(self, goal: cp_model.LinearExprT, outer: cp_model.IntVar, taken: Literals, values: Ints) -> None:
        """The objective is at least what the outer class and the inner one come to."""
        least = int(values.min())
        more = np.flatnonzero(values > least)
        above = [int(v) for v in values[more] - least]
        self.model.add(
            goal >= least + cp_model.LinearExpr.weighted_sum([taken[k] for k in more], above)
        ).only_enforce_if(outer)

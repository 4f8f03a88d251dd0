"""CP-SAT model of F3 mesh: one option of each half, and products of what they sum up to.

Sets, parameters as in `formulations.mesh`; halves of a member as in `formulations.mesh_search`
Variables    x[u], y[v] in {0, 1}: the options;  a[t], b[t]: term t of either half;  p[t] = a[t] * b[t]
Objective    min sum of factor[t]*p[t], or min T with T >= each part of the roofline
Constraints  one option of each half; a, b are the entries of the options; every demand and limit; keys add up;
             pairs that are forbidden (no layout) are not taken
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ortools.sat.python import cp_model

from formulations.mesh_search import Halves
from formulations.mesh_space import Group
from formulations.mesh_tables import Ints, Linear

__all__ = ["MeshCpModel", "cp_model_of"]

_Expression = cp_model.LinearExpr | cp_model.IntVar


@dataclass
class MeshCpModel:
    """The model with its variables."""

    model: cp_model.CpModel
    left: list[cp_model.IntVar]
    right: list[cp_model.IntVar]

    def chosen(self, solver: cp_model.CpSolver) -> tuple[int, int]:
        """The pair of options of a solution."""
        left, right = (
            next(at for at, x in enumerate(half) if solver.boolean_value(x)) for half in (self.left, self.right)
        )
        return left, right


def cp_model_of(found: Halves, measure: str) -> MeshCpModel:
    """Return the model; both halves have options."""
    model, member = cp_model.CpModel(), found.member
    left = [model.new_bool_var(f"x_{u}") for u in range(len(found.left))]
    right = [model.new_bool_var(f"y_{v}") for v in range(len(found.right))]
    model.add_exactly_one(left)
    model.add_exactly_one(right)
    products = {
        name: _product(model, name, _entry(left, found.left.terms[:, t]), _entry(right, found.right.terms[:, t]),
                       found, t)
        for t, name in enumerate(member.names)
    }  # fmt: skip

    def total(what: Linear) -> _Expression:
        return what.constant + cp_model.LinearExpr.weighted_sum(
            [products[name] for name in what.factors], list(what.factors.values())
        )

    for cap in member.caps:
        model.add(total(cap.what) <= cap.limit)
    for name, what in member.measures.items():
        if name in found.limits:
            model.add(total(what) <= found.limits[name])
    for k, wanted in enumerate(member.total):
        keys = [_entry(half, group.keys[:, k]) for half, group in ((left, found.left), (right, found.right))]
        model.add(keys[0] + keys[1] == wanted)
    for u, v in found.forbidden:
        model.add_bool_or(left[u].negated(), right[v].negated())
    model.minimize(_goal(model, found, measure, total))
    return MeshCpModel(model, left, right)


def _goal(model: cp_model.CpModel, found: Halves, measure: str, total: Callable[[Linear], _Expression]) -> _Expression:
    measures, mesh = found.member.measures, found.member.setup.mesh
    if measure != "time":
        return total(measures[measure])
    time = model.new_int_var(0, 2**53, "T")
    model.add(time >= total(measures["cycles"]))
    model.add(time * mesh.dram_bytes_per_cycle >= total(measures["dram"]))
    model.add(time * mesh.global_bytes_per_cycle >= total(measures["glb"]))
    return time


def _entry(options: list[cp_model.IntVar], entries: Ints) -> cp_model.LinearExpr:
    return cp_model.LinearExpr.weighted_sum(options, [int(e) for e in entries])


def _product(
    model: cp_model.CpModel, name: str, one: cp_model.LinearExpr, two: cp_model.LinearExpr, found: Halves, t: int
) -> cp_model.IntVar:  # fmt: skip
    """A variable that is the product of two entries."""
    (a, alow, atop), (b, blow, btop) = (
        _variable(model, f"{name}_{side}", entry, group, t)
        for side, entry, group in (("a", one, found.left), ("b", two, found.right))
    )
    made = model.new_int_var(alow * blow, atop * btop, f"p_{name}")
    model.add_multiplication_equality(made, [a, b])
    return made


def _variable(
    model: cp_model.CpModel, name: str, entry: cp_model.LinearExpr, group: Group, t: int
) -> tuple[cp_model.IntVar, int, int]:  # fmt: skip
    values = group.terms[:, t]
    domain = cp_model.Domain.from_values([int(v) for v in sorted(set(values.tolist()))])
    variable = model.new_int_var_from_domain(domain, name)
    model.add(variable == entry)
    return variable, int(values.min()), int(values.max())

"""CP-SAT model of F4 engine: strips, places, and how often groups of maps move, by the bounds that hold for all orders.

Sets         choices b of strips and places; their games g (grids that are not alike)
Variables    z[b] in {0, 1}; w[b,g], v[b,g] in N: entries of inputs and of partial maps beyond one each;
             A[b,g], B[b,g] in N: bytes of these; p[b,g], q[b,g] in {0, 1}
Objective    min sum_b z[b]*least[b] + sum number[g]*(A[b,g] + B[b,g])
Constraints  (ONE)    sum_b z[b] = 1
             (COUNT)  z[b] => y*w + x*v >= (I - x)*(O - y)
             (WHOLE)  p => v >= r;  z[b] and not p => A >= whole bytes
             (WHOLE') q => w >= r';  z[b] and not q => B >= whole' bytes
             (EACH)   A >= load*w, B >= swap*v
             (STAY)   v = 0 if partial maps may not be stored
The optimum is a bound for every order (`formulations.runs_bounds`); an order in passes with these strips and places
that moves as many bytes is therefore optimal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from formulations.runs import Branch
from formulations.runs_bounds import counting

__all__ = ["RunsCpModel", "runs_cp_model"]


@dataclass
class RunsCpModel:
    """The model; `base` is to be added to its objective, which counts in `unit` bytes."""

    model: cp_model.CpModel
    z: list[cp_model.IntVar]
    base: int

    def chosen(self, solver: cp_model.CpSolver) -> int:
        """The choice of a solution, as a number."""
        return next(n for n, z in enumerate(self.z) if solver.boolean_value(z))


def runs_cp_model(branches: Sequence[Branch], *, stay: bool = False) -> RunsCpModel:
    """Return the model of some choices."""
    model, base = cp_model.CpModel(), min(branch.least for branch in branches)
    z = [model.new_bool_var(f"z_{b}") for b in range(len(branches))]
    model.add_exactly_one(z)
    terms: list[tuple[cp_model.IntVar, int]] = []
    for b, branch in enumerate(branches):
        terms.append((z[b], branch.least - base))
        for g, (game, number) in enumerate(branch.games):
            at = counting(game)
            most_w, most_v = max(at.whole_in, -(-at.need // at.y)), max(at.whole, -(-at.need // at.x))
            w = model.new_int_var(0, most_w, f"w_{b}_{g}")
            v = model.new_int_var(0, 0 if stay else most_v, f"v_{b}_{g}")
            A = model.new_int_var(0, max(most_w * at.load, at.whole_bytes), f"A_{b}_{g}")
            B = model.new_int_var(0, max(most_v * at.swap, at.whole_in_bytes), f"B_{b}_{g}")
            p, q = model.new_bool_var(f"p_{b}_{g}"), model.new_bool_var(f"q_{b}_{g}")
            model.add(at.y * w + at.x * v >= at.need).only_enforce_if(z[b])
            model.add(v >= at.whole).only_enforce_if(p)
            model.add(at.whole_bytes <= A).only_enforce_if(z[b], p.negated())
            model.add(w >= at.whole_in).only_enforce_if(q)
            if not stay:
                model.add(at.whole_in_bytes <= B).only_enforce_if(z[b], q.negated())
            model.add(at.load * w <= A)
            model.add(at.swap * v <= B)
            terms += [(A, number), (B, number)]
    model.minimize(cp_model.LinearExpr.weighted_sum([v for v, _ in terms], [c for _, c in terms]))
    return RunsCpModel(model, z, base)

"""CP-SAT model of F4 engine: strips, places, and how often groups of maps move, by the bounds that hold for all orders.

Sets         choices b of strips and places; their games g (grids that are not alike)
Variables    z[b] in {0, 1}; w1, w2, v1, v2 [b,g] in N: entries of inputs and of partial maps beyond one each,
             w = w1 + w2, v = v1 + v2; w1', w2', v1', v2' the same without the cheapest group;
             ins, parts [b,g] in N: bytes; p, q [b,g] in {0, 1}
Objective    min sum_b z[b]*least[b] + sum number[g]*(ins[b,g] + parts[b,g])
Constraints  (ONE)    sum_b z[b] = 1
             (COUNT)  z[b] => y*w1 + r*w2 + x*v >= (I - x)*(O - y),  x*v1 + r'*v2 + y*w >= (I - x)*(O - y)
             (WHOLE)  p => v >= r, parts >= the r least swaps;  z[b] and not p => ins >= whole bytes
             (WHOLE') q => w >= r', ins >= the r' least loads;  z[b] and not q => parts >= whole' bytes
             (FULL)   z[b] => y*w1' + r*w2' + x*v >= (I - 1 - x)*(O - y);  ins >= second least load*w';
                      z[b] => x*v1' + r'*v2' + y*w >= (I - x)*(O - 1 - y);  parts >= second least swap*v'
             (EACH)   ins >= load*w, parts >= swap*v
             (STAY)   v = 0 if partial maps may not be stored; parts is then not bounded
The optimum is a bound for every order (`formulations.partial_engine.bounds`); an order in passes with these strips and
places that moves as many bytes is therefore optimal. Bytes beyond those of a known order count as one more than these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from formulations.partial_engine.bounds import Counting, capped, counting
from formulations.partial_engine.space import Branch

__all__ = ["RunsCpModel", "runs_cp_model"]


@dataclass
class RunsCpModel:
    """The model; `base` bytes are to be added to its objective."""

    model: cp_model.CpModel
    z: list[cp_model.IntVar]
    base: int

    def chosen(self, solver: cp_model.CpSolver) -> int:
        """The choice of a solution, as a number."""
        return next(n for n, z in enumerate(self.z) if solver.boolean_value(z))


def runs_cp_model(branches: Sequence[Branch], known: int, *, stay: bool = False) -> RunsCpModel:
    """Return the model of some choices; some order moves `known` bytes."""
    model, base = cp_model.CpModel(), min(branch.least for branch in branches)
    most = known + 1 - base
    z = [model.new_bool_var(f"z_{b}") for b in range(len(branches))]
    model.add_exactly_one(z)
    terms: list[tuple[cp_model.IntVar, int]] = []
    for b, branch in enumerate(branches):
        terms.append((z[b], branch.least - base))
        for g, (game, number) in enumerate(branch.games):
            bytes_ = _game(model, z[b], f"{b}_{g}", capped(counting(game), most), stay=stay)
            terms += [(one, number) for one in bytes_]
    model.minimize(cp_model.LinearExpr.weighted_sum([v for v, _ in terms], [c for _, c in terms]))
    return RunsCpModel(model, z, base)


def _game(
    model: cp_model.CpModel, z: cp_model.IntVar, name: str, at: Counting, *, stay: bool
) -> tuple[cp_model.IntVar, cp_model.IntVar]:
    """Add a game; return its bytes of inputs and of partial maps."""
    most_w, most_v = at.most[0], 0 if stay else at.most[1]
    w, v = model.new_int_var(0, most_w, f"w_{name}"), model.new_int_var(0, most_v, f"v_{name}")
    u = model.new_int_var(0, most_w, f"wf_{name}")
    t = model.new_int_var(0, most_v, f"vf_{name}")
    most = (
        most_w * at.full + at.back_in_bytes + at.whole_bytes,
        most_v * at.full_swap + at.back_bytes + at.whole_in_bytes,
    )
    ins, parts = model.new_int_var(0, most[0], f"ins_{name}"), model.new_int_var(0, most[1], f"parts_{name}")
    p, q = model.new_bool_var(f"p_{name}"), model.new_bool_var(f"q_{name}")
    sides = [("w", at.ins, w, v), ("wf", at.full_ins, u, v)]
    sides += [] if stay else [("v", at.outs, v, w), ("vf", at.full_outs, t, w)]
    for side, entries, number, others in sides:
        first = model.new_int_var(0, entries.most, f"{side}1_{name}")
        then = model.new_int_var(0, max(most_w, most_v), f"{side}2_{name}")
        model.add(first + then == number)
        gains = entries.gain * first + entries.rest * then + entries.other * others
        model.add(gains >= entries.need).only_enforce_if(z)
    model.add(v >= at.back).only_enforce_if(p)
    model.add(parts >= at.back_bytes).only_enforce_if(p)
    model.add(ins >= at.whole_bytes).only_enforce_if(z, p.negated())
    model.add(w >= at.back_in).only_enforce_if(q)
    model.add(ins >= at.back_in_bytes).only_enforce_if(q)
    if not stay:
        model.add(parts >= at.whole_in_bytes).only_enforce_if(z, q.negated())
    model.add(ins >= at.load * w)
    model.add(ins >= at.full * u)
    model.add(parts >= at.swap * v)
    model.add(parts >= at.full_swap * t)
    return ins, parts

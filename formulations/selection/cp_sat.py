"""Selection for CP-SAT: a Boolean an option, one for every conversion and hand-over that two states make necessary.

    sum over o of x[i,o] = 1;  s[i,u] = 1 iff layer i is in state u (no variable where it has one state)
    s[i,u] and s[j,v] -> y[i,u,type(v)], h[i,j,u,v]         and, without a conversion, not both
    minimise z;  row <= z for the rows of the objective;  row <= limit for those of constraints

Only what costs has a variable: y and h are pushed down by the rows, where no weight of theirs is negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

from ortools.sat.python import cp_model

from formulations.problem import Model
from formulations.selection.frame import Form, Frame
from hwmodels.selection.schedule import Selection

#: A variable of CP-SAT, its negation, or a constant.
_Literal = Any
#: A quantity takes so much if a literal is true.
_Term = tuple[_Literal, dict[int, int]]


def build(
    frame: Frame, asked: Form, known: Selection | None = None, options: Sequence[Sequence[int]] | None = None
) -> Model[Selection]:  # fmt: skip
    """Return the model; `known` is a hint if it is of this frame, `options` what layers may still be."""
    model = cp_model.CpModel()
    x = [[model.new_bool_var(f"x{i},{o}") for o in range(len(layer.options))] for i, layer in enumerate(frame.layers)]
    terms: list[_Term] = []
    for i, row in enumerate(x):
        model.add_exactly_one(row)
        for o in set(range(len(row))).difference(options[i]) if options is not None else ():
            model.add(row[o] == 0)
        terms += [
            (literal, dict(enumerate(takes.tolist()))) for literal, takes in zip(row, frame.takes[i], strict=True)
        ]
    s = [_states(model, frame, i, row) for i, row in enumerate(x)]
    terms += _between(model, frame, s)
    columns = [[row.on(takes) for _, takes in terms] for row in asked.objective]
    unit = gcd(*(c for column in columns for c in column)) or 1
    top = model.new_int_var(0, max(map(sum, columns)) // unit, "z")
    for column in columns:
        model.add(_sum(column, terms, unit) <= top)
    if asked.below is not None:
        model.add(top <= -(-(asked.below - asked.const) // unit) - 1)
    for cap in asked.caps:
        if cap.most is not None:
            column = [cap.on(takes) for _, takes in terms]
            scale = gcd(*column) or 1
            model.add(_sum(column, terms, scale) <= (cap.most - cap.const) // scale)
    model.minimize(top)
    if known is not None and frame.is_of(known):
        chosen = frame.chosen(known)
        for i, row in enumerate(x):
            for o, literal in enumerate(row):
                model.add_hint(literal, o == chosen[i])

    def decode(solver: cp_model.CpSolver) -> Selection:
        return frame.schedule([next(o for o, literal in enumerate(row) if solver.value(literal)) for row in x])

    return Model(model, decode, base=asked.const, unit=unit, parameters={"linearization_level": 2}, solver="cp-sat")


def _states(model: cp_model.CpModel, frame: Frame, i: int, row: Sequence[cp_model.IntVar]) -> list[_Literal]:
    """Literals of the states of a layer."""
    if len(frame.states[i]) == 1:
        return [True]
    found: list[_Literal] = []
    for n in range(len(frame.states[i])):
        literal = model.new_bool_var(f"s{i},{n}")
        model.add(sum(x for x, state in zip(row, frame.state[i], strict=True) if state == n) == literal)
        found.append(literal)
    return found


def _between(model: cp_model.CpModel, frame: Frame, s: Sequence[Sequence[_Literal]]) -> list[_Term]:
    """Literals of conversions and hand-overs, with what they take."""
    terms: list[_Term] = []
    for i, readers in enumerate(frame.readers):
        for n, u in enumerate(frame.states[i]):
            converts = dict[str, _Literal]()
            for j in readers:
                for m, v in enumerate(frame.states[j]):
                    ticks = frame.convert(i, u, v[1])
                    both = [s[i][n], s[j][m]]
                    if ticks is None:
                        model.add_bool_or([_no(one) for one in both])
                        continue
                    if ticks:
                        if v[1] not in converts:
                            converts[v[1]] = model.new_bool_var(f"y{i},{n},{v[1]}")
                            terms.append((converts[v[1]], {u[0]: ticks}))
                        model.add_bool_or([converts[v[1]], *(_no(one) for one in both)])
                    hand = {q: amount for q, amount in frame.hand(i, u, v).items() if amount}
                    if hand:
                        literal = model.new_bool_var(f"h{i},{j},{n},{m}")
                        terms.append((literal, hand))
                        model.add_bool_or([literal, *(_no(one) for one in both)])
    return terms


def _no(literal: _Literal) -> _Literal:
    return (not literal) if isinstance(literal, bool) else literal.negated()


def _sum(column: Sequence[int], terms: Sequence[_Term], unit: int) -> cp_model.LinearExpr:
    pairs = [(literal, c // unit) for (literal, _), c in zip(terms, column, strict=True) if c]
    return cp_model.LinearExpr.weighted_sum([literal for literal, _ in pairs], [c for _, c in pairs])

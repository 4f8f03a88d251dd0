"""Selection for MILP solvers: flows between the states of neighbours.

    sum over o of x[i,o] = 1;  s[i,u] = sum of x[i,o] over the options in state u
    f[i,j,u,v] >= 0: sum over v = s[i,u], sum over u = s[j,v]          so that f = 1 iff both states are chosen
    y[i,u,t] >= sum over v of type t of f[i,j,u,v] for every reader j;  0 without a conversion
    minimise z;  row <= z for the rows of the objective;  row <= limit for those of constraints

On a chain with one row the relaxation is exact: flows are a path. Products bounded from below only (s + s - 1) would
let a fraction of a conversion go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Any

import pulp

from formulations.problem import Model
from formulations.selection.frame import Form, Frame
from hwmodels.selection.schedule import Selection

#: A quantity takes so much times a variable.
_Term = tuple[Any, dict[int, int]]


def build(frame: Frame, asked: Form) -> Model[Selection]:
    """Return the model."""
    model = pulp.LpProblem("selection", pulp.LpMinimize)
    x = [
        [pulp.LpVariable(f"x{i}_{o}", cat="Binary") for o in range(len(layer.options))]
        for i, layer in enumerate(frame.layers)
    ]
    terms: list[_Term] = []
    for i, row in enumerate(x):
        model += pulp.lpSum(row) == 1
        terms += [(one, dict(enumerate(takes.tolist()))) for one, takes in zip(row, frame.takes[i], strict=True)]
    terms += _between(model, frame, [_states(frame, i, row) for i, row in enumerate(x)])
    top = pulp.LpVariable("z")
    model.setObjective(top)
    columns = [[row.on(takes) for _, takes in terms] for row in asked.objective]
    unit = gcd(*(c for column in columns for c in column)) or 1
    for column in columns:
        model += _sum(column, terms, unit) <= top
    if asked.below is not None:
        model += top <= -(-(asked.below - asked.const) // unit) - 1
    for cap in asked.caps:
        if cap.most is not None:
            column = [cap.on(takes) for _, takes in terms]
            scale = gcd(*column) or 1
            model += _sum(column, terms, scale) <= (cap.most - cap.const) // scale

    def decode(_: Any) -> Selection:
        chosen = [max(range(len(row)), key=lambda o: row[o].varValue or 0.0) for row in x]
        return frame.schedule(chosen)

    return Model(model, decode, base=asked.const, unit=unit, priced=True)


def _states(frame: Frame, i: int, row: Sequence[Any]) -> list[Any]:
    """The states of a layer as sums of its options."""
    number = range(len(frame.states[i]))
    return [pulp.lpSum(one for one, state in zip(row, frame.state[i], strict=True) if state == n) for n in number]


def _between(model: Any, frame: Frame, s: Sequence[Sequence[Any]]) -> Iterator[_Term]:
    """Flows and conversions, with what they take."""
    for i, readers in enumerate(frame.readers):
        converts = dict[tuple[int, str], Any]()
        for j in readers:
            flows = _flows(model, frame, i, j, s)
            for (n, m), flow in flows.items():
                yield flow, frame.hand(i, frame.states[i][n], frame.states[j][m])
            for n, u in enumerate(frame.states[i]):
                for kind in dict.fromkeys(v[1] for v in frame.states[j]):
                    read = pulp.lpSum(flows[n, m] for m, v in enumerate(frame.states[j]) if v[1] == kind)
                    ticks = frame.convert(i, u, kind)
                    if ticks is None:
                        model += read == 0
                    elif ticks:
                        if (n, kind) not in converts:
                            converts[n, kind] = pulp.LpVariable(f"y{i}_{n}_{len(converts)}", 0, 1)
                            yield converts[n, kind], {u[0]: ticks}
                        model += converts[n, kind] >= read


def _flows(model: Any, frame: Frame, i: int, j: int, s: Sequence[Sequence[Any]]) -> dict[tuple[int, int], Any]:
    many, more = range(len(frame.states[i])), range(len(frame.states[j]))
    flows = {(n, m): pulp.LpVariable(f"f{i}_{j}_{n}_{m}", 0, 1) for n in many for m in more}
    for n in many:
        model += pulp.lpSum(flows[n, m] for m in more) == s[i][n]
    for m in more:
        model += pulp.lpSum(flows[n, m] for n in many) == s[j][m]
    return flows


def _sum(column: Sequence[int], terms: Sequence[_Term], unit: int) -> Any:
    return pulp.LpAffineExpression([(one, c // unit) for (one, _), c in zip(terms, column, strict=True) if c])

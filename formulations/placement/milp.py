"""Placement for MILP solvers: which of two buffers lies below, with big M = the bytes of memories; small instances.

o[b,c,k] = 1: b lies below c while they take the bytes of pair k (`instances.network.buffers.together`); a[b] = align[b]
* k[b].
"""

from __future__ import annotations

from itertools import combinations

import pulp

from formulations.placement.instance import Instance
from formulations.problem import Goal, Model, Unable
from hwmodels.schedule import Place, Placement
from instances.network.buffers import together

#: Pairs that are alive together: more take too long.
_MOST_PAIRS = 300


def build(instance: Instance, goal: Goal) -> Model[Placement]:
    """Return the model; raises Unable if there are too many pairs."""
    pairs = [(b, c, rows) for b, c in combinations(instance.buffers, 2) if (rows := together(b, c))]
    if len(pairs) > _MOST_PAIRS:
        raise Unable(f"{len(pairs)} pairs of buffers live together, engines milp take {_MOST_PAIRS}: use search")
    model = pulp.LpProblem("placement", pulp.LpMinimize)
    number = {b.name: k for k, b in enumerate(instance.buffers)}
    x = {
        (b.name, m.name): pulp.LpVariable(f"x{number[b.name]}_{k}", cat="Binary")
        for b in instance.buffers for k, m in enumerate(instance.memories) if m in instance.may(b)
    }  # fmt: skip
    top = {
        m.name: pulp.LpVariable(f"top{k}", 0, instance.capacity[m.name], "Integer")
        for k, m in enumerate(instance.memories)
    }
    big = max(instance.capacity.values())
    steps = {b.name: pulp.LpVariable(f"k{number[b.name]}", 0, big // b.alignment, "Integer") for b in instance.buffers}
    a = {b.name: steps[b.name] * b.alignment if b.offset is None else b.offset for b in instance.buffers}
    for b in instance.buffers:
        chosen = pulp.lpSum(x[b.name, m.name] for m in instance.may(b))
        model += chosen == 1 if b.spill is None else chosen <= 1
        for m in instance.may(b):
            model += a[b.name] + b.size <= top[m.name] + big * (1 - x[b.name, m.name])
    orders = 0
    for b, c, rows in pairs:
        foes = c.name in instance.rooms.partners.get(b.name, ())
        shared = [(k, m) for k, m in enumerate(instance.memories) if (b.name, m.name) in x and (c.name, m.name) in x]
        for b_low, b_high, c_low, c_high in rows if shared else ():
            below, orders = pulp.LpVariable(f"o{orders}", cat="Binary"), orders + 1
            for k, m in shared:
                away = 2 - x[b.name, m.name] - x[c.name, m.name]
                bank = (m.bank_bytes or m.bytes) if foes else 1
                for first, high, second, low, off in (
                    (b, b_high, c, c_low, 1 - below), (c, c_high, b, b_low, below),
                ):  # fmt: skip
                    free = (big + bank) * (away + off)
                    if bank == 1:
                        model += a[first.name] + high <= a[second.name] + low + free
                        continue
                    border = pulp.LpVariable(f"z{orders}_{k}_{first is b:d}", 0, -(-big // bank), "Integer")
                    model += a[first.name] + high <= bank * border + free
                    model += bank * border <= a[second.name] + low + free
    measures = {
        "bytes": pulp.lpSum(
            (b.spill or 0) * (1 - pulp.lpSum(x[b.name, m.name] for m in instance.may(b)))
            for b in instance.buffers
            if b.spill
        ),
        "preference": pulp.lpSum(
            x[b.name, m.name] * (b.size * instance.rank(b, m.name)) for b in instance.buffers for m in instance.may(b)
        ),
        "peak": pulp.lpSum(top.values()),
    }
    model += measures[goal.measure]
    for name, most in goal.caps.items():
        model += measures[name] <= most
    if goal.below is not None:
        model += measures[goal.measure] <= goal.below - 1

    def decode(_: object) -> Placement:
        def address(b: str) -> int:
            buffer = instance.buffers[number[b]]
            return round(steps[b].value() or 0) * buffer.alignment if buffer.offset is None else buffer.offset

        return Placement(tuple(Place(b, m, address(b)) for (b, m), chosen in x.items() if round(chosen.value() or 0)))

    return Model(model, decode)

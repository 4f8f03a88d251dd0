"""CP-SAT model of F5 latency: the assignment and flows of `formulations.mapping.cp_sat`, and blocks in time.

Variables    x, y; start, d and end of the part of task i on processor p, an optional interval; done[i]; L
Constraints  (RUN), (FLOW), (LOAD), (CAP) as in `formulations.mapping.cp_sat`
             (BLOCK)  d[i,p] = what i and the copies of its result take on p                         (Eq. 3.7)
             (AFTER)  start[i,p] >= done[k] for k before i;  done[i] >= end[i,p] if i is on p;  L >= done[i] (Eq. 3.5)
             (CHAIN)  as in `formulations.mapping.latency_milp`: implied
             (ALONE)  no two blocks on a processor overlap                                        (Eq. 3.6)
             (BUSY)   L >= load[p]: implied
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from formulations.mapping.cp_sat import MappingCpModel, flows, prices, weighted
from formulations.mapping.latency import blocks_of, longest
from formulations.mapping.problem import Aim, Limits, Mapping

__all__ = ["latency_cp_model"]


def latency_cp_model(
    mapping: Mapping, aim: Aim, limits: Limits, *, latest: int, least: int = 0, most: int | None = None
) -> MappingCpModel:
    """Return the model.

    Parameters
    ----------
    latest : int
        A latency that the plans that are looked for keep.
    least, most : int
        Bounds of the objective that are known.
    """
    model = cp_model.CpModel()
    x, busy = flows(model, mapping)
    period, energy, loads = prices(model, mapping, busy, limits)
    latency, number = model.new_int_var(1, max(1, latest), "L"), len(mapping.times)
    model.add(latency <= latest)  # may be 0: better than 1
    done = [model.new_int_var(0, latest, f"done_{i}") for i in range(number)]
    blocks = blocks_of(mapping)
    starts, ends, took = ({b.start: _upto(model, latest, f"{n}_{b.start}") for b in blocks.values()} for n in "sed")
    lanes: list[list[cp_model.IntervalVar]] = [[] for _ in mapping.processors]
    for (i, p), block in blocks.items():
        key, there = block.start, x[i, block.places[0]]
        if len(block.places) > 1:
            there = model.new_bool_var(f"at_{i}_{p}")
            model.add(there == sum(x[i, a] for a in block.places))
        lanes[p].append(model.new_optional_interval_var(starts[key], took[key], ends[key], there, f"b_{i}_{p}"))
    for key, block in {b.start: b for b in blocks.values()}.items():
        i = key[0]
        model.add(took[key] == weighted([one for a, q in block.takes for one in busy[i, a, q]]))
        model.add(ends[key] == starts[key] + took[key])
        model.add(done[i] >= ends[key])
        for k in mapping.graph.before[i]:
            model.add(starts[key] >= done[k])
    for i, able in enumerate(mapping.able):
        model.add(latency >= done[i])
        if (i, -1) in starts:
            continue
        chain = weighted([one for a in able for one in busy[i, a, longest(mapping, i, a)]])
        model.add(done[i] >= chain)
        for k in mapping.graph.before[i]:
            model.add(done[i] - done[k] >= chain)
    for few_blocks, load in zip(lanes, loads, strict=True):
        model.add_no_overlap(few_blocks)
        model.add(latency >= load)
    goal = {"latency": latency, "period": period, "energy": energy}[aim]
    model.add(goal >= least)
    if most is not None:
        model.add(goal <= most)
    model.minimize(goal)
    return MappingCpModel(model, mapping, x, {key: starts[block.start] for key, block in blocks.items()})


def _upto(model: cp_model.CpModel, most: int, name: str) -> cp_model.IntVar:
    return model.new_int_var(0, most, name)

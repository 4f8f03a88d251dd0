"""CP-SAT model of F5 latency: the assignment and flows of `formulations.mapping_cp_sat`, and blocks in time.

Variables    x, y; start[i], d[i] and end[i] of the block of task i, an optional interval on every processor; L
Constraints  (RUN), (FLOW), (LOAD), (CAP) as in `formulations.mapping_cp_sat`
             (BLOCK)  d[i] = sum_p time[i][p]*x[i,p] + sum over e = (i, j), p, q of copy[e][p][q]*y[e,p,q]
             (AFTER)  start[j] >= end[i] for e = (i, j);  L >= end[i]                                (Eq. 3.5)
             (ALONE)  no two blocks on a processor overlap                                        (Eq. 3.6)
             (BUSY)   L >= load[p]: implied
"""

from __future__ import annotations

from dataclasses import dataclass

from ortools.sat.python import cp_model

from formulations.latency import Timetable
from formulations.mapping import Aim, Assignment, Limits, Mapping
from formulations.mapping_cp_sat import MappingCpModel, flows, prices, weighted

__all__ = ["LatencyCpModel", "latency_cp_model"]


@dataclass
class LatencyCpModel:
    """The model, with its assignment and blocks."""

    mapping: MappingCpModel
    starts: list[cp_model.IntVar]

    def begun(self, solver: cp_model.CpSolver) -> list[int]:
        """When the tasks begin in a solution."""
        return [solver.value(one) for one in self.starts]

    def hint(self, at: Assignment, known: Timetable) -> None:
        """Start from a timetable."""
        self.mapping.hint(at)
        for variable, start in zip(self.starts, known.starts, strict=True):
            self.mapping.model.add_hint(variable, start)


def latency_cp_model(
    mapping: Mapping, aim: Aim, limits: Limits, *, latest: int, least: int = 0, most: int | None = None
) -> LatencyCpModel:
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
    latency, number = model.new_int_var(1, latest, "L"), len(mapping.times)
    starts = [model.new_int_var(0, latest, f"start_{i}") for i in range(number)]
    ends = [model.new_int_var(0, latest, f"end_{i}") for i in range(number)]
    durations = [model.new_int_var(0, latest, f"d_{i}") for i in range(number)]
    blocks: list[list[cp_model.IntervalVar]] = [[] for _ in mapping.processors]
    for i, able in enumerate(mapping.able):
        model.add(durations[i] == weighted([term for p in able for term in busy[i, p]]))
        model.add(starts[i] + durations[i] == ends[i])
        model.add(latency >= ends[i])
        for p in able:
            blocks[p].append(model.new_optional_interval_var(starts[i], durations[i], ends[i], x[i, p], f"b_{i}_{p}"))
    for i, j in mapping.graph.edges:
        model.add(starts[j] >= ends[i])
    for few, load in zip(blocks, loads, strict=True):
        model.add_no_overlap(few)
        model.add(latency >= load)
    goal = {"latency": latency, "period": period, "energy": energy}[aim]
    model.add(goal >= least)
    if most is not None:
        model.add(goal <= most)
    model.minimize(goal)
    return LatencyCpModel(MappingCpModel(model, x, number), starts)

"""Engine ``milp`` when latency counts: `formulations.mapping.latency_milp` with HiGHS or CBC.

Believed as in `solver.engines.mapping_milp`. Quick where few tasks may run side by side; where many may,
the disjunctions bound poorly and only small networks are proven.
"""

from __future__ import annotations

from dataclasses import replace

from formulations.mapping.latency import least_latency
from formulations.mapping.latency_milp import latency_model
from solver.engines.driver_milp import MilpSolver, versions
from solver.engines.mapping_milp import least_of, solved
from solver.mapping.base import Asked, Decided, Timed, best_timed, decided, latest, timed

__all__ = ["run"]


def run(asked: Asked, known: list[Timed], *, solver: MilpSolver = "highs") -> Decided:
    """Solve."""
    if asked.aim == "latency":
        asked = replace(asked, least=max(asked.least, least_latency(asked.mapping)))
    most = latest(asked, known)
    made, starts = latency_model(asked.mapping, asked.aim, asked.limits, most)
    said, stats = solved(made, asked, solver)
    if said.status == "INFEASIBLE":
        return Decided(None, None, "INFEASIBLE", versions(solver), stats)
    found = list(known)
    if said.solved:
        at = made.chosen()
        found.append(timed(asked, at, {key: one.value() or 0.0 for key, one in starts.items()}))
    return decided(asked, best_timed(asked, found), least_of(asked, said), versions(solver), stats)

"""Engine ``milp`` when latency counts: `formulations.latency_milp` with HiGHS or CBC.

Believed as in `solver.engines.mapping_milp`, M included. Quick where few tasks may run side by side; where many may,
the disjunctions bound poorly and only small networks are proven.
"""

from __future__ import annotations

from dataclasses import replace

import pulp

from formulations.latency import least_latency
from formulations.latency_milp import latency_model
from solver.engines.mapping_milp import LARGEST, SOLVED, least_of, solved
from solver.mapping_base import Asked, Decided, Timed, best_timed, decided, latest, timed

__all__ = ["run"]


def run(asked: Asked, known: list[Timed], *, solver: str = "highs") -> Decided:
    """Solve."""
    if asked.aim == "latency":
        asked = replace(asked, least=max(asked.least, least_latency(asked.mapping)))
    most = latest(asked, known)
    made, starts = latency_model(asked.mapping, asked.aim, asked.limits, most)
    largest = max(asked.largest, most)
    bound, versions, stats = solved(made, asked, solver, largest)
    if made.problem.sol_status == pulp.LpSolutionInfeasible and largest <= LARGEST:
        return Decided(None, None, "INFEASIBLE", versions, stats)
    found = list(known)
    if made.problem.sol_status in SOLVED:
        at = made.chosen()
        found.append(timed(asked, at, {key: one.value() or 0.0 for key, one in starts.items()}))
    return decided(asked, best_timed(asked, found), least_of(asked, bound), versions, stats)

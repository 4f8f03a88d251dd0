"""Engine ``milp`` for engine sizes, by HiGHS; the bound is rounded down after a quarter of a frame in 1000 s."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

import pulp

from formulations.engine_size import Rates, Size
from formulations.engine_size_milp import size_model
from instances.partial_engine import PartialEngine

__all__ = ["run"]


def run(sizes: Sequence[Size], aim: Rates, engine: PartialEngine) -> int:
    """Return a rate that no size exceeds."""
    problem, _ = size_model(sizes, aim, engine.dsps, engine.brams)
    problem.solve(pulp.HiGHS(msg=False, gapRel=0.0, gapAbs=0.49, threads=1))
    return floor(-float(problem.solverModel.getInfo().mip_dual_bound) + 0.25)

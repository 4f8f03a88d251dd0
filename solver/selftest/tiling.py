"""The adversary of `formulations.tiling.problem`: nests of one core."""

from __future__ import annotations

from solver.selftest.nest_tester import NestTester

__all__ = ["TILING"]

TILING = NestTester("tiling", "nests of one core: engines, annealing, enumeration, rules", cores=False)

"""The adversary of `formulations.tiling.slicing`: a layer shared among clusters of cores."""

from __future__ import annotations

from solver.selftest.nest_tester import NestTester

__all__ = ["SLICING"]

SLICING = NestTester("slicing", "partitions and nests of several cores: engines, annealing, rules", cores=True)

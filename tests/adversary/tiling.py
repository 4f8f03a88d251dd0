"""The adversary of problem tiling."""

from __future__ import annotations

from tests.adversary.nest_tester import NestTester

TESTER = NestTester("tiling", cores=False)

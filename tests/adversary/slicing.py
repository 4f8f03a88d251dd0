"""The adversary of problem slicing."""

from __future__ import annotations

from tests.adversary.nest_tester import NestTester

TESTER = NestTester("slicing", cores=True)

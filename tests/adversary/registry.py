"""The adversaries: a line for each problem, and one for C code."""

from __future__ import annotations

from tests.adversary import (
    applications,
    banks,
    c_code,
    fusion,
    hybrid,
    joint,
    mapping,
    mesh,
    partial_engine,
    placement,
    selection,
)
from tests.adversary.base import Tester
from tests.adversary.nest_tester import NestTester

_ALL: tuple[Tester, ...] = (
    NestTester("tiling", cores=False),
    NestTester("slicing", cores=True),
    banks.TESTER,
    hybrid.TESTER,
    joint.TESTER,
    fusion.TESTER,
    partial_engine.TESTER,
    mapping.TESTER,
    applications.TESTER,
    mesh.TESTER,
    placement.TESTER,
    selection.TESTER,
    c_code.TESTER,
)
TESTERS: dict[str, Tester] = {one.name: one for one in _ALL}

"""The adversaries: one for each problem, and one for C code."""

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

TESTERS: dict[str, Tester] = {
    "tiling": NestTester("tiling", "nests of one core: engines, annealing, enumeration, rules", cores=False),
    "slicing": NestTester("slicing", "partitions and nests of several cores: engines, annealing, rules", cores=True),
    "banks": banks.TESTER,
    "hybrid": hybrid.TESTER,
    "joint": joint.TESTER,
    "fusion": fusion.TESTER,
    "partial_engine": partial_engine.TESTER,
    "mapping": mapping.TESTER,
    "applications": applications.TESTER,
    "mesh": mesh.TESTER,
    "placement": placement.TESTER,
    "selection": selection.TESTER,
    "c": c_code.TESTER,
}

"""The adversaries, one for each problem."""

from __future__ import annotations

from solver.selftest import applications, banks, joint, mapping, mesh
from solver.selftest import partial_engine as runs
from solver.selftest.base import Tester
from solver.selftest.slicing import SLICING
from solver.selftest.tiling import TILING

__all__ = ["TESTERS"]

TESTERS: dict[str, Tester] = {
    "tiling": TILING,
    "slicing": SLICING,
    "banks": banks.TESTER,
    "joint": joint.TESTER,
    "runs": runs.TESTER,
    "mapping": mapping.TESTER,
    "applications": applications.TESTER,
    "mesh": mesh.TESTER,
}

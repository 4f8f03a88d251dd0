"""How it is decided: engines, solve(), plans, benchmarks and the command line."""

from __future__ import annotations

# Not lazy: `solver.solve` and `solver.check` are submodules too, and importing one of those later would put the
# module in the place of the function. Slow imports (the solvers, typer, rich) are inside functions instead.
from instances.errors import InputError
from solver.applications.plan import ApplicationsPlan
from solver.applications.solve import solve_applications
from solver.banks.plan import BankPlan
from solver.banks.solve import front_network, solve_network
from solver.calibration.calibrate import calibrate
from solver.calibration.result import Calibration
from solver.check import CheckReport, check
from solver.joint.plan import JointPlan
from solver.joint.solve import solve_joint
from solver.mapping.front import MappingFront, front_mapping
from solver.mapping.plan import MappingPlan
from solver.mapping.solve import solve_mapping
from solver.mesh.plan import MeshPlan
from solver.mesh.solve import solve_mesh
from solver.partial_engine.plan import EnginePlan
from solver.partial_engine.size import EngineSize, front_engine, size_engine
from solver.partial_engine.solve import solve_engine
from solver.plan import LayerPlan, Plan
from solver.solve import solve
from solver.verify import PlanMismatch

__all__ = [
    "ApplicationsPlan", "BankPlan", "Calibration", "CheckReport", "EnginePlan", "EngineSize", "InputError", "JointPlan",
    "LayerPlan", "MappingFront", "MappingPlan", "MeshPlan", "Plan", "PlanMismatch", "calibrate", "check",
    "front_engine", "front_mapping", "front_network", "size_engine", "solve", "solve_applications", "solve_engine",
    "solve_joint", "solve_mapping", "solve_mesh", "solve_network",
]  # fmt: skip

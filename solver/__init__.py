"""How it is decided: engines, solve(), plans, benchmarks and the command line. `certile` is the face of it."""

from __future__ import annotations

# Not lazy: `solver.solve` and `solver.check` are submodules too, and importing one of those later would put the
# module in the place of the function. Slow imports (the solvers, typer, rich) are inside functions instead.
from instances.errors import InputError
from solver.applications.plan import ApplicationsPlan
from solver.banks.plan import BankPlan
from solver.calibration.calibrate import calibrate
from solver.calibration.result import Calibration
from solver.check import CheckReport, check
from solver.front import Front
from solver.mapping.front import MappingFront
from solver.mapping.plan import MappingPlan
from solver.mappings.price import PricedMapping, price
from solver.pages.face import plot, report, to_plotly
from solver.partial_engine.size import EngineSize, front_engine, size_engine
from solver.plan import Plan, load_plan
from solver.solve import explain, pareto, show, solve
from solver.tiling.plan import LayerPlan, LayersPlan
from solver.verify import PlanMismatch
from solver.why.ask import why
from solver.why.model import Why

__all__ = [
    "ApplicationsPlan", "BankPlan", "Calibration", "CheckReport", "EngineSize", "Front", "InputError",
    "LayerPlan", "LayersPlan", "MappingFront", "MappingPlan", "Plan", "PlanMismatch",
    "PricedMapping", "Why", "calibrate", "check", "explain", "front_engine", "load_plan", "pareto", "plot",
    "price", "report", "show", "size_engine", "solve", "to_plotly", "why",
]  # fmt: skip

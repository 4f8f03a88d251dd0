"""How it is decided: engines, solve(), plans, benchmarks and the command line. `certile` is the face of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instances.late import face
from solver.plan.faces import FACES

if TYPE_CHECKING:
    from instances.errors import InputError, PlanMismatch
    from solver.calls.check import CheckReport, check
    from solver.calls.solve import explain, pareto, show, solve
    from solver.plan.front import Front
    from solver.plan.plan import Plan, load_plan
    from solver.plan.why import Why
    from solver.problems.partial_engine import EngineSize, front_engine, size_engine
    from solver.uses.calibration.calibrate import calibrate
    from solver.uses.calibration.result import Calibration
    from solver.uses.mappings.price import PricedMapping, price
    from solver.uses.report.face import plot, report, to_plotly
    from solver.uses.why.ask import why

__all__ = [
    "Calibration", "CheckReport", "EngineSize", "Front", "InputError", "Plan", "PlanMismatch",
    "PricedMapping", "Why", "calibrate", "check", "explain", "front_engine", "load_plan", "pareto", "plot",
    "price", "report", "show", "size_engine", "solve", "to_plotly", "why",
]  # fmt: skip

# Nothing is imported before it is used; the type checker reads the imports above, a test compares the two.
face(__name__, {
    "instances.errors": "InputError PlanMismatch",
    "solver.uses.calibration.calibrate": "calibrate",
    "solver.uses.calibration.result": "Calibration",
    "solver.calls.check": "CheckReport check",
    "solver.plan.front": "Front",
    "solver.uses.mappings.price": "PricedMapping price",
    "solver.uses.report.face": "plot report to_plotly",
    "solver.problems.partial_engine": "EngineSize front_engine size_engine",
    "solver.plan.plan": "Plan load_plan",
    "solver.calls.solve": "explain pareto show solve",
    "solver.uses.why.ask": "why",
    "solver.plan.why": "Why",
})  # fmt: skip
FACES.add({
    "problem_of": "solver.problems.registry:problem_of", "why": "solver.uses.why.ask:why",
    "report": "solver.uses.report.face:report", "why_lines": "solver.uses.why.text:lines_of",
    "buffers_of": "solver.uses.emit.onchip:buffers_of",
    "plan_figures": "solver.uses.report.face:plan_figures", "plan_html": "solver.uses.report.face:plan_html",
    "front_figures": "solver.uses.report.front_page:front_figures", "front_html": "solver.uses.report.face:front_html",
})  # fmt: skip

"""How it is decided: engines, solve(), plans, benchmarks and the command line. `certile` is the face of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instances.late import face
from solver.faces import FACES

if TYPE_CHECKING:
    from instances.errors import InputError
    from solver.calibration.calibrate import calibrate
    from solver.calibration.result import Calibration
    from solver.check import CheckReport, check
    from solver.front import Front
    from solver.mappings.price import PricedMapping, price
    from solver.pages.face import plot, report, to_plotly
    from solver.partial_engine.size import EngineSize, front_engine, size_engine
    from solver.plan import Plan, load_plan
    from solver.solve import explain, pareto, show, solve
    from solver.verify import PlanMismatch
    from solver.why.ask import why
    from solver.why.model import Why

__all__ = [
    "Calibration", "CheckReport", "EngineSize", "Front", "InputError", "Plan", "PlanMismatch",
    "PricedMapping", "Why", "calibrate", "check", "explain", "front_engine", "load_plan", "pareto", "plot",
    "price", "report", "show", "size_engine", "solve", "to_plotly", "why",
]  # fmt: skip

# Nothing is imported before it is used; the type checker reads the imports above, a test compares the two.
face(__name__, {
    "instances.errors": "InputError",
    "solver.calibration.calibrate": "calibrate",
    "solver.calibration.result": "Calibration",
    "solver.check": "CheckReport check",
    "solver.front": "Front",
    "solver.mappings.price": "PricedMapping price",
    "solver.pages.face": "plot report to_plotly",
    "solver.partial_engine.size": "EngineSize front_engine size_engine",
    "solver.plan": "Plan load_plan",
    "solver.solve": "explain pareto show solve",
    "solver.verify": "PlanMismatch",
    "solver.why.ask": "why",
    "solver.why.model": "Why",
})  # fmt: skip
FACES.add({
    "types_of": "solver.problems:types_of", "rows": "solver.problems:rows_of",
    "problem_of": "solver.problems:problem_of", "why": "solver.why.ask:why",
    "report": "solver.pages.face:report", "buffers_of": "solver.emit.buffers:buffers_of",
    "plan_figures": "solver.pages.face:plan_figures", "plan_html": "solver.pages.face:plan_html",
    "front_figures": "solver.pages.front_page:front_figures", "front_html": "solver.pages.face:front_html",
})  # fmt: skip

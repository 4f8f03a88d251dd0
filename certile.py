"""certile: proven-optimal plans for neural networks on machines with small on-chip memories.

>>> import certile
>>> plan = certile.solve("lenet5", "scratchpad_64k", objective="bytes")
>>> plan.status
'OPTIMAL'

One call for every problem: `solve`, `pareto`, `check`, `explain`, `show`. ``certile list problems`` names the problems,
``certile list objectives --problem P`` what one minimises, ``certile list pins --problem P`` what may be pinned.
"""

from typing import TYPE_CHECKING

from instances.late import face

if TYPE_CHECKING:
    from instances.applications import Applications
    from instances.errors import InputError, PlanMismatch
    from instances.load import load_machine, load_network
    from instances.machine.machine import Machine
    from instances.measured import Profile, load_profile
    from instances.network.network import Network
    from instances.network.workload import Layer
    from solver.calls.check import CheckReport, check
    from solver.calls.solve import explain, pareto, show, solve
    from solver.plan.front import Front
    from solver.plan.plan import Plan, load_plan
    from solver.plan.why import Why
    from solver.problems.partial_engine import front_engine, size_engine
    from solver.problems.problem import Explained
    from solver.uses.calibration.calibrate import calibrate
    from solver.uses.emit.emit import Compiled, compile_model, emit_c
    from solver.uses.mappings.price import PricedMapping, price
    from solver.uses.report.face import plot, report, to_plotly
    from solver.uses.sweep.rows import Sweep, load_sweep
    from solver.uses.sweep.run import sweep
    from solver.uses.why.ask import why

__all__ = [
    "Applications",
    "CheckReport",
    "Compiled",
    "Explained",
    "Front",
    "InputError",
    "Layer",
    "Machine",
    "Network",
    "Plan",
    "PlanMismatch",
    "PricedMapping",
    "Profile",
    "Sweep",
    "Why",
    "calibrate",
    "check",
    "compile_model",
    "emit_c",
    "explain",
    "front_engine",
    "load_machine",
    "load_network",
    "load_plan",
    "load_profile",
    "load_sweep",
    "pareto",
    "plot",
    "price",
    "report",
    "show",
    "size_engine",
    "solve",
    "sweep",
    "to_plotly",
    "why",
]

# Nothing is imported before it is used; the type checker reads the imports above, a test compares the two.
face(__name__, {
    "instances.applications": "Applications",
    "instances.errors": "InputError PlanMismatch",
    "instances.load": "load_machine load_network",
    "instances.machine.machine": "Machine",
    "instances.network.network": "Network",
    "instances.measured": "Profile load_profile",
    "instances.network.workload": "Layer",
    "solver.uses.calibration.calibrate": "calibrate",
    "solver.calls.check": "CheckReport check",
    "solver.uses.emit.emit": "Compiled compile_model emit_c",
    "solver.plan.front": "Front",
    "solver.uses.mappings.price": "PricedMapping price",
    "solver.uses.report.face": "plot report to_plotly",
    "solver.problems.partial_engine": "front_engine size_engine",
    "solver.plan.plan": "Plan load_plan",
    "solver.problems.problem": "Explained",
    "solver.calls.solve": "explain pareto show solve",
    "solver.uses.sweep.rows": "Sweep load_sweep",
    "solver.uses.sweep.run": "sweep",
    "solver.uses.why.ask": "why",
    "solver.plan.why": "Why",
})  # fmt: skip

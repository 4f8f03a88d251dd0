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
    from instances.errors import InputError
    from instances.load import load_machine, load_network
    from instances.machine import Machine
    from instances.network import Network
    from instances.profiles import Profile, load_profile
    from instances.workload import Layer
    from solver.calibration.calibrate import calibrate
    from solver.check import CheckReport, check
    from solver.emit.compile import Compiled, compile_model
    from solver.emit.emit import emit_c
    from solver.front import Front
    from solver.mappings.price import PricedMapping, price
    from solver.pages.face import plot, report, to_plotly
    from solver.partial_engine.size import front_engine, size_engine
    from solver.plan import Plan, load_plan
    from solver.problem import Explained
    from solver.solve import explain, pareto, show, solve
    from solver.sweep.rows import Sweep, load_sweep
    from solver.sweep.run import sweep
    from solver.verify import PlanMismatch
    from solver.why.ask import why
    from solver.why.model import Why

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
    "instances.errors": "InputError",
    "instances.load": "load_machine load_network",
    "instances.machine": "Machine",
    "instances.network": "Network",
    "instances.profiles": "Profile load_profile",
    "instances.workload": "Layer",
    "solver.calibration.calibrate": "calibrate",
    "solver.check": "CheckReport check",
    "solver.emit.compile": "Compiled compile_model",
    "solver.emit.emit": "emit_c",
    "solver.front": "Front",
    "solver.mappings.price": "PricedMapping price",
    "solver.pages.face": "plot report to_plotly",
    "solver.partial_engine.size": "front_engine size_engine",
    "solver.plan": "Plan load_plan",
    "solver.problem": "Explained",
    "solver.solve": "explain pareto show solve",
    "solver.sweep.rows": "Sweep load_sweep",
    "solver.sweep.run": "sweep",
    "solver.verify": "PlanMismatch",
    "solver.why.ask": "why",
    "solver.why.model": "Why",
})  # fmt: skip

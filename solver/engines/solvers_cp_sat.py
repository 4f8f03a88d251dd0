"""CP-SAT as engines call it when somebody may press Ctrl-C.

Left to itself CP-SAT takes the signal and leaves the default action behind, so that the next Ctrl-C kills the process
without a word. Without its handler Python hears nothing until it returns. Here it runs in a thread and is told to stop.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from solver.progress import interruptible

__all__ = ["heard", "stoppable"]


def stoppable(solver: cp_model.CpSolver, model: cp_model.CpModel) -> tuple[object, bool]:
    """Solve; return the status and whether Ctrl-C ended it: then the solver has what it found until then."""
    solver.parameters.catch_sigint_signal = False
    status, stopped = interruptible(lambda: solver.solve(model), solver.stop_search)
    return status, stopped


def heard(solver: cp_model.CpSolver, model: cp_model.CpModel) -> object:
    """Solve; return the status. Raises KeyboardInterrupt if Ctrl-C ended it."""
    status, stopped = stoppable(solver, model)
    if stopped:
        raise KeyboardInterrupt
    return status

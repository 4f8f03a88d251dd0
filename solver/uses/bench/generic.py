"""A suite for every formulation: its examples, all engines beside each other, heuristics over the optimum."""

from __future__ import annotations

from typing import Any

from instances.problems import PROBLEMS as LINES
from solver.ask.progress import Progress
from solver.calls.solve import solve
from solver.problems.registry import PROBLEMS
from solver.uses.bench.report import Cell, Report, value_of

_LIMIT_S = 60.0
_NETWORK = "lenet5"


def compared(name: str, progress: Progress) -> Report:
    """Solve a problem's examples with all engines; raises RuntimeError if two that prove prove different optima."""
    problem: Any = PROBLEMS[name]
    examples = problem.formulation.examples or ((_NETWORK, LINES[name].template),)
    report = Report(name, progress=progress)
    section = report.section(problem.summary, ["network", "machine", "engine", "status", "value", "ratio", "s"])
    for network, machine in report.each(examples, " on ".join):
        plans = [
            solve(network, machine, problem=name, engine=engine, time_limit_s=_LIMIT_S) for engine in problem.engines
        ]
        values = [value_of(plan) for plan in plans]
        proven = {value for plan, value in zip(plans, values, strict=True) if plan.status == "OPTIMAL"}
        if len(proven) > 1:
            raise RuntimeError(f"{network} on {machine}: optima {proven}")
        best = min((value for value in values if value is not None), default=None)
        for plan, value in zip(plans, values, strict=True):
            ratio: Cell = None if value is None or not best else value / best
            section.rows.append([network, machine, plan.engine, plan.status, value, ratio, plan.wall_s])
    return report

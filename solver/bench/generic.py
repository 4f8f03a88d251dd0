"""A suite for every formulation: its examples, all engines beside each other, heuristics over the optimum."""

from __future__ import annotations

from solver.bench.report import Cell, Report, Section
from solver.generic import GenericProblem
from solver.progress import Progress
from solver.solve import solve

__all__ = ["compared"]

_LIMIT_S = 60.0


def compared(problem: GenericProblem, progress: Progress) -> Report:
    """Solve the examples with all engines; raises RuntimeError if two that prove prove different optima."""
    section = Section(problem.summary, ["network", "machine", "engine", "status", "value", "ratio", "s"])
    examples = problem.formulation.examples
    progress.begin(len(examples) * len(problem.engines), problem.name)
    for network, machine in examples:
        plans = []
        for name in problem.engines:
            plans.append(solve(network, machine, problem=problem.name, engine=name, time_limit_s=_LIMIT_S))
            progress.advance(f"{network} {name}")
        proven = {plan.objective.value for plan in plans if plan.status == "OPTIMAL" and plan.objective is not None}
        if len(proven) > 1:
            raise RuntimeError(f"{network} on {machine}: optima {proven}")
        best = min((plan.objective.value for plan in plans if plan.objective is not None), default=None)
        for plan in plans:
            value = None if plan.objective is None else plan.objective.value
            ratio: Cell = None if value is None or not best else value / best
            section.rows.append([network, machine, plan.engine, plan.status, value, ratio, plan.wall_s])
    progress.end()
    return Report(problem.name, [section])

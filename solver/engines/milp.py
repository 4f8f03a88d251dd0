"""Engines ``milp`` (HiGHS) and ``milp-cbc`` (the CBC that PuLP carries) on the models of `formulations.milp`.

Proof and tolerance: the solvers work on floats with feasibility tolerance 1e-6 and gaps set to 0 relative and below
half a unit absolute, where a unit is the gcd of all cost coefficients. The decoded plan is re-priced in integers; it
counts as proven only if its price is within half a unit of the value the solver reports, and no capacity or earlier
objective is exceeded in integers.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version

import pulp

from formulations.branch import Branch
from formulations.milp import MilpModel, build_milp
from formulations.space import Space
from solver.engines.base import EngineResult, Limits
from solver.engines.staged import Answer, BranchSolver, solve_staged

__all__ = ["run_cbc", "run_highs"]

_OPTIMAL, _FEASIBLE, _INFEASIBLE, _UNDECIDED = 1, 2, -1, 0


def _highs(limits: Limits) -> pulp.LpSolver:
    return pulp.HiGHS(
        msg=False, timeLimit=limits.time_limit_s, gapRel=0.0, gapAbs=0.49,
        threads=limits.workers, random_seed=limits.seed,
    )  # fmt: skip


def _cbc(limits: Limits) -> pulp.LpSolver:
    return pulp.PULP_CBC_CMD(msg=False, timeLimit=limits.time_limit_s, gapRel=0.0, gapAbs=0.49, threads=limits.workers)


def _solve(
    make: Callable[[Limits], pulp.LpSolver],
    branch: Branch,
    objective: str,
    at_most: int | None,
    levels: Mapping[str, int],
    cuts: Sequence[tuple[int, int]],
    limits: Limits,
) -> Answer:
    if at_most is not None and at_most < 0:
        return Answer(None, 0, True)
    excluded = list(cuts)
    while True:
        built = build_milp(branch, objective, at_most=at_most, levels=levels, cuts=excluded)
        status = _status(built, make(limits))
        if status == _UNDECIDED and at_most is not None and limits.time_limit_s is None:
            # HiGHS sometimes gives up on a model whose cut-off leaves nothing: ask again without the cut-off.
            built = build_milp(branch, objective, levels=levels, cuts=excluded)
            status = _status(built, make(limits))
        if status == _INFEASIBLE:
            return Answer(None, None if at_most is None else at_most + 1, True)
        if status not in (_OPTIMAL, _FEASIBLE):
            return Answer(None, _bound(built), False)
        s, q = built.decode()
        if _within_limits(branch, levels, s, q):
            break
        # Float tolerance let a plan through that is over a limit in integers: leave it out and go on.
        excluded.append((s, q))
    value = max(t.at(s, q) for t in branch.tables(objective))
    reported = float(pulp.value(built.problem.objective)) * built.unit
    proven = status == _OPTIMAL and abs(value - reported) <= built.unit / 2
    return Answer((s, q), value if proven else _bound(built), proven)


def _status(built: MilpModel, solver: pulp.LpSolver) -> int:
    """Solve and return PuLP's `sol_status`; what the solver's own code prints is kept off our standard output."""
    with _quiet():
        built.problem.solve(solver)
    return int(built.problem.sol_status)


@contextmanager
def _quiet() -> Iterator[None]:
    """Send file descriptor 1 to nowhere: HiGHS prints some diagnostics past its own output switch."""
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _within_limits(branch: Branch, levels: Mapping[str, int], s: int, q: int) -> bool:
    fits = all(table.at(s, q) <= limit for _, table, limit in branch.capacity)
    return fits and all(t.at(s, q) <= v for m, v in levels.items() for t in branch.tables(m))


def _bound(built: MilpModel) -> int | None:
    """The dual bound where the solver states one (HiGHS does, CBC through PuLP does not)."""
    info = getattr(getattr(built.problem, "solverModel", None), "getInfo", None)
    if info is None:
        return None
    bound = float(info().mip_dual_bound)
    return math.ceil(bound * built.unit - built.unit / 2) if math.isfinite(bound) and bound > 0 else None


def _run(
    make: Callable[[Limits], pulp.LpSolver], versions: str, space: Space, objectives: tuple[str, ...], limits: Limits
) -> EngineResult:
    solve: BranchSolver = partial(_solve, make)
    return solve_staged(solve, space, objectives, limits, versions)


def run_highs(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Solve with HiGHS."""
    return _run(_highs, f"pulp {version('pulp')}, highspy {version('highspy')}", space, objectives, limits)


def run_cbc(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Solve with the CBC that PuLP carries."""
    return _run(_cbc, f"pulp {version('pulp')} (bundled CBC)", space, objectives, limits)

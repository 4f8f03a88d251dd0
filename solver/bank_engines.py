"""Engines for the problem ``banks``: whole networks on machines with memory banks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formulations.bank_front import Aim, decide
from formulations.bank_network import BankPlan
from formulations.bank_policies import double_buffer, hide, minimise, no_reuse
from instances.errors import InputError
from solver.bank_base import Asked, Decided
from solver.plan import Stat

__all__ = ["BANK_ENGINES", "BankEngine"]


@dataclass(frozen=True)
class BankEngine:
    """A way to decide.

    Attributes
    ----------
    objectives : tuple of str
        What it can minimise; a policy ignores the objective.
    """

    name: str
    summary: str
    proves: bool
    run: Callable[[Asked], Decided]
    objectives: tuple[str, ...] = ("bytes", "time")


def _dynamic(asked: Asked) -> Decided:
    aim: Aim = "time" if asked.objective == "time" else "bytes"
    try:
        said = decide(
            asked.found, asked.banks, asked.clock, aim, waiting=asked.waiting, time_limit_s=asked.time_limit_s
        )
    except InputError as error:
        return Decided(None, None, "INFEASIBLE", stats={"note": str(error)})
    bound = said.ticks_bound if aim == "time" else said.bytes_bound
    stats: dict[str, Stat] = {"labels": said.labels, "states": said.states}
    if not said.plans:
        return Decided(None, bound or None, "NO_SOLUTION_FOUND", stats=stats)
    return Decided(said.plans[0][0], bound, "OPTIMAL" if said.proven else "FEASIBLE", stats=stats)


def _policy(plan: Callable[[Asked], BankPlan]) -> Callable[[Asked], Decided]:
    def run(asked: Asked) -> Decided:
        try:
            return Decided(plan(asked), None, "FEASIBLE")
        except InputError as error:
            return Decided(None, None, "NO_SOLUTION_FOUND", stats={"note": str(error)})

    return run


def _milp(asked: Asked) -> Decided:
    from solver.engines import bank_milp  # late: the engines' package imports every solver

    return bank_milp.run(asked)


def _cp_sat(asked: Asked) -> Decided:
    from solver.engines import bank_cp_sat

    return bank_cp_sat.run(asked)


BANK_ENGINES: dict[str, BankEngine] = {
    engine.name: engine
    for engine in (
        BankEngine("dynamic", "dynamic programming over what is on chip: exact in bytes and in time", True, _dynamic),
        BankEngine("milp", "state arcs with HiGHS: exact in bytes", True, _milp, ("bytes",)),
        BankEngine("cp-sat", "state arcs with CP-SAT: exact in bytes", True, _cp_sat, ("bytes",)),
        BankEngine("min", "MIN: fewest bytes stage by stage, greedy multi-path, DRAM-first storing", False,
                   _policy(lambda asked: minimise(asked.found, asked.banks))),
        BankEngine("dls", "MIN with DRAM-last storing", False,
                   _policy(lambda asked: minimise(asked.found, asked.banks, dram_first=False))),
        BankEngine("hide", "HIDE: least delay stage by stage", False,
                   _policy(lambda asked: hide(asked.found, asked.banks, asked.clock))),
        BankEngine("double-buffer", "half of the banks for tiles read, half for results, one tile a step", False,
                   _policy(lambda asked: double_buffer(asked.found, asked.banks))),
        BankEngine("no-reuse", "nothing stays between stages, all banks for tiles read", False,
                   _policy(lambda asked: no_reuse(asked.found, asked.banks))),
    )
}  # fmt: skip

"""Suite ``applications``: three networks on one board, least responses and energy, proven or with a gap."""

from __future__ import annotations

from collections.abc import Sequence

from formulations.applications.problem import rule_of
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.uses.bench.report import Cell, Report, Suite, Table, timed, value_of

_THREE = "squeezenet1_1@33ms,mobilenet_v1@40ms,mobilenet_v2@50ms"
_PINS = ("cpu_config=1,1,1,1",)
#: Seconds for all responses together and energy, for the response of one.
_LIMIT_S, _ONE_S = 120.0, 150.0
_LIMITS_S = dict.fromkeys(("response:1", "response:2", "response:3"), _ONE_S) | {
    "response": _LIMIT_S, "energy": _LIMIT_S,
}  # fmt: skip


def row(target: str, machine: str, objective: str, limit: float, pins: Sequence[str] = _PINS) -> list[Cell]:
    """A row: the objective of all engines, the bound and its gap; the genetic search has as long as the optimum."""

    def plan(engine: str, seconds: float) -> Plan:
        return solve(target, machine, engine=engine, objective=objective, pins=list(pins), time_limit_s=seconds)

    best, wall = timed(lambda: plan("auto", limit))
    values = [value_of(one) for one in (best, plan("apart", limit), plan("ga", max(0.1, wall)))]
    agrees = None if best.part.replay is None else best.part.replay.ok
    return [machine, rule_of(pins)[0], objective, best.status, *values, best.bound, best.gap, agrees, wall]


def _proven(report: Report) -> None:
    (found,) = report.sections
    proven = sum(one[3] in ("OPTIMAL", "INFEASIBLE") for one in found.rows)
    report.figures = {"proven": proven, "cases": len(found.rows)}


SUITE = Suite("applications", (
    Table(
        f"{_THREE} on single cores (ticks of 1 us, energy in fJ)",
        ["machine", "analysis", "objective", "status", "optimum", "apart", "ga", "bound", "gap", "simulation", "s"],
        [*(("hikey970", objective, rule) for rule in ("safe", "printed") for objective in _LIMITS_S),
         ("galaxy_s9", "response", "safe"), ("galaxy_s9", "response", "printed")],
        lambda machine, aim, rule: row(_THREE, machine, aim, _LIMITS_S[aim], (*_PINS, f"analysis={rule}")),
        ["ga: as many seconds as the optimum. simulation: whether no response was exceeded."],
    ),
), _proven)  # fmt: skip

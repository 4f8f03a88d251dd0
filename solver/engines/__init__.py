"""Engines: every way of deciding a space, by name. One is imported when it is run, and with it its solver."""

from __future__ import annotations

from instances.late import late
from solver.engines.base import ALL, Engine, EngineResult, Limits

__all__ = ["ALL", "ENGINES", "Engine", "EngineResult", "Limits"]

ENGINES: dict[str, Engine] = {
    e.name: e
    for e in (
        Engine(
            "exhaustive",
            "every candidate, vectorised; fastest for one layer, and the oracle of the others",
            True,
            late("solver.engines.exhaustive:run"),
        ),
        Engine("cp-sat", "CP-SAT (ortools), one model per branch", True, late("solver.engines.cp_sat:run")),
        Engine("milp", "MILP, perspective formulation, solved by HiGHS", True, late("solver.engines.milp:run_highs")),
        Engine(
            "milp-cbc", "the same MILP solved by the CBC that PuLP carries", True, late("solver.engines.milp:run_cbc")
        ),
        Engine(
            "greedy",
            "the largest tile that fits, with the best order or dataflow for it",
            False,
            late("solver.engines.greedy:run_greedy"),
        ),
        Engine(
            "naive", "fill the on-chip memory (DMA paper, section 6.1)", False, late("solver.engines.greedy:run_naive")
        ),
        Engine(
            "tso-noburst",
            "the best plan if bursts were free (TSO-noburst)",
            False,
            late("solver.engines.published:run_tso_noburst"),
            frozenset({"slicing"}),
        ),
    )
}

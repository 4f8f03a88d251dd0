"""Suite ``heuristics``: what optimality is worth."""

from __future__ import annotations

from formulations.tiling.problem import NESTS
from solver.problems.layers_search import decide
from solver.uses.bench.engines import CASES, Case
from solver.uses.bench.report import Cell, Suite, Table, geomean

_CASES = (*CASES, *(Case(n, "scratchpad_64k") for n in ("resnet50", "mobilenet_v2")))
_RULES = ("greedy", "naive", "tso-noburst")


def _row(case: Case) -> list[Cell]:
    ratios: dict[str, list[float]] = {rule: [] for rule in _RULES}
    spaces = case.spaces()
    for space in spaces:
        best = decide(space, ("time",)).values
        for rule in _RULES:
            if not best or rule not in NESTS[space.problem].heuristics:
                continue
            found = decide(space, ("time",), rule).values
            if found:
                ratios[rule].append(found["time"] / best["time"])
    means = (cell for rule in _RULES for cell in (geomean(ratios[rule]), max(ratios[rule], default=None)))
    return [str(case), len(spaces), *means]


heuristics = Suite("heuristics", (
    Table(
        "heuristic time over the least time of all candidates, distinct layers",
        ["case", "layers", *(f"{r} {what}" for r in _RULES for what in ("mean", "worst"))], _CASES, _row,
        ["greedy: the tile with the most multiply-accumulates that fits, best order or dataflow.",
         "naive: the fullest memory, first order.",
         "tso-noburst: optimal if bursts were free; among its many ties the quickest one with bursts."],
    ),
))  # fmt: skip

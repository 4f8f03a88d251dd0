"""Suite ``heuristics``: what optimality is worth."""

from __future__ import annotations

from solver.bench.engines import CASES, Case
from solver.bench.report import Cell, Suite, Table, geomean
from solver.engines import ENGINES, Limits

_CASES = (*CASES, *(Case(n, "scratchpad_64k") for n in ("resnet50", "mobilenet_v2")))
_RULES = ("greedy", "naive", "tso-noburst")


def _row(case: Case) -> list[Cell]:
    ratios: dict[str, list[float]] = {rule: [] for rule in _RULES}
    spaces = case.spaces()
    for space in spaces:
        best = ENGINES["exhaustive"].run(space, ("time",), Limits()).measures
        for rule in _RULES:
            if best is None or space.problem not in ENGINES[rule].problems:
                continue
            found = ENGINES[rule].run(space, ("time",), Limits()).measures
            if found is not None:
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

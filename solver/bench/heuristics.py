"""Suite ``heuristics``: what optimality is worth."""

from __future__ import annotations

from solver.bench.engines import CASES, Case
from solver.bench.report import Report, Section, geomean
from solver.engines import ENGINES, Limits
from solver.progress import Progress

__all__ = ["heuristics"]

_CASES = (*CASES, *(Case(n, "scratchpad_64k") for n in ("resnet50", "mobilenet_v2")))
_RULES = ("greedy", "naive", "tso-noburst")


def heuristics(progress: Progress) -> Report:
    """Time of each heuristic over the least time that exhaustive search finds, geometric mean and worst layer."""
    columns = ["case", "layers", *(f"{r} {what}" for r in _RULES for what in ("mean", "worst"))]
    section = Section("heuristic time over the least time of all candidates, distinct layers", columns)
    progress.begin(len(_CASES), "heuristics")
    for case in _CASES:
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
        cells = [c for rule in _RULES for c in (geomean(ratios[rule]), max(ratios[rule], default=None))]
        section.rows.append([" ".join([case.network, "on", case.machine, *case.pins]), len(spaces), *cells])
        progress.advance(case.network)
    progress.end()
    section.notes += [
        "greedy: the tile with the most multiply-accumulates that fits, best order or dataflow.",
        "naive: the fullest memory, first order.",
        "tso-noburst: optimal if bursts were free; among its many ties the quickest one with bursts.",
    ]
    return Report("heuristics", [section])

"""Suite ``speed``: ratios in one run, because absolute times depend on the machine and on what else it does."""

from __future__ import annotations

import time
from collections.abc import Sequence

from formulations.pins import Pins
from formulations.tiling.problem import NESTS
from instances.load import load_machine
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.ask.progress import Progress
from solver.problems.layers_search import decide
from solver.uses.bench.engines import distinct_layers
from solver.uses.bench.report import Report, Section

_LARGE = Layer.conv("large", channels=512, filters=512, size=(224, 224), kernel=(3, 3), pad=(1, 1, 1, 1))
_ROUNDS = 3
#: The TSO paper's space: one common hold depth.
_PAPER = Pins().plus("holds", "uniform")


def speed(progress: Progress) -> Report:
    """Reduced against full search over ResNet-50, and both solvers with and without bounding, on nmp."""
    machine = load_machine("nmp", None)
    build = NESTS["slicing"].build
    layers = distinct_layers("resnet50")
    progress.begin(4, "speed")
    rounds = [_search(layers, machine, full=False) for _ in range(_ROUNDS)]
    reduced, few = min(rounds)
    progress.advance("reduced search")
    full, many = _search(layers, machine, full=True)
    progress.advance("full search")
    search = Section(
        "exhaustive search over ResNet-50 on nmp, distinct layers", ["search", "looked at", "seconds", "ratio"]
    )
    search.rows = [["reduced", few, reduced, 1.0], ["full (every integer size)", many, full, full / reduced]]
    search.notes.append(f"building the tables included; reduced: the best of {_ROUNDS} rounds.")
    solvers = Section("solvers on nmp: seconds a layer", ["engine", "layers", "bounding", "worst", "mean"])
    for title, group in (("resnet50", layers), ("224x224 512->512 3x3", [_LARGE])):
        spaces = [build(x, machine, _PAPER) for x in group]
        for engine in ("cp-sat", "milp"):
            for bounding in (True, False):
                times = [decide(s, ("time",), engine, bounding=bounding).wall_s for s in spaces]
                solvers.rows.append([f"{engine}, {title}", len(times), bounding, max(times), sum(times) / len(times)])
        progress.advance(title)
    progress.end()
    return Report("speed", [search, solvers])


def _search(layers: Sequence[Layer], machine: Machine, *, full: bool) -> tuple[float, int]:
    """Seconds to build and search all layers, and the points looked at."""
    start, points = time.monotonic(), 0
    for layer in layers:
        space = NESTS["slicing"].build(layer, machine, _PAPER, full=full)
        found = decide(space, ("time",), bounding=not full)
        points += int(str(found.stats["looked_at"]))
    return time.monotonic() - start, points

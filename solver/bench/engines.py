"""Suite ``engines``: all engines must prove the same integers on every layer, and replay must agree."""

from __future__ import annotations

import time
from dataclasses import dataclass

from formulations.pins import parse_pins
from formulations.registry import FORMULATIONS
from formulations.space import Space
from hwmodels.replay import replay
from instances.load import load_machine, load_network
from instances.workload import Layer
from solver.bench.report import Report, Section
from solver.engines import ENGINES, Limits
from solver.progress import Progress

__all__ = ["CASES", "Case", "distinct_layers", "engines"]


@dataclass(frozen=True)
class Case:
    """A network on a machine, with pins."""

    network: str
    machine: str
    pins: tuple[str, ...] = ()

    def spaces(self) -> list[Space]:
        """The spaces of its distinct conv and matmul layers."""
        machine = load_machine(self.machine, None)
        formulation = FORMULATIONS[machine.problem]
        pins = parse_pins(self.pins, formulation.decisions)
        return [formulation.build(layer, machine, pins) for layer in distinct_layers(self.network)]


#: The cases of the suite.
CASES = (
    *(Case(n, "nmp") for n in ("squeezenet1_0", "mobilenet_v2", "resnet50", "inception_v3")),
    Case("flownet_s", "zynq7020", ("sizes=divisors",)),
    Case("flownet_s", "zynq7020"),
)
_SOLVERS = ("cp-sat", "milp")


def distinct_layers(network: str) -> list[Layer]:
    """The conv and matmul layers of a bundled network, equal ones once."""
    return list({layer.signature(): layer for layer in reversed(load_network(network).conv_layers)}.values())[::-1]


def engines(progress: Progress) -> Report:
    """Solve every distinct layer with every engine, the solvers with and without bounding."""
    heads = [f"{e}{'' if bounding else ' alone'} s/layer (worst)" for e in _SOLVERS for bounding in (True, False)]
    section = Section(
        "cp-sat, milp and exhaustive: proven optima of time",
        ["case", "layers", "all OPTIMAL and equal", "replay agrees", *heads],
    )
    progress.begin(len(CASES), "engines")
    for case in CASES:
        section.rows.append(_row(case))
        progress.advance(case.network)
    progress.end()
    section.notes.append("alone: without heuristic start and without bounds that remove choices.")
    return Report("engines", [section])


def _row(case: Case) -> list[str | int | float | bool]:
    equal = agrees = True
    worst = {(e, b): 0.0 for e in _SOLVERS for b in (True, False)}
    spaces = case.spaces()
    for space in spaces:
        oracle = ENGINES["exhaustive"].run(space, ("time",), Limits())
        if oracle.nest is not None:
            outcome = replay(space.layer, space.machine, oracle.nest, execute=False)
            agrees &= outcome.ok and outcome.outcome.measures == oracle.measures
        for engine, bounding in worst:
            start = time.monotonic()
            result = ENGINES[engine].run(space, ("time",), Limits(bounding=bounding))
            worst[engine, bounding] = max(worst[engine, bounding], time.monotonic() - start)
            equal &= (result.status, result.measures) == (oracle.status, oracle.measures)
    name = " ".join([case.network, "on", case.machine, *case.pins])
    return [name, len(spaces), equal, agrees, *worst.values()]

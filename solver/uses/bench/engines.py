"""Suite ``engines``: all engines must find the same least time of every layer, none above its bound; replay agrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from formulations.pins import parse_pins
from formulations.tiling.problem import NESTS
from formulations.tiling.space import Space
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Nest
from instances.load import load_machine, load_network
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.problems.layers_search import decide
from solver.search.loop import Answer
from solver.uses.bench.report import Suite, Table, timed


@dataclass(frozen=True)
class Case:
    """A network on a machine, with pins."""

    network: str
    machine: str
    pins: tuple[str, ...] = ()

    def spaces(self) -> list[Space]:
        """The spaces of its distinct conv and matmul layers."""
        machine = load_machine(self.machine)
        return [space_of(layer, machine, *self.pins) for layer in distinct_layers(self.network)]

    def __str__(self) -> str:
        return " ".join([self.network, "on", self.machine, *self.pins])


#: The cases of the suite.
CASES = (
    *(Case(n, "nmp") for n in ("squeezenet1_0", "mobilenet_v2", "resnet50", "inception_v3")),
    Case("flownet_s", "zynq7020", ("sizes=divisors",)),
    Case("flownet_s", "zynq7020"),
)
_SOLVERS = ("cp-sat", "milp")


def space_of(layer: Layer, machine: Machine, *pins: str) -> Space:
    """The space of a layer for the machine's problem."""
    formulation = NESTS[machine.problem]
    return formulation.build(layer, machine, parse_pins(pins, formulation.decisions))


def distinct_layers(network: str) -> list[Layer]:
    """The conv and matmul layers of a bundled network, equal ones once."""
    return list({layer.signature(): layer for layer in reversed(load_network(network).conv_layers)}.values())[::-1]


def agree(results: Sequence[Answer[Nest]], measure: str) -> bool:
    """Whether all engines that prove find the same value (or that there is none), and no bound is above it."""
    values = {r.values.get(measure) for r in results}
    return len(values) == 1 and not any(
        r.bound is not None and r.values and r.bound > r.values[measure] for r in results
    )


def _gap(result: Answer[Nest], measure: str) -> float:
    if not result.values or result.bound is None:
        return 0.0 if result.status == "INFEASIBLE" else 1.0
    return 1 - result.bound / max(1, result.values[measure])


def _row(case: Case) -> list[str | int | float | bool]:
    equal = agrees = True
    proven, gap = 0, 0.0
    worst = {(e, b): 0.0 for e in _SOLVERS for b in (True, False)}
    spaces = case.spaces()
    for space in spaces:
        oracle = decide(space, ("time",))
        if oracle.schedule is not None:
            outcome = replay(space.layer, space.machine, oracle.schedule, execute=False)
            agrees &= outcome.ok and outcome.outcome.measures == oracle.values
        answers = [oracle]
        for engine, bounding in worst:
            result, wall = timed(partial(decide, space, ("time",), engine, bounding=bounding))
            worst[engine, bounding] = max(worst[engine, bounding], wall)
            answers.append(result)
        equal &= agree(answers, "time")
        proven += all(one.status in ("OPTIMAL", "INFEASIBLE") for one in answers)
        gap = max(gap, *(_gap(one, "time") for one in answers))
    return [str(case), len(spaces), equal, proven, gap, agrees, *worst.values()]


engines = Suite("engines", (
    Table(
        "cp-sat, milp and exhaustive: least time, proven or with a gap",
        ["case", "layers", "equal", "proven by all", "worst gap", "replay agrees",
         *(f"{e}{'' if bounding else ' alone'} s/layer (worst)" for e in _SOLVERS for bounding in (True, False))],
        CASES, _row,
        ["equal: one value from all engines, and no bound above it; gap: what the weakest bound leaves open.",
         "alone: without heuristic start and without bounds that remove choices."],
    ),
))  # fmt: skip

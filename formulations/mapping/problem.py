"""Mapping as a formulation: what may be asked, by which engines, and heuristics to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from formulations.mapping.board import Request
from formulations.mapping.engines import Asked, clustered
from formulations.mapping.figures import MappingFigures
from formulations.mapping.part import MappingPart
from formulations.mapping.search import MOST, Rule, improved, list_scheduled, seeds, starts
from formulations.mapping.space import Assignment
from formulations.pins import Decision, Pins
from formulations.problem import Formulation, Goal
from hwmodels.board.schedule import MappingSchedule
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.tasks import tasks


def _best(make: Callable[[Asked], Iterable[Assignment]]) -> Callable[[MappingPart, Goal], MappingSchedule | None]:
    """The best of some assignments, each in its usual order where an order counts."""
    return lambda part, goal: part.best(goal, lambda asked: asked.scheduled(make(asked)))


def _listed(rule: Rule) -> Callable[[MappingPart, Goal], MappingSchedule | None]:
    return _best(lambda asked: [list_scheduled(asked.mapping, rule)])


def _descended(asked: Asked) -> list[Assignment]:
    return [improved(asked.mapping, asked.limits, at, asked.aim) for at in starts(asked.mapping)]


def _evolved(asked: Asked, *, seeded: bool) -> list[Assignment]:
    from formulations.mapping.genetic import evolve  # late: DEAP

    return [evolve(asked, seeded=seeded)]


class MappingFormulation(Formulation[MappingSchedule]):
    """Tasks of a network on the processors of a board."""

    name = "mapping"
    summary = "which processor of a board runs which task of a network, in a pipeline"
    schedule, figures = MappingSchedule, MappingFigures
    whole = True
    measures = {"period": "ticks", "energy": "fJ", "latency": "ticks"}  # noqa: RUF012
    decisions = {  # noqa: RUF012
        "cpu_config": Decision("configuration of the cores: cpu_config=1,1,1,1; by default all are tried"),
        "cap": Decision("percent of the cores that may be busy: cap=50"),
        "period": Decision("most ticks from one inference to the next: period<=20000"),
        "latency": Decision("most ticks of one inference alone: latency<=20000"),
        "energy": Decision("most fJ an inference: energy<=100000000000000"),
        "split": Decision("split=on: a task may be divided between two processors, in quarters; split=8: in eighths"),
        "TASK": Decision("the processor of a task by its name: conv1=gpu"),
    }
    engines = {  # noqa: RUF012
        "auto": "latency in sections; milp, then cp-sat if that does not prove: the best bound of all",
        "sections": "latency section by section between tasks that all others wait for; else cp-sat",
        "milp": "edge flows with HiGHS",
        "milp-cbc": "edge flows with CBC",
        "cp-sat": "edge flows with CP-SAT, after a bound from merged cores",
        "exhaustive": f"all assignments, up to {MOST:,}",
    }
    heuristics = {  # noqa: RUF012
        "clustering": (
            "the source's task clustering (Eq. 3.1 to 3.8), the best of them", partial(clustered, kind="=")
        ),
        "clustering-most": ("task clustering with idle processors allowed", partial(clustered, kind="<=")),
        "heft": ("earliest finish by upward rank", _listed("heft")),
        "cpop": ("the critical path on one processor", _listed("cpop")),
        "peft": ("earliest finish with a look ahead", _listed("peft")),
        "descent": (
            "from the heuristics below and above on, one task moved at a time while that helps", _best(_descended)
        ),
        "ga": ("genetic, from the heuristics below on", _best(partial(_evolved, seeded=True))),
        "ga-unseeded": ("genetic, from random assignments", _best(partial(_evolved, seeded=False))),
        "single": ("one processor runs all that it can", _best(lambda asked: seeds(asked.mapping))),
    }  # fmt: skip
    quick = ("heft", "peft", "cpop", "single", "descent")
    libraries = {"ga": "deap", "ga-unseeded": "deap"}  # noqa: RUF012

    def read(
        self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[MappingPart]:
        """Return the tasks in a pipeline, or one inference alone if its latency is pinned."""
        return [MappingPart.of(Request.of(tasks(network), machine, pins.to_json()), ())]

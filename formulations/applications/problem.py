"""Applications as certile asks it: engines, heuristics, pins; the model is in `formulations.applications.space`."""

from __future__ import annotations

from collections.abc import Sequence

from formulations.applications.part import ApplicationsPart, rule_of
from formulations.applications.search import MOST, Asked, evolved
from formulations.mapping.board import Request
from formulations.mapping.figures import ApplicationsFigures
from formulations.pins import Decision, Pins
from formulations.problem import Formulation
from hwmodels.board.schedule import ApplicationsSchedule
from instances.applications import Applications
from instances.machine.machine import Machine
from instances.network.tasks import tasks


class ApplicationsFormulation(Formulation[ApplicationsSchedule]):
    """Several networks with periods on one board."""

    name = "applications"
    summary = "the same for several networks with periods, deadlines and priorities"
    schedule, figures, target = ApplicationsSchedule, ApplicationsFigures, Applications
    whole = True
    measures = {"response": "ticks", "response:NAME": "ticks", "energy": "fJ"}  # noqa: RUF012
    decisions = {  # noqa: RUF012
        "analysis": Decision(
            "analysis=safe (the default) or analysis=printed (Eq. 3.11): by which rule deadlines are kept"
        ),
        "cpu_config": Decision("configuration of the cores: cpu_config=1,1,1,1; by default all are tried"),
        "TASK": Decision("the processor of a task by its name: squeezenet1_1:conv1=gpu"),
    }
    engines = {  # noqa: RUF012
        "auto": "cp-sat",
        "cp-sat": "flows, paths and releases with CP-SAT, from the best start",
        "exhaustive": f"all schedules, up to {MOST:,} assignments",
    }
    heuristics = {  # noqa: RUF012
        "ga": ("genetic by SPEA2: all responses and energy", lambda part, goal: part.best(goal, evolved)),
        "apart": (
            "each application on one processor, or a list schedule: the best of these",
            lambda part, goal: part.best(goal, Asked.starts),
        ),
    }
    quick = ("apart",)
    libraries = {"ga": "deap"}  # noqa: RUF012

    def read(
        self, network: Applications, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[ApplicationsPart]:
        """Return all applications together."""
        rule, others = rule_of(pins.to_json())
        return [ApplicationsPart.of(Request.of(tasks(network.network), machine, others), network.applications, rule)]

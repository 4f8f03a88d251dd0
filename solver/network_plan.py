"""What all plans of whole networks have in common."""

from __future__ import annotations

import time

from hwmodels.outcome import UNITS
from instances.buffers import Buffers
from instances.network import Network
from instances.variants import Variants
from solver.plan import FORMAT, Plan, Status, digest
from solver.question import Question
from solver.version import version


class SubjectPlan(Plan):
    """A plan that holds what it is for."""

    network_data: Network | Buffers | Variants


class WholePlan(SubjectPlan):
    """A plan of a whole network, with the network that it is for."""

    network_data: Network


def head(
    question: Question, problem: str, engine: str, *, status: Status, start: float, **said: object
) -> dict[str, object]:
    """Return the fields that every plan of a network, of variants, or of buffers, begins with.

    `said` is what is known of objective, bound and stats.

    Parameters
    ----------
    start : float
        When the question was asked, by `time.monotonic`.
    """
    network, machine = question.subject, question.machine
    unit = UNITS.get(question.objectives[0].partition(":")[0], "")
    fields: dict[str, object] = {
        "format": FORMAT, "certile": version(), "problem": problem, "network": network.name,
        "machine": machine.name, "engine": engine, "engine_version": "", "objectives": question.objectives,
        "unit": unit, "status": status, "objective": None,
        "bound": None, "gap": None, "stats": {}, "network_digest": digest(network.model_dump(mode="json")),
        "machine_digest": digest(machine.model_dump(mode="json")), "network_data": network, "machine_data": machine,
        "wall_s": time.monotonic() - start,
    }  # fmt: skip
    return {**fields, **said}

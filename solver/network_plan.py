"""What all plans of whole networks have in common."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from instances.machine import Machine
from instances.network import Network
from solver.plan import Gap, Measure, Measures, Natural, Objective, PlanFile, Seconds, Stat, Status

__all__ = ["NetworkPlan", "WholePlan"]


class WholePlan(PlanFile):
    """A plan of a whole network, with the network and the machine that it is for.

    Attributes
    ----------
    conflicts : tuple of str
        Why there is no plan.
    """

    format: str
    certile: str
    problem: str
    network: str
    machine: str
    engine: str
    engine_version: str
    objectives: Annotated[tuple[str, ...], Field(min_length=1)]
    unit: str
    status: Status
    objective: Objective | None
    bound: Natural | None
    gap: Gap | None
    wall_s: Seconds
    conflicts: tuple[str, ...] = ()
    stats: dict[str, Stat]
    network_digest: str
    machine_digest: str
    network_data: Network
    machine_data: Machine

    @property
    def parts(self) -> int:
        """How many layers there are, or tasks."""
        return len(getattr(self, "layers", ()) or getattr(self, "tasks", ()))

    @property
    def decided(self) -> bool:
        """Whether there are layers, or tasks."""
        return self.parts > 0


class NetworkPlan(WholePlan):
    """A plan that moves data.

    Attributes
    ----------
    compulsory_bytes : int
        Every weight, and every input and result of the network once: what no plan can do without.
    """

    objectives: Annotated[tuple[Measure, ...], Field(min_length=1)]
    unit: Literal["ticks", "bytes", "fJ"]
    measures: Measures | None
    compulsory_bytes: Natural

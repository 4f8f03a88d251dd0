"""A case: what is asked of an instance before anything is known of it; families of cases are data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from instances.load import load_network
from instances.network.network import Network
from instances.network.workload import Layer

#: By problem the engines that are asked, and the seconds that each of them has. They are of different kinds: a search
#: of certile's own, a MILP solver, a constraint solver.
ENGINES: dict[str, tuple[tuple[str, float], ...]] = {
    "tiling": (("exhaustive", 25), ("cp-sat", 6), ("milp", 4)),
    "slicing": (("exhaustive", 25), ("cp-sat", 6), ("milp", 4)),
    "levels": (("search", 40), ("cp-sat", 8)),
    "mesh": (("exhaustive", 15), ("milp", 10), ("cp-sat", 6)),
    "partial_engine": (("auto", 15), ("cp-sat", 8), ("milp", 6), ("exhaustive", 4)),
    "mapping": (("auto", 15), ("cp-sat", 8), ("milp", 8), ("exhaustive", 2)),
    "applications": (("auto", 20), ("cp-sat", 10), ("exhaustive", 5)),
    "banks": (("dynamic", 25), ("milp", 10), ("cp-sat", 6)),
    "joint": (("dynamic", 40), ("milp", 10), ("cp-sat", 10)),
    "hybrid": (("dynamic", 25), ("milp", 8), ("cp-sat", 8)),
    "fusion": (("dynamic", 40), ("milp", 10), ("cp-sat", 10)),
    "placement": (("search", 20), ("cp-sat", 10), ("milp", 4)),
    "selection": (("search", 10), ("cp-sat", 8), ("milp", 6), ("exhaustive", 3)),
}


@dataclass(frozen=True)
class Case:
    """A question by its name within a family."""

    name: str
    problem: str
    target: dict[str, Any]
    """Fields of `instances.library_format.Target`, but its digest."""
    machine: str
    objectives: str
    set: dict[str, str | int] = field(default_factory=dict)
    pins: tuple[str, ...] = ()
    engines: tuple[tuple[str, float], ...] | None = None
    """None: those of `ENGINES`."""
    tags: tuple[str, ...] = ()
    note: str = ""

    @property
    def asked(self) -> tuple[tuple[str, float], ...]:
        """The engines with their seconds."""
        usual = ENGINES.get(self.problem, (("auto", 10),))
        return usual if self.engines is None else self.engines


@dataclass(frozen=True)
class Cases:
    """A family."""

    family: str
    title: str
    source: str
    cases: Callable[[], Iterator[Case]]
    licence: str = "Apache-2.0"


def layer_of(network: str, name: str) -> dict[str, Any]:
    """A layer of a bundled network, in full."""
    return {"layer": load_network(network).layer(name), "part_of": network}


def named(network: str, *layers: str, size: tuple[int, int] | None = None) -> dict[str, Any]:
    """A bundled network, or these of its layers."""
    return {"network": network, "layers": layers, "size": size}


def inline(network: Network) -> dict[str, Any]:
    """A network that certile does not bring."""
    from instances.library_format import network_json

    return {"network": network_json(network)}


def alone(layer: Layer) -> dict[str, Any]:
    """A layer of no network."""
    return {"layer": layer}

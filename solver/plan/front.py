"""Fronts of any problem: all plans that no other beats, part by part, and the file that says so."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from solver.plan.faces import FACES
from solver.plan.plan import Plan

if TYPE_CHECKING:
    from solver.plan.figures import Figure


@dataclass(frozen=True)
class FrontPoint:
    """One plan of a front."""

    values: Mapping[str, int]
    """Along the axes."""
    body: Mapping[str, object]
    """The plan, as JSON: a plan file's text, a nest, a size."""
    label: str = ""
    """The decisions in short."""
    plan: Plan | None = None
    """The same as an object, where plans are whole."""
    details: Mapping[str, str] = field(default_factory=dict)
    """What a table says of it beside."""


@dataclass(frozen=True)
class FrontPart:
    """The front of a layer, or (`name` is empty) of the network: ascending along the first axis.

    `complete` if no point of the search is missing; `proven` if no plan whatever lies below it.
    """

    name: str
    points: tuple[FrontPoint, ...]
    complete: bool
    proven: bool


@dataclass(frozen=True)
class Front:
    """All plans that no other beats in all of the axes."""

    FORMAT: ClassVar[str] = "certile-front/2"
    problem: str
    network: str
    machine: str
    units: Mapping[str, str]
    parts: tuple[FrontPart, ...]

    @property
    def axes(self) -> tuple[str, ...]:
        """What the front is about."""
        return tuple(self.units)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """All plans of it, where they are whole."""
        return tuple(point.plan for part in self.parts for point in part.points if point.plan is not None)

    @property
    def proven(self) -> bool:
        """Whether all of it is."""
        return all(part.proven for part in self.parts)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the front as one HTML page that needs no network; raises InputError without plotly, or if it cannot."""
        FACES["report"](self, path)

    def figures(self) -> tuple[Figure, ...]:
        """Return what a report draws of the front."""
        return tuple(FACES["front_figures"](self))

    def _repr_html_(self) -> str:
        """Return how sure it is and its points, for notebooks."""
        return str(FACES["front_html"](self))

    def to_json(self) -> str:
        """Return the text of a front file."""
        parts = [
            {
                "part": part.name, "complete": part.complete, "proven": part.proven,
                "points": [{"values": dict(point.values), **point.body} for point in part.points],
            }
            for part in self.parts
        ]  # fmt: skip
        head = {"format": self.FORMAT, "problem": self.problem, "network": self.network, "machine": self.machine}
        return json.dumps({**head, "axes": list(self.axes), "units": dict(self.units), "parts": parts}, indent=1) + "\n"

"""What the driver of the adversary asks of every problem."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Disagreement:
    """Two answers that cannot both be right."""

    problem: str
    what: str
    """One line: who claims what, who found what."""
    instance: Mapping[str, object]
    """JSON data from which `Tester.from_json` rebuilds the case."""


class Tester(Protocol):
    """The adversary of one problem; its cases are of a type of its own."""

    name: str

    def case(self, rng: random.Random) -> Any:
        """A random tiny instance: layer or network, machine, pins, objectives."""
        ...

    def run(self, case: Any, rng: random.Random) -> list[Disagreement]:
        """Every engine against every other and against brute force; metamorphic rules."""
        ...

    def smaller(self, case: Any) -> Iterator[Any]:
        """Simpler variants of a case, for shrinking a find."""
        ...

    def to_json(self, case: Any) -> dict[str, object]:
        """The case as JSON data."""
        ...

    def from_json(self, data: Mapping[str, object]) -> Any:
        """What `to_json` gave."""
        ...

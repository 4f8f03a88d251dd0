"""What the replay of a bank program counts, and what it writes down on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

from hwmodels.banks.replay_time import Unit

__all__ = ["Held", "Moved"]

#: What a bank holds: a letter, the map, its first column.
Held = tuple[str, str, int]


@dataclass
class Moved:
    """Bytes that went over the bus, and what was wrong with the program.

    Attributes
    ----------
    stages : dict of str to tuple of int
        The same for every stage: load, weight, streamed, bias, write.
    history : list
        After every action: the stage, the action, and what each bank holds as (letter, map, first column); L is being
        loaded, P processed, O made, I there.
    units, loads
        What `hwmodels.banks.replay_time.clocked` follows in time.
    """

    load: int = 0
    weight: int = 0
    streamed: int = 0
    bias: int = 0
    write: int = 0
    faults: list[str] = field(default_factory=list)
    stages: dict[str, tuple[int, int, int, int, int]] = field(default_factory=dict)
    history: list[tuple[str, str, dict[int, Held]]] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    loads: list[int] = field(default_factory=list)

    @property
    def parts(self) -> tuple[int, int, int, int, int]:
        """Bytes by what they are."""
        return self.load, self.weight, self.streamed, self.bias, self.write

    @property
    def total(self) -> int:
        """All bytes."""
        return self.load + self.weight + self.streamed + self.bias + self.write

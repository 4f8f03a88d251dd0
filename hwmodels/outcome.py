"""What executing a schedule costs: the type that closed forms and replay both return, and nothing else they share."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Annotated

from pydantic import Field

#: A number in a file.
Natural = Annotated[int, Field(ge=0)]
#: The measures of a plan in the fixed order that breaks ties, with their units.
MEASURES: dict[str, str] = {"time": "ticks", "bytes": "bytes", "energy": "fJ"}
#: The units of all that a plan may minimise.
UNITS: dict[str, str] = {
    **MEASURES, "period": "ticks", "latency": "ticks", "response": "ticks", "dram": "bytes", "glb": "bytes",
    "macs": "MACs",
}  # fmt: skip
#: The rows of `Outcome.by_operand`: OUT is final results written, PSUM partial sums written and read back.
OPERANDS = ("IN", "W", "OUT", "PSUM")


@dataclass(frozen=True)
class Counts:
    """What moves between the chip and memory (docs/transfer.md)."""

    calls: Natural = 0
    """DMA programs: one for every fetch of a tile, of every input by itself; W comes with its biases."""
    segments: Natural = 0
    """Contiguous runs of addresses off the chip."""
    bursts: Natural = 0
    """Burst windows; 0 where the machine has none."""
    rows: Natural = 0
    """DRAM rows; 0 where the machine does not price them."""
    refreshes: Natural = 0
    """Refresh periods, likewise."""
    bytes: Natural = 0
    """All of them."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def to_json(self) -> dict[str, int]:
        """Return the counts as a JSON object."""
        return asdict(self)


@dataclass(frozen=True)
class Outcome:
    """The cost of one schedule on one machine."""

    time_ticks: int
    bytes: int
    energy_fj: int
    """`time_ticks`, `bytes`, `energy_fj`: the three measures. `bytes` is everything that crosses the DRAM interface."""
    by_operand: dict[str, Counts]
    """Keys `OPERANDS`; summed over all clusters and cores."""
    transfer_ticks: int
    compute_ticks: int
    """`transfer_ticks`, `compute_ticks`: sum of all transfer prices; and the busiest core's compute time."""
    occupancy_bytes: dict[str, int]
    """Most bytes ever taken in each memory of one core: footprints (twice when double buffered), scratch and reserved
    bytes.
    """

    @property
    def total(self) -> Counts:
        """All operands together."""
        return sum(self.by_operand.values(), Counts())

    @property
    def measures(self) -> dict[str, int]:
        """``{"time": ticks, "bytes": bytes, "energy": fJ}`` in the fixed tie-breaking order."""
        return {"time": self.time_ticks, "bytes": self.bytes, "energy": self.energy_fj}

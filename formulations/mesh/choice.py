"""The decisions of F3 mesh: names, values, and what may be minimised (`formulations.mesh` has the model)."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.pins import Decision
from instances.workload import DIMS

__all__ = ["ARRAYS", "DECISIONS", "KEEPS", "MEASURES", "ONLY", "SHARES", "Choice", "Price"]

#: What may be minimised, with units.
MEASURES: dict[str, str] = {"dram": "bytes", "glb": "bytes", "time": "ticks"}
KEEPS = ("none", "IN", "W")
SHARES: dict[str, tuple[str, ...]] = {"both": ("IN", "W"), "IN": ("IN",), "W": ("W",), "none": ()}
#: Decisions that only some kinds of machines have.
ONLY: dict[str, tuple[str, ...]] = {
    "P": ("teu",), "cols": ("teu",), "share": ("teu",), "rows": ("teu", "systolic"), "filters": ("row_stationary",),
    "channels": ("row_stationary",),
}  # fmt: skip
#: Kinds of machines that are no mesh.
ARRAYS = ("systolic", "row_stationary")

_UPPER = {d: d.upper() for d in DIMS}
#: What may be pinned.
DECISIONS: dict[str, Decision] = {
    **{f"T_{u}": Decision(f"tile along {d}") for d, u in _UPPER.items()},
    **{f"P_{u}": Decision(f"PEs of a unit along {d}, a power of two") for d, u in _UPPER.items()},
    "filters": Decision("filters in a PE (row_stationary)"),
    "channels": Decision("channels in a PE (row_stationary)"),
    "rows": Decision("index along the rows of the mesh", DIMS),
    "cols": Decision("index along the columns of the mesh", DIMS),
    "share": Decision("operands that go through the FIFOs", tuple(SHARES)),
    "keep": Decision("operand whose tile stays", KEEPS),
}


@dataclass(frozen=True)
class Choice:
    """A decision for one layer.

    Attributes
    ----------
    tile : tuple of int
        By index, in the order of `DIMS`.
    rows, cols : str
        Indices along the sides of the mesh; empty where there is none.
    vector : tuple of int
        PEs by index.
    share, keep : str
        Keys of `SHARES` and `KEEPS`.
    filters, channels : int
        In a PE.
    """

    tile: tuple[int, ...]
    rows: str = ""
    cols: str = ""
    vector: tuple[int, ...] = (1,) * len(DIMS)
    share: str = "both"
    keep: str = "none"
    filters: int = 1
    channels: int = 1


@dataclass(frozen=True)
class Price:
    """Bytes, and cycles of the PEs alone; `time` is what the slowest of the three takes."""

    dram: int
    glb: int
    cycles: int
    time: int

    def of(self, measure: str) -> int:
        """The value of a measure."""
        return {"dram": self.dram, "glb": self.glb, "time": self.time}[measure]

"""The decisions of F3 mesh: names, values, and what may be minimised (`formulations.mesh` has the model)."""

from __future__ import annotations

from formulations.pins import Decision
from hwmodels.schedule import SHARES
from instances.workload import DIMS

__all__ = ["DECISIONS", "KEEPS", "MEASURES", "ONLY"]

#: What may be minimised, with units.
MEASURES: dict[str, str] = {"dram": "bytes", "glb": "bytes", "time": "ticks"}
KEEPS = ("none", "IN", "W")
#: Decisions that only some kinds of machines have.
ONLY: dict[str, tuple[str, ...]] = {
    "P": ("teu",), "cols": ("teu",), "share": ("teu",), "rows": ("teu", "systolic"), "filters": ("row_stationary",),
    "channels": ("row_stationary",),
}  # fmt: skip

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

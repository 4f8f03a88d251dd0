"""The section ``mesh`` of a machine: units in a mesh or an array, what they hold, and the buffer in front of them.

Source: `vectormesh` sections II and III-B. Rates are bytes per cycle, so that every time is whole cycles.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from instances.frozen import Frozen

#: Sums of bytes and cycles stay below this, so that all engines count in 64 bits, and in doubles, without rounding.
LARGEST = 2**53
Count = Field(default=0, ge=0, le=LARGEST)
Positive = Annotated[int, Field(ge=1, le=LARGEST)]


class Mesh(Frozen):
    """A mesh of tile units, or one of the two arrays that it is compared with."""

    kind: Literal["teu", "systolic", "row_stationary"]
    """``teu``: units with vector PEs and FIFOs between them (VectorMesh). ``systolic``: an array of PEs that hold a
    weight each, partial sums in the global buffer (TPU). ``row_stationary``: PEs that hold kernel rows (Eyeriss).
    """
    rows: Positive
    """Units along one side."""
    cols: Positive
    """Units along the other side."""
    pes: Positive = 1
    """PEs of a unit, a power of two; they work as one vector."""
    banks: int = Count
    """Banks of the input buffer of each operand in a unit, a power of two (teu)."""
    input_buffer_bytes: int = Count
    """Buffer of a unit for each of the two operands (teu)."""
    psum_buffer_bytes: int = Count
    """Buffer of a unit for partial sums (teu)."""
    local_bytes: int = Count
    """Scratchpad of a PE (row_stationary)."""
    global_bytes: Positive
    """The global buffer. A mesh streams through it; arrays keep their tiles there, partial sums too."""
    copies: int = Field(default=2, ge=1, le=2)
    """1, or 2 if the next input tile is loaded while one is in use."""
    dram_bytes_per_cycle: Positive
    """What the DRAM moves in a cycle."""
    global_bytes_per_cycle: Positive
    """What the global buffer moves in a cycle."""

    @model_validator(mode="after")
    def _complete(self) -> Mesh:
        needed = {
            "teu": {"banks", "input_buffer_bytes", "psum_buffer_bytes"}, "systolic": set(),
            "row_stationary": {"local_bytes"},
        }[self.kind]  # fmt: skip
        for name in ("banks", "input_buffer_bytes", "psum_buffer_bytes", "local_bytes"):
            if bool(getattr(self, name)) != (name in needed):
                state = "needs" if name in needed else "has no"
                raise ValueError(f"kind {self.kind} {state} {name}")
        for name in ("pes", "banks"):
            value = getattr(self, name)
            if value & (value - 1):
                raise ValueError(f"{name} {value}: a power of two is needed")
        if self.kind == "teu" and self.banks < self.pes:
            raise ValueError(f"banks {self.banks}: at least one for each of {self.pes} PEs")
        if self.kind != "teu" and self.pes != 1:
            raise ValueError(f"pes {self.pes}: kind {self.kind} has one PE in a unit")
        return self

    @property
    def all_pes(self) -> int:
        """PEs of the whole machine."""
        return self.rows * self.cols * self.pes

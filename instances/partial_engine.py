"""A small fixed engine that computes a convolution in runs: e_in input maps times e_out output maps at a time.

Every map of a group lies in a bank of its own; in a cycle a bank gives one element and takes one element.

Source: `partial_cnn_engine` section V (16 inputs, 16 outputs, 16 banks, 8-bit integers), section VI (Table II).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from instances.frozen import Frozen

Lanes = Annotated[int, Field(ge=1, le=4096)]


class PartialEngine(Frozen):
    """The engine, its banks, and the FPGA that it has to fit."""

    e_in: Lanes
    """Input maps that a run reads."""
    e_out: Lanes
    """Output maps that a run makes."""
    banks: Lanes
    """Map k of a group lies in bank k, so there is a bank for every input and every output of a run."""
    bank_bytes: PositiveInt
    """What a bank holds."""
    window_taps: PositiveInt
    """Taps that a lane multiplies in a cycle where every map has a kernel of its own (depthwise, pooling)."""
    pair_taps: PositiveInt
    """Taps that each of the ``e_in*e_out`` pairs multiplies in a cycle in a standard convolution."""
    adds: Literal["steps", "hidden"]
    """Whether partial maps are added in steps of their own, which read every bank twice an element, or beside the runs
    without taking time.
    """
    clock_hz: PositiveInt
    """Cycles in a second; for frame rates only."""
    dsp_macs: PositiveInt
    """Multiplications of a DSP in a cycle."""
    dsps: PositiveInt
    """DSPs of the FPGA."""
    brams: PositiveInt
    """Blocks of memory of the FPGA."""
    bram_bytes: PositiveInt
    """What a block of memory holds."""

    @model_validator(mode="after")
    def _lanes_have_banks(self) -> PartialEngine:
        if self.banks < max(self.e_in, self.e_out):
            raise ValueError(
                f"banks {self.banks}: a run reads {self.e_in} and writes {self.e_out} maps at once, each in a bank"
            )
        return self

    @property
    def lanes(self) -> int:
        """Maps of a depthwise run."""
        return min(self.e_in, self.e_out)

    @property
    def dsps_used(self) -> int:
        """DSPs of the engine: window taps for every lane of a depthwise run, and pair taps for every pair.

        For 16 x 16: (9*16 + 16*16)/2 = 200, the figure of Table II.
        """
        return -(-(self.window_taps * self.lanes + self.pair_taps * self.e_in * self.e_out) // self.dsp_macs)

    @property
    def brams_used(self) -> int:
        """Blocks of memory of all banks: 16 of 7 are the 112 of Table II."""
        return self.banks * -(-self.bank_bytes // self.bram_bytes)

    def sized(self, e_in: int, e_out: int) -> PartialEngine:
        """Return the same kind of engine of another size, with as many banks as it needs."""
        return PartialEngine.model_validate(
            {**self.model_dump(), "e_in": e_in, "e_out": e_out, "banks": max(e_in, e_out)}
        )

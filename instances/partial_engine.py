"""A small fixed engine that computes a convolution in runs: e_in input maps times e_out output maps at a time.

Every map of a group lies in a bank of its own; in a cycle a bank gives one element and takes one element.

Source: `partial_cnn_engine` section V (16 inputs, 16 outputs, 16 banks, 8-bit integers), section VI (Table II).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

__all__ = ["PartialEngine"]

Lanes = Annotated[int, Field(ge=1, le=4096)]


class PartialEngine(BaseModel):
    """The engine, its banks, and the FPGA that it has to fit.

    Attributes
    ----------
    e_in : int
        Input maps that a run reads.
    e_out : int
        Output maps that a run makes.
    banks : int
        Map k of a group lies in bank k, so there is a bank for every input and every output of a run.
    bank_bytes : int
        What a bank holds.
    window_taps : int
        Taps that a lane multiplies in a cycle where every map has a kernel of its own (depthwise, pooling).
    pair_taps : int
        Taps that each of the ``e_in*e_out`` pairs multiplies in a cycle in a standard convolution.
    adds : {"steps", "hidden"}
        Whether partial maps are added in steps of their own, which read every bank twice an element, or beside the
        runs without taking time.
    clock_hz : int
        Cycles in a second; for frame rates only.
    dsp_macs : int
        Multiplications of a DSP in a cycle.
    dsps : int
        DSPs of the FPGA.
    brams : int
        Blocks of memory of the FPGA.
    bram_bytes : int
        What a block of memory holds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    e_in: Lanes
    e_out: Lanes
    banks: Lanes
    bank_bytes: PositiveInt
    window_taps: PositiveInt
    pair_taps: PositiveInt
    adds: Literal["steps", "hidden"]
    clock_hz: PositiveInt
    dsp_macs: PositiveInt
    dsps: PositiveInt
    brams: PositiveInt
    bram_bytes: PositiveInt

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

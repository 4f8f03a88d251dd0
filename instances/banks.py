"""On-chip memory in banks that hold whole columns of feature maps (problem ``banks``)."""

from __future__ import annotations

from typing import Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

__all__ = ["ADDER_CYCLES", "Banks"]

#: Cycles from the last product of a pixel to the adder of biases, in the pipeline of the public MIDAP simulator.
ADDER_CYCLES = 4

Count = Field(default=0, ge=0)
#: Fields that a machine file names only if they are not at their defaults.
_BANKS_LEFT_OUT = frozenset(("alignment", "first_layer", "bus", "pool_channels", "residuals"))


class Banks(BaseModel):
    """On-chip memory in banks that hold whole columns of feature maps, and the units of a MAC array that reads them.

    Attributes
    ----------
    count : int
        Banks for feature maps.
    map_bytes : int
        What all banks for feature maps hold together.
    weight_bytes : int
        What all banks for weights hold together; weights that fit are loaded once.
    filters : int
        Channels written at a time (N_f).
    lanes : int
        Channels read at a time (N_pe).
    stage_cycles : int
        Cycles that every stage takes beside its columns.
    patch_channels : int
        A convolution of at most so many channels of the network's input is a product over patches; 0: none is.
    pool_channels : int
        A global average pool of at most so many stored channels is fused with the stage before it, if nothing else
        reads that stage's result: the stage adds up what it computes, and ends with the average; 0: none is.
    bias_bytes : int
        The bias of a channel; patches come with theirs.
    writes : {"free", "bus"}
        Whether columns on their way out only count as bytes, or take time on the DRAM bus too.
    unread : {"loaded", "left"}
        Whether the last tiles of a map are loaded though no window reads them (strides may leave some).
    alignment : {"free", "words"}
        "free": a kernel column reads ``ceil(k_h' * C_in / lanes)`` words, wherever it lies. "words": it reads the words
        of `lanes` bytes that its stored channels lie in, and one more where they lie later in their word than the
        weights (`hwmodels.banks.columns`).
    bus : {"first_come", "weights_first"}
        How requests are served: in the order in which they are made; or as the published simulator does, cycle by
        cycle, weights and streamed operands ahead of loads of maps that are still under way (`hwmodels.banks.clock`),
        where writes take no time.
    first_layer : {"patches", "plain", "either"}
        How a first convolution of at most `patch_channels` channels reads its input: as a product over patches; pixel
        by pixel, as others do; or as the plan decides.
    residuals : {"chip", "dram"}
        Whether maps may wait on chip for a sum. With "dram" none does: the operand that was made last may be read from
        the banks, the others are streamed from DRAM, all of them.

    Source: `heterogeneous_mapping_and_banks` 4.4.1.1, Table 4.1; `alignment`, `pool_channels`: the public MIDAP
    simulator.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: PositiveInt
    map_bytes: PositiveInt
    weight_bytes: PositiveInt
    filters: PositiveInt
    lanes: PositiveInt
    stage_cycles: int = Count
    patch_channels: int = Field(default=3, ge=0)
    pool_channels: int = Count
    bias_bytes: int = Field(default=1, ge=0)
    writes: Literal["free", "bus"] = "free"
    unread: Literal["loaded", "left"] = "loaded"
    alignment: Literal["free", "words"] = "free"
    bus: Literal["first_come", "weights_first"] = "first_come"
    first_layer: Literal["patches", "plain", "either"] = "patches"
    residuals: Literal["chip", "dram"] = "chip"

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        """All fields, those of `_BANKS_LEFT_OUT` only where they say something: digests of older machines stay."""
        fields = type(self).model_fields
        return {
            name: value
            for name, value in write(self).items()
            if name not in _BANKS_LEFT_OUT or getattr(self, name) != fields[name].default
        }

    @model_validator(mode="after")
    def _equal(self) -> Banks:
        if self.map_bytes < self.count:
            raise ValueError(f"map_bytes {self.map_bytes} is not a byte for each of {self.count} banks")
        if self.bus == "weights_first" and self.writes == "bus":
            raise ValueError("bus 'weights_first' needs writes 'free': who is served first is not defined for writes")
        return self

    @property
    def by_cycle(self) -> bool:
        """Whether time is that of the published simulator, cycle by cycle."""
        return self.bus == "weights_first"

    @property
    def bank_bytes(self) -> int:
        """Bytes of one bank for feature maps."""
        return self.map_bytes // self.count

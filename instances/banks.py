"""On-chip memory in banks that hold whole columns of feature maps (problem ``banks``)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, PositiveInt, model_validator

from instances.frozen import Sparse

#: Cycles from the last product of a pixel to the adder of biases, in the pipeline of the public MIDAP simulator.
ADDER_CYCLES = 4

Count = Field(default=0, ge=0)


class Banks(Sparse):
    """On-chip memory in banks that hold whole columns of feature maps, and the units of a MAC array that reads them.

    Source: `heterogeneous_mapping_and_banks` 4.4.1.1, Table 4.1; `alignment`, `pool_channels`: the public MIDAP
    simulator.
    """

    LEFT_OUT: ClassVar = frozenset(("alignment", "first_layer", "bus", "pool_channels", "residuals"))

    count: PositiveInt
    """Banks for feature maps."""
    map_bytes: PositiveInt
    """What all banks for feature maps hold together."""
    weight_bytes: PositiveInt
    """What all banks for weights hold together; weights that fit are loaded once."""
    filters: PositiveInt
    """Channels written at a time (N_f)."""
    lanes: PositiveInt
    """Channels read at a time (N_pe)."""
    stage_cycles: int = Count
    """Cycles that every stage takes beside its columns."""
    patch_channels: int = Field(default=3, ge=0)
    """A convolution of at most so many channels of the network's input is a product over patches; 0: none is."""
    pool_channels: int = Count
    """A global average pool of at most so many stored channels is fused with the stage before it, if nothing else reads
    that stage's result: the stage adds up what it computes, and ends with the average; 0: none is.
    """
    bias_bytes: int = Field(default=1, ge=0)
    """The bias of a channel; patches come with theirs."""
    writes: Literal["free", "bus"] = "free"
    """Whether columns on their way out only count as bytes, or take time on the DRAM bus too."""
    unread: Literal["loaded", "left"] = "loaded"
    """Whether the last tiles of a map are loaded though no window reads them (strides may leave some)."""
    alignment: Literal["free", "words"] = "free"
    """"free": a kernel column reads ``ceil(k_h' * C_in / lanes)`` words, wherever it lies. "words": it reads the words
    of `lanes` bytes that its stored channels lie in, and one more where they lie later in their word than the weights
    (docs/banks.md).
    """
    bus: Literal["first_come", "weights_first"] = "first_come"
    """How requests are served: in the order in which they are made; or as the published simulator does, cycle by cycle,
    weights and streamed operands ahead of loads of maps that are still under way (docs/banks.md), where writes
    take no time.
    """
    first_layer: Literal["patches", "plain", "either"] = "patches"
    """How a first convolution of at most `patch_channels` channels reads its input: as a product over patches; pixel by
    pixel, as others do; or as the plan decides.
    """
    residuals: Literal["chip", "dram"] = "chip"
    """Whether maps may wait on chip for a sum. With "dram" none does: the operand that was made last may be read from
    the banks, the others are streamed from DRAM, all of them.
    """

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

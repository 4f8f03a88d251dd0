"""Sections of a machine file: a small engine, memory banks, a mesh, and the memories off the chip with their transfers.

**Engine.** It computes a convolution in runs: e_in input maps times e_out output maps at a time. Every map of a group
lies in a bank of its own; in a cycle a bank gives one element and takes one element.

Source: `partial_cnn_engine` section V (16 inputs, 16 outputs, 16 banks, 8-bit integers), section VI (Table II).

**Banks.** On-chip memory in banks that hold whole columns of feature maps (problem ``banks``).

**Mesh.** Units in a mesh or an array, what they hold, and the buffer in front of them. Rates are bytes per cycle, so
that every time is whole cycles. Source: `vectormesh` sections II and III-B.

**Off the chip.** What moving tiles to and from each memory costs, how much it holds, and which operands may lie there.
A machine with weights in flash and feature maps in SRAM says
``"off_chip": [{"name": "sram", ...}, {"name": "flash", "writable": false, ...}]`` and
``"homes": {"IN": ["sram"], "W": ["flash"], "OUT": ["sram"]}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveInt, model_validator

from instances.frozen import Frozen, Sparse

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


#: Sums of bytes and cycles stay below this, so that all engines count in 64 bits, and in doubles, without rounding.
LARGEST = 2**53
_Exact = Field(default=0, ge=0, le=LARGEST)
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
    banks: int = _Exact
    """Banks of the input buffer of each operand in a unit, a power of two (teu)."""
    input_buffer_bytes: int = _Exact
    """Buffer of a unit for each of the two operands (teu)."""
    psum_buffer_bytes: int = _Exact
    """Buffer of a unit for partial sums (teu)."""
    local_bytes: int = _Exact
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


#: Of every operand the names of the memories where it may lie, the preferred one first.
Homes = dict[str, tuple[str, ...]]


class Transfer(Sparse):
    """The price of moving one tile between DRAM and on-chip memory.

    ``call_ticks*calls + segment_ticks*segments + burst_ticks*bursts + row_ticks*rows
    + refresh_ticks*refreshes + byte_ticks*bytes``; the counting rules are in docs/transfer.md.
    A size of 0 (`burst_bytes`, `row_bytes`, `refresh_bytes`) means that this count is not made.
    """

    LEFT_OUT: ClassVar = frozenset[str]()
    model: Literal["volume", "burst", "dma", "lpddr4", "custom"] = "custom"
    """A name for people; the prices alone decide."""
    call_ticks: int = Count
    """For each request: start-up of the DMA."""
    segment_ticks: int = Count
    """For each run of contiguous addresses."""
    burst_ticks: int = Count
    """For each burst, a window of `burst_bytes`."""
    burst_bytes: int = Count
    """A burst."""
    burst_count: Literal["aligned", "address"] = "aligned"
    """"aligned": n bytes are ``ceil(n / burst_bytes)`` bursts. "address": the windows that the run touches."""
    row_ticks: int = Count
    """For each DRAM row of a whole request, by its size, not by address (tile plans refuse it)."""
    row_bytes: int = Count
    """A DRAM row."""
    refresh_ticks: int = Count
    """For each refresh period of a whole request, by its size (tile plans refuse it)."""
    refresh_bytes: int = Count
    """What moves in a refresh period."""
    byte_ticks: int = Count
    """For each byte."""

    @property
    def by_address(self) -> bool:
        """Whether bursts are counted by the windows that runs of addresses touch."""
        return self.burst_count == "address" and self.burst_bytes > 0

    @property
    def window_bytes(self) -> int:
        """What addresses matter modulo, a multiple of all windows that are counted by address; 1 if none are."""
        return self.burst_bytes if self.by_address else 1

    @model_validator(mode="after")
    def _sizes(self) -> Transfer:
        for price, size in (("burst", "burst_bytes"), ("row", "row_bytes"), ("refresh", "refresh_bytes")):
            if getattr(self, f"{price}_ticks") and not getattr(self, size):
                raise ValueError(f"{price}_ticks is set, so {size} must be positive")
        return self


class OffChip(Frozen):
    """One memory off the chip."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", max_length=40)
    """A letter, then letters, digits, ``_`` or ``-``."""
    transfer: Transfer
    """Prices of moving tiles between it and the chip; burst and row sizes are its own."""
    bytes: PositiveInt | None = None
    """What it holds: weights, and feature maps while they are needed; not given: as much as need be."""
    byte_fj: int = Count
    """Femtojoules for a byte that moves."""
    writable: bool = True
    """Whether results may lie there; flash is not writable."""


def home_faults(memories: Sequence[OffChip], homes: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield what is wrong with the memories and the homes that name them."""
    names = [memory.name for memory in memories]
    if len(set(names)) < len(names):
        yield f"off_chip: every memory needs a name of its own, got {', '.join(names)}"
    if unknown := sorted(set(homes) - {"IN", "W", "OUT"}):
        yield f"homes: there is no operand {', '.join(unknown)}, expected IN, W, OUT"
    if not memories and homes:
        yield "homes need off_chip, the memories that they name"
    for operand in ("IN", "W", "OUT") if memories else ():
        mine = homes.get(operand, ())
        if not mine or len(set(mine)) < len(mine):
            yield f"homes.{operand}: name one or more of {', '.join(names)}, each once, got {list(mine)}"
        for name in mine:
            if name not in names:
                yield f"homes.{operand}: there is no memory {name} off the chip, expected {', '.join(names)}"
            elif operand == "OUT" and not next(m for m in memories if m.name == name).writable:
                yield f"homes.OUT: {name} is not writable, so results cannot lie there"

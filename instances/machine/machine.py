"""Machines: every number a hardware model needs, validated, each with its source.

Times are integers in ticks of `tick_ps` picoseconds, sizes in bytes, energies in femtojoules, so that every
price is an integer.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import (
    AfterValidator,
    Field,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from instances.errors import InputError
from instances.frozen import Frozen, Sparse
from instances.machine.boards import Platform, Processors
from instances.machine.levels import OPERANDS, Levels
from instances.machine.sections import Banks, Homes, Mesh, OffChip, PartialEngine, Transfer, home_faults
from instances.problems import PROBLEMS, either, meant, needing, nested, sections

__all__ = ["Banks", "Broadcast", "Compute", "Machine", "OffChip", "Transfer"]

Count = Field(default=0, ge=0)
_ORDER = "Order of the axes in memory, outermost first "
Layout = Annotated[Literal["CHW", "HWC"], Field(description=f"{_ORDER}(C: channels; H: rows; W: columns).")]
WeightLayout = Annotated[
    Literal["OIHW", "OHWI"],
    Field(description=f"{_ORDER}(O, I: output, input channels; H, W: rows, columns of the kernel)."),
]
Buffer = Annotated[
    PositiveInt | None, Field(description="A memory for this operand, in every core; instead of `ocm_bytes`.")
]
#: Stands where a machine file names no transfer: only machines with `off_chip` may.
_NONE = Transfer()


class Compute(Sparse):
    """How long a tile computes."""

    LEFT_OUT: ClassVar = frozenset(("pixels",))
    model: Literal["none", "tile", "array"] = "none"
    """"none": no time. "tile": ``T_N*T_M*ceil(T_R*T_C*K*K / macs_per_cycle)`` cycles of the nominal tile (TSO Eq. 7).
    "array": `rows` output channels x `cols` input channels a cycle, rounded up on the true tile.
    """
    cycle_ticks: int = Count
    """Length of a compute cycle."""
    macs_per_cycle: PositiveInt = 1
    """With model "tile": multiply-accumulates of a core in a cycle."""
    rows: PositiveInt = 1
    """With model "array": output channels in a cycle."""
    cols: PositiveInt = 1
    """With model "array": input channels in a cycle. Layers with one channel per group spread their groups over them.
    """
    pixels: PositiveInt = 1
    """With model "array": pixels that are computed side by side; `cycle_ticks` is the share of one of them."""


Level = Annotated[
    Literal["none", "tle", "chip"],
    Field(
        description='"none": every core loads its own copy. "tle": one load serves the cores of a cluster. "chip": one'
        ' load serves the cores of all clusters; it takes all their buses (`dram` = "per_tle"), and the DRAM is read'
        " once."
    ),
]


class Broadcast(Frozen):
    """Which operands are loaded once for several cores that need the same tile at the same step."""

    input: Level = "none"
    weights: Level = "none"

    @property
    def levels(self) -> dict[str, str]:
        """The level of each operand, IN and W."""
        return {"IN": self.input, "W": self.weights}

    @property
    def none(self) -> bool:
        """Whether every core loads all that it needs."""
        return self.input == self.weights == "none"


def _known(name: str) -> str:
    """The name of a problem that a machine may be for."""
    if name not in meant():
        quoted = tuple(repr(one) for one in meant())
        raise PydanticCustomError("literal_error", "Input should be {one}", {"one": either(quoted, "or")})
    return name


MeantFor = Annotated[str, AfterValidator(_known), WithJsonSchema({"enum": [*meant()], "type": "string"})]


class Machine(Sparse):
    """One machine: memories, cores, data types, layouts, transfer, compute and energy."""

    LEFT_OUT: ClassVar = frozenset((
        "banks", "ocm_banks", "processors", "engine", "mesh", "line", "snake", "broadcast", "layer_ticks", "off_chip",
        "homes", "channels", "platform", "requantise", "family", "levels", "near", "channel_block",
    ))  # fmt: skip

    name: str = Field(min_length=1)
    """What the machine is called in tables and plans."""
    description: str = ""
    """One line for ``certile list machines``."""
    family: str = ""
    """Machines that belong together in ``certile machines``: Ethos-U, PULP, papers, ..."""
    problem: MeantFor = "tiling"
    """The problem that ``certile solve`` decides if ``--problem`` says nothing."""
    tick_ps: PositiveInt
    """Length of a tick, the unit of all ``_ticks``. Choose it so that all prices are whole."""
    in_bytes: PositiveInt
    """An element of the input."""
    w_bytes: PositiveInt
    """An element of the weights."""
    out_bytes: PositiveInt
    """An element of the result."""
    psum_bytes: PositiveInt
    """An element of a partial sum."""
    bias_bytes: int = Count
    """The bias of an output channel; 0: biases are not transferred."""
    in_layout: Layout = "CHW"
    w_layout: WeightLayout = "OIHW"
    out_layout: Layout = "CHW"
    channel_block: int = Field(default=1, ge=1, le=4096)
    """Channels of maps are stored, moved and computed in whole blocks of so many, and weights over them: those that
    fill the last block are zeros. docs/machines.md says which maps are not.
    """
    ocm_bytes: PositiveInt | None = None
    """One on-chip memory shared by all operands; or give the three buffers, or one of the sections `banks`,
    `processors`, `engine`, `mesh`, `platform` and `levels`.
    """
    in_buffer_bytes: Buffer = None
    w_buffer_bytes: Buffer = None
    out_buffer_bytes: Buffer = None
    banks: Banks | None = None
    """On-chip memory in banks that hold columns of feature maps."""
    processors: Processors | None = None
    """The processors of a board."""
    engine: PartialEngine | None = None
    """A small fixed engine that computes a layer in runs."""
    mesh: Mesh | None = None
    """Tile units in a mesh, or an array of PEs."""
    platform: Platform | None = None
    """Stages of a pipeline, element types and frequencies of a board."""
    levels: Levels | None = None
    """Memories in levels, from far to near."""
    near: Levels | None = None
    """Memories between the shared memory and the PEs, for networks (problems joint and fusion), as in `levels`: the
    first one is the shared memory, with the prices of what moves between it and those behind. Machines with `levels`
    have it by themselves.
    """
    ocm_banks: int = Count
    """Equal banks that the shared memory is divided in, where maps may stay on chip (joint, fusion); 0: none, maps take
    bytes there.
    """
    reserved_bytes: int = Count
    """Taken from the shared memory (or from every buffer) before any tile."""
    im2col_rows: int = Count
    """Kernel scratch: so many im2col rows of ``K_h*K_w*C_in`` input elements lie in the shared memory beside the tiles.
    """
    im2col_channels: Literal["layer", "tile"] = "layer"
    """C_in of `im2col_rows`: the input channels per group of the layer, or of the tile."""
    buffering: Literal["single", "double", "choose"] = "single"
    """"double": every operand takes its memory twice, and its transfers overlap with compute. "choose": the plan says
    for each operand which of the two.
    """
    sliding: bool = False
    """Whether input tiles may slide: along the innermost loop outside its Hold that IN depends on, only the part that
    the previous tile did not hold is fetched (a circular buffer); docs/nest.md.
    """
    line: bool = False
    """Whether a nest may hold IN in lines: it then slides along rows and columns, with K-1 rows and K pixels on chip;
    docs/nest.md. Needs `sliding` and one core.
    """
    snake: bool = False
    """Whether loops run to and fro: each pass begins where the pass before it ended, and tiles stay at the turn;
    docs/nest.md. Needs one core.
    """
    overlap: Literal["auto", "serial", "double_buffered", "transfer_only"] = "auto"
    """What `time` counts. "auto": serial with single buffering, else double_buffered."""
    tles: PositiveInt = 1
    """Clusters of cores (TSO section III)."""
    tlts: PositiveInt = 1
    """Cores in a cluster."""
    dram: Literal["shared", "per_tle"] = "shared"
    """"shared": transfers of all clusters add up. "per_tle": those of different clusters run side by side."""
    broadcast: Broadcast = Broadcast()
    """Which operands one load brings to several cores. Reading "literal" ignores it."""
    layer_ticks: int = Count
    """Time that every layer takes beside transfers and compute."""
    reading: Literal["consistent", "literal"] = "consistent"
    """"consistent": a plan costs what the nest does. "literal": what the source paper's printed equations say."""
    edge_tiles: Literal["true", "uniform"] = "true"
    """Whether a transfer at the border counts its true, clipped size, or the nominal size as the papers do."""
    psum_first_read: bool = False
    """Whether the first accumulation also reads its (zero or bias) output tile, as Listing 1.1 of the DMA paper does.
    """
    requantise: Literal["float", "double", "single", "even"] = "float"
    """How C makes results of a quantised model's sums: by a float, or by a multiplier and a shift (docs/emit.md)."""
    off_chip: tuple[OffChip, ...] = ()
    """Several memories off the chip; empty: one without a name, as large as need be, with `transfer` and `byte_fj`."""
    homes: Homes = Field(default_factory=dict)
    """With `off_chip`: the memories where IN, W (with the bias) and OUT (with its partial sums) may lie. Of several
    names the plan chooses one for each layer.
    """
    channels: Literal["one", "each"] = "one"
    """With `off_chip`, in the time of networks with prefetch: "one": all memories share a DMA queue, which moves one
    transfer after the other. "each": every memory has a queue of its own, and these run at the same time.
    """
    transfer: Transfer = Field(default=_NONE, validate_default=True)
    """Prices of moving a tile. Required, unless `off_chip` or `levels` has prices of its own."""
    compute: Compute = Compute()
    """How long a tile computes."""
    byte_fj: int = Count
    """Energy of a byte that crosses the chip's border."""
    mac_fj: int = Count
    """Energy of a multiply-accumulate."""
    sources: dict[str, str] = Field(default_factory=dict)
    """For every number in the file: where it comes from, or "assumed: why"."""

    @field_validator("transfer")
    @classmethod
    def _priced(cls, value: Transfer, info: ValidationInfo) -> Transfer:
        if value is _NONE and not info.data.get("off_chip") and not info.data.get("levels", True):  # refused above
            raise PydanticCustomError("missing", "Field required")
        if value is not _NONE and info.data.get("levels"):
            raise ValueError("give either transfer or levels, whose memories have prices of their own")
        if value is not _NONE and info.data.get("off_chip"):
            raise ValueError("give either transfer or off_chip, whose memories have prices of their own")
        return value

    @model_validator(mode="after")
    def _off_chip_memories(self) -> Machine:
        for fault in home_faults(self.off_chip, self.homes):
            raise ValueError(fault)
        if self.off_chip and not PROBLEMS[self.problem].nests:
            raise ValueError(f"off_chip is for problems {either(nested())}, not {self.problem}")
        if self.channels == "each" and not self.off_chip:
            raise ValueError("channels 'each' needs off_chip: memories that have a queue each")
        if self.off_chip and self.byte_fj:
            raise ValueError("give either byte_fj or off_chip, whose memories have a byte_fj of their own")
        if self.off_chip and self.reading == "literal":
            raise ValueError("off_chip needs reading 'consistent': the papers' equations know one memory")
        return self

    @model_validator(mode="after")
    def _memories(self) -> Machine:
        buffers = [self.in_buffer_bytes, self.w_buffer_bytes, self.out_buffer_bytes]
        given = [b is not None for b in buffers]
        if self.banks is not None and (self.ocm_bytes is not None or any(given)):
            raise ValueError("give either banks or other on-chip memories, not both")
        given_sections = [name for name in sections() if getattr(self, name) is not None]
        mine = PROBLEMS[self.problem].section
        if mine and mine not in given_sections:
            raise ValueError(f"problem {self.problem!r} needs section {mine}")
        for name in given_sections:
            if name != mine:
                those = [repr(one) for one in needing(name) if PROBLEMS[one].machines]
                raise ValueError(f"section {name} needs problem {either(tuple(those), 'or')}")
        if self.banks is not None and self.banks.by_cycle and not self.compute.cycle_ticks:
            said = "banks.bus 'weights_first' counts time by cycles"
            raise ValueError(f"{said}, and compute.cycle_ticks is 0: give 1 or more")
        if self.mesh is not None and (self.ocm_bytes is not None or any(given)):
            raise ValueError("give either mesh or other on-chip memories, not both")
        if not PROBLEMS[self.problem].nests and (self.layer_ticks or not self.broadcast.none):
            raise ValueError(f"broadcast and layer_ticks are for problems {either(nested())}, not {self.problem}")
        if mine and self.banks is None:
            return self
        if self.banks is None and self.ocm_bytes is None and not all(given):
            raise ValueError("give ocm_bytes, or all of in_buffer_bytes, w_buffer_bytes and out_buffer_bytes")
        if self.ocm_bytes is not None and any(given):
            raise ValueError("give either ocm_bytes or the three buffer sizes, not both")
        for name, size in self.memories.items():
            if size <= self.reserved_bytes:
                raise ValueError(f"reserved_bytes {self.reserved_bytes} leaves nothing of memory {name} ({size} bytes)")
        if self.timing == "double_buffered" and self.buffering == "single":
            raise ValueError("overlap 'double_buffered' needs buffering 'double' or 'choose'")
        if self.sliding and (self.edge_tiles == "uniform" or self.reading == "literal"):
            raise ValueError("sliding needs edge_tiles 'true' and reading 'consistent': the papers count whole tiles")
        self._abilities()
        if self.near is not None and (self.ocm_bytes is None or self.near.queues != "each"):
            raise ValueError("near needs ocm_bytes, its first memory, and queues 'each': transfers overlap in networks")
        if self.near is not None and self.near.twice:
            raise ValueError(f"near: {self.near.twice} may lie in several memories; networks take one for each operand")
        if self.ocm_banks and (self.ocm_bytes is None or self.ocm_banks > self.ocm_bytes):
            raise ValueError(f"ocm_banks {self.ocm_banks} needs a shared memory (ocm_bytes) of a byte or more for each")
        if self.im2col_rows and self.ocm_bytes is None:
            raise ValueError("im2col_rows needs a shared memory (ocm_bytes)")
        return self

    def _abilities(self) -> None:
        """Refuse `line` and `snake` beside settings under which they have no meaning."""
        if self.line and not self.sliding:
            raise ValueError("line needs sliding: lines hold what a window that slides reads again")
        if self.snake and (self.edge_tiles == "uniform" or self.reading == "literal"):
            raise ValueError("snake needs edge_tiles 'true' and reading 'consistent': the papers fetch every tile")
        if (self.line or self.snake) and self.tles * self.tlts > 1:
            raise ValueError(f"line and snake are defined for one core, not {self.tles} x {self.tlts}")

    @property
    def silent(self) -> frozenset[str]:
        """The fields that are not written; the transfer neither, where memories have prices of their own."""
        return super().silent | ({"transfer"} if self.off_chip or self.levels else set())

    @property
    def in_network(self) -> Machine:
        """The machine as networks are planned for it: what lies behind the second memory of `levels` is `near`.

        Raises InputError unless that memory may hold everything, and each operand has one memory at the most behind it.
        """
        if self.levels is None:
            return self
        first, shared, *others = self.levels.memories
        if shared.operands != OPERANDS or not others:
            what = f"{shared.name} holds {', '.join(shared.operands)} alone" if others else "there is none behind it"
            raise InputError(
                f"machine {self.name}: networks need {shared.name} to hold all operands, before the nearest: {what}"
            )
        if self.levels.queues != "each":
            said = "transfers overlap in networks, with a DMA for every memory: levels.queues 'each' is accepted"
            raise InputError(f"machine {self.name}: levels.queues is {self.levels.queues!r}; {said}")
        seen = shared.model_copy(update={"bytes": None, "reserved_bytes": 0, "buffers": 1, "passed": ()})
        fields = dict(self) | {
            "problem": nested("network")[-1], "levels": None, "ocm_bytes": shared.bytes,
            "reserved_bytes": shared.reserved_bytes,
            "transfer": Transfer(model="dma", call_ticks=first.call_ticks, byte_ticks=first.byte_ticks),
            "byte_fj": first.byte_fj, "near": Levels(queues=self.levels.queues, memories=(seen, *others)),
        }  # fmt: skip
        try:
            return Machine.model_validate(fields)
        except ValidationError as error:
            said = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise InputError(f"machine {self.name}: {said}") from None

    @property
    def bank_count(self) -> int:
        """Banks of the shared memory; where it has none (`ocm_banks` is 0) every byte is one."""
        return self.ocm_banks or self.ocm_bytes or 0

    @property
    def bank_bytes(self) -> int:
        """Bytes of one of `bank_count`."""
        return (self.ocm_bytes or 0) // self.ocm_banks if self.ocm_banks else 1

    @property
    def unreserved(self) -> Machine:
        """The machine without what is reserved of its shared memory, whole banks of it.

        Raises InputError if no bank is left.
        """
        if not self.reserved_bytes:
            return self
        count, each = self.bank_count - -(-self.reserved_bytes // self.bank_bytes), self.bank_bytes
        if count < 1:
            raise InputError(
                f"machine {self.name}: reserved_bytes {self.reserved_bytes:,} leaves none of {self.bank_count:,} banks "
                f"of {each:,} bytes"
            )
        less = {"ocm_bytes": count * each, "ocm_banks": count if self.ocm_banks else 0, "reserved_bytes": 0}
        return self.model_copy(update=less)

    @property
    def timing(self) -> Literal["serial", "double_buffered", "transfer_only"]:
        """`overlap` with "auto" resolved."""
        if self.overlap == "auto":
            return "serial" if self.buffering == "single" else "double_buffered"
        return self.overlap

    def buffers(self, chosen: int | None) -> int:
        """Return how many buffers an operand takes whose Hold says `chosen`."""
        return chosen or (2 if self.buffering == "double" else 1)

    @property
    def memories(self) -> dict[str, int]:
        """Bytes of each on-chip memory: ``{"ocm": ..}``, ``{"in": .., "w": .., "out": ..}`` or ``{"banks": ..}``."""
        if self.banks is not None:
            return {"banks": self.banks.map_bytes}
        if self.levels is not None:
            return {one.name: one.bytes for one in self.levels.memories if one.bytes is not None}
        if any(section is not None for section in (self.processors, self.engine, self.mesh, self.platform)):
            return {}
        if self.ocm_bytes is not None:
            return {"ocm": self.ocm_bytes}
        return {"in": self.in_buffer_bytes or 0, "w": self.w_buffer_bytes or 0, "out": self.out_buffer_bytes or 0}

    def memory_of(self, operand: str) -> str:
        """Return the memory that holds `operand` ("IN", "W" or "OUT")."""
        return "ocm" if self.ocm_bytes is not None else operand.lower()

    # ---- memories off the chip -----------------------------------------------------------------------------------

    def home(self, operand: str) -> OffChip | None:
        """The memory off the chip where `operand` ("IN", "W" or "OUT") lies; None on machines without `off_chip`.

        Raises InputError if there are several: `hwmodels.nest.homes.machine_with_homes` chooses.
        """
        if not self.off_chip:
            return None
        names = self.homes[operand]
        if len(names) > 1:
            raise InputError(f"machine {self.name}: {operand} may lie in {' or '.join(names)}, the plan must say where")
        return next(memory for memory in self.off_chip if memory.name == names[0])

    def transfer_of(self, operand: str) -> Transfer:
        """The prices of moving `operand`; raises InputError as `home`."""
        memory = self.home(operand)
        return self.transfer if memory is None else memory.transfer

    def byte_fj_of(self, operand: str) -> int:
        """Femtojoules for a byte of `operand`; raises InputError as `home`."""
        memory = self.home(operand)
        return self.byte_fj if memory is None else memory.byte_fj

    def memory_number(self, operand: str) -> int:
        """Return which of `off_chip` the memory of `operand` is, 0 if there are none; raises InputError as `home`."""
        memory = self.home(operand)
        return 0 if memory is None else self.off_chip.index(memory)

    def channel_of(self, operand: str) -> int:
        """Return the number of the DMA queue that moves `operand`; raises InputError as `home`."""
        return self.memory_number(operand) if self.channels == "each" else 0

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """The prices of all memories off the chip."""
        return tuple(memory.transfer for memory in self.off_chip) or (self.transfer,)

    @property
    def by_address(self) -> bool:
        """Whether any of them counts by address."""
        return any(transfer.by_address for transfer in self.transfers)

    @property
    def open(self) -> bool:
        """Whether plans choose where some operand lies."""
        return any(len(names) > 1 for names in self.homes.values())

    @property
    def one_energy(self) -> bool:
        """Whether a byte takes the same energy wherever the operands lie, so that energy rises with bytes alone."""
        return len({memory.byte_fj for memory in self.off_chip}) < 2

"""Schedules: what a machine executes, as plain data that no solver touches.

A layer's schedule is a `Nest`, an ordered list of items, outermost first:

* `Spatial(dim, step, over)`: the dimension is cut in pieces of `step` that run in parallel over
  the units of a level of the machine (``"tle"`` or ``"tlt"``);
* `Loop(dim, step)`: the dimension's current range is cut in pieces of `step`, run one after the
  other; the last piece may be smaller;
* `Loop(dim, step, cuts)`: the same, but cut at these places of the core's range; `step` is the largest piece;
* `Hold(operand, buffers)`: from here inwards the operand's footprint lies on chip, in one buffer or in two (one in use
  while the other is filled or emptied); `Hold("IN", buffers, line=True)`: in lines, which slide along rows and columns.

A dimension may be looped several times with shrinking steps, so that operands are held at different depths.

A network's schedule on a machine with memory banks is a list of `StageRun`, one for each stage in the order they run;
on a machine with a shared memory a list of `LayerRun`, a nest for every layer with what lies on chip beside its tiles,
or of these and `FusedRun`, groups of layers that run strip by strip: a `NetworkRun`, with the order of its transfers.
A layer's schedule on a mesh is a `MeshLayout`.
A placement of buffers is a `Placement`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import (
    AfterValidator,
    Discriminator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PositiveInt,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
)
from pydantic_core import CoreSchema, core_schema

from hwmodels.levels.schedule import NearStep
from hwmodels.outcome import Natural
from instances.errors import InputError
from instances.network.workload import DIMS, RELEVANT, Layer

LEVELS = ("tle", "tlt")
#: What units of a mesh may share: the operands that go from unit to unit through FIFOs.
SHARES: dict[str, tuple[str, ...]] = {"both": ("IN", "W"), "IN": ("IN",), "W": ("W",), "none": ()}
#: How a loop cuts: in equal steps, or at these places of the core's range.
Step = int | tuple[int, ...]


@dataclass(frozen=True)
class Spatial:
    """Cut `dim` in pieces of `step`, one per unit of level `over`."""

    dim: str
    step: int
    over: str


@dataclass(frozen=True)
class Loop:
    """Cut the current range of `dim` in pieces of `step`, one after the other; or at the places `cuts`."""

    dim: str
    step: int
    cuts: tuple[int, ...] = ()
    """If not empty: places of the core's range of `dim` (counted from its begin), ascending, where pieces end and
    begin; `step` is then the largest piece. On a core with a smaller range the places beyond it cut nothing.
    """

    @property
    def how(self) -> Step:
        """The places, or the step."""
        return self.cuts or self.step

    def pieces(self, lo: int, hi: int, begin: int) -> list[tuple[int, int]]:
        """Cut the range [lo, hi) of a core whose range begins at `begin`."""
        if not self.cuts:
            return [(x, min(x + self.step, hi)) for x in range(lo, hi, self.step)]
        marks = [lo, *(x for c in self.cuts if lo < (x := begin + c) < hi), hi]
        return list(pairwise(marks))


@dataclass(frozen=True)
class Hold:
    """Keep the footprint of `operand` ("IN", "W" or "OUT") on chip from here inwards.

    `buffers` is 1 or 2; None leaves it to the machine (`Machine.buffers`). `line` (of IN only): beside the tile lie the
    rows that the next pass over the columns reads again (docs/nest.md).
    """

    operand: str
    buffers: int | None = None
    line: bool = False


Item = Spatial | Loop | Hold


@dataclass(frozen=True)
class Nest:
    """The schedule of one layer: items outermost first, every operand held exactly once."""

    items: tuple[Item, ...]
    homes: tuple[tuple[str, str], ...] = ()
    """On machines with several memories off the chip: operand and the name of the memory where it lies there."""

    def ordered(self) -> Nest:
        """The same nest with the loops between two Holds in a fixed order of dimensions."""

        def place(item: Item) -> int:
            return DIMS.index(item.dim) if isinstance(item, Loop) else 0

        runs = [(loops, list(run)) for loops, run in groupby(self.items, lambda item: isinstance(item, Loop))]
        items = tuple(item for loops, run in runs for item in (sorted(run, key=place) if loops else run))
        return Nest(items, self.homes)

    def at(self, homes: Mapping[str, str]) -> Nest:
        """The same nest with its operands in these memories off the chip."""
        return Nest(self.items, tuple(homes.items()))

    def to_json(self) -> list[dict[str, object]]:
        """Return the nest as a JSON list, outermost first."""
        rows: list[dict[str, object]] = []
        for item in self.items:
            if isinstance(item, Spatial):
                rows.append({"spatial": item.dim, "step": item.step, "over": item.over})
            elif isinstance(item, Loop):
                rows.append({"loop": item.dim, "step": item.step, **({"cuts": list(item.cuts)} if item.cuts else {})})
            else:
                stated = {"buffers": item.buffers, "line": item.line}
                rows.append({"hold": item.operand, **{key: value for key, value in stated.items() if value}})
        return rows

    @classmethod
    def from_json(cls, rows: object, where: str = "nest") -> Nest:
        """Read what `to_json` wrote; raises InputError naming the item at fault."""
        if not isinstance(rows, list):
            raise InputError(f"{where}: expected a list of items, got {type(rows).__name__}")
        return cls(tuple(_item(row, f"{where}[{i}]") for i, row in enumerate(rows)))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read and write files as `{"nest": [...], "homes": {...}}`; homes may be left out."""
        written = core_schema.plain_serializer_function_ser_schema(cls._to_file)
        return core_schema.no_info_plain_validator_function(cls._from_file, serialization=written)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return _nest_schema()

    def _to_file(self) -> dict[str, object]:
        return {"nest": self.to_json(), **({"homes": dict(self.homes)} if self.homes else {})}

    @classmethod
    def _from_file(cls, data: object) -> Nest:
        if isinstance(data, Nest):
            return data
        if not isinstance(data, Mapping) or "nest" not in data or data.keys() - {"nest", "homes"}:
            keys = ", ".join(map(str, data)) if isinstance(data, Mapping) else repr(data)[:40]
            said = "a schedule is an object with nest, and homes where the machine has several memories"
            raise InputError(f"{said}, got {keys or 'nothing'}")
        homes = data.get("homes", {})
        if not isinstance(homes, Mapping) or not all(
            operand in RELEVANT and isinstance(name, str) for operand, name in homes.items()
        ):
            raise InputError(f"homes: expected an operand ({_names(RELEVANT)}) and a memory each, got {homes!r}")
        return cls.from_json(data["nest"]).at({str(operand): str(name) for operand, name in homes.items()})

    def steps(self, dim: str) -> tuple[int, ...]:
        """Return the steps of all cuts of `dim`, outermost first."""
        return tuple(i.step for i in self.items if not isinstance(i, Hold) and i.dim == dim)

    def loops(self) -> dict[str, tuple[Step, ...]]:
        """Return how the loops over every dimension cut it, outermost first, without the spatial cuts."""
        return {d: tuple(i.how for i in self.items if isinstance(i, Loop) and i.dim == d) for d in DIMS}

    @property
    def even(self) -> bool:
        """Whether all loops cut in equal steps."""
        return not any(isinstance(i, Loop) and i.cuts for i in self.items)

    @property
    def line(self) -> bool:
        """Whether IN is held in lines."""
        return any(isinstance(i, Hold) and i.line for i in self.items)

    def tile(self, layer: Layer) -> dict[str, int]:
        """Return the innermost step of every dimension (its whole extent where it is not cut)."""
        return {d: (self.steps(d) or (layer.extent(d),))[-1] for d in DIMS}

    def validate_for(self, layer: Layer) -> None:
        """Raise `InputError` unless the nest is well formed for `layer`."""
        held = [i.operand for i in self.items if isinstance(i, Hold)]
        if sorted(held) != sorted(layer.operands):
            raise InputError(f"nest: holds {held}, layer {layer.name} needs each of {list(layer.operands)} once")
        size = {d: layer.extent(d) for d in DIMS}
        for i, item in enumerate(self.items):
            if isinstance(item, Hold):
                if item.line and item.operand != "IN":
                    raise InputError(f"nest[{i}]: only IN is held in lines, not {item.operand}")
                if item.line and layer.broadcast:
                    raise InputError(f"nest[{i}]: inputs of {layer.name} are broadcast; they are not held in lines")
                continue
            if not 1 <= item.step <= size[item.dim]:
                raise InputError(f"nest[{i}]: step {item.step} of {item.dim} must be 1..{size[item.dim]}")
            size[item.dim] = item.step
        for dim in {i.dim for i in self.items if isinstance(i, Loop) and i.cuts}:
            self._validate_cuts(layer, dim)

    def _validate_cuts(self, layer: Layer, dim: str) -> None:
        """Raise `InputError` unless the places where loops cut `dim` lie in its range and the steps are as stated."""
        share = min([layer.extent(dim), *(i.step for i in self.items if isinstance(i, Spatial) and i.dim == dim)])
        pieces = [(0, share)]
        for i, item in enumerate(self.items):
            if not isinstance(item, Loop) or item.dim != dim:
                continue
            where, ascends = f"nest[{i}]: cuts of {dim}", all(a < b for a, b in pairwise(item.cuts))
            if item.cuts and not (item.cuts[0] > 0 and item.cuts[-1] < share and ascends):
                raise InputError(f"{where} must ascend from 1 to at most {share - 1}, got {_names(item.cuts)}")
            pieces = [piece for lo, hi in pieces for piece in item.pieces(lo, hi, 0)]
            longest = max(hi - lo for lo, hi in pieces)
            if item.cuts and item.step != longest:
                raise InputError(f"{where}: the largest piece has {longest}, step says {item.step}")


def _nest_schema() -> dict[str, Any]:
    """The JSON schema of a nest in a file."""
    dim, operand, step = {"enum": list(DIMS)}, {"enum": list(RELEVANT)}, {"type": "integer", "minimum": 1}
    cuts = {"type": "array", "items": step, "description": "Where pieces of free sizes end; left out for equal steps."}

    def item(about: str, fields: dict[str, Any], *optional: str) -> dict[str, Any]:
        needed = [name for name in fields if name not in optional]
        return {"type": "object", "description": about, "properties": fields, "required": needed,
                "additionalProperties": False}  # fmt: skip

    items = [
        item("Pieces side by side over the units of a level.",
             {"spatial": dim, "step": step, "over": {"enum": list(LEVELS)}}),
        item("Pieces one after the other; step is the largest.", {"loop": dim, "step": step, "cuts": cuts}, "cuts"),
        item("The tile of an operand lies on chip from here inwards: in one buffer or two, IN in lines or not.",
             {"hold": operand, "buffers": {"enum": [1, 2]}, "line": {"type": "boolean"}}, "buffers", "line"),
    ]  # fmt: skip
    homes = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "propertyNames": operand,
        "description": "Operand and the memory off the chip where it lies, on machines that have several.",
    }
    return item(
        "The nest of a layer: items, outermost first (docs/nest.md).",
        {"nest": {"type": "array", "items": {"anyOf": items}}, "homes": homes}, "homes",
    )  # fmt: skip


def _item(row: object, where: str) -> Item:
    if not isinstance(row, Mapping):
        raise InputError(f"{where}: expected an object, got {type(row).__name__}")
    keys = set(row)
    if "hold" in keys and keys <= {"hold", "buffers", "line"}:
        if row["hold"] not in RELEVANT:
            raise InputError(f"{where}: unknown operand {row['hold']!r}, expected one of {_names(RELEVANT)}")
        buffers = row.get("buffers")
        if buffers not in (None, 1, 2) or isinstance(buffers, bool | float):
            raise InputError(f"{where}: buffers must be 1 or 2, got {buffers!r}")
        if not isinstance(line := row.get("line", False), bool):
            raise InputError(f"{where}: line must be true or false, got {line!r}")
        return Hold(str(row["hold"]), buffers, line)
    kind = "spatial" if "spatial" in keys else "loop"
    if keys - {"cuts"} != ({"spatial", "step", "over"} if kind == "spatial" else {"loop", "step"}) or (
        kind == "spatial" and "cuts" in keys
    ):
        raise InputError(
            f"{where}: keys {sorted(keys)} are none of hold, buffers, line | loop, step, cuts | spatial, step, over"
        )
    dim, step = row[kind], row["step"]
    if dim not in DIMS:
        raise InputError(f"{where}: unknown dimension {dim!r}, expected one of {_names(DIMS)}")
    if isinstance(step, bool) or not isinstance(step, int) or step < 1:
        raise InputError(f"{where}: step must be a positive integer, got {step!r}")
    if kind == "loop":
        return Loop(str(dim), step, _cuts(row.get("cuts", []), where))
    if row["over"] not in LEVELS:
        raise InputError(f"{where}: unknown level {row['over']!r}, expected one of {_names(LEVELS)}")
    return Spatial(str(dim), step, str(row["over"]))


def _cuts(value: object, where: str) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or any(isinstance(x, bool) or not isinstance(x, int) for x in value):
        raise InputError(f"{where}: cuts must be a list of integers, got {value!r}")
    return tuple(value)


def _names(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


@dataclass(frozen=True)
class Tile:
    """Columns [first, end) of a map in a bank, whatever the direction; `loaded` if DRAM brings them."""

    bank: Natural
    first: Natural
    end: PositiveInt
    loaded: bool = False


#: ``("load", tiles)`` and ``("process", tiles)``: the next tiles into banks, the first ones on chip.
Action = tuple[Literal["load", "process"], PositiveInt]


@dataclass(frozen=True)
class StageRun:
    """What a plan says of one stage."""

    stage: str
    """Its name: that of its operator."""
    source: str
    """The operand that is read from the banks."""
    backwards: bool
    """Whether its columns are read (and made) from the last one on."""
    keep: Natural
    """Tiles of the result that stay: the last ones made if `last` (the next stage begins there), else the first ones.
    """
    last: bool
    retain: Natural
    """Tiles of the source that stay for other stages, the first ones read."""
    actions: tuple[Action, ...]
    tiles: tuple[Tile, ...] = ()
    results: tuple[Tile, ...] = ()
    """`tiles`, `results`: all tiles that are read, in order, those that are there first, and those of the result that
    stay, in the order in which they are read next; empty if banks have no numbers.
    """


@dataclass(frozen=True)
class LayerRun:
    """What a plan says of one layer of a network in a shared memory."""

    nest: Nest
    residents: Mapping[Natural, tuple[PositiveInt, tuple[Natural, ...]]] = field(hash=False)
    """The stores on chip while it runs: their first rows, and the banks that hold them; none where there are none."""
    unwritten: Natural
    """How many first rows of its result never go to DRAM (of the store's rows)."""
    banks: tuple[Natural, ...]
    """The banks for its tiles; none where the memory has none."""
    in_place: Mapping[Natural, Natural] = field(default_factory=dict, hash=False)
    """Its result -> the map whose place it takes, pixel by pixel, if it does (stores, by number)."""

    @property
    def rows(self) -> dict[int, int]:
        """Rows on chip by store."""
        return {store: rows for store, (rows, _) in self.residents.items()}


@dataclass(frozen=True)
class Pace:
    """How a map advances along an axis (rows or columns) while a group of layers runs strip by strip.

    Let ``front(k) = step * k + ahead`` and ``tail(k) = step * k + behind``, both within 0..end. Where the halo is
    retained, step k makes what lies from front(k - 1) to front(k), and the first step everything up to its front; where
    it is recomputed, what lies from tail(k) to front(k).
    """

    step: Natural
    """0 where a map from outside has one row (column) for all that its readers make."""
    ahead: int
    behind: int
    end: Natural
    """Only so many first rows or columns are ever made or loaded."""


@dataclass(frozen=True)
class Steps:
    """The steps of a group along an axis, `first` to `last`."""

    halo: Literal["retain", "recompute"]
    """"retain" or "recompute": what is done with rows or columns that later steps need again."""
    first: int
    last: int


@dataclass(frozen=True)
class Stream:
    """A map on its way through a group: what a layer makes of it, or what is loaded of a map from outside."""

    store: Natural
    maker: Natural
    """The layer (number) that makes it; of a map from outside the first of its readers: it is loaded before that."""
    readers: tuple[Natural, ...]
    """The layers of the group that read it from here, ascending."""
    outside: bool
    rows: Pace
    columns: Pace


@dataclass(frozen=True)
class Blocks:
    """Layers that take turns for a few channels of the maps between them.

    The first makes these channels of a piece, the others pass them on, the last adds them to its sums (which become its
    result when all are added) or makes the same ones of its result (pooling, depthwise): then come the next channels.
    """

    first: Natural
    last: Natural
    """`first`, `last`: the layers, by number."""
    channels: PositiveInt
    """Of every map between them in a turn; a divisor of all."""


@dataclass(frozen=True)
class FusedRun:
    """What a plan says of a group of layers that run strip by strip, in every step of rows, of columns inside it."""

    first: Natural
    last: Natural
    """`first`, `last`: its layers, by number."""
    rows: Steps
    columns: Steps
    streams: tuple[Stream, ...]
    """One for every layer, in their order, then those from outside."""
    weights: tuple[Natural, ...]
    """Of every layer the bytes of weights that stay on chip while the group runs. The rest is loaded in every visit in
    which the layer makes something, filter by filter.
    """
    residents: Mapping[Natural, tuple[PositiveInt, tuple[Natural, ...]]] = field(hash=False)
    """As in `LayerRun`."""
    unwritten: tuple[Natural, ...]
    """Of every layer how many first rows of its result never go to DRAM."""
    banks: tuple[Natural, ...]
    """The banks for strips and weights, one memory together; none where the memory has none."""
    blocks: tuple[Blocks, ...] = ()
    """Layers that take turns for some channels, ascending; the others run one after the other."""
    in_place: Mapping[Natural, Natural] = field(default_factory=dict, hash=False)
    """Results -> the maps whose place they take; as in `LayerRun`."""
    sampled: tuple[Natural, ...] = ()
    """Maps from outside of which only the rows and columns are loaded that are read (`Stores.sampled`)."""


def _kind(run: object) -> str:
    strips = "streams" in run if isinstance(run, Mapping) else isinstance(run, FusedRun)
    return "strips" if strips else "layer"


#: A layer by itself, or a group of layers.
Run = Annotated[Annotated[LayerRun, Tag("layer")] | Annotated[FusedRun, Tag("strips")], Discriminator(_kind)]
R = TypeVar("R", bound=LayerRun | FusedRun)


@dataclass(frozen=True)
class Queue:
    """The order of a plan's transfers in their DMA queues, and what each of them waits for.

    Transfers have numbers: those of every run in turn, of a run its loads and then its stores
    (`formulations.fusion.steps`). Steps count from 1 over the whole network.
    """

    weights: PositiveInt
    """The most bytes of a block of weights, and of a transfer of weights."""
    maps: PositiveInt | None
    """The most bytes of a transfer of a map (a row may have more); None: pieces of maps are moved whole."""
    order: tuple[Natural, ...]
    """Numbers of transfers; those of a queue in this order."""
    when: tuple[PositiveInt, ...]
    """In that order: of a load the first step beside which it lies (guard), of a store the step that waits (limit)."""
    by_run: tuple[tuple[PositiveInt, PositiveInt | None], ...] = ()
    """`weights` and `maps` of every run, if they are not the same in all; then those are the most of them."""


@dataclass(frozen=True)
class NetworkRun(Generic[R]):
    """What a plan says of a network in a shared memory."""

    runs: tuple[R, ...]
    """Layers and groups in their order."""
    queue: Queue | None = None
    """None: the best order that is found; with too many transfers, each step after its own."""
    near: tuple[NearStep, ...] = ()
    """On machines with memories nearer than the shared one: how the steps bring their tiles there, box by box."""

    @model_serializer(mode="wrap")
    def _without_near(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Nests of nearer memories are written where there are any."""
        made: dict[str, Any] = write(self)
        if not self.near:
            made.pop("near", None)
        return made

    def __iter__(self) -> Iterator[R]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, at: int) -> R:
        return self.runs[at]


def _with_queue(said: Any) -> Any:
    """Runs alone, as plans had them before there was a queue, without one."""
    return NetworkRun(said) if isinstance(said, tuple) else said


#: A schedule of layers by themselves, and one of these and groups, as plan files have it.
LayersSchedule = Annotated[NetworkRun[LayerRun] | tuple[LayerRun, ...], AfterValidator(_with_queue)]
NetworkSchedule = Annotated[NetworkRun[Run] | tuple[Run, ...], AfterValidator(_with_queue)]


@dataclass(frozen=True)
class Choice:
    """What is decided of a layer on a mesh, or on an array beside it."""

    tile: tuple[int, ...]
    """By index, in the order of `DIMS`."""
    rows: str = ""
    cols: str = ""
    """`rows`, `cols`: indices along the sides of the mesh; empty where there is none."""
    vector: tuple[int, ...] = (1,) * len(DIMS)
    """PEs by index."""
    share: str = "both"
    keep: str = "none"
    """`share`, `keep`: A key of `SHARES`; the operand whose tile stays, or "none"."""
    filters: int = 1
    channels: int = 1
    """`filters`, `channels`: in a PE."""


@dataclass(frozen=True)
class AxisLayout:
    """An axis of an operand in a buffer."""

    axis: int
    """Which one of the operand's."""
    extent: int
    pitch: int
    """`extent`, `pitch`: elements of the tile along it; words from one to the next."""


@dataclass(frozen=True)
class OperandLayout:
    """The tile of an operand, innermost axis first; `words` with padding, `elements` without."""

    operand: str
    axes: tuple[AxisLayout, ...]
    words: int
    elements: int


@dataclass(frozen=True)
class Layout:
    """The bits of the PE number, lowest first, as (index, bit of its lane); and both operands."""

    bits: tuple[tuple[str, int], ...]
    operands: tuple[OperandLayout, ...]

    @property
    def words(self) -> int:
        """Of both operands."""
        return sum(one.words for one in self.operands)


@dataclass(frozen=True)
class MeshLayout:
    """The decisions of a layer, and on a mesh of tile units the layout of its banks."""

    choice: Choice
    layout: Layout | None = None


@dataclass(frozen=True)
class Place:
    """Where a buffer lies."""

    buffer: str
    memory: str
    address: Natural
    """Of its first byte, as long as it lives."""


@dataclass(frozen=True)
class Placement:
    """The buffers on chip; those that are not named lie off the chip."""

    places: tuple[Place, ...]

"""Plans: what certile hands out, as versioned, validated, frozen data.

A plan holds decisions and everything needed to re-verify them without other files: the layers, the machine with
all overrides, the pins, and digests of both. Everything but wall times (fields ending in ``_s``) is reproducible
byte for byte. `solver.check` derives every figure again from the decisions.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PositiveInt,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
)  # fmt: skip

from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.jsonfile import as_object, parse_json, read_bytes, shown, validate, write_atomically
from instances.machine import Machine
from instances.workload import Layer
from solver.homes.plan import HomesPlan

__all__ = [
    "FORMAT", "Counted", "HoldItem", "LayerCounts", "LayerPlan", "LayerReplay", "LoopItem", "Measures", "Objective",
    "Options", "Plan", "PlanFile", "PlanReplay", "Schedule", "SpatialItem", "Status", "TrafficLimits", "digest",
    "network_digest", "plan_schema", "proof", "version",
]  # fmt: skip

#: The first field of every plan file; a reader refuses other versions.
FORMAT = "certile-plan/1"
Status = Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "NO_SOLUTION_FOUND"]
Unit = Literal["ticks", "bytes", "fJ"]
Measure = Literal["time", "bytes", "energy"]
Dim = Literal["b", "g", "m", "n", "r", "c", "i", "j"]
Natural = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Gap = Annotated[float, Field(ge=0, le=1)]
Stat = int | float | str | bool | None


def version() -> str:
    """Return the version of certile, or "unknown" when it runs from a source tree that was never installed."""
    try:
        return metadata.version("certile")
    except metadata.PackageNotFoundError:
        return "unknown"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SpatialItem(_Frozen):
    """Pieces of `step` along dimension `spatial`, side by side over the units of a level."""

    spatial: Dim
    step: PositiveInt
    over: Literal["tle", "tlt"]


class LoopItem(_Frozen):
    """Pieces of `step` along dimension `loop`, one after the other; or of free sizes, cut at the places `cuts`.

    Places count from the begin of the core's range; `step` is then the largest piece.
    """

    loop: Dim
    step: PositiveInt
    cuts: tuple[PositiveInt, ...] = ()

    @model_serializer(mode="wrap")
    def _without_cuts(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {k: v for k, v in write(self).items() if k != "cuts" or v}


class HoldItem(_Frozen):
    """The operand's footprint lies on chip from here inwards, in 1 or 2 buffers (left out: as the machine says).

    With `line` IN lies in lines: it slides along rows and columns.
    """

    hold: Literal["IN", "W", "OUT"]
    buffers: Literal[1, 2] | None = None
    line: bool = False

    @model_serializer(mode="wrap")
    def _without_none(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {k: v for k, v in write(self).items() if v is not None and (k != "line" or v)}


def _kind(item: object) -> str | None:
    for kind in ("spatial", "loop", "hold"):
        if (kind in item) if isinstance(item, dict) else hasattr(item, kind):
            return kind
    return None


NestItem = Annotated[
    Annotated[SpatialItem, Tag("spatial")] | Annotated[LoopItem, Tag("loop")] | Annotated[HoldItem, Tag("hold")],
    Discriminator(
        _kind,
        custom_error_type="nest_item",
        custom_error_message="a nest item has the keys hold, or loop and step (and cuts), or spatial, step and over",
    ),
]


class Schedule(BaseModel):
    """The nest, outermost item first, and beside it the decisions it stands for (for people).

    `homes`: operand -> the memory off the chip where it lies, on machines that have several.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, int | str] = Field(init=False)

    nest: tuple[NestItem, ...]
    homes: dict[Literal["IN", "W", "OUT"], str] | None = None

    @model_serializer(mode="wrap")
    def _without_homes(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {k: v for k, v in write(self).items() if k != "homes" or v}

    @classmethod
    def of(cls, nest: Nest, decision: dict[str, int | str]) -> Schedule:
        """Wrap a nest."""
        return cls.model_validate({"nest": nest.to_json(), "homes": dict(nest.homes) or None, **decision})

    def to_nest(self) -> Nest:
        """Return the nest that the machine models read."""
        return Nest.from_json([item.model_dump() for item in self.nest]).at(
            {str(op): name for op, name in (self.homes or {}).items()}
        )

    @property
    def decision(self) -> dict[str, int | str]:
        """The decisions beside the nest."""
        return dict(self.__pydantic_extra__ or {})


class Objective(_Frozen):
    """The value of the first objective and the parts that sum to it (a saving is negative)."""

    value: Natural
    unit: Unit
    terms: dict[str, int]


class Measures(_Frozen):
    """All three measures: ticks, bytes, femtojoules."""

    time: Natural
    bytes: Natural
    energy: Natural


class Counted(_Frozen):
    """DMA programs, contiguous runs, burst windows, DRAM rows, refresh periods and bytes."""

    calls: Natural
    segments: Natural
    bursts: Natural
    rows: Natural
    refreshes: Natural
    bytes: Natural


class LayerCounts(Counted):
    """Counts of a layer; OUT is final results written, PSUM partial sums written and read back."""

    by_operand: dict[Literal["IN", "W", "OUT", "PSUM"], Counted]


class LayerReplay(_Frozen):
    """What the independent walk over the schedule found.

    Attributes
    ----------
    ok : bool
        No fault, and (where `compared`) the same figures as the price.
    compared : bool
        False where the machine is priced by a paper's literal equations, which no machine executes.
    steps : int
        Innermost iterations walked.
    executed : bool
        Whether the layer was also computed tile by tile on integers and equals the direct convolution.
    """

    ok: bool
    compared: bool
    steps: Natural
    executed: bool
    measures: Measures
    faults: tuple[str, ...]
    note: str


class PlanReplay(_Frozen):
    """Replay of all layers: `ok` is None when nothing could be replayed."""

    ok: bool | None
    layers: Natural
    executed: Natural
    note: str


class TrafficLimits(_Frozen):
    """Bytes that no plan of the layer can do without (`hwmodels.nest.limits`).

    Attributes
    ----------
    compulsory_bytes : int
        Every needed input, weight and output once.
    lower_bound_bytes : int
        The same or the I/O lower bound for the machine's memory, whichever is larger.
    """

    compulsory_bytes: Natural
    lower_bound_bytes: Natural


class LayerPlan(_Frozen):
    """The plan of one layer. Fields are None where there is nothing to say, never 0 or infinity.

    Attributes
    ----------
    wall_s : float
        Seconds spent on building and deciding; 0 when the answer was taken from an identical layer (`same_as`).
    conflicts : tuple of str
        For an infeasible layer: a minimal set of demands that cannot be met together.
    size : dict of str to int
        Of the search space.
    limits : TrafficLimits or None
        None in the literal reading, whose counts are a paper's estimates.
    stats : dict
        Engine statistics.
    """

    layer: str
    workload: Layer
    status: Status
    objective: Objective | None
    bound: Natural | None
    gap: Gap | None
    wall_s: Seconds
    schedule: Schedule | None
    decision: dict[str, int | str] | None
    measures: Measures | None
    counts: LayerCounts | None
    occupancy_bytes: dict[str, Natural] | None
    replay: LayerReplay | None
    conflicts: tuple[str, ...]
    size: dict[str, int]
    stats: dict[str, Stat]
    same_as: str | None
    limits: TrafficLimits | None = None


class Options(_Frozen):
    """What else was asked for, so that the call can be repeated."""

    full: bool
    bounding: bool
    time_limit_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None
    settings: tuple[str, ...]


class PlanFile(_Frozen):
    """What is written as a plan file: JSON whose first field is the format, with a schema shipped beside this file."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"$schema": "https://json-schema.org/draft/2020-12/schema"}
    )
    FORMAT: ClassVar[str]

    def to_json(self) -> str:
        """Return the plan file's text."""
        return json.dumps(self.model_dump(mode="json"), indent=1) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan atomically; raises InputError if it cannot be written."""
        write_atomically(path, self.to_json())

    @classmethod
    def from_json(cls, data: bytes | str, where: str = "plan") -> Self:
        """Read what `to_json` wrote; raises InputError that names every fault of the schema."""
        parsed = parse_json(data, where)
        found = as_object(parsed, where).get("format")
        if found != cls.FORMAT:
            said = "is missing" if found is None else f"is {shown(found)}"
            raise InputError(f"{where}: field format {said}, this version reads {cls.FORMAT!r}")
        return validate(cls, parsed, where)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a plan file; raises InputError if it is missing or not a plan."""
        return cls.from_json(read_bytes(path, what="plan"), f"plan {os.fspath(path)}")

    @classmethod
    def schema_text(cls) -> str:
        """Return the JSON Schema as text."""
        return json.dumps(cls.model_json_schema(), indent=1) + "\n"


class Plan(PlanFile):
    """A plan of one or more layers; docs/files.md says which keys are stable.

    Attributes
    ----------
    certile : str
        Version of certile that made the plan.
    network, machine : str
        Names; the data itself is in ``layers[].workload`` and `machine_data`.
    network_digest, machine_digest : str
        SHA-256 of the planned layers in order, and of `machine_data`.
    objectives : tuple of str
        As asked for, most important first; the other measures break ties in the order time, bytes, energy.
    objective, measures
        Sums over all layers; None unless every layer has a schedule.
    homes : HomesPlan or None
        On machines with several memories off the chip where every map and all weights of the network lie. Status and
        bound are then those over all homes, the layers' ones for the homes that they have.
    """

    FORMAT = FORMAT

    format: Literal["certile-plan/1"]
    certile: str
    problem: str
    network: str
    machine: str
    engine: str
    engine_version: str
    objectives: Annotated[tuple[Measure, ...], Field(min_length=1)]
    unit: Unit
    pins: tuple[str, ...]
    options: Options
    status: Status
    objective: Objective | None
    bound: Natural | None
    gap: Gap | None
    measures: Measures | None
    wall_s: Seconds
    replay: PlanReplay
    layers: Annotated[tuple[LayerPlan, ...], Field(min_length=1)]
    network_digest: str
    machine_digest: str
    machine_data: Machine
    homes: HomesPlan | None = None

    @model_serializer(mode="wrap")
    def _without_none(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {k: v for k, v in write(self).items() if k != "homes" or v is not None}

    def layer(self, name: str) -> LayerPlan:
        """Return the plan of the layer called `name`; raises InputError if there is none."""
        for plan in self.layers:
            if plan.layer == name:
                return plan
        known = ", ".join(p.layer for p in self.layers)
        raise InputError(f"plan of {self.network} has no layer {name!r}; it has {known}")


def proof(objectives: Sequence[str], proven: Iterable[str]) -> dict[str, Stat]:
    """Return what a plan's stats say of several objectives: which are proven. Of one the status says it."""
    return {"proven": ",".join(proven)} if len(objectives) > 1 else {}


def plan_schema() -> str:
    """Return the text of ``plan.schema.json``, the JSON Schema shipped beside this file."""
    return Plan.schema_text()


def digest(data: object) -> str:
    """Return ``sha256:...`` of the canonical JSON (sorted keys, no blanks) of JSON-like data."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def network_digest(layers: Iterable[Layer]) -> str:
    """Return the digest of the planned layers, in order."""
    return digest([layer.model_dump(mode="json") for layer in layers])

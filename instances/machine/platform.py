"""A board as problem selection sees it: stages that layers run in, element types, and frequencies.

Example: a CPU that reads images, a GPU, a CPU that reads out the boxes. These are three stages. Between two of them the
work may be cut, so that each side is a thread of its own and works on another image: a hand-over then takes time. A
GPU that computes in 16 bits needs maps converted. At a frequency of CPU and GPU the times of a stage are scaled.

Source: `heterogeneous_mapping_and_banks` 3.1.3.1 (Fig. 3.2), 3.1.3.4 (Fig. 3.12), 3.1.3.5 (Table 3.8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, TypeVar

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from instances.errors import choices
from instances.frozen import Frozen

Count = Annotated[int, Field(ge=0, le=2**40)]
Name = Annotated[str, Field(min_length=1, max_length=60)]
T = TypeVar("T")


class Stage(Frozen):
    """A place in the pipeline, such as "inference", or a processor that layers run on."""

    name: Name
    """As layers name it."""
    power_mw: Count = 0
    """Power while it works, beside that of the frequency."""


class ElementType(Frozen):
    """How numbers in a map are stored."""

    name: Name
    """As layers name it: f32."""
    bytes: PositiveInt
    """An element."""


class Conversion(Frozen):
    """What the stage that made a map takes to convert it, once for all that read it so."""

    source: Name
    """The element type of the map."""
    target: Name
    """The element type that is wanted; without an entry a map cannot be converted."""
    call_ns: NonNegativeFloat = 0.0
    """Time of a conversion."""
    element_ps: NonNegativeFloat = 0.0
    """Time of each element beside it."""
    stage: Name | None = None
    """On this stage only; one without holds for stages that have none of their own."""


class Handover(Frozen):
    """What it takes to hand a map on to a layer in another stage; pairs without an entry take nothing."""

    source: Name
    """The stage that made the map."""
    target: Name
    """The stage that reads it."""
    send_ns: NonNegativeFloat = 0.0
    """The source is busy."""
    receive_ns: NonNegativeFloat = 0.0
    """The target is busy."""
    byte_ps: NonNegativeFloat = 0.0
    """The source is busy, for every byte of the map."""
    square_fs: NonNegativeFloat = 0.0
    """The source is busy, times the square of the bytes."""
    buffer_bytes: Count = 0
    """Memory of the buffer between them."""
    serial_ns: NonNegativeFloat = 0.0
    """The source is busy if both are in one thread: then all of the above is nothing."""


class Frequency(Frozen):
    """A choice of clocks."""

    name: Name
    """As the pin `frequency` names it."""
    scale: dict[str, PositiveFloat] = Field(default_factory=dict)
    """Times over those in the profile, by stage; 1 for others."""
    power_mw: Count = 0
    """Power of the board, whatever works."""
    stage_mw: dict[str, Count] = Field(default_factory=dict)
    """Power of a working stage at these clocks, where it is not its `power_mw`."""


class Budget(Frozen):
    """What choices may use together."""

    name: Name
    """As choices name it in `uses`."""
    most: Count
    """What all choices may use together."""


class Platform(Frozen):
    """Stages in the order of the pipeline, and what else choices share."""

    stages: Annotated[tuple[Stage, ...], Field(min_length=1, max_length=16)]
    """In the order of the pipeline."""
    pipeline: Literal["choose", "always", "never"] = "choose"
    """Whether neighbouring stages are threads of their own: the plan decides, all of them, or all are one thread."""
    types: Annotated[tuple[ElementType, ...], Field(min_length=1)] = (ElementType(name="f32", bytes=4),)
    """Element types of maps."""
    conversions: tuple[Conversion, ...] = ()
    """Between element types."""
    handovers: tuple[Handover, ...] = ()
    """Between stages."""
    frequencies: tuple[Frequency, ...] = (Frequency(name="nominal"),)
    """One of them is chosen."""
    memory_bytes: PositiveInt | None = None
    """The most bytes of all choices and buffers; none: no limit."""
    budgets: tuple[Budget, ...] = ()
    """Further limits, such as cores; choices say what they use."""

    @model_validator(mode="after")
    def _agrees(self) -> Platform:
        if not self.frequencies:
            raise ValueError("frequencies: one is needed, {name: nominal} will do")
        stages, types = [s.name for s in self.stages], [t.name for t in self.types]
        for what, names in {
            "stages": stages, "types": types, "frequencies": [f.name for f in self.frequencies],
            "budgets": [b.name for b in self.budgets],
        }.items():  # fmt: skip
            if twice := _twice(names):
                raise ValueError(f"{what}: {twice} stands twice")
        for what, known, pairs in self._pairs():
            if double := _twice(pairs):
                raise ValueError(f"{what}: {double[0]} to {double[1]} stands twice")
            for name in (name for pair in pairs for name in pair):
                if name not in known:
                    raise ValueError(f"{what}: {name!r} is not known, {choices(known)} are")
            if same := [source for source, target in pairs if source == target]:
                raise ValueError(f"{what}: {same[0]} to itself")
        for one in self.conversions:
            if one.stage is not None and one.stage not in stages:
                raise ValueError(f"conversions: no stage {one.stage!r}, {choices(stages)} are known")
        for frequency in self.frequencies:
            for name in (*frequency.scale, *frequency.stage_mw):
                if name not in stages:
                    raise ValueError(f"frequencies: {frequency.name}: no stage {name!r}, {choices(stages)} are known")
        return self

    def _pairs(self) -> Iterator[tuple[str, list[str], list[tuple[str, str]]]]:
        stages = [s.name for s in self.stages]
        for place in dict.fromkeys(c.stage for c in self.conversions):
            here = [(c.source, c.target) for c in self.conversions if c.stage == place]
            yield "conversions", [t.name for t in self.types], here
        yield "handovers", stages, [(h.source, h.target) for h in self.handovers]

    @property
    def cuts(self) -> tuple[tuple[str, ...], ...]:
        """All sets of stages that may begin a thread of their own; the first stage always does."""
        names = [stage.name for stage in self.stages[1:]]
        if self.pipeline != "choose":
            return (tuple(names) if self.pipeline == "always" else (),)
        sets = range(2 ** len(names))
        return tuple(tuple(n for k, n in enumerate(names) if chosen >> k & 1) for chosen in reversed(sets))


def _twice(names: Iterable[T]) -> T | None:
    return next((name for name, number in Counter(names).items() if number > 1), None)

"""Boards: processors for tasks, and the stages, element types and frequencies that layers choose from.

**Processors** of a board: CPU cores in groups, accelerators, how data is copied between them, what they consume. A
quad-core CPU is not one processor but several logical ones: in the configuration (2, 1, 1) three layers run at a time,
one of them on two cores. Every processor runs one task at a time, without preemption.

**Platform**: a board as problem selection sees it. An example: a CPU that reads images, a GPU, a CPU that reads out the
boxes. These are three stages. Between two of them the work may be cut, so that each side is a thread of its own and
works on another image: a hand-over then takes time. A GPU that computes in 16 bits needs maps converted. At a frequency
of CPU and GPU the times of a stage are scaled.

Source: `heterogeneous_mapping_and_banks` 3.1.3.1 (Fig. 3.2), 3.1.3.4 (Fig. 3.12), 3.1.3.5 (Table 3.8); 3.3.2 (Fig.
3.16), 3.3.3 (Tables 3.14, 3.15), 3.3.3.2, 3.3.3.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from instances.errors import choices
from instances.frozen import Frozen, Sparse

Count = Annotated[int, Field(ge=0)]
#: Picoseconds, nanoseconds or microseconds: so long that any sum of them is a number.
Duration = Annotated[float, Field(ge=0, le=1e9)]
#: One time over another one.
Ratio = Annotated[float, Field(ge=1e-6, le=1e6)]


class Threads(Frozen):
    """What a task takes with some threads: ``scale`` times what one core takes without threads, and `sync_ns`."""

    scale: Ratio
    """Time with these threads over time of one core without threads."""
    sync_ns: Duration
    """What a convolution waits for its threads; it is four kernels (Table 3.15), other tasks are one."""


class Cpu(Sparse):
    """A task on one core without threads: ``mac_ps`` a MAC, ``result_ps`` a result, ``call_ns`` a convolution."""

    LEFT_OUT: ClassVar = frozenset(("half_scale",))

    cores: Annotated[int, Field(ge=1, le=16)]
    """Cores of the CPU."""
    power_mw: Count
    """Power of all cores at work."""
    mac_ps: Duration
    """Time of a multiply-accumulate."""
    result_ps: Duration
    """Time of a result."""
    call_ns: Duration
    """Time of a convolution beside its multiplications and results."""
    move_ps: Duration
    """Time of an element read or written by a task that does not multiply."""
    threads: tuple[Threads, ...]
    """With 1, 2, ... cores, an entry for each."""
    busy_mhz: PositiveInt
    """The clock if all cores are busy."""
    alone_mhz: tuple[PositiveInt | None, ...] = ()
    """The clocks at which 1, 2, ... cores run if no others do. A profile measured so is scaled by ``alone / busy``
    (3.3.3.1).
    """
    half_scale: Ratio | None = None
    """Time in 16 bits over that in 32; none: it cannot (problem selection)."""

    @model_validator(mode="after")
    def _complete(self) -> Cpu:
        if len(self.threads) != self.cores:
            raise ValueError(f"threads: one entry for each number of cores, 1 to {self.cores}; got {len(self.threads)}")
        if len(self.alone_mhz) > self.cores:
            raise ValueError(f"alone_mhz: at most one entry for each number of cores, 1 to {self.cores}")
        return self


class Accelerator(Sparse):
    """A GPU or an NPU."""

    LEFT_OUT: ClassVar = frozenset(("half_scale",))

    name: str = Field(min_length=1, max_length=40, pattern=r"^[a-z][a-z0-9_]*$")
    """Small letters, digits and ``_``; not cpu, cpu0, ..."""
    power_mw: Count
    """Power at work."""
    speedup: Ratio | None = None
    """How many times faster than all cores together it is (3.3.3.3); then the times below are not used."""
    mac_ps: Duration = 0.0
    """Time of a multiply-accumulate."""
    result_ps: Duration = 0.0
    """Time of a result."""
    reduction_ns: Duration = 0.0
    """Time for each term of the sum that makes a result, once a convolution."""
    call_ns: Duration = 0.0
    """Time of a convolution beside these."""
    move_ps: Duration = 0.0
    """Time of an element that is only moved."""
    cannot: tuple[str, ...] = ()
    """Operators (``op`` of the network file, or the function of an element-wise one) that it cannot run."""
    half_scale: Ratio | None = None
    """Time in 16 bits over that in 32; none: it cannot (problem selection)."""


class Copying(Frozen):
    """What a copy of D units takes, in microseconds (3.3.3.2).

    ``memcpy = square*D**2 + linear*D + constant``, ``map`` and ``unmap`` likewise without a square. Between groups of
    cores: memcpy; from an accelerator to the CPU: map + memcpy; from the CPU to an accelerator: map + memcpy + unmap;
    between accelerators: through the CPU, both.
    """

    unit_bytes: PositiveInt
    """Bytes of a unit of D. The paper prints the polynomials without one."""
    memcpy_us: tuple[Duration, Duration, Duration]
    """Square, linear and constant term of a memcpy."""
    map_us: tuple[Duration, Duration]
    """Linear and constant term of a map."""
    unmap_us: tuple[Duration, Duration]
    """Linear and constant term of an unmap."""


class Group(NamedTuple):
    """A logical processor: a group of cores, or an accelerator (no cores)."""

    name: str
    cores: int


class Processors(Frozen):
    """The processors of a board."""

    cpu: Cpu
    """The cores."""
    accelerators: tuple[Accelerator, ...] = ()
    """GPUs and NPUs."""
    copying: Copying
    """What copies between processors take."""
    element_bytes: PositiveInt = 4
    """A number in a feature map."""
    split_sync_ns: Duration = 0.0
    """What each part of a task that is divided between two processors waits for the other one."""

    @model_validator(mode="after")
    def _names(self) -> Processors:
        names = [one.name for one in self.accelerators]
        if len(set(names)) != len(names) or any(name.rstrip("0123456789") == "cpu" for name in names):
            raise ValueError(f"accelerators: names must differ, and from cpu, cpu0, ...; got {', '.join(names)}")
        return self

    @property
    def configurations(self) -> tuple[tuple[int, ...], ...]:
        """All ways to divide the cores into groups, the largest groups first (Fig. 3.16)."""
        return tuple(_partitions(self.cpu.cores, self.cpu.cores))

    def groups(self, configuration: tuple[int, ...]) -> tuple[Group, ...]:
        """The logical processors of a configuration: the groups of cores, then the accelerators."""
        cores = [Group(f"cpu{at}", size) for at, size in enumerate(configuration)]
        return (*cores, *(Group(one.name, 0) for one in self.accelerators))


def _partitions(total: int, most: int) -> list[tuple[int, ...]]:
    if not total:
        return [()]
    return [(size, *rest) for size in range(min(total, most), 0, -1) for rest in _partitions(total - size, size)]


Amount = Annotated[int, Field(ge=0, le=2**40)]
Name = Annotated[str, Field(min_length=1, max_length=60)]
T = TypeVar("T")


class Stage(Frozen):
    """A place in the pipeline, such as "inference", or a processor that layers run on."""

    name: Name
    """As layers name it."""
    power_mw: Amount = 0
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
    buffer_bytes: Amount = 0
    """Memory of the buffer between them."""
    serial_ns: NonNegativeFloat = 0.0
    """The source is busy if both are in one thread: then all of the above is nothing."""


class Frequency(Frozen):
    """A choice of clocks."""

    name: Name
    """As the pin `frequency` names it."""
    scale: dict[str, PositiveFloat] = Field(default_factory=dict)
    """Times over those in the profile, by stage; 1 for others."""
    power_mw: Amount = 0
    """Power of the board, whatever works."""
    stage_mw: dict[str, Amount] = Field(default_factory=dict)
    """Power of a working stage at these clocks, where it is not its `power_mw`."""


class Budget(Frozen):
    """What choices may use together."""

    name: Name
    """As choices name it in `uses`."""
    most: Amount
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

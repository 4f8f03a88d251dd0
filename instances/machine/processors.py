"""Processors of a board: CPU cores in groups, accelerators, how data is copied between them, what they consume.

A quad-core CPU is not one processor but several logical ones: in the configuration (2, 1, 1) three layers run at a
time, one of them on two cores. Every processor runs one task at a time, without preemption.

Source: `heterogeneous_mapping_and_banks` 3.3.2 (Fig. 3.16), 3.3.3 (Tables 3.14, 3.15), 3.3.3.2, 3.3.3.3.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, NamedTuple

from pydantic import Field, PositiveInt, model_validator

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

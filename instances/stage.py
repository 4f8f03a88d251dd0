"""Feature maps, and the stages of a network that read and write them: records (`instances.feature_maps` makes them)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from instances.errors import InputError, choices
from instances.machine import Banks

#: Kinds of stages that work channel by channel.
LANEWISE = ("depthwise", "pool", "whole", "sum")
Kind = Literal["conv", "patches", "depthwise", "pool", "whole", "sum"]


@dataclass(frozen=True)
class FeatureMap:
    """One feature map: columns of `rows` pixels of `stored` bytes, of which `channels` hold something."""

    name: str
    columns: int
    rows: int
    channels: int
    stored: int

    @property
    def column_bytes(self) -> int:
        """Bytes of one column on chip and on its way in."""
        return self.rows * self.stored

    def tile(self, banks: Banks) -> int:
        """Columns of a tile.

        Raises
        ------
        InputError
            If a bank does not hold one column.
        """
        if self.column_bytes > banks.bank_bytes:
            raise InputError(
                f"map {self.name}: a column of {self.rows} x {self.stored} bytes does not fit in a bank of "
                f"{banks.bank_bytes} bytes"
            )
        return min(self.columns, banks.bank_bytes // self.column_bytes)


@dataclass(frozen=True)
class Reads:
    """How a convolution reads its map in words: a window of `high` rows in columns of `rows` pixels of `pixel` bytes.

    The window of the row y of the result begins at the row ``y*stride - before``; the result has `results` rows.
    """

    high: int
    stride: int
    before: int
    rows: int
    results: int
    pixel: int


@dataclass(frozen=True)
class Pooled:
    """What a stage computes whose target holds but the average of it: columns, rows; cycles at its end for that."""

    columns: int
    rows: int
    cycles: int


@dataclass(frozen=True)
class Stage:
    """One step of the network: it reads a map from the banks and writes another one."""

    name: str
    kind: Kind
    source: str
    """The map that it reads, by name."""
    target: str
    """The map that it writes, by name."""
    streamed: tuple[str, ...] = ()
    """Further operands of a sum, which come from DRAM as the result is made."""
    offset: int = 0
    """Where the result's channels begin in the target (a part of a concatenation)."""
    taps: int = 1
    """Of the window along the columns; so are `stride`, `dilation`, and the padding `before` and `after` the map."""
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0
    weight_bytes: int = 0
    """As they are loaded."""
    bias_bytes: int = 0
    """As they are loaded; a folded batch normalisation has a bias, patches come with theirs."""
    written: int = 0
    """Bytes of a column of the result on its way out."""
    groups: int = 1
    """A process step goes through its columns once for each: of filters, with the weights of that group; channel by
    channel of `Banks.lanes` channels, if time is counted by cycles (`Banks.by_cycle`).
    """
    tap_cycles: int = 0
    """Of a column of the result, for one group and one column of the window that lies inside the map."""
    first_cycles: int = 0
    """The part of `tap_cycles` that the first pixel of the column takes (a patch: any pixel)."""
    cycles: int = 0
    """Of computing the whole result, the average included; without those that `reads` adds."""
    reads: Reads | None = None
    """How it reads its map, where the place of a column in its bank costs cycles (`Banks.alignment`)."""
    pooled: Pooled | None = None
    """What it computes, if a global average pool is fused with it: then the result is neither written nor kept, the
    target is one column of averages, made as the stage ends.
    """

    def anew(self, banks: Banks) -> bool:
        """Whether its weights come with every process step, because they do not fit."""
        return self.kind in ("conv", "patches") and self.weight_bytes > banks.weight_bytes

    @property
    def weightless(self) -> bool:
        """Whether it reads nothing but its map: no weights, no streamed operand."""
        return self.kind in ("pool", "whole")

    @property
    def asks(self) -> Literal["each", "first", "never"]:
        """By cycle: which of its units ask for the weights of the next one: each, the first one only, none."""
        if self.weightless:
            return "never"
        return "first" if self.kind == "depthwise" else "each"

    @property
    def share(self) -> int:
        """Bytes of weights that are asked for at once: those of a group, of a depthwise convolution all."""
        return self.weight_bytes if self.kind == "depthwise" else -(-self.weight_bytes // self.groups)

    def at_once(self) -> Stage:
        """The stage as if it went through its columns once, if it works channel by channel."""
        if self.kind not in LANEWISE:
            return self
        n = self.groups
        return replace(self, groups=1, tap_cycles=self.tap_cycles * n, first_cycles=self.first_cycles * n)

    @property
    def reach(self) -> int:
        """Columns beyond the first that one column of the result needs."""
        return (self.taps - 1) * self.dilation

    def ends(self, results: int, *, backwards: bool = False) -> int:
        """Columns up to the end of the last of so many windows, from the end of the map where the stage begins."""
        return (results - 1) * self.stride - (self.after if backwards else self.before) + self.reach + 1


class Height(NamedTuple):
    """The window of a stage along the rows, and the cycles of every row that it computes (of a pixel, for a group)."""

    taps: int
    stride: int
    dilation: int
    before: int
    cycles: tuple[int, ...]


@dataclass(frozen=True)
class Stages:
    """The stages of a network in its order, and the maps between them."""

    network: str
    stages: tuple[Stage, ...]
    maps: dict[str, FeatureMap]
    users: dict[str, tuple[str, ...]]
    """For every map the stages that read it, streamed operands included."""
    heights: dict[str, Height] = field(default_factory=dict, compare=False)
    """By name of a stage what it does along the rows."""
    leaving: frozenset[str] = frozenset()
    """Maps that are read outside of these stages as well, or are results: they are written as they are made."""

    def named(self, name: str) -> Stage:
        """Return the stage of a name; raises InputError if there is none."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise InputError(f"{name}: no such stage; there are {choices(stage.name for stage in self.stages)}")

    def lasting(self, name: str) -> bool:
        """Whether all of a map has to be written, whatever stays on chip."""
        return name in self.leaving or not self.users[name]

    def computed(self, stage: Stage) -> tuple[int, int]:
        """Columns that a stage computes, and their rows: those of its target, unless that holds their average."""
        if stage.pooled is not None:
            return stage.pooled.columns, stage.pooled.rows
        target = self.maps[stage.target]
        return target.columns, target.rows

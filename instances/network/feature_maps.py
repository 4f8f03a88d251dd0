"""A network as stages that read and write feature maps column by column, for machines with memory banks.

`stages` makes them; `FeatureMap` and `Stage` are the records.

Maps
    A map is stored column by column (W, H, C with the channels innermost). A bank holds whole columns: a tile is
    ``P = floor(bank / (H * C_stored))`` columns, the last one fewer. Convolutions write multiples of N_f channels,
    operators that work channel by channel (depthwise, pooling, sums) read and write multiples of N_pe; a map that one
    of them reads or writes is stored in multiples of N_pe.
Weights
    ``ceil(C_out, N_f) * k_w * ceil(k_h * C_stored, N_pe)`` bytes (multiples of N_f and N_pe); depthwise
    ``k_h * k_w * ceil(C, N_pe)``. A convolution of at most ``patch_channels`` channels of the network's input may
    be a product over patches, if nothing else reads the input: a column of its map is a patch of
    ``ceil(k_h * k_w * C_in, N_pe)`` bytes.
Cycles
    Of a pixel of the result: a convolution ``k_w' * ceil(k_h' * C_in / N_pe) * ceil(C_out / N_f)``, depthwise and
    pooling ``k_w' * k_h' * ceil(C / N_pe)``, a sum ``ceil(C / N_pe)``, with k' the taps inside the map. With
    `Banks.alignment` = "words" a convolution without groups and dilation of rows reads the words that the weights of
    its rows a to b - 1 inside the map lie in, ``ceil(b * C_stored / N_pe) - floor(a * C_stored / N_pe)`` a kernel
    column; what its place in the bank adds is in `hwmodels.banks.steps`.
Pools
    A global average pool of C stored channels, ``C <= pool_channels``, is fused with the stage before it, if that
    writes no part of a concatenation and nothing else reads its result: the stage ends with ``C / N_f`` cycles, or
    ``C / N_pe`` if it works channel by channel, and leaves one column of averages. Others are stages of their own.

Source: `heterogeneous_mapping_and_banks` 4.1.2 (Algorithm 2), 4.1.3, 4.4.1.1 (units of access N_f and N_pe); pools:
the public MIDAP simulator of 2020-09-02.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal, NamedTuple

from instances.errors import InputError, choices
from instances.machine.machine import Banks
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, MatMul, Operator, Pool, Reshape

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
        """Columns of a tile; raises InputError if a bank does not hold one column."""
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


@dataclass
class _Draft:
    """A stage before it is known how its maps are stored; `average`: the pool that is fused with it."""

    operator: Operator
    kind: Kind
    inputs: tuple[str, ...]
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pad: tuple[int, int] = (0, 0)
    groups: int = 1
    target: str = ""
    offset: int = 0
    average: str = ""


@dataclass
class _Reader:
    """Goes through the operators once."""

    network: Network
    banks: Banks
    patches: bool = True
    #: The map that holds an operator's result, under the operator's name.
    held: dict[str, str] = field(default_factory=dict)
    #: (columns, rows, channels)
    shapes: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    drafts: list[_Draft] = field(default_factory=list)
    #: Of concatenations that are a part of another one, and read by nothing else, that one.
    within: dict[str, str] = field(default_factory=dict)

    def read(self) -> Stages:
        """Make all stages."""
        for operator in self.network.operators:
            self._operator(operator)
        if not self.drafts:
            raise InputError(f"network {self.network.name}: no operator computes, banks need one stage at least")
        self._pixels()
        self._fuse()
        self._join()
        wide = self._wide()
        maps = {name: self._map(name, name in wide) for name in self._live()}
        made = tuple(self._stage(draft, maps) for draft in self.drafts)
        users: dict[str, list[str]] = {name: [] for name in maps}
        for stage in made:
            for name in (stage.source, *stage.streamed):
                users[name].append(stage.name)
        heights = {
            draft.operator.name: self._height(draft, stage) for draft, stage in zip(self.drafts, made, strict=True)
        }
        inner = {self._named(name) for name in self._results()} & {stage.target for stage in made}
        return Stages(
            self.network.name, made, maps, {name: tuple(found) for name, found in users.items()}, heights,
            frozenset(name for name in inner if users[name]),
        )  # fmt: skip

    def _results(self) -> list[str]:
        """The maps that hold results of the network, some of which stages read, too: of operators that nobody reads."""
        read = {name for operator in self.network.operators for name in operator.inputs}
        return [self.held[operator.name] for operator in self.network.operators if operator.name not in read]

    # ---- operators -------------------------------------------------------------------------------------------

    def _operator(self, operator: Operator) -> None:
        if isinstance(operator, Input):
            self._place(operator)
        elif isinstance(operator, Reshape) and operator.fn != "identity" and (
            len(operator.shape) == 4 or operator.fn != "reshape"
        ):  # fmt: skip
            raise InputError(f"network {self.network.name}: reshape {operator.name!r} moves columns; no bank program")
        elif isinstance(operator, Reshape) or (isinstance(operator, Eltwise) and len(operator.inputs) == 1):
            self.held[operator.name] = self.held[operator.inputs[0]]  # goes on where it is
        elif isinstance(operator, Concat):
            if operator.axis != 1:
                raise InputError(
                    f"network {self.network.name}: concat {operator.name!r} joins along axis {operator.axis}; what is "
                    "written in place are channels (axis 1)"
                )
            self._place(operator)
        else:
            self.drafts.append(self._draft(operator))
            self._place(operator)

    def _place(self, operator: Operator) -> None:
        self.held[operator.name] = operator.name
        self.shapes[operator.name] = self._shape(operator)

    def _shape(self, operator: Operator) -> tuple[int, int, int]:
        shape = operator.shape
        if len(shape) not in (2, 4) or shape[0] != 1:
            raise InputError(
                f"network {self.network.name}: operator {operator.name!r} has shape {shape}; feature maps in banks are "
                "(1, channels, rows, columns), or (1, features)"
            )
        return (shape[3], shape[2], shape[1]) if len(shape) == 4 else (1, 1, shape[1])

    def _draft(self, operator: Operator) -> _Draft:
        inputs = tuple(self.held[name] for name in operator.inputs)
        columns, rows, channels = self.shapes[inputs[0]] if inputs else (0, 0, 0)
        if isinstance(operator, Conv):
            window = operator.kernel, operator.stride, operator.dilation, operator.pad[:2]
            groups = operator.groups
            if groups == channels == operator.filters and groups > 1:
                return _Draft(operator, "depthwise", inputs, *window, groups)
            first = isinstance(self.network.operator(inputs[0]), Input)
            patches = self.patches and first and channels <= self.banks.patch_channels
            return _Draft(operator, "patches" if patches else "conv", inputs, *window, groups)
        if isinstance(operator, MatMul) and len(inputs) == 1:
            return _Draft(operator, "conv", inputs, kernel=(rows, columns))  # all of the map at once
        if isinstance(operator, Pool):
            if operator.kernel is None:
                return _Draft(operator, "whole", inputs, kernel=(rows, columns))
            window = operator.kernel, operator.stride, operator.dilation, operator.pad[:2]
            return _Draft(operator, "pool", inputs, *window)
        if isinstance(operator, Eltwise):
            if any(self.shapes[name] != self.shapes[inputs[0]] for name in inputs):
                raise InputError(f"network {self.network.name}: {operator.name!r} joins maps of different shapes")
            return _Draft(operator, "sum", inputs)
        raise InputError(f"network {self.network.name}: operator {operator.name!r} ({operator.op}) has no bank program")

    def _pixels(self) -> None:
        """Let an input that several stages read lie in pixels: patches are those of one convolution."""
        read = Counter(name for draft in self.drafts for name in draft.inputs)
        for draft in self.drafts:
            if draft.kind == "patches" and read[draft.inputs[0]] > 1:
                draft.kind = "conv"

    def _fuse(self) -> None:
        """Let a stage end with the average of what it computes, where nothing else reads that."""
        read = Counter(name for draft in self.drafts for name in draft.inputs)
        read.update(self.held[n] for o in self.network.operators if isinstance(o, Concat) for n in o.inputs)
        read.update(self._results())
        made = {draft.operator.name: draft for draft in self.drafts}
        for pool in list(self.drafts):
            name, before = pool.operator.name, made.get(pool.inputs[0])
            if before is None or pool.kind != "whole" or read[before.operator.name] > 1:
                continue
            fits = _up(self.shapes[name][2], self.banks.lanes) <= self.banks.pool_channels
            if fits and isinstance(pool.operator, Pool) and pool.operator.fn == "global_avg":
                before.average = name
                self.drafts.remove(pool)
                del made[name]

    def _join(self) -> None:
        """Let what is concatenated be written where the whole lies."""
        made = {draft.operator.name: draft for draft in self.drafts}
        for draft in self.drafts:
            draft.target = draft.average or draft.operator.name
        joins = {o.name: tuple(self.held[n] for n in o.inputs) for o in self.network.operators if isinstance(o, Concat)}
        read = Counter(name for draft in self.drafts for name in draft.inputs)
        read.update(name for parts in joins.values() for name in parts)
        inner = {name for parts in joins.values() for name in parts if name in joins and read[name] == 1}
        self.within = {name: whole for whole, parts in joins.items() for name in parts if name in inner}
        for whole in joins:
            offset = 0
            for part in _flat(whole, joins, inner) if whole not in inner else ():
                if part not in made or made[part].kind == "whole" or read[part] > 1:
                    raise InputError(
                        f"network {self.network.name}: concat {whole!r} joins {part!r}, which is an input, a global "
                        "pool, or read by others too; banks hold one copy of a map"
                    )
                made[part].target, made[part].offset = whole, offset
                offset += self.shapes[part][2]

    # ---- maps --------------------------------------------------------------------------------------------------

    def _live(self) -> list[str]:
        """The maps that are written or come from outside."""
        written = {draft.target for draft in self.drafts}
        return [name for name in self.shapes if name in written or isinstance(self.network.operator(name), Input)]

    def _wide(self) -> set[str]:
        """The maps that an operator reads or writes channel by channel."""
        named = {draft.operator.name: draft.target for draft in self.drafts}
        found = set()
        for draft in self.drafts:
            if draft.kind in LANEWISE:
                found |= {named.get(name, name) for name in draft.inputs} | {draft.target}
            if draft.average:
                found.add(draft.target)
        return found

    def _map(self, name: str, wide: bool) -> FeatureMap:
        columns, rows, channels = self.shapes[name]
        for draft in self.drafts:
            if draft.kind == "patches" and draft.inputs[0] == name:
                outputs = self.shapes[draft.operator.name]
                patch = _up(prod(draft.kernel) * channels, self.banks.lanes)
                return FeatureMap(name, outputs[0] * outputs[1], 1, patch, patch)
        stored = _up(channels, self.banks.lanes if wide else self.banks.filters)
        return FeatureMap(name, columns, rows, channels, stored)

    # ---- stages ------------------------------------------------------------------------------------------------

    def _stage(self, draft: _Draft, maps: dict[str, FeatureMap]) -> Stage:
        banks, kind = self.banks, draft.kind
        columns, _, channels = self.shapes[draft.inputs[0]]
        out_columns, out_rows, filters = self.shapes[draft.operator.name]
        lanes, narrow = _up(filters, banks.lanes), _up(filters, banks.filters)
        inputs = tuple(self._named(name) for name in draft.inputs)
        stage = Stage(
            draft.operator.name, kind, inputs[0], draft.target, inputs[1:] if kind == "sum" else (), draft.offset,
            written=out_rows * (lanes if kind in LANEWISE and draft.target == draft.operator.name else narrow),
            groups=self._groups(draft), reads=self._reads(draft, maps),
        )  # fmt: skip
        tap_cycles, first_cycles, cycles = self._cycles(draft, stage)
        stage = replace(stage, tap_cycles=tap_cycles, first_cycles=first_cycles, cycles=cycles)
        if draft.average:
            unit = banks.lanes if kind in LANEWISE else banks.filters
            pooled = Pooled(out_columns, out_rows, _ceil(lanes, unit))
            stage = replace(stage, written=lanes, cycles=cycles + pooled.cycles, pooled=pooled)
        if kind == "patches":
            return replace(stage, weight_bytes=narrow * maps[inputs[0]].stored)
        if kind == "sum":
            return stage
        high, wide = draft.kernel
        reach = (wide - 1) * draft.dilation[1]
        after = (out_columns - 1) * draft.stride[1] + reach + 1 - draft.pad[1] - columns
        before, stride, dilation = draft.pad[1], draft.stride[1], draft.dilation[1]
        stage = replace(stage, taps=wide, stride=stride, dilation=dilation, before=before, after=after)
        biased = isinstance(draft.operator, Conv | MatMul) and draft.operator.bias
        biased |= isinstance(draft.operator, Conv) and draft.operator.batch_norm
        bias = banks.bias_bytes * biased
        if kind == "conv":
            stored = maps[inputs[0]].stored if draft.groups == 1 else channels // draft.groups
            depth = _up(high * stored, banks.lanes)
            return replace(stage, weight_bytes=narrow * wide * depth, bias_bytes=narrow * bias)
        if kind == "depthwise":
            return replace(stage, weight_bytes=high * wide * lanes, bias_bytes=lanes * bias)
        return stage

    def _named(self, name: str) -> str:
        """The map that a result is in: its own or the concatenation's."""
        while name in self.within:
            name = self.within[name]
        return next((d.target for d in self.drafts if d.operator.name == name), name)

    def _reads(self, draft: _Draft, maps: dict[str, FeatureMap]) -> Reads | None:
        """How a convolution reads its map in words, if that makes a difference."""
        contiguous = draft.groups == 1 and (draft.kernel[0] == 1 or draft.dilation[0] == 1)
        if self.banks.alignment == "free" or draft.kind != "conv" or not contiguous:
            return None
        source, rows = maps[self._named(draft.inputs[0])], self.shapes[draft.operator.name][1]
        return Reads(draft.kernel[0], draft.stride[0], draft.pad[0], source.rows, rows, source.stored)

    def _groups(self, draft: _Draft) -> int:
        """How often a process step goes through its columns."""
        filters, banks = self.shapes[draft.operator.name][2], self.banks
        if draft.kind in ("conv", "patches"):
            return _ceil(filters, banks.filters)
        return _ceil(filters, banks.lanes) if draft.kind != "sum" and banks.by_cycle else 1

    def _cycles(self, draft: _Draft, stage: Stage) -> tuple[int, int, int]:
        """Of a column for each group and tap, of its first pixel, and of the whole result."""
        columns, wide = self.shapes[draft.inputs[0]][0], self.shapes[draft.operator.name][0]
        if draft.kind not in ("patches", "sum"):
            wide = sum(_inside(columns, wide, draft.kernel[1], draft.stride[1], draft.dilation[1], draft.pad[1]))
        pixels = self._row_cycles(draft, stage)
        return sum(pixels), pixels[0], stage.groups * sum(pixels) * wide

    def _row_cycles(self, draft: _Draft, stage: Stage) -> list[int]:
        """Of one pixel of every row of the result, for each group and tap."""
        lanes = self.banks.lanes
        _, rows, channels = self.shapes[draft.inputs[0]]
        out_rows, words = self.shapes[draft.operator.name][1], _ceil(channels, lanes)
        if draft.kind == "patches":
            return [_ceil(prod(draft.kernel) * channels, lanes)] * out_rows
        if draft.kind == "sum":
            return [words * (len(draft.inputs) - 1)] * out_rows
        if stage.reads:
            return _words(stage.reads, lanes)
        high = _inside(rows, out_rows, draft.kernel[0], draft.stride[0], draft.dilation[0], draft.pad[0])
        depth = channels // draft.groups
        return [_ceil(n * depth, lanes) if draft.kind == "conv" else n * words // stage.groups for n in high]

    def _height(self, draft: _Draft, stage: Stage) -> Height:
        """What a stage does along the rows."""
        taps, stride, dilation, before = (one[0] for one in (draft.kernel, draft.stride, draft.dilation, draft.pad))
        return Height(taps, stride, dilation, before, tuple(self._row_cycles(draft, stage)))


def _words(reads: Reads, lanes: int) -> list[int]:
    """Words of weights that one kernel column reads, for each row of the result."""
    tops = [y * reads.stride - reads.before for y in range(reads.results)]
    rows = [(max(0, -top), min(reads.high, reads.rows - top)) for top in tops]
    return [_ceil(b * reads.pixel, lanes) - a * reads.pixel // lanes if b > a else 0 for a, b in rows]


def _flat(whole: str, joins: Mapping[str, tuple[str, ...]], inner: Collection[str]) -> Iterator[str]:
    """The parts of a concatenation, with those of concatenations that only it reads."""
    for part in joins[whole]:
        if part in inner:
            yield from _flat(part, joins, inner)
        else:
            yield part


def _up(number: int, unit: int) -> int:
    """The next multiple of `unit`."""
    return _ceil(number, unit) * unit


def _ceil(number: int, unit: int) -> int:
    return -(-number // unit)


def _inside(size: int, outputs: int, taps: int, stride: int, dilation: int, pad: int) -> Iterable[int]:
    """For every output how many taps lie inside the map."""
    return [sum(0 <= o * stride - pad + t * dilation < size for t in range(taps)) for o in range(outputs)]


def stages(network: Network, banks: Banks, *, patches: bool = True) -> Stages:
    """Return the stages of a network on a machine with memory banks.

    Element-wise operators of one input are part of the stage before; what is concatenated is written in place.

    Raises InputError if the batch is not 1, nothing is computed, or an operator has no such program (products of two
    inputs, opaque operators, concatenations of rows or columns, of inputs, or of what others read too).

    `patches`: whether a first convolution that may be a product over patches is one; else it reads pixels as others do.
    """
    return _Reader(network, banks, patches).read()

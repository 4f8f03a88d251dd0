"""A group of stages cut into pieces: each piece is a network of its own, with its own part of every map.

Example
    Two convolutions of 3x3 over 8 columns, pieces of 4 columns of the last map. The first piece has columns 0 to 3 of
    it, so 0 to 4 of the map between and 0 to 5 of the input; the second one 4 to 7, 3 to 7 and 2 to 7. Columns 3 and 4
    between are computed twice, columns 2 to 5 of the input are loaded twice, and all weights are.

Sets
    stages of a group, in the network's order; maps m; the boxes of the last map: columns [i*w, (i+1)*w) by rows
    [j*h, (j+1)*h), the last ones fewer
Derived, from the last stage back
    box[m], the hull of what its readers in the group need of it for their boxes: of a window over s*x - p .. + k - 1
    the columns that lie in the map; of a sum the same box
Rules (a group that breaks one has no pieces; it may still run whole)
    (WHOLE)  the makers of a map that the group reads are all in the group, or all before it
    (SUM)    a map that a sum of the group reads is made in the same box as the sum's result; of a map from outside
             each sum reads a box of its own
    (ONCE)   of maps that are read outside of the group the boxes cover everything, and do not overlap
A group in one piece has all of every map.

Source: `heterogeneous_mapping_and_banks` 4.3 (pyramids of columns); pieces of rows are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from instances.network.feature_maps import FeatureMap, Height, Stage, Stages


class Span(NamedTuple):
    """Columns or rows [begin, end)."""

    begin: int
    end: int

    @property
    def size(self) -> int:
        """How many."""
        return self.end - self.begin

    def hull(self, other: Span | None) -> Span:
        """What holds both."""
        return self if other is None else Span(min(self.begin, other.begin), max(self.end, other.end))

    def window(self, taps: int, stride: int, dilation: int, before: int, size: int) -> Span:
        """What windows read that make this, of a map of so many; one column or row at least."""
        begin = self.begin * stride - before
        end = (self.end - 1) * stride - before + (taps - 1) * dilation + 1
        begin = min(max(0, begin), size - 1)
        return Span(begin, max(begin + 1, min(size, end)))


class Box(NamedTuple):
    """A part of a map."""

    columns: Span
    rows: Span


class Key(NamedTuple):
    """A map of a piece: the map of the network that it is a part of; the number of the sum that it is for, or -1."""

    map: str
    reader: int = -1


#: Columns (or rows) of all maps of a piece.
Parts = dict[Key, Span]


@dataclass(frozen=True)
class Piece:
    """The stages of a piece, s0, s1, ..., and their maps, named alike, others m0, m1, ...; equal if they are alike."""

    found: Stages
    views: tuple[tuple[Key, Box], ...] = field(compare=False)
    """What its maps are, one by one, in the first piece of this kind."""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.found.stages, tuple(self.found.maps.values()), self.found.leaving))


@dataclass(frozen=True)
class Group:
    """Stages [begin, end) of a network."""

    found: Stages
    begin: int
    end: int

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Those of the group."""
        return self.found.stages[self.begin : self.end]

    @cached_property
    def made(self) -> frozenset[str]:
        """The maps that they write."""
        return frozenset(stage.target for stage in self.stages)

    @cached_property
    def leaving(self) -> frozenset[str]:
        """Maps that are made here and needed outside."""
        mine = {stage.name for stage in self.stages}
        return frozenset(
            name for name in self.made if self.found.lasting(name) or not mine.issuperset(self.found.users[name])
        )

    @cached_property
    def sound(self) -> bool:
        """Rule (WHOLE)."""
        mine = {stage.name for stage in self.stages}
        elsewhere = {stage.target for stage in self.found.stages if stage.name not in mine}
        return not any(name in self.made & elsewhere for stage in self.stages for name in operands(stage))

    @property
    def last(self) -> FeatureMap:
        """The last map."""
        return self.found.maps[self.stages[-1].target]

    @cached_property
    def whole(self) -> Stages:
        """Its stages under their own names."""
        names = dict.fromkeys(name for stage in self.stages for name in (*operands(stage), stage.target))
        mine, users = {stage.name for stage in self.stages}, self.found.users
        return Stages(
            self.found.network, self.stages, {name: self.found.maps[name] for name in names},
            {name: tuple(user for user in users[name] if user in mine) for name in names}, leaving=self.leaving,
        )  # fmt: skip

    def pieces(self, columns: int, rows: int) -> dict[Piece, int] | None:
        """Return the pieces for boxes of so many columns and rows, and how many are alike; None if a rule is broken."""
        if not self.sound:
            return None
        if columns >= self.last.columns and rows >= self.last.rows:
            return {self._piece(self._whole(0), self._whole(1)): 1}
        across, down = self.spans(0, columns), self.spans(1, rows)
        if across is None or down is None:
            return None
        found: dict[Piece, int] = {}
        for one, many in self._alike(across, 0):
            for other, more in self._alike(down, 1):
                piece = self._piece(one, other)
                found[piece] = found.get(piece, 0) + many * more
        return found

    def piece(self, left: int, top: int, columns: int, rows: int) -> Piece:
        """Return the piece whose box of the last map, so large at most, begins at a column and a row."""
        last = self.last
        if columns >= last.columns and rows >= last.rows:
            return self._piece(self._whole(0), self._whole(1))
        across = self._parts(Span(left, min(left + columns, last.columns)), 0)
        return self._piece(across, self._parts(Span(top, min(top + rows, last.rows)), 1))

    def spans(self, axis: int, most: int) -> list[Parts] | None:
        """Return for every box along an axis (0: columns, 1: rows) its part of all maps; None if a rule is broken."""
        size = _sizes(self.last)[axis]
        made = [self._parts(Span(at, min(at + most, size)), axis) for at in range(0, size, most)]
        for name in self.leaving:
            spans = [parts[Key(name)] for parts in made if Key(name) in parts]
            if len(spans) < len(made) or not _tiled(spans, _sizes(self.found.maps[name])[axis]):
                return None
        for stage in self.stages:
            inner = [Key(name) for name in operands(stage) if stage.kind == "sum" and name in self.made]
            if any(parts[key] != parts[Key(stage.target)] for key in inner for parts in made):
                return None
        return made

    def _whole(self, axis: int) -> Parts:
        names = dict.fromkeys(name for stage in self.stages for name in (*operands(stage), stage.target))
        lies = {s.source: s.target for s in self.stages if s.kind == "patches" and s.pooled is None}
        return {Key(name): Span(0, _sizes(self.found.maps[lies.get(name, name)])[axis]) for name in names}

    def _parts(self, span: Span, axis: int) -> Parts:
        """The columns or rows of all maps, from the last one back; some are missing if nothing needs them."""
        found: Parts = {}
        for number in reversed(range(len(self.stages))):
            stage = self.stages[number]
            target = Key(stage.target)
            if stage.target in self.leaving and _sizes(self.found.maps[stage.target]) == _sizes(self.last):
                found[target] = span.hull(found.get(target))
            for name in operands(stage) if target in found else ():
                outside = stage.kind == "sum" and name not in self.made
                key = Key(name, number if outside else -1)
                found[key] = self._needs(stage, found[target], name, axis).hull(found.get(key))
        return found

    def _needs(self, stage: Stage, span: Span, name: str, axis: int) -> Span:
        """What a stage reads of an operand for a part of its target."""
        size = _sizes(self.found.maps[name])[axis]
        if stage.pooled is not None:
            return Span(0, size)
        if stage.kind in ("sum", "patches"):
            return span  # patches lie as the pixels of the result do
        if axis:
            return span.window(*self.found.heights[stage.name][:4], size)
        return span.window(stage.taps, stage.stride, stage.dilation, stage.before, size)

    def _alike(self, made: list[Parts], axis: int) -> Iterator[tuple[Parts, int]]:
        """Those that differ in nothing that a program sees, once, and how many there are."""
        found: dict[object, tuple[Parts, int]] = {}
        for parts in made:
            sizes, windows = tuple(span.size for span in parts.values()), list[object]()
            for stage in self.stages:
                high, target = self.found.heights[stage.name], parts[Key(stage.target)]
                stride = high.stride if axis else stage.stride
                windows += [
                    span.begin - target.begin * stride for key, span in parts.items() if key.map == stage.source
                ]
                windows += [high.cycles[target.begin : target.end]] if axis else []
            key = sizes, tuple(windows)
            found[key] = found.get(key, (parts, 0))[0], found.get(key, (parts, 0))[1] + 1
        yield from found.values()

    # ---- stages ------------------------------------------------------------------------------------------------------

    def _piece(self, across: Parts, down: Parts) -> Piece:
        boxes = {key: Box(across[key], down[key]) for key in reversed(across)}
        boxes = {
            key: box for key, box in boxes.items() if key.reader < 0 or boxes.get(Key(key.map)) != box
        }  # a sum reads what others read, if that is the same part
        alone = {stage.name: f"s{number}" for number, stage in enumerate(self.stages)}
        numbers = {key: alone.get(key.map, f"m{number}") for number, key in enumerate(boxes)}
        maps, stages = {numbers[key]: self._map(numbers[key], key, box) for key, box in boxes.items()}, list[Stage]()
        for number, stage in enumerate(self.stages):
            keys = [key if (key := Key(name, number)) in boxes else Key(name) for name in operands(stage)]
            names, target = [numbers[key] for key in keys], Key(stage.target)
            if stage.kind == "patches" and stage.pooled is None:  # a pixel each
                pixels = boxes[target].columns.size * boxes[target].rows.size
                maps[names[0]] = replace(maps[names[0]], columns=pixels, rows=1)
            one = self._stage(stage, boxes[target], boxes[keys[0]])
            stages.append(
                replace(one, name=f"s{number}", source=names[0], streamed=tuple(names[1:]), target=numbers[target])
            )
        users = {name: tuple(s.name for s in stages if name in operands(s)) for name in maps}
        leaving = frozenset(numbers[Key(name)] for name in self.leaving)
        found = Stages("piece", tuple(stages), maps, users, self._heights(boxes), leaving)
        return Piece(found, tuple(boxes.items()))

    def _heights(self, boxes: dict[Key, Box]) -> dict[str, Height]:
        """What the stages of a piece do along the rows."""
        made: dict[str, Height] = {}
        for number, stage in enumerate(self.stages):
            high, own = self.found.heights[stage.name], Key(stage.source, number)
            read, rows = boxes[own if own in boxes else Key(stage.source)], boxes[Key(stage.target)].rows
            before = high.before + read.rows.begin - rows.begin * high.stride
            whole = stage.pooled is not None
            cycles = high.cycles if whole else high.cycles[rows.begin : rows.end]
            made[f"s{number}"] = high._replace(before=high.before if whole else before, cycles=cycles)
        return made

    def _map(self, name: str, key: Key, box: Box) -> FeatureMap:
        return replace(self.found.maps[key.map], name=name, columns=box.columns.size, rows=box.rows.size)

    def _stage(self, stage: Stage, box: Box, read: Box) -> Stage:
        """A stage for a box of its target."""
        if stage.pooled is not None:
            return stage  # it reads all of its map
        high, (columns, rows) = self.found.heights[stage.name], box
        cycles = high.cycles[rows.begin : rows.end]
        one = replace(
            stage, written=stage.written // self.found.maps[stage.target].rows * rows.size, tap_cycles=sum(cycles),
            first_cycles=cycles[0],
        )  # fmt: skip
        wide = columns.size
        if stage.kind not in ("patches", "sum"):
            before = stage.before + read.columns.begin - columns.begin * stage.stride
            after = (columns.size - 1) * stage.stride + stage.reach + 1 - before - read.columns.size
            one = replace(one, before=before, after=after)
            firsts = [x * stage.stride - before for x in range(columns.size)]
            wide = sum(0 <= f + t * stage.dilation < read.columns.size for f in firsts for t in range(stage.taps))
        if stage.reads is not None:
            top = stage.reads.before + read.rows.begin - rows.begin * stage.reads.stride
            one = replace(one, reads=replace(stage.reads, before=top, rows=read.rows.size, results=rows.size))
        return replace(one, cycles=stage.groups * sum(cycles) * wide)


def _sizes(one: FeatureMap) -> tuple[int, int]:
    return one.columns, one.rows


def _tiled(spans: Sequence[Span], size: int) -> bool:
    """Whether spans cover so many, one after the other."""
    ends = [0, *(span.end for span in spans)]
    return ends[-1] == size and [span.begin for span in spans] == ends[:-1]


def operands(stage: Stage) -> tuple[str, ...]:
    """The maps that a stage reads."""
    return (stage.source, *stage.streamed)

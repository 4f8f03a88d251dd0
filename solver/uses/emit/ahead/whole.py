"""What lies on chip while a plan runs with its transfers ahead: rows of maps and filters, from which step to which.

A **tensor** has rows, each maybe in blocks of channels; a row of a block is an object. Of what a layer makes it is
there from the step that makes it to the last one that reads it or has to wait for its store; of what is loaded from its
guard on. An **in-place** result has the objects of the map whose place it takes. **Filters** are there from the guard
of their transfer to the last step that computes them. So in every step there is no more than the plan counts: `Whole`
compares.

A nest that cuts input channels keeps **sums** on chip, a tensor of their own; a result that does not stay has their
objects: each of its elements is made where a sum lay, or before it, channel after channel (column after column in
"CHW"), so that no sum is lost. A nest may load its input again, in other **turns**, each with objects of its own.

Of layers that take turns for blocks of channels the map between has these blocks: the rows of one are there from the
step that makes them to the last one of that block that reads them. An example: a pool of 3 rows behind a convolution, a
row of each in a visit, 2 blocks: in the first step of a visit lie 3 rows of block 0 and the 2 of block 1 that its next
turn reads as well.

Steps count from 1 over the whole network, as those of `hwmodels.timeline.schedule`.
"""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate, product
from typing import NamedTuple

import numpy as np

from formulations.fusion.latency.timelines import Carried
from formulations.fusion.nest_steps import NestSteps
from formulations.fusion.steps import GroupSteps, Part, Piece
from formulations.fusion.work import Brought, Tile, Work, filters_of, rows_of, rows_read, tiles_of, work_of
from hwmodels.fusion.replay.strips import as_seen, seen
from hwmodels.schedule import FusedRun, LayerRun
from hwmodels.timeline.price import occupancy
from hwmodels.timeline.schedule import Load, Store
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.stores import Pitch, Stores
from instances.network.workload import Layer
from solver.uses.emit.ahead.placing import Ints, NoAddresses, most, placed
from solver.uses.emit.ahead.placing import Part as Place
from solver.uses.emit.ahead.seen import check_rows, flattens
from solver.uses.emit.groups import Part as Channels
from solver.uses.emit.groups import as_read
from solver.uses.emit.onchip import OnChip, check_passes

#: As parts of the memory, how much more is tried where there are no addresses.
_MORE = 1, 2, 4, 8
#: Beyond every step.
_NEVER = 2**40


@dataclass(eq=False)
class Tensor:
    """Rows of a map that are on chip, and the tensor off the chip that they are moved to or from."""

    layer: Layer
    """The one that makes it (OUT) or reads it (IN)."""
    number: int
    """Of that layer."""
    operand: str
    cuts: tuple[int, ...]
    """The first channels of its blocks, and the end."""
    rows: int
    left: int
    right: int
    """`left`, `right`: its columns that are ever on chip."""
    images: int
    element: int
    place: Tensor | None = None
    """Whose objects it has."""
    first: Ints = field(init=False)
    last: Ints = field(init=False)
    """`first`, `last`: steps of every object, (rows, blocks)."""
    layout: str = "HWC"
    """On chip, of a row: pixels one after the other, or ("CHW") channels."""
    turns: int = 1
    """How often it may be on chip at a time; blocks count turn by turn."""
    pitch: tuple[int, int] = 1, 1
    """Rows and columns off the chip from one of its rows and columns to the next."""
    parts: list[list[list[Place]]] = field(init=False)
    """Where the units of every object lie, by row and block; a unit is a pixel, or a channel of a row."""

    def __post_init__(self) -> None:
        shape = self.rows, self.turns * (len(self.cuts) - 1)
        self.first, self.last = np.full(shape, _NEVER), np.full(shape, -1)
        self.parts = [[[] for _ in range(shape[1])] for _ in range(self.rows)]

    @property
    def unit(self) -> Ints:
        """Bytes of a unit of every block."""
        wide = np.diff(self.cuts) if self.layout == "HWC" else np.full(len(self.cuts) - 1, self.right - self.left)
        return np.tile(wide * self.element, self.turns)

    @property
    def channels(self) -> int:
        """Of a pixel."""
        return self.cuts[-1]

    @property
    def sizes(self) -> Ints:
        """Bytes of every object."""
        blocks = np.diff(self.cuts) * self.images * (self.right - self.left) * self.element
        return np.broadcast_to(np.tile(blocks, self.turns), self.first.shape)

    @property
    def owner(self) -> Tensor:
        """The tensor that has its objects."""
        return self if self.place is None else self.place.owner

    def blocks(self, channels: tuple[int, int], turn: int = 0) -> range:
        """The numbers of the blocks that have some channels."""
        begin, end = bisect(self.cuts, channels[0]) - 1, bisect_left(self.cuts, channels[1])
        before = turn * (len(self.cuts) - 1)
        return range(before + begin, before + end)

    def part(self, rows: tuple[int, int], channels: tuple[int, int], turn: int = 0) -> tuple[slice, slice]:
        """The objects of some rows and channels."""
        blocks = self.blocks(channels, turn)
        return slice(*rows), slice(blocks.start, blocks.stop)

    def there(self, part: tuple[slice, slice], first: int, last: int) -> None:
        """Some objects are there in some steps."""
        owner = self.owner
        np.minimum(owner.first[part], first, out=owner.first[part])
        np.maximum(owner.last[part], last, out=owner.last[part])

    def read(self, part: tuple[slice, slice], step: int) -> None:
        """Some objects are read in a step; raises InputError if one is not there by then."""
        if (self.owner.first[part] > step).any():
            raise InputError(f"step {step} reads rows of {self.layer.name} that are not on chip")
        self.there(part, step, step)


@dataclass
class Filters:
    """Filters `begin` to `end` of a layer that a transfer brings, with some of their channels, each in one piece."""

    layer: int
    begin: int
    end: int
    low: int
    high: int
    """The channels."""
    size: int
    """Bytes of one of them."""
    first: int
    due: int
    last: int
    """They lie in steps `first` to `last`, and are there from step `due` on."""
    parts: list[Place] = field(default_factory=list)

    def address(self, f: int) -> int:
        """Where a filter lies."""
        at = f - self.begin
        for address, number in self.parts:
            if at < number:
                return address + at * self.size
            at -= number
        raise IndexError(f)


class Rows(NamedTuple):
    """Rows and channels of a tensor."""

    tensor: Tensor
    rows: tuple[int, int]
    channels: tuple[int, int]
    turn: int = 0

    @property
    def blocks(self) -> range:
        """The blocks that have these channels."""
        return self.tensor.blocks(self.channels, self.turn)


class Fetched(NamedTuple):
    """What a nest loads of its input for a step."""

    due: int
    tile: Tile
    turn: int


@dataclass
class Move:
    """A transfer of rows and channels of some tensors, or of filters."""

    tensors: list[Rows] = field(default_factory=list)
    filters: Filters | None = None


class Whole:
    """All steps and transfers of a plan, with an address for whatever lies on chip.

    Raises InputError, whenever something is asked for, where C of transfers ahead is not written: names what.
    """

    def __init__(self, chip: OnChip, machine: Machine, carried: Carried) -> None:
        self.chip, self.machine, self.found, self.carried = chip, machine, chip.found, carried
        self.laid, self.parts = carried.laid, carried.laid.parts
        if machine.in_bytes != machine.out_bytes:
            raise InputError(f"inputs have {machine.in_bytes} bytes, results {machine.out_bytes}")
        self.layers = [layer for run, begin, end in zip(chip.runs, chip.begins, chip.begins[1:], strict=False)
                       for layer in _seen(self.found, run).layers[begin:end]]  # fmt: skip
        """As they see their inputs, which may be sampled."""
        self.begins = [0, *accumulate(len(part.steps) for part in self.parts)]
        self.work = [work_of(source) for source in carried.sources]
        self.loads = [_loads_of(*one) for one in zip(carried.sources, self.parts, self.work, strict=True)]
        """By run what a nest loads of its input, by step; nothing of others."""
        self.made: dict[int, Tensor] = {}
        self.sums: dict[int, Tensor] = {}
        """By layer what it adds up, where it does not so at once."""
        self.given: dict[tuple[int, int], list[tuple[Channels, Tensor]]] = {}
        """By layer and input the channels that each tensor gives."""
        self.moves: list[Move] = []
        """In the order of their numbers."""
        self._there: dict[int, list[Tensor]] = {}
        """By map the tensors that are on chip behind a run."""
        self._lay_out()
        self._count()
        self._place()

    # ---- tensors -----------------------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        for r, begin in enumerate(self.chip.begins[:-1]):
            run, layers = self.chip.runs[r], range(begin, self.chip.begins[r + 1])
            for s, (rows, _) in run.residents.items():
                if rows < self.found.stores[s].rows:
                    raise InputError(f"{self.found.stores[s].name}: some of its rows stay on chip")
            for t in layers:
                self.made[t] = self._result(r, t)
            loaded = dict[tuple[int, int], list[tuple[int, Tensor]]]()
            for t in layers:
                for number in range(self.found.layers[t].inputs):
                    self.given[t, number] = list(self._given(r, t, number, loaded))
            self._stay(r, layers, loaded)
            self._moves(r, loaded)

    def _result(self, r: int, t: int) -> Tensor:
        """What a layer makes; in blocks of channels where these are stored one by one, or another one takes turns."""
        layer, source, run = self.found.layers[t], self.carried.sources[r], self.chip.runs[r]
        cuts, works = {0, layer.g * layer.m}, [one for one in self.work[r] if one.layer == t]
        if isinstance(run, FusedRun) and any(one.first <= t < one.last for one in run.blocks):
            cuts |= {one.first for one in works}
        s = self.found.writes[t]
        tiles = tiles_of(source, "OUT") if isinstance(source, NestSteps) else []
        apart = cuts | {tile.channels[0] for tile in tiles}
        stored = any(isinstance(one, Store) for one in self.parts[r].moves)
        work = works[0]
        span = work.left, work.right
        machine, sizes = self.machine, (layer.r, *span, layer.b)
        make = partial(Tensor, layer, t, "OUT", layout=machine.out_layout)
        made = make(tuple(sorted(apart if stored else cuts)), *sizes, machine.out_bytes)
        if not (work.opens and work.closes):
            self.sums[t] = make(tuple(sorted(apart)), *sizes, machine.psum_bytes)
            made.place = None if s in run.residents else self.sums[t]
        if s in run.in_place:
            there = self._there.get(run.in_place[s], [])
            if len(there) != 1 or not _alike(there[0], made):
                raise InputError(f"the result of {layer.name} takes the place of a map that lies otherwise")
            made.place = there[0]
        return made

    def _given(
        self, r: int, t: int, number: int, loaded: dict[tuple[int, int], list[tuple[int, Tensor]]]
    ) -> Iterator[tuple[Channels, Tensor]]:
        """Yield the channels of a layer's input by the tensors that they are in."""
        run = self.chip.runs[r]
        name, s = self.chip.inputs(t)[number]
        if self.found.stores[s].zeros:
            raise InputError(f"{self.found.stores[s].name}: zeros")
        if not isinstance(run, FusedRun):
            read = as_read(self.found, t, s)
            every = self._outside(r, s, t, name, t, loaded)
            yield from self._flat(t, s, name, self._covered(t, s, name, Channels(0, 0, read.g * read.n), every))
            return
        for part in self.chip.parts(run, t, number):
            stream = run.streams[part.stream]
            if not stream.outside:
                check_rows(self.chip, s, t, name, self.found.layers[stream.maker])
                yield from self._flat(t, s, name, [(part, self.made[stream.maker])])
                continue
            reader, source = self.chip.reference(run, part.stream)
            every = self._outside(r, s, reader, source, stream.maker, loaded)
            yield from self._flat(t, s, name, self._covered(t, s, name, part, every))

    def _covered(
        self, t: int, s: int, name: str, part: Channels, every: Sequence[tuple[int, Tensor]]
    ) -> list[tuple[Channels, Tensor]]:
        """As `_cut`; raises InputError for channels that no tensor has: what layers make is joined with other maps."""
        found = list(_cut(part, every))
        flat = any(one.operand == "OUT" and flattens(self.chip, s, t, name, one.layer) for _, one in every)
        if not flat and sum(one.number for one, _ in found) < part.number:
            raise InputError(f"{name}: a map from outside is joined with what layers make")
        return found

    def _outside(
        self, r: int, s: int, t: int, name: str, due: int, loaded: dict[tuple[int, int], list[tuple[int, Tensor]]]
    ) -> list[tuple[int, Tensor]]:
        """The tensors of a map that a run finds on chip or loads, each with its first channel as a layer sees it."""
        if (due, s) in loaded:
            return loaded[due, s]
        found = self._there.get(s, []) if s in self.chip.runs[r].residents else []
        if not (stays := bool(found)):
            span = self._columns(r, s, t, name, due)
            found = [self._loaded(r, one, self._offset(s, t, name, self.made[one]), span) for one in self._makers(s)]
            found = found or [self._input(r, t, s, span)]
            if (pitch := _seen(self.found, self.chip.runs[r]).pitch.get(due)) is not None:
                found = [self._sampled(one, due, pitch) for one in found]
        for one in found:
            if one.operand == "OUT":
                check_rows(self.chip, s, t, name, one.layer)
        made = [(self._offset(s, t, name, one), one) for one in found]
        if not stays:
            loaded[due, s] = made
        return made

    def _makers(self, s: int) -> list[int]:
        """The layers that have made parts of a map so far: nobody reads the others yet."""
        return [t for t, _ in self.found.stores[s].parts if t in self.made]

    def _cuts(self, r: int, offset: int, channels: int) -> tuple[int, ...]:
        """Channels of a tensor between which a layer by itself loads it in blocks, and all of them."""
        found = {one.tile.channels[0] - offset for one in self.loads[r]}
        return tuple(sorted({0, channels, *(c for c in found if 0 < c < channels)}))

    def _turns(self, r: int) -> int:
        return 1 + max((one.turn for one in self.loads[r]), default=0)

    def _columns(self, r: int, s: int, t: int, name: str, due: int) -> tuple[int, int]:
        """The columns of a map that a run loads."""
        source, makers = self.carried.sources[r], [self.found.layers[u] for u in self._makers(s)]
        if makers and flattens(self.chip, s, t, name, makers[0]):
            return 0, makers[0].c
        if isinstance(source, NestSteps):
            return tiles_of(source, "IN")[0].columns if self.loads[r] else (0, self.found.operand(t, s).columns)
        streams = source.group.streams
        k = next(k for k, one in enumerate(streams) if one.outside and (one.maker, one.store) == (due, s))
        left, right = source.time.spans(k)[1][:, 0].tolist()
        return left, right

    def _loaded(self, r: int, t: int, offset: int, span: tuple[int, int]) -> Tensor:
        """A new tensor of what a layer made and stored, whose first channel a run sees as that one."""
        made = self.made[t]
        sizes = self._cuts(r, offset, made.channels), made.rows, *span, made.images, made.element
        return Tensor(made.layer, t, "OUT", *sizes, layout=made.layout, turns=self._turns(r))

    def _input(self, r: int, t: int, s: int, span: tuple[int, int]) -> Tensor:
        """Of what no layer makes, as a layer reads it."""
        read = as_read(self.found, t, s)
        sizes = self._cuts(r, 0, read.g * read.n), read.h, *span, read.b, self.machine.in_bytes
        return Tensor(read, t, "IN", *sizes, layout=self.machine.in_layout, turns=self._turns(r))

    def _sampled(self, one: Tensor, t: int, pitch: Pitch) -> Tensor:
        """The same of those rows and columns alone that a layer reads."""
        if one.layout == "CHW" and pitch.across > 1:
            raise InputError(f"{self.layers[t].name}: samples columns of a map whose channels lie apart")
        return replace(one, rows=self.layers[t].h, pitch=(pitch.down, pitch.across))

    def _offset(self, s: int, t: int, name: str, one: Tensor) -> int:
        """The first channel of a tensor in what a layer reads under a name."""
        if one.operand == "IN":
            return 0
        chip, layer = self.chip.chip(s), self.found.layers[t]
        if flattens(self.chip, s, t, name, one.layer):
            return 0
        there, part = chip.values.get(name), chip.values.get(one.layer.name)
        seen = there.reshaped(part.shape) if there and part else None
        if part and seen and seen.same_places(part):
            return 0
        there, part = check_passes(chip, name, one.layer.name, layer)
        return (part.offset - there.offset) // there.pitch[1]

    def _flat(
        self, t: int, s: int, name: str, every: Iterable[tuple[Channels, Tensor]]
    ) -> Iterator[tuple[Channels, Tensor]]:  # fmt: skip
        """Say of which tensors the elements are channels."""
        read = as_read(self.found, t, s)
        for part, one in every:
            if one.operand == "OUT" and flattens(self.chip, s, t, name, one.layer):
                yield Channels(part.stream, 0, read.g * read.n, 0, (one.layer.r, one.layer.c)), one
            else:
                yield part, one

    def _stay(self, r: int, layers: range, loaded: Mapping[tuple[int, int], list[tuple[int, Tensor]]]) -> None:
        """Note what is on chip behind a run."""
        run, there = self.chip.runs[r], dict(self._there)
        self._there = {s: there[s] for s in run.residents if s in there}
        for (_, s), some in loaded.items():
            if s in run.residents:
                self._there[s] = [one for _, one in some]
        for t in layers:
            if (s := self.found.writes[t]) in run.residents:
                self._there.setdefault(s, []).append(self.made[t])

    # ---- transfers ---------------------------------------------------------------------------------------------------

    def _moves(self, r: int, loaded: Mapping[tuple[int, int], list[tuple[int, Tensor]]]) -> None:
        part, source, work = self.parts[r], self.carried.sources[r], self.work[r]
        filters, pieces_of = filters_of(source, part, work), self._pieces(r)
        stored = tiles_of(source, "OUT") if isinstance(source, NestSteps) else []
        fetched = {one.due: one for one in self.loads[r]}
        for (operand, t), pieces, one, which in zip(part.names, pieces_of, part.moves, filters, strict=True):
            move = Move()
            if operand == "W" and isinstance(one, Load):
                move.filters = self._filters(r, t, which, one)
            elif not pieces or operand == "PSUM":
                raise InputError(f"{self.found.layers[t].name}: its {operand} is moved otherwise than in rows")
            elif len(pieces) > 1:
                raise InputError(f"{self.found.layers[t].name}: several maps in one transfer")
            elif isinstance(one, Store):
                made, (piece,) = self.made[t], pieces
                rows, channels = (piece.begin, piece.end), (0, made.channels)
                if stored:
                    rows, channels, _ = stored[one.released - 1]
                move.tensors = [Rows(made, rows, channels)]
            else:
                every, (piece,), turn = loaded[t, pieces[0].store], pieces, 0
                if one.due in fetched:
                    _, (rows, channels, _), turn = fetched[one.due]
                    piece = piece._replace(begin=rows[0], end=rows[1], first=channels[0], last=channels[1])
                if self.found.operand(t, piece.store).rows < every[0][1].rows:  # channels of one pixel
                    if len(self.loads[r]) > 1:
                        raise InputError(f"{self.found.layers[t].name}: loads a map that it flattens in pieces")
                    piece = piece._replace(begin=0, end=every[0][1].rows, first=0, last=every[0][1].channels)
                found = (_of_piece(tensor, piece, offset, turn) for offset, tensor in every)
                move.tensors = [some for some in found if some is not None]
            self.moves.append(move)

    def _pieces(self, r: int) -> list[tuple[Piece, ...]]:
        """Of every transfer of a run the rows that it moves, as its layer counts them; of nests their tiles say so."""
        source, part = self.carried.sources[r], self.parts[r]
        if isinstance(source, NestSteps):
            return part.pieces
        each = zip(part.pieces, rows_of(source), strict=True)
        return [tuple(piece._replace(begin=rows[0], end=rows[1]) for piece in some) for some, rows in each]

    def _filters(self, r: int, t: int, which: Brought, one: Load) -> Filters:
        """The filters of a transfer, until the last step that computes them."""
        begin, work, layer = self.begins[r], self.work[r], self.found.layers[t]
        if isinstance(self.carried.sources[r], NestSteps):  # until others take their place
            dues = (move.due for name, move in zip(self.parts[r].names, self.parts[r].moves, strict=True)
                    if name[0] == "W" and isinstance(move, Load) and move.due > one.due)  # fmt: skip
            last = min(dues, default=work[-1].step + 1) - 1
        else:
            mine = [other for other in work if other.layer == t]
            step = next(other for other in mine if other.step == one.due)
            streamed = step.streamed and which.first >= step.last - step.streamed
            steps = [other.step for other in mine if other.first < which.last and which.first < other.last]
            last = one.due if streamed else max(steps, default=one.due)
        low, high = which.low, min(which.high, layer.n)
        bias = self.machine.bias_bytes if layer.bias else 0
        size = (high - low) * layer.kh * layer.kw * self.machine.w_bytes + bias
        return Filters(t, which.first, which.last, low, high, size, _NEVER, begin + one.due, begin + last)

    # ---- from when to when -------------------------------------------------------------------------------------------

    def _count(self) -> None:
        """Note the steps in which everything is there."""
        for k, one in zip(self.laid.order, self.laid.timeline.transfers, strict=True):
            move = self.moves[k]
            first, last = (one.guard, one.due) if isinstance(one, Load) else (one.released, one.limit - 1)
            for tensor, rows, channels, turn in move.tensors:
                tensor.there(tensor.part(rows, channels, turn), first, last)
            if move.filters is not None:
                move.filters.first = first
        for r, some in enumerate(self.work):
            for work in (one for one in some if one.begin < one.end):
                step = self.begins[r] + work.step
                self._made(work, step)
                self._read(work, step, self.turn(r, step))

    def turn(self, r: int, step: int) -> int:
        """The turn of the input that a step of a run reads."""
        return next((one.turn for one in reversed(self.loads[r]) if one.due <= step - self.begins[r]), 0)

    def _made(self, one: Work, step: int) -> None:
        """Results, and sums that are not complete before or after a step."""
        for tensor in (self.made[one.layer] if one.closes else None, self.sums.get(one.layer)):
            if tensor is not None:
                tensor.there(tensor.part((one.begin, one.end), (one.first, one.last)), step, step)

    def _read(self, one: Work, step: int, turn: int) -> None:
        layer = self.layers[one.layer]
        groups, high = (one.first // layer.m, -(-one.last // layer.m)), min(one.high, layer.n)
        for number, lacks in enumerate(layer.patterns):
            rows = rows_read(layer, one, lacks)
            for part, tensor in self.given[one.layer, number]:
                if part.flat is not None:
                    tensor.read(tensor.part((0, part.flat[0]), (0, tensor.channels)), step)
                    continue
                lo, hi = (0, high) if "g" in lacks else (groups[0] * layer.n, (groups[1] - 1) * layer.n + high)
                lo, hi = max(lo + one.low, part.first), min(hi, part.first + part.number)
                if lo < hi:
                    shift = part.begin - part.first
                    tensor.read(tensor.part(rows, (lo + shift, hi + shift), turn), step)

    # ---- addresses ---------------------------------------------------------------------------------------------------

    @cached_property
    def tensors(self) -> list[Tensor]:
        """What layers make and read, each once."""
        given = [tensor for some in self.given.values() for _, tensor in some]
        return list(dict.fromkeys([*self.made.values(), *self.sums.values(), *given]))

    def _place(self) -> None:
        """Find addresses; raises NoAddresses if none are found."""
        objects, tables = list[list[Place]](), list[Ints]()
        for one in (tensor for tensor in self.tensors if tensor.place is None):
            used = np.argwhere(one.last >= 0)
            objects += [one.parts[y][block] for y, block in used]
            at = tuple(used.T)
            tables.append(np.stack([one.sizes[at], one.unit[used[:, 1]], one.first[at], one.last[at]]))
        for filters in (move.filters for move in self.moves if move.filters is not None):
            whole = filters.size * (filters.end - filters.begin)
            objects.append(filters.parts)
            tables.append(np.array([[whole], [filters.size], [filters.first], [filters.last]]))
        size, unit, first, last = np.concatenate(tables, axis=1)
        self._compare(most(size, first, last))
        base, memory = self.machine.reserved_bytes, self.machine.memories["ocm"]
        found = placed(size, unit, first, last, memory - base)
        if isinstance(found, int):
            rooms = (memory + memory * k // 64 for k in _MORE)
            more = next((n for n in rooms if isinstance(placed(size, unit, first, last, n - base), list)), None)
            said = f": there are some in {more:,} (--memory), so plan with less" if more else ""
            what = f"its {len(objects):,} rows and filters in {memory:,}"
            raise NoAddresses(f"no addresses are found for {what}{said}", found)
        for parts, made in zip(objects, found, strict=True):
            parts += [(base + address, number) for address, number in made]

    def _compare(self, there: Ints) -> None:
        """Raise InputError if there is more in a step than the plan counts."""
        counted = occupancy(self.laid.timeline)
        more = np.flatnonzero(there[1 : len(counted) + 1] > counted[: len(there) - 1])
        if len(more):
            t = int(more[0])
            raise InputError(f"step {t + 1} has {there[t + 1]:,} bytes on chip, the plan counts {counted[t]:,}")


def _seen(found: Stores, run: FusedRun | LayerRun) -> Stores:
    """The network as the layers of a run see it."""
    return as_seen(found, run) if isinstance(run, FusedRun) else found


def _alike(one: Tensor, other: Tensor) -> bool:
    """Whether elements of two tensors lie in the same places of their objects."""
    shapes = {(t.rows, t.left, t.right, t.images, t.element, t.cuts, t.layout) for t in (one, other)}
    return len(shapes) == 1


def _cut(part: Channels, every: Sequence[tuple[int, Tensor]]) -> Iterator[tuple[Channels, Tensor]]:
    """Yield the channels of a part of an input by the tensors that have them."""
    for offset, tensor in every:
        lo = max(part.begin, offset)
        hi = min(part.begin + part.number, offset + tensor.channels)
        if lo < hi:
            yield Channels(part.stream, part.first + lo - part.begin, hi - lo, lo - offset), tensor


def _of_piece(tensor: Tensor, piece: Piece, offset: int, turn: int) -> Rows | None:
    """What of a tensor a transfer loads, if it does."""
    lo, hi = max(0, piece.first - offset), min(tensor.channels, piece.last - offset)
    return Rows(tensor, (piece.begin, min(piece.end, tensor.rows)), (lo, hi), turn) if lo < hi else None


def _loads_of(source: GroupSteps | NestSteps, part: Part, work: Sequence[Work]) -> list[Fetched]:
    """What a nest with one input loads of it, each in the first turn that has nothing of it before.

    Where windows slide a load brings what the one before it lacks, and is in its turn.
    """
    if isinstance(source, GroupSteps) or source.layer.inputs > 1:
        return []
    dues = sorted(one.due for name, one in zip(part.names, part.moves, strict=True)
                  if name[0] == "IN" and isinstance(one, Load))  # fmt: skip
    tiles, slides = tiles_of(source, "IN") if dues else [], list[list[int]]()
    for due in dues:
        step = work[due - 1]
        if slides and seen(source.layer, "rows", (step.begin, step.end))[0] < tiles[due - 1].rows[0]:
            slides[-1].append(due)
        else:
            slides.append([due])
    found, turns = list[Fetched](), list[list[Tile]]()
    for some in slides:
        mine = [tiles[due - 1] for due in some]
        turn = next((k for k, there in enumerate(turns) if not any(a.meets(b) for a, b in product(mine, there))), -1)
        if turn < 0:
            turn = len(turns)
            turns.append([])
        turns[turn] += mine
        found += [Fetched(due, tile, turn) for due, tile in zip(some, mine, strict=True)]
    return found

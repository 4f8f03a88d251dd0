"""Hybrid: which groups there may be, whole and in pieces, as pins have it; and the blocks of a network.

**Blocks**, as a user or the published technique gives them (`heterogeneous_mapping_and_banks` 4.4.5).

Example: ResNet-50 has the 16 residual blocks of the source, of four and five stages; what is before them is a block
(the first convolution and its pool), what is behind them another one.

Branches
    A network parts where a single map is alive. What lies between two such places and has several stages is a block; so
    are stages that follow each other between these, ended by each pool, and ahead of maps of one column.

**Options** of a group, whole or in pieces, each with a lower bound that rises until it is what it costs (`Pair`).

Example: stages 2 to 6 of ResNet-50 at 512x512, in 16 pieces of 8 columns. At first the option counts with the weights
16 times and the input of all pieces; then with what no program of its pieces is below; then with the best programs.

Sizes
    of a map of W columns pieces of ``ceil(W / k)`` columns, for every k: of all sizes with as many pieces the one whose
    largest piece is the smallest. Rows alike.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import count, pairwise
from typing import NamedTuple

import numpy as np

from formulations.banks.network import NEVER, Point
from formulations.clock import ENDLESS, Clock
from formulations.hybrid.bounds import Costs, Known, boxes, cycles
from formulations.pins import Decision, Pins
from instances.errors import InputError
from instances.network.feature_maps import Stage, Stages
from instances.network.pieces import Group, Key, Parts, Piece, Span, operands


def branches(found: Stages) -> list[tuple[int, int]]:
    """Return the blocks of a network, as first stages and those behind the last ones."""
    blocks: list[tuple[int, int]] = []
    begin = 0
    for at, end in sections(found):
        stage = found.stages[at]
        if end - at > 1:
            blocks += [(begin, at)] * (begin < at)
            blocks.append((at, end))
            begin = end
        elif found.maps[stage.target].columns == 1 and begin < at:
            blocks.append((begin, at))
            begin = at
        elif stage.kind == "pool":
            blocks.append((begin, end))
            begin = end
    last = len(found.stages)
    return [*blocks, (begin, last)] if begin < last else blocks


def sections(found: Stages) -> list[tuple[int, int]]:
    """Return the stages between two places where a single map is alive."""
    last_use = dict.fromkeys(found.maps, -1)
    for at, stage in enumerate(found.stages):
        last_use |= dict.fromkeys(operands(stage), at)
        last_use[stage.target] = max(last_use[stage.target], at)
    made: list[tuple[int, int]] = []
    begin = 0
    for at, stage in enumerate(found.stages):
        alive = {one.target for one in found.stages[: at + 1] if last_use[one.target] > at}
        alive |= {name for one in found.stages[: at + 1] for name in operands(one) if last_use[name] > at}
        if alive <= {stage.target}:
            made.append((begin, at + 1))
            begin = at + 1
    return made


def blocks_of(found: Stages, said: str) -> list[tuple[int, int]]:
    """Read blocks: ``branches``, or the last stages of all blocks but the last one, with slashes between.

    Raises InputError if a name is no stage, or they are not in order.
    """
    if said == "branches":
        return branches(found)
    number = {stage.name: at + 1 for at, stage in enumerate(found.stages)}
    names = said.split("/") if said in number or "/" not in said else _split(said, number)
    if unknown := [name for name in names if name not in number]:
        raise InputError(f"pin blocks={said}: no stage is called {unknown[0]}; branches, or the last stages of blocks")
    ends = list(dict.fromkeys((0, *(number[name] for name in names), len(found.stages))))
    if ends != sorted(ends):
        raise InputError(f"pin blocks={said}: the stages are not in the network's order")
    return list(pairwise(ends))


def _split(said: str, number: dict[str, int]) -> list[str]:
    """Names with slashes between, which may have slashes themselves: the longest ones."""
    names, parts = list[str](), said.split("/")
    while parts:
        ends = [end for end in range(len(parts), 0, -1) if "/".join(parts[:end]) in number] or [1]
        names.append("/".join(parts[: ends[0]]))
        parts = parts[ends[0] :]
    return names


#: Stages of a group in pieces, at most, unless a pin says otherwise.
LENGTH = 8

DECISIONS = {
    "length": Decision(f"length<=4: stages of a group in pieces; <= {LENGTH} unless said"),
    "pieces": Decision("pieces<=16: pieces of a group; pieces=1: every stage runs whole"),
    "rows": Decision("rows=no: pieces are whole columns, as published", ("yes", "no")),
    "blocks": Decision(
        "blocks=branches: groups in pieces are blocks (a residual branch each), others whole ones; or the last stages "
        "of blocks, with slashes between; free: any stages", ("free", "branches"), open=True,
    ),
}  # fmt: skip


class Cut(NamedTuple):
    """The stages [begin, end) as a group, in one piece or in several."""

    begin: int
    end: int
    whole: bool


class Space:
    """What may be chosen; raises InputError for blocks that are none."""

    def __init__(self, found: Stages, pins: Pins) -> None:
        self.pins, self.stages = pins, len(found.stages)
        wanted = pins.of("blocks")
        if any(pin.op != "=" for pin in wanted) or len(wanted) > 1:
            raise InputError(f"pin {wanted[-1]}: blocks are said once, by =")
        said = wanted[0].value if wanted else "free"
        #: The blocks, or None if groups may be any stages.
        self.blocks = None if said == "free" else blocks_of(found, said)
        self.rows = pins.allows("rows", "yes")
        self._ends = {0, *(end for _, end in self.blocks or ())}

    def pieces(self, number: int) -> bool:
        """Whether a group may have so many pieces."""
        return self._keeps("pieces", number)

    @property
    def most(self) -> int:
        """Pieces that a group may have, at most."""
        return min((int(pin.value) for pin in self.pins.of("pieces") if pin.op in ("<=", "=")), default=NEVER)

    def allows(self, cut: Cut) -> bool:
        """Whether stages may be a group: in pieces blocks, if there are any, in one piece several ones."""
        if cut.whole:
            return self._keeps("pieces", 1) and (self.blocks is None or {cut.begin, cut.end} <= self._ends)
        length = cut.end - cut.begin
        if not (self._keeps("length", length) if self.pins.of("length") or self.blocks else length <= LENGTH):
            return False
        return self.most > 1 and (self.blocks is None or (cut.begin, cut.end) in self.blocks)

    def groups(self) -> list[Cut]:
        """All that there may be, by where they begin and end."""
        ends = range(self.stages + 1)
        cuts = (Cut(begin, end, whole) for begin in ends for end in ends[begin + 1 :] for whole in (True, False))
        return list(filter(self.allows, cuts))

    def _keeps(self, name: str, value: int) -> bool:
        return all(bool(pin.keeps(np.array([value]))[0]) for pin in self.pins.of(name))


# ---- the options of a group ------------------------------------------------------------------------------------------

#: More than anything costs.
NO_WAY = Point(NEVER, NEVER)


class Grid(NamedTuple):
    """Columns and rows of a piece of the last map."""

    columns: int
    rows: int


def sizes(whole: int) -> list[int]:
    """Sizes of pieces, from the whole to a single column or row."""
    return list(dict.fromkeys(-(-whole // number) for number in range(1, whole + 1)))


class Option:
    """A group in pieces of one size."""

    def __init__(self, costs: Costs, group: Group, grid: Grid) -> None:
        self.costs, self.group, self.grid = costs, group, grid

    @cached_property
    def pieces(self) -> dict[Piece, int]:
        """Pieces that differ, and how many there are of each; none if a rule is broken."""
        return self.group.pieces(*self.grid) or {}

    @property
    def whole(self) -> bool:
        """Whether it is in one piece."""
        last = self.group.last
        return self.grid == (last.columns, last.rows)

    @property
    def cycles(self) -> int:
        """Of computing all pieces."""
        return sum(many * sum(stage.cycles for stage in piece.found.stages) for piece, many in self.pieces.items())

    def floor(self, measure: str) -> Point:
        """What it does not cost less than, without a search."""
        return self._sum({piece: self.costs.floor(piece, timed=measure == "time") for piece in self.pieces})

    def bound(self, measure: str, limit: Clock = ENDLESS) -> tuple[Point, bool]:
        """Costs with the best programs, and whether that is proven."""
        known = self.known(measure, limit)
        proven = all(one is None or one.proven for one in known.values())
        return self._sum({piece: one.bound if one else None for piece, one in known.items()}), proven

    def known(self, measure: str, limit: Clock = ENDLESS) -> dict[Piece, Known | None]:
        """The best programs of its pieces."""
        found: dict[Piece, Known | None] = {}
        for piece in self.pieces:
            one = self.costs.fewest(piece) if measure == "bytes" else self.costs.least(piece, measure, limit)
            found[piece] = one
            if one is None:
                break  # one piece that cannot run is enough
        return found

    def _sum(self, points: dict[Piece, Point | None]) -> Point:
        total = Point(0, 0)
        for piece, many in self.pieces.items():
            point = points.get(piece)
            if point is None:
                return NO_WAY
            total = Point(total.bytes + many * point.bytes, total.ticks + many * point.ticks)
        return total if self.pieces else NO_WAY


class Entry(NamedTuple):
    """An option with a lower bound of the measure, and how it is known: roughly, by its pieces, or exactly."""

    least: int
    level: int
    number: int
    option: Option


class Pair:
    """All options of a group for a measure, the one that may be the least first.

    At first one piece counts with a bound of its stages, several ones with what each has to do.

    `ticks`: what the stages of the network take, at least.
    """

    def __init__(self, costs: Costs, group: Group, cut: Cut, measure: str, space: Space, ticks: Sequence[int]) -> None:
        self.costs, self.group, self.measure, self.space = costs, group, measure, space
        self.cut, self.grid = cut, Grid(group.last.columns, group.last.rows)
        self.heap, self._number = list[Entry](), count()
        #: The best option that is known exactly, and what it costs.
        self.incumbent: tuple[int, Option] | None = None
        if not group.sound:
            return
        if not cut.whole:
            self._push(Point(self._rough(), self._rough()), -1, Option(costs, group, Grid(0, 0)))
        elif (least := costs.bare(group.whole)) is not None:
            least = least._replace(ticks=max(least.ticks, sum(ticks[cut.begin : cut.end])))
            self._push(least, 1, Option(costs, group, self.grid))

    def _measured(self, point: Point) -> int:
        return point.bytes if self.measure == "bytes" else point.ticks

    def _push(self, point: Point, level: int, option: Option) -> None:
        if self._measured(point) < NEVER:
            heapq.heappush(self.heap, Entry(self._measured(point), level, next(self._number), option))

    @property
    def least(self) -> int:
        """What no option is below."""
        return self.heap[0].least if self.heap else NEVER

    @property
    def best(self) -> Option | None:
        """The option that costs this, if it is known exactly."""
        return self.heap[0].option if self.heap and self.heap[0].level == 2 else None

    def refine(self, limit: Clock) -> bool:
        """Know more of the option that may be the least; says whether anything is left that it could know."""
        entry = heapq.heappop(self.heap)
        if entry.level < 0:
            for option, least in self.spread():
                self._push(Point(least, least), 0, option)
        elif entry.level == 0:
            self._push(entry.option.floor(self.measure), 1, entry.option)
        else:
            point, proven = entry.option.bound(self.measure, limit)
            self._push(point, 2 if proven else 1, entry.option)
            value = self._measured(point)
            if proven and value < (NEVER if self.incumbent is None else self.incumbent[0]):
                self.incumbent = value, entry.option
            return proven
        return True

    def every(self) -> dict[Grid, tuple[Option, int]]:
        """All options with a rough bound, whatever is known of them."""
        if self.cut.whole:
            return {self.grid: (Option(self.costs, self.group, self.grid), 0)} if self.group.sound else {}
        made = self.spread() if self.group.sound else ()
        return {option.grid: (option, least) for option, least in made}

    # ---- rough bounds ------------------------------------------------------------------------------------------------

    def _rough(self, pieces: int = 2) -> int:
        """So many times the weights, and the maps that leave; or work done once."""
        stages, maps, clock = self.group.stages, self.group.found.maps, self.costs.clock
        if self.measure != "bytes":
            work = cycles(self.group.found, stages, boxes(self.group.found, stages, self.group.leaving))
            return work * clock.cycle + pieces * len(stages) * clock.fixed
        weights = sum(stage.weight_bytes + stage.bias_bytes for stage in stages)
        left = (stage for stage in stages if stage.target in self.group.leaving)
        return pieces * weights + sum(stage.written * maps[stage.target].columns for stage in left)

    def spread(self) -> Iterator[tuple[Option, int]]:
        """All options in pieces with what they load, or compute."""
        last = self.group.last
        across = self._along(0, sizes(last.columns))
        down = self._along(1, sizes(last.rows) if self.space.rows else [last.rows])
        for columns, one in across.items():
            for rows, other in down.items():
                pieces = one.pieces * other.pieces
                if pieces > 1 and self.space.pieces(pieces):
                    option = Option(self.costs, self.group, Grid(columns, rows))
                    yield option, self._spent(pieces, one, other)

    def _along(self, axis: int, wanted: list[int]) -> dict[int, Axis]:
        """What pieces need along an axis, by size; not of sizes that break a rule."""
        found = {size: self.group.spans(axis, size) for size in wanted}
        return {size: Axis.of(self.group, axis, made) for size, made in found.items() if made is not None}

    def _spent(self, pieces: int, across: Axis, down: Axis) -> int:
        """Bytes, or ticks, of all pieces, at least."""
        if self.measure != "bytes":
            clock, stages = self.costs.clock, self.group.stages
            cycles = sum(s.groups * n * m for s, n, m in zip(stages, across.cycles, down.cycles, strict=True))
            return cycles * clock.cycle + pieces * len(stages) * clock.fixed
        total = self._rough(pieces)
        for key, (columns, alike) in across.sums.items() if self.costs.banks.unread == "loaded" else ():
            if key.map not in self.group.made:
                rows, same = down.sums[key]
                total += (columns * rows - alike * same) * self.group.found.maps[key.map].stored
        return total


class Axis(NamedTuple):
    """What pieces of one size need along an axis, all together."""

    pieces: int
    sums: dict[Key, tuple[int, int]]
    """Of every map the columns or rows; those among them that are not loaded, as others read the same."""
    cycles: tuple[int, ...]
    """Of every stage: kernel columns inside the map; cycles of rows."""

    @classmethod
    def of(cls, group: Group, axis: int, made: list[Parts]) -> Axis:
        """Add up."""
        sums = {
            key: (
                sum(parts[key].size for parts in made),
                sum(parts[key].size for parts in made if key.reader >= 0 and parts[key] == parts.get(Key(key.map))),
            )
            for key in made[0]
        }
        cycles = [_cycles(group, stage, axis, [parts[Key(stage.target)] for parts in made]) for stage in group.stages]
        return cls(len(made), sums, tuple(cycles))


def _cycles(group: Group, stage: Stage, axis: int, spans: list[Span]) -> int:
    """What a stage computes along an axis."""
    high = group.found.heights[stage.name]
    if stage.pooled is not None:
        computed = Span(0, group.found.computed(stage)[axis])
        spans = [computed for _ in spans]
    if axis:
        return sum(sum(high.cycles[span.begin : span.end]) for span in spans)
    if stage.kind in ("sum", "patches"):
        return sum(span.size for span in spans)
    columns, size = group.found.maps[stage.source].columns, max(span.end for span in spans)
    inside = [
        sum(0 <= x * stage.stride - stage.before + t * stage.dilation < columns for t in range(stage.taps))
        for x in range(size)
    ]
    return sum(sum(inside[span.begin : span.end]) for span in spans)

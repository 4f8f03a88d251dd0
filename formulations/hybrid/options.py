"""F7 hybrid: the options of a group, whole or in pieces, each with a lower bound that rises until it is what it costs.

Example: stages 2 to 6 of ResNet-50 at 512x512, in 16 pieces of 8 columns. At first the option counts with the weights
16 times and the input of all pieces; then with what no program of its pieces is below; then with the best programs.

Sizes
    of a map of W columns pieces of ``ceil(W / k)`` columns, for every k: of all sizes with as many pieces the one whose
    largest piece is the smallest. Rows alike.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import cached_property
from itertools import count
from typing import NamedTuple

from formulations.banks.bounds import Point
from formulations.banks.graph import NEVER
from formulations.clock import ENDLESS, Clock
from formulations.hybrid.costs import Costs, Known, floor
from formulations.hybrid.space import Cut, Space
from instances.pieces import Group, Key, Parts, Piece

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

    def floor(self) -> Point:
        """What it does not cost less than, without a search."""
        return self._sum({piece: self.costs.floor(piece) for piece in self.pieces})

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

    At first the option in one piece counts with `costs.floor`, and all those in pieces together with what each moves.
    """

    def __init__(self, costs: Costs, group: Group, measure: str, space: Space) -> None:
        self.costs, self.group, self.measure, self.space = costs, group, measure, space
        cut, self.heap = Cut(group.begin, group.end), list[Entry]()
        self._number = count()
        least = floor(group.whole, costs) if space.whole(cut) and group.sound else None
        if least is not None:
            last = group.last
            self._push(least, 1, Option(costs, group, Grid(last.columns, last.rows)))
        if space.cut(cut) and group.sound:
            self._push(Point(self._rough(), self._rough()), -1, Option(costs, group, Grid(0, 0)))

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
            self._spread()
        elif entry.level == 0:
            self._push(entry.option.floor(), 1, entry.option)
        else:
            point, proven = entry.option.bound(self.measure, limit)
            level = 2 if proven else 1
            self._push(point, level, entry.option)
            return proven
        return True

    # ---- rough bounds ------------------------------------------------------------------------------------------------

    def _rough(self) -> int:
        """Work, or two times the weights and the maps that leave."""
        stages, maps = self.group.stages, self.group.found.maps
        if self.measure != "bytes":
            return sum(stage.cycles for stage in stages) * self.costs.clock.cycle
        return 2 * self._weights + sum(
            stage.written * maps[stage.target].columns for stage in stages if stage.target in self.group.leaving
        )

    @cached_property
    def _weights(self) -> int:
        return sum(stage.weight_bytes + stage.bias_bytes for stage in self.group.stages)

    def _spread(self) -> None:
        """Bound every size by what its pieces load."""
        for option, least in self.spread():
            self._push(Point(least, least), 0, option)

    def spread(self) -> Iterator[tuple[Option, int]]:
        """All options in pieces with a rough bound."""
        last = self.group.last
        across = self._along(0, sizes(last.columns))
        down = self._along(1, sizes(last.rows) if self.space.rows else [last.rows])
        kept = self._rough() - 2 * self._weights
        for columns, (wide, one) in across.items():
            for rows, (high, other) in down.items():
                pieces = wide * high
                if pieces > 1 and self.space.pieces(pieces):
                    moved = kept + pieces * self._weights + self._loads(one, other)
                    option = Option(self.costs, self.group, Grid(columns, rows))
                    yield option, moved if self.measure == "bytes" else self._rough()

    def _along(self, axis: int, wanted: list[int]) -> dict[int, tuple[int, dict[Key, tuple[int, int]]]]:
        """By size the number of pieces, and of every view the sum of its columns or rows, and that of equal ones."""
        found = {}
        for size in wanted:
            made = self.group.spans(axis, size)
            if made is not None:
                found[size] = len(made), _sums(made)
        return found

    def _loads(self, across: dict[Key, tuple[int, int]], down: dict[Key, tuple[int, int]]) -> int:
        """Bytes of the maps from outside, for all pieces."""
        if self.costs.banks.unread == "left":
            return 0
        total = 0
        for key, (columns, alike) in across.items():
            if key.map not in self.group.made:
                rows, same = down[key]
                total += (columns * rows - alike * same) * self.group.found.maps[key.map].stored
        return total


def _sums(made: list[Parts]) -> dict[Key, tuple[int, int]]:
    return {
        key: (
            sum(parts[key].size for parts in made),
            sum(parts[key].size for parts in made if key.reader >= 0 and parts[key] == parts.get(Key(key.map))),
        )
        for key in made[0]
    }  # fmt: skip

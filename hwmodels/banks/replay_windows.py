"""What a column of a result is made of, and the words that are read for it, for the replay of bank programs."""

from __future__ import annotations

from dataclasses import dataclass

from instances.feature_maps import Stage
from instances.machine import Banks

__all__ = ["Element", "must_load", "taps", "windows"]


def windows(stage: Stage, computed: tuple[int, int], columns: int) -> list[range]:
    """For every column of the result the columns, of so many, that it is made of; `computed`: its columns and rows."""
    results, rows = computed
    if stage.kind == "patches":
        return [range(x * rows, (x + 1) * rows) for x in range(results)]
    if stage.kind == "whole":
        return [range(columns)] * results
    first = [x * stage.stride - stage.before for x in range(results)]
    return [range(max(0, f), min(columns, f + (stage.taps - 1) * stage.dilation + 1)) for f in first]


def taps(stage: Stage, result: int, columns: int) -> int:
    """Columns of the window that lie inside a map of so many."""
    if stage.kind in ("patches", "sum"):
        return 1
    first = result * stage.stride - stage.before
    return sum(0 <= first + t * stage.dilation < columns for t in range(stage.taps))


def must_load(columns: int, read: int, tile: int, banks: Banks) -> int:
    """Columns that a stage has to load if its windows read the first so many: all, or in whole tiles."""
    return columns if banks.unread == "loaded" else min(columns, -(-read // tile) * tile)


@dataclass
class Element:
    """The processing element as it reads a map word by word, pixel by pixel, in the order of the pass.

    Attributes
    ----------
    order : list of int
        The columns of the map, in the order of the pass.
    tile : int
        Columns of a tile.
    read : tuple of int, optional
        The word that was read last: its tile, its number.
    """

    stage: Stage
    banks: Banks
    order: list[int]
    tile: int
    read: tuple[int, int] | None = None

    def cycles(self, result: int) -> int:
        """Cycles of a column of the result, for one group of filters."""
        stage, columns, spent = self.stage, len(self.order), 0
        if stage.reads is None:
            return stage.tap_cycles * taps(stage, result, columns)
        places = self._places(result)
        for y in range(stage.reads.results):
            for place in places:
                spent += self._kernel_column(place, y)
        return spent

    def touched(self, result: int) -> list[tuple[int, int]]:
        """The columns of the map that a column's first pixel reads, by place, each with the cycles ahead of it."""
        return self._first_pixel(result)[0]

    def pixel(self, result: int) -> int:
        """Cycles of a column's first pixel."""
        return self.stage.first_cycles if self.stage.kind == "patches" else self._first_pixel(result)[1]

    def _first_pixel(self, result: int) -> tuple[list[tuple[int, int]], int]:
        spent, found, read = 0, list[tuple[int, int]](), self.read
        for place in self._places(result):
            found.append((place, spent))
            spent += self.stage.first_cycles if self.stage.reads is None else self._kernel_column(place, 0)
        self.read = read
        return found, spent

    def _places(self, result: int) -> list[int]:
        """The places of the columns that a window reads, in the order of the pass."""
        stage = self.stage
        if stage.kind == "sum":
            return [self.order.index(result)]
        first = result * stage.stride - stage.before
        window = {first + t * stage.dilation for t in range(stage.taps)}
        return [place for place, column in enumerate(self.order) if column in window]

    def _kernel_column(self, place: int, y: int) -> int:
        """Walk through the weights of one kernel column that lie over the map; a word of them a cycle."""
        reads, word = self.stage.reads, self.banks.lanes
        assert reads is not None
        over = [k for k in range(reads.high) if 0 <= y * reads.stride - reads.before + k < reads.rows]
        if not over:
            return 0
        row = y * reads.stride - reads.before + over[0]
        address = (place % self.tile * reads.rows + row) * reads.pixel
        weights = range(over[0] * reads.pixel, (over[-1] + 1) * reads.pixel)
        spent = weights[-1] // word - weights[0] // word + 1
        if weights[0] % word < address % word and self.read != (place // self.tile, address // word):
            spent += 1  # only then the first product has all its bytes
        self.read = place // self.tile, (address + len(weights) - 1) // word
        return spent

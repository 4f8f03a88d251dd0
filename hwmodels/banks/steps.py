"""Control steps of one stage: tiles of its map are loaded into banks and processed from them, in order.

A stage goes through the columns of its map once, from the end where tiles are already on chip (`Pass`). What is on chip
is always one run of columns [first, loaded), in tiles of P columns, one a bank; `made` columns of the result are done.

Load
    One more tile, into a free bank.
Process k
    The first k tiles are consumed and their banks are free afterwards. A window that begins in them and ends in the
    next tile is done with them, if that tile is on chip or on its way; if none is, the next load begins where the next
    window does (the columns that both need are loaded again).
Results
    Of the target's tiles `keep` stay on chip: the last ones (mirrored: the next stage begins with what was made last,
    the first columns go to DRAM first) or the first ones. A bank is taken when the first column of its tile is made; it
    must be free while the tiles are processed. The average of the result (`Goal.average`) takes its bank once the
    stage has let its last tile go.

Source: `heterogeneous_mapping_and_banks` 4.1.3 (Fig. 4.4), 4.2.1 (DFS and DLS), Appendix A.1-A.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple


class State(NamedTuple):
    """Columns [first, loaded) are on chip, `made` columns of the result are done.

    `again`: some of the columns that were on chip at the start are loaded again.
    """

    first: int
    loaded: int
    made: int
    again: bool = False


@dataclass(frozen=True)
class Goal:
    """Which tiles of the result stay on chip: `keep` of them, the last ones if `mirrored`, else the first ones."""

    columns: int
    tile: int
    keep: int
    mirrored: bool
    average: int = 0
    """Columns of the stage's result if the goal is their average, a single column; else 0."""

    @property
    def tiles(self) -> int:
        """Tiles of the whole result."""
        return -(-self.columns // self.tile)

    @property
    def kept(self) -> int:
        """Columns that stay on chip."""
        return min(self.columns, self.keep * self.tile)

    @property
    def spilled(self) -> int:
        """Columns that go to DRAM only."""
        return self.columns - self.kept

    @property
    def stays(self) -> tuple[int, int]:
        """The columns that stay, in the order in which they are made: from the first to before the second."""
        return (self.spilled, self.columns) if self.mirrored else (0, self.kept)

    @cached_property
    def banks(self) -> tuple[int, ...]:
        """Banks taken once so many columns are done, as tiles are processed."""
        if self.average:
            return (0,) * (self.average + 1)
        return tuple(self._taken(made) for made in range(self.columns + 1))

    def beside(self, retain: int, tiles: int) -> int:
        """Banks for what stays, as the last of so many tiles is processed, of which `retain` stay, and afterwards."""
        last = min(retain + 1, tiles)
        return max(last, retain + self.keep) if self.average else last + self.keep

    def _taken(self, made: int) -> int:
        if not self.mirrored:
            return min(self.keep, -(-made // self.tile))
        return max(0, self.keep - (self.columns - made) // self.tile) if made > self.spilled else 0


@dataclass(frozen=True)
class Pass:
    """One stage in one direction."""

    columns: int
    tile: int
    """`columns`, `tile`: of the map that is read, as far as the pass goes."""
    results: int
    """Columns of the result."""
    reach: int = 0
    stride: int = 1
    before: int = 0
    """`reach`, `stride`, `before`: A window over the columns ``x*stride - before .. + reach`` gives the column x of the
    result.
    """
    patches: int = 0
    """Columns of the map that each column of the result takes, if they are patches (a pixel each, no windows); else 0.
    """
    beyond: int = 0
    """Columns of the map after those."""
    _known: dict[tuple[State, int], State | None] = field(default_factory=dict, repr=False, compare=False)
    _units: dict[tuple[int, int, int, int], tuple[tuple[int, ...], tuple[tuple[int, int], ...]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @cached_property
    def all_tiles(self) -> int:
        """Tiles that the pass goes through."""
        return -(-self.columns // self.tile)

    def start(self, on_chip: int) -> State:
        """The state with the first `on_chip` tiles on chip."""
        return State(0, min(self.columns, on_chip * self.tile), 0)

    def tiles(self, state: State) -> int:
        """Tiles on chip."""
        return -(-(state.loaded - state.first) // self.tile)

    def load(self, state: State) -> State:
        """Load the next tile."""
        return State(state.first, min(self.columns, state.loaded + self.tile), state.made, state.again)

    def process(self, state: State, tiles: int) -> State | None:
        """Process the first tiles on chip; None where windows would be lost with them."""
        key = state, tiles
        if key not in self._known:
            self._known[key] = self._processed(state, tiles)
        return self._known[key]

    def _processed(self, state: State, tiles: int) -> State | None:
        end = min(state.loaded, state.first + tiles * self.tile)
        made = self._made(end, state.loaded)
        if end == self.columns:
            return State(end, end, self.results)
        if state.loaded > end:
            return State(end, state.loaded, made, state.again) if made == self.begun(end) else None
        over = self.patches or made == self.results  # no window is next
        restart = end if over else max(0, min(end, made * self.stride - self.before))
        return State(restart, restart, made, True) if restart > state.first or made > state.made else None

    def units(self, state: State, tiles: int, made: int) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """When a step that ends with `made` columns done gets on, and what it frees.

        For each tile on chip the columns that need nothing beyond it; the tiles of the step, each with the columns that
        are done once it is needed no more.
        """
        key = state.first, state.loaded, tiles, made
        if key not in self._units:
            ends = [min(state.loaded, state.first + (n + 1) * self.tile) for n in range(self.tiles(state))]
            upto = tuple(min(made, self.complete(end)) for end in ends)
            free = tuple((number, min(made, self.begun(end))) for number, end in enumerate(ends[:tiles]))
            self._units[key] = upto, free
        return self._units[key]

    def complete(self, end: int) -> int:
        """Columns of the result that need nothing beyond the columns before `end`."""
        if self.patches or end == self.columns:
            return self.begun(end) if end < self.columns else self.results
        return max(0, min(self.results, (end - 1 + self.before - self.reach) // self.stride + 1))

    @cached_property
    def completes(self) -> tuple[int, ...]:
        """`complete` of every number of columns."""
        return tuple(map(self.complete, range(self.columns + 1)))

    def begun(self, end: int) -> int:
        """Columns of the result whose windows begin before `end`."""
        if self.patches:
            return min(self.results, -(-end // self.patches))
        return max(0, min(self.results, (end - 1 + self.before) // self.stride + 1))

    def _made(self, end: int, loaded: int) -> int:
        """Columns of the result that are done with the columns before `end`, when those before `loaded` are there."""
        if loaded == self.columns or self.patches:
            return self.begun(end)
        return min(self.begun(end), self.complete(loaded))

"""What a stage does on a machine with memory banks: its control steps, the cycles of its columns, the clock of DRAM.

**Control steps** (`Pass`). Tiles of the stage's map are loaded into banks and processed from them, in order. A stage
goes through the columns of its map once, from the end where tiles are already on chip. What is on chip is
always one run of columns [first, loaded), in tiles of P columns, one a bank; `made` columns of the result are done.

Load
    One more tile, into a free bank.
Process k
    The first k tiles are consumed and their banks are free afterwards. A window that begins in them and ends in the
    next tile is done with them, if that tile is on chip or on its way; if none is, the next load begins where the next
    window does (the columns that both need are loaded again).
Results
    Of the target's tiles `keep` stay on chip: the last ones (mirrored: the next stage begins with what was made last,
    the first columns go to DRAM first) or the first ones. A bank is taken when the first column of its tile is made; it
    must be free while the tiles are processed. The average of the result (`TileGoal.average`) takes its bank once the
    stage has let its last tile go.

Source: `heterogeneous_mapping_and_banks` 4.1.3 (Fig. 4.4), 4.2.1 (DFS and DLS), Appendix A.1-A.2.

**Cycles of the columns of a result** (`column_cycles`). What a convolution reads from banks that are read in words, in
closed form. An example: a 3x3 kernel over columns of 35 pixels of 48 bytes, words of 64: the second column of a tile
begins at byte 1680 of its bank, 16 bytes into a word. Its first window, rows 0 and 1 below the padding, has weights
that begin 48 bytes into their word: no bubble. The second one begins at byte 1680 too, its weights at 0: a word is read
before the first product, a cycle more.

Sets
    x, columns of the result in the order of the pass; y, its rows; t, kernel columns inside the map
Given
    N bytes of a word (`Banks.lanes`); C bytes of a pixel, R rows of a column, P columns of a tile; rows a to b - 1 of
    the kernel that lie inside the map at y, the first one over the row r of the map
Cycles
    cycles(x) = sum over y and t of ``ceil(b*C / N) - floor(a*C / N) + bubble(x, y, t)``
    place(x, t) = ``(p mod P) * R * C`` with p the place of the map's column in the pass
    bubble(x, y, t) = 1 if ``a*C mod N < (place + r*C) mod N`` (the first word has to be read before products begin),
    and the word ``(place + r*C) div N`` of this tile is not the one read last; else 0

A tile that begins again with columns of the tile before it (Process, above) lies in its bank as if it did not.

Source: the public MIDAP simulator of 2020-09-02 (its alignment submodule; there a tile that begins again lies at the
bank's first byte).

**The clock** (`DramClock`). What a DRAM request takes (`heterogeneous_mapping_and_banks` Eq. 4.1, 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from instances.machine.machine import Banks, Transfer
from instances.network.feature_maps import FeatureMap, Reads, Stage


class PassState(NamedTuple):
    """Columns [first, loaded) are on chip, `made` columns of the result are done.

    `again`: some of the columns that were on chip at the start are loaded again.
    """

    first: int
    loaded: int
    made: int
    again: bool = False


@dataclass(frozen=True)
class TileGoal:
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
    _known: dict[tuple[PassState, int], PassState | None] = field(default_factory=dict, repr=False, compare=False)
    _units: dict[tuple[int, int, int, int], tuple[tuple[int, ...], tuple[tuple[int, int], ...]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @cached_property
    def all_tiles(self) -> int:
        """Tiles that the pass goes through."""
        return -(-self.columns // self.tile)

    def start(self, on_chip: int) -> PassState:
        """The state with the first `on_chip` tiles on chip."""
        return PassState(0, min(self.columns, on_chip * self.tile), 0)

    def tiles(self, state: PassState) -> int:
        """Tiles on chip."""
        return -(-(state.loaded - state.first) // self.tile)

    def load(self, state: PassState) -> PassState:
        """Load the next tile."""
        return PassState(state.first, min(self.columns, state.loaded + self.tile), state.made, state.again)

    def process(self, state: PassState, tiles: int) -> PassState | None:
        """Process the first tiles on chip; None where windows would be lost with them."""
        key = state, tiles
        if key not in self._known:
            self._known[key] = self._processed(state, tiles)
        return self._known[key]

    def _processed(self, state: PassState, tiles: int) -> PassState | None:
        end = min(state.loaded, state.first + tiles * self.tile)
        made = self._made(end, state.loaded)
        if end == self.columns:
            return PassState(end, end, self.results)
        if state.loaded > end:
            return PassState(end, state.loaded, made, state.again) if made == self.begun(end) else None
        over = self.patches or made == self.results  # no window is next
        restart = end if over else max(0, min(end, made * self.stride - self.before))
        return PassState(restart, restart, made, True) if restart > state.first or made > state.made else None

    def units(self, state: PassState, tiles: int, made: int) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
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


Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Columns:
    """What the columns of a result take, in the order of the pass."""

    cycles: tuple[int, ...]
    """Of every column of the result, for one group."""
    touched: tuple[tuple[tuple[int, int], ...], ...]
    """For every column of the result the places (in the pass) of the map's columns that its first pixel reads, each
    with the cycles ahead of it.
    """
    pixel: int = 0
    """Cycles of the first pixel of the first one that takes any."""

    def __hash__(self) -> int:
        return hash(self.cycles)


@lru_cache(maxsize=2048)
def column_cycles(stage: Stage, banks: Banks, source: FeatureMap, results: int, *, backwards: bool = False) -> Columns:
    """Return the cycles of every column of the result, for one group, in the order of the pass.

    Parameters
    ----------
    source : FeatureMap
        What the stage reads.
    results : int
        Columns of the result.
    backwards : bool
        Whether the pass begins with the last column.
    """
    if stage.kind == "patches":
        return Columns((stage.tap_cycles,) * results, ((),) * results, stage.first_cycles)
    if stage.kind == "sum":
        return Columns((stage.tap_cycles,) * results, tuple(((x, 0),) for x in range(results)))
    firsts = [x * stage.stride - stage.before for x in range(results)]
    places = [
        [place for t in range(stage.taps) if 0 <= (place := first + t * stage.dilation) < source.columns]
        for first in (reversed(firsts) if backwards else firsts)
    ]
    cycles = tuple(stage.tap_cycles * len(one) for one in places)
    if backwards:  # the kernel is mirrored too: its columns are read in the order of the pass
        places = [[source.columns - 1 - place for place in reversed(one)] for one in places]
    if stage.reads is None:
        first = stage.first_cycles
        pixel = first * next((len(one) for one in places if one), 0)
        return Columns(cycles, tuple(tuple((p, at * first) for at, p in enumerate(one)) for one in places), pixel)
    more, ahead = _bubbles(stage.reads, banks.lanes, source.tile(banks), tuple(map(tuple, places)))
    touched, pixel = [], 0
    for one, bubbles in zip(places, ahead, strict=True):
        *spent, end = accumulate((stage.first_cycles + bubble for bubble in bubbles), initial=0)
        touched.append(tuple(zip(one, spent, strict=True)))
        pixel = pixel or end
    return Columns(tuple(n + m for n, m in zip(cycles, more, strict=True)), tuple(touched), pixel)


@lru_cache(maxsize=2048)
def _bubbles(
    reads: Reads, word: int, tile: int, places: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Bubbles of every column of the result, by the places in the pass of the columns that its window reads.

    Also those of its first pixel, by place.
    """
    tops = np.arange(reads.results) * reads.stride - reads.before
    begin, end = np.maximum(0, -tops), np.minimum(reads.high, reads.rows - tops)
    inside = end > begin
    tops, begin, end = tops[inside], begin[inside], end[inside]
    counts = [len(one) for one in places]
    flat, column = np.array([p for one in places for p in one], dtype=np.int64), reads.rows * reads.pixel
    tiles, base = flat // tile, flat % tile * column
    pixels = len(tops)
    if not pixels or not len(flat):
        return (0,) * len(places), tuple((0,) * count for count in counts)
    # in the order in which they are read: by column of the result, by its row, by column of the map
    owner = np.repeat(np.arange(len(places)), counts)
    begun = zip(np.cumsum(counts) - counts, counts, strict=True)
    grids = ((at + np.arange(n)[:, None]) * pixels + np.arange(pixels) for at, n in begun)  # place * pixels + row
    order = np.concatenate([grid.T.reshape(-1) for grid in grids])
    taken, row = order // pixels, order % pixels
    first = base[taken] + (tops + begin)[row] * reads.pixel
    last = (base[taken] + (tops + end)[row] * reads.pixel - 1) // word
    late = (begin[row] * reads.pixel) % word < first % word
    again = np.zeros(len(order), dtype=bool)
    again[1:] = (first[1:] // word == last[:-1]) & (tiles[taken][1:] == tiles[taken][:-1])
    found = late & ~again
    ahead = np.zeros(len(flat), dtype=np.int64)
    if inside[0]:
        ahead[taken[row == 0]] = found[row == 0]
    by_column = np.split(ahead, np.cumsum(counts)[:-1])
    more = np.bincount(owner[taken], weights=found, minlength=len(places)).astype(np.int64).tolist()
    return tuple(more), tuple(tuple(one.tolist()) for one in by_column)


@dataclass(frozen=True)
class DramClock:
    """Ticks of DRAM requests, of a cycle, and of what every stage takes beside its columns.

    A request of B bytes has the latency ``D_init + P_d*floor(B / P_sz) + R_d*ceil(B / R_period)`` (Eq. 4.2; call, row
    and refresh of the machine's transfer model), then takes the bus for ``B / BW_m`` (Eq. 4.1).
    """

    dram: Transfer
    cycle: int
    fixed: int = 0
    overtakes: bool = False
    """Whether weights (and streamed columns) overtake loads of maps (`Banks.bus` = "weights_first"). Weights of B bytes
    asked for at t are on the bus from ``s = max(t + latency, end of the weights before)``, whatever maps are under way;
    a load that would have ended after s ends ``B / BW_m`` later. Latencies and transfers are whole cycles then, rounded
    up.
    """
    relaxed: bool = False
    """No machine, but a bound of one that overtakes: loads are delayed by weights, though not by those that were asked
    for last when a column waits for the load. All times are sums and maxima then, and none is later than it is.
    """

    def latency(self, size: int) -> int:
        """Ticks before a request is on the bus, if the bus is free (Eq. 4.2)."""
        dram = self.dram
        rows = dram.row_ticks * (size // dram.row_bytes) if dram.row_bytes else 0
        refreshes = dram.refresh_ticks * -(-size // dram.refresh_bytes) if dram.refresh_bytes else 0
        return self._whole(dram.call_ticks + rows + refreshes)

    def _whole(self, ticks: int) -> int:
        return -(-ticks // self.cycle) * self.cycle if self.overtakes else ticks

    def served(self, now: int, bus: int, size: int) -> int:
        """When a request made now is served, if the bus is free from `bus` on; now if it is empty."""
        if not size:
            return now
        return max(now + self.latency(size), bus) + self.transfer(size)

    def bound(self) -> DramClock:
        """The clock whose times are sums and maxima, none later than those of this one."""
        return replace(self, relaxed=self.overtakes)

    def transfer(self, size: int) -> int:
        """Ticks of a request on the bus."""
        return self._whole(self.dram.byte_ticks * size)

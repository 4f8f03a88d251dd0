"""How the authors' compiler plans one stage under MIN: which tiles of the result stay, and the control steps.

Steps
    As long as tiles are to come, load as many as there are free banks, but leave banks for what these tiles add to the
    result (`_Run._limited`); where none may be loaded, process the tiles on chip whose results have banks
    (`_Run._finished`). A bank is taken for a tile of the result before it is made. If nothing may be processed, all
    tiles of a result that is stored from its end give their banks back, and one bank more is left to the map; a result
    that is stored from its begin stays as far as it has banks.
What stays
    n banks at least are left to the map. Convolutions try n = 1, 2, .. and take the first one with the least weights
    and twice the spilled bytes; others take 1. The result is stored from its end (the next stage runs mirrored) if not
    all of its tiles fit in the banks that are left.

Banks are counted as the compiler does: a path that begins forgets which banks wait for a concatenation, so it counts on
more than are free.

Source: the public MIDAP simulator of 2020-09-02; `heterogeneous_mapping_and_banks` 4.2.2, Appendix A.1-A.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from formulations.banks.tasks import Action
from hwmodels.banks.steps import Pass


@dataclass(frozen=True)
class Given:
    """What a stage finds."""

    stage: Pass
    """From the end where its map begins."""
    columns: int
    tile: int
    """`columns`, `tile`: of the result."""
    banks: int
    free: int
    aside: int
    """`banks`, `free`, `aside`: all of them; those that hold nothing; those that the compiler does not count on."""
    on_chip: int
    tiles: int
    """`on_chip`, `tiles`: tiles of its map, on chip and all."""
    stay: int | None
    """How many of them stay for other paths, if the stage begins one."""
    fixed: bool
    """Whether nothing of the result is to be decided, and `mirrored` says how it is stored."""
    mirrored: bool = False

    @property
    def results(self) -> int:
        """Tiles of the result."""
        return -(-self.columns // self.tile)

    @property
    def counted(self) -> int:
        """Banks that the compiler counts on when the stage begins."""
        return self.banks - self.reserved(self.on_chip)

    def reserved(self, seen: int) -> int:
        """Banks that the compiler does not count on once so many tiles have been on chip."""
        return self.aside if self.stay is None or not seen else min(self.stay, seen)


@dataclass(frozen=True)
class Found:
    """What stays of the result, its first tiles or (`mirrored`) its last ones, and the control steps."""

    keep: int
    mirrored: bool
    actions: tuple[Action, ...]

    @property
    def steps(self) -> int:
        """Process steps."""
        return sum(action.name == "process" for action in self.actions)


@dataclass
class _Run:
    """One pass over the map, with so many banks left to it."""

    given: Given
    left: int
    mirrored: bool
    held: list[int] = field(default_factory=list)
    """Tiles of the result that have a bank, counted from where the next stage begins."""
    waiting: list[tuple[int, int]] = field(default_factory=list)
    """Tiles of the map on chip that are to be processed: from a column to before another."""
    seen: int = 0
    processed: int = 0
    end: int = 0
    """`seen`, `processed`, `end`: tiles that were on chip so far; those that are processed; the column to load next."""
    actions: list[Action] = field(default_factory=list)

    def __post_init__(self) -> None:
        given = self.given
        self.free, self.fixed = given.free, given.fixed
        for _ in range(given.on_chip):
            self._bring(self._next(self.end))

    def go(self) -> Found | None:
        """Go through the map; None if the compiler gets stuck."""
        columns, given = self.given.stage.columns, self.given
        for _ in range(4 * (columns + given.banks + given.results)):
            if self.end == columns and not self.waiting:
                whole = sorted(self.held) == list(range(len(self.held)))
                return Found(len(self.held), self.mirrored, tuple(self.actions)) if whole else None
            if self.end < columns and self._load():
                continue
            if not self.waiting:
                return None
            if self._reaches():
                self._process()
        return None

    # ---- tiles of the map ----------------------------------------------------------------------------------------

    def _next(self, first: int) -> tuple[int, int]:
        return first, min(self.given.stage.columns, first + self.given.stage.tile)

    def _bring(self, tile: tuple[int, int]) -> None:
        self.waiting.append(tile)
        self.seen, self.end = self.seen + 1, tile[1]

    def _load(self) -> bool:
        """Load what may be loaded."""
        stage, first = self.given.stage, self.end
        if not self.waiting and self.processed and stage.reach and not stage.patches:
            first = max(0, first - stage.reach)  # the next window begins there or behind
            first += (-first - stage.before) % stage.stride
        tiles = list[tuple[int, int]]()
        while len(tiles) < self.free and first < stage.columns:
            tiles.append(self._next(first))
            first = tiles[-1][1]
        if not self.fixed:
            tiles = self._limited(tiles)
        if not tiles:
            return False
        self.actions.append(Action("load", len(tiles)))
        self.free -= len(tiles)
        for tile in tiles:
            self._bring(tile)
        return True

    def _limited(self, tiles: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Those tiles to load that leave banks for the results of all on chip."""
        results, freed, needed = self._results(self._counted() - self.left), 0, 0
        ahead = [*self.waiting, *tiles]
        for tile in ahead:
            done = self._done(tile, more=tile != ahead[-1])
            begun = 0
            while begun < len(results) and self._begun(results[begun], done):
                begun += 1
            if begun:
                needed = max(needed, begun - freed)
                del results[:begun]
            else:
                freed += 1
        lacking = needed - len(self.held) - (self.free - len(tiles))
        if lacking > self.free:
            return []
        return tiles[:-lacking] if lacking > 0 else tiles

    def _reaches(self) -> bool:
        """Whether a window fits in the tiles on chip; if none does, one bank more is left to the map."""
        stage, first, end = self.given.stage, self.waiting[0][0], self.waiting[-1][1]
        wide = end - first + (0 if first else stage.before)
        if not stage.patches and end < stage.columns and wide < stage.reach + 1:
            self.left += 1
            return False
        return True

    def _process(self) -> None:
        """Process the tiles whose results have banks."""
        tiles = len(self.waiting)
        if not self.fixed:
            results = self._results(self._room())
            self._hold(results)
            if len(self.held) < len(results):
                tiles = self._finished(results)
                if not tiles:
                    self._give_back()
            else:
                self.fixed = True
        if not tiles:
            return
        self.actions.append(Action("process", tiles))
        stay = self.given.stay or 0
        self.free += sum(number >= stay for number in range(self.processed, self.processed + tiles))
        self.processed += tiles
        del self.waiting[:tiles]

    # ---- tiles of the result -------------------------------------------------------------------------------------

    def _counted(self) -> int:
        return self.given.banks - self.given.reserved(self.seen)

    def _room(self) -> int:
        """Banks for the result."""
        crowded = self.given.tiles + self.given.results > self.given.banks
        return max(0, self._counted() - (self.left if crowded else 0))

    def _results(self, most: int) -> list[int]:
        """The tiles of the result that may stay, in the order in which they are made."""
        tiles = list(range(max(0, min(most, self.given.results))))
        return tiles[::-1] if self.mirrored else tiles

    def _hold(self, results: list[int]) -> None:
        """Take banks for them, as long as there are some."""
        for tile in results[len(self.held) :]:
            if not self.free or tile in self.held:
                return
            self.free -= 1
            self.held.append(tile)

    def _give_back(self) -> None:
        """Nothing may be processed: leave one bank more to the map, or keep what has a bank."""
        if not self.mirrored:
            self.fixed = True
            return
        self.free += len(self.held)
        self.held = []
        self.left += 1
        most = self._counted() - self.free
        if self.left >= most:
            self.fixed = True
            self._hold(self._results(self._counted() - most))

    def _done(self, tile: tuple[int, int], *, more: bool) -> int:
        """The column of the result that a tile ends, as it is stored; `more`: the next tile is on chip too."""
        stage, columns = self.given.stage, self.given.columns
        if tile[1] >= stage.columns:
            done = columns - 1
        elif stage.patches:
            done = (tile[1] - 1) // stage.patches
        else:
            done = min(columns - 1, (tile[1] - 1 + stage.before - (0 if more else stage.reach)) // stage.stride)
        return columns - 1 - done if self.mirrored else done

    def _begun(self, result: int, done: int) -> bool:
        """Whether a tile of the result is begun with a column of it."""
        tile = self.given.tile
        return done < min(self.given.columns, (result + 1) * tile) if self.mirrored else done >= result * tile

    def _finished(self, results: list[int]) -> int:
        """How many tiles on chip end before the first tile of the result without a bank."""
        lacking = results[len(self.held)]
        for number, tile in enumerate(self.waiting):
            if self._begun(lacking, self._done(tile, more=number + 1 < len(self.waiting))):
                return number
        return len(self.waiting)


def planned(given: Given, *, tries: bool, step: int, column: int) -> Found | None:
    """Return what the compiler plans, or None if it gets stuck.

    `tries`: whether it tries how many banks to leave to the map. `step`, `column`: bytes of weights that a process step
    loads, and of a column of the result.
    """
    if given.fixed:
        return _Run(given, 1, given.mirrored).go()
    if not tries:
        return _Run(given, 1, given.results >= given.counted).go()
    left, keep, least = 1, given.results, None
    for number in range(1, given.banks):
        found = _left(given, number, min(given.results, given.counted - number))
        if found is None:
            return None
        cost = step * found.steps + 2 * max(0, given.columns - given.tile * found.keep) * column
        if least is None or cost < least:
            left, keep, least = number, found.keep, cost
    return _left(given, left, keep)


def _left(given: Given, left: int, keep: int) -> Found | None:
    """The pass with so many banks left to the map and at most `keep` tiles of the result."""
    if keep < min(given.results, given.counted - left):
        left = given.counted - keep
    return _Run(given, left, given.results > given.counted - left).go()

"""Strips and places of partial_engine: all choices of a layer that fit the banks, and the game that each leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from hwmodels.partial_engine.price import Grid, Work
from instances.errors import InputError
from instances.machine.machine import Machine


@dataclass(frozen=True)
class Game:
    """A grid with its places: what is asked is an order of the runs, and what lies in the places."""

    loads: tuple[int, ...]
    swaps: tuple[int, ...]
    """`loads`, `swaps`: bytes by input group, and by output group."""
    x: int
    y: int
    """`x`, `y`: places, at most as many as there are groups."""

    @property
    def inputs(self) -> int:
        """I."""
        return len(self.loads)

    @property
    def outputs(self) -> int:
        """O."""
        return len(self.swaps)

    @property
    def base(self) -> int:
        """Bytes without which no order does: every input group once."""
        return sum(self.loads)


@dataclass(frozen=True)
class Branch:
    """A choice of strips and places."""

    rows: int
    strips: int
    x: int
    y: int
    weights: int
    results: int
    """`weights`, `results`: their bytes."""
    games: tuple[tuple[Game, int], ...]
    """The grids' games, and how many grids are alike. Only those of the first may have more than
    a run.
    """
    in_place: int
    part_place: int
    """`in_place`, `part_place`: A and p."""

    @property
    def fixed(self) -> int:
        """Bytes of weights and results, whatever the order."""
        return self.weights + self.results

    @property
    def others(self) -> int:
        """Bytes of weights and results, and of all games but the first: no order changes them."""
        return self.fixed + sum(number * game.base for game, number in self.games[1:])

    @cached_property
    def least(self) -> int:
        """Bytes of weights and results, and of every input once."""
        return self.fixed + sum(number * game.base for game, number in self.games)


@dataclass(frozen=True)
class Smallest:
    """The bytes of a bank that the least demanding choice takes: with the fewest places and rows allowed."""

    rows: int
    in_place: int
    part_place: int
    parts: int
    inputs: int

    @property
    def bytes(self) -> int:
        """Bytes of a bank."""
        return self.inputs * self.in_place + self.parts * self.part_place


@dataclass(frozen=True)
class Demands:
    """What a user demands: least and most strips, input places and partial places."""

    strips: tuple[int, int] = (1, 2**31)
    inputs: tuple[int, int] = (1, 2**31)
    parts: tuple[int, int] = (1, 2**31)
    stay: bool = False
    """No partial maps in DRAM."""
    before: bool = False
    after: bool = False
    """`before`, `after`: inputs lie in the banks before, results stay there (CHAIN)."""


@dataclass(frozen=True)
class Choices:
    """A layer on a machine with its choices, those with the fewest necessary bytes first."""

    branches: tuple[Branch, ...]
    smallest: Smallest


def build(work: Work, machine: Machine, demands: Demands | None = None) -> Choices:
    """Return the choices of strips and places that fit the banks.

    Raises InputError if a place would take no bytes (a layer that reads only padding).
    """
    wanted = demands or Demands()
    found: list[Branch] = []
    smallest: Smallest | None = None
    for rows in _heights(work):
        number = -(-work.layer.r // rows)
        if not wanted.strips[0] <= number <= wanted.strips[1] or (number > 1 and (wanted.before or wanted.after)):
            continue
        sizes = _Sizes(work, machine, rows, wanted)
        if sizes.in_place < 1:
            raise InputError(f"layer {work.layer.name}: it reads nothing but padding")
        places = sizes.places(max(1, wanted.inputs[0]), max(1, wanted.parts[0]))
        small = Smallest(rows, sizes.in_place, sizes.part_place, places[1] + work.fresh, places[0])
        if smallest is None or small.bytes < smallest.bytes:
            smallest = small
        found += _divided(work, sizes, wanted)
    smallest = smallest or Smallest(0, 0, 0, 0, 0)
    found.sort(key=lambda b: (b.least, b.strips, b.x))
    return Choices(tuple(found), smallest)


class _Sizes:
    """Bytes of a layer in strips of so many rows."""

    def __init__(self, work: Work, machine: Machine, rows: int, wanted: Demands) -> None:
        strips, layer = work.strips(rows), work.layer
        self.wanted = wanted
        self.work, self.rows, self.strips = work, rows, len(strips)
        self.in_place = max(s.in_rows for s in strips) * layer.l * machine.in_bytes
        self.part_place = rows * layer.c * max(machine.psum_bytes, machine.out_bytes)
        self.in_map = 0 if wanted.before else sum(s.in_rows for s in strips) * layer.l * machine.in_bytes
        self.swap_map = 2 * layer.r * layer.c * machine.psum_bytes
        constants = layer.g * layer.m * layer.n * layer.kh * layer.kw * machine.w_bytes
        self.weights = constants * len(strips) * (layer.weights != "none")
        self.results = layer.g * layer.m * layer.r * layer.c * machine.out_bytes * (not wanted.after)

    def places(self, x: int, y: int) -> tuple[int, int]:
        """Places in a bank for inputs and partial maps of all grids, if a grid has x and y of them."""
        work, grids = self.work, sum(grid.number for grid in self.work.grids)
        return (grids * work.inputs if self.wanted.before else x), (grids * work.outputs if self.wanted.after else y)

    def branch(self, x: int, y: int) -> Branch:
        """The choice with x and y places."""
        games = tuple((self._game(grid, x, y), grid.number) for grid in self.work.grids)
        return Branch(
            self.rows, self.strips, x, y, self.weights, self.results, games, self.in_place, self.part_place
        )  # fmt: skip

    def _game(self, grid: Grid, x: int, y: int) -> Game:
        return Game(
            tuple(maps * self.in_map for maps in grid.in_maps), tuple(maps * self.swap_map for maps in grid.out_maps),
            x, y,
        )  # fmt: skip


def _heights(work: Work) -> Iterator[int]:
    """The rows of strips that may be best.

    Of those that make as many strips none with fewer rows reads as few rows, and has as low a tallest strip of inputs
    (which may be lower for more rows, if the padding above is larger than below).
    """
    seen: dict[int, list[tuple[int, int]]] = {}
    for height in range(1, work.layer.r + 1):
        strips = work.strips(height)
        read, tall = sum(strip.in_rows for strip in strips), max(strip.in_rows for strip in strips)
        known = seen.setdefault(len(strips), [])
        if not any(r <= read and t <= tall for r, t in known):
            known.append((read, tall))
            yield height


def _divided(work: Work, sizes: _Sizes, wanted: Demands) -> Iterator[Branch]:
    """The ways to divide a bank in places."""
    inputs, outputs, last = work.inputs, work.outputs, 0
    most = min(inputs, wanted.inputs[1])
    for x in range(most, max(1, wanted.inputs[0], inputs * wanted.before) - 1, -1):
        left = (work.engine.bank_bytes - sizes.places(x, 0)[0] * sizes.in_place) // sizes.part_place - work.fresh
        y = min(outputs, wanted.parts[1], left)
        if wanted.after:
            y = outputs if sizes.places(x, outputs)[1] <= left and outputs <= wanted.parts[1] else 0
        if y <= last or y < wanted.parts[0]:
            continue
        last = y
        yield sizes.branch(x, y)


def branch_at(work: Work, machine: Machine, rows: int, x: int, y: int, wanted: Demands) -> Branch:
    """Return strips of so many rows with x and y places, whether they fit or not."""
    return _Sizes(work, machine, rows, wanted).branch(x, y)

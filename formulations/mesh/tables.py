"""Tables of F3 mesh: what every option of a group of indices adds to each term; a price is a sum of products of them.

Columns of an option, by index d: ``T_d`` tile, ``S_d`` sides of the mesh along it (1 rows, 2 columns, 3 both), ``P_d``
PEs along it; ``filters`` and ``channels``. Tables are integers; names and letters as in `formulations.mesh`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from formulations.clock import ENDLESS, Clock
from hwmodels.schedule import SHARES
from instances.machine import Machine
from instances.mesh import Mesh
from instances.ndrange import Axis, NDRange, Operand, ndrange
from instances.workload import Layer

__all__ = ["Cap", "Columns", "Ints", "Linear", "Setup", "ceil_div", "fetched", "footprint", "ones", "roof", "up"]

Ints = NDArray[np.int64]
Columns = Mapping[str, Ints]


def ceil_div(a: Ints | int, b: Ints | int) -> Ints:
    """Return a / b, rounded up."""
    rounded: Ints = -(-np.asarray(a, dtype=np.int64) // b)
    return rounded


def up(d: str) -> str:
    """The letter of an index in names of columns."""
    return d.upper()


def roof(mesh: Mesh, measure: str) -> dict[str, int]:
    """Return what a measure is the most of, and how much of each takes one of it: the time is the roofline's."""
    rates = {"cycles": 1, "dram": mesh.dram_bytes_per_cycle, "glb": mesh.global_bytes_per_cycle}
    return rates if measure == "time" else {measure: 1}


@dataclass(frozen=True)
class Linear:
    """``constant + sum of factor * (product of a term over the groups)``."""

    factors: dict[str, int]
    constant: int = 0


@dataclass(frozen=True)
class Cap:
    """A demand: `what` is at most `limit`."""

    tag: str
    what: Linear
    limit: int


@dataclass(frozen=True)
class Setup:
    """A layer on a machine with mesh, and what is fixed before the tile is chosen.

    Attributes
    ----------
    share, keep : str
        As in `formulations.mesh.choice.Choice`.
    clock : Clock
        When to stop making tables.
    """

    layer: Layer
    machine: Machine
    share: str = "both"
    keep: str = "none"
    clock: Clock = ENDLESS

    @cached_property
    def mesh(self) -> Mesh:
        """The section of the machine."""
        assert self.machine.mesh is not None
        return self.machine.mesh

    @cached_property
    def ndrange(self) -> NDRange:
        """The workload."""
        return ndrange(self.layer)

    def units(self, sides: Ints) -> Ints:
        """Units along an index, by its sides."""
        rows, cols = self.mesh.rows, self.mesh.cols
        return np.array([1, rows, cols, rows * cols], dtype=np.int64)[sides]

    def often(self, operand: str, d: str, columns: Columns) -> Ints:
        """How often an operand is fetched along an index that it does not depend on."""
        trips = ceil_div(self.ndrange.sizes[d], columns[f"T_{up(d)}"])
        side = self.units(columns[f"S_{up(d)}"])
        shared = operand in SHARES[self.share]
        if self.keep == operand:
            return np.ones_like(trips) if shared else np.minimum(side, trips)
        return ceil_div(trips, side) if shared else trips

    def groups_of(self, operand: Operand, group: tuple[str, ...]) -> list[Axis]:
        """The axes of an operand that indices of the group move."""
        return [axis for axis in operand.axes if set(axis.steps) & set(group)]


def ones(columns: Columns) -> Ints:
    """One for every option."""
    return np.ones_like(next(iter(columns.values())))


def fetched(setup: Setup, operand: Operand, group: tuple[str, ...], columns: Columns) -> Ints:
    """The part of a group in ``fetched[x]``."""
    total = ones(columns)
    for axis in setup.groups_of(operand, group):
        total = total * _inside(setup, axis, columns)
    for d in group:
        if not operand.depends(d):
            total = total * setup.often(operand.name, d, columns)
    return total


def footprint(setup: Setup, operand: Operand, group: tuple[str, ...], columns: Columns) -> Ints:
    """The part of a group in the elements of a tile, padding included: PEs address it like the rest."""
    total = ones(columns)
    for axis in setup.groups_of(operand, group):
        total = total * extent(axis, columns)
    return total


def extent(axis: Axis, columns: Columns) -> Ints:
    """Elements of a tile along an axis."""
    return 1 + sum((step * (columns[f"T_{up(d)}"] - 1) for d, step in axis.steps.items()), 0 * ones(columns))


def _inside(setup: Setup, axis: Axis, columns: Columns) -> Ints:
    """Elements along an axis of all tiles together, without padding."""
    names = tuple(axis.steps)
    if len(names) == 1:
        return np.full_like(ones(columns), axis.size)
    tiles = np.stack([columns[f"T_{up(d)}"] for d in names], axis=1)
    kinds, where = np.unique(tiles, axis=0, return_inverse=True)
    sizes = tuple(setup.ndrange.sizes[d] for d in names)
    steps, sums = tuple(axis.steps.values()), []
    for a, b in kinds:
        setup.clock.tick()
        sums.append(windows(sizes, steps, axis.offset, axis.size, (int(a), int(b))))
    return np.array(sums, dtype=np.int64)[where.reshape(-1)]


@lru_cache(maxsize=200_000)
def windows(
    sizes: tuple[int, int], steps: tuple[int, int], offset: int, size: int, tiles: tuple[int, int]
) -> int:  # fmt: skip
    """Return the elements of an axis under all tiles of two indices, each tile clipped to 0 .. size-1."""
    firsts, lasts = [], []
    for number, step, tile in zip(sizes, steps, tiles, strict=True):
        first = np.arange(0, number, tile, dtype=np.int64)
        firsts.append(first * step)
        lasts.append((np.minimum(first + tile, number) - 1) * step)
    begin = np.clip(firsts[0][:, None] + firsts[1][None, :] + offset, 0, size)
    end = np.clip(lasts[0][:, None] + lasts[1][None, :] + offset + 1, 0, size)
    return int(np.maximum(end - begin, 0).sum())

"""Schedules: what a machine executes, as plain data that no solver touches.

A layer's schedule is a `Nest`, an ordered list of items, outermost first:

* `Spatial(dim, step, over)`: the dimension is cut in pieces of `step` that run in parallel over
  the units of a level of the machine (``"tle"`` or ``"tlt"``);
* `Loop(dim, step)`: the dimension's current range is cut in pieces of `step`, run one after the
  other; the last piece may be smaller;
* `Hold(operand, buffers)`: from here inwards the operand's footprint lies on chip, in one buffer or in two (one in use
  while the other is filled or emptied).

A dimension may be looped several times with shrinking steps, so that operands are held at different depths.

A network's schedule on a machine with memory banks is a list of `StageRun`, one for each stage in the order they run;
on a machine with a shared memory a list of `LayerRun`, a nest for every layer with what lies on chip beside its tiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from instances.errors import InputError
from instances.feature_maps import Stage
from instances.workload import DIMS, RELEVANT, Layer

__all__ = ["Hold", "Item", "LayerRun", "Loop", "Nest", "Spatial", "StageRun", "Tile"]

LEVELS = ("tle", "tlt")


@dataclass(frozen=True)
class Spatial:
    """Cut `dim` in pieces of `step`, one per unit of level `over`."""

    dim: str
    step: int
    over: str


@dataclass(frozen=True)
class Loop:
    """Cut the current range of `dim` in pieces of `step`, one after the other."""

    dim: str
    step: int


@dataclass(frozen=True)
class Hold:
    """Keep the footprint of `operand` ("IN", "W" or "OUT") on chip from here inwards.

    `buffers` is 1 or 2; None leaves it to the machine (`Machine.buffers`).
    """

    operand: str
    buffers: int | None = None


Item = Spatial | Loop | Hold


@dataclass(frozen=True)
class Nest:
    """The schedule of one layer: items outermost first, every operand held exactly once."""

    items: tuple[Item, ...]

    def to_json(self) -> list[dict[str, object]]:
        """Return the nest as a JSON list, outermost first."""
        rows: list[dict[str, object]] = []
        for item in self.items:
            if isinstance(item, Spatial):
                rows.append({"spatial": item.dim, "step": item.step, "over": item.over})
            elif isinstance(item, Loop):
                rows.append({"loop": item.dim, "step": item.step})
            else:
                rows.append({"hold": item.operand, **({"buffers": item.buffers} if item.buffers else {})})
        return rows

    @classmethod
    def from_json(cls, rows: object, where: str = "nest") -> Nest:
        """Read what `to_json` wrote.

        Raises
        ------
        InputError
            Naming the item at fault.
        """
        if not isinstance(rows, list):
            raise InputError(f"{where}: expected a list of items, got {type(rows).__name__}")
        return cls(tuple(_item(row, f"{where}[{i}]") for i, row in enumerate(rows)))

    def steps(self, dim: str) -> tuple[int, ...]:
        """Return the steps of all cuts of `dim`, outermost first."""
        return tuple(i.step for i in self.items if not isinstance(i, Hold) and i.dim == dim)

    def loops(self) -> dict[str, tuple[int, ...]]:
        """Return the steps of the loops over every dimension, outermost first, without the spatial cuts."""
        return {d: tuple(i.step for i in self.items if isinstance(i, Loop) and i.dim == d) for d in DIMS}

    def tile(self, layer: Layer) -> dict[str, int]:
        """Return the innermost step of every dimension (its whole extent where it is not cut)."""
        return {d: (self.steps(d) or (layer.extent(d),))[-1] for d in DIMS}

    def validate_for(self, layer: Layer) -> None:
        """Raise `InputError` unless the nest is well formed for `layer`."""
        held = [i.operand for i in self.items if isinstance(i, Hold)]
        if sorted(held) != sorted(layer.operands):
            raise InputError(f"nest: holds {held}, layer {layer.name} needs each of {list(layer.operands)} once")
        size = {d: layer.extent(d) for d in DIMS}
        for i, item in enumerate(self.items):
            if isinstance(item, Hold):
                continue
            if not 1 <= item.step <= size[item.dim]:
                raise InputError(f"nest[{i}]: step {item.step} of {item.dim} must be 1..{size[item.dim]}")
            size[item.dim] = item.step


def _item(row: object, where: str) -> Item:
    if not isinstance(row, Mapping):
        raise InputError(f"{where}: expected an object, got {type(row).__name__}")
    keys = set(row)
    if keys in ({"hold"}, {"hold", "buffers"}):
        if row["hold"] not in RELEVANT:
            raise InputError(f"{where}: unknown operand {row['hold']!r}, expected one of {_names(RELEVANT)}")
        buffers = row.get("buffers")
        if buffers not in (None, 1, 2) or isinstance(buffers, bool | float):
            raise InputError(f"{where}: buffers must be 1 or 2, got {buffers!r}")
        return Hold(str(row["hold"]), buffers)
    kind = "spatial" if "spatial" in keys else "loop"
    if keys != ({"spatial", "step", "over"} if kind == "spatial" else {"loop", "step"}):
        raise InputError(f"{where}: keys {sorted(keys)} are none of hold, buffers | loop, step | spatial, step, over")
    dim, step = row[kind], row["step"]
    if dim not in DIMS:
        raise InputError(f"{where}: unknown dimension {dim!r}, expected one of {_names(DIMS)}")
    if isinstance(step, bool) or not isinstance(step, int) or step < 1:
        raise InputError(f"{where}: step must be a positive integer, got {step!r}")
    if kind == "loop":
        return Loop(str(dim), step)
    if row["over"] not in LEVELS:
        raise InputError(f"{where}: unknown level {row['over']!r}, expected one of {_names(LEVELS)}")
    return Spatial(str(dim), step, str(row["over"]))


def _names(items: Iterable[str]) -> str:
    return ", ".join(items)


@dataclass(frozen=True)
class Tile:
    """Columns [first, end) of a map in a bank; `loaded` if DRAM brings them."""

    bank: int
    first: int
    end: int
    loaded: bool = False


@dataclass(frozen=True)
class StageRun:
    """What a plan says of one stage.

    Attributes
    ----------
    source : str
        The operand that is read from the banks.
    backwards : bool
        Whether its columns are read from the last one on.
    keep : int
        Tiles of the result that stay: the last ones made if `last`, else the first ones.
    retain : int
        Tiles of the source that stay, the first ones read.
    actions : tuple of (str, int)
        ``("load", tiles)`` and ``("process", tiles)``.
    tiles, results : tuple of Tile
        The tiles that are read, in order, and those of the result that stay; empty if banks have no numbers.
    """

    stage: Stage
    source: str
    backwards: bool
    keep: int
    last: bool
    retain: int
    actions: tuple[tuple[str, int], ...]
    tiles: tuple[Tile, ...] = ()
    results: tuple[Tile, ...] = ()


@dataclass(frozen=True)
class LayerRun:
    """What a plan says of one layer of a network in a shared memory.

    Attributes
    ----------
    residents : dict of int to (int, tuple of int)
        The stores on chip while it runs, by number: their first rows, and the banks that hold them.
    unwritten : int
        How many first rows of its result never go to DRAM (of the store's rows).
    banks : tuple of int
        The banks for its tiles.
    """

    nest: Nest
    residents: Mapping[int, tuple[int, tuple[int, ...]]]
    unwritten: int
    banks: tuple[int, ...]

    @property
    def rows(self) -> dict[int, int]:
        """Rows on chip by store."""
        return {store: rows for store, (rows, _) in self.residents.items()}

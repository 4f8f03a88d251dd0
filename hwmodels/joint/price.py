"""What a plan of a network in a shared memory says of its layers and groups, beside their schedules.

`ran` has the layers of a schedule as they count: one that loads weights that stay does so before all else, and holds
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hwmodels.nest.buffers import Buffer
from hwmodels.outcome import Counts, Outcome
from hwmodels.schedule import FusedRun, Hold, LayerRun, Nest
from instances.network.stores import Stores
from instances.network.workload import Layer


@dataclass(frozen=True)
class RunFigures:
    """What a plan says of a layer by itself, or of a group of layers: what the referee counts."""

    layers: tuple[str, ...]
    """Their names."""
    bytes: dict[str, int]
    """What DRAM moves, by operand: IN, W, OUT (results written), PSUM (partial sums written and read back)."""
    macs: int
    """Multiply-accumulates, with those that are computed again."""
    energy: int
    """Of the bytes and of these, in femtojoules."""
    occupancy_bytes: int
    """The most bytes of tiles, or of strips, weights and the buffer for filters, on chip at once."""
    ticks: int
    """Of a layer by itself its time as in problem tiling; of a group, visit by visit, the longer of computing and of
    moving what is loaded and written: a call for every piece of a map and for every filter that does not stay.
    """
    visits: int = 1
    """Steps of rows times steps of columns."""
    on_chip: dict[str, int] = field(default_factory=dict)
    """Maps (and weights) that stay on chip meanwhile, and the bytes that their rows take."""
    counts: dict[str, Counts] | None = None
    """All that is counted of the transfers, by operand; None for groups."""
    buffers: tuple[Buffer, ...] | None = None
    """Where the tiles of a layer by itself lie: addresses count through the run's banks in their order, as if these
    were one memory (without banks they leave room for tiles alone, not for maps). None for groups.
    """

    @property
    def moved(self) -> int:
        """Bytes of all operands."""
        return sum(self.bytes.values())

    @property
    def name(self) -> str:
        """For people."""
        return self.layers[0] if len(self.layers) == 1 else f"{self.layers[0]}..{self.layers[-1]}"


def layer_figures(layer: Layer, outcome: Outcome) -> RunFigures:
    """Return what a plan says of a layer by itself."""
    moved = {operand: count.bytes for operand, count in outcome.by_operand.items()}
    return RunFigures(
        (layer.name,), moved, layer.macs, outcome.energy_fj, outcome.occupancy_bytes["ocm"], outcome.time_ticks,
        counts=dict(outcome.by_operand),
    )  # fmt: skip


def ran(found: Stores, step: int, run: LayerRun, before: LayerRun | FusedRun | None) -> tuple[Layer, Nest]:
    """Return a layer of a schedule and its nest as they count, after the run `before`.

    Weights that were not on chip before are loaded.
    """
    layer = found.layer(step, run.rows, run.unwritten)
    there = not layer.resident_w or (before is not None and found.shared[step] in before.residents)
    if there:
        return layer, run.nest
    return layer.model_copy(update={"resident_w": False}), replace(run.nest, items=(Hold("W"), *run.nest.items))

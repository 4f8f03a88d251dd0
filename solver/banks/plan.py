"""Plans of whole networks on machines with memory banks: the bank program, with all that is needed to verify it.

Figures of a stage are what the replay counts. A tile's columns are those of its map, whatever the direction.
"""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from hwmodels.schedule import StageRun, Tile
from instances.feature_maps import Stage
from solver.network_plan import NetworkPlan
from solver.plan import Frozen, Natural, Options

#: The kind of a layer whose work the layer before it does.
FUSED = "fused"
#: The objectives of the plans of a front (`BankOptions.time_at_most`).
FRONT = ("bytes", "time")


class BankTile(Frozen):
    """Columns [first, end) of a map in a bank; `loaded` if DRAM brings them."""

    bank: Natural
    first: Natural
    end: PositiveInt
    loaded: bool = False

    def to_tile(self) -> Tile:
        """For the replay."""
        return Tile(self.bank, self.first, self.end, self.loaded)


class BankAction(Frozen):
    """``load`` the next tiles, or ``process`` the first ones on chip."""

    do: Literal["load", "process"]
    tiles: PositiveInt


class Volume(Frozen):
    """Bytes between DRAM and chip by what they are; `streamed` are second operands of sums."""

    load: Natural
    weight: Natural
    streamed: Natural
    bias: Natural
    write: Natural
    total: Natural


class StagePlan(Frozen):
    """One stage and its control program.

    A global average pool that is fused with the stage before it is a layer of kind `FUSED` behind that: it moves
    nothing, has no actions, and its `source` is the layer that ends with it.
    """

    layer: str
    """The operator's name."""
    kind: str
    source: str
    target: str
    """`source`, `target`: the map that is read from the banks, and the map that is written."""
    streamed: tuple[str, ...]
    """Further operands: read from where they are, on chip or column by column from DRAM."""
    backwards: bool
    """Whether columns are read (and made) from the last one on."""
    initial: Natural
    """Tiles of the source on chip when the stage begins: the first of `tiles`."""
    tiles: tuple[BankTile, ...]
    """All tiles that are read, in order, with their banks."""
    actions: tuple[BankAction, ...]
    results: tuple[BankTile, ...]
    """Tiles of the target that are on chip afterwards, in the order in which they are read next."""
    mirrored: bool
    """Whether the tiles that stay are the last ones made, so that the next stage begins there."""
    keep: Natural
    retain: Natural
    """`keep`, `retain`: tiles of the result that this stage decides to keep; first tiles of the source that stay for
    other stages.
    """
    weights: Literal["none", "once", "each_step"]
    """How often they are loaded."""
    volume: Volume
    ticks: Natural
    """Until the stage ends, from the end of the one before."""
    wait_maps_ticks: Natural
    wait_weights_ticks: Natural
    wait_writes_ticks: Natural = 0
    """`wait_maps_ticks`, `wait_weights_ticks`, `wait_writes_ticks`: what of it is spent waiting: the delay of the
    processing elements.
    """

    @property
    def wait_ticks(self) -> int:
        """All that is spent waiting."""
        return self.wait_maps_ticks + self.wait_weights_ticks + self.wait_writes_ticks

    def average(self) -> StagePlan:
        """The layer of the pool that is fused with this one."""
        nothing = {"streamed": (), "initial": 0, "tiles": (), "actions": (), "retain": 0, "weights": "none"}
        zero = {name: 0 for name in type(self).model_fields if name.endswith("ticks")}
        named = {"layer": self.target, "kind": FUSED, "source": self.layer}
        volume = Volume(load=0, weight=0, streamed=0, bias=0, write=0, total=0)
        return self.model_copy(update={**nothing, **zero, **named, "volume": volume})

    def to_run(self, stage: Stage) -> StageRun:
        """For the replay."""
        return StageRun(
            stage, self.source, self.backwards, self.keep, self.mirrored, self.retain,
            tuple((a.do, a.tiles) for a in self.actions), tuple(t.to_tile() for t in self.tiles),
            tuple(t.to_tile() for t in self.results),
        )  # fmt: skip


class BankReplay(Frozen):
    """What the walk through all banks found: `ok` is None when there is no plan."""

    ok: bool | None
    faults: tuple[str, ...]


class BankOptions(Options):
    """What else was asked for."""

    waiting: bool
    """Whether results may wait on chip for a sum."""
    time_at_most: Natural | None = None
    """Of a plan on a front: the fewest bytes are meant among the plans that take no more ticks."""
    first_layer: Literal["patches", "plain", "either"] | None = None
    """How the first layer had to be read; by default as the machine says. Its layer is of kind `patches` or `conv`."""


class BankPlan(NetworkPlan):
    """A plan of a network in memory banks.

    Attributes
    ----------
    measures : Measures or None
        Ticks until the last stage ends, bytes, energy.
    pe_delay_ticks : int or None
        What of the time the processing elements wait for DRAM.
    """

    PROBLEMS = ("banks",)

    problem: Literal["banks"]
    options: BankOptions
    pe_delay_ticks: Natural | None
    replay: BankReplay
    layers: tuple[StagePlan, ...]

    @property
    def first_layer(self) -> Literal["patches", "plain"]:
        """How the first layer is read."""
        return "patches" if any(layer.kind == "patches" for layer in self.layers) else "plain"

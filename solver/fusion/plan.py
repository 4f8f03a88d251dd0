"""Plans of networks in groups of layers: strips of a group, the nest of a layer by itself, and what stays on chip.

Figures of a group are what the replay counts.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from solver.joint.plan import Resident
from solver.network_plan import WholePlan
from solver.plan import Frozen, Natural, Schedule


class FusionMeasures(Frozen):
    """Bytes to and from DRAM, energy in femtojoules, and MACs (those that are computed again count again)."""

    bytes: Natural
    energy: Natural
    macs: Natural


class PacePlan(Frozen):
    """How a map advances along an axis: in step k up to ``step * k + ahead``, within 0..end.

    Where the halo is recomputed, step k makes what lies from ``step * k + behind`` to that; where it is retained, what
    earlier steps have not made. A step of 0: one row (column) for all that its readers make, loaded once; again in each
    step where the halo is recomputed.
    """

    step: Natural
    ahead: int
    behind: int
    end: Natural


class StepsPlan(Frozen):
    """The steps along an axis; those before step 1 of a retained halo are the warm-up."""

    halo: Literal["retain", "recompute"]
    first: int
    last: int


class StreamPlan(Frozen):
    """A map on its way through a group: what `layer` makes of it, or what is loaded before `layer` runs."""

    map: str
    layer: str
    readers: tuple[str, ...]
    """The layers of the group that read it from here."""
    loaded: bool
    """Whether it comes from outside the group."""
    rows: PacePlan
    columns: PacePlan


class BlocksPlan(Frozen):
    """Layers that take turns for some channels of the maps between them; the last adds them up."""

    layers: Annotated[tuple[str, ...], Field(min_length=2)]
    channels: PositiveInt
    """Of every map between them in a turn."""


class StripsPlan(Frozen):
    """How a group runs: for every step of rows all steps of columns, in each of them layer after layer."""

    rows: StepsPlan
    columns: StepsPlan
    streams: tuple[StreamPlan, ...]
    """One for every layer in order, then those that are loaded."""
    weights: tuple[Natural, ...]
    """Bytes of every layer's weights that stay on chip; the rest is loaded in every visit."""
    blocks: tuple[BlocksPlan, ...] = ()
    """Layers that take turns; the others run one after the other."""


class FusionGroup(Frozen):
    """Layers that run together strip by strip, or one layer by itself."""

    layers: tuple[str, ...]
    on_chip: tuple[Resident, ...]
    """Maps that lie on chip all the time that the group runs."""
    unwritten: tuple[Natural, ...]
    """Of every layer how many first rows of its result are never written to DRAM."""
    banks: tuple[Natural, ...]
    """Where strips and weights lie, or the tiles of a layer by itself; none where the memory has no banks."""
    schedule: Schedule | None
    """The nest of a layer by itself."""
    strips: StripsPlan | None
    """How several layers run."""
    bytes: Natural
    by_operand: dict[Literal["IN", "W", "OUT", "PSUM"], Natural]
    macs: Natural
    occupancy_bytes: Natural
    """The most bytes of strips and weights, or tiles."""
    visits: Natural
    """Steps of rows times steps of columns."""
    time_ticks: Natural
    """Of strips: visit by visit the longer of computing and of moving what is loaded and written, calls and segments of
    transfers left out; of a layer by itself its time as in problem tiling. Nothing is decided by it.
    """

    @property
    def layer(self) -> str:
        """Its name for people."""
        return self.layers[0] if len(self.layers) == 1 else f"{self.layers[0]}..{self.layers[-1]}"


class FusionReplay(Frozen):
    """What the walk through all groups found: `ok` is None when there is no plan.

    `executed`: groups that were computed strip by strip on integers and compared with layer by layer.
    """

    ok: bool | None
    executed: Natural
    faults: tuple[str, ...]


class FusionPlan(WholePlan):
    """A plan of a network in groups of layers on a shared memory."""

    PROBLEMS = ("fusion",)

    problem: Literal["fusion"]
    objectives: Annotated[tuple[Literal["bytes", "energy", "macs"], ...], Field(min_length=1)]
    unit: Literal["bytes", "fJ", "MACs"]
    measures: FusionMeasures | None
    compulsory_bytes: Natural
    """Every weight, and every input and result of the network once: what no schedule can do without."""
    pins: tuple[str, ...]
    replay: FusionReplay
    layers: tuple[FusionGroup, ...]
    """The groups in their order."""

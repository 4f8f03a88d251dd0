"""Plans of problem selection: the variant of every layer, where the pipeline is cut, frequency and input size."""

from __future__ import annotations

from typing import Literal

from instances.network import Network
from instances.variants import Variants
from solver.network_plan import SubjectPlan
from solver.plan import Frozen, Natural, Options


class SelectedLayer(Frozen):
    """A layer, and what was chosen for it."""

    layer: str
    variant: str
    stage: str
    type: str
    """Element type that it reads and writes."""
    techniques: tuple[str, ...]
    time: Natural
    """Ticks, at the chosen frequency and size."""
    between: Natural
    """Ticks of its stage for conversions and hand-overs of its map, and for maps that it is handed."""
    loss_ppm: Natural
    bytes: Natural


class ThreadLoad(Frozen):
    """A thread of the pipeline: stages that work on one image, one after the other."""

    stages: tuple[str, ...]
    load: Natural
    """Busy ticks of a period."""


class SelectionMeasures(Frozen):
    """What is minimised."""

    period: Natural
    """Ticks from one image to the next."""
    time: Natural
    """Ticks of all stages for an image."""
    energy: Natural
    """fJ of an image."""
    error: Natural
    """Millionths that accuracy is below 1."""
    memory: Natural
    """Bytes."""
    score: Natural
    """Energy over accuracy, nJ."""


class SelectionReplay(Frozen):
    """What the walk of images through the pipeline found: `ok` is None when there is no plan."""

    ok: bool | None
    faults: tuple[str, ...]


class SelectionOptions(Options):
    """What else was asked for."""

    pins: tuple[str, ...]


class SelectionPlan(SubjectPlan):
    """A plan of variants.

    Attributes
    ----------
    network, network_data : str, Variants or Network
        The layers with their variants; a network whose variants are estimated for a board.
    """

    PROBLEMS = ("selection",)

    problem: Literal["selection"]
    network_data: Variants | Network
    objectives: tuple[str, ...]
    unit: Literal["ticks", "fJ", "ppm", "bytes", "nJ"]
    options: SelectionOptions
    measures: SelectionMeasures | None
    replay: SelectionReplay
    cpu_config: str
    """Of a board how its cores are grouped; else empty."""
    input_size: str
    frequency: str
    cuts: tuple[str, ...]
    """Stages that begin a thread of their own, beside the first one."""
    threads: tuple[ThreadLoad, ...]
    layers: tuple[SelectedLayer, ...]

    @property
    def size(self) -> int:
        """How many layers there are."""
        return len(self.layers)

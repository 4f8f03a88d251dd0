"""One question, the same for every problem: what is planned, on which machine, how it is decided and how long.

Here options are read that mean the same everywhere; what a problem reads itself (pins, objectives, layers) it is given
as texts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from instances.applications import Applications
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.measured import Profile
from instances.network.blocks import in_blocks
from instances.network.buffers import Buffers
from instances.network.network import Network
from instances.network.variants import Variants
from instances.network.workload import Layer
from instances.problems import PROBLEMS
from solver.ask.options import AUTO
from solver.ask.progress import Progress, Silent
from solver.ask.watch import Watch


@dataclass(frozen=True)
class Question:
    """What is asked, with network and machine loaded."""

    target: Layer | Network | Applications | Buffers | Variants | tuple[Layer, ...]
    machine: Machine
    """With the overrides of `settings`, which are kept for the plan to say."""
    objectives: tuple[str, ...]
    """The measures to minimise, the first one first."""
    problem: str = "tiling"
    engine: str = AUTO
    pins: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    layers: tuple[str, ...] | None = None
    """Only these; None for all that the problem plans."""
    profile: Profile | None = None
    """Measured times of tasks, or of layers."""
    time_limit_s: float | None = None
    memory_bytes: int | None = None
    """The most resident memory of this process; None for most of what is free."""
    jobs: int = 1
    """Processes to spread independent layers over, or the options of a large network."""
    full: bool = False
    bounding: bool = True
    all_kinds: bool = False
    """`full`, `bounding`, `all_kinds`: the unreduced space; whether choices are removed by bounds first; pool and
    element-wise layers, too.
    """
    title: str = ""
    """What it is called, where the target does not say: layers of a network."""
    progress: Progress = field(default_factory=Silent)

    def __post_init__(self) -> None:
        """See channels in whole blocks, where the machine has them, once for whoever plans, replays and shows."""
        line = PROBLEMS.get(self.problem)
        if line is not None and line.in_blocks and self.machine.channel_block > 1:
            object.__setattr__(self, "target", in_blocks(self.target, self.machine.channel_block))

    def watch(self) -> Watch:
        """Return what ends the search at its limits, from now on."""
        return Watch(self.time_limit_s, self.memory_bytes)

    @property
    def name(self) -> str:
        """Of what is planned."""
        if isinstance(self.target, tuple):
            return self.title or ", ".join(layer.name for layer in self.target)
        return self.target.name if isinstance(self.target, Layer) else self.subject.name

    @property
    def where(self) -> str:
        """Where it is planned, and by what: the end of a line about an answer that is not so."""
        return f" on {self.machine.name}, engine {self.engine}"

    @property
    def subject(self) -> Network | Applications | Buffers | Variants:
        """What is planned as a whole; raises InputError if the target is a single layer."""
        return self.target if isinstance(self.target, Applications | Buffers | Variants) else self.network

    @property
    def network(self) -> Network:
        """The network, of several applications that of all; raises InputError if the target is something else."""
        if isinstance(self.target, Buffers | Variants):
            what = "buffers" if isinstance(self.target, Buffers) else "variants"
            raise InputError(f"target {self.target.name}: problem {self.problem} plans networks, these are {what}")
        if isinstance(self.target, Applications):
            return self.target.network
        if isinstance(self.target, Layer | tuple):
            raise InputError(f"target {self.name}: this problem plans whole networks, this is of layers alone")
        return self.target

    def target_json(self) -> object:
        """The target as plain JSON data."""
        if isinstance(self.target, Applications):
            parts = [asked.model_dump(mode="json") for asked in self.target.applications]
            return [self.target.network.model_dump(mode="json"), parts]
        if isinstance(self.target, tuple):
            return [layer.model_dump(mode="json") for layer in self.target]
        return self.target.model_dump(mode="json")

    @property
    def applications(self) -> Applications:
        """Several applications; raises InputError if the target is one network."""
        if not isinstance(self.target, Applications):
            raise InputError(
                "problem applications: name networks with their periods, such as squeezenet1_1@33ms,mobilenet_v1@40ms"
            )
        return self.target

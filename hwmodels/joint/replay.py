"""Replay of a network whose layers share a memory: what lies on chip, layer by layer, and what must be in DRAM.

Every layer is walked by `hwmodels.nest.replay` with the rows that are on chip; around it, `Account` keeps track of
banks and rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from hwmodels.joint.replay_account import Account, room_of
from hwmodels.nest.replay import Replay, replay
from hwmodels.schedule import Hold, LayerRun, Nest
from instances.machine import Machine
from instances.stores import Stores
from instances.workload import Layer

#: Layers of a network are executed on integers as long as they have no more steps than this together: half a second.
STEPS = 5_000


@dataclass(frozen=True)
class JointReplay:
    """What happened: the walk of every layer, and everything that is wrong."""

    layers: tuple[Replay, ...]
    faults: tuple[str, ...]


def replay_joint(found: Stores, machine: Machine, runs: Sequence[LayerRun]) -> JointReplay:
    """Walk all layers in their order; a run's residents are numbers of stores."""
    faults: list[str] = []
    walked: list[Replay] = []
    account, single = Account(found, machine), SingleLayers(found, machine)
    if len(runs) != len(found.layers):
        return JointReplay((), (f"the plan has {len(runs)} layers, the network {len(found.layers)}",))
    for t, run in enumerate(runs):
        name = found.layers[t].name
        said = list(account.faults_before(run, range(t, t + 1)))
        if said:
            return JointReplay((), tuple(f"layer {name}: {fault}" for fault in said))
        walked.append(single.replay(t, run, loads=account.loads(run, t)))
        faults += [f"layer {name}: {fault}" for fault in single.faults(run, walked[-1])]
        account.after(run, range(t, t + 1))
    faults += account.faults_of_results()
    return JointReplay(tuple(walked), tuple(dict.fromkeys(faults)))


class SingleLayers:
    """Replays of layers that run alone; equal ones are walked once, and executed as long as `STEPS` last."""

    def __init__(self, found: Stores, machine: Machine) -> None:
        self.found, self.machine = found, machine
        self.known: dict[object, Replay] = {}
        self._left = STEPS

    def replay(self, step: int, run: LayerRun, *, loads: bool = False) -> Replay:
        """Walk a layer with what it finds on chip, or loads before it; raises InputError if its nest is malformed."""
        layer = self.found.layer(step, run.rows, run.unwritten)
        walked = self._walk(layer, run.nest)
        if not loads:
            return walked
        off_chip = {s: rows for s, rows in run.rows.items() if s != self.found.shared[step]}
        held = Nest((Hold("W"), *run.nest.items), run.nest.homes)
        first = self._walk(self.found.layer(step, off_chip, run.unwritten), held, self._beside)
        outcome = replace(first.outcome, occupancy_bytes=walked.outcome.occupancy_bytes)  # weights have a store
        return replace(first, outcome=outcome, faults=(*walked.faults, *first.faults))

    @cached_property
    def _beside(self) -> Machine:
        """The machine where weights that are loaded take no room of tiles, however often it buffers these."""
        return self.machine.model_copy(update={"ocm_bytes": 3 * (self.machine.ocm_bytes or 0)})

    def _walk(self, layer: Layer, nest: Nest, machine: Machine | None = None) -> Replay:
        key, machine = (layer.signature(), nest, machine is None), machine or self.machine
        if key not in self.known:
            walked = replay(layer, machine, nest, execute=False)
            if walked.steps <= self._left:
                walked = replay(layer, machine, nest)
                self._left -= walked.steps if walked.executed else 0
            self.known[key] = walked
        return self.known[key]

    def faults(self, run: LayerRun, walked: Replay) -> Iterator[str]:
        """What is wrong with a walk, the room that its tiles have included."""
        yield from walked.faults
        (room, whose), taken = room_of(self.found, self.machine, run), walked.outcome.occupancy_bytes["ocm"]
        if taken > room:
            yield f"tiles take {taken:,} bytes, {whose} {room:,}"

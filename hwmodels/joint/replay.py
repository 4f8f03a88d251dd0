"""Replay of layers that run by themselves in a shared memory: each is walked with the rows that are on chip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from hwmodels.joint.replay_account import room_of
from hwmodels.nest.replay import Replay, replay
from hwmodels.schedule import Hold, LayerRun, Nest
from instances.machine import Machine
from instances.stores import Stores
from instances.workload import Layer

#: Layers of a network are executed on integers as long as they have no more steps than this together: half a second.
STEPS = 5_000


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

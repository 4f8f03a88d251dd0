"""The layers of a network that run by themselves in a shared memory: their prices, nests and banks.

A run (`hwmodels.schedule.LayerRun`) says the nest of a layer, what is on chip while it runs, and where. Weights that
stay are loaded before the first layer that reads them (`hwmodels.joint.price`). Banks are handed out from layer to
layer or group to group; in bytes, without banks, nothing has a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from formulations.clock import Clock
from formulations.pins import Pins
from formulations.tiling import tiling
from formulations.tiling.search import search_nests
from hwmodels.joint.price import RunFigures, ran
from hwmodels.nest.buffers import buffers
from hwmodels.nest.price.closed_form import price
from hwmodels.outcome import Outcome
from hwmodels.schedule import FusedRun, LayerRun, Loop, Nest, Run
from instances.machine.machine import Machine
from instances.network.stores import Stores
from instances.network.workload import Layer

#: Numbers of banks; none on a machine without banks.
Banks = tuple[int, ...]
#: The fastest nests of layers, by what they find on chip, room for tiles and bytes.
Fastest = dict[tuple[object, int, int], Nest]


class Layers:
    """The layers of a network on a machine; `pins` of their nests."""

    def __init__(self, found: Stores, machine: Machine, pins: Pins) -> None:
        self.found, self.machine, self.pins = found, machine, pins
        self._outcomes: dict[object, Outcome] = {}

    def layer(self, step: int, run: LayerRun) -> Layer:
        """A layer with what it finds on chip."""
        return self.found.layer(step, run.rows, run.unwritten)

    def outcome(self, layer: Layer, nest: Nest) -> Outcome:
        """What a nest of a layer costs."""
        key = layer.signature(), nest
        if key not in self._outcomes:
            self._outcomes[key] = price(layer, self.machine, nest)
        return self._outcomes[key]

    def ran(self, step: int, run: LayerRun, before: LayerRun | FusedRun | None) -> Outcome:
        """What a layer costs after another run, with the loading of weights that stay."""
        outcome = self.outcome(self.layer(step, run), run.nest)
        priced = self.outcome(*ran(self.found, step, run, before))
        return replace(priced, occupancy_bytes=outcome.occupancy_bytes)  # weights that stay are no tile

    def holds(self, step: int, run: LayerRun) -> bool:
        """Whether a nest is a plan of problem tiling, with the pins."""
        return tiling.build(self.layer(step, run), self.machine, self.pins).contains(run.nest)

    def explain(self) -> tuple[str, ...]:
        """The demands that a layer cannot meet even with all banks to itself."""
        machine = self.machine.model_copy(update={"ocm_bytes": self.machine.bank_count * self.machine.bank_bytes})
        for layer in self.found.layers:
            if said := tiling.build(layer, machine, self.pins).explain():
                return tuple(f"layer {layer.name}: {line}" for line in said)
        return ("no layer by itself conflicts with the machine, all of them together do",)

    def figured(self, step: int, run: LayerRun, seen: RunFigures) -> RunFigures:
        """What is said of a layer, with where its tiles lie."""
        lie = buffers(self.layer(step, run), self.machine, run.nest)
        return replace(seen, buffers=lie, on_chip=on_chip(self.found, self.machine, run))

    def trimmed(self, step: int, run: LayerRun) -> LayerRun:
        """A run with those banks alone that the tiles take; without banks as it is."""
        taken = self.outcome(self.layer(step, run), run.nest).occupancy_bytes["ocm"]
        return replace(run, banks=run.banks[: -(-taken // self.machine.bank_bytes)])

    def faster(self, step: int, run: LayerRun, known: Fastest, clock: Clock) -> LayerRun:
        """The fastest nest that moves as little in the room that is free; without time a coarser one."""
        layer, (free, room) = self.layer(step, run), left_of(self.found, self.machine, run)
        key = layer.signature(), room, self.outcome(layer, run.nest).bytes
        if key not in known:
            known[key] = self._faster(layer, run.nest, room, clock)
        return self.trimmed(step, replace(run, nest=known[key], banks=free))

    def _faster(self, layer: Layer, nest: Nest, room: int, clock: Clock) -> Nest:
        most = {"ocm": room, "bytes": self.outcome(layer, nest).bytes}
        space = tiling.build(layer, self.machine, self.pins)
        if not clock.over:
            said = search_nests(space, ("bytes",), clock, most=most, proving=(), known=most).nest or nest
            return min(said, nest, key=lambda one: ((of := self.outcome(layer, one)).bytes, of.time_ticks))
        for item in nest.items:  # without loops that save nothing there are fewer tiles, which take time to replay, too
            fewer = replace(nest, items=tuple(one for one in nest.items if one is not item))
            if isinstance(item, Loop) and space.contains(fewer):
                outcome = self.outcome(layer, fewer)
                if outcome.bytes <= most["bytes"] and outcome.occupancy_bytes["ocm"] <= most["ocm"]:
                    nest = fewer
        return nest


def on_chip(found: Stores, machine: Machine, run: Run) -> dict[str, int]:
    """Return the bytes of what stays on chip while a layer or a group runs, by name."""
    rows = {found.stores[s]: count for s, (count, _) in run.residents.items()}
    return {store.name: count * store.row_bytes(machine) for store, count in rows.items()}


class Places:
    """Hands out banks: a map takes the lowest free ones when it is first there, and gives back its last ones."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._held: dict[int, Banks] = {}

    def given(self, sizes: Mapping[int, int]) -> tuple[Mapping[int, Banks], Banks]:
        """The banks of maps that take so many from now on, and those that are left; all maps are named."""
        if not self.machine.ocm_banks:
            return dict.fromkeys(sizes, ()), ()
        self._held = {k: banks[: sizes[k]] for k, banks in self._held.items() if k in sizes}
        free = [b for b in range(self.machine.ocm_banks) if not any(b in banks for banks in self._held.values())]
        for k, number in sizes.items():
            if k not in self._held:
                self._held[k], free = tuple(free[:number]), free[number:]
        return dict(self._held), tuple(free)


def left_of(found: Stores, machine: Machine, run: LayerRun | FusedRun) -> tuple[Banks, int]:
    """Return the banks that no map on chip has during a run, and the bytes that maps leave."""
    if not machine.ocm_banks:
        taken = sum(rows * found.stores[s].row_bytes(machine) for s, (rows, _) in run.residents.items())
        return (), machine.bank_count - taken
    taken_banks = {bank for _, banks in run.residents.values() for bank in banks}
    free = tuple(bank for bank in range(machine.ocm_banks) if bank not in taken_banks)
    return free, len(free) * machine.bank_bytes

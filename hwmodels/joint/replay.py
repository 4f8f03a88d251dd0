"""Replay of a network in a shared memory: the account of what lies on chip, and the layers that run by themselves.

`SingleLayers` walks each of these layers with the rows that are on chip. `Account` knows who owns a bank, what lies on
chip, and what is in DRAM.

A run is a layer or a group of layers. A bank has one owner at a time, a map's banks hold its rows (but for a result
that takes the place of a map, pixel by pixel as that is read for the last time); where the memory has
no banks, rows and what the run itself takes are no more bytes together than there are. Rows that left the chip never
come back, every row that is read from DRAM was written there, results of the network are written whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from hwmodels.nest.replay.referee import Replay, replay
from hwmodels.schedule import FusedRun, Hold, LayerRun, Nest
from instances.machine.machine import Machine
from instances.network.stores import Stores
from instances.network.workload import Layer

Run = LayerRun | FusedRun


@dataclass
class _Map:
    """A store during the walk: its banks, the rows on chip, and per part the first row that is in DRAM."""

    banks: tuple[int, ...]
    rows: int
    written: dict[int, int]


class Account:
    """Banks, rows on chip and rows in DRAM, from run to run.

    Ask `faults_before` what is wrong with a run, then tell it `after`; at the end ask `faults_of_results`.
    """

    def __init__(self, found: Stores, machine: Machine) -> None:
        self.found, self.machine = found, machine
        self.maps: dict[int, _Map] = {}

    def faults_before(self, run: Run, layers: range) -> Iterator[str]:
        """What is wrong with the room of a run of these layers, and with what it finds and leaves on chip."""
        if any(not 0 <= s < len(self.found.stores) for s in run.residents):
            yield f"maps on chip are numbered 0 to {len(self.found.stores) - 1}, not {sorted(run.residents)}"
            return
        if wrong := list(self._in_place(run, layers)):
            yield from wrong
            return
        yield from self._banks(run) if self.machine.ocm_banks else self._bytes(run)
        made = {self.found.writes[t] for t in layers} | {self.found.shared[t] for t in layers if self.loads(run, t)}
        yield from self._residents(run, made)
        yield from self._reads(run, layers)
        yield from self._unwritten(run, layers)

    def after(self, run: Run, layers: range) -> None:
        """Take down what a run leaves on chip and in DRAM."""
        for s in run.residents:
            if self.found.stores[s].weights:
                self.maps.setdefault(s, _Map((), 0, {}))
        for s, was in self.maps.items():
            was.rows, was.banks = (0, ()) if s in run.in_place.values() else run.residents.get(s, (0, ()))
        for t, unwritten in zip(layers, _unwritten(run), strict=True):
            store = self.found.writes[t]
            rows, banks = run.residents.get(store, (0, ()))
            self.maps.setdefault(store, _Map(banks, rows, {})).written[t] = unwritten

    def faults_of_results(self) -> Iterator[str]:
        """What had to be in DRAM at the end, and is not."""
        for s, store in enumerate(self.found.stores):
            parts = self.maps[s].written.items() if s in self.maps else ()
            kept = [self.found.layers[t].name for t, first in parts if first]
            if kept and (store.dram or store.results):
                yield f"{', '.join(kept)}: the result must be in DRAM, some rows are not written"

    def used_after(self, store: int, last: int) -> bool:
        """Whether somebody needs a store when layer `last` has run: a later layer, or whoever reads DRAM."""
        mine = self.found.stores[store]
        return mine.dram or mine.results > 0 or any(t > last for t in mine.readers)

    def loads(self, run: Run, layer: int) -> bool:
        """Whether the weights of a layer are on chip while it runs by itself, and were not before: it loads them."""
        store = self.found.shared[layer]
        return (
            isinstance(run, LayerRun)
            and store in run.residents
            and (store not in self.maps or not self.maps[store].rows)
        )

    def _in_place(self, run: Run, layers: range) -> Iterator[str]:
        """Results that take the place of maps, which nobody reads any more."""
        if len(set(run.in_place.values())) < len(run.in_place):
            yield f"one map gives its place to several: {dict(run.in_place)}"
        for made, place in run.in_place.items():
            if not {made, place} <= run.residents.keys():
                yield f"store {made} takes the place of store {place}, both must be on chip"
                continue
            new, old = self.found.stores[made], self.found.stores[place]
            makers = [t for t, _ in new.parts]
            if len(makers) != 1 or makers[0] not in layers:
                yield f"{new.name} takes the place of {old.name}: no layer here makes all of it"
                continue
            faults = [*self._alike(run, made, place), *self._one_by_one(run, layers, makers[0], place)]
            yield from (f"{new.name} takes the place of {old.name}: {said}" for said in faults)

    def _alike(self, run: Run, made: int, place: int) -> Iterator[str]:
        """Two maps in one place lie there as a whole, row on row."""
        new, old = self.found.stores[made], self.found.stores[place]
        if any((run.residents[s][0], self.found.stores[s].weights) != (self.found.stores[s].rows, 0)
               for s in (made, place)):  # fmt: skip
            yield "both must be maps on chip as a whole"
        if run.residents[made][1] != run.residents[place][1]:
            yield "it has other banks"
        if (new.rows, new.row_elements) != (old.rows, old.row_elements) or new.whole or old.whole:
            yield "their rows are not alike"
        if old.results:
            yield "it is a result of the network, which may still be on its way to DRAM"

    def _one_by_one(self, run: Run, layers: range, t: int, place: int) -> Iterator[str]:
        """A layer reads each pixel of a map last, and once, when it makes that pixel of its result."""
        layer, old = self.found.layers[t], self.found.stores[place]
        if [u for u in old.readers if u >= layers.start] != [t] or any(u in layers for u, _ in old.parts):
            yield f"{layer.name} is not the only one to read it from here on"
        lacks = [some for s, some in zip(self.found.reads[t], layer.patterns, strict=True) if s == place]
        window = layer.kh, layer.kw, layer.stride_h, layer.stride_w, layer.n, layer.m
        same = layer.weights == "none" and window == (1,) * 6 and (layer.h, layer.l) == (layer.r, layer.c)
        if not same or any(lacks) or self.found.apart.get((t, place), 1) > 1:
            yield f"{layer.name} does not read each pixel of it for that pixel of its result alone"
        if isinstance(run, FusedRun) and "recompute" in (run.rows.halo, run.columns.halo):
            yield f"{layer.name} may compute pixels again, and what it read is gone"

    def _banks(self, run: Run) -> Iterator[str]:
        stores, machine = self.found.stores, self.machine
        owner: dict[int, str] = {}
        own = "tiles" if isinstance(run, LayerRun) else "strips and weights"
        maps = ((s, banks) for s, (_, banks) in run.residents.items() if s not in run.in_place)
        owned = [(own, run.banks), *((stores[s].name, banks) for s, banks in maps)]
        for name, banks in owned:
            for bank in banks:
                if not 0 <= bank < machine.ocm_banks:
                    yield f"bank {bank} of {name} does not exist, {machine.name} has {machine.ocm_banks}"
                elif bank in owner:
                    yield f"bank {bank} belongs to {owner[bank]} and to {name}"
                owner[bank] = name
        for s, (rows, banks) in run.residents.items():
            store = stores[s]
            need, room = rows * store.row_bytes(machine), len(banks) * machine.bank_bytes
            if need > room or not 0 <= rows <= store.rows:
                yield f"{rows} rows of {store.name} take {need:,} bytes, {len(banks)} banks hold {room:,}"

    def _bytes(self, run: Run) -> Iterator[str]:
        """Without banks: maps say none, and take no more than the memory; what a run takes is compared after it."""
        stores, machine = self.found.stores, self.machine
        numbered = [*run.banks, *(bank for _, banks in run.residents.values() for bank in banks)]
        if numbered:
            yield f"bank {min(numbered)} does not exist, {machine.name} has no banks"
        for s, (rows, _) in run.residents.items():
            if not 0 <= rows <= stores[s].rows:
                yield f"{rows} rows of {stores[s].name} are on chip, it has {stores[s].rows}"
        room, _ = room_of(self.found, machine, run)
        if room < 0:
            yield f"maps on chip take {-room:,} bytes more than {machine.name} has"

    def _residents(self, run: Run, made: set[int]) -> Iterator[str]:
        """What is on chip was there before, unless the run is the first to write it."""
        for s, (rows, banks) in run.residents.items():
            store, was = self.found.stores[s], self.maps.get(s)
            if store.dram:
                yield f"{store.name} must lie in DRAM"
            elif store.weights and self.machine.bias_bytes and store.biases is None:
                yield f"{store.name} cannot stay: the layers have biases of their own"
            elif (was is None or (store.weights and not was.rows)) and s not in made:
                yield f"{store.name} is on chip, no layer has {'loaded' if store.weights else 'written'} it yet"
            elif was is None or (store.weights and s in made):
                continue
            elif rows > was.rows or was.banks[: len(banks)] != banks:
                yield f"{rows} rows of {store.name} are on chip, in the layer before {was.rows} were, or in other banks"

    def _reads(self, run: Run, layers: range) -> Iterator[str]:
        """The rows that are read and were there before are on chip or in DRAM."""
        for s in dict.fromkeys(s for t in layers for s in self.found.reads[t]):
            there = run.residents[s][0] if s in run.residents else 0
            for part, first in self.maps[s].written.items() if s in self.maps else ():
                if first > there:
                    yield (
                        f"rows {there} to {first - 1} of {self.found.stores[s].name} are read from DRAM, "
                        f"{self.found.layers[part].name} never wrote them"
                    )

    def _unwritten(self, run: Run, layers: range) -> Iterator[str]:
        """Rows of a result that are never written stay on chip, unless nobody outside a group needs them."""
        for t, unwritten in zip(layers, _unwritten(run), strict=True):
            store = self.found.writes[t]
            there = run.residents[store][0] if store in run.residents else 0
            if not 0 <= unwritten <= self.found.stores[store].rows:
                yield f"{unwritten} rows are not written, the result has {self.found.stores[store].rows}"
            elif unwritten > there and (isinstance(run, LayerRun) or self.used_after(store, layers[-1])):
                what = "the result" if isinstance(run, LayerRun) else self.found.layers[t].name
                yield f"{unwritten} rows of {what} are not written, {there} stay on chip"


def room_of(found: Stores, machine: Machine, run: Run) -> tuple[int, str]:
    """Return the bytes that a run may take beside the maps on chip, and who says so."""
    if machine.ocm_banks:
        return len(run.banks) * machine.bank_bytes, f"{len(run.banks)} banks hold"
    room = machine.memories["ocm"]
    for s, (rows, _) in run.residents.items():
        room -= rows * found.stores[s].row_bytes(machine) * (s not in run.in_place)
    return room, "maps on chip leave"


def _unwritten(run: Run) -> tuple[int, ...]:
    return (run.unwritten,) if isinstance(run, LayerRun) else run.unwritten


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

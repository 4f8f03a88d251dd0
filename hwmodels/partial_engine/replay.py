"""Referee for programs of an engine: every step on every bank, element counts by bank, sums by input group.

Nothing is taken from the formulation or its closed forms: groups, rows, sizes, cycles and bytes are made here from the
layer and the engine. Places lie in every bank one after the other: inputs, then partial maps, then the fresh one.

Source: `partial_cnn_engine` V: every map of a run has a bank of its own, no bank is read or written twice at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from instances.machine.machine import Machine
from instances.network.workload import Layer

#: Faults after which a replay ends.
_MOST = 20


@dataclass
class EngineSeen:
    """What was counted, over all strips and grids."""

    inputs: int = 0
    weights: int = 0
    spilled: int = 0
    reloaded: int = 0
    results: int = 0
    """`inputs`, `weights`, `spilled`, `reloaded`, `results`: DRAM bytes."""
    runs: int = 0
    adds: int = 0
    cycles: int = 0
    """Of runs and additions, one after the other."""
    peak: int = 0
    """The most bytes ever used in a bank."""
    faults: list[str] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """All DRAM bytes."""
        return self.inputs + self.weights + self.spilled + self.reloaded + self.results


def replay_engine(
    layer: Layer, machine: Machine, rows: int, places: tuple[int, int], steps: Sequence[tuple[str, int, int, int]], *,
    held: tuple[bool, bool] = (False, False),
) -> EngineSeen:  # fmt: skip
    """Run a program in every strip of `rows` output rows and in every grid.

    Parameters
    ----------
    places : (int, int)
        For input groups and for partial groups in every bank.
    steps : sequence of (verb, input group, output group, place)
    held : (bool, bool)
        Whether all inputs lie in the banks before, and all results afterwards: every grid has places of its own then.
    """
    seen = EngineSeen()
    if any(held) and rows < layer.r:
        seen.faults.append(f"strips of {rows} rows: maps that stay in the banks are whole, of {layer.r} rows")
    strips = [range(first, min(first + rows, layer.r)) for first in range(0, layer.r, max(1, rows))]
    tallest = max(len(_rows_read(layer, strip)) for strip in strips), max(map(len, strips))
    for strip in strips:
        grids = list(_grids(layer, machine))
        for number, grid in enumerate(grids):
            one = _Bench(layer, machine, strip, grid, places, tallest, seen, held, (number, len(grids)))
            one.go(steps)
            if len(seen.faults) >= _MOST:
                return seen
    return seen


def _rows_read(layer: Layer, strip: range) -> set[int]:
    """The input rows that output rows need."""
    taps = {r * layer.stride_h + i * layer.dilation_h - layer.pad_top for r in strip for i in range(layer.kh)}
    return {row for row in taps if 0 <= row < layer.h}


def _apart(layer: Layer) -> bool:
    """Whether every map has a kernel of its own."""
    return layer.n == 1 and layer.m == 1 and (layer.g > 1 or layer.kind == "pool")


def _grids(layer: Layer, machine: Machine) -> Iterator[tuple[list[int], list[int]]]:
    """Real maps of the input groups and output groups of every grid."""
    engine = machine.engine
    assert engine is not None
    if _apart(layer):
        left, most = layer.g, min(engine.e_in, engine.e_out)
        while left > 0:
            yield [min(left, most)], [min(left, most)]
            left -= most
        return
    ins = [len(range(n, layer.n)[: engine.e_in]) for n in range(0, layer.n, engine.e_in)]
    outs = [len(range(m, layer.m)[: engine.e_out]) for m in range(0, layer.m, engine.e_out)]
    for _ in range(layer.g):
        yield ins, outs


class _Bench:
    """The banks while a grid is computed in a strip."""

    def __init__(
        self, layer: Layer, machine: Machine, strip: range, grid: tuple[list[int], list[int]], places: tuple[int, int],
        tallest: tuple[int, int], seen: EngineSeen, held: tuple[bool, bool], grid_of: tuple[int, int],
    ) -> None:  # fmt: skip
        assert machine.engine is not None
        self.layer, self.machine, self.engine, self.seen = layer, machine, machine.engine, seen
        self.ins, self.outs = grid
        self.where = f"rows {strip.start} to {strip.stop}"
        read = _rows_read(layer, strip)
        taps = product(range(layer.c), range(layer.kw))
        columns = {c * layer.stride_w + j * layer.dilation_w - layer.pad_left for c, j in taps}
        self.pixels_in = len(read) * sum(0 <= column < layer.l for column in columns)
        self.pixels = len(strip) * layer.c
        self.map_in = len(read) * layer.l * machine.in_bytes
        self.apart = _apart(layer)
        self.fresh_place = self.engine.adds == "steps" and len(self.ins) > 1
        partial = layer.c * max(machine.psum_bytes, machine.out_bytes)
        self.sizes = tallest[0] * layer.l * machine.in_bytes, tallest[1] * partial
        self.places, self.held, self.number = places, held, grid_of[0]
        #: Places for inputs and partial maps in a bank, those of other grids included.
        self.all_places = tuple(n * (grid_of[1] if stay else 1) for n, stay in zip(places, held, strict=True))
        #: What lies where in bank k: addresses -> the map there. An input map, or sums: (output map, inputs summed).
        self.banks: list[dict[int, tuple[str, int, frozenset[int]]]] = [{} for _ in range(self.engine.banks)]
        self.dram: dict[int, frozenset[int]] = {}
        self.done: set[int] = set()
        self._fits()
        if held[0]:
            if places[0] != len(self.ins):
                self._fault(f"{places[0]} input places for {len(self.ins)} groups that lie in the banks")
            for i, maps in enumerate(self.ins):
                self._put(self._address(0, i), maps, ("in", i, frozenset()))

    def _fits(self) -> None:
        """All places lie in a bank one after the other."""
        x, y = self.all_places
        end = x * self.sizes[0] + (y + self.fresh_place) * self.sizes[1]
        self.seen.peak = max(self.seen.peak, end)
        if end > self.engine.bank_bytes:
            self._fault(f"the places take {end} bytes, a bank has {self.engine.bank_bytes}")

    def _fault(self, text: str) -> None:
        if len(self.seen.faults) < _MOST:
            self.seen.faults.append(f"{self.where}: {text}")

    def _address(self, side: int, place: int) -> int:
        x, y = self.places
        if side == 0 and not 0 <= place < x:
            self._fault(f"there is no input place {place}, there are {x}")
        if side == 1 and not (0 <= place < y or (place == -1 and self.fresh_place)):
            self._fault(f"there is no partial place {place}, there are {y}")
        if side == 0:
            return (place + self.number * x * self.held[0]) * self.sizes[0]
        base = self.all_places[0] * self.sizes[0]
        if place == -1:
            return base + self.all_places[1] * self.sizes[1]
        return base + (place + self.number * y * self.held[1]) * self.sizes[1]

    def _find(self, kind: str, group: int) -> int | None:
        """The address of a group, which all of its maps have in their banks."""
        for address, (what, which, _) in self.banks[0].items():
            if (what, which) == (kind, group) and address != self._fresh:
                return address
        return None

    @property
    def _fresh(self) -> int:
        x, y = self.all_places
        return x * self.sizes[0] + y * self.sizes[1] if self.fresh_place else -1

    def _put(self, address: int, maps: int, content: tuple[str, int, frozenset[int]]) -> None:
        if maps > len(self.banks):
            self._fault(f"{maps} maps at once, there are {len(self.banks)} banks")
        for bank in self.banks[:maps]:
            bank[address] = content

    def _clear(self, address: int) -> None:
        for bank in self.banks:
            bank.pop(address, None)

    def _accesses(self, reads: Sequence[tuple[int, int]], writes: Sequence[tuple[int, int]]) -> int:
        """Cycles that the accesses need: of (first banks, elements), each bank one read and one write a cycle."""
        by_read, by_written = [0] * self.engine.banks, [0] * self.engine.banks
        for counts, accesses in ((by_read, reads), (by_written, writes)):
            for maps, elements in accesses:
                for k in range(maps):
                    counts[k] += elements
        return max(*by_read, *by_written)

    def go(self, steps: Sequence[tuple[str, int, int, int]]) -> None:
        """Do all steps."""
        acts = {"load": self._load, "back": self._back, "run": self._run, "add": self._add, "spill": self._spill,
                "store": self._store}  # fmt: skip
        for number, (verb, i, o, place) in enumerate(steps):
            before = len(self.seen.faults)
            if (verb in ("load", "run") and not 0 <= i < len(self.ins)) or (
                verb != "load" and not 0 <= o < len(self.outs)
            ):
                self._fault(f"there is no such group: {verb} {i} {o}")
            else:
                acts[verb](i, o, place)
            if len(self.seen.faults) > before:
                self._fault(f"in step {number}, {verb} of input {i}, output {o}, place {place}")
                return
        whole = {o for what, o, sums in self.banks[0].values() if what == "sum" and len(sums) == len(self.ins)}
        for o in range(len(self.outs)):
            if o not in (whole if self.held[1] else self.done):
                self._fault(f"output group {o} is never {'in a place, whole' if self.held[1] else 'stored'}")

    def _load(self, i: int, _: int, place: int) -> None:
        if self.held[0]:
            self._fault("inputs lie in the banks")
        self._put(self._address(0, place), self.ins[i], ("in", i, frozenset()))
        self.seen.inputs += self.ins[i] * self.map_in

    def _back(self, _: int, o: int, place: int) -> None:
        address = self._address(1, place)
        if o not in self.dram:
            self._fault(f"partial maps {o} are not in DRAM")
        elif address in self.banks[0]:
            self._fault("the place is taken")
        else:
            self._put(address, self.outs[o], ("sum", o, self.dram.pop(o)))
            self.seen.reloaded += self.outs[o] * self.pixels * self.machine.psum_bytes

    def _run(self, i: int, o: int, place: int) -> None:
        layer, address = self.layer, self._address(1, place)
        if self._find("in", i) is None:
            self._fault(f"input group {i} is in no place")
            return
        there, held = self._find("sum", o), self.banks[0].get(address)
        reads = [(self.ins[i], self.pixels_in)]
        if place == -1:
            if there is None:
                self._fault(f"partial maps {o} are in no place")
            if held is not None:
                self._fault("the fresh place holds maps that are not added yet")
            self._put(address, self.outs[o], ("sum", o, frozenset({i})))
        elif held is None:
            if o in self.done or o in self.dram or there is not None:
                self._fault(f"a second sum of output group {o}")
            self._put(address, self.outs[o], ("sum", o, frozenset({i})))
        elif self.engine.adds == "hidden" and held[:2] == ("sum", o) and i not in held[2]:
            self._put(address, self.outs[o], ("sum", o, held[2] | {i}))
            self.seen.adds += 1
        else:
            self._fault("the place is taken")
        taps = layer.kh * layer.kw
        rate = self.engine.window_taps if self.apart else self.engine.pair_taps
        products = self.pixels * len(range(0, taps, rate))
        self.seen.cycles += max(products, self._accesses(reads, [(self.outs[o], self.pixels)]))
        self.seen.runs += 1
        if layer.weights != "none":
            kernels = self.outs[o] if self.apart else self.ins[i] * self.outs[o]
            self.seen.weights += kernels * taps * self.machine.w_bytes

    def _add(self, _: int, o: int, place: int) -> None:
        address = self._address(1, place)
        fresh, held = self.banks[0].get(self._fresh), self.banks[0].get(address)
        if fresh is None or held is None or fresh[:2] != ("sum", o) or held[:2] != ("sum", o) or fresh[2] & held[2]:
            self._fault(f"there are no two different parts of output group {o}")
            return
        self._put(address, self.outs[o], ("sum", o, held[2] | fresh[2]))
        self._clear(self._fresh)
        pair = (self.outs[o], self.pixels)
        self.seen.cycles += self._accesses([pair, pair], [pair])
        self.seen.adds += 1

    def _spill(self, _: int, o: int, place: int) -> None:
        address = self._address(1, place)
        held = self.banks[0].get(address)
        if held is None or held[:2] != ("sum", o):
            self._fault(f"the place does not hold partial maps {o}")
            return
        self.dram[o] = held[2]
        self._clear(address)
        self.seen.spilled += self.outs[o] * self.pixels * self.machine.psum_bytes

    def _store(self, _: int, o: int, place: int) -> None:
        address = self._address(1, place)
        held = self.banks[0].get(address)
        if held is None or held[:2] != ("sum", o) or held[2] != frozenset(range(len(self.ins))):
            self._fault(f"the place does not hold the whole sum of output group {o}")
            return
        if self.held[1]:
            self._fault("results stay in the banks")
        self.done.add(o)
        self._clear(address)
        self.seen.results += self.outs[o] * self.pixels * self.machine.out_bytes

"""What no plan of fusion with maps on chip as a whole is below, in ticks.

A group of layers, whatever its strips, columns, turns and the weights that it keeps, computes at least C ticks, loads
at least D bytes in f bytes of memory and stores S bytes. Its matrix (`products`) is at least

    E'  >= max(E + C, A1 + D)         it computes everything after it begins, and nothing ends before what it loads
    A1' >= max(A1 + D, E + C - f)     at its end at most f bytes are loaded ahead
    A2' >= max(A2 + D + S, A1')       stores end behind it

in every entry: take its steps one after the other; each of them only raises clocks, E by its ticks, A1 and A2 by what
is due or released, and A1 is at least E - cap with cap <= f. A layer by itself loads everything that is not on chip
once. D is the least of all options (`formulations.fusion.arcs.Pricing.sketch`): weights as often as f bytes make them
come. Calls and segments are not counted here. So the least path over these matrices is below every plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from formulations.fusion.arcs import Groups, Pricing
from formulations.fusion.group_time import cycles_of
from formulations.fusion.groups import NEVER, Group
from formulations.fusion.latency.options import Options, Place, There, Way
from formulations.fusion.latency.products import BEFORE
from formulations.fusion.memory import Option
from formulations.fusion.space import Arc
from formulations.fusion.strips import Ints


class Floors(Options):
    """A matrix that is below those of all options, for every group and place."""

    def __init__(self, groups: Groups, alone: list[Arc]) -> None:
        super().__init__(groups, 1)
        self.nests = alone

    def ways(self, first: int, last: int, places: Iterable[Place]) -> dict[Place, list[Way]]:
        """One for each place where a group may find room."""
        found: dict[Place, list[Way]] = {place: [] for place in places}
        if first == last:
            group, arc = Group(self.net, first, first), self.nests[first]
            for place in found:
                layer = self.net.layers[first]
                compute = self._computes(group, [layer.r], [layer.c])
                found[place] = [self._way(group, place, self._once(arc, place[0]), compute)]
            return found
        for group in self.of(first, last) if found else ():
            pricing = self.groups.pricing(group)
            sketch = None if pricing is None else pricing.sketch()
            if pricing is not None and sketch is not None:
                sizes = (axis.extent[: len(group.layers)].tolist() for axis in (pricing.down, pricing.across))
                compute = self._computes(group, *sizes)
                for place in found:
                    loads = self._loads(pricing, sketch.table, sketch.reads, place)
                    if loads < NEVER:
                        found[place].append(self._way(group, place, loads, compute))
        return found

    def _once(self, arc: Arc, near: There) -> int:
        """Bytes that a layer by itself loads at least."""
        levels = {k: -1 if k in near else 0 for k in self.maps}
        reads = (int(r[levels[k]]) if k in levels else int(r.min()) for k, r in zip(arc.axes, arc.reads, strict=True))
        return arc.fixed + sum(reads)

    def _loads(self, pricing: Pricing, table: Ints, reads: dict[int, Ints], place: Place) -> int:
        near, free = place
        there = {self.residence(k).store for k in near}
        index = tuple(int(store in there) for store in pricing.stores)
        column = int(np.searchsorted(pricing.room, free, side="right")) - 1
        weights = int(table[(*index, column)]) if column >= 0 else NEVER
        return weights + sum(int(r[-1 if store in there else 0]) for store, r in reads.items())

    def _way(self, group: Group, place: Place, loads: int, compute: int) -> Way:
        """The matrix for so many bytes that are loaded and ticks that are computed."""
        stores = self._stores(group, place[0]) * self.per_byte
        loads *= self.per_byte
        ahead = compute - place[1] * self.per_byte
        matrix = np.array(
            [[compute, loads, BEFORE], [ahead, loads, BEFORE], [ahead, loads, loads + stores]], np.int64
        )  # fmt: skip
        return Way(group.first, group.last, Option(1, 1, "lead", "lead"), (), place, matrix)

    def _computes(self, group: Group, rows: Sequence[int], columns: Sequence[int]) -> int:
        """Ticks of what somebody needs, once; 0 where strips may leave out what they compute again."""
        if self.groups.demands.recompute:
            return 0
        sizes = zip(group.layers, rows, columns, strict=True)
        cycles = sum(int(cycles_of(self.net.layers[t], self.machine, np.array(high * wide))) for t, high, wide in sizes)
        return cycles * self.machine.compute.cycle_ticks

    def _stores(self, group: Group, near: There) -> int:
        """Bytes of results that go to DRAM."""
        there = {self.residence(k).store for k in near}
        written = (t for t in group.layers if not self.unwritten(group, t, there))
        return sum(
            layer.r * layer.c * layer.b * layer.g * layer.m * self.machine.out_bytes
            for layer in (self.net.layers[t] for t in written)
        )

"""The referee of the nests that bring steps of a network through nearer memories: loops run one by one.

It shares nothing with `hwmodels.levels.near` but what a box is: the nest of a box is walked as the nest of a layer is.
Where a box adds up a part of what results need, the sums come before, tile by tile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from hwmodels.levels.replay.walk import walk
from hwmodels.levels.schedule import Box, Cut, LevelNest, NearStep, layer_of, near_machine
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer


class NearReplay:
    """What the nests of plans take, each walked once."""

    def __init__(self, layers: Sequence[Layer], machine: Machine) -> None:
        self.layers, self.machine = layers, machine
        self._seen: dict[tuple[int, Box, LevelNest], tuple[int, int, tuple[str, ...]]] = {}

    def faults(
        self, nests: Sequence[NearStep], name: str, macs: int, taken: Sequence[int],
        steps: Sequence[Sequence[tuple[int, Box]]],
    ) -> Iterator[str]:  # fmt: skip
        """Yield what is wrong with the steps of a run: they make more or less than it, or take less than their nests.

        `taken`: ticks of its steps, or of one for all of them.
        """
        boxes = [one for some in steps for one in some]
        if (made := sum(self.macs(t, box) for t, box in boxes)) != macs:
            yield f"{name}: boxes of its steps make {made:,} MACs of {macs:,}"
        ticks, faults = self.ticks(nests, boxes)
        yield from faults
        each = iter(ticks)
        least = [sum(islice(each, len(some))) for some in steps]
        for k, (mine, step) in enumerate(zip(least if len(taken) > 1 else [sum(least)], taken, strict=True), 1):
            if step < mine:
                yield f"{name}: step {k} takes {step:,} ticks, its nests take {mine:,}"

    def ticks(self, steps: Sequence[NearStep], boxes: Iterable[tuple[int, Box]]) -> tuple[list[int], list[str]]:
        """What boxes take, of layers by number, and what is wrong with their nests; 0 where a plan has none."""
        nests, taken, faults = {(one.layer, one.box): one for one in steps}, list[int](), dict[str, None]()
        for t, box in boxes:
            like = (s for s in range(t + 1) if (s, box) in nests and _alike(self.layers[s], self.layers[t]))
            if (first := next(like, None)) is None:
                taken.append(0)
                faults[f"near: no nest for a box that a step of layer {self.layers[t].name} makes"] = None
                continue
            ticks, _, said = self._of(nests[first, box])
            taken.append(ticks)
            faults |= dict.fromkeys(said)
        return taken, list(faults)

    def bytes(self, steps: Sequence[NearStep]) -> int:
        """What all steps move between the shared memory and the next one."""
        return sum(self._of(one)[1] * one.times for one in steps)

    def counted(self, steps: Sequence[NearStep], boxes: Iterable[tuple[int, Box]]) -> Iterator[str]:
        """Yield the nests that are said for more steps than make their box, or for fewer."""
        made, alike = Counter(boxes), {t: self._first(t) for t in range(len(self.layers))}
        each = Counter[tuple[int, Box]]()
        for (t, box), number in made.items():
            each[alike[t], box] += number
        for one in steps:
            number = each[alike[one.layer], one.box] if one.layer in alike else 0
            if number != one.times:
                yield f"near: a nest of layer {one.layer} is said for {one.times:,} steps, {number:,} make its box"

    def _first(self, t: int) -> int:
        return next(s for s in range(t + 1) if _alike(self.layers[s], self.layers[t]))

    def _of(self, one: NearStep) -> tuple[int, int, tuple[str, ...]]:
        key = one.layer, one.box, one.nest
        if key not in self._seen:
            self._seen[key] = self._walked(one) if one.layer < len(self.layers) else (0, 0, ())
        return self._seen[key]

    def _walked(self, one: NearStep) -> tuple[int, int, tuple[str, ...]]:
        """Ticks, bytes, and what is wrong."""
        layer, machine = layer_of(self.layers[one.layer], one.box), near_machine(self.machine, one.box.sums)
        assert machine.levels is not None
        try:
            one.nest.validate_for(layer, machine.levels)
        except InputError as error:
            return 0, 0, (f"near: layer {layer.name}: {error}",)
        seen = walk(layer, machine, one.nest)
        faults = tuple(f"near: layer {layer.name}: {fault}" for fault in seen.faults)
        price = machine.levels.memories[0]
        if not one.box.sums:
            return seen.time, seen.bytes[price.name], faults
        sums = layer.b * layer.g * layer.m * layer.r * layer.c * machine.psum_bytes
        ticks = _visits(one.nest, layer) * price.call_ticks + sums * price.byte_ticks
        return seen.time + ticks, seen.bytes[price.name] + sums, faults

    def macs(self, t: int, box: Box) -> int:
        """Products of a box, as its layer counts them."""
        if self.layers[t].weights == "none":
            return 0
        return box.batch * box.groups * box.filters * box.channels * box.rows * box.columns * box.high * box.wide


def _alike(one: Layer, other: Layer) -> bool:
    """Whether boxes of two layers are the same work."""
    names = "stride_h", "stride_w", "dilation_h", "dilation_w", "inputs", "weights", "bias", "m", "n", "kh", "kw"
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _visits(nest: LevelNest, layer: Layer) -> int:
    """Transfers of sums of the nest itself: a tile that is visited v times is written v times, and read v - 1 times."""
    at = next(k for k, one in nest.stays() if one.operand == "OUT")
    while at and not _moves(nest, layer, at - 1):
        at -= 1
    steps, tiles, visits = nest.steps(at), 1, 1
    for d in DIMS:
        pieces = [layer.extent(d)]
        for step in steps[d]:
            pieces = [min(step, size - low) for size in pieces for low in range(0, size, step)]
        if d in "nij":
            visits *= len(pieces)
        else:
            tiles *= len(pieces)
    return tiles * (2 * visits - 1)


def _moves(nest: LevelNest, layer: Layer, k: int) -> bool:
    """Whether an item is a loop that moves the tile of results."""
    item = nest.items[k]
    if not isinstance(item, Cut) or item.dim in "nij":
        return False
    outer = [one.step for one in nest.items[:k] if isinstance(one, Cut) and one.dim == item.dim]
    return item.step < min([layer.extent(item.dim), *outer])

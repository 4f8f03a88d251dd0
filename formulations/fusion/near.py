"""What steps take whose tiles go through memories nearer than the shared one (`Machine.near`): c_t of every box.

A step of a run makes a box of a layer (`hwmodels.levels.near`). It begins and ends with nothing in the nearer memories,
so what it takes depends on its box alone, and the network's formulation needs no more of the near level than a table:

    c_t = max(MAC array, the nest of its box)      ticks, found when it is asked for, and kept

Example: three strips of 14 rows of a layer of 42 rows are two boxes, as the first and the last one have padding.

**Bounds.** `least` is what no nest of a box is below, and what boxes that make a layer together are not below either:

    C + I + O           the PEs compute everything, behind a transfer of every operand, and before one of the result
    all transfers       inputs, weights and results once, on one channel, with a call for each operand

Sums over boxes are no less than `least` of all of them: products, bytes and calls only become more (windows of boxes
overlap; every box has calls of its own). So bounds of the network stay as they are, with `least` in place of compute.

Outside the space: a near level that is ahead of a step's end, and nests that `formulations.levels.quick` does not look
at; `least` counts no nest, so bounds hold for these, too, within a step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from formulations.fusion.strips import Ints
from formulations.levels.quick import nests
from hwmodels.levels.near import near_price, near_ticks
from hwmodels.levels.price import levels_of, window_of
from hwmodels.levels.replay.near import NearReplay
from hwmodels.levels.schedule import Box, LevelNest, NearStep, layer_of, near_machine
from hwmodels.nest.price.pieces import Window
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer

#: Nests of a box of a plan that are followed.
MOST = 6


class Kind(NamedTuple):
    """Rows and columns of a result that steps make, and what of their windows is padding."""

    rows: int
    columns: int
    top: int
    bottom: int
    left: int
    right: int


class Near:
    """The steps of a network's layers on a machine; `given`: those of a plan, of which others are refused.

    `copied`: names of layers whose inputs have elements that are copies of others, or padding (`Layer.copies`).
    """

    def __init__(
        self, layers: Sequence[Layer], machine: Machine, given: Sequence[NearStep] | None = None,
        copied: Container[str] = (),
    ) -> None:  # fmt: skip
        assert machine.near is not None
        self.layers, self.machine, self.copied = layers, machine, copied
        self.referee = NearReplay(layers, machine)
        self.price, *self.behind = machine.near.memories
        self._first: dict[object, int] = {}
        for t, layer in enumerate(layers):
            self._first.setdefault(_alike(layer), t)
        self.given = None if given is None else {(self._number(one.layer), one.box): one for one in given}
        if given is not None and self.given is not None and len(self.given) < len(given):
            raise InputError(f"near: {len(given)} nests for {len(self.given)} boxes: one each is accepted")
        self._bytes: dict[tuple[int, Box, LevelNest], int] = {}
        self._steps: dict[tuple[int, Box], tuple[NearStep, int]] = {}
        self._machines = {sums: near_machine(machine, sums) for sums in (False, True)}
        if said := list(dict.fromkeys(self._refused())):
            raise InputError("; ".join(said))

    def _refused(self) -> Iterator[str]:
        """Yield why networks with these layers are not planned in levels."""
        large = list[str]()
        for t in dict.fromkeys(self._first.values()):
            layer = self.layers[t]
            try:
                whole = layer_of(layer, self._whole(t))
                levels_of(whole, self._machines[False])
            except InputError as error:
                yield str(error)
                continue
            if layer.cycles:
                yield f"layer {layer.name}: its time was measured, and says nothing of the memories it went through"
            kinds = (False, True) if layer.n * layer.kh * layer.kw > 1 else (False,)
            if not all(any(True for _ in nests(whole, self._machines[sums], 1)) for sums in kinds):
                large.append(layer.name)
        if large:
            held = " and ".join(f"{one.name} ({(one.bytes or 0) - one.reserved_bytes:,} bytes)" for one in self.behind)
            said = "whole windows, all filters of a group, sums, and no more than 200,000 tiles"
            yield f"not even the smallest tiles of {', '.join(large)} fit in {held}: {said}"

    def _whole(self, t: int) -> Box:
        """All of a layer as a box."""
        layer = self.layers[t]
        kinds, _ = self.kinds(t, *(np.array([[0], [size]], np.int64) for size in (layer.r, layer.c)))
        return Box(layer.b, layer.g, layer.m, layer.n, layer.r, layer.c, layer.kh, layer.kw, *kinds[0][2:])

    def _number(self, t: int) -> int:
        if not t < len(self.layers):
            raise InputError(f"near: layer {t} of {len(self.layers)}")
        return self._first[_alike(self.layers[t])]

    # ---- boxes -------------------------------------------------------------------------------------------------------

    def step(self, t: int, box: Box) -> tuple[NearStep, int]:
        """The nest of a box of a layer, and its ticks; raises InputError if a plan has none, or nothing fits."""
        key = self._number(t), box
        if key not in self._steps:
            self._steps[key] = self._known(*key) if self.given is not None else self._found(*key)
        return self._steps[key]

    def _known(self, t: int, box: Box) -> tuple[NearStep, int]:
        assert self.given is not None
        if (one := self.given.get((t, box))) is None:
            raise InputError(f"near: no nest for {box.filters} filters, {box.rows} rows of layer {self.layers[t].name}")
        return one, near_price(self.layers[t], self.machine, one).ticks

    def _found(self, t: int, box: Box, most: int = 1) -> tuple[NearStep, int]:
        """The fastest of the nests that look best, which are followed."""
        layer, machine = self.layers[t], self._machines[box.sums]
        some = [NearStep(t, box, 1, nest) for nest in nests(layer_of(layer, box), machine, most)]
        found = [(one, near_ticks(layer, machine, one)) for one in some]
        return min(found, key=lambda one: one[1])

    def said(
        self, given: tuple[NearStep, ...], runs: Iterable[Iterable[Iterable[tuple[int, Box]]]], most: int = MOST
    ) -> tuple[NearStep, ...]:  # fmt: skip
        """The nests of the boxes of steps, each once: those of a plan, if it has any, or the fastest of some more.

        `most`: so many are followed; 0: those by which steps were priced are taken.
        """
        if given:
            return given
        keys = Counter((self._number(t), box) for steps in runs for boxes in steps for t, box in boxes)
        known = (self.step(*key) for key in keys)
        more = ([one, self._found(*key, most)] if most else [one] for key, one in zip(keys, known, strict=True))
        best = (min(some, key=lambda one: one[1])[0] for some in more)
        return tuple(replace(one, times=times) for one, times in zip(best, keys.values(), strict=True))

    def bytes(self, nests: Iterable[NearStep]) -> int:
        """What the steps of a plan move between the shared memory and the next one."""
        total = 0
        for one in nests:
            key = one.layer, one.box, one.nest
            if key not in self._bytes:
                self._bytes[key] = near_price(self.layers[self._number(one.layer)], self.machine, one).bytes
            total += self._bytes[key] * one.times
        return total

    # ---- steps of groups ---------------------------------------------------------------------------------------------

    def ticks(self, t: int, kinds: Sequence[Kind], which: Ints, filters: Ints, first: Ints) -> Ints:
        """Ticks of steps that make so many filters (channels) of a kind each, from a first one on, (steps,)."""
        layer = self.layers[t]
        offsets = first % layer.m if layer.g > 1 else np.zeros_like(first)
        pieces, at = np.unique(np.stack([which, filters, offsets]), axis=1, return_inverse=True)
        each = [
            sum(self.step(t, box)[1] for box in self.boxes(t, kinds[k], number, offset)) if number else 0
            for k, number, offset in pieces.T.tolist()
        ]
        return np.array(each, np.int64)[at.ravel()]

    def boxes(self, t: int, kind: Kind, filters: int, first: int = 0) -> Iterator[Box]:
        """The boxes of so many filters, from one on: the rest of a group, whole groups, a part of a group."""
        layer = self.layers[t]
        begun = min(-first % layer.m, filters) if layer.g > 1 else 0
        groups, rest = divmod(filters - begun, layer.m) if layer.g > 1 else (0, filters)
        for number, each in ((1, begun), (groups, layer.m), (1, rest)):
            if number and each:
                yield Box(layer.b, number, each, layer.n, kind.rows, kind.columns, layer.kh, layer.kw, *kind[2:])

    def kinds(self, t: int, rows: Ints, columns: Ints) -> tuple[list[Kind], Ints]:
        """The kinds of all pieces of some rows and columns, (2, pieces) each, and which one every piece has."""
        layer = self.layers[t]
        tall, wide = _sides(rows, window_of(layer, "r")), _sides(columns, window_of(layer, "c"))
        high, at = np.unique(tall, axis=1, return_inverse=True)
        broad, across = np.unique(wide, axis=1, return_inverse=True)
        made = [
            Kind(r, c, top, bottom, left, right)
            for r, top, bottom in high.T.tolist() for c, left, right in broad.T.tolist()
        ]  # fmt: skip
        return made, np.add.outer(at.ravel() * broad.shape[1], across.ravel())

    # ---- steps of nests ----------------------------------------------------------------------------------------------

    def tiles(self, t: int, ranges: Mapping[str, tuple[Ints, Ints]]) -> list[Box]:
        """The boxes of tiles, with where each dimension begins and ends, (tiles,) each."""
        layer = self.layers[t]
        size = {d: ranges[d][1] - ranges[d][0] for d in DIMS}
        tall = _padding(*ranges["r"], *ranges["i"], window_of(layer, "r"))
        wide = _padding(*ranges["c"], *ranges["j"], window_of(layer, "c"))
        parts = np.any([size[d] < layer.extent(d) for d in "nij"], axis=0)
        each = np.stack([*(size[d] for d in "bgmnrcij"), *tall, *wide, parts], axis=1)
        rows: list[list[Any]] = each.tolist()
        return [Box(*[*row[:-1], bool(row[-1])]) for row in rows]

    # ---- bounds ------------------------------------------------------------------------------------------------------

    def least(self, t: int, computed: int) -> int:
        """What no boxes that make a layer are below, which compute so many ticks."""
        whole = self._whole(t)
        kind = Kind(whole.rows, whole.columns, whole.top, whole.bottom, whole.left, whole.right)
        return max(computed + self.edges(t), self.moved(t, kind))

    def edges(self, t: int) -> int:
        """Ticks of a call for every operand, and one for the result; inputs that are alike may come as one."""
        layer = self.layers[t]
        inputs = 1 if layer.name in self.copied else layer.inputs
        return (inputs + (layer.weights != "none") + 1) * self.price.call_ticks

    def moved(self, t: int, kind: Kind) -> int:
        """Ticks of moving, at least, all that pieces need that make all channels of a kind."""
        layer, machine = self.layers[t], self.machine
        size = layer.weight_elements * machine.w_bytes * (layer.weights != "none")
        size += layer.b * layer.g * layer.m * kind.rows * kind.columns * machine.out_bytes
        if _all_read(layer) and layer.name not in self.copied:
            high = (kind.rows - 1) * layer.stride_h + layer.kh - kind.top - kind.bottom
            wide = (kind.columns - 1) * layer.stride_w + layer.kw - kind.left - kind.right
            size += layer.b * layer.g * layer.n * max(0, high) * max(0, wide) * layer.inputs * machine.in_bytes
        return size * self.price.byte_ticks + self.edges(t)


def _alike(layer: Layer) -> object:
    """What the boxes of a layer depend on beside their sizes."""
    return layer.model_copy(update={"resident_in": (), "resident_out": 0, "resident_w": False, "cycles": 0}).signature()


def _all_read(layer: Layer) -> bool:
    """Whether windows that follow each other leave nothing of the input out."""
    rows = layer.stride_h <= layer.kh and layer.dilation_h == 1
    return rows and layer.stride_w <= layer.kw and layer.dilation_w == 1


def _sides(spans: Ints, window: Window) -> Ints:
    """Of pieces how long they are, and what of their windows is padding before and behind, (3, pieces)."""
    return np.stack([spans[1] - spans[0], *_padding(spans[0], spans[1], 0, window.taps, window)])


def _padding(
    begin: Ints, end: Ints, first: Ints | int, last: Ints | int, window: Window
) -> tuple[Ints, Ints]:  # fmt: skip
    """What of the windows of some outputs, of taps `first` to `last` (excluded), lies before and behind the input."""
    low = begin * window.stride - window.pad + first * window.dilation
    high = (np.maximum(end, begin + 1) - 1) * window.stride - window.pad + (last - 1) * window.dilation + 1
    before, behind = np.maximum(0, -low), np.maximum(0, high - window.size)
    most = high - low - 1  # a row is read where all are padding
    before = np.minimum(before, most)
    return before, np.minimum(behind, most - before)

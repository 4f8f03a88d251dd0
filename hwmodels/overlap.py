"""Double-buffered time of one nest on one core, step by step.

Step k is iteration k of the tile loops. While it computes, the DMA reads what step k+1 needs and writes what step k-1
finished: ``time = L(0) + sum_k max(C(k), L(k+1), S(k-1)) + S(last)`` (docs/machines.md: fill, steady state, drain).
L, C and S are evaluated for all steps at once by broadcasting over the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hwmodels.bilinear import Ints
from hwmodels.core import Q_DIMS, S_DIMS, input_windows
from hwmodels.skeleton import Core, Skeleton
from instances.errors import InputError
from instances.machine import Machine
from instances.workload import RELEVANT, Layer

__all__ = ["MAX_STEPS", "double_buffered_ticks"]

NDArrayBool = NDArray[np.bool_]
T = TypeVar("T", np.int64, np.bool_)

#: Beyond this many steps a timeline is not laid out (it would take gigabytes).
MAX_STEPS = 30_000_000


def double_buffered_ticks(
    layer: Layer, machine: Machine, skeleton: Skeleton, core: Core, tile: Mapping[str, int]
) -> int:
    """Return the time of the nest in ticks.

    Raises
    ------
    InputError
        If the nest has more than `MAX_STEPS` steps.
    """
    steps = _Steps(layer, machine, skeleton, core, tile)
    if steps.count > MAX_STEPS:
        raise InputError(f"{layer.name}: {steps.count:,} steps are too many for a timeline (at most {MAX_STEPS:,})")
    load, store, compute = steps.loads().ravel(), steps.stores().ravel(), steps.compute().ravel()
    busy = np.maximum(compute, np.append(load[1:], 0))
    busy = np.maximum(busy, np.append(0, store[:-1]))
    return int(load[0]) + int(busy.sum()) + int(store[-1])


class _Steps:
    """All steps of one core as arrays with one axis per loop."""

    def __init__(self, layer: Layer, machine: Machine, skeleton: Skeleton, core: Core, tile: Mapping[str, int]) -> None:
        self.layer, self.machine, self.skeleton = layer, machine, skeleton
        self.order = skeleton.order
        self.start: dict[str, Ints] = {}
        self.stop: dict[str, Ints] = {}
        for dim in (*S_DIMS, *Q_DIMS):
            lo, hi = core.range(dim)
            step = tile[dim] if dim in self.order else hi - lo
            start = np.arange(lo, hi, step, dtype=np.int64)
            self.start[dim], self.stop[dim] = start, np.minimum(start + step, hi)
        self.trips = {d: len(s) for d, s in self.start.items()}
        self.shape = tuple(self.trips[d] for d in self.order)
        self.count = prod(self.shape)

    def _along(self, dim: str, values: NDArray[T]) -> NDArray[T]:
        """Lay a vector over the pieces of `dim` along its loop axis."""
        if dim not in self.order:
            return values.reshape(())
        shape = [1] * len(self.order)
        shape[self.order.index(dim)] = len(values)
        return values.reshape(shape)

    def _extents(self, operand: str) -> dict[str, Ints]:
        window = input_windows(self.layer)
        result = {}
        for dim in (*S_DIMS, *Q_DIMS):
            start, stop = self.start[dim], self.stop[dim]
            if dim in self.order and dim not in self.skeleton.outside(operand):
                start, stop = np.full_like(start, start[0]), np.full_like(stop, stop[-1])
            if operand == "IN" and dim in window:
                w = window[dim]
                start, stop = start * w.stride - w.pad, (stop - 1) * w.stride - w.pad + w.reach
                start, stop = np.maximum(start, 0), np.minimum(stop, w.size)
            extent = np.maximum(stop - start, 0)
            if self.machine.edge_tiles == "uniform":
                # The first piece is the nominal one, but its window may be clipped at the border.
                step = (
                    self.stop[dim][0] - self.start[dim][0]
                    if dim in self.skeleton.outside(operand)
                    else self.layer.extent(dim)
                )
                full = np.full_like(extent, step)
                extent = window[dim].nominal(full) if operand == "IN" and dim in window else full
            result[dim] = self._along(dim, extent)
        return result

    def _price(self, tensor: str, operand: str, element: int, call: bool = True) -> Ints:
        """Ticks of moving the box of every step."""
        layer, machine, price = self.layer, self.machine, self.machine.transfer
        extent = self._extents(operand)
        sizes: dict[str, int] = {d: layer.extent(d) for d in (*S_DIMS, *Q_DIMS)}
        if operand == "IN":
            sizes.update(r=layer.h, c=layer.l)
        sizes.update(i=layer.kh, j=layer.kw)
        extent.update(i=np.array(layer.kh), j=np.array(layer.kw))
        chw = {"IN": machine.in_layout, "OUT": machine.out_layout}.get(operand) == "CHW"
        order = {
            "IN": "bgnrc" if chw else "brcgn",
            "OUT": "bgmrc" if chw else "brcgm",
            "W": "gmnij" if machine.w_layout == "OIHW" else "gmijn",
            "BIAS": "gm",
        }[tensor]
        run, segments, whole = np.array(element, np.int64), np.array(1, np.int64), np.array(True)
        for dim in reversed(order):
            run = np.where(whole, run * extent[dim], run)
            segments = np.where(whole, segments, segments * extent[dim])
            whole = whole & (extent[dim] == sizes[dim])
        ticks = price.segment_ticks * segments + price.byte_ticks * segments * run
        if price.burst_bytes:
            ticks = ticks + price.burst_ticks * segments * -(-run // price.burst_bytes)
        moved = np.where(segments * run > 0, ticks + (price.call_ticks if call else 0), 0)
        return np.broadcast_to(moved, self.shape).astype(np.int64)

    def _edge(self, operand: str, position: Callable[[Ints], NDArrayBool]) -> NDArrayBool:
        """Whether all loops that leave the operand's tile in place are at their first (or last) iteration."""
        loops = list(self.skeleton.outside(operand))
        while loops and not (loops[-1] in RELEVANT[operand] and self.trips[loops[-1]] > 1):
            loops.pop()
        mask = np.ones(self.shape, np.bool_)
        for dim in self.order[len(loops) :]:
            mask &= self._along(dim, position(np.arange(self.trips[dim])))
        return mask

    def _n_index(self) -> Ints:
        """The visit of the OUT tile at every step: the reduction index where it re-visits, else the last."""
        cut = frozenset(d for d, t in self.trips.items() if t > 1)
        if "n" not in self.skeleton.revisits("OUT", cut):
            return np.full(self.shape, self.trips["n"] - 1, np.int64)
        return np.broadcast_to(self._along("n", np.arange(self.trips["n"])), self.shape)

    def _first_visit(self) -> NDArrayBool:
        cut = frozenset(d for d, t in self.trips.items() if t > 1)
        return (self._n_index() == 0) if "n" in self.skeleton.revisits("OUT", cut) else np.ones(self.shape, np.bool_)

    def loads(self) -> Ints:
        """Ticks to read what each step needs and does not find on chip."""
        layer, machine = self.layer, self.machine
        first = lambda i: i == 0  # noqa: E731
        ticks = np.where(self._edge("IN", first), self._price("IN", "IN", machine.in_bytes) * layer.inputs, 0)
        if "W" in layer.operands:
            weights = self._price("W", "W", machine.w_bytes)
            if layer.bias and machine.bias_bytes:
                weights = weights + self._price("BIAS", "W", machine.bias_bytes, call=False)
            ticks = ticks + np.where(self._edge("W", first), weights, 0)
        again = np.ones(self.shape, np.bool_) if machine.psum_first_read else ~self._first_visit()
        psum = np.where(self._edge("OUT", first) & again, self._price("OUT", "OUT", machine.psum_bytes), 0)
        return ticks + psum

    def stores(self) -> Ints:
        """Ticks to write the output tile that each step finishes or gives up."""
        machine = self.machine
        final = self._n_index() == self.trips["n"] - 1
        price = np.where(
            final, self._price("OUT", "OUT", machine.out_bytes), self._price("OUT", "OUT", machine.psum_bytes)
        )
        last = np.where(self._edge("OUT", lambda i: i == i[-1]), price, 0)
        return last

    def compute(self) -> Ints:
        """Ticks each step computes."""
        layer, unit = self.layer, self.machine.compute
        taps = layer.kh * layer.kw * layer.inputs * unit.cycle_ticks
        size = {d: self._along(d, self.stop[d] - self.start[d]) for d in (*S_DIMS, *Q_DIMS)}
        if unit.model == "none":
            return np.zeros(self.shape, np.int64)
        if unit.model == "tile":
            full = {d: int((self.stop[d] - self.start[d])[0]) for d in size}
            tile_map = -(-full["r"] * full["c"] * layer.kh * layer.kw // unit.macs_per_cycle)
            work = prod(full[d] for d in "bgmn") * tile_map * layer.inputs * unit.cycle_ticks
            return np.full(self.shape, work, np.int64)
        if layer.m == layer.n == 1:
            lanes = -(-size["g"] // unit.cols)
        else:
            lanes = size["g"] * -(-size["m"] // unit.rows) * -(-size["n"] // unit.cols)
        return np.broadcast_to(size["b"] * size["r"] * size["c"] * lanes * taps, self.shape).astype(np.int64)

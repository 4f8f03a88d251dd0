"""What a network must move, whatever the schedule: the bound that all problems of networks share.

Weights and biases once, however many layers read them; results once; and of what comes from outside the elements that
some result depends on, once. Padding, zeros and what layers make count nothing: it may stay on chip. A layer makes its
whole map, unless all that reads it reads pixel by pixel: then pixels that nobody reads, as the last row of seven under
2 x 2 windows with stride 2 or every other one under 1 x 1 windows, need not be made.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from instances.machine.machine import Machine
from instances.network.outside import RIGHT, Part, Reading, apart
from instances.network.stores import Stores
from instances.network.workload import Layer

Mask = npt.NDArray[np.bool_]


def compulsory_bytes(found: Stores, machine: Machine) -> int:
    """Return the bytes that every schedule of a network moves."""
    return weight_bytes(found, machine) + input_bytes(found, machine) + result_bytes(found, machine)


def result_bytes(found: Stores, machine: Machine) -> int:
    """Return the bytes of the results of a network, once."""
    return sum(min(store.results, store.rows * store.row_elements) for store in found.stores) * machine.out_bytes


def weight_bytes(found: Stores, machine: Machine) -> int:
    """Return the bytes of constant weights and of biases, every tensor once."""
    total = 0
    for t, layer in enumerate(found.layers):
        if layer.weights == "constant" and found.weights_of[t] == t:
            total += layer.weight_elements * machine.w_bytes
        if found.biases_of[t] == t:
            total += layer.g * layer.m * machine.bias_bytes * layer.bias
    return total


def input_bytes(found: Stores, machine: Machine) -> int:
    """Return the bytes of what comes from outside and is needed, once: what all layers read between them."""
    needed = _needed(found)
    as_input: dict[tuple[str, tuple[int, ...]], Mask] = {}
    seen: dict[tuple[str, tuple[int, ...], Part], Part] = {}
    for reading in found.outside:
        layer, key = found.layers[reading.layer], (reading.of, ())
        if reading.operand == RIGHT:
            some = min(layer.weight_elements, reading.part.least) * machine.w_bytes
        else:
            mask = read(layer, needed[reading.layer], reading.operand)
            key = reading.of, mask.shape
            as_input[key] = np.logical_or(as_input.get(key, mask), mask)
            some = max(0, _elements(found, reading, as_input[key])) * machine.in_bytes
        before = seen.get((*key, reading.part), reading.part._replace(least=0))
        seen[*key, reading.part] = reading.part._replace(least=max(some, before.least))
    return sum(part.least for part in apart(seen.values()))


def needed_pixels(found: Stores) -> list[int]:
    """Return for every layer how many pixels of its result every schedule makes."""
    needed = _needed(found)
    return [int(needed[t].sum()) for t in range(len(found.layers))]


def _needed(found: Stores) -> dict[int, Mask]:
    """For every layer the pixels of its result that something reads."""
    needed: dict[int, Mask] = {}
    for t in reversed(range(len(found.layers))):
        layer, store = found.layers[t], found.stores[found.writes[t]]
        seen = [
            read(found.layers[u], needed[u], k)
            for u in store.readers if u > t
            for k, s in enumerate(found.reads[u]) if s == found.writes[t]
        ]  # fmt: skip
        whole = store.whole or store.dram or store.results or not seen
        whole = whole or any(mask.shape != (layer.r, layer.c) for mask in seen)
        needed[t] = np.ones((layer.r, layer.c), np.bool_) if whole else np.logical_or.reduce(seen)
    return needed


def _elements(found: Stores, reading: Reading, mask: Mask) -> int:
    """Elements of a tensor among some pixels of an operand."""
    (_, least, among, *_), size = reading.part, found.layers[reading.layer].input_elements(reading.operand)
    if size != reading.size:  # its elements are read more than once, or not all of them
        among = min(size, reading.size)
        least -= reading.size - among
    if mask.all():
        return least
    return min(int(mask.sum()) * (among // mask.size) - (among - least), least)


def read(layer: Layer, outputs: Mask, operand: int) -> Mask:
    """Return the pixels of an input that a layer reads for some of its result."""
    lacks = layer.patterns[operand]
    if lacks:
        for axis, d in enumerate("rc"):
            outputs = np.asarray(outputs.any(axis=axis, keepdims=True)) if d in lacks else outputs
        return outputs
    rows = np.zeros((layer.h, layer.c), np.bool_)
    for i in range(layer.kh):
        y = np.arange(layer.r) * layer.stride_h - layer.pad_top + i * layer.dilation_h
        inside = (y >= 0) & (y < layer.h)
        rows[y[inside]] |= outputs[inside]
    pixels = np.zeros((layer.h, layer.l), np.bool_)
    for j in range(layer.kw):
        x = np.arange(layer.c) * layer.stride_w - layer.pad_left + j * layer.dilation_w
        inside = (x >= 0) & (x < layer.l)
        pixels[:, x[inside]] |= rows[:, inside]
    return pixels

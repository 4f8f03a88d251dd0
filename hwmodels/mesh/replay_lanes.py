"""Referee for bank layouts: all vectors of a tile, PE by PE, bank by bank, wire by wire.

Every vector of a tile and every product of its results is looked at: which address each PE reads, whether two PEs read
different words of one bank, and whether two words meet on a wire of the butterfly that sets the highest bit first.

Source: `vectormesh` section II-C.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hwmodels.mesh.replay import boxes
from instances.workload import DIMS, Layer

Ints = NDArray[np.int64]
#: For an operand: axes as (number of the axis, extent, pitch), and words.
Placed = Mapping[str, tuple[list[tuple[int, int, int]], int]]


def replay_lanes(
    layer: Layer, tile: Mapping[str, int], bits: Sequence[tuple[str, int]], placed: Placed, banks: int
) -> list[str]:
    """Return what is wrong with a layout, one line each; nothing if every vector is served in one cycle.

    Parameters
    ----------
    bits : what each bit of the PE number stands for, lowest first: an index and the bit of its lane
    """
    pes = 1 << len(bits)
    numbers = np.arange(pes, dtype=np.int64)
    lanes = {d: np.zeros(pes, dtype=np.int64) for d in DIMS}
    for at, (d, bit) in enumerate(bits):
        lanes[d] = lanes[d] + ((numbers >> at & 1) << bit)
    faults: list[str] = []
    for operand, (axes, words) in placed.items():
        faults += _axes(operand, axes, _box(layer, operand, tile)) or _apart(operand, axes, words)
        if faults:
            return faults
        for points, active in _vectors(layer, tile, lanes, bits):
            address = _address(layer, operand, axes, points)
            faults += _conflicts(operand, address, active, words, banks, len(bits))
            if faults:
                return faults
    return faults


def _box(layer: Layer, operand: str, tile: Mapping[str, int]) -> list[int]:
    """Elements of an operand's tile along its axes."""
    box, _ = boxes(layer, {d: (0, size) for d, size in tile.items()})[operand]
    return [end - begin for begin, end in box]


def _axes(operand: str, axes: Sequence[tuple[int, int, int]], box: Sequence[int]) -> list[str]:
    """Every axis of the tile is laid out once, as long as it is."""
    numbers = [number for number, _, _ in axes]
    wrong = len(set(numbers)) < len(numbers) or any(not 0 <= n < len(box) or box[n] != e for n, e, _ in axes)
    if wrong or any(extent > 1 and n not in numbers for n, extent in enumerate(box)):
        return [f"{operand}: its axes are not those of a tile of {' x '.join(map(str, box))}"]
    return []


def _apart(operand: str, axes: Sequence[tuple[int, int, int]], words: int) -> list[str]:
    """Elements of the tile share no word."""
    found = np.zeros(1, dtype=np.int64)
    for _, extent, pitch in axes:
        found = (found[:, None] + pitch * np.arange(extent, dtype=np.int64)).reshape(-1)
    if len(np.unique(found)) < len(found):
        return [f"{operand}: two elements of the tile lie in one word"]
    if int(found.max()) >= words:
        return [f"{operand}: the tile reaches word {int(found.max())}, it has {words}"]
    return []


def _vectors(
    layer: Layer, tile: Mapping[str, int], lanes: Mapping[str, Ints], bits: Sequence[tuple[str, int]]
) -> Iterator[tuple[dict[str, Ints], NDArray[np.bool_]]]:
    """Points of all PEs (steps x PEs), and which PEs work, in pieces: one channel and tap at a time."""
    width = dict.fromkeys(DIMS, 1)
    for d, _ in bits:
        width[d] *= 2
    summed = ("n",) if layer.kind == "correlation" else ("n", "i", "j")
    parallel = [d for d in DIMS if d not in summed]
    steps = [np.arange(0, tile[d], width[d], dtype=np.int64) for d in parallel]
    grid = [axis.reshape(-1, 1) for axis in np.meshgrid(*steps, indexing="ij")]
    points = {d: begin + lanes[d] for d, begin in zip(parallel, grid, strict=True)}
    active = np.ones(np.broadcast_shapes(*(p.shape for p in points.values())), dtype=bool)
    for d in parallel:
        active &= points[d] < tile[d]
    for taps in product(*(range(tile[d]) for d in summed)):
        yield points | {d: np.full((1, 1), t, dtype=np.int64) for d, t in zip(summed, taps, strict=True)}, active


def _address(layer: Layer, operand: str, axes: Sequence[tuple[int, int, int]], at: Mapping[str, Ints]) -> Ints:
    """Where the PEs read."""
    if operand == "IN":
        rows = layer.stride_h * at["r"] + layer.dilation_h * at["i"]
        cols = layer.stride_w * at["c"] + layer.dilation_w * at["j"]
        element = [at["b"], at["g"], at["n"], rows, cols]
    else:
        element = [at[d] for d in ("bnrc" if layer.kind == "correlation" else "gmnij")]
    found = np.zeros(1, dtype=np.int64)
    for number, _, pitch in axes:
        found = found + pitch * element[number]
    return found


def _conflicts(
    operand: str, address: Ints, active: NDArray[np.bool_], words: int, banks: int, bits: int
) -> list[str]:  # fmt: skip
    address = np.broadcast_to(address, active.shape)
    if not len(address):
        return []
    if int(address[active].max()) >= words:
        return [f"{operand}: a PE reads word {int(address[active].max())} of {words}"]
    low = address % banks
    numbers = np.broadcast_to(np.arange(active.shape[1], dtype=np.int64), active.shape)
    # Before bit k is set a word is where the bank's bits below say, and the PE's bits from k on.
    for k in range(bits, -1, -1):
        kept = (low & ~((1 << bits) - 1)) | (low & ((1 << k) - 1)) | (numbers >> k << k)
        if not _one_word(kept, address, active):
            what = "a bank" if k == bits else f"a wire before bit {k}"
            return [f"{operand}: two words meet at {what} in one cycle"]
    return []


def _one_word(place: Ints, address: Ints, active: NDArray[np.bool_]) -> bool:
    """Whether every place has one word in every row."""
    width = int(place.max()) + 1
    spots, words = (np.arange(len(place), dtype=np.int64)[:, None] * width + place)[active], address[active]
    last = np.zeros(len(place) * width, dtype=np.int64)
    last[spots] = words
    return bool((last[spots] == words).all())

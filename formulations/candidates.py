"""Candidate tile sizes: which sizes can appear in an optimum.

Claim
    Let two sizes T < T' of one dimension have equal trip counts on every core. If no feature of T' is smaller than
    T's, replacing T' by T in any plan keeps it feasible and no measure rises. So T' may be dropped.
Proof
    With equal trips the re-visits of all operands are the same. Every count, footprint and compute time is a sum of
    products of non-negative per-dimension quantities, each of which is one of the features below or does not decrease
    with the size itself (nominal extents, ``ceil(T_R*T_C*K*K/MACs)``); hence each is monotone in the features.
    Measures have non-negative prices.
Features
    per core and operand axis: sum of extents, number of pieces, largest piece, pieces that span the axis and that do
    not, burst windows of the pieces that do not (where runs break), and for MAC arrays the sum of
    ``ceil(extent/lanes)``. Clipping at the border makes some of them smaller for a larger size (a 7x7 kernel with
    padding 3), so equal trips alone are not enough.

What is kept: for every trip count the smallest size, and every larger size with some feature below the smallest one's.
`tests/test_tiling.py` and `tests/test_exactness.py` compare with the unreduced space.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np

from hwmodels.bilinear import Ints
from hwmodels.core import input_windows
from hwmodels.pieces import cut, nominal, trips, windows
from hwmodels.skeleton import Core
from instances.machine import Machine
from instances.workload import RELEVANT, Layer

__all__ = ["divisors", "reduce_sizes"]


def divisors(extent: int) -> Ints:
    """All divisors of `extent`, ascending."""
    sizes = np.arange(1, extent + 1, dtype=np.int64)
    result: Ints = sizes[extent % sizes == 0]
    return result


def reduce_sizes(
    layer: Layer, machine: Machine, dim: str, sizes: Ints, shares: Iterable[Core], extents: Iterable[int] = ()
) -> Ints:
    """Drop the sizes that the claim above makes superfluous.

    Parameters
    ----------
    sizes : ndarray of int64, ascending
    shares : the cores, whose ranges of `dim` are cut
    extents : further extents whose trip counts a price depends on (the literal readings)
    """
    if len(sizes) < 2:
        return sizes
    ranges = sorted({core.range(dim) for core in shares})
    lengths = sorted({hi - lo for lo, hi in ranges} | set(extents))
    trip = np.stack([trips(n, sizes) for n in lengths], axis=1)
    first = np.concatenate([[True], (trip[1:] != trip[:-1]).any(axis=1)])
    leader = np.maximum.accumulate(np.where(first, np.arange(len(sizes)), 0))
    features = np.stack(_features(layer, machine, dim, sizes, ranges, lengths), axis=1)
    better = (features < features[leader]).any(axis=1)
    return sizes[first | better]


def _features(
    layer: Layer, machine: Machine, dim: str, sizes: Ints, ranges: list[tuple[int, int]], lengths: list[int]
) -> list[Ints]:
    """The features that can fall as the size grows, each an array like `sizes`."""
    uniform = machine.edge_tiles == "uniform" or machine.reading == "literal"
    result = [np.zeros_like(sizes)]
    for operand, element, extent, inner in _axes(layer, machine, dim):
        window = input_windows(layer).get(dim) if operand == "IN" else None
        if uniform:
            pieces = [nominal(sizes, trips(n, sizes), window) for n in lengths]
        elif window:
            pieces = [windows(lo, hi, np.minimum(sizes, hi - lo), window) for lo, hi in ranges]
        else:
            pieces = [cut(n, np.minimum(sizes, n)) for n in lengths]
        if machine.reading == "literal":
            pieces.append(nominal(sizes, np.ones_like(sizes), window))
        for p in pieces:
            full = p.full(extent)
            result += [p.sum, p.number, p.largest, full, p.number - full]
            if machine.transfer.burst_bytes:
                result.append(p.partial_windows(extent, element * inner, machine.transfer.burst_bytes))
    if machine.compute.model == "array":
        lanes = {"m": machine.compute.rows, "n": machine.compute.cols, "g": machine.compute.cols}.get(dim)
        if lanes:
            result += [cut(n, np.minimum(sizes, n)).ceil_sum(lanes) for n in lengths]
    return result


def _axes(layer: Layer, machine: Machine, dim: str) -> list[tuple[str, int, int, int]]:
    """Per tensor with an axis along `dim`: operand, bytes an element, extent of the axis, elements inside it."""
    extents = {d: layer.extent(d) for d in "bgmnrc"} | {"i": layer.kh, "j": layer.kw}
    maps = {**extents, "r": layer.h, "c": layer.l}
    layouts = [
        ("IN", machine.in_bytes, "bgnrc" if machine.in_layout == "CHW" else "brcgn"),
        ("OUT", machine.out_bytes, "bgmrc" if machine.out_layout == "CHW" else "brcgm"),
        ("OUT", machine.psum_bytes, "bgmrc" if machine.out_layout == "CHW" else "brcgm"),
    ]
    if "W" in layer.operands:
        layouts.append(("W", machine.w_bytes, "gmnij" if machine.w_layout == "OIHW" else "gmijn"))
        if layer.bias and machine.bias_bytes:
            layouts.append(("W", machine.bias_bytes, "gm"))
    result = []
    for operand, element, axes in layouts:
        if dim in axes and dim in RELEVANT[operand]:
            size = maps if operand == "IN" else extents
            result.append((operand, element, size[dim], prod(size[d] for d in axes[axes.index(dim) + 1 :])))
    return result

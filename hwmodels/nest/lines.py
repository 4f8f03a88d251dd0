"""What IN moves and takes in lines (docs/nest.md): products of vectors, one of each axis.

The two loops that slide fetch every element of a sweep once: new rows of each pass times new columns of each step, the
product of the two vectors that `hwmodels.nest.pieces.windows` gives for either loop; the sweep is repeated by every
loop outside the two. The buffer holds ``again * width + (rows - again) * columns`` elements of each channel: the rows
that two windows of neighbouring passes share, at most, over the widest pass, and the other rows of the largest window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.abilities import Loops, Steps, Tree, loops_outside, trees_of
from hwmodels.nest.bilinear import Ints
from hwmodels.nest.boxes import KINDS, Axis, axes_of, input_windows, runs_of
from hwmodels.nest.pieces import Pieces, Window, cut, windows
from hwmodels.nest.places import begins, chain_of
from hwmodels.nest.skeleton import Core, Skeleton
from hwmodels.outcome import Counts
from instances.machine import Machine
from instances.workload import DIMS, RELEVANT, Layer

#: Beyond all rows.
_FAR = 1 << 60
Mask = NDArray[np.bool_]
__all__ = ["Lined", "line_products", "line_vectors", "lined"]


@dataclass(frozen=True)
class Lined:
    """What holding IN in lines moves (the row IN), its bytes in one buffer, and those of its largest tile."""

    counts: Counts
    buffer_bytes: int
    tile_bytes: int


def _pair(order: Loops, trees: Mapping[str, Tree]) -> tuple[int, int] | None:
    """The numbers of the two loops that slide: neighbours among those that cut, one over rows and one over columns."""
    real = [j for j, (d, k) in enumerate(order) if trees[d].trips(k + 1) > trees[d].trips(k)]
    while real and order[real[-1]][0] not in RELEVANT["IN"]:
        real.pop()
    dims = {order[j][0] for j in real[-2:]}
    return (real[-2], real[-1]) if dims == {"r", "c"} else None


def lined(layer: Layer, machine: Machine, skeleton: Skeleton, core: Core, steps: Steps) -> Lined | None:
    """Count IN in lines; None where no two loops slide, so that it moves as without."""
    trees, order = trees_of(core, steps), loops_outside(skeleton, "IN")
    pair = _pair(order, trees)
    if pair is None:
        return None
    chain = chain_of(steps)
    hold = {d: sum(dim == d for dim, _ in order) for d in DIMS}
    levels = {order[j][0]: order[j][1] + 1 for j in pair}
    sweeps = prod(trees[d].trips(sum(x == d for x, _ in order[: pair[0]])) for d in DIMS if d not in RELEVANT["IN"])
    found, size, tile = Counts(), 0, 0
    for resident in layer.residents:
        window = input_windows(layer, resident)

        def pieces(dim: str, window: dict[str, Window] = window) -> Pieces:
            if dim not in window:
                return cut(core.extent(dim), chain[dim][:, : hold[dim]], core.range(dim)[0])
            kernel = {"r": "i", "c": "j"}[dim]
            return windows(
                *core.range(dim), chain[dim][:, : levels[dim]], chain[kernel][:, : hold[kernel]], window[dim], "outer"
            )

        axes: list[Axis] = axes_of(layer, machine, "IN", pieces)
        products = runs_of(axes, machine.in_bytes, machine.transfer_of("IN"), KINDS)
        counts = {
            kind: sweeps * sum(c * prod(int(v[0]) for v in vectors.values()) for c, vectors in terms)
            for kind, terms in products.items()
        }
        found += Counts(**counts)
        plane = machine.in_bytes * prod(int(a.pieces.largest[0]) for a in axes if a.dim not in window)
        (again, rows, _), (_, columns, width) = (
            (int(v[0]) for v in _along(core, chain, levels, hold, window, order[j][0])) for j in pair
        )
        size += plane * (again * width + (rows - again) * columns)
        tile += plane * rows * columns
    return Lined(found, size, tile)


def _along(
    core: Core,
    chain: Mapping[str, Ints],
    levels: Mapping[str, int],
    hold: Mapping[str, int],
    window: Mapping[str, Window],
    dim: str,
) -> tuple[Ints, Ints, Ints]:
    """The vectors of one axis."""
    kernel = {"r": "i", "c": "j"}[dim]
    steps, taps = chain[dim][:, : levels[dim]], chain[kernel][:, : hold[kernel]]
    return line_vectors(*core.range(dim), steps, taps, window[dim])


def line_vectors(lo: int, hi: int, steps: Ints, taps: Ints, window: Window) -> tuple[Ints, Ints, Ints]:
    """Rows that two windows of a pass share, rows of the longest, and of the widest pass, for T chains.

    `steps` (T, L) are those of the output dimension down to the loop that slides, `taps` (T, L') all of the kernel's
    outside the Hold; entries below 0 are lists of places (`hwmodels.nest.places`). Of columns alike. IN in lines takes,
    for an element of its other dimensions, ``again * width + (longest - again) * columns``: `again` and `longest` of
    the outer axis, `width` and `longest` (its columns) of the inner one.
    """
    window_of = _windows(lo, hi, steps, taps, window)
    again = np.where(window_of.follows, window_of.before - window_of.first, 0).max(axis=(1, 2))
    longest = np.where(window_of.here, window_of.end - window_of.first, 0).max(axis=(1, 2), initial=0)
    there = window_of.here & (window_of.end > window_of.first)
    passes = np.flatnonzero(window_of.passes)
    ends, begins_ = (np.where(there, x, none) for x, none in ((window_of.end, -1), (window_of.first, _FAR)))
    across = [
        f.reduceat(x.reshape(-1, x.shape[2]), passes, axis=0) for f, x in ((np.maximum, ends), (np.minimum, begins_))
    ]
    per_pass = (across[0] - across[1]).max(axis=1)
    first_pass = np.flatnonzero(np.diff(passes // (hi - lo), prepend=-1))
    width = np.maximum.reduceat(per_pass, first_pass)
    return np.maximum(again, 0), longest, np.maximum(width, 0)


def line_products(
    ranges: Sequence[tuple[int, int]], steps: Sequence[Ints], window: Sequence[Window]
) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """What IN in lines takes for an element of its other dimensions, as products of a vector of either loop, summed.

    Ranges, steps and windows are those of the two loops that slide, the outer one first; the kernel is whole.
    """
    none = np.zeros((1, 0), np.int64)
    (again, rows, _), (_, columns, width) = (
        line_vectors(*span, chain, none, one) for span, chain, one in zip(ranges, steps, window, strict=True)
    )
    return (again, width), (np.maximum(rows - again, 0), columns)


@dataclass(frozen=True)
class _Windows:
    """Windows by chain, output that begins a piece and tap that begins a part, (T, E, K); `passes` (T, E)."""

    first: Ints
    end: Ints
    before: Ints
    here: Mask
    follows: Mask
    passes: Mask


def _windows(lo: int, hi: int, steps: Ints, taps: Ints, window: Window) -> _Windows:
    """The windows of all pieces, and where the piece before it ends."""
    number = max(len(steps), len(taps))
    made, passes = (np.broadcast_to(x, (number, hi - lo)) for x in begins(hi - lo, steps))
    part = np.broadcast_to(begins(window.taps, taps)[0], (number, window.taps))
    stop, last = _ends(made), _ends(part)
    r0, i0 = lo + np.arange(hi - lo), np.arange(window.taps)
    rows, reach = r0 * window.stride - window.pad, i0 * window.dilation
    first = np.maximum(rows[:, None] + reach[None, :], window.first)[None]
    bottom = (last - 1)[:, None, :] * window.dilation + 1
    end = np.minimum((lo + stop - 1)[:, :, None] * window.stride - window.pad + bottom, window.size)
    before = np.minimum((rows - window.stride)[None, :, None] + bottom, window.size)
    here = made[:, :, None] & part[:, None, :]
    return _Windows(np.broadcast_to(first, here.shape), end, before, here, here & ~passes[:, :, None], passes)


def _ends(first: NDArray[np.bool_]) -> Ints:
    """For every position the start of the next piece behind it."""
    extent = first.shape[1]
    here = np.where(first, np.arange(extent), extent)
    following = np.concatenate([here[:, 1:], np.full((len(here), 1), extent)], axis=1)
    ends: Ints = np.minimum.accumulate(following[:, ::-1], axis=1)[:, ::-1].astype(np.int64)
    return ends

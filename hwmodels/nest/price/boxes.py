"""What moving boxes of a stored tensor costs: calls, segments, bursts and bytes as products of per-axis sums.

**Burst windows** that the tiles of a stored tensor touch, by their addresses, for all candidate chains at once.

Given
    axes 1..D of a tensor, outermost first: pitch[k] bytes from one index to the next, the tensor at a multiple of
    `burst` bytes (B)
Claim
    A run of `len` bytes from address A touches ``ceil((A mod B + len) / B)`` windows, so only residues of addresses
    count. Let j be the innermost axis along which a tile is smaller than the tensor. Its runs begin at
    ``sum over k < j of pitch[k]*x[k] + pitch[j]*first[j]``, one for each choice of indices x[k], and are
    ``pitch[j]*length[j]`` long. The sum over all tiles is
        ``sum over residues a of h(a) * G(a)``
    with h(a) how many choices of the outer indices have residue a, and G(a) the windows of all pieces of axis j that
    are moved by a. h is the circular convolution of the histograms of the outer axes.
    Where the pieces of an axis cover each index of a range once, its histogram is that of the range, whatever the
    tiles: so it is for all axes but rows and columns of IN, whose windows overlap. Hence
        no such axis outside j      one vector over the chains of j
        rows outside columns j      one matrix over the chains of both: H G^T, with H and G of shape (chains, residues)
        either outside channels j   a sum over residues of products of vectors
Example
    Rows of 6 bytes, bursts of 4, tiles of 3 of 6 columns: rows begin at 0, 2, 0, 2 (mod 4). Bytes 0-2 touch one window
    and bytes 3-5 two in rows at 0; from 2 on they touch two (2-4) and one (5-7): 3 a row, where ceil(3/4) says 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod

import numpy as np

from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.choices import JOINT, Choices, Factors, Term, times
from hwmodels.nest.price.pieces import Pieces, Window, nominal
from hwmodels.transfer import PRICES
from instances.errors import InputError
from instances.machine.machine import Machine, Transfer
from instances.network.workload import DIMS, Layer

#: Chains of rows times chains of columns above this many are no table.
_TABLE = 1 << 27


@dataclass(frozen=True)
class Stored:
    """An axis of a stored tensor: the dimension along it, bytes from one index to the next, its size, the pieces."""

    dim: str
    pitch: int
    extent: int
    pieces: Pieces


@dataclass(frozen=True)
class Box:
    """One axis of N boxes of a tensor: its size, and of every box the first index and how many."""

    extent: int
    first: Ints
    length: Ints


def box_bursts(axes: Sequence[Box], element: int, burst: int) -> Ints:
    """Windows of `burst` bytes that each of N boxes touches, run by run; shape (N,). `axes` are outermost first."""
    rows, place = np.unique(np.stack([x for a in axes for x in (a.first, a.length)]), axis=1, return_inverse=True)
    sizes = [a.extent for a in axes]
    counts = [_box_windows(sizes, box[::2], box[1::2], element, burst) for box in rows.T.tolist()]
    return np.array(counts, np.int64)[place.ravel()]


def _box_windows(sizes: list[int], first: list[int], length: list[int], element: int, burst: int) -> int:
    """Windows of one box: the bytes at which its runs begin, and how long these are."""
    if 0 in length:
        return 0
    pitch, run, begins_at = element, element, np.zeros(1, np.int64)
    whole = True
    for size, begin, number in reversed(list(zip(sizes, first, length, strict=True))):
        if whole:
            run, begins_at = pitch * number, begins_at + begin * pitch
        else:
            begins_at = np.add.outer(np.arange(begin, begin + number) * pitch, begins_at).ravel()
        whole = whole and number == size
        pitch *= size
    return int(windows_touched(begins_at % burst, np.full_like(begins_at, run), burst).sum())


def windows_touched(residue: Ints, size: Ints, burst: int) -> Ints:
    """Windows of `burst` bytes that runs of `size` bytes touch that begin `residue` bytes behind a window's begin."""
    touched: Ints = -(-(residue + size) // burst)
    return touched


@lru_cache(maxsize=1024)
def burst_products(axes: tuple[Stored, ...], axis: Stored, burst: int) -> tuple[dict[str, Ints], ...]:
    """Return factors by dimension (or `JOINT`) whose products add up to the windows of all runs that `axis` breaks.

    `axes` are those outside `axis`, outermost first. Pieces that span the extent of `axis` break no run. Raises
    InputError if rows and columns have too many chains for a table of both.
    """
    unit = gcd(burst, axis.pitch, *(a.pitch for a in axes))
    residues = burst // unit
    still, moving = np.zeros(residues, np.int64), dict[str, Ints]()
    still[0] = 1
    for outer in axes:
        rows = _histogram(outer, unit, residues)
        if (rows == rows[0]).all():
            still = _circular(rows[0], still)
        elif outer.dim in moving:
            raise AssertionError(f"two axes along {outer.dim}")
        else:
            moving[outer.dim] = rows
    if not moving:
        return ({axis.dim: _touched(axis, burst, unit, still[None, :])[:, 0]},)
    place = np.arange(residues)
    here = _touched(axis, burst, unit, still[(place[None, :] - place[:, None]) % residues])
    if set(moving) | {axis.dim} == {"r", "c"}:
        (other,) = moving
        return (_joint(moving[other], here, other),)
    return tuple(_apart(moving, here, axis.dim))


def _joint(outer: Ints, inner: Ints, dim: str) -> dict[str, Ints]:
    """One matrix for the chains of rows and of columns; `dim` is the one of `outer`, shapes (chains, residues).

    Raises InputError if there are too many of both.
    """
    if len(outer) * len(inner) > _TABLE:
        raise InputError(
            f"rows and columns may be cut in {len(outer):,} x {len(inner):,} ways, too many for bursts by address: "
            "set transfer.burst_count=aligned, or pin T_R or T_C"
        )
    table = _product(outer, inner)
    return _plain(table if dim == "r" else table.T)


def _plain(table: Ints) -> dict[str, Ints]:
    """A matrix over chains of r and of c as a factor, of one of them where the other has one chain."""
    if table.shape[1] == 1:
        return {"r": table[:, 0]}
    return {"c": table[0]} if table.shape[0] == 1 else {JOINT: np.ascontiguousarray(table)}


def _apart(moving: dict[str, Ints], here: Ints, dim: str) -> Iterator[dict[str, Ints]]:
    """By residue of the rows' and columns' addresses a product with what channels count there."""
    for residue in range(here.shape[1]):
        if not here[:, residue].any():
            continue
        if len(moving) == 1:
            ((outer, rows),) = moving.items()
            weight = {outer: rows[:, residue]}
        else:
            turned = np.roll(moving["c"][:, ::-1], residue + 1, axis=1)
            weight = _plain(_product(moving["r"], turned))
        if any(vector.any() for vector in weight.values()):
            yield {**weight, dim: here[:, residue]}


def _product(one: Ints, two: Ints) -> Ints:
    """``one @ two.T`` in integers, by floating point where that is exact."""
    most = int(np.abs(one).max(initial=0)) * int(np.abs(two).max(initial=0)) * max(1, one.shape[1])
    if most < 2**53:
        table: Ints = np.rint(one.astype(np.float64) @ two.T.astype(np.float64)).astype(np.int64)
        return table
    exact: Ints = one @ two.T
    return exact


def _circular(one: Ints, two: Ints) -> Ints:
    """The circular convolution of two histograms."""
    straight = np.convolve(one, two)
    straight = np.append(straight, np.zeros(2 * len(one) - len(straight), np.int64))
    folded: Ints = straight.reshape(2, -1).sum(axis=0)
    return folded


def _histogram(axis: Stored, unit: int, residues: int) -> Ints:
    """How often the pieces of every chain have an index with each residue, (chains or 1, residues)."""
    pieces, step = axis.pieces, axis.pitch // unit % residues
    if pieces.once:
        return _even(*pieces.once, step, residues)
    placed = pieces.placed
    cover = np.zeros((len(pieces.number), axis.extent + 1), np.int64)
    np.add.at(cover, (placed.chain, placed.first), placed.count)
    np.subtract.at(cover, (placed.chain, placed.first + placed.length), placed.count)
    often = np.cumsum(cover, axis=1)[:, :-1]
    rows = np.zeros((len(cover), residues), np.int64)
    residue = np.arange(axis.extent) * step % residues
    for value in np.unique(residue):
        rows[:, value] = often[:, residue == value].sum(axis=1)
    return rows


@lru_cache(maxsize=1024)
def _even(lo: int, hi: int, step: int, residues: int) -> Ints:
    """The histogram (1, residues) of a range, each index once."""
    return np.bincount(np.arange(lo, hi) * step % residues, minlength=residues)[None, :].astype(np.int64)


def _touched(axis: Stored, burst: int, unit: int, weights: Ints) -> Ints:
    """Windows of the pieces of every chain that do not span the axis, (chains, W), for W weights of residues (W, R)."""
    kept, key = axis.pieces.kept, (axis.extent, axis.pitch, burst, unit, weights.tobytes())
    if key not in kept:
        kept[key] = _counted(axis, burst, unit, weights)
    return kept[key]


def _counted(axis: Stored, burst: int, unit: int, weights: Ints) -> Ints:
    placed, chains = axis.pieces.placed, len(axis.pieces.number)
    part = placed.length < axis.extent
    chain, first, length, count = (x[part] for x in (placed.chain, placed.first, placed.length, placed.count))
    residues = weights.shape[1]
    residue = first * (axis.pitch // unit) % residues
    runs, kind = np.unique(residue * (axis.extent + 1) + length, return_inverse=True)
    begin, size = np.divmod(runs, axis.extent + 1)
    move = (begin[:, None] + np.arange(residues)[None, :]) % residues * unit
    touched = windows_touched(move, (size * axis.pitch)[:, None], burst)
    each = _product(touched, weights)
    total = np.zeros((chains, len(weights)), np.int64)
    for column in range(len(weights)):
        total[:, column] = _sums(chain, each[kind.ravel(), column] * count, chains)
    return total


def _sums(chain: Ints, value: Ints, chains: int) -> Ints:
    """The sum of the values of every chain."""
    if int(np.abs(value).sum()) < 2**53:
        return np.bincount(chain, value, chains).astype(np.int64)
    total = np.zeros(chains, np.int64)
    np.add.at(total, chain, value)
    return total


#: All kinds of counts that tables hold.
KINDS = frozenset(count for count, price in PRICES.items() if not price.whole)


def input_windows(layer: Layer, resident: int | None = None) -> dict[str, Window]:
    """The sliding windows of the two spatial dimensions over an input of so many resident rows (the fewest of all)."""
    first = min(layer.residents) if resident is None else resident
    return {
        "r": Window(layer.stride_h, layer.dilation_h, layer.kh, layer.pad_top, layer.h, first),
        "c": Window(layer.stride_w, layer.dilation_w, layer.kw, layer.pad_left, layer.l),
    }


@dataclass(frozen=True)
class Axis:
    """One axis of a stored tensor: its extent, the dimension along it and that dimension's pieces."""

    extent: int
    dim: str
    pieces: Pieces


def runs_of(
    axes: list[Axis], element: int, transfer: Transfer, kinds: frozenset[str], *, aligned: bool = False
) -> dict[str, list[tuple[int, Factors]]]:
    """Sum calls, segments, bursts and bytes over all boxes, as a constant times per-dimension vectors.

    With j the innermost axis along which a box is smaller than the tensor, its runs are the product of its extents
    outside j; all axes inside j are whole, so a run is ``length_j * inner bytes`` long. Bursts are counted as
    `transfer` says, by address (`burst_products`) or as if every run began one; with `aligned` always so,
    which is never more.
    """
    burst, exact = transfer.burst_bytes, transfer.by_address and not aligned
    number = {a.dim: a.pieces.number for a in axes}
    lengths = {a.dim: a.pieces.sum for a in axes}
    result: dict[str, list[tuple[int, Factors]]] = {kind: [] for kind in kinds}
    if "calls" in kinds:
        result["calls"].append((1, number))
    if "bytes" in kinds:
        result["bytes"].append((element, lengths))
    if not kinds & {"segments", "bursts"}:
        return result
    whole = {a.dim: a.pieces.full(a.extent) for a in axes}
    if "segments" in kinds:
        result["segments"].append((1, whole))
    if "bursts" in kinds and burst:
        result["bursts"].append((-(-element * prod(a.extent for a in axes) // burst), whole))
    for j, axis in enumerate(axes):
        if axis.extent == 1:
            continue
        outer = {a.dim: lengths[a.dim] for a in axes[:j]}
        inner = {a.dim: whole[a.dim] for a in axes[j + 1 :]}
        run = element * prod(a.extent for a in axes[j + 1 :])
        if "segments" in kinds:
            result["segments"].append((1, {**outer, axis.dim: axis.pieces.partial(axis.extent), **inner}))
        if "bursts" in kinds and exact:
            *outside, here = _stored(axes, element)[: j + 1]
            result["bursts"] += [(1, times(product, inner)) for product in burst_products(tuple(outside), here, burst)]
        elif "bursts" in kinds and burst:
            windows_of = axis.pieces.partial_windows(axis.extent, run, burst)
            result["bursts"].append((1, {**outer, axis.dim: windows_of, **inner}))
    return result


def _stored(axes: list[Axis], element: int) -> list[Stored]:
    """The axes with their pitches in bytes."""
    pitches = [element * prod(a.extent for a in axes[k + 1 :]) for k in range(len(axes))]
    return [Stored(a.dim, pitch, a.extent, a.pieces) for a, pitch in zip(axes, pitches, strict=True)]


def axes_of(
    layer: Layer, machine: Machine, tensor: str, pieces: Callable[[str], Pieces], lacks: str = ""
) -> list[Axis]:
    """The axes of IN, W, OUT (also partial sums) or BIAS in storage order, outermost first.

    An input that is broadcast along the dimensions `lacks` has no axes there.
    """
    return [Axis(extent, d, pieces(d)) for d, extent in shape_of(layer, machine, tensor, lacks)]


def shape_of(layer: Layer, machine: Machine, tensor: str, lacks: str = "") -> list[tuple[str, int]]:
    """The dimension along each axis of a stored tensor and its extent, outermost first; none along those of `lacks`."""
    extents = {d: layer.extent(d) for d in DIMS}
    if tensor == "IN":
        extents.update(r=layer.h, c=layer.l)
    out = "bgmrc" if machine.out_layout == "CHW" else "brcgm"
    orders = {
        "IN": "bgnrc" if machine.in_layout == "CHW" else "brcgn",
        "OUT": out,
        "PSUM": out,
        "W": "gmnij" if machine.w_layout == "OIHW" else "gmijn",
        "BIAS": "gm",
    }
    return [(d, extents[d]) for d in orders[tensor] if d not in lacks]


def pitches_of(layer: Layer, machine: Machine, tensor: str, lacks: str = "") -> list[tuple[str, int]]:
    """The dimensions of IN, W, OUT, PSUM or BIAS, outermost first, with the bytes from one index to the next."""
    elements = {
        "IN": machine.in_bytes, "W": machine.w_bytes, "OUT": machine.out_bytes,
        "PSUM": machine.psum_bytes, "BIAS": machine.bias_bytes,
    }  # fmt: skip
    pitch, result = elements[tensor], []
    for d, extent in reversed(shape_of(layer, machine, tensor, lacks)):
        result.append((d, pitch))
        pitch *= extent
    return result[::-1]


def box_terms(
    layer: Layer, machine: Machine, operand: str, tile: Factors, choices: Choices, lacks: str = ""
) -> dict[str, list[Term]]:
    """Counts of one nominal tile of `operand` for every choice, as rank-1 terms by kind.

    `tile[d]` is the tile size of dimension d for every candidate; the input tile has its halo, at most the map. The
    kernel is whole; its bursts are aligned, for it has no address.
    """
    element = {"IN": machine.in_bytes, "W": machine.w_bytes, "OUT": machine.out_bytes}[operand]
    window = input_windows(layer)

    def pieces(dim: str) -> Pieces:
        length = tile[dim] if dim in tile and dim not in "ij" else np.array([layer.extent(dim)], np.int64)
        length = window[dim].nominal(length) if operand == "IN" and dim in window else length
        return nominal(length, np.ones_like(length))

    result: dict[str, list[Term]] = {}
    axes = axes_of(layer, machine, operand, pieces, lacks)
    for kind, products in runs_of(axes, element, machine.transfer_of(operand), KINDS, aligned=True).items():
        spread = [(constant, choices.spread(factors)) for constant, factors in products]
        result[kind] = [(a * constant, b) for constant, (a, b) in spread]
    return result

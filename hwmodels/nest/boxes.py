"""What moving boxes of a stored tensor costs: calls, segments, bursts and bytes as products of per-axis sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from hwmodels.nest.addresses import Stored, burst_products
from hwmodels.nest.choices import Choices, Factors, Term, times
from hwmodels.nest.pieces import Pieces, Window, nominal
from instances.machine import Machine, Transfer
from instances.workload import DIMS, Layer

#: All kinds of counts that tables hold.
KINDS = frozenset({"calls", "segments", "bursts", "bytes"})


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
    `transfer` says, by address (`hwmodels.nest.addresses`) or as if every run began one; with `aligned` always so,
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

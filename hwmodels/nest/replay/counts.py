"""What one transfer costs, counted on addresses: the runs, burst windows, DRAM rows and bytes of boxes of tensors.

The address of every run of a box is written down and adjoining runs are joined; the counts come from that list. Boxes
of equal extents differ only by where they start, so each extent is listed once and shifted by its start.

**Homes.** On machines with several memories off the chip it is looked up where every row of counts goes: the schedule
says where an operand lies; whether it may is looked up in the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hwmodels.nest.replay.cuts import Cuts, operand_at, row_of
from hwmodels.outcome import Counts
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.machine.machine import Machine, OffChip, Transfer
from instances.network.workload import Layer

Ints = npt.NDArray[np.int64]
#: Largest range of codes that is counted in a table instead of being sorted.
_TABLE = 1 << 20


@dataclass(frozen=True)
class Axis:
    """One axis of a stored tensor: its size, and the start and extent of the pieces of `dims` along it.

    Input rows and columns have two dimensions (the output's and the kernel's), all other axes one; `start` and `extent`
    have one axis for each.
    """

    size: int
    dims: tuple[str, ...]
    start: Ints
    extent: Ints


@dataclass(frozen=True)
class Stored:
    """A row-major tensor in DRAM: axes outermost first, bytes per element; its base is aligned to a window."""

    axes: tuple[Axis, ...]
    element: int

    @property
    def pitch(self) -> tuple[int, ...]:
        """Bytes from one index to the next along every axis."""
        found, below = [], self.element
        for axis in reversed(self.axes):
            found.append(below)
            below *= axis.size
        return tuple(reversed(found))

    def fingerprint(self, window: int) -> tuple[object, ...]:
        """Everything the counts depend on: sizes, extents, and starts modulo `window` bytes."""
        rows: list[object] = [self.element]
        for axis, pitch in zip(self.axes, self.pitch, strict=True):
            rows += [axis.size, axis.extent.tobytes()]
            if window > 1:
                rows.append((axis.start * pitch % window).tobytes())
        return tuple(rows)


@dataclass(frozen=True)
class Boxes:
    """The tiles of an operand: which kind each is, what moving one of each kind costs, and bytes of the largest one."""

    kind: Ints
    counts: tuple[Counts, ...]
    largest: int

    def total(self, moves: Ints) -> Counts:
        """Everything moved when tile i is moved ``moves[i]`` times."""
        often = np.zeros(len(self.counts), np.int64)
        np.add.at(often, self.kind, moves)
        return sum((times(c, int(k)) for c, k in zip(self.counts, often, strict=True)), Counts())

    def prices(self, transfer: Transfer) -> Ints:
        """Ticks for moving each tile once."""
        return np.array([price(c, transfer) for c in self.counts], np.int64)[self.kind]


def times(counts: Counts, factor: int) -> Counts:
    """Return the counts of `factor` equal transfers."""
    return Counts(*(v * factor for v in counts.to_json().values()))


def price(counts: Counts, transfer: Transfer) -> int:
    """Ticks of a transfer with these counts (docs/transfer.md)."""
    return (
        transfer.call_ticks * counts.calls
        + transfer.segment_ticks * counts.segments
        + transfer.burst_ticks * counts.bursts
        + transfer.row_ticks * counts.rows
        + transfer.refresh_ticks * counts.refreshes
        + transfer.byte_ticks * counts.bytes
    )


# ---- runs --------------------------------------------------------------------------------------------------------


def _runs(shape: tuple[int, ...], extents: tuple[int, ...], element: int) -> tuple[Ints, Ints]:
    """Start address and length in bytes of every contiguous run of a box at the origin of a tensor.

    Axes whose inner neighbour is whole are walked as one (their rows adjoin), which only shortens the list.
    """
    sizes, lengths = list(shape), list(extents)
    while len(sizes) > 1 and lengths[-1] == sizes[-1]:
        inner = sizes.pop()
        sizes[-1] *= inner
        lengths.pop()
        lengths[-1] *= inner
    starts = np.zeros(1, np.int64)
    pitch = element * int(np.prod(sizes, dtype=np.int64))
    for size, length in zip(sizes[:-1], lengths[:-1], strict=True):
        pitch //= size
        starts = (starts[:, None] + np.arange(length, dtype=np.int64) * pitch).ravel()
    size_bytes = np.full(len(starts), lengths[-1] * element, np.int64)
    begins = np.ones(len(starts), bool)
    begins[1:] = starts[1:] != starts[:-1] + size_bytes[:-1]
    heads = np.flatnonzero(begins)
    return starts[heads], np.add.reduceat(size_bytes, heads)


@lru_cache(maxsize=16384)
def _aligned(shape: tuple[int, ...], extents: tuple[int, ...], element: int, burst: int) -> tuple[int, int]:
    """Runs of a box, and burst windows when every run starts a new window."""
    _, lengths = _runs(shape, extents, element)
    return len(lengths), int((-(-lengths // burst)).sum()) if burst else 0


@lru_cache(maxsize=16384)
def _phases(shape: tuple[int, ...], extents: tuple[int, ...], element: int, burst: int) -> tuple[Ints, Ints, Ints]:
    """Runs of a box by (start modulo burst, length), and how many there are of each."""
    starts, lengths = _runs(shape, extents, element)
    codes, number = np.unique(lengths * burst + starts % burst, return_counts=True)
    return codes % burst, codes // burst, number.astype(np.int64)


def _windows(shape: tuple[int, ...], extents: tuple[int, ...], element: int, burst: int, base: int) -> int:
    """Burst windows that the runs of a box touch that starts at address `base`."""
    starts, lengths, number = _phases(shape, extents, element, burst)
    at = starts + base
    return int((((at + lengths - 1) // burst - at // burst + 1) * number).sum())


def call_of(parts: Sequence[tuple[tuple[int, ...], tuple[int, ...], int, int]], transfer: Transfer) -> Counts:
    """Count one DMA call that moves a box of each part (tensor's shape, extents, element bytes, first address)."""
    burst = transfer.burst_bytes
    segments = bursts = size = 0
    for shape, extents, element, base in parts:
        volume = element
        for extent in extents:
            volume *= extent
        if not volume:
            continue
        size += volume
        runs, aligned = _aligned(shape, extents, element, burst)
        segments += runs
        if burst:
            bursts += _windows(shape, extents, element, burst, base) if transfer.by_address else aligned
    if not size:
        return Counts()
    rows = size // transfer.row_bytes if transfer.row_bytes else 0
    refreshes = -(-size // transfer.refresh_bytes) if transfer.refresh_bytes else 0
    return Counts(calls=1, segments=segments, bursts=bursts, rows=rows, refreshes=refreshes, bytes=size)


def boxes_of(
    parts: Sequence[Stored], dims: Sequence[str], shape: Sequence[int], transfer: Transfer, *, apart: bool = False
) -> Boxes:
    """Count every tile of an operand, once per kind of tile.

    Parameters
    ----------
    parts : sequence of Stored
        The tensors that one call moves together (weights and biases), or that are moved by one call each.
    dims, shape : sequences
        The operand's dimensions and the number of pieces of each; tiles are numbered row-major.
    apart : bool
        Whether every part has its own call.
    """
    codes: list[Ints] = []
    radices: list[int] = []
    for part in parts:
        residue = np.zeros((1,) * len(dims), np.int64)
        for axis, pitch in zip(part.axes, part.pitch, strict=True):
            place = [1] * len(dims)
            for d, number in zip(axis.dims, axis.start.shape, strict=True):
                place[dims.index(d)] = number
            values, which = np.unique(axis.extent, return_inverse=True)
            if len(values) > 1:
                codes.append(which.astype(np.int64).reshape(place))
                radices.append(len(values))
            residue = residue + (axis.start * pitch).reshape(place)
        if transfer.by_address:
            codes.append(residue % transfer.window_bytes)
            radices.append(transfer.window_bytes)
    code = np.zeros((1,) * len(dims), np.int64)
    for part_code, radix in zip(codes, radices, strict=True):
        code = code * radix + part_code
    grid = np.broadcast_to(code, tuple(shape)).ravel()
    kind, example = _kinds(grid, int(np.prod(radices, dtype=np.float64)))
    counts = []
    largest = [0] * len(parts)
    for tile in example:
        index = dict(zip(dims, np.unravel_index(int(tile), tuple(shape)), strict=True))
        calls = [call_of([_box(p, index)], transfer) for p in parts]
        largest = [max(most, call.bytes) for most, call in zip(largest, calls, strict=True)]
        if len(parts) > 1 and not apart:
            calls = [call_of([_box(p, index) for p in parts], transfer)]
        counts.append(sum(calls, Counts()))
    return Boxes(kind, tuple(counts), sum(largest))


def _kinds(grid: Ints, bound: int) -> tuple[Ints, Ints]:
    """Number the distinct codes from 0; return the kind of every tile and one tile of every kind."""
    if bound > _TABLE:
        _, example, kind = np.unique(grid, return_index=True, return_inverse=True)
        return kind.astype(np.int64).ravel(), example
    member = np.full(bound, -1, np.int64)
    member[grid] = np.arange(len(grid))
    present = np.flatnonzero(member >= 0)
    number = np.zeros(bound, np.int64)
    number[present] = np.arange(len(present))
    return number[grid], member[present]


def _box(part: Stored, index: Mapping[str, np.integer]) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
    """Shape, extents, element bytes and first address of one tile of a tensor."""
    extents, start = [], 0
    for axis, pitch in zip(part.axes, part.pitch, strict=True):
        piece = tuple(int(index[d]) for d in axis.dims)
        extents.append(int(axis.extent[piece]))
        start += int(axis.start[piece]) * pitch
    return tuple(a.size for a in part.axes), tuple(extents), part.element, start


# ---- tensors -----------------------------------------------------------------------------------------------------


def stored_tensors(
    layer: Layer, machine: Machine, cuts: Mapping[str, Cuts], levels: Mapping[str, Mapping[str, int]]
) -> dict[str, tuple[Stored, ...]]:
    """Lay the tensors of a layer out in DRAM and find every tile's range along their axes.

    Returns
    -------
    dict
        For the rows IN, W, OUT and PSUM the tensors: those of W are moved by one call, those of IN by one each. Inputs
        that are broadcast have rows of their own (`row_of`), without axes along what they lack.
    """
    orders = {
        "IN": "bgnrc" if machine.in_layout == "CHW" else "brcgn",
        "W": "gmnij" if machine.w_layout == "OIHW" else "gmijn",
        "OUT": "bgmrc" if machine.out_layout == "CHW" else "brcgm",
    }

    def lay(order: str, row: str, element: int, resident: int = 0) -> Stored:
        operand, _, lacks = row.partition("-")
        axes = (_axis(layer, cuts, levels[row], operand, d, resident) for d in order if d not in lacks)
        return Stored(tuple(axes), element)

    inputs: dict[str, tuple[Stored, ...]] = {}
    for lacks, rows in zip(layer.patterns, layer.residents, strict=True):
        row = row_of(lacks)
        moved = not (rows and "r" in lacks)  # its only row is on chip
        inputs[row] = inputs.get(row, ()) + ((lay(orders["IN"], row, machine.in_bytes, rows),) if moved else ())
    found: dict[str, tuple[Stored, ...]] = {
        **inputs,
        "OUT": (lay(orders["OUT"], "OUT", machine.out_bytes, layer.resident_out),),
        "PSUM": (lay(orders["OUT"], "OUT", machine.psum_bytes),),
    }
    if "W" in layer.operands:
        found["W"] = (lay(orders["W"], "W", machine.w_bytes),)
        if layer.bias and machine.bias_bytes:
            found["W"] += (lay("gm", "W", machine.bias_bytes),)
    return found


def _axis(
    layer: Layer, cuts: Mapping[str, Cuts], levels: Mapping[str, int], operand: str, letter: str, resident: int
) -> Axis:
    """The pieces of one dimension along a tensor's axis; input rows and columns follow the sliding window.

    The first `resident` rows are on chip: no piece has them.
    """

    def pieces(dim: str) -> tuple[Ints, Ints]:
        return cuts[dim].start[levels[dim]], cuts[dim].stop[levels[dim]]

    start, stop = pieces(letter)
    if operand != "IN" or letter not in "rc":
        begin = np.maximum(start, resident if letter == "r" else 0)
        return Axis(layer.extent(letter), (letter,), begin, np.maximum(stop - begin, 0))
    kernel, size, stride, dilation, pad = (
        ("i", layer.h, layer.stride_h, layer.dilation_h, layer.pad_top)
        if letter == "r"
        else ("j", layer.l, layer.stride_w, layer.dilation_w, layer.pad_left)
    )
    tap, end = pieces(kernel)
    first = start[:, None] * stride - pad + tap[None, :] * dilation
    last = (stop[:, None] - 1) * stride - pad + (end[None, :] - 1) * dilation
    begin, after = np.maximum(first, resident if letter == "r" else 0), np.minimum(last + 1, size)
    return Axis(size, (letter, kernel), begin, np.maximum(after - begin, 0))


def bound_homes(layer: Layer, machine: Machine, nest: Nest) -> Machine:
    """Return the machine with every operand at the home that the schedule states, or at the only one it may have.

    Raises InputError if a home is missing, does not exist, is not allowed there, or cannot be written.
    """
    stated = dict(nest.homes)
    if not machine.off_chip:
        if stated:
            raise InputError(f"nest: states homes, machine {machine.name} has one memory off the chip")
        return machine
    known = {memory.name: memory for memory in machine.off_chip}
    homes, silent = {operand: (names[0],) for operand, names in machine.homes.items()}, not stated
    for operand in layer.operands:
        row = "IN" if operand == "W" and layer.weights == "activation" else operand
        options = next(names for op, names in machine.homes.items() if op == row)
        name = options[0] if silent and len(options) == 1 else stated.pop(operand, None)
        if name is None or name not in known or name not in options:
            raise InputError(f"nest: {operand} lies in {name}, machine {machine.name} allows {' or '.join(options)}")
        if operand == "OUT" and not known[name].writable:
            raise InputError(f"nest: results cannot be written to {name} of machine {machine.name}")
        homes[operand] = (name,)
    if stated:
        raise InputError(f"nest: homes of {', '.join(stated)}, which layer {layer.name} does not have")
    return machine.model_copy(update={"homes": homes})


def _memory(machine: Machine, row: str) -> OffChip | None:
    if not machine.off_chip:
        return None
    ((name,),) = [names for operand, names in machine.homes.items() if operand == operand_at(row)]
    return next(memory for memory in machine.off_chip if memory.name == name)


def transfer_at(machine: Machine, row: str) -> Transfer:
    """The prices of the memory that a row of counts moves to or from."""
    memory = _memory(machine, row)
    return machine.transfer if memory is None else memory.transfer


def energy_at(machine: Machine, rows: Mapping[str, Counts]) -> int:
    """Femtojoules of all bytes, memory by memory."""
    total = 0
    for row, counts in rows.items():
        memory = _memory(machine, row)
        total += counts.bytes * (machine.byte_fj if memory is None else memory.byte_fj)
    return total

"""Bank layouts of F3 mesh: how an operand's tile lies in its banks, so that every vector is served in one cycle.

Sets
    PE number N = sum of 2**i * b_i, i = 0 .. X-1, over 2**X PEs of a unit; an operand's axes (`instances.ndrange`)
Given
    the PE vector P[d] = 2**k[d]: PE N works on point (vector step)*P[d] + lane[d] along d; extents of the tile
Variables
    the bit assignment: the order of the indices with PEs along them; lane[d] takes k[d] bits of N in a row
    for each operand the order of its axes, innermost first, and their pitches in words
Derived
    address = sum over axes of pitch * (element in the tile); N moves it by sum over bits of stride_i * b_i, where the
    bit q of lane[d] has stride 2**q * step[d] * pitch of the axis that d moves; 0 if there is none
    active[d] = min(k[d], ceil(log2 T[d])): the lowest bits of lane[d], which working PEs have set; whoever has one of
    the others set has no point of the tile and idles, so that those bits have no stride
Constraints
    (BUTTERFLY) stride_i = 2**i * o_i with odd o_i, or 0: A_N = A_0 + sum of 2**i * o_i * b_i. The low bits 0 .. i of a
                bank number then depend on b_0 .. b_i only and tell apart those among them that matter, so a butterfly
                that sets bit X-1 first and bit 0 last never sends two words over one wire; PEs that differ only in bits
                with stride 0 read the same word, which it copies
    (APART)     the pitch of an axis is at least pitch * extent of the axis inside it: elements have words of their own
    (FITS)      copies * words of the tile <= input buffer, for both operands
Objective
    min words of both operands together, padding included
Optimal means
    No bit assignment, order of axes and pitches that nest need fewer words. Every parallel index moves an axis of an
    operand, so by (BUTTERFLY) the active bits of d follow one another in N: strides double from q to q+1. So all
    assignments are the orders of the indices with active bits, and of the other bits some before, between and after
    them; which of the others is which does not matter. For a given assignment and order the least
    pitch of every axis is best, from the inside out: a smaller one lets all axes around it have smaller ones. The proof
    is that there is no smaller multiple of the odd kind (BUTTERFLY) at or above the end of the inner axis (APART).

Source: `vectormesh` section II-C; its sum prints 2**X o_i b_i where the rule it cites has 2**i. That bits without
effect drop out is our reading of "serve": Eq. 6 has operands that do not depend on all PE indices.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations_with_replacement, permutations, product

from hwmodels.schedule import AxisLayout, Choice, Layout, OperandLayout
from instances.machine import Machine
from instances.ndrange import Operand, ndrange
from instances.workload import DIMS, Layer

#: An index and the bit of its lane.
Bit = tuple[str, int]


def layout_of(layer: Layer, machine: Machine, choice: Choice) -> Layout | None:
    """Return the layout with the fewest words, None if no layout fits."""
    best: Layout | None = None
    for bits, low in _assignments(choice):
        found = _operands(layer, machine, choice, low)
        if found is not None and (best is None or sum(one.words for one in found) < best.words):
            best = Layout(bits, found)
            if all(one.words == one.elements for one in found):
                break
    return best


def _assignments(choice: Choice) -> Iterator[tuple[tuple[Bit, ...], dict[str, int]]]:
    """Yield all bit assignments that differ, lowest bit first, and where the active bits of each index begin."""
    active, idle = [], list[Bit]()
    for d, lanes, tile in zip(DIMS, choice.vector, choice.tile, strict=True):
        bits = lanes.bit_length() - 1
        used = min(bits, (tile - 1).bit_length())
        active += [(d, used)] if used else []
        idle += [(d, q) for q in range(used, bits)]
    for order in permutations(active):
        for before in combinations_with_replacement(range(len(idle) + 1), len(order)):
            made, low, spent = list[Bit](), dict[str, int](), 0
            for (d, used), until in zip(order, before, strict=True):
                made += idle[spent:until]
                low[d], spent = len(made), until
                made += [(d, q) for q in range(used)]
            yield (*made, *idle[spent:]), low


def _operands(
    layer: Layer, machine: Machine, choice: Choice, low: dict[str, int]
) -> tuple[OperandLayout, ...] | None:  # fmt: skip
    mesh = machine.mesh
    assert mesh is not None
    tile, found = dict(zip(DIMS, choice.tile, strict=True)), []
    for operand, size in zip(ndrange(layer).inputs, (machine.in_bytes, machine.w_bytes), strict=True):
        axes = tuple(_axis(operand, at, tile, low) for at in range(len(operand.axes)))
        if None in axes:
            return None
        best = _packed(tuple(axis for axis in axes if axis is not None), mesh.input_buffer_bytes // mesh.copies // size)
        if best is None:
            return None
        elements = 1
        for axis in best[0]:
            elements *= axis.extent
        found.append(OperandLayout(operand.name, best[0], best[1], elements))
    return tuple(found)


def _axis(operand: Operand, at: int, tile: dict[str, int], low: dict[str, int]) -> tuple[int, int, int | None] | None:
    """The number of an axis, its extent, and the power of two in its pitch (None: any); None if there is no pitch."""
    axis, power = operand.axes[at], None
    for d, step in axis.steps.items():
        if d in low:
            needed = low[d] - ((step & -step).bit_length() - 1)
            if needed < 0 or power not in (None, needed):
                return None
            power = needed
    return at, 1 + sum(step * (tile[d] - 1) for d, step in axis.steps.items()), power


@lru_cache(maxsize=100_000)
def _packed(
    axes: tuple[tuple[int, int, int | None], ...], most: int
) -> tuple[tuple[AxisLayout, ...], int] | None:  # fmt: skip
    """The order of axes and the pitches with the fewest words, None if all need more than `most`."""
    thick = [axis for axis in axes if axis[1] > 1]
    thin = [AxisLayout(at, 1, 1 if power is None else 1 << power) for at, extent, power in axes if extent == 1]
    best: tuple[tuple[AxisLayout, ...], int] | None = None
    for order in permutations(thick):
        made, end, words = [], 1, 1
        for at, extent, power in order:
            pitch = end if power is None else _odd_multiple(end, power)
            made.append(AxisLayout(at, extent, pitch))
            end, words = pitch * extent, words + pitch * (extent - 1)
        if words <= most and (best is None or words < best[1]):
            best = (*made, *thin), words
    return best


def _odd_multiple(least: int, power: int) -> int:
    """The smallest odd multiple of 2**power that is at least `least`."""
    unit = 1 << power
    odd = -(-least // unit)
    return unit * (odd + 1 - odd % 2)


def vectors(pes: int, movable: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of a PE vector over some indices."""
    bits = pes.bit_length() - 1
    for powers in product(range(bits + 1), repeat=len(movable)):
        if sum(powers) == bits:
            of = dict(zip(movable, powers, strict=True))
            yield tuple(1 << of.get(d, 0) for d in DIMS)

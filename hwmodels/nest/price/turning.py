"""What is moved again at least, in snake order as well, where a memory holds too little of a layer.

Given
    a layer with weights on one core; G groups; for each operand X in {IN, W, OUT} the bytes V_X of its elements in a
    group that are used, each counted once; S bytes of memory.
Let a nest be one of docs/nest.md, in any order of its loops. Every dimension but g is one that exactly one operand does
not depend on: m for IN; b, r, c for W; n, i, j for OUT. So let mu, rho, nu be the numbers of pieces that the loops down
to some place have made of m, of (b, r, c) and of (n, i, j); T_X the bytes of the largest tile of X.

1. **One operand.** Let loop k be one that X does not depend on, p and p' the pieces of the dimensions that X does not
   depend on before and behind it, q the pieces before it of those that it depends on. Then

       bytes moved of X >= V_X + sum over these k outside Hold(X) of (p' - p) * max(0, V_X - q*T_X).

   Proof. Give every element to one of the tiles that have it. That tile is entered once for each of the pieces that X
   does not depend on. Between one entry and the next one some loop k advances that X does not depend on, within one of
   its q pieces outside k; that is so p' - p times for each of the q. The element need not be fetched at the second
   entry only if it stays on chip, so it lies in the tile that is there when k advances: that is true of T_X bytes at
   most, and of no more than the piece has. Nothing is said of the order of iterations, of windows that slide or of
   pieces of equal size. (For OUT read: visits of elements, of which each but the first writes and reads one.)

2. **All operands.** Inside Hold(X) q*T_X >= V_X, so the sum may go over all loops of the nest: it is a walk from
   (1, 1, 1) along the axes, and costs at least, per group (loops over g lower what is left only as far as G), the sums

       of (V_IN - rho*nu*T_IN)+ over steps of mu, (V_W - mu*nu*T_W)+ of rho, (V_P - mu*rho*T_P)+ of nu,

   with P the partial sums (written and read). At its end all three brackets are zero.

3. **The least walk** in whole steps. Let 1, 2, 3 be the operands in the order of their tiles, T_1 >= T_2 >= T_3 (as
   they cost), and x_1, x_2, x_3 the pieces that they do not depend on. Let P = (x_1, x_2, x_3) be the last place where
   no bracket is zero, and the step behind it one of x_j. It makes the bracket of another operand i zero; then x_i grows
   for nothing until the two others are zero, too. Up to P a step of x_j ahead of one of x_i costs ``x_k*(T_i - T_j)``
   less than behind it: so those of x_3 come first, then those of x_2, then those of x_1. All is

       base + (x_1 - 1)*rest + F_j, with base = (x_3 - 1)*(V_3 - T_3) + (x_2 - 1)*(V_2 - x_3*T_2)
                                     and rest = V_1 - x_2*x_3*T_1 and F_j the bracket of j at P.

   Let x* = min(V_2/(x_3*T_2), V_3/(x_2*T_3)), where the bracket of 2 or 3 is zero. If j = 1, x_1 + 1 >= x*: all is at
   least ``base + (x* - 1)*rest``. Else it is affine in x_1, so no less than with x_1 = x* or with x_1 = 1. With x_1 = 1
   and j = 2 it is `base` of (x_2 + 1, x_3), where ``(x* - 1)*rest`` is nothing; with x_1 = 1 and j = 3 it is
   ``base + V_3 - x_2*T_3``, and the bracket of 1 or of 2 is zero behind it. So no walk costs less than the least, over
   all x_2 and x_3, of

       base + max(0, x* - 1) * max(0, rest)
       base + V_3 - x_2*T_3, where x_2*(x_3 + 1)*T_1 >= V_1 or (x_3 + 1)*T_2 >= V_2.

   Of x_2 and x_3 beyond some number `base` alone is taken, at that number. If some V_X <= T_X nothing is moved again.

4. **The tiles.** The walk costs less the larger they are, and they share the memory: T_IN + T_W + (bytes of OUT's
   tile) <= S. So the least over a grid of T_IN and T_W is taken, of each of its cells with the largest tiles in it.
   While n, i or j is cut an element of OUT takes the larger of `psum_bytes` and `out_bytes`; if none is, nu = 1 and
   only IN and W are moved again: the same formula with V_P beyond all bounds.

**Ticks.** A tile that is fetched anew is a call and a run at least, so that a byte of a tile of T bytes takes
``byte_ticks + (call_ticks + segment_ticks)/T`` ticks at least, the less the larger T is. Windows that slide may fetch
what is missing of several tiles by fewer calls: of these only bytes count.

Beside tables of bounds that count every tile once these are further fetches, so both add up.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from hwmodels.nest.price.limits import tensor_elements
from instances.machine.machine import Machine
from instances.network.workload import Layer

Floats = NDArray[np.float64]
#: Points of the grid of tiles, evenly and by ratios.
_POINTS = 64
#: What rounding of floating-point numbers may be, of a sum.
_ROUNDED = 1e-9
#: More than any cost.
_FAR = 1e30
#: Steps of x_2 and x_3 that are looked at.
_STEPS = 32, 8
_OPERANDS = ("IN", "W", "OUT")


#: Bytes or elements of IN, W and OUT.
Three = tuple[int, int, int]


def moved_again(layer: Layer, machine: Machine, measure: str) -> int:
    """What every nest takes beyond moving each element once, in bytes, femtojoules ("energy") or ticks ("time")."""
    plain = layer.inputs == 1 and not (layer.broadcast or any(layer.residents) or layer.resident_out)
    if "W" not in layer.operands or not plain or machine.reading == "literal":
        return 0
    rooms = [max(0, machine.memories[machine.memory_of(op)] - machine.reserved_bytes) for op in _OPERANDS]
    prices = tuple(_price(layer, machine, op, measure) for op in _OPERANDS)
    room = (rooms[0],) if len(machine.memories) == 1 else tuple(rooms)
    sizes = machine.in_bytes, machine.w_bytes, machine.out_bytes
    sums = machine.in_bytes, machine.w_bytes, max(machine.psum_bytes, machine.out_bytes)
    used = tensor_elements(layer)
    return min(_least(used, layer.g, sizes, room, prices, True), _least(used, layer.g, sums, room, prices, False))


def _price(layer: Layer, machine: Machine, operand: str, measure: str) -> tuple[int, int]:
    """What an element takes that is moved again (one of OUT is written and read), and each fetch beside."""
    size = {"IN": machine.in_bytes, "W": machine.w_bytes, "OUT": 2 * machine.psum_bytes}[operand]
    if measure != "time":
        return size * (machine.byte_fj_of(operand) if measure == "energy" else 1), 0
    transfer, slides = machine.transfer_of(operand), operand == "IN" and machine.sliding
    fetch = 0 if slides and (layer.kh > 1 or layer.kw > 1) else transfer.call_ticks + transfer.segment_ticks
    return size * transfer.byte_ticks, 2 * fetch if operand == "OUT" else fetch


@lru_cache(maxsize=1024)
def _least(
    used: Three, groups: int, sizes: Three, rooms: tuple[int, ...], prices: tuple[tuple[int, int], ...], uncut: bool
) -> int:
    """The least over all tiles; `uncut`, where n, i and j are not cut."""
    if len(rooms) == 1:
        low, high = _cells(rooms[0])
        left = rooms[0] - np.add.outer(low, low)  # at most
        tiles = np.stack([*np.broadcast_arrays(high[:, None], high[None, :]), left])[:, left >= sizes[2]]
    else:
        tiles = np.array(rooms, np.float64)[:, None]
    if not tiles.size:
        return 0
    elements = np.maximum(tiles // np.array(sizes)[:, None], 1)
    cost = np.array(prices, np.float64) @ np.array([1, 0])
    cost = cost[:, None] + np.array([fetch for _, fetch in prices])[:, None] / elements
    every, tile = cost * (np.array(used) / groups)[:, None], cost * elements
    if uncut:
        every[2], tile[2] = _FAR, 0
    return ceil(groups * float(walk(every, tile).min()) * (1 - _ROUNDED))  # what is moved is whole


def _cells(room: int) -> tuple[Floats, Floats]:
    """The least and the largest tile of each cell, in whole bytes."""
    points = np.concatenate([np.linspace(0, room, _POINTS), np.geomspace(1, max(room, 2), _POINTS) - 1])
    points = np.unique(np.floor(points).clip(0, room))
    return points[:-1] + 1, points[1:]


def walk(every: Floats, tile: Floats) -> Floats:
    """The least that is moved again (N,) where passes over the operands cost `every` and their tiles `tile`, (3, N)."""
    order = np.argsort(-tile, axis=0, kind="stable")
    (v1, v2, v3), (t1, t2, t3) = (np.take_along_axis(x, order, 0) for x in (every, tile))
    least = _STEPS[1] * (v3 - t3)
    for x3 in range(1, _STEPS[1] + 1):
        first, each = (x3 - 1) * (v3 - t3), np.maximum(v2 - x3 * t2, 0)
        least = np.minimum(least, first + _STEPS[0] * each)
        for x2 in range(1, _STEPS[0] + 1):
            base, rest = first + (x2 - 1) * each, np.maximum(v1 - x2 * x3 * t1, 0)
            x1 = np.minimum(v2 / np.maximum(x3 * t2, 1 / _FAR), v3 / np.maximum(x2 * t3, 1 / _FAR))
            ends = (x2 * (x3 + 1) * t1 >= v1) | ((x3 + 1) * t2 >= v2)
            last = np.where(ends, np.maximum(v3 - x2 * t3, 0), _FAR)
            least = np.minimum(least, base + np.minimum(np.maximum(x1 - 1, 0) * rest, last))
    result: Floats = np.where((every <= tile).any(axis=0), 0, np.maximum(least, 0))
    return result

"""Steps of a group as matrices: what a group does to the clocks of the engine and of the DMA queue.

State       x = (E, A1, A2), ticks: the end of the last step; when the queue has done all loads that were due so far;
            when it has done these and all stores that were released so far
Step t      loads of n_t ticks are due, c_t ticks are computed, stores of s_t ticks are released:
                A1 += n_t;   A2 += n_t;   S = max(E, A1, A2 - room_t);   E = S + c_t
            of which f_t ticks begin behind all stores, and the step before: A1, S >= max(E, A2) + f_t, by E, A2 before
                A1 = max(A1, E - cap_t);   A2 = max(A2, E - cap_t) + s_t
            room_t = f - A_t: what is yet to be stored lies beside the step, in f bytes that it has with others
            cap_t = min over s >= t of (f - A_s + bytes due in t+1..s): the most that is loaded ahead when t ends
Matrix      x' = M_t (x) x:  x'_i = max_j (M_t[i, j] + x_j).  A group is the product of its steps: nine numbers.

Bytes count as ticks by `per_byte`. This is fluid: a load may be done in parts. An example: steps of 10 ticks, each with
a load of 6 ticks and 6 bytes, that have 6 bytes of f = 12: room and cap are 6, so E rises by 10 a step, after 6 ticks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.fusion.strips import Ints

#: Earlier than anything happens.
BEFORE = -(2**50)


@dataclass(frozen=True)
class Flow:
    """Steps of several ways, one after the other, all (steps,)."""

    first: Ints
    """Where the steps of every way begin, (ways + 1,)."""
    compute: Ints
    load: Ints
    store: Ints
    """`compute`, `load`, `store`: ticks."""
    due: Ints
    """Bytes that are due."""
    held: Ints
    """Bytes on chip that no others may have."""
    fresh: Ints
    """Ticks of those loads that are due whose maps are stored only when the step before has ended."""


def caps(flow: Flow, room: int) -> Ints:
    """Bytes that may be loaded ahead at the end of every step."""
    loaded = np.cumsum(flow.due)
    lies = room - flow.held + loaded  # f - A_s + all that is due up to s
    way = np.repeat(np.arange(len(flow.first) - 1), np.diff(flow.first))
    span = int(lies.max() - lies.min()) + 1
    lifted = lies + way * span  # ways that follow are above: no minimum from behind crosses
    least: Ints = np.minimum.accumulate(lifted[::-1])[::-1] - way * span - loaded
    return least


def matrices(flow: Flow, room: int, per_byte: int) -> Ints:
    """The matrix of every step in `room` bytes, (3, 3, steps)."""
    load, store, compute = flow.load, flow.store, flow.compute
    late = (room - flow.held) * per_byte
    ahead = caps(flow, room) * per_byte
    wait = np.where(flow.fresh > 0, flow.fresh, BEFORE)  # after the step and all stores before
    made = np.empty((3, 3, len(load)), np.int64)
    made[0] = np.maximum(compute, wait + compute), load + compute, np.maximum(load - late, wait) + compute
    made[1] = made[2] = made[0] - ahead
    made[1] = np.maximum(made[1], np.stack([wait, load, wait]))
    made[2] = np.maximum(made[2], np.stack([wait, wait, load]))
    made[2] += store
    return made


def times(later: Ints, earlier: Ints) -> Ints:
    """The max-plus product of matrices, (3, 3, matrices) each."""
    product: Ints = later[:, 0, None] + earlier[None, 0]
    for j in (1, 2):
        np.maximum(product, later[:, j, None] + earlier[None, j], out=product)
    return product


def products(each: Ints, first: Ints) -> Ints:
    """The product of the steps of every way, the first one applied first, (ways, 3, 3)."""
    sizes = np.diff(first)
    while (sizes > 1).any():
        following = -(-sizes // 2)
        begin, later = first[:-1], np.cumsum(following)
        way = np.repeat(np.arange(len(sizes)), following)
        at = begin[way] + 2 * (np.arange(len(way)) - np.append(0, later[:-1])[way])
        made = each[:, :, at]
        pairs = at + 1 < (begin + sizes)[way]
        made[:, :, pairs] = times(each[:, :, at[pairs] + 1], made[:, :, pairs])
        each, first, sizes = made, np.append(0, later), following
    return np.ascontiguousarray(each.transpose(2, 0, 1))

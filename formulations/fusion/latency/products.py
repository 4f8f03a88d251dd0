"""Steps of a group as matrices: what a group does to the clocks of the engine and of the DMA queues.

State       x = (E, A1, A2), ticks: the end of the last step; when the queue has done all loads that were due so far;
            when it has done these and all stores that were released so far
Step t      loads of n_t ticks are due, c_t ticks are computed, stores of s_t ticks are released:
                A1 += n_t;   A2 += n_t;   S = max(E, A1, A2 - room_t);   E = S + c_t
            of which it may wait for some ticks w_t of loads at its end alone, that come block by block (a bound):
                A1 += w_t;   A2 += w_t;   E = max(E, A1)
                A1 = max(A1, E - cap_t);   A2 = max(A2, E - cap_t) + s_t
            room_t = f - A_t: what is yet to be stored lies beside the step, in f bytes that it has with others
            cap_t = min over s >= t of (f - A_s + bytes due in t+1..s): the most that is loaded ahead when t ends
Matrix      x' = M_t (x) x:  x'_i = max_j (M_t[i, j] + x_j).  A group is the product of its steps: nine numbers.

With stores in order, each behind the step that releases it and ahead of all loads behind it, A1 is A2: two clocks.
That is later than with prefetch of stores' room, and often nearer to a timeline, where both share the memory.

Several queues (`joint`) have clocks A1 of their own, and the last one, which stores, A2: each counts what it moves, and
E is the last of all. What is ahead in a queue lies on chip as if nothing of the others did.

Bytes count as ticks by `per_byte`. This is fluid: a load may be done in parts. An example: steps of 10 ticks, each with
a load of 6 ticks and 6 bytes, that have 6 bytes of f = 12: room and cap are 6, so E rises by 10 a step, after 6 ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formulations.fusion.strips import Ints
from hwmodels.compiled import compiled

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
    weights: Ints
    """Ticks of loads that are due by the end of the step."""
    heavy: Ints
    """Bytes of these."""


def fresh(flow: Flow, loads: Ints) -> Ints:
    """By way how much later its first steps begin where some loads, ticks by step, begin only at its beginning.

    The step that reads them waits for all of them that are due by then, less what is computed before.
    """
    every = np.stack([loads, flow.compute]).cumsum(axis=1)
    before = every - np.stack([loads, flow.compute])
    first = before[:, flow.first[:-1]].repeat(np.diff(flow.first), axis=1)
    waits = np.where(loads > 0, (every[0] - first[0]) - (before[1] - first[1]), 0)
    late: Ints = np.maximum(0, np.maximum.reduceat(waits, flow.first[:-1]))
    return late


def caps(flow: Flow, room: int) -> Ints:
    """Bytes that may be loaded ahead at the end of every step."""
    loaded = np.cumsum(flow.due + flow.heavy)
    lies = room - flow.held + loaded - flow.heavy  # f - A_s + all that is due when s begins
    way = np.repeat(np.arange(len(flow.first) - 1), np.diff(flow.first))
    span = int((lies + flow.heavy).max() - lies.min()) + 1
    lifted = lies + way * span  # ways that follow are above: no minimum from behind crosses
    later: Ints = np.minimum.accumulate(lifted[::-1])[::-1] - way * span
    least = room - flow.held
    least[:-1] = np.minimum(least[:-1], np.where(way[1:] == way[:-1], later[1:] - loaded[:-1], least[:-1]))
    return least


def matrices(flow: Flow, room: int, per_byte: int, *, in_order: bool = False, alone: bool = False) -> Ints:
    """The matrix of every step in `room` bytes, (3, 3, steps); (2, 2, steps) if stores are `in_order`.

    `alone`: no transfer runs beside a step, as if there were no room.
    """
    return joint((flow,), room, (per_byte,), per_byte, in_order=in_order, alone=alone)


def joint(
    flows: Sequence[Flow], room: int, ahead: Sequence[int], behind: int, *, in_order: bool = False,
    alone: bool = False,
) -> Ints:  # fmt: skip
    """The matrix of every step with several queues, of which the last one alone stores, (clocks, clocks, steps).

    Clocks are E, A1 of every queue, and A2 of the last one unless stores are `in_order`.

    Parameters
    ----------
    flows : sequence of Flow
        Of every queue what it moves; steps and bytes on chip are the same in all.
    ahead : sequence of int
        Of every queue ticks of a byte that is loaded ahead.
    behind : int
        Ticks of a byte that is yet to be stored.
    alone : bool
        No transfer runs beside a step, as if there were no room.
    """
    last, compute = flows[-1], flows[-1].compute
    clocks = len(flows) + (1 if in_order else 2)
    made = np.empty((clocks, clocks, len(compute)), np.int64)
    made[0, 0] = compute
    for c, flow in enumerate(flows, 1):
        made[0, c] = np.maximum(flow.load + compute, flow.load + flow.weights)
    if not in_order:
        late = (room - last.held) * (0 if alone else behind)
        made[0, -1] = last.load - late + compute
    most = [caps(flow, room) * (0 if alone else price) for flow, price in zip(flows, ahead, strict=True)]
    for k in range(1, clocks):
        c = min(k, len(flows)) - 1
        made[k] = made[0] - most[c]
        made[k, k] = np.maximum(made[k, k], flows[c].load + flows[c].weights)
    made[-1] += last.store
    return made


def products(each: Ints, first: Ints) -> Ints:
    """The product of the steps of every way, the first one applied first, (ways, clocks, clocks)."""
    clocks, ways = len(each), len(first) - 1
    made, next_ = np.empty(ways * clocks * clocks, np.int64), np.empty(clocks * clocks, np.int64)
    _multiplied(clocks, np.ascontiguousarray(each).ravel(), first, made, next_)
    return made.reshape(ways, clocks, clocks)


@compiled
def _multiplied(clocks: int, each: Ints, first: Ints, made: Ints, next_: Ints) -> None:
    """The same, all in rows: of `each` by entry, then step; of what is `made` by way, then entry."""
    steps, entries = len(each) // (clocks * clocks), clocks * clocks
    for way in range(len(first) - 1):
        at = way * entries
        for entry in range(entries):
            made[at + entry] = each[entry * steps + first[way]]
        for t in range(first[way] + 1, first[way + 1]):
            for i in range(clocks):
                for j in range(clocks):
                    most = each[i * clocks * steps + t] + made[at + j]
                    for k in range(1, clocks):
                        most = max(most, each[(i * clocks + k) * steps + t] + made[at + k * clocks + j])
                    next_[i * clocks + j] = most
            for entry in range(entries):
                made[at + entry] = next_[entry]

"""An exact search for addresses of buffers in one memory: do they fit (`fit`), and the least memory (`least_peak`).

Sets        buffers b; sections s of time (`formulations.placement.packing`); pairs that share no bank at one time
Parameters  h[b,s] bytes that b takes in s, from a[b] on; align[b]; maybe a fixed address; capacity C; bank size B
Variables   a[b], an address
Constraints (ALIGN) a[b] is a multiple of align[b]; (FIXED) it is the fixed address if there is one
            (ROOM)  a[b] + max over s of h[b,s] <= C
            (APART) of two that take bytes in s one lies above the other: a[b] + h[b,s] <= a[c], or the reverse
            (BANKS) of two that share no bank, in s: roundup(a[b] + h[b,s], B) <= a[c], or the reverse

If there are addresses at all, there are some whose sum is least. Sort the buffers by these, equals by their number in a
given order. Then every buffer lies at low[b]: the highest top of those before it that it meets, of those that share no
bank with it rounded up to the next bank, rounded up to its alignment; for if not it could lie lower. So buffers are
placed one by one, each at low[b], never below the last address. Left out is

    what lies too high      b, if low[b] is not below low[c] + size[c] for another c that waits, rounded up to a bank
                            if c shares none with others: addresses to come are low[b] or more, so c has room at low[c],
                            and the sum would not have been the least. A fixed c comes before what lies above it;
    what is counted twice   b of a lower number than the last buffer, at the same address: they were sorted;
    what has no room        if in a section the lowest address of those that wait, and all their bytes, are beyond C.

Where no buffer that waits lives on both sides of a time, the two sides have nothing to do with each other: they are
searched one after the other, and if one fails the node fails. If nobody else waits in the sections of b, and what is
left fails, then so does the node: b would have come first.

Extents that do not begin at the first byte of their buffer (gaps with a window) may interlock, so that no order by
address need exist. Then the bytes below are counted, too: addresses that are found are right, "does not fit" is not
said.

Ideas: M. D. Moffitt, MiniMalloc, ASPLOS 2023 (canonical solutions, section inference, dominance, orders in turn).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import count
from typing import Final, Literal

import numpy as np

from formulations.clock import ENDLESS, Clock
from formulations.placement.packing import BEGIN, END, NODES, Ints, Packing

_DONE: Final = 1
_FAILED: Final = 0
#: Nodes of the first try of an order, and how much more the next one has.
_NODES, _GROWTH = 2_000, 2
#: Without numba a search is a hundred times slower, and where not all is exact it proves nothing: then so many at most.
_PATIENCE, _ALL = 100_000, 2**62
_POLL_S = 0.1
#: Orders in which buffers are tried: T the largest sum of a section that it lives in, W its lifetime, A its area.
_ORDERS: Final = ("WAT", "TAW", "TWA")


@dataclass(frozen=True)
class Fit:
    """What a search says: addresses, or that there are none, or that it was stopped."""

    status: Literal["fits", "does not fit", "stopped"]
    addresses: tuple[int, ...] = ()
    nodes: int = 0

    def peak(self, packing: Packing) -> int:
        """The highest top."""
        return max(a + buffer.size for a, buffer in zip(self.addresses, packing.buffers, strict=True))


def compiled() -> bool:
    """Whether numba is there."""
    return importlib.util.find_spec("numba") is not None


def patience(packing: Packing) -> int:
    """The most nodes of a search that are worth it."""
    return _ALL if compiled() and packing.exact else _PATIENCE


def fit(packing: Packing, capacity: int, clock: Clock = ENDLESS, *, nodes: int | None = None, threads: int = 2) -> Fit:
    """Search for addresses below a capacity, by several orders in turn, each time with more nodes.

    The answer is that of the first turn that has one, whichever ends first: it does not depend on the machine's speed,
    unless the clock stops it. `nodes`: the most of one turn.
    """
    if packing.least > capacity:
        return Fit("does not fit")
    if not packing.buffers:
        return Fit("fits")
    most = min(nodes or _ALL, patience(packing))
    told = _turns(packing, capacity // packing.unit, most, clock, threads)
    if told.status == "does not fit" and not packing.exact:
        return Fit("stopped", nodes=told.nodes)
    return told


def _turns(packing: Packing, capacity: int, most: int, clock: Clock, threads: int) -> Fit:
    stop = np.zeros(1, dtype=np.int64)
    running, ended = dict[Future[Fit], int](), dict[int, Fit]()
    turns, first = _budgets(most), 0  # what is to be tried, and the first turn that has not ended
    with ThreadPoolExecutor(threads) as pool:
        try:
            while True:
                decided = any(told.status != "stopped" for told in ended.values())
                while len(running) < threads and not clock.over and not decided and (turn := next(turns, None)):
                    number, letters, nodes = turn
                    running[pool.submit(_tried, packing, capacity, letters, nodes, stop)] = number
                if not running:
                    return Fit("stopped", nodes=sum(told.nodes for told in ended.values()))
                for future in wait(running, _POLL_S, FIRST_COMPLETED).done:
                    ended[running.pop(future)] = future.result()
                while first in ended:
                    if ended[first].status != "stopped":
                        return Fit(ended[first].status, ended[first].addresses, sum(f.nodes for f in ended.values()))
                    first += 1
                stop[0] = clock.over
        finally:
            stop[0] = 1


def _budgets(most: int) -> Iterator[tuple[int, str, int]]:
    """Yield numbers, orders and nodes of turns, until an order has had the most."""
    for turn in count():
        nodes = _NODES * _GROWTH ** (turn // len(_ORDERS))
        yield turn, _ORDERS[turn % len(_ORDERS)], min(nodes, most)
        if nodes >= most and turn % len(_ORDERS) == len(_ORDERS) - 1:
            return


def _tried(packing: Packing, capacity: int, letters: str, nodes: int, stop: Ints) -> Fit:
    """One order, with a limit of nodes."""
    from formulations.placement.explore import explore  # numba takes a while to import

    order = packing.order(letters)
    boxes, high, links = packing.tables(order)
    address, waiting = np.full(len(order), -1, dtype=np.int64), np.zeros(len(packing.sections), dtype=np.int64)
    for k in range(len(order)):
        begin, end = boxes[k, [BEGIN, END]]
        waiting[begin:end] += high[boxes[k, 2] : boxes[k, 2] + end - begin]
    limits = np.array([capacity, max(1, packing.bank_bytes // packing.unit), 0, nodes], dtype=np.int64)
    keys = np.ascontiguousarray(packing.keys(letters)[:, order])
    said = explore(
        np.arange(len(order)), boxes, high, links, limits, keys, address, np.zeros_like(waiting), waiting, stop
    )  # fmt: skip
    if said != _DONE:
        return Fit("does not fit" if said == _FAILED else "stopped", (), int(limits[NODES]))
    found = np.zeros(len(order), dtype=np.int64)
    found[order] = address * packing.unit
    return Fit("fits", tuple(int(a) for a in found), int(limits[NODES]))


# ---- memories of parts that live one after the other -----------------------------------------------------------------

#: Nodes of a search for a smaller set that does not fit, and the most buffers of a set that is worth it.
_CUT_NODES, _CUT_BUFFERS = 4_000, 80
#: Nodes of the first search for the least memory, and how much more the next ones have.
_FIRST, _RISE = 4_000, 4


@dataclass(frozen=True)
class Packed:
    """One memory: addresses, or none; what its buffers are not below (None: they do not fit); a set that shows it."""

    addresses: Mapping[str, int] | None
    least: int | None
    witness: frozenset[str] = frozenset()
    undecided: bool = False

    def beyond(self, top: int) -> bool:
        """Whether it teaches the master something, who thinks that they need so many bytes."""
        return bool(self.witness) and (self.least is None or self.least > top)


def fitted(packing: Packing, capacity: int, clock: Clock, nodes: int) -> Packed:
    """Addresses below a capacity; a small set that has none, if that is shown."""
    addresses = dict[str, int]()
    for part in packing.parts():
        told = fit(part, capacity, clock, nodes=nodes)
        if told.status == "stopped":
            return Packed(None, 0, undecided=True)
        if told.status == "does not fit":
            return Packed(None, None, _smaller(part, capacity, clock))
        addresses |= {b.name: a for b, a in zip(part.buffers, told.addresses, strict=True)}
    return Packed({b.name: addresses[b.name] for b in packing.buffers}, 0)


def _smaller(packing: Packing, capacity: int, clock: Clock) -> frozenset[str]:
    """Of buffers that do not fit as few as still do not: one after the other is left out if a short search says so."""
    kept = list(range(len(packing.buffers)))
    for number in tuple(kept) if len(kept) <= _CUT_BUFFERS else ():
        less = [k for k in kept if k != number]
        if (
            less
            and not clock.over
            and fit(packing.of(less), capacity, clock, nodes=_CUT_NODES).status == "does not fit"
        ):
            kept = less
    return frozenset(packing.buffers[k].name for k in kept)


def least_peak(packing: Packing, capacity: int, clock: Clock = ENDLESS, nodes: int = _ALL) -> Packed:
    """The least bytes of at most a capacity that buffers take, and a part of them that takes as many.

    `nodes`: the most of one search.
    """
    bound, addresses = packing.least, dict[str, int]()
    parts = sorted(packing.parts(), key=lambda part: -part.least)
    lost, witness = False, parts[0].buffers  # it has the load of all
    for part in parts:
        told, least = _least(part, capacity, clock, bound, min(patience(packing), nodes))
        if least > bound:
            bound, witness = least, part.buffers
        if told is not None:
            addresses |= {b.name: a for b, a in zip(part.buffers, told, strict=True)}
            continue
        lost = True
        if least > capacity:
            break
    names = frozenset(b.name for b in witness)
    if lost:
        return Packed(None, None if bound > capacity else bound, names, bound <= capacity)
    peak = max((addresses[b.name] + b.size for b in packing.buffers), default=0)
    return Packed({b.name: addresses[b.name] for b in packing.buffers}, bound, names, bound < peak)


def _least(
    packing: Packing, capacity: int, clock: Clock, enough: int, most_nodes: int
) -> tuple[tuple[int, ...] | None, int]:
    """The same of buffers that live together: addresses, and the bound; `enough`: a peak that need not be beaten."""
    unit, nodes = packing.unit, min(_FIRST, most_nodes)
    bound = -(-packing.least // unit) * unit
    addresses: tuple[int, ...] | None = None
    peak: int | None = None
    while not clock.over and nodes <= most_nodes and (peak is None or peak > max(bound, enough)):
        start = max(bound, enough)
        for tried in _capacities(start, capacity if peak is None else peak - unit, unit):
            told = fit(packing, tried, clock, nodes=nodes)
            if told.status == "fits":
                addresses, peak = told.addresses, told.peak(packing)
                break
            if told.status == "does not fit":
                bound = tried // unit * unit + unit
                break
        else:
            nodes *= _RISE
        if bound > capacity:
            return None, bound
    return addresses, min(bound, peak) if peak is not None else bound


def _capacities(bound: int, most: int, unit: int) -> Sequence[int]:
    """What is tried in turn: the bound, halfway, and the most."""
    middle = (bound + most) // 2 // unit * unit
    return sorted({size for size in (bound, middle, most) if bound <= size <= most}) or [bound]

"""All orders of the runs of a small grid, and whatever may lie in the places: the oracle of F4 engine.

A state is what lies in the places and which runs are done; every run whose groups are both in places is done at once,
which costs nothing and forbids nothing. An entry of a group into a place, free or of any other group, leads to the next
state; the cheapest way to the end is found by Dijkstra's algorithm. States that differ only in the names of groups that
move the same bytes count as one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count

from formulations.clock import ENDLESS, Clock
from formulations.partial_engine.orders import Order
from formulations.partial_engine.space import Game

#: Runs of a grid up to which all orders are searched.
MOST_RUNS = 12
#: Inputs in places (a mask); by output group its done runs (a mask) and whether it is in a place.
_State = tuple[int, tuple[tuple[int, bool], ...]]


def best_order(game: Game, *, stay: bool = False, clock: Clock = ENDLESS) -> tuple[int, Order] | None:
    """Return the fewest bytes of inputs and partial maps, and an order that moves no more; None if it is too large.

    Raises TimeUp by the clock.

    Parameters
    ----------
    stay : bool
        Partial maps may not be stored.
    """
    if game.inputs * game.outputs > MOST_RUNS:
        return None
    start: _State = (0, ((0, False),) * game.outputs)
    number, full = count(), (1 << game.inputs) - 1
    heap: list[tuple[int, int, _State, tuple[object, ...]]] = [(0, next(number), start, ())]
    seen: dict[_State, int] = {}
    while heap:
        clock.tick()
        cost, _, state, path = heapq.heappop(heap)
        key = _alike(game, state)
        if seen.get(key, cost + 1) <= cost:
            continue
        seen[key] = cost
        if all(done == full for done, _ in state[1]):
            return cost, _unwound(path)
        for more, entered in _entries(game, state, stay, full):
            after, runs = _run(entered, full)
            heapq.heappush(heap, (cost + more, next(number), after, (path, runs)))
    raise AssertionError("some order always ends")


def _unwound(path: tuple[object, ...]) -> Order:
    parts: list[list[tuple[int, int]]] = []
    while path:
        path, runs = path  # type: ignore[assignment]
        parts.append(runs)  # type: ignore[arg-type]
    return [run for part in reversed(parts) for run in part]


def _entries(game: Game, state: _State, stay: bool, full: int) -> Iterator[tuple[int, _State]]:
    """The bytes of every entry, and the places after it."""
    here, outs = state
    inside = [i for i in range(game.inputs) if here >> i & 1]
    for i in range(game.inputs):
        if here >> i & 1:
            continue
        for gone in [None] if len(inside) < game.x else inside:
            yield game.loads[i], ((here | 1 << i) & ~(0 if gone is None else 1 << gone), outs)
    placed = [o for o, (_, there) in enumerate(outs) if there]
    for o, (done, there) in enumerate(outs):
        if there or done == full or (stay and done):
            continue
        for gone in [None] if len(placed) < game.y else placed:
            if stay and gone is not None and outs[gone][0]:
                continue
            rows = list(outs)
            if gone is not None:
                rows[gone] = outs[gone][0], False
            rows[o] = done, True
            yield game.swaps[o] if done else 0, (here, tuple(rows))


def _run(state: _State, full: int) -> tuple[_State, list[tuple[int, int]]]:
    """Do all runs whose groups are in places; finished outputs leave."""
    here, outs = state
    runs, rows = [], []
    for o, (done, there) in enumerate(outs):
        if there:
            runs += [(i, o) for i in range(full.bit_length()) if (here & ~done) >> i & 1]
            done |= here
        rows.append((done, there and done != full))
    return (here, tuple(rows)), runs


def _alike(game: Game, state: _State) -> _State:
    """Name the groups by what lies where, those that move other bytes apart."""
    here, outs = state
    columns = [(game.loads[i], here >> i & 1, sorted((d >> i & 1, t) for d, t in outs), i) for i in range(game.inputs)]
    place = {i: n for n, (*_, i) in enumerate(sorted(columns))}
    renamed = [
        (game.swaps[o], sum(1 << place[i] for i in range(game.inputs) if done >> i & 1), there)
        for o, (done, there) in enumerate(outs)
    ]
    mask = sum(1 << place[i] for i in range(game.inputs) if here >> i & 1)
    return mask, tuple((done, there) for _, done, there in sorted(renamed))

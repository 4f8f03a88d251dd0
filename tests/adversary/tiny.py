"""Every nest of a tiny layer, up to a number of loops.

All sequences of at most L loops that cut something, over any dimensions at any places where the range is not cut yet
(all hierarchical partitions), and for each all depths of the Holds, all choices of buffers and all ways to share the
layer among units. On equal edge tiles loops are even. The order of Holds at one depth changes nothing. Loops inside
all Holds are left out where nothing depends on them: bytes, energy, and time that only transfers take.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from instances.network.workload import DIMS
from tests.adversary.anneal import Goal, Witness, agreed, replayed, vector_of
from tests.adversary.boxes import Cut, levels
from tests.adversary.demands import broken
from tests.adversary.moves import Form, shares, spreads
from tests.adversary.pricing import Pricer


def enumerated(goal: Goal, loops: int, most: int, *, pricer: Pricer | None = None) -> tuple[Witness | None, bool]:
    """Return the best nest, confirmed by replay, and whether all nests of at most `loops` loops were looked at.

    Parameters
    ----------
    most : int
        Nests to look at before giving up.
    """
    pricer = pricer or Pricer(goal.layer, goal.machine)
    best: tuple[tuple[int, ...], Form] | None = None
    whole = True
    for count, form in enumerate(_forms(goal, loops)):
        if count >= most:
            whole = False
            break
        priced = replayed(goal, form) if goal.able else pricer.price(form.spread, form.items)
        if priced.over:
            continue
        vector = vector_of(goal, priced)
        if goal.timeline and not goal.able and (best is None or vector < best[0]):  # the sums are never above
            vector = vector_of(goal, replayed(goal, form))
        if best is None or vector < best[0]:
            if goal.pins and broken(goal.layer, goal.machine, goal.pins, form):
                continue
            best = vector, form
    return (None if best is None else agreed(goal, *best)), whole


def _forms(goal: Goal, most: int) -> Iterator[Form]:
    machine, layer = goal.machine, goal.layer
    numbers = (1, 2) if machine.buffering == "choose" and "time" in goal.measures else (None,)
    inside = bool(goal.pins) or (machine.im2col_rows > 0 and machine.im2col_channels == "tile")
    inside = inside or ("time" in goal.measures and machine.compute.model != "none")
    for spread in spreads(layer, machine):
        size = shares(layer, spread)
        for loops in _sequences(size, most, places=machine.edge_tiles == "true"):
            depths = range(len(loops) + 1)
            for at in product(depths, repeat=len(layer.operands)):
                if not inside and max(at) < len(loops):
                    continue
                for chosen in product(numbers, repeat=len(at)):
                    holds = list(zip(layer.operands, at, chosen, strict=True))
                    items: list[tuple[str, int | tuple[int, ...] | None]] = []
                    for k in depths:
                        items += [(x, number) for x, place, number in holds if place == k]
                        items += loops[k : k + 1]
                    yield Form(spread, tuple(items))
                    if machine.line and not layer.broadcast:
                        yield Form(spread, tuple(items), line=True)


def _sequences(size: dict[str, int], most: int, *, places: bool) -> Iterator[tuple[Cut, ...]]:
    """Yield all sequences of loops that cut something, the shortest first."""
    row: list[tuple[Cut, ...]] = [()]
    for _ in range(most + 1):
        yield from row
        row = (
            [(*loops, cut) for loops in row for cut in _next(size, loops, places=places)] if len(row[0]) < most else []
        )
        if not row:
            return


def _next(size: dict[str, int], loops: tuple[Cut, ...], *, places: bool) -> Iterator[Cut]:
    for d in DIMS:
        pieces = levels(0, size[d], tuple(how for x, how in loops if x == d))[0][-1]
        if places:
            free = [x for a, b in pieces for x in range(a + 1, b)]
            yield from ((d, cuts) for k in range(1, len(free) + 1) for cuts in combinations(free, k))
        else:
            yield from ((d, step) for step in range(1, max(b - a for a, b in pieces)))

"""The orders of loops between two Holds that stand for all, where inputs are broadcast.

Given
    an element-wise layer; D_k the dimensions that input k depends on; a nest of docs/nest.md. All inputs are held where
    IN is, but input k is moved again only by the loops down to the innermost real one over a dimension of D_k. The
    result depends on all dimensions: it is moved once whatever the order is, and so is an input of its shape.
Claim
    Let a class be the dimensions on which the same inputs depend. Of the orders of a segment's loops, those suffice in
    which the loops of a class are neighbours, that of the dimensions of all inputs is the first, and that of those of
    no broadcast input the last: one for every order of the other classes.
Proof
    Each step leaves all tiles as they are, so that no capacity changes, and moves no input more often.
    (a) Two loops of a class, x outside y: x moves inwards to y. An input that depends on both has a loop at y or inside
        it, so x, y and what was between them count for it as before (those count that it does not depend on). One that
        depends on neither is moved again by x only if a loop of its own lies inside x, which became rarer.
    (b) A loop that all depend on moves outwards: it is no loop that moves any of them again, and an input for which it
        was the innermost of its own now has its innermost one outside.
    (c) A loop that no broadcast input depends on moves inwards: it moves an input again only if a loop of that input
        lies inside it.
    With one pattern that is one order, and each input is moved once: first the loops that it depends on, then the
    others, in whose iterations it stays. With two patterns that share nothing (rows by columns) it is two orders.
Two loops over a dimension with no Hold between them become one, where the inner one is, as in
`formulations.tiling.problem` (3): an input that depends on it has a loop there before and after; for one that does not,
(c) holds. Between the segments before and behind a Hold nothing moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from instances.workload import Layer, depends

#: The dimensions of the result that a row-major order cuts in this order, outermost first.
RASTER = ("b", "r", "c")


def orders_of(layer: Layer, dims: tuple[str, ...], *, row_major: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield the orders of loops over some dimensions that stand for all, outermost first.

    Of a layer without broadcast inputs that is the order given; with `row_major` only orders that keep `RASTER`.
    """
    if not layer.broadcast:
        yield dims
    elif row_major:
        raster = tuple(d for d in RASTER if d in dims)
        yield from (order for order in permutations(dims) if tuple(d for d in order if d in RASTER) == raster)
    else:
        patterns = sorted({lacks for lacks in layer.patterns if lacks})
        classes: dict[tuple[bool, ...], tuple[str, ...]] = {}
        for d in dims:
            key = tuple(d in depends("IN", lacks) for lacks in patterns)
            classes[key] = (*classes.get(key, ()), d)
        first, last = (classes.pop((value,) * len(patterns), ()) for value in (True, False))
        for middle in permutations(classes.values()):
            yield (*first, *(d for part in middle for d in part), *last)

"""Bounds of F4 engine that hold for every order of the runs, whatever lies in the places.

n_x and n_y count how often an input group is loaded and a partial group gets a place, in all. With I, O, x, y as in
`formulations.runs`, w = n_x - I >= 0 and v = n_y - O >= 0:

(COUNT) ``y*n_x + x*n_y >= I*O + x*y``, that is ``y*w + x*v >= (I - x)*(O - y)``. Charge a run to the later entry of its
    two groups. The s-th entry of an input is charged at most min(y, entries of partials before it), the t-th of a
    partial at most min(x, entries of inputs before it). Over the first x and the first y of them these add up to x*y,
    since of two entries one is the later; every further one is charged at most y, or x. The charges are I*O in all.
(WHOLE) Let nb = ceil(O/y), r = O - (nb - 1)*y. If v < r, more than (nb - 1)*y output groups have one visit only, so one
    of the y places sees nb of them, one after the other. In each visit all inputs are there at some time, at its begin
    at most x: ``input bytes >= L + (nb - 1)*(L - the x largest loads)``, where L is the sum of all loads.
(WHOLE') The same with the sides exchanged: if w < r' = I - (ceil(I/x) - 1)*x, then
    ``swapped bytes >= (ceil(I/x) - 1)*(P - the y largest swaps)``, where P is the sum of all swaps.
(EACH) input bytes >= L + w*min load; swapped bytes >= v*min swap.

`lower` is the least sum over all (w, v) that (COUNT) allows. Where all groups of a side are alike and y divides O or x
divides I, orders in passes mostly meet it; on small grids it is compared with all orders (tests/test_engine_runs.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from formulations.runs import Branch, Game

__all__ = ["Counting", "branch_bound", "counting", "lower"]


@dataclass(frozen=True)
class Counting:
    """The figures of the bounds.

    Attributes
    ----------
    need : int
        ``(I - x)*(O - y)``: what ``y*w + x*v`` has to reach.
    load, swap : int
        The least of each.
    whole, whole_bytes : int
        r, and the further input bytes if v < r.
    whole_in, whole_in_bytes : int
        r', and the swapped bytes if w < r'.
    """

    x: int
    y: int
    need: int
    load: int
    swap: int
    whole: int
    whole_bytes: int
    whole_in: int
    whole_in_bytes: int

    def inputs(self, w: int, v: int) -> int:
        """Input bytes beyond every load once."""
        return max(w * self.load, self.whole_bytes if v < self.whole else 0)

    def swapped(self, w: int, v: int) -> int:
        """Bytes of partial maps."""
        return max(v * self.swap, self.whole_in_bytes if w < self.whole_in else 0)


def counting(game: Game) -> Counting:
    """Return the figures of a game."""
    many, many_in = -(-game.outputs // game.y), -(-game.inputs // game.x)
    loads, swaps = sorted(game.loads), sorted(game.swaps)
    return Counting(
        game.x, game.y,
        (game.inputs - game.x) * (game.outputs - game.y),
        loads[0], swaps[0],
        game.outputs - (many - 1) * game.y, (many - 1) * sum(loads[: game.inputs - game.x]),
        game.inputs - (many_in - 1) * game.x, (many_in - 1) * sum(swaps[: game.outputs - game.y]),
    )  # fmt: skip


def lower(game: Game, *, stay: bool = False) -> int:
    """Return bytes of inputs and partial maps that no order undercuts.

    Parameters
    ----------
    stay : bool
        Partial maps may not be stored: v = 0.
    """
    at = counting(game)
    if stay:
        return game.base + at.whole_bytes
    best = at.inputs(0, 0) + at.swapped(0, 0) if not at.need else None
    enough = max(at.whole, -(-at.need // at.x))
    for v in range(enough + 1):
        if best is not None and v * at.swap >= best:
            break
        least = max(0, -(-(at.need - at.x * v) // at.y))
        for w in {least, max(least, at.whole_in)}:
            value = at.inputs(w, v) + at.swapped(w, v)
            best = value if best is None else min(best, value)
    return game.base + (best or 0)


def branch_bound(branch: Branch, *, stay: bool = False) -> int:
    """Return DRAM bytes that no order undercuts with these strips and places."""
    return branch.fixed + sum(number * lower(game, stay=stay) for game, number in branch.games)

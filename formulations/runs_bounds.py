"""Bounds of F4 engine that hold for every order of the runs, whatever lies in the places.

n_x and n_y count how often an input group is loaded and a partial group gets a place, in all. With I, O, x, y as in
`formulations.runs`, w = n_x - I >= 0 and v = n_y - O >= 0:

(COUNT) ``y*n_x + x*n_y >= I*O + x*y``, that is ``y*w + x*v >= (I - x)*(O - y)``. Charge a run to the later entry of its
    two groups. The s-th entry of an input is charged at most min(y, entries of partials before it), the t-th of a
    partial at most min(x, entries of inputs before it). Over the first x and the first y of them these add up to x*y,
    since of two entries one is the later; every further one is charged at most y, or x. The charges are I*O in all.
(WHOLE) Let nb = ceil(O/y), r = O - (nb - 1)*y. If fewer than r output groups come back, more than (nb - 1)*y of them
    have one visit only, so one of the y places sees nb of these, one after the other. In each such visit all inputs are
    there at some time, at its begin at most x: ``input bytes >= L + (nb - 1)*(L - the x largest loads)``, where L is
    the sum of all loads. Otherwise ``v >= r``, and ``swapped bytes >= the r least swaps``.
(WHOLE') The same with the sides exchanged: r' = I - (ceil(I/x) - 1)*x; either
    ``swapped bytes >= (ceil(I/x) - 1)*(P - the y largest swaps)``, where P is the sum of all swaps, or ``w >= r'`` and
    ``input bytes >= L + the r' least loads``.
(FULL) Leave the cheapest input group out: what remains is a schedule of the others. So w' of their entries beyond one
    each, ``y*w' + x*v >= (I - 1 - x)*(O - y)``, cost the second least load at least; and with the sides exchanged v',
    ``y*w + x*v' >= (I - x)*(O - 1 - y)``. It matters where a last group has fewer maps than the others.
(EACH) input bytes >= L + w*min load; swapped bytes >= v*min swap.

`lower` is the least sum over all (w, v) that (COUNT) allows. Where all groups of a side are alike and y divides O or x
divides I, orders in passes mostly meet it; on small grids it is compared with all orders (tests/test_engine_runs.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from formulations.runs import Branch, Game

__all__ = ["Counting", "branch_bound", "capped", "counting", "lower"]


@dataclass(frozen=True)
class Counting:
    """The figures of the bounds.

    Attributes
    ----------
    need : int
        ``(I - x)*(O - y)``: what ``y*w + x*v`` has to reach.
    load, swap : int
        The least of each.
    full, full_need : int
        The second least load, and what ``y*w' + x*v`` has to reach.
    full_swap, full_swap_need : int
        The second least swap, and what ``y*w + x*v'`` has to reach.
    back, back_bytes, whole_bytes : int
        r, the r least swaps, and the further input bytes if fewer groups come back.
    back_in, back_in_bytes, whole_in_bytes : int
        The same for the inputs: r', the r' least loads, and the swapped bytes if fewer inputs come back.
    """

    x: int
    y: int
    need: int
    load: int
    swap: int
    full: int
    full_need: int
    full_swap: int
    full_swap_need: int
    back: int
    back_bytes: int
    whole_bytes: int
    back_in: int
    back_in_bytes: int
    whole_in_bytes: int

    def bytes(self, w: int, v: int) -> int:
        """What w and v cost at least, beyond every load once."""
        full = self.full * max(0, -(-(self.full_need - self.x * v) // self.y))
        full_swap = self.full_swap * max(0, -(-(self.full_swap_need - self.y * w) // self.x))
        inputs, swapped = max(w * self.load, full), max(v * self.swap, full_swap)
        ways = [(self.whole_bytes, 0), *([(0, self.back_bytes)] if v >= self.back else [])]
        ways_in = [(0, self.whole_in_bytes), *([(self.back_in_bytes, 0)] if w >= self.back_in else [])]
        return min(max(inputs, a, c) + max(swapped, b, d) for a, b in ways for c, d in ways_in)


def counting(game: Game) -> Counting:
    """Return the figures of a game."""
    many, many_in = -(-game.outputs // game.y), -(-game.inputs // game.x)
    back, back_in = game.outputs - (many - 1) * game.y, game.inputs - (many_in - 1) * game.x
    loads, swaps = sorted(game.loads), sorted(game.swaps)
    return Counting(
        x=game.x, y=game.y, need=(game.inputs - game.x) * (game.outputs - game.y), load=loads[0], swap=swaps[0],
        full=loads[min(1, len(loads) - 1)], full_need=max(0, game.inputs - 1 - game.x) * (game.outputs - game.y),
        full_swap=swaps[min(1, len(swaps) - 1)],
        full_swap_need=(game.inputs - game.x) * max(0, game.outputs - 1 - game.y),
        back=back, back_bytes=sum(swaps[:back]), whole_bytes=(many - 1) * sum(loads[: game.inputs - game.x]),
        back_in=back_in, back_in_bytes=sum(loads[:back_in]),
        whole_in_bytes=(many_in - 1) * sum(swaps[: game.outputs - game.y]),
    )  # fmt: skip


def capped(at: Counting, most: int) -> Counting:
    """Return the figures with all bytes at most so many: more than this is as bad."""
    names = ("load", "swap", "full", "full_swap", "back_bytes", "whole_bytes", "back_in_bytes", "whole_in_bytes")
    return replace(at, **{name: min(getattr(at, name), most) for name in names})


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
    best = at.bytes(max(at.back_in, -(-at.need // at.y)), 0)
    for v in range(max(at.back, -(-at.need // at.x)) + 1):
        if v * at.swap >= best:
            break
        least = max(0, -(-(at.need - at.x * v) // at.y))
        # More entries of inputs than these two save bytes of partial maps only by the exchanged (FULL).
        most = -(-at.full_swap_need // at.y) if at.full_swap > at.swap else 0
        for w in {least, max(least, at.back_in), *range(least, most + 1)}:
            if w * at.load < best:
                best = min(best, at.bytes(w, v))
    return game.base + best


def branch_bound(branch: Branch, *, stay: bool = False) -> int:
    """Return DRAM bytes that no order undercuts with these strips and places."""
    return branch.fixed + sum(number * lower(game, stay=stay) for game, number in branch.games)

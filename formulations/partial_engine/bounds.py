"""Bounds of F4 engine that hold for every order of the runs, whatever lies in the places.

n_x and n_y count how often an input group is loaded and a partial group gets a place, in all. With I, O, x, y as in
`formulations.partial_engine.problem`, w = n_x - I >= 0 and v = n_y - O >= 0:

(COUNT) ``sum_i min(O, y*visits(i)) + x*(n_y - y) >= I*O``. Charge a run to the later entry of its two groups. An input
    is charged at its own entries by the partials in places, and by the first y entries of partials: once for each of
    these, and for each later entry of its own at most y, so y*visits(i), and O in all. Every later entry of a partial
    is charged by at most x inputs. With nb = ceil(O/y) and r = O - (nb - 1)*y: every entry beyond the first gains y,
    the last one of an input r. So ``y*w1 + r*w2 + x*v >= (I - x)*(O - y)``, ``w1 <= I*(nb - 2)``, ``w2 <= I``,
    ``w = w1 + w2``; and with the sides exchanged, nb' = ceil(I/x), r' = I - (nb' - 1)*x,
    ``x*v1 + r'*v2 + y*w >= (I - x)*(O - y)``.
(WHOLE) If fewer than r output groups come back, more than (nb - 1)*y of them have one visit only, so one of the y
    places sees nb of these, one after the other. In each such visit all inputs are there at some time, at its begin at
    most x: ``input bytes >= L + (nb - 1)*(L - the x largest loads)``, where L is the sum of all loads. Otherwise
    ``v >= r``, and ``swapped bytes >= the r least swaps``.
(WHOLE') The same with the sides exchanged: either ``swapped bytes >= (nb' - 1)*(P - the y largest swaps)``, where P is
    the sum of all swaps, or ``w >= r'`` and ``input bytes >= L + the r' least loads``.
(FULL) Leave the cheapest input group out: what remains is a schedule of the others. So the entries that (COUNT) asks
    for with I - 1 inputs cost the second least load at least; and with the sides exchanged. It matters where a last
    group has fewer maps than the others.
(EACH) input bytes >= L + w*min load; swapped bytes >= v*min swap.

`lower` is the least sum over all (w, v) that (COUNT) allows. Where all groups of a side are alike and y divides O or x
divides I, orders in passes mostly meet it; on small grids it is compared with all orders (tests/test_engine_runs.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from formulations.partial_engine.problem import Branch, Game

__all__ = ["Counting", "Entries", "branch_bound", "capped", "counting", "lower"]


@dataclass(frozen=True)
class Entries:
    """What (COUNT) asks of one side: the first `most` entries beyond one each gain `gain`, the others `rest`.

    Attributes
    ----------
    need : int
        What the gains of this side, and `other` for each entry of the other side, have to reach.
    """

    need: int
    gain: int
    rest: int
    most: int
    other: int

    def least(self, others: int) -> int:
        """The fewest entries of this side beside so many of the other one."""
        left = self.need - self.other * others
        if left <= self.gain * self.most:
            return max(0, -(-left // self.gain))
        return self.most - (self.gain * self.most - left) // self.rest

    def gains(self, entries: int) -> int:
        """The most that so many entries of this side gain."""
        return self.gain * min(entries, self.most) + self.rest * max(0, entries - self.most)


@dataclass(frozen=True)
class Counting:
    """The figures of the bounds.

    Attributes
    ----------
    ins, outs : Entries
        (COUNT) for entries of inputs (w), and of partial maps (v).
    full_ins, full_outs : Entries
        (FULL): the same without the cheapest group.
    load, swap, full, full_swap : int
        The least and the second least of each.
    back, back_bytes, whole_bytes : int
        r, the r least swaps, and the further input bytes if fewer groups come back.
    back_in, back_in_bytes, whole_in_bytes : int
        The same for the inputs: r', the r' least loads, and the swapped bytes if fewer inputs come back.
    """

    ins: Entries
    outs: Entries
    full_ins: Entries
    full_outs: Entries
    load: int
    swap: int
    full: int
    full_swap: int
    back: int
    back_bytes: int
    whole_bytes: int
    back_in: int
    back_in_bytes: int
    whole_in_bytes: int

    @property
    def most(self) -> tuple[int, int]:
        """The most w and v that some least sum needs."""
        return max(self.back_in, self.ins.least(0)), max(self.back, self.outs.least(0))

    def bytes(self, w: int, v: int) -> int:
        """What w and v cost at least, beyond every load once."""
        inputs = max(w * self.load, self.full_ins.least(v) * self.full)
        swapped = max(v * self.swap, self.full_outs.least(w) * self.full_swap)
        ways = [(self.whole_bytes, 0), *([(0, self.back_bytes)] if v >= self.back else [])]
        ways_in = [(0, self.whole_in_bytes), *([(self.back_in_bytes, 0)] if w >= self.back_in else [])]
        return min(max(inputs, a, c) + max(swapped, b, d) for a, b in ways for c, d in ways_in)


def counting(game: Game) -> Counting:
    """Return the figures of a game."""
    n, m, x, y = game.inputs, game.outputs, game.x, game.y  # I, O
    many, many_in = -(-m // y), -(-n // x)
    back, back_in = m - (many - 1) * y, n - (many_in - 1) * x
    loads, swaps = sorted(game.loads), sorted(game.swaps)

    def entries(inputs: int, outputs: int) -> tuple[Entries, Entries]:
        need = max(0, inputs - x) * max(0, outputs - y)
        return (
            Entries(need, y, back, inputs * max(0, many - 2), x),
            Entries(need, x, back_in, outputs * max(0, many_in - 2), y),
        )

    return Counting(
        *entries(n, m), entries(n - 1, m)[0], entries(n, m - 1)[1], loads[0], swaps[0], loads[min(1, n - 1)],
        swaps[min(1, m - 1)], back, sum(swaps[:back]), (many - 1) * sum(loads[: n - x]), back_in,
        sum(loads[:back_in]), (many_in - 1) * sum(swaps[: m - y]),
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
    most_w, most_v = at.most
    best = at.bytes(most_w, 0)
    for v in range(most_v + 1):
        if v * at.swap >= best:
            break
        least = max(at.ins.least(v), -(-(at.outs.need - at.outs.gains(v)) // at.outs.other), 0)
        # More entries of inputs than these two save bytes of partial maps only by the exchanged (FULL).
        most = at.full_outs.need // at.full_outs.other if at.full_swap > at.swap else 0
        for w in {least, max(least, at.back_in), *range(least, most + 1)}:
            if w * at.load < best:
                best = min(best, at.bytes(w, v))
    return game.base + best


def branch_bound(branch: Branch, *, stay: bool = False) -> int:
    """Return DRAM bytes that no order undercuts with these strips and places."""
    return branch.fixed + sum(number * lower(game, stay=stay) for game, number in branch.games)

"""Partial engine: lower bounds on the bytes of inputs and partial maps that hold for every order of the runs.

An example: 8 input groups, 8 output groups, places for x = 2 inputs and y = 4 partial groups. With nb = 2 batches of
outputs, and no output group coming back, at least (8 - 2)*(8 - 4) = 24 runs have to be paid for by further entries. One
more entry of an input pays for at most 4 of them: so at least 6 inputs are loaded a second time.

Sets
    i = 1 .. I, o = 1 .. O      input and output groups; each pair (i, o) is a run
Given
    x, y            places for inputs and for partial groups (`formulations.partial_engine`)
    load, swap      bytes of an input group; bytes of a partial group that leaves and comes back. L, P: sums over all
    nb, r           ceil(O/y) batches of outputs, and O - (nb - 1)*y of them in the last one
    nb', r'         the same with the sides exchanged: ceil(I/x), I - (nb' - 1)*x
Variables
    n_x, n_y        entries: how often input groups are loaded, and partial groups get a place, in all
    w = n_x - I >= 0, v = n_y - O >= 0      entries beyond one a group
Objective
    min input bytes + swapped bytes
Constraints (each holds for every order)
    (EACH)   input bytes >= L + w * the least load; swapped bytes >= v * the least swap.
    (COUNT)  ``sum_i min(O, y*visits(i)) + x*(n_y - y) >= I*O``. Charge each of the I*O runs to the later entry of its
             two groups; but runs of the first y entries of partial groups to the input. Then an input is charged

             * at its first entry, and by the first y entries of partial groups: y runs together at most, since before
               these y entries are over, its first entry meets only those of them that are in places;
             * at each later entry of its own: at most y runs, one for each partial group in a place;

             so y*visits(i) at most, and never more than O. Every later entry of a partial group is charged at most x
             runs, one for each input in a place. So the entries of an input beyond the first gain y each, but its nb-th
             entry gains r, and those after it nothing:
             ``y*w1 + r*w2 + x*v >= (I - x)*(O - y)`` with w = w1 + w2, w1 <= I*(nb - 2), w2 <= I. With the sides
             exchanged: ``x*v1 + r'*v2 + y*w >= (I - x)*(O - y)``.
    (WHOLE)  Either v >= r, and swapped bytes >= the r least swaps. Or fewer than r output groups come back; then more
             than (nb - 1)*y have one visit only, and one of the y places sees nb of these, one after the other. During
             each such visit all inputs are there at some time, at its begin at most x of them. So
             ``input bytes >= L + (nb - 1)*(L - the x largest loads)``.
    (WHOLE') The sides exchanged: either w >= r' and ``input bytes >= L + the r' least loads``, or
             ``swapped bytes >= (nb' - 1)*(P - the y largest swaps)``.
    (FULL)   Without the cheapest input group a schedule of the others remains. So the entries that (COUNT) asks for
             with I - 1 inputs cost at least the second least load each; likewise with the sides exchanged. It matters
             where a last group has fewer maps than the others.
Optimal means
    `lower` is the least sum of bytes over all (w, v) that (COUNT) allows. Where all groups of a side are alike, and y
    divides O or x divides I, orders in passes mostly meet it. On small grids it is compared with all orders
    (tests/formulations/test_partial_engine.py).
As a model (`bounded`), for CP-SAT and for MILP
    Sets         choices b of strips and places; their games g (grids that are not alike)
    Variables    z[b] in {0, 1}; w1, w2, v1, v2 [b,g] in N, w = w1 + w2, v = v1 + v2; w1', w2', v1', v2' the same
                 without the cheapest group; ins, parts [b,g] in N: bytes; p, q [b,g] in {0, 1}
    Objective    min sum_b z[b]*least[b] + sum number[g]*(ins[b,g] + parts[b,g])
    Constraints  (ONE)    sum_b z[b] = 1
                 (COUNT)  y*w1 + r*w2 + x*v >= (I - x)*(O - y)*z[b],  x*v1 + r'*v2 + y*w >= (I - x)*(O - y)*z[b]
                 (WHOLE)  v >= r*p, parts >= the r least swaps*p, p <= z[b];  ins >= whole bytes*(z[b] - p)
                 (WHOLE') w >= r'*q, ins >= the r' least loads*q, q <= z[b];  parts >= whole' bytes*(z[b] - q)
                 (FULL)   y*w1' + r*w2' + x*v >= (I - 1 - x)*(O - y)*z[b];  ins >= second least load*w';
                          x*v1' + r'*v2' + y*w >= (I - x)*(O - 1 - y)*z[b];  parts >= second least swap*v'
                 (EACH)   ins >= load*w, parts >= swap*v
                 (STAY)   v = 0 if partial maps may not be stored; parts is then not bounded
    All bytes are multiples of a unit, the gcd of all of them: the model counts in this unit. Bytes beyond those of a
    known order count as one more than these, which keeps coefficients small. The optimum is a bound for every order; an
    order in passes with the strips and places chosen that moves as many bytes is therefore optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from formulations.partial_engine.space import Branch, Game

#: The figures of `Side` that are bytes.
_BYTES = ("cheapest", "second", "back_bytes", "whole_bytes")


@dataclass(frozen=True)
class Entries:
    """What (COUNT) asks of one side: the first `most` entries beyond one each gain `gain`, the others `rest`."""

    need: int
    """What the gains of this side, and `other` for each entry of the other side, have to reach."""
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
class Side:
    """The figures of the bounds for one side; those of partial maps in brackets."""

    entries: Entries
    without: Entries
    """`entries`, `without`: (COUNT), for w [v]; (FULL), the same without the cheapest group."""
    cheapest: int
    second: int
    """`cheapest`, `second`: the least and the second least load [swap]."""
    back: int
    back_bytes: int
    """`back`, `back_bytes`: r' [r] and the r' least loads [r least swaps]."""
    whole_bytes: int
    """The further bytes of this side if fewer groups of the other side come back."""

    @classmethod
    def of(cls, bytes_: Sequence[int], places: int, others: int, beside: int) -> Side:
        """Groups with these bytes and so many places, beside others with their places."""
        own, number = sorted(bytes_), len(bytes_)
        batches = -(-others // beside)
        back = number - (-(-number // places) - 1) * places

        def entries(groups: int) -> Entries:
            need = max(0, groups - places) * max(0, others - beside)
            return Entries(need, beside, others - (batches - 1) * beside, groups * max(0, batches - 2), places)

        whole = (batches - 1) * sum(own[: number - places])
        second = own[min(1, number - 1)]
        return cls(entries(number), entries(number - 1), own[0], second, back, sum(own[:back]), whole)

    @property
    def most(self) -> int:
        """The most entries beyond one each that some least sum needs."""
        return max(self.back, self.entries.least(0))

    def bytes(self, own: int, others: int) -> int:
        """What so many entries of this side cost at least, beyond every load once, beside those of the other one."""
        return max(own * self.cheapest, self.without.least(others) * self.second)


def sides_of(game: Game) -> tuple[Side, Side]:
    """Return the figures of inputs and of partial maps."""
    n, m, x, y = game.inputs, game.outputs, game.x, game.y  # I, O
    return Side.of(game.loads, x, m, y), Side.of(game.swaps, y, n, x)


def _bytes(ins: Side, outs: Side, w: int, v: int) -> int:
    """What w and v cost at least, beyond every load once."""
    inputs, swapped = ins.bytes(w, v), outs.bytes(v, w)
    ways = [(ins.whole_bytes, 0), *([(0, outs.back_bytes)] if v >= outs.back else [])]
    ways_in = [(0, outs.whole_bytes), *([(ins.back_bytes, 0)] if w >= ins.back else [])]
    return min(max(inputs, a, c) + max(swapped, b, d) for a, b in ways for c, d in ways_in)


def lower(game: Game, *, stay: bool = False) -> int:
    """Return a lower bound on the bytes of inputs and partial maps, over all orders.

    `stay`: partial maps may not be stored: v = 0.
    """
    ins, outs = sides_of(game)
    if stay:
        return game.base + ins.whole_bytes
    best = _bytes(ins, outs, ins.most, 0)
    for v in range(outs.most + 1):
        if v * outs.cheapest >= best:
            break
        least = max(ins.entries.least(v), -(-(outs.entries.need - outs.entries.gains(v)) // outs.entries.other), 0)
        # More entries of inputs than these two save bytes of partial maps only by the exchanged (FULL).
        most = outs.without.need // outs.without.other if outs.second > outs.cheapest else 0
        for w in {least, max(least, ins.back), *range(least, most + 1)}:
            if w * ins.cheapest < best:
                best = min(best, _bytes(ins, outs, w, v))
    return game.base + best


def branch_bound(branch: Branch, *, stay: bool = False) -> int:
    """Return a lower bound on DRAM bytes with these strips and places, over all orders."""
    return branch.fixed + sum(number * lower(game, stay=stay) for game, number in branch.games)


# ---- as a model ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bounded:
    """The bounds in the expressions of a solver's library; a solution has ``base + unit * objective`` bytes."""

    z: list[Any]
    """By choice whether it is taken."""
    rows: list[Any]
    terms: list[tuple[Any, int]]
    """The objective: variables with their factors."""
    base: int
    unit: int

    def chosen(self, value: Callable[[Any], float | None]) -> int:
        """The choice of a solution, as a number."""
        return max(range(len(self.z)), key=lambda b: value(self.z[b]) or 0.0)


def bounded(branches: Sequence[Branch], known: int, integer: Callable[[str, int], Any], *, stay: bool) -> Bounded:
    """Return the model of some choices; some order moves `known` bytes.

    `integer`: makes a variable of the solver's library from its name and its largest value; the least is 0.
    """
    base = min(branch.least for branch in branches)
    counts = [[(sides_of(game), number) for game, number in branch.games] for branch in branches]
    figures = [getattr(side, name) for few in counts for sides, _ in few for side in sides for name in _BYTES]
    unit = max(1, gcd(*figures, *(branch.least - base for branch in branches)))
    most = (known - base) // unit + 1
    z = [integer(f"z_{b}", 1) for b in range(len(branches))]
    rows, terms = [sum(z) == 1], [(z[b], (branch.least - base) // unit) for b, branch in enumerate(branches)]
    for b, few in enumerate(counts):
        for g, (sides, number) in enumerate(few):
            figures = [{name: min(getattr(side, name) // unit, most) for name in _BYTES} for side in sides]
            capped = [replace(side, **sizes) for side, sizes in zip(sides, figures, strict=True)]
            bytes_, more = _game(capped, z[b], lambda name, top, end=f"_{b}_{g}": integer(name + end, top), stay)  # type: ignore[misc]
            rows += more
            terms += [(one, number) for one in bytes_]
    return Bounded(z, rows, terms, base, unit)


def _game(sides: Sequence[Side], z: Any, integer: Callable[[str, int], Any], stay: bool) -> tuple[list[Any], list[Any]]:
    """The bytes of inputs and of partial maps of a game, and its constraints."""
    most = [sides[0].most, 0 if stay else sides[1].most]
    number = [integer(name, top) for name, top in zip("wv", most, strict=True)]
    bytes_ = [
        integer(name, top * side.second + side.back_bytes + side.whole_bytes)
        for name, side, top in zip(("ins", "parts"), sides, most, strict=True)
    ]
    rows = []
    for k, (side, name) in enumerate(zip(sides, "wv", strict=True)):
        full, back, bounded = integer(f"{name}f", most[k]), integer("qp"[k], 1), not stay or k == 0
        rows += [back <= z, number[k] >= side.back * back, bytes_[k] >= side.back_bytes * back]
        rows += [bytes_[k] >= side.cheapest * number[k], bytes_[k] >= side.second * full]
        for entries, entered, of in ((side.entries, number[k], name), (side.without, full, f"{name}f")) * bounded:
            first, then = integer(f"{of}1", entries.most), integer(f"{of}2", max(most))
            gains = entries.gain * first + entries.rest * then + entries.other * number[1 - k]
            rows += [first + then == entered, gains >= entries.need * z]
        if not stay or k == 1:
            rows.append(bytes_[1 - k] >= sides[1 - k].whole_bytes * (z - back))
    return bytes_, rows

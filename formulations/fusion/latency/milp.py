"""A bound of the latency for MILP solvers: the least path by clocks and by transfers together.

`Floors` bounds every way of a group by a matrix of clocks and by the ticks of its transfers. The least path by clocks
and the least one by transfers are bounds; they may be two paths. No plan is below the least of the larger of both:

SETS        cuts c = 0..T with the maps on chip there (states); ways a from a state to another one, from cut b_a to e_a
PARAMETERS  M_a matrices of the clocks (E, A1, A2; of several queues `products.joint`), q_a[c] ticks of transfers by
            queue, H a time that is known; all in ticks
VARIABLES   x_a binary: the way is taken;  0 <= k[c, i] <= H clock i at cut c;  0 <= L <= H, whole
OBJECTIVE   min L
(FLOW)      sum of x_a from the first state = 1; of every other state but the last ones as many come as go
(CLOCK)     k[e_a, i] >= k[b_a, j] + M_a[i, j] - (H + M_a[i, j]) (1 - x_a)            if M_a[i, j] > -H
(END)       L >= k[T, j] for E and the last clock of every queue
(QUEUE)     L >= sum of q_a[c] x_a for every queue c
(TURN)      L >= sum of M_a[i, i] x_a (e_a < c) + M_a[j, i] x_a (b_a < c <= e_a) + M_a[j, j] x_a (b_a >= c)
            for every c, and all clocks i and j, of which j is one of (END)

(TURN) follows from the others where x is whole; of fractions (CLOCK) says little. Ways that no path below H has are
left out before: where none is left, no plan is below H. Not for large networks: with coefficients above
`solver.search.driver_milp.LARGEST` nothing is believed.

An example: two ways, one by clocks 10 and by transfers 20, the other 20 and 10. Both bounds are 10, this one is 20.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, TypeVar

import pulp

from formulations.fusion.latency.paths import Move, State
from formulations.problem import Model

S = TypeVar("S")
#: A way by number, its first and last state, its matrix, and ticks of its transfers by queue.
Taken = tuple[State, State, list[list[int]], list[int]]


def build(
    moves: Sequence[Move], count: int, most: int, ends: Sequence[int], decode: Callable[[Any], S | None]
) -> Model[S]:  # fmt: skip
    """Return the model of paths over so many layers that take `most` ticks at the most.

    `ends` are the clocks that latency is not below (`Options.ends`); `decode` reads a plan from its solution, which is
    only a path of bounds.
    """
    taken = [
        (move.state, move.after, matrix.tolist(), ticks.tolist())
        for move in moves for matrix, ticks in zip(move.matrix, move.moving, strict=True)
    ]  # fmt: skip
    every = range(moves[0].matrix.shape[1])
    problem = pulp.LpProblem("paths", pulp.LpMinimize)
    xs = [pulp.LpVariable(f"x{a}", cat="Binary") for a in range(len(taken))]
    clocks = {(c, i): pulp.LpVariable(f"k{c}_{i}", 0, most) for c in range(count + 1) for i in every}
    latency = pulp.LpVariable("L", 0, most, "Integer")
    problem.setObjective(latency + 0)
    for row in (*_flow(taken, xs, count), *_clocks(taken, xs, clocks, most)):
        problem += row
    for i in ends:
        problem += latency >= clocks[count, i]
    for queue in range(moves[0].moving.shape[1]):
        problem += latency >= pulp.lpSum(ticks[queue] * x for (*_, ticks), x in zip(taken, xs, strict=True))
    for cut, i, j in product(range(count + 1), every, ends):
        ticks = [_turned(one, cut, i, j, most) for one in taken]
        problem += latency >= pulp.lpSum(each * x for each, x in zip(ticks, xs, strict=True))
    return Model(problem, decode)


def _flow(taken: Sequence[Taken], xs: Sequence[Any], count: int) -> Iterator[Any]:
    """Yield (FLOW)."""
    goes, comes = defaultdict[State, list[Any]](list), defaultdict[State, list[Any]](list)
    for (before, after, *_), x in zip(taken, xs, strict=True):
        goes[before].append(x)
        comes[after].append(x)
    for state in {**goes, **comes}:
        if state[0] == 0:
            yield pulp.lpSum(goes[state]) == 1
        elif state[0] < count:
            yield pulp.lpSum(goes[state]) == pulp.lpSum(comes[state])


def _clocks(
    taken: Sequence[Taken], xs: Sequence[Any], clocks: dict[tuple[int, int], Any], most: int
) -> Iterator[Any]:  # fmt: skip
    """Yield (CLOCK)."""
    for (before, after, matrix, _), x in zip(taken, xs, strict=True):
        for i, j in product(range(len(matrix)), repeat=2):
            ticks = matrix[i][j]
            if ticks > -most:
                span = most + ticks
                yield clocks[after[0], i] - clocks[before[0], j] - span * x >= ticks - span


def _turned(one: Taken, cut: int, i: int, j: int, most: int) -> int:
    """What a way adds to a clock that is i before a cut, and j from there on."""
    before, after, matrix, _ = one
    first, last = (i if state[0] < cut else j for state in (before, after))
    return max(-most, matrix[last][first])

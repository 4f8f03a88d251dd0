"""Exhaustive search: every combination of candidates, vectorised.

For one unconstrained layer this is exact and faster than any solver; CP-SAT and MILP confirm it by another route. Rows
and columns whose separable lower bound exceeds the best plan so far are left out: a row s costs at least ``sum_k
a[k,s] * min_q b[k,q]``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formulations.space import Branch, Space
from hwmodels.bilinear import Bilinear, Ints
from hwmodels.price import price
from solver.engines.base import EngineResult, Limits, Pick, complete, vector

__all__ = ["best_pick", "lower_bounds", "run", "within"]

_CHUNK = 4_000_000


def lower_bounds(tables: tuple[Bilinear, ...], side: str) -> Ints:
    """Separable lower bound of the largest of `tables` for every choice of `side` ("s" or "q")."""
    if side == "s":
        bounds = [t.b.min(axis=1, initial=2**62) @ t.a for t in tables]
    else:
        bounds = [t.a.min(axis=1, initial=2**62) @ t.b for t in tables]
    largest: Ints = np.max(bounds, axis=0)
    return largest


def within(branch: Branch, measure: str, limit: int) -> Branch:
    """Drop the choices that cannot reach `measure` <= `limit`, until nothing more drops."""
    while not branch.empty:
        keep_s = np.flatnonzero(lower_bounds(branch.tables(measure), "s") <= limit)
        branch_s = branch.take(s=keep_s)
        if branch_s.empty:
            return branch_s
        keep_q = np.flatnonzero(lower_bounds(branch_s.tables(measure), "q") <= limit)
        smaller = branch_s.take(q=keep_q)
        if not smaller.empty:
            smaller = smaller.fitting()
        if smaller.choices.shape == branch.choices.shape:
            return smaller
        branch = smaller
    return branch


def best_pick(
    space: Space, objectives: tuple[str, ...], *, bounding: bool = True, deadline: float | None = None
) -> tuple[Pick | None, bool]:
    """Return the lexicographically best plan, and whether the whole space was looked at.

    Ties beyond the full objective vector go to the first branch and the smallest sizes in the stated order of the
    choices.
    """
    wanted = complete(objectives)
    best = _serial_seed(space, wanted) if bounding else None
    for branch in _promising_first(space.branches, wanted[0]) if bounding else space.branches:
        for block in _blocks(branch, wanted[0], best, bounding):
            if deadline is not None and time.monotonic() > deadline:
                return best, False
            part = within(block, wanted[0], best.measures[wanted[0]]) if bounding and best is not None else block
            best = _better(best, _best_of(part, wanted, best), wanted)
    return best, True


def _serial_seed(space: Space, wanted: tuple[str, ...]) -> Pick | None:
    """Where time is a timeline: the plan that is best without overlap, at its real price.

    It is found at once, bounds the search closely, and is there when the time runs out.
    """
    if all(b.exact for b in space.branches):
        return None
    serial = space.machine.model_copy(update={"overlap": "serial"})
    pick, _ = best_pick(space.build(serial, space.pins), wanted)
    if pick is None:
        return None
    return replace(pick, measures=price(space.layer, space.machine, pick.nest).measures)


def _floor(space: Space, measure: str) -> int | None:
    """A bound that needs no search: the least separable lower bound of all branches."""
    bounds = [int(lower_bounds(b.tables(measure), "s").min()) for b in space.branches if not b.empty]
    if not bounds:
        return None
    machine = space.machine
    return min(bounds) * machine.byte_fj + machine.mac_fj * space.layer.macs if measure == "energy" else min(bounds)


def _promising_first(branches: tuple[Branch, ...], measure: str) -> list[Branch]:
    """Order branches by their separable lower bound, so that good plans come early."""
    return sorted(branches, key=lambda b: int(lower_bounds(b.tables(measure), "s").min()))


def _blocks(branch: Branch, measure: str, best: Pick | None, bounding: bool) -> Iterator[Branch]:
    """Cut a branch in row blocks of bounded size, without what cannot beat the best plan so far."""
    if bounding and best is not None:
        branch = within(branch, measure, best.measures[measure])
    if branch.empty:
        return
    promise = lower_bounds(branch.tables(measure), "s")
    order = np.argsort(promise, kind="stable") if bounding else np.arange(branch.choices.shape[0])
    rows = max(1, (_CHUNK // 16 if bounding else _CHUNK) // branch.choices.shape[1])
    for i in range(0, len(order), rows):
        yield branch.take(s=np.sort(order[i : i + rows]))


def _better(one: Pick | None, two: Pick | None, wanted: tuple[str, ...]) -> Pick | None:
    if one is None or two is None:
        return one or two
    return two if vector(two.measures, wanted) < vector(one.measures, wanted) else one


def _values(branch: Branch, measure: str, s: Ints, q: Ints) -> Ints:
    values = [np.einsum("kp,kp->p", t.a[:, s], t.b[:, q]) for t in branch.tables(measure)]
    largest: Ints = np.max(values, axis=0)
    return largest


def _best_of(branch: Branch, wanted: tuple[str, ...], best: Pick | None) -> Pick | None:
    """The best plan of a block, or None if none fits or none beats `best` in the first objective."""
    if branch.empty:
        return None
    first: NDArray[np.float64] = np.max([t.matrix() for t in branch.tables(wanted[0])], axis=0).astype(np.float64)
    first[~branch.feasible()] = np.inf
    low = first.min()
    if not np.isfinite(low) or (best is not None and low > best.measures[wanted[0]]):
        return None
    if not branch.exact:
        return _best_by_timeline(branch, wanted, first, best)
    s, q = np.nonzero(first == low)
    for measure in wanted[1:]:
        values = _values(branch, measure, s, q)
        keep = values == values.min()
        s, q = s[keep], q[keep]
    return Pick(branch, int(s[0]), int(q[0]), branch.measures(int(s[0]), int(q[0])))


def _best_by_timeline(
    branch: Branch, wanted: tuple[str, ...], first: NDArray[np.float64], best: Pick | None
) -> Pick | None:
    """Double-buffered time: lay out timelines in the order of their lower bounds until no bound is below the best."""
    ceiling = np.inf if best is None else best.measures[wanted[0]]
    s, q = np.nonzero(np.isfinite(first) & (first <= ceiling))
    bounds = [_values(branch, m, s, q) for m in wanted]
    found = best
    for i in np.lexsort(bounds[::-1]):
        # Energy rises with bytes, so bounds by bytes order it rightly but are not its value: compare the first two.
        if found is not None and tuple(int(b[i]) for b in bounds[:2]) > vector(found.measures, wanted)[:2]:
            break
        pick = Pick(branch, int(s[i]), int(q[i]), branch.measures(int(s[i]), int(q[i])))
        found = _better(found, pick, wanted)
    return None if found is best else found


def run(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Look at every candidate of the space."""
    start = time.monotonic()
    deadline = None if limits.time_limit_s is None else start + limits.time_limit_s
    pick, whole = best_pick(space, objectives, bounding=limits.bounding, deadline=deadline)
    wall = time.monotonic() - start
    version = f"numpy {np.__version__}"
    if pick is None:
        return EngineResult("INFEASIBLE" if whole else "NO_SOLUTION_FOUND", None, None, None, wall, version)
    value = pick.measures[objectives[0]]
    bound = value if whole else _floor(space, objectives[0])
    return EngineResult("OPTIMAL" if whole else "FEASIBLE", pick.nest, pick.measures, bound, wall, version)

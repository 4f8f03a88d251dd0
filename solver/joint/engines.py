"""Engines for the joint problem: tile plans of all layers together with what stays on chip between them.

An exact engine solves the problem with lower bounds in place of searches that have not been made, makes the searches
that its solution relies on, and starts again (`solver.joint.tables`). Heuristics are what compilers do: nothing stays;
maps stay in the order in which they come; tile plans first, and maps where there is room left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from formulations.clock import Clock
from formulations.joint.problem import NEVER, Choice, Joint, TooLarge, least
from solver.joint.base import Decided, Master, Mastered
from solver.joint.bounds import Bound
from solver.joint.tables import Tables
from solver.plan import Stat, Status

__all__ = ["JOINT_ENGINES", "JointEngine", "in_haste"]


@dataclass(frozen=True)
class JointEngine:
    """A way to decide."""

    name: str
    summary: str
    proves: bool
    run: Callable[[Tables, float | None], Decided]


def _until(tables: Tables, time_limit_s: float | None) -> float | None:
    """When to stop; if there is such a time, some nest is found for every layer first."""
    if time_limit_s is None:
        return None
    clock = Clock.of(time_limit_s)
    tables.hurry(clock.half())
    return clock.until


# ---- exact -----------------------------------------------------------------------------------------------------------


def _dynamic(joint: Joint, time_limit_s: float | None, hint: Choice | None) -> Mastered:
    choice = least(joint)
    return Mastered(choice, NEVER if choice is None else choice.bytes)


def _solver(engine: str) -> Master:
    def run(joint: Joint, time_limit_s: float | None, hint: Choice | None) -> Mastered:
        from formulations.joint.cp_sat import cp_sat  # late: models and engines import every solver
        from formulations.joint.milp import milp
        from solver.engines.models import solve, versions

        made = cp_sat(joint, hint) if engine == "cp-sat" else milp(joint)
        said = solve(made, engine, time_limit_s, lambda choice: choice.bytes)
        bound = made.base if said.bound is None else said.bound
        return Mastered(said.schedule, NEVER if said.empty else bound, versions(engine), said.stopped)

    return run


class _Refining:
    """Solves again and again with tables that become exact where it matters."""

    def __init__(self, tables: Tables, until: float | None) -> None:
        self.tables, self.until = tables, until
        self.bound, self.rounds = 0, 0
        self.best: Choice | None = None

    def run(self, master: Master) -> Mastered:
        """Return the last solution with proven bounds; if no nest reaches them, look for the best that there is too."""
        said = self._refined(master, "proven")
        if self.best is not None and said.choice is not None and self.bound < self.best.bytes:
            self._refined(master, "found")
        return said

    def _refined(self, master: Master, bound: Bound) -> Mastered:
        """Search where the solution relies on a bound of this kind, until it relies on none."""
        while True:
            joint = self.tables.joint(bound=bound)
            self.rounds += 1
            said = master(joint, self._left(), self.best)
            if bound == "proven":
                self.bound = max(self.bound, said.bound)
            if said.choice is not None:
                self.take(said.choice)
            if said.stopped:
                raise KeyboardInterrupt
            if said.choice is None:
                return said
            places = self.tables.relied(joint, said.choice)
            if not places or not self.tables.search(places, self.until):
                self.take(said.choice)
                return said

    def take(self, choice: Choice) -> None:
        """Keep the best choice that plans are known for."""
        real = self.tables.joint(bound="known").price(choice.levels)
        if real.bytes < NEVER and (self.best is None or real.bytes < self.best.bytes):
            self.best = real

    def _left(self) -> float | None:
        return None if self.until is None else max(0.01, self.until - time.monotonic())

    def decided(self, said: Mastered) -> Decided:
        """The answer."""
        stats: dict[str, Stat] = {"rounds": self.rounds, "searches": self.tables.searches}
        if self.until is not None:
            self.bound = max(self.bound, self.tables.floor())
        bound = min(self.bound, self.best.bytes) if self.best else self.bound
        if self.best is not None:
            status: Status = "OPTIMAL" if bound == self.best.bytes else "FEASIBLE"
            return Decided(self.best, self.tables, bound, status, said.versions, stats)
        if self.bound >= NEVER:
            return Decided(None, self.tables, None, "INFEASIBLE", said.versions, stats)
        return Decided(None, self.tables, bound, "NO_SOLUTION_FOUND", said.versions, stats)


def _exact(name: str, summary: str, master: Master) -> JointEngine:
    def run(tables: Tables, time_limit_s: float | None) -> Decided:
        until = _until(tables, time_limit_s)
        first, refining = _Refining(tables, until), _Refining(tables, until)
        try:
            if master is not _dynamic:
                with suppress(TooLarge):  # the quickest way to the searches that matter
                    first.run(_dynamic)
            if first.best is not None:
                refining.take(first.best)
            refining.take(_in_order(tables, until))
            said = refining.decided(refining.run(master))
        except KeyboardInterrupt:  # the best so far
            return in_haste(tables, first, refining)
        if first.best and said.choice and first.best.bytes == said.choice.bytes:
            return replace(said, choice=first.best)  # of equal optima the same one from all engines
        return said

    return JointEngine(name, summary, True, run)


def in_haste(tables: Tables, *begun: _Refining) -> Decided:
    """The best of searches that were stopped; without one some nest for every layer, every map through DRAM."""
    best = min((one for one in begun if one.best is not None), key=_bytes, default=_Refining(tables, None))
    if best.best is None:
        tables.hurry(Clock(0.0))
        best.take(_none(tables.joint(bound="known")))
    best.bound = max(tables.floor(), *(one.bound for one in (best, *begun)))
    said = best.decided(Mastered(None, best.bound))
    return replace(said, stats={**said.stats, "interrupted": True})


def _bytes(refining: _Refining) -> int:
    return NEVER if refining.best is None else refining.best.bytes


# ---- heuristics ------------------------------------------------------------------------------------------------------


def _searched(tables: Tables, until: float | None) -> Joint:
    """The problem with the best plan of every layer by itself, its input in DRAM and on chip."""
    for on_chip in (False, True):
        tables.search(tables.alone(on_chip=on_chip), until)
    return tables.joint(bound="known")


def _none(joint: Joint) -> Choice:
    return joint.price([[0] * len(r.uses) for r in joint.residences])


def _nothing(tables: Tables, until: float | None) -> Choice:
    return _none(_searched(tables, until))


def _in_order(tables: Tables, until: float | None) -> Choice:
    """Map after map: as many rows as leave every layer room for some plan, if that helps."""
    return _greedy(_searched(tables, until))


def _greedy(joint: Joint) -> Choice:
    choice = _none(joint)
    levels = [list(row) for row in choice.levels]
    for k in sorted(range(len(levels)), key=lambda k: joint.residences[k].born):
        for level in range(len(joint.residences[k].banks) - 1, 0, -1):
            tried = [*levels[:k], [level] * len(levels[k]), *levels[k + 1 :]]
            if (found := joint.price(tried)).bytes < choice.bytes:
                choice, levels = found, tried
                break
    return choice


def _in_sequence(tables: Tables, until: float | None) -> Choice:
    """Tile plans first, each layer alone; then the best use of what they leave."""
    joint = _searched(tables, until)
    steps = []
    for step in joint.steps:
        alone = step.plans((0,) * len(step.axes))
        need = alone[-1][0] if alone else 0
        steps.append(replace(step, extra=np.where(np.arange(joint.banks + 1) < need, NEVER, step.extra)))
    limited = replace(joint, steps=tuple(steps))
    try:
        choice = least(limited)
    except TooLarge:
        choice = _greedy(limited)
    return _none(joint) if choice is None else joint.price(choice.levels)


def _heuristic(name: str, summary: str, choose: Callable[[Tables, float | None], Choice]) -> JointEngine:
    def run(tables: Tables, time_limit_s: float | None) -> Decided:
        until = _until(tables, time_limit_s)
        choice = choose(tables, until)
        if tables.search(tables.relied(tables.joint(bound="proven"), choice), until):  # the best plans for what is left
            choice = tables.joint(bound="known").price(choice.levels)
        stats: dict[str, Stat] = {"searches": tables.searches}
        bound = tables.floor()
        if choice.bytes >= NEVER:
            if any(int(step.extra.min()) >= NEVER for step in tables.joint(bound="proven").steps):
                return Decided(None, tables, None, "INFEASIBLE", stats=stats)
            why = f"engine {name} finds no place for some layer"
            return Decided(None, tables, bound, "NO_SOLUTION_FOUND", stats=stats, why=(why,))
        return Decided(choice, tables, bound, "OPTIMAL" if bound == choice.bytes else "FEASIBLE", stats=stats)

    return JointEngine(name, summary, False, run)


JOINT_ENGINES: dict[str, JointEngine] = {
    engine.name: engine
    for engine in (
        _exact("dynamic", "dynamic programming over the rows of all maps on chip: exact", _dynamic),
        _exact("milp", "one-hot levels and plans with HiGHS: exact", _solver("milp")),
        _exact("cp-sat", "one-hot levels and plans with CP-SAT: exact", _solver("cp-sat")),
        _heuristic("no-reuse", "every layer's best plan alone, every map through DRAM", _nothing),
        _heuristic("greedy", "map after map stays as far as it fits", _in_order),
        _heuristic("sequence", "tile plans first, layer by layer; then the best use of what they leave", _in_sequence),
    )
}  # fmt: skip

"""Prefetch for CP-SAT: a start for every step, an interval for every transfer, guards and limits step by step.

Sets        steps t, loads i, stores k with their queues, as in `formulations.prefetch.guards`; H: the least time known
Variables   S[t], R[t] in 0..H     step t begins; there is room for it
            s[q] in 0..H           transfer q begins
            y[i,t], t < u_i        i has a guard of t at most:        y[i,t] <= y[i,t+1]
            w[k,t], t > r_k        k has a limit above t:             w[k,t] >= w[k,t+1]
Constraints (QUEUE) the transfers of a queue do not overlap
            (ROOM)  R[t] >= S[t-1] + c_(t-1);  R[t] >= s[k] + tau_k unless w[k,t]
            (GUARD) s[i] >= R[t] unless y[i,t-1], for 1 < t <= u_i;  s[k] >= S[r_k] + c_(r_k)
            (READY) y[i,t] only from the step on by which what i loads is there; s[i] >= s[k] + tau_k for stores before
            (DUE)   S[t] >= R[t];  S[t] >= s[i] + tau_i for loads due in t
            (BYTES) A_t + sum b_i y[i,t] + sum b_k w[k,t] <= B
            (ALIKE) s[i] <= s[j], y[i,t] >= y[j,t] of two loads i < j that are alike: they may change names
            (ORDER) s[i] <= s[j] of loads of a queue with u_i < u_j, where loads are asked for in that order
Objective   min L,  L >= S[N] + c_N,  L >= s[q] + tau_q

The order of a queue is that of the starts. Guards and limits of a solution, with that order, take no longer than it:
its starts meet all that the events of the timeline wait for.
"""

from __future__ import annotations

from itertools import pairwise, product

from ortools.sat.python import cp_model

from formulations.prefetch.guards import Draft, Order, When
from formulations.problem import Model
from hwmodels.timeline.schedule import Load, Move, Timeline, begins


def build(timeline: Timeline, room: int, below: int) -> Model[Timeline]:
    """Return the model of all timelines of these steps and transfers that take less than `below` ticks."""
    made = _Whole(timeline, room, below - 1)
    return Model(made.model, lambda solver: Draft(timeline, room).made(*made.read(solver)))


def ordered(
    timeline: Timeline, room: int, below: int, least: int = 0, *, due: bool = False
) -> Model[tuple[Order, When]]:  # fmt: skip
    """Return the same model with orders, guards and limits by number of the transfers; no solution is below `least`.

    `due`: loads stand in the order of the steps that read them.
    """
    made = _Whole(timeline, room, below - 1)
    made.model.add(made.latency >= least)
    if due:
        made.in_order()
    return Model(made.model, made.read, own_bound=True)


class _Whole:
    """The model, and how it is read."""

    def __init__(self, timeline: Timeline, room: int, most: int) -> None:
        self.timeline, self.model = timeline, cp_model.CpModel()
        model, steps, moves = self.model, timeline.steps, timeline.transfers
        self.begin = [model.new_int_var(0, most, "") for _ in moves]
        start, free = ([model.new_int_var(0, most, "") for _ in steps] for _ in range(2))
        self.beside = [self._beside(one) for one in moves]
        latency = self.latency = model.new_int_var(0, most, "L")
        for t, step in enumerate(steps):
            model.add(start[t] >= free[t])
            model.add(start[t] + step.ticks <= (free[t + 1] if t + 1 < len(steps) else latency))
        for queue in {one.queue for one in moves}:
            model.add_no_overlap([
                model.new_fixed_size_interval_var(begin, one.ticks, "")
                for begin, one in zip(self.begin, moves, strict=True) if one.queue == queue
            ])  # fmt: skip
        for one, begin, beside in zip(moves, self.begin, self.beside, strict=True):
            model.add(begin + one.ticks <= latency)
            if isinstance(one, Load):
                model.add(begin + one.ticks <= start[one.due - 1])
                model.add(begin >= free[one.ready - 1])
                for t in range(one.ready + 1, one.due + 1):
                    model.add(begin >= free[t - 1]).only_enforce_if(beside[t - 1].negated())
                for other, stored in zip(self.begin, moves, strict=True) if one.ready > 1 else ():
                    if not isinstance(stored, Load) and stored.queue == one.queue and stored.released < one.ready:
                        model.add(begin >= other + stored.ticks)
                continue
            model.add(begin >= start[one.released - 1] + steps[one.released - 1].ticks)
            for t, on_chip in beside.items():
                model.add(begin + one.ticks <= free[t - 1]).only_enforce_if(on_chip.negated())
        for t, step in enumerate(steps, 1):
            held = [beside[t] * one.bytes for one, beside in zip(moves, self.beside, strict=True) if t in beside]
            model.add(step.bytes + sum(held) <= room)
        self._alike()
        model.minimize(latency)

    def _alike(self) -> None:
        """Name loads that are alike in their order."""
        alike: dict[Move, int] = {}
        for k, one in enumerate(self.timeline.transfers):
            before = alike.get(one)
            if isinstance(one, Load) and before is not None:
                self.model.add(self.begin[before] <= self.begin[k])
                for t, on_chip in self.beside[k].items():
                    self.model.add_implication(on_chip, self.beside[before][t])
            alike[one] = k

    def in_order(self) -> None:
        """Loads of a queue in the order of the steps that read them."""
        moves = self.timeline.transfers
        for queue in {one.queue for one in moves}:
            by_step: dict[int, list[cp_model.IntVar]] = {}
            for begin, one in zip(self.begin, moves, strict=True):
                if isinstance(one, Load) and one.queue == queue:
                    by_step.setdefault(one.due, []).append(begin)
            for before, after in pairwise(sorted(by_step)):
                for sooner, later in product(by_step[before], by_step[after]):
                    self.model.add(sooner <= later)

    def _beside(self, one: Move) -> dict[int, cp_model.IntVar]:
        """By step whether a transfer lies beside it."""
        last, load = len(self.timeline.steps), isinstance(one, Load)
        among = range(one.ready, one.due) if isinstance(one, Load) else range(one.released + 1, last + 1)
        found = {t: self.model.new_bool_var("") for t in among}
        for t in list(among)[1:]:
            first, then = (t - 1, t) if load else (t, t - 1)
            self.model.add_implication(found[first], found[then])
        return found

    def read(self, solver: cp_model.CpSolver) -> tuple[Order, When]:
        """The order of a solution, with its guards and limits by transfer."""
        moves, when, begin = self.timeline.transfers, list[int](), [solver.value(at) for at in self.begin]
        for one, beside in zip(moves, self.beside, strict=True):
            count = sum(solver.boolean_value(x) for x in beside.values())
            when.append(one.due - count if isinstance(one, Load) else one.released + 1 + count)

        def key(k: int) -> tuple[int, int, int]:
            one = moves[k]
            first = 2 * when[k] + 1 if isinstance(one, Load) else begins(one)
            return begin[k], begin[k] + one.ticks, first

        return sorted(range(len(moves)), key=key), when

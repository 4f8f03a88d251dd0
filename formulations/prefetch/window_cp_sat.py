"""A window of a timeline for CP-SAT: the model of `formulations.prefetch.cp_sat` between times and tails.

Sets        steps t = a..z, free loads i and stores k; all else as in `formulations.prefetch.cp_sat`
Constraints those of it in the window, and
            (BEFORE) R[t] and S[t] no earlier than what stands ahead allows; s[q] no earlier than its queue is idle
            (BYTES)  of step t what others leave it
Objective   min L,  L >= S[z] + c_z + tail,  L >= s[q] + tau_q + tail of what is next in its queue, and of the step that
            waits for q, if that is behind the window
"""

from __future__ import annotations

from itertools import pairwise

from ortools.sat.python import cp_model

from formulations.prefetch.guards import Order, When
from formulations.prefetch.windows import Window
from formulations.problem import Model

#: The most that a window is worth, in CP-SAT's deterministic time (seconds, roughly).
MOST_TIME = 5.0


def build(window: Window) -> Model[tuple[Order, When]]:
    """Return the model of all orders, guards and limits of a window that take less than what is known, in some time."""
    made = _Window(window)
    return Model(made.model, made.read, parameters={"max_deterministic_time": MOST_TIME}, own_bound=True)


class _Window:
    """The model, and how it is read."""

    def __init__(self, window: Window) -> None:
        self.window, self.draft, self.model = window, window.draft, cp_model.CpModel()
        model, most = self.model, window.latency - 1
        self.latency = model.new_int_var(0, max(most, 0), "L")
        model.add(self.latency >= window.least)
        self.within = range(window.first, window.last)
        self.free = {t: model.new_int_var(window.room[t], max(most, window.room[t]), "") for t in self.within}
        self.start = {t: model.new_int_var(window.begin[t], max(most, window.begin[t]), "") for t in self.within}
        idle = {k: window.idle[self.draft.queue[k]] for k in window.free}
        self.begin = {k: model.new_int_var(at, max(most, at), "") for k, at in idle.items()}
        self.beside = {k: self._beside(k) for k in window.free}
        for t in self.within:
            model.add(self.start[t] >= self.free[t])
            end = self.start[t] + self.draft.steps[t - 1]
            model.add(end <= self.free[t + 1] if t + 1 < window.last else end + window.tails.end[t] <= self.latency)
        for queue in window.idle:
            model.add_no_overlap([
                model.new_fixed_size_interval_var(begin, self.draft.ticks[k], "")
                for k, begin in self.begin.items() if self.draft.queue[k] == queue
            ])  # fmt: skip
        for k in window.free:
            model.add(self._end(k) + window.behind[self.draft.queue[k]] <= self.latency)
            (self._load if self.draft.load[k] else self._store)(k)
        for t in self.within:
            held = [beside[t] * self.draft.bytes[k] for k, beside in self.beside.items() if t in beside]
            model.add(sum(held) <= window.left[t])
        model.minimize(self.latency)

    def _end(self, k: int) -> cp_model.LinearExpr:
        return self.begin[k] + self.draft.ticks[k]

    def _beside(self, k: int) -> dict[int, cp_model.IntVar]:
        """By step of the window whether a transfer lies beside it."""
        load, fixed, ready = self.draft.load[k], self.draft.fixed[k], self.draft.ready[k]
        steps = [t for t in self.within if (ready <= t < fixed if load else t > fixed)]
        found = {t: self.model.new_bool_var("") for t in steps}
        for before, after in pairwise(steps):
            one, other = (before, after) if load else (after, before)
            self.model.add_implication(found[one], found[other])
        return found

    def _load(self, k: int) -> None:
        """Room, what is stored before it, and the step that reads it."""
        model, draft, begin, beside, due = self.model, self.draft, self.begin[k], self.beside[k], self.draft.fixed[k]
        first = max(draft.ready[k], self.window.first)
        if first in self.free:
            model.add(begin >= self.free[first])
        for t in range(first + 1, min(due, self.window.last - 1) + 1):
            model.add(begin >= self.free[t]).only_enforce_if(beside[t - 1].negated())
        for other in self.window.free if draft.ready[k] > 1 else ():
            stored = not draft.load[other] and draft.fixed[other] < draft.ready[k]
            if stored and draft.queue[other] == draft.queue[k]:
                model.add(begin >= self._end(other))
        if due < self.window.last:
            model.add(self._end(k) <= self.start[due])
        else:
            model.add(self._end(k) + self.window.tails.step[due] <= self.latency)
            model.add(beside[self.window.last - 1] == 1)

    def _store(self, k: int) -> None:
        """What it stores, and the step that waits for it."""
        model, draft, begin, released = self.model, self.draft, self.begin[k], self.draft.fixed[k]
        if released in self.start:
            model.add(begin >= self.start[released] + draft.steps[released - 1])
        for t, on_chip in self.beside[k].items():
            model.add(self._end(k) <= self.free[t]).only_enforce_if(on_chip.negated())
        model.add(self._end(k) + self.window.tails.room[self._behind(k)] <= self.latency)

    def _behind(self, k: int) -> int:
        """The limit of a store that lies beside the last step of the window."""
        return max(self.window.when[k], self.window.last)

    def read(self, solver: cp_model.CpSolver) -> tuple[Order, When]:
        """The whole order of a solution, with guards and limits by transfer."""
        when, draft, keys = self.window.when.copy(), self.draft, dict[int, tuple[int, int, int]]()
        for k, beside in self.beside.items():
            begin, there = solver.value(self.begin[k]), {t: solver.boolean_value(x) for t, x in beside.items()}
            if draft.load[k]:
                when[k] = min((t for t, on_chip in there.items() if on_chip), default=draft.fixed[k])
            else:
                when[k] = min((t for t, on_chip in there.items() if not on_chip), default=self._behind(k))
            event = 2 * when[k] + 1 if draft.load[k] else 2 * (draft.fixed[k] + 1)
            keys[k] = begin, begin + draft.ticks[k], event
        return self.window.changed(sorted(self.window.free, key=keys.__getitem__), when)

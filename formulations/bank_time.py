"""F6 banks, inside one stage, in time: all programs that no other beats in bytes, ticks and what the next stage waits.

Sets
    states s = (first, loaded, made), actions as in `formulations.banks`; labels of a state: what a path to it has cost
Given
    the task and its prices; cycles of every column; bytes of the weights of a group of filters (a sum: of a streamed
    column), of the first weights of the stage that follows; when the stage's own first weights arrive
Variables
    a path of actions from the first state to one with all columns processed
Objectives
    bytes; ticks until the stage ends; ticks that the next stage then waits for its first weights
Constraints
    (LOAD), (PROCESS) of `formulations.banks`
    (BUS)      requests are served in the order in which they are made; one made at t is on the bus from
               max(t + latency, end of the one before)
    (ORDER)    a unit (a group of filters in a process step; a sum: a column) begins when the one before ends; it then
               asks for the weights of the next unit: ahead of the loads that open the stage, unless the next unit is of
               another step or stage
    (WAIT)     a unit waits for its weights, a column for the tiles that its window needs
    (FREE)     in the last group of a step a tile's bank is free when the last column is done whose window begins in the
               tile; the i-th load after a step is asked for when the i-th bank that the step frees is free, or with the
               step's end
Optimal means
    All times are sums and maxima of times of the label before, so a label that is nowhere greater stays so: labels that
    another one of the same state dominates are dropped, the rest is the exact front.

Source: `heterogeneous_mapping_and_banks` 4.1.2.1 (Eq. 4.1, 4.2), 4.2.3, Appendix A.3.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

from formulations.bank_labels import Label, Labels, Timed, Timing, undominated
from formulations.banks import Action, Prices, Rest, Task, actions, best, policy
from hwmodels.bank_steps import State

__all__ = ["timed"]


class _Search(Labels):
    """The search through all labels of one stage."""

    known: list[Timed]
    rest: Rest

    def least(self, begun: State) -> Timed:
        """Times that no program undercuts: all tiles on chip, from the first one's arrival on, and one step."""
        stage = self.stage
        begin, end = State(0, stage.columns, 0), State(stage.columns, stage.columns, stage.results)
        label = self.begin(begin)
        if begun.loaded == 0:
            there = self.clock.served(0, label.bus, stage.tile * self.prices.column)
            label = replace(label, ready=(there,) * len(label.ready))
        return self.timed([self.process(label, begin, begin, Action("process", stage.tiles(begin)), end)])[0]

    def hopeless(self, label: Label, state: State) -> bool:
        """Whether a known program is nowhere greater than what the label can still become.

        What is left to compute, and what is left to come over the bus: columns, and the weights of the steps to come
        but the two groups that may be on their way.
        """
        left = self.rest(state)
        if left is None:
            return True
        ticks = self.timing.ticks
        rest = ticks[-1] - ticks[state.made]
        coming = left - 2 * self.timing.share if self.timing.anew else left
        worked = label.now + rest * self.timing.groups
        ends = max(worked, label.bus + coming * self.clock.dram.byte_ticks) + self.clock.fixed
        ready = max(ends, worked - rest + self.following)
        spent = label.bytes + left
        return any(k.bytes <= spent and k.ticks <= ends and k.ticks + k.wait <= ready for k in self.known)

    def run(self) -> list[Timed]:
        begun = self.task.begin()
        if begun is None:
            return []
        first, self.rest = best(self.task, self.prices), Rest(self.task, self.prices)
        tried = [first, *(policy(self.task, most=most) for most in range(1, self.task.banks + 1))]
        self.known = undominated([self.along(begun, one) for one in dict.fromkeys(tried) if one is not None])
        if len(self.known) == 1:
            only, alone = self.known[0], self.least(begun)
            if only.ticks == alone.ticks and only.wait == alone.wait:
                return self.known  # as few bytes as there can be, and nothing to wait for that could be spared
        labels: dict[State, list[Label]] = {begun: [self.begin(begun)]}
        heap = [_order(begun)]
        ends: list[Label] = []
        while heap:
            state = _state(heapq.heappop(heap))
            if state.first == self.stage.columns:
                ends.extend(labels.pop(state))
                continue
            steps = list(actions(self.task, state))
            for label in labels.pop(state):
                if self.hopeless(label, state):
                    continue
                for action, after in steps:
                    new = self.follow(label, begun, state, action, after)
                    if after not in labels:
                        heapq.heappush(heap, _order(after))
                    known = labels.setdefault(after, [])
                    if not any(other.dominates(new) for other in known):
                        labels[after] = [other for other in known if not new.dominates(other)] + [new]
        return undominated([*self.known, *self.timed(ends)])


def _order(state: State) -> tuple[int, int, int, bool]:
    """No action leads to an earlier one."""
    return state.first, state.made, state.loaded, state.again


def _state(order: tuple[int, int, int, bool]) -> State:
    return State(order[0], order[2], order[1], order[3])


def timed(task: Task, prices: Prices, timing: Timing, wait: int = 0) -> list[Timed]:
    """Return all programs that no other beats, by bytes.

    Parameters
    ----------
    wait : int
        Ticks until the first weights are there, and the bus is free.
    """
    return _Search(task, prices, timing, wait).run()

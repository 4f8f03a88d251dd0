"""Banks as a graph: all states of a network, the ways between them, and the fewest bytes to the end.

Sets
    states of `formulations.banks.network`, numbered so that every way leads to a higher number; arcs: pairs of states
    that a stage joins
Given
    bytes[a] for every arc: the fewest of the programs on it
Variables
    for every state the fewest bytes to the end
Optimal means
    Shortest paths in an acyclic graph.

Source: shortest paths over the states of `formulations.banks.network`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from formulations.banks.network import BankPlan, State, Visit, Walk
from formulations.banks.tasks import Program, Task
from formulations.clock import ENDLESS, Clock
from formulations.rows import Rows, flow
from instances.errors import InputError

#: More than any cost.
NEVER = 2**200


class Graph:
    """All states and arcs; raises TimeUp.

    Attributes
    ----------
    number : dict
        Of every state.
    arcs : list of lists
        By state the states that follow it, each with the fewest bytes on the way.
    bytes : list of int
        By state the fewest bytes to the end; `NEVER` where there is no way.
    """

    def __init__(self, walk: Walk, limit: Clock = ENDLESS) -> None:
        self.walk, self.limit = walk, limit
        self.arcs: list[list[tuple[int, int]]] = []
        self.number: dict[State, int] = {State(): 0}
        self._known: dict[object, list[int]] = {}
        self._explore()
        self.bytes = self._least()

    def _least(self) -> list[int]:
        found = [NEVER] * len(self.number)
        for state, at in reversed(self.number.items()):
            if state.done == self.walk.all:
                found[at] = 0
            else:
                found[at] = min((NEVER, *(found[onward] + size for onward, size in self.arcs[at])))
        return found

    def stuck(self) -> InputError:
        """What there is to say if there is no way to the end: the stage that none gets past."""
        furthest = max((s for s in self.number if s.done != self.walk.all), key=lambda s: s.done.bit_count())
        stage, banks = self.walk.stages[self.walk.next(furthest)[0]].name, self.walk.banks
        size = f"{banks.count} banks of {banks.bank_bytes} bytes"
        return InputError(f"network {self.walk.found.network}: stage {stage} has no program in {size}")

    def rows(self) -> Rows:
        """Return a path from the first state to an end as rows, a variable for every arc in order."""
        ends = {number for state, number in self.number.items() if state.done == self.walk.all}
        return flow(((at, onward, size) for at, arcs in enumerate(self.arcs) for onward, size in arcs), 0, ends)

    def chosen(self, value: Callable[[int], bool]) -> BankPlan:
        """Return the plan of a solution of `rows`."""
        arcs = ((at, onward) for at, ways in enumerate(self.arcs) for onward, _ in ways)
        return self.follow({at: onward for number, (at, onward) in enumerate(arcs) if value(number)})

    def follow(self, chosen: Mapping[int, int]) -> BankPlan:
        """The plan with the fewest bytes along some arcs from the first state on."""
        states, at = list(self.number), 0
        steps = []
        while at in chosen:
            onward = chosen[at]
            ways = [
                (visit, direction, task, program)
                for visit, direction, tasks in self.walk.visits(states[at])
                for task, program in tasks if visit.after(direction, task) == states[onward]
            ]  # fmt: skip
            visit, direction, task, program = min(ways, key=lambda way: way[0].bytes(way[2], way[3]))
            steps.append(self.walk.step(states[at], visit.at, visit.source, direction, task, program))
            at = onward
        return BankPlan(tuple(steps))

    def _explore(self) -> None:
        layer = [State()]
        while layer:
            following: list[State] = []
            for state in layer:
                self.limit.tick()
                ways: dict[int, int] = {}
                for visit, direction, tasks in self.walk.visits(state):
                    for (task, _), size in zip(tasks, self._sizes(visit, tasks), strict=True):
                        after = visit.after(direction, task)
                        onward = self.number.get(after)
                        if onward is None:
                            self.number[after] = onward = len(self.number)
                            following.append(after)
                        ways[onward] = min(size, ways.get(onward, size))
                self.arcs.append(list(ways.items()))
            layer = following

    def _sizes(self, visit: Visit, tasks: list[tuple[Task, Program]]) -> list[int]:
        """What the programs of a visit move; alike visits share it."""
        key = id(tasks), visit.alike  # the tasks live as long as the walk
        if key not in self._known:
            self._known[key] = [visit.bytes(task, program) for task, program in tasks]
        return self._known[key]


def optimum(walk: Walk) -> BankPlan:
    """Return a plan with the fewest bytes, whatever its time; raises InputError if a stage has no program."""
    graph = Graph(walk)
    least, at = graph.bytes, 0
    if least[0] == NEVER:
        raise graph.stuck()
    chosen: dict[int, int] = {}
    while graph.arcs[at]:
        chosen[at] = next(on for on, size in graph.arcs[at] if size + least[on] == least[at])
        at = chosen[at]
    return graph.follow(chosen)

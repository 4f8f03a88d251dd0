"""Give the banks of a plan numbers: which bank holds which tile, stage by stage; and read a plan out of a program.

A load takes the bank that the process step before it freed first; without one, the bank that has been free longest, as
a tile of a result does when its first column is made, an average once all tiles are processed. The first tiles of a map
stay where they are. The counts of `formulations.banks.stage` see to it that there is always one.

`keep`, `last`, `retain` of a run (`hwmodels.schedule.StageRun`) are `goal.keep`, `goal.mirrored`, `retain` of a task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from formulations.banks.network import BankPlan, State, Step, Walk
from formulations.banks.tasks import Action, Task, followed, told_apart
from hwmodels.banks.steps import PassState
from hwmodels.schedule import StageRun, Tile
from instances.errors import InputError
from instances.machine.machine import Banks


class _Numbers:
    def __init__(self, plan: BankPlan, banks: Banks) -> None:
        self.free = list(range(banks.count))
        #: The tiles on chip of every map, in the order in which they are read.
        self.held: dict[str, list[Tile]] = {}
        self.runs = [self._stage(step) for step in plan.steps]

    def _stage(self, step: Step) -> StageRun:
        task, state = step.task, step.task.begin()
        assert state is not None
        columns = task.stage.columns + task.stage.beyond
        there = self.held.pop(step.source, [])
        tiles, waiting = list(there), list(there)
        results: list[Tile] = []
        kept: list[Tile] = []
        freed: list[int] = []
        for action in told_apart(step.program.actions):
            if action.name == "load":
                after = task.load(state)
                assert after is not None
                bank = freed.pop(0) if freed else self.free[0]
                self.free.remove(bank)
                tiles.append(self._tile(bank, state.loaded, after.loaded, columns, step, loaded=True))
                waiting.append(tiles[-1])
            else:
                after = task.process(state, action.tiles)
                assert after is not None
                results += self._results(step, len(results), after)
                done, waiting = waiting[: action.tiles], waiting[action.tiles :]
                stay = max(0, task.retain - len(kept))
                kept += done[:stay]
                freed = [tile.bank for tile in done[stay:]]
                self.free += freed
            state = after
        if task.goal.average and task.goal.keep:
            results = [self._tile(self.free.pop(0), 0, 1, 1, step, loaded=False)]
        target = step.stage.target
        if results:
            self.held[target] = results[::-1] if task.goal.mirrored else results
        if kept:
            self.held[step.source] = [replace(tile, loaded=False) for tile in kept]
        for name in [*self.held]:
            if step.after.of(name) is None:
                self.free += [tile.bank for tile in self.held.pop(name)]
        return StageRun(
            step.stage.name, step.source, bool(step.direction), task.goal.keep, task.goal.mirrored, task.retain,
            tuple((action.name, action.tiles) for action in step.program.actions), tuple(tiles),
            tuple(self.held.get(target, ())),
        )  # fmt: skip

    def _results(self, step: Step, known: int, after: PassState) -> list[Tile]:
        """The tiles of the result that a process step begins, in the order in which they are made."""
        goal, made = step.task.goal, []
        for number in range(known, goal.banks[after.made]):
            if goal.mirrored:  # counted from the last column on, the last tile made is the first one read
                at = goal.keep - 1 - number
                begin, end = max(0, goal.columns - (at + 1) * goal.tile), goal.columns - at * goal.tile
            else:
                begin, end = number * goal.tile, min(goal.columns, (number + 1) * goal.tile)
            made.append(self._tile(self.free.pop(0), begin, end, goal.columns, step, loaded=False))
        return made

    def _tile(self, bank: int, begin: int, end: int, columns: int, step: Step, *, loaded: bool) -> Tile:
        """A tile by the columns of the map; `begin` and `end` are in the order of the pass."""
        if step.direction:
            begin, end = columns - end, columns - begin
        return Tile(bank, begin, end, loaded)


def numbered(plan: BankPlan, banks: Banks) -> list[StageRun]:
    """Return the stages of a plan with the bank of every tile."""
    return _Numbers(plan, banks).runs


def plan_followed_by(walk: Walk, runs: Sequence[StageRun]) -> BankPlan:
    """Return the plan that a program follows, numbers of banks aside: the other way round.

    Raises InputError if there is no such stage, or the formulation has no such choice for it: it names the stage.
    """
    state, steps = State(), list[Step]()
    number = {stage.name: at for at, stage in enumerate(walk.stages)}
    for run in runs:
        if not run.tiles:
            raise InputError(f"stage {run.stage}: no tiles, the plan must say where the stage finds its map")
        at, direction = number[walk.found.named(run.stage).name], int(run.backwards)
        program, tasks = None, list[Task]()
        if walk.ready(state.done, at) and run.source in walk.sources(at):
            decided = run.keep, run.last, run.retain
            tasks = [
                task for way, task in walk.tasks_from(state, at, run.source)
                if way == direction and (task.goal.keep, task.goal.mirrored, task.retain) == decided
            ]  # fmt: skip
            program = followed(tasks[0], [Action(*action) for action in run.actions]) if tasks else None
        if program is None:
            raise InputError(f"stage {run.stage}: no choice of this problem is like that")
        steps.append(walk.step(state, at, run.source, direction, tasks[0], program))
        state = steps[-1].after
    if state.done != walk.all:
        raise InputError("not all stages are planned")
    return BankPlan(tuple(steps))

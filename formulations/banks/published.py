"""The policy MIN as its authors' compiler has it, stage by stage and path by path.

Paths
    Order, tiles of shared maps and of concatenations are decided first (`formulations.banks.published_paths`).
Stages
    Then every stage gets what stays of its result and its control steps (`banks.published_stage`), from the
    end of its map where tiles are on chip; a concatenation lies from its first column on. A map that only a global pool
    reads stays as far as it can: the compiler folds that pool into the stage before.

Where the compiler has no plan (several inputs or results, paths that cross) or gets stuck in a stage, all orders of
paths are tried as in `formulations.banks.policies`, and of every result at least one tile stays: the number with the
least weights and twice the spilled bytes.

Source: `heterogeneous_mapping_and_banks` 4.2.2, 4.2.4; what the paper leaves open: the public MIDAP simulator of
2020-09-02, whose compiler's byte counts these are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from formulations.banks.network import Walk
from formulations.banks.policies import Run, choice
from formulations.banks.published_paths import Paths, arranged
from formulations.banks.published_stage import Found, Given, planned
from formulations.banks.states import BankPlan, State, Step
from formulations.banks.tasks import Program, Task, followed
from formulations.clock import ENDLESS, Clock
from instances.errors import InputError


@dataclass
class _Published:
    """One pass over the network by the published rules."""

    walk: Walk
    paths: Paths
    flips: dict[str, int] = field(default_factory=dict)
    """Whether a map lies, and is read, from its last column on."""
    aside: dict[str, int] = field(default_factory=dict)
    """Tiles that stay of maps and that the compiler knows to be taken."""

    def run(self) -> BankPlan:
        """Plan all stages."""
        state, steps = State(), list[Step]()
        for at in self.paths.order:
            step = self._step(state, at)
            if step is None:
                name = self.walk.stages[at].name
                raise InputError(f"stage {name}: the policy gets stuck in {self.walk.banks.count} banks")
            steps.append(step)
            state = step.after
        return BankPlan(tuple(steps))

    def _step(self, state: State, at: int) -> Step | None:
        """One stage as published, or where that has no program as the compiler chooses among those that have one."""
        walk, stage = self.walk, self.walk.stages[at]
        source = self._source(state, at)
        ways, flip = walk.directions(state, at, source), self.flips.get(source, 0)
        direction = flip if flip in ways else ways[0]
        tasks = [one for one in walk.tasks_from(state, at, source) if one[1] == direction]
        found = self._found(state, at, source, direction)
        chosen = self._chosen(state, at, found, [task for _, _, task in tasks])
        if chosen is None:
            again = _choice(walk, [one for one in tasks if not one[2].retain], at)
            if again is None:
                return None
            chosen, found = again[2:], None
        task, program = chosen
        if stage.target == stage.name:
            decided = found is not None and not self._folded(at)
            self.flips[stage.target] = flip ^ int(found.mirrored if found and decided else task.goal.mirrored)
        self._set_aside(state, at, source, program)
        return walk.step(state, at, source, direction, task, program)

    def _source(self, state: State, at: int) -> str:
        """The operand that is read from the banks: of a sum the last result."""
        stage, last = self.walk.stages[at], self.walk.stages[state.last].target if state.last >= 0 else ""
        return self.paths.read.get(at) or (last if last in stage.streamed else stage.source)

    def _stay(self, at: int) -> int | None:
        """How many tiles of its map stay for other paths, if the stage begins one."""
        stay = self.paths.stay.get(at, -1)
        return None if stay < 0 else stay

    def _folded(self, at: int) -> bool:
        """Whether only a global pool reads the result."""
        readers = self.walk.readers[self.walk.stages[at].target]
        return readers.bit_count() == 1 and self.walk.stages[readers.bit_length() - 1].kind == "whole"

    def _found(self, state: State, at: int, source: str, direction: int) -> Found | None:
        """What the compiler plans."""
        walk, stage = self.walk, self.walk.stages[at]
        if stage.kind == "whole":
            return None
        resident, made = state.of(source), walk.found.maps[stage.target]
        on_chip, stay = resident.tiles if resident else 0, self._stay(at)
        joined = self.paths.joined.get(at)
        given = Given(
            walk.passed(at, source, direction, max(on_chip, stay or 0)), made.columns, walk.tile[stage.target],
            walk.banks.count, walk.banks.count - sum(one.tiles for one in state.residents) - self._begins(state, at),
            sum(self.aside.values()), on_chip, walk.tiles(source), stay,
            fixed=joined is not None or walk.result(stage.target) or self._folded(at),
            mirrored=joined is not None and bool(self.flips.get(source, 0)),
        )  # fmt: skip
        step = stage.weight_bytes if walk.anew[at] else 0
        tries = stage.kind in ("conv", "patches", "depthwise")
        return planned(given, tries=tries, step=step, column=made.rows * made.channels)

    def _begins(self, state: State, at: int) -> int:
        """Banks that are set aside for a concatenation with its first part."""
        return self.paths.joined.get(at, 0) if self.walk.first(state, self.walk.stages[at].target) else 0

    def _chosen(self, state: State, at: int, found: Found | None, tasks: list[Task]) -> tuple[Task, Program] | None:
        """The task that leaves what is planned, with the program that has these control steps."""
        if found is None:
            return None
        walk, stage, stay = self.walk, self.walk.stages[at], self._stay(at) or 0
        tiles = walk.tiles(stage.target)
        keep, mirrored = found.keep, found.mirrored
        if at in self.paths.joined:
            keep = self._begins(state, at)
        folded = self._folded(at)
        for task in sorted(tasks, key=lambda task: -task.goal.keep):
            alike = task.goal.keep == keep and (not keep or tiles == 1 or task.goal.mirrored == mirrored)
            if (alike or folded) and task.retain == min(stay, task.stage.all_tiles):
                program = followed(task, found.actions)
                if program is not None:
                    return task, program
        return None

    def _set_aside(self, state: State, at: int, source: str, program: Program) -> None:
        """What the compiler knows to be taken afterwards: a path that begins knows of its own map alone."""
        stage, stay, begins = self.walk.stages[at], self._stay(at), self._begins(state, at)
        if stay is not None and state.of(source):
            self.aside = {}
        if begins:
            self.aside[stage.target] = begins
        if stay is not None:
            if any(action.name == "load" for action in program.actions):
                self.aside = {}
            self.aside[source] = min(stay, self.walk.tiles(source))
        if not stay:
            self.aside.pop(source, None)


def _choice(walk: Walk, tasks: list[tuple[str, int, Task]], at: int) -> tuple[str, int, Task, Program] | None:
    """Of the tasks that keep a tile, or of all if these have no program, the one with the fewest bytes."""
    most_first = sorted(tasks, key=lambda one: -one[2].goal.keep)
    stored = [one for one in most_first if one[2].goal.mirrored == (0 < one[2].goal.keep < one[2].goal.tiles)]
    return choice(walk, [one for one in stored if one[2].goal.keep], at) or choice(walk, stored, at)


def published(walk: Walk, limit: Clock = ENDLESS) -> BankPlan:
    """Return the plan of the policy MIN as published.

    Raises
    ------
    InputError
        If the policy gets stuck: some stage finds too few banks.
    """
    paths = arranged(walk)
    if paths is not None:
        try:
            return _Published(walk, paths).run()
        except InputError:
            pass  # in some other order there may be banks
    return Run(walk, lambda _, tasks, at: _choice(walk, tasks, at), "greedy", limit=limit).run()

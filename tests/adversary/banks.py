"""Brute force for banks: every order of stages, every way to keep tiles, every sequence of actions.

A schedule is followed stage by stage by the referee (`hwmodels.banks.replay.referee.Chip`): an action that it finds
fault with is not taken, a stage ends where it has none left. Bytes and ticks only grow along the way, so that a way is
left once it moves no less than a schedule that is known; what is left is whether any schedule is better, and the
claimed one is replayed as every plan is. In bytes, ways that leave the same on chip and in DRAM go on once.
The whole tree is walked in random order up to `_NODES` actions, `_ROUNDS` of them a column, beyond that (EQUAL) holds
one way only.

Given by the problem, not by the referee: (ORDER) of stages that read the last result one is next, if there is any;
(CONCAT) which tiles stay of a map is decided with its first part; (END) tiles on chip are read from the end from which
they were counted. The referee would let a map that is on chip whole be read from its other end, in tiles that begin
with the smaller one: docs/banks.md names that under "Not decided yet", and it is sometimes better.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Generic, TypeVar

from hwmodels.banks.replay.referee import Chip, Moved, replay_banks
from hwmodels.banks.replay.time import spent_on
from hwmodels.schedule import Action, StageRun
from instances.machine.machine import Machine
from instances.network.feature_maps import Stage, Stages
from solver.calls.solve import solve
from solver.plan.plan import Plan
from tests.adversary.banks_cases import Case
from tests.adversary.cases import LIMIT_S, BruteForce, Known
from tests.adversary.claims import Claim

__all__ = ["OPEN", "TESTER", "Actions", "Case", "Programs", "copied"]

#: Actions that are tried for a case; for a column of a stage (more of them load the same columns again and again).
_NODES, _ROUNDS = 700, 4
#: Faults that more actions may mend.
OPEN = ("columns are made", "tiles are never processed", "are never loaded", "tiles stay")
Actions = tuple[Action, ...]
C = TypeVar("C", bound=Case)


# ---- brute force -----------------------------------------------------------------------------------------------------


class Programs:
    """All schedules of stages in banks that are better than one that is known.

    Attributes
    ----------
    least : int or None
        The best that is known, of whatever schedule.
    runs : tuple of StageRun
        The best schedule found here, empty if none is better.
    left : int
        Actions that may still be tried; if it ends at 0 the search is not complete.
    """

    def __init__(self, found: Stages, machine: Machine, objective: str, known: int | None, rng: random.Random) -> None:
        assert machine.banks is not None
        self.found, self.machine, self.banks, self.rng = found, machine, machine.banks, rng
        self.time, self.least, self.left = objective == "time", known, _NODES
        self.runs: tuple[StageRun, ...] = ()
        self.seen: dict[object, int] = {}
        #: What stages that have not run move at least: weights and biases.
        self.rest = {s.name: s.weight_bytes + s.bias_bytes for s in found.stages}

    def search(self) -> bool:
        """Look for a better schedule; whether all were looked at."""
        self._onward(Chip(self.found, self.banks), (), "")
        return self.left > 0

    def _worse(self, chip: Chip, runs: tuple[StageRun, ...]) -> bool:
        """Whether what is done so far moves, or takes, no less than the best schedule."""
        if self.least is None:
            return False
        if self.time:
            return self._ticks(runs, writing=False) >= self.least
        rest = sum(size for name, size in self.rest.items() if name not in chip.done)
        return chip.moved.total + rest >= self.least

    def _ticks(self, runs: tuple[StageRun, ...], *, writing: bool) -> int:
        moved = replay_banks(self.found, self.banks, runs)
        if not moved.units:
            return 0
        spent = spent_on(self.banks, moved, self.machine.transfer, self.machine.compute.cycle_ticks, writing=writing)
        return sum(one.ticks for one in spent.values())

    def _onward(self, chip: Chip, runs: tuple[StageRun, ...], last: str) -> None:
        if len(chip.done) == len(self.found.stages):
            value = self._ticks(runs, writing=self.banks.writes == "bus") if self.time else chip.moved.total
            if self.least is None or value < self.least:
                self.least, self.runs = value, runs
            return
        if not self.time:
            key = self._key(chip, last)
            if self.seen.get(key, chip.moved.total + 1) <= chip.moved.total:
                return
            self.seen[key] = chip.moved.total
        ends = self._ends(runs)
        options = [one for one in self._options(chip, last) if self._in_order(chip, one, ends)]
        self.rng.shuffle(options)
        for one in options:
            self._stage(chip, runs, one, ())

    def _key(self, chip: Chip, last: str) -> object:
        banks = sorted((bank.map, tuple(bank.columns)) for bank in chip.banks)
        dram = sorted((part, tuple(sorted(columns))) for part, columns in chip.dram.items() if columns)
        return frozenset(chip.done), tuple(banks), tuple(dram), last

    def _options(self, chip: Chip, last: str) -> Iterator[StageRun]:
        """The stages that may be next, with all that is decided beside actions."""
        made = {name: [s.name for s in self.found.stages if s.target == name] for name in self.found.maps}
        ready = [
            s for s in self.found.stages if s.name not in chip.done
            and all(part in chip.done for name in (s.source, *s.streamed) for part in made[name])
        ]  # fmt: skip
        target = next((s.target for s in self.found.stages if s.name == last), "")
        for stage in [s for s in ready if target in (s.source, *s.streamed)] or ready:
            begun = any(part in chip.done for part in made[stage.target])
            yield from self._ways(chip, stage, begun=begun)

    def _ways(self, chip: Chip, stage: Stage, *, begun: bool) -> Iterator[StageRun]:
        tiles = {name: -(-m.columns // m.tile(self.banks)) for name, m in self.found.maps.items()}
        readers = {
            name: [s.name for s in self.found.stages if name in (s.source, *s.streamed)] for name in self.found.maps
        }
        keeps = range(min(tiles[stage.target], self.banks.count) + 1 if readers[stage.target] and not begun else 1)
        for source in dict.fromkeys((stage.source, *stage.streamed)):
            awaited = any(one not in chip.done and one != stage.name for one in readers[source])
            awaited = awaited and self._may_stay(chip, stage, source)
            retains = range(min(tiles[source], self.banks.count) + 1 if awaited else 1)
            for keep, retain, backwards in product(keeps, retains, (False, True)):
                if keep and not self._may_stay(chip, stage, stage.target):
                    continue
                for end in (False, True) if keep > 0 and tiles[stage.target] > 1 else (False,):
                    yield StageRun(stage.name, source, backwards, keep, end, retain, ())

    def _may_stay(self, chip: Chip, stage: Stage, name: str) -> bool:
        """Whether a map may be on chip after a stage: none waits for a sum, where operands are streamed."""
        if self.banks.residuals == "chip":
            return True
        done = chip.done | {stage.name}
        left = [one for one in self.found.stages if one.name not in done]
        if any(one.source == name and one.kind != "sum" for one in left):
            return True
        if name != stage.target or sum(one.target == name for one in self.found.stages) > 1:
            return False
        missing = {one.target for one in left}
        sums = [one for one in left if name in (one.source, *one.streamed)]
        return any(not missing & {one.source, *one.streamed} for one in sums)

    def _in_order(self, chip: Chip, option: StageRun, ends: Mapping[str, bool]) -> bool:
        """(END); a map of a single tile has no end."""
        source = self.found.maps[option.source]
        there = chip.on_chip(option.source)
        return not there or source.columns <= source.tile(self.banks) or ends[option.source] == option.backwards

    def _ends(self, runs: tuple[StageRun, ...]) -> dict[str, bool]:
        """By map whether its tiles were counted from its last column on."""
        found: dict[str, bool] = {}
        for run in runs:
            if run.keep:
                found[self.found.named(run.stage).target] = run.backwards != run.last
            if run.retain:
                found[run.source] = run.backwards
        return found

    def _stage(self, chip: Chip, runs: tuple[StageRun, ...], option: StageRun, actions: Actions) -> None:
        """All sequences of actions that begin with some, and what follows."""
        if len(actions) >= _ROUNDS * self.found.maps[option.source].columns:
            return
        steps: list[Action] = [("load", 1), *(("process", n) for n in range(1, self.banks.count + 1))]
        for action in steps:
            if self.left <= 0:
                return
            self.left -= 1
            run = replace(option, actions=(*actions, action))
            after = copied(chip)
            before = after.moved.total
            after.run(run)
            faults = [fault for fault in after.moved.faults if not any(text in fault for text in OPEN)]
            if faults or self._worse(after, (*runs, run)) or after.moved.total < before:
                continue
            if after.moved.faults:
                self._stage(chip, runs, option, run.actions)
            else:
                self._onward(after, (*runs, run), option.stage)


def copied(chip: Chip) -> Chip:
    """Return the same chip, with its counts and no faults."""
    load, weight, streamed, bias, write = chip.moved.parts
    moved = Moved(load, weight, streamed, bias, write, units=list(chip.moved.units), loads=list(chip.moved.loads))
    made = Chip(chip.found, chip.size, moved, [], set(chip.done), chip.last)
    made.banks = [replace(bank, columns=list(bank.columns)) for bank in chip.banks]
    made.dram = {part: set(columns) for part, columns in chip.dram.items()}
    return made


# ---- what engines claim ----------------------------------------------------------------------------------------------


def undercut(case: Case, plan: Plan) -> tuple[str, ...]:
    """What a plan moves, or says that must move, and is less than what is read and made; what must is no more."""
    least, said = case.least_bytes, plan.part.must["bytes"]
    moved = said if plan.measures is None else plan.measures["bytes"]
    faults = [f"{number} bytes, what is read and made are {least}" for number in (said, moved) if number < least]
    return (*faults, *([f"{said} bytes must move, it moves {moved}"] if said > moved else []))


class InBanks(BruteForce[C], Generic[C]):
    """The adversary of a problem whose plans lie in banks."""

    @abstractmethod
    def least(self, case: C, found: Stages, known: int | None) -> tuple[int | None, bool]:
        """Return the least of a reading's schedules, or `known` if none is less; and whether all were looked at."""

    def claim(self, case: C, engine: str) -> Claim:
        """Its plan has been replayed, and computes what it has to."""
        limit = None if engine == "dynamic" else LIMIT_S
        plan = solve(case.made, case.machine, problem=self.name, engine=engine, objective=case.objective,
            time_limit_s=limit,
        )  # fmt: skip
        value = None if plan.objective is None else plan.objective.value
        bound = plan.bound if plan.status != "NO_SOLUTION_FOUND" else None
        return Claim(engine, plan.status, value, bound, undercut(case, plan))

    def known(self, case: C, claims: Sequence[Claim]) -> Known:
        """The least once all schedules, or some, were looked at; and whether all were."""
        known = min((one.value for one in claims if one.value is not None), default=None)
        complete = True
        for found in case.stages:
            known, whole = self.least(case, found, known)
            complete &= whole
        return Known(known, complete)


class _Banks(InBanks[Case]):
    name = "banks"
    kind = Case

    def least(self, case: Case, found: Stages, known: int | None) -> tuple[int | None, bool]:
        """All programs of a network whose columns fit a bank."""
        if any(one.column_bytes > case.banks[1] for one in found.maps.values()):
            return known, True
        search = Programs(found, case.machine, case.objective, known, random.Random(0))
        whole = search.search()
        return search.least, whole


TESTER = _Banks()

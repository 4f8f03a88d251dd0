"""The policy MIN as its authors' compiler has it: at least one tile of a result stays, and its rules for paths.

Three paths of two convolutions each read a map of six tiles, five banks. All results but the last ones fit in four
banks, so no path costs more than another and all are as long: they run in the order second, third, first. While a path
runs, as many tiles of the map stay for the others as its estimate of DRAM traffic likes best.

One stage
    Of the result the number of tiles n >= 1 stays with the least weights and twice the spilled bytes; of equal ones the
    most. If no n >= 1 has a program, none stays. A map of a single tile is read from the end where its producer would
    have gone on: mirrored results turn the direction.
Order of paths
    By ``100 * sum(max(0, tiles(v) - (B - 1))) + length``, the sum over the stages v of a path but its last one; of
    equal paths the first one of the network is the last one.
Tiles of the shared map, path by path but the last
    The r in 1 .. min(tiles, B - 1), of equal ones the largest, with the least estimate: what has to be loaded again of
    the map, and for every stage of the path its weights and twice what does not stay of its result (`_estimate`).
Tiles of a concatenation
    ``min(tiles, B - 1 - most)``, none if that is negative, with `most` the most banks that shared tiles and results
    inside the paths take.

Forks inside forks are planned as `formulations.bank_policies` plans them: all orders.

Source: `heterogeneous_mapping_and_banks` 4.2.2, 4.2.4; what the paper leaves open: the public MIDAP simulator of
2020-09-02, whose compiler's byte counts these are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from formulations.bank_network import Walk
from formulations.bank_policies import Run, choice
from formulations.bank_states import BankPlan, State, Step
from formulations.bank_tasks import Program, Task
from instances.feature_maps import Stages
from instances.machine import Banks

__all__ = ["published"]


@dataclass
class _Published(Run):
    """One pass over the network by the published rules."""

    #: Whether a map is read from its last column on.
    flips: dict[str, int] = field(default_factory=dict)

    def choose_one(
        self, _: State, tasks: list[tuple[str, int, Task]], at: int
    ) -> tuple[str, int, Task, Program] | None:
        """One stage: at least one tile stays, if there is a way."""
        if len({direction for _, direction, _ in tasks}) > 1:
            tasks = [one for one in tasks if one[1] == self.flips.get(one[0], 0)]
        most_first = sorted(tasks, key=lambda one: -one[2].goal.keep)
        keeping = [one for one in most_first if one[2].goal.keep]
        found = choice(self.walk, keeping, at) or choice(self.walk, most_first, at)
        if found is not None:
            self.flips[self.walk.stages[at].target] = found[1] ^ int(found[2].goal.mirrored)
        return found

    # ---- forks -------------------------------------------------------------------------------------------------

    def _fork(self, state: State, heads: tuple[int, ...], *, inside: bool) -> list[Step] | None:
        """All paths, by the published rules."""
        region = self.walk.between(heads)
        paths = self._paths(heads, region)
        if paths is None or inside:
            return super()._fork(state, heads, inside=inside)
        banks = self.walk.banks.count
        over = [sum(max(0, self._tiles(at) - (banks - 1)) for at in path[:-1]) for path in paths]
        ranked = sorted([*range(1, len(paths)), 0], key=lambda n: 100 * over[n] + len(paths[n]))
        order = [paths[n] for n in ranked]
        stay = self._shared(order)
        targets = {self.walk.stages[at].target for at in region}
        whole = [name for name in sorted(targets) if len(self.walk.makers[name]) > 1 and name not in self.joined]
        inner = [r + self._tiles(at) for r, path in zip((*stay, 0), order, strict=True) for at in path[:-1]]
        free = max(0, banks - 1 - max([*stay, *inner]))
        self.joined |= {name: min(self.walk.tiles(name), free) for name in whole}
        steps = self._all(state, tuple(path[0] for path in order), stay, region)
        for name in whole:
            del self.joined[name]
        return steps

    def _paths(self, heads: tuple[int, ...], region: frozenset[int]) -> list[list[int]] | None:
        """The stages of every path, up to where they meet; None if one forks."""
        walk, paths = self.walk, []
        for head in heads:
            path = [head]
            while len(walk.makers[walk.stages[path[-1]].target]) == 1:
                target = walk.stages[path[-1]].target
                onward = [at for at in sorted(region) if target in walk.sources(at)]
                if len(onward) > 1:
                    return None
                if not onward:
                    break
                path += onward
            paths.append(path)
        return paths

    def _tiles(self, at: int) -> int:
        return self.walk.tiles(self.walk.stages[at].target)

    def _shared(self, order: list[list[int]]) -> tuple[int, ...]:
        """How many tiles of the shared map stay during each path but the last."""
        walk, banks = self.walk, self.walk.banks.count
        shared = walk.stages[order[0][0]].source
        tiles, source = walk.tiles(shared), walk.found.maps[shared]
        last = source.columns - (tiles - 1) * walk.tile[shared]
        chosen: list[int] = []
        there = min(banks - 1, tiles)
        for path in order[:-1]:
            costs = {}
            for stay in range(min(tiles, banks - 1), 0, -1):
                gone = tiles - stay
                columns = max(gone - 1, 0) * walk.tile[shared] + (last if gone else 0)
                free = banks - stay - (1 if tiles > there else 0)
                costs[stay] = columns * source.column_bytes + self._estimate(path, stay, free, tiles)
            there = min(costs, key=lambda stay: costs[stay])
            chosen.append(there)
        return tuple(chosen)

    def _estimate(self, path: list[int], stay: int, free: int, tiles: int) -> int:
        """Bytes that a path moves, if so many banks are free: weights, and twice what does not stay of its results."""
        walk, total = self.walk, 0
        for at in path:
            stage = walk.stages[at]
            made = walk.found.maps[stage.target]
            if at != path[-1]:
                total += 2 * max(0, made.columns - free * walk.tile[stage.target]) * made.column_bytes
            times = -(-(tiles - (stay if at == path[0] else 0)) // (free + 1)) if walk.anew[at] else 1
            total += times * stage.weight_bytes
            tiles = self._tiles(at)
        return total


def published(found: Stages, banks: Banks) -> BankPlan:
    """Return the plan of the policy MIN as published.

    Raises
    ------
    InputError
        If the policy gets stuck: some stage finds too few banks.
    """
    walk = Walk(found, banks)
    run = _Published(walk, lambda *_: None, "greedy")
    run.choose = run.choose_one
    return run.run()

"""The policy MIN as its authors' compiler has it, stage by stage and path by path.

Paths
    Order, tiles of shared maps and of concatenations are decided first (`Paths`, below).
Stages
    Then every stage gets what stays of its result and its control steps (`formulations.banks.published_stage`), from
    the end of its map where tiles are on chip; a concatenation lies from its first column on. A map that only a global
    pool reads stays as far as it can: the compiler folds that pool into the stage before.

Where the compiler has no plan (several inputs or results, paths that cross) or gets stuck in a stage, all orders of
paths are tried as in `formulations.banks.policies`, and of every result at least one tile stays: the number with the
least weights and twice the spilled bytes.

Source: `heterogeneous_mapping_and_banks` 4.2.2, 4.2.4; what the paper leaves open: the public MIDAP simulator of
2020-09-02, whose compiler's byte counts these are.

**Paths**: how the compiler plans their order, and what stays of shared maps and concatenations, by estimates.

Forks
    Paths lead from a map that several stages read to the first map in which some of them meet; these are a fork, and
    from there on they are one path. A fork that begins inside a path is one item of that path, with the map in which
    it ends if the path goes on behind it. The paths that meet are taken in the order of the network, but the first one
    is the last one.
Order
    By ``100 * sum(over(v)) + length`` over the items v of a path but its last one: of a map the tiles beyond B - 1, of
    a fork its estimate; equal paths stay as they are. B: banks that the fork may use.
Tiles r of the shared map that stay, path by path but the last
    The r in 1 .. min(tiles, B - 1), of equal ones the largest, with the least estimate of the bytes that the path
    moves::

        again(r) + sum over stages (weights * times + 2 * max(0, result - free * tile))     free = B - r - (1: loads)
        again(r) = max(0, tiles - r - 1) * tile + rest, rest = columns mod tile  (0 if r = tiles)

    ``times = ceil((tiles read - r) / (free + 1))`` for weights that do not fit, r only for the first stage; a result
    counts unless it is the last one of its path; loads: fewer tiles than the map has are there, B - 1 at first and then
    what stayed for the path before. Of a fork inside, its dearest path counts, in the banks that are left to it; if the
    path begins with it, its last path keeps the r tiles.
Tiles of the map in which paths meet
    If it is a concatenation ``min(tiles, B - 1 - most)``, none if that is negative or a path is empty, with `most` the
    most banks that shared tiles and a result inside a path take; else none: of two operands of a sum the second one,
    which ends the first path, goes to DRAM.

The estimates of a fork inside another are made anew for every r of the path around it, and the last one stands. A fork
to which no r is left costs 2**63 - 1, and as sums are of 64 bits with a sign, an r that leads there is the cheapest.

Source: the public MIDAP simulator of 2020-09-02; `heterogeneous_mapping_and_banks` 4.2.4 leaves this open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from formulations.banks.network import BankPlan, State, Step, Walk
from formulations.banks.policies import Offer, Offers, Run, choice
from formulations.banks.published_stage import Found, Given, planned
from formulations.banks.tasks import Program, Task, followed
from formulations.clock import ENDLESS, Clock
from instances.errors import InputError

_NEVER = 2**63 - 1


@dataclass(frozen=True)
class Paths:
    """What is decided before any stage is."""

    order: tuple[int, ...]
    """The stages as they run."""
    stay: dict[int, int]
    """For stages that begin a path, how many tiles of the map that they read stay for other paths."""
    joined: dict[int, int]
    """For stages whose result is fixed, how many tiles of the map that they write stay."""
    read: dict[int, str]
    """For sums of two paths, the operand that is read from the banks."""


@dataclass(eq=False)
class _Fork:
    """Paths between two maps; an item is the name of a map or of a part of a concatenation, or a fork."""

    source: str
    sink: str
    paths: list[list[str | _Fork]]
    cost: int = 0
    #: Estimate of the dearest path, and most banks that are taken inside.
    dearest: int = 0
    most: int = 0


def _end(way: Sequence[str | _Fork]) -> str:
    """The map that a path ends in."""
    assert isinstance(way[-1], str)
    return way[-1]


class _UnplannedError(Exception):
    """The compiler has no plan for such a network."""


@dataclass
class _Arranger:
    """One network on its way to `Paths`."""

    walk: Walk
    stay: dict[str, int] = field(default_factory=dict)
    joined: dict[str, int] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    #: Sums and the operands that they stream.
    streams: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        walk = self.walk
        self.at = {stage.name: at for at, stage in enumerate(walk.stages)}
        self.parts = {name: [walk.stages[m].name for m in made] for name, made in walk.makers.items()}
        self.readers: dict[str, list[str]] = {name: [] for name in (*walk.found.maps, *self.at)}
        self.depth: dict[str, int] = {}
        for at, stage in enumerate(walk.stages):
            for name in dict.fromkeys(walk.sources(at)):
                self.readers[name].append(stage.name)
            if stage.target != stage.name:
                self.readers[stage.name].append(stage.target)
            self.depth[stage.name] = 1 + max(self._depth(name) for name in walk.sources(at))

    def _depth(self, name: str) -> int:
        """Stages before a map; a concatenation is one of its own."""
        if name not in self.depth:
            parts = self.parts[name]
            self.depth[name] = 1 + max(self.depth[part] for part in parts) if parts else 0
        return self.depth[name]

    # ---- forks -------------------------------------------------------------------------------------------------

    def trunk(self) -> list[str | _Fork]:
        """The whole network as one path."""
        inputs = [name for name, made in self.walk.makers.items() if not made]
        if len(inputs) != 1:
            raise _UnplannedError
        path: list[str | _Fork] = [inputs[0]]
        while self.readers[_end(path)]:
            path += self._onward(path)
        return path

    def _forked(self, source: str) -> list[str | _Fork]:
        """The path from a map that several stages read to the map in which all their paths meet."""
        ways: list[list[str | _Fork]] = [[source, name] for name in self.readers[source]]
        level = min(self._depth(_end(way)) for way in ways)
        while len(ways) > 1:
            for way in ways:
                if self._depth(_end(way)) == level:
                    way += self._onward(way)
            level += 1
            ways = self._met(ways, level)
        return ways[0]

    def _onward(self, way: list[str | _Fork]) -> list[str | _Fork]:
        onward = self.readers[_end(way)]
        if not onward:
            raise _UnplannedError
        return [*onward] if len(onward) == 1 else self._forked(_end(way))[1:]

    def _met(self, ways: list[list[str | _Fork]], level: int) -> list[list[str | _Fork]]:
        """The paths, those that end in the same map at this level as one."""
        ends: dict[str, list[list[str | _Fork]]] = {}
        for way in ways:
            if self._depth(_end(way)) < level:
                raise _UnplannedError
            if self._depth(_end(way)) == level:
                ends.setdefault(_end(way), []).append(way)
        for sink, together in reversed([one for one in ends.items() if len(one[1]) > 1]):
            source = _end(together[0][:1])
            fork = _Fork(source, sink, [way[1:-1] for way in (*together[1:], together[0])])
            self._settle(fork, self.walk.banks.count, 0)
            ways = [*(way for way in ways if not any(way is one for one in together)), [source, fork, sink]]
        return ways

    # ---- estimates ---------------------------------------------------------------------------------------------

    def _settle(self, fork: _Fork, banks: int, last: int) -> None:
        """Decide order and tiles of a fork in so many banks, `last` shared tiles staying with its last path."""
        fork.paths.sort(key=lambda path: 100 * sum(self._over(item, banks) for item in path[:-1]) + len(path))
        chosen, costs = self._shared(fork, banks, last)
        fork.cost, fork.dearest = _wrapped(sum(costs)), max(costs)
        most, innermost = 0, -1
        for number, (stay, path) in enumerate(zip(chosen, fork.paths, strict=True)):
            if path and isinstance(path[0], str):
                self.stay[path[0]] = stay
            most = max(most, stay)
            for item in path[:-1]:
                innermost = number
                most = max(most, stay + (item.most if isinstance(item, _Fork) else self.walk.tiles[item]))
        joined = self._meeting(fork, banks - 1 - most)
        fork.most = most + (joined if innermost else 0)

    def _over(self, item: str | _Fork, banks: int) -> int:
        return max(0, item.cost if isinstance(item, _Fork) else self.walk.tiles[item] - max(banks - 1, 0))

    def _meeting(self, fork: _Fork, free: int) -> int:
        """What stays of the map in which the paths meet."""
        sink = fork.sink
        if sink not in self.at:
            joined = min(self.walk.tiles[sink], max(0, free)) if all(fork.paths) else 0
            self.joined |= dict.fromkeys(self.parts[sink], joined)
            return joined
        ends = [path[-1] if path else fork.source for path in fork.paths]
        first, then = ends[0], ends[-1]
        if len(ends) == 2 and isinstance(first, str) and isinstance(then, str) and (sink, first) not in self.streams:
            self.streams.add((sink, first))
            self.read[sink] = then
        if fork.paths[0] and isinstance(first, str):
            self.joined[first] = 0
        return 0

    def _shared(self, fork: _Fork, banks: int, last: int) -> tuple[list[int], list[int]]:
        """How many tiles of the shared map stay during each path, and what the paths are estimated to move."""
        tiles, (full, rest) = self.walk.tiles[fork.source], self._sizes(fork.source)
        chosen, costs, there = list[int](), list[int](), min(self.walk.banks.count - 1, tiles)
        for path in fork.paths[:-1]:
            best, least = -1, _NEVER
            for stay in range(min(tiles, banks - 1), 0, -1):
                again = max(tiles - stay - 1, 0) * full + (rest if tiles > stay else 0)
                cost = _wrapped(again + self._estimate(fork, path, banks, stay, there))
                if cost < least:
                    best, least = stay, cost
            chosen.append(best)
            costs.append(least)
            there = best
        return [*chosen, last], [*costs, self._estimate(fork, fork.paths[-1], banks, last, there)]

    def _estimate(self, fork: _Fork, path: list[str | _Fork], banks: int, stay: int, there: int) -> int:
        """Bytes that a path moves beside those of the shared map."""
        walk, total, read = self.walk, 0, 0
        free = banks - stay - (1 if self.walk.tiles[fork.source] > there else 0)
        for number, item in enumerate(path):
            kept = 0 if number else stay
            if isinstance(item, _Fork):
                self._settle(item, banks - stay + kept, kept)
                total, read = total + item.dearest, self.walk.tiles[item.sink]
                continue
            read = read or self.walk.tiles[fork.source]
            if number < len(path) - 1:
                made = walk.found.maps[item]
                total += 2 * max(0, made.columns * made.column_bytes - free * self._sizes(item)[0])
            at = self.at.get(item)
            if at is not None:
                times = -(-(read - kept) // (free + 1)) if walk.anew[at] else 1
                total += times * walk.stages[at].weight_bytes
                read = self.walk.tiles[walk.stages[at].target]
            else:
                read = self.walk.tiles[item]
        return total

    def _sizes(self, name: str) -> tuple[int, int]:
        """Bytes of a whole tile, and of what whole tiles leave of a map."""
        made, tile = self.walk.found.maps[name], self.walk.tile[name]
        return tile * made.column_bytes, made.columns % tile * made.column_bytes

    def order(self, path: list[str | _Fork]) -> list[int]:
        """The stages of a path as they run."""
        found = list[int]()
        for item in path:
            if isinstance(item, _Fork):
                found += [at for one in item.paths for at in self.order(one)]
            elif item in self.at:
                found.append(self.at[item])
        return found


def _wrapped(number: int) -> int:
    """In 64 bits, as the compiler counts."""
    return (number - _NEVER - 1) % 2**64 - _NEVER - 1


def arranged(walk: Walk) -> Paths | None:
    """Return the order of all stages and what stays between paths, or None if the compiler has no plan."""
    arranger = _Arranger(walk)
    try:
        order = arranger.order(arranger.trunk())
    except _UnplannedError:
        return None
    if sorted(order) != list(range(len(walk.stages))):
        return None
    at = arranger.at
    return Paths(
        tuple(order),
        {at[name]: tiles for name, tiles in arranger.stay.items() if name in at},
        {at[name]: tiles for name, tiles in arranger.joined.items() if name in at},
        {at[name]: source for name, source in arranger.read.items()},
    )


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
        tasks = [task for way, task in walk.tasks_from(state, at, source) if way == direction]
        found = self._found(state, at, source, direction)
        chosen = self._chosen(state, at, found, tasks)
        if chosen is None:
            again = _choice(walk, [(direction, task) for task in tasks if not task.retain], at)
            if again is None:
                return None
            chosen, found = again[1:], None
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
            sum(self.aside.values()), on_chip, walk.tiles[source], stay,
            fixed=joined is not None or walk.found.lasting(stage.target) or self._folded(at),
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
        tiles = walk.tiles[stage.target]
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
            self.aside[source] = min(stay, self.walk.tiles[source])
        if not stay:
            self.aside.pop(source, None)


def _choice(walk: Walk, tasks: Offers, at: int) -> Offer | None:
    """Of the tasks that keep a tile, or of all if these have no program, the one with the fewest bytes."""
    most_first = sorted(tasks, key=lambda one: -one[1].goal.keep)
    stored = [one for one in most_first if one[1].goal.mirrored == (0 < one[1].goal.keep < one[1].goal.tiles)]
    return choice(walk, [one for one in stored if one[1].goal.keep], at) or choice(walk, stored, at)


def published(walk: Walk, limit: Clock = ENDLESS) -> BankPlan:
    """Return the plan of the policy MIN as published; raises InputError if it gets stuck."""
    paths = arranged(walk)
    if paths is not None:
        try:
            return _Published(walk, paths).run()
        except InputError:
            pass  # in some other order there may be banks
    return Run(walk, lambda _, at, __, tasks: _choice(walk, tasks, at), "greedy", limit=limit).run()

"""The points of a sweep, and the tasks that answer them: equal questions are one task.

A point is (network or layer, machine with values of fields, problem, objectives, engine, pins). A problem that plans
layers by themselves has a point for every distinct layer of a network, with the number of its repeats; others have one
for the network. The digest of a task leaves out what no answer depends on: names of layers, descriptions and sources
of machines. So equal layers of different networks are solved once.

The order of points is that of the file: grids, networks, machines, fields (the last one runs fastest), problems,
objectives, engines, pins, layers. It never depends on how the sweep is run.

A task is done by a worker process: plain data in, plain data out, whatever happens. How a task may end:

=================  ====================================================================================
OPTIMAL, ...       the status of its plan (also FEASIBLE, INFEASIBLE, NO_SOLUTION_FOUND)
BAD_INPUT          the combination means nothing: an engine of another problem, a pin that nobody knows
DEFECT             certile refused its own plan, or failed: please report it
WORKER_DIED        the process was killed, for want of memory say, and so was the one that tried again
TIME_OUT           the process did not end long after the time limit
=================  ====================================================================================

Tasks bypass the cache of proven plans: the file of the sweep is one.
"""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Final

from instances.errors import InfeasibleError, InputError, PlanMismatch
from instances.load import load_machine, parse_overrides
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.workload import Layer
from solver.ask.options import AUTO, parse_size, pick_layers, unknown
from solver.ask.sizes import Sizes
from solver.ask.watch import Watch
from solver.calls.cache import asked_of
from solver.calls.solve import ask
from solver.plan.plan import Plan, digest
from solver.problems.registry import PROBLEMS, problem_of
from solver.uses.sweep.spec import Grid, NetworkEntry, Spec

#: What layers are called while they are solved: their own names change nothing, and take its place where it is read.
LAYER = "<layer>"
_ALL = "all"
#: Machines that are kept while points are made.
_KEPT = 4096


@dataclass(frozen=True)
class Target:
    """A network, or one of its distinct layers with the number of its repeats."""

    network: str
    layer: str
    """Empty: the whole network."""
    repeats: int
    digest: str
    text: str = field(repr=False)
    """The layer or the network as JSON."""
    layers: tuple[str, ...] | None = None
    """Of a whole network only these."""


@dataclass(frozen=True)
class MachinePoint:
    """A machine with values of fields; `error` if there is no such machine."""

    machine: str
    settings: tuple[str, ...]
    digest: str
    text: str = field(repr=False)
    tick_ps: int = 1
    memory_bytes: int | None = None
    """All memories on the chip, of all cores; None where the machine names none."""
    error: str = ""


@dataclass(frozen=True)
class Asked:
    """What is asked about them; `problem` and `engine` resolved where they are known."""

    problem: str
    objectives: str
    engine: str
    pins: tuple[str, ...]
    time_limit_s: float | None
    all_kinds: bool


@dataclass(frozen=True)
class Point:
    """One row of a sweep, and the digest of the task that answers it; `error` if nothing can."""

    target: Target
    machine: MachinePoint
    asked: Asked
    digest: str
    error: str = ""

    @property
    def values(self) -> dict[str, str]:
        """What rules compare: by the names of `solver.uses.sweep.spec.NAMES`, and the fields that are set."""
        return {
            "network": self.target.network, "layer": self.target.layer, "machine": self.machine.machine,
            "problem": self.asked.problem, "objective": self.asked.objectives, "engine": self.asked.engine,
            "pins": " ".join(self.asked.pins) or "none", **dict(text.split("=", 1) for text in self.machine.settings),
        }  # fmt: skip


def machine_point(name: str, settings: tuple[str, ...]) -> tuple[MachinePoint, Machine | None]:
    """A machine as its answers depend on it."""
    try:
        made = load_machine(name, parse_overrides(settings))
    except InputError as error:
        short = os.path.basename(name).removesuffix(".json")
        return MachinePoint(short, settings, digest([name, settings]), "", error=str(error)), None
    data = made.model_dump(mode="json")
    text = json.dumps(data, separators=(",", ":"))
    bare = {k: v for k, v in data.items() if k not in ("description", "sources")}
    memory = sum(made.memories.values()) * made.tles * made.tlts or None
    return MachinePoint(made.name, settings, digest(bare), text, made.tick_ps, memory), made


def network_of(entry: NetworkEntry) -> Network:
    """Read a network; raises InputError."""
    loaded = Sizes.parse(entry.symbols, entry.shapes, entry.values).load(entry.network, entry.batch)
    return loaded if entry.size is None else loaded.with_size(*parse_size(entry.size))


class Expansion:
    """All points of a sweep, in order; may be iterated again.

    Raises InputError when it is made: one line with every name that is not known, with its path.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.grids = spec.all()
        self._network, self._machine = cache(network_of), lru_cache(_KEPT)(machine_point)
        self._whole, self._layers = cache(self._made_whole), cache(self._made_layers)
        faults = [fault for path, grid in self.grids for fault in self._faults(path, grid)]
        if faults:
            raise InputError(f"sweep: {'; '.join(faults)}")

    @cached_property
    def digest(self) -> str:
        """Of all points, in order."""
        return digest([(p.target.network, p.target.layer, p.machine.machine, p.digest) for p in self])

    def __iter__(self) -> Iterator[Point]:
        for _, grid in self.grids:
            yield from self._points(grid)

    def _points(self, grid: Grid) -> Iterator[Point]:
        fields = [[f"{name}={value}" for value in values] for name, values in grid.set.items()]
        for entry in grid.networks or ():
            for name, settings in product(grid.machines or (), product(*fields)):
                machine, made = self._machine(name, settings)
                for asked in product(
                    grid.problems or (None,), grid.objectives or (None,), grid.engines or (AUTO,), grid.pins or ((),)
                ):
                    for point in self._answerable(grid, entry, machine, made, *asked):
                        if not (grid.include or grid.exclude) or grid.keeps(point.values):
                            yield point

    def _answerable(
        self, grid: Grid, entry: NetworkEntry, machine: MachinePoint, made: Machine | None, problem: str | None,
        objective: str | None, engine: str, pins: tuple[str, ...],
    ) -> Iterator[Point]:  # fmt: skip
        """The points of one combination."""
        names = entry.layers or grid.layers
        names = None if names in (None, (_ALL,)) else names
        kinds, limit = bool(grid.all_kinds), grid.time_limit_s
        named = problem or (made.problem if made is not None else "")
        said = Asked(named, objective or "", engine, pins, limit, kinds)
        whole = self._whole(entry, names)
        if made is None:
            yield self._bad(whole, machine, said, machine.error)
            return
        single = PROBLEMS[named].single and not made.off_chip
        targets = self._layers(entry, names, kinds) if single else [whole]
        if isinstance(targets, str):
            yield self._bad(whole, machine, said, targets)
            return
        try:
            solved = target_of(targets[0].text, single=single)
            _, question = ask(
                solved, made, problem=named, objective=objective, engine=engine, pins=list(pins),
                layers=None if single else names, all_kinds=kinds and single, time_limit_s=limit,
            )  # fmt: skip
        except InputError as error:
            yield self._bad(whole, machine, said, str(error))
            return
        said = replace(said, objectives=",".join(question.objectives), engine=question.engine)
        rest = {**asked_of(question), "machine": machine.digest, "time_limit_s": limit}
        for target in targets:
            yield Point(target, machine, said, digest({**rest, "target": target.digest}))

    def _bad(self, target: Target, machine: MachinePoint, asked: Asked, error: str) -> Point:
        """A point that nothing can answer."""
        key = [target.digest, machine.digest, str(asked), error]
        return Point(target, machine, asked, digest(key), error)

    def _made_whole(self, entry: NetworkEntry, names: tuple[str, ...] | None) -> Target:
        data = self._network(entry).model_dump(mode="json")
        return Target(entry.label, "", 1, digest([data, names]), json.dumps(data, separators=(",", ":")), names)

    def _made_layers(self, entry: NetworkEntry, names: tuple[str, ...] | None, kinds: bool) -> list[Target] | str:
        """The distinct layers of a network that are named, of those that it has; or why there are none."""
        network = self._network(entry)
        mine = None if names is None else [name for name in names if name in {layer.name for layer in network.layers}]
        try:
            return distinct(entry.label, pick_layers(network, mine, all_kinds=kinds and names is None))
        except InputError as error:
            return str(error)

    def _faults(self, path: str, grid: Grid) -> Iterator[str]:
        """Names of a grid that nobody knows."""
        known: list[Network] = []
        for k, entry in enumerate(grid.networks or ()):
            try:
                known.append(self._network(entry))
                for name in entry.layers or ():
                    if name != _ALL:
                        known[-1].layer(name)
            except InputError as error:
                yield f"{path}networks[{k}]: {error}"
        for k, name in enumerate(grid.machines or ()):
            try:
                load_machine(name)
            except InputError as error:
                yield f"{path}machines[{k}]: {error}"
        for k, name in enumerate(grid.layers or ()):
            if name != _ALL and known and not any(layer.name == name for one in known for layer in one.layers):
                yield f"{path}layers[{k}]: no network of the grid has a layer {name!r}"
        try:
            parse_overrides([f"{name}=0" for name in grid.set])
        except InputError as error:
            yield f"{path}set: {error}"
        yield from _unknown(f"{path}problems", grid.problems, "problem", set(PROBLEMS))
        measures = {name for one in PROBLEMS.values() for name in one.measures}
        parts = [part.strip() for text in grid.objectives or () for part in text.split(",")]
        yield from _unknown(f"{path}objectives", parts, "objective", measures)
        if grid.engines:
            engines = {name for one in PROBLEMS.values() for name in one.engines}
            yield from _unknown(f"{path}engines", grid.engines, "engine", {AUTO, *engines})
        yield from grid.rule_faults(path)


def distinct(network: str, layers: Sequence[Layer]) -> list[Target]:
    """Return every distinct layer once, by the name of its first one, with the number of its repeats."""
    found: dict[str, Target] = {}
    for layer in layers:
        data = {**layer.model_dump(mode="json"), "name": LAYER}
        key = digest(data)
        before = found.get(key)
        if before is None:
            found[key] = Target(network, layer.name, 1, key, json.dumps(data, separators=(",", ":")))
        else:
            found[key] = replace(before, repeats=before.repeats + 1)
    return list(found.values())


@lru_cache(maxsize=256)
def target_of(text: str, *, single: bool) -> Layer | Network:
    """Return the layer or the network of a target's text."""
    return Layer.model_validate_json(text) if single else Network.model_validate_json(text)


def _unknown(path: str, names: Sequence[str] | None, kind: str, known: set[str]) -> Iterator[str]:
    for name in names or ():
        if name not in known:
            yield f"{path}: {unknown(kind, name, known)}"


def default_path(spec: str | os.PathLike[str]) -> Path:
    """Return where the results of a sweep go if nobody says: ``NAME.sqlite`` in this folder."""
    return Path(f"{Path(spec).name.removesuffix('.yaml').removesuffix('.yml').removesuffix('.json')}.sqlite")


# --- what a worker does -----------------------------------------------------------------------------------------------


#: How tasks end without an answer; `--retry failed` runs them again.
FAILED: Final = ("BAD_INPUT", "DEFECT", "WORKER_DIED", "TIME_OUT", "NO_SOLUTION_FOUND")
ANSWERED: Final = ("OPTIMAL", "FEASIBLE", "INFEASIBLE")
#: Of the time limit, and seconds, after which a process that has not ended is ended.
_LATE, _LATE_S = 1.5, 30.0


@dataclass(frozen=True)
class Solved:
    """What came of a task."""

    number: int
    status: str
    value: int | None = None
    unit: str = ""
    bound: int | None = None
    gap: float | None = None
    measures: Mapping[str, int] = field(default_factory=dict)
    stopped: str = ""
    """What ended the search if it did not end by itself: another run may find more, or less."""
    error: str = ""
    """Why there is no plan, in a line."""
    trace: str = ""
    """Of a defect."""
    seconds: float = 0.0
    tries: int = 1
    plan: str = field(default="", repr=False)
    """As JSON."""

    def noted(self, note: str) -> Solved:
        """Return the same with what happened on the way."""
        return replace(self, error=f"{self.error}; {note}" if self.error else note)


@dataclass(frozen=True)
class Task:
    """A question that is self-contained: it can be sent to another computer."""

    number: int
    single: bool
    """Whether the target is a layer, or else a network."""
    target: str = field(repr=False)
    machine: str = field(repr=False)
    asked: Asked
    layers: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """For messages."""
        return f"task {self.number}"

    @property
    def patience_s(self) -> float | None:
        """Seconds after which the process is ended; None: never."""
        limit = self.asked.time_limit_s
        return None if limit is None else limit * _LATE + _LATE_S

    def decide(self, time_limit_s: float | None, watch: Watch) -> Solved:
        """Solve it; the shares of time that `solver.search.workers` gives are not needed."""
        start = time.monotonic()
        try:
            said = self._solved(watch)
        except InputError as error:
            status = "INFEASIBLE" if isinstance(error, InfeasibleError) else "BAD_INPUT"
            said = Solved(self.number, status, error=_line(str(error)))
        except MemoryError:
            said = Solved(self.number, "NO_SOLUTION_FOUND", error="out of memory", stopped="memory")
        except Exception as error:  # noqa: BLE001 - a defect is recorded, and the others go on
            text = str(error) if isinstance(error, PlanMismatch) else f"{type(error).__name__}: {error}"
            said = Solved(self.number, "DEFECT", error=_line(text), trace=traceback.format_exc())
        return replace(said, seconds=time.monotonic() - start)

    def _solved(self, watch: Watch) -> Solved:
        asked = self.asked
        problem, question = ask(
            target_of(self.target, single=self.single), _machine(self.machine), problem=asked.problem,
            objective=asked.objectives, engine=asked.engine, pins=list(asked.pins), layers=self.layers,
            all_kinds=asked.all_kinds and self.single, time_limit_s=asked.time_limit_s, jobs=1,
            memory_limit=watch.memory_bytes,
        )  # fmt: skip
        return solved(self.number, problem.solve(question))


@lru_cache(maxsize=64)
def _machine(text: str) -> Machine:
    return Machine.model_validate_json(text)


def _line(text: str) -> str:
    return " ".join(text.split())[:1000]


def solved(number: int, plan: Plan) -> Solved:
    """Return what a sweep keeps of a plan."""
    found = plan.objective
    conflicts = plan.conflicts or [line for row in plan.parts for line in row.conflicts]
    return Solved(
        number, plan.status, None if found is None else found.value, plan.unit, plan.bound, plan.gap,
        {} if found is None else dict(problem_of(plan).figures(plan)), _stopped(plan),
        _line("; ".join(dict.fromkeys(conflicts))) if found is None else "",
        plan=json.dumps(plan.model_dump(mode="json"), separators=(",", ":")),
    )  # fmt: skip


def _stopped(plan: Plan) -> str:
    """What ended the search of an unproven plan."""
    if plan.status in ("OPTIMAL", "INFEASIBLE"):
        return ""
    said = [plan.stats, *(row.stats for row in plan.parts)]
    reasons = sorted({str(stats["stopped"]) for stats in said if "stopped" in stats})
    limit = plan.options.time_limit_s
    if not reasons and limit is not None and plan.wall_s >= 0.9 * limit:
        reasons = ["time limit"]
    return ", ".join(reasons)

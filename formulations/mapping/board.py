"""Tasks on the processors of a board as a formulation: all tasks are one part, a configuration of the cores is a piece.

An example: four cores are grouped as (4), (3,1), (2,2), (2,1,1) or (1,1,1,1). Each of these pieces has an even share of
the time that is left when its turn comes, and has to beat those before it.
Pins (`demands`) name configurations of the cores, limits, and processors of tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from formulations.clock import ENDLESS, Clock
from formulations.mapping.space import Configuration, Limits, Mapping, Schedule, build
from formulations.problem import Goal, Part, Piece, Stats, Steps
from hwmodels.board.price import estimated, options
from hwmodels.outcome import Natural
from instances.errors import InputError
from instances.machine.boards import Processors
from instances.machine.machine import Machine
from instances.measured import LONGEST_US, Profile, Row
from instances.network.tasks import TaskGraph
from instances.problems import either, needing

#: Pins that are numbers: their relations, the least value, the most; and words for numbers of shares.
_NUMBERS: Table[str, tuple[tuple[str, ...], int, int]] = {
    "cap": (("=", "<="), 1, 100), "period": (("<=",), 1, 2**53), "energy": (("<=",), 1, 2**62),
    "latency": (("<=",), 1, 2**53), "split": (("=",), 2, 8),
}  # fmt: skip
_WORDS = {("split", "on"): 4, ("split", "off"): 1}


@dataclass(frozen=True)
class Demands:
    """What is demanded: configurations to try, limits, the processors of some tasks by number, and shares of tasks."""

    configurations: tuple[tuple[int, ...], ...]
    limits: Limits
    fixed: Table[int, str]
    shares: int = 1
    """Into how many a task may be divided; 1: tasks are whole."""

    def restrict(self, mapping: Mapping) -> Mapping:
        """Leave the demanded processors only."""
        rows = list(mapping.times)
        for i, name in self.fixed.items():
            rows[i] = tuple(
                t if group.name == name else None for t, group in zip(rows[i], mapping.processors, strict=True)
            )
        return replace(mapping, times=tuple(rows)) if self.fixed else mapping


def demands(texts: Sequence[str], graph: TaskGraph, board: Processors, rows: Sequence[Row]) -> Demands:
    """Read pins.

    Raises InputError if a pin is unknown, contradicts another one, or asks for what the board does not have.
    """
    numbers = {task.name: i for i, task in enumerate(graph.tasks)}
    most, fixed, wanted = dict[str, int](), dict[int, str](), ""
    for text in texts:
        name, relation, value = _parts(text)
        relations, *ends = _NUMBERS.get(name, ((), 0, 0))
        if name in most and name not in numbers:
            raise InputError(f"pin {text!r}: {name} is pinned already")
        if name in numbers and relation == "=":
            if fixed.setdefault(numbers[name], value) != value:
                raise InputError(f"pin {text!r}: task {name} is pinned to {fixed[numbers[name]]} already")
        elif name == "cpu_config" and relation == "=":
            if wanted not in ("", value):
                raise InputError(f"pin {text!r}: cpu_config is pinned to {wanted} already")
            wanted = value
        elif relation in relations:
            most[name] = _WORDS.get((name, value)) or _number(text, value, *ends)
        else:
            raise InputError(
                f"pin {text!r}: problem mapping knows cpu_config=1,1,1,1, cap=50, period<=20000, energy<=N, "
                f"latency<=N, split=on and TASK=PROCESSOR, with tasks such as {', '.join([*numbers][:3])}"
            )
    found = [one for one in _configurations(wanted, board) if _timed(one, rows)]
    if not found:
        raise InputError("profile: it has no times for the groups of cores of any configuration that is asked for")
    names = {group.name for one in found for group in board.groups(one)}
    for i, name in fixed.items():
        if name not in names:
            known = ", ".join(sorted(names))
            raise InputError(f"pin {graph.tasks[i].name}={name}: there is no processor {name}, there are {known}")
    kept = [one for one in found if set(fixed.values()) <= {group.name for group in board.groups(one)}]
    if not kept:
        raise InputError(f"pins {', '.join(texts)}: no configuration of the cores has all of these processors")
    shares = most.pop("split", 1)
    return Demands(tuple(kept), Limits(**most), fixed, shares)


def _parts(text: str) -> tuple[str, str, str]:
    for relation in ("<=", "="):
        name, found, value = (part.strip() for part in text.partition(relation))
        if found and name and value:
            return name, relation, value
    raise InputError(f"pin {text!r}: write NAME=VALUE, for example cpu_config=1,1,1,1 or cap=50")


def _number(text: str, value: str, least: int, most: int) -> int:
    if not (value.isascii() and value.isdigit()) or not least <= int(value) <= most:
        raise InputError(f"pin {text!r}: a whole number from {least} to {most} is needed")
    return int(value)


def _configurations(wanted: str, board: Processors) -> tuple[tuple[int, ...], ...]:
    known = {",".join(map(str, one)): one for one in board.configurations}
    if not wanted:
        return board.configurations
    text = ",".join(part.strip() for part in wanted.strip("() ").split(","))
    if text not in known:
        raise InputError(f"pin cpu_config={wanted}: known are {' '.join(known)}")
    return (known[text],)


def _timed(configuration: tuple[int, ...], rows: Sequence[Row]) -> bool:
    """Whether the profile says how long tasks take on the groups of a configuration."""
    alone = max(configuration) < 2
    return all(("1*" if alone else str(cores)) in row for cores in configuration for row in rows)


I = TypeVar("I")  # noqa: E741 - what is decided on a configuration
S = TypeVar("S")


# ---- what is asked ---------------------------------------------------------------------------------------------------


def board_of(machine: Machine) -> Processors:
    """Return the processors of a machine; raises InputError if it has none."""
    if machine.processors is None:
        raise InputError(
            f"machine {machine.name}: problems {either(needing('processors'))} need processors, such as galaxy_s9 has"
        )
    return machine.processors


def _times(graph: TaskGraph, board: Processors, profile: Profile) -> tuple[Row, ...]:
    """Microseconds of all tasks at the clock of busy cores; raises InputError if the profile fits not."""
    rows = profile.rows([task.name for task in graph.tasks], options(board))
    if profile.clock == "busy":
        return rows
    cpu = board.cpu
    scales: dict[str, float] = {}
    for n, mhz in enumerate(cpu.alone_mhz, 1):
        if mhz is not None:
            scales[str(n)] = mhz / cpu.busy_mhz
    if "1" in scales:
        scales["1*"] = scales["1"]
    for name in {name for row in rows for name in row}:
        if name.rstrip("*").isdigit() and name not in scales:
            raise InputError(
                f"profile: clock alone: the machine does not say at what clock {name} cores run (alone_mhz)"
            )
    return tuple({k: None if t is None else t * scales.get(k, 1.0) for k, t in row.items()} for row in rows)


@dataclass(frozen=True)
class Request:
    """Tasks with their times on a board, and what is demanded of them."""

    graph: TaskGraph
    machine: Machine
    rows: tuple[Row, ...]
    demands: Demands

    @classmethod
    def of(cls, graph: TaskGraph, machine: Machine, pins: Sequence[str], profile: Profile | None = None) -> Request:
        """Read pins and times; raises InputError for bad ones, and for a profile that does not fit."""
        board = board_of(machine)
        rows = estimated(graph, board) if profile is None else _times(graph, board, profile)
        for task, row in zip(graph.tasks, rows, strict=True):
            if any(time is not None and time > LONGEST_US for time in row.values()):
                raise InputError(f"machine {machine.name}: task {task.name}: a time is above {LONGEST_US / 1e6:.0f} s")
        return cls(graph, machine, rows, demands(pins, graph, board, rows))

    def instances(self, rounded: Callable[[float], int] = round) -> dict[Configuration, Mapping]:
        """Return the configurations that can run all tasks; raises InputError if none can."""
        found: dict[Configuration, Mapping] = {}
        faults: list[InputError] = []
        board, tick_ps, wanted = board_of(self.machine), self.machine.tick_ps, self.demands
        for configuration in wanted.configurations:
            try:
                made = build(self.graph, board, configuration, self.rows, tick_ps, wanted.shares, rounded)
                made = wanted.restrict(made)
                if made.able:  # raises InputError for a task that cannot run
                    found[configuration] = made
            except InputError as error:
                faults.append(error)
        if not found:
            raise faults[0]
        return found


# ---- what plans say beside measures; times are in ticks --------------------------------------------------------------


@dataclass(frozen=True)
class TaskTimes:
    """What a task takes where it runs, in the order of the schedule's rows."""

    time: Natural
    """What it computes."""
    copies: Natural
    """What it copies to other processors then."""


@dataclass(frozen=True)
class ProcessorLoad:
    """A logical processor, and how long one inference keeps it busy."""

    name: str
    cores: Natural
    """0 of an accelerator."""
    loads: tuple[Natural, ...]
    """Of every application; of one network alone it is one number."""


@dataclass(frozen=True)
class BoardFigures:
    """Of any schedule."""

    tasks: tuple[TaskTimes, ...]
    processors: tuple[ProcessorLoad, ...]


# ---- one configuration -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asking(ABC):
    """A goal for one configuration."""

    known: tuple[Schedule, ...] = field(default=(), kw_only=True)
    """Some to start from."""
    clock: Clock = field(default=ENDLESS, kw_only=True)
    """The share of this configuration."""
    stats: Stats = field(default_factory=dict, kw_only=True, compare=False)

    @abstractmethod
    def worth(self, schedule: Schedule) -> int | None:
        """Return the objective of a schedule, None if it does not keep the limits."""

    @abstractmethod
    def floor(self) -> int:
        """Return what no schedule is below, without a search."""

    def best(self, schedules: Iterable[Schedule]) -> Schedule | None:
        """Return the first one with the least objective of those that keep the limits."""
        least, best = None, None
        for schedule in schedules:
            worth = self.worth(schedule)
            if worth is not None and (least is None or worth < least):
                least, best = worth, schedule
        return best


class BoardPiece(Piece[Any]):
    """A configuration.

    `left`: how many configurations share the time from here on.
    """

    def __init__(self, part: BoardPart[Any, Any], configuration: Configuration, left: int) -> None:
        self.part, self.configuration, self.left = part, configuration, left
        self.name = ",".join(map(str, configuration)) if len(part.instances) > 1 else ""

    def asked(self, goal: Goal) -> Any:
        """The goal, here."""
        asked = self.part.asked(self.configuration, goal)
        return replace(asked, clock=goal.clock.share(self.left), stats=goal.stats)

    def named(self, schedule: Schedule | None) -> Any:
        """A schedule by the names of tasks and processors."""
        return None if schedule is None else self.part.named(schedule, self.configuration)

    def floor(self, goal: Goal) -> int:
        """Without a search."""
        return int(self.asked(goal).floor())

    def steps(self, goal: Goal, engine: str) -> Steps[Any]:
        """Search by an engine of the part."""
        asked, search = self.asked(goal), self.part.searches.get(engine)
        schedule, bound = self.part.exhaustive(asked) if search is None else (yield from search(asked))
        return self.named(schedule), bound


class BoardPart(Part[S], Generic[I, S]):
    """Tasks on a board.

    Attributes
    ----------
    instances : dict
        What is decided, by configuration of the cores.
    searches : dict
        By engine the steps of a search for what is asked of a configuration; `exhaustive` has no models.
    """

    searches: Table[str, Callable[[Any], Steps[Schedule]]]
    exhaustive: Callable[[Any], tuple[Schedule | None, int | None]]

    def __init__(self, name: str, instances: Table[Configuration, I]) -> None:
        self.name, self.instances = name, instances

    @abstractmethod
    def asked(self, configuration: Configuration, goal: Goal) -> Asking:
        """Return a goal for a configuration."""

    @abstractmethod
    def named(self, schedule: Schedule, configuration: Configuration) -> S:
        """Return what a search has found on a configuration by the names of tasks and processors."""

    @abstractmethod
    def numbered(self, schedule: S) -> Schedule:
        """Return the same by numbers, as searches have it; raises InputError for a malformed one."""

    def instance(self, configuration: Configuration) -> I:
        """Return what is decided on a configuration; raises InputError for one that is not asked for."""
        if configuration not in self.instances:
            raise InputError(f"cpu_config {configuration}: the pins ask for another one")
        return self.instances[configuration]

    def pieces(self, goal: Goal) -> Iterator[BoardPiece]:
        """All configurations."""
        for number, configuration in enumerate(self.instances):
            yield BoardPiece(self, configuration, len(self.instances) - number)

    def best(self, goal: Goal, make: Callable[[Any], Iterable[Schedule]]) -> S | None:
        """Return the best of the schedules that are made for every configuration, of equals the first one.

        When the time is up it is the first configuration that has one.
        """
        best: S | None = None
        below = goal.below
        for piece in self.pieces(goal):
            if best is not None and goal.clock.over:
                break
            asked = piece.asked(replace(goal, below=below))
            schedule = None if below is not None and asked.floor() >= below else asked.best(make(asked))
            if schedule is not None:
                best, below = piece.named(schedule), asked.worth(schedule)
        return best


def replayed_copies(mapping: Mapping) -> dict[tuple[int, int, int], int]:
    """Return what copies take, by edge, processor before and after, as the referees want it."""
    number = range(len(mapping.processors))
    edges = range(len(mapping.graph.edges))
    return {(e, p, q): int(mapping.copies[e, p, q]) for e in edges for p in number for q in number if p != q}

"""What a formulation is: a decision problem in the terms of mathematics, and nothing of how it is solved.

Example
    Which layers' weights stay on chip (a knapsack): one part, the network; a schedule names the layers; measures are
    the bytes that move and the bytes on chip; one piece, all subsets; cp-sat and milp have a Boolean for every layer.

Terms
    Part        an instance that is decided by itself: a layer, or a network. S are its schedules.
    Measure     f: S -> integers, priced in closed form and counted again by replay.
    Goal        min f(s) over s in S with g(s) <= caps[g] for some measures g; only values below `below` count.
    Piece       a subset of S. The pieces of a part cover what may be optimal for a goal. `floor` is a lower bound of f
                on a piece that takes no search; `cp_sat`, `milp` and `exact` are the ways to minimise f on it.

`solver.search.loop` settles goals piece by piece, with any of these ways; `solver.problems.problem` makes plans of the
answers. Any of them may raise TimeUp by the goal's clock: what is known by then is kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from formulations.clock import ENDLESS, Clock
from formulations.pins import Decision, Pins
from instances.machine.machine import Machine
from instances.network.network import Network

S = TypeVar("S")
#: What a search says of itself, for people.
Stats = dict[str, int | float | str | bool | None]
#: Engines that are asked to solve models.
SOLVERS = ("cp-sat", "milp", "milp-cbc")


class Unable(Exception):
    """An engine or a heuristic cannot do what is asked; the message says why, for people."""


@dataclass(frozen=True)
class Goal:
    """What is minimised."""

    measure: str
    caps: Mapping[str, int] = field(default_factory=dict)
    """The most of other measures."""
    least: Mapping[str, int] = field(default_factory=dict)
    """What no schedule is below in other measures, as was proven before."""
    below: int | None = None
    """Only schedules with less are of interest."""
    known: Any = None
    """The best one so far."""
    objectives: tuple[str, ...] = ()
    """All that are asked for, in their order."""
    clock: Clock = ENDLESS
    """When to stop."""
    stats: Stats = field(default_factory=dict, compare=False)
    """Where searches write what they say of themselves; ``interrupted`` if Ctrl-C has ended a solver."""


@dataclass(frozen=True)
class Priced:
    """What a schedule costs: all measures, and the terms that sum to each (by default one).

    `counts` are figures that are no measures, and that a replay has to count alike.
    """

    measures: Mapping[str, int]
    terms: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Replayed:
    """What the referee counts, and what it finds wrong with a schedule."""

    measures: Mapping[str, int]
    faults: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """Figures that are no measures."""
    compared: bool = True
    """False where the price is a paper's printed estimate, which no machine executes: then both are reported."""
    figures: Any = None
    """What else the referee saw, of the type that the formulation names (`Formulation.figures`)."""
    tally: Mapping[str, int] = field(default_factory=dict)
    """Figures that the referee alone counts."""
    executed: int = 0
    """How many layers, or groups, were also computed on integers and found right."""
    terms: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What sums to measures whose terms no closed form has."""


@dataclass(frozen=True)
class Model(Generic[S]):
    """A model of a piece for a solver, to be minimised; `below` and the caps of the goal are constraints."""

    model: Any
    decode: Callable[[Any], S | None]
    """Reads the schedule from a solution (CP-SAT hands its solver in, else it is the model). None: the solution is no
    schedule; the piece has grown tighter by it (a forbidden pair, a cut), so that it is worth asking again.
    """
    base: int = 0
    """The goal's measure is at least ``base + unit * objective``."""
    unit: int = 1
    parameters: Mapping[str, int | float] = field(default_factory=dict)
    """Of CP-SAT, beside those that are set for all; `turns` as in `solver.search.driver_cp_sat`."""
    turns: bool = False
    seconds: float | None = None
    """The most that a search is worth."""
    priced: bool = False
    """Whether a MILP solver's optimum is proven by a schedule that costs what the solver reports, however large the
    coefficients are (`solver.search.driver_milp.MilpAnswer.agrees`).
    """
    solver: str = ""
    """One of `SOLVERS`; empty for the engine that is asked."""
    cost: Callable[[], int] | None = None
    """What the schedule that was decoded last costs in the model, if that is not its price."""
    proves: bool = True
    """Whether bounds and "infeasible" count; not for a model that only leads to good schedules."""
    own_bound: bool = False
    """Whether it is a question of its own: what is proven of the piece is no bound of it."""


@dataclass(frozen=True)
class Report(Generic[S]):
    """What a solver says of a model."""

    schedule: S | None
    """Its solution."""
    bound: int | None
    """No schedule is below; None if there is none that meets the goal."""
    again: bool = False
    """Whether the solution is no schedule, and there is time to ask again."""


#: A search that has models solved: it yields them, is told what their solvers say, and returns as `Piece.exact` does.
Steps = Generator[Model[S], Report[S], tuple[S | None, int | None]]


class Piece(ABC, Generic[S]):
    """A subset of the schedules of a part; a way to search it that it does not have raises NotImplementedError.

    Searches see the best schedule that is known by then in ``goal.below``: what they need is best built when asked.
    """

    name: str = ""
    """Of several pieces which one, beside figures of its search."""

    @abstractmethod
    def floor(self, goal: Goal) -> int:
        """Return a number that the measure is nowhere below, without searching; it may rise by a search."""

    def so_far(self) -> S | None:
        """Return the best schedule that searches have come by, those that were stopped or were no schedule included."""
        return None

    def cp_sat(self, goal: Goal) -> Model[S] | None:
        """Return a CP-SAT model, None if nothing here meets the goal; raises Unable for a piece that is too large."""
        raise NotImplementedError

    def milp(self, goal: Goal) -> Model[S] | None:
        """Return a PuLP model, None if nothing here meets the goal; raises Unable for a piece that is too large."""
        raise NotImplementedError

    def exact(self, goal: Goal, engine: str) -> tuple[S | None, int | None]:
        """Search on one's own.

        Parameters
        ----------
        engine : str
            Of several that search by themselves which one.

        Returns
        -------
        schedule or None
            The best one, None if there is none below the goal, or none yet.
        bound : int or None
            No schedule of the piece is below; None if there is none that meets the goal.
        """
        raise NotImplementedError

    def steps(self, goal: Goal, engine: str) -> Steps[S]:
        """Search by an engine: by default by one model, again while its solution is no schedule, or on one's own.

        Whoever runs it gets what it returns, as of `exact`; it yields the models to solve, a search of one's own none.
        """
        if engine not in SOLVERS:
            return self.exact(goal, engine)
        while True:
            made = self.cp_sat(goal) if engine == "cp-sat" else self.milp(goal)
            if made is None:
                return None, None
            told = yield made
            if not told.again:
                return told.schedule, told.bound

    def split(self, goal: Goal) -> Sequence[Piece[S]]:
        """Return smaller pieces that hold all that may meet the goal: for where a search of this one leaves a gap."""
        return ()


class Part(ABC, Generic[S]):
    """An instance that is decided by itself; parts of one `key` are alike, and are decided once."""

    name: str
    optional: bool = False
    """Whether an answer can be done without: a part that nobody waits for when the time is up."""

    @property
    def key(self) -> Hashable:
        """By default the name."""
        return self.name

    @property
    def stats(self) -> Mapping[str, int | float | str | bool | None]:
        """What was counted while it was searched, for the plan."""
        return {}

    @property
    def size(self) -> Mapping[str, int]:
        """Of the space, as far as it is known."""
        return {}

    @property
    def must(self) -> Mapping[str, int]:
        """What must move, by counting alone: by measure, as far as it is known."""
        return {}

    def figures_of(self, schedule: S, walked: Replayed) -> Any:
        """Return what a plan says of a schedule beside measures: by default what the referee saw."""
        return walked.figures

    @abstractmethod
    def pieces(self, goal: Goal) -> Iterator[Piece[S]]:
        """Yield what may hold an optimum for the goal, the most promising piece first."""

    @abstractmethod
    def price(self, schedule: S) -> Priced:
        """Return what a schedule costs, in closed form; raises InputError if it is malformed."""

    @abstractmethod
    def replay(self, schedule: S) -> Replayed:
        """Return what the referee counts: it shares nothing with `price`."""

    @abstractmethod
    def contains(self, schedule: S) -> tuple[str, ...]:
        """Return why a schedule is not of this space, with its pins; nothing if it is."""

    @abstractmethod
    def explain(self) -> tuple[str, ...]:
        """Return demands that cannot be met together; nothing if some schedule meets all."""

    def polished(self, schedule: S, clock: Clock) -> S:
        """Return a schedule with the same measures that is better in what no measure says."""
        return schedule

    def completed(self, schedule: S) -> S:
        """Return a schedule, which nobody may have polished, with all that a plan says; time and bytes stay."""
        return schedule

    def show(self, schedule: S) -> str:
        """Return a schedule for people."""
        return "\n".join(f"  {name}: {value}" for name, value in _fields(schedule).items())

    def label(self, schedule: S) -> str:
        """Return a schedule in a few words, for a table."""
        return ", ".join(f"{name} {value}" for name, value in _fields(schedule).items())


def _fields(schedule: object) -> dict[str, object]:
    fields: dict[str, object] = TypeAdapter(type(schedule)).dump_python(schedule, mode="json")
    return fields


class Formulation(ABC, Generic[S]):
    """A decision problem."""

    name: str
    summary: str
    schedule: Any
    """The type of its schedules: frozen data, a pydantic model, a dataclass, or a tuple of these."""
    figures: Any = None
    """The type of what a plan says of a schedule beside its measures (`Part.figures_of`), if it says more."""
    target: Any = Network
    """The type of what is planned."""
    whole: bool = False
    """Whether its one part is all that is planned; else its parts are layers."""
    measures: Mapping[str, str]
    """What may be minimised, with units, in the order that breaks ties; the first one if nothing is asked for."""
    decisions: Mapping[str, Decision] = {}
    """What may be pinned."""
    engines: Mapping[str, str]
    """Those that prove, with a line about each, the fastest one first. cp-sat, milp and milp-cbc solve the models of
    pieces, any other name is a search by `Piece.exact`.
    """
    heuristics: Mapping[str, tuple[str, Callable[[Any, Goal], S | Steps[S] | None]]] = {}
    """Name -> (summary, function of a part and a goal that returns a schedule, or None, or the steps of a search that
    proves nothing for all schedules; it may raise Unable).
    """
    starts: tuple[str, ...] = ()
    """Heuristics that a search begins with, in half of its time."""
    quick: tuple[str, ...] = ()
    """Those that take hardly any time, the better one first: they answer when the time is up (their goal's clock is
    over then), and doubt claims.
    """
    ties: tuple[str, ...] = ()
    """Measures that decide among schedules with the same values of all that is asked for, where an engine proves."""
    tie_share: float | None = None
    """How long ties may take in all, over what the objectives took, but a second; None: as long as there is time."""
    halves: bool = True
    """Whether an objective may take half of the time that is left where others follow; else all of it."""
    floors: bool = True
    """Whether heuristics state bounds that need no search."""
    libraries: Mapping[str, str] = {}
    """By heuristic the package that it is made with."""
    examples: tuple[tuple[str, str], ...] = ()
    """Networks and machines for the benchmark, if not LeNet-5 on the machine of the problem's line."""

    @abstractmethod
    def read(self, network: Any, machine: Machine, pins: Pins, layers: Sequence[str] | None) -> Sequence[Part[S]]:
        """Return the independent parts of a request.

        Parameters
        ----------
        network : as `target` says
        layers : sequence of str, optional
            Those asked for by name: parts that are layers are read of these only.

        Raises
        ------
        InputError
            If the problem cannot be asked.
        """

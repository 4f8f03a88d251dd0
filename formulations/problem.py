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

`solver.search` settles goals piece by piece, with any of these ways; `solver.generic` makes plans of the answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from formulations.pins import Decision, Pins
from instances.machine import Machine
from instances.network import Network

__all__ = ["Formulation", "Goal", "Model", "Part", "Piece", "Priced", "Replayed"]

S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True)
class Goal:
    """What is minimised.

    Attributes
    ----------
    caps : dict of str to int
        The most of other measures.
    below : int or None
        Only schedules with less are of interest.
    """

    measure: str
    caps: Mapping[str, int] = field(default_factory=dict)
    below: int | None = None


@dataclass(frozen=True)
class Priced:
    """What a schedule costs: all measures, and the terms that sum to each (by default one)."""

    measures: Mapping[str, int]
    terms: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Replayed:
    """What the referee counts, and what it finds wrong with a schedule."""

    measures: Mapping[str, int]
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Model(Generic[S]):
    """A model of a piece for a solver: `decode` reads the schedule from its solution (CP-SAT hands its solver in).

    The objective is the goal's measure, as an integer; `below` and the caps are constraints.
    """

    model: Any
    decode: Callable[[Any], S]


class Piece(ABC, Generic[S]):
    """A subset of the schedules of a part; a way to search it that is not there raises NotImplementedError."""

    @abstractmethod
    def floor(self, goal: Goal) -> int:
        """Return a number that the measure is nowhere below, without searching."""

    def cp_sat(self, goal: Goal) -> Model[S]:
        """Return a CP-SAT model."""
        raise NotImplementedError

    def milp(self, goal: Goal) -> Model[S]:
        """Return a PuLP model."""
        raise NotImplementedError

    def exact(self, goal: Goal, over: Callable[[], bool]) -> tuple[S | None, int | None]:
        """Search on one's own, until `over` says that the time is up.

        Returns
        -------
        schedule or None
            The best one, None if there is none below the goal, or none yet.
        bound : int or None
            No schedule of the piece is below; None if there is none at all.
        """
        raise NotImplementedError

    def settle(self, schedule: S, claimed: int) -> bool:
        """Whether a solver's answer stands. False: the piece has grown tighter by it (a cut), ask again."""
        return True


class Part(ABC, Generic[S]):
    """An instance that is decided by itself."""

    name: str

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

    def show(self, schedule: S) -> str:
        """Return a schedule for people."""
        return "\n".join(f"  {name}: {value}" for name, value in schedule.model_dump(mode="json").items())

    def label(self, schedule: S) -> str:
        """Return a schedule in a few words, for a table."""
        return ", ".join(f"{name} {value}" for name, value in schedule.model_dump(mode="json").items())


class Formulation(ABC, Generic[S]):
    """A decision problem.

    Attributes
    ----------
    schedule : type
        Of its schedules, frozen data that is JSON both ways.
    measures : dict of str to str
        What may be minimised, with units, in the order that breaks ties; the first one if nothing is asked for.
    decisions : dict of str to Decision
        What may be pinned.
    engines : tuple of str
        Of exact, cp-sat, milp and milp-cbc those that its pieces have, the fastest one first.
    heuristics : dict
        Name -> (summary, function of a part and a goal that returns a schedule, or None).
    examples : tuple
        Networks and machines for the benchmark.
    """

    name: str
    summary: str
    schedule: type[S]
    measures: Mapping[str, str]
    decisions: Mapping[str, Decision] = {}
    engines: tuple[str, ...]
    heuristics: Mapping[str, tuple[str, Callable[[Any, Goal], S | None]]] = {}
    examples: tuple[tuple[str, str], ...] = ()

    @abstractmethod
    def read(self, network: Network, machine: Machine, pins: Pins) -> Sequence[Part[S]]:
        """Return the independent parts of a request; raises InputError if the problem cannot be asked."""

"""F7 hybrid: what a piece costs, at least, at best, and by the published policies; equal pieces once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from formulations.banks.bounds import Point
from formulations.banks.front import Found, decide
from formulations.banks.graph import optimum
from formulations.banks.network import Walk
from formulations.banks.numbers import numbered
from formulations.banks.policies import hide
from formulations.banks.published import published
from formulations.banks.readings import clock_of, may_wait
from formulations.banks.states import BankPlan
from formulations.banks.times import Times
from formulations.clock import ENDLESS
from formulations.clock import Clock as Limit
from formulations.hybrid.floors import Stagewise, floor
from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.machine import Machine
from instances.pieces import Piece
from instances.stage import Stages


class Program(NamedTuple):
    """A bank program of a piece, and what it costs."""

    point: Point
    runs: tuple[StageRun, ...]


@dataclass(frozen=True)
class Known:
    """What is known of a piece: programs that no other beats, fewest bytes first, and what none is below."""

    programs: tuple[Program, ...]
    bound: Point
    proven: bool = True


class Costs:
    """What pieces cost on a machine with banks."""

    def __init__(self, machine: Machine, waiting: bool | None = None) -> None:
        assert machine.banks is not None
        self.banks, self.clock = machine.banks, clock_of(machine)
        self.waiting = may_wait(machine, waiting)
        self.searches = 0
        self.stagewise = Stagewise(self.banks, self.clock, waiting=self.waiting)
        self._walks: dict[Piece, Walk] = {}
        self._floors: dict[tuple[Piece, bool], Point | None] = {}
        self._known: dict[tuple[Piece, str], Known | None] = {}

    def walk(self, piece: Piece) -> Walk:
        """The states of a piece; raises InputError if a column fits in no bank."""
        if piece not in self._walks:
            self._walks[piece] = Walk(piece.found, self.banks, waiting=self.waiting)
        return self._walks[piece]

    def of(self, piece: Piece, plan: BankPlan) -> Point:
        """Bytes and ticks of a plan."""
        return Point(plan.volume.total, Times(self.walk(piece), self.clock).of(plan))

    def program(self, piece: Piece, plan: BankPlan, ticks: int | None = None) -> Program:
        """The program of a plan."""
        point = self.of(piece, plan) if ticks is None else Point(plan.volume.total, ticks)
        return Program(point, tuple(numbered(plan, self.banks)))

    # ---- searches ----------------------------------------------------------------------------------------------------

    def fewest(self, piece: Piece) -> Known | None:
        """The program with the fewest bytes; None if there is no program."""
        return self._once(piece, "fewest", lambda: self._single(piece, optimum(self.walk(piece))))

    def least(self, piece: Piece, aim: str, limit: Limit = ENDLESS) -> Known | None:
        """The program with the least time, or the front of both; None if there is no program; raises TimeUp."""
        return self._once(piece, aim, lambda: self._decided(piece, aim, limit))

    def by_policy(self, piece: Piece, measure: str) -> Known | None:
        """The program of MIN, or of HIDE for time; None if the policy gets stuck."""
        walk = Walk(piece.found, self.banks)
        policy = hide(walk, self.clock) if measure == "time" else published(walk)
        return self._single(piece, policy)

    def policy(self, piece: Piece, measure: str) -> Known | None:
        """`by_policy`, equal pieces once."""
        return self._once(piece, f"policy {measure}", lambda: self.by_policy(piece, measure))

    def _once(self, piece: Piece, what: str, make: Callable[[], Known | None]) -> Known | None:
        key = piece, what
        if key not in self._known:
            self.searches += 1
            try:
                self._known[key] = make()
            except InputError:
                self._known[key] = None
        return self._known[key]

    def _single(self, piece: Piece, plan: BankPlan) -> Known:
        program = self.program(piece, plan)
        return Known((program,), program.point)

    def _decided(self, piece: Piece, aim: str, limit: Limit) -> Known:
        said: Found = decide(self.walk(piece), self.clock, "front" if aim == "front" else "time", limit=limit)
        programs = tuple(self.program(piece, plan, ticks) for plan, ticks in said.plans)
        return Known(programs, Point(said.bytes_bound, said.ticks_bound), said.proven)

    # ---- bounds ------------------------------------------------------------------------------------------------------

    def bare(self, found: Stages) -> Point | None:
        """What some stages do not cost less than."""
        return floor(found, self.banks, self.clock, waiting=self.waiting)

    def floor(self, piece: Piece, *, timed: bool = False) -> Point | None:
        """What no program of a piece is below; None if a column fits in no bank, or a stage has no program.

        Parameters
        ----------
        timed : bool
            Whether ticks are bounded stage by stage, instead of by the cycles of computing.
        """
        key = piece, timed
        if key not in self._floors:
            point = self.bare(piece.found)
            if point is not None and timed:
                ticks = self.stagewise.ticks(piece.found)
                point = None if ticks is None else point._replace(ticks=max(point.ticks, sum(ticks)))
            self._floors[key] = point
        return self._floors[key]

"""F7 hybrid: what a piece costs, at least (`floor`), at best, and by the published policies; equal pieces once.

A lower bound on the bytes of the stages of a piece, without a search
    weights and biases once; weights that come with every process step once for every B tiles of the map; maps from
    outside once; maps that leave once; of every other map that is made, the columns beyond B - 1 tiles, written and
    loaded: a tile of what is read lies beside all that stays. Where no map waits for a sum (`Banks.residuals` = dram),
    a sum streams all operands but one, and what is streamed is written: the operands count for which this is least.
On its ticks
    the cycles of its stages
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from formulations.banks.bounds import Point, lowest
from formulations.banks.front import Found, decide
from formulations.banks.graph import optimum
from formulations.banks.network import Walk
from formulations.banks.numbers import numbered
from formulations.banks.policies import hide
from formulations.banks.published import published
from formulations.banks.readings import clock_of, floor_of, may_wait
from formulations.banks.states import BankPlan
from formulations.banks.times import Times
from formulations.clock import ENDLESS
from formulations.clock import Clock as Limit
from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.machine import Machine
from instances.pieces import Piece, operands
from instances.stage import Stage, Stages


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
        self._walks: dict[Piece, Walk] = {}
        self._floors: dict[Piece, Point | None] = {}
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

    def floor(self, piece: Piece) -> Point | None:
        """What no program of a piece is below; None if a column fits in no bank."""
        if piece not in self._floors:
            self._floors[piece] = floor(piece.found, self)
        return self._floors[piece]


def floor(found: Stages, costs: Costs) -> Point | None:
    """Return a lower bound on bytes and ticks of some stages, without a search; None if a column fits in no bank."""
    banks, most = costs.banks, costs.banks.count
    try:
        tiles = {name: one.tile(banks) for name, one in found.maps.items()}
    except InputError:
        return None
    total, ticks = floor_of(found, banks, costs.clock)
    made = {stage.target for stage in found.stages}
    written = dict.fromkeys(made, 0)
    for stage in found.stages:
        written[stage.target] += stage.written
        if stage.anew(banks) and banks.unread == "loaded":
            in_banks = -(-found.maps[stage.source].columns // tiles[stage.source])
            total += stage.weight_bytes * (-(-in_banks // most) - 1)
    spilled = dict.fromkeys(made, 0)
    for name in made:
        if users := found.users[name]:
            spilled[name] = max(0, found.maps[name].columns - (most - 1) * tiles[name])
            if banks.unread == "loaded" or any(s.kind == "sum" and s.name in users for s in found.stages):
                total += spilled[name] * found.maps[name].column_bytes
            total += 0 if found.lasting(name) else spilled[name] * written[name]
    if not costs.waiting:
        total += sum(_streamed(found, stage, made, spilled, written) for stage in found.stages if stage.kind == "sum")
    return Point(total, ticks)


def _streamed(found: Stages, stage: Stage, made: set[str], spilled: dict[str, int], written: dict[str, int]) -> int:
    """What a sum streams and has written beyond what is counted, at least: the operand from the banks is its choice."""

    def more(name: str) -> int:
        if name not in made:
            return 0
        one, again = found.maps[name], len(found.users[name]) > 1
        writes = 0 if found.lasting(name) else (one.columns - spilled[name]) * written[name]
        return writes + (one.columns - (0 if again else spilled[name])) * one.column_bytes

    extra = [more(name) for name in operands(stage)]
    return sum(extra) - max(extra)


__all__ = ["Costs", "Known", "Program", "floor", "lowest"]

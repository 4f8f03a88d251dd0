"""The groups of hybrid plans, as they are shown: what is decided, what the network says, what was counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from formulations.banks.readings import clock_of, readings
from hwmodels.banks.replay_time import StageFigures
from hwmodels.hybrid.schedule import PieceRun
from instances.pieces import Group, Piece
from instances.stage import FeatureMap, Stage
from solver.banks.rows import fitting
from solver.plan import Plan


@dataclass(frozen=True)
class ProgramRow:
    """A bank program, how many pieces run it, and what it does in one of them."""

    run: PieceRun
    last: FeatureMap
    """The piece's part of the last map."""
    seen: dict[str, StageFigures]

    @property
    def bytes(self) -> int:
        """Of one piece."""
        return sum(one.bytes for one in self.seen.values())

    @property
    def ticks(self) -> int:
        """Of one piece."""
        return sum(one.ticks for one in self.seen.values())


@dataclass(frozen=True)
class GroupRow:
    """Stages that run together, one after the other in each piece."""

    stages: tuple[Stage, ...]
    columns: int
    rows: int
    """`columns`, `rows`: of a piece of the last map, at most; all of the map if the group runs whole."""
    programs: tuple[ProgramRow, ...]
    cycles: int
    once: int
    """`cycles`, `once`: of computing all pieces, and of computing each number once."""
    least: int
    """Ticks of computing each number once, and of what every stage takes beside it."""

    @property
    def name(self) -> str:
        """Its first and last stage."""
        names = [stage.name for stage in self.stages]
        return names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"

    @property
    def pieces(self) -> int:
        """How many there are."""
        return sum(one.run.count for one in self.programs)

    @property
    def bytes(self) -> int:
        """Of all pieces."""
        return sum(one.run.count * one.bytes for one in self.programs)

    @property
    def ticks(self) -> int:
        """Of all pieces."""
        return sum(one.run.count * one.ticks for one in self.programs)

    @property
    def delay(self) -> int:
        """Ticks beyond those of computing each number once."""
        return max(0, self.ticks - self.least)


def rows_of(plan: Plan) -> list[GroupRow]:
    """Return the groups of a plan in the order that they run; none without a schedule.

    Raises
    ------
    InputError
        If the schedule is none of this network, or the figures are not those of the schedule.
    """
    with fitting():
        return [] if plan.schedule is None else list(_rows(plan))


def _rows(plan: Plan) -> Iterator[GroupRow]:
    machine, first = plan.machine_data, plan.schedule.first_layer
    found, clock = readings(plan.network_data, machine, first)[first], clock_of(machine)
    begin = 0
    for run, seen in zip(plan.schedule.groups, plan.part.figures, strict=True):
        group = Group(found, begin, begin + run.length)
        begin += run.length
        pieces = group.pieces(run.columns, run.rows) or {}
        programs = [
            ProgramRow(one, _last(piece), {stage.stage: figures[stage.stage] for stage in one.stages})
            for piece, kind, mine in zip(pieces, run.pieces, seen, strict=True)
            for one, figures in zip(kind, mine, strict=True)
        ]
        cycles = sum(many * _cycles(piece.found.stages) for piece, many in pieces.items())
        once = _cycles(group.stages)
        least = once * clock.cycle + clock.fixed * run.length
        yield GroupRow(group.stages, run.columns, run.rows, tuple(programs), cycles, once, least)


def _last(piece: Piece) -> FeatureMap:
    return piece.found.maps[piece.found.stages[-1].target]


def _cycles(stages: Sequence[Stage]) -> int:
    return sum(stage.cycles for stage in stages)

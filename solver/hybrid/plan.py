"""Plans of whole networks on machines with memory banks, as groups of stages that run whole or piece by piece.

Figures are what the replay counts.
"""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from solver.banks.plan import StagePlan
from solver.network_plan import WholePlan
from solver.plan import Frozen, Natural, Options


class HybridMeasures(Frozen):
    """Bytes to and from DRAM; ticks until the last piece ends."""

    bytes: Natural
    time: Natural


class ProgramPlan(Frozen):
    """A bank program, and how many pieces run it."""

    count: PositiveInt
    measures: HybridMeasures
    """Of one piece."""
    stages: tuple[StagePlan, ...]
    """In the order that they run. s0, s1, ... are the stages of the group; maps have the names of the stages that make
    them, those from outside are m0, m1, ...
    """


class KindPlan(Frozen):
    """Pieces that are alike, and their programs."""

    columns: PositiveInt
    rows: PositiveInt
    """`columns`, `rows`: of the piece's part of the last map."""
    programs: tuple[ProgramPlan, ...]


class GroupPlan(Frozen):
    """Stages that run together, one after the other in each piece."""

    layer: str
    """The first stage."""
    stages: tuple[str, ...]
    """All of them, by the names of their operators."""
    columns: PositiveInt
    rows: PositiveInt
    """`columns`, `rows`: of a piece of the last map, at most; all of the map if the group runs whole."""
    pieces: PositiveInt
    cycles: Natural
    once: Natural
    """`cycles`, `once`: of computing all pieces, and of computing each number once."""
    measures: HybridMeasures
    delay_ticks: Natural
    """Time beyond that of computing each number once."""
    kinds: tuple[KindPlan, ...]


class HybridReplay(Frozen):
    """What the replay found: `ok` is None when there is no plan."""

    ok: bool | None
    faults: tuple[str, ...]


class HybridOptions(Options):
    """What else was asked for."""

    pins: tuple[str, ...]


class HybridPlan(WholePlan):
    """A plan of a network in groups.

    Attributes
    ----------
    delay_ticks : int or None
        Time beyond that of computing every number once.
    compulsory_bytes : int
        Every weight, and every input and result of the network once: what no plan can do without.
    """

    PROBLEMS = ("hybrid",)

    problem: Literal["hybrid"]
    options: HybridOptions
    first_layer: Literal["patches", "plain"] | None
    measures: HybridMeasures | None
    delay_ticks: Natural | None
    compulsory_bytes: Natural
    replay: HybridReplay
    layers: tuple[GroupPlan, ...]

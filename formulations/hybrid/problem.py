"""Hybrid as certile asks it: engines, pins, and the published techniques that a proven optimum is compared with.

per-layer
    Every stage by itself: one group, by the policy MIN of problem banks, for time by HIDE.
pure-fusion
    Every block in pieces of columns, the fewest whose maps all fit on chip (`fits`). Blocks that have none run whole.
hybrid-paper
    Every block in the number of pieces of columns that is best by MIN, or HIDE (4.3.2: an exhaustive search of the size
    of the pyramid). Blocks in one piece that follow each other run as one group.

Blocks are those of the pin, else branches. Policies and blocks: `heterogeneous_mapping_and_banks` 4.3, 4.4.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from formulations.banks.graph import NEVER
from formulations.hybrid.options import Grid, Option, sizes
from formulations.hybrid.part import FirstLayerMode, HybridPart
from formulations.hybrid.search import Chosen
from formulations.hybrid.space import DECISIONS, Cut, branches
from formulations.pins import Pins
from formulations.problem import Formulation, Goal, Unable
from hwmodels.hybrid.replay import HybridFigures
from hwmodels.schedule import HybridRun
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.pieces import Piece, operands


def blocks(reading: FirstLayerMode) -> list[Cut]:
    """The blocks of a network."""
    return [Cut(*block, whole=False) for block in reading.space.blocks or branches(reading.found)]


def by_policy(cut: Cut, option: Option, measure: str) -> Chosen | None:
    """A group with the program of a policy for every piece; None if one gets stuck."""
    kinds = []
    for piece, many in option.pieces.items():
        known = option.costs.policy(piece, measure)
        if known is None:
            return None
        kinds.append(((known.programs[0], many),))
    return Chosen(cut, option, tuple(kinds)) if kinds else None


def in_columns(reading: FirstLayerMode, cut: Cut) -> Iterable[Option]:
    """A group in pieces of columns, the fewest pieces first."""
    last = reading.group(cut).last
    return (reading.option(cut, Grid(columns, last.rows)) for columns in sizes(last.columns))


def fits(piece: Piece, option: Option) -> bool:
    """Whether at every stage what it reads and makes lies on chip at once, with what others read later.

    Where no map waits for a sum (`Banks.residuals` = dram), the operand that it streams does not count.
    """
    found, costs = piece.found, option.costs
    tiles = {name: -(-one.columns // one.tile(costs.banks)) for name, one in found.maps.items()}
    made = set[str]()
    for at, stage in enumerate(found.stages):
        later = [one for one in found.stages[at:] if costs.waiting or one.kind != "sum"]
        streams = stage.kind == "sum" and not costs.waiting
        here = {stage.target, *(operands(stage)[:1] if streams else operands(stage))}
        here |= {name for name in made if any(name in operands(one) for one in later)} if not streams else set()
        if sum(tiles[name] for name in here) > costs.banks.count:
            return False
        made.add(stage.target)
    return True


def value(one: Chosen | None, measure: str) -> int:
    """What a group costs."""
    return NEVER if one is None else one.point[measure == "time"]


def pure(reading: FirstLayerMode, cut: Cut, measure: str) -> Chosen | None:
    """A block in the fewest pieces whose maps fit on chip; whole if there are none."""
    for option in in_columns(reading, cut):
        possible = option.pieces and all(map(option.costs.floor, option.pieces))
        if possible and all(fits(piece, option) for piece in option.pieces):
            made = by_policy(cut, option, measure)
            if made is not None:
                return made
    return whole(reading, cut.begin, cut.end, measure)


def hybrid(reading: FirstLayerMode, cut: Cut, measure: str) -> Chosen | None:
    """A block in the best number of pieces."""
    found = [by_policy(cut, option, measure) for option in in_columns(reading, cut)]
    return min(found, key=lambda one: value(one, measure))


def per_layer(part: HybridPart, goal: Goal) -> HybridRun | None:
    """Nothing is fused."""
    return _best(part, goal, [[whole(one, 0, one.space.stages, goal.measure)] for one in _readings(part)])


def pure_fusion(part: HybridPart, goal: Goal) -> HybridRun | None:
    """Every block in pieces that fit on chip."""
    chains = [(one, [pure(one, cut, goal.measure) for cut in blocks(one)]) for one in _readings(part)]
    return _best(part, goal, [joined_of(one, chain, goal.measure) for one, chain in chains])


def hybrid_paper(part: HybridPart, goal: Goal) -> HybridRun | None:
    """Every block in its best number of pieces; per layer if that is better."""
    made: list[list[Chosen | None]] = []
    for one in _readings(part):
        chain = list[Chosen | None]()
        for cut in blocks(one):
            if goal.clock.over:
                raise Unable("the time is up before all blocks are searched")
            chain.append(hybrid(one, cut, goal.measure))
        made.append(joined_of(one, chain, goal.measure))
        made.append([whole(one, 0, one.space.stages, goal.measure)])
    return _best(part, goal, made)


def whole(reading: FirstLayerMode, begin: int, end: int, measure: str) -> Chosen | None:
    """Stages in one piece, by policy."""
    cut = Cut(begin, end, whole=True)
    return by_policy(cut, reading.option(cut), measure)


def joined_of(reading: FirstLayerMode, chosen: list[Chosen | None], measure: str) -> list[Chosen | None]:
    """Blocks in one piece that follow each other as one group."""
    made: list[Chosen | None] = []
    for one in chosen:
        last = made[-1] if made else None
        if one is not None and last is not None and one.option.whole and last.option.whole:
            made[-1] = whole(reading, last.cut.begin, one.cut.end, measure)
        else:
            made.append(one)
    return made


def _readings(part: HybridPart) -> list[FirstLayerMode]:
    """The first one, as policies have it."""
    return list(part.readings.values())[:1]


def _best(part: HybridPart, goal: Goal, made: list[list[Chosen | None]]) -> HybridRun | None:
    """The best of some chains."""
    reading = _readings(part)[0]
    whole = [[one for one in chain if one is not None] for chain in made if None not in chain]
    if not whole:
        raise Unable("the policy gets stuck in these banks")
    return reading.program(min(whole, key=lambda chain: sum(value(one, goal.measure) for one in chain)))


class HybridFormulation(Formulation[HybridRun]):
    """Which stages run together, piece by piece, in memory banks."""

    name = "hybrid"
    summary = "which layers are fused, in pieces of which size, with a bank program for every piece"
    schedule = HybridRun
    figures = HybridFigures
    whole = True
    measures = {"bytes": "bytes", "time": "ticks"}  # noqa: RUF012
    decisions = DECISIONS
    engines = {  # noqa: RUF012
        "dynamic": "shortest path over cut points; groups searched as far as needed, programs as in banks",
        "milp": "chains of all options, each searched, with HiGHS: small networks, or few pieces by pins",
        "cp-sat": "the same with CP-SAT",
    }
    heuristics = {  # noqa: RUF012
        "per-layer": ("nothing is fused: the policy MIN, for time HIDE", per_layer),
        "pure-fusion": ("every block in pieces whose maps all fit on chip, as few as can be", pure_fusion),
        "hybrid-paper": ("as published: of every block the best number of pieces, by MIN, or HIDE", hybrid_paper),
    }  # fmt: skip
    quick = ("per-layer",)
    starts = ("hybrid-paper",)

    def read(
        self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[HybridPart]:
        """Return the network."""
        return [HybridPart(network, machine, pins)]

"""Hybrid: a network on a machine with memory banks, as groups of stages, each whole or in pieces.

A schedule is a `HybridRun`: the groups in order, how many stages each has, how large its pieces are, and the bank
programs of its pieces, those that are alike together. Every piece begins with empty banks and ends with them.

The published techniques that a proven optimum is compared with:

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

from collections.abc import Callable, Iterable, Iterator, Sequence

from formulations.banks.network import NEVER, Point
from formulations.banks.numbers import plan_followed_by
from formulations.banks.readings import FirstLayer, Reading, Readings, floor_of, readings
from formulations.clock import ENDLESS, Clock, TimeUp
from formulations.hybrid.bounds import Costs, least_of
from formulations.hybrid.search import Chain, Chosen, Fronts, backward, best_of, forward
from formulations.hybrid.space import DECISIONS, Cut, Grid, Option, Pair, Space, branches, sizes
from formulations.pins import Pins
from formulations.problem import Formulation, Goal, Model, Priced, Replayed, Unable
from formulations.rows import Build, flow
from hwmodels.hybrid.replay import HybridFigures, replay_hybrid
from hwmodels.hybrid.schedule import GroupRun, HybridRun, PieceRun
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.feature_maps import Stages
from instances.network.network import Network
from instances.network.pieces import Group, Piece, operands

#: Options that a model may have: all of them are searched for it.
_MOST = 5_000


class HybridReading(Reading[HybridRun]):
    """The plans of one reading of the first layer."""

    def __init__(self, part: HybridPart, name: FirstLayer, found: Stages) -> None:
        self.part, self.first_layer, self.found = part, name, found
        self.space = Space(found, part.pins)
        whole = self.space.most <= 1
        self.least = floor_of(found, part.costs.banks, part.costs.clock) if whole else least_of(found, part.costs.clock)
        self._chains: dict[str, Chain] = {}

    # ---- the space ---------------------------------------------------------------------------------------------------

    def group(self, cut: Cut) -> Group:
        """The stages of a group."""
        return Group(self.found, cut.begin, cut.end)

    def option(self, cut: Cut, grid: Grid | None = None) -> Option:
        """A group in pieces, or whole."""
        group = self.group(cut)
        return Option(self.part.costs, group, grid or Grid(group.last.columns, group.last.rows))

    def chain(self, measure: str) -> Chain:
        """What is known of all groups, for a measure."""
        if measure not in self._chains:
            costs, ticks = self.part.costs, [0] * self.space.stages
            if measure == "time" and all(
                one.column_bytes <= costs.banks.bank_bytes for one in self.found.maps.values()
            ):
                ticks = costs.stagewise.ticks(self.found, searched=True) or ticks
            pairs = {cut: Pair(costs, self.group(cut), cut, measure, self.space, ticks) for cut in self.space.groups()}
            self._chains[measure] = Chain(pairs, self.space.stages, measure)
        return self._chains[measure]

    def program(self, chosen: Sequence[Chosen]) -> HybridRun:
        """Return the schedule of a chain."""
        groups = []
        for one in chosen:
            kinds = tuple(tuple(PieceRun(many, p.runs) for p, many in kind) for kind in one.programs)
            groups.append(GroupRun(one.cut.end - one.cut.begin, one.option.grid.columns, one.option.grid.rows, kinds))
        return HybridRun(self.first_layer, tuple(groups))

    # ---- searches ----------------------------------------------------------------------------------------------------

    def floor(self, goal: Goal) -> int:
        """Return what no plan can do without, or what a search has found no plan to be below."""
        known = self._chains.get(goal.measure)
        return max(self.least[goal.measure == "time"], 0 if known is None else min(known.bound, NEVER))

    def so_far(self) -> HybridRun | None:
        """Return the best plan of the groups that are known."""
        made = [chosen for chain in self._chains.values() if (chosen := chain.so_far()) is not None]
        return self.program(made[-1]) if made else None

    def exact(self, goal: Goal, engine: str) -> tuple[HybridRun | None, int | None]:
        """Search the shortest path over groups; with a cap on the other measure the front of both."""
        below = NEVER if goal.below is None else goal.below
        chain = self.chain(goal.measure)
        try:
            chosen = self._capped(goal, below) if goal.caps else chain.run(goal.clock, below)
        except TimeUp:
            return None, max(chain.bound, self.floor(goal))
        finally:
            goal.stats["searches"] = self.part.costs.searches
        if chosen is None:
            return None, None if chain.bound >= below or goal.caps else max(chain.bound, self.floor(goal))
        program = self.program(chosen)
        return program, self.part.price(program).measures[goal.measure]

    def model(self, goal: Goal, build: Build[HybridRun]) -> Model[HybridRun] | None:
        """A model of the options that may be part of a better chain, all searched.

        Its nodes are cut points, and whether the group before one is in one piece; its arcs the options of groups from
        one cut point to another, none in one piece behind one; (FLOW) of `formulations.rows.flow` makes them a chain.
        Raises Unable if there are many.
        """
        if goal.caps:
            raise Unable("models of hybrid have one measure")
        options, index = dict[tuple[Cut, Option], int](), int(goal.measure == "time")
        chain, below = self.chain(goal.measure), NEVER if goal.below is None else goal.below
        ahead, behind = forward(chain.arcs, chain.stages), backward(chain.arcs, chain.stages)
        for cut in chain.arcs:
            spare = below - ahead[cut.begin][not cut.whole] - behind[cut.end][cut.whole]
            for option, least in chain.pairs[cut].every().values() if chain.arcs[cut] < spare else ():
                goal.clock.tick()
                if least >= spare or option.floor(goal.measure)[index] >= spare:
                    continue  # no chain with it is better than what is known
                point, proven = option.bound(goal.measure, goal.clock)
                if not proven:
                    raise TimeUp
                if point[index] < NEVER:
                    options[cut, option] = point[index]
                if len(options) > _MOST:
                    raise Unable(f"more than {_MOST} options: use engine dynamic, or pins")
        goal.stats["options"] = len(options)
        arcs = [
            ((cut.begin, behind), (cut.end, cut.whole), (cut, option))
            for cut, option in options
            for behind in ((False,) if cut.whole else (False, True))  # none in one piece behind one
        ]
        stages = self.space.stages
        priced = ((begin, end, options[one]) for begin, end, one in arcs)
        rows = flow(priced, (0, False), {(stages, False), (stages, True)})

        def read(value: Callable[[int], bool]) -> HybridRun:
            chosen = sorted((one for k, (_, _, one) in enumerate(arcs) if value(k)), key=lambda one: one[0])
            return self.program([best_of(*one, goal.measure) for one in chosen])

        return build(rows, read)

    def _capped(self, goal: Goal, below: int) -> list[Chosen] | None:
        """The best chain within caps, None if there is none; raises TimeUp if that is not proven."""
        most = {"bytes": NEVER, "time": NEVER, **goal.caps}
        most[goal.measure] = min(most[goal.measure], below - 1)
        chains, proven = self.front(Point(most["bytes"], most["time"]), goal.clock)
        if not proven:
            raise TimeUp
        return (chains[-1] if goal.measure == "time" else chains[0]) if chains else None

    def front(self, caps: Point, limit: Clock) -> tuple[list[list[Chosen]], bool]:
        """Return the chains that no other beats within caps, and whether these are all; raises TimeUp."""
        fronts = Fronts({name: self.chain(name) for name in ("bytes", "time")}, caps, limit)
        return fronts.run(), fronts.proven


class HybridPart(Readings[HybridRun, HybridReading]):
    """A network on a machine with memory banks."""

    def __init__(self, network: Network, machine: Machine, pins: Pins) -> None:
        found = readings(network, machine)
        self.name, self.network, self.machine, self.pins = network.name, network, machine, pins
        self.costs = Costs(machine)
        self.readings = {name: HybridReading(self, name, stages) for name, stages in found.items()}
        self._priced: dict[HybridRun, Priced] = {}

    def options(self, schedule: HybridRun) -> Iterator[tuple[Cut, Option, GroupRun]]:
        """Yield the groups of a schedule; raises InputError for one that cannot be cut like that."""
        reading, begin = self.reading(schedule.first_layer), 0
        for run in schedule.groups:
            cut = Cut(begin, begin + run.length, whole=sum(one.count for kind in run.pieces for one in kind) == 1)
            if run.length < 1 or cut.end > reading.space.stages or min(run.columns, run.rows) < 1:
                raise InputError(f"groups: stages {cut.begin} to {cut.end}: there are {reading.space.stages}")
            option = reading.option(cut, Grid(run.columns, run.rows))
            if [sum(one.count for one in kind) for kind in run.pieces] != list(option.pieces.values()):
                raise InputError(f"groups: {option.group.stages[0].name}: its pieces are not those of {option.grid}")
            yield cut, option, run
            begin = cut.end
        if begin != reading.space.stages:
            raise InputError(f"groups: they have {begin} stages, the network has {reading.space.stages}")

    def price(self, schedule: HybridRun) -> Priced:
        """Return bytes and ticks: those of every piece, as often as there are pieces alike."""
        if schedule not in self._priced:
            terms: dict[str, dict[str, int]] = {"bytes": {}, "time": {}}
            for _, option, run in self.options(schedule):
                points = [
                    (one.count, self.costs.of(piece, plan_followed_by(self.costs.walk(piece), one.stages)))
                    for piece, kind in zip(option.pieces, run.pieces, strict=True) for one in kind
                ]  # fmt: skip
                name = option.group.stages[0].name
                terms["bytes"][name] = sum(count * point.bytes for count, point in points)
                terms["time"][name] = sum(count * point.ticks for count, point in points)
            self._priced[schedule] = Priced({name: sum(each.values()) for name, each in terms.items()}, terms)
        return self._priced[schedule]

    def replay(self, schedule: HybridRun) -> Replayed:
        """Replay piece by piece, and compute what they compute."""
        seen = replay_hybrid(self.reading(schedule.first_layer).found, self.machine, schedule.groups)
        total, ticks = sum(one.bytes for one in seen.pieces), sum(one.ticks for one in seen.pieces)
        measures = {} if seen.faults else {"bytes": total, "time": ticks}
        return Replayed(measures, tuple(seen.faults), figures=seen.figures)

    def pieces(self, goal: Goal) -> Iterator[HybridReading]:
        """Yield the readings, those with lower floors first."""
        yield from sorted(self.readings.values(), key=lambda one: one.least[goal.measure == "time"])

    def contains(self, schedule: HybridRun) -> tuple[str, ...]:
        """Return which groups are not of this space."""
        space, wrong, before = self.reading(schedule.first_layer).space, list[str](), False
        for cut, option, run in self.options(schedule):
            name, number, last = option.group.stages[0].name, sum(option.pieces.values()), option.group.last
            if cut.whole and before:
                wrong.append(f"group {name} runs whole behind one that does: they are one group")
            before = cut.whole
            rows = run.rows < last.rows and not space.rows
            sized = run.columns in sizes(last.columns) and run.rows in sizes(last.rows)
            if not space.allows(cut) or not sized or rows or not space.pieces(number):
                wrong.append(f"group {name} runs in {number} pieces of {run.columns} x {run.rows}: pins say no")
        return tuple(wrong)

    def explain(self) -> tuple[str, ...]:
        """Return why no chain of groups ends."""
        for reading in self.readings.values():
            if reading.chain("bytes").run(ENDLESS, NEVER) is not None:
                return ()
        return (f"network {self.name}: no chain of groups fits in {self.costs.banks.count} banks",)


# ---- published techniques, and the problem ---------------------------------------------------------------------------


def blocks(reading: HybridReading) -> list[Cut]:
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


def in_columns(reading: HybridReading, cut: Cut) -> Iterable[Option]:
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


def pure(reading: HybridReading, cut: Cut, measure: str) -> Chosen | None:
    """A block in the fewest pieces whose maps fit on chip; whole if there are none."""
    for option in in_columns(reading, cut):
        possible = option.pieces and all(map(option.costs.floor, option.pieces))
        if possible and all(fits(piece, option) for piece in option.pieces):
            made = by_policy(cut, option, measure)
            if made is not None:
                return made
    return whole(reading, cut.begin, cut.end, measure)


def hybrid(reading: HybridReading, cut: Cut, measure: str) -> Chosen | None:
    """A block in the best number of pieces."""
    found = [by_policy(cut, option, measure) for option in in_columns(reading, cut)]
    return min(found, key=lambda one: value(one, measure))


def per_layer(part: HybridPart, goal: Goal) -> HybridRun | None:
    """Nothing is fused."""
    reading = _first(part)
    return _best(reading, goal, [[whole(reading, 0, reading.space.stages, goal.measure)]])


def pure_fusion(part: HybridPart, goal: Goal) -> HybridRun | None:
    """Every block in pieces that fit on chip."""
    reading = _first(part)
    chain = [pure(reading, cut, goal.measure) for cut in blocks(reading)]
    return _best(reading, goal, [joined_of(reading, chain, goal.measure)])


def hybrid_paper(part: HybridPart, goal: Goal) -> HybridRun | None:
    """Every block in its best number of pieces; per layer if that is better."""
    reading, chain = _first(part), list[Chosen | None]()
    for cut in blocks(reading):
        if goal.clock.over:
            raise Unable("the time is up before all blocks are searched")
        chain.append(hybrid(reading, cut, goal.measure))
    alone = whole(reading, 0, reading.space.stages, goal.measure)
    return _best(reading, goal, [joined_of(reading, chain, goal.measure), [alone]])


def whole(reading: HybridReading, begin: int, end: int, measure: str) -> Chosen | None:
    """Stages in one piece, by policy."""
    cut = Cut(begin, end, whole=True)
    return by_policy(cut, reading.option(cut), measure)


def joined_of(reading: HybridReading, chosen: list[Chosen | None], measure: str) -> list[Chosen | None]:
    """Blocks in one piece that follow each other as one group."""
    made: list[Chosen | None] = []
    for one in chosen:
        last = made[-1] if made else None
        if one is not None and last is not None and one.option.whole and last.option.whole:
            made[-1] = whole(reading, last.cut.begin, one.cut.end, measure)
        else:
            made.append(one)
    return made


def _first(part: HybridPart) -> HybridReading:
    """The reading that policies have."""
    return next(iter(part.readings.values()))


def _best(reading: HybridReading, goal: Goal, made: list[list[Chosen | None]]) -> HybridRun | None:
    """The best of some chains."""
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

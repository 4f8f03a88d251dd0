"""Models of fusion for HiGHS, CBC and CP-SAT: the optima of dynamic programming, and of everything there is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from formulations.clock import ENDLESS, Clock, TimeUp
from formulations.fusion import paths as fusion_paths
from formulations.fusion.groups import NEVER
from formulations.fusion.linear import Limit, Linear
from formulations.fusion.part import FusionPart
from formulations.fusion.paths import Paths
from formulations.fusion.space import Arc, Fusion, Residence, Taken, by_cut
from formulations.pins import parse_pins
from formulations.rows_cp_sat import cp_sat
from formulations.rows_milp import milp
from instances.errors import InputError
from instances.machine.machine import Machine, Transfer
from instances.network.network import Network
from instances.network.operators import Concat, Eltwise, Input
from solver.problems.fusion import FUSION
from solver.search import driver_cp_sat, driver_milp
from solver.search.loop import Answer, decide_part
from tests.effort import THOROUGH
from tests.small import conv

MACHINE = Machine(
    name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=2, ocm_bytes=768, ocm_banks=12, sliding=True,
    in_layout="HWC", out_layout="HWC", w_layout="OHWI", byte_fj=10, mac_fj=1,
    transfer=Transfer(call_ticks=5, segment_ticks=2, byte_ticks=1),
)  # fmt: skip
SHAPE = (1, 4, 12, 6)
WIDE = (1, 8, 12, 6)
ENGINES = ("dynamic", "milp", "milp-cbc", "cp-sat")
Make = Callable[[], Network]


def bottleneck() -> Network:
    """Wider, depthwise, narrower."""
    return Network(name="bottleneck", operators=(
        Input(name="in", shape=SHAPE), conv("a", "in", SHAPE, 8), conv("b", "a", WIDE, 8, 3, groups=8),
        conv("c", "b", WIDE, 4),
    ))  # fmt: skip


def residual() -> Network:
    """A sum of a map and of two convolutions of it, and a stride."""
    return Network(name="residual", operators=(
        Input(name="in", shape=SHAPE), conv("z", "in", SHAPE, 4), conv("a", "z", SHAPE, 8), conv("b", "a", WIDE, 4, 3),
        Eltwise(name="sum", inputs=("z", "b"), shape=SHAPE, fn="add"), conv("d", "sum", SHAPE, 8, 3, stride=2),
    ))  # fmt: skip


def joined() -> Network:
    """Two branches that are joined, and a stride."""
    return Network(name="joined", operators=(
        Input(name="in", shape=SHAPE), conv("z", "in", SHAPE, 4), conv("a", "z", SHAPE, 4, 3), conv("b", "z", SHAPE, 4),
        Concat(name="join", inputs=("a", "b"), shape=WIDE), conv("d", "join", WIDE, 8, 3, stride=2),
    ))  # fmt: skip


def thrice() -> Network:
    """A map that three layers read, one of them last."""
    return Network(name="thrice", operators=(
        Input(name="in", shape=SHAPE), conv("z", "in", SHAPE, 4), conv("a", "z", SHAPE, 4, 3), conv("b", "z", SHAPE, 4),
        Eltwise(name="one", inputs=("a", "b"), shape=SHAPE, fn="add"),
        Eltwise(name="two", inputs=("z", "one"), shape=SHAPE, fn="add"),
    ))  # fmt: skip


def part_of(make: Make, banks: int = 12, bank_bytes: int = 64, pins: Sequence[str] = (), price: int = 1) -> FusionPart:
    energy = {"byte_fj": price * MACHINE.byte_fj, "mac_fj": price * MACHINE.mac_fj}
    on = MACHINE.model_copy(update={"ocm_banks": banks, "ocm_bytes": banks * bank_bytes, **energy})
    (part,) = FUSION.read(make(), on, parse_pins(pins, FUSION.decisions), None)
    return part


@cache
def instance(make: Make, banks: int, bank_bytes: int, measure: str = "bytes") -> Fusion:
    """All arcs, those of one layer with bounds in place of searches."""
    part = part_of(make, banks, bank_bytes)
    tables = part.tables
    while tables.price(tables.arcs(ENDLESS), ENDLESS):
        pass
    return tables.instance(part.factors(measure), "proven", tables.arcs(ENDLESS))


def optimum(solver: str, fusion: Fusion, limits: Sequence[Limit] = ()) -> int | None:
    """The cost of the solver's path, which is what the solver says."""
    linear = Linear(fusion, limits)
    made = cp_sat(linear, linear.path, relaxed=True) if solver == "cp-sat" else milp(linear, linear.path)
    if solver == "cp-sat":
        cp_said = driver_cp_sat.solve(made.model, turns=made.turns, parameters=made.parameters)
        status, bound, solution = cp_said.status, cp_said.bound, cp_said.solver
    else:
        said = driver_milp.solve("cbc" if solver == "cbc" else "highs", made.model)
        status, bound, solution = said.status, said.bound, made.model
    if status == "INFEASIBLE":
        return None
    assert status == "OPTIMAL"
    path = made.decode(solution)
    assert path is not None
    assert kept(fusion, path)
    cost = fusion.cost(path)
    assert made.base + made.unit * bound == cost
    assert all(replace(fusion, factors=factors).cost(path) <= most for factors, most in limits)
    return cost


def kept(fusion: Fusion, path: Sequence[Taken]) -> bool:
    """Whether levels fall only after an arc that uses the map, and there are banks for all."""
    for before, after in pairwise(path):
        for k in fusion.alive[after.arc.first]:
            high, low = before.levels[k], after.before[k]
            if low > high or (low < high and not fusion.shrinks(before.arc, k)):
                return False
    return all(step.free >= 0 for step in path)


def everything(fusion: Fusion) -> Iterator[tuple[Taken, ...]]:
    """Every path with all levels, and room for all."""

    def onward(path: tuple[Taken, ...], cut: int) -> Iterator[tuple[Taken, ...]]:
        if cut == fusion.cuts:
            yield path
        for arcs in fusion.arcs.values():
            for arc in arcs:
                for step in taken(fusion, arc, path[-1:]) if arc.first == cut else ():
                    yield from onward((*path, step), arc.last + 1)

    return onward((), 0)


def taken(fusion: Fusion, arc: Arc, before: Sequence[Taken]) -> Iterator[Taken]:
    """An arc after another one, with all levels that fit."""
    levels: list[dict[int, int]] = [{}]
    for k in fusion.held(arc):
        sizes = range(len(fusion.residences[k].banks))
        levels = [{**some, k: v} for some in levels for v in sizes]
    for some in levels:
        free = fusion.banks - sum(fusion.residences[k].banks[v] for k, v in some.items())
        none = any(v and fusion.barred(arc, k) for k, v in some.items())
        for loads in (-1, fusion.loads(arc)) if some.get(fusion.loads(arc)) else (-1,):
            step = Taken(arc, some, free, loads)
            if free >= 0 and not none and arc.bytes(some, free) < NEVER and kept(fusion, (*before, step)):
                yield step


def with_trade(fusion: Fusion, seed: int) -> Fusion:
    """The instance where bytes and MACs of every arc are drawn anew: few paths are the best in both."""
    draw = random.Random(seed)
    arcs = {
        cut: [replace(arc, macs=draw.randint(1, 9), fixed=draw.randint(0, 300)) for arc in some]
        for cut, some in fusion.arcs.items()
    }
    return replace(fusion, arcs=arcs)


SMALL = [(bottleneck, 6, 64), (residual, 3, 320), (joined, 3, 256), (thrice, 2, 256)]
LARGE = [
    pytest.param(*case, marks=pytest.mark.slow(20))
    for case in [(bottleneck, 24, 64), (residual, 8, 128), (joined, 6, 128), (thrice, 6, 96)]
]


@pytest.mark.few(10)
@pytest.mark.parametrize("solver", ["highs", "cbc", "cp-sat"])
@pytest.mark.parametrize("measure", ["bytes", "energy"])
@pytest.mark.parametrize(("make", "banks", "bank_bytes"), SMALL + LARGE)
def test_the_models_have_the_optimum_of_dynamic_programming(
    make: Make, banks: int, bank_bytes: int, measure: str, solver: str
) -> None:
    fusion = instance(make, banks, bank_bytes, measure)
    assert optimum(solver, fusion) == Paths(fusion).least


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("make", "banks", "bank_bytes"), [(bottleneck, 3, 192), (joined, 2, 288)])
def test_with_caps_the_models_have_the_optimum_of_everything(
    make: Make, banks: int, bank_bytes: int, seed: int
) -> None:
    fusion = with_trade(instance(make, banks, bank_bytes), seed)
    of_macs = replace(fusion, factors=(0, 1))
    paths = [(fusion.cost(path), of_macs.cost(path)) for path in everything(fusion)]
    assert min(cost for cost, _ in paths) == Paths(fusion).least
    macs, sizes = sorted({macs for _, macs in paths}), sorted({cost for cost, _ in paths})
    for most in (macs[0] - 1, macs[0], macs[len(macs) // 4]):
        best = min((cost for cost, macs in paths if macs <= most), default=None)
        assert optimum("highs", fusion, [((0, 1), most)]) == optimum("cp-sat", fusion, [((0, 1), most)]) == best
    most = sizes[len(sizes) // 8]
    best = min(macs for cost, macs in paths if cost <= most)
    assert optimum("highs", of_macs, [((1, 0), most)]) == optimum("cp-sat", of_macs, [((1, 0), most)]) == best


def test_which_levels_may_fall_and_when_weights_are_loaded() -> None:
    """A map of layer 0 that 1 and 3 read, weights of 0, 2 and 4; arcs of a layer and of two, with and without them."""
    rows, none = (0, 1), np.zeros((1, 1), np.int64)
    residences = (Residence(0, 0, (1, 3), rows, rows, rows), Residence(1, 0, (0, 2, 4), rows, rows, rows, weights=True))
    fusion = Fusion(3, 5, residences, 0, {})

    def of(first: int, last: int, *axes: int) -> tuple[bool, bool, int, bool]:
        arc = Arc(first, last, axes, (), (), 0, 0, np.arange(1), none)
        return fusion.shrinks(arc, 0), fusion.shrinks(arc, 1), fusion.loads(arc), fusion.barred(arc, 1)

    assert of(0, 0, 0, 1) == (False, True, -1, False)  # the map is made there
    assert of(0, 0, 0) == (False, True, -1, True)
    assert of(1, 1, 0) == (True, False, -1, False)
    assert of(2, 2, 1) == (False, True, 1, False)
    assert of(0, 1, 0) == (True, True, -1, True)  # strips may want it as a whole
    assert of(0, 1) == (False, True, -1, True)
    assert of(1, 2) == (True, True, -1, False)
    assert of(4, 4, 1) == (False, True, 1, False)
    assert fusion.alive == ((), (0, 1), (0, 1), (0, 1), (1,), ())
    assert fusion.grain(Arc(4, 4, (1,), (), (), 0, 0, np.arange(1), none)) == 1
    assert replace(fusion, residences=()).grain(Arc(4, 4, (), (), (), 0, 0, np.arange(1), none)) == 3


def of_no_network(draw: random.Random) -> Fusion:
    """Two or three layers, a map or two and weights that may stay; any costs, rooms and classes of levels."""
    cuts, banks, residences = draw.randint(3, 4), draw.choice((7, 8)), list[Residence]()
    grain = draw.randint(1, 2)  # in twos of 7 banks 6 can be taken
    for weights in (False, False, True)[draw.randint(0, 1) :]:
        born = 0 if weights else draw.randint(0, cuts - 2)
        uses = tuple(sorted(draw.sample(range(born + 1, cuts), draw.randint(1, cuts - 1 - born))))
        uses, taken = (range(cuts), (0, 2)) if weights else (uses, (0, *sorted(draw.sample(range(1, 5), 2))))
        taken = tuple(grain * size for size in taken)
        write = (0, 0) if weights else tuple(sorted((draw.randint(0, 60) for _ in taken), reverse=True))
        residences.append(Residence(len(residences), born, tuple(uses), taken, (0, 1, 2)[: len(taken)], write, weights))

    def arc(first: int, last: int) -> Arc:
        ends = {k for k, r in enumerate(residences) for cut in (first, last + 1) if r.born < cut <= r.uses[-1]}
        axes = [k for k, r in enumerate(residences) if k in ends and {r.born, *r.uses} & {*range(first, last + 1)}]
        axes = [k for k in axes if first == last or not residences[k].weights]
        kinds = [np.array([draw.randint(0, 1) * (v > 0) for v in range(len(residences[k].banks))]) for k in axes]
        shape = *(int(kind.max()) + 1 for kind in kinds), banks + 1
        table = np.array([draw.choice((NEVER, *range(0, 90, 9))) for _ in range(int(np.prod(shape)))]).reshape(shape)
        reads = [np.array([draw.randint(9, 60) * (residences[k].born < first) for _ in kind])
                 for k, kind in zip(axes, kinds, strict=True)]  # fmt: skip
        reads = [np.array([2 * r[0], 0]) if residences[k].weights else r for k, r in zip(axes, reads, strict=True)]
        return Arc(
            first, last, tuple(axes), tuple(kinds), tuple(reads), draw.randint(0, 30), draw.randint(1, 9),
            np.arange(banks + 1), np.minimum.accumulate(table, axis=-1),
        )  # fmt: skip

    arcs = [arc(a, b) for a in range(cuts) for b in range(a, cuts) if 0 < a == b or draw.random() < 0.6]
    return Fusion(banks, cuts, tuple(residences), draw.randint(0, 50), by_cut(arcs), draw.choice(((1, 0), (2, 3))))


def test_any_arcs_and_levels_give_the_optimum_of_everything() -> None:
    """Also where weights are loaded late (5), B is no multiple of the grain (8, 21), or maps stay unused (178)."""
    for seed in range(400) if THOROUGH else (5, 6, 8, 9, 21, 26, 28, 39, 55, 178):
        fusion = of_no_network(random.Random(seed))
        best = min((fusion.cost(path) for path in everything(fusion)), default=None)
        found = Paths(fusion)
        assert (found.least if found.least < NEVER else None) == best, seed
        assert best is None or fusion.cost(found.path()) == best, seed
        assert optimum("highs", fusion) == best, seed


# ---- from the request to the referee ---------------------------------------------------------------------------------


def answer(engine: str, part: FusionPart, *objectives: str) -> Answer[object]:
    said = decide_part(FUSION, part, objectives, engine)
    assert said.schedule is not None
    assert not part.contains(said.schedule)
    assert not part.replay(said.schedule).faults
    assert part.replay(said.schedule).measures == said.values
    return said


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    ("make", "banks", "objectives"),
    [
        (bottleneck, 4, ("energy",)),
        pytest.param(bottleneck, 6, ("bytes", "macs"), marks=pytest.mark.slow),
        pytest.param(residual, 12, ("bytes",), marks=pytest.mark.slow(15)),
        pytest.param(joined, 12, ("macs", "bytes"), marks=pytest.mark.slow(15)),
    ],
)
def test_every_engine_finds_the_same_plan(make: Make, banks: int, objectives: tuple[str, ...]) -> None:
    said = [answer(engine, part_of(make, banks), *objectives) for engine in ENGINES]
    assert {one.status for one in said} == {"OPTIMAL"}
    assert len({tuple(one.values[name] for name in objectives) for one in said}) == 1


@pytest.mark.few(3)
@pytest.mark.parametrize("factor", [1, 10**3, 10**6, 10**9])
def test_prices_of_energy_that_do_not_fit_in_64_bits(factor: int) -> None:
    """Prices that are as large as that give the same schedule; once costs of two objectives in one were too large."""
    small, large = (
        answer("dynamic", part_of(bottleneck, 4, price=times), "energy", "bytes", "macs") for times in (1, factor)
    )
    assert (large.status, large.schedule) == ("OPTIMAL", small.schedule)
    assert large.values["energy"] == factor * small.values["energy"]
    assert (large.values["bytes"], large.values["macs"]) == (small.values["bytes"], small.values["macs"])


@pytest.mark.slow(4)
def test_the_pin_on_macs_binds_every_engine() -> None:
    total = sum(part_of(bottleneck, 4).tables.macs)
    free = answer("dynamic", part_of(bottleneck, 4, pins=("recompute=any",)), "bytes")
    assert free.status == "OPTIMAL"
    assert free.values["macs"] > 1.05 * total
    loose = answer("dynamic", part_of(bottleneck, 4, pins=("macs<=2",)), "bytes")
    assert (loose.status, loose.values) == ("OPTIMAL", free.values)
    said = {engine: answer(engine, part_of(bottleneck, 4, pins=("macs<=1.05",)), "bytes") for engine in ENGINES}
    unable = said.pop("dynamic")
    assert unable.status == "FEASIBLE"
    assert "engines milp and cp-sat" in str(unable.stats["note"])
    assert len({(one.status, one.values["bytes"]) for one in said.values()}) == 1
    best = said["milp"]
    assert best.status == "OPTIMAL"
    assert best.values["macs"] <= 1.05 * total
    assert free.values["bytes"] < best.values["bytes"] <= unable.values["bytes"]


def test_a_cap_that_nothing_keeps_is_infeasible_for_models() -> None:
    most = {"macs": sum(part_of(bottleneck, 4).tables.macs) - 1}
    said = [decide_part(FUSION, part_of(bottleneck, 4), ("bytes",), engine, most=most).status for engine in ENGINES]
    assert said == ["NO_SOLUTION_FOUND", *["INFEASIBLE"] * 3]


@pytest.mark.slow
def test_models_need_no_dynamic_programming(monkeypatch: pytest.MonkeyPatch) -> None:
    value = answer("dynamic", part_of(bottleneck, 4), "energy").values
    monkeypatch.setattr(fusion_paths, "MOST_STATES", 0)
    alone = [answer(engine, part_of(bottleneck, 4), "energy") for engine in ENGINES[1:]]
    assert {(one.status, one.values["energy"]) for one in alone} == {("OPTIMAL", value["energy"])}
    assert decide_part(FUSION, part_of(bottleneck, 4), ("energy",), "dynamic").status != "OPTIMAL"


def test_arcs_that_paths_of_some_cost_may_have() -> None:
    """Each with the least of all paths through it: without the others that is the optimum."""
    fusion = instance(residual, 6, 64)
    found = Paths(fusion)
    costs = found.through(found.least)
    assert {taken.arc for taken in found.path()} <= set(costs) == {a for a, n in costs.items() if n == found.least}
    assert found.through(found.least - 1) == {}
    some = found.through(NEVER - 1)
    assert len(some) > len(costs)
    for arc, cost in some.items():
        between = {last: [a for a in arcs if a is arc or not _meet(a, arc)] for last, arcs in fusion.arcs.items()}
        assert Paths(replace(fusion, arcs=between)).least == cost


def _meet(one: Arc, two: Arc) -> bool:
    return one.first <= two.last and two.first <= one.last


def test_a_solution_out_of_the_model_is_no_path() -> None:
    linear = Linear(instance(bottleneck, 6, 64))
    with pytest.raises(InputError, match="no arc from cut 0"):
        linear.path(lambda _: False)
    linear.fusion = replace(linear.fusion, banks=0)
    with pytest.raises(InputError, match="no room"):
        linear.path(lambda _: True)


# ---- time limits -----------------------------------------------------------------------------------------------------


class Ticking:
    """A clock that is `step` seconds later whenever it is asked."""

    def __init__(self, step: float) -> None:
        self.step, self.time = step, 0.0

    def __call__(self) -> float:
        self.time += self.step
        return self.time


def test_sketches_go_on_where_they_were_broken_off() -> None:
    whole, broken = part_of(residual).tables, part_of(residual).tables
    arcs = [(arc.first, arc.last, arc.fixed) for arc in whole.arcs(ENDLESS)]
    lengths = list[int]()
    while not broken.complete:
        some = broken.some(Clock.of(3, Ticking(1)))
        lengths.append(max((arc.last - arc.first for arc in some), default=0))
    assert lengths == sorted(lengths)  # short groups come first
    assert len(lengths) > 3
    assert [(arc.first, arc.last, arc.fixed) for arc in broken.arcs(ENDLESS)] == arcs
    with pytest.raises(TimeUp):
        part_of(residual).tables.arcs(Clock.of(3, Ticking(1)))


@pytest.mark.slow(4)
@pytest.mark.parametrize("engine", ["dynamic", "milp", "cp-sat"])
def test_whenever_the_time_is_up_there_is_a_plan_and_a_bound(engine: str) -> None:
    best = decide_part(FUSION, part_of(residual), ("bytes",), "dynamic").values["bytes"]
    values = []
    for asked in (1, 10, 30, 60, 100, 150, 200, 300):
        said = decide_part(FUSION, part_of(residual), ("bytes",), engine, Clock.of(asked, Ticking(1)))
        assert said.schedule is not None
        assert (said.bound or 0) <= best <= said.values["bytes"]
        assert said.status == "FEASIBLE" or said.values["bytes"] == best
        values.append(said.values["bytes"])
    assert values[-1] < values[0]

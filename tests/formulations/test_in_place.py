"""Results in the place of maps: how much room it saves by hand, what is refused, executions, C, random networks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from certile import emit_c
from formulations.fusion.groups import NEVER, Group, Net
from formulations.fusion.latency.options import Options
from formulations.fusion.latency.paths import Paths as LabelledPaths
from formulations.fusion.memory import Option
from formulations.fusion.part import FusionPart
from formulations.fusion.paths import Paths
from formulations.fusion.pins import DECISIONS
from formulations.fusion.schedule import Runs, streams_of
from formulations.fusion.space import Arc, Fusion, Residence, Taken, by_cut
from formulations.fusion.strips import Mode
from formulations.pins import Pins, parse_pins
from hwmodels.fusion.replay.execute import execute
from hwmodels.fusion.replay.strips import Walk
from hwmodels.joint.replay import Account
from hwmodels.schedule import FusedRun, LayerRun, NetworkRun
from instances.load import load_machine
from instances.network.network import Network
from instances.network.operators import Reshape
from instances.zoo.builder import Builder
from solver import check, show
from solver.calls.solve import solve
from solver.plan.plan import Plan
from tests.effort import tries
from tests.emitted import BUILDS, build_and_run, needs_gcc
from tests.formulations.test_fusion_models import optimum

#: Without banks, and with banks of 64 bytes.
MEMORIES = {"ocm_bytes": "2624", "ocm_banks": "0"}, {"ocm_bytes": "2624", "ocm_banks": "41"}
APART = {"ocm_bytes": "4096", "ocm_banks": "0"}


def shortcut() -> Network:
    """1x1 layers a (16 channels), b (4), c (16), a + c, and d (16) on 8 x 8 pixels: 1,024 bytes, 256 those of b."""
    net = Builder("shortcut", "")
    x = net.conv(net.input(1, 16, 8, 8, name="in"), "a", 16, batch_norm=False, act="")
    net.conv(net.conv(x, "b", 4, batch_norm=False, act=""), "c", 16, batch_norm=False, act="")
    net.conv(net.eltwise("add", ("a", "c"), "sum"), "d", 16, batch_norm=False, act="")
    return net.build()


def planned(memory: Mapping[str, str], *pins: str, objective: str = "time") -> Plan:
    return solve(shortcut(), "scratchpad_768k", problem="fusion", objective=objective, settings=dict(memory), pins=pins)


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_sum_in_place_by_hand(memory: Mapping[str, str]) -> None:
    """2,624 bytes: while c runs a (1,024), b (256) and c (1,024) are there, with 64 bytes of weights, while the sum is
    made a and c. The sum beside them would take 3,072; in place of one, 2,048, and nothing moves but the input, 640
    bytes of weights and the result: 2,688. Layer by layer otherwise one of the three maps goes to DRAM and comes back.
    """
    plan = planned(memory, "length<=1")
    assert [dict(run.in_place) for run in plan.schedule] in ([{}, {}, {}, {3: at}, {}] for at in (0, 2))
    assert plan.measures["bytes"] == 1024 + (256 + 64 + 64 + 256) + 1024
    assert "sum 8 in place of" in show(plan)
    assert check(plan).ok
    apart = planned(memory, "length<=1", "in_place=no")
    assert not any(run.in_place for run in apart.schedule)
    assert apart.measures["bytes"] >= plan.measures["bytes"] + 2 * 1024
    assert apart.measures["time"] > plan.measures["time"]


@pytest.mark.parametrize("problem", ["fusion", "joint"])
@pytest.mark.parametrize("engine", ["dynamic", "milp", "cp-sat"])
def test_fewest_bytes_by_hand(problem: str, engine: str) -> None:
    """The same network: nothing moves but what must. With maps apart engines prove 3,712: some rows leave the chip."""
    pins = ("length<=1",) if problem == "fusion" else ()
    asked = partial(solve, shortcut(), "scratchpad_768k", problem=problem, objective="bytes", engine=engine,
                    settings=MEMORIES[1])  # fmt: skip
    plan = asked(pins=pins)
    assert (plan.status, plan.measures["bytes"]) == ("OPTIMAL", 2688)
    assert [len(run.in_place) for run in plan.schedule] == [0, 0, 0, 1, 0]
    assert check(plan).ok
    apart = asked(pins=(*pins, "in_place=no"))
    assert (apart.status, apart.measures["bytes"]) == ("OPTIMAL", 3712)


# ---- dynamic programming against all levels --------------------------------------------------------------------------


def falling(rng: random.Random, count: int, *more: int) -> npt.NDArray[np.int64]:
    """Numbers of which none is above the one before."""
    return np.array(sorted((rng.choice((*range(9), *more)) for _ in range(count)), reverse=True))


def random_instance(rng: random.Random) -> Fusion:
    """Four layers, one by one or two together, and three maps; some arcs have a map in the place of another one."""
    count = 4
    made = []
    for store in range(3):
        born = rng.randint(0, 2)
        uses = tuple(sorted(rng.sample(range(born + 1, count), rng.randint(1, count - born - 1))))
        size, write = rng.randint(0, 1), sorted((rng.randint(0, 50) for _ in range(2)), reverse=True)
        made.append(Residence(store, born, uses, (0, 1, 2 + size), (0, 1, 2), (*write, 0)))
    rooms, arcs = np.arange(5), list[Arc]()
    for first in range(count):
        for last in range(first, min(count, first + 2)):
            read = [k for k, a in enumerate(made) if a.born < first and any(first <= use <= last for use in a.uses)]
            after = [k for k, a in enumerate(made) if first <= a.born <= last < a.uses[-1] and first < last]
            axes = (*read, *after)
            kinds = tuple(np.array([0, 0, 1]) if rng.random() < 0.5 else np.arange(3) for _ in axes)
            reads = tuple(5 * falling(rng, 3) if k in read else np.zeros(3, np.int64) for k in axes)
            shape = tuple(int(kind.max()) + 1 for kind in kinds)
            table = np.stack([falling(rng, 5, NEVER) for _ in range(prod(shape))]).reshape(*shape, 5)
            arc = Arc(first, last, axes, kinds, reads, rng.randint(0, 5), 0, rooms, table)
            arcs.append(arc)
            pairs = [(new, old) for new, a in enumerate(made) for old, b in enumerate(made)
                     if first <= a.born <= last < a.uses[-1] and b.born < first <= b.uses[-1] <= last]  # fmt: skip
            arcs += [replace(arc, in_place=(pair,)) for pair in pairs]
    return Fusion(4, count, tuple(made), 3, by_cut(arcs))


def every_path(one: Fusion, cut: int = 0, before: Mapping[int, int] | None = None) -> Iterator[tuple[Taken, ...]]:
    """All paths from a cut with all levels, if those that end there have these."""
    if cut == one.cuts:
        yield ()
    for arc in (arc for some in one.arcs.values() for arc in some if arc.first == cut):
        held = one.held(arc)
        kept = before or {}
        for chosen in product(range(3), repeat=len(held)):
            levels = dict(zip(held, chosen, strict=True))
            if any(levels[k] != kept[k] for k in held if k in kept):
                continue
            if any(levels[k] != 2 for pair in arc.in_place for k in pair):
                continue
            over = {made for made, _ in arc.in_place}
            free = one.banks - sum(one.residences[k].banks[v] for k, v in levels.items() if k not in over)
            if arc.bytes(levels, free) >= NEVER:
                continue
            names = [k for k in held if k in one.alive[arc.last + 1]]
            ends = [range(levels[k] + 1) if one.shrinks(arc, k) else (levels[k],) for k in names]
            for after in product(*ends):
                for rest in every_path(one, arc.last + 1, dict(zip(names, after, strict=True))):
                    yield (Taken(arc, levels, free), *rest)


def test_least_costs_are_those_of_all_levels_and_places() -> None:
    """Random instances, whether paths use places or not; some by a solver, too."""
    rng, used = random.Random(8), 0
    for number in range(tries(160, 2000)):
        one = random_instance(rng)
        least = min((one.cost(path) for path in every_path(one)), default=NEVER)
        found = Paths(one)
        assert min(found.least, NEVER) == least
        if least < NEVER:
            path = found.path()
            assert one.cost(path) == least
            used += (placed := any(step.arc.in_place for step in path))
            assert min(found.through(least).values()) == least
            assert not (placed or number % 8 == 0) or optimum("highs", one) == least
    assert used


def test_nobody_else_of_a_group_reads_a_map_that_gives_its_place() -> None:
    """In a group of b, c and the sum a is read by b as well; from c on by the sum alone, as is c."""
    groups = FusionPart(shortcut(), load_machine("scratchpad_768k", APART), Pins(())).groups
    a, c, total = (groups.number[groups.net.writes[t]] for t in (0, 2, 3))
    assert groups.places(3, 1, 3) == (total, ())
    assert groups.places(3, 2, 3) == (total, (a,))
    assert groups.places(3, 3, 3) == (total, (a, c))
    assert groups.places(3, 3, 4) == (total, ())  # d reads the sum in the group


# ---- what the referee refuses ----------------------------------------------------------------------------------------


def residual(*, fn: str = "add", taps: int = 1, late: bool = False) -> Network:
    """x, y of x, s = x + y, z of s; `taps`: s is a pool of y; `late`: a sum of x and z ends it."""
    net = Builder("residual", "")
    x = net.conv(net.input(1, 4, 8, 8, name="in"), "x", 4, batch_norm=False, act="")
    net.conv(x, "y", 4, batch_norm=False, act="")
    if taps > 1:
        net.pool("y", "s", "max", taps, 1, pad=taps // 2)
    else:
        net.eltwise(fn, ("x", "y"), "s")
    net.conv("s", "z", 4, batch_norm=False, act="")
    if late:
        net.eltwise("add", ("x", "z"), "end")
    return net.build()


def runs_in_place(network: Network, place: int = 0, mode: Mode = "lead") -> tuple[FusionPart, Runs]:
    """Layers one by one in strips of 2 rows, maps on chip from the one that makes them on; s in place of a layer's."""
    part = FusionPart(network, load_machine("scratchpad_768k", APART), Pins(()))
    net, made, alive = part.net, list[FusedRun | LayerRun](), list[int]()
    for t, at in enumerate(net.writes):
        alive = [s for s in alive if net.stores[s].readers[-1] >= t] + [at] * bool(net.stores[at].readers)
        streams = streams_of(Group(net, t, t), Option(2, net.layers[t].c, mode, "lead"))
        residents: dict[int, tuple[int, tuple[int, ...]]] = {s: (net.stores[s].rows, ()) for s in alive}
        unwritten = residents[at][0] if at in residents and not net.stores[at].results else 0
        in_place = {at: net.writes[place]} if t == 2 else {}
        made.append(FusedRun(t, t, *streams, (0,), residents, (unwritten,), (), (), in_place))
    return part, NetworkRun(tuple(made))


def faults(part: FusionPart, runs: Runs) -> str:
    return "; ".join(part.walked(runs).faults)


@pytest.mark.parametrize("place", [0, 1])
def test_a_sum_may_lie_where_either_of_its_inputs_lay(place: int) -> None:
    part, runs = runs_in_place(residual(), place)
    assert not faults(part, runs)


@pytest.mark.parametrize(("network", "place", "rows", "said"), [
    (residual(taps=3), 1, "lead", "s does not read each pixel of it for that pixel of its result alone"),
    (residual(late=True), 0, "lead", "s is not the only one to read it from here on"),
    (residual(), 0, "recompute", "s may compute pixels again, and what it read is gone"),
    (residual(), 3, "lead", "both must be on chip"),
])  # fmt: skip
def test_places_that_are_not_free(network: Network, place: int, rows: Mode, said: str) -> None:
    part, runs = runs_in_place(network, place, rows)
    assert said in faults(part, runs)


def test_a_place_is_given_once_and_as_a_whole() -> None:
    part, runs = runs_in_place(residual())
    (x, y, at), run = part.net.writes[:3], runs.runs[2]
    assert isinstance(run, FusedRun)

    def said(**fields: object) -> str:
        return faults(part, NetworkRun((*runs.runs[:2], replace(run, **fields), *runs.runs[3:])))  # type: ignore[arg-type]

    assert "several" in said(in_place={at: x, y: x})
    assert "both must be maps on chip as a whole" in said(residents={**run.residents, x: (4, ())})
    assert "no layer here makes all of it" in said(in_place={y: x})
    banks = {store: (8, (bank,)) for bank, store in enumerate((x, y, at))}
    account = Account(part.net, part.machine)
    assert "it has other banks" in "; ".join(account.faults_before(replace(run, residents=banks), range(2, 3)))


def test_a_result_of_the_network_gives_no_place() -> None:
    """Its store may be delayed: it would carry what the sum wrote there."""
    inner = residual()
    seen = Reshape(name="seen", inputs=("x",), shape=inner.operator("x").shape, fn="identity")
    network = Network(name="seen", operators=(*inner.operators, seen))
    part, runs = runs_in_place(network)
    assert part.net.in_place(2) == (part.net.writes[1],)
    assert "s takes the place of x: it is a result of the network" in faults(part, runs)


def test_what_gave_its_place_is_gone() -> None:
    """A map that a result took the place of is on chip no more, even if a later run says so."""
    part, runs = runs_in_place(residual())
    last = replace(runs.runs[3], residents={**runs.runs[3].residents, part.net.writes[0]: (8, ())})
    assert "8 rows of x are on chip, in the layer before 0 were" in faults(part, NetworkRun((*runs.runs[:3], last)))


def test_an_execution_sees_what_is_overwritten() -> None:
    """A pool of 3x3 in place of what it reads: its second strip reads a row that the first one made."""
    for network, differs in ((residual(taps=3), True), (residual(), False)):
        part, runs = runs_in_place(network, 1)
        walk = Walk(part.net, runs.runs[2])  # type: ignore[arg-type]
        said = execute(part.net, part.machine, walk, None).faults
        assert bool(said) == differs, said


def test_layers_that_may_take_a_place() -> None:
    """A sum and a product of two maps may, but not what is broadcast, a pool, or what is read later."""

    def of(network: Network) -> tuple[int, ...]:
        return Net.read(network, load_machine("scratchpad_768k")).in_place(2)

    assert of(residual()) == of(residual(fn="mul")) == (0, 1)
    assert of(residual(late=True)) == (1,)
    assert of(residual(taps=3)) == ()
    gate = Builder("gate", "")
    x = gate.conv(gate.input(1, 4, 8, 8, name="in"), "x", 4, batch_norm=False, act="")
    gate.eltwise("mul", (x, gate.pool(x, "g", "avg", 8, 8)), "s")
    gate.conv("s", "z", 4, batch_norm=False, act="")
    assert of(gate.build()) == (0,)  # of the map, not of its gate


def test_a_pin_forbids_it_in_a_plan() -> None:
    part, runs = runs_in_place(residual())
    asked = FusionPart(residual(), part.machine, parse_pins(["in_place=no"], DECISIONS))
    assert not part.contains(runs)
    assert "pin in_place=no forbids" in "; ".join(asked.contains(runs))


# ---- whole plans -----------------------------------------------------------------------------------------------------


def random_shortcuts(rng: random.Random) -> Network:
    """Blocks of some layers around a shortcut, like those of residual networks; now and then of other channels."""
    net, size, channels = Builder("shortcuts", ""), rng.randint(3, 8), rng.choice((2, 4, 8))
    x = net.conv(net.input(1, channels, size, size, name="in"), "first", channels, batch_norm=False, act="")
    for k in range(rng.randint(1, 3)):
        y = x
        for n in range(rng.randint(1, 2)):
            y = net.conv(y, f"c{k}{n}", rng.randint(1, 8), rng.choice((1, 3)), batch_norm=False, act="")
        y = net.conv(y, f"last{k}", channels, batch_norm=False, act="")
        x = net.eltwise(rng.choice(("add", "mul")), rng.sample((x, y), 2), f"sum{k}")
    net.conv(x, "end", rng.randint(1, 8), batch_norm=False, act="")
    return net.build()


@pytest.mark.parametrize("seed", range(tries(3, 30)))
def test_engines_agree(seed: int) -> None:
    """The fewest bytes with sums in place, of groups and of layers one by one; no path of whole maps moves less."""
    rng = random.Random(seed)
    network, banks = random_shortcuts(rng), rng.choice((0, 16))
    most = max(one.b * one.g * one.m * one.r * one.c for one in network.layers)
    settings = {"ocm_bytes": str(int(most * rng.uniform(2, 3.2)) // 16 * 16), "ocm_banks": str(banks)}
    pins = ["length<=1", "turns=no"] if rng.random() < 0.5 else ["turns=no"]
    plans = [
        solve(
            network, "scratchpad_768k", problem="fusion", objective="bytes", engine=engine, settings=settings, pins=pins
        )
        for engine in ("dynamic", "milp", "cp-sat")
    ]
    assert len({(plan.status, plan.measures.get("bytes")) for plan in plans}) == 1
    assert all(check(plan).ok for plan in plans)
    part = FusionPart(network, load_machine("scratchpad_768k", settings), parse_pins(pins, DECISIONS))
    if plans[0].status == "OPTIMAL":
        assert plans[0].measures["bytes"] <= LabelledPaths(Options(part.groups, 4096, part._nest_in)).fewest


def test_random_networks_with_shortcuts() -> None:
    """Plans fit, are as fast as with maps apart or nearly so, and no bound is above one of both."""
    rng, some, won = random.Random(5), 0, 0
    for _ in range(tries(2, 60)):
        network, banks = random_shortcuts(rng), rng.choice(("0", "16"))
        most = max(one.b * one.g * one.m * one.r * one.c for one in network.layers)
        settings = {"ocm_bytes": str(int(most * rng.uniform(2, 3.2)) // 16 * 16), "ocm_banks": banks}
        pins = [f"length<={rng.randint(1, 2)}"]
        plans = [solve(network, "scratchpad_768k", problem="fusion", objective="time", settings=settings,
                       pins=pins + more) for more in ([], ["in_place=no"])]  # fmt: skip
        if any(plan.status == "INFEASIBLE" for plan in plans):
            continue
        assert all(check(plan).ok for plan in plans)
        assert plans[0].part.bounds["time"] <= min(plan.measures["time"] for plan in plans)
        assert plans[0].measures["time"] <= 1.02 * plans[1].measures["time"]
        some += any(run.in_place for run in plans[0].schedule)
        won += plans[0].measures["time"] < plans[1].measures["time"]
    assert some
    assert won


@needs_gcc
@pytest.mark.parametrize("pins", [("length<=1",), ()])
def test_c_of_results_in_the_place_of_maps(tmp_path: Path, pins: tuple[str, ...]) -> None:
    """Numbers and transfers are as planned, whenever the DMA copies."""
    memory = {"ocm_bytes": "2048", "ocm_banks": "0"} if not pins else MEMORIES[1]
    plan = planned(memory, *pins)
    assert any(run.in_place for run in plan.schedule)
    emit_c(plan, tmp_path / "c")
    for flags in BUILDS[:2]:
        assert "results and transfers as planned" in build_and_run(tmp_path / "c", flags)

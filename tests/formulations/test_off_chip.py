"""Several memories off the chip: by hand, price against replay, plans of all engines, homes by brute force."""

from __future__ import annotations

import json
import random
from functools import cache
from importlib import resources
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from formulations.homes.problem import Homes, Housing, rows_of
from formulations.homes.space import TASTE, Item, Places, Table, places_of, weight_bytes
from formulations.pins import Pins, parse_pins
from formulations.problem import Goal
from formulations.tiling import tiling
from formulations.tiling.front import NestFront
from formulations.tiling.problem import TILING
from formulations.tiling.space import stage_of
from hwmodels.nest.homes import assignments, machine_with_homes, repriced
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import least_energy, lower_bound_bytes
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Loop, Nest
from instances.errors import InfeasibleError, InputError
from instances.load import list_machines, load_machine, load_network
from instances.machine.machine import Machine, Transfer
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input
from instances.network.tasks import tensors
from instances.network.workload import Layer
from solver import solve
from solver.ask.question import Question
from solver.calls.check import check
from solver.calls.solve import ask as question
from solver.calls.solve import show
from solver.cli.main import main
from solver.plan.plan import Plan
from solver.problems import homes as homes_solve
from solver.problems.registry import problem_of
from solver.problems.tiling import fronts, prepare
from solver.search import driver_cp_sat, driver_milp
from solver.search import loop as search
from solver.search.loop import Answer, unanswered
from tests.adversary.layers import _off_chip, random_layer, random_machine
from tests.adversary.moves import Moves, nest_of
from tests.effort import in_turn, tries
from tests.golden_plans import FLASH, FLAT
from tests.lies import problems

#: In one process: optima by brute force are found once for all engines.
pytestmark = pytest.mark.xdist_group("homes by brute force")
#: M = 4 filters over N = 2 channels of 4x4, 1x1 kernel: IN 32, W 8, OUT 64 bytes, 128 MACs.
LAYER = Layer.conv("x", channels=2, filters=4, size=(4, 4))
HOLDS = (Hold("IN"), Hold("W"), Hold("OUT"))
NEAR = {"name": "near", "transfer": {"call_ticks": 10, "byte_ticks": 1}, "byte_fj": 2}
FAR_PRICE = {"call_ticks": 20, "segment_ticks": 2, "burst_ticks": 4, "burst_bytes": 8, "byte_ticks": 3}
FAR = {"name": "far", "transfer": FAR_PRICE, "byte_fj": 9}
SPLIT = {"IN": ["near"], "W": ["far"], "OUT": ["near"]}


def machine(homes: dict[str, list[str]], near: int | None = None, **changes: object) -> Machine:
    """One core that holds the layer whole, one byte an element, no compute, 1 fJ a MAC."""
    fields: dict[str, object] = {
        "name": "m", "tick_ps": 1, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 1, "ocm_bytes": 200,
        "mac_fj": 1, "off_chip": [{**NEAR, "bytes": near}, FAR], "homes": homes,
    }  # fmt: skip
    return Machine.model_validate(fields | changes)


# ---- prices --------------------------------------------------------------------------------------------------


def test_every_operand_is_priced_in_its_home() -> None:
    # IN 10 + 32, OUT 10 + 64, W in one run of one burst of far: 20 + 2 + 4 + 3 * 8
    on, nest = machine(SPLIT), Nest(HOLDS, (("IN", "near"), ("W", "far"), ("OUT", "near")))
    outcome = price(LAYER, on, nest)
    assert outcome.time_ticks == 42 + 74 + 50
    assert outcome.energy_fj == 2 * 32 + 9 * 8 + 2 * 64 + 128
    assert (outcome.by_operand["IN"].bursts, outcome.by_operand["W"].bursts) == (0, 1)  # near has no bursts
    assert replay(LAYER, on, nest).outcome == outcome
    assert price(LAYER, on, Nest(HOLDS)) == outcome  # a machine that leaves no choice needs no homes in the nest
    # fewest bytes are the least energy only where all bytes take the same
    assert (stage_of("energy", on), stage_of("energy", load_machine("scratchpad_64k"))) == ("energy", "bytes")


def test_partial_sums_live_where_results_do() -> None:
    # one channel after the other, two filters at a time: IN twice 10 + 16; W four times 2 runs of a byte:
    # 20 + 2*2 + 2*4 + 2*3 = 38; both tiles of OUT, 32 bytes in 4 bursts, go out as partial sums, come back and go out
    # as results: 20 + 2 + 4*4 + 32*3 = 134
    on = machine({"IN": ["near"], "W": ["far"], "OUT": ["far"]})
    nest = Nest((Loop("n", 1), Loop("m", 2), *HOLDS))
    outcome = price(LAYER, on, nest)
    assert outcome.time_ticks == 2 * 26 + 4 * 38 + 2 * 3 * 134
    assert outcome.energy_fj == 2 * 32 + 9 * 8 + 9 * 3 * 64 + 128
    assert replay(LAYER, on, nest).outcome == outcome


def test_double_buffered_reads_add_up_over_the_memories() -> None:
    # all in one step: reads of IN (42) and W (50) before, the write of OUT (74) behind, no compute between
    on = machine(SPLIT, buffering="double", ocm_bytes=400)
    assert price(LAYER, on, Nest(HOLDS)).time_ticks == 42 + 50 + 74
    # biases come with the weights, in a run, a burst and 4 bytes more of far; to and fro, too
    biased = LAYER.model_copy(update={"bias": True})
    for one in (on, machine(SPLIT, snake=True)):
        one = one.model_copy(update={"bias_bytes": 1})
        assert price(biased, one, Nest(HOLDS)).time_ticks == 42 + (50 + 2 + 4 + 3 * 4) + 74
    # rows of 1: step 0 loads 10 + 8 and W; a load (18) beside a store of 16 bytes (10 + 16 = 26) in between, three
    # times one beside the other but for the first load pair: 68 + 18 + 26 + 26 + 26 + 26
    nest = Nest((Hold("W"), Loop("r", 1), Hold("IN"), Hold("OUT")))
    by_hand = (18 + 50) + 18 + max(18, 26) + max(18, 26) + 26 + 26
    channels_last = on.model_copy(update={"in_layout": "HWC", "out_layout": "HWC"})
    outcome = price(LAYER, channels_last, nest)
    assert outcome.time_ticks == by_hand
    assert replay(LAYER, channels_last, nest).outcome == outcome


@settings(max_examples=tries(15, 60), deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_price_is_replay(seed: int, cores: bool) -> None:
    rng = random.Random(seed)
    layer = random_layer(rng, tiny=False)
    plain = random_machine(rng, layer, cores=cores)
    fields = {k: v for k, v in plain.model_dump().items() if k not in ("transfer", "byte_fj", "off_chip", "homes")}
    on = Machine.model_validate({**fields, **_off_chip(rng, uniform=plain.edge_tiles == "uniform")} | {"byte_fj": 0})
    moves, homes = Moves(layer, plain, rng), rng.choice(assignments(layer, on))
    form = moves.start()
    for _ in range(8):
        form = moves.changed(form)
    nest = nest_of(layer, form).at(homes)
    try:
        priced = price(layer, on, nest)
    except InputError:  # what closed forms refuse: resident rows on several cores
        return
    walked = replay(layer, on, nest, execute=False)
    assert walked.outcome == priced
    if walked.ok:  # the bounds are of nests that fit
        assert priced.energy_fj >= least_energy(layer, machine_with_homes(layer, on, homes))
        assert priced.bytes >= lower_bound_bytes(layer, on)


@pytest.mark.slow(2)
def test_one_memory_with_a_name_is_one_without() -> None:
    plain = load_machine("scratchpad_24k")
    fields = plain.model_dump()
    memory = {"name": "dram", "transfer": fields.pop("transfer"), "byte_fj": fields.pop("byte_fj")}
    homes = {operand: ["dram"] for operand in ("IN", "W", "OUT")}
    named = Machine.model_validate({**fields, "off_chip": [memory], "homes": homes})
    layer = Layer.conv("c", channels=8, filters=12, size=(14, 14), kernel=(3, 3), pad=(1, 1, 1, 1))
    one, two = solve(layer, plain), solve(layer, named)
    assert one.measures == two.measures
    assert (one.status, one.bound) == (two.status, two.bound)
    assert one.layers[0].schedule.items == two.layers[0].schedule.items


# ---- machines ------------------------------------------------------------------------------------------------


def test_other_machines_do_not_name_the_fields() -> None:
    several = {
        "axi64_256k", "u256_flash", "ethos_u55_256", "gap8", "gap9", "stm32n6", "tpu_v1", "stm32h743", "esp32_s3",
        "max78002",
    }  # fmt: skip
    for name in list_machines():
        stored = load_machine(name).model_dump(mode="json")
        assert ("off_chip" in stored, "homes" in stored) == (name in several,) * 2
        assert ("transfer" not in stored) == (name in several or "levels" in stored)
        assert Machine.model_validate(stored) == load_machine(name)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"homes": {"IN": ["near"], "W": ["far"]}}, "homes.OUT: name one or more of near, far"),
        ({"homes": {**SPLIT, "W": ["rom"]}}, "homes.W: there is no memory rom off the chip, expected near, far"),
        ({"homes": {**SPLIT, "X": ["far"]}}, "homes: there is no operand X"),
        ({"off_chip": [NEAR, NEAR]}, "every memory needs a name of its own"),
        ({"off_chip": [{**NEAR, "writable": False}, FAR]}, "homes.OUT: near is not writable"),
        ({"transfer": {"byte_ticks": 1}}, "give either transfer or off_chip"),
        ({"byte_fj": 1}, "give either byte_fj or off_chip"),
        ({"reading": "literal"}, "off_chip needs reading 'consistent'"),
        ({"off_chip": []}, "transfer"),
    ],
)
def test_machines_that_cannot_be(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        machine(**{"homes": SPLIT, **changes})


#: The time of a nest by the closed form and by the referee.
READERS = (
    lambda layer, on, nest: price(layer, on, nest).time_ticks,
    lambda layer, on, nest: replay(layer, on, nest).outcome.time_ticks,
)


def test_homes_that_the_machine_does_not_allow() -> None:
    on = machine({"IN": ["near"], "W": ["far", "near"], "OUT": ["near"]})
    for homes, said in (
        ((), "leaves a choice"),
        ((("IN", "near"), ("OUT", "near")), "W has no home"),
        ((("IN", "far"), ("W", "far"), ("OUT", "near")), "IN may not lie in far"),
    ):
        with pytest.raises(InputError, match=said):
            price(LAYER, on, Nest(HOLDS, homes))
        with pytest.raises(InputError, match=r"nest: |may lie in|allows"):
            replay(LAYER, on, Nest(HOLDS, homes)) if homes else on.transfer_of("W")
    assert {transfer.burst_ticks for transfer in repriced(on, burst_ticks=9).transfers} == {9}
    pool = LAYER.model_copy(update={"kind": "pool", "g": 2, "m": 1, "n": 1, "weights": "none"})
    lies = (("IN", "near"), ("W", "far"), ("OUT", "near"))
    for reader in (price, replay):
        with pytest.raises(InputError, match=r"has one memory|no off_chip memories"):
            reader(LAYER, load_machine("scratchpad_24k"), Nest(HOLDS, lies[:1]))
        with pytest.raises(InputError, match=r"does not have$"):
            reader(pool, on, Nest((Hold("IN"), Hold("OUT")), lies))
    # what W of two maps is, a map, lies where IN may
    product = Layer.matmul("p", rows=4, inner=3, cols=5, activation=True)
    both = {"IN": "near", "W": "near", "OUT": "near"}
    assert assignments(product, on) == (both,)
    assert replay(product, on, Nest(HOLDS).at(both)).ok
    split = machine({"IN": ["near"], "W": ["far"], "OUT": ["near"]})  # whatever else W may lie in, said or not
    times = {reader(product, split, nest) for nest in (Nest(HOLDS), Nest(HOLDS).at(both)) for reader in READERS}
    assert len(times) == 1
    with pytest.raises(InputError, match="W lies in far"):
        replay(product, on, Nest(HOLDS, lies))


# ---- plans of a layer ----------------------------------------------------------------------------------------


def test_a_product_of_two_maps_finds_both_where_maps_lie() -> None:
    layer = Layer.matmul("p", rows=4, inner=3, cols=5, activation=True)
    plan = solve(layer, machine(SPLIT))
    assert dict(plan.layers[0].schedule.homes) == {"IN": "near", "W": "near", "OUT": "near"}
    assert check(plan).ok


def test_every_engine_chooses_the_same_homes(engine: str) -> None:
    for layer, on in homeless():
        for objective in ("time", "energy"):
            plan = solve(layer, on, engine=engine, objective=objective)
            assert (plan.objective.value if plan.objective else None) == least_of_homes(layer, on, objective)
            assert check(plan).ok


@cache
def homeless() -> tuple[tuple[Layer, Machine], ...]:
    """Random tiny layers on machines that leave homes open."""
    rng, made = random.Random(1), []
    for _ in range(2):
        layer = random_layer(rng, tiny=True).model_copy(update={"resident_in": (), "resident_out": 0})
        on = Machine.model_validate({
            "name": "m", "tick_ps": 1, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 2, "ocm_bytes": 60,
            "mac_fj": 1, **_off_chip(rng, uniform=False), "byte_fj": 0,
        })  # fmt: skip
        made.append((layer, on))
    return tuple(made)


_LEAST: dict[object, int | None] = {}


def least_of_homes(layer: Layer, on: Machine, objective: str) -> int | None:
    """The least of the optima of all homes, each decided once for all engines; None where no plan fits."""
    key = layer.model_dump_json(), on.model_dump_json(), objective
    if key not in _LEAST:
        alone = [settled_alone(layer, on, homes) for homes in assignments(layer, on)]
        plans = [solve(layer, one, engine="exhaustive", objective=objective) for one in alone]
        _LEAST[key] = min((plan.objective.value for plan in plans if plan.objective), default=None)
    return _LEAST[key]


def settled_alone(layer: Layer, on: Machine, homes: dict[str, str]) -> Machine:
    """The machine with one name for each operand, as a file could say it."""
    return on.model_copy(update={"homes": machine_with_homes(layer, on, homes).homes})


@pytest.mark.slow(2)
def test_energy_is_proven_for_itself_where_bytes_differ(engine: str) -> None:
    # 60 bytes hold no operand and another whole: the fewest bytes may not be the least energy
    on = machine(SPLIT, ocm_bytes=40)
    found = solve(LAYER, on, engine=engine, objective="energy")
    brute = min(
        price(LAYER, on, nest).energy_fj
        for loops in product(((), (Loop("m", 1),), (Loop("m", 2),), (Loop("r", 1),), (Loop("r", 2),)), repeat=2)
        for at in product(range(3), repeat=3)
        if price(LAYER, on, nest := nest_at(loops, at)).occupancy_bytes["ocm"] <= 40
    )
    assert found.status == "OPTIMAL"
    assert found.objective.value <= brute


def nest_at(loops: tuple[tuple[Loop, ...], ...], at: tuple[int, ...]) -> Nest:
    """Two groups of loops, Holds before, between and behind them; a loop that repeats one outside is left out."""
    items: list[Loop | Hold] = []
    for depth in range(3):
        items += [hold for hold, place in zip(HOLDS, at, strict=True) if place == depth]
        if depth < 2:
            items += [x for x in loops[depth] if not any(isinstance(y, Loop) and y.dim == x.dim for y in items)]
    return Nest(tuple(items))


def test_pins_on_homes() -> None:
    on = machine({"IN": ["near"], "W": ["near", "far"], "OUT": ["near"]})
    assert solve(LAYER, on).layers[0].decision["home_W"] == "near"
    pinned = solve(LAYER, on, pins=["home_W=far"])
    assert pinned.objective.value == 42 + 74 + 50
    assert check(pinned).ok
    assert "off the chip: IN in near, W in far, OUT in near" in show(pinned, details=True)
    for pins, said in (
        (["home_W=rom"], "has far or near off the chip"),
        (["home_IN=far"], "may lie in near only"),
        (["home_W!=near", "home_W!=far"], "may lie in far or near only"),
    ):
        with pytest.raises(InputError, match=said):
            solve(LAYER, on, pins=pins)
    with pytest.raises(InputError, match="one memory off the chip"):
        solve(LAYER, "scratchpad_24k", pins=["home_W=flash"])


@pytest.mark.slow(2)
def test_fronts_are_over_all_homes() -> None:
    on = machine({"IN": ["near"], "W": ["near", "far"], "OUT": ["near"]}, ocm_bytes=60)
    found = fronts(prepare(TILING, question(LAYER, on)[1]), ("bytes", "time"))["x"]
    alone = [
        fronts(prepare(TILING, question(LAYER, settled_alone(LAYER, on, homes))[1]), ("bytes", "time"))["x"].points
        for homes in assignments(LAYER, on)
    ]
    every = {p.values for points in alone for p in points}
    kept = {v for v in every if not any(w != v and w[0] <= v[0] and w[1] <= v[1] for w in every)}
    assert {p.values for p in found.points} == kept


@pytest.mark.parametrize("said", list(product([True, False], repeat=4)))
def test_a_front_over_homes_is_what_all_of_them_are(said: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """W lies in near or far: complete and proven of the one, and of the other."""
    on = machine({"IN": ["near"], "W": ["near", "far"], "OUT": ["near"]})
    made = iter((NestFront(("bytes", "time"), (), *said[:2]), NestFront(("bytes", "time"), (), *said[2:])))
    monkeypatch.setattr("solver.problems.tiling.front_of_space", lambda *_, **__: next(made))
    found = fronts(prepare(TILING, question(LAYER, on)[1]), ("bytes", "time"))["x"]
    assert (found.complete, found.proven) == (said[0] and said[2], said[1] and said[3])


# ---- capacity and networks -----------------------------------------------------------------------------------


def test_a_memory_that_is_too_small() -> None:
    homes = {"IN": ["near"], "W": ["near", "far"], "OUT": ["near"]}
    assert solve(LAYER, machine(homes, near=104)).layers[0].decision["home_W"] == "near"  # 32 + 8 + 64
    assert solve(LAYER, machine(homes, near=103)).layers[0].decision["home_W"] == "far"
    with pytest.raises(
        InfeasibleError, match=r"memory near off the chip: 96 bytes of 95 \(0 of weights, 96 of the 2 maps"
    ):
        solve(LAYER, machine(homes, near=95))


def test_a_layer_whose_smallest_tile_does_not_fit(engine: str) -> None:
    plan = solve(LAYER, machine(SPLIT, ocm_bytes=2), engine=engine)
    assert plan.status == "INFEASIBLE"
    assert "memory ocm" in plan.layers[0].conflicts[0]
    assert check(plan).ok


def network(*more: Conv | Eltwise | Concat) -> Network:
    """A 2x4x4 input and what follows."""
    return Network(name="net", operators=(Input(name="in", shape=(1, 2, 4, 4)), *more))


def conv(name: str, source: str, filters: int) -> Conv:
    """A 1x1 convolution on 4x4."""
    return Conv(name=name, inputs=(source,), shape=(1, filters, 4, 4), filters=filters, kernel=(1, 1))


CHAIN = network(conv("a", "in", 4), conv("b", "a", 3), conv("c", "b", 2))
#: Three layers that are solved as one.
ALIKE = network(conv("a", "in", 2), conv("b", "a", 2), conv("c", "b", 2))
FORK = network(
    conv("a", "in", 3), conv("b", "a", 3), Eltwise(name="s", inputs=("a", "b"), shape=(1, 3, 4, 4), fn="add"),
    Concat(name="j", inputs=("s", "a"), shape=(1, 6, 4, 4)), conv("c", "j", 2),
)  # fmt: skip
OPEN = {"IN": ["near", "far"], "W": ["far", "near"], "OUT": ["near", "far"]}


def test_bytes_of_weights_and_biases() -> None:
    # 2 groups of 3 filters over 2 channels, 2 x 1: 24 weights of 2 bytes, and 6 biases of 4
    on = machine(SPLIT, w_bytes=2, bias_bytes=4)
    layer = Layer.conv("x", channels=4, filters=6, groups=2, kernel=(2, 1), size=(4, 4), bias=True)
    assert weight_bytes(layer, on) == 48 + 24
    assert weight_bytes(layer.model_copy(update={"bias": False}), on) == 48
    assert weight_bytes(Layer.matmul("y", rows=2, inner=3, cols=4, activation=True), on) == 0  # a map, no weights


def test_maps_are_there_while_they_are_needed() -> None:
    found = tensors(CHAIN)
    assert [(t.name, t.elements, t.outside, t.first, t.last) for t in found.maps] == [
        ("in", 0, 32, 0, 1), ("a", 64, 0, 1, 2), ("b", 48, 0, 2, 3), ("c", 32, 0, 3, 3)
    ]  # fmt: skip
    fork = tensors(FORK)  # a and s lie in the concatenation: 3 + 3 channels of 16 elements
    assert {t.name: (t.elements, t.first, t.last) for t in fork.maps}["j"] == (96, 1, 5)


#: The least of a layer for some homes, by signature, homes and objective.
_BRUTE: dict[object, int] = {}


def brute(target: Network, on: Machine, objective: str, all_kinds: bool) -> int | None:
    """The least sum over all homes of all maps and weights, each layer solved by itself with one name for each."""
    layers = target.layers if all_kinds else target.conv_layers
    places = places_of(target, layers, on, Pins())
    known = _BRUTE
    best: int | None = None
    for chosen in product(*(item.homes for item in places.items)):
        if next(places.faults(chosen), None) is not None:
            continue
        total = 0
        for table, layer in zip(places.tables, layers, strict=True):
            homes = {operand: chosen[x] for operand, x in table.operands.items()}
            key = layer.signature(), tuple(homes.items()), objective
            if key not in known:
                roomy = settled_alone(layer, on, homes)
                roomy = roomy.model_copy(
                    update={"off_chip": tuple(m.model_copy(update={"bytes": None}) for m in roomy.off_chip)}
                )
                known[key] = solve(layer, roomy, objective=objective).objective.value
            total += known[key]
        best = total if best is None else min(best, total)
    return best


@pytest.mark.parametrize(
    ("target", "all_kinds", "engine"), in_turn([(ALIKE, False), (FORK, True)], ["milp", "cp-sat", "exhaustive"])
)
def test_homes_of_a_network_by_brute_force(target: Network, all_kinds: bool, engine: str) -> None:
    near = 130  # not all maps and weights fit, but some do
    on = machine(OPEN, near=near, ocm_bytes=90)
    plan = solve(target, on, engine=engine, all_kinds=all_kinds, objective="time")
    expected = brute(target, on, "time", all_kinds)
    assert plan.objective.value == expected
    report = check(plan)
    assert report.ok, report.problems
    homes = {item.name: item.home for item in plan.shared.items}
    by_layer = {row.layer: dict(row.schedule.homes) for row in plan.layers}
    assert by_layer["a"]["IN"] == homes["in"]
    assert by_layer["c"]["OUT"] == homes["c"]
    assert plan.shared.peaks.get("near", 0) <= near


def test_a_map_that_its_maker_and_reader_look_for_elsewhere() -> None:
    on = machine({"IN": ["far"], "W": ["far"], "OUT": ["near"]})
    assert solve(LAYER, on).objective is not None  # a layer alone reads one map and makes another
    with pytest.raises(InputError, match=r"map a: IN of layer b may lie in far .* nobody else"):
        solve(CHAIN, on)


HOMES = Homes()


def random_places(rng: random.Random) -> Places:
    """Up to six items in two or three memories, some of them bounded, and up to four layers."""
    names, number, end = ["a", "b", "c"][: rng.randint(2, 3)], rng.randint(2, 6), rng.randint(1, 4)
    items = []
    for x in range(number):
        first = rng.randint(0, end)
        may = tuple(rng.sample(names, rng.randint(1, len(names))))
        items.append(Item(f"i{x}", rng.randint(0, 20), first, rng.randint(first, end), may, rng.random() < 0.3))
    rooms = {name: rng.randint(5, 60) for name in names if rng.random() < 0.7}
    bare = Places(tuple(items), ((0, 1),) if rng.random() < 0.3 else (), rooms, ())
    tables = []
    for t in range(rng.randint(1, 4)):
        operands = {op: rng.randrange(number) for op in ("IN", "W", "OUT")[: rng.randint(2, 3)]}
        values = {
            tuple(one.values()): (rng.randint(0, 9) * rng.choice((1, 10**4)), rng.randint(0, 9))
            for one in bare.assignments(operands)
        }
        tables.append(Table(f"l{t}", operands, values))
    return Places(bare.items, bare.ties, rooms, tuple(tables), ("time", "bytes"))


def least(places: Places) -> dict[str, int]:
    """All measures and the places of the homes, by looking at all homes; none if nothing fits."""
    part = Housing(places)
    fitting = (c for c in product(*(i.homes for i in places.items)) if not part.contains(c))
    found = [part.price(chosen).measures for chosen in fitting]
    return dict(min(found, key=lambda one: tuple(one.values()), default={}))


@pytest.mark.parametrize("engine", HOMES.engines)
def test_every_encoding_finds_the_least_of_all_homes(engine: str) -> None:
    rng, gave_up = random.Random(3), 0
    for _ in range(tries(8, 60)):
        places = random_places(rng)
        said, best = search.decide_part(HOMES, Housing(places), (*places.measures, TASTE), engine), least(places)
        if engine == "milp-cbc" and said.status in ("FEASIBLE", "NO_SOLUTION_FOUND"):  # values of very different size
            assert all(bound is None or bound <= best[name] for name, bound in said.bounds.items() if best)
            gave_up += 1
            continue
        assert said.status == ("OPTIMAL" if best else "INFEASIBLE")
        assert dict(said.values) == best
        assert said.schedule is None or not list(places.faults(said.schedule))
    assert gave_up <= 2


def test_rows_hold_for_homes_that_fit_and_for_no_others() -> None:
    """Of all homes, those within a cap on time that are not left out; the objective is what they cost in bytes."""
    rng = random.Random(4)
    for _ in range(12):
        places = random_places(rng)
        part, every = Housing(places), [*product(*(item.homes for item in places.items))]
        cap, out = part.price(rng.choice(every)).measures["time"] + rng.randint(0, 9), rng.sample(every, 1)
        rows, read = rows_of(places, Goal("bytes", {"time": cap}), out)
        for chosen in every:
            made = [name == home for item, home in zip(places.items, chosen, strict=True) for name in item.homes]
            for table in places.tables:
                made += [homes == tuple(chosen[x] for x in table.operands.values()) for homes in table.values]
            sums = [(sum(n * made[x] for x, n in terms.items()), low, high) for terms, low, high in rows.rows]
            hold = all((low is None or low <= one) and (high is None or one <= high) for one, low, high in sums)
            costs = part.price(chosen).measures
            assert hold == (not part.contains(chosen) and costs["time"] <= cap and chosen not in out)
            assert rows.base + rows.unit * sum(n * made[x] for x, n in rows.cost.items()) == costs["bytes"]
            assert read(made.__getitem__) == chosen


def test_every_constraint_counts() -> None:
    """Without (ROOM) and without (TIE) some instance has a better answer, which `faults` names."""
    value = {("a", "a"): (1,), ("a", "b"): (5,), ("b", "a"): (5,), ("b", "b"): (9,)}
    items = tuple(Item(name, 10, 0, 1, ("a", "b")) for name in ("x", "y"))
    tables = (Table("t", {"IN": 0, "OUT": 1}, value),)
    for ties, rooms, best in (((), {"a": 15}, 5), ((), {}, 1), (((0, 1),), {"a": 15}, 9)):
        places = Places(items, ties, rooms, tables, ("time",))
        for engine in HOMES.engines:
            assert search.decide_part(HOMES, Housing(places), ("time",), engine).bounds == {"time": best}
    places = Places(items, (), {"a": 15}, tables)
    assert "memory a off the chip: 20 bytes of 15" in next(places.faults(("a", "a")))
    assert "are read together" in next(Places(items, ((0, 1),), {}, ()).faults(("a", "b")))


# ---- plans as files ------------------------------------------------------------------------------------------


def answered(plan: Plan) -> Answer[Nest]:
    """The answer for the only layer of a plan."""
    (row,) = plan.parts
    return Answer(row.schedule, row.measures, row.bounds, row.status, stats=row.stats, conflicts=row.conflicts)


def test_homes_that_nobody_had_time_for_keep_a_bound() -> None:
    # IN 10 + 32 and OUT 10 + 64 in near, W 50 in far: no plan with these homes takes fewer than 32 + 64 + 3 * 8 ticks
    on = machine({"IN": ["near"], "W": ["near", "far"], "OUT": ["near"]})
    request = prepare(TILING, Question(LAYER, on, ("time",)))
    (table,) = request.places.tables
    parts = {("x", homes): request.part(LAYER, homes) for homes in homes_solve.homes_of(request.places, table)}
    plans = {name: unanswered(part, ("time",)) for name, part in parts.items()}
    near = next(homes for homes in plans if dict(homes[1])["W"] == "near")
    near_only = solve(LAYER, on, pins=["home_W=near"])
    plans[near] = answered(near_only)
    said = homes_solve.choose(request.places, plans, ("time",), "exhaustive")
    assert (said.layers["x"], said.status, said.bound) == (near[1], "FEASIBLE", 32 + 64 + 24)


@pytest.mark.parametrize("engine", ["cp-sat", "milp", "milp-cbc"])
def test_homes_are_kept_when_ctrl_c_ends_a_search(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The homes with the least time stay; which of equal ones is not asked any more, so nothing is proven."""
    on, calls = machine({"IN": ["near"], "W": ["near", "far"], "OUT": ["near"]}), []
    request = prepare(TILING, Question(LAYER, on, ("time",)))
    (table,) = request.places.tables
    made = {("x", homes): solve(LAYER, on, pins=[f"home_W={dict(homes)['W']}"])
            for homes in homes_solve.homes_of(request.places, table)}  # fmt: skip
    every = {name: answered(plan) for name, plan in made.items()}
    best = homes_solve.choose(request.places, every, ("time",), engine)
    for driver in (driver_cp_sat, driver_milp):
        monkeypatch.setattr(driver, "interruptible", lambda work, stop: (calls.append(stop), (work(), True))[1])
    said = homes_solve.choose(request.places, every, ("time",), engine)
    assert (best.status, said.status, len(calls)) == ("OPTIMAL", "FEASIBLE", 1)
    assert (said.layers, said.bound) == (best.layers, best.bound)
    with pytest.raises(KeyboardInterrupt):  # nothing is planned yet
        solve(CHAIN, machine(OPEN, near=130, ocm_bytes=90), engine=engine)


#: What a plan of two layers says of homes, all in sram, and what a check finds: in, c0 and c1 are items 0 to 2 of 64,
#: 64 and 32 bytes, the weights of c0 (16 bytes) and c1 (8) are items 3 and 4.
LIES: list[tuple[Any, str]] = [
    (("shared.items.3.home", "flash"), "homes of layer c0: the plan says {'IN': 'sram', 'W': 'sram', 'OUT': 'sram'}"),
    (("parts.0.schedule.homes.W", "flash"), "homes of layer c0: the plan says {'IN': 'sram', 'W': 'flash'"),
    (("shared.peaks.sram", 151), "homes.peaks: the plan says {'sram': 151}, it is {'sram': 152}"),
    (("shared.items.3.bytes", 15), "homes of layer c0: bytes of c0.weights: the plan says 15, it is 16"),
    (("shared.items.1.bytes", 63), "homes of layer c0: c0 has 63 bytes, the result 64"),
    (("shared", None), "homes: machine u256_flash has several memories off the chip, the plan says otherwise"),
    (("shared.items.0.homes", ["rom"]), "homes: in: machine u256_flash has no memory rom off the chip"),
    (("shared.items.0.home", "rom"), "homes: in: machine u256_flash has no memory rom off the chip"),
    (("shared.items.0.homes", ["flash"]), "homes of layer c0: IN may not lie in flash by the machine and the pins"),
    (("shared.items.1.homes", ["flash"]), "homes of layer c0: OUT may not lie in flash by the machine and the pins"),
    (("options.pins", ["home_W=flash"]), "homes of layer c0: W may not lie in sram by the machine and the pins"),
    (("shared.items.3.weights", False), "homes of layer c0: c0.weights is no weights, but W"),
    (("shared.items.0.weights", True), "homes of layer c0: in is weights, but IN"),
    (("shared.layers.0.operands.W", 5), "homes: items are numbered 0 to 4, got 5"),
    (("shared.ties", [[0, 5]]), "homes: items are numbered 0 to 4, got 5"),
    (("shared.items.0.first", 2), "homes: in is there from 2 to 1"),
    (("shared.layers.0.layer", "c9"), "homes.layers: the plan says ['c9', 'c1'], it is ['c0', 'c1']"),
    (("shared.layers.0.operands", {"IN": 0, "W": 3}), "homes of layer c0: operands IN, W, it has IN, W, OUT"),
    (("shared.items.2.home", None), "homes: some items have no home, although there is a schedule"),
    (("machine_data.off_chip.0.bytes", 151), "152"),
    (("bound", 2137), "bound 2137 is above the value 2136"),
]


@pytest.fixture(scope="module")
def flash() -> Plan:
    return solve(FLAT, FLASH[0], settings=FLASH[1])


@pytest.mark.parametrize(("lie", "said"), LIES)
def test_check_finds_homes_that_lie(flash: Plan, lie: Any, said: str) -> None:
    found = problems(flash, lie)
    assert any(said in line for line in found), found


def test_several_objectives_are_proven_only_with_every_layer(flash: Plan) -> None:
    asked = Pins()
    both = flash.model_copy(update={"objectives": ("time", "bytes")})
    said = "status OPTIMAL in several objectives, but some layer is not"
    assert said not in list(homes_solve.problems_of_homes(both, asked))
    open_ = (flash.parts[0], flash.parts[1].model_copy(update={"status": "FEASIBLE"}))
    assert said in list(homes_solve.problems_of_homes(both.model_copy(update={"parts": open_}), asked))
    assert said not in list(homes_solve.problems_of_homes(flash.model_copy(update={"parts": open_}), asked))
    worse = flash.model_copy(update={"bound": 1602, "status": "FEASIBLE"})  # of 2,136 ticks
    assert problem_of(flash).totals_of(worse, flash.parts)["gap"] == 0.25
    plain = flash.model_copy(update={"machine_data": load_machine("scratchpad_24k")})
    assert "has not several memories" in next(homes_solve.problems_of_homes(plain, asked))


@pytest.mark.slow(3)
def test_prove_solves_all_homes_again() -> None:
    plan = solve(ALIKE, machine(OPEN, near=130, ocm_bytes=90), objective="bytes")
    report = check(plan, prove=True)
    assert report.ok, report.problems
    assert report.proof == "proven"


def test_the_command_line_says_what_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    homes = '{"IN":["sram"],"W":["sram"],"OUT":["sram"]}'
    code = main(["solve", "resnet50", "--machine", "u256_flash", "--set", f"homes={homes}"])
    said = capsys.readouterr().err.strip()
    assert code == 3
    assert said.count("\n") == 0
    assert "memory sram off the chip" in said
    assert "of 4,194,304" in said


# ---- joint ---------------------------------------------------------------------------------------------------


def test_what_joint_asks_of_homes() -> None:
    """Maps of CHAIN take more than 90 bytes of near; energy is that of bytes alone where all bytes cost the same."""

    def refused(on: Machine, *objectives: str) -> str:
        with pytest.raises(InputError) as told:
            homes_solve.check_homes(CHAIN, on, objectives or ("bytes",))
        return str(told.value)

    assert "IN may lie in near or far: pin home_IN=near" in refused(machine(OPEN))
    assert "memory near off the chip" in refused(machine(SPLIT, near=90))
    assert "unlike energy" in refused(machine(SPLIT), "bytes", "energy")
    homes_solve.check_homes(CHAIN, machine(SPLIT), ("bytes",))
    homes_solve.check_homes(CHAIN, machine({operand: ["far"] for operand in SPLIT}), ("energy",))
    pins = parse_pins(["home_IN=near", "home_W!=near", "home_OUT!=far"], TILING.decisions)
    assert homes_solve.narrowed(machine(OPEN), pins).homes == {"IN": ("near",), "W": ("far",), "OUT": ("near",)}
    with pytest.raises(InputError, match="pin home_IN!=near: IN may lie in near only"):
        homes_solve.narrowed(machine(SPLIT), parse_pins(["home_IN!=near"], TILING.decisions))


@pytest.mark.slow(3)
def test_joint_needs_one_home_for_each_operand() -> None:
    on = machine(OPEN, ocm_bytes=96, ocm_banks=6)
    with pytest.raises(InputError, match="this problem needs one home for each operand, IN may lie in near or far"):
        solve(CHAIN, on, problem="joint")
    pins = ["home_IN=near", "home_W=far", "home_OUT=near"]
    plan = solve(CHAIN, on, pins=pins, problem="joint")
    plain = machine(SPLIT, ocm_bytes=96, ocm_banks=6)
    assert plan.measures == solve(CHAIN, plain, problem="joint").measures
    assert check(plan).ok
    with pytest.raises(InputError, match="unlike energy"):
        solve(CHAIN, plain, objective="energy", problem="joint")
    with pytest.raises(InfeasibleError, match="memory near off the chip"):
        solve(CHAIN, machine(SPLIT, near=90, ocm_bytes=96, ocm_banks=6), problem="joint")


def test_the_literal_price_of_a_space_needs_homes() -> None:
    """A space built on a machine that leaves a choice prices nothing, instead of pricing something wrong."""
    on = machine({"IN": ["near"], "W": ["near", "far"], "OUT": ["near"]})
    space = tiling.build(LAYER, on, parse_pins((), tiling.DECISIONS))
    with pytest.raises(InputError, match="W may lie in near or far, the plan must say where"):
        space.members[0].branch(("time",))


@pytest.mark.parametrize("name", ["u256_flash", "axi64_256k"])
def test_every_number_has_a_public_source_or_is_assumed(name: str) -> None:
    data = json.loads((resources.files("instances") / "machines" / f"{name}.json").read_text(encoding="utf-8"))
    numbers = {k for k, v in data.items() if isinstance(v, int) and not isinstance(v, bool)}
    numbers |= {f"compute.{k}" for k, v in data["compute"].items() if isinstance(v, int)}
    for memory in data["off_chip"]:
        where = f"off_chip.{memory['name']}"
        numbers |= {f"{where}.{k}" for k, v in memory.items() if isinstance(v, int) and not isinstance(v, bool)}
        numbers |= {f"{where}.transfer.{k}" for k, v in memory["transfer"].items() if isinstance(v, int)}
    rules = {"homes", "channels", "buffering", "sliding", "off_chip.flash.writable"}
    assert numbers == set(data["sources"]) - rules
    for field, source in data["sources"].items():
        public = source.startswith(("Vela, ", "NVDLA, spec/defs/", "Alif Semiconductor, "))
        assert public or source.startswith("assumed") or field == "tick_ps", field


@pytest.mark.slow(4)
def test_bundled_machines_plan_real_layers() -> None:
    for name in ("u256_flash", "axi64_256k"):
        assert isinstance(load_machine(name).off_chip[0].transfer, Transfer)
        plan = solve(load_network("mobilenet_v2"), name, layers=["block16/expand"], objective="bytes")
        assert plan.status == "OPTIMAL"
        assert check(plan).ok

"""The adversary of nests: its prices are replay's, its searches find what is known, faults that we plant are found."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace

import pytest

from formulations.clock import Clock
from formulations.pins import Pins
from formulations.tiling import space as floors
from formulations.tiling.front import NestFront, Point
from formulations.tiling.part import NestPart
from formulations.tiling.problem import Nests
from hwmodels.nest.price.pieces import Window
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import DIMS, Layer
from solver.problems import tiling as nests
from solver.search.loop import Answer
from tests.adversary import demands, nest_fronts, nest_tester
from tests.adversary.anneal import Goal, Witness, confirmed, searched
from tests.adversary.lattice import able, least
from tests.adversary.layers import objectives, random_layer, random_machine
from tests.adversary.moves import Form, Moves, form_of, nest_of, partitions, spreads, tidy
from tests.adversary.nest_case import NestCase, case_from, case_of, random_case, simpler
from tests.adversary.nest_claims import Claim, asked, contradicted, own_witness, unsearched
from tests.adversary.pricing import Pricer
from tests.adversary.registry import TESTERS
from tests.adversary.tiny import _sequences, enumerated
from tests.effort import thinned, tries


def machine(**fields: object) -> Machine:
    """One byte an element, time = bytes."""
    one = dict.fromkeys(("tick_ps", "in_bytes", "w_bytes", "out_bytes", "psum_bytes"), 1)
    return Machine.model_validate({"name": "m", **one, "transfer": Transfer(byte_ticks=1), "sliding": True, **fields})


PADDED = Layer.conv("padded", channels=1, filters=1, size=(5, 5), kernel=(3, 3), pad=(1, 1, 1, 1))
COLUMN = Layer.conv("column", channels=1, filters=1, size=(5, 1), kernel=(3, 1), pad=(1, 0, 1, 0))


# ---- prices and forms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(tries(20, 80)))
def test_prices_are_those_of_replay(seed: int) -> None:
    rng = random.Random(seed)
    layer = random_layer(rng, tiny=seed % 2 == 0)
    one = random_machine(rng, layer, cores=seed % 4 == 0)
    moves = Moves(layer, one, rng)
    form = moves.start()
    for _ in range(rng.randint(0, 8)):
        form = moves.changed(form)
    priced = Pricer(layer, one).price(form.spread, form.items)
    walked = replay(layer, one, nest_of(layer, form), execute=False)
    outcome = walked.outcome
    assert (priced.bytes, priced.energy) == (outcome.bytes, outcome.energy_fj)
    assert priced.room == sum(outcome.occupancy_bytes.values())
    assert (priced.over > 0) == any(fault.startswith("memory") for fault in walked.faults)
    if one.timing == "double_buffered":
        assert priced.time <= outcome.time_ticks
    else:
        assert priced.time == outcome.time_ticks
    assert form_of(layer, nest_of(layer, form)) == form == tidy(layer, form)


def test_tidy_leaves_out_what_cuts_nothing() -> None:
    """r: 5 -> (2, 3) by a place; 3 cuts neither; 2 cuts the piece of 3; places 0 and 5 are outside."""
    items = (("r", (0, 2, 5)), ("r", 3), ("IN", None), ("r", 2), ("W", None), ("c", 5), ("OUT", None))
    assert tidy(PADDED, Form((), items)).items == (
        ("r", (2,)), ("IN", None), ("r", 2), ("W", None), ("OUT", None)
    )  # fmt: skip
    assert nest_of(PADDED, tidy(PADDED, Form((), items))).items[0] == Loop("r", 3, (2,))


def test_layers_are_shared_as_the_paper_says() -> None:
    """Five filters and five rows for two clusters of two cores: 3 and 2 filters, each cut by 2; or 3 and 2 rows."""
    layer = PADDED.model_copy(update={"m": 5})
    by_filters, by_rows = (("m", 3, "tle"), ("m", 2, "tlt")), (("r", 3, "tle"), ("m", 3, "tlt"))
    assert partitions(layer, machine(tles=2, tlts=2, ocm_bytes=99, problem="slicing")) == {
        "KS": by_filters, "KS&OFM": by_rows, "OFM": by_rows
    }  # fmt: skip
    assert spreads(layer, machine(ocm_bytes=99)) == ((),)


# ---- demands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "pin", "met"),
    [
        ((("r", 2), ("IN", None), ("W", None), ("OUT", None)), "T_R=2", True),
        ((("IN", None), ("W", None), ("OUT", None), ("r", 2)), "T_R=2", False),  # inside all Holds
        ((("IN", None), ("OUT", None), ("r", 2), ("W", None)), "T_R=5", True),  # W has no rows
        ((("r", (2,)), ("IN", None), ("W", None), ("OUT", None)), "T_R=3", True),  # the largest piece
        ((("r", 2), ("IN", None), ("W", None), ("OUT", None)), "sizes=divisors", False),
        ((("r", 1), ("IN", None), ("W", None), ("OUT", None)), "resident=W", True),
        ((("i", 1), ("IN", None), ("W", None), ("OUT", None)), "resident=W", False),
        ((("c", 1), ("r", 1), ("IN", None), ("W", None), ("OUT", None)), "output=row_major", False),
        ((("r", 1), ("c", 1), ("IN", None), ("W", None), ("OUT", None)), "output=row_major", True),
        ((("r", 1), ("c", 1), ("IN", None), ("W", None), ("OUT", None)), "holds=uniform", True),
        ((("r", 1), ("W", None), ("c", 1), ("IN", None), ("OUT", None)), "holds=uniform", False),
        ((("r", (2,)), ("IN", None), ("W", None), ("OUT", None)), "holds=uniform", False),
        ((("c", 1), ("r", 1), ("IN", None), ("W", None), ("OUT", None)), "order=mnrc", False),
        ((("r", 1), ("c", 1), ("IN", None), ("W", None), ("OUT", None)), "order=mnrc", True),
    ],
)
def test_demands_are_read_from_the_nest(items: tuple[tuple[str, int | None], ...], pin: str, met: bool) -> None:
    assert demands.broken(PADDED, machine(ocm_bytes=99), (pin,), Form((), items)) == (0 if met else 1)


@pytest.mark.parametrize(
    ("nest", "met"),
    [
        ("r m n IN W OUT", True),  # OS
        ("m W r n IN OUT", True),  # WS
        ("m r n IN W OUT", False),  # rows outside filters, or W outside rows
        ("r W n IN OUT", False),
        ("m W r IN n OUT", False),
    ],
)
def test_several_cores_have_the_dataflows_of_the_paper(nest: str, met: bool) -> None:
    buffers = {"ocm_bytes": None, "in_buffer_bytes": 9, "w_buffer_bytes": 9, "out_buffer_bytes": 9}
    items = tuple((x, 1 if x in DIMS else None) for x in nest.split())
    on = machine(**buffers, tles=2, problem="slicing")
    assert demands.broken(PADDED, on, ("holds=uniform",), Form((), items)) == (0 if met else 1)


def test_a_plan_has_one_partition_by_name() -> None:
    on = machine(ocm_bytes=None, in_buffer_bytes=9, w_buffer_bytes=9, out_buffer_bytes=9, tlts=2, problem="slicing")
    form = Form((("m", 1, "tlt"),), (("IN", None), ("W", None), ("OUT", None)))
    assert (
        demands.broken(COLUMN, on, ("partition=KS",), form) == demands.broken(COLUMN, on, ("partition=OFM",), form) == 0
    )
    assert demands.broken(COLUMN, on, ("partition=KS", "partition=OFM"), form) == 1


def test_demands_of_papers_are_not_read() -> None:
    assert demands.readable(("T_R<=2", "partition=KS", "buffers_IN=1"))
    assert not demands.readable(("dataflow=OS",))


# ---- searches ----------------------------------------------------------------------------------------------------

#: What certile 0.1.0 called optimal: layer, machine, measure, its nest, its value, and a value that some nest has.
OLD: dict[str, tuple[Layer, Machine, list[Item], int, int]] = {
    "strips of columns": (
        PADDED, machine(ocm_bytes=19), [Hold("W"), Loop("r", 1), Loop("c", 1), Hold("IN"), Hold("OUT")], 99, 79
    ),
    "whole tiles": (
        COLUMN, machine(ocm_bytes=7, sliding=False), [Loop("r", 1), Hold("IN"), Hold("W"), Hold("OUT")], 21, 17
    ),
}  # fmt: skip


@pytest.mark.slow(3)
@pytest.mark.parametrize("name", OLD)
def test_annealing_beats_what_was_called_optimal(name: str) -> None:
    layer, one, items, claimed, least = OLD[name]
    goal, form = Goal(layer, one, ("bytes",)), form_of(layer, Nest(tuple(items)))
    old = confirmed(goal, form)
    assert not isinstance(old, str)
    assert old.vector == (claimed,)
    for given in ([form], []):
        found = searched(goal, given, 3, random.Random(1), tries=2000)
        assert found is not None
        assert found.vector == (least,)


def test_enumeration_beats_what_was_called_optimal() -> None:
    layer, one, _, _, least = OLD["whole tiles"]
    found, whole = enumerated(Goal(layer, one, ("bytes",)), 2, 50_000)
    assert whole
    assert found is not None
    assert found.vector == (least,)


@pytest.mark.slow
def test_annealing_beats_a_real_plan_that_was_called_optimal() -> None:
    layer = load_network("inception_v3").layer("Mixed_5b/branch3x3dbl_3")
    items = (Loop("m", 24), Hold("W"), Loop("c", 9), Loop("r", 1), Hold("IN"), Hold("OUT"))
    goal, claimed = Goal(layer, load_machine("scratchpad_24k"), ("bytes",)), 751_584
    form = form_of(layer, Nest(items))
    found = searched(goal, [form] * 8, 0, random.Random(0), tries=4000, below=(claimed,))
    assert found is not None
    assert found.vector < (claimed,)


def test_all_sequences_of_loops_are_enumerated() -> None:
    """Three at any places: {1}, {2}, {1, 2}; after {1} or {2} the other: 1 + 3 + 2. In steps 2, 1: 1 + 2 + 1."""
    size = dict.fromkeys("bgmnrcij", 1)
    for d in "rm":
        assert len(list(_sequences({**size, d: 3}, 2, places=True))) == 1 + 3 + 2
        assert len(list(_sequences({**size, d: 3}, 2, places=False))) == 1 + 2 + 1
    # one loop: 3 + 3; two: rr and mm 2, rm and mr 9 each
    assert len(list(_sequences({**size, "r": 3, "m": 3}, 2, places=True))) == 1 + 6 + 4 + 18


def test_the_best_of_all_nests_is_that_of_all_that_are_enumerated() -> None:
    """Of layers with up to three places to cut: three loops are as many as there may be."""
    rng, compared = random.Random(0), 0
    while compared < tries(10, 60):
        layer = random_layer(rng, tiny=True)
        on = random_machine(rng, layer, cores=False)
        goal = Goal(layer, on, objectives(rng))
        if not able(layer, on, 3):
            continue
        every, found = enumerated(goal, 3, 20_000), least(goal)
        assert every[1]
        assert (found and found.vector) == (every[0] and every[0].vector), (layer, on)
        compared += found is not None and len(found.form.items) > len(layer.operands)


def test_the_best_of_all_nests_cuts_channels_anywhere() -> None:
    """Seven filters on two lanes, 3 at most: 3 + 2 + 2 take four rounds, 3 + 3 + 1 five, 2 + 2 + 2 + 1 more calls."""
    layer = Layer.conv("x", channels=1, filters=7, size=(1, 1))
    array = {"compute": Compute(model="array", rows=2, cols=1, cycle_ticks=9), "overlap": "serial"}
    found = least(Goal(layer, machine(ocm_bytes=7, transfer=Transfer(call_ticks=1), **array), ("time",)))
    assert found is not None
    assert found.vector == (4 * 9 + 1 + 3 + 3,)


def test_least_times_are_those_of_all_nests() -> None:
    """What is proven is the best of all nests, whatever they cut where; no bound is above it."""
    rng, compared = random.Random(2), 0
    while compared < tries(12, 300):
        layer = random_layer(rng, tiny=True)
        on = random_machine(rng, layer, cores=False)
        goal = Goal(layer, on, rng.choice((("time",), ("bytes", "time"), ("energy", "time"))))
        if not able(layer, on, 7):
            continue
        claims, best = [asked(goal, "exhaustive", "tiling"), *unsearched(goal, "tiling")], least(goal)
        found = [("the best of all", best)] if best is not None else []
        assert [what for what, _ in contradicted(claims, found)] == [], (layer, on)
        assert claims[0].vector is None or (best is not None and best.vector <= claims[0].vector)
        compared += best is not None


def test_loops_inside_all_holds_may_save_cycles() -> None:
    """Three channels, Eq. 7: tiles of 2 in two pieces are 4 cycles, cut once more inside all Holds 3 tiles of 1."""
    layer = Layer.conv("x", channels=3, filters=1, size=(1, 1))
    tiles = {"compute": Compute(model="tile", cycle_ticks=4, macs_per_cycle=5), "overlap": "serial", "ocm_bytes": 6}
    goal = Goal(layer, machine(**tiles, transfer=Transfer(call_ticks=6, segment_ticks=2, byte_ticks=3)), ("time",))
    best = least(goal)
    assert best is not None
    assert best.vector == (3 * 4 + 4 * 6 + 4 * 2 + 7 * 3,)
    claim = asked(goal, "exhaustive", "tiling")
    assert claim.bound is not None
    assert claim.bound <= best.vector[0]


def test_a_search_that_prices_wrongly_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    goal = Goal(PADDED, machine(ocm_bytes=99), ("bytes",))
    right = Pricer.price
    monkeypatch.setattr(Pricer, "price", lambda *args: (p := right(*args))._replace(bytes=p.bytes - 1))
    with pytest.raises(ArithmeticError, match="replay says"):
        searched(goal, [], 1, random.Random(0), tries=200)


# ---- claims ------------------------------------------------------------------------------------------------------


@pytest.mark.slow(2)
def test_claims_are_contradicted() -> None:
    goal = Goal(PADDED, machine(ocm_bytes=19), ("bytes", "time"))
    best = searched(goal, [], 3, random.Random(1), tries=2000)
    assert best is not None
    assert best.vector == (79, 79)

    def lines(claim: Claim) -> list[str]:
        return [what for what, _ in contradicted([claim], [("x", best)])]

    assert not lines(Claim("e", "OPTIMAL", (79, 79), 79))
    assert not lines(Claim("e", "FEASIBLE", (99, 99), 79))
    assert lines(Claim("e", "OPTIMAL", (79, 80), 79)) == ["e says OPTIMAL 79, 80 (bound 79), x finds 79, 79"]
    assert lines(Claim("e", "FEASIBLE", (99, 99), 80)) == [
        "e says FEASIBLE 99, 99 (bound 80), x finds 79, 79, below the bound"
    ]
    assert lines(Claim("e", "INFEASIBLE")) == ["e says INFEASIBLE (bound None), x finds 79, 79"]
    assert lines(Claim("e", "OPTIMAL", (79, 79), 78)) == [
        "e says OPTIMAL 79, 79 (bound 78): value and bound are not the same"
    ]
    assert lines(Claim("e", "CRASHED", said="boom")) == ["e fails: boom"]


def test_cases_survive_as_json() -> None:
    for seed in range(30):
        case = random_case(random.Random(seed), cores=seed % 2 == 1)
        case = replace(case, witness=Nest((Loop("r", 1), Hold("IN"))))
        assert case_from(case_of(case)) == case
    with pytest.raises(InputError, match="machine, objectives, pins, size missing"):
        case_from({"layer": {}})


def test_simpler_cases_are_simpler() -> None:
    """Every chain of simpler cases ends: extents, fields and memory only fall."""
    rng = random.Random(3)
    case = random_case(rng, cores=False)
    for _ in range(500):
        options = list(simpler(case))
        if not options:
            return
        case = rng.choice(options)
    pytest.fail("still not simple after 500 steps")


# ---- planted faults ----------------------------------------------------------------------------------------------


_DECIDE_LAYER = nests.decide_layer
Run = Callable[[Nests, str, NestPart, tuple[str, ...], Clock], Answer[Nest]]


def _greedy_if_worse(status: str, extra: int | None) -> Run:
    """An engine that hands out the heuristic's plan where it is worse: as optimal, or with a bound `extra` too high."""

    def run(formulation: Nests, engine: str, part: NestPart, objectives: tuple[str, ...], clock: Clock) -> Answer[Nest]:
        best = _DECIDE_LAYER(formulation, engine, part, objectives, clock)
        if engine != "exhaustive" or best.schedule is None:
            return best
        plain, first = _DECIDE_LAYER(formulation, "greedy", _anew(part), objectives, clock), objectives[0]
        if plain.schedule is None or plain.values[first] <= best.values[first]:
            return best
        value = plain.values[first]
        bounds = {**plain.bounds, first: value if extra is None else best.values[first] + extra}
        return replace(plain, status="OPTIMAL" if bounds[first] == value else status, bounds=bounds)  # type: ignore[arg-type]

    return run


def _anew(part: NestPart) -> NestPart:
    """The part without what was found of it."""
    twin = copy(part)
    twin.search = None
    return twin


def _never_fits(
    formulation: Nests, engine: str, part: NestPart, objectives: tuple[str, ...], clock: Clock
) -> Answer[Nest]:  # fmt: skip
    if engine != "exhaustive":
        return _DECIDE_LAYER(formulation, engine, part, objectives, clock)
    return Answer(None, {}, dict.fromkeys(objectives), "INFEASIBLE")


def _no_halo(layer: Layer, resident: int | None = None) -> dict[str, Window]:
    """Windows as wide as the pixels: what a closed form without halo has."""
    return {
        "r": Window(layer.stride_h, layer.dilation_h, 1, 0, layer.h, 0),
        "c": Window(layer.stride_w, layer.dilation_w, 1, 0, layer.l),
    }


def _engine(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr("solver.problems.tiling.decide_layer", run)


FAULTS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a heuristic's plan is called optimal": lambda m: _engine(m, _greedy_if_worse("OPTIMAL", None)),
    "a bound is one too high": lambda m: _engine(m, _greedy_if_worse("FEASIBLE", 1)),
    "nothing fits": lambda m: _engine(m, _never_fits),
    "pinned tiles are forgotten": lambda m: m.setattr(Pins, "sizes", lambda self, name, values: values),
    "tiles of closed forms have no halo": lambda m: m.setattr("hwmodels.nest.price.core.input_windows", _no_halo),
}


@pytest.mark.slow(11)
@pytest.mark.parametrize("fault", thinned(FAULTS, 3))
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 60 random cases, unshrunk; docs/selftest.md says in how many seconds.

    Of a fault in pinned tiles only the cases that pin some are run: no other asks for them.
    """
    FAULTS[fault](monkeypatch)
    for k in range(60):
        case = quick_case(random.Random(f"fault/{k}"))
        pinned = any(pin.startswith("T_") for pin in case.pins)
        if (pinned or fault != "pinned tiles are forgotten") and TESTERS["tiling"].run(case, random.Random(k)):
            return
    pytest.fail(f"not found: {fault}")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("name", "measure", "claim"),
    [("lower_bound_bytes", "bytes", "closed form"), ("least_time", "time", "closed form"),
     ("least_of", "bytes", "floor of the space"), ("least_of", "time", "floor of the space")],
)  # fmt: skip
def test_bounds_without_a_search_are_held_against_nests(
    name: str, measure: str, claim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One memory for all: nothing moves twice, and time is bytes, so every bound is reached and may not be one more."""
    goal = Goal(PADDED, machine(ocm_bytes=1000), (measure,))
    found = own_witness(goal, asked(goal, "exhaustive", "tiling"))
    assert isinstance(found, Witness)
    assert [*contradicted(unsearched(goal, "tiling"), [("a nest", found)])] == []
    right = getattr(floors, name)
    monkeypatch.setattr(floors, name, lambda *args: right(*args) + 1)
    (line, *_) = [what for what, _ in contradicted(unsearched(goal, "tiling"), [("a nest", found)]) if claim in what]
    assert line == f"{claim} says BOUND (bound 60), a nest finds 59, below the bound"


def quick_case(rng: random.Random) -> NestCase:
    """A tiny case that all engines decide at once."""
    while True:
        case = random_case(rng, cores=False)
        if case.size == "tiny" and case.machine.timing != "double_buffered":
            return case


@pytest.mark.slow(2)
def test_claims_of_the_old_space_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal steps only, as in 0.1.0: the tester says what beats it, and the written case shows it again."""
    layer, one, items, claimed, least = OLD["strips of columns"]
    old = Claim("exhaustive", "OPTIMAL", (claimed,), claimed, form_of(layer, Nest(tuple(items))))
    monkeypatch.setattr(nest_tester, "asked", lambda *args, **options: old)
    monkeypatch.setattr(nest_tester, "_RULE", 0)
    case = NestCase(layer, one, ("bytes",))
    found = next(said for seed in range(4) if (said := TESTERS["tiling"].run(case, random.Random(seed))))
    again = TESTERS["tiling"].run(TESTERS["tiling"].from_json(found[0].instance), random.Random(1))
    assert {d.what for d in again} == {
        f"exhaustive says OPTIMAL {claimed} (bound {claimed}), the known nest finds {least}"
    }


def test_a_known_nest_of_a_larger_case_is_fitted() -> None:
    """Shrinking a layer to one row leaves a witness that shares two rows among clusters: its loops count."""
    one = machine(tles=2, tlts=1, ocm_bytes=99, problem="slicing", sliding=False)
    large = Nest((Spatial("r", 2, "tle"), Loop("r", 1), Hold("IN"), Hold("W"), Hold("OUT")))
    case = NestCase(Layer.matmul("row", rows=1, inner=2, cols=2), one, ("bytes",), witness=large)
    assert not [d.what for d in TESTERS["slicing"].run(case, random.Random(0)) if "replay says" in d.what]


@pytest.mark.slow(2)
def test_wrong_fronts_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A front of the old nest alone: in its memory 79 bytes are possible, not 99; in one byte less something fits."""
    layer, one, items, claimed, least = OLD["strips of columns"]
    point = Point((claimed, 19), {"bytes": claimed}, 19, Nest(tuple(items)))
    old = NestFront(("bytes", "ocm"), (point,), complete=True, proven=True)
    monkeypatch.setattr(nest_fronts, "fronts", lambda *args, **options: {layer.name: old})
    goal = Goal(layer, one, ("bytes",))
    said = {x for seed in range(4) for x in nest_fronts.front_faults(goal, "tiling", random.Random(seed), tries=2000)}
    assert f"in 19 bytes of memory: the front says OPTIMAL {claimed} (bound {claimed}), annealing finds {least}" in said
    end = "in 18 bytes of memory: the front says INFEASIBLE (bound None), annealing finds"
    assert any(line.startswith(end) for line in said)


# ---- certile itself ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OLD)
def test_no_plan_is_called_optimal_that_a_nest_beats(name: str) -> None:
    layer, one, _, _, least = OLD[name]
    claim = asked(Goal(layer, one, ("bytes",)), "exhaustive", "tiling")
    assert (claim.status, claim.vector) == ("OPTIMAL", (least,))


@pytest.mark.slow(6)
def test_few_cases_without_a_disagreement() -> None:
    for k in range(tries(2, 6)):
        case = quick_case(random.Random(f"few/{k}"))
        assert not [d.what for d in TESTERS["tiling"].run(case, random.Random(k))]

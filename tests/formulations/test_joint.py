"""Joint: tile plans and what stays on chip between layers, against everything there is, and by the referee."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.clock import ENDLESS
from formulations.fusion import paths as paths_module
from formulations.fusion.groups import NEVER
from formulations.fusion.part import FusionPart
from formulations.fusion.paths import Paths
from formulations.fusion.schedule import Runs
from formulations.fusion.space import Arc, Fusion, Residence, Taken, by_cut
from formulations.pins import Pins, parse_pins
from formulations.problem import Replayed, Unable
from formulations.tiling import tiling
from formulations.tiling.search import Search
from hwmodels.fusion.replay.referee import replay_fusion
from hwmodels.schedule import LayerRun
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.machine.machine import Machine, Transfer
from instances.network.network import Network
from instances.network.operators import Concat, Eltwise, Input, MatMul, Operator, Pool, Reshape
from instances.network.stores import Stores, stores
from instances.network.workload import Layer
from solver import check, solve
from solver.cli.main import main
from solver.plan.plan import Plan
from solver.problems.joint import JOINT, rows_of
from solver.search.loop import Answer
from solver.search.verdict import row_of, verdicts_of
from tests.adversary.places import places
from tests.effort import thinned, tries
from tests.lies import problems
from tests.small import conv

EXACT = ("dynamic", "milp", "cp-sat")
MACHINE = Machine(
    name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=2, ocm_bytes=256, ocm_banks=8, sliding=True,
    in_layout="HWC", out_layout="HWC", w_layout="OHWI", byte_fj=10, mac_fj=1,
    transfer=Transfer(call_ticks=5, segment_ticks=2, byte_ticks=1),
)  # fmt: skip

FOUR = MACHINE.model_copy(update={"ocm_banks": 4, "ocm_bytes": 128})


def chain(rows: int = 8, channels: int = 4) -> Network:
    """in -> a -> b, 1x1 convolutions of a map of `rows` rows of 4 pixels."""
    shape = (1, channels, rows, 4)
    operators = (Input(name="in", shape=shape), conv("a", "in", shape, channels), conv("b", "a", shape, channels))
    return Network(name="chain", operators=operators)


def with_skip() -> Network:
    """A sum of a map and of two convolutions of it, and a pooling."""
    shape = (1, 4, 6, 4)
    return Network(name="skip", operators=(
        Input(name="in", shape=shape), conv("a", "in", shape, 4), conv("b", "a", shape, 8, 3),
        conv("c", "b", (1, 8, 6, 4), 4),
        Eltwise(name="sum", inputs=("a", "c"), shape=shape, fn="add"),
        Pool(name="pool", inputs=("sum",), shape=(1, 4, 3, 2), fn="max", kernel=(2, 2), stride=(2, 2)),
    ))  # fmt: skip


def branching() -> Network:
    """Two branches that are joined, flattened and multiplied."""
    shape = (1, 4, 6, 4)
    return Network(name="branch", operators=(
        Input(name="in", shape=shape), conv("a", "in", shape, 4), conv("b", "a", shape, 2, 3), conv("c", "a", shape, 4),
        Concat(name="join", inputs=("b", "c"), shape=(1, 6, 6, 4)), conv("d", "join", (1, 6, 6, 4), 4, 3, 2),
        Reshape(name="flat", inputs=("d",), shape=(1, 24)),
        MatMul(name="fc", inputs=("flat",), shape=(1, 5), out_features=5),
    ))  # fmt: skip


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """A small network of convolutions, sums, concatenations and pooling."""
    shape = (1, draw(st.sampled_from([2, 4])), draw(st.integers(3, 7)), draw(st.integers(2, 4)))
    operators: list[Operator] = [Input(name="in", shape=shape)]
    maps = ["in"]
    for number in range(draw(st.integers(2, 5))):
        shapes = {o.name: o.shape for o in operators}
        name, before = f"n{number}", draw(st.sampled_from(maps[-3:]))
        alike = [m for m in maps if shapes[m] == shapes[before] and m != before]
        kind = draw(st.sampled_from(["conv", "conv", "pool", "sum", "join"]))
        if kind == "sum" and alike:
            pair = (before, draw(st.sampled_from(alike)))
            operators.append(Eltwise(name=name, inputs=pair, shape=shapes[before], fn="add"))
        elif kind == "join" and alike:
            pair = (before, draw(st.sampled_from(alike)))
            operators.append(Concat(name=name, inputs=pair, shape=(1, 2 * shapes[before][1], *shapes[before][2:])))
        elif kind == "pool" and min(shapes[before][2:]) > 1:
            size = tuple(s - 1 for s in shapes[before][2:])
            operators.append(
                Pool(name=name, inputs=(before,), shape=(1, shapes[before][1], *size), fn="max", kernel=(2, 2))
            )
        else:
            taps, stride = draw(st.sampled_from([(1, 1), (3, 1), (3, 2)]))
            operators.append(conv(name, before, shapes[before], draw(st.sampled_from([2, 4])), taps, stride))
        maps.append(name)
    last = operators[-1]
    if isinstance(last, Concat):  # a network ends with a layer
        operators.append(conv("end", last.name, last.shape, 2))
    return Network(name="random", operators=tuple(operators))


@cache
def best_of(make: Callable[[], Network], on: str = "MACHINE") -> Plan:
    """The best plan of a network, solved once for all tests that look at it."""
    return solve(make(), {"MACHINE": MACHINE, "FOUR": FOUR}[on], problem="joint")


# ---- everything there is -----------------------------------------------------------------------------------------


def by_everything(network: Network, on: Machine, pins: Pins = Pins(())) -> int | None:  # noqa: B008 - it is frozen
    """The fewest bytes over all levels of all maps, every layer searched for each, without any table or bound."""
    found = stores(network)
    (part,) = JOINT.read(network, on, pins, None)
    tables = part.tables.nests
    best: int | None = None
    known: dict[object, int | None] = {}

    def layer_bytes(layer: Layer, banks: int) -> int | None:
        key = layer.signature(), banks
        if key not in known:
            memory = on.model_copy(update={"ocm_bytes": banks * on.bank_bytes}) if banks else None
            pick = Search(tiling.build(layer, memory, pins), ("bytes",)).run() if memory else None
            known[key] = pick.measures["bytes"] if pick else None
        return known[key]

    options = [
        [row for row in itertools.product(range(len(r.banks)), repeat=len(r.uses)) if list(row) == sorted(row)[::-1]]
        for r in tables.residences
    ]
    for levels in itertools.product(*options):
        total = 0
        for t, layer in enumerate(found.layers):
            on_chip = {}
            for r, row in zip(tables.residences, levels, strict=True):
                if r.born <= t <= r.uses[-1]:
                    on_chip[r.store] = row[next(k for k, use in enumerate(r.uses) if t <= use)], r
            whole = {s for s, (level, r) in on_chip.items() if r.rows[level] == found.stores[s].rows}
            free = on.ocm_banks - sum(r.banks[level] for level, r in on_chip.values())
            if found.writes[t] in whole and whole.intersection(places(network, found, t)):  # in the place of one
                free += on_chip[found.writes[t]][1].banks[-1]

            def rows(store: int, whole: int, level: int) -> int:
                held = tables.residences[tables.number[store]].rows[level]
                return (whole if held else 0) if found.stores[store].whole else held

            given = tuple(rows(s, layer.h, on_chip[s][0]) if s in on_chip else 0 for s in found.reads[t])
            made = found.writes[t]
            stays = made in tables.number and not found.stores[made].results
            kept = rows(made, layer.r, levels[tables.number[made]][-1]) if stays else 0
            moved = layer_bytes(layer.model_copy(update={"resident_in": given, "resident_out": kept}), max(0, free))
            if moved is None:
                break
            total += moved
        else:
            best = total if best is None else min(best, total)
    return best


def test_what_fits_stays_by_hand() -> None:
    # in 128, a 128, weights 2 x 16, b 128 bytes; banks of 32 bytes, 8 of them: a takes 4, tiles at most 4.
    # a stays: in read 128, b written 128, weights 32. Nothing else can be saved.
    plan = best_of(chain)
    assert plan.status == "OPTIMAL"
    assert plan.objective.value == plan.part.must["bytes"] == 128 + 128 + 32
    assert [one.rows for one in rows_of(plan)[1].on_chip] == [8]
    assert plan.schedule[0].unwritten == 8
    assert plan.part.replay.ok


def test_a_part_of_a_map_stays_by_hand() -> None:
    # 3 banks of 32 bytes. The tiles need one pixel of each operand beside 16 bytes of weights: 4 + 16 + 8 (partial sums
    # of 2 bytes, n is not cut: results of 1 byte, 4) = 24 bytes, one bank. 2 banks hold 4 of the 8 rows of a.
    # Bytes: 288 as above, and 4 rows of 16 bytes are written and read again: 2 * 64.
    plan = solve(chain(), MACHINE.model_copy(update={"ocm_bytes": 96, "ocm_banks": 3}), problem="joint")
    assert plan.objective.value == 288 + 128
    assert [one.rows for one in rows_of(plan)[1].on_chip] == [4]
    assert plan.schedule[0].unwritten == 4


@pytest.mark.slow(5)
def test_a_map_may_leave_before_its_last_use() -> None:
    # 4 rows of a stay for b; for the sum all of it comes from DRAM, because c takes their place
    plan = best_of(with_skip, "FOUR")
    assert plan.status == "OPTIMAL"
    rows = {row.name: {one.map: one.rows for one in row.on_chip} for row in rows_of(plan)}
    assert rows["a"] == rows["b"] == {"a": 4}
    assert "a" not in rows["sum"]
    assert plan.schedule[0].unwritten == 0


@pytest.mark.slow(6)
@pytest.mark.parametrize(
    ("network", "banks"),
    [
        (chain(), 2),
        pytest.param(with_skip(), 3, marks=pytest.mark.slow(28)),
        pytest.param(branching(), 4, marks=pytest.mark.slow(20)),
    ],
)
def test_all_engines_find_the_optimum_of_everything(network: Network, banks: int) -> None:
    on = MACHINE.model_copy(update={"ocm_banks": banks, "ocm_bytes": 32 * banks})
    best = by_everything(network, on)
    plans = {name: solve(network, on, engine=name, problem="joint") for name in (*JOINT.engines, *JOINT.heuristics)}
    for name, plan in plans.items():
        assert plan.objective.value == best if name in EXACT else plan.objective.value >= best, name
        assert plan.bound <= best
        assert not check(plan).problems
    assert {plans[name].status for name in EXACT} == {"OPTIMAL"}


@pytest.mark.slow(1)
@settings(max_examples=tries(2, 6), deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(), st.sampled_from([(2, 96), (3, 96), (4, 128), (4, 64)]))
def test_buffers_lie_one_after_the_other_in_the_banks_of_the_tiles(network: Network, memory: tuple[int, int]) -> None:
    on = MACHINE.model_copy(update={"ocm_banks": memory[0], "ocm_bytes": memory[1]})
    part = solve(network, on, engine="greedy", problem="joint").part
    for run, figures in zip(part.schedule or (), part.figures or (), strict=True):
        end = 0
        for buffer in figures.buffers:
            assert buffer.address == end
            end = buffer.end
        assert end == figures.occupancy_bytes <= len(run.banks) * on.bank_bytes


def test_a_plan_without_buffers_is_refused() -> None:
    (said,) = problems(best_of(chain), ("parts.0.figures.0.buffers", None))
    assert said.startswith("figures[0].buffers: the plan says None, it is [{")


def pools(*inputs: str, rows: int = 4) -> Network:
    """A chain of two poolings that copy a column, and the sum of two of its maps."""
    shape = (1, 1, rows, 1)

    def pool(name: str, before: str) -> Pool:
        return Pool(name=name, inputs=(before,), shape=shape, fn="max", kernel=(1, 1))

    total = Eltwise(name="sum", inputs=inputs, shape=shape, fn="add")
    return Network(name="pools", operators=(Input(name="in", shape=shape), pool("a", "in"), pool("b", "a"), total))


@pytest.mark.slow(3)
@pytest.mark.parametrize(
    ("on", "inputs"),
    thinned(
        product(
            [((7, 7), "single"), ((4, 8), "single"), ((6, 6), "double")],
            [("in", "b"), ("b", "a"), ("a", "b"), ("b", "b")],
        ),
        3,
    ),
)
def test_tiles_of_a_sum_depend_on_the_rows_of_all_its_inputs(
    on: tuple[tuple[int, int], str], inputs: tuple[str, ...]
) -> None:
    memory, buffering = on
    machine = MACHINE.model_copy(update={"ocm_banks": memory[0], "ocm_bytes": memory[1], "buffering": buffering})
    network = pools(*inputs)
    best = by_everything(network, machine)
    for engine in EXACT:
        plan = solve(network, machine, engine=engine, problem="joint")
        assert (plan.objective.value if plan.objective else None) == best
        assert plan.status == ("INFEASIBLE" if best is None else "OPTIMAL")
        assert check(plan).ok


@pytest.mark.slow(3)
def test_tiles_of_a_sum_that_pins_make_large() -> None:
    on, network = MACHINE.model_copy(update={"ocm_banks": 6, "ocm_bytes": 18}), pools("b", "a", rows=10)
    pins = ["T_R>=4"]
    best = by_everything(network, on, parse_pins(pins, tiling.DECISIONS))
    assert best is not None
    for engine in EXACT:
        plan = solve(network, on, engine=engine, pins=pins, problem="joint")
        assert (plan.status, plan.objective.value if plan.objective else None) == ("OPTIMAL", best)
        assert check(plan).ok


def test_ties_that_are_cut_short_are_no_lack_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Search.run

    def short(search: Search) -> object:
        pick = whole(search)
        search.stopped, search.ties = True, False
        return pick

    monkeypatch.setattr(Search, "run", short)
    assert solve(chain(), MACHINE, problem="joint").status == "OPTIMAL"


@pytest.mark.slow(10)
def test_what_is_found_counts_where_bounds_stay_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that promise too much of rows on chip: the plan is as good as without, and says how far they are."""
    shape = (1, 1, 5, 4)
    network = Network(name="two", operators=(
        Input(name="in", shape=shape), conv("a", "in", shape, 1), conv("b", "a", shape, 1, 3),
    ))  # fmt: skip
    on = MACHINE.model_copy(update={"ocm_bytes": 20, "ocm_banks": 4})
    best = solve(network, on, problem="joint")
    assert (best.status, best.objective and best.objective.value) == ("OPTIMAL", 100)
    whole = Search.run

    def loose(search: Search) -> object:
        pick = whole(search)
        if pick is not None and search.space.layer.resident_in != (0,):
            search.bounds["bytes"] = 0
        return pick

    monkeypatch.setattr(Search, "run", loose)
    for engine in EXACT:
        plan = solve(network, on, engine=engine, problem="joint")
        assert (plan.status, plan.objective and plan.objective.value) == ("FEASIBLE", 100)
        assert plan.part.must["bytes"] < plan.bound < 100
        assert check(plan).ok
    (part,) = JOINT.read(network, on, Pins(()), None)
    one = part.tables.nests.plans[1]
    assert one.search((1,), 3, ENDLESS)
    place = [np.array(1)], np.array(3)
    reached = int(one.e(*place, "known"))
    assert (one.e(*place, "found"), one.e(*place, "proven")) == (reached, 0)
    assert reached > 0
    assert one.known((1,), 3)


@pytest.mark.slow(7)
def test_padded_layers_in_pieces_of_free_sizes() -> None:
    """Two layers of docs/nest.md, each of 79 bytes in 19 bytes of memory; in equal steps 99."""
    shape = (1, 1, 5, 5)
    network = Network(name="two", operators=(
        Input(name="in", shape=shape), conv("a", "in", shape, 1, 3), conv("b", "a", shape, 1, 3),
    ))  # fmt: skip
    on = MACHINE.model_copy(update={"ocm_bytes": 19, "ocm_banks": 1, "psum_bytes": 1})
    for engine in EXACT:
        plan = solve(network, on, engine=engine, problem="joint")
        assert (plan.status, plan.objective and plan.objective.value, check(plan).ok) == ("OPTIMAL", 158, True)
    even = solve(network, on, pins=["pieces=even"], problem="joint")
    assert (even.objective and even.objective.value, even.bound) == (198, 158)


@pytest.mark.slow(3)
def test_a_sum_of_three_keeps_whole_maps() -> None:
    network = pools("in", "a", "b")
    assert {store.name: store.whole for store in stores(network).stores} == {
        "a": True,
        "b": True,
        "sum": False,
        "in": True,
    }
    for memory in (6, 9, 16):
        on = MACHINE.model_copy(update={"ocm_banks": memory, "ocm_bytes": memory})
        assert (
            solve(network, on, problem="joint").objective
            == solve(network, on, engine="milp", problem="joint").objective
        )
        best = by_everything(network, on)
        objective = solve(network, on, problem="joint").objective
        assert (objective.value if objective else None) == best


# ---- what is a result, and what has rows -----------------------------------------------------------------------------


@pytest.mark.slow(2)
def test_a_result_is_written_though_others_read_it() -> None:
    shape = (1, 4, 6, 4)
    joined = Network(name="joined", operators=(
        Input(name="in", shape=shape), conv("a", "in", shape, 4), conv("b", "a", shape, 4),
        Concat(name="join", inputs=("a", "b"), shape=(1, 8, 6, 4)),
    ))  # fmt: skip
    seen = Network(name="seen", operators=(
        Input(name="in", shape=shape), conv("a", "in", shape, 4),
        Eltwise(name="out", inputs=("a",), shape=shape, fn="relu"), conv("b", "a", shape, 4),
    ))  # fmt: skip
    on = MACHINE.model_copy(update={"ocm_banks": 16, "ocm_bytes": 512})
    for network in (joined, seen):
        plan = solve(network, on, problem="joint")
        # in 96 bytes, weights 2 x 16, a and b 96 each; a is read on chip
        assert plan.objective.value == plan.part.must["bytes"] == 96 + 32 + 2 * 96
        assert [row.unwritten for row in plan.schedule] == [0, 0]
        assert [one.rows for one in rows_of(plan)[1].on_chip if one.map in ("a", "join")] == [6]
        assert check(plan).ok


def test_both_operands_of_a_square() -> None:
    network = Network(name="gram", operators=(
        Input(name="in", shape=(1, 8, 8)), MatMul(name="a", inputs=("in",), shape=(1, 8, 8), out_features=8),
        MatMul(name="g", inputs=("a", "a"), shape=(1, 8, 8), transpose_b=True),
    ))  # fmt: skip
    plan = solve(network, MACHINE.model_copy(update={"ocm_banks": 16, "ocm_bytes": 512}), problem="joint")
    assert plan.schedule[0].unwritten == 0
    assert plan.part.figures[0].counts["OUT"].bytes == 64


@pytest.mark.slow(1)
@pytest.mark.parametrize("fn", ["transpose", "reshape"])
def test_reshaped_maps_stay_whole_or_not_at_all(fn: str) -> None:
    shape, after = (1, 4, 6, 6), (1, 4, 6, 6) if fn == "transpose" else (1, 6, 24)
    last = conv("b", "t", shape, 4) if fn == "transpose" else MatMul(
        name="b", inputs=("t",), shape=(1, 6, 3), out_features=3
    )  # fmt: skip
    network = Network(name="turned", operators=(
        Input(name="in", shape=shape), conv("a", "in", shape, 4),
        Reshape(name="t", inputs=("a",), shape=after, fn=fn), last,
    ))  # fmt: skip
    assert next(store for store in stores(network).stores if store.name == "a").whole
    plan = solve(network, FOUR, problem="joint")
    assert plan.schedule[0].unwritten in (0, 1)
    assert check(plan).ok


def test_a_matrix_that_is_read_transposed_stays_whole_or_not_at_all() -> None:
    network = Network(name="turned", operators=(
        Input(name="in", shape=(1, 8, 8)), Input(name="w", shape=(1, 8, 2)),
        MatMul(name="a", inputs=("in",), shape=(1, 8, 8), out_features=8),
        MatMul(name="b", inputs=("a", "w"), shape=(1, 8, 2), transpose_a=True),
    ))  # fmt: skip
    assert next(store for store in stores(network).stores if store.name == "a").whole


def test_a_sum_of_broadcast_operands() -> None:
    network = Network(name="broadcast", operators=(
        Input(name="p", shape=(1, 4, 6, 1)), Input(name="q", shape=(1, 4, 1, 4)),
        Eltwise(name="s", inputs=("p", "q"), shape=(1, 4, 6, 4), fn="mul"),
    ))  # fmt: skip
    assert solve(network, FOUR, problem="joint").status == "OPTIMAL"


# ---- dynamic programming alone ------------------------------------------------------------------------------------


@cache
def small() -> Fusion:
    """Two maps of up to three banks, born and read at different times; plans that want two banks or three."""
    extra = np.array([[NEVER, 9, 4, 0], [NEVER, 7, 2, 0], [NEVER, 5, 0, 0]], np.int64)
    rooms, levels, first, second = np.arange(4), np.arange(3), np.array([20, 10, 0]), np.array([14, 7, 0])
    one = Residence(0, 0, (1, 2), (0, 1, 2), (0, 1, 2), (20, 10, 0))
    two = Residence(1, 1, (2,), (0, 1, 2), (0, 1, 2), (14, 7, 0))
    arcs = (
        Arc(0, 0, (), (), (), 35, 0, rooms, extra[0]),
        Arc(1, 1, (0,), (levels,), (first,), 5, 0, rooms, extra),
        Arc(2, 2, (1, 0), (levels, 0 * levels), (second, first), 5, 0, rooms, extra[:, None]),
    )
    return Fusion(3, 3, (one, two), 8, by_cut(arcs))


def taken(one: Fusion, *levels: dict[int, int]) -> list[Taken]:
    """The only path, with these levels during each arc."""
    arcs = [one.arcs[cut][0] for cut in (1, 2, 3)]
    return [Taken(arc, mine, 3 - sum(mine.values())) for arc, mine in zip(arcs, levels, strict=True)]


def test_dynamic_programming_is_the_least_of_all_levels() -> None:
    one, found = small(), Paths(small())
    every = [
        one.cost(taken(one, {0: a}, {0: a, 1: c}, {0: b, 1: c}))
        for a in range(3) for b in range(a + 1) for c in range(3)
    ]  # fmt: skip
    assert found.least == one.cost(found.path()) == min(every)


def test_nothing_fits() -> None:
    one = small()
    never = replace(one.arcs[1][0], table=np.full(4, NEVER, np.int64))
    assert Paths(replace(one, arcs={**one.arcs, 1: [never]})).least >= NEVER


def test_too_many_maps_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # at the cuts of `small` 1, 3, 9 and 1 combinations, and 6 * 9; of the chain 1, 4 and 1, and 6 * 4
    monkeypatch.setattr(paths_module, "MOST_STATES", 67)
    with pytest.raises(Unable, match="use engine milp or cp-sat"):
        Paths(small())
    on = MACHINE.model_copy(update={"ocm_banks": 3, "ocm_bytes": 96})
    assert solve(chain(), on, problem="joint").status == "OPTIMAL"


@pytest.mark.slow(5)
def test_milp_needs_no_dynamic_programming(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = best_of(with_skip).objective
    monkeypatch.setattr(paths_module, "MOST_STATES", 2)
    for engine in ("milp", "cp-sat"):
        assert solve(with_skip(), MACHINE, engine=engine, problem="joint").objective == expected


@pytest.mark.slow(3)
def test_dynamic_programming_that_is_too_large_leaves_the_greedy_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    best = best_of(with_skip)
    monkeypatch.setattr(paths_module, "MOST_STATES", 2)
    plan = solve(with_skip(), MACHINE, engine="dynamic", problem="joint")
    assert plan.status == "FEASIBLE"
    assert "use engine milp or cp-sat" in str(plan.stats["note"])
    assert plan.bound <= best.objective.value <= plan.objective.value
    assert check(plan).ok


# ---- stores -------------------------------------------------------------------------------------------------------


def test_stores_of_a_branching_network() -> None:
    found = stores(branching())
    named = {store.name: store for store in found.stores}
    assert set(named) == {"a", "join", "d", "fc", "in"}
    # a row of the joined map: 4 pixels of 2 and of 4 channels, written by layers 1 and 2, read by layer 3
    assert named["join"].parts == ((1, 8), (2, 16))
    assert (named["join"].rows, named["join"].readers, named["join"].results) == (6, (3,), 0)
    assert named["fc"].results == 5
    # what is flattened has no rows for its reader: all or nothing
    assert (named["d"].whole, named["d"].rows, named["d"].row_elements) == (True, 1, 24)
    assert [store.name for store in found.stores if store.dram] == ["in"]


@pytest.mark.slow(2)
@pytest.mark.parametrize("problem", ["joint", "fusion"])
def test_what_is_joined_with_itself_lies_in_dram(problem: str) -> None:
    """a beside relu(a): in 96 bytes and 16 of weights, a written 96, read twice 192 and 32 of weights, b 96: 528."""
    shape = (1, 4, 6, 4)
    both = Concat(name="both", inputs=("a", "relu"), shape=(1, 8, 6, 4))
    network = Network(name="itself", operators=(
        Input(name="in", shape=shape), conv("a", "in", shape, 4),
        Eltwise(name="relu", inputs=("a",), shape=shape, fn="relu"), both, conv("b", "both", both.shape, 4),
    ))  # fmt: skip
    found = stores(network)
    assert found.copied == {"both"}
    assert [store.name for store in found.stores if store.dram] == ["a", "in", "both"]
    assert found.barriers == (-1, 0)  # the copy is made when a is complete
    plan = solve(network, MACHINE, problem=problem)
    assert (plan.status, plan.measures and plan.measures["bytes"]) == ("OPTIMAL", 528)
    assert check(plan).ok
    other = (*network.operators[:2], conv("c", "in", shape, 4), both.model_copy(update={"inputs": ("a", "c")}))
    assert stores(Network(name="others", operators=other)).copied == frozenset()


def test_what_an_unknown_operator_reads_is_in_dram() -> None:
    network = load_network("bert_base_encoder")
    assert any(store.dram and store.parts for store in stores(network).stores)  # right operands of products


# ---- the referee ---------------------------------------------------------------------------------------------------


@cache
def solved() -> tuple[Stores, tuple[LayerRun, ...]]:
    """Of 8 banks a has 0 to 2 up to b, half of b has 3 to 5 then, c 0 to 2, the sum 3 to 5; tiles have the others."""
    return stores(with_skip()), best_of(with_skip).schedule


A, B, C, SUM, POOL, IN = range(6)
HALF = {B: (3, (3, 4, 5))}
LOST = "rows of a are on chip, in the layer before {} were, or in other banks"


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("a", {}, ""),
        ("b", {"banks": (6, 7, 0)}, "bank 0 belongs to tiles and to a"),
        ("b", {"banks": (6, 8)}, "bank 8 of tiles does not exist, m has 8"),
        ("b", {"banks": (-1, 7)}, "bank -1 of tiles does not exist, m has 8"),
        ("b", {"banks": (6,)}, "tiles take 48 bytes, 1 banks hold 32"),
        ("b", {"residents": {A: (6, (0, 1)), **HALF}}, "6 rows of a take 96 bytes, 2 banks hold 64"),
        ("a", {"residents": {A: (7, (0, 1, 2, 3))}, "banks": (7,)}, "7 rows of a take 112 bytes, 4 banks hold 128"),
        ("a", {"residents": {A: (-1, (0,))}}, "-1 rows of a take -16 bytes, 1 banks hold 32"),
        ("b", {"residents": {A: (6, (0, 2, 1)), **HALF}}, "6 " + LOST.format(6)),
        ("b", {"residents": {A: (2, (1,)), **HALF}}, "2 " + LOST.format(6)),
        ("sum", {"residents": {A: (1, (7,)), C: (6, (0, 1, 2))}, "banks": (6,)}, "1 " + LOST.format(0)),
        ("a", {"residents": {C: (1, (0,))}}, "c is on chip, no layer has written it yet"),
        ("a", {"residents": {IN: (1, (0,))}}, "in must lie in DRAM"),
        ("a", {"residents": {6: (1, (0,))}}, "maps on chip are numbered 0 to 5, not [6]"),
        ("b", {"unwritten": 4}, "4 rows of the result are not written, 3 stay on chip"),
        ("c", {"unwritten": 7}, "7 rows are not written, the result has 6"),
        ("c", {"unwritten": -1}, "-1 rows are not written, the result has 6"),
    ],
)
def test_an_account_by_hand(name: str, changes: dict[str, object], said: str) -> None:
    assert faults(**{name: changes}) == (f"layer {name}: {said}" if said else "")


def test_what_is_written_is_there_for_others() -> None:
    """b finds all of a on chip, the sum reads it from DRAM; the result of the network is wanted there."""
    assert faults(a={"unwritten": 1}) == "layer sum: rows 0 to 0 of a are read from DRAM, a never wrote them"
    kept = {"residents": {SUM: (6, (3, 4, 5)), POOL: (1, (6,))}, "unwritten": 1}
    assert faults(pool=kept) == "pool: the result must be in DRAM, some rows are not written"


@pytest.mark.parametrize(
    ("size", "changes", "said"),
    [
        (256, {}, ""),  # a beside 160 bytes of tiles
        (255, {}, "layer a: tiles take 160 bytes, maps on chip leave 159"),
        (256, {"banks": (6,)}, "layer a: bank 6 does not exist, m has no banks"),
        (256, {"residents": {A: (6, (2,))}}, "layer a: bank 2 does not exist, m has no banks"),
        (256, {"residents": {A: (7, ())}}, "layer a: 7 rows of a are on chip, it has 6"),
        (95, {}, "layer a: maps on chip take 1 bytes more than m has"),
    ],
)
def test_an_account_without_banks(size: int, changes: dict[str, object], said: str) -> None:
    found, runs = solved()
    plain = [replace(x, banks=(), residents={s: (n, ()) for s, (n, _) in x.residents.items()}) for x in runs]
    on = MACHINE.model_copy(update={"ocm_banks": 0, "ocm_bytes": size})
    assert next(iter(replay_fusion(found, on, [replace(plain[0], **changes), *plain[1:]]).faults), "") == said


def faults(**changes: dict[str, object]) -> str:
    """The first fault of the plan with some runs changed."""
    found, runs = solved()
    named = zip(found.layers, runs, strict=True)
    changed = [replace(run, **changes.get(layer.name, {})) for layer, run in named]
    return next(iter(replay_fusion(found, MACHINE, changed).faults), "")


def test_every_layer_runs() -> None:
    found, runs = solved()
    assert "the plan has 4 layers, the network 5" in replay_fusion(found, MACHINE, runs[:-1]).faults[0]


def test_every_figure_of_every_layer_is_compared() -> None:
    class Wrong(FusionPart):
        def replay(self, runs: Runs) -> Replayed:
            walked = super().replay(runs)
            return replace(walked, counts={**walked.counts, "layer b: occupancy_bytes ocm": 3})

    part, (_, runs) = Wrong(with_skip(), MACHINE, Pins(())), solved()
    (verdict,) = verdicts_of([(part, Answer(runs, {}, {}, "FEASIBLE"))])
    priced = part.price(runs).counts["layer b: occupancy_bytes ocm"]
    assert verdict.disagreements == (f"layer b: occupancy_bytes ocm: priced {priced}, replayed 3",)
    row = row_of(verdict)
    assert (row.replay.ok, row.replay.faults) == (False, verdict.disagreements)


# ---- plans --------------------------------------------------------------------------------------------------------


@pytest.mark.slow(2)
def test_a_plan_file_says_everything(tmp_path: Path) -> None:
    plan = best_of(with_skip)
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    report = check(tmp_path / "plan.json")
    assert report.ok
    assert report.layers == 5


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("parts.0.schedule.runs.1.unwritten", 99, "99 rows are not written"),
        ("parts.0.figures.1.occupancy_bytes", 3, "figures[1].occupancy_bytes"),
        ("parts.0.figures.1.buffers.0.address", 7, "figures[1].buffers[0].address"),
        ("parts.0.schedule.runs.1.banks", [0, 0, 77], "bank"),
        ("parts.0.figures.1.layers", ["x"], "figures[1].layers[0]: the plan says x, it is b"),
        ("parts.0.schedule.runs.0.residents", {"99": [1, [0]]}, "99"),
        ("parts.0.must.bytes", 1, "must.bytes"),
        ("measures.bytes", 1, "measures"),
        ("bound", 1, "status OPTIMAL with bound 1"),
        ("network_digest", "x", "network_digest"),
        ("parts.0.replay.ok", False, "replay.ok: the plan says"),
        ("machine_data.ocm_banks", 4, "machine_digest"),
        ("machine_data.ocm_banks", 0, "does not exist, m has no banks"),
        ("machine_data.in_bytes", 2, "in_bytes 2 and out_bytes 1 differ"),
        ("options.pins", ["T_R=5"], "is no plan of problem tiling with T_R=5"),
        ("options.pins", ["T_X=5"], "T_X"),
        ("objectives", ["time"], "objectives: time: problem joint minimises bytes and energy"),
        ("conflicts", ["x"], "it names 1"),
        ("engine", "x", "engine x: there is none of this name"),
        ("objectives", ["bytes", "bytes"], "one stands twice"),
    ],
)
def test_a_plan_that_lies_is_found_out(place: str, value: object, message: str) -> None:
    assert any(message in line for line in problems(best_of(with_skip), (place, value)))


def test_a_plan_that_only_says_it_is_infeasible_is_found_out() -> None:
    plan = best_of(with_skip)
    none = {"status": "INFEASIBLE", "gap": None}
    row = plan.part.model_copy(
        update={**none, "schedule": None, "figures": None, "replay": None, "bounds": {"bytes": None}}
    )
    claimed = plan.model_copy(update={**none, "parts": (row,), "objective": None, "bound": None})
    said = check(claimed).problems
    assert any(line.startswith("measures") for line in said)
    assert any(line.startswith("conflicts") for line in said)


@pytest.mark.slow(2)
def test_energy_is_bytes_in_another_unit() -> None:
    plan, moved = solve(with_skip(), MACHINE, objective="energy", problem="joint"), best_of(with_skip)
    assert plan.measures == moved.measures
    macs = sum(layer.macs for layer in with_skip().layers)
    assert plan.objective.value == plan.bound == 10 * moved.objective.value + macs


def test_of_equal_nests_the_fastest() -> None:
    plan = best_of(chain)
    # a stays in 4 banks, so 128 bytes are left for tiles: 16 of weights, and 6 of the 8 rows of 16 bytes that the first
    # layer reads, or 7 of those that the second one writes: two calls each, with the weights six; 5 ticks a call, 2 a
    # run
    assert plan.measures["time"] == 288 + 6 * (5 + 2)
    alone = solve(chain(), MACHINE, problem="fusion", objective="bytes", pins=["length=1"])
    assert sum(row.ticks for row in alone.part.figures) == plan.measures["time"]


def test_pins_are_for_every_layer() -> None:
    free, uniform = best_of(with_skip), solve(with_skip(), MACHINE, pins=["holds=uniform"], problem="joint")
    assert uniform.status == "OPTIMAL"
    assert free.objective.value <= uniform.objective.value
    assert uniform.options.pins == ("holds=uniform",)


@pytest.mark.slow(3)
def test_a_layer_that_cannot_fit_is_explained() -> None:
    plan = solve(with_skip(), MACHINE.model_copy(update={"ocm_bytes": 2, "ocm_banks": 2}), problem="joint")
    assert plan.status == "INFEASIBLE"
    assert "needs" in plan.conflicts[0]
    assert not check(plan).problems


@pytest.mark.slow(5)
def test_time_limits_give_a_plan_and_a_bound() -> None:
    plan = solve("squeezenet1_1", "scratchpad_768k", time_limit_s=0.01, problem="joint")
    assert plan.status in ("FEASIBLE", "OPTIMAL")
    assert plan.bound is not None
    assert not check(plan).problems


def test_a_heuristic_that_fits_nothing_says_so() -> None:
    tiny = MACHINE.model_copy(update={"ocm_bytes": 2, "ocm_banks": 2})
    assert solve(with_skip(), tiny, engine="greedy", problem="joint").status == "INFEASIBLE"


def test_bytes_that_are_no_bank_are_not_there() -> None:
    plan = solve(
        with_skip(), MACHINE.model_copy(update={"ocm_bytes": 5, "ocm_banks": 2, "psum_bytes": 3}), problem="joint"
    )
    assert plan.status == "INFEASIBLE"
    assert "m has 4" in plan.conflicts[0]


@pytest.mark.parametrize(
    ("target", "machine", "options", "message"),
    [
        ("squeezenet1_1", "nmp", {}, "needs a memory that all operands share"),
        ("squeezenet1_1", "scratchpad_768k", {"objective": "time"}, "problem joint decides bytes"),
        ("squeezenet1_1", "scratchpad_768k", {"engine": "exact"}, "unknown engine for problem joint"),
        ("squeezenet1_1", "scratchpad_768k", {"pins": ["T_X=3"]}, "T_X"),
        ("squeezenet1_1", "scratchpad_768k", {"settings": ["out_bytes=2"]}, "in_bytes 1 and out_bytes 2 differ"),
        ("squeezenet1_1", "nmp", {"settings": ["ocm_banks=4"]}, "needs a shared memory"),
        ("squeezenet1_1", "scratchpad_768k", {"settings": ["edge_tiles=uniform", "sliding=false"]}, "needs one core"),
    ],
)
def test_what_cannot_be_asked(target: str, machine: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        solve(target, machine, **options, problem="joint")


def test_a_layer_is_no_network() -> None:
    with pytest.raises(InputError, match="plans whole networks, this is one layer"):
        solve(Layer.conv("x", channels=1, filters=1, size=(2, 2)), MACHINE, problem="joint")


# ---- the command line -----------------------------------------------------------------------------------------------


@pytest.mark.slow(13)
def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "plan.json"
    asked = ["solve", "lenet5", "-m", "scratchpad_64k", "--problem", "joint", "--set", "ocm_banks=16"]
    assert main([*asked, "--compare", "no-reuse,sequence", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "OPTIMAL" in said
    assert "no-reuse" in said
    assert main(["check", str(out)]) == 0
    assert main(["show", str(out), "--all"]) == 0
    assert "a letter is a map that is on chip" in capsys.readouterr().out
    assert main(["show", str(out), "--layer", "c3"]) == 0
    assert "lie in bank" in capsys.readouterr().out
    assert main(["show", str(out), "--layer", "x"]) == 2
    assert main([*asked, "--layer", "c3"]) == 2
    assert "layers (--layer): not for problem joint" in capsys.readouterr().err
    assert (
        main([*asked, "--objective", "energy", "--set", "byte_fj=0", "--set", "mac_fj=0", "--compare", "no-reuse"]) == 0
    )
    data = json.loads(out.read_text(encoding="utf-8"))
    out.write_text(json.dumps({**data, "compulsory_bytes": 0}), encoding="utf-8")
    assert main(["show", str(out)]) == 2  # a figure that does not follow from the decisions
    assert main(["pareto", *asked[1:], "--axes", "time,bytes"]) == 2
    assert "problem joint has fronts of bytes or memory" in capsys.readouterr().err


@pytest.mark.slow(50)
def test_resnet50_on_768_kib() -> None:
    plan = solve("resnet50", "scratchpad_768k", engine="milp", problem="joint")
    assert plan.status == "OPTIMAL"
    assert plan.objective.value == 36_534_952  # sums in place; apart 38,076,072, no reuse 63,892,648
    assert load_machine("scratchpad_768k").ocm_banks == 48

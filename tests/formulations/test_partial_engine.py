"""Partial engine: runs and additions, orders against all orders, three engines, replay, plans, sizes."""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Literal

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.clock import ENDLESS, Clock, TimeUp
from formulations.partial_engine.bounds import branch_bound, lower
from formulations.partial_engine.cp_sat import MOST_STAGES, stages, stages_cp_model
from formulations.partial_engine.orders import (
    MOST_RUNS,
    Step,
    as_text,
    best_order,
    from_text,
    greedy,
    passes,
    plain,
    price,
    program,
)
from formulations.partial_engine.problem import DECISIONS, AllChoices, EngineFormulation, EnginePart, OneChoice
from formulations.partial_engine.size import Size, candidates, front, ranked, rated, sizes
from formulations.partial_engine.space import Branch, Demands, Game, branch_at, build
from formulations.pins import parse_pins
from formulations.problem import Goal
from hwmodels.partial_engine.price import engine_of, network_cycles, run_pixels, work_of
from hwmodels.partial_engine.replay import replay_engine
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.machine.machine import Machine
from instances.machine.sections import PartialEngine
from instances.network.network import Network
from instances.network.operators import Conv, Input
from instances.network.workload import Layer
from solver import Plan, PlanMismatch, check, front_engine, size_engine, solve
from solver.calls.solve import show
from solver.cli.main import main
from solver.plan.plan import PartReplay
from solver.problems.partial_engine import SIZE_ENGINES, PartialEngineProblem
from solver.search import driver_cp_sat
from tests.effort import tries
from tests.engine_answers import answer
from tests.lies import problems
from tests.small import byte_machine


def machine(e: int = 2, bank: int = 64, **more: object) -> Machine:
    """e x e maps a run; everything in bytes, a tap a cycle."""
    engine = {
        "e_in": e, "e_out": e, "banks": e, "bank_bytes": bank, "window_taps": 9, "pair_taps": 1, "adds": "steps",
        "clock_hz": 1000, "dsp_macs": 2, "dsps": 220, "brams": 140, "bram_bytes": 4096, **more,
    }  # fmt: skip
    return byte_machine(name="toy", problem="partial_engine", engine=engine)


def conv(channels: int, filters: int, size: int = 4, kernel: int = 1, **more: int) -> Layer:
    pad = (kernel // 2,) * 4
    return Layer.conv("c", channels=channels, filters=filters, size=(size, size), kernel=(kernel, kernel), pad=pad,
                      stride=(more.get("stride", 1),) * 2, groups=more.get("groups", 1))  # fmt: skip


def network(*layers: tuple[int, int, int]) -> Network:
    """A chain of convolutions of 4x4 pixels: filters, kernel, groups."""
    operators: list[object] = [Input(name="x", shape=(1, 4, 4, 4))]
    for n, (filters, kernel, groups) in enumerate(layers):
        pad = (kernel // 2,) * 4
        operators.append(
            Conv(name=f"c{n}", inputs=(operators[-1].name,), shape=(1, filters, 4, 4), filters=filters,
                 kernel=(kernel, kernel), pad=pad, groups=groups)
        )  # fmt: skip
    return Network(name="net", operators=tuple(operators))


# --- runs, additions, cycles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("channels", "filters", "runs", "adds"),
    [(16, 32, 2, 0), (32, 32, 4, 2), (32, 64, 8, 4), (64, 64, 16, 12), (64, 128, 32, 24), (128, 128, 64, 56),
     (128, 256, 128, 112)],
)  # fmt: skip
def test_runs_and_additions_of_the_paper(channels: int, filters: int, runs: int, adds: int) -> None:
    """V.I: 64 -> 128: 32 runs, 24 additions; 128 -> 128: 64, 56; 128 -> 256: 128, 112. Figs. 2 to 5: 2, 4, 8, 16 steps.

    Additions of the smaller ones: (I - 1)*O, e.g. 32 -> 64 has (2 - 1)*4.
    """
    work = work_of(conv(channels, filters), engine_of(load_machine("partial_cnn_16")))
    assert (work.runs, work.adds) == (runs, adds)


def test_padding_to_whole_groups() -> None:
    """3 -> 20 maps on 16x16: 1 x 2 groups, of 3 and of 16 and 4 real maps; 24 -> 24: 2 x 2."""
    engine = engine_of(load_machine("partial_cnn_16"))
    (grid,) = work_of(conv(3, 20), engine).grids
    assert (grid.in_maps, grid.out_maps, grid.number) == ((3,), (16, 4), 1)
    assert work_of(conv(24, 24), engine).runs == 4


def test_depthwise_at_full_rate() -> None:
    """36 maps of 4x4, 3x3: 3 runs of 16 cycles each (nine taps a cycle); standard 16 -> 16: 16*9 cycles for one run."""
    engine = engine_of(load_machine("partial_cnn_16"))
    depthwise = work_of(conv(36, 36, kernel=3, groups=36), engine)
    assert (depthwise.runs, depthwise.adds, depthwise.cycles()) == (3, 0, 48)
    assert [(g.in_maps, g.number) for g in depthwise.grids] == [((16,), 2), ((4,), 1)]
    assert work_of(conv(16, 16, kernel=3), engine).cycles() == 16 * 9


def test_reads_bound_a_strided_run() -> None:
    """3x3 stride 2 on 8x8: 16 output pixels, but a bank gives 64 input pixels one a cycle; 1x1 stride 2 reads 16."""
    engine = engine_of(load_machine("partial_cnn_16"))
    assert work_of(conv(16, 16, 8, 3, stride=2, groups=16), engine).cycles() == 64
    assert work_of(conv(16, 16, 8, 1, stride=2), engine).cycles() == 16


def test_additions_take_two_cycles_a_pixel_or_none() -> None:
    """32 -> 16 maps of 4x4: 2 runs of 16 cycles and 1 addition of 2*16."""
    assert work_of(conv(32, 16), engine_of(load_machine("partial_cnn_16"))).cycles() == 64
    assert work_of(conv(32, 16), engine_of(load_machine("partial_cnn_16", {"adds": "hidden"}))).cycles() == 32


def test_dsps_and_block_rams_of_table_2() -> None:
    """Table II: 200 DSPs, 112 of 140 block RAMs: (9*16 + 256)/2, 16*7; 32x32: (9*32 + 1024)/2 = 656, 32*7 = 224."""
    small, large = (engine_of(load_machine(f"partial_cnn_{e}")) for e in (16, 32))
    assert (small.dsps_used, small.brams_used, small.brams, small.clock_hz) == (200, 112, 140, 120_000_000)
    assert (large.dsps_used, large.brams_used) == (656, 224)


def test_frames_of_mobilenet_v1() -> None:
    """16x16 at 120 MHz: 18.7 frames a second with additions as steps, 47.5 with hidden ones; published: 70.

    Pointwise runs alone, all of whole groups, take 540.0M/256 = 2.11M cycles, so that 120M/2.11M = 57 is the most that
    this engine reaches: 70 is out of reach of it, and nothing is fitted to it.
    """
    net = load_network("mobilenet_v1")
    pointwise = sum(x.macs for x in net.conv_layers if x.name.endswith("/pw"))
    steps = network_cycles(net, engine_of(load_machine("partial_cnn_16")))
    hidden = network_cycles(net, engine_of(load_machine("partial_cnn_16", {"engine.adds": "hidden"})))
    assert 120e6 / steps == pytest.approx(18.7, abs=0.05)
    assert 120e6 / hidden == pytest.approx(47.5, abs=0.05)
    assert hidden > pointwise // 256
    assert 120e6 * 256 / pointwise < 70


def test_no_reading_gives_the_published_rates() -> None:
    """A run takes a cycle a pixel at least: MobileNetV1 does not reach 70. Xception reaches 17 in no way with 200 DSPs.

    conv1 has 2*112*112 = 25,088, the pointwise layers that double the maps 8*112*112 = 100,352 each (5 of them), the
    others 64*56*56 = 200,704 (8 of them): 2,132,480 cycles or 56.3 frames a second; 70 leave 1,714,285 cycles.
    """
    from solver.uses.bench.partial_engine import most_frames, networks

    found = {one.name: one for one in networks()}
    toy = load_machine("partial_cnn_16")
    assert run_pixels(found["mobilenet_v1"], engine_of(toy)) == 25_088 + 5 * 100_352 + 8 * 200_704
    assert most_frames(found["mobilenet_v1"], toy) == pytest.approx((56.3, 84.5), abs=0.05)
    assert most_frames(found["xception"], toy) == pytest.approx((7.1, 10.5), abs=0.05)
    hidden = engine_of(load_machine("partial_cnn_16", {"engine.adds": "hidden"}))
    for net in found.values():
        assert run_pixels(net, hidden) < network_cycles(net, hidden)


# --- orders, bounds, all orders --------------------------------------------------------------------------------------


def test_a_game_by_hand() -> None:
    """2 x 4 groups, 1 input and 2 partial places, a load 3, a swap 6.

    Two batches of outputs: inputs 0, 1 | 1, 0: three loads, 9. One pass: 2 loads and, at the turn, two of four outputs
    come back: 6 + 12. No order beats 9: two outputs a place need both inputs each, one of which has to be loaded again.
    """
    game = Game((3, 3), (6,) * 4, 1, 2)
    assert lower(game) == 9
    assert price(game, program(game, next(passes(game)), fresh=1)) == 9
    found = best_order(game)
    assert found[0] == 9


@st.composite
def games(draw: st.DrawFn) -> Game:
    inputs = draw(st.integers(1, 4))
    outputs = draw(st.integers(1, MOST_RUNS // inputs if inputs > 2 else 5))
    load, swap = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    loads = (load,) * (inputs - 1) + (draw(st.integers(1, load)),)
    swaps = (swap,) * (outputs - 1) + (draw(st.integers(1, swap)),)
    return Game(loads, swaps, draw(st.integers(1, inputs)), draw(st.integers(1, outputs)))


@settings(max_examples=tries(40, 150))
@given(games(), st.booleans())
def test_bounds_and_orders_against_all_orders(game: Game, stay: bool) -> None:
    """bound <= the best of all orders <= every order in passes; equal groups: orders in passes are the best."""
    found = best_order(game, stay=stay)
    best, order = found
    assert lower(game, stay=stay) <= best <= price(game, program(game, order, fresh=1))
    for other in (*passes(game), plain(game), greedy(game)):
        steps = program(game, other, fresh=1)
        assert sorted(other) == [(i, o) for i in range(game.inputs) for o in range(game.outputs)]
        if not (stay and any(step.verb == "spill" for step in steps)):
            assert price(game, steps) >= best
    if len(set(game.loads)) == len(set(game.swaps)) == 1 and not stay:
        assert min(price(game, program(game, one, fresh=1)) for one in passes(game)) == best


def cheapest(game: Game, *, stay: bool = False) -> int:
    """The fewest bytes, by Dijkstra's algorithm over what lies in the places and which runs are done, by name."""
    full, seen, heap = (1 << game.inputs) - 1, set[object](), [(0, 0, 0, (0,) * game.outputs)]
    while True:
        cost, ins, outs, done = heapq.heappop(heap)
        done = tuple(d | (ins if outs >> o & 1 else 0) for o, d in enumerate(done))
        outs = sum(1 << o for o, d in enumerate(done) if outs >> o & 1 and d != full)
        if done == (full,) * game.outputs:
            return cost
        if (ins, outs, done) in seen:
            continue
        seen.add((ins, outs, done))
        for i in (i for i in range(game.inputs) if not ins >> i & 1):
            gone = [1 << g for g in range(game.inputs) if ins >> g & 1] if ins.bit_count() == game.x else [0]
            for g in gone:
                heapq.heappush(heap, (cost + game.loads[i], ins - g + (1 << i), outs, done))
        for o in (o for o, d in enumerate(done) if d != full and not outs >> o & 1 and not (stay and d)):
            gone = [1 << g for g in range(game.outputs) if outs >> g & 1] if outs.bit_count() == game.y else [0]
            for g in (g for g in gone if not (stay and g and done[g.bit_length() - 1])):
                heapq.heappush(heap, (cost + bool(done[o]) * game.swaps[o], ins, outs - g + (1 << o), done))


@pytest.mark.parametrize("inputs", range(1, 4))
def test_all_small_games(inputs: int) -> None:
    """Every game of up to 3 x 4 groups; equal ones: the bound is the best of all orders, and orders in passes meet it.

    Where the last groups are smaller the bound holds, and the best of all orders is what `cheapest` finds.
    """
    for outputs, (load, swap) in product(range(1, 5), ((1, 2), (4, 2), (2, 1), (1, 1))):
        for x, y in product(range(1, inputs + 1), range(1, outputs + 1)):
            game = Game((load,) * inputs, (swap,) * outputs, x, y)
            found = best_order(game)
            assert min(price(game, program(game, one, fresh=1)) for one in passes(game)) == found[0]
            assert lower(game) == found[0]
            odd = replace(game, loads=(*game.loads[1:], 1), swaps=(*game.swaps[1:], 1))
            if outputs < 4 and load > 1:
                for stay in (False, True):
                    least = cheapest(odd, stay=stay)
                    assert (best_order(odd, stay=stay)[0], lower(odd, stay=stay) <= least) == (least, True), odd


def test_large_games_are_not_searched() -> None:
    assert best_order(Game((1,) * 5, (1,) * 5, 1, 1)) is None


def test_bounds_meet_orders_at_real_sizes() -> None:
    """8 x 16 groups, 128 runs: 4 input and 4 partial places; four batches, 8 + 3*4 loads of 2, against swaps of 2."""
    game = Game((2,) * 8, (2,) * 16, 4, 4)
    assert lower(game) == price(game, program(game, next(passes(game)), fresh=1))


# --- engines ---------------------------------------------------------------------------------------------------------


@pytest.mark.few(5)
@pytest.mark.parametrize("name", ["auto", "cp-sat", "milp", "milp-cbc"])
@pytest.mark.parametrize("settings_", [{}, {"psum_bytes": 4}, {"engine.adds": "hidden"}])
def test_engines_prove_real_layers(name: str, settings_: dict[str, int | str]) -> None:
    """The layers of MobileNetV1 and V2 at which something does not fit, whole or in strips."""
    more = {"engine": name, "settings": settings_}
    first = solve("mobilenet_v1", "partial_cnn_16", layers=["conv2/pw", "conv4/pw"], **more, problem="partial_engine")
    whole = solve(
        "mobilenet_v1", "partial_cnn_16", layers="conv4/pw", pins="strips=1", **more, problem="partial_engine"
    )
    wide = solve(
        "mobilenet_v2", "partial_cnn_16", layers=["block2/expand", "block3/expand"], **more, problem="partial_engine"
    )
    for plan in (first, whole, wide):
        assert plan.status == "OPTIMAL"
        assert plan.bound == plan.objective.value
    if not settings_:  # conv2/pw: 32 and 64 maps of 112x112, weights in both strips; conv4/pw: below
        assert first.bound == 96 * 12_544 + 2 * 2048 + 2 * 401_408 + 2 * 16_384


def test_conv4_by_hand() -> None:
    """128 -> 128 maps of 56x56, banks of 28,672 bytes: a map takes 3,136, so nine places, one of them fresh.

    Whole maps: x + y = 8 places for 8 + 8 groups; four batches of two... two batches of four outputs with four inputs
    that stay at the turn: 8 + 4 loads of 16 maps: 12*50,176 = 602,112, results 401,408, weights 16,384.
    In two strips everything fits: 401,408 + 401,408 + 2*16,384.
    """
    whole = solve("mobilenet_v1", "partial_cnn_16", layers="conv4/pw", pins="strips=1", problem="partial_engine")
    assert whole.objective.terms == {
        "inputs": 602_112, "weights": 16_384, "spilled": 0, "reloaded": 0, "results": 401_408
    }  # fmt: skip
    free = solve("mobilenet_v1", "partial_cnn_16", layers="conv4/pw", problem="partial_engine")
    assert free.objective.value == 2 * 401_408 + 2 * 16_384


def test_partial_maps_are_stored_where_that_is_cheaper() -> None:
    """Large strided inputs, one place for each: one pass over the inputs, partial maps out and in.

    4 -> 4 maps on 2x2, 2x2 groups, 3x3 stride 2 on 8x8: an input map takes 64 bytes of a bank, a partial map 16. A bank
    of 96 has a place for an input, one for partial maps, one fresh. All orders: inputs 2*2*64 + once more 128 = 384, or
    once 256 and one of two partial groups out and in: 2*2*16 = 64 more.
    """
    toy = machine(bank=96)
    layer, fixed = conv(4, 4, 8, 3, stride=2), 4 * 4 * 9 + 4 * 16
    said = answer("auto", layer, toy, ("strips=1",))
    assert (said.status, said.bytes) == ("OPTIMAL", fixed + 256 + 64)
    stay = answer("auto", layer, toy, ("strips=1", "spill=no"))
    assert (stay.status, stay.bytes) == ("OPTIMAL", fixed + 384)


def counted(looks: int) -> Clock:
    """A clock that is over after so many looks at it."""
    left = iter(range(looks))
    return Clock(0.5, lambda: 0.0 if next(left, None) is not None else 1.0)


def test_long_loops_ask_the_clock() -> None:
    """64 x 64 groups are 4,096 runs: an order is priced in four rounds, greedy and all orders look more often."""
    game = Game((4,) * 64, (2,) * 64, 4, 4)
    order = plain(game)
    assert len(program(game, order, fresh=0, clock=counted(4))) > 4_096
    with pytest.raises(TimeUp):
        program(game, order, fresh=0, clock=counted(3))
    with pytest.raises(TimeUp):
        greedy(game, counted(10))
    small = Game((4,) * 3, (2,) * 3, 1, 1)
    assert best_order(small) is not None
    with pytest.raises(TimeUp):
        best_order(small, clock=counted(10))


def test_a_large_layer_ends_with_the_clock() -> None:
    """128 x 128 filters on an engine of 2 x 2: 4,096 runs, of which a look comes every 1,024."""
    part = EnginePart(conv(128, 128), machine(bank=512))
    assert part.runs == 4_096
    whole = part.in_passes(part.choices.branches[0])
    with pytest.raises(TimeUp):
        part.in_passes(part.choices.branches[0], counted(3))
    first = part.in_passes(part.choices.branches[0], counted(5))  # one order, and a look at the second
    assert first.bytes >= whole.bytes >= part.bounds[0][0]
    piece = AllChoices(part)
    found, bound = piece.exact(Goal("bytes", clock=counted(0)), "auto")
    assert (found, bound) == (None, part.bounds[0][0])


def test_a_huge_layer_has_no_plan_once_the_time_is_up() -> None:
    """512 x 512 maps on an engine of 2 x 2 are 65,536 runs: no heuristic writes and no referee walks them then."""
    part, over = EnginePart(conv(512, 512), machine(bank=2048)), Goal("bytes", clock=counted(0))
    assert part.choices.branches
    assert [EngineFormulation.heuristics[name][1](part, over) for name in EngineFormulation.quick] == [None] * 3
    smaller = EnginePart(conv(256, 256), machine(bank=2048))  # 16,384 runs
    assert EngineFormulation.heuristics["paper"][1](smaller, over) is not None


def test_a_time_limit_gives_a_plan_and_a_bound() -> None:
    """However short the time."""
    toy, layer = machine(bank=52), conv(5, 6, 6)
    full, short = (answer("auto", layer, toy, clock=clock) for clock in (ENDLESS, Clock.of(0.0)))
    assert (full.status, short.status) == ("OPTIMAL", "FEASIBLE")
    assert short.bound <= full.bytes < short.bytes
    plan = solve(network((6, 1, 1)), toy, engine="cp-sat", time_limit_s=10, problem="partial_engine")
    assert (plan.status, plan.options.time_limit_s) == ("OPTIMAL", 10)


def test_milp_does_not_claim_what_its_tolerances_cannot_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    from solver.search import driver_milp

    monkeypatch.setattr(driver_milp, "LARGEST", 0)
    for piece in (AllChoices, OneChoice):
        monkeypatch.setattr(piece, "floor", lambda piece, goal: 1)
    found = solve(network((6, 1, 1)), machine(), engine="milp", problem="partial_engine")
    assert (found.status, found.bound, check(found).problems) == ("FEASIBLE", 1, ())
    assert found.parts[0].stats["note"] == "values are too large for a proof by this solver"


@settings(max_examples=tries(20, 60))
@given(
    st.integers(1, 6), st.integers(1, 6), st.integers(1, 9), st.sampled_from((1, 3, 5)), st.integers(1, 2),
    st.integers(8, 150), st.sampled_from((1, 4)),
)  # fmt: skip
def test_candidates_of_strips_and_places_lose_nothing(
    channels: int, filters: int, size: int, kernel: int, stride: int, bank: int, psum: int
) -> None:
    """The least bound of all heights and places that fit is that of the candidates."""
    toy = machine(bank=bank).model_copy(update={"psum_bytes": psum})
    work = work_of(conv(channels, filters, size, kernel, stride=stride), engine_of(toy))
    problem = build(work, toy)
    everything = [
        branch_at(work, toy, rows, x, y, Demands())
        for rows in range(1, work.layer.r + 1)
        for x in range(1, work.inputs + 1)
        for y in range(1, work.outputs + 1)
    ]
    fitting = [b for b in everything if b.x * b.in_place + (b.y + work.fresh) * b.part_place <= bank]
    assert bool(fitting) == bool(problem.branches)
    if fitting:
        assert min(map(branch_bound, fitting)) == min(map(branch_bound, problem.branches))


def test_an_order_may_need_all_stages() -> None:
    """2 x 2 groups of a byte, a place each: both first entries, input 1, output 1, input 0 again: 3 bytes, 4 stages."""
    game = Game((1, 1), (1, 1), 1, 1)
    assert (best_order(game)[0], stages(game, 4)) == (3, 4)
    assert driver_cp_sat.solve(stages_cp_model(game, 4).model).bound == 3
    dear = Game((4, 4), (1, 1), 1, 1)  # an output comes back for 1, or an input for 4
    for stay, least in ((False, 9), (True, 12)):
        made = stages_cp_model(dear, 13, stay=stay)
        said = driver_cp_sat.solve(made.model)
        assert said.bound == price(dear, program(dear, made.chosen(said.solver), fresh=1)) == least
    assert stages(Game((5, 4), (6, 6, 6, 4), 1, 1), 26) == 2 + 4 + (25 - 9) // 4 - 1 - 1 + 1


@pytest.mark.slow(4)
def test_orders_by_stages_close_gaps() -> None:
    """Unequal groups: the bound is 20, the best of all orders moves 22 bytes, as CP-SAT proves on the order itself.

    2 x 4 groups, one place each; loads 5 and 4, swaps 6, 6, 6, 4.
    """
    game = Game((5, 4), (6, 6, 6, 4), 1, 1)
    found = best_order(game)
    assert found[0] == 22
    assert lower(game) < 22
    assert driver_cp_sat.solve(stages_cp_model(game, 22).model).status == "INFEASIBLE"
    kept = best_order(game, stay=True)
    for best, stay in ((22, False), (kept[0], True)):
        made = stages_cp_model(game, best + 4, stay=stay)
        said = driver_cp_sat.solve(made.model, turns=True)
        assert said.bound == price(game, program(game, made.chosen(said.solver), fresh=1)) == best
    assert stages(Game((1,) * 4, (1,) * 3, 1, 1), 99) > MOST_STAGES


@pytest.mark.parametrize("engine", ["auto", "cp-sat", "milp"])
def test_the_choice_that_has_to_move_least_need_not_be_the_best(engine: str) -> None:
    """5 -> 6 maps of 6x6 in banks of 38 bytes: it moves 702 bytes, another one 576."""
    layer, toy = conv(5, 6, 6), machine(bank=38)
    part = EnginePart(layer, toy)
    assert part.in_passes(part.choices.branches[0]).bytes == 702
    said = answer(engine, layer, toy)
    assert (said.status, said.bytes, said.bound) == ("OPTIMAL", 576, 576)


def test_cp_sat_proves_by_the_order_itself() -> None:
    """3 -> 5 maps of 2x2 in banks of 13 bytes, whole: 2 x 3 unequal groups; the bounds say 55, all orders 59."""
    toy = machine(bank=13)
    layer = conv(3, 5, 2)
    problem = build(work_of(layer, engine_of(toy)), toy, Demands(strips=(1, 1)))
    assert min(map(branch_bound, problem.branches)) == 55
    for name in ("auto", "cp-sat", "exhaustive"):
        said = answer(name, layer, toy, ("strips=1",))
        assert (said.status, said.bound) == ("OPTIMAL", 59)
    milp = answer("milp", layer, toy, ("strips=1",))
    assert (milp.status, milp.bound) == ("FEASIBLE", 55)
    part = EnginePart(layer, toy, parse_pins(("strips=1",), DECISIONS))
    found = []
    for bound, n in part.bounds:
        made = OneChoice(part, part.choices.branches[n], bound).cp_sat(Goal("bytes", below=62))
        said = driver_cp_sat.solve(made.model)
        if said.solved:
            value = part.price(made.decode(said.solver)).measures["bytes"]
            assert value == made.base + made.unit * said.bound
            found.append(value)
    assert min(found) == 59


# --- replay ----------------------------------------------------------------------------------------------------------

GOOD = "L0@0 R0.0@0 L1@1 R1.0@f A0@0 S0@0 R0.1@0 R1.1@f A1@0 S1@0"


def _replayed(
    text: str, *, bank: int = 64, places: tuple[int, int] = (2, 1), rows: int = 4, **more: object
) -> list[str]:
    return replay_engine(conv(4, 4), machine(bank=bank, **more), rows, places, from_text(text)).faults


def test_replay_counts_by_hand() -> None:
    """4 -> 4 maps of 4x4 on 2x2: inputs 64, weights 16, results 64; 4 runs of 16 and 2 additions of 32 cycles."""
    seen = replay_engine(conv(4, 4), machine(), 4, (2, 1), from_text(GOOD))
    assert (seen.faults, seen.inputs, seen.weights, seen.results, seen.spilled) == ([], 64, 16, 64, 0)
    assert (seen.runs, seen.adds, seen.cycles, seen.peak) == (4, 2, 4 * 16 + 2 * 32, 64)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (GOOD.replace("L1@1 ", ""), "input group 1 is in no place"),  # (READ)
        (GOOD.replace(" A0@0", ""), "does not hold the whole sum"),  # (ADD)
        (GOOD.replace("R1.0@f A0@0", "R1.0@0"), "the place is taken"),  # (ADD)
        (GOOD.replace(" S0@0", ""), "the place is taken"),  # (KEEP)
        (GOOD.replace("A0@0 S0@0", "A0@0 P0@0"), "output group 0 is never stored"),  # (KEEP)
        (GOOD.replace("R1.0@f A0@0", "P0@0 R1.0@0"), "a second sum"),  # (ONE)
        (GOOD.replace("R1.0@f A0@0", "R0.0@f A0@0"), "no two different parts"),
        (GOOD.replace(" S1@0", ""), "output group 1 is never stored"),
        (GOOD.replace("S0@0", "S0@0 R0.0@0"), "a second sum of output group 0"),
        (GOOD.replace("L1@1", "L1@2"), "there is no input place 2"),
        (GOOD.replace("R0.0@0", "R0.0@1"), "there is no partial place 1, there are 1"),
        (GOOD.replace("S0@0", "P0@0").replace("S1@0", "B0@0"), "the place is taken"),
        (GOOD.replace("S1@0", "S3@0"), "there is no such group"),
        (GOOD.replace("R1.0@f A0@0", "R1.0@f R1.1@f"), "partial maps 1 are in no place"),
        (GOOD.replace("R1.0@f", "R1.0@f R1.0@f"), "the fresh place holds maps that are not added yet"),
        (GOOD.replace("L1@1", "B0@0 L1@1"), "are not in DRAM"),
    ],
)
def test_replay_sees_faults(text: str, fault: str) -> None:
    assert any(fault in one for one in _replayed(text)), _replayed(text)


def test_replay_sees_a_full_bank_and_banks_hit_twice() -> None:
    assert "a bank has 63" in _replayed(GOOD, bank=63)[0]  # (BANK): 2*16 + 16 + 16
    assert _replayed("P0@0", places=(2, 1)) != []
    broken = machine().model_copy(update={"engine": engine_of(machine()).model_copy(update={"banks": 1})})
    faults = replay_engine(conv(4, 4), broken, 4, (2, 1), from_text("L0@0 R0.0@0")).faults  # (PORT)
    assert any("maps at once, there are 1 banks" in fault for fault in faults)


def test_replay_of_maps_that_stay() -> None:
    """(CHAIN): inputs in places 0 and 1 before, results in places afterwards."""
    text = "R0.0@0 R1.0@f A0@0 R0.1@1 R1.1@f A1@1"
    steps = from_text(text)
    seen = replay_engine(conv(4, 4), machine(bank=80), 4, (2, 2), steps, held=(True, True))
    assert (seen.faults, seen.bytes, seen.weights) == ([], 16, 16)
    part = replay_engine(
        conv(4, 4), machine(bank=80), 4, (2, 2), from_text(text.replace(" R1.1@f A1@1", "")), held=(True, True)
    )
    assert part.faults == ["rows 0 to 4: output group 1 is never in a place, whole"]
    assert replay_engine(conv(4, 4), machine(bank=80), 2, (2, 2), steps, held=(True, True)).faults
    assert replay_engine(conv(4, 4), machine(bank=80), 4, (2, 2), from_text(f"L0@0 {text}"), held=(True, True)).faults
    assert replay_engine(conv(4, 4), machine(bank=80), 4, (2, 2), from_text(f"{text} S0@0"), held=(True, True)).faults


def test_any_layer_costs_what_the_replay_counts() -> None:
    """Strides, dilations, padding, groups, a kernel for each map, strips, bytes that differ: heuristics' programs."""
    rng, planned = random.Random(5), 0
    for _ in range(tries(40, 200)):
        kind, channels, filters = rng.choice(["conv", "conv", "depthwise", "pool"]), *rng.choices(range(1, 8), k=2)
        groups = rng.randint(1, 2) if kind == "conv" else channels
        size, kernel, stride, dilation = (rng.choices(few, k=2) for few in ((5, 6, 8), (1, 2, 3), (1, 2, 3), (1, 2)))
        pad = [rng.randint(0, min(1, taps - 1)) for taps in kernel * 2]
        many = (channels * groups, filters * groups) if kind == "conv" else (channels, channels)
        layer = Layer.conv("c", channels=many[0], filters=many[1], size=tuple(size), kernel=tuple(kernel),
                           stride=tuple(stride), dilation=tuple(dilation), pad=tuple(pad), groups=groups)  # fmt: skip
        if kind == "pool":
            layer = layer.model_copy(update={"kind": "pool", "weights": "none"})
        toy = machine(rng.randint(1, 3), bank=rng.choice([300, 2000]), adds=rng.choice(["steps", "hidden"]),
                      window_taps=rng.randint(1, 9), pair_taps=rng.randint(1, 3))  # fmt: skip
        toy = toy.model_copy(update={"in_bytes": 2, "w_bytes": 3, "out_bytes": 5, "psum_bytes": 7})
        part = EnginePart(layer, toy, parse_pins(rng.choice([(), ("strips>=2",)]), DECISIONS))
        made = EngineFormulation.heuristics[rng.choice(["greedy", "paper"])][1](part, Goal("bytes"))
        if made is not None:
            priced, seen = part.price(made), part.replay(made)
            assert (seen.faults, seen.measures, seen.counts) == ((), priced.measures, priced.counts), layer
            planned += 1
    assert planned > 20


def test_programs_compute_convolutions() -> None:
    """Carry a program out on integers: input and partial maps as arrays, a place is a key."""
    rng = np.random.default_rng(0)
    layer, toy = conv(7, 5, 6, 3), machine(bank=90)
    image, kernels = rng.integers(-9, 9, (7, 6, 6)), rng.integers(-9, 9, (5, 7, 3, 3))
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    direct = np.einsum("nrcij,mnij->mrc", windows, kernels)
    said = answer("auto", layer, toy)
    result = np.zeros_like(direct)
    for first in range(0, 6, said.schedule.rows):
        rows = slice(first, min(6, first + said.schedule.rows))
        _carry_out(said.steps, windows[:, rows], kernels, result[:, rows])
    assert (result == direct).all()


def _carry_out(steps: Sequence[Step], windows: np.ndarray, kernels: np.ndarray, result: np.ndarray) -> None:
    places: dict[tuple[str, int], np.ndarray] = {}
    loaded: dict[int, int] = {}
    stored: dict[int, np.ndarray] = {}
    for verb, i, o, place in steps:
        ins, outs = slice(2 * i, 2 * i + 2), slice(2 * o, 2 * o + 2)
        if verb == "load":
            loaded = {n: at for n, at in loaded.items() if at != place} | {i: place}
            places["in", place] = windows[ins]
        elif verb == "run":
            places["part", place] = np.einsum("nrcij,mnij->mrc", places["in", loaded[i]], kernels[outs, ins])
        elif verb == "add":
            places["part", place] = places["part", place] + places.pop(("part", -1))
        elif verb == "spill":
            stored[o] = places.pop(("part", place))
        elif verb == "back":
            places["part", place] = stored.pop(o)
        else:
            result[outs] = places.pop(("part", place))


# --- plans -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(network((6, 1, 1), (6, 3, 6), (4, 3, 2)), machine(bank=64), problem="partial_engine")


def test_a_plan_and_its_file(plan: Plan, tmp_path: Path) -> None:
    assert (plan.status, plan.parts[0].replay.ok, check(plan).problems) == ("OPTIMAL", True, ())
    path = tmp_path / "plan.json"
    plan.save(path)
    assert Plan.load(path) == plan
    schema = PartialEngineProblem().schema()
    jsonschema.validate(json.loads(path.read_text()), schema)
    assert plan.measures is not None
    assert [row.name for row in plan.parts] == ["c0", "c1", "c2"]
    # c0: 2 x 3 groups; c1: 3 runs of two maps; c2: two groups of 3 -> 2 maps, 2 x 1 groups each. In strips: more.
    assert [(row.schedule.grids, row.schedule.inputs, row.schedule.outputs) for row in plan.parts if row.schedule] == [
        (1, 2, 3), (3, 1, 1), (2, 2, 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bound": 1}, "bound"),
        ({"machine": "other"}, "machine"),
        ({"parts.0.bounds.bytes": 1}, "gap"),
        ({"parts.0.measures.bytes": 1}, "measures"),
        ({"parts.0.figures.peak_bytes": 1}, "figures.peak_bytes: the plan says 1"),
        ({"parts.0.schedule.rows": 99}, "strips of 99 rows"),
        ({"parts.0.schedule.rows": 1}, "strips"),
        ({"parts.0.schedule.fresh_places": 0}, "fresh_places"),
        ({"parts.0.schedule.in_place_bytes": 1}, "bytes of places"),
        ({"parts.0.schedule.in_places": 9}, "a bank has"),
        ({"parts.0.schedule.program": "L0@0"}, "is never stored"),
        ({"parts.0.schedule.program": "Z"}, "is no step"),
        ({"parts.0.schedule.results_at": "banks"}, "results_at"),
        ({"parts.0.status": "FEASIBLE"}, "status"),
        ({"parts.0.name": "other"}, "parts"),
        ({"parts.0.bounds.bytes": 10**6}, "bytes 1000000 is above the value"),
        ({"parts.0.replay": None}, "replay: the plan says"),
        ({"parts.0.conflicts": ["why"]}, "conflicts: the plan says"),
        ({"parts.0.schedule.program": "L7@0"}, "there is no such group"),
        ({"parts.0.schedule.in_places": 2, "parts.0.schedule.program": "L0@5"}, "there is no input place 5"),
        ({"options.pins": ["strips=4"]}, "the pins ask for"),
        ({"options.pins": ["what=4"]}, "unknown decision 'what'"),
    ],
)
def test_check_sees_lies(plan: Plan, change: dict[str, object], said: str) -> None:
    found = problems(plan, *change.items())
    assert any(said in text for text in found), found


def test_pins_hold(plan: Plan) -> None:
    toy, net = machine(bank=64), network((6, 1, 1))
    for pins in (["strips=2"], ["in_places=1"], ["part_places>=2"], ["strips>=3", "in_places<=1"], ["spill=no"]):
        found = solve(net, toy, pins=pins, problem="partial_engine")
        assert (found.status, check(found).problems) == ("OPTIMAL", ())
        assert plan.parts[0].measures
        assert found.objective.value >= plan.parts[0].measures["bytes"]


def test_inputs_and_results_in_the_banks() -> None:
    """16 -> 16 ... a bank holds 2 inputs, 3 results and a fresh place of 16 bytes: 96; only the 24 weights move."""
    pins = {"inputs": "banks", "results": "banks"}
    net = network((6, 1, 1))
    found = solve(net, machine(bank=96), pins=pins, problem="partial_engine")
    assert (found.status, check(found).problems) == ("OPTIMAL", ())
    assert found.objective.value == 24
    tight = solve(net, machine(bank=95), pins=pins, problem="partial_engine")
    assert (tight.status, check(tight).problems) == ("INFEASIBLE", ())
    assert len(tight.conflicts) == 1
    assert tight.conflicts[0].startswith("c0: pins inputs=banks, results=banks: strips of 4 rows take 96 bytes")


def test_infeasible_names_what_conflicts() -> None:
    net = network((6, 1, 1))
    tiny = solve(net, machine(bank=11), problem="partial_engine")
    # the smallest: a row of 4 pixels, an input, a partial and a fresh place
    assert tiny.conflicts == (
        "c0: strips of 1 rows take 12 bytes of every bank, toy has 11: places for input groups 1 x 4 bytes, "
        "for partial groups 2 x 4",
    )
    assert (tiny.status, tiny.objective, check(tiny).problems) == ("INFEASIBLE", None, ())
    pinned = solve(net, machine(bank=47), pins=["in_places=1", "strips=1"], problem="partial_engine")
    assert pinned.conflicts[0].startswith("c0: pins strips=1: strips of 4 rows take 48 bytes of every bank, toy has 47")
    odd = solve(net, machine(), pins=["in_places>=3"], problem="partial_engine")
    assert "2 input and 3 output groups, which leaves no such strips and places" in odd.conflicts[0]


@pytest.mark.parametrize("name", ["greedy", "paper", "exhaustive"])
def test_baselines_are_plans(name: str, plan: Plan) -> None:
    found = solve(plan.network_data, plan.machine_data, engine=name, problem="partial_engine")
    assert check(found).problems == ()
    assert found.objective.value >= plan.objective.value


def test_exhaustive_says_that_a_grid_is_too_large() -> None:
    found = solve("mobilenet_v1", "partial_cnn_16", layers="conv3/pw", engine="exhaustive", problem="partial_engine")
    assert (found.status, found.bound, check(found).problems) == ("OPTIMAL", found.objective.value, ())
    assert found.parts[0].stats["note"] == "32 runs of a grid, at most 12 are searched"


def test_an_engine_that_lies_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    real = AllChoices.exact

    def lie(piece: AllChoices, goal: Goal, engine: str) -> tuple[object, int | None]:
        made, bound = real(piece, goal, engine)
        return made.model_copy(update={"program": f"{made.program} S0@0"}), bound

    monkeypatch.setattr(AllChoices, "exact", lie)
    with pytest.raises(PlanMismatch, match="engine auto: "):
        solve(network((6, 1, 1)), machine(), problem="partial_engine")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"engine": "best"}, "unknown engine for problem partial_engine 'best'"),
        ({"objective": "time"}, "unknown objective 'time': expected bytes"),
        ({"pins": "strips=0"}, "pin 'strips=0': strips takes a positive integer"),
        ({"pins": "strips"}, "expected NAME=VALUE"),
        ({"pins": "strips%2"}, "pin strips%2: strips takes =, <= and >="),
        ({"pins": ["spill=no", "spill=yes"]}, "no value of spill is left"),
        ({"machine": "nmp"}, "machine nmp: problem partial_engine needs an engine, such as partial_cnn_16 has"),
        ({"layers": "none"}, "has no layer 'none'"),
        ({"time_limit_s": 0}, "time limit"),
        ({"settings": {"banks": 8}}, "banks: Input should be an object"),
        ({"settings": {"engine.banks": 8}}, "a run reads 16 and writes 16 maps at once"),
    ],
)
def test_bad_input_is_one_line(more: dict[str, object], said: str) -> None:
    target = more.pop("machine", "partial_cnn_16")
    with pytest.raises(InputError, match=said) as caught:
        solve("mobilenet_v1", target, **more, problem="partial_engine")
    assert "\n" not in str(caught.value)


def test_layers_that_an_engine_does_not_compute() -> None:
    with pytest.raises(InputError, match=r"layer layer0\.scores: runs of an engine are convolutions"):
        solve("bert_base_encoder", "partial_cnn_16", problem="partial_engine")
    with pytest.raises(InputError, match="batch 2; an engine takes one image at a time"):
        solve(load_network("lenet5", batch=2), "partial_cnn_16", problem="partial_engine")


def test_check_sees_wrong_conflicts() -> None:
    tiny = solve(network((6, 1, 1)), machine(bank=11), problem="partial_engine")
    assert any(
        "conflicts[0]: the plan says because" in text for text in problems(tiny, ("parts.0.conflicts", ["because"]))
    )


def changed(plan: Plan, **fields: object) -> Plan:
    """The first layer of a plan with other fields."""
    return plan.model_copy(update={"parts": (plan.parts[0].model_copy(update=fields), *plan.parts[1:])})


NOTHING = {"schedule": None, "measures": {}, "terms": {}, "bounds": {"bytes": None}, "gap": None, "replay": None}


def test_layers_where_nothing_fits_have_no_bound() -> None:
    tiny = solve(network((6, 1, 1)), machine(bank=11), problem="partial_engine")
    assert (tiny.status, tiny.parts[0].bounds["bytes"], check(tiny).problems) == ("INFEASIBLE", None, ())
    assert "layer c0: bytes: bound 7 of nothing" in check(changed(tiny, bounds={"bytes": 7})).problems
    faults = check(changed(tiny, replay=PartReplay(ok=False, faults=("why",), measures={}))).problems
    assert any("replay: the plan says" in line for line in faults)


@pytest.mark.parametrize("engine", ["auto", "cp-sat", "milp", "exhaustive", "greedy", "paper"])
def test_check_asks_quick_engines_again_where_there_is_no_schedule(engine: str) -> None:
    """6 groups of runs are searched and have a schedule by every engine, whatever a plan without one says."""
    found = solve(network((6, 1, 1)), machine(), engine=engine, problem="partial_engine")
    lost = changed(found, status="NO_SOLUTION_FOUND", **NOTHING)
    quick = engine if engine in ("greedy", "paper") else "passes"
    assert f"layer c0: status NO_SOLUTION_FOUND: engine {quick} has a schedule" in check(lost).problems
    for conflicts in ((), ("because",)):
        lie = changed(found, status="INFEASIBLE", conflicts=conflicts, **NOTHING)
        said = "layer c0: status: the plan says INFEASIBLE, it is NO_SOLUTION_FOUND"
        assert said in check(lie).problems


def test_greedy_gives_up_where_partial_maps_may_not_leave() -> None:
    """The layer of `test_partial_maps_are_stored_where_that_is_cheaper`: the greedy order stores partial maps."""
    operators = (
        Input(name="x", shape=(1, 4, 8, 8)),
        Conv(name="c", inputs=("x",), shape=(1, 4, 4, 4), filters=4, kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1)),
    )
    net = Network(name="net", operators=operators)
    found = solve(net, machine(bank=96), engine="greedy", pins=["strips=1", "spill=no"], problem="partial_engine")
    assert (found.status, check(found).problems, check(found).layers) == ("NO_SOLUTION_FOUND", (), 0)
    assert solve(net, machine(bank=96), pins=["strips=1", "spill=no"], problem="partial_engine").status == "OPTIMAL"


@pytest.mark.parametrize("status", ["OPTIMAL", "FEASIBLE"])
def test_check_refutes_bounds_above_what_orders_in_passes_move(status: str) -> None:
    """conv4/pw: the paper's order moves more than the optimum, 835,584 bytes; called proven, or bounded by itself."""
    worse = solve("mobilenet_v1", "partial_cnn_16", layers="conv4/pw", engine="paper", problem="partial_engine")
    value = worse.objective.value
    assert value > 835_584
    bound = value - (status == "FEASIBLE")
    claimed = {"status": status, "bound": bound, "gap": (value - bound) / value}
    row = {"status": status, "bounds": {"bytes": bound}, "gap": claimed["gap"]}
    lie = changed(worse, **row).model_copy(update={**claimed, "engine": "auto"})
    said = "status OPTIMAL in bytes" if status == "OPTIMAL" else "bound"
    refuted = f"layer conv4/pw: {said} {bound}: engine passes has a plan of bytes 835584"
    assert refuted in check(lie).problems
    least = {"bound": 835_584, "gap": (value - 835_584) / value}
    row = {"status": "FEASIBLE", "bounds": {"bytes": 835_584}, "gap": least["gap"]}
    true = changed(worse, **row).model_copy(update=least)
    assert check(true).problems == ("layer conv4/pw: bounds: engine paper proves nothing",)
    assert check(true.model_copy(update={"engine": "auto"})).problems == ()


def test_check_counts_schedules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """c0 has a schedule, c1 has none; an unknown pin ends the check."""
    plan = solve(network((6, 1, 1), (6, 3, 6)), machine(bank=13), problem="partial_engine")
    assert (plan.status, check(plan).problems, check(plan).layers) == ("INFEASIBLE", (), 1)
    path = tmp_path / "plan.json"
    plan.save(path)
    assert main(["check", str(path)]) == 0
    assert "ok; 1 schedules re-priced and replayed" in capsys.readouterr().out
    pinned = plan.model_copy(update={"options": plan.options.model_copy(update={"pins": ("what=4",)})})
    assert check(pinned).layers == 0


def test_check_sees_partial_maps_that_may_not_leave() -> None:
    """The plan of `test_partial_maps_are_stored_where_that_is_cheaper`; spill=no is added to its pins."""
    operators = (
        Input(name="x", shape=(1, 4, 8, 8)),
        Conv(name="c", inputs=("x",), shape=(1, 4, 4, 4), filters=4, kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1)),
    )
    found = solve(
        Network(name="net", operators=operators), machine(bank=96), pins=["strips=1"], problem="partial_engine"
    )
    assert check(found).problems == ()
    assert "store partial maps" in show(found, "c")
    assert "again to partial place 0" in show(found, "c")
    assert problems(found, ("options.pins", lambda pins: [*pins, "spill=no"])) == (
        "layer c: spill=no: the program stores partial maps",
    )


def test_show(plan: Plan) -> None:
    assert "OPTIMAL\nbytes" in show(plan)
    assert show(plan).startswith("net on")
    assert "addresses" not in show(plan)
    assert show(plan, details=True).count("addresses in every bank") == len(plan.parts)
    one = show(plan, "c0")
    assert "addresses in every bank: input place" in one
    assert "add the fresh maps to output group" in one
    with pytest.raises(InputError, match="has no layer 'z'; it has c0, c1, c2"):
        show(plan, "z")
    long = show(solve("mobilenet_v1", "partial_cnn_16", layers="conv7/pw", problem="partial_engine"), "conv7/pw")
    assert "more steps" in long
    empty = solve(network((6, 1, 1)), machine(bank=11), problem="partial_engine")
    table = PartialEngineProblem().sheet(empty)
    assert [column.cells[0] for column in table.columns] == ["c0", "-", "INFEASIBLE", *["-"] * 10]
    assert show(empty, "c0").startswith("c0: INFEASIBLE")
    assert "1 of 1 layers without a schedule: c0" in show(empty)
    assert "INFEASIBLE: strips of 1 rows" in show(empty)


def test_program_texts() -> None:
    steps = from_text(GOOD)
    assert as_text(steps) == GOOD
    for bad in ("X0@0", "L0", "R0@0", "L0.1@0", "La@0", "R0.1@g", "L-1@0"):
        with pytest.raises(ValueError, match="is no step"):
            from_text(bad)


@pytest.mark.slow(1)
def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    asked = ["solve", "mobilenet_v1", "-m", "partial_cnn_16", "--problem", "partial_engine", "--layer", "conv3/pw"]
    assert main([*asked, "--compare", "paper", "-o", str(path)]) == 0
    out = capsys.readouterr().out
    assert "bytes of others over auto: paper 1.000" in out
    assert "32 runs and 24 additions" in out
    assert main(["check", str(path)]) == 0
    assert main(["show", str(path), "--layer", "conv3/pw"]) == 0
    assert "4 x 8 groups" in capsys.readouterr().out
    assert main(["schema", "partial_engine"]) == 0
    assert capsys.readouterr().out == json.dumps(PartialEngineProblem().schema(), indent=1) + "\n"
    assert main(["solve", "mobilenet_v1", "-m", "partial_cnn_16", "-l", "conv1", "--pin", "strips=1"]) == 3
    assert main(["solve", "mobilenet_v1", "-m", "partial_cnn_16", "--problem", "tiling"]) == 2
    assert "meant for problem partial_engine, not tiling" in capsys.readouterr().err
    out_file = tmp_path / "front.json"
    assert main(["pareto", "mobilenet_v1_025", "-m", "partial_cnn_16", "--axes", "dsps,rate", "-o", str(out_file)]) == 0
    capsys.readouterr()
    rows = json.loads(out_file.read_text())["parts"][0]["points"]
    sizes = [row["size"] for row in rows]
    assert all(a["dsps"] < b["dsps"] and a["rates"] < b["rates"] for a, b in pairwise(sizes))
    front_of = ["pareto", "mobilenet_v1_025", "-m", "partial_cnn_16"]
    assert main([*front_of, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parts"][0]["points"] == rows
    assert main([*front_of, "--pin", "strips=1"]) == 2
    assert main(["pareto", "mobilenet_v1_025", "-m", "partial_cnn_16", "--axes", "bytes,time"]) == 2


# --- sizes -----------------------------------------------------------------------------------------------------------


def test_sizes_by_hand() -> None:
    """12 DSPs of 2 products: 9*lanes + e_in*e_out <= 24, so lanes is 1 or 2: 2x3 (24), 1xN, Nx1.

    A 1x1 layer of 4 -> 6 maps of 4x4. 2x3: 2*2 runs of 16 and 2 additions of 32: 128 cycles. 4x1 (9 + 4): 6 runs of 16,
    no addition: 96 cycles. 15x1 is no faster than 4x1, which takes fewer DSPs: 7.
    """
    net, toy = network((6, 1, 1)), machine(dsps=12, brams=99)
    found = size_engine([net], toy, most=16)
    assert (found.size.e_in, found.size.e_out, found.size.dsps, found.size.cycles) == (4, 1, 7, (96,))
    assert found.value == found.bound == 1000 * 1000 // 96
    assert found.rates == {"net": 1000 * 1000 // 96 / 1000}


@pytest.mark.few(6)
@pytest.mark.parametrize("aim", ["worst", "mean"])
@pytest.mark.parametrize("name", ["auto", "exhaustive", "cp-sat", "milp"])
def test_engines_agree_on_sizes(aim: str, name: str) -> None:
    """XC7Z020 (Table II): 16 x 18 for the six networks that are published at about 70 frames a second."""
    nets = ["mobilenet_v1", "mobilenet_v2", "fd_mobilenet", "shufflenet_2x", "mobilenet_v1_050", "mobilenet_v1_025"]
    found = size_engine(nets, "partial_cnn_16", aim=aim, engine=name)
    assert (found.size.e_in, found.size.e_out, found.size.dsps, found.size.brams) == (16, 18, 216, 126)
    assert found.value == found.bound


#: Rates of two networks up to 10**16, which floating point does not tell from 10**16 + 1; the last size is too large.
FAST = [
    Size(2, 1, 5, 1, (1, 1), (10**16, 7)), Size(1, 2, 5, 1, (1, 1), (3, 10**16)), Size(2, 2, 8, 1, (1, 1), (10**12, 5)),
    Size(3, 3, 9, 1, (1, 1), (10**17, 10**17)),
]  # fmt: skip


@pytest.mark.parametrize(("aim", "value"), [("worst", 7), ("mean", 10**16 + 7)])
@pytest.mark.parametrize("name", ["cp-sat", "milp"])
def test_bounds_of_rates_of_any_size(name: str, aim: Literal["worst", "mean"], value: int) -> None:
    """The least rates are 7, 3 and 5, the sums 10**16 + 7, 10**16 + 3 and 10**12 + 5: a bound below 7 is false."""
    assert SIZE_ENGINES[name](FAST, aim, engine_of(machine(dsps=8))) == value


def test_ranks_of_rates() -> None:
    """Eight figures, 10**16 and 10**17 twice: six levels; sums have a level each."""
    levels, ranks = ranked(FAST, "worst")
    assert levels == [3, 5, 7, 10**12, 10**16, 10**17]
    assert ranks == [[4, 0, 3, 5], [2, 4, 1, 5]]
    assert ranked(FAST, "mean")[1] == [[2, 1, 0, 3]]


def test_milp_takes_as_many_rates_as_it_tells_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solver.problems.partial_engine._LARGEST", 5)
    with pytest.raises(InputError, match="engine milp: 6 different rates, it tells 5 apart; auto takes all"):
        SIZE_ENGINES["milp"](FAST, "worst", engine_of(machine(dsps=8)))


@settings(max_examples=tries(10, 30))
@given(st.integers(1, 40), st.integers(1, 40), st.integers(5, 60), st.integers(1, 60))
def test_largest_sizes_suffice(maps: int, filters: int, dsps: int, brams: int) -> None:
    """No size within a budget is faster than one that is larger in both: all sizes against the largest ones."""
    net, toy = network((maps, 3, 1), (maps, 3, maps), (filters, 1, 1)), machine(dsps=dsps, brams=brams)
    engine = engine_of(toy)
    pairs = sizes(engine, 12)
    found = {(one.e_in, one.e_out): one for one in rated([net], engine, pairs)}
    best = max(one.value("worst") for one in found.values())
    assert best == max(found[pair].value("worst") for pair in candidates(pairs))
    assert all(any(a <= c and b <= d for c, d in candidates(pairs)) for a, b in pairs)
    for (a, b), one in found.items():
        assert one.cycles == (network_cycles(net, engine.sized(a, b)),)


def test_the_front_of_sizes() -> None:
    """Every size is beaten by one of the front, which is strictly increasing."""
    net, engine = network((6, 3, 1), (8, 1, 1)), engine_of(machine())
    everything = rated([net], engine, sizes(engine, 10, any_fpga=True))
    assert len(everything) == 100
    found = front(everything, "mean")
    assert all(a.dsps < b.dsps and a.value("mean") < b.value("mean") for a, b in pairwise(found))
    for one in everything:
        assert any(best.dsps <= one.dsps and best.value("mean") >= one.value("mean") for best in found)
    assert front_engine([net], machine(), aim="mean", most=10) == found


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"aim": "best"}, "unknown aim"),
        ({"engine": "greedy"}, "unknown engine for engine sizes"),
        ({"most": 0}, "the largest e_in and e_out"),
        ({"settings": {"dsps": 1}}, "no size keeps 1 DSPs"),
    ],
)
def test_bad_input_of_sizes(more: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        size_engine("lenet5", "partial_cnn_16", **more)
    with pytest.raises(InputError, match="at least one is needed"):
        size_engine([], "partial_cnn_16")


# --- suite -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow(4)
def test_suite_rows() -> None:
    """FD-MobileNet: every layer proven by three engines; 70.1 frames a second with additions as steps."""
    from solver.uses.bench.partial_engine import frames, networks, transfers

    found = {one.name: one for one in networks()}
    assert {one.operators[0].shape for one in found.values()} == {(1, 3, 224, 224)}
    toy = load_machine("partial_cnn_16")
    row = transfers(found["fd_mobilenet"], toy)
    assert (row[2], row[5], row[6], row[7]) == (6_075_816, 24, 24, 24)
    assert frames(found["fd_mobilenet"], toy) == pytest.approx(70.1, abs=0.05)


@pytest.mark.slow(48)
def test_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every layer of five of its networks is proven, with partial sums of one and of four bytes, by three engines."""
    from solver.ask.progress import Silent
    from solver.uses.bench import partial_engine

    few = [one for one in partial_engine.networks() if one.name not in ("xception", "mobilenet_v1")]
    monkeypatch.setattr(partial_engine, "networks", lambda: few)
    report = partial_engine.runs(Silent()).to_json()
    rates, most, examples, moved, best, _ = report["sections"]
    assert len(rates["rows"]) == len(most["rows"]) == 5
    beyond = {row["network"] for row in most["rows"] if not row["by both"]}
    assert beyond == {"shufflenet_2x"}
    assert all(row["runs"] == row["paper"] and row["additions"] == row["paper "] for row in examples["rows"])
    assert all(row["proven"] == row["layers"] == row["cp-sat and milp equal"] for row in moved["rows"])
    assert all(row["engines agree"] for row in best["rows"])
    assert set(report["rows"]) == {row["network"] for row in rates["rows"]}


def test_machines_need_engines_for_their_problem() -> None:
    data = json.loads(machine().model_dump_json())
    with pytest.raises(ValueError, match="section engine needs problem 'partial_engine'"):
        Machine.model_validate({**data, "problem": "tiling"})
    with pytest.raises(ValueError, match="each in a bank"):
        PartialEngine.model_validate({**data["engine"], "banks": 1})


def test_a_branch_bound_adds_weights_and_results() -> None:
    game = Game((3, 3), (6,) * 4, 1, 2)
    branch = Branch(4, 1, 1, 2, 60, 40, ((game, 2),), 1, 1)
    assert branch_bound(branch) == 100 + 2 * 9


@pytest.mark.parametrize("engine", ["auto", "exhaustive", "cp-sat", "milp"])
def test_more_rows_may_take_less_of_a_bank(engine: str) -> None:
    """Ten rows in two strips, two rows of padding above, none below: 5 + 5 rows of results read 5 and 7 rows, 6 + 4
    read 6 and 6, which fits banks of 144 bytes (6*16 + 6*8): no third strip, 616 bytes, not 716.
    """
    causal = Conv(
        name="c", inputs=("x",), shape=(1, 2, 10, 8), filters=2, kernel=(3, 3), pad=(2, 1, 0, 1), stride=(1, 2)
    )  # fmt: skip
    made = Network(name="causal", operators=(Input(name="x", shape=(1, 2, 10, 16)), causal))
    plan = solve(made, machine(e=2, bank=144), engine=engine, problem="partial_engine")
    assert (plan.status, plan.objective and plan.objective.value) == ("OPTIMAL", 616)
    assert (
        solve(made, machine(e=2, bank=144), engine=engine, pins=["strips=2"], problem="partial_engine").status
        == "OPTIMAL"
    )


def test_pins_that_contradict_each_other() -> None:
    with pytest.raises(InputError, match="no value of inputs is left"):
        solve("lenet5", "partial_cnn_16", pins=["inputs=banks", "inputs=dram"], problem="partial_engine")
    plan = solve("lenet5", "partial_cnn_16", engine="greedy", problem="partial_engine")
    lie = plan.model_copy(update={"parts": tuple(row.model_copy(update={"status": "OPTIMAL"}) for row in plan.parts)})
    assert any("proves nothing" in line for line in check(lie).problems)

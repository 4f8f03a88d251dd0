"""Broadcast and the fixed cost of a layer: by hand, price against replay, and plans of all engines."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hwmodels.nest.price.closed_form import price
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Loop, Nest, Spatial
from instances.load import load_machine
from instances.machine.machine import Broadcast, Compute, Machine
from instances.network.workload import Layer
from solver import solve
from solver.calls.check import check
from tests.adversary.layers import random_layer, random_machine
from tests.adversary.moves import Moves, nest_of
from tests.effort import tries
from tests.small import byte_machine

#: M = 4 filters over N = 2 channels of 4x4, 1x1 kernel.
LAYER = Layer.conv("x", channels=2, filters=4, size=(4, 4))
HOLDS = (Hold("IN"), Hold("W"), Hold("OUT"))
LEVELS = ("none", "tle", "chip")


def machine(input: str = "none", weights: str = "none", **changes: object) -> Machine:
    """2 TLEs of 2 TLTs, one byte an element, one tick a byte, no compute."""
    buffers = dict.fromkeys(("in_buffer_bytes", "w_buffer_bytes", "out_buffer_bytes"), 64)
    cores = {"tles": 2, "tlts": 2, "dram": "per_tle", "broadcast": {"input": input, "weights": weights}}
    return byte_machine(problem="slicing", **buffers | cores | changes)


@pytest.mark.parametrize(
    ("input", "weights", "dram", "moved", "time"),
    [
        # a filter a core: IN 32, W 2, OUT 16 bytes each; a cluster moves 100 bytes, both 200
        ("none", "none", "per_tle", 200, 100),
        ("none", "none", "shared", 200, 200),
        ("tle", "none", "per_tle", 136, 68),  # IN once for each cluster: 32 + 2 * 18
        ("tle", "none", "shared", 136, 136),
        ("chip", "none", "per_tle", 104, 68),  # IN once, and both buses take it
        ("chip", "none", "shared", 104, 104),
        ("none", "chip", "per_tle", 200, 100),  # no two cores have the same filters
    ],
)
def test_filters_over_clusters_and_cores_by_hand(input: str, weights: str, dram: str, moved: int, time: int) -> None:
    on, nest = machine(input, weights, dram=dram), Nest((Spatial("m", 2, "tle"), Spatial("m", 1, "tlt"), *HOLDS))
    outcome = price(LAYER, on, nest)
    assert (outcome.bytes, outcome.time_ticks) == (moved, time)
    assert replay(LAYER, on, nest).outcome == outcome


@pytest.mark.parametrize(("weights", "moved", "time"), [("none", 144, 72), ("tle", 144, 72), ("chip", 136, 72)])
def test_rows_over_clusters_share_weights(weights: str, moved: int, time: int) -> None:
    # 2 rows a cluster, 2 filters a core: IN 16, W 4, OUT 16 bytes a core, 72 a cluster. The two cores of a cluster have
    # different filters; the first ones of both clusters have the same, so "chip" loads 2 * 4 bytes less
    on, nest = machine("none", weights), Nest((Spatial("r", 2, "tle"), Spatial("m", 2, "tlt"), *HOLDS))
    outcome = price(LAYER, on, nest)
    assert (outcome.bytes, outcome.time_ticks) == (moved, time)
    assert replay(LAYER, on, nest).outcome == outcome


def test_a_core_with_fewer_filters_listens_to_the_one_with_more() -> None:
    # 3 filters: 2 and 1. Filters one at a time outside IN: the first core loads IN twice, the second once, of these
    layer = Layer.conv("x", channels=2, filters=3, size=(4, 4))
    nest = Nest((Spatial("m", 2, "tlt"), Loop("m", 1), Loop("r", 2), *HOLDS))
    on = machine("tle", tles=1)
    outcome = price(layer, on, nest)
    # IN 32 twice; W of each filter for the first rows only: 2 * 3; OUT 16 * 3
    assert (outcome.bytes, outcome.by_operand["IN"].bytes, outcome.by_operand["W"].bytes) == (118, 64, 6)
    assert price(layer, machine(tles=1), nest).by_operand["IN"].bytes == 96
    assert replay(layer, on, nest).outcome == outcome


def test_groups_of_a_depthwise_layer_share_no_input() -> None:
    layer = Layer.conv("d", channels=4, filters=4, groups=4, size=(4, 4), kernel=(2, 2))
    nest = Nest((Spatial("g", 2, "tle"), Spatial("g", 1, "tlt"), *HOLDS))
    assert price(layer, machine("chip", "chip"), nest) == price(layer, machine(), nest)


@pytest.mark.slow(2)
def test_the_fixed_cost_of_a_layer_is_time_and_nothing_else() -> None:
    for on in (machine(), load_machine("scratchpad_64k"), load_machine("scratchpad_64k", {"buffering": "double"})):
        later = on.model_copy(update={"layer_ticks": 1000})
        spatial = (Spatial("m", 2, "tle"),) if on.tles > 1 else ()
        nest = Nest((*spatial, Loop("r", 2), *HOLDS))
        plain, outcome = price(LAYER, on, nest), price(LAYER, later, nest)
        assert outcome.time_ticks == plain.time_ticks + 1000
        assert (outcome.bytes, outcome.energy_fj) == (plain.bytes, plain.energy_fj)
        assert replay(LAYER, later, nest).outcome == outcome
        quick, slow = solve(LAYER, on, objective="time"), solve(LAYER, later, objective="time")
        assert slow.objective.value == quick.objective.value + 1000
        assert slow.bound >= quick.bound + 1000
        assert slow.objective.terms["layer"] == 1000
        assert check(slow).ok


def test_the_literal_reading_prices_what_is_printed() -> None:
    nest = Nest((Spatial("m", 2, "tle"), Spatial("m", 1, "tlt"), *HOLDS))
    compute = Compute(model="tile", cycle_ticks=2, macs_per_cycle=4)
    plain, shared = (machine(level, reading="literal", compute=compute) for level in ("none", "chip"))
    assert price(LAYER, plain, nest) == price(LAYER, shared, nest)


def test_machines_without_broadcast_are_stored_as_before() -> None:
    assert not {"broadcast", "layer_ticks"} & set(machine().model_dump())
    stored = machine("tle", layer_ticks=3).model_dump(mode="json")
    assert (stored["broadcast"], stored["layer_ticks"]) == ({"input": "tle", "weights": "none"}, 3)
    assert Machine.model_validate(stored).broadcast == Broadcast(input="tle")


def test_other_problems_refuse_both() -> None:
    for name, value in (("layer_ticks", 1), ("broadcast", {"input": "tle"})):
        with pytest.raises(
            ValidationError, match="broadcast and layer_ticks are for problems tiling, slicing, joint and fusion"
        ):
            Machine.model_validate({**load_machine("midap").model_dump(), name: value})


@settings(max_examples=tries(12, 40), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(LEVELS), st.sampled_from(LEVELS))
def test_price_is_replay(seed: int, input: str, weights: str) -> None:
    """Any nest of the three partitions, equal shares or not."""
    rng = random.Random(seed)
    layer = random_layer(rng, tiny=rng.random() < 0.5)
    if any(layer.residents) or layer.resident_out:
        return
    levels = Broadcast.model_validate({"input": input, "weights": weights})
    on = random_machine(rng, layer, cores=True).model_copy(update={"broadcast": levels})
    moves = Moves(layer, on, rng)
    form = moves.start()
    for _ in range(6):
        nest = nest_of(layer, form)
        found = replay(layer, on, nest)
        assert found.outcome == price(layer, on, nest)
        assert not [fault for fault in found.faults if not fault.startswith("memory")]
        form = moves.changed(form)


@pytest.mark.slow(6)
@pytest.mark.parametrize("level", ["tle", "chip"])
def test_all_engines_agree_and_broadcast_never_hurts(level: str) -> None:
    layer = Layer.conv("c", channels=4, filters=4, size=(4, 3), kernel=(3, 1), pad=(1, 0, 1, 0))
    small = {"in_buffer_bytes": 24, "w_buffer_bytes": 20, "out_buffer_bytes": 16}
    for objective in ("time", "bytes"):
        alone = solve(layer, machine(**small), objective=objective)
        plans = [solve(layer, machine(level, level, **small), objective=objective, engine=e)
                 for e in ("exhaustive", "cp-sat", "milp")]  # fmt: skip
        values = {plan.objective.value for plan in plans if plan.objective is not None}
        assert len(values) == 1
        assert values.pop() < alone.objective.value
        assert all(check(plan).ok for plan in plans)

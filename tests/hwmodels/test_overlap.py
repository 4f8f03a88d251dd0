"""Double-buffered time: pipelines laid out by hand, and against the replay."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwmodels.nest.price import overlap
from hwmodels.nest.price.overlap import double_buffered_ticks
from hwmodels.nest.price.skeleton import cores, skeleton_of
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.errors import InputError
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import Layer
from tests.effort import tries
from tests.small import byte_machine

HOLDS = (Hold("IN"), Hold("W"), Hold("OUT"))


machine = partial(
    byte_machine, psum_bytes=2, ocm_bytes=9999, buffering="double", compute=Compute(model="array", cycle_ticks=1)
)


def both(layer: Layer, on: Machine, *items: Item) -> int:
    """The closed form, after checking that the replay has the same time."""
    nest = Nest(items)
    closed = double_buffered_ticks(layer, on, skeleton_of(layer, nest), cores(layer, ())[0], nest.loops())
    assert replay(layer, on, nest).outcome.time_ticks == closed
    return closed


def test_three_steps_by_hand() -> None:
    # 6 pixels, T_C = 2, 2 bytes an input, 3 an output, a call costs 1, a pixel computes 3 ticks.
    layer = Layer.conv("line", channels=1, filters=1, size=(1, 6))
    on = machine(
        in_bytes=2, out_bytes=3, transfer=Transfer(call_ticks=1, byte_ticks=1),
        compute=Compute(model="array", cycle_ticks=3),
    )  # fmt: skip
    # L(0) = IN 5 + W 2 = 7, L(1) = L(2) = 5; S = 7 each; C = 6 each
    # 7 + max(6, L1 5) + max(6, L2 5, S0 7) + max(6, S1 7) + S2 7
    assert both(layer, on, Loop("c", 2), *HOLDS) == 7 + 6 + 7 + 7 + 7


def test_a_smaller_last_tile_is_cheaper_in_every_part() -> None:
    # 5 pixels in 2 + 2 + 1: L 3 (with W), 2, 1; C 2, 2, 1; S 2, 2, 1: 3 + max(2, 2) + max(2, 1, 2) + max(1, 2) + 1
    layer = Layer.conv("line", channels=1, filters=1, size=(1, 5))
    assert both(layer, machine(), Loop("c", 2), *HOLDS) == 3 + 2 + 2 + 2 + 1


def test_one_step_overlaps_nothing() -> None:
    # L 4 + 1, C 4, S 4
    layer = Layer.conv("line", channels=1, filters=1, size=(1, 4))
    assert both(layer, machine(), *HOLDS) == 5 + 4 + 4


def test_partial_sums_travel_with_their_steps() -> None:
    # 1 pixel, N = M = 2, loops n m: steps (n0 m0) (n0 m1) (n1 m0) (n1 m1), partial sums 2 bytes
    # L: IN 1 + W 1 = 2; W 1; IN 1 + W 1 + psum 2 = 4; W 1 + psum 2 = 3. S: psum 2, psum 2, out 1, out 1. C = 1 each.
    layer = Layer.matmul("fc", rows=1, inner=2, cols=2)
    loops = (Loop("n", 1), Loop("m", 1), *HOLDS)
    # 2 + max(1, 1) + max(1, 4, 2) + max(1, 3, 2) + max(1, 0, 1) + 1
    assert both(layer, machine(), *loops) == 2 + 1 + 4 + 3 + 1 + 1
    # the first visits read 2 bytes as well: L = 4, 3, 4, 3
    assert both(layer, machine(psum_first_read=True), *loops) == 4 + 3 + 4 + 3 + 1 + 1


def test_an_output_that_stays_is_stored_once_at_the_end_of_its_steps() -> None:
    # loops m n: L = IN + W 2 each (n cut, so IN moves again); S after every second step: 1. C = 1.
    # 2 + max(1, 2) + max(1, 2) + max(1, 2, S1 1) + max(1, 0) + S3 1
    layer = Layer.matmul("fc", rows=1, inner=2, cols=2)
    assert both(layer, machine(), Loop("m", 1), Loop("n", 1), *HOLDS) == 2 + 2 + 2 + 2 + 1 + 1


def test_operands_held_at_different_depths() -> None:
    # W held outside the pixels: fetched whole (2 bytes) with step 0 only. 2 filters, 4 pixels by 2, loops c m, IN by c.
    # steps (c0 m0) (c0 m1) (c1 m0) (c1 m1): L = IN 2 + W 2, 0, IN 2, 0; S = 2 each; C = 2 each
    # 4 + max(2, 0) + max(2, 2, 2) + max(2, 0, 2) + max(2, 0, 2) + 2
    layer = Layer.conv("line", channels=1, filters=2, size=(1, 4))
    nest = (Hold("W"), Loop("c", 2), Hold("IN"), Loop("m", 1), Hold("OUT"))
    assert both(layer, machine(), *nest) == 4 + 2 + 2 + 2 + 2 + 2


@pytest.mark.parametrize(
    ("unit", "compute"),
    [
        # T_N = 1, T_M = 2 of 3 filters: 2 + 1; 4 pixels, no bias
        (Compute(model="none"), (0, 0)),
        (Compute(model="tile", cycle_ticks=10, macs_per_cycle=3), (2 * 2 * 10, 2 * 2 * 10)),  # 1*2*ceil(4/3), in full
        (Compute(model="array", cycle_ticks=10, rows=2, cols=4), (40, 40)),  # ceil(2/2) = ceil(1/2) = 1
        (Compute(model="array", cycle_ticks=10), (80, 40)),
    ],
)
def test_compute_of_a_step(unit: Compute, compute: tuple[int, int]) -> None:
    layer = Layer.conv("x", channels=1, filters=3, size=(1, 4))
    # L0 = IN 4 + W 2, L1 = W 1; S = 8, 4. 6 + max(C0, 1) + max(C1, 8) + 4
    assert both(layer, machine(compute=unit), Loop("m", 2), *HOLDS) == (6 + max(compute[0], 1) + max(compute[1], 8) + 4)


def test_depthwise_and_several_inputs_compute_and_load_in_kind() -> None:
    depthwise = Layer.conv("d", channels=3, filters=3, groups=3, size=(1, 4))
    unit = machine(compute=Compute(model="array", cycle_ticks=1, cols=2))
    # T_G = 2: L = 8 + 2, 4 + 1; C = 4 * ceil(2/2), 4; S = 8, 4: 10 + max(4, 5) + max(4, 8) + 4
    assert both(depthwise, unit, Loop("g", 2), *HOLDS) == 10 + 5 + 8 + 4
    add = Layer(name="a", kind="eltwise", g=2, m=1, n=1, r=1, c=4, h=1, l=4, inputs=3, weights="none")
    # T_G = 1: L = 3 * 4 each; C = 4 * 3; S = 4: 12 + max(12, 12) + max(12, 4) + 4
    assert both(add, machine(), Loop("g", 1), Hold("IN"), Hold("OUT")) == 12 + 12 + 12 + 4


def test_too_many_steps_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Layer.conv("line", channels=1, filters=1, size=(1, 6))
    nest = Nest((Loop("c", 1), *HOLDS))
    monkeypatch.setattr(overlap, "MAX_STEPS", 6)
    assert both(layer, machine(), *nest.items)
    monkeypatch.setattr(overlap, "MAX_STEPS", 5)
    with pytest.raises(InputError, match="6 steps are too many"):
        double_buffered_ticks(layer, machine(), skeleton_of(layer, nest), cores(layer, ())[0], nest.loops())


@settings(max_examples=tries(15, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_timeline_is_the_replay_of_any_nest(data: st.DataObject) -> None:
    small = st.integers(1, 4)
    layer = Layer.conv(
        "x", channels=data.draw(small), filters=data.draw(small), size=(data.draw(st.integers(3, 6)), 4),
        kernel=(data.draw(st.integers(1, 3)), 2), pad=(0, 1, 0, 0), stride=(data.draw(st.integers(1, 2)), 1),
        bias=data.draw(st.booleans()),
    )  # fmt: skip
    on = machine(
        edge_tiles=data.draw(st.sampled_from(["true", "uniform"])), psum_first_read=data.draw(st.booleans()),
        bias_bytes=4, in_layout=data.draw(st.sampled_from(["CHW", "HWC"])),
        w_layout=data.draw(st.sampled_from(["OIHW", "OHWI"])),
        transfer=Transfer(call_ticks=3, segment_ticks=2, burst_ticks=4, burst_bytes=4, byte_ticks=1),
        compute=data.draw(
            st.sampled_from([Compute(model="array", cycle_ticks=2, rows=2), Compute(model="tile", cycle_ticks=5)])
        ),
    )  # fmt: skip
    items: list[Item] = [
        Loop(d, data.draw(st.integers(1, layer.extent(d)))) for d in data.draw(st.permutations("mnrc"))
    ]
    for operand in layer.operands:
        items.insert(data.draw(st.integers(0, len(items))), Hold(operand))
    assert both(layer, on, *items)

"""Lower bounds on traffic: by hand, against every subset's inequality, and against nests that fit exactly."""

from __future__ import annotations

import itertools
from functools import partial
from math import gcd, isqrt

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import (
    _Axis,
    _Bytes,
    _least_budget,
    _most_macs,
    _phases,
    _Work,
    compulsory_bytes,
    least_energy,
    least_time,
    lower_bound_bytes,
    tensor_bytes,
)
from hwmodels.nest.price.pieces import Window
from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer
from tests.effort import tries
from tests.small import byte_machine

machine = partial(byte_machine, ocm_bytes=65536)


def conv(
    channels: int, filters: int, size: int, kernel: int = 1, stride: int = 1, pad: int = 0, groups: int = 1
) -> Layer:
    return Layer.conv(
        "x", channels=channels, filters=filters, size=(size, size), kernel=(kernel, kernel), stride=(stride, stride),
        pad=(pad, pad, pad, pad), groups=groups,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (conv(64, 64, 56, 3, pad=1), 56 * 56 * 64 * 2 + 9 * 64 * 64),  # 438,272
        (conv(256, 1024, 14), 14 * 14 * (256 + 1024) + 256 * 1024),  # 513,024
        # the last window ends at row 112 of 113 padded ones: 112 rows are read
        (conv(96, 96, 112, 3, 2, 1, groups=96), 112 * 112 * 96 + 9 * 96 + 56 * 56 * 96),  # 1,506,144
        # a 1x1 window of stride 2 skips every other row and column of 5: 3 of each
        (conv(2, 4, 5, 1, 2), 2 * 9 + 2 * 4 + 4 * 9),
    ],
)
def test_compulsory_by_hand(layer: Layer, expected: int) -> None:
    assert compulsory_bytes(layer, machine()) == expected


def test_biases_inputs_and_element_sizes_count() -> None:
    layer = Layer.conv("x", channels=2, filters=3, size=(4, 4), bias=True)
    sizes = tensor_bytes(layer, machine(in_bytes=2, w_bytes=3, out_bytes=4, bias_bytes=5))
    assert sizes == {"IN": 32 * 2, "W": 6 * 3 + 3 * 5, "OUT": 48 * 4}
    add = Layer(name="a", kind="eltwise", g=2, m=1, n=1, r=3, c=3, h=3, l=3, inputs=2, weights="none")
    assert tensor_bytes(add, machine()) == {"IN": 36, "OUT": 18}
    assert lower_bound_bytes(add, machine(ocm_bytes=10)) == 54


def test_rows_on_chip_do_not_move() -> None:
    """Rows 2 to 29 of 30 come, 5 of 30 results stay; however little memory is left, MACs on what is there are free."""
    add = Layer(name="a", kind="eltwise", g=2, m=1, n=1, r=4, c=4, h=4, l=4, inputs=2, weights="none")
    some = add.model_copy(update={"resident_in": (1, 3)})
    assert tensor_bytes(some, machine()) == {"IN": 2 * (3 + 1) * 4, "OUT": 32}
    layer = conv(30, 30, 30, 3, pad=1).model_copy(update={"resident_in": (2,), "resident_out": 5})
    assert tensor_bytes(layer, machine()) == {"IN": 28 * 30 * 30, "W": 9 * 900, "OUT": 25 * 30 * 30}
    for one in (layer, layer.model_copy(update={"resident_in": ()}), layer.model_copy(update={"resident_out": 0})):
        assert lower_bound_bytes(one, machine(ocm_bytes=50)) == compulsory_bytes(one, machine())


def test_energy_counts_bytes_and_macs() -> None:
    """32 + 6 + 48 bytes of 11, and 16 * 2 * 3 MACs of 2; nothing more has to move in so much memory."""
    layer = Layer.conv("x", channels=2, filters=3, size=(4, 4))
    assert least_energy(layer, machine(byte_fj=11, mac_fj=2)) == 86 * 11 + 96 * 2


@pytest.mark.parametrize("dear", ["IN", "W", "OUT"])
def test_what_moves_again_takes_the_least_energy_of_a_byte(dear: str) -> None:
    """Every operand has 1,600 bytes; at 7 or 2 fJ each once, what the phases add at 2."""
    homes = {op: ["dear" if op == dear else "near"] for op in ("IN", "W", "OUT")}
    off_chip = [
        {"name": name, "transfer": {"byte_ticks": fj}, "byte_fj": fj} for name, fj in (("near", 2), ("dear", 7))
    ]
    plain = machine(ocm_bytes=100, overlap="transfer_only").model_dump(exclude={"transfer", "byte_fj"})
    on = Machine.model_validate({**plain, "off_chip": off_chip, "homes": homes})
    layer = Layer.matmul("x", rows=40, inner=40, cols=40)
    more = lower_bound_bytes(layer, on) - 4800
    assert more > 4000
    assert least_energy(layer, on) == 1600 * (7 + 2 + 2) + 2 * more
    assert least_time(layer, on) == 2 * (4800 + more)


def test_matrix_product_by_hand() -> None:
    # 300 x 300 x 300 with S = 300 bytes, R = 1, one byte each: X = 2S gives phases of at most sqrt(300^3) = 5196
    # products. 27,000,000 = 5196 * 5196 + 1584, so 5196 phases are full: S + 5196 * 600 + 1 = 3,117,901 bytes.
    layer = Layer.matmul("x", rows=300, inner=300, cols=300)
    assert divmod(300**3 - 1, isqrt(300**3)) == (5196, 1583)
    bound = lower_bound_bytes(layer, machine(ocm_bytes=300))
    # 15 x 15 outputs stay while columns of IN and rows of W pass: 225 + 15 + 15 bytes on chip
    nest = Nest((Loop("r", 15), Loop("m", 15), Hold("OUT"), Loop("n", 1), Hold("IN"), Hold("W")))
    plan = price(layer, machine(ocm_bytes=300), nest)
    assert plan.occupancy_bytes == {"ocm": 255}
    assert 300 + 5196 * 600 + 1 <= bound <= plan.bytes == 2 * 300**3 // 15 + 300**2


def test_short_reductions_begin_their_outputs_once() -> None:
    # 400 x 16 x 400, S = 1024: sqrt(S) = 32 exceeds the depth 16. All 160,000 outputs are stored; charged u each when
    # begun, phases of X = 2S do (3S/3)^1.5 / sqrt(u) MACs, and 160,000*(1 - u) + 2*Z*sqrt(u)/32 - S is largest at
    # u = (16/32)^2: 120,000 + 80,000 - 1024. Tiles of whole rows: 60 rows of IN stay, W passes 400/60 -> 7 times.
    layer = Layer.matmul("x", rows=400, inner=16, cols=400)
    bound = lower_bound_bytes(layer, machine(ocm_bytes=1024))
    nest = Nest((Loop("r", 60), Hold("IN"), Loop("m", 1), Hold("W"), Hold("OUT")))
    plan = price(layer, machine(ocm_bytes=1036), nest)
    assert plan.occupancy_bytes == {"ocm": 60 * 16 + 16 + 60}
    assert plan.bytes == 160_000 + 400 * 16 + 7 * 400 * 16
    assert 198_900 <= bound <= plan.bytes + 400 * 16


def test_a_batch_shares_its_weights() -> None:
    """8 images of 8 channels, 8 filters: 64 inputs, 64 weights and 64 results, each once in 136 of 200 bytes."""
    layer = Layer.conv("x", channels=8, filters=8, size=(1, 1), batch=8)
    nest = Nest((Hold("IN"), Hold("W"), Loop("b", 1), Hold("OUT")))
    plan = price(layer, machine(ocm_bytes=200), nest)
    assert (plan.bytes, plan.occupancy_bytes) == (192, {"ocm": 64 + 64 + 8})
    assert lower_bound_bytes(layer, machine(ocm_bytes=200)) == 192


def test_reads_run_beside_writes() -> None:
    """4 -> 4 channels, 32 x 8: 1,024 bytes in, 1,024 out, 16 of weights; a row of 32 comes while one goes."""
    layer = Layer.conv("x", channels=4, filters=4, size=(32, 8))
    on = machine(buffering="double", overlap="double_buffered")
    assert (on.timing, lower_bound_bytes(layer, on)) == ("double_buffered", 2064)
    nest = Nest((Hold("W"), Loop("r", 1), Hold("IN"), Hold("OUT")))
    assert price(layer, on, nest).time_ticks == 16 + 32 + 31 * 32 + 2 * 32
    assert least_time(layer, on) == 2064 // 2


ARRAY, TILE = ({"cycle_ticks": 3, "model": m, "rows": 2, "cols": 4, "macs_per_cycle": 5} for m in ("array", "tile"))


@pytest.mark.parametrize(
    ("groups", "changes", "expected"),
    [
        # 128 bytes in, 64 or 8 of weights, 128 out, 2 ticks each;
        # 16 pixels of 8/2 by 8/4 cycles of 3, or ceil(8/4); groups 0: one channel
        (1, {}, 640),
        (1, {"compute": ARRAY}, 640 + 384),
        (8, {"compute": ARRAY}, 528 + 96),
        (2, {"compute": ARRAY}, 576 + 16 * 2 * 2 * 1 * 3),
        (0, {"compute": ARRAY}, (16 + 8 + 128) * 2 + 16 * 4 * 1 * 3),
        (1, {"compute": TILE}, 640 + 1024 // 5 * 3),  # 204.8 cycles of all MACs: no cycle is a part of one
        (1, {"compute": ARRAY, "layer_ticks": 7}, 640 + 384 + 7),
        (1, {"compute": ARRAY, "overlap": "transfer_only", "layer_ticks": 7}, 640 + 7),
        (1, {"compute": ARRAY, "buffering": "double", "layer_ticks": 7}, 384 + 7),
        (8, {"compute": ARRAY, "buffering": "double"}, 528 // 2),
        # two clusters of three cores
        (1, {"compute": ARRAY, "tles": 2, "tlts": 3, "dram": "per_tle"}, 640 // 2 + 384 // 6),
        (1, {"compute": ARRAY, "tles": 2, "tlts": 3}, 640 + 384 // 6),
        (1, {"compute": ARRAY, "reading": "literal", "edge_tiles": "uniform"}, 0),
    ],
)  # fmt: skip
def test_least_times_by_hand(groups: int, changes: dict[str, object], expected: int) -> None:
    layer = conv(8, 8, 4, groups=groups) if groups else conv(1, 8, 4)
    assert least_time(layer, machine(transfer={"byte_ticks": 2}, **changes)) == expected


@pytest.mark.parametrize("out", [1, 2, 4, 8])
def test_wide_results_are_charged_as_sums_when_begun(out: int) -> None:
    """Results of more bytes than sums are stored once: each byte more of a result is one of the bound, and no more."""
    layer = Layer.matmul("x", rows=40, inner=16, cols=40)
    narrow = lower_bound_bytes(layer, machine(ocm_bytes=100))
    assert lower_bound_bytes(layer, machine(ocm_bytes=100, out_bytes=out)) == narrow + (out - 1) * 40 * 40


def test_wide_partial_sums_take_room() -> None:
    # Partial sums of 4 bytes: u = 4 gives 2*Z*2/sqrt(S) - 3*300*300 - S with Z = 300^3, S = 300: twice the traffic,
    # but for the 3 bytes of 600 by which a partial sum may straddle the end of a phase
    layer = Layer.matmul("x", rows=300, inner=300, cols=300)
    bound = lower_bound_bytes(layer, machine(ocm_bytes=300, psum_bytes=4))
    assert bound >= 0.99 * (4 * 300**3 / 300**0.5 - 3 * 300**2 - 300)
    nest = Nest((Loop("r", 8), Loop("m", 7), Hold("OUT"), Loop("n", 1), Hold("IN"), Hold("W")))
    plan = price(layer, machine(psum_bytes=4), nest)
    assert plan.occupancy_bytes == {"ocm": 4 * 56 + 8 + 7}
    assert bound <= plan.bytes


@pytest.mark.parametrize(
    ("window", "outputs", "expected"),
    [
        # 4 rows, 3 taps, padding 1: taps see 3, 4 and 3 rows inside the map; the middle rows are used 3 times
        (Window(1, 1, 3, 1, 4), 4, _Axis(4, 10, 3, 4, 3)),
        (Window(2, 1, 1, 0, 5), 3, _Axis(3, 3, 1, 3, 1)),  # rows 0, 2, 4
        (Window(2, 1, 3, 0, 6), 2, _Axis(5, 6, 2, 2, 3)),  # rows 0..2 and 2..4: row 2 twice, row 5 not at all
        (Window(1, 2, 2, 1, 1), 1, _Axis(0, 0, 0, 0, 0)),  # taps at -1 and 1 of a map of one row
    ],
)
def test_pairs_along_an_axis(window: Window, outputs: int, expected: _Axis) -> None:
    assert _Axis.of(window, outputs) == expected


@settings(max_examples=tries(25, 100), deadline=None)
@given(st.data())
def test_the_least_budget_is_what_enumeration_finds(data: st.DataObject) -> None:
    most = tuple(data.draw(st.integers(1, 6)) for _ in range(3))
    charges = tuple(data.draw(st.integers(1, 4)) for _ in range(3))
    work = _Work(macs=60, repeats=data.draw(st.integers(1, 4)), elements=(0, 0, 0), most=(most[0], most[1], most[2]))
    macs = data.draw(st.integers(1, 60))
    sets = itertools.product(*(range(-(-macs // t), macs + 1) for t in most))
    least = min(
        sum(u * t for u, t in zip(charges, used, strict=True))
        for used in sets
        if macs**2 <= work.repeats * used[0] * used[1] * used[2]
    )
    found = _least_budget(work, charges, macs)
    assert found <= least  # whole elements may need more
    # A set rounded up from the real optimum costs less than one more element of each.
    assert least < found + sum(charges) + 1
    assert _most_macs(work, charges, least) >= macs


@settings(max_examples=tries(50, 200), deadline=None)
@given(st.data())
def test_the_most_macs_are_those_whose_budget_fits(data: st.DataObject) -> None:
    most = tuple(data.draw(st.integers(1, 10**6)) for _ in range(3))
    charges = tuple(data.draw(st.integers(1, 4096)) for _ in range(3))
    macs, repeats = data.draw(st.integers(1, 10**12)), data.draw(st.integers(1, 50))
    work = _Work(macs=macs, repeats=repeats, elements=(0, 0, 0), most=(most[0], most[1], most[2]))
    budget = data.draw(st.integers(0, 10**9))
    found = _most_macs(work, charges, budget)
    assert 0 <= found <= macs
    assert not found or _least_budget(work, charges, found) <= budget
    assert found == macs or _least_budget(work, charges, found + 1) > budget


@settings(max_examples=tries(40, 200), deadline=None)
@given(st.data())
def test_phases_are_those_of_item_4(data: st.DataObject) -> None:
    """In 1/1024 bytes, as the module says: f by trying all numbers of MACs, then k phases of X behind one of S + X."""
    size, small = st.integers(1, 4), st.integers(1, 9)
    macs, fast = data.draw(st.integers(1, 150)), data.draw(small)
    work = _Work(macs, data.draw(size), *((data.draw(small), data.draw(small), data.draw(small)) for _ in "12"))
    sizes = _Bytes(fast, *(data.draw(size) for _ in range(4)))
    loads = [1024 * n for n in sizes[1:4]]
    charges = tuple(data.draw(st.sampled_from([load, load // 4, 1])) for load in loads)
    budget = 1024 * fast + data.draw(st.integers(1, 16 * 1024))
    grain = gcd(1024 * fast, *loads, *charges)
    slack = max(loads) - grain
    least = [_least_budget(work, charges, n) for n in range(macs + 1)]
    most = max(n for n in range(macs + 1) if least[n] <= budget)
    more = max((x for x in range(0, budget, grain) if 1024 * fast + x + slack <= budget), default=0)
    assume(most and more)
    phases = -(-macs // most) - 1
    charged = least[macs] if not phases else 1024 * fast + phases * more + max(
        grain, least[macs - phases * most] - 1024 * fast - slack
    )  # fmt: skip
    own = (sizes.inputs, sizes.weights, sizes.out)
    rest = sum((1024 * n - u) * number for n, u, number in zip(own, charges, work.elements, strict=True))
    assert _phases(work, sizes, charges, budget) == -(-(charged + rest) // 1024)


def test_more_memory_never_raises_the_bound_and_enough_leaves_the_compulsory() -> None:
    layer = conv(80, 192, 73, 3)
    bounds = [lower_bound_bytes(layer, machine(ocm_bytes=1024 * k)) for k in (4, 8, 16, 24, 64, 128, 1024)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == compulsory_bytes(layer, machine())
    assert bounds[4] <= 2_385_072  # a plan that exists


def test_the_memories_of_all_cores_count() -> None:
    layer = conv(64, 64, 28, 3, pad=1)
    buffers = {"ocm_bytes": None, "in_buffer_bytes": 512, "w_buffer_bytes": 256, "out_buffer_bytes": 256}
    assert lower_bound_bytes(layer, machine(**buffers)) == lower_bound_bytes(layer, machine(ocm_bytes=1024))
    assert lower_bound_bytes(layer, machine(**buffers, tles=2, tlts=2)) == lower_bound_bytes(
        layer, machine(ocm_bytes=4096)
    )
    more = {name: size and size + 100 for name, size in buffers.items()}
    assert lower_bound_bytes(layer, machine(**more, reserved_bytes=100)) == lower_bound_bytes(
        layer, machine(ocm_bytes=1024)
    )


@settings(max_examples=tries(20, 80), deadline=None)
@given(st.data())
def test_the_inequality_holds_for_any_set_of_operations(data: st.DataObject) -> None:
    stride, dilation, taps = (data.draw(st.integers(1, n)) for n in (3, 2, 3))
    lattice = [
        (g, m, n, r, i) for g in range(2) for m in range(2) for n in range(2) for r in range(3) for i in range(taps)
    ]
    part = data.draw(st.sets(st.sampled_from(lattice), min_size=1))
    inputs = {(g, n, r * stride + i * dilation) for g, _, n, r, i in part}
    weights = {(g, m, n, i) for g, m, n, _, i in part}
    outputs = {(g, m, r) for g, m, _, r, _ in part}
    readers: dict[int, int] = {}
    for r in range(3):
        for i in range(taps):
            readers[r * stride + i * dilation] = readers.get(r * stride + i * dilation, 0) + 1
    assert len(part) ** 2 <= max(readers.values()) * len(inputs) * len(weights) * len(outputs)


@settings(max_examples=tries(25, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_nest_moves_less(data: st.DataObject) -> None:
    stride, kernel = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    groups, batch = data.draw(st.sampled_from([1, 1, 2])), data.draw(st.sampled_from([1, 1, 2, 8]))
    layer = Layer.conv(
        "x", channels=groups * data.draw(st.integers(1, 4)), filters=groups * data.draw(st.integers(1, 4)),
        size=(data.draw(st.integers(3, 9)), data.draw(st.integers(3, 9))), kernel=(kernel, kernel),
        stride=(stride, stride), pad=(kernel // 2,) * 4, groups=groups, bias=data.draw(st.booleans()), batch=batch,
    )  # fmt: skip
    items: list[Item] = []
    size = {d: layer.extent(d) for d in DIMS}
    for d in data.draw(st.permutations(list(DIMS) * 2)):
        if data.draw(st.booleans()):
            size[d] = data.draw(st.integers(1, size[d]))
            items.append(Loop(d, size[d]))
    for operand in layer.operands:
        items.insert(data.draw(st.integers(0, len(items))), Hold(operand))
    on = machine(
        sliding=data.draw(st.booleans()), psum_bytes=data.draw(st.sampled_from([1, 4])), bias_bytes=4, ocm_bytes=10**6,
        w_bytes=data.draw(st.integers(1, 2)), out_bytes=data.draw(st.sampled_from([1, 2, 4])),
    )  # fmt: skip
    moved = price(layer, on, Nest(tuple(items)))
    exactly = on.model_copy(update={"ocm_bytes": moved.occupancy_bytes["ocm"]})
    assert compulsory_bytes(layer, on) <= lower_bound_bytes(layer, exactly) <= moved.bytes


@settings(max_examples=tries(25, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_nest_takes_less_time(data: st.DataObject) -> None:
    layer = Layer.conv(
        "x", channels=data.draw(st.integers(1, 6)), filters=data.draw(st.integers(1, 6)),
        size=(data.draw(st.integers(3, 7)), data.draw(st.integers(3, 7))), kernel=(3, 3), pad=(1, 1, 1, 1),
    )  # fmt: skip
    items: list[Item] = []
    size = {d: layer.extent(d) for d in DIMS}
    for d in data.draw(st.permutations(list(DIMS) * 2)):
        if data.draw(st.booleans()):
            size[d] = data.draw(st.integers(1, size[d]))
            items.append(Loop(d, size[d]))
    for operand in layer.operands:
        items.insert(data.draw(st.integers(0, len(items))), Hold(operand))
    compute = data.draw(st.sampled_from(["none", "tile", "array"]))
    timing = data.draw(st.sampled_from(["serial", "double_buffered", "transfer_only"]))
    on = machine(
        sliding=data.draw(st.booleans()), ocm_bytes=10**6, overlap=timing, layer_ticks=data.draw(st.integers(0, 5)),
        buffering="double" if timing == "double_buffered" else "single",
        transfer={"byte_ticks": data.draw(st.integers(0, 3)), "call_ticks": data.draw(st.integers(0, 3))},
        compute={"model": compute, "cycle_ticks": data.draw(st.integers(0, 3)), "rows": 2, "cols": 4,
                 "macs_per_cycle": 4},
    )  # fmt: skip
    taken = price(layer, on, Nest(tuple(items)))
    exactly = on.model_copy(update={"ocm_bytes": taken.occupancy_bytes["ocm"]})
    assert least_time(layer, exactly) <= taken.time_ticks

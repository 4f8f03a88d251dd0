"""The price of one nest: every field of the outcome by hand, and equal to the replay."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import cache, partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwmodels.nest.price import overlap
from hwmodels.nest.price.causes import Share, held_outside, shares, terms_of
from hwmodels.nest.price.closed_form import PRICE_FIELDS, price, prices_of, sensitivity, with_prices
from hwmodels.nest.price.overlap import double_buffered_ticks
from hwmodels.nest.price.skeleton import cores, skeleton_of
from hwmodels.nest.replay.referee import replay
from hwmodels.outcome import Counts
from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from hwmodels.transfer import COUNTS, PRICES, WINDOWS
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Broadcast, Compute, Machine, Transfer
from instances.network.workload import Layer
from solver import solve
from tests.effort import tries
from tests.emitted import random_case
from tests.small import ALL, byte_machine
from tests.small import TINY as CAUSED
from tests.small import machine as plain

#: The hand-readable layer: 4x4, 2 channels, 2 filters, 1x1 kernel.
TINY = Layer.conv("tiny", channels=2, filters=2, size=(4, 4))
HOLDS = (Hold("IN"), Hold("W"), Hold("OUT"))


machine = partial(
    byte_machine, psum_bytes=4, ocm_bytes=64, compute=Compute(model="array", cycle_ticks=5), byte_fj=11, mac_fj=2,
    transfer=Transfer(call_ticks=7, segment_ticks=3, burst_ticks=2, burst_bytes=8, byte_ticks=1),
)  # fmt: skip


def test_every_field_by_hand() -> None:
    # r by 2, n by 1, m by 1: IN tiles 1 channel x 2 rows (one run of 8 B) 4 times; W one byte 8 times; 4 OUT tiles of
    # 8 B final, and one partial write and one read of 32 B (4 bursts) for each.
    nest = Nest((Loop("r", 2), Loop("n", 1), Loop("m", 1), *HOLDS))
    outcome = price(TINY, machine(), nest)
    assert outcome.by_operand == {
        "IN": Counts(calls=4, segments=4, bursts=4, bytes=32),
        "W": Counts(calls=8, segments=8, bursts=8, bytes=8),
        "OUT": Counts(calls=4, segments=4, bursts=4, bytes=32),
        "PSUM": Counts(calls=8, segments=8, bursts=32, bytes=256),
    }
    # 24 calls * 7 + 24 segments * 3 + 48 bursts * 2 + 328 bytes
    assert outcome.transfer_ticks == 168 + 72 + 96 + 328
    # 64 MACs, one a cycle of 5 ticks
    assert outcome.compute_ticks == 320
    assert outcome.time_ticks == 664 + 320
    assert outcome.bytes == outcome.total.bytes == 328
    assert outcome.energy_fj == 11 * 328 + 2 * 64
    assert outcome.occupancy_bytes == {"ocm": 8 + 1 + 8 * 4}
    assert outcome.measures == {"time": 984, "bytes": 328, "energy": 3736}
    walked = replay(TINY, machine(), nest)
    assert (walked.outcome, walked.ok, walked.executed) == (outcome, True, True)


def test_terms_sum_to_each_measure() -> None:
    """4 bytes of weights at 3 ticks and 9 fJ, maps of 32 at 1 and 2; 64 MACs of 1 fJ and 5 ticks, 7 a layer."""
    memories = [{"name": n, "transfer": {"byte_ticks": t}, "byte_fj": fj} for n, t, fj in (("a", 1, 2), ("b", 3, 9))]
    homes = {"IN": ["a"], "W": ["a", "b"], "OUT": ["a"]}
    plain = machine(layer_ticks=7, ocm_bytes=99).model_dump(exclude={"transfer", "byte_fj"})
    on = Machine.model_validate({**plain, "off_chip": memories, "homes": homes, "mac_fj": 1})
    lies = {"IN": "a", "W": "b", "OUT": "a"}
    outcome = price(TINY, on, Nest(HOLDS).at(lies))
    time = {"IN": 32, "W": 12, "OUT": 32, "PSUM": 0, "compute": 320, "layer": 7, "overlap": 0}
    assert terms_of("time", TINY, on, outcome, lies) == time
    assert terms_of("energy", TINY, on, outcome, lies) == {"IN": 64, "W": 36, "OUT": 64, "PSUM": 0, "MAC": 64}
    assert terms_of("bytes", TINY, on, outcome, lies) == {"IN": 32, "W": 4, "OUT": 32, "PSUM": 0}
    # counts that do not explain the transfers stand as one, with what they save
    changed = replace(outcome, transfer_ticks=80)
    assert terms_of("time", TINY, on, changed, lies) == {"transfer": 80, "compute": 320, "layer": 7, "overlap": -4}


def test_energy_needs_no_weights_to_move_bytes() -> None:
    pool = Layer.conv("p", channels=1, filters=1, size=(4, 4), kernel=(2, 2), stride=(2, 2)).model_copy(
        update={"kind": "pool", "g": 2, "weights": "none"}
    )
    # IN 32, OUT 8 bytes; pooling counts no MACs
    outcome = price(pool, machine(), Nest((Hold("IN"), Hold("OUT"))))
    assert outcome.energy_fj == 11 * 40


@pytest.mark.parametrize(("overlap", "time"), [("serial", 17 + 64), ("transfer_only", 17)])
def test_time_by_overlap(overlap: str, time: int) -> None:
    # matmul 1x8 * 8x1: IN 8, W 8, OUT 1 bytes; 8 MACs of 8 ticks
    layer = Layer.matmul("fc", rows=1, inner=8, cols=1)
    on = machine(overlap=overlap, transfer=Transfer(byte_ticks=1), compute=Compute(model="array", cycle_ticks=8))
    assert price(layer, on, Nest(HOLDS)).time_ticks == time


def test_nmp_compute_of_equations_7_and_8() -> None:
    # 200 MHz = 40 ticks, 32 MACs a cycle. OFM: 16 rows by 4 over the TLEs, 8 filters one a TLT. T_R = 2, T_C = 8,
    # T_N = 4, T_M = 1: 4*1*ceil(2*8*9/32 = 4.5) = 20 cycles a tile; 2 x 1 x 2 x 1 tiles in a core
    nmp = load_machine("nmp")
    layer = Layer.conv("x", channels=8, filters=8, size=(16, 8), kernel=(3, 3), pad=(1, 1, 1, 1))
    cuts = (Spatial("r", 4, "tle"), Spatial("m", 1, "tlt"))
    nest = Nest((*cuts, Loop("r", 2), Loop("c", 8), Loop("m", 1), Loop("n", 4), *HOLDS))
    outcome = price(layer, nmp, nest)
    assert outcome.compute_ticks == 4 * 20 * 40
    assert replay(layer, nmp, nest).outcome == outcome


def test_energy_and_transfers_sum_over_the_cores_and_time_does_not() -> None:
    on = machine(
        ocm_bytes=None, in_buffer_bytes=99, w_buffer_bytes=99, out_buffer_bytes=99, tles=2, tlts=1, dram="per_tle",
        transfer=Transfer(byte_ticks=1), compute=Compute(),
    )  # fmt: skip
    outcome = price(TINY, on, Nest((Spatial("m", 1, "tle"), *HOLDS)))
    # each cluster: IN 32 + W 2 + OUT 16 = 50
    assert (outcome.transfer_ticks, outcome.time_ticks, outcome.bytes) == (100, 50, 100)
    assert outcome.energy_fj == 11 * 100 + 2 * 64
    assert outcome.occupancy_bytes == {"in": 32, "w": 2, "out": 16}


@pytest.mark.parametrize("dim", ["r", "c"])
def test_inner_cores_see_more_of_the_map(dim: str) -> None:
    """6 rows or columns by 2, padded 3x3: 3, 4 and 3 of them, 6 bytes each; 9 weights and 12 results a core."""
    layer = Layer.conv("x", channels=1, filters=1, size=(6, 6), kernel=(3, 3), pad=(1, 1, 1, 1))
    on, nest = plain(tles=3, dram="per_tle"), Nest((Spatial(dim, 2, "tle"), *HOLDS))
    outcome = price(layer, on, nest)
    assert (outcome.by_operand["IN"].bytes, outcome.time_ticks) == (60, 24 + 9 + 12)
    assert replay(layer, on, nest).outcome == outcome


def test_bad_nests_are_refused() -> None:
    with pytest.raises(InputError, match="needs each of"):
        price(TINY, machine(), Nest((Hold("IN"), Hold("OUT"))))
    with pytest.raises(InputError, match=r"step 3 of r must be 1\.\.2"):
        price(TINY, machine(), Nest((Loop("r", 2), Loop("r", 3), *HOLDS)))
    with pytest.raises(InputError, match="step 5 of r must be"):
        price(TINY, machine(), Nest((Loop("r", 5), *HOLDS)))


# --- every price in every timing --------------------------------------------------------------------------------------

#: Machines on which time is counted in ways of their own, with items that stand before the loops.
WAYS: dict[str, tuple[dict[str, object], tuple[Spatial, ...]]] = {
    "serial": ({}, ()),
    "transfers only": ({"overlap": "transfer_only"}, ()),
    "double buffers": ({"buffering": "double"}, ()),
    "double buffers, serial": ({"buffering": "double", "overlap": "serial"}, ()),
    "buffers chosen": ({"buffering": "choose"}, ()),
    "sliding": ({"sliding": True}, ()),
    "snake": ({"snake": True}, ()),
    "snake, double buffers": ({"snake": True, "buffering": "double"}, ()),
    "lines": ({"line": True, "sliding": True}, ()),
    "lines, double buffers": ({"line": True, "sliding": True, "buffering": "double"}, ()),
    "lines, snake": ({"line": True, "sliding": True, "snake": True}, ()),
    "clusters on one DRAM": ({"tles": 2, "tlts": 2, "psum_first_read": True}, (Spatial("g", 1, "tle"),)),
    "a DRAM a cluster": ({"tles": 2, "tlts": 2, "dram": "per_tle"}, (Spatial("g", 1, "tle"),)),
    "broadcast": (
        {"tles": 2, "tlts": 2, "broadcast": {"input": "tle", "weights": "tle"}},
        (Spatial("g", 1, "tle"), Spatial("m", 1, "tlt")),
    ),
}
#: Prices that tile plans refuse: they are counted for a request, and whole maps make one.
REFUSED = tuple(count for count, one in PRICES.items() if one.whole)


@pytest.mark.few(12)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [count for count in COUNTS if count not in REFUSED])
def test_a_dearer_price_is_paid_in_every_timing(count: str, way: str) -> None:
    """Time rises with each price, and by the same in closed form and replay, whatever else stands beside the tables.

    Reads take longer than writes here, and nothing computes: what overlaps hides nothing.
    """
    layer = Layer.conv("three", channels=4, filters=4, size=(9, 9), kernel=(3, 3), pad=(1, 1, 1, 1), groups=2)
    fields, spatial = WAYS[way]
    hold = Hold("IN", line=bool(fields.get("line")))
    nest = Nest((*spatial, Loop("m", 1), Loop("n", 1), Hold("W"), Loop("r", 2), Loop("c", 3), hold, Hold("OUT")))
    prices = {one.field: 3 for one in PRICES.values() if not one.whole} | {one.size: 4 for one in WINDOWS}
    dearer = prices | {COUNTS[count]: prices[COUNTS[count]] + 7}
    times = []
    for transfer in (prices, dearer):
        on = machine(**{"ocm_bytes": 9999, "compute": Compute(), "transfer": transfer, **fields})
        outcome = price(layer, on, nest)
        assert replay(layer, on, nest).outcome == outcome
        times.append(outcome.time_ticks)
    assert times[1] > times[0]


@pytest.mark.parametrize("count", REFUSED)
def test_prices_that_tiles_do_not_pay_are_refused(count: str) -> None:
    with pytest.raises(InputError, match=COUNTS[count].removesuffix("_ticks")):
        price(TINY, machine(transfer=Transfer.model_validate({COUNTS[count]: 1, PRICES[count].size: 8})), Nest(HOLDS))


def test_every_price_is_raised_or_refused() -> None:
    assert set(REFUSED) < set(COUNTS)


# ---- How often a nest pays each price: by hand, and the same from the counts of the closed form ----------------------

#: The prices of machines with bursts.
FIELDS = [
    "layer_ticks", "transfer.call_ticks", "transfer.segment_ticks", "transfer.burst_ticks", "transfer.byte_ticks",
    "compute.cycle_ticks",
]  # fmt: skip
LAYER = Layer.conv("x", channels=2, filters=8, size=(4, 4))


def counted_machine(**changes: object) -> Machine:
    base: dict[str, object] = {
        "name": "m", "problem": "slicing", "tick_ps": 1, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 1,
        "tles": 2, "tlts": 2, "in_buffer_bytes": 64, "w_buffer_bytes": 64, "out_buffer_bytes": 64, "dram": "per_tle",
        "transfer": Transfer(byte_ticks=1, burst_ticks=3, burst_bytes=32),
        "compute": Compute(model="tile", macs_per_cycle=4, cycle_ticks=2), "layer_ticks": 5,
    }  # fmt: skip
    return Machine.model_validate({**base, **changes})


def test_counts_by_hand() -> None:
    # docs/slicing.md, KS: a core has 2 filters over 2 channels of 4x4. It loads IN 32 bytes, W 4, and stores OUT 32:
    # 3 calls, all contiguous (3 runs), 1 window of 32 bytes each; a cluster serves two cores one after the other:
    # 136 bytes, 6 calls, 6 runs, 6 windows. A core computes 2*2*ceil(16/4) = 16 cycles. One layer.
    plan = solve(LAYER, counted_machine(), pins=["partition=KS", "T_R=4", "T_C=4", "T_M=2", "T_N=2", "holds=uniform"])
    nest = plan.layers[0].schedule
    paid = sensitivity(LAYER, counted_machine(), nest, FIELDS)
    assert dict(zip(FIELDS, paid.counts, strict=True)) == {
        "layer_ticks": 1, "transfer.call_ticks": 6, "transfer.segment_ticks": 6, "transfer.burst_ticks": 6,
        "transfer.byte_ticks": 136, "compute.cycle_ticks": 16,
    }  # fmt: skip
    assert paid.ticks == 5 + 3 * 6 + 136 + 2 * 16 == plan.objective.value


@cache
def planned(name: str) -> tuple[Machine, Layer, Nest]:
    """A machine with its best textbook nest of a small layer."""
    base = load_machine(name, {"buffering": "double"} if name == "scratchpad_24k" else {})
    layer = Layer.conv("y", channels=5, filters=6, size=(7, 9), kernel=(3, 3), pad=(1, 1, 1, 1))
    return base, layer, solve(layer, base, pins=["holds=uniform"]).layers[0].schedule


@pytest.mark.slow(3)
@given(st.data())
def test_time_is_the_sum_of_what_is_paid(data) -> None:
    """Euler: T(x) = sum a[j]*x[j], whichever path decides; on overlapping machines too."""
    base, layer, nest = planned(data.draw(st.sampled_from(["nmp", "scratchpad_24k", "zynq7020"])))
    drawn = {field: data.draw(st.integers(0, 1000)) for field in FIELDS}
    if not base.transfer.burst_bytes:
        drawn["transfer.burst_ticks"] = 0
    priced = with_prices(base, drawn)
    fields = [field for field in FIELDS if base.transfer.burst_bytes or "burst" not in field]
    paid = sensitivity(layer, priced, nest, fields)
    assert paid.ticks == price(layer, priced, nest).time_ticks
    summed = sum(drawn[field] * count for field, count in zip(fields, paid.counts, strict=True))
    # Where two paths tie the largest count of each stands, so the sum may exceed the time, never fall below it.
    assert summed >= paid.ticks
    # Convexity: no other prices make the nest cheaper than these counts say.
    others = {field: data.draw(st.integers(0, 1000)) for field in fields}
    real = price(layer, with_prices(base, others), nest).time_ticks
    if summed == paid.ticks:
        assert real >= sum(others[field] * count for field, count in zip(fields, paid.counts, strict=True))


def test_prices_of_a_machine_and_back() -> None:
    nmp = load_machine("nmp")
    assert prices_of(nmp)["transfer.burst_ticks"] == 400
    assert with_prices(nmp, prices_of(nmp)) == nmp
    other = with_prices(nmp, {"layer_ticks": 7, "compute.cycle_ticks": 9})
    assert (other.layer_ticks, other.compute.cycle_ticks, other.transfer) == (7, 9, nmp.transfer)


def test_what_a_machine_does_not_count_has_no_price() -> None:
    with pytest.raises(InputError, match="burst_bytes must be positive"):
        with_prices(load_machine("zynq7020"), {"transfer.burst_ticks": 1})


def test_time_that_is_no_known_price_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are told apart by scaling all prices: one that is forgotten is noticed, never fitted around."""
    nest = solve(LAYER, counted_machine(), pins=["partition=KS"]).layers[0].schedule
    monkeypatch.delitem(PRICE_FIELDS, "compute.cycle_ticks")
    with pytest.raises(InputError, match="has prices beside"):
        sensitivity(LAYER, counted_machine(), nest, ["layer_ticks"])


def test_every_price_of_a_nest_is_known() -> None:
    fields = {f"transfer.{name}" for name in Transfer.model_fields} | {
        f"compute.{name}" for name in Compute.model_fields
    }
    fields |= set(Machine.model_fields)
    assert {name for name in fields if name.endswith("_ticks")} == set(PRICE_FIELDS)


# ---- Bytes of a nest by operand and cause: by hand, and that the parts are the whole on random nests -----------------

#: 4x4 pixels, 2 channels, 2 filters, 1x1.
FLAT = Layer.conv("flat", channels=2, filters=2, size=(4, 4))


def parts(layer: Layer, on: Machine, *items: Item) -> dict[tuple[str, str, str], int]:
    """Bytes by operand, cause and the dimension of the loop."""
    return {(one.operand, one.cause, one.dim): one.bytes for one in shares(layer, on, Nest(items))}


def test_the_example_of_the_page_about_nests() -> None:
    # docs/nest.md: W, 4 bytes, is fetched in both passes of r; OUT, 16 bytes of results, is summed in 2 passes of n:
    # written and read once more, 2 * 32 bytes of 1-byte sums
    found = parts(FLAT, plain(psum_bytes=1), Loop("r", 2), Loop("n", 1), Loop("m", 1), *ALL)
    assert found == {
        ("IN", "once", ""): 32, ("W", "once", ""): 4, ("W", "again", "r"): 4, ("OUT", "once", ""): 32,
        ("PSUM", "spilled", "n"): 64,
    }  # fmt: skip


def test_two_loops_share_a_product() -> None:
    # W (4 bytes) in 2 x 4 passes: r adds 4, and c, inside it, 2 * 3 * 4
    found = parts(FLAT, plain(), Loop("r", 2), Loop("c", 1), Hold("IN"), Loop("m", 1), Hold("W"), Hold("OUT"))
    assert (found["W", "again", "r"], found["W", "again", "c"]) == (4, 24)


def test_passes_are_those_of_a_loop_in_one_of_the_loop_outside() -> None:
    """16 filters by 8, 4 and 1: 2, 2 and 4 passes; 8 on a core by 3: 3 passes; in 3, 9 and 4, then by 2: 3 and 5."""
    layer = Layer.conv("x", channels=1, filters=16, size=(2, 1))
    loops = (Loop("m", 8), Loop("m", 4), Loop("m", 1), Loop("r", 1))
    for items, told in (
        (loops, [(0, 2, 2), (1, 2, 4), (2, 4, 24)]),
        ((Spatial("m", 8, "tle"), Loop("m", 3), Loop("r", 1)), [(0, 2, 2), (1, 3, 8)]),
        ((Loop("m", 9, (3, 12)), Loop("m", 2), Loop("r", 1)), [(0, 3, 4), (1, 5, 12)]),
    ):
        nest, on = Nest((*items, *ALL)), plain(tles=2)
        found = [(one.at, one.passes, one.bytes) for one in shares(layer, on, nest) if one.dim == "m"]
        assert found == told


def test_halo_slides_away() -> None:
    # rows 0..5 of 2 pixels, windows of 3 rows, one output row at a time: 4 windows of 6 bytes, 12 bytes needed
    rows = Layer.conv("rows", channels=1, filters=1, size=(6, 2), kernel=(3, 1))
    nest = (Hold("W"), Loop("r", 1), Hold("IN"), Hold("OUT"))
    assert parts(rows, plain(), *nest)["IN", "halo", "r"] == 24 - 12
    assert ("IN", "halo", "r") not in parts(rows, plain(sliding=True), *nest)


def test_a_stride_steps_over_rows() -> None:
    # 5x5 read at rows and columns 0, 2, 4: 9 elements needed, all 25 in one tile; by rows 3 of 5
    even = Layer.conv("even", channels=1, filters=1, size=(5, 5), stride=(2, 2))
    assert parts(even, plain(), *ALL)["IN", "skipped", ""] == 16
    assert parts(even, plain(), Loop("r", 1), *ALL)["IN", "skipped", ""] == 6


def test_the_kernel_in_parts_reads_rows_again() -> None:
    # 3 taps one by one over 4 rows of 4: with padding rows 0-2, 0-3, 1-3: 3 + 4 + 3 of 4 rows, 2 channels
    found = parts(CAUSED, plain(), Loop("i", 1), *ALL)
    assert found["IN", "kernel", "i"] == (10 - 4) * 4 * 2


def test_biases_come_along() -> None:
    biased = FLAT.model_copy(update={"bias": True})
    found = parts(biased, plain(bias_bytes=4), Loop("n", 1), *ALL)
    assert found["W", "once", ""] == 4 + 8
    assert found["W", "bias", "n"] == 8  # both parts of the channels bring both biases of 4 bytes


def test_whole_tiles_at_the_border() -> None:
    # test_replay_counts: 4 nominal tiles of 24 bytes; true ones are 2, 3, 3, 2 rows of 4 pixels and 2 channels
    found = parts(CAUSED, plain(edge_tiles="uniform"), Loop("r", 1), *ALL)
    assert (found["IN", "edge", ""], found["IN", "halo", "r"]) == (96 - 80, 80 - 32)


def test_cores_load_copies() -> None:
    on = plain(tles=2)
    assert parts(FLAT, on, Spatial("r", 2, "tle"), *ALL)["W", "copies", "r"] == 4
    shared = on.model_copy(update={"broadcast": Broadcast(weights="chip")})
    assert ("W", "copies", "r") not in parts(FLAT, shared, Spatial("r", 2, "tle"), *ALL)


def test_first_reads() -> None:
    found = parts(FLAT, plain(psum_first_read=True), *ALL)
    assert found["PSUM", "first_read", ""] == 32 * 4


def test_printed_equations_have_no_causes() -> None:
    on = plain(reading="literal", edge_tiles="uniform")
    nest = Nest((Loop("r", 2), Loop("c", 2), Loop("n", 2), Loop("m", 2), *ALL))
    found = shares(FLAT, on, nest)
    assert {one.cause for one in found} == {"printed"}
    assert sum(one.bytes for one in found) == price(FLAT, on, nest).bytes


def test_what_holding_outside_takes() -> None:
    nest = Nest((Loop("r", 2), Loop("n", 1), Loop("m", 1), *ALL))
    before = price(FLAT, plain(), nest)
    assert before.occupancy_bytes == {"ocm": 8 + 1 + 8 * 4}
    after = held_outside(FLAT, plain(), nest, "W", 0)
    assert after.occupancy_bytes == {"ocm": 8 + 4 + 8 * 4}
    assert after.by_operand["W"].bytes == 4


@pytest.mark.few(18)
@pytest.mark.parametrize("seed", range(tries(40, 300)))
def test_parts_are_the_whole(seed: int) -> None:
    rng = random.Random(seed)
    case = random_case(rng, f"l{seed}")
    layer, on, nest = case.layer, case.machine, case.nest
    if rng.random() < 0.3 and not (on.sliding or on.snake) and nest.even:
        on = on.model_copy(update={"edge_tiles": "uniform"})
    _whole(layer, on, nest)


def _whole(layer: Layer, on: Machine, nest: Nest) -> None:
    outcome, found = price(layer, on, nest), shares(layer, on, nest)
    sums = Counter[str]()
    for one in found:
        sums[one.operand] += one.bytes
    assert sums == Counter({op: counts.bytes for op, counts in outcome.by_operand.items() if counts.bytes})
    if not on.snake:
        assert all(one.bytes > 0 for one in found), found
    for one in found:
        _caused(layer, on, nest, one)


def _caused(layer: Layer, on: Machine, nest: Nest, one: Share) -> None:
    """Holding an operand outside the loop that makes it come again takes this part, and what is inside it, away."""
    if one.cause not in ("again", "spilled") or one.at is None or on.snake or nest.line:
        return
    row, operand = one.operand, "OUT" if one.operand == "PSUM" else one.operand
    try:
        moved = held_outside(layer, on, nest, operand, one.at)
    except InputError:
        return
    assert moved.by_operand[row].bytes <= price(layer, on, nest).by_operand[row].bytes - one.bytes or on.sliding


# ---- Double-buffered time: pipelines laid out by hand, and against the replay ----------------------------------------

overlapped = partial(
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
    on = overlapped(
        in_bytes=2, out_bytes=3, transfer=Transfer(call_ticks=1, byte_ticks=1),
        compute=Compute(model="array", cycle_ticks=3),
    )  # fmt: skip
    # L(0) = IN 5 + W 2 = 7, L(1) = L(2) = 5; S = 7 each; C = 6 each
    # 7 + max(6, L1 5) + max(6, L2 5, S0 7) + max(6, S1 7) + S2 7
    nest = (Loop("c", 2), *HOLDS)
    assert both(layer, on, *nest) == 7 + 6 + 7 + 7 + 7
    # L(0) is 2 calls, 2 runs and 5 bytes, each S a call, a run and 6 bytes, C 2 cycles; near a tie (6 and 5, 6 and 7)
    fields = [field for field in FIELDS if "burst" not in field]
    assert sensitivity(layer, on, Nest(nest), fields).counts == (1, 2 + 3, 2 + 3, 5 + 3 * 6, 2)


def test_a_smaller_last_tile_is_cheaper_in_every_part() -> None:
    # 5 pixels in 2 + 2 + 1: L 3 (with W), 2, 1; C 2, 2, 1; S 2, 2, 1: 3 + max(2, 2) + max(2, 1, 2) + max(1, 2) + 1
    layer = Layer.conv("line", channels=1, filters=1, size=(1, 5))
    assert both(layer, overlapped(), Loop("c", 2), *HOLDS) == 3 + 2 + 2 + 2 + 1


def test_one_step_overlaps_nothing() -> None:
    # L 4 + 1, C 4, S 4
    layer = Layer.conv("line", channels=1, filters=1, size=(1, 4))
    assert both(layer, overlapped(), *HOLDS) == 5 + 4 + 4


def test_partial_sums_travel_with_their_steps() -> None:
    # 1 pixel, N = M = 2, loops n m: steps (n0 m0) (n0 m1) (n1 m0) (n1 m1), partial sums 2 bytes
    # L: IN 1 + W 1 = 2; W 1; IN 1 + W 1 + psum 2 = 4; W 1 + psum 2 = 3. S: psum 2, psum 2, out 1, out 1. C = 1 each.
    layer = Layer.matmul("fc", rows=1, inner=2, cols=2)
    loops = (Loop("n", 1), Loop("m", 1), *HOLDS)
    # 2 + max(1, 1) + max(1, 4, 2) + max(1, 3, 2) + max(1, 0, 1) + 1
    assert both(layer, overlapped(), *loops) == 2 + 1 + 4 + 3 + 1 + 1
    # the first visits read 2 bytes as well: L = 4, 3, 4, 3
    assert both(layer, overlapped(psum_first_read=True), *loops) == 4 + 3 + 4 + 3 + 1 + 1


def test_an_output_that_stays_is_stored_once_at_the_end_of_its_steps() -> None:
    # loops m n: L = IN + W 2 each (n cut, so IN moves again); S after every second step: 1. C = 1.
    # 2 + max(1, 2) + max(1, 2) + max(1, 2, S1 1) + max(1, 0) + S3 1
    layer = Layer.matmul("fc", rows=1, inner=2, cols=2)
    assert both(layer, overlapped(), Loop("m", 1), Loop("n", 1), *HOLDS) == 2 + 2 + 2 + 2 + 1 + 1


def test_operands_held_at_different_depths() -> None:
    # W held outside the pixels: fetched whole (2 bytes) with step 0 only. 2 filters, 4 pixels by 2, loops c m, IN by c.
    # steps (c0 m0) (c0 m1) (c1 m0) (c1 m1): L = IN 2 + W 2, 0, IN 2, 0; S = 2 each; C = 2 each
    # 4 + max(2, 0) + max(2, 2, 2) + max(2, 0, 2) + max(2, 0, 2) + 2
    layer = Layer.conv("line", channels=1, filters=2, size=(1, 4))
    nest = (Hold("W"), Loop("c", 2), Hold("IN"), Loop("m", 1), Hold("OUT"))
    assert both(layer, overlapped(), *nest) == 4 + 2 + 2 + 2 + 2 + 2


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
    assert both(layer, overlapped(compute=unit), Loop("m", 2), *HOLDS) == (
        6 + max(compute[0], 1) + max(compute[1], 8) + 4
    )


def test_depthwise_and_several_inputs_compute_and_load_in_kind() -> None:
    depthwise = Layer.conv("d", channels=3, filters=3, groups=3, size=(1, 4))
    unit = overlapped(compute=Compute(model="array", cycle_ticks=1, cols=2))
    # T_G = 2: L = 8 + 2, 4 + 1; C = 4 * ceil(2/2), 4; S = 8, 4: 10 + max(4, 5) + max(4, 8) + 4
    assert both(depthwise, unit, Loop("g", 2), *HOLDS) == 10 + 5 + 8 + 4
    add = Layer(name="a", kind="eltwise", g=2, m=1, n=1, r=1, c=4, h=1, l=4, inputs=3, weights="none")
    # T_G = 1: L = 3 * 4 each; C = 4 * 3; S = 4: 12 + max(12, 12) + max(12, 4) + 4
    assert both(add, overlapped(), Loop("g", 1), Hold("IN"), Hold("OUT")) == 12 + 12 + 12 + 4


def test_too_many_steps_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Layer.conv("line", channels=1, filters=1, size=(1, 6))
    nest = Nest((Loop("c", 1), *HOLDS))
    monkeypatch.setattr(overlap, "MAX_STEPS", 6)
    assert both(layer, overlapped(), *nest.items)
    monkeypatch.setattr(overlap, "MAX_STEPS", 5)
    with pytest.raises(InputError, match="6 steps are too many"):
        double_buffered_ticks(layer, overlapped(), skeleton_of(layer, nest), cores(layer, ())[0], nest.loops())


@settings(max_examples=tries(15, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_timeline_is_the_replay_of_any_nest(data: st.DataObject) -> None:
    small = st.integers(1, 4)
    layer = Layer.conv(
        "x", channels=data.draw(small), filters=data.draw(small), size=(data.draw(st.integers(3, 6)), 4),
        kernel=(data.draw(st.integers(1, 3)), 2), pad=(0, 1, 0, 0), stride=(data.draw(st.integers(1, 2)), 1),
        bias=data.draw(st.booleans()),
    )  # fmt: skip
    on = overlapped(
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

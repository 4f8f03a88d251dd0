"""The price of one nest: every field of the outcome by hand, and equal to the replay."""

from __future__ import annotations

from functools import cache, partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.nest.price.closed_form import PRICES, price, prices_of, sensitivity, with_prices
from hwmodels.nest.replay.referee import replay
from hwmodels.outcome import Counts
from hwmodels.schedule import Hold, Loop, Nest, Spatial
from hwmodels.transfer import COUNTS
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import Layer
from solver import solve
from tests.small import byte_machine

#: The hand-readable layer: 4x4, 2 channels, 2 filters, 1x1 kernel.
TINY = Layer.conv("tiny", channels=2, filters=2, size=(4, 4))
HOLDS = (Hold("IN"), Hold("W"), Hold("OUT"))


machine = partial(
    byte_machine, psum_bytes=4, ocm_bytes=64, compute=Compute(model="array", cycle_ticks=5), byte_fj=11, mac_fj=2,
    transfer=Transfer(call_ticks=7, segment_ticks=3, burst_ticks=2, burst_bytes=8, byte_ticks=1),
)  # fmt: skip


@pytest.mark.slow(1)
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
#: Prices that tile plans refuse: rows and refreshes are counted for a request, and whole maps make one.
REFUSED = ("rows", "refreshes")


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
    prices = {"burst_bytes": 4, "byte_ticks": 1, "call_ticks": 5, "segment_ticks": 2, "burst_ticks": 3}
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
    size = "row_bytes" if count == "rows" else "refresh_bytes"
    with pytest.raises(InputError, match=COUNTS[count].removesuffix("_ticks")):
        price(TINY, machine(transfer=Transfer.model_validate({COUNTS[count]: 1, size: 8})), Nest(HOLDS))


def test_every_price_is_raised_or_refused() -> None:
    assert set(REFUSED) < set(COUNTS)


# ---- How often a nest pays each price: by hand, and the same from the counts of the closed form ----------------------

FIELDS = [field for field in PRICES if "row" not in field and "refresh" not in field]
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
    monkeypatch.delitem(PRICES, "compute.cycle_ticks")
    with pytest.raises(InputError, match="has prices beside"):
        sensitivity(LAYER, counted_machine(), nest, ["layer_ticks"])


def test_every_price_of_a_nest_is_known() -> None:
    fields = {f"transfer.{name}" for name in Transfer.model_fields} | {
        f"compute.{name}" for name in Compute.model_fields
    }
    fields |= set(Machine.model_fields)
    assert {name for name in fields if name.endswith("_ticks")} == set(PRICES)

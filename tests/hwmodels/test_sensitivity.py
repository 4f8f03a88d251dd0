"""How often a nest pays each price: by hand, and the same from the counts of the closed form."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.nest.price.closed_form import PRICES, price, prices_of, sensitivity, with_prices
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import Layer
from solver import solve

FIELDS = [field for field in PRICES if "row" not in field and "refresh" not in field]
LAYER = Layer.conv("x", channels=2, filters=8, size=(4, 4))


def machine(**changes: object) -> Machine:
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
    plan = solve(LAYER, machine(), pins=["partition=KS", "T_R=4", "T_C=4", "T_M=2", "T_N=2", "holds=uniform"])
    nest = plan.layers[0].schedule
    paid = sensitivity(LAYER, machine(), nest, FIELDS)
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
    nest = solve(LAYER, machine(), pins=["partition=KS"]).layers[0].schedule
    monkeypatch.delitem(PRICES, "compute.cycle_ticks")
    with pytest.raises(InputError, match="has prices beside"):
        sensitivity(LAYER, machine(), nest, ["layer_ticks"])


def test_every_price_of_a_nest_is_known() -> None:
    fields = {f"transfer.{name}" for name in Transfer.model_fields} | {
        f"compute.{name}" for name in Compute.model_fields
    }
    fields |= set(Machine.model_fields)
    assert {name for name in fields if name.endswith("_ticks")} == set(PRICES)

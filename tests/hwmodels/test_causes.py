"""Bytes of a nest by operand and cause: by hand, and that the parts are the whole on random nests."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from hwmodels.nest.price.causes import Share, held_outside, shares
from hwmodels.nest.price.closed_form import price
from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from instances.errors import InputError
from instances.machine.machine import Broadcast, Machine
from instances.network.workload import Layer
from tests.effort import tries
from tests.emitted import random_case
from tests.small import ALL, TINY, machine

#: 4x4 pixels, 2 channels, 2 filters, 1x1.
FLAT = Layer.conv("flat", channels=2, filters=2, size=(4, 4))


def parts(layer: Layer, on: Machine, *items: Item) -> dict[tuple[str, str, str], int]:
    """Bytes by operand, cause and the dimension of the loop."""
    return {(one.operand, one.cause, one.dim): one.bytes for one in shares(layer, on, Nest(items))}


def test_the_example_of_the_page_about_nests() -> None:
    # docs/nest.md: W, 4 bytes, is fetched in both passes of r; OUT, 16 bytes of results, is summed in 2 passes of n:
    # written and read once more, 2 * 32 bytes of 1-byte sums
    found = parts(FLAT, machine(psum_bytes=1), Loop("r", 2), Loop("n", 1), Loop("m", 1), *ALL)
    assert found == {
        ("IN", "once", ""): 32, ("W", "once", ""): 4, ("W", "again", "r"): 4, ("OUT", "once", ""): 32,
        ("PSUM", "spilled", "n"): 64,
    }  # fmt: skip


def test_two_loops_share_a_product() -> None:
    # W (4 bytes) in 2 x 4 passes: r adds 4, and c, inside it, 2 * 3 * 4
    found = parts(FLAT, machine(), Loop("r", 2), Loop("c", 1), Hold("IN"), Loop("m", 1), Hold("W"), Hold("OUT"))
    assert (found["W", "again", "r"], found["W", "again", "c"]) == (4, 24)


def test_halo_slides_away() -> None:
    # rows 0..5 of 2 pixels, windows of 3 rows, one output row at a time: 4 windows of 6 bytes, 12 bytes needed
    rows = Layer.conv("rows", channels=1, filters=1, size=(6, 2), kernel=(3, 1))
    nest = (Hold("W"), Loop("r", 1), Hold("IN"), Hold("OUT"))
    assert parts(rows, machine(), *nest)["IN", "halo", "r"] == 24 - 12
    assert ("IN", "halo", "r") not in parts(rows, machine(sliding=True), *nest)


def test_a_stride_steps_over_rows() -> None:
    # 5x5 read at rows and columns 0, 2, 4: 9 elements needed, all 25 in one tile; by rows 3 of 5
    even = Layer.conv("even", channels=1, filters=1, size=(5, 5), stride=(2, 2))
    assert parts(even, machine(), *ALL)["IN", "skipped", ""] == 16
    assert parts(even, machine(), Loop("r", 1), *ALL)["IN", "skipped", ""] == 6


def test_the_kernel_in_parts_reads_rows_again() -> None:
    # 3 taps one by one over 4 rows of 4: with padding rows 0-2, 0-3, 1-3: 3 + 4 + 3 of 4 rows, 2 channels
    found = parts(TINY, machine(), Loop("i", 1), *ALL)
    assert found["IN", "kernel", "i"] == (10 - 4) * 4 * 2


def test_biases_come_along() -> None:
    biased = FLAT.model_copy(update={"bias": True})
    found = parts(biased, machine(bias_bytes=4), Loop("n", 1), *ALL)
    assert found["W", "once", ""] == 4 + 8
    assert found["W", "bias", "n"] == 8  # both parts of the channels bring both biases of 4 bytes


def test_whole_tiles_at_the_border() -> None:
    # test_replay_counts: 4 nominal tiles of 24 bytes; true ones are 2, 3, 3, 2 rows of 4 pixels and 2 channels
    found = parts(TINY, machine(edge_tiles="uniform"), Loop("r", 1), *ALL)
    assert (found["IN", "edge", ""], found["IN", "halo", "r"]) == (96 - 80, 80 - 32)


def test_cores_load_copies() -> None:
    on = machine(tles=2)
    assert parts(FLAT, on, Spatial("r", 2, "tle"), *ALL)["W", "copies", "r"] == 4
    shared = on.model_copy(update={"broadcast": Broadcast(weights="chip")})
    assert ("W", "copies", "r") not in parts(FLAT, shared, Spatial("r", 2, "tle"), *ALL)


def test_first_reads() -> None:
    found = parts(FLAT, machine(psum_first_read=True), *ALL)
    assert found["PSUM", "first_read", ""] == 32 * 4


def test_printed_equations_have_no_causes() -> None:
    on = machine(reading="literal", edge_tiles="uniform")
    nest = Nest((Loop("r", 2), Loop("c", 2), Loop("n", 2), Loop("m", 2), *ALL))
    found = shares(FLAT, on, nest)
    assert {one.cause for one in found} == {"printed"}
    assert sum(one.bytes for one in found) == price(FLAT, on, nest).bytes


def test_what_holding_outside_takes() -> None:
    nest = Nest((Loop("r", 2), Loop("n", 1), Loop("m", 1), *ALL))
    before = price(FLAT, machine(), nest)
    assert before.occupancy_bytes == {"ocm": 8 + 1 + 8 * 4}
    after = held_outside(FLAT, machine(), nest, "W", 0)
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

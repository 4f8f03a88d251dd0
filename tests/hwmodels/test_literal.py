"""The printed equations of both papers, worked out by hand on small layers."""

from __future__ import annotations

import pytest

from formulations.pins import parse_pins
from formulations.tiling.problem import NESTS
from formulations.tiling.slicing import PARTITIONS, partition_cuts
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.literal import tso_dataflow
from hwmodels.nest.price.skeleton import Skeleton
from hwmodels.outcome import Counts, Outcome
from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from instances.errors import InputError
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import Layer

#: 4 channels of 8x8, 8 filters of 3x3: 6x6 outputs. Tiles T_N = 2, T_R = 2, T_C = 3 (C trips 2, N trips 2).
LAYER = Layer.conv("x", channels=4, filters=8, size=(8, 8), kernel=(3, 3))


def tso(**changes: object) -> Machine:
    """4 TLEs of 2 TLTs, 2 bytes an element, bursts of 16 bytes, 8 MACs a cycle of 2 ticks."""
    fields: dict[str, object] = {
        "name": "m", "problem": "slicing", "tick_ps": 1, "in_bytes": 2, "w_bytes": 2, "out_bytes": 2, "psum_bytes": 2,
        "in_buffer_bytes": 999, "w_buffer_bytes": 999, "out_buffer_bytes": 999, "tles": 4, "tlts": 2,
        "reading": "literal", "transfer": Transfer(burst_ticks=5, burst_bytes=16, byte_ticks=1),
        "compute": Compute(model="tile", cycle_ticks=2, macs_per_cycle=8),
    }  # fmt: skip
    return Machine.model_validate(fields | changes)


def nest(partition: str, dataflow: str) -> Nest:
    """The nest of Alg. 2 and Fig. 4 with T_M = 1 (IS: all filters of the core)."""
    cuts = partition_cuts(LAYER, tso(), partition)
    assert cuts is not None
    tile: tuple[Item, ...] = (Loop("r", 2), Loop("c", 3))
    hold, filters = (Hold("IN"), Hold("W"), Hold("OUT")), (Loop("m", 1),)
    if dataflow == "IS":
        return Nest((*cuts, *tile, Loop("n", 2), *hold))
    if dataflow == "OS":
        return Nest((*cuts, *tile, *filters, Loop("n", 2), *hold))
    return Nest((*cuts, *filters, Hold("W"), *tile, Loop("n", 2), Hold("IN"), Hold("OUT")))


#: (alpha_in, alpha_w, alpha_out, T_M). #TLE = 4; ceil(C/T_C) = ceil(N/T_N) = 2; R = 6.
#: KS      TLE_W = ceil(8/4) = 2, TLE_R = 6: 3 row trips;      2 filters a TLE, 1 a TLT
#: KS&OFM  TLE_W = ceil(8/2) = 4, TLE_R = ceil(6/2) = 3: 2;    4 a TLE, 2 a TLT
#: OFM     TLE_W = 8, TLE_R = ceil(6/4) = 2: 1;                8 a TLE, 4 a TLT
#: Eq. 3 (IS): alpha_in = alpha_w = 4 * rows * 2 * 2; alpha_out = ceil(6/2) * 2 = 6
#: Eq. 4 (OS): alpha_in = alpha_w = Eq. 3's times ceil(TLE_W/T_M); alpha_out = 6 * ceil(8/T_M)
#: Eq. 5 (WS): alpha_in, alpha_out as OS; alpha_w = 4 * ceil(TLE_W/T_M)
ALPHAS = {
    ("KS", "IS"): (48, 48, 6, 1),
    ("KS&OFM", "IS"): (32, 32, 6, 2),
    ("OFM", "IS"): (16, 16, 6, 4),
    ("KS", "OS"): (96, 96, 48, 1),
    ("KS&OFM", "OS"): (128, 128, 48, 1),
    ("OFM", "OS"): (128, 128, 48, 1),
    ("KS", "WS"): (96, 8, 48, 1),
    ("KS&OFM", "WS"): (128, 16, 48, 1),
    ("OFM", "WS"): (128, 32, 48, 1),
}


@pytest.mark.parametrize(("partition", "dataflow"), ALPHAS)
def test_loads_and_stores_of_equations_3_to_5(partition: str, dataflow: str) -> None:
    outcome = price(LAYER, tso(), nest(partition, dataflow))
    alpha_in, alpha_w, alpha_out, t_m = ALPHAS[partition, dataflow]
    rows = outcome.by_operand
    assert (rows["IN"].calls, rows["W"].calls, rows["OUT"].calls, rows["PSUM"].calls) == (
        alpha_in, alpha_w, alpha_out, 0,
    )  # fmt: skip
    # Eq. 1: T_H = 2-1+3 = 4, T_L = 3-1+3 = 5. IN: 2 channels x 4 rows of 5*2 = 10 B: 8 bursts, 80 B
    assert (rows["IN"].bursts, rows["IN"].bytes) == (alpha_in * 8, alpha_in * 80)
    # W: T_M filters of T_N*9 elements: 36 B = 3 bursts; WS holds all N: one run of T_M * 72 B = 5 bursts for T_M = 1
    bursts, size = (5, 72) if dataflow == "WS" else (3 * t_m, 36 * t_m)
    assert (rows["W"].bursts, rows["W"].bytes) == (alpha_w * bursts, alpha_w * size)
    # OUT: T_M channels x 2 rows of 3*2 = 6 B: 2 bursts a channel
    assert (rows["OUT"].bursts, rows["OUT"].bytes) == (alpha_out * 2 * t_m, alpha_out * 12 * t_m)
    # Eq. 7: 2 * T_M * ceil(2*3*9/8 = 6.75) = 14 * T_M cycles; Eq. 8: 8/T_M * 2 * 3 * 2 tiles, over #TLTs = 2, 2 ticks
    assert outcome.compute_ticks == (8 // t_m * 2 * 3 * 2) * 14 * t_m * 2 // 2 == 1344
    # Eq. 6 and 9: everything adds up
    moved = outcome.total
    assert outcome.transfer_ticks == 5 * moved.bursts + moved.bytes
    assert outcome.time_ticks == outcome.transfer_ticks + 1344


@pytest.mark.parametrize("dataflow", ["IS", "OS", "WS"])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_groups_and_batches_multiply_every_count(partition: str, dataflow: str) -> None:
    """Two groups and three images, one by one, each as `LAYER`; weights that are held stay for all images."""
    one = price(LAYER, tso(), nest(partition, dataflow)).by_operand
    layer = LAYER.model_copy(update={"b": 3, "g": 2})
    items = nest(partition, dataflow).items
    spatial = [item for item in items if isinstance(item, Spatial)]
    many = Nest((*spatial, Loop("g", 1), *(i for i in items if i not in spatial)))
    many = Nest(
        (*many.items[: many.items.index(Loop("r", 2))], Loop("b", 1), *many.items[many.items.index(Loop("r", 2)) :])
    )
    for op, counts in price(layer, tso(), many).by_operand.items():
        times = 2 if op == "W" and dataflow == "WS" else 6
        assert counts == Counts(*(times * value for value in one[op].to_json().values()))


def test_the_nests_are_the_ones_of_the_formulation() -> None:
    formulation = NESTS["slicing"]
    for partition in PARTITIONS:
        for dataflow in ("IS", "OS", "WS"):
            pins = [f"partition={partition}", f"dataflow={dataflow}", "T_N=2", "T_R=2", "T_C=3"]
            pins += [] if dataflow == "IS" else ["T_M=1"]
            space = formulation.build(LAYER, tso(), parse_pins(pins, formulation.decisions), full=True)
            (branch,) = space.branches
            assert branch.measures(0, 0) == price(LAYER, tso(), nest(partition, dataflow)).measures
            assert space.decision(branch.nest(0, 0))["dataflow"] == dataflow


@pytest.mark.parametrize(
    ("order", "dataflow"), [("rcn", "IS"), ("rcmn", "OS"), ("mrcn", "WS"), ("mn", "OS")], ids=lambda v: str(v)
)
def test_dataflows_are_read_off_the_loops(order: str, dataflow: str) -> None:
    skeleton = Skeleton((Spatial("m", 4, "tlt"),), tuple(order), dict.fromkeys(("IN", "W", "OUT"), len(order)))
    assert tso_dataflow(skeleton) == dataflow


def test_no_compute_model_costs_no_time() -> None:
    outcome = price(LAYER, tso(compute=Compute()), nest("KS", "OS"))
    assert outcome.compute_ticks == 0
    assert outcome.time_ticks == outcome.transfer_ticks
    alone = price(LAYER, tso(overlap="transfer_only"), nest("KS", "OS"))
    assert (alone.time_ticks, alone.compute_ticks) == (outcome.time_ticks, 1344)


def test_cycles_must_divide_among_the_cores() -> None:
    with pytest.raises(InputError, match="cycle_ticks 3 must be a multiple of tlts 2"):
        price(LAYER, tso(compute=Compute(model="tile", cycle_ticks=3)), nest("KS", "OS"))


def test_pools_have_no_weights_and_groups_multiply() -> None:
    # depthwise-like pool of 8 groups: KS gives 2 groups a TLE, 1 a TLT; OS with T_G = 1, T_R = 2, T_C = 3
    pool = Layer.conv("p", channels=1, filters=1, size=(8, 8), kernel=(3, 3)).model_copy(
        update={"kind": "pool", "g": 8, "weights": "none"}
    )
    items = (Spatial("g", 2, "tle"), Spatial("g", 1, "tlt"), Loop("r", 2), Loop("c", 3), Loop("g", 1))
    outcome = price(pool, tso(), Nest((*items, Hold("IN"), Hold("OUT"))))
    # alpha_in = 4 * 3 * 2 * 1 * ceil(2/1) = 48, alpha_out = 3 * 2 * 8 = 48
    assert {op: row.calls for op, row in outcome.by_operand.items()} == {"IN": 48, "W": 0, "OUT": 48, "PSUM": 0}
    add = pool.model_copy(update={"kind": "eltwise", "inputs": 2, "kh": 1, "kw": 1, "h": 6, "l": 6})
    alone = add.model_copy(update={"inputs": 1})
    two, one = (price(layer, tso(), Nest((*items, Hold("IN"), Hold("OUT")))) for layer in (add, alone))
    assert (two.by_operand["IN"].calls, two.compute_ticks) == (2 * 48, 2 * one.compute_ticks)


# ---- DMA paper ---------------------------------------------------------------------------------------------------

#: ROWin = COLin = 8, Nin = 4, Nout = 6, K = 3, str = 2: 4x4 outputs.
STRIDED = Layer.conv("s", channels=4, filters=6, size=(8, 8), kernel=(3, 3), stride=(2, 2), pad=(1, 1, 0, 0), bias=True)


def pl330(**changes: object) -> Machine:
    """C = 10, p = 2, t = 4 ticks an element of 4 bytes."""
    fields: dict[str, object] = {
        "name": "m", "tick_ps": 1, "in_bytes": 4, "w_bytes": 4, "out_bytes": 4, "psum_bytes": 4, "bias_bytes": 4,
        "ocm_bytes": 1160, "buffering": "double", "overlap": "transfer_only", "reading": "literal",
        "transfer": Transfer(call_ticks=10, segment_ticks=2, byte_ticks=1),
    }  # fmt: skip
    return Machine.model_validate(fields | changes)


def listing_1_1(layer: Layer, on: Machine) -> Outcome:
    """The loops of Listing 1.1 with sigma_s = 4, sigma_t = 8, sigma_k = 2, sigma_z = 3."""
    loops = (Loop("r", 2), Loop("c", 4), Loop("n", 2), Loop("m", 3))
    return price(layer, on, Nest((*loops, Hold("IN"), Hold("W"), Hold("OUT"))))


def test_equations_2_to_6_by_hand() -> None:
    outcome = listing_1_1(STRIDED, pl330())
    # D_in = 8*8*4/(4*8*2) = 4; D_wb = D_out = 8*8*4*6/(4*8*2*3) = 8
    t_in = 10 + 4 * 2 * 2 + 4 * 8 * 2 * 4
    t_out = 2 * (10 + (4 * 3 // 2) * 2 + (4 * 8 * 3 // 4) * 4)
    t_wb = 10 + (3 + 1) * 2 + (2 * 3 * 9 + 3) * 4
    assert (t_in, t_out, t_wb) == (282, 236, 246)
    assert outcome.time_ticks == 4 * t_in + 8 * (t_out + t_wb) == 4984
    assert {op: row.calls for op, row in outcome.by_operand.items()} == {"IN": 4, "W": 8, "OUT": 16, "PSUM": 0}
    assert {op: row.segments for op, row in outcome.by_operand.items()} == {
        "IN": 4 * 8, "W": 8 * 4, "OUT": 16 * 6, "PSUM": 0,
    }  # fmt: skip


def test_ocm_constraint_of_section_4_2() -> None:
    # 4*8*2 + 4*8*3/4 + 2*3*9 + 3 = 64 + 24 + 54 + 3 = 145 elements of 4 bytes, at most half of the OCM
    assert listing_1_1(STRIDED, pl330()).occupancy_bytes == {"ocm": 2 * 145 * 4}
    formulation = NESTS["tiling"]
    pins = parse_pins(["T_R=2", "T_C=4", "T_N=2", "T_M=3"], formulation.decisions)
    assert not formulation.build(STRIDED, pl330(ocm_bytes=1160), pins).infeasible
    assert formulation.build(STRIDED, pl330(ocm_bytes=1159), pins).infeasible


def test_groups_and_batches_are_in_a_tile_or_are_loops() -> None:
    """3 images of 2 groups: 6 times the bytes; as many calls as alone where they are in a tile, 6 times where loops."""
    layer, one = STRIDED.model_copy(update={"b": 3, "g": 2}), listing_1_1(STRIDED, pl330())
    loops = (Loop("r", 2), Loop("c", 4), Loop("n", 2), Loop("m", 3), Hold("IN"), Hold("W"), Hold("OUT"))
    for more, within, apart in (((), 6, 1), ((Loop("b", 1), Loop("g", 1)), 1, 6)):
        found = price(layer, pl330(), Nest((*more, *loops)))
        for op, counts in one.by_operand.items():
            images = 3 if op == "W" and not more else 1  # weights are those of all images of a tile
            wanted = (apart * counts.calls, 6 * counts.bytes // images)
            assert (found.by_operand[op].calls, found.by_operand[op].bytes) == wanted
        # 64 + 24 and 54 + 3 elements, in two buffers of 4 bytes an element
        assert found.occupancy_bytes == {"ocm": 8 * ((64 + 24) * within + 57 * min(within, 2))}


def test_tiles_of_a_map_are_at_most_the_map() -> None:
    # 4 rows and columns of stride 2 are 8, the map has 7; two inputs are two calls
    layer = Layer.conv("s", channels=4, filters=6, size=(7, 7), kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1))
    moved = price(layer, pl330(), Nest((Hold("IN"), Hold("W"), Hold("OUT")))).by_operand["IN"]
    assert (moved.calls, moved.segments, moved.bytes) == (1, 7 * 4, 7 * 7 * 4 * 4)
    add = Layer(name="a", kind="eltwise", g=2, m=1, n=1, r=3, c=3, h=3, l=3, inputs=2, weights="none")
    moved = price(add, pl330(), Nest((Hold("IN"), Hold("OUT")))).by_operand["IN"]
    assert (moved.calls, moved.segments, moved.bytes) == (2, 2 * 6, 2 * 18 * 4)


def test_without_biases_no_extra_jump() -> None:
    # T_wb = 10 + 3*2 + 54*4 = 232
    outcome = listing_1_1(STRIDED.model_copy(update={"bias": False}), pl330())
    assert outcome.time_ticks == 4 * 282 + 8 * (236 + 232)


def test_the_literal_reading_has_one_loop_order() -> None:
    formulation = NESTS["tiling"]
    for pins, count in (((), 1), (("order=paper",), 1), (("order=IS",), 1), (("order=OS",), 0)):
        space = formulation.build(STRIDED, pl330(), parse_pins(pins, formulation.decisions))
        assert len(space.branches) == count

"""What one core moves, computes and stores: the counting rules, each worked out by hand."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.nest.price.bilinear import Bilinear, Ints
from hwmodels.nest.price.boxes import KINDS, box_terms, input_windows
from hwmodels.nest.price.choices import Choices
from hwmodels.nest.price.core import CoreTables
from hwmodels.nest.price.pieces import Pieces, Window, cut, nominal, trips, windows
from hwmodels.nest.price.skeleton import Skeleton, cores
from hwmodels.outcome import Counts
from hwmodels.schedule import Spatial
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import DIMS, Layer
from tests.small import byte_machine

#: 4x4 map, 2 channels, 3 filters, 3x3 kernel, padding 1: IN 2x4x4, OUT 3x4x4, W 3x2x3x3.
LAYER = Layer.conv("x", channels=2, filters=3, size=(4, 4), kernel=(3, 3), pad=(1, 1, 1, 1))
PLAIN = Layer.conv("p", channels=2, filters=3, size=(4, 4))


#: IN 1, W 1, OUT 1 and partial sums 4 bytes an element; bursts of 4 bytes.
machine = partial(
    byte_machine, psum_bytes=4, ocm_bytes=10_000, transfer=Transfer(burst_ticks=1, burst_bytes=4, byte_ticks=1)
)


def core_tables(layer: Layer, on: Machine, order: str, depth: dict[str, int] | None = None, **tile: int) -> CoreTables:
    """The tables of one tile; `tile` by dimension, whole where not given; all held inside all loops unless `depth`."""
    skeleton = Skeleton((), tuple(order), {o: (depth or {}).get(o, len(order)) for o in layer.operands})
    return CoreTables(layer, on, skeleton, cores(layer, ())[0], one_choice(layer, order, tile))


def one_choice(layer: Layer, order: str, tile: dict[str, int]) -> Choices:
    """One chain per dimension: one loop where it is in `order`."""
    tiles = {d: np.array([tile.get(d, layer.extent(d))], np.int64) for d in DIMS}
    return Choices.product({d: t.reshape(1, -1) if d in order else t[:, None][:, :0] for d, t in tiles.items()}, tiles)


def chosen(tiles: dict[str, np.ndarray]) -> Choices:
    """All combinations of these tile sizes, each by one loop; the kernel is whole."""
    whole = {d: np.ones(len(tiles[a]), np.int64) for d, a in (("i", "r"), ("j", "c"))}
    steps = {**{d: t[:, None] for d, t in tiles.items()}, **{d: t[:, None][:, :0] for d, t in whole.items()}}
    return Choices.product(steps, {**tiles, **whole})


def value(terms: list[tuple[np.ndarray, np.ndarray]]) -> int:
    return Bilinear.of(terms, (1, 1)).at(0, 0)


def moved(layer: Layer, on: Machine, order: str, depth: dict[str, int] | None = None, **tile: int) -> dict[str, str]:
    """Per operand "calls segments bursts bytes"."""
    rows = core_tables(layer, on, order, depth, **tile).transfers()
    kinds = ("calls", "segments", "bursts", "bytes")
    found = {op: [value(row[k]) for k in kinds] for op, row in rows.items()}
    found["PSUM"] = [a + b for a, b in zip(found.pop("PSUM_READ"), found.pop("PSUM_WRITE"), strict=True)]
    return {op: " ".join(map(str, counts)) for op, counts in found.items()}


def sizes(layer: Layer, on: Machine, order: str, depth: dict[str, int] | None = None, **tile: int) -> dict[str, int]:
    footprints = core_tables(layer, on, order, depth, **tile).footprints()
    return {op: value(terms) for op, terms in footprints.items()}


# ---- segments and bursts -----------------------------------------------------------------------------------------


def test_whole_tensors_are_one_segment_each() -> None:
    # IN 32 B in 8 bursts, W 54 B in ceil(13.5) = 14, OUT 48 B in 12
    assert moved(LAYER, machine(), "") == {"IN": "1 1 8 32", "W": "1 1 14 54", "OUT": "1 1 12 48", "PSUM": "0 0 0 0"}


def test_whole_rows_merge_within_a_channel_and_whole_channels_merge() -> None:
    # T_R = 2 of 4 rows, 1x1 kernel, CHW. IN tile 2 channels x 2 rows x 4: a channel's rows merge to 8 B = 2 bursts;
    # 2 tiles x 2 segments. OUT 2 tiles x 3 channels.
    assert moved(PLAIN, machine(), "r", r=2) == {
        "IN": "2 4 8 32", "W": "1 1 2 6", "OUT": "2 6 12 48", "PSUM": "0 0 0 0",
    }  # fmt: skip
    # T_N = 1 of 2 channels: whole channels are one run of 16 B each
    assert moved(PLAIN, machine(), "n", n=1)["IN"] == "2 2 8 32"
    # T_M = 2 of 3: filters are whole rows of W: 4 B and 2 B; OUT 2 channels then 1
    assert moved(PLAIN, machine(), "m", m=2)["W"] == "2 2 2 6"
    assert moved(PLAIN, machine(), "m", m=2)["OUT"] == "2 2 12 48"


def test_cut_columns_break_every_row() -> None:
    # T_C = 3 of 4: columns 3 + 1. Rows do not merge: 2 tiles x 2 channels x 4 rows = 16 segments of 1 burst each
    assert moved(PLAIN, machine(), "c", c=3)["IN"] == "2 16 16 32"
    # rows and columns cut: (2 + 2) x (3 + 1), still 16 segments, 4 calls
    assert moved(PLAIN, machine(), "rc", r=2, c=3)["IN"] == "4 16 16 32"


def test_pixels_first_layout_merges_channels_instead() -> None:
    hwc = machine(in_layout="HWC", out_layout="HWC", w_layout="OHWI")
    # T_C = 3: per row 3 pixels x 2 channels = 6 B = 2 bursts, and 1 x 2 = 2 B = 1 burst: 8 segments, 12 bursts
    assert moved(PLAIN, hwc, "c", c=3)["IN"] == "2 8 12 32"
    # T_R = 2: whole rows merge: one run of 2*4*2 = 16 B a tile
    assert moved(PLAIN, hwc, "r", r=2)["IN"] == "2 2 8 32"
    # T_N = 1: every pixel is a run of one byte: 2 x 16
    assert moved(PLAIN, hwc, "n", n=1)["IN"] == "2 32 32 32"
    # OHWI weights, T_N = 1: 3 filters x 9 taps x 2 tiles are runs of a byte; OIHW: 3 filters x 2, runs of 9 B = 3
    # bursts
    assert moved(LAYER, hwc, "n", n=1)["W"] == "2 54 54 54"
    assert moved(LAYER, machine(), "n", n=1)["W"] == "2 6 18 54"


def test_an_axis_of_one_breaks_no_run() -> None:
    # 1x4 map: cutting the only row is no cut; 1 column: a tile of rows is one run in a channel
    line = Layer.conv("line", channels=1, filters=1, size=(6, 1))
    assert moved(line, machine(), "r", r=4)["IN"] == "2 2 2 6"


# ---- halo, clipping, edge tiles ----------------------------------------------------------------------------------


def test_halo_is_read_twice_and_padding_never() -> None:
    # T_R = 2: outputs [0,2) need rows -1..2, clipped 0..2; [2,4) need 1..4, clipped 1..3: 3 + 3 rows of 4, 2 channels
    assert moved(LAYER, machine(), "r", r=2)["IN"] == "2 4 12 48"
    # T_R = 3: [0,3) needs 0..3: the whole map, one segment of 32 B; [3,4) needs 2..3: 2 segments of 8 B
    assert moved(LAYER, machine(), "r", r=3)["IN"] == "2 3 12 48"


def test_uniform_counts_nominal_tiles() -> None:
    # T_R = 3: nominal (3-1) + 3 = 5 rows, at most the map of 4: both tiles count as the whole map
    uniform = machine(edge_tiles="uniform")
    assert moved(LAYER, uniform, "r", r=3)["IN"] == "2 2 16 64"
    # OUT: two tiles of 3 rows x 4 in each of 3 channels: 12 B = 3 bursts each
    assert moved(LAYER, uniform, "r", r=3)["OUT"] == "2 6 18 72"


def test_a_stride_wider_than_the_kernel_skips_rows_between_tiles() -> None:
    # 1x1, stride 3 on 7 rows: outputs at rows 0, 3, 6. T_R = 2: rows 0..3 (dense) and 6. 1 channel, 7 columns:
    # columns 0..6 are whole.
    layer = Layer.conv("s", channels=1, filters=1, size=(7, 7), stride=(3, 3))
    assert moved(layer, machine(), "r", r=2)["IN"] == "2 2 9 35"  # 28 B = 7 bursts, 7 B = 2
    assert moved(layer, machine(), "r", r=1)["IN"] == "3 3 6 21"


# ---- visits ------------------------------------------------------------------------------------------------------


def test_partial_sums_are_written_and_read_back() -> None:
    # n outside m: each of 3 OUT tiles (16 elements) is visited twice: 1 partial write + 1 read of 64 B each
    assert moved(PLAIN, machine(), "nm", n=1, m=1)["PSUM"] == "6 6 96 384"
    # with a read at the first visit too: 3 more
    assert moved(PLAIN, machine(psum_first_read=True), "nm", n=1, m=1)["PSUM"] == "9 9 144 576"
    # ... also where n is whole
    assert moved(PLAIN, machine(psum_first_read=True), "m", m=1)["PSUM"] == "3 3 48 192"
    # m outside n: the tile stays
    assert moved(PLAIN, machine(), "mn", n=1, m=1)["PSUM"] == "0 0 0 0"


def test_an_output_held_outside_the_channel_loop_moves_once() -> None:
    # order n m: held inside both it is re-visited; held outside of n it is whole and moves once
    assert moved(PLAIN, machine(), "nm", {"OUT": 0}, n=1, m=1)["OUT"] == "1 1 12 48"
    assert moved(PLAIN, machine(), "nm", {"OUT": 0}, n=1, m=1)["PSUM"] == "0 0 0 0"


def test_weights_are_fetched_again_by_outer_loops_only() -> None:
    # r m: the 3 filters come by twice; m r: once
    assert moved(PLAIN, machine(), "rm", r=2, m=1)["W"] == "6 6 6 12"
    assert moved(PLAIN, machine(), "mr", r=2, m=1)["W"] == "3 3 3 6"
    # r m with one trip of m: the weights stay
    assert moved(PLAIN, machine(), "rm", r=2)["W"] == "1 1 2 6"


def test_several_inputs_are_several_calls() -> None:
    layer = Layer(name="add", kind="eltwise", g=2, m=1, n=1, r=4, c=4, h=4, l=4, inputs=3, weights="none")
    rows = moved(layer, machine(), "g", g=1)
    # per operand 2 channels of 16 B, three operands
    assert rows["IN"] == "6 6 24 96"
    assert rows["W"] == "0 0 0 0"
    assert sizes(layer, machine(), "g", g=1) == {"IN": 48, "OUT": 16}


def test_biases_ride_in_the_call_of_the_weights() -> None:
    layer = PLAIN.model_copy(update={"bias": True})
    on = machine(bias_bytes=4)
    # T_M = 2: weights 4 B + 2 B (2 segments, 2 bursts), biases 8 B + 4 B (2 segments, 3 bursts), 2 calls
    assert moved(layer, on, "m", m=2)["W"] == "2 4 5 18"
    # T_N = 1: every fetch brings the whole bias array (12 B, 3 bursts) again; weights 2 x 3 runs of a byte
    assert moved(layer, on, "n", n=1)["W"] == "2 8 12 30"
    assert sizes(layer, on, "m", m=2)["W"] == 2 * 2 + 2 * 4
    assert moved(layer, machine(), "m", m=2)["W"] == "2 2 2 6"


# ---- footprints and capacity -------------------------------------------------------------------------------------


def test_footprints_are_the_largest_clipped_tiles() -> None:
    # T_R = 2 of 4, 3x3, padding 1: 3 rows of 4 (4 unclipped), 2 channels; W 54; OUT 3*2*4
    assert sizes(LAYER, machine(), "r", r=2) == {"IN": 24, "W": 54, "OUT": 24}
    # T_R = 1: the inner tiles need 3 rows
    assert sizes(LAYER, machine(), "r", r=1) == {"IN": 24, "W": 54, "OUT": 12}
    # uniform: nominal 4 rows
    assert sizes(LAYER, machine(edge_tiles="uniform"), "r", r=2)["IN"] == 32


def test_unfinished_outputs_count_as_partial_sums() -> None:
    # n cut: 4 bytes an element, wherever OUT is held
    assert sizes(LAYER, machine(), "rn", r=2, n=1)["OUT"] == 96
    assert sizes(LAYER, machine(), "rn", {"OUT": 1}, r=2, n=1)["OUT"] == 96
    # held outside r as well: the whole map
    assert sizes(LAYER, machine(), "rn", {"OUT": 0}, r=2, n=1)["OUT"] == 192


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # T_N = 1: IN 16, W 27, OUT 48 * 4 = 192: 235 bytes
        ({}, 235),
        ({"buffering": "double"}, 470),
        ({"reserved_bytes": 7}, 242),
        # 16 rows of K*K*C_in = 9 * 2 bytes: 288; of the tile's channel: 144; not doubled
        ({"im2col_rows": 16}, 235 + 288),
        ({"im2col_rows": 16, "im2col_channels": "tile"}, 235 + 144),
        ({"im2col_rows": 16, "buffering": "double", "reserved_bytes": 7}, 470 + 288 + 7),
        ({"im2col_rows": 16, "in_bytes": 2}, 251 + 576),
    ],
)
def test_capacity_of_a_shared_memory(changes: dict[str, object], expected: int) -> None:
    tables = core_tables(LAYER, machine(**changes), "n", n=1)
    assert {m: t.at(0, 0) for m, t in tables.capacity(tables.footprints()).items()} == {"ocm": expected}


def test_reserved_bytes_count_in_each_buffer() -> None:
    buffers = {"in_buffer_bytes": 99, "w_buffer_bytes": 99, "out_buffer_bytes": 99, "ocm_bytes": None}
    tables = core_tables(LAYER, machine(reserved_bytes=7, **buffers), "n", n=1)
    occupancy = {m: t.at(0, 0) for m, t in tables.capacity(tables.footprints()).items()}
    assert occupancy == {"in": 16 + 7, "w": 27 + 7, "out": 192 + 7}


# ---- compute -----------------------------------------------------------------------------------------------------


def cycles(layer: Layer, unit: Compute, order: str = "", **tile: int) -> int:
    return value(core_tables(layer, machine(compute=unit), order, **tile).compute_cycles())


def test_tile_compute_is_equation_7_for_every_nominal_tile() -> None:
    # T_N*T_M*ceil(T_R*T_C*K*K/MACs): 1*2*ceil(3*4*9/16 = 6.75) = 14; trips m 2, n 2, r 2: 8 tiles, edge tiles in full
    assert cycles(LAYER, Compute(model="tile", macs_per_cycle=16), "mnr", m=2, n=1, r=3) == 8 * 14


def test_array_compute_is_of_the_true_pieces() -> None:
    # rows 2 over M, columns 4 over N: T_M = 2 cuts 3 in 2 + 1: 1 + 1 groups; ceil(2/4) = 1; 16 pixels x 9 taps
    unit = Compute(model="array", rows=2, cols=4)
    assert cycles(LAYER, unit, "m", m=2) == 2 * 1 * 16 * 9
    # T_M = 1: 3 groups of one
    assert cycles(LAYER, unit, "m", m=1) == 3 * 16 * 9
    # depthwise spreads its groups over the columns: ceil(6/4) = 2
    depthwise = Layer.conv("d", channels=6, filters=6, groups=6, size=(4, 4))
    assert cycles(depthwise, unit) == 2 * 16
    # grouped, 2 of 3 filters over 3 channels: each group on its own
    grouped = Layer.conv("g", channels=6, filters=6, groups=2, size=(4, 4))
    assert cycles(grouped, unit) == 2 * 2 * 1 * 16
    # one channel in or one filter alone is no depthwise layer: ceil(3/2) * ceil(1/4), ceil(1/2) * ceil(5/4)
    assert cycles(Layer.conv("o", channels=1, filters=3, size=(4, 4)), unit) == 2 * 1 * 16
    assert cycles(Layer.conv("o", channels=5, filters=1, size=(4, 4)), unit) == 1 * 2 * 16
    # every input of a sum is added: 2 groups of ceil(16/4) in tiles, ceil(2/4) lanes of 16
    add = Layer(name="a", kind="eltwise", g=2, m=1, n=1, r=4, c=4, h=4, l=4, inputs=3, weights="none")
    assert cycles(add, Compute(model="tile", macs_per_cycle=4)) == 3 * 2 * 4
    assert cycles(add, unit) == 3 * 16


def test_no_compute_model_takes_no_time() -> None:
    assert core_tables(LAYER, machine(), "").compute_cycles() == []


# ---- choices -----------------------------------------------------------------------------------------------------


def test_choices_run_over_the_last_dimension_fastest() -> None:
    one = np.array([1], np.int64)
    two, three = np.array([1, 2]), np.array([1, 2, 3])
    choices = chosen({"b": one, "r": two, "c": three, "g": one, "m": three, "n": two})
    assert choices.shape == (6, 6)
    assert choices.values("c").tolist() == [1, 2, 3, 1, 2, 3]
    assert choices.values("n").tolist() == [1, 2, 1, 2, 1, 2]
    assert choices.chain(4, 3) == {"b": (1,), "r": (2,), "c": (2,), "g": (1,), "m": (2,), "n": (2,), "i": (), "j": ()}
    kept = choices.take(s=np.array([5]), q=np.array([0, 5]))
    assert kept.shape == (1, 2)
    assert kept.chain(0, 1) == {"b": (1,), "r": (2,), "c": (3,), "g": (1,), "m": (3,), "n": (2,), "i": (), "j": ()}


def test_spread_multiplies_per_choice() -> None:
    one, two = np.array([1], np.int64), np.array([1, 2])
    choices = chosen({"b": one, "r": two, "c": two, "g": one, "m": two, "n": one})
    s, q = choices.spread({"r": np.array([3, 5]), "c": np.array([7, 11]), "m": np.array([2, 4]), "n": np.array([6])})
    assert s.tolist() == [21, 33, 35, 55]
    assert q.tolist() == [12, 24]


def test_windows_of_a_layer() -> None:
    layer = Layer.conv(
        "x", channels=1, filters=1, size=(9, 8), kernel=(3, 2), stride=(2, 1), dilation=(2, 3), pad=(1, 2, 1, 2)
    )
    assert input_windows(layer) == {"r": Window(2, 2, 3, 1, 9), "c": Window(1, 3, 2, 2, 8)}


def test_counts_of_one_nominal_box() -> None:
    # T_R = 2, T_C = 4 of a 3x3 kernel: 4 rows (at most the map of 4) of all 4 columns, 1 of 2 channels: one run of 16 B
    tile = {d: np.array([v], np.int64) for d, v in {"b": 1, "g": 1, "m": 3, "n": 1, "r": 2, "c": 4}.items()}
    terms = box_terms(LAYER, machine(), "IN", tile, chosen(tile))
    assert Counts(**{k: value(t) for k, t in terms.items()}) == Counts(calls=1, segments=1, bursts=4, bytes=16)
    terms = box_terms(LAYER, machine(), "OUT", tile, chosen(tile))
    assert Counts(**{k: value(t) for k, t in terms.items()}) == Counts(calls=1, segments=3, bursts=6, bytes=24)


def test_only_the_asked_kinds_are_counted_and_only_the_input_of_a_like_core_is_new() -> None:
    split = Skeleton((Spatial("r", 2, "tle"),), ("n",), {"IN": 1, "W": 1, "OUT": 1})
    first, second = cores(LAYER, split.spatial)
    choices = one_choice(LAYER, "n", {"n": 2})
    one = CoreTables(LAYER, machine(), split, first, choices).transfers(frozenset({"bytes"}))
    two = CoreTables(LAYER, machine(), split, second, choices)
    assert set(one["IN"]) == {"bytes"}
    again = two.transfers(frozenset({"bytes"}), {k: v for k, v in one.items() if k != "IN"})
    assert again["W"] is one["W"]
    assert {op: value(r["bytes"]) for op, r in again.items()} == {
        op: value(r["bytes"]) for op, r in two.transfers(frozenset({"bytes"})).items()
    }
    assert {"calls", "segments", "bursts", "bytes"} <= KINDS


# ---- Pieces of a dimension, their input windows and the sums over them -----------------------------------------------


def steps(*values: int) -> Ints:
    return np.array(values, np.int64)


def chains(*values: int | tuple[int, ...]) -> Ints:
    """Chains (T, L) of steps; a bare number is a chain of one."""
    return np.array([(v,) if isinstance(v, int) else v for v in values], np.int64)


#: The kernel in one piece.
WHOLE = np.zeros((1, 0), np.int64)


def one(pieces: Pieces) -> list[int]:
    """The lengths of the pieces of the first step, longest first."""
    return sorted(np.repeat(pieces.length[0], pieces.count[0]).tolist(), reverse=True)


def test_trips_round_up() -> None:
    assert trips(10, steps(1, 3, 4, 10)).tolist() == [10, 4, 3, 1]


def test_sums_over_the_pieces_of_ten() -> None:
    # steps 4 and 5 cut 10 in 4 + 4 + 2 and 5 + 5; step 10 leaves it whole
    pieces = cut(10, chains(4, 5, 10))
    assert pieces.number.tolist() == [3, 2, 1]
    assert pieces.sum.tolist() == [10, 10, 10]
    assert pieces.largest.tolist() == [4, 5, 10]
    assert pieces.full(10).tolist() == [0, 0, 1]
    assert pieces.partial(10).tolist() == [3, 2, 0]
    # lanes of 3: ceil(4/3) + ceil(4/3) + ceil(2/3) = 5; 2 + 2 = 4; ceil(10/3) = 4
    assert pieces.ceil_sum(3).tolist() == [5, 4, 4]


def test_burst_windows_of_pieces_that_break_the_run() -> None:
    # 3 bytes an element, bursts of 8: 12 B -> 2, 12 B -> 2, 6 B -> 1; 15 B -> 2 twice; a whole axis is no break
    assert cut(10, chains(4, 5, 10)).partial_windows(10, 3, 8).tolist() == [5, 4, 0]


def test_input_windows_by_hand() -> None:
    # 3 taps, padding 1, map of 5: outputs [0,2) read rows -1..2, clipped 0..2; [2,4) read 1..4; [4,5) read 3..5: 3..4
    window = Window(stride=1, dilation=1, taps=3, pad=1, size=5)
    pieces = windows(0, 5, chains(2), WHOLE, window)
    assert one(pieces) == [4, 3, 2]
    assert pieces.sum.tolist() == [9]
    # a core that has outputs [2, 5) only: [2,4) and [4,5)
    assert one(windows(2, 5, chains(2), WHOLE, window)) == [4, 2]


def test_a_stride_beyond_the_kernel_skips_rows_between_tiles_only() -> None:
    # stride 3, 1 tap, map of 7: outputs 0, 1, 2 at rows 0, 3, 6. Tile [0,2) spans rows 0..3 (4 rows, two skipped
    # inside);
    # [2,3) row 6. One by one nothing is skipped inside: 1 + 1 + 1.
    window = Window(stride=3, dilation=1, taps=1, pad=0, size=7)
    assert one(windows(0, 3, chains(2), WHOLE, window)) == [4, 1]
    assert one(windows(0, 3, chains(1), WHOLE, window)) == [1, 1, 1]
    assert one(windows(0, 3, chains(3), WHOLE, window)) == [7]


def test_dilation_counts_the_reach() -> None:
    # 3 taps at dilation 2 reach over 5 rows, padding 2, map of 6: output 0 reads -2..2 -> 0..2; output 5 reads 3..7
    # -> 3..5
    window = Window(stride=1, dilation=2, taps=3, pad=2, size=6)
    assert one(windows(0, 6, chains(1), WHOLE, window)) == [5, 5, 4, 4, 3, 3]


def test_uniform_counts_full_pieces_at_most_the_map() -> None:
    window = Window(stride=2, dilation=1, taps=3, pad=1, size=9)
    # (T-1)*2 + 3: 3, 5, 9 and 11, cut to the map of 9
    assert window.nominal(steps(1, 2, 4, 5)).tolist() == [3, 5, 9, 9]
    # one tap of three: (T-1)*2 + 1
    assert window.nominal(steps(2, 5), 1).tolist() == [3, 9]
    pieces = nominal(window.nominal(steps(2, 5)), steps(3, 1))
    assert pieces.number.tolist() == [3, 1]
    assert pieces.sum.tolist() == [15, 9]
    assert nominal(steps(2, 5), steps(3, 1)).sum.tolist() == [6, 5]


def test_unused_places_count_nothing() -> None:
    pieces = Pieces(steps(3, 0)[None, :], steps(2, 7)[None, :])
    assert (pieces.number.tolist(), pieces.sum.tolist(), pieces.largest.tolist()) == ([2], [6], [3])


def test_a_plain_window_is_a_plain_cut() -> None:
    window = Window(stride=1, dilation=1, taps=1, pad=0, size=9)
    assert windows(2, 9, chains(3), WHOLE, window) is cut(7, chains(3), 2)


def test_pieces_are_cut_again() -> None:
    # 10 by 6: 6 + 4; each by 4: 4 + 2, 4
    assert one(cut(10, chains((6, 4)))) == [4, 4, 2]


def test_kernel_rows_cut_the_input_once_more() -> None:
    # 3 taps by 2 (0-1, 2), outputs of 4 by 2, no padding, map of 6: taps 0-1 read 0..2, 2..4; tap 2 reads 2..3, 4..5
    window = Window(stride=1, dilation=1, taps=3, pad=0, size=6)
    assert one(windows(0, 4, chains(2), chains(2), window)) == [3, 3, 2, 2]


def test_sliding_moves_what_the_pass_did_not_hold() -> None:
    # 3 taps, outputs of 5 by 2, map of 7: 0..3, 2..5, 4..6; new: 4, 2, 1
    window = Window(stride=1, dilation=1, taps=3, pad=0, size=7)
    assert one(windows(0, 5, chains(2), WHOLE, window, "outer")) == [4, 2, 1]
    # passes of 4 outputs: 0..3 and 2..5 (new: 4, 2), then a new pass: 4..6 whole
    assert one(windows(0, 5, chains((4, 2)), WHOLE, window, "outer")) == [4, 3, 2]
    # along the kernel, tap by tap, for all outputs at once: 0..4, 1..5, 2..6; new: 5, 1, 1
    assert one(windows(0, 5, chains(5), chains(1), window, "inner")) == [5, 1, 1]


def brute(lo: int, hi: int, steps: tuple[int, ...], taps: tuple[int, ...], window: Window, slide: str) -> list[int]:
    """Walk the loops and collect what every tile fetches."""

    def pieces(start: int, stop: int, chain: tuple[int, ...]) -> list[tuple[tuple[int, ...], int, int]]:
        found = [((), start, stop)]
        for step in chain:
            found = [((*path, k), a, min(a + step, y)) for path, x, y in found for k, a in enumerate(range(x, y, step))]
        return found

    outer, inner = pieces(lo, hi, steps), pieces(0, window.taps, taps)
    pairs = [(o, i) for i in inner for o in outer] if slide == "outer" else [(o, i) for o in outer for i in inner]
    fetched, held = [], {}
    for (path, r0, r1), (route, i0, i1) in pairs:
        first = max(0, r0 * window.stride - window.pad + i0 * window.dilation)
        end = min(window.size, (r1 - 1) * window.stride - window.pad + (i1 - 1) * window.dilation + 1)
        key = {"outer": (path[:-1], route), "inner": (path, route[:-1])}.get(slide)
        begin = max(first, held.get(key, first)) if key is not None else first
        held[key] = max(end, held.get(key, end))
        fetched.append(max(0, end - begin))
    return sorted((f for f in fetched if f), reverse=True)


@pytest.mark.parametrize("lo", [0, 2])
@given(st.data())
def test_windows_are_what_a_loop_finds(lo: int, data: st.DataObject) -> None:
    stride, dilation, taps = (data.draw(st.integers(1, n)) for n in (4, 3, 4))
    reach = (taps - 1) * dilation + 1
    pad, size = data.draw(st.integers(0, reach - 1)), data.draw(st.integers(1, 12))
    hi = data.draw(st.integers(lo + 1, lo + 8))
    window = Window(stride, dilation, taps, pad, max(size, (hi - 1) * stride - pad + 1))  # the last one begins on it

    def chain(extent: int) -> tuple[int, ...]:
        return tuple(sorted(data.draw(st.lists(st.integers(1, extent), max_size=2)), reverse=True))

    steps, kernel = chain(hi - lo), chain(taps)
    slides = [s for s, c in (("", (0,)), ("outer", steps), ("inner", kernel)) if c]
    slide = data.draw(st.sampled_from(slides))
    found = windows(
        lo, hi, np.array([steps], np.int64).reshape(1, -1), np.array([kernel], np.int64).reshape(1, -1), window, slide
    )
    assert one(found) == brute(lo, hi, steps, kernel, window, slide)
    assert (int(found.sum[0]), int(found.number[0])) == (sum(one(found)), len(one(found)))


def test_chains_that_make_the_same_pieces_share_them() -> None:
    window = Window(stride=1, dilation=1, taps=3, pad=1, size=9)
    found = windows(0, 9, chains(4, 3, 4), WHOLE, window)
    assert found.sum.tolist() == [9 + 2 * 2, 9 + 2 * 2, 9 + 2 * 2]
    assert found.number.tolist() == [3, 3, 3]
    assert found.largest.tolist() == [6, 5, 6]
    assert (found.full(9).tolist(), found.partial(9).tolist()) == ([0, 0, 0], [3, 3, 3])
    assert found.partial_windows(9, 1, 4).tolist() == [2 + 2 + 1, 1 + 2 + 1, 2 + 2 + 1]


def test_windows_do_not_depend_on_what_was_asked_before() -> None:
    """More steps than have a code, and large ones: no answer is taken for that to another question."""
    window = Window(stride=3, dilation=1, taps=2, pad=0, size=28)
    for chain in ([9, 9, 9, 9], [9, 4, 4, 1], [5, 5, 2, 2], [1, 1, 1, 1]):
        found = windows(0, 9, np.array([chain], np.int64), np.array([[2]], np.int64), window)
        last = chain[-1]
        # Pieces of `last` outputs need 3*last - 1 rows; the chains here cut 9 in these pieces.
        cut = {9: [9], 1: [1] * 9, 2: [2, 2, 2, 2, 1]}[last] if chain[0] != 5 else [2, 2, 1, 2, 2]
        assert one(found) == sorted((3 * n - 1 for n in cut), reverse=True)
    wide = Window(stride=1, dilation=1, taps=3, pad=1, size=40_000)
    for step in (40_000, 39_999, 1 << 15):
        rest = 40_000 - step
        found = windows(0, 40_000, np.array([[step]], np.int64), WHOLE, wide)
        assert one(found) == ([step + 1, rest + 1] if rest else [40_000])


@pytest.mark.parametrize("slide", ["", "outer", "inner"])
@pytest.mark.parametrize("taps", [WHOLE, np.array([[2]], np.int64), np.zeros((0, 1), np.int64)], ids=len)
def test_no_chains_have_no_windows(taps: Ints, slide: str) -> None:
    none = windows(0, 8, np.zeros((0, 2), np.int64), taps, Window(2, 1, 3, 1, 16), slide)
    assert none.number.shape == none.sum.shape == none.largest.shape == none.full(16).shape == (0,)

"""Executing nests on integers: the direct convolution, buffers that hold only what was fetched, and faults."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hwmodels.nest.price.skeleton import Skeleton, cores, skeleton_of
from hwmodels.nest.replay import execute as module
from hwmodels.nest.replay.execute import direct, execute, work
from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from hwmodels.selection.price import Tucker, decompositions, pieces, rank, weights
from instances.errors import InputError
from instances.network.workload import DIMS, Layer

ALL: tuple[Item, ...] = (Hold("IN"), Hold("W"), Hold("OUT"))
LAYERS = [
    Layer.conv("plain", channels=3, filters=4, size=(6, 5), kernel=(3, 3), pad=(1, 1, 1, 1), bias=True),
    Layer.conv("groups", channels=6, filters=4, size=(5, 5), kernel=(3, 1), pad=(1, 0, 0, 0), groups=2, batch=2),
    Layer.conv("strided", channels=2, filters=3, size=(9, 8), kernel=(2, 3), stride=(2, 3), dilation=(2, 1),
               pad=(1, 2, 2, 1)),
    Layer.conv("depthwise", channels=5, filters=5, size=(6, 6), kernel=(3, 3), pad=(0, 1, 1, 0), groups=5, bias=True),
    Layer.matmul("matmul", rows=5, inner=7, cols=3, batch=2, activation=True, bias=True),
    Layer(name="pool", kind="pool", g=3, m=1, n=1, r=3, c=3, kh=3, kw=3, stride_h=2, stride_w=2, pad_top=1, pad_left=1,
          h=5, l=6, weights="none"),
    Layer(name="add", kind="eltwise", g=3, m=1, n=1, r=4, c=4, h=4, l=4, inputs=3, weights="none"),
]  # fmt: skip


def share_of(layer: Layer) -> dict[str, tuple[int, int]]:
    return {d: (0, layer.extent(d)) for d in DIMS}


def held(layer: Layer) -> tuple[Item, ...]:
    return tuple(Hold(op) for op in layer.operands)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda x: x.name)
def test_direct_equals_the_seven_loops(layer: Layer) -> None:
    data = module._data(layer)
    want = np.zeros((layer.b, layer.g, layer.m, layer.r, layer.c), np.int64) + data.bias[None, :, :, None, None]
    sizes = (layer.b, layer.g, layer.m, layer.n, layer.r, layer.c, layer.kh, layer.kw)
    for b, g, m, n, r, c, i, j in itertools.product(*map(range, sizes)):
        y = r * layer.stride_h + i * layer.dilation_h - layer.pad_top
        x = c * layer.stride_w + j * layer.dilation_w - layer.pad_left
        if 0 <= y < layer.h and 0 <= x < layer.l:
            want[b, g, m, r, c] += data.weights[g, m, n, i, j] * sum(int(t[b, g, n, y, x]) for t in data.inputs)
    assert (direct(layer, data) == want).all()
    assert want.any()


@pytest.mark.parametrize("layer", LAYERS, ids=lambda x: x.name)
@pytest.mark.parametrize("order", ["bgmnrc", "nrcmgb", "rncbgm"])
def test_any_order_of_small_tiles_computes_the_layer(layer: Layer, order: str) -> None:
    loops = tuple(Loop(d, min(2, layer.extent(d))) for d in order)
    result = execute(layer, (*loops, *held(layer)), [share_of(layer)], False)
    assert result.faults == ()


def test_partial_sums_travel_through_dram() -> None:
    layer = LAYERS[0]  # n = 3 in pieces 2, 1; m = 4 in pieces of 2
    items = (Loop("n", 2), Loop("m", 2), *ALL)
    # visits m0 m1 m0 m1: two partial writes, two reads, two results; IN per n, W per step
    assert execute(layer, items, [share_of(layer)], False).calls == {"IN": 2, "W": 4, "OUT": 2, "PSUM": 4}
    assert execute(layer, items, [share_of(layer)], True).calls["PSUM"] == 6


def test_cores_share_the_output() -> None:
    layer = LAYERS[0]
    halves = [{**share_of(layer), "r": (0, 4)}, {**share_of(layer), "r": (4, 6)}]
    assert execute(layer, ALL, halves, False).faults == ()
    missing = execute(layer, ALL, halves[:1], False)
    # 4 filters x 2 rows x 5 columns
    assert missing.faults[0] == "execution: 40 output elements are not written exactly once"
    twice = execute(layer, ALL, [*halves, halves[1]], False)
    assert any("exactly once" in f for f in twice.faults)


def test_input_channels_over_cores_are_never_added() -> None:
    layer = LAYERS[0]
    halves = [{**share_of(layer), "n": (0, 2)}, {**share_of(layer), "n": (2, 3)}]
    assert execute(layer, ALL, halves, False).faults != ()


def test_reading_outside_a_buffer_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = LAYERS[0]
    window = module.window_of

    def forget_the_halo(layer: Layer, ranges: dict[str, tuple[int, int]]) -> tuple[module.Box, module.Box]:
        seen, (rows, cols) = window(layer, ranges)
        whole = ranges["r"] == (0, layer.r)
        return seen, ((rows[0], rows[1] - 1) if whole else rows, cols)

    monkeypatch.setattr(module, "window_of", forget_the_halo)
    result = execute(layer, (*ALL, Loop("r", 3)), [share_of(layer)], False)
    assert result.faults == ("execution: elements 2..5 are used while 0..4 are on chip",)


def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = LAYERS[0]
    monkeypatch.setattr(module, "direct", lambda layer, data: direct(layer, data) + 1)
    # 4 x 6 x 5 elements
    assert execute(layer, ALL, [share_of(layer)], False).faults == (
        "execution: 120 of 120 output elements differ from the direct convolution",
    )


def test_work_counts_pooled_elements_too() -> None:
    assert work(LAYERS[0]) == LAYERS[0].macs == 4 * 3 * 30 * 9
    assert work(LAYERS[6]) == 3 * 16 * 3


# ---- Tucker decompositions by hand: 3.1.3.2, Table 3.6 ---------------------------------------------------------------

#: Conv4 of Tiny YOLO at 416: 64 -> 128 channels, 3 x 3, a map of 52 x 52.
CONV4 = Layer.conv("conv4", channels=64, filters=128, size=(52, 52), kernel=(3, 3), pad=(1, 1, 1, 1), bias=True)


def test_conv4_has_the_multiplications_of_the_paper() -> None:
    """Per pixel C_i C_i' + 9 C_i' C_o' + C_o' C_o = 2,048 + 18,432 + 8,192 = 28,672 of 73,728; 128 biases stay."""
    made = pieces(CONV4, Tucker(32, 64))
    assert [piece.macs for piece in made] == [2_048 * 2_704, 18_432 * 2_704, 8_192 * 2_704]
    assert (sum(piece.macs for piece in made), CONV4.macs) == (28_672 * 2_704, 73_728 * 2_704)
    assert weights(made) == 28_672 + 128
    assert [(piece.n, piece.m, piece.kh, piece.bias) for piece in made] == [
        (64, 32, 1, False), (32, 64, 3, False), (64, 128, 1, True)
    ]  # fmt: skip


def test_a_stride_is_that_of_the_middle() -> None:
    """8 x 8 -> 4 x 4: the first matrix works on 64 pixels, the others on 16."""
    layer = Layer.conv("c", channels=32, filters=32, size=(8, 8), kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1))
    first, middle, last = pieces(layer, Tucker(8, 16))
    assert (first.r, first.c, first.stride_h, first.macs) == (8, 8, 1, 64 * 32 * 8)
    assert (middle.h, middle.r, middle.stride_h, middle.macs) == (8, 4, 2, 16 * 9 * 8 * 16)
    assert (last.h, last.r, last.stride_h, last.macs) == (4, 4, 1, 16 * 16 * 32)


def test_few_channels_merge_a_matrix() -> None:
    """Conv2, 16 -> 32 with 20: 9 * 16 * 20 + 20 * 32 = 3,520 of 4,608. Few at the end merge the last one."""
    conv2 = Layer.conv("conv2", channels=16, filters=32, size=(8, 8), kernel=(3, 3), pad=(1, 1, 1, 1))
    assert list(decompositions(conv2, [0.625])) == [Tucker(None, 20)]
    made = pieces(conv2, Tucker(None, 20))
    assert [(piece.n, piece.m, piece.kh) for piece in made] == [(16, 20, 3), (20, 32, 1)]
    assert weights(made) == 3_520
    assert Tucker(None, 20).name(conv2) == "tucker_16_20"
    back = Layer.conv("c", channels=32, filters=16, size=(8, 8), kernel=(3, 3), pad=(1, 1, 1, 1))
    assert [(piece.n, piece.m, piece.kh) for piece in pieces(back, Tucker(8, None))] == [(32, 8, 1), (8, 16, 3)]


@pytest.mark.parametrize(
    "fields",
    [{"channels": 3, "filters": 16}, {"channels": 64, "filters": 64, "kernel": (1, 1)},
     {"channels": 64, "filters": 64, "groups": 64}],
)  # fmt: skip
def test_some_layers_have_none(fields: dict[str, int]) -> None:
    """Conv1 of Tiny YOLO (3 -> 16), pointwise and depthwise convolutions."""
    layer = Layer.conv("c", **{"size": (8, 8), "kernel": (3, 3), **fields})
    assert list(decompositions(layer, [0.5])) == []


def test_ranks_are_a_grid_of_those_that_save_weights() -> None:
    """0.99: 64 * 63 + 9 * 63 * 127 + 127 * 128 = 92,297 is more than 73,728."""
    assert rank(3, 0.01) == 1
    assert list(decompositions(CONV4, [0.25, 0.5])) == [
        Tucker(16, 32), Tucker(16, 64), Tucker(32, 32), Tucker(32, 64)
    ]  # fmt: skip
    assert list(decompositions(CONV4, [0.99])) == []


# ---- Skeletons: loops outside a Hold, re-visits, reading a nest back, and the cores' shares --------------------------

LAYER = Layer.conv("x", channels=4, filters=8, size=(5, 6), batch=2)
WS = Skeleton((Spatial("m", 4, "tle"), Spatial("m", 2, "tlt")), ("m", "r", "c", "n"), {"IN": 4, "W": 1, "OUT": 3})


def test_loops_outside_a_hold() -> None:
    assert WS.outside("W") == ("m",)
    assert WS.outside("OUT") == ("m", "r", "c")
    assert WS.outside("IN") == ("m", "r", "c", "n")


def test_nest_and_back() -> None:
    # the loop over c cuts nothing, so it is left out
    nest = WS.nest({"m": (1,), "n": (3,), "r": (2,), "c": (6,)}, LAYER)
    assert nest == Nest(
        (
            Spatial("m", 4, "tle"), Spatial("m", 2, "tlt"), Loop("m", 1), Hold("W"), Loop("r", 2),
            Hold("OUT"), Loop("n", 3), Hold("IN"),
        )
    )  # fmt: skip
    again = skeleton_of(LAYER, nest)
    assert (again.spatial, again.order, dict(again.depth)) == (WS.spatial, tuple("mrn"), {"IN": 3, "W": 1, "OUT": 2})


def groups(skeleton: Skeleton, operand: str, sliding: str = "") -> list[tuple[str, str, str]]:
    """Per group of loops, innermost last: the loops, what re-fetches the operand, and along what it slides."""

    def words(loops: object) -> str:
        return " ".join(f"{d}{k}" for d, k in loops)

    found = skeleton.visits(operand, frozenset(sliding))
    return [(words(loops), words(v.again), words([v.slide] if v.slide else [])) for loops, v in found]


def at_once(order: str) -> Skeleton:
    """All operands held inside all loops."""
    return Skeleton((), tuple(order), dict.fromkeys(("IN", "W", "OUT"), len(order)))


def test_loops_that_fetch_again() -> None:
    # r c n m: m inside all that IN depends on costs nothing; n stands outside m, so OUT is visited again by it
    assert groups(at_once("rcnm"), "IN") == [("r0 c0 n0", "", "")]
    assert groups(at_once("rcnm"), "OUT") == [("r0 c0", "", ""), ("m0", "n1", "")]
    assert groups(at_once("rcnm"), "W") == [("n0 m0", "c1 r1", "")]
    # r c m n: every filter step reads IN again where n is cut; else r and c are its innermost loops
    assert groups(at_once("rcmn"), "IN") == [("r0 c0", "", ""), ("n0", "m1", "")]
    assert groups(at_once("rmc"), "W") == [("m0", "r1", "")]


def test_loops_inside_the_hold_fetch_nothing() -> None:
    assert groups(WS, "W") == [("m0", "", "")]
    assert groups(WS, "OUT") == [("m0 r0 c0", "", "")]
    assert groups(WS, "IN") == [("r0 c0 n0", "m1", "")]


def test_a_dimension_looped_twice_counts_at_both_levels() -> None:
    skeleton = Skeleton((), tuple("mrmr"), {"IN": 4, "W": 3, "OUT": 4})
    assert groups(skeleton, "IN") == [("r0", "m1", ""), ("r1", "m2", "")]
    assert groups(skeleton, "W") == [("m0", "", ""), ("m1", "r1", "")]
    assert skeleton.every("IN") == (("m", 2),)


def test_only_the_input_slides_and_only_along_windows() -> None:
    assert groups(at_once("nrc"), "IN", "rc") == [("n0", "", ""), ("r0", "", "r0"), ("c0", "", "c0")]
    assert groups(at_once("nrc"), "OUT", "rc") == [("r0 c0", "n1", "")]


def test_a_loop_may_be_moved_last_before_the_input() -> None:
    skeleton = Skeleton((), tuple("rmrcn"), {"OUT": 1, "IN": 4, "W": 5})
    assert skeleton.last(("r", 1)).order == tuple("rmcrn")
    assert skeleton.last(("c", 0)).order == tuple("rmrcn")
    # without the kernel's loops outside IN, W stands inside one of r, OUT inside r and m; the j inside IN stays
    skeleton = Skeleton((), tuple("irjmcj"), {"W": 2, "OUT": 4, "IN": 5})
    assert skeleton.without("ij", "IN") == Skeleton((), tuple("rmcj"), {"W": 1, "OUT": 2, "IN": 3})
    # lines slide along r and c; m comes before the two, so that one loop more stands outside IN, and W loses one of m
    skeleton = Skeleton((), tuple("nrcmr"), {"IN": 3, "W": 4, "OUT": 0})
    assert skeleton.stripped("m") == Skeleton((), tuple("nmrcr"), {"IN": 4, "W": 4, "OUT": 0})


def test_steps_of_two_loops_are_read_back() -> None:
    skeleton = Skeleton((), ("r", "c", "r"), {"IN": 2, "W": 0, "OUT": 3}, {"IN": 2})
    nest = skeleton.nest({"r": (4, 2), "c": (3,)}, LAYER)
    assert nest == Nest((Hold("W"), Loop("r", 4), Loop("c", 3), Hold("IN", 2), Loop("r", 2), Hold("OUT")))
    again = skeleton_of(LAYER, nest)
    assert (again.order, dict(again.depth), dict(again.buffers)) == (skeleton.order, skeleton.depth, {"IN": 2})


@pytest.mark.parametrize("before", [Loop("m", 4), Hold("W")])
def test_spatial_items_come_first(before: Loop | Hold) -> None:
    rest = (Hold("IN"), Hold("OUT")) if before == Hold("W") else (Hold("IN"), Hold("W"), Hold("OUT"))
    with pytest.raises(InputError, match="spatial items come first"):
        skeleton_of(LAYER, Nest((before, Spatial("r", 2, "tle"), *rest)))


def test_one_core_has_everything() -> None:
    (core,) = cores(LAYER, ())
    assert core.tle == 0
    assert [core.extent(d) for d in "bgmnrc"] == [2, 1, 8, 4, 5, 6]


def test_shares_of_a_grid_of_cores() -> None:
    # 5 rows by 3 over the TLEs: [0,3) [3,5); 8 filters by 3 over the TLTs: [0,3) [3,6) [6,8)
    share = cores(LAYER, (Spatial("r", 3, "tle"), Spatial("m", 3, "tlt")))
    assert [(c.tle, c.range("r"), c.range("m")) for c in share] == [
        (0, (0, 3), (0, 3)), (0, (0, 3), (3, 6)), (0, (0, 3), (6, 8)),
        (1, (3, 5), (0, 3)), (1, (3, 5), (3, 6)), (1, (3, 5), (6, 8)),
    ]  # fmt: skip
    assert share[-1].extent("m") == 2


def test_two_cuts_over_the_clusters_number_their_product() -> None:
    share = cores(LAYER, (Spatial("m", 4, "tle"), Spatial("r", 3, "tle")))
    assert [(c.tle, c.range("m"), c.range("r")) for c in share] == [
        (0, (0, 4), (0, 3)), (1, (0, 4), (3, 5)), (2, (4, 8), (0, 3)), (3, (4, 8), (3, 5)),
    ]  # fmt: skip


def test_a_dimension_cut_twice_is_cut_again_within_its_share() -> None:
    # 8 by 3 over the TLEs: 3 + 3 + 2; each by 2 over the TLTs: 2 + 1, 2 + 1, 2
    share = cores(LAYER, (Spatial("m", 3, "tle"), Spatial("m", 2, "tlt")))
    assert [(c.tle, c.extent("m")) for c in share] == [(0, 2), (0, 1), (1, 2), (1, 1), (2, 2)]

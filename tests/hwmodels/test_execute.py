"""Executing nests on integers: the direct convolution, buffers that hold only what was fetched, and faults."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hwmodels.nest.replay import execute as module
from hwmodels.nest.replay.execute import direct, execute, work
from hwmodels.schedule import Hold, Item, Loop
from hwmodels.selection.price import Tucker, decompositions, pieces, rank, weights
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

"""Tucker decompositions by hand: 3.1.3.2, Table 3.6."""

from __future__ import annotations

import pytest

from hwmodels.selection.price import Tucker, decompositions, pieces, rank, weights
from instances.network.workload import Layer

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

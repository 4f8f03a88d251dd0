"""Output shapes, parameters and layers of single operators, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from instances.frozen import digest
from instances.network.operators import (
    Concat,
    Conv,
    Correlation,
    Eltwise,
    Input,
    MatMul,
    Opaque,
    Pool,
    Reshape,
    element_wise,
)
from instances.network.workload import Layer
from tests.effort import tries

MAP = (2, 6, 8, 10)


def conv(**fields: object) -> Conv:
    return Conv.model_validate({"name": "c", "inputs": ("x",), "shape": (1,), "filters": 4, "kernel": (3, 3)} | fields)


def pool(**fields: object) -> Pool:
    base = {"name": "p", "inputs": ("x",), "shape": (1,), "fn": "max", "kernel": (3, 3), "stride": (2, 2)}
    return Pool.model_validate(base | fields)


def test_conv_shape_parameters_and_layer() -> None:
    c = conv(stride=(2, 1), pad=(1, 0, 0, 1), groups=2, bias=True, batch_norm=True)
    # rows (8+1+0-3)//2+1 = 4, columns (10+0+1-3)//1+1 = 9
    assert c.infer([MAP]) == (2, 4, 4, 9)
    # 4 filters x 3 channels per group x 9 + 4 biases + 2*4 for the batch norm
    assert c.count_parameters([MAP]) == 108 + 4 + 8
    layer = c.layer([MAP])
    assert (layer.b, layer.g, layer.m, layer.n, layer.r, layer.c) == (2, 2, 2, 3, 4, 9)
    assert (layer.pad_top, layer.pad_left, layer.bias) == (1, 0, True)
    assert layer.macs == 2 * 2 * 2 * 3 * 4 * 9 * 9


def test_a_folded_batch_norm_is_a_bias_at_inference() -> None:
    assert conv(batch_norm=True).layer([MAP]).bias
    assert not conv().layer([MAP]).bias


@pytest.mark.parametrize(
    ("fields", "shape", "fragment"),
    [
        ({"groups": 4}, MAP, "groups 4 must divide"),
        ({"kernel": (9, 3)}, MAP, "reaches over 9 elements, the padded map has 8"),
        ({"dilation": (4, 1)}, MAP, "reaches over 9 elements"),
        ({"pad": (3, 0, 0, 0)}, MAP, "padding 3 exceeds the kernel's reach 2"),
        ({}, (2, 6), "needs a feature map"),
    ],
)
def test_convolutions_that_cannot_be(fields: dict[str, object], shape: tuple[int, ...], fragment: str) -> None:
    with pytest.raises(ValueError, match=fragment):
        conv(**fields).infer([shape])


def test_number_of_inputs() -> None:
    with pytest.raises(ValueError, match="has 2 inputs, needs 1"):
        conv().infer([MAP, MAP])
    with pytest.raises(ValueError, match="has 1 inputs, needs 0"):
        Input(name="x", shape=(1,)).infer([MAP])
    with pytest.raises(ValueError, match="has 0 inputs, needs at least 1"):
        Concat(name="x", shape=(1,)).infer([])


def test_pool_ceil_mode_drops_windows_that_start_in_the_padding() -> None:
    # (8-3)/2 = 2.5: 3 rows down, 4 up; (10-3)/2 = 3.5: 4 down, 5 up
    assert pool().infer([MAP]) == (2, 6, 3, 4)
    assert pool(ceil_mode=True).infer([MAP]) == (2, 6, 4, 5)
    # kernel 1 stride 3 on 8 rows: ceil(7/3)+1 = 4, and the window at 9 lies beyond 8 rows: 3
    assert pool(kernel=(1, 1), stride=(3, 3), ceil_mode=True).infer([MAP]) == (2, 6, 3, 4)


def test_global_pool_is_one_window() -> None:
    p = Pool(name="p", inputs=("x",), shape=(1,), fn="global_avg")
    assert p.infer([MAP]) == (2, 6, 1, 1)
    layer = p.layer([MAP])
    assert (layer.kind, layer.g, layer.kh, layer.kw, layer.macs, layer.parameters) == ("pool", 6, 8, 10, 0, 0)


def test_pool_kernel_goes_with_the_function() -> None:
    with pytest.raises(ValidationError, match="drop kernel"):
        pool(fn="global_avg")
    with pytest.raises(ValidationError, match="needs a kernel"):
        pool(kernel=None)


def test_fully_connected_sees_tokens_as_rows() -> None:
    fc = MatMul(name="f", inputs=("x",), shape=(1,), out_features=5, bias=True)
    assert fc.infer([(2, 7, 3)]) == (2, 7, 5)
    assert fc.count_parameters([(2, 7, 3)]) == 3 * 5 + 5
    layer = fc.layer([(2, 7, 3)])
    assert (layer.r, layer.n, layer.m, layer.g, layer.weights) == (14, 3, 5, 1, "constant")


def test_products_of_two_inputs() -> None:
    product = MatMul(name="f", inputs=("a", "b"), shape=(1,), transpose_b=True)
    shapes = [(2, 12, 7, 64), (2, 12, 9, 64)]
    assert product.infer(shapes) == (2, 12, 7, 9)
    layer = product.layer(shapes)
    assert (layer.g, layer.r, layer.n, layer.m, layer.weights) == (24, 7, 64, 9, "activation")
    assert layer.parameters == 0
    # A shared right operand: one product with all rows.
    plain = MatMul(name="f", inputs=("a", "b"), shape=(1,))
    shared = plain.layer([(2, 7, 64), (64, 9)])
    assert (shared.g, shared.r, shared.n, shared.m) == (1, 14, 64, 9)
    with pytest.raises(ValueError, match="inner sizes differ: 64"):
        plain.infer(shapes)
    # A transposed left operand has its matrices apart: a product for each.
    turned = MatMul(name="f", inputs=("a", "b"), shape=(1,), transpose_a=True, bias=True)
    apart = turned.layer([(2, 64, 7), (64, 9)])
    assert (apart.g, apart.r, apart.n, apart.m) == (2, 7, 64, 9)
    assert turned.count_parameters([(2, 64, 7), (64, 9)]) == 9
    with pytest.raises(ValueError, match="needs matrices"):
        plain.infer([(64,), (64, 9)])


def test_correlation() -> None:
    """Of 3 rows at most in steps of 2: -2, 0 and 2; of 7 columns in steps of 3: -6 to 6."""
    match = Correlation(name="c", inputs=("x", "y"), shape=(1,), displacement=(3, 7), stride=(2, 3))
    assert match.infer([MAP, MAP]) == (2, 3 * 5, 8, 10)
    layer = match.layer([MAP, MAP])
    assert (layer.b, layer.n, layer.m, layer.r, layer.c, layer.weights) == (2, 6, 1, 8, 10, "activation")
    assert (layer.kh, layer.kw, layer.dilation_h, layer.dilation_w) == (3, 5, 2, 3)
    assert (layer.pad_top, layer.pad_left) == (2, 6)
    with pytest.raises(ValueError, match="the maps differ"):
        match.infer([MAP, (2, 6, 8, 9)])


def test_matmul_fields_go_together() -> None:
    with pytest.raises(ValueError, match=r"needs \(rows, features\)"):
        MatMul(name="f", inputs=("x",), shape=(1,), out_features=3).infer([(5,)])
    with pytest.raises(ValidationError, match="needs out_features"):
        MatMul(name="f", inputs=("x",), shape=(1,))
    with pytest.raises(ValidationError, match="drop out_features"):
        MatMul(name="f", inputs=("x", "y"), shape=(1,), out_features=3)
    with pytest.raises(ValidationError, match="transpose_a and transpose_b"):
        MatMul(name="f", inputs=("x",), shape=(1,), out_features=3, transpose_a=True)


def test_eltwise_layers() -> None:
    add = Eltwise(name="e", inputs=("x", "y"), shape=(1,), fn="add")
    layer = add.layer([MAP, MAP])
    assert (layer.kind, layer.inputs, layer.b, layer.g, layer.r, layer.c) == ("eltwise", 2, 2, 6, 8, 10)
    # A channel scale is an operand of its own: one element for all rows and columns.
    scaled = add.layer([MAP, (2, 6, 1, 1)])
    assert (scaled.inputs, scaled.broadcast) == (2, ("", "rc"))
    tokens = add.layer([(2, 7, 3), (2, 7, 3)])
    assert (tokens.g, tokens.r, tokens.c) == (3, 14, 1)
    assert Eltwise(name="e", inputs=("x",), shape=(1,), fn="relu").layer([MAP]) is None


def test_eltwise_functions() -> None:
    with pytest.raises(ValidationError, match="known functions"):
        Eltwise(name="e", inputs=("x",), shape=(1,), fn="relo")
    with pytest.raises(ValueError, match="has 2 inputs, needs 1"):
        Eltwise(name="e", inputs=("x", "y"), shape=(1,), fn="relu").infer([MAP, MAP])
    with pytest.raises(ValueError, match="do not fit together"):
        Eltwise(name="e", inputs=("x", "y"), shape=(1,), fn="add").infer([MAP, (2, 5, 8, 10)])


def test_concat() -> None:
    join = Concat(name="j", inputs=("x", "y"), shape=(1,))
    assert join.infer([MAP, (2, 3, 8, 10)]) == (2, 9, 8, 10)
    with pytest.raises(ValueError, match="cannot be joined along axis 1"):
        join.infer([MAP, (2, 3, 8, 9)])
    with pytest.raises(ValueError, match="axis 1 of shape"):
        join.infer([(2,), (2,)])


@pytest.mark.parametrize(
    ("fn", "shape", "fits"),
    [
        ("reshape", (2, 480), True),
        ("reshape", (2, 481), False),
        ("transpose", (2, 8, 10, 6), True),
        ("transpose", (2, 8, 60), False),
        ("slice", (2, 3, 8, 10), True),
        ("slice", (3, 6, 8, 10), False),
        ("pad", (2, 6, 9, 10), True),
        ("pad", (2, 6, 7, 10), False),
        ("identity", MAP, True),
        ("identity", (2, 480), False),
    ],
)
def test_reshapes(fn: str, shape: tuple[int, ...], fits: bool) -> None:
    move = Reshape.model_validate({"name": "r", "inputs": ("x",), "shape": shape, "fn": fn})
    if fits:
        assert move.infer([MAP]) == shape
    else:
        with pytest.raises(ValueError, match="cannot turn shape"):
            move.infer([MAP])


def test_opaque_keeps_its_shape_and_parameters() -> None:
    o = Opaque(name="o", inputs=("x", "y"), shape=(3,), kind="LSTM", parameters=7)
    assert o.infer([MAP, MAP]) == (3,)
    assert (o.count_parameters([MAP, MAP]), o.layer([MAP, MAP])) == (7, None)


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 501])
def test_names_are_printable(name: str) -> None:
    with pytest.raises(ValidationError):
        Input(name=name, shape=(1,))


@given(
    size=st.integers(1, 20), kernel=st.integers(1, 5), stride=st.integers(1, 4), pad=st.integers(0, 4),
    ceil_mode=st.booleans(),
)  # fmt: skip
@settings(max_examples=tries(37, 150), deadline=None)
def test_every_window_touches_the_map(size: int, kernel: int, stride: int, pad: int, ceil_mode: bool) -> None:
    p = pool(kernel=(kernel, 1), stride=(stride, 1), pad=(pad, 0, pad, 0), ceil_mode=ceil_mode)
    try:
        rows = p.infer([(1, 1, size, 1)])[2]
    except ValueError:
        assert size + 2 * pad < kernel or pad > kernel - 1
        return
    starts = [r * stride - pad for r in range(rows)]
    assert all(start < size and start + kernel > 0 for start in starts)


def test_layers_are_equal_if_all_but_their_names_are() -> None:
    """So that no layer gets the plan, and the bound, of another one."""
    layer = eltwise("", "rc")
    changed = {layer.model_copy(update={field: "other"}).signature() for field in Layer.model_fields}
    assert len(changed) == len(Layer.model_fields)
    assert layer.signature() in changed  # of another name


@pytest.mark.parametrize(("fields", "said"), [
    ({"n": 2}, "a pool layer has m = n = 1 per group and weights 'none'"),
    ({"weights": "constant"}, "a pool layer has m = n = 1 per group"),
    ({"kind": "resample", "n": 2}, "a resample layer has n = 1 and weights 'none'"),
    ({"inputs": 2}, "only an eltwise layer has more than one input operand"),
    ({"resident_w": True}, "resident_w: a pool layer without weights has none on chip"),
    ({"resident_out": 4}, "resident rows"), ({"copies": (1, 1)}, r"copies \(1, 1\)"), ({"copies": (25,)}, "have .24."),
    ({"kind": "conv", "weights": "constant", "copies": (1, 1)}, r"copies \(1, 1\)"),
    ({"stride_h": 2, "h": 4}, "3 output rows with stride 2 start beyond the 4 input rows"),
    ({"kind": "correlation", "g": 1}, "g = m = 1 and weights 'activation'"),
])  # fmt: skip
def test_layers_without_weights(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Layer.model_validate(eltwise(inputs=1).model_dump() | {"kind": "pool"} | fields)


# ---- Operands of element-wise layers that are broadcast: how shapes become b, g, r, c, and what a layer s


def eltwise(*broadcast: str, b: int = 1, g: int = 2, r: int = 3, c: int = 4, inputs: int = 2) -> Layer:
    return Layer(
        name="mix", kind="eltwise", b=b, g=g, m=1, n=1, r=r, c=c, h=r, l=c, inputs=inputs, weights="none",
        broadcast=broadcast,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shapes", "sizes", "lacks"),
    [
        # a feature map and its gate; rows by columns; a mask; a batch; a single number of data
        ([(1, 8, 7, 7), (1, 8, 1, 1)], (1, 8, 7, 7), ("", "rc")),
        ([(1, 16, 32, 1), (1, 16, 1, 32)], (1, 16, 32, 32), ("c", "r")),
        ([(1, 4, 9, 9), (1, 1, 9, 9)], (1, 4, 9, 9), ("", "g")),
        ([(1, 4, 9, 9), (9, 9)], (1, 4, 9, 9), ("", "g")),
        ([(5, 4, 1, 1), (1, 4, 6, 6)], (5, 4, 6, 6), ("rc", "b")),
        ([(2, 3, 4, 5), (1,)], (2, 3, 4, 5), ("", "bgrc")),
        # tokens and features: the mean of a token, a factor of a feature, a row of positions for a batch
        ([(1, 10, 64), (1, 10, 1)], (1, 64, 10, 1), ("", "g")),
        ([(1, 10, 64), (64,)], (1, 64, 10, 1), ("", "r")),
        ([(4, 10, 64), (4, 10, 64)], (1, 64, 40, 1), ("", "")),
        ([(4, 10, 64), (1, 10, 64)], (4, 64, 10, 1), ("", "b")),
        ([(10, 1), (64,)], (1, 64, 10, 1), ("g", "r")),
        # anchor grids of a detector: anchors, cells, coordinates
        ([(1, 3, 20, 20, 2), (1, 1, 20, 20, 2)], (3, 2, 400, 1), ("", "b")),
        ([(1, 3, 20, 20, 2), (1, 3, 1, 1, 2), (2,)], (3, 2, 400, 1), ("", "r", "br")),
        ([(2, 3, 4, 5, 6), (2, 1, 4, 1, 1)], (2, 30, 3, 4), ("", "gr")),
        ([(2, 3, 4, 5, 1), (2, 1, 4, 1, 1)], (2, 5, 3, 4), ("", "gr")),
        ([(5,), (1,)], (1, 5, 1, 1), ("", "g")),
        ([(1, 6, 1, 7, 1, 2, 3), (7, 1, 1, 3)], (6, 3, 7, 2), ("", "bc")),
    ],
)
def test_shapes_become_dimensions(
    shapes: list[tuple[int, ...]], sizes: tuple[int, ...], lacks: tuple[str, ...]
) -> None:
    assert element_wise(shapes) == (sizes, lacks)
    # what every operand has along the dimensions is all of its elements
    for shape, missing in zip(shapes, lacks, strict=True):
        assert np.prod([n for d, n in zip("bgrc", sizes, strict=True) if d not in missing]) == np.prod(shape)


def test_more_than_four_groups_of_axes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"broadcast along 5 groups of axes, a layer has four"):
        element_wise([(2, 3, 4, 5, 6), (2, 1, 4, 1, 6)])


def test_elements_of_inputs() -> None:
    layer = eltwise("", "rc", "g", "bgrc", b=5, inputs=4)
    assert [layer.input_elements(k) for k in range(4)] == [5 * 2 * 3 * 4, 5 * 2, 5 * 3 * 4, 1]


def test_layers_without_broadcast_are_stored_as_before() -> None:
    assert "broadcast" not in eltwise().model_dump()
    assert Layer.model_validate(eltwise("", "rc").model_dump()) == eltwise("", "rc")
    assert digest(eltwise().model_dump()) != digest(eltwise("", "rc").model_dump())


@pytest.mark.parametrize(
    ("broadcast", "said"),
    [
        (("", "x"), "expected the letters of bgrc"),
        (("", "cr"), "in this order"),
        (("", "rr"), "expected the letters of bgrc"),
        (("rc",), "must say something of each of 2 inputs"),
        (("", ""), "leave it out"),
        (("", "b"), "dimension b of the result is 1"),
        (("gr", "rc"), "no input has dimension r, which is 3"),
    ],
)
def test_wrong_ones_are_refused(broadcast: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        eltwise(*broadcast)


def test_only_element_wise_layers_have_them() -> None:
    with pytest.raises(ValidationError, match="only inputs of an eltwise layer are, not of a pool"):
        Layer(name="p", kind="pool", g=2, m=1, n=1, r=3, c=4, h=3, l=4, weights="none", broadcast=("r",))
    with pytest.raises(ValidationError, match="strides and kernel of 1"):
        Layer(
            name="p", kind="eltwise", g=2, m=1, n=1, r=3, c=4, h=6, l=4, stride_h=2, weights="none", inputs=2,
            broadcast=("", "g"),
        )  # fmt: skip


def test_resident_rows_of_an_input_of_one_row() -> None:
    given = eltwise("", "rc").model_dump()
    assert Layer.model_validate({**given, "resident_in": (2, 1)}).residents == (2, 1)
    with pytest.raises(ValidationError, match="inputs have 3 and 1 rows, the result 3"):
        Layer.model_validate({**given, "resident_in": (2, 2)})

"""Convolutions, fully connected layers, products of matrices, poolings, and changes of size."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import tflite

from instances.tflite.model import Operator, Tensor
from instances.tflite.pointwise import activated
from instances.tflite.scope import Converters, Scope, Untranslatable, channels_first

CONVERTERS = Converters()


def _pads(scope: Scope, operator: Operator, sizes: Sequence[int], taps: Sequence[int], strides: Sequence[int],
          dilations: Sequence[int]) -> list[int]:  # fmt: skip
    """Pads before and behind every axis; of an odd number one more lies behind."""
    if operator.option("Padding") == tflite.Padding.VALID:
        return [0] * (2 * len(sizes))
    before, behind = list[int](), list[int]()
    for size, number, stride, dilation in zip(sizes, taps, strides, dilations, strict=True):
        whole = max(0, (-(-size // stride) - 1) * stride + (number - 1) * dilation + 1 - size)
        before.append(whole // 2)
        behind.append(whole - whole // 2)
    return before + behind


def _positive(strides: Sequence[int], what: str) -> None:
    if min(strides) < 1:
        raise Untranslatable(f"{what} {list(strides)}")


def weights_of(scope: Scope, number: int, order: Sequence[int], shape: Sequence[int] | None = None) -> str:
    """The real numbers of constant weights, with axes in an order, then reshaped.

    Raises Untranslatable for weights that are computed.
    """
    source = scope.source(number)
    key = source, tuple(order), tuple(shape or ())
    return scope.once(key, lambda: _ordered(scope, source, order, shape))


def _ordered(scope: Scope, source: int, order: Sequence[int], shape: Sequence[int] | None) -> str:
    """Such weights, made anew."""
    tensor = scope.tensor(source)
    if tensor.data is None:
        raise Untranslatable("its weights are computed")
    data = tensor.data.transpose(order)
    axis = list(order).index(tensor.axis) if tensor.scale.size > 1 else 0
    if shape is not None:
        if tensor.scale.size > 1 and shape[axis := axis - (data.ndim - len(shape))] != tensor.scale.size:
            raise Untranslatable("its weights have scales along an axis that is joined with others")
        data = data.reshape(shape)
    return real_of(scope, tensor, data, axis)


def real_of(scope: Scope, tensor: Tensor, data: np.ndarray, axis: int = 0) -> str:
    """The real numbers that elements of a constant stand for."""
    if tensor.kind == "float16":
        return scope.literal(data.astype(np.float32), tensor.name)
    held = scope.literal(data, tensor.name)
    return scope.dequantised(held, tensor, axis) if tensor.quantised else held


def bias_of(scope: Scope, number: int, x: int, weights: int) -> tuple[str, ...]:
    """The real numbers of biases, if there are any: whole numbers count products of the scales."""
    if number < 0:
        return ()
    tensor, data = scope.tensor(scope.source(number)), scope.constant(number)
    if data is None:
        return (scope.value(number),)
    if data.dtype not in (np.int32, np.int64):
        return (real_of(scope, tensor, data),)
    scale = scope.tensor(x).scale * scope.tensor(scope.source(weights)).scale
    scale = scale if scale.size else tensor.scale
    if not scale.size:
        raise Untranslatable("its biases are whole numbers without a scale")
    limits = np.iinfo(np.int32)
    if data.size and (data.min() < limits.min or data.max() > limits.max):
        return (scope.literal((data * scale.astype(np.float64)).astype(np.float32), tensor.name),)
    held = scope.literal(data.astype(np.int32), tensor.name)
    one = scale.size == 1
    stated = scope.literal(scale.reshape(()) if one else scale, f"{tensor.name}/scale")
    return (scope.node("DequantizeLinear", held, stated, name=f"{tensor.name}/real", axis=None if one else 0),)


@CONVERTERS.of("CONV_2D", "DEPTHWISE_CONV_2D")
def _conv(scope: Scope, operator: Operator) -> None:
    """Weights lie as [filters, rows, columns, channels], of a depthwise convolution as [1, rows, columns, filters]."""
    if len(scope.shape(operator.input(0))) != 4 or len(scope.shape(operator.input(1))) != 4:
        raise Untranslatable("its input and weights have no rows and columns")
    deep = operator.name == "DEPTHWISE_CONV_2D"
    _convolved(scope, operator, (3, 0, 1, 2) if deep else (0, 3, 1, 2), "HW", deep=deep)


@CONVERTERS.of("CONV_3D")
def _conv_3d(scope: Scope, operator: Operator) -> None:
    """Weights lie as [frames, rows, columns, channels, filters]."""
    _convolved(scope, operator, (4, 3, 0, 1, 2), "DHW")


def _convolved(scope: Scope, operator: Operator, order: Sequence[int], axes: str, *, deep: bool = False) -> None:
    """A convolution along some axes, whose weights have those in `order` as filters, channels of a group, and taps."""
    x, around = scope.padded.get(operator.input(0), (operator.input(0), ()))
    w, y, label = operator.input(1), operator.outputs[0], scope.label(operator)
    strides = [operator.option(f"Stride{axis}") for axis in axes]
    dilations = [operator.option(f"Dilation{axis}Factor") for axis in axes]
    _positive((*strides, *dilations), "strides and dilations")
    _, *sizes, channels = scope.shape(x)
    _, each, *taps = (scope.shape(w)[axis] for axis in order)
    if not each or channels % each:
        raise Untranslatable(f"{channels} channels for weights of {each}")
    made = scope.node(
        "Conv", scope.value(x, first=True), weights_of(scope, w, order), *bias_of(scope, operator.input(2), x, w),
        name=label, kernel_shape=taps, strides=strides, dilations=dilations,
        group=channels if deep else channels // each,
        pads=around or _pads(scope, operator, sizes, taps, strides, dilations),
    )  # fmt: skip
    scope.put(y, activated(scope, made, operator.option("FusedActivationFunction"), label), first=True)


@CONVERTERS.of("TRANSPOSE_CONV")
def _transposed(scope: Scope, operator: Operator) -> None:
    """Weights lie as [filters, rows, columns, channels]; the sizes of the result are stated.

    Of integers every phase of the result is a convolution of its own, which rounds its sums; then they are interleaved.
    """
    w, x, y = operator.input(1), operator.input(2), operator.outputs[0]
    label, (_, *sizes, _) = scope.label(operator), scope.shape(x)
    _, *taps, _ = scope.shape(w)
    sizes_made = scope.shape(y)[1:-1]
    strides = operator.option("StrideH"), operator.option("StrideW")
    _positive(strides, "strides")
    before, behind, more = list[int](), list[int](), list[int]()
    for size, number, stride, wanted in zip(sizes, taps, strides, sizes_made, strict=True):
        cut = (size - 1) * stride + number - wanted
        same = operator.option("Padding") == tflite.Padding.SAME
        front = max(0, cut) // 2 if same else 0
        before.append(front)
        behind.append(max(0, cut - front))
        more.append(max(0, -cut))
    if scope.tensor(y).quantised and not any(more) and (parts := _phases(taps, strides, before, sizes, sizes_made)):
        held = _interleaved(scope, operator, parts)
        if any(made % strides[0] for made in sizes_made):  # as many of every phase: the last ones may be beyond it
            cut = (scope.literal(some) for some in ((0, 0), sizes_made, (2, 3)))
            held = scope.node("Slice", held, *cut, name=f"{label}/cut")
        scope.put_stored(y, held, first=True)
        return
    made = scope.node(
        "ConvTranspose", scope.value(x, first=True), weights_of(scope, w, (3, 0, 1, 2)),
        *bias_of(scope, operator.input(3), x, w), name=label, kernel_shape=taps, strides=strides,
        pads=before + behind, output_padding=more if any(more) else None,
    )  # fmt: skip
    scope.put(y, activated(scope, made, operator.option("FusedActivationFunction"), label), first=True)


class _Phase(NamedTuple):
    """Every stride-th element of a result along an axis: a convolution with some taps."""

    taps: slice
    """Those of the kernel, the last one first."""
    before: int
    behind: int
    """`before`, `behind`: pads."""


def _phases(
    taps: Sequence[int], strides: Sequence[int], before: Sequence[int], sizes: Sequence[int], made: Sequence[int]
) -> list[list[_Phase]] | None:
    """The phases of a result along both axes, the last ones beyond it; None where one has no taps or drops pixels.

    Element q * stride + a of the result takes the tap k0 + j * stride of element q + d - j of the input, for all j,
    with k0 = (a + pad) mod stride and d = (a + pad) div stride.
    """
    if strides[0] != strides[1]:
        return None
    found = list[list[_Phase]]()
    for number, stride, pad, size, wanted in zip(taps, strides, before, sizes, made, strict=True):
        mine, more = list[_Phase](), -(-wanted // stride) - size
        for a in range(stride):
            d, k0 = divmod(a + pad, stride)
            last = (number - 1 - k0) // stride  # j of the last tap
            if k0 >= number or last < d or not -1 < d + more <= last:  # of a pixel it would see nothing but the border
                return None
            end = k0 - stride
            mine.append(_Phase(slice(k0 + last * stride, end if end >= 0 else None, -stride), last - d, d + more))
        found.append(mine)
    return found


def _interleaved(scope: Scope, operator: Operator, phases: list[list[_Phase]]) -> str:
    """The integers of a transposed convolution from those of its phases."""
    w, x, y, label = operator.input(1), operator.input(2), operator.outputs[0], scope.label(operator)
    source, made = scope.tensor(scope.source(w)), scope.tensor(y)
    if source.data is None:
        raise Untranslatable("its weights are computed")
    parts = list[str]()
    for row in phases[0]:
        for column in phases[1]:
            data = source.data[:, row.taps, column.taps].transpose(0, 3, 1, 2)
            held = real_of(scope, source, data, 0)
            one = scope.node(
                "Conv", scope.value(x, first=True), held, *bias_of(scope, operator.input(3), x, w), name=label,
                kernel_shape=data.shape[2:], pads=(row.before, column.before, row.behind, column.behind),
            )  # fmt: skip
            one = activated(scope, one, operator.option("FusedActivationFunction"), label)
            parts.append(scope.rounded(one, made, f"{label}/phase"))
    if len(parts) == 1:
        return parts[0]
    joined = scope.node("Concat", *parts, name=f"{label}/phases", axis=1)
    return scope.node("DepthToSpace", joined, name=f"{label}/interleave", blocksize=len(phases[0]), mode="DCR")


@CONVERTERS.of("FULLY_CONNECTED")
def _fully_connected(scope: Scope, operator: Operator) -> None:
    """Weights lie as [filters, channels]; all axes but the last one of the input are rows, whatever its shape."""
    x, w, y, label = operator.input(0), operator.input(1), operator.outputs[0], scope.label(operator)
    filters, channels = scope.shape(w)
    rows = prod(scope.shape(x)) // max(1, channels)
    if rows * channels != prod(scope.shape(x)):
        raise Untranslatable(f"an input of {list(scope.shape(x))} for weights of {channels} channels")
    if operator.option("WeightsFormat"):
        raise Untranslatable("its weights are shuffled")
    bias = bias_of(scope, operator.input(2), x, w)
    value, weights = _operands(scope, x, w, rows, label)
    made = scope.node("Gemm", value, weights, *bias, name=label, transB=1)
    made = activated(scope, made, operator.option("FusedActivationFunction"), label)
    if scope.shape(y) == (rows, filters):
        scope.put(y, made)
    elif scope.tensor(y).quantised:
        made = scope.quantised(made, scope.tensor(y), 0)
        scope.put_stored(y, scope.shaped(made, scope.shape(y), f"{label}/rows"))
    else:
        scope.put(y, scope.shaped(made, scope.shape(y), f"{label}/rows"))


def _operands(scope: Scope, x: int, w: int, rows: int, label: str) -> tuple[str, str]:
    """The rows and the weights of a fully connected layer.

    Of a map that is flattened channels are first, and the weights follow: in the order that their first reader has, all
    others put their rows in it.
    """
    filters, channels = scope.shape(w)
    flat = scope.flat(x) if rows == scope.shape(x)[0] and scope.constant(w) is not None else None
    sizes = scope.orders.setdefault(scope.source(w), flat[1] if flat else ())
    if flat and flat[1] == sizes:
        value = flat[0]
    else:
        held = scope.stored(x)
        if sizes:
            held = scope.shaped(held, (rows, *sizes), label)
            held = scope.node("Transpose", held, name=f"{label}/order", perm=channels_first(1 + len(sizes)))
        same = not sizes and scope.shape(x) == (rows, channels)
        value = scope.value(x) if same else scope.meant(scope.shaped(held, (rows, channels), label), x)
    if not sizes:
        return value, weights_of(scope, w, (0, 1)) if scope.constant(w) is not None else scope.value(w)

    def arranged() -> str:
        tensor = scope.tensor(scope.source(w))
        data = np.moveaxis(np.asarray(tensor.data).reshape(filters, *sizes), -1, 1).reshape(filters, channels)
        return real_of(scope, tensor, data, tensor.axis)

    return value, scope.once((scope.source(w), "flat"), arranged)


@CONVERTERS.of("BATCH_MATMUL")
def _product(scope: Scope, operator: Operator) -> None:
    y, label = operator.outputs[0], scope.label(operator)
    read = [scope.value(operator.input(k)) for k in (0, 1)]
    for k, option in enumerate(("AdjX", "AdjY")):
        if operator.option(option):
            rank = len(scope.shape(operator.input(k)))
            order = (*range(rank - 2), rank - 1, rank - 2)
            read[k] = scope.node("Transpose", read[k], name=f"{label}/{option.lower()}", perm=order)
    scope.put(y, scope.node("MatMul", *read, name=label))


@CONVERTERS.of("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def _pool(scope: Scope, operator: Operator) -> None:
    """What lies beyond the border is not averaged."""
    x, y, label = operator.input(0), operator.outputs[0], scope.label(operator)
    sizes = scope.shape(x)[1:-1]
    taps = operator.option("FilterHeight"), operator.option("FilterWidth")
    strides = operator.option("StrideH"), operator.option("StrideW")
    if len(sizes) != len(taps):
        raise Untranslatable("its input has no rows and columns")
    _positive((*taps, *strides), "windows and strides")
    value = scope.value(x, first=True)
    if operator.name == "L2_POOL_2D":
        value = scope.node("Mul", value, value, name=f"{label}/square")
    made = scope.node(
        "MaxPool" if operator.name == "MAX_POOL_2D" else "AveragePool", value, name=label, kernel_shape=taps,
        strides=strides, pads=_pads(scope, operator, sizes, taps, strides, (1, 1)),
    )  # fmt: skip
    if operator.name == "L2_POOL_2D":
        made = scope.node("Sqrt", made, name=f"{label}/sqrt")
    scope.put(y, activated(scope, made, operator.option("FusedActivationFunction"), label), first=True)


@CONVERTERS.of("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def _resize(scope: Scope, operator: Operator) -> None:
    x, y = operator.input(0), operator.outputs[0]
    batch, rows, columns, channels = scope.shape(y)
    linear = operator.name == "RESIZE_BILINEAR"
    corners, centres = operator.option("AlignCorners"), operator.option("HalfPixelCenters")
    mode = "align_corners" if corners else "half_pixel" if centres else "asymmetric"
    sizes = scope.literal((batch, channels, rows, columns))
    made = scope.node(
        "Resize", scope.value(x, first=True), "", "", sizes, name=scope.label(operator),
        mode="linear" if linear else "nearest", coordinate_transformation_mode=mode,
        nearest_mode=None if linear else "round_prefer_ceil" if corners or centres else "floor",
    )  # fmt: skip
    scope.put(y, made, first=True)

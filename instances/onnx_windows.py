"""Windows of ONNX convolutions and poolings: kernel, stride, dilation and padding along rows and columns."""

from __future__ import annotations

from instances.onnx_graph import Node, Unsupported
from instances.operators import Shape


def _two(values: tuple[int, ...], fill: int) -> tuple[int, int]:
    if len(values) > 2 or not values:
        raise Unsupported(f"{len(values)}-dimensional windows")
    return (fill, values[0]) if len(values) == 1 else (values[0], values[1])


def window(node: Node, kernel: tuple[int, ...], size: Shape) -> dict[str, tuple[int, ...]]:
    """Return kernel, stride, dilation and pads of a node, in two dimensions: others get a first axis of 1."""
    axes = len(kernel)
    two_kernel = _two(kernel, 1)
    stride = node.integers("strides") or (1,) * axes
    dilation = node.integers("dilations") or (1,) * axes
    pads = node.integers("pads") or (0,) * (2 * axes)
    if len(stride) != axes or len(dilation) != axes or len(pads) != 2 * axes:
        raise Unsupported("attributes of different ranks")
    two_stride, two_dilation = _two(stride, 1), _two(dilation, 1)
    before, after = _two(pads[:axes], 0), _two(pads[axes:], 0)
    mode = node.text("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        both = [_same(size[i], two_kernel[i], two_stride[i], two_dilation[i], mode == "SAME_UPPER") for i in (0, 1)]
        before, after = (both[0][0], both[1][0]), (both[0][1], both[1][1])
    elif mode == "VALID":
        before, after = (0, 0), (0, 0)
    return {"kernel": two_kernel, "stride": two_stride, "dilation": two_dilation, "pad": (*before, *after)}


def window_of(node: Node, kernel: tuple[int, ...], size: Shape, axes: tuple[int, int]) -> dict[str, tuple[int, ...]]:
    """Return kernel, stride, dilation and pads of a node along two of its axes."""
    number = len(kernel)
    stride, dilation = node.integers("strides") or (1,) * number, node.integers("dilations") or (1,) * number
    pads = node.integers("pads") or (0,) * (2 * number)
    if len(stride) != number or len(dilation) != number or len(pads) != 2 * number:
        raise Unsupported("attributes of different ranks")
    mode = node.text("auto_pad", "NOTSET")
    both = [(pads[a], pads[number + a]) for a in axes]
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        both = [_same(size[a], kernel[a], stride[a], dilation[a], mode == "SAME_UPPER") for a in axes]
    elif mode == "VALID":
        both = [(0, 0), (0, 0)]
    chosen = {"kernel": kernel, "stride": stride, "dilation": dilation}
    found = {name: tuple(values[a] for a in axes) for name, values in chosen.items()}
    return found | {"pad": (both[0][0], both[1][0], both[0][1], both[1][1])}


def _same(size: int, kernel: int, stride: int, dilation: int, upper: bool) -> tuple[int, int]:
    """Return the pads before and after for which the output has ceil(size / stride) elements."""
    total = max((-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    less = total // 2
    return (less, total - less) if upper else (total - less, less)

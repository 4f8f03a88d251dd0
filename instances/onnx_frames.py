"""Convolution and pooling in three dimensions, as convolutions and poolings of frames.

A 3-D convolution is one in two dimensions with a batch of output frames. Each sees the frames of its window as
channels: the same products, every one of them. What it costs: a frame that several windows share is read for each of
them, and frames of zeros before and behind are read too. A kernel of one pixel runs along time in one convolution, one
of a single frame or of windows that do not overlap reads nothing twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from instances.onnx_graph import Graph, Node, Unsupported
from instances.onnx_steps import Means, Steps
from instances.onnx_windows import window_of
from instances.operators import Conv, Pool, Shape


@dataclass(frozen=True)
class _Time:
    """What a window does along the first of three axes."""

    kernel: int
    stride: int
    dilation: int
    before: int
    after: int

    def frames(self, given: int) -> int:
        """Return how many frames come out."""
        room = given + self.before + self.after - (self.kernel - 1) * self.dilation - 1
        if room < 0:
            raise ValueError(f"a window of {self.kernel} frames over {given} frames")
        return room // self.stride + 1


def _window(node: Node, kernel: tuple[int, ...], size: Shape) -> tuple[_Time, dict[str, Any]]:
    """Return the window along time, and that in rows and columns."""
    both = [window_of(node, kernel, size, axes) for axes in ((0, 0), (1, 2))]
    ends = both[0]["pad"]
    time = _Time(both[0]["kernel"][0], both[0]["stride"][0], both[0]["dilation"][0], ends[0], ends[2])
    return time, both[1]


def _attributes(window: dict[str, Any], groups: int = 0) -> dict[str, object]:
    """A window of ours as attributes of ONNX."""
    found: dict[str, object] = {"kernel_shape": list(window["kernel"]), "strides": list(window["stride"])}
    found |= {"dilations": list(window["dilation"]), "pads": list(window["pad"])}
    return found | ({"group": groups} if groups else {})


def conv3d(node: Node, graph: Graph, weights: str, bias: str) -> None:
    """Convert a convolution of a video (batch, channels, frames, rows, columns)."""
    steps = Steps(node, graph)
    source = steps.source(node.input(0))
    batch, channels, frames, *size = steps.shape(source)
    filters, per_group, *kernel = graph.shape(weights)
    groups = node.integer("group", 1)
    if per_group * groups != channels or filters % groups:
        raise graph.fault(
            node, f"weights for {per_group * groups} channels in {groups} groups, its input has {channels}"
        )
    time, window = _window(node, tuple(kernel), (frames, *size))
    if (*window["kernel"], *window["stride"], *window["pad"]) == (1, 1, 1, 1, 0, 0, 0, 0):
        along: dict[str, Any] = {"kernel": (time.kernel, 1), "stride": (time.stride, 1), "dilation": (time.dilation, 1)}
        source = steps.move(source, (batch, channels, frames, size[0] * size[1]), "in")
        pad = (time.before, 0, time.after, 0)
        flat = steps.derive("W", lambda w: w.reshape(*w.shape[:3], 1), weights)
        means = Means("Conv", [flat, *([bias] if bias else [])], _attributes(along | {"pad": pad}, groups))
        made = steps.add(Conv, [source], means=means, filters=filters, groups=groups, bias=bool(bias), pad=pad, **along)
        graph.weigh(made, weights, bias=bias)
        steps.finish(made, (batch, filters, time.frames(frames), *size), inner=made)
        return
    source = steps.permute(source, (0, 2, 1, 3, 4), "frames")
    source = _windows(steps, source, time, groups)
    # frames of a window stand before the channels of a group
    flat = steps.derive("W", lambda w: w.swapaxes(1, 2).reshape(len(w), -1, *w.shape[3:]), weights)
    means = Means("Conv", [flat, *([bias] if bias else [])], _attributes(window, groups))
    made = steps.add(Conv, [source], means=means, filters=filters, groups=groups, bias=bool(bias), **window)
    graph.weigh(made, weights, bias=bias)
    inner, size = made, list(steps.shape(made)[2:])
    made = steps.move(made, (batch, time.frames(frames), filters, *size), "split")
    steps.finish(steps.permute(made, (0, 2, 1, 3, 4), "order"), inner=inner)


def _windows(steps: Steps, source: str, time: _Time, groups: int) -> str:
    """Return one map for every output frame: the frames of its window as channels, group by group."""
    batch, frames, channels, rows, columns = steps.shape(source)
    out = time.frames(frames)
    padded = (batch, frames + time.before + time.after, channels, rows, columns)
    source = steps.pad(source, padded, "zeros", (0, time.before, 0, 0, 0))
    if time.kernel == time.stride and time.dilation == 1 and groups == 1:  # windows lie one behind the other
        source = steps.cut(source, (batch, out * time.kernel, channels, rows, columns), "used")
        return steps.move(source, (batch * out, time.kernel * channels, rows, columns), "windows")
    shape: Shape = (batch, out, groups, channels // groups, rows, columns)
    taps = []
    for tap in range(time.kernel):
        start, step = (0, tap * time.dilation, 0, 0, 0), (1, time.stride, 1, 1, 1)
        part = steps.cut(source, (batch, out, channels, rows, columns), f"frame{tap}", start, step)
        taps.append(steps.move(part, shape, f"frame{tap}"))
    made = steps.concat(taps, "windows", axis=3)
    return steps.move(made, (batch * out, time.kernel * channels, rows, columns), "windows")


def pool3d(node: Node, graph: Graph, fn: str, kernel: tuple[int, ...], ceil: bool) -> None:
    """Convert pooling of a video: over rows and columns of each frame, then over time."""
    steps = Steps(node, graph)
    source = steps.source(node.input(0))
    batch, channels, frames, *size = steps.shape(source)
    time, window = _window(node, kernel, (frames, *size))
    if fn == "avg" and any((*window["pad"], time.before, time.after)) and not node.integer("count_include_pad", 0):
        raise Unsupported("an average in three dimensions that leaves padding out")
    source = steps.move(source, (batch, channels * frames, *size), "frames")
    included = {"count_include_pad": 1} if fn == "avg" else {}
    op = "MaxPool" if fn == "max" else "AveragePool"
    means = Means(op, (), _attributes(window) | {"ceil_mode": int(ceil)} | included)
    made = steps.add(Pool, [source], means=means, fn=fn, ceil_mode=ceil, **window)
    size = list(steps.shape(made)[2:])
    if (time.kernel, time.stride) != (1, 1):
        made = steps.move(made, (batch, channels, frames, size[0] * size[1]), "columns")
        along: dict[str, Any] = {"kernel": (time.kernel, 1), "stride": (time.stride, 1), "dilation": (time.dilation, 1)}
        along["pad"] = (time.before, 0, time.after, 0)
        means = Means(op, (), _attributes(along) | {"ceil_mode": int(ceil)} | included)
        made = steps.add(Pool, [made], "time", means, fn=fn, ceil_mode=ceil, **along)
        frames = steps.shape(made)[2]
    steps.finish(made, (batch, channels, frames, *size))


def global_pool3d(node: Node, graph: Graph, fn: str) -> None:
    """Convert global pooling of a video."""
    steps = Steps(node, graph)
    source = steps.source(node.input(0))
    batch, channels, frames, rows, columns = steps.shape(source)
    source = steps.move(source, (batch, channels, frames, rows * columns), "in")
    means = Means("GlobalMaxPool" if fn == "global_max" else "GlobalAveragePool")
    steps.finish(steps.add(Pool, [source], means=means, fn=fn), (batch, channels, 1, 1, 1))

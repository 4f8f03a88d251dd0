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
from instances.onnx_steps import Steps
from instances.onnx_windows import window_of
from instances.operators import Concat, Conv, Pool, Shape


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
        made = steps.add(Conv, [source], filters=filters, groups=groups, bias=bool(bias), pad=pad, **along)
        graph.weigh(made, weights, bias=bias)
        steps.finish(made, (batch, filters, time.frames(frames), *size), inner=made)
        return
    source = steps.permute(source, (0, 2, 1, 3, 4), "frames")
    source = _windows(steps, source, time, groups)
    made = steps.add(Conv, [source], filters=filters, groups=groups, bias=bool(bias), **window)
    graph.weigh(made, weights, bias=bias)
    inner, size = made, list(steps.shape(made)[2:])
    made = steps.move(made, (batch, time.frames(frames), filters, *size), "split")
    steps.finish(steps.permute(made, (0, 2, 1, 3, 4), "order"), inner=inner)


def _windows(steps: Steps, source: str, time: _Time, groups: int) -> str:
    """Return one map for every output frame: the frames of its window as channels, group by group."""
    batch, frames, channels, rows, columns = steps.shape(source)
    out = time.frames(frames)
    source = steps.move(source, (batch, frames + time.before + time.after, channels, rows, columns), "zeros", "pad")
    if time.kernel == time.stride and time.dilation == 1 and groups == 1:  # windows lie one behind the other
        source = steps.move(source, (batch, out * time.kernel, channels, rows, columns), "used", "slice")
        return steps.move(source, (batch * out, time.kernel * channels, rows, columns), "windows")
    shape: Shape = (batch, out, groups, channels // groups, rows, columns)
    taps = []
    for tap in range(time.kernel):
        part = steps.move(source, (batch, out, channels, rows, columns), f"frame{tap}", "slice")
        taps.append(steps.move(part, shape, f"frame{tap}"))
    made = taps[0] if len(taps) == 1 else steps.add(Concat, taps, "windows", axis=3)
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
    made = steps.add(Pool, [source], fn=fn, ceil_mode=ceil, **window)
    size = list(steps.shape(made)[2:])
    if (time.kernel, time.stride) != (1, 1):
        made = steps.move(made, (batch, channels, frames, size[0] * size[1]), "columns")
        along: dict[str, Any] = {"kernel": (time.kernel, 1), "stride": (time.stride, 1), "dilation": (time.dilation, 1)}
        made = steps.add(Pool, [made], "time", fn=fn, ceil_mode=ceil, pad=(time.before, 0, time.after, 0), **along)
        frames = steps.shape(made)[2]
    steps.finish(made, (batch, channels, frames, *size))


def global_pool3d(node: Node, graph: Graph, fn: str) -> None:
    """Convert global pooling of a video."""
    steps = Steps(node, graph)
    source = steps.source(node.input(0))
    batch, channels, frames, rows, columns = steps.shape(source)
    source = steps.move(source, (batch, channels, frames, rows * columns), "in")
    steps.finish(steps.add(Pool, [source], fn=fn), (batch, channels, 1, 1, 1))

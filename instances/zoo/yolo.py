"""Tiny YOLO as the mapping paper tabulates it, and YOLOv2 (Redmon & Farhadi 2016)."""

from __future__ import annotations

from instances.network.network import Network
from instances.zoo.builder import Builder

__all__ = ["tiny_yolo", "yolov2"]


def tiny_yolo() -> Network:
    """Return the Tiny YOLO of `heterogeneous_mapping_and_banks` Table 3.3: 200 classes, 1025 output channels."""
    net = Builder("tiny_yolo", "Tiny YOLO, 3x416x416 (heterogeneous_mapping_and_banks.md, Table 3.3: 1025 outputs)")
    x = net.input(1, 3, 416, 416)
    for i, filters in enumerate((16, 32, 64, 128, 256, 512), 1):
        x = net.conv(x, f"conv{i}", filters, 3, act="leaky_relu")
        # The sixth pooling has stride 1 and keeps 13x13: one row and column of padding at the end.
        x = net.pool(x, f"pool{i}", "max", 2) if i < 6 else net.pool(x, "pool6", "max", 2, 1, pad=(0, 0, 1, 1))
    x = net.conv(x, "conv7", 1024, 3, act="leaky_relu")
    x = net.conv(x, "conv8", 1024, 3, act="leaky_relu")
    net.conv(x, "conv9", 1025, 1, bias=True, batch_norm=False, act="")
    return net.build()


def yolov2(size: int = 416) -> Network:
    """Return YOLOv2 for COCO (darknet's yolov2.cfg, 80 classes): 62.94 billion operations at 608x608.

    Parameters
    ----------
    size : int
        Rows and columns of the input, a multiple of 32.
    """
    net = Builder("yolov2", f"YOLOv2, 3x{size}x{size} (darknet yolov2.cfg, COCO)")
    x = net.input(1, 3, size, size)
    number, passthrough = 0, ""
    # Darknet-19's stages: 3x3 and 1x1 convolutions in turn, pooled in between.
    deep = (512, 256, 512, 256, 512), (1024, 512, 1024, 512, 1024)
    for stage in ((32,), (64,), (128, 64, 128), (256, 128, 256), *deep):
        if number:
            x = net.pool(x, f"pool{number}", "max", 2)
        for i, filters in enumerate(stage):
            number += 1
            x = net.conv(x, f"conv{number}", filters, 1 if i % 2 else 3, act="leaky_relu")
        passthrough = x if stage[0] == 512 else passthrough
    x = net.conv(x, "conv19", 1024, 3, act="leaky_relu")
    x = net.conv(x, "conv20", 1024, 3, act="leaky_relu")
    y = net.conv(passthrough, "conv21", 64, 1, act="leaky_relu")
    # Space to depth: 2x2 neighbours become channels.
    y = net.reshape(y, "reorg", (1, 256, size // 32, size // 32))
    x = net.conv(net.concat((y, x), "concat"), "conv22", 1024, 3, act="leaky_relu")
    net.conv(x, "conv23", 425, 1, bias=True, batch_norm=False, act="")
    return net.build()

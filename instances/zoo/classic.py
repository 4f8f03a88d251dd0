"""Convolutions one after the other: LeNet-5, AlexNet, VGG-16, YOLOs, and dense prediction by FlowNetS, SRCNN and ESPCN.

Tiny YOLO is that of the mapping paper's table, YOLOv2 by Redmon & Farhadi 2016; of FlowNetS it is the contracting part.
"""

from __future__ import annotations

from instances.network.network import Network
from instances.zoo.builder import Builder

__all__ = [
    "alexnet", "alexnet_caffe", "espcn", "flownet_s", "lenet5", "srcnn", "tiny_yolo", "vgg16", "yolov2",
]  # fmt: skip


def lenet5() -> Network:
    """Return LeNet-5 (LeCun et al. 1998, Fig. 2) with the usual dense C3: 61,706 parameters."""
    net = Builder("lenet5", "LeNet-5, 1x32x32 (LeCun et al. 1998, dense C3)")
    x = net.conv(net.input(1, 1, 32, 32), "c1", 6, 5, pad=0, bias=True, batch_norm=False, act="tanh")
    x = net.pool(x, "s2", "avg", 2)
    x = net.conv(x, "c3", 16, 5, pad=0, bias=True, batch_norm=False, act="tanh")
    x = net.pool(x, "s4", "avg", 2)
    x = net.conv(x, "c5", 120, 5, pad=0, bias=True, batch_norm=False, act="tanh")
    x = net.fc(net.flatten(x), "f6", 84, act="tanh")
    net.unary(net.fc(x, "output", 10), "softmax")
    return net.build()


def alexnet() -> Network:
    """Return AlexNet as in torchvision ("One weird trick", one column): 61.1 M parameters, 0.71 GMAC."""
    net = Builder("alexnet", "AlexNet, 3x224x224 (torchvision: one column, no LRN)")
    x = net.input(1, 3, 224, 224)
    spec = ((64, 11, 4, 2), (192, 5, 1, 2), (384, 3, 1, 1), (256, 3, 1, 1), (256, 3, 1, 1))
    for i, (filters, kernel, stride, pad) in enumerate(spec, 1):
        x = net.conv(x, f"conv{i}", filters, kernel, stride=stride, pad=pad, bias=True, batch_norm=False)
        if i in (1, 2, 5):
            x = net.pool(x, f"pool{i}", "max", 3, 2)
    return _classify(net, x)


def _classify(net: Builder, x: str) -> Network:
    """Add the three fully connected layers that AlexNet and VGG share."""
    x = net.fc(net.flatten(x), "fc6", 4096, act="relu")
    x = net.fc(x, "fc7", 4096, act="relu")
    net.unary(net.fc(x, "fc8", 1000), "softmax")
    return net.build()


def alexnet_caffe() -> Network:
    """Return AlexNet as first published (two groups, local response normalisation): 60,965,224 parameters.

    On 3x224x224 without padding, as the ONNX model zoo has it: the map is 54x54 after the first layer.
    """
    net = Builder("alexnet_caffe", "AlexNet, 3x224x224 (BVLC Caffe: two groups, LRN)")
    x = net.input(1, 3, 224, 224)
    spec = ((96, 11, 4, 0, 1), (256, 5, 1, 2, 2), (384, 3, 1, 1, 1), (384, 3, 1, 1, 2), (256, 3, 1, 1, 2))
    for i, (filters, kernel, stride, pad, groups) in enumerate(spec, 1):
        x = net.conv(x, f"conv{i}", filters, kernel, stride=stride, pad=pad, groups=groups, bias=True, batch_norm=False)
        if i < 3:
            x = net.pool(net.unary(x, "lrn", f"norm{i}"), f"pool{i}", "max", 3, 2)
    x = net.pool(x, "pool5", "max", 3, 2, ceil_mode=True)
    return _classify(net, x)


def vgg16() -> Network:
    """Return VGG-16 (Simonyan & Zisserman 2014, configuration D): 138.36 M parameters, 15.47 GMAC."""
    net = Builder("vgg16", "VGG-16, 3x224x224 (configuration D)")
    x = net.input(1, 3, 224, 224)
    for block, (filters, repeats) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), 1):
        for i in range(1, repeats + 1):
            x = net.conv(x, f"conv{block}_{i}", filters, 3, bias=True, batch_norm=False)
        x = net.pool(x, f"pool{block}", "max", 2)
    return _classify(net, x)


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


def flownet_s() -> Network:
    """Return the contracting part of FlowNetS (Dosovitskiy et al. 2015) for two 384x512 images.

    Layers are named as in `optimal_tiling_dma` Table 1. Weights and biases are 24,050,752 numbers, 96.2 million bytes
    in float32: the "approximately 96 MBytes" of its section 2.2 (MB of 10**6 bytes; 91.7 MiB).
    """
    net = Builder("flownet_s", "FlowNetS contracting part, 6x384x512 (Dosovitskiy et al. 2015)")
    x = net.input(1, 6, 384, 512)
    spec = (
        ("conv_1", 64, 7, 2), ("conv_2", 128, 5, 2), ("conv_3", 256, 5, 2), ("conv_3.1", 256, 3, 1),
        ("conv_4", 512, 3, 2), ("conv_4.1", 512, 3, 1), ("conv_5", 512, 3, 2), ("conv_5.1", 512, 3, 1),
        ("conv_6", 1024, 3, 2), ("conv_6.1", 1024, 3, 1),
    )  # fmt: skip
    for name, filters, kernel, stride in spec:
        x = net.conv(x, name, filters, kernel, stride=stride, bias=True, batch_norm=False, act="leaky_relu")
    return net.build()


def srcnn() -> Network:
    """Return SRCNN 9-1-5 (Dong et al. 2014) on a 256x256 luminance map, padded: 8,032 weights."""
    net = Builder("srcnn", "SRCNN 9-1-5, 1x256x256 upscaled luminance (Dong et al. 2014)")
    x = net.conv(net.input(1, 1, 256, 256), "conv1", 64, 9, bias=True, batch_norm=False)
    x = net.conv(x, "conv2", 32, 1, bias=True, batch_norm=False)
    net.conv(x, "conv3", 1, 5, bias=True, batch_norm=False, act="")
    return net.build()


def espcn() -> Network:
    """Return ESPCN for 3x upscaling of 360x640 to 1080p (Shi et al. 2016: 5-3-3, 64 and 32 filters)."""
    net = Builder("espcn", "ESPCN x3, 1x360x640 to 1080x1920 (Shi et al. 2016)")
    x = net.conv(net.input(1, 1, 360, 640), "conv1", 64, 5, bias=True, batch_norm=False, act="tanh")
    x = net.conv(x, "conv2", 32, 3, bias=True, batch_norm=False, act="tanh")
    x = net.conv(x, "conv3", 9, 3, bias=True, batch_norm=False, act="")
    net.reshape(x, "pixel_shuffle", (1, 1, 1080, 1920))
    return net.build()

"""Dense prediction: FlowNetS (contracting part), SRCNN, ESPCN."""

from __future__ import annotations

from instances.network.network import Network
from instances.zoo.builder import Builder

__all__ = ["espcn", "flownet_s", "srcnn"]


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

"""Short chains on which tools that fuse layers were measured; they are generated, not bundled (`certile bench`).

Without activations and biases, and but for the sum without padding. MobileNetV2: Sandler et al. 2018; bottlenecks:
He et al. 2015.
"""

from __future__ import annotations

from collections.abc import Callable

from instances.network.network import Network
from instances.zoo.builder import Builder

__all__ = ["CHAINS", "chain", "skip"]


def chain(*filters: int, size: int = 4, channels: int = 4, taps: int = 3) -> Network:
    """Convolutions c0, c1, ... with padding."""
    net = Builder("chain", "")
    x = net.input(1, channels, size, size, name="in")
    for n, number in enumerate(filters):
        x = net.conv(x, f"c{n}", number, taps, batch_norm=False, act="")
    return net.build()


def skip(channels: int, size: int) -> Network:
    """Three 1x1 convolutions; a sum reads the first and the last."""
    net = Builder("skip", "")
    x = net.input(1, channels, size, size, name="in")
    for name in "abc":
        x = net.conv(x, name, channels, batch_norm=False, act="")
    net.eltwise("add", ("a", "c"), "sum")
    return net.build()


def _convs(count: int, size: int) -> Network:
    """3x3 convolutions of 64 channels."""
    net = Builder(f"convs_{count}x{size}", f"{count} 3x3 convolutions of 64 channels, {size}x{size}, no padding")
    x = net.input(1, 64, size, size)
    for i in range(1, count + 1):
        x = net.conv(x, f"conv{i}", 64, 3, pad=0, act="")
    return net.build()


def convs_3() -> Network:
    """Return three 3x3 convolutions of 64 channels on 56x56."""
    return _convs(3, 56)


def convs_2() -> Network:
    """Return two 3x3 convolutions of 64 channels on 224x224."""
    return _convs(2, 224)


def inverted() -> Network:
    """Return a block of MobileNetV2 on 56x56: 24 channels, 144, 3x3 depthwise, 24."""
    net = Builder("inverted_24_144", "MobileNetV2 block 24-144-dw3-24, 56x56, no padding, no sum")
    x = net.conv(net.input(1, 24, 56, 56), "expand", 144, act="")
    x = net.conv(x, "dw", 144, 3, pad=0, groups=144, act="")
    net.conv(x, "project", 24, act="")
    return net.build()


def _bottleneck(name: str, said: str, size: int, pad: int, *, total: bool) -> Network:
    net = Builder(name, f"bottleneck 256-64-64-256, {size}x{size}, {said}")
    source = net.input(1, 256, size, size)
    x = net.conv(source, "reduce", 64, act="")
    x = net.conv(x, "conv", 64, 3, pad=pad, act="")
    x = net.conv(x, "expand", 256, act="")
    if total:
        net.eltwise("add", (x, source), "add")
    return net.build()


def bottleneck() -> Network:
    """Return a bottleneck of ResNet-50 on 56x56 without its sum."""
    return _bottleneck("bottleneck", "no padding, no sum", 56, 0, total=False)


def bottleneck_sum() -> Network:
    """Return a bottleneck of ResNet-50 with its sum: 54x54 and padding 1, as a sum needs maps of one size."""
    return _bottleneck("bottleneck_sum", "padding 1, with its sum", 54, 1, total=True)


def products() -> Network:
    """Return two matrix products, 512x64 by 64x512 by 512x64: weights as in a pair of fully connected layers."""
    net = Builder("products_512", "matrix products 512x64 . 64x512 . 512x64")
    x = net.conv(net.input(1, 64, 512, 1), "first", 512, act="")
    net.conv(x, "second", 64, act="")
    return net.build()


#: By name.
CHAINS: dict[str, Callable[[], Network]] = {
    one.__name__: one for one in (convs_3, inverted, bottleneck, bottleneck_sum, convs_2, products)
}

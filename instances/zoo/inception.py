"""Inception v3 (Szegedy et al. 2015), without the auxiliary head, with torchvision's names."""

from __future__ import annotations

from instances.network.network import Network
from instances.zoo.builder import Builder

__all__ = ["inception_v3"]


def _pooled(net: Builder, x: str, name: str, filters: int) -> str:
    pooled = net.pool(x, f"{name}/branch_pool", "avg", 3, 1, pad=1)
    return net.conv(pooled, f"{name}/branch_pool_conv", filters)


def _block_a(net: Builder, x: str, name: str, pool_filters: int) -> str:
    one = net.conv(x, f"{name}/branch1x1", 64)
    five = net.conv(net.conv(x, f"{name}/branch5x5_1", 48), f"{name}/branch5x5_2", 64, 5)
    three = net.conv(net.conv(x, f"{name}/branch3x3dbl_1", 64), f"{name}/branch3x3dbl_2", 96, 3)
    three = net.conv(three, f"{name}/branch3x3dbl_3", 96, 3)
    return net.concat((one, five, three, _pooled(net, x, name, pool_filters)), f"{name}/concat")


def _block_b(net: Builder, x: str, name: str) -> str:
    three = net.conv(x, f"{name}/branch3x3", 384, 3, stride=2, pad=0)
    double = net.conv(net.conv(x, f"{name}/branch3x3dbl_1", 64), f"{name}/branch3x3dbl_2", 96, 3)
    double = net.conv(double, f"{name}/branch3x3dbl_3", 96, 3, stride=2, pad=0)
    return net.concat((three, double, net.pool(x, f"{name}/branch_pool", "max", 3, 2)), f"{name}/concat")


def _block_c(net: Builder, x: str, name: str, inner: int) -> str:
    one = net.conv(x, f"{name}/branch1x1", 192)
    seven = net.conv(x, f"{name}/branch7x7_1", inner)
    seven = net.conv(seven, f"{name}/branch7x7_2", inner, (1, 7))
    seven = net.conv(seven, f"{name}/branch7x7_3", 192, (7, 1))
    double = net.conv(x, f"{name}/branch7x7dbl_1", inner)
    for i, kernel in enumerate(((7, 1), (1, 7), (7, 1)), 2):
        double = net.conv(double, f"{name}/branch7x7dbl_{i}", inner, kernel)
    double = net.conv(double, f"{name}/branch7x7dbl_5", 192, (1, 7))
    return net.concat((one, seven, double, _pooled(net, x, name, 192)), f"{name}/concat")


def _block_d(net: Builder, x: str, name: str) -> str:
    three = net.conv(net.conv(x, f"{name}/branch3x3_1", 192), f"{name}/branch3x3_2", 320, 3, stride=2, pad=0)
    seven = net.conv(x, f"{name}/branch7x7x3_1", 192)
    seven = net.conv(seven, f"{name}/branch7x7x3_2", 192, (1, 7))
    seven = net.conv(seven, f"{name}/branch7x7x3_3", 192, (7, 1))
    seven = net.conv(seven, f"{name}/branch7x7x3_4", 192, 3, stride=2, pad=0)
    return net.concat((three, seven, net.pool(x, f"{name}/branch_pool", "max", 3, 2)), f"{name}/concat")


def _block_e(net: Builder, x: str, name: str) -> str:
    one = net.conv(x, f"{name}/branch1x1", 320)
    three = net.conv(x, f"{name}/branch3x3_1", 384)
    three = net.concat(
        [net.conv(three, f"{name}/branch3x3_2{i}", 384, kernel) for i, kernel in (("a", (1, 3)), ("b", (3, 1)))],
        f"{name}/branch3x3_concat",
    )
    double = net.conv(net.conv(x, f"{name}/branch3x3dbl_1", 448), f"{name}/branch3x3dbl_2", 384, 3)
    double = net.concat(
        [net.conv(double, f"{name}/branch3x3dbl_3{i}", 384, kernel) for i, kernel in (("a", (1, 3)), ("b", (3, 1)))],
        f"{name}/branch3x3dbl_concat",
    )
    return net.concat((one, three, double, _pooled(net, x, name, 192)), f"{name}/concat")


def inception_v3() -> Network:
    """Return Inception v3 without the auxiliary head (torchvision): 5.71 GMAC, 23.8 M parameters.

    Its fifth convolution, Conv2d_4a_3x3, is the 73x73x80 -> 192 3x3 example of `tso_burst_slicing` section VI.
    """
    net = Builder("inception_v3", "Inception v3 without the auxiliary head, 3x299x299 (torchvision)")
    x = net.conv(net.input(1, 3, 299, 299), "Conv2d_1a_3x3", 32, 3, stride=2, pad=0)
    x = net.conv(x, "Conv2d_2a_3x3", 32, 3, pad=0)
    x = net.conv(x, "Conv2d_2b_3x3", 64, 3)
    x = net.pool(x, "maxpool1", "max", 3, 2)
    x = net.conv(x, "Conv2d_3b_1x1", 80)
    x = net.conv(x, "Conv2d_4a_3x3", 192, 3, pad=0)
    x = net.pool(x, "maxpool2", "max", 3, 2)
    for name, filters in (("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)):
        x = _block_a(net, x, name, filters)
    x = _block_b(net, x, "Mixed_6a")
    for name, inner in (("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)):
        x = _block_c(net, x, name, inner)
    x = _block_d(net, x, "Mixed_7a")
    for name in ("Mixed_7b", "Mixed_7c"):
        x = _block_e(net, x, name)
    return net.classified(x)

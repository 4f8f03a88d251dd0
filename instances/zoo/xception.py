"""Xception (Chollet 2017): depthwise separable convolutions with residuals."""

from __future__ import annotations

from instances.network import Network
from instances.zoo.builder import Builder

__all__ = ["xception"]


def _separable(net: Builder, x: str, name: str, filters: int, act: str = "") -> str:
    """Add a depthwise and a 1x1 convolution without anything between them."""
    channels = net.shape(x)[1]
    x = net.conv(x, f"{name}/dw", channels, 3, groups=channels, batch_norm=False, act="")
    return net.conv(x, f"{name}/pw", filters, 1, act=act)


def _down(net: Builder, x: str, name: str, filters: tuple[int, int], *, active: bool = True) -> str:
    """Add two separable convolutions and a pooling beside a strided 1x1 convolution."""
    shortcut = net.conv(x, f"{name}/shortcut", filters[1], 1, stride=2, act="")
    y = net.unary(x, "relu", f"{name}/relu") if active else x
    y = _separable(net, y, f"{name}/sep1", filters[0], "relu")
    y = _separable(net, y, f"{name}/sep2", filters[1])
    y = net.pool(y, f"{name}/pool", "max", 3, 2, pad=1)
    return net.eltwise("add", (y, shortcut), f"{name}/add")


def xception() -> Network:
    """Return Xception (Fig. 5 of the paper, Keras): 22,855,952 parameters, 8.36 GMAC at 299x299."""
    net = Builder("xception", "Xception, 3x299x299 (Chollet 2017, Fig. 5; Keras)")
    x = net.conv(net.input(1, 3, 299, 299), "conv1", 32, 3, stride=2, pad=0)
    x = net.conv(x, "conv2", 64, 3, pad=0)
    x = _down(net, x, "block2", (128, 128), active=False)
    x = _down(net, x, "block3", (256, 256))
    x = _down(net, x, "block4", (728, 728))
    for block in range(5, 13):
        y = net.unary(x, "relu", f"block{block}/relu")
        for i in (1, 2, 3):
            y = _separable(net, y, f"block{block}/sep{i}", 728, "relu" if i < 3 else "")
        x = net.eltwise("add", (y, x), f"block{block}/add")
    x = _down(net, x, "block13", (728, 1024))
    x = _separable(net, x, "block14/sep1", 1536, "relu")
    x = _separable(net, x, "block14/sep2", 2048, "relu")
    return net.classified(x)

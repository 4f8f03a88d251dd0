"""SqueezeNet 1.0 and 1.1 (Iandola et al. 2016)."""

from __future__ import annotations

from instances.network import Network
from instances.zoo.builder import Builder

__all__ = ["squeezenet1_0", "squeezenet1_1"]

#: Squeeze filters and filters of each expand branch of fire2 .. fire9.
FIRES = ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))


def _squeezenet(net: Builder, filters: int, kernel: int, pooled_after: tuple[int, ...]) -> Network:
    def conv(x: str, name: str, filters: int, kernel: int, stride: int = 1, pad: int = 0) -> str:
        return net.conv(x, name, filters, kernel, stride=stride, pad=pad, bias=True, batch_norm=False)

    x = conv(net.input(1, 3, 224, 224), "conv1", filters, kernel, stride=2)
    for i, (squeeze, expand) in enumerate(FIRES, 1):
        if i in pooled_after:
            x = net.pool(x, f"pool{i}", "max", 3, 2, ceil_mode=True)
        name = f"fire{i + 1}"
        s = conv(x, f"{name}/squeeze1x1", squeeze, 1)
        branches = [conv(s, f"{name}/expand1x1", expand, 1), conv(s, f"{name}/expand3x3", expand, 3, pad=1)]
        x = net.concat(branches, f"{name}/concat")
    x = net.global_avg(conv(x, "conv10", 1000, 1), "pool10")
    net.unary(x, "softmax")
    return net.build()


def squeezenet1_0() -> Network:
    """Return SqueezeNet 1.0 as in torchvision: 1.248 M parameters, 0.82 GMAC."""
    net = Builder("squeezenet1_0", "SqueezeNet 1.0, 3x224x224 (torchvision)")
    return _squeezenet(net, 96, 7, (1, 4, 8))


def squeezenet1_1() -> Network:
    """Return SqueezeNet 1.1 as in torchvision: 1.235 M parameters, 0.35 GMAC."""
    net = Builder("squeezenet1_1", "SqueezeNet 1.1, 3x224x224 (torchvision)")
    return _squeezenet(net, 64, 3, (1, 3, 5))

"""ShuffleNet (Zhang et al. 2017): grouped 1x1 convolutions and channel shuffles."""

from __future__ import annotations

from instances.network import Network
from instances.zoo.builder import Builder

__all__ = ["shufflenet_1x", "shufflenet_2x"]

_GROUPS = 3
#: Units of every stage.
_UNITS = (4, 8, 4)


def _unit(net: Builder, x: str, name: str, filters: int, *, stride: int, groups: int) -> str:
    """Add a unit (Fig. 2): bottleneck of a quarter, shuffle between the 1x1 convolutions, sum or concatenation."""
    channels, inner = net.shape(x)[1], filters // 4
    made = filters - channels if stride > 1 else filters
    y = net.conv(x, f"{name}/reduce", inner, 1, groups=groups)
    batch, _, rows, columns = net.shape(y)
    y = net.reshape(y, f"{name}/split", (batch, _GROUPS, inner // _GROUPS, rows, columns))
    y = net.reshape(y, f"{name}/shuffle", (batch, inner // _GROUPS, _GROUPS, rows, columns), "transpose")
    y = net.reshape(y, f"{name}/join", (batch, inner, rows, columns))
    y = net.conv(y, f"{name}/dw", inner, 3, stride=stride, groups=inner, act="")
    y = net.conv(y, f"{name}/expand", made, 1, groups=_GROUPS, act="")
    if stride == 1:
        return net.eltwise("add", (x, y), f"{name}/add", act="relu")
    shortcut = net.pool(x, f"{name}/pool", "avg", 3, 2, pad=1)
    return net.unary(net.concat((shortcut, y), f"{name}/concat"), "relu")


def _shufflenet(net: Builder, scale: int) -> Network:
    """Build ShuffleNet with three groups (Table 1); the first 1x1 convolution of stage 2 has one group."""
    x = net.conv(net.input(1, 3, 224, 224), "conv1", 24 * scale, 3, stride=2)
    x = net.pool(x, "maxpool", "max", 3, 2, pad=1)
    for stage, units in enumerate(_UNITS):
        for i in range(units):
            first = stage == 0 and i == 0
            x = _unit(
                net, x, f"stage{stage + 2}.{i}", 240 * scale << stage, stride=1 if i else 2,
                groups=1 if first else _GROUPS,
            )  # fmt: skip
    return net.classified(x)


def shufflenet_1x() -> Network:
    """Return ShuffleNet 1x with three groups (Table 2 of the paper): 137 MMAC."""
    return _shufflenet(Builder("shufflenet_1x", "ShuffleNet 1x, g = 3, 3x224x224 (Zhang et al. 2017, Table 1)"), 1)


def shufflenet_2x() -> Network:
    """Return ShuffleNet 2x with three groups (Table 2 of the paper): 524 MMAC."""
    return _shufflenet(Builder("shufflenet_2x", "ShuffleNet 2x, g = 3, 3x224x224 (Zhang et al. 2017, Table 1)"), 2)

"""Networks made small: SqueezeNet, MobileNets, EfficientNet, ShuffleNet, Xception; fire modules, separable layers.

SqueezeNet: Iandola et al. 2016. MobileNet v1: Howard et al. 2017, v2: Sandler et al. 2018, FD-MobileNet: Qin et al.
2018. EfficientNet: Tan and Le 2019. ShuffleNet: Zhang et al. 2017. Xception: Chollet 2017.
"""

from __future__ import annotations

from instances.network.network import Network
from instances.zoo.builder import Builder

__all__ = [
    "efficientnet_lite0", "fd_mobilenet", "mobilenet_v1", "mobilenet_v1_025", "mobilenet_v1_050", "mobilenet_v2",
    "shufflenet_1x", "shufflenet_2x", "squeezenet1_0", "squeezenet1_1", "xception",
]  # fmt: skip

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


#: Filters and stride of every depthwise separable convolution.
_V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
_FD = ((64, 2), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 4, (1024, 1))


def _mobilenet(net: Builder, spec: tuple[tuple[int, int], ...], quarters: int = 4) -> Network:
    """Build a network of depthwise separable convolutions, its width in quarters."""
    channels = 32 * quarters // 4
    x = net.conv(net.input(1, 3, 224, 224), "conv1", channels, 3, stride=2, act="relu6")
    for i, (full, stride) in enumerate(spec, 2):
        filters = full * quarters // 4
        x = net.conv(x, f"conv{i}/dw", channels, 3, stride=stride, groups=channels, act="relu6")
        x = net.conv(x, f"conv{i}/pw", filters, 1, act="relu6")
        channels = filters
    x = net.conv(net.global_avg(x), "classifier", 1000, 1, bias=True, batch_norm=False, act="")
    net.unary(x, "softmax")
    return net.build()


def mobilenet_v1() -> Network:
    """Return MobileNet v1 (Table 1 of the paper): 569 MMAC, 4.23 M parameters. The classifier is a 1x1 convolution."""
    return _mobilenet(Builder("mobilenet_v1", "MobileNet v1 1.0, 3x224x224 (Howard et al. 2017, Table 1)"), _V1)


def mobilenet_v1_050() -> Network:
    """Return MobileNet v1 of half the width (Table 6 of the paper): 149 MMAC, 1.3 M parameters."""
    return _mobilenet(Builder("mobilenet_v1_050", "MobileNet v1 0.5, 3x224x224 (Howard et al. 2017, Table 6)"), _V1, 2)


def mobilenet_v1_025() -> Network:
    """Return MobileNet v1 of a quarter of the width (Table 6 of the paper): 41 MMAC, 0.5 M parameters."""
    return _mobilenet(Builder("mobilenet_v1_025", "MobileNet v1 0.25, 3x224x224 (Howard et al. 2017, Table 6)"), _V1, 1)


def fd_mobilenet() -> Network:
    """Return FD-MobileNet 1x (Qin et al. 2018): 144 MMAC; 32 times smaller maps after its first twelve layers."""
    return _mobilenet(Builder("fd_mobilenet", "FD-MobileNet 1x, 3x224x224 (Qin et al. 2018, fast downsampling)"), _FD)


def _inverted(net: Builder, x: str, table: tuple[tuple[int, int, int, int, int], ...]) -> Network:
    """Add inverted residuals, of every stage expansion, kernel, filters, repeats and first stride; then classify."""
    channels, block = net.shape(x)[1], 0
    for expansion, kernel, filters, repeats, first_stride in table:
        for i in range(repeats):
            block += 1
            name, stride, shortcut = f"block{block}", first_stride if i == 0 else 1, x
            hidden = channels * expansion
            if expansion > 1:
                x = net.conv(x, f"{name}/expand", hidden, 1, act="relu6")
            x = net.conv(x, f"{name}/dw", hidden, kernel, stride=stride, groups=hidden, act="relu6")
            x = net.conv(x, f"{name}/project", filters, 1, act="")
            if stride == 1 and channels == filters:
                x = net.eltwise("add", (shortcut, x), f"{name}/add")
            channels = filters
    x = net.conv(x, "conv_last", 1280, 1, act="relu6")
    return net.classified(x)


#: Stages of MobileNet v2 and of EfficientNet: expansion, kernel, filters, repeats, first stride.
_V2 = (
    (1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 3, 32, 3, 2), (6, 3, 64, 4, 2), (6, 3, 96, 3, 1), (6, 3, 160, 3, 2),
    (6, 3, 320, 1, 1),
)  # fmt: skip
_B0 = (
    (1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2), (6, 5, 112, 3, 1), (6, 5, 192, 4, 2),
    (6, 3, 320, 1, 1),
)  # fmt: skip


def mobilenet_v2() -> Network:
    """Return MobileNet v2 (Table 2 of the paper, torchvision): 300.8 MMAC, 3,504,872 parameters."""
    net = Builder("mobilenet_v2", "MobileNet v2 1.0, 3x224x224 (Sandler et al. 2018, Table 2; torchvision)")
    return _inverted(net, net.conv(net.input(1, 3, 224, 224), "conv1", 32, 3, stride=2, act="relu6"), _V2)


def efficientnet_lite0() -> Network:
    """Return EfficientNet-Lite0 (Table 1 of the paper, no squeeze and excite, relu6; timm): 4,652,008 parameters."""
    about = "EfficientNet-Lite0, 3x224x224 (Tan and Le 2019, Table 1, without squeeze and excitation; timm)"
    net = Builder("efficientnet_lite0", about)
    return _inverted(net, net.conv(net.input(1, 3, 224, 224), "conv1", 32, 3, stride=2, act="relu6"), _B0)


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

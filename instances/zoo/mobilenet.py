"""MobileNet v1 (Howard et al. 2017) of three widths, FD-MobileNet (Qin et al. 2018), v2 (Sandler et al. 2018)."""

from __future__ import annotations

from instances.network import Network
from instances.zoo.builder import Builder

__all__ = ["fd_mobilenet", "mobilenet_v1", "mobilenet_v1_025", "mobilenet_v1_050", "mobilenet_v2"]

#: Filters and stride of every depthwise separable convolution.
_V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
_FD = ((64, 2), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 4, (1024, 1))


def _separable(net: Builder, spec: tuple[tuple[int, int], ...], quarters: int = 4) -> Network:
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
    return _separable(Builder("mobilenet_v1", "MobileNet v1 1.0, 3x224x224 (Howard et al. 2017, Table 1)"), _V1)


def mobilenet_v1_050() -> Network:
    """Return MobileNet v1 of half the width (Table 6 of the paper): 149 MMAC, 1.3 M parameters."""
    return _separable(Builder("mobilenet_v1_050", "MobileNet v1 0.5, 3x224x224 (Howard et al. 2017, Table 6)"), _V1, 2)


def mobilenet_v1_025() -> Network:
    """Return MobileNet v1 of a quarter of the width (Table 6 of the paper): 41 MMAC, 0.5 M parameters."""
    return _separable(Builder("mobilenet_v1_025", "MobileNet v1 0.25, 3x224x224 (Howard et al. 2017, Table 6)"), _V1, 1)


def fd_mobilenet() -> Network:
    """Return FD-MobileNet 1x (Qin et al. 2018): 144 MMAC; 32 times smaller maps after its first twelve layers."""
    return _separable(Builder("fd_mobilenet", "FD-MobileNet 1x, 3x224x224 (Qin et al. 2018, fast downsampling)"), _FD)


def mobilenet_v2() -> Network:
    """Return MobileNet v2 (Table 2 of the paper, torchvision): 300.8 MMAC, 3,504,872 parameters."""
    net = Builder("mobilenet_v2", "MobileNet v2 1.0, 3x224x224 (Sandler et al. 2018, Table 2; torchvision)")
    x = net.conv(net.input(1, 3, 224, 224), "conv1", 32, 3, stride=2, act="relu6")
    channels, block = 32, 0
    table = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expansion, filters, repeats, first_stride in table:
        for i in range(repeats):
            block += 1
            name, stride, shortcut = f"block{block}", first_stride if i == 0 else 1, x
            hidden = channels * expansion
            if expansion > 1:
                x = net.conv(x, f"{name}/expand", hidden, 1, act="relu6")
            x = net.conv(x, f"{name}/dw", hidden, 3, stride=stride, groups=hidden, act="relu6")
            x = net.conv(x, f"{name}/project", filters, 1, act="")
            if stride == 1 and channels == filters:
                x = net.eltwise("add", (shortcut, x), f"{name}/add")
            channels = filters
    x = net.conv(x, "conv_last", 1280, 1, act="relu6")
    return net.classified(x)

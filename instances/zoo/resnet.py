"""ResNets (He et al. 2015) and wide ResNet-50-2 (Zagoruyko & Komodakis 2016)."""

from __future__ import annotations

from instances.network.network import Network
from instances.zoo.builder import Builder

#: Depth -> blocks of every stage; the first two have basic blocks, the others bottlenecks.
REPEATS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}

__all__ = ["resnet50", "resnet50_v1", "resnet152", "wide_resnet50_2"]


def _resnet(
    net: Builder, repeats: tuple[int, ...], *, width: int = 64, stride_in_3x3: bool = True, basic: bool = False
) -> Network:
    """Build a ResNet; `width` is the inner width of the first stage, `basic` has two 3x3 in every block."""
    x = net.conv(net.input(1, 3, 224, 224), "conv1", 64, 7, stride=2)
    x = net.pool(x, "maxpool", "max", 3, 2, pad=1)
    channels = 64
    for stage, count in enumerate(repeats):
        inner, outer = width << stage, (64 if basic else 256) << stage
        for i in range(count):
            name, stride, shortcut = f"layer{stage + 1}.{i}", 2 if i == 0 and stage else 1, x
            if basic:
                y = net.conv(x, f"{name}.conv1", inner, 3, stride=stride)
                y = net.conv(y, f"{name}.conv2", outer, 3, act="")
            else:
                first, second = (1, stride) if stride_in_3x3 else (stride, 1)
                y = net.conv(x, f"{name}.conv1", inner, 1, stride=first)
                y = net.conv(y, f"{name}.conv2", inner, 3, stride=second)
                y = net.conv(y, f"{name}.conv3", outer, 1, act="")
            if stride > 1 or channels != outer:
                shortcut = net.conv(x, f"{name}.downsample", outer, 1, stride=stride, act="")
            x = net.eltwise("add", (y, shortcut), f"{name}.add", act="relu")
            channels = outer
    return net.classified(x)


def resnet(depth: int) -> Network:
    """Return the ResNet of torchvision with 18, 34, 50, 101 or 152 layers; raises KeyError for another depth."""
    net = Builder(f"resnet{depth}", f"ResNet-{depth}, 3x224x224 (torchvision: stride in the 3x3)")
    return _resnet(net, REPEATS[depth], basic=depth < 50)


def resnet50() -> Network:
    """Return ResNet-50 v1.5 (stride in the 3x3, torchvision): 4.09 GMAC, 25.557 M parameters."""
    net = Builder("resnet50", "ResNet-50 v1.5, 3x224x224 (torchvision: stride in the 3x3)")
    return _resnet(net, (3, 4, 6, 3))


def resnet50_v1() -> Network:
    """Return ResNet-50 as first published (stride in the first 1x1): 3.86 GMAC, 25.557 M parameters."""
    net = Builder("resnet50_v1", "ResNet-50 v1, 3x224x224 (He et al. 2015: stride in the first 1x1)")
    return _resnet(net, (3, 4, 6, 3), stride_in_3x3=False)


def resnet152() -> Network:
    """Return ResNet-152 v1.5 (torchvision): 11.5 GMAC, 60.19 M parameters."""
    net = Builder("resnet152", "ResNet-152 v1.5, 3x224x224 (torchvision: stride in the 3x3)")
    return _resnet(net, (3, 8, 36, 3))


def wide_resnet50_2() -> Network:
    """Return wide ResNet-50-2 (torchvision): 11.4 GMAC, 68.88 M parameters."""
    net = Builder("wide_resnet50_2", "Wide ResNet-50-2, 3x224x224 (torchvision)")
    return _resnet(net, (3, 4, 6, 3), width=128)

"""DenseNets (Huang et al. 2017): every layer sees all earlier maps of its block."""

from __future__ import annotations

from instances.network.network import Network
from instances.zoo.builder import Builder

__all__ = ["densenet40", "densenet40_k12", "densenet121"]


def _blocks(net: Builder, x: str, repeats: tuple[int, ...], growth: int, *, bottleneck: bool, compress: int) -> str:
    """Add dense blocks with transitions between them; pre-activation batch norms stay separate.

    A batch norm directly behind a bottleneck's 1x1 convolution is folded into it, as a deployed network has it.
    """
    for b, count in enumerate(repeats, 1):
        for i in range(1, count + 1):
            name = f"block{b}.{i}"
            y = net.norm(x, f"{name}.norm1")
            if bottleneck:
                y = net.conv(y, f"{name}.conv1", 4 * growth, 1)
            y = net.conv(y, f"{name}.conv2" if bottleneck else f"{name}.conv", growth, 3, batch_norm=False, act="")
            x = net.concat((x, y), f"{name}.concat")
        if b < len(repeats):
            name = f"transition{b}"
            channels = net.shape(x)[1] // compress
            x = net.conv(net.norm(x, f"{name}.norm"), f"{name}.conv", channels, 1, batch_norm=False, act="")
            x = net.pool(x, f"{name}.pool", "avg", 2)
    return net.norm(x, "norm_last")


def densenet121() -> Network:
    """Return DenseNet-121 (torchvision): 2.83 GMAC, 7.98 M parameters."""
    net = Builder("densenet121", "DenseNet-121, 3x224x224 (k=32, bottleneck, compression 0.5; torchvision)")
    x = net.conv(net.input(1, 3, 224, 224), "conv0", 64, 7, stride=2)
    x = net.pool(x, "pool0", "max", 3, 2, pad=1)
    return net.classified(_blocks(net, x, (6, 12, 24, 16), 32, bottleneck=True, compress=2))


def densenet40() -> Network:
    """Return the DenseNet-40 with growth 32 of `heterogeneous_mapping_and_banks` section 3.3.4.3.

    The text gives depth 40, k=32 and 64 layers (Table 3.13). Depth 40 with bottlenecks (6 layers of two convolutions
    in each of 3 blocks) has 1 input, 39 convolutions, 18 concatenations, 3 poolings, flatten, FC and softmax: 64.
    The plain DenseNet-40 would have 82.
    """
    net = Builder("densenet40", "DenseNet-BC-40, 3x32x32 (k=32; the 64 layers of heterogeneous_mapping_and_banks.md)")
    x = net.conv(net.input(1, 3, 32, 32), "conv0", 64, 3, batch_norm=False, act="")
    return net.classified(_blocks(net, x, (6, 6, 6), 32, bottleneck=True, compress=2), 10)


def densenet40_k12() -> Network:
    """Return the DenseNet-40 of Huang et al. 2017, Table 2 (k=12, no bottleneck, CIFAR-10): 1.0 M parameters."""
    net = Builder("densenet40_k12", "DenseNet-40, 3x32x32 (k=12, Huang et al. 2017, Table 2)")
    x = net.conv(net.input(1, 3, 32, 32), "conv0", 16, 3, batch_norm=False, act="")
    return net.classified(_blocks(net, x, (12, 12, 12), 12, bottleneck=False, compress=1), 10)

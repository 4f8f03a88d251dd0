"""Five single layers that public tilers have been compared on."""

from __future__ import annotations

from instances.network import Network
from instances.zoo.builder import Builder

__all__ = ["peer_layers"]


def peer_layers() -> Network:
    """Return layers a to e: ResNet 3x3 and 1x1, Inception's fifth, VGG's second, a strided depthwise; no biases."""
    net = Builder("peer_layers", "five independent layers a-e of ResNet, Inception, VGG and MobileNet, no biases")
    spec = (
        ("a", 64, 56, 64, 3, 1, 1, 1), ("b", 256, 14, 1024, 1, 1, 0, 1), ("c", 80, 73, 192, 3, 1, 0, 1),
        ("d", 64, 224, 64, 3, 1, 1, 1), ("e", 96, 112, 96, 3, 2, 1, 96),
    )  # fmt: skip
    for name, channels, size, filters, kernel, stride, pad, groups in spec:
        x = net.input(1, channels, size, size, name=f"{name}.input")
        net.conv(x, name, filters, kernel, stride=stride, pad=pad, groups=groups, batch_norm=False, act="")
    return net.build()

"""LeNet-5, AlexNet, VGG-16."""

from __future__ import annotations

from instances.network.network import Network
from instances.zoo.builder import Builder

__all__ = ["alexnet", "alexnet_caffe", "lenet5", "vgg16"]


def lenet5() -> Network:
    """Return LeNet-5 (LeCun et al. 1998, Fig. 2) with the usual dense C3: 61,706 parameters."""
    net = Builder("lenet5", "LeNet-5, 1x32x32 (LeCun et al. 1998, dense C3)")
    x = net.conv(net.input(1, 1, 32, 32), "c1", 6, 5, pad=0, bias=True, batch_norm=False, act="tanh")
    x = net.pool(x, "s2", "avg", 2)
    x = net.conv(x, "c3", 16, 5, pad=0, bias=True, batch_norm=False, act="tanh")
    x = net.pool(x, "s4", "avg", 2)
    x = net.conv(x, "c5", 120, 5, pad=0, bias=True, batch_norm=False, act="tanh")
    x = net.fc(net.flatten(x), "f6", 84, act="tanh")
    net.unary(net.fc(x, "output", 10), "softmax")
    return net.build()


def alexnet() -> Network:
    """Return AlexNet as in torchvision ("One weird trick", one column): 61.1 M parameters, 0.71 GMAC."""
    net = Builder("alexnet", "AlexNet, 3x224x224 (torchvision: one column, no LRN)")
    x = net.input(1, 3, 224, 224)
    spec = ((64, 11, 4, 2), (192, 5, 1, 2), (384, 3, 1, 1), (256, 3, 1, 1), (256, 3, 1, 1))
    for i, (filters, kernel, stride, pad) in enumerate(spec, 1):
        x = net.conv(x, f"conv{i}", filters, kernel, stride=stride, pad=pad, bias=True, batch_norm=False)
        if i in (1, 2, 5):
            x = net.pool(x, f"pool{i}", "max", 3, 2)
    return _classify(net, x)


def _classify(net: Builder, x: str) -> Network:
    """Add the three fully connected layers that AlexNet and VGG share."""
    x = net.fc(net.flatten(x), "fc6", 4096, act="relu")
    x = net.fc(x, "fc7", 4096, act="relu")
    net.unary(net.fc(x, "fc8", 1000), "softmax")
    return net.build()


def alexnet_caffe() -> Network:
    """Return AlexNet as first published (two groups, local response normalisation): 60,965,224 parameters.

    On 3x224x224 without padding, as the ONNX model zoo has it: the map is 54x54 after the first layer.
    """
    net = Builder("alexnet_caffe", "AlexNet, 3x224x224 (BVLC Caffe: two groups, LRN)")
    x = net.input(1, 3, 224, 224)
    spec = ((96, 11, 4, 0, 1), (256, 5, 1, 2, 2), (384, 3, 1, 1, 1), (384, 3, 1, 1, 2), (256, 3, 1, 1, 2))
    for i, (filters, kernel, stride, pad, groups) in enumerate(spec, 1):
        x = net.conv(x, f"conv{i}", filters, kernel, stride=stride, pad=pad, groups=groups, bias=True, batch_norm=False)
        if i < 3:
            x = net.pool(net.unary(x, "lrn", f"norm{i}"), f"pool{i}", "max", 3, 2)
    x = net.pool(x, "pool5", "max", 3, 2, ceil_mode=True)
    return _classify(net, x)


def vgg16() -> Network:
    """Return VGG-16 (Simonyan & Zisserman 2014, configuration D): 138.36 M parameters, 15.47 GMAC."""
    net = Builder("vgg16", "VGG-16, 3x224x224 (configuration D)")
    x = net.input(1, 3, 224, 224)
    for block, (filters, repeats) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), 1):
        for i in range(1, repeats + 1):
            x = net.conv(x, f"conv{block}_{i}", filters, 3, bias=True, batch_norm=False)
        x = net.pool(x, f"pool{block}", "max", 2)
    return _classify(net, x)

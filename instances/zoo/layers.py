"""Networks of independent layers: those that public tilers have been compared on, and the workloads of VectorMesh."""

from __future__ import annotations

from instances.network.network import Network
from instances.zoo.builder import Builder, OneOrTwo

__all__ = ["peer_layers", "vectormesh_classic", "vectormesh_modern"]


def _alone(
    net: Builder, name: str, channels: int, size: OneOrTwo, filters: int, kernel: OneOrTwo, stride: int = 1,
    pad: OneOrTwo | None = None, groups: int = 1, dilation: int = 1,
) -> None:  # fmt: skip
    """Add a convolution without a bias that has an input of its own."""
    x = net.input(1, channels, *((size, size) if isinstance(size, int) else size), name=f"{name}.input")
    net.conv(
        x, name, filters, kernel, stride=stride, pad=pad, groups=groups, dilation=dilation, batch_norm=False, act=""
    )


def peer_layers() -> Network:
    """Return layers a to e: ResNet 3x3 and 1x1, Inception's fifth, VGG's second, a strided depthwise; no biases."""
    net = Builder("peer_layers", "five independent layers a-e of ResNet, Inception, VGG and MobileNet, no biases")
    _alone(net, "a", 64, 56, 64, 3)
    _alone(net, "b", 256, 14, 1024, 1)
    _alone(net, "c", 80, 73, 192, 3, pad=0)
    _alone(net, "d", 64, 224, 64, 3)
    _alone(net, "e", 96, 112, 96, 3, stride=2, groups=96)
    return net.build()


#: `vectormesh` Table I: channels, rows and columns of the input, filters, kernel (rows, columns; the
#: table has k_w first), stride, padding. Map sizes are those
#: of one column of AlexNet (227), of Tiny YOLO at 416, of the stem of Inception v4 (73), and of SRCNN on 256x256.
_CLASSIC = (
    ("al_conv1", 3, 227, 48, 11, 4, 0), ("al_conv2", 48, 27, 128, 5, 1, 2), ("al_conv3", 128, 13, 192, 3, 1, 1),
    ("al_conv4", 192, 13, 192, 3, 1, 1), ("al_conv5", 192, 13, 128, 3, 1, 1),
    ("ty_conv1", 3, 416, 16, 3, 1, 1), ("ty_conv2", 16, 208, 32, 3, 1, 1), ("ty_conv3", 32, 104, 64, 3, 1, 1),
    ("ty_conv4", 64, 52, 128, 3, 1, 1), ("ty_conv5", 128, 26, 256, 3, 1, 1), ("ty_conv6", 256, 13, 512, 3, 1, 1),
    ("ty_conv8", 1024, 13, 125, 1, 1, 0),
    ("in_1x7", 64, 73, 64, (7, 1), 1, (3, 0)), ("in_7x1", 64, 73, 64, (1, 7), 1, (0, 3)),
    ("sr_conv1", 3, 256, 64, 9, 1, 4),
)  # fmt: skip


def vectormesh_classic() -> Network:
    """Return the 15 layers of Table I; AL CONV2 follows a 3x3 pooling with stride 2, and so on."""
    net = Builder("vectormesh_classic", "15 independent layers of AlexNet, Tiny YOLO, Inception, SRCNN (VectorMesh)")
    for layer in _CLASSIC:
        _alone(net, *layer)
    return net.build()


def vectormesh_modern() -> Network:
    """Return layers of the networks that section III-A names.

    DeepLab v3: a block of output stride 16 and a branch of its pyramid on 513x513 images; ESPCN x3 on 360x640;
    MobileNet v1: depthwise and pointwise; FlowNetC on 384x512: correlation of 256 channels at an eighth, displacements
    to 20 in steps of 2. The block matching of EVA2 sums absolute differences over blocks: it is not among them.
    """
    net = Builder("vectormesh_modern", "independent layers of DeepLab, ESPCN, MobileNet, FlowNetC (VectorMesh)")
    _alone(net, "dl_rate2", 512, 33, 512, 3, dilation=2)
    _alone(net, "dl_rate12", 2048, 33, 256, 3, dilation=12)
    _alone(net, "es_conv1", 1, (360, 640), 64, 5)
    _alone(net, "es_conv2", 64, (360, 640), 32, 3)
    _alone(net, "es_subpixel", 32, (360, 640), 9, 3)
    _alone(net, "mb_dw2", 64, 112, 64, 3, stride=2, groups=64)
    _alone(net, "mb_pw2", 64, 56, 128, 1)
    _alone(net, "mb_dw7", 512, 14, 512, 3, groups=512)
    _alone(net, "mb_pw7", 512, 14, 512, 1)
    a, b = (net.input(1, 256, 48, 64, name=f"fn_correlation.{which}") for which in ("current", "reference"))
    net.correlation(a, b, "fn_correlation", 20, 2)
    return net.build()

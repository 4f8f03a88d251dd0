"""The workloads of the VectorMesh paper: single layers with the map sizes of the networks that they come from."""

from __future__ import annotations

from instances.network import Network
from instances.zoo.builder import Builder

__all__ = ["vectormesh_classic", "vectormesh_modern"]

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
    for name, channels, size, filters, kernel, stride, pad in _CLASSIC:
        x = net.input(1, channels, size, size, name=f"{name}.input")
        net.conv(x, name, filters, kernel, stride=stride, pad=pad, batch_norm=False, act="")
    return net.build()


def vectormesh_modern() -> Network:
    """Return layers of the networks that section III-A names.

    DeepLab v3: a block of output stride 16 and a branch of its pyramid on 513x513 images; ESPCN x3 on 360x640;
    MobileNet v1: depthwise and pointwise; FlowNetC on 384x512: correlation of 256 channels at an eighth, displacements
    to 20 in steps of 2. The block matching of EVA2 sums absolute differences over blocks: it is not among them.
    """
    net = Builder("vectormesh_modern", "independent layers of DeepLab, ESPCN, MobileNet, FlowNetC (VectorMesh)")
    spec = (
        ("dl_rate2", 512, (33, 33), 512, 3, 1, 2, 1), ("dl_rate12", 2048, (33, 33), 256, 3, 1, 12, 1),
        ("es_conv1", 1, (360, 640), 64, 5, 1, 1, 1), ("es_conv2", 64, (360, 640), 32, 3, 1, 1, 1),
        ("es_subpixel", 32, (360, 640), 9, 3, 1, 1, 1),
        ("mb_dw2", 64, (112, 112), 64, 3, 2, 1, 64), ("mb_pw2", 64, (56, 56), 128, 1, 1, 1, 1),
        ("mb_dw7", 512, (14, 14), 512, 3, 1, 1, 512), ("mb_pw7", 512, (14, 14), 512, 1, 1, 1, 1),
    )  # fmt: skip
    for name, channels, size, filters, kernel, stride, dilation, groups in spec:
        x = net.input(1, channels, *size, name=f"{name}.input")
        net.conv(
            x, name, filters, kernel, stride=stride, dilation=dilation, groups=groups, batch_norm=False, act=""
        )  # fmt: skip
    a, b = (net.input(1, 256, 48, 64, name=f"fn_correlation.{which}") for which in ("current", "reference"))
    net.correlation(a, b, "fn_correlation", 20, 2)
    return net.build()

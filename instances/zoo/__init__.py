"""Generators of the bundled networks, one function each, from public definitions.

``python -m instances.zoo`` rewrites ``instances/networks/*.json`` from them.
"""

from __future__ import annotations

from collections.abc import Callable

from instances.network import Network
from instances.zoo.bert import bert_base_encoder
from instances.zoo.classic import alexnet, alexnet_caffe, lenet5, vgg16
from instances.zoo.densenet import densenet40, densenet40_k12, densenet121
from instances.zoo.inception import inception_v3
from instances.zoo.layers import peer_layers, vectormesh_classic, vectormesh_modern
from instances.zoo.mobilenet import fd_mobilenet, mobilenet_v1, mobilenet_v1_025, mobilenet_v1_050, mobilenet_v2
from instances.zoo.pixels import espcn, flownet_s, srcnn
from instances.zoo.resnet import resnet50, resnet50_v1, resnet152, wide_resnet50_2
from instances.zoo.shufflenet import shufflenet_1x, shufflenet_2x
from instances.zoo.squeezenet import squeezenet1_0, squeezenet1_1
from instances.zoo.xception import xception
from instances.zoo.yolo import tiny_yolo, yolov2

__all__ = ["GENERATORS"]

_ALL = (
    alexnet, alexnet_caffe, bert_base_encoder, densenet121, densenet40, densenet40_k12, espcn, fd_mobilenet,
    flownet_s, inception_v3, lenet5, mobilenet_v1, mobilenet_v1_025, mobilenet_v1_050, mobilenet_v2, peer_layers,
    resnet152, resnet50, resnet50_v1, shufflenet_1x, shufflenet_2x, squeezenet1_0, squeezenet1_1, srcnn, tiny_yolo,
    vectormesh_classic, vectormesh_modern, vgg16, wide_resnet50_2, xception, yolov2,
)  # fmt: skip
#: Name of every bundled network -> its generator.
GENERATORS: dict[str, Callable[[], Network]] = {generate.__name__: generate for generate in _ALL}

"""The bundled networks: totals against published figures, shapes that papers state, files equal to generators.

Convention of all figures: multiply-accumulates of convolutions, fully connected layers and matrix products (batch 1);
parameters are weights, biases and the two trained numbers of each batch-norm channel.
"""

from __future__ import annotations

import importlib
from importlib import resources

import pytest

from instances.load import list_networks, load_network, network_to_json
from instances.network.operators import UNARY, Conv, Eltwise
from instances.zoo import GENERATORS
from instances.zoo.classic import yolov2
from instances.zoo.deep import bert_base_encoder, resnet, resnet50, resnet152

#: name -> (GMAC, its tolerance, parameters in millions, tolerance); the tolerance is half of the last published digit.
PUBLISHED = {
    "lenet5": (0.00042, 5e-6, 0.061706, 5e-7),  # parameters: the usual dense-C3 count; LeCun 1998 says "60,000"
    "alexnet": (0.71, 5e-3, 61.100840, 5e-7),  # torchvision
    "vgg16": (15.47, 5e-3, 138.357544, 5e-7),  # torchvision
    "squeezenet1_0": (0.82, 5e-3, 1.248424, 5e-7),  # torchvision
    "squeezenet1_1": (0.35, 5e-3, 1.235496, 5e-7),  # torchvision
    "mobilenet_v1": (0.569, 5e-4, 4.23, 5e-3),  # Howard et al., Table 4: 569 million, 4.2 million
    "mobilenet_v1_050": (0.149, 5e-4, 1.3, 5e-2),  # Howard et al., Table 6: 149 million, 1.3 million
    "mobilenet_v1_025": (0.041, 5e-4, 0.5, 5e-2),  # Howard et al., Table 6: 41 million, 0.5 million
    "fd_mobilenet": (0.144, 5e-4, 2.9, 5e-2),  # Qin et al., Table 2: 144 MFLOPs; parameters counted here
    "shufflenet_1x": (0.137, 5e-4, 1.87, 5e-2),  # Zhang et al., Table 2: 137 MFLOPs; parameters counted here
    "shufflenet_2x": (0.524, 5e-4, 5.45, 5e-2),  # Zhang et al., Table 5: 524 MFLOPs; parameters counted here
    "xception": (8.36, 5e-3, 22.855952, 5e-7),  # Chollet, Table 3: 22,855,952
    "efficientnet_lite0": (0.385, 5e-4, 4.652008, 5e-7),  # timm: 4,652,008; MACs counted here, at 224x224
    "mobilenet_v2": (0.3008, 5e-5, 3.504872, 5e-7),  # Sandler et al., Table 4: 300M; torchvision
    "resnet50": (4.09, 5e-3, 25.557032, 5e-7),  # torchvision
    "resnet50_v1": (3.86, 5e-3, 25.557032, 5e-7),  # He et al., Table 1: 3.8e9 (rounded down)
    "resnet152": (11.51, 5e-3, 60.192808, 5e-7),  # torchvision
    "wide_resnet50_2": (11.4, 5e-2, 68.883240, 5e-7),  # torchvision
    "inception_v3": (5.71, 5e-3, 23.834568, 5e-7),  # torchvision, 27.161264 M with the auxiliary head
    "densenet121": (2.83, 5e-3, 7.978856, 5e-7),  # torchvision
    "densenet40_k12": (0.265, 5e-4, 1.0, 5e-2),  # Huang et al., Table 2: 1.0M
    "bert_base_encoder": (11.17, 5e-3, 85.054464, 5e-7),  # 110 M less 23.8 M of embeddings and 0.6 M of the pooler
    "flownet_s": (12.07, 5e-3, 24.050752, 5e-7),  # see test_flownet_weights
}


@pytest.mark.slow(2)
def test_files_equal_their_generators() -> None:
    """``python -m instances.zoo`` would change nothing."""
    folder = resources.files("instances") / "networks"
    assert sorted(list_networks()) == sorted(GENERATORS)
    for name, generate in GENERATORS.items():
        network = generate()
        assert network.name == name
        assert (folder / f"{name}.json").read_text(encoding="utf-8") == network_to_json(network), name
        assert load_network(name) == network


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_totals(name: str) -> None:
    network = load_network(name)
    gmac, gmac_digit, millions, parameter_digit = PUBLISHED[name]
    assert abs(network.macs / 1e9 - gmac) <= gmac_digit
    assert abs(network.parameters / 1e6 - millions) <= parameter_digit
    assert network.opaque == ()


def test_every_network_has_a_description() -> None:
    assert all(list_networks().values())


def test_resnet_stride_variants() -> None:
    """The two differ only in which convolution of a block strides, hence in MACs but not in parameters."""
    v15, v1 = load_network("resnet50"), load_network("resnet50_v1")
    assert [x.name for x in v15.layers] == [x.name for x in v1.layers]
    assert (v15.layer("layer2.0.conv1").r, v15.layer("layer2.0.conv2").stride_h) == (56, 2)
    assert (v1.layer("layer2.0.conv1").r, v1.layer("layer2.0.conv1").stride_h) == (28, 2)
    assert len(v15.conv_layers) == 54  # 53 convolutions and the classifier


def test_inception_fifth_convolution() -> None:
    """`tso_burst_slicing` section VI: 80 maps of 73x73, 192 filters of 80x3x3."""
    layer = load_network("inception_v3").conv_layers[4]
    assert layer.name == "Conv2d_4a_3x3"
    assert (layer.n, layer.h, layer.l, layer.m, layer.kh, layer.kw) == (80, 73, 73, 192, 3, 3)
    assert (layer.r, layer.c) == (71, 71)


def test_flownet_weights() -> None:
    """`optimal_tiling_dma` section 2.2: "the total size of weights and biases .. approximately 96 MBytes".

    24,050,752 float32 numbers are 96.2 million bytes, which is 96 MB with MB = 10**6 bytes (91.7 MiB).
    """
    network = load_network("flownet_s")
    assert 4 * network.parameters == 96_203_008
    names = "conv_1 conv_2 conv_3 conv_3.1 conv_4 conv_4.1 conv_5 conv_5.1 conv_6 conv_6.1".split()
    assert [x.name for x in network.layers] == names
    assert network.operators[-1].shape == (1, 1024, 6, 8)  # 384x512 halved six times


def test_tiny_yolo_is_table_3_3() -> None:
    """Output sizes and channels of `heterogeneous_mapping_and_banks` Table 3.3, row by row."""
    sizes = [(x.kind, x.g * x.m, x.r) for x in load_network("tiny_yolo").layers]
    rows = [(16, 416, 208), (32, 208, 104), (64, 104, 52), (128, 52, 26), (256, 26, 13), (512, 13, 13)]
    expected = [row for m, conv, pool in rows for row in (("conv", m, conv), ("pool", m, pool))]
    assert sizes == [*expected, ("conv", 1024, 13), ("conv", 1024, 13), ("conv", 1025, 13)]


def test_yolov2_operations_and_weights() -> None:
    """darknet: 62.94 billion operations (two a MAC) at 608x608; yolov2.weights holds 50,983,561 numbers for COCO.

    The file also holds a running mean and variance per normalised filter, which are not trained.
    """
    assert round(2 * yolov2(608).macs / 1e9, 2) == 62.94
    network = load_network("yolov2")
    normed = sum(o.filters for o in network.operators if isinstance(o, Conv) and o.batch_norm)
    assert network.parameters + 2 * normed == 50_983_561


def test_srcnn_and_espcn_weights() -> None:
    srcnn, espcn = load_network("srcnn"), load_network("espcn")
    # Dong et al.: 9*9*64 + 64*32 + 5*5*32 = 8,032 weights; 97 biases
    assert srcnn.parameters == 8032 + 97
    assert srcnn.macs == 8032 * 256 * 256
    # Shi et al.: 5*5*64 + 3*3*64*32 + 3*3*32*9 = 22,624 weights, 105 biases; every tap once per low-resolution pixel
    assert espcn.parameters == 22624 + 105
    assert espcn.macs == 22624 * 360 * 640
    assert espcn.operators[-1].shape == (1, 1, 1080, 1920)


def test_bert_layers() -> None:
    network = load_network("bert_base_encoder")
    # A layer: 4 projections of 768x768, two of 768x3072, biases, two norms of 2x768.
    assert network.parameters == 12 * (4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768)
    scores = network.layer("layer0.scores")
    assert (scores.g, scores.r, scores.n, scores.m, scores.weights) == (12, 128, 64, 128, "activation")
    assert network.layer("layer0.query").r == 128
    assert len(bert_base_encoder(16).layers) == len(network.layers)


def test_peer_layers() -> None:
    """The peer layers a to e, MACs worked out by hand."""
    layers = {x.name: x for x in load_network("peer_layers").layers}
    assert sorted(layers) == ["a", "b", "c", "d", "e"]
    assert layers["a"].macs == 56 * 56 * 64 * 64 * 9
    assert layers["b"].macs == 14 * 14 * 256 * 1024
    assert layers["c"].macs == 71 * 71 * 80 * 192 * 9
    assert layers["d"].macs == 224 * 224 * 64 * 64 * 9
    assert layers["e"].macs == 56 * 56 * 96 * 9
    assert (layers["e"].g, layers["e"].m, layers["e"].n) == (96, 1, 1)
    assert not any(x.bias for x in layers.values())


@pytest.mark.parametrize(
    ("name", "tasks"), [("squeezenet1_1", 40), ("mobilenet_v1", 31), ("mobilenet_v2", 67), ("densenet40", 64)]
)
def test_layers_of_table_3_13(name: str, tasks: int) -> None:
    """`heterogeneous_mapping_and_banks` Table 3.13 counts operators with activations and norms fused, softmax apart."""
    fused = UNARY - {"softmax"}
    operators = load_network(name).operators
    assert sum(not (isinstance(o, Eltwise) and o.fn in fused) for o in operators) == tasks


def test_regeneration_writes_every_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """``python -m instances.zoo``, with the writing taken out."""
    module = importlib.import_module("instances.zoo.__main__")
    written: dict[str, str] = {}
    monkeypatch.setattr(module, "dump_network", lambda network, path: written.update({path.name: network.name}))
    module.main()
    assert written == {f"{name}.json": name for name in GENERATORS}


def test_a_generated_network_takes_a_batch() -> None:
    for name in ("bert_base_encoder", "inception_v3", "yolov2"):
        network = load_network(name)
        assert load_network(name, batch=3).macs == 3 * network.macs


@pytest.mark.parametrize(
    ("depth", "gmac", "parameters"), [(18, 1.814, 11_689_512), (34, 3.664, 21_797_672), (101, 7.801, 44_549_160)]
)
def test_resnets_by_depth(depth: int, gmac: float, parameters: int) -> None:
    """Torchvision's totals; depths 50 and 152 are bundled."""
    network = resnet(depth)
    assert round(network.macs / 1e9, 3) == gmac
    assert network.parameters == parameters
    assert (resnet(50).operators, resnet(152).operators) == (resnet50().operators, resnet152().operators)

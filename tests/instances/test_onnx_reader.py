"""The ONNX reader: the models of the onnx wheel, small models built here, and bad files."""

from __future__ import annotations

import importlib.util
import logging
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from instances.errors import InputError
from instances.load import dump_network, load_network
from instances.network.network import Network
from instances.network.operators import Conv, Eltwise, Reshape
from instances.onnx.reader import read_onnx
from solver.cli.main import main

FLOAT = TensorProto.FLOAT


def light(name: str) -> Path:
    """Return one of the models that the onnx wheel carries for its own tests."""
    spec = importlib.util.find_spec("onnx")
    assert spec.origin is not None
    return Path(spec.origin).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"


def signatures(network: Network) -> Counter[tuple[object, ...]]:
    """Count the layers by everything but their names, biases aside (a folded batch norm is one)."""
    return Counter(x.model_copy(update={"bias": False}).signature() for x in network.layers)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("resnet50", "resnet50"),  # the stride is in the 3x3, as in torchvision
        ("squeezenet", "squeezenet1_1"),  # version 1.1: 64 filters of 3x3 first
        ("densenet121", "densenet121"),
        ("bvlc_alexnet", "alexnet_caffe"),  # two groups; torchvision's AlexNet is another network
    ],
)
def test_models_of_the_onnx_wheel_agree_with_the_bundled_networks(file: str, name: str) -> None:
    read, ours = read_onnx(light(file)), load_network(name)
    assert read.macs == ours.macs
    assert read.parameters == ours.parameters
    assert read.opaque == ()
    if file == "densenet121":  # its classifier is a 1x1 convolution, ours a fully connected layer
        assert [x.macs for x in read.conv_layers] == [x.macs for x in ours.conv_layers]
        read = Network(name="x", operators=read.operators[:-1])
        ours = Network(name="x", operators=tuple(o for o in ours.operators if o.name not in ("fc", "fc.softmax")))
    if file == "bvlc_alexnet":  # the last pooling: padding at the end instead of ceil mode, the same windows
        assert [x.signature() for x in read.layers] == [x.signature() for x in ours.layers]
    assert signatures(read) == signatures(ours)


@pytest.mark.parametrize(
    ("file", "macs", "parameters"),
    [
        ("vgg19", 19_632_062_464, 143_667_240),  # torchvision: 19.63 G, 143.667 M
        ("inception_v1", 1_431_556_352, 6_998_552),  # GoogLeNet: 7.0 M without auxiliary heads
        ("inception_v2", 2_018_851_840, 11_194_984),
        ("shufflenet", 124_664_528, 1_393_320),
        ("zfnet512", 1_481_727_008, 87_250_536),
    ],
)
def test_the_other_models_of_the_onnx_wheel(file: str, macs: int, parameters: int) -> None:
    network = read_onnx(light(file))
    assert (network.macs, network.parameters, network.opaque) == (macs, parameters, ())


def test_vgg19_holds_every_layer_of_vgg16() -> None:
    assert not signatures(load_network("vgg16")) - signatures(read_onnx(light("vgg19")))


def test_read_write_read(tmp_path: Path) -> None:
    network = load_network(light("shufflenet"))
    dump_network(network, tmp_path / "net.json")
    assert load_network(tmp_path / "net.json") == network


# --- models built here -------------------------------------------------------------------------------------------


class Model:
    """Collects nodes and constants; `read` writes the file and reads it back as a network."""

    def __init__(self, *shape: int | str, opset: int = 17) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs = [helper.make_tensor_value_info("x", FLOAT, shape)]
        self.outputs: list[onnx.ValueInfoProto] = []
        self.infos: list[onnx.ValueInfoProto] = []
        self.opset = opset
        self.domains: list[str] = []

    def constant(self, name: str, *shape: int, value: object = None) -> str:
        array = np.zeros(shape, np.float32) if value is None else np.asarray(value)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op: str, inputs: str, output: str, domain: str = "", **attributes: object) -> str:
        name = str(attributes.pop("name", ""))
        outputs = output.split(",")
        made = helper.make_node(op, inputs.split(","), outputs, name=name or None, domain=domain, **attributes)
        self.nodes.append(made)
        return outputs[0]

    def proto(self) -> onnx.ModelProto:
        outputs = self.outputs
        if not outputs and self.nodes:
            outputs = [helper.make_tensor_value_info(self.nodes[-1].output[0], FLOAT, None)]
        graph = helper.make_graph(self.nodes, "g", self.inputs, outputs, self.constants, value_info=self.infos)
        opsets = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, 1) for d in self.domains)]
        return helper.make_model(graph, opset_imports=opsets)

    def read(self, folder: Path, **options: object) -> Network:
        path = folder / "model.onnx"
        onnx.save(self.proto(), path)
        return read_onnx(path, **options)


def test_conv_attributes(tmp_path: Path) -> None:
    m = Model(2, 4, 9, 11)
    m.constant("w", 6, 2, 3, 5)
    m.constant("b", 6)
    m.node("Conv", "x,w,b", "y", group=2, strides=[2, 1], pads=[1, 2, 0, 2], dilations=[2, 1], name="conv/a")
    op = m.read(tmp_path).operators[1]
    assert (op.name, op.filters, op.kernel, op.stride, op.pad) == ("conv/a", 6, (3, 5), (2, 1), (1, 2, 0, 2))
    assert (op.dilation, op.groups, op.bias, op.inputs) == ((2, 1), 2, True, ("x",))
    # rows (9+1-5)//2+1 = 3, columns 11+4-5+1 = 11
    assert op.shape == (2, 6, 3, 11)


@pytest.mark.parametrize(
    ("mode", "pad", "size"),
    [("SAME_UPPER", (0, 1, 1, 2), (4, 4)), ("SAME_LOWER", (1, 2, 0, 1), (4, 4)), ("VALID", (0, 0, 0, 0), (3, 2))],
)
def test_auto_pad(tmp_path: Path, mode: str, pad: tuple[int, ...], size: tuple[int, int]) -> None:
    m = Model(1, 1, 8, 8)
    m.constant("w", 1, 1, 3, 3)
    # SAME: (4-1)*2+3-8 = 1 row of padding; taps of columns lie apart: 3 columns
    m.node("Conv", "x,w", "y", strides=[2, 2], dilations=[1, 2], auto_pad=mode)
    op = m.read(tmp_path).operators[1]
    assert (op.pad, op.shape) == (pad, (1, 1, *size))


def test_batch_norm_folds_into_its_convolution_only(tmp_path: Path) -> None:
    m = Model(1, 2, 4, 4)
    m.constant("w", 2, 2, 1, 1)
    m.constant("s", 2)
    m.node("Conv", "x,w", "a", name="c1")
    m.node("BatchNormalization", "a,s,s,s,s", "b", name="bn1")
    m.node("Conv", "b,w", "c", name="c2")
    m.node("BatchNormalization", "c,s,s,s,s", "d", name="bn2")
    m.node("Add", "c,d", "e", name="sum")  # c has a second reader, so bn2 stays
    net = m.read(tmp_path)
    assert [(o.name, o.op) for o in net.operators] == [
        ("x", "input"), ("c1", "conv"), ("c2", "conv"), ("bn2", "eltwise"), ("sum", "eltwise"),
    ]  # fmt: skip
    c1, c2 = net.operator("c1"), net.operator("c2")
    assert (c1.batch_norm, c2.batch_norm) == (True, False)
    assert net.parameters == 4 + 4  # one tensor for both convolutions, one for all of both batch norms


def test_constant_addends_become_biases(tmp_path: Path) -> None:
    m = Model(1, 3, 8)
    m.constant("w", 8, 5)
    m.constant("b", 5)
    m.node("MatMul", "x,w", "a", name="fc")
    m.node("Add", "b,a", "y", name="bias")
    net = m.read(tmp_path)
    fc = net.operator("fc")
    assert (fc.bias, fc.out_features, len(net.operators), net.parameters) == (True, 5, 2, 45)


def test_a_scalar_is_not_folded(tmp_path: Path) -> None:
    m = Model(1, 3, 8)
    m.constant("w", 8, 5)
    m.constant("k", value=np.float32(2))
    m.node("MatMul", "x,w", "a", name="fc")
    m.node("Div", "a,k", "y", name="scale")
    net = m.read(tmp_path)
    assert [o.op for o in net.operators] == ["input", "matmul", "eltwise"]
    assert net.parameters == 40


def test_gemm_and_products_of_activations(tmp_path: Path) -> None:
    m = Model(2, 8)
    m.constant("w", 5, 8)
    m.constant("b", 5)
    m.node("Gemm", "x,w,b", "y", transB=1, name="fc")
    m.node("Gemm", "y,y", "z", transA=1, name="gram")
    net = m.read(tmp_path)
    assert net.operator("fc").shape == (2, 5)
    gram = net.operator("gram")
    assert (gram.shape, gram.inputs, gram.transpose_a) == ((5, 5), ("fc", "fc"), True)
    assert net.layer("gram").weights == "activation"


def test_zero_padding_folds_into_the_convolution_behind_it(tmp_path: Path) -> None:
    m = Model(1, 1, 8, 8)
    m.constant("w", 1, 1, 3, 3)
    m.constant("p", value=np.array([0, 0, 0, 0, 0, 0, 1, 1], np.int64))
    m.node("Pad", "x,p", "a", name="pad")
    m.node("Conv", "a,w", "y", strides=[2, 2], name="c")
    net = m.read(tmp_path)
    conv = net.operator("c")
    assert (conv.pad, conv.inputs, len(net.operators)) == ((0, 0, 1, 1), ("x",), 2)


@pytest.mark.parametrize("pads", [[0, 0, 3, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0]])
def test_padding_that_cannot_fold_stays(tmp_path: Path, pads: list[int]) -> None:
    m = Model(1, 1, 8, 8)
    m.constant("w", 1, 1 + pads[1], 3, 3)
    m.constant("p", value=np.array(pads, np.int64))
    m.node("Pad", "x,p", "a", name="pad")
    m.node("Conv", "a,w", "y", name="c")
    net = m.read(tmp_path)
    assert [o.op for o in net.operators] == ["input", "reshape", "conv"]


def test_pools(tmp_path: Path) -> None:
    m = Model(1, 2, 8, 8)
    m.node("MaxPool", "x", "a", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, name="max")
    m.node("AveragePool", "a", "b", kernel_shape=[2, 2], name="avg")
    m.node("GlobalMaxPool", "b", "c", name="gmax")
    m.constant("axes", value=np.array([-1, -2], np.int64))
    m.node("ReduceMean", "b,axes", "d", keepdims=0, name="mean")
    m.outputs = [helper.make_tensor_value_info(t, FLOAT, None) for t in "cd"]
    m.opset = 18
    net = m.read(tmp_path)
    assert [(x.name, x.r) for x in net.layers] == [("max", 4), ("avg", 3), ("gmax", 1), ("mean", 1)]
    mean = net.operator("mean")
    assert (mean.fn, net.operator("mean:out").shape) == ("global_avg", (1, 2))


def test_one_dimensional_convolutions_get_a_row(tmp_path: Path) -> None:
    m = Model(1, 4, 20)
    m.constant("w", 8, 4, 3)
    m.constant("s", 8)
    m.node("Conv", "x,w", "a", strides=[2], pads=[1, 1], name="c")
    m.node("BatchNormalization", "a,s,s,s,s", "b", name="bn")
    m.node("MaxPool", "b", "y", kernel_shape=[2], strides=[2], name="p")
    net = m.read(tmp_path)
    layer = net.layer("c")
    assert (layer.r, layer.c, layer.kh, layer.kw) == (1, 10, 1, 3)
    assert (layer.stride_w, layer.pad_left, layer.bias) == (2, 1, True)
    assert net.operators[-1].shape == (1, 8, 5)
    assert [o.op for o in net.operators].count("reshape") == 4


def test_what_is_not_planned_is_kept_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    m = Model(1, 2, 4, 4, 4, 4)
    m.constant("w", 3, 2, 3, 3, 3, 3)
    m.node("Conv", "x,w", "a", name="conv4d")
    m.node("Relu", "a", "b", name="r")
    with caplog.at_level(logging.WARNING):
        net = m.read(tmp_path)
    assert [(o.name, o.kind, o.parameters, o.shape) for o in net.opaque] == [
        ("conv4d", "Conv", 486, (1, 3, 2, 2, 2, 2))
    ]
    assert "1 operators are kept as opaque and not planned: Conv x1" in caplog.text
    assert net.operator("r").shape == (1, 3, 2, 2, 2, 2)


def test_custom_operators_are_opaque(tmp_path: Path) -> None:
    m = Model(1, 2, 4, 4)
    m.constant("w", 2, 3, 2, 2)
    m.node("ConvTranspose", "x,w", "a", strides=[2, 2], name="up")
    m.node("Magic", "a", "b", domain="acme", name="magic")
    m.node("Relu", "b", "c", name="after")
    m.domains = ["acme"]
    net = m.read(tmp_path)
    magic, after = net.opaque
    assert net.operator(magic.inputs[0]).shape == (1, 3, 8, 8)  # the transposed convolution is planned
    assert (magic.kind, magic.dynamic) == ("acme.Magic", True)
    assert (after.kind, after.dynamic) == ("Relu", True)  # nothing is known behind an unknown shape


def test_a_stated_shape_goes_on_behind_a_custom_operator(tmp_path: Path) -> None:
    m = Model(1, 2, 4, 4)
    m.node("Magic", "x", "b", domain="acme", name="magic")
    m.node("Relu", "b", "c", name="after")
    m.domains = ["acme"]
    m.infos = [helper.make_tensor_value_info("b", FLOAT, (1, 7))]
    net = m.read(tmp_path)
    assert net.operator("after").shape == (1, 7)
    assert [o.dynamic for o in net.opaque] == [False]


def test_shape_arithmetic_is_folded(tmp_path: Path) -> None:
    """The usual export of ``x.view(x.size(0), -1)``, through a division that shape inference alone does not follow."""
    m = Model("N", 6, 4, 4)
    for name, value in (("zero", 0), ("two", 2), ("minus", -1)):
        m.constant(name, value=np.array([value], np.int64))
    m.node("Shape", "x", "s")
    m.node("Gather", "s,zero", "n")
    m.node("Mul", "n,two", "n2")
    m.node("Div", "n2,two", "n1")
    m.node("Concat", "n1,minus", "t", axis=0)
    m.node("Reshape", "x,t", "y", name="view")
    m.node("Shape", "x", "rows", start=2, end=3)
    m.node("Concat", "n1,minus,rows", "u", axis=0)
    m.node("Reshape", "y,u", "z", name="back")
    net = m.read(tmp_path, batch=3)
    shapes = [("x", (3, 6, 4, 4)), ("view", (3, 96)), ("back", (3, 24, 4))]
    assert [(o.name, o.shape) for o in net.operators] == shapes


def test_symbols(tmp_path: Path) -> None:
    m = Model("N", "seq", 8)
    m.node("Softmax", "x", "y", name="s")
    assert m.read(tmp_path, symbols={"seq": 5}).operator("s").shape == (1, 5, 8)
    assert m.read(tmp_path, batch=2, symbols={"seq": 5}).operator("s").shape == (2, 5, 8)
    assert m.read(tmp_path, batch=2, symbols={"seq": 5, "N": 3}).operators[0].shape == (2, 5, 8)  # rescaled
    unnamed = Model("N", None, 8)
    unnamed.node("Softmax", "x", "y", name="s")
    assert unnamed.read(tmp_path, symbols={"x[1]": 4}).operator("s").shape == (1, 4, 8)


def test_a_fixed_batch_is_rescaled(tmp_path: Path) -> None:
    m = Model(1, 2, 4, 4)
    m.constant("w", 2, 2, 1, 1)
    m.node("Conv", "x,w", "y", name="c")
    assert m.read(tmp_path, batch=6).layer("c").b == 6


def test_names_are_made_unique_and_printable(tmp_path: Path) -> None:
    m = Model(1, 8)
    m.node("Relu", "x", "a", name="same")
    m.node("Relu", "a", "b", name="same")
    m.node("Relu", "b", "c\td")
    m.node("Relu", "c\td", "e", name="x")
    assert [o.name for o in m.read(tmp_path).operators] == ["x", "same", "same_2", "c_d", "x_2"]


def test_nodes_in_any_order(tmp_path: Path) -> None:
    m = Model(1, 8)
    m.node("Relu", "a", "b", name="second")
    m.node("Sigmoid", "x", "a", name="first")
    m.outputs = [helper.make_tensor_value_info("b", FLOAT, None)]
    assert [o.name for o in m.read(tmp_path).operators] == ["x", "first", "second"]


def test_splits_slices_and_concatenations(tmp_path: Path) -> None:
    m = Model(1, 6, 4, 4)
    m.constant("parts", value=np.array([2, 4], np.int64))
    m.node("Split", "x,parts", "a,b", axis=1, name="split")
    m.node("Concat", "b,a", "y", axis=-3, name="join")
    net = m.read(tmp_path)
    assert [(o.name, o.shape) for o in net.operators[1:3]] == [("split:0", (1, 2, 4, 4)), ("split:1", (1, 4, 4, 4))]
    assert net.operator("join").inputs == ("split:1", "split:0")


def test_quantised_operators(tmp_path: Path) -> None:
    m = Model(1, 2, 4, 4)
    m.inputs = [helper.make_tensor_value_info("x", TensorProto.UINT8, (1, 2, 4, 4))]
    m.constant("s", value=np.float32(1))
    m.constant("z", value=np.uint8(0))
    m.constant("w", value=np.zeros((3, 2, 3, 3), np.uint8))
    m.constant("b", value=np.zeros(3, np.int32))
    m.node("QLinearConv", "x,s,z,w,s,z,s,z,b", "y", name="qc")
    m.node("DequantizeLinear", "y,s,z", "f", name="dq")
    m.node("QuantizeLinear", "f,s,z", "q", name="q")
    m.node("ConvInteger", "q,w2,z", "i", name="ci")
    m.constant("w2", value=np.zeros((1, 3, 1, 1), np.uint8))
    net = m.read(tmp_path)
    assert [x.name for x in net.conv_layers] == ["qc", "ci"]
    assert net.parameters == 54 + 3 + 3
    assert [o.fn for o in net.operators if isinstance(o, Eltwise)] == ["dequantize", "quantize"]


def test_weights_made_by_nodes_and_dequantised_weights(tmp_path: Path) -> None:
    m = Model(1, 2, 4, 4)
    m.constant("q", value=np.zeros((3, 2, 3, 3), np.int8))
    m.constant("s", value=np.float32(1))
    m.node("DequantizeLinear", "q,s", "w")
    m.node("Conv", "x,w", "y", name="c")
    net = m.read(tmp_path)
    assert [o.name for o in net.operators] == ["x", "c"]
    assert net.parameters == 54


def test_normalisation_and_embedding(tmp_path: Path) -> None:
    m = Model(1, 5)
    m.inputs = [helper.make_tensor_value_info("x", TensorProto.INT64, (1, 5))]
    m.constant("table", 100, 8)
    m.constant("g", 8)
    m.node("Gather", "table,x", "e", name="embed")
    m.node("LayerNormalization", "e,g,g", "y", name="norm")
    net = m.read(tmp_path)
    assert [(o.kind, o.parameters, o.shape) for o in net.opaque] == [("Gather", 800, (1, 5, 8))]
    assert net.parameters == 816


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Conv", "x,x", {}),  # weights that depend on the input
        ("Conv", "x,w4,bias", {}),  # a bias that depends on the input
        ("Gather", "v,i", {}),
        ("Clip", "v,k", {}),
    ],
)
def test_forms_that_are_not_planned_stay_opaque(
    tmp_path: Path, op: str, inputs: str, attributes: dict[str, object]
) -> None:
    m = Model(4, 4, 4, 4, opset=13)
    m.inputs += [
        helper.make_tensor_value_info("v", FLOAT, (4, 4)),
        helper.make_tensor_value_info("v5", FLOAT, (1, 1, 4, 4, 4)),
        helper.make_tensor_value_info("k", FLOAT, ()),
        helper.make_tensor_value_info("i", TensorProto.INT64, (2,)),
    ]
    m.inputs.append(helper.make_tensor_value_info("bias", FLOAT, (4,)))
    m.constant("w4", 4, 4, 1, 1)
    m.constant("two", value=np.array([2, 2], np.int64))
    m.constant("big", value=np.array([3, 4, 4], np.int64))
    m.node(op, inputs, "y", name="odd", **attributes)
    net = m.read(tmp_path)
    assert [(o.name, o.kind) for o in net.opaque] == [("odd", op)]


def test_integer_products(tmp_path: Path) -> None:
    m = Model(1, 8)
    m.inputs = [helper.make_tensor_value_info("x", TensorProto.UINT8, (1, 8))]
    m.constant("s", value=np.float32(1))
    m.constant("z", value=np.uint8(0))
    m.constant("w", value=np.zeros((8, 5), np.uint8))
    m.constant("v", value=np.zeros((5, 3), np.uint8))
    m.node("QLinearMatMul", "x,s,z,w,s,z,s,z", "y", name="first")
    m.node("MatMulInteger", "y,v", "i", name="second")
    assert [(x.name, x.n, x.m) for x in m.read(tmp_path).conv_layers] == [("first", 8, 5), ("second", 5, 3)]


def test_operators_that_change_nothing(tmp_path: Path) -> None:
    m = Model(1, 2, 4, 4)
    m.constant("none", value=np.zeros(8, np.int64))
    m.constant("one", value=np.ones(4, np.int64))
    m.constant("first", value=np.array(0, np.int64))
    m.node("Pad", "x,none", "a", name="pad")
    m.node("Tile", "a,one", "b", name="tile")
    m.node("Dropout", "b", "c", name="drop")
    m.node("Gather", "c,first", "d", axis=1, name="gather")
    m.node("Transpose", "d", "y", perm=[0, 2, 1], name="t")
    made = [(o.name, o.fn, o.shape) for o in m.read(tmp_path).operators if isinstance(o, Reshape)]
    assert made == [
        ("pad", "identity", (1, 2, 4, 4)),
        ("tile", "slice", (1, 2, 4, 4)),
        ("drop", "identity", (1, 2, 4, 4)),
        ("gather", "slice", (1, 4, 4)),
        ("t", "transpose", (1, 4, 4)),
    ]


@pytest.mark.parametrize(("axes", "opset", "pooled"), [
    (None, 13, (1, 1, 24, 4)),  # all of them
    ([1], 13, (1, 16, 1, 6)), ([1, 2], 18, (1, 4, 6, 4)),
])  # fmt: skip
def test_reductions(tmp_path: Path, axes: list[int] | None, opset: int, pooled: tuple[int, ...]) -> None:
    m = Model(1, 6, 4, 4, opset=opset)
    if axes and opset >= 18:
        m.constant("axes", value=np.array(axes, np.int64))
        m.node("ReduceMean", "x,axes", "y", name="mean")
    else:
        m.node("ReduceMean", "x", "y", name="mean", **({"axes": axes} if axes else {}))
    network = m.read(tmp_path)
    (layer,) = network.layers
    assert network.opaque == ()
    assert (layer.b, layer.g, layer.h, layer.l) == pooled
    assert network.operators[-1].shape == tuple(
        1 if axes is None or k in axes else n for k, n in enumerate((1, 6, 4, 4))
    )


def test_a_reduction_over_no_axes(tmp_path: Path) -> None:
    m = Model(1, 6, 4, 4, opset=18)
    m.node("ReduceMean", "x", "a", name="mean", noop_with_empty_axes=1)
    m.node("Relu", "a", "y", name="relu")
    assert m.read(tmp_path).operator("relu").inputs == ("x",)


def test_pads_of_some_axes(tmp_path: Path) -> None:
    m = Model(1, 2, 4, 4, opset=18)
    m.constant("pads", value=np.array([1, 0, 0, 2], np.int64))
    m.constant("axes", value=np.array([-1, 2], np.int64))
    m.constant("w", 3, 2, 3, 3)
    m.node("Pad", "x,pads,,axes", "a", name="pad")
    m.node("Conv", "a,w", "y", name="conv")
    (conv,) = [o for o in m.read(tmp_path).operators if isinstance(o, Conv)]
    assert (conv.pad, conv.shape) == ((0, 1, 2, 0), (1, 3, 4, 3))  # two rows below, a column to the left


def test_parts_without_elements(tmp_path: Path) -> None:
    m = Model(2, 4)
    m.constant("none", 0, 4)
    m.node("Concat", "none,x", "y", name="both", axis=0)
    assert m.read(tmp_path).operator("both").inputs == ("x",)


# --- nothing vanishes ----------------------------------------------------------------------------------------------


def test_convolutions_of_constant_maps_are_planned(tmp_path: Path) -> None:
    """As in RAFT: the first flow is a difference of two constant grids, and two convolutions look at it."""
    m = Model(1, 4, 6, 5)
    m.constant("grid", 1, 2, 6, 5)
    m.constant("start", 1, 2, 6, 5)
    m.constant("w1", 8, 2, 3, 3)
    m.constant("w2", 4, 8, 3, 3)
    m.node("Sub", "grid,start", "flow")
    m.node("Conv", "flow,w1", "c1", name="convf1", pads=[1, 1, 1, 1])
    m.node("Relu", "c1", "r1")
    m.node("Conv", "r1,w2", "c2", name="convf2", pads=[1, 1, 1, 1])
    m.node("Add", "x,c2", "sum")
    network = m.read(tmp_path)
    assert {layer.name: layer.macs for layer in network.conv_layers} == {
        "convf1": 30 * 8 * 2 * 9, "convf2": 30 * 4 * 8 * 9,
    }  # fmt: skip
    assert network.opaque == ()
    assert network.operator("convf1").inputs == ("flow",)
    assert network.operator("flow").shape == (1, 2, 6, 5)
    assert network.operator("sum").inputs == ("x", "convf2")


def test_a_one_dimensional_convolution_of_a_constant_is_planned(tmp_path: Path) -> None:
    m = Model(1, 4, 7)
    m.constant("track", 1, 2, 7)
    m.constant("w", 4, 2, 3)
    m.node("Conv", "track,w", "c", name="conv", pads=[1, 1])
    m.node("Add", "x,c", "sum")
    assert [(layer.name, layer.macs) for layer in m.read(tmp_path).conv_layers] == [("conv", 7 * 4 * 2 * 3)]


def test_products_that_make_weights_are_left_out_with_a_word(tmp_path: Path) -> None:
    """W = A B is made once, before any inference; so is a kernel that a convolution of constants makes."""
    m = Model(2, 16)
    m.constant("a", 16, 4)
    m.constant("b", 4, 8)
    m.node("MatMul", "a,b", "w")
    m.node("MatMul", "x,w", "y", name="fc")
    network = m.read(tmp_path)
    assert [(layer.name, layer.macs) for layer in network.conv_layers] == [("fc", 2 * 8 * 16)]
    assert network.description.endswith(f"made of constants only and left out: MatMul x1 ({16 * 8 * 4} MACs)")

    m = Model(1, 2, 5, 5)
    m.constant("seed", 4, 2, 3, 3)
    m.constant("taps", 2, 2, 1, 1)
    m.node("Conv", "seed,taps", "kernel")
    m.node("Conv", "x,kernel", "y", name="conv")
    network = m.read(tmp_path)
    assert [layer.name for layer in network.conv_layers] == ["conv"]
    assert "left out: Conv x1 (144 MACs)" in network.description  # 4*2*3*3 results of 2 channels


def test_a_transposed_convolution_of_a_constant_is_planned(tmp_path: Path) -> None:
    m = Model(1, 2, 11, 11)
    m.constant("map", 1, 3, 5, 5)
    m.constant("w", 3, 2, 3, 3)
    m.node("ConvTranspose", "map,w", "up", name="up", strides=[2, 2])
    m.node("Add", "x,up", "sum")
    network = m.read(tmp_path)
    assert (network.opaque, network.macs) == ((), 25 * 3 * 2 * 9)


PAST = ((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 3), None, (1, 2, 2, 4), (1, 2, 2, 3))


@pytest.mark.parametrize(("op", "shapes", "fields", "left"), [
    # 5 steps of a batch of 2, 16 gates of 3 inputs and 4 states
    ("LSTM", ((5, 2, 3), (1, 16, 3), (1, 16, 4)), {"hidden_size": 4}, f"LSTM x1 ({5 * 2 * 16 * 7:,} MACs)"),
    ("Gemm", ((40, 60), (40, 50)), {"transA": 1}, f"Gemm x1 ({60 * 50 * 40:,} MACs)"),
    ("Einsum", ((20, 3), (3, 40), (40, 50)), {"equation": "ij,jk,kl->il"}, "Einsum x1 (240,000 MACs)"),
    # 5 keys and 2 of before meet 3 queries of 4 in 2 heads, and make 3 of each
    ("Attention", PAST, {}, f"Attention x1 ({7 * 2 * 3 * (4 + 3)} MACs)"),
    ("DFT", ((1, 8, 2),), {}, "DFT x1 (MACs not known)"), ("Relu", ((2, 3),), {}, ""),
])  # fmt: skip
def test_other_work_on_constants_is_left_out_with_a_word(
    op: str, shapes: tuple[tuple[int, ...] | None, ...], fields: dict[str, object], left: str, tmp_path: Path
) -> None:
    m = Model(2, shapes[0][op == "Gemm"], opset=23 if op == "Attention" else 17)
    names = [m.constant(f"c{k}", *shape) if shape else "" for k, shape in enumerate(shapes)]
    m.node(op, ",".join(names), "made", **fields)
    if op in ("Gemm", "Einsum"):  # a product that makes weights
        m.node("MatMul", "x,made", "y")
    else:
        m.node("Relu", "x", "y")
        m.outputs = [helper.make_tensor_value_info(name, FLOAT, None) for name in ("y", "made")]
    assert m.read(tmp_path).description.partition("left out: ")[2] == left


def test_a_convolution_of_constants_that_cannot_be_planned_is_named(tmp_path: Path) -> None:
    m = Model(1, 3, 2, 2, 2, 2)
    m.constant("volume", 1, 2, 2, 2, 2, 2)
    m.constant("w", 3, 2, 1, 1, 1, 1)
    m.node("Conv", "volume,w", "c", name="conv4d")
    m.node("Add", "x,c", "sum")
    (kept,) = m.read(tmp_path).opaque
    assert (kept.name, kept.kind, kept.macs) == ("conv4d", "Conv", 16 * 3 * 2)
    assert "dimension" in kept.reason


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "macs", "why"),
    [
        ("Einsum", "x,mix", {"equation": "bchw,de->bd"}, 4 * 6 * 6 * 4 * 5, "a sum over one operand alone"),
        ("Einsum", "x,mix", {"equation": "...hw,de->...d"}, 4 * 6 * 6 * 4 * 5, "a sum over one operand alone"),
        ("CumSum", "x,axis", {}, 0, "no conversion"),
    ],
)
def test_what_is_not_planned_says_why_and_how_much(
    tmp_path: Path, op: str, inputs: str, attributes: dict[str, object], macs: int, why: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    m = Model(1, 4, 6, 6)
    m.constant("w", 4, 4, 1, 1)
    m.constant("mix", 4, 5)
    m.constant("axis", value=np.array(1, np.int64))
    m.node("Conv", "x,w", "c", name="conv")
    m.node(op, inputs.replace("x,", "c,", 1), "y", name="odd", **attributes)
    network = m.read(tmp_path)
    (kept,) = network.opaque
    assert (kept.kind, kept.macs) == (op, macs)
    assert why in kept.reason
    assert network.macs == 36 * 16
    assert network.unplanned == f"{op} x1 ({macs:,} MACs)"
    assert why in network.warnings[0]
    onnx.save(m.proto(), tmp_path / "again.onnx")
    assert main(["import", str(tmp_path / "again.onnx"), "-o", str(tmp_path / "net.json")]) == 0
    said = capsys.readouterr().out
    assert f"576 MACs, {network.parameters} parameters; not planned: {op} x1 ({macs:,} MACs)" in said
    assert load_network(tmp_path / "net.json").opaque == (kept,)
    refused = ["import", str(tmp_path / "again.onnx"), "-o", str(tmp_path / "strict.json"), "--strict"]
    assert main(refused) == 2
    assert f"'odd' ({op})" in capsys.readouterr().err
    assert not (tmp_path / "strict.json").exists()


def test_work_inside_a_branch_is_not_known(tmp_path: Path) -> None:
    m = Model(1, 4)
    m.constant("w", 4, 4)
    m.node("MatMul", "x,w", "y")
    m.domains.append("my.domain")
    m.node("Mystery", "y", "z", domain="my.domain", name="odd")
    network = m.read(tmp_path)
    assert [o.macs for o in network.opaque] == [None]
    assert network.unplanned == "my.domain.Mystery x1 (MACs not known)"


def test_subgraphs_are_opaque_and_read_from_outside(tmp_path: Path) -> None:
    m = Model(1, 8)
    inner = [helper.make_tensor_value_info("o", FLOAT, (1, 8))]
    then = helper.make_graph([helper.make_node("Relu", ["a"], ["o"])], "t", [], inner)
    other = helper.make_graph([helper.make_node("Neg", ["a"], ["o"])], "e", [], inner)
    m.inputs.append(helper.make_tensor_value_info("cond", TensorProto.BOOL, (1,)))
    m.node("Relu", "x", "a", name="before")
    m.node("If", "cond", "y", name="choice", then_branch=then, else_branch=other)
    (choice,) = m.read(tmp_path).opaque
    assert (choice.kind, choice.inputs, choice.shape) == ("If", ("cond", "before"), (1, 8))
    assert (choice.macs, choice.reason) == (
            None, "it runs a graph, as often as the data say or more than 512 times: add --value cond=true",
        )  # fmt: skip


def test_weights_in_other_files_are_never_opened(tmp_path: Path) -> None:
    m = Model(1, 2, 4, 4)
    weights = TensorProto(name="w", data_type=FLOAT, dims=[2, 2, 1, 1], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value="../../etc/passwd")
    m.constants.append(weights)
    m.node("Conv", "x,w", "y", name="c")
    path = tmp_path / "model.onnx"
    path.write_bytes(m.proto().SerializeToString())
    assert read_onnx(path).parameters == 4


def test_huge_declared_weights_take_no_memory(tmp_path: Path) -> None:
    m = Model(1, 8)
    m.constants.append(TensorProto(name="w", data_type=FLOAT, dims=[8, 2**30]))
    m.node("MatMul", "x,w", "y", name="fc")
    path = tmp_path / "model.onnx"
    path.write_bytes(m.proto().SerializeToString())
    assert read_onnx(path).parameters == 2**33


def test_functions_of_the_model_are_expanded(tmp_path: Path) -> None:
    body = [helper.make_node("Relu", ["i"], ["m"]), helper.make_node("Sigmoid", ["m"], ["o"])]
    function = helper.make_function("acme", "Both", ["i"], ["o"], body, [helper.make_opsetid("", 17)])
    m = Model(1, 8)
    m.node("Both", "x", "y", domain="acme", name="both")
    m.domains = ["acme"]
    proto = m.proto()
    proto.functions.append(function)
    onnx.save(proto, tmp_path / "model.onnx")
    made = [o.fn for o in read_onnx(tmp_path / "model.onnx").operators if isinstance(o, Eltwise)]
    assert made == ["relu", "sigmoid"]


@pytest.mark.parametrize("opset", [7, 11, 13, 18, 23])
def test_opsets(tmp_path: Path, opset: int) -> None:
    m = Model(1, 2, 4, 4, opset=opset)
    m.constant("w", 2, 2, 3, 3)
    m.node("Conv", "x,w", "a", name="c")
    m.node("Flatten", "a", "y", name="f")
    net = m.read(tmp_path)
    flat = net.operator("f")
    assert flat.shape == (1, 8)


# --- bad files ---------------------------------------------------------------------------------------------------


#: Name -> model, options, what the message says.
BAD_MODELS: dict[str, tuple[Model, dict[str, object], str]] = {}


def bad(name: str, fragment: str, *shape: int | str, opset: int = 17, **options: object) -> Model:
    """Add a model to the table; the caller goes on to fill it."""
    m = Model(*(shape or (1, 2, 8, 8)), opset=opset)
    BAD_MODELS[name] = (m, options, fragment)
    return m


def bad_inputs_and_graphs() -> None:
    bad("no operators", "the graph has no operators")
    for opset in (6, 24):
        bad(f"opset {opset}", f"opset {opset}, supported are 7 to 23", opset=opset).node("Relu", "x", "y")
    bad("open size", "symbolic sizes 'h' are open", "N", 2, "h", 8).node("Relu", "x", "y")
    m = bad("unknown symbol", "no symbolic size is called 'hh'; it has N, h", "N", 2, "h", 8, symbols={"hh": 1, "h": 1})
    m.node("Relu", "x", "y")
    bad("symbol zero", "symbol h=0: a positive number", "N", 2, "h", 8, symbols={"h": 0}).node("Relu", "x", "y")
    bad("batch zero", "batch 0: a positive number", "N", 2, 8, 8, batch=0).node("Relu", "x", "y")
    bad("negative size", "input 'x' has the negative size -3 at axis 2", 1, 2, -3, 8).node("Relu", "x", "y")
    m = bad("no shape", "input 'x' has no shape: say it, such as --shape x=1,3,224,224")
    m.inputs = [helper.make_tensor_value_info("x", FLOAT, None)]
    m.node("Relu", "x", "y")
    m = bad("a sequence", "input 'x' is not a tensor with a shape")
    m.inputs = [helper.make_tensor_sequence_value_info("x", FLOAT, [1])]
    m.node("SequenceLength", "x", "y")
    m = bad("cycle", "the graph has a cycle: 'p' -> 'q' -> 'p'")
    m.node("Add", "x,b", "a", name="p")
    m.node("Relu", "a", "b", name="q")
    m = bad("produced twice", "tensor 'a' is produced by two operators")
    m.node("Relu", "x", "a")
    m.node("Neg", "x", "a")
    m = bad("nothing produces it", "tensor 'ghost' is used but nothing produces it")
    m.node("Add", "x,ghost", "y")
    m.infos = [helper.make_tensor_value_info("ghost", FLOAT, (1, 2, 8, 8))]


def bad_shapes() -> None:
    m = bad("channels", "weights for 3 channels, its input has 2")
    m.constant("w", 4, 3, 3, 3)
    m.node("Conv", "x,w", "y", name="c")
    m = bad("kernel beyond the map", "the kernel reaches over 9 elements, the padded map has 8")
    m.constant("w", 4, 2, 9, 9)
    m.node("Conv", "x,w", "y", name="c")
    m = bad("groups", "groups 2 must divide channels 2 and filters 3")
    m.constant("w", 3, 1, 1, 1)
    m.node("Conv", "x,w", "y", group=2, name="c")
    m = bad("features", "weights for 7 features, its input has shape (2, 8)", 2, 8)
    m.constant("w", 7, 5)
    m.node("MatMul", "x,w", "y", name="fc")
    m = bad("shape unknown before a conv", "'y' is missing and cannot be inferred (unknown since operator 'magic'")
    m.node("Magic", "x", "y", domain="acme", name="magic")
    m.domains = ["acme"]
    m.constant("w", 4, 2, 3, 3)
    m.node("Conv", "y,w", "z", name="c")
    m = bad("constants only", "holds constants only")
    m.constant("k", 3)
    m.node("Relu", "k", "y")
    m = bad("negative weights", "tensor 'w' has a negative size in its shape (4, -2, 3, 3)")
    m.constants.append(TensorProto(name="w", data_type=FLOAT, dims=[4, -2, 3, 3]))
    m.node("Conv", "x,w", "y", name="c")
    m = bad("size too large", "Input should be less than or equal to 2147483647", 1, 2**40)
    m.node("Relu", "x", "y", name="r")
    m = bad("pool without kernel", "kernel_shape is missing")
    m.node("MaxPool", "x", "y", name="p")
    m = bad("batch that does not scale", "cannot have batch 1: operator 'r': its leading dimension", 2, 3, batch=1)
    m.constant("s", value=np.array([3, 2], np.int64))
    m.node("Reshape", "x,s", "y", name="r")


bad_inputs_and_graphs()
bad_shapes()


@pytest.mark.parametrize("name", BAD_MODELS)
def test_bad_models(name: str, tmp_path: Path) -> None:
    model, options, fragment = BAD_MODELS[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(model.proto().SerializeToString())
    fails_with(fragment, path, **options)


def test_bad_bytes(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    fails_with("no such file", path)
    path.write_bytes(b"")
    fails_with("is empty", path)
    path.write_bytes(b"this is not a model")
    fails_with("cannot be decoded", path)
    path.write_bytes(light("squeezenet").read_bytes()[:5000])
    fails_with("cannot be decoded", path)
    path.write_bytes(onnx.ModelProto(ir_version=8).SerializeToString())
    fails_with("it holds no graph", path)
    no_opset = Model(1, 2)
    no_opset.node("Relu", "x", "y")
    proto = no_opset.proto()
    del proto.opset_import[:]
    path.write_bytes(proto.SerializeToString())
    fails_with("states no opset", path)
    named = Model(1, 2)
    named.node("Relu", "x", "y", name="NAME")
    path.write_bytes(named.proto().SerializeToString().replace(b"NAME", b"NA\xff\xfe"))
    fails_with("a name in the graph is not UTF-8 text", path)


def fails_with(fragment: str, path: Path, **options: object) -> None:
    with pytest.raises(InputError) as caught:
        read_onnx(path, **options)
    message = str(caught.value)
    assert fragment in message
    assert "\n" not in message

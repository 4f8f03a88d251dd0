"""C of the operators that become several, move elements or look at many: executed, and compared with onnxruntime."""

from __future__ import annotations

import random
import re
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.load import load_network
from instances.network.network import Network
from instances.network.operators import Conv, Input, Operator, Reshape
from instances.onnx.graph import Node
from instances.onnx.model import read_model
from solver.calls.solve import solve
from solver.uses.emit.emit import Compiled, compile_model
from solver.uses.emit.moves import FILLED, PICKS, picks
from tests.effort import THOROUGH, in_turn
from tests.emitted import BUILDS, BYTES, FLOATS, build_and_run
from tests.onnx_models import MODELS, model_of, saved
from tests.operator_models import KINDS, model
from tests.written import built, planned, text_model

STRICT = f"-O{int(THOROUGH)} -Wall -Wextra -Werror"
#: Models of 8 bits, and those that are refused, with a part of the reason.
QUANTISED = ("quantised",)
REFUSED = dict.fromkeys(("dynamic_matmul", "dynamic_lstm"), "its scale depends on the data")
EVERY = [(kind, name) for kind, cases in KINDS.items() for name in cases]


def difference(printed: str) -> float:
    """How far results are from those of onnxruntime, of the largest one; transfers have to be as planned."""
    assert "transfers as planned" in printed, printed
    found = re.search(r"differ from those expected by ([0-9.e+-]+) of the largest one", printed)
    assert found, printed
    return float(found[1])


def run(kind: str, name: str, folder: Path, problem: str, flags: str) -> float:
    """Compile a case, what no plan has between convolutions, run it, and compare."""
    pytest.importorskip("onnxruntime")
    path = folder / "it.onnx"
    onnx.save(model(KINDS[kind][name], between=kind in ("move", "function")), path)
    made = compile_model(path, "scratchpad_768k", folder / "c", settings=FLOATS, problem=problem, time_limit_s=20)
    assert made.plan.problem == problem
    return difference(build_and_run(folder / "c", flags))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_every_operator(tmp_path: Path, kind: str, name: str) -> None:
    """Within 1e-5 of the largest result, with sanitizers and without, with a DMA that copies at once or late."""
    assert run(kind, name, tmp_path, "tiling", random.Random(name).choice(BUILDS)) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "problem"), in_turn(EVERY, ("joint", "fusion")))
def test_every_operator_on_chip(tmp_path: Path, kind: str, name: str, problem: str) -> None:
    """No operator is refused because of what a plan of whole networks keeps."""
    assert run(kind, name, tmp_path, problem, random.Random(name).choice(BUILDS)) < 1e-5


#: Layers, and below functions and moves of the host, each with what a slip would change: unlike axes, pads, numbers.
LAYERS = [
    "a = Conv<group=2,dilations=[2,1],strides=[1,2],pads=[1,0,2,1]>(x, w6_2_3_2, w6) "
    "b = BatchNormalization<epsilon=0.1>(a, p6, w6, w6b, p6b) c = Relu(b)",
    "d = Conv(x, w4_4_1_1) e = BatchNormalization(d, p4, w4, w4b, p4b)",  # one tensor of weights, two norms
    "d2 = Conv(x, w4_4_1_1) e2 = BatchNormalization(d2, p4c, w4c, w4b, p4b)",
    "f = AveragePool<kernel_shape=[2,3],count_include_pad=1,pads=[0,0,1,1]>(x)",
    "g = AveragePool<kernel_shape=[3,2],strides=[2,1],pads=[1,0,1,1]>(x)", "h = GlobalAveragePool(x)",
    "i = MaxPool<kernel_shape=[3,2],strides=[2,1],pads=[1,0,1,1],dilations=[1,2]>(x)",
    "j = Gemm<transA=1,alpha=0.5,beta=2.0>(v, w3_4, w4)", "k = Gemm<transB=1,alpha=1.5,beta=0.5>(v, w2_5, w2)",
    'l = Resize<mode="linear">(x, , , n2_4_10_18)', 'm = Resize<mode="linear">(x, , , n2_4_7_4)',
    "o = ConvTranspose<group=2,strides=[2,1],pads=[1,0,1,1],output_padding=[1,0]>(x, w4_2_4_3, w4)",
    "q = Relu(x) r = Sigmoid(x) s = Mean(q, x, r)", "t = Sub(r, d)", "u = ReduceL2(x, n2)", "y = ReduceMin(x, n2_3)",
    "z = ReduceL1(x, n1)", "aa = ReduceSumSquare(x, n3)", "ab = Abs(x) ac = ReduceLogSum(ab, n2)",
    'ad = GridSample<mode="linear",padding_mode="zeros">(x, at)',
    'ae = GridSample<mode="cubic",padding_mode="reflection",align_corners=1>(x, at)',
    "af = Transpose<perm=[0,1,3,2]>(x) ag = MatMul(x, af)",
    "ah, ai, aj = LSTM<hidden_size=3>(seq, w1_12_2, w1_12_3, w1_24, , w1_2_3, w1_2_3b)",
]  # fmt: skip
FUNCTIONS = """Relu Sigmoid Tanh Exp Neg Reciprocal Erf Floor Ceil Sin Cos Tan Softplus Softsign Sign HardSwish Mish
    Abs Gelu Gelu<approximate="tanh"> LeakyRelu LeakyRelu<alpha=0.3> Elu<alpha=0.7> Celu<alpha=0.7>
    Selu<alpha=1.2,gamma=0.8> Selu HardSigmoid HardSigmoid<alpha=0.3,beta=0.4> Shrink<lambd=0.3,bias=0.1>
    ThresholdedRelu<alpha=0.4> Softmax<axis=1> LogSoftmax<axis=-2> LpNormalization<axis=1,p=1>
    LpNormalization<axis=-1> LRN<size=3,alpha=0.2,beta=0.6,bias=1.5> Transpose Transpose<perm=[0,2,3,1]>
    DepthToSpace<blocksize=2> DepthToSpace<blocksize=2,mode="CRD">"""
HOST = [
    "k = Conv(x, w4_4_1_1)", "z = Tanh(k)", "q = Abs(k)", "o = Pad(z, n0_0_0_0_0_0_1_0)", "e = Slice(z, n0, n1, n2)",
    "r = Mul(z, f0) s = Add(r, h3) t = Round(s)",  # half to even
    *(f"a{k} = {one}(z)" for k, one in enumerate(FUNCTIONS.split())),
    *(f"b{k} = {one}" for k, one in enumerate([
        "Sqrt(q)", "Log(q)", "Sub(z, f1_5)", "Sub(f2, z)", "Div(f2, q)", "Div(z, f3)", "Pow(f2, z)", "Pow(q, f2_5)",
        "Max(z, f0_2)", "Min(fm0_2, z)", "PRelu(z, f0_4)", "PRelu(z, w4_1_1)", "Clip(z, fm0_5)", "Clip(z, , f0_4)",
        "BatchNormalization<epsilon=0.1>(z, p4, w4, w4b, p4b)", "LayerNormalization(z, w6, w6b)",
        "LayerNormalization<axis=2,epsilon=0.1>(z, w5_6)", "InstanceNormalization<epsilon=0.1>(z, w4, w4b)",
        "GroupNormalization<num_groups=2>(z, w4, w4b)", "Pad(z, n0_1_0_0_0_3_0_0)", "Pad(z, n0_0_1_2_0_0_0_1, f1_5)",
        'Pad<mode="reflect">(z, n0_0_1_2_0_0_2_1)', 'Pad<mode="edge">(z, n1_2_2_0, , n2_m1)', "Slice(z, nm3, nm1, nm1)",
        "Slice(z, n1_0, n5_6, n2_3, n2_3)", "Slice(z, n4_5, nm5_m100, n2_3, nm2_m2)", "Gather<axis=1>(z, n2_0_m1)",
        "Gather<axis=-1>(z, n0_1_m1_0)", "Expand(e, n2_4_3_6)", "Tile(z, n1_2_1_3)", "Reshape(z, n2_5_4_6)",
        "SpaceToDepth<blocksize=2>(o)", "Concat<axis=1>(z, q, z)", "Concat<axis=2>(z, o)",
    ])),
    "c0 = Concat<axis=1>(z, q) c1 = DepthToSpace<blocksize=2>(c0)",  # DCR, of 4 channels as CRD
    "i0, i1, i2 = Split<axis=1>(z, n1_2_1) i3 = Exp(i1)", "j0, j1 = Split<axis=2,num_outputs=2>(z) j2 = Exp(j1)",
]  # fmt: skip


@pytest.mark.parametrize("lines", [LAYERS, HOST])
def test_operators_side_by_side(tmp_path: Path, lines: list[str]) -> None:
    """Of two images, each result within 1e-5 of the largest one that onnxruntime has."""
    pytest.importorskip("onnxruntime")
    others = ", float[3,5] v, float[2,3,4,2] at, float[1,2,2] seq" if lines is LAYERS else ""
    text_model(tmp_path / "m.onnx", f"float[2,4,5,6] x{others}", lines)
    assert difference(built(planned(tmp_path / "m.onnx", FLOATS).files(), tmp_path / "c")) < 1e-5


@pytest.mark.parametrize(("opset", "line", "said"), [
    (12, "y = Softmax<axis=1>(z)", ", 2, 120, 1, 0);"),  # all from an axis on
    (13, "y = Softmax<axis=1>(z)", ", 2, 4, 30, 0);"), (12, "y = LogSoftmax<axis=2>(z)", ", 8, 30, 1, 1);"),
    # a scale for each of two groups, for 60 elements one; one for each of four channels
    (18, "y = GroupNormalization<num_groups=2>(z, w2, w2b)", ", 4, 60, 9.99999975e-06f, scale, shift, 2, 60);"),
    (21, "y = GroupNormalization<num_groups=2>(z, w4, w4b)", ", 4, 60, 9.99999975e-06f, scale, shift, 2, 30);"),
])  # fmt: skip
def test_what_an_opset_says(tmp_path: Path, opset: int, line: str, said: str) -> None:
    """Rows, their elements, and what lies between these: of maps of 2 images, 4 channels, 5 x 6 pixels."""
    text_model(tmp_path / "m.onnx", "float[2,4,5,6] x", ["z = Conv(x, w4_4_1_1)", line], opset)
    assert said in str(planned(tmp_path / "m.onnx", FLOATS).files()["network.c"])


def test_what_the_host_needs_lies_in_memory(tmp_path: Path) -> None:
    """Channels are padded by the host: that map alone leaves the chip, and the report says what it costs.

    A map of 30 pixels: 4 channels are written, 4 * 30 * 4 = 480 bytes, and a convolution reads 8, 960 bytes.
    """
    path = tmp_path / "it.onnx"
    onnx.save(model(KINDS["move"]["Pad channels"], between=True), path)
    made = compile_model(path, "scratchpad_768k", tmp_path / "c", settings=FLOATS)
    assert made.plan.problem == "fusion"
    assert made.plan.network_data.in_dram == ("c",)  # the convolution, by its tensor
    assert "480 bytes written, 960 read" in made.notes[0]


def test_elements_that_are_picked_by_hand(tmp_path: Path) -> None:
    """Row 3 and on to the first; a row filled in ahead and a column cut off; the second part; repeated, broadcast."""
    lines = ["c = Slice(x, n3, nm9, n2, nm1)", "d = Pad(x, n0_0_1_m1_0_0_0_0)", "k, e = Split<axis=1>(x, n1_3)"]
    text_model(tmp_path / "m.onnx", "float[2,4,5,6] x", lines)
    model, shape = read_model(tmp_path / "m.onnx"), (2, 4, 5, 6)
    b, g, r, c = (list(range(size)) for size in shape)
    found = [picks(model, one, shape) for one in model.network.operators if one.name in model.origin]
    assert [[axis.tolist() for axis in one.axes] for one in found if one] == [
        [b, g, [3, 2, 1, 0], c], [b, g, [FILLED, *r], [1, 2, 3, 4, 5]], [b, [1, 2, 3], r, c],
    ]  # fmt: skip
    for op, size, after in (("Tile", 3, [0, 1, 2, 0, 1, 2]), ("Expand", 1, [0] * 4), ("Expand", 3, [0, 1, 2])):
        into = cast(Operator, SimpleNamespace(shape=(len(after),)))
        assert PICKS[op](model, cast(Node, None), into, (size,)).axes[0].tolist() == after


@pytest.mark.slow
@pytest.mark.parametrize(("name", "problem"), in_turn([(name,) for name in MODELS], (None, "tiling", "fusion")))
def test_models(tmp_path: Path, name: str, problem: str | None) -> None:
    """Models of the kinds that people deploy; what is refused says that it depends on the data."""
    pytest.importorskip("onnxruntime")
    path = saved(name, tmp_path)
    settings = BYTES if name in QUANTISED else FLOATS

    def compiled() -> Compiled:
        return compile_model(
            path, "scratchpad_768k", tmp_path / "c", settings=settings, problem=problem, time_limit_s=10
        )

    if name in REFUSED:
        with pytest.raises(InputError, match=REFUSED[name]):
            compiled()
        return
    assert compiled().plan.problem == (problem or "fusion")
    assert "transfers as planned" in build_and_run(tmp_path / "c", random.Random(name).choice(BUILDS))


def test_a_group_reads_a_part_of_a_map_that_another_layer_sees_whole() -> None:
    """The referee loads what the group reads: 4 of 8 channels of 16 pixels, no matter that a later layer reads all."""
    network = Network(
        name="parts",
        operators=(
            Input(name="x", shape=(1, 8, 4, 4)),
            Reshape(name="half", inputs=("x",), shape=(1, 4, 4, 4), fn="slice"),
            Conv(name="one", inputs=("half",), shape=(1, 4, 4, 4), filters=4, kernel=(1, 1)),
            Conv(name="two", inputs=("one",), shape=(1, 4, 4, 4), filters=4, kernel=(1, 1)),
            Conv(name="all", inputs=("x",), shape=(1, 8, 4, 4), filters=8, kernel=(1, 1)),
        ),
    )
    plan = solve(network, "scratchpad_768k", problem="fusion", objective="bytes", pins=["fuse=one..two", "cut=two"])
    assert plan.status == "OPTIMAL"


# ---- C of maps that are read where a grid says (GridSample): executed, and compared with onnxruntime -----------------

PADDING = ("zeros", "border", "reflection")
#: Every mode and padding with and without corners, in two opsets' names.
EVERY_GRID = [
    (opset, mode, padding, corners)
    for opset, modes in ((16, ("nearest", "bilinear", "bicubic")), (20, ("nearest", "linear", "cubic")))
    for mode, padding, corners in product(modes, PADDING, (0, 1))
]


def sampled(path: Path, cases: list[tuple[str, str, int]], opset: int, shape: tuple[int, ...] = (2, 3, 5, 4)) -> None:
    """Write a model that reads the sigmoid of a convolution by grids: an input, and a sum with constants.

    The convolution is a result, too, so others apply the sigmoid. Constants name middles of pixels, their edges, and
    places far beyond the border on either side.
    """
    rng = np.random.default_rng(4)
    batch, channels, rows, columns = shape
    node = helper.make_node
    exact = rng.choice([-1, 1, 0, 0.5, -0.25, 1.75, -3.5, 9, -40, 0.2], (batch, 6, 7, 2)).astype(np.float32)
    weights = {"w": rng.normal(size=(channels, 2, 1, 1)), "grid": exact + rng.uniform(-0.2, 0.2, exact.shape)}
    nodes = [
        node("Conv", ["x", "w"], ["c"], "conv"),
        node("Sigmoid", ["c"], ["a"], "a"),
        node("Add", ["g", "grid"], ["far"], "far"),
    ]
    for k, (mode, padding, corners) in enumerate(cases):
        given = {"mode": mode, "padding_mode": padding, "align_corners": corners}
        nodes.append(node("GridSample", ["a", ("g", "far")[k % 2]], [f"s{k}"], f"sample_{k}", **given))
        nodes.append(node("Relu", [f"s{k}"], [f"y{k}"]))
    inputs = {"x": (batch, 2, rows, columns), "g": (batch, 6, 7, 2)}
    results = ["c", *(f"y{k}" for k in range(len(cases)))]
    held = {name: value.astype(np.float32) for name, value in weights.items()}
    onnx.save(model_of(nodes, inputs, results, held, opset=opset, ir=9), path)


def run_grids(folder: Path, problem: str, flags: str, **settings: object) -> float:
    made = compile_model(
        folder / "m.onnx", "scratchpad_768k", folder / "c", settings=FLOATS | settings, problem=problem, time_limit_s=20
    )
    assert made.plan.problem == problem
    return difference(build_and_run(folder / "c", flags))


@pytest.mark.slow(3)
def test_a_few_modes(tmp_path: Path) -> None:
    """Each mode and each padding once, with sanitizers."""
    pytest.importorskip("onnxruntime")
    cases = [("nearest", "reflection", 1), ("linear", "zeros", 0), ("cubic", "border", 0)]
    sampled(tmp_path / "m.onnx", cases, 20)
    assert run_grids(tmp_path, "joint", BUILDS[2]) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("opset", "problem", "layout", "shape"), [
    (20, "tiling", "CHW", (2, 3, 5, 4)), (16, "fusion", "HWC", (2, 1, 4, 6)),
])  # fmt: skip
def test_every_mode(tmp_path: Path, opset: int, problem: str, layout: str, shape: tuple[int, ...]) -> None:
    """All modes, paddings and corners of an opset in one program, in both layouts, of one channel, too."""
    pytest.importorskip("onnxruntime")
    sampled(tmp_path / "m.onnx", [case[1:] for case in EVERY_GRID if case[0] == opset], opset, shape)
    assert run_grids(tmp_path, problem, STRICT, in_layout=layout, out_layout=layout) < 1e-5


# ---- Norms: read with constant and computed scales, and written in C; executed, and compared with onnxruntime --------

Shape = tuple[int, ...]
#: Operator, shape of the map, of scale and shift, which of these are computed, attributes.
Norm = tuple[str, Shape, list[Shape], tuple[int, ...], dict[str, object]]
GROUP, MAP = "GroupNormalization", (2, 8, 3, 4)
#: With opset 18: a scale for every group.
BY_GROUP: list[Norm] = [
    (GROUP, MAP, [(1,), (1,)], (), {"num_groups": 1, "epsilon": 0.01}),
    (GROUP, MAP, [(8,), (8,)], (), {"num_groups": 8}),
    (GROUP, MAP, [(4,), (4,)], (), {"num_groups": 4}), (GROUP, (2, 8, 5), [(2,), (2,)], (), {"num_groups": 2}),
    (GROUP, MAP, [(4,), (4,)], (0, 1), {"num_groups": 4}),
    ("InstanceNormalization", MAP, [(8,), (8,)], (0, 1), {}), ("LayerNormalization", MAP, [(4,), (4,)], (0, 1), {}),
    ("LayerNormalization", MAP, [(3, 4), (3, 4)], (1,), {"axis": 2}),
    ("LayerNormalization", MAP, [(1,), (4,)], (), {"axis": 2, "epsilon": 0.01}),
    ("MeanVarianceNormalization", MAP, [], (), {}), ("MeanVarianceNormalization", MAP, [], (), {"axes": [1, -1]}),
    ("Shrink", MAP, [], (), {"lambd": 0.3, "bias": 0.1}),
]  # fmt: skip
#: With opset 23: a scale for every channel.
BY_CHANNEL: list[Norm] = [
    (GROUP, MAP, [(8,), (8,)], (), {"num_groups": 1}), (GROUP, MAP, [(8,), (8,)], (), {"num_groups": 2}),
    (GROUP, MAP, [(8,), (8,)], (), {"num_groups": 8}), (GROUP, (1, 8, 5), [(8,), (8,)], (), {"num_groups": 4}),
    (GROUP, (1, 8, 2, 3, 2), [(8,), (8,)], (), {"num_groups": 2}),
    (GROUP, MAP, [(8,), (8,)], (0, 1), {"num_groups": 4}), (GROUP, MAP, [(8,), (8,)], (0,), {"num_groups": 2}),
    (GROUP, MAP, [(8,), (8,)], (1,), {"num_groups": 1}),
    ("RMSNormalization", MAP, [(4,)], (0,), {}), ("RMSNormalization", MAP, [(4,)], (), {}),
]  # fmt: skip


def norms_model(norms: list[Norm], opset: int, kind: int = onnx.TensorProto.FLOAT) -> onnx.ModelProto:
    """Each norm of an input of its own, and a convolution behind it; no shape is declared of what lies between."""
    random, real = np.random.default_rng(5), helper.tensor_dtype_to_np_dtype(kind)
    inputs, nodes, held, made = [], [], [], []

    def constant(name: str, shape: Shape) -> None:
        held.append(numpy_helper.from_array(random.normal(size=shape).astype(real), name))

    for k, (op, shape, scales, computed, attributes) in enumerate(norms):
        inputs.append(helper.make_tensor_value_info(f"x{k}", kind, shape))
        given = [f"x{k}", *(f"k{k}_{j}" for j in range(len(scales)))]
        for j, scale in enumerate(scales):
            if j in computed:
                inputs.append(helper.make_tensor_value_info(f"i{k}_{j}", kind, scale))
                nodes.append(helper.make_node("Sigmoid", [f"i{k}_{j}"], [f"k{k}_{j}"]))
            else:
                constant(f"k{k}_{j}", scale)
        nodes.append(helper.make_node(op, given, [f"n{k}"], f"norm{k}", **attributes))
        constant(f"w{k}", (2, shape[1], *(1 for _ in shape[2:])))
        nodes.append(helper.make_node("Conv", [f"n{k}", f"w{k}"], [f"y{k}"], f"conv{k}"))
        made.append(helper.make_tensor_value_info(f"y{k}", kind, None))
    graph = helper.make_graph(nodes, "g", inputs, made, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


@pytest.mark.slow(4)
@pytest.mark.parametrize(("norms", "opset"), [(BY_GROUP, 18), (BY_CHANNEL, 23)])
def test_norms_in_c(tmp_path: Path, norms: list[Norm], opset: int) -> None:
    """All of them in one model, within 1e-5 of the largest result."""
    pytest.importorskip("onnxruntime")
    onnx.save(norms_model(norms, opset), tmp_path / "it.onnx")
    compile_model(
        tmp_path / "it.onnx", "scratchpad_768k", tmp_path / "c", settings=FLOATS, problem="tiling", time_limit_s=20
    )
    assert difference(build_and_run(tmp_path / "c", STRICT)) < 1e-5


@pytest.mark.parametrize("kind", [onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16])
@pytest.mark.parametrize(("norms", "opset"), [(BY_GROUP, 18), (BY_CHANNEL, 23)])
def test_norms_are_read(tmp_path: Path, norms: list[Norm], opset: int, kind: int) -> None:
    """No shape is declared of a norm's result: it is that of what it reads. Constant scales are parameters."""
    onnx.save(norms_model(norms, opset, kind), tmp_path / "it.onnx")
    network = load_network(str(tmp_path / "it.onnx"))
    assert network.opaque == ()
    for k, (_, shape, scales, computed, _) in enumerate(norms):
        added = [o for o in network.operators if o.name.split(":")[0] == f"norm{k}"]
        assert added[-1].shape == shape
        held = sum(getattr(o, "parameters", 0) for o in added)
        assert held == sum(int(np.prod(s)) for j, s in enumerate(scales) if j not in computed)
        layers = [o for o in added if o.layer(network.input_shapes(o)) is not None]
        assert len(layers) == (len(scales) if computed else 0)  # a product and a sum of two operands


def test_groups_that_do_not_divide_channels_are_not_planned(tmp_path: Path) -> None:
    onnx.save(norms_model([(GROUP, MAP, [(8,), (8,)], (), {"num_groups": 3})], 21), tmp_path / "it.onnx")
    assert [one.reason for one in load_network(str(tmp_path / "it.onnx")).opaque] == ["3 groups of 8 channels"]

"""Small models of the kinds that people deploy, from the file to plans: what is counted is what the file holds."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import shape_inference

from formulations.compulsory import compulsory_bytes, weight_bytes
from instances.load import load_machine, load_network
from instances.network.network import Network
from instances.network.operators import Conv, Eltwise, Input, MatMul, Pool
from instances.network.stores import stores
from instances.onnx.reader import read_onnx
from solver import solve
from solver.calls.solve import ask
from solver.plan.plan import Plan
from solver.problems.layers import is_layers
from solver.problems.registry import PROBLEMS
from tests.effort import in_turn
from tests.onnx_models import MODELS, saved

#: Inputs that are weights, by operator.
_WEIGHTS = {"Conv": (1,), "ConvTranspose": (1,), "Gemm": (1,), "MatMul": (1,), "MatMulInteger": (1,)}
_WEIGHTS |= dict.fromkeys(("LSTM", "GRU", "RNN"), (1, 2))


@dataclass(frozen=True)
class Counted:
    """What a file holds: multiply-accumulates; weights, every tensor once; what goes in, and comes out."""

    macs: int
    weights: int
    inputs: int
    outputs: int

    @property
    def least_bytes(self) -> int:
        """What has to move where every element is a byte and there is room for all maps."""
        return self.weights + self.inputs + self.outputs


#: What shape inference of onnx does not see through, by hand: 3 to 8 channels of 64 pixels, 3x3, then 8 to 4 of 16
#: pixels; 16 to 16 features, three times more with one matrix, then to 4; 5 steps of 4 gates of 6 units, then 6 to 3.
BY_HAND = {
    "branch": Counted(64 * 8 * 27 + 16 * 4 * 8, 8 * 27 + 4 * 8, 192, 64),
    "loop": Counted(4 * 256 + 64, 2 * 256 + 64, 16, 4),
    "dynamic_lstm": Counted(5 * 24 * (8 + 6) + 5 * 18, 24 * (8 + 6) + 18, 40, 15),
}


def counted(name: str) -> Counted:
    """Count node by node, with the shapes that onnx infers; nothing of certile is asked."""
    if name in BY_HAND:
        return BY_HAND[name]
    graph = shape_inference.infer_shapes(MODELS[name](), data_prop=True).graph
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    given = set(shapes)
    for info in (*graph.input, *graph.value_info, *graph.output):
        shapes[info.name] = tuple(size.dim_value for size in info.type.tensor_type.shape.dim)
    for node in graph.node:  # what integers stand for is as large as they are
        if node.op_type == "DequantizeLinear" and node.input[0] in given:
            given.add(node.output[0])
            shapes[node.output[0]] = shapes[node.input[0]]
    macs, weights = 0, dict[str, int]()
    for node in graph.node:
        read = [shapes.get(tensor, ()) for tensor in node.input]
        weights |= {node.input[k]: prod(read[k]) for k in _WEIGHTS.get(node.op_type, ()) if node.input[k] in given}
        made = shapes[node.output[0]]
        if node.op_type == "Conv":
            macs += prod(made) * prod(read[1][1:])
        elif node.op_type == "ConvTranspose":
            macs += prod(read[0]) * prod(read[1][1:])
        elif node.op_type in ("Gemm", "MatMul", "MatMulInteger"):
            macs += prod(made) * read[0][-1]
        elif node.op_type in ("LSTM", "GRU", "RNN"):
            macs += prod(read[0][:2]) * (prod(read[1]) + prod(read[2]))
    inputs = sum(prod(shapes[info.name]) for info in graph.input) + maps_of_constants(graph, shapes, given)
    return Counted(macs, sum(weights.values()), inputs, sum(prod(shapes[info.name]) for info in graph.output))


def maps_of_constants(graph: onnx.GraphProto, shapes: dict[str, tuple[int, ...]], given: set[str]) -> int:
    """Constants that are read as maps: those that are joined with maps, added to them, or multiplied with them.

    But factors and addends of every channel directly behind a product are part of its weights and biases.
    """
    makers = {tensor: node for node in graph.node for tensor in node.output}
    found, behind = 0, dict[str, int]()  # tensor -> its axis of channels
    for node in graph.node:
        read = [t for t in node.input if t in given and prod(shapes[t]) > 1]
        if node.op_type == "Concat":
            found += sum(prod(shapes[t]) for t in read)
        if node.op_type in _WEIGHTS and node.input[1] in given:
            behind[node.output[0]] = 1 if node.op_type.startswith("Conv") else len(shapes[node.output[0]]) - 1
        if node.op_type not in ("Add", "Sub", "Mul", "Div") or not read:
            continue
        (other,) = (t for t in node.input if t not in given)
        axis, alone = behind.get(other, -1), sum(other in one.input for one in graph.node) == 1
        padded = (1,) * (len(shapes[other]) - len(shapes[read[0]])) + shapes[read[0]]
        if axis >= 0 and alone and padded[axis] == prod(padded) and other in makers:
            behind[node.output[0]] = axis
        else:
            found += prod(padded)
    return found


def weights_of(network: Network) -> int:
    """Constant weights of convolutions and products, those of several layers once."""
    found = 0
    for operator in network.operators:
        layer = operator.layer(network.input_shapes(operator))
        if layer is not None and layer.weights == "constant" and not getattr(operator, "weights_of", ""):
            found += layer.g * layer.m * layer.n * layer.kh * layer.kw
    return found


@pytest.mark.few(32)
@pytest.mark.parametrize("name", MODELS)
def test_what_is_read_is_what_the_file_holds(name: str, tmp_path: Path) -> None:
    """MACs, weights, and the bytes that problems joint and fusion say must move; no operator is opaque."""
    network, wanted = read_onnx(saved(name, tmp_path)), counted(name)
    assert network.opaque == ()
    assert network.macs == wanted.macs
    assert weights_of(network) == wanted.weights
    machine = load_machine("scratchpad_768k", {"psum_bytes": "1"})
    for problem in ("joint", "fusion"):
        asked, question = ask(network, machine, problem=problem)
        (part,) = asked.parts(question)
        least = part.must["bytes"]
        assert least == wanted.least_bytes, problem


def macs_of(plan: Plan) -> int:
    if is_layers(plan):
        return sum(layer.macs for layer in plan.network_data)
    assert plan.measures is not None
    if plan.problem == "fusion":  # strips leave out rows that nobody reads
        assert plan.measures["macs"] <= plan.network_data.macs
    return plan.network_data.macs


QUICK = ("lenet", "squeeze_excite", "loop")


@pytest.mark.slow(2)
@pytest.mark.parametrize("problem", ["tiling", "joint", "fusion"])
@pytest.mark.parametrize("name", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in MODELS])
def test_every_model_is_planned(name: str, problem: str, tmp_path: Path) -> None:
    """With 768 KiB nothing but what must moves in problems joint and fusion; a layer alone moves its operands once."""
    wanted = counted(name)
    plan = solve(
        saved(name, tmp_path), load_machine("scratchpad_768k", {"psum_bytes": "1"}), problem=problem, objective="bytes",
        time_limit_s=60, jobs=1, all_kinds=problem == "tiling",
    )  # fmt: skip
    assert plan.status in ("OPTIMAL", "FEASIBLE")
    assert macs_of(plan) == wanted.macs
    assert plan.objective.value >= wanted.least_bytes
    assert PROBLEMS[problem].derive(plan).faults == ()


@pytest.mark.parametrize("name", MODELS)
def test_the_models_are_valid(name: str, tmp_path: Path) -> None:
    """onnx's checker takes each, and onnxruntime makes finite numbers with it."""
    runtime = pytest.importorskip("onnxruntime")
    path = saved(name, tmp_path)
    onnx.checker.check_model(str(path))
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(3)
    feeds = {one.name: rng.normal(size=one.shape).astype(np.float32) for one in session.get_inputs()}
    assert all(np.isfinite(made).all() for made in session.run(None, feeds))


# ---- MACs, weights and compulsory bytes counted a second time: over the nodes of ONNX files, and operator

DATA = Path(__file__).parent / "data" / "onnx"
#: Exports whose every shape onnx infers. Left out: Einsum, and detr, a part of which is made of constants alone.
FILES = sorted(
    path.name
    for kind in ("dynamo", "qdq")
    for path in DATA.glob(f"*_{kind}.onnx")
    if path.name[:4] not in ("eins", "detr")
)
#: Constants that are no weights: first states; biases by place and masks; the class's token and rows of positions.
CONSTANTS = {"rnn": 4 * 8, "swin": 512 + 2304, "vit": 8 + 17 * 8}
#: What holds its input between frames of zeros: what is read of it is not followed in all.
FRAMES = "r3d"
#: Nodes that leave the elements of a constant as they are.
SAME = frozenset("Cast DequantizeLinear Flatten Identity QuantizeLinear Reshape Squeeze Transpose Unsqueeze".split())


class File:
    """What a file computes, from its nodes alone; a weight is its initialiser, whatever is made of it on the way."""

    def __init__(self, path: Path) -> None:
        graph = shape_inference.infer_shapes(onnx.load(path, load_external_data=False), data_prop=True).graph
        infos = (*graph.input, *graph.value_info, *graph.output)
        self.shapes = {i.name: tuple(d.dim_value for d in i.type.tensor_type.shape.dim) for i in infos}
        self.shapes |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
        self.of = {tensor.name: tensor.name for tensor in graph.initializer}
        self.macs, self.weights = 0, dict[str, int]()
        given = {i.name for i in graph.input} - set(self.of)
        self.moved = sum(prod(self.shapes[name]) for name in (*given, *(o.name for o in graph.output)))
        for node in graph.node:
            self._node(node)

    def _node(self, node: onnx.NodeProto) -> None:
        inputs, out = list(node.input), self.shapes.get(node.output[0], ())
        if node.op_type == "Constant":
            value = next((a.t for a in node.attribute if a.name == "value"), None)
            if value is not None:
                self.of[node.output[0]], self.shapes[node.output[0]] = node.output[0], tuple(value.dims)
        elif node.op_type in SAME and inputs[0] in self.of:
            self.of[node.output[0]] = self.of[inputs[0]]
        elif node.op_type in ("Conv", "ConvTranspose"):
            seen = self.shapes[inputs[0]] if node.op_type == "ConvTranspose" else out
            self._add(prod(seen) * prod(self.shapes[inputs[1]][1:]), inputs[1])
        elif node.op_type in ("MatMul", "Gemm"):
            self._add(prod(out) * self.shapes[inputs[0]][-1], *inputs[:2])
        elif node.op_type in ("LSTM", "GRU", "RNN"):
            steps = prod(self.shapes[inputs[0]][:2])
            self._add(steps * sum(prod(self.shapes[name]) for name in inputs[1:3]), *inputs[1:3])

    def _add(self, macs: int, *weights: str) -> None:
        self.macs += macs
        self.weights |= {self.of[name]: prod(self.shapes[self.of[name]]) for name in weights if name in self.of}


@pytest.mark.parametrize("file", FILES)
def test_files_are_counted_alike(file: str) -> None:
    network, counted = load_network(str(DATA / file)), File(DATA / file)
    machine = load_machine("scratchpad_64k")  # a byte an element, biases for nothing
    assert network.macs == counted.macs
    found = stores(network)
    assert weight_bytes(found, machine) == sum(counted.weights.values())
    kind = file.split("_")[0]
    least = sum(counted.weights.values()) + counted.moved + CONSTANTS.get(kind, 0)
    must = compulsory_bytes(found, machine)
    assert must == least or (kind == FRAMES and must < least)


@pytest.mark.parametrize("name", ["lenet5", "squeezenet1_1", "mobilenet_v2", "resnet50", "inception_v3", "vgg16"])
def test_networks_of_the_zoo_are_counted_alike(name: str) -> None:
    network, machine = load_network(name), load_machine("scratchpad_64k")
    macs = weights = 0
    for operator in network.operators:
        if isinstance(operator, Conv):
            each = network.operator(operator.inputs[0]).shape[1] // operator.groups * prod(operator.kernel)
            macs, weights = macs + prod(operator.shape) * each, weights + operator.filters * each
        elif isinstance(operator, MatMul) and len(operator.inputs) == 1:
            inner = network.operator(operator.inputs[0]).shape[-1]
            macs, weights = macs + prod(operator.shape) * inner, weights + operator.shape[-1] * inner
    assert (network.macs, weight_bytes(stores(network), machine)) == (macs, weights)


# ---- Networks whose element-wise layers have operands that are broadcast: what every problem says of them


def two(first: tuple[int, ...], second: tuple[int, ...], shape: tuple[int, ...], fn: str = "add") -> Network:
    return Network(
        name="two",
        operators=(
            Input(name="x", shape=first),
            Input(name="y", shape=second),
            Eltwise(name="join", inputs=("x", "y"), shape=shape, fn=fn),
        ),
    )


CASES = {
    # every operand once and the result once, as the memory holds a row or a column of either
    "rows by columns": (two((1, 16, 32, 1), (1, 16, 1, 32), (1, 16, 32, 32)), 512 + 512 + 16_384),
    "a short row": (two((1, 32, 512, 1), (1, 32, 1, 32), (1, 32, 512, 32)), 16_384 + 1_024 + 524_288),
    "a gate": (two((1, 8, 64, 64), (1, 8, 1, 1), (1, 8, 64, 64), "mul"), 32_768 + 8 + 32_768),
    "a mask": (two((1, 4, 48, 48), (1, 1, 48, 48), (1, 4, 48, 48)), 9_216 + 2_304 + 9_216),
    "a token's mean": (two((1, 50, 64), (1, 50, 1), (1, 50, 64), "sub"), 3_200 + 50 + 3_200),
    "positions": (two((8, 50, 64), (1, 50, 64), (8, 50, 64)), 25_600 + 3_200 + 25_600),
    "an anchor grid": (two((1, 3, 20, 20, 2), (1, 1, 20, 20, 2), (1, 3, 20, 20, 2)), 2_400 + 800 + 2_400),
}


@pytest.mark.few(6)
@pytest.mark.parametrize(("name", "problem"), in_turn([(name,) for name in CASES], ["tiling", "joint", "fusion"]))
def test_operands_are_read_once_where_there_is_room(name: str, problem: str) -> None:
    network, moved = CASES[name]
    settings = {"ocm_banks": 64} if problem != "tiling" else {}
    only = {"all_kinds": True} if problem == "tiling" else {}
    plan = solve(network, "scratchpad_64k", objective="bytes", problem=problem, settings=settings, **only)
    assert (plan.status, plan.objective and plan.objective.value) == ("OPTIMAL", moved)


def test_where_of_three() -> None:
    network = Network(
        name="choice",
        operators=(
            Input(name="mask", shape=(1, 1, 12, 12)),
            Input(name="scores", shape=(1, 4, 12, 12)),
            Input(name="least", shape=(1,)),
            Eltwise(name="where", inputs=("mask", "scores", "least"), shape=(1, 4, 12, 12), fn="where"),
        ),
    )
    (layer,) = network.layers
    assert (layer.inputs, layer.broadcast) == (3, ("g", "", "bgrc".replace("b", "")))
    plan = solve(network, "scratchpad_64k", objective="bytes", all_kinds=True)
    assert plan.objective.value == 144 + 576 + 1 + 576


@pytest.mark.slow(1)
def test_squeeze_and_excite_in_a_network() -> None:
    # 8 channels of 64 x 64 from a 1x1 convolution of 3: weights 24, alone the gate is made and read: 8 each way
    network = Network(
        name="gated",
        operators=(
            Input(name="x", shape=(1, 3, 64, 64)),
            Conv(name="conv", inputs=("x",), shape=(1, 8, 64, 64), filters=8, kernel=(1, 1)),
            Pool(name="mean", inputs=("conv",), shape=(1, 8, 1, 1), fn="global_avg"),
            Eltwise(name="mul", inputs=("conv", "mean"), shape=(1, 8, 64, 64), fn="mul"),
        ),
    )
    machine = "scratchpad_64k"
    alone = solve(network, machine, objective="bytes", all_kinds=True)
    rest = 12_288 + 24 + 32_768 + 32_768 + 8  # the convolution, and the mean of its result
    assert alone.objective.value == rest + 32_768 + 8 + 32_768
    # on chip the map is made and stays, and so does the gate: the input, the weights, the result
    joint = solve(
        network, machine, objective="bytes", problem="joint", settings={"ocm_banks": 64, "ocm_bytes": 262_144}
    )
    assert joint.objective.value == 12_288 + 24 + 32_768

"""Element types of ONNX files, and those that a machine counts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.network.network import unlike_elements
from instances.network.stores import stores
from instances.onnx.control import CONTROL
from instances.onnx.model import evaluated, read_model
from instances.onnx.ops import HANDLERS
from instances.onnx.quantised import REPLACED, move_integers, one_for_each, spell_out, standardise
from instances.onnx.reader import read_onnx
from solver.cli.main import main
from tests.onnx_models import model_of
from tests.operator_models import computed, run
from tests.quantised import quantised_model

FOLDER = Path(__file__).resolve().parents[1] / "data" / "onnx"


@pytest.mark.parametrize(("name", "maps", "weights"), [
    ("resnet_ts", "float32", "float32"),
    ("resnet_qdq", "uint8", "int8"),  # quantised between the layers, by nodes
    ("resnet_qoperator", "uint8", "int8"),  # and by the operators
    ("lstm_ts", "float32", "float32"),
])  # fmt: skip
def test_types_of_exports(name: str, maps: str, weights: str) -> None:
    network = load_network(str(FOLDER / f"{name}.onnx"))
    assert (network.map_type, network.weight_type) == (maps, weights)


def test_types_stay_with_another_batch() -> None:
    assert load_network(str(FOLDER / "resnet_ts.onnx")).with_batch(6).map_type == "float32"


def model(path: Path, maps: int, weights: int) -> str:
    """A product of two types (as exporters of weights alone write it, with a cast)."""
    nodes = [
        helper.make_node("Cast", ["w"], ["wide"], to=maps),
        helper.make_node("MatMul", ["x", "wide"], ["y"]),
    ]
    held = TensorProto(name="w", data_type=weights, dims=[3, 4], raw_data=b"0" * 96)
    onnx.save(model_of(nodes, {"x": (2, 3)}, held=[held], opset=21, ir=10, kind=maps), path)
    return str(path)


def test_differences_are_one_line(tmp_path: Path) -> None:
    machine = load_machine("scratchpad_64k")  # a byte for everything
    network = load_network(str(FOLDER / "resnet_ts.onnx"))
    assert unlike_elements(network, machine) == (
        "network resnet_ts, machine scratchpad_64k: the file holds maps of float32 (4 bytes each; the machine has "
        "in_bytes 1 and out_bytes 1), weights of float32 (4 bytes each; the machine has w_bytes 1): "
        "--set in_bytes=4 --set out_bytes=4 --set w_bytes=4 counts as the file does",
    )
    assert unlike_elements(load_network(str(FOLDER / "resnet_qdq.onnx")), machine) == ()
    half = network.model_copy(update={"map_type": "uint8", "weight_type": "int4"})
    assert unlike_elements(half, machine) == (
        "network resnet_ts, machine scratchpad_64k: the file holds weights of int4 (0.5 bytes each; the machine has "
        "w_bytes 1)",
    )
    assert unlike_elements(load_network("lenet5"), machine) == ()  # no file, no types
    brain = network.model_copy(update={"map_type": "bfloat16", "weight_type": "int8"})
    assert unlike_elements(brain, machine.model_copy(update={"in_bytes": 2, "out_bytes": 2})) == ()


def test_types_of_casts(tmp_path: Path) -> None:
    network = load_network(model(tmp_path / "m.onnx", TensorProto.FLOAT16, TensorProto.FLOAT))
    assert (network.map_type, network.weight_type) == ("float16", "float16")


def test_weights_filled_by_a_shape_have_the_type_of_their_value() -> None:
    """The small models of the onnx package make every weight so; what they read, a shape, is int64."""
    from solver.uses.bench.demo import wheel_model

    network = load_network(str(wheel_model("light_squeezenet")))
    assert (network.map_type, network.weight_type) == ("float32", "float32")


@pytest.mark.slow(1)
def test_import_and_solve_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, made = str(FOLDER / "decoder_ts.onnx"), str(tmp_path / "net.json")
    assert main(["import", source, "-o", made, "-m", "scratchpad_64k"]) == 0
    said = capsys.readouterr()
    assert "maps of float32, weights of float32" in said.out
    assert said.err.count("note: network decoder_ts, machine scratchpad_64k: the file holds maps of float32") == 1
    assert json.loads(Path(made).read_text())["map_type"] == "float32"
    quick = ["solve", made, "-m", "scratchpad_64k", "--engine", "greedy"]
    assert main(quick) == 0
    assert "certile: note: network decoder_ts" in capsys.readouterr().err
    wide = [arg for field in ("in", "w", "out") for arg in ("--set", f"{field}_bytes=4")]
    assert main([*quick, *wide]) == 0
    assert "note" not in capsys.readouterr().err


# ---- The list of operators in docs/onnx.md is that of the reader's own tables ----------------------------------------

PAGE = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="no documents beside the tests")
def test_every_operator_is_listed_and_no_other() -> None:
    text = PAGE.read_text(encoding="utf-8")
    standard, microsoft = (text.split(f"{head}: ")[1].split("\n\n")[0] for head in ("Of ONNX", "Of com.microsoft"))
    assert standard.replace("\n", " ").rstrip(".").split(", ") == sorted({*HANDLERS, *CONTROL})
    assert microsoft.replace("\n", " ").rstrip(".").split(", ") == sorted(REPLACED)


# ---- Small models as torch exports them today (tests/data/onnx/make.py): MACs against those that torch counts --------

WANTED = json.loads((FOLDER / "macs.json").read_text(encoding="utf-8"))
#: What the exporter has multiplied itself, so that the file holds no product of it.
FOLDED = {
    "detr_dynamo.onnx": 4 * 5 * 8 * 8
    + 2 * 5 * 5 * 8,  # five queries of 8 attend to themselves: 4 linear layers, 2 products
    "rnn_dynamo.onnx": 4 * 8 * 8,  # the zero state before the first step, in two directions of two layers
}


@pytest.mark.few(41)
@pytest.mark.parametrize("name", sorted(WANTED))
def test_every_multiply_accumulate_is_planned(name: str) -> None:
    network = load_network(str(FOLDER / name))
    assert network.opaque == ()
    assert network.macs == WANTED[name] - FOLDED.get(name, 0)


# ---- Operators on quantised tensors spelled out, where numbers matter: the plan of the file stays that of

FILES = sorted((Path(__file__).parent.parent / "data" / "onnx").glob("*_q*.onnx"))


@pytest.mark.few(7)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_layers_and_stores_are_those_that_were_planned(path: Path) -> None:
    model, planned = read_model(path), read_onnx(path)
    assert model.network.layers == planned.layers
    one, two = stores(model.network), stores(planned)
    assert (one.reads, one.writes, one.barriers) == (two.reads, two.writes, two.barriers)
    kept = [
        [(s.rows, s.parts, s.readers, s.whole, s.dram, s.results) for s in found.stores] for found in (one, two)
    ]  # fmt: skip
    assert kept[0] == kept[1]
    assert not any(node.op_type.startswith("QLinear") or node.domain for node in model.origin.values())


def made(nodes: list[onnx.NodeProto], **constants: np.ndarray | np.generic) -> onnx.ModelProto:
    return model_of(nodes, {"x": (2, 3)}, "y", constants, domain="com.microsoft", kind=onnx.TensorProto.UINT8)


def moved_through(zero: int) -> onnx.ModelProto:
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["d"]), helper.make_node("Transpose", ["d"], ["t"]),
        helper.make_node("QuantizeLinear", ["t", "s", "z2"], ["q"]), helper.make_node("Identity", ["q"], ["y"]),
    ]  # fmt: skip
    return made(nodes, s=np.float32(0.1), z=np.uint8(3), z2=np.uint8(zero))


def test_integers_are_moved_where_quantising_undoes_dequantising() -> None:
    model, other = moved_through(3), moved_through(4)
    for result in ("t", "q"):  # real numbers that somebody wants, integers by their name
        wanted = moved_through(3)
        wanted.graph.output.append(helper.make_tensor_value_info(result, TensorProto.FLOAT, None))
        assert not move_integers(wanted)
    constant = moved_through(3)
    constant.graph.node[0].input[0] = "w"
    constant.graph.initializer.append(numpy_helper.from_array(np.ones((2, 3), np.uint8), "w"))
    assert not move_integers(constant)
    assert move_integers(model)
    assert [(n.op_type, *n.input) for n in model.graph.node] == [("Transpose", "x"), ("Identity", "t")]
    assert not move_integers(other)


def test_every_reader_has_a_dequantize_linear_of_its_own() -> None:
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["d"]), helper.make_node("Mul", ["d", "d"], ["y"])]
    model = made(nodes, s=np.float32(0.1), z=np.uint8(3))
    assert one_for_each(model)
    assert [n.op_type for n in model.graph.node] == ["DequantizeLinear", "DequantizeLinear", "Mul"]
    assert len(set(model.graph.node[2].input)) == 2
    assert not one_for_each(model)
    result = made([nodes[0], helper.make_node("Relu", ["d"], ["y"])], s=np.float32(0.1), z=np.uint8(3))
    result.graph.output.append(helper.make_tensor_value_info("d", TensorProto.FLOAT, None))
    assert one_for_each(result)  # a result is a reader, too


def test_a_product_of_integers_is_spelled_out() -> None:
    """QGemm by 2 columns, each with its scale: the bias has the product of the scales, 0.1 * 0.5 and 0.1 * 0.25."""
    node = helper.make_node(
        "QGemm", ["x", "s", "z", "w", "sw", "zw", "b", "s", "z"], ["y"], "n", domain="com.microsoft"
    )
    weights = np.arange(6, dtype=np.int8).reshape(3, 2)
    model = made([node], s=np.float32(0.1), z=np.uint8(3), w=weights, sw=np.float32([0.5, 0.25]),
                 zw=np.zeros(2, np.int8), b=np.int32([7, 8]))  # fmt: skip
    assert spell_out(model)
    assert [n.op_type for n in model.graph.node] == [*["DequantizeLinear"] * 3, "Gemm", "QuantizeLinear"]
    assert model.graph.node[3].name == "n"
    scales = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    assert scales["n:bias_scale"].tolist() == (np.float32(0.1) * np.float32([0.5, 0.25])).tolist()
    assert not spell_out(model)
    for axis, opset, spelled in ((0, 12, False), (0, 13, True), (-1, 12, True)):  # once all axes from there on
        fields = {"axis": axis, "opset": opset, "domain": "com.microsoft"}
        softmax = helper.make_node("QLinearSoftmax", ["x", "s", "z", "s", "z"], ["y"], "n", **fields)
        assert spell_out(made([softmax], s=np.float32(0.1), z=np.uint8(3))) == spelled
    last = helper.make_node("QLinearAveragePool", ["x", "s", "z", "s", "z"], ["y"], "n", domain="com.microsoft",
                            kernel_shape=[1], channels_last=1)  # fmt: skip
    assert not spell_out(made([last], s=np.float32(0.1), z=np.uint8(3)))
    assert standardise(made([last], s=np.float32(0.1), z=np.uint8(3)).graph, 17) == {}


def test_what_integers_stand_for(tmp_path: Path) -> None:
    """(5 - 1) * 0.5 and (5 - 1) * 0.25; scales of blocks are refused."""
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=0),
        helper.make_node("Cast", ["x"], ["c"], to=1), helper.make_node("MatMul", ["c", "d"], ["y"]),
        helper.make_node("DequantizeLinear", ["w", "s2", "z2"], ["blocks"], axis=0),
    ]  # fmt: skip
    scale = np.float32([0.5, 0.25, 1])
    model = made(nodes, w=np.full((3, 1), 5, np.int8), s=scale, z=np.ones(3, np.int8), s2=np.ones((3, 1), np.float32),
                 z2=np.ones((3, 1), np.int8))  # fmt: skip
    onnx.save(model, tmp_path / "m.onnx")
    read = read_model(tmp_path / "m.onnx")
    assert read.constant("d").tolist() == [[2], [1], [4]]
    assert read.quantised("w") is None
    with pytest.raises(InputError, match="a scale for every block"):
        read.constant("blocks")
    columns = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"]), nodes[1],
               helper.make_node("MatMul", ["c", "d"], ["y"])]  # fmt: skip
    model = made(columns, w=np.full((3, 2), 5, np.int8), s=scale[:2], z=np.ones(2, np.int8))
    onnx.save(model, tmp_path / "m.onnx")
    assert read_model(tmp_path / "m.onnx").constant("d").tolist() == [[2, 1]] * 3  # along columns, if nothing is said
    turned = [columns[0], helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]), nodes[1],
              helper.make_node("MatMul", ["c", "t"], ["y"])]  # fmt: skip
    model = made(turned, w=np.full((2, 3), 5, np.int8), s=np.float32([0.5] * 3), z=np.int8([1, 3, 1]))
    onnx.save(model, tmp_path / "m.onnx")
    whole = read_model(tmp_path / "m.onnx").quantised("t")
    assert whole is not None  # one scale, but a zero point for every row now
    assert (whole.axis, whole.zero.tolist()) == (0, [1, 3, 1])


@pytest.mark.parametrize(("op", "inputs"), [
    ("DynamicQuantizeMatMul", "x w s z b"), ("DynamicQuantizeMatMul", "x w s"),
    ("MatMulIntegerToFloat", "x w s s z z b"), ("MatMulIntegerToFloat", "x w s s"),
])  # fmt: skip
def test_products_of_integers_with_a_bias_or_none(op: str, inputs: str, tmp_path: Path) -> None:
    """2 rows of 3 by 3 x 4."""
    node = helper.make_node(op, inputs.split(), ["y"], "n", domain="com.microsoft")
    onnx.save(made([node], w=np.ones((3, 4), np.uint8), s=np.float32(0.1), z=np.uint8(3), b=np.ones(4, np.float32)),
              tmp_path / "m.onnx")  # fmt: skip
    network, biased = read_onnx(tmp_path / "m.onnx"), inputs.endswith("b")
    assert (network.opaque, network.macs, network.parameters) == ((), 24, 12 + 4 * biased)
    assert [layer.bias for layer in network.layers] == [biased]


# ---- Fused operators, and integers, compute what stands for them -----------------------------------------------------


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


LEAST, MICROSOFT = ("", "", "sum"), "com.microsoft"
FUSED: list[tuple[str, tuple[int, ...], list[object], dict[str, object], tuple[str, ...]]] = [
    ("FusedConv", (1, 2, 4, 5), [numbers(3, 2, 3, 3), numbers(3)], {"activation": "Relu", "pads": [1, 0, 1, 1]}, ()),
    ("FusedConv", (1, 2, 4, 5), [numbers(2, 1, 1, 1), numbers(2), "x"], {"activation": "Sigmoid", "group": 2}, ()),
    ("FusedConv", (1, 2, 4, 5), [numbers(2, 2, 1, 1), numbers(2), "x"], {"activation": "Relu"}, ()),
    ("FusedGemm", (3, 4), [numbers(5, 4), numbers(5)], {"transB": 1, "activation": "Tanh"}, ()),
    ("FusedMatMul", (2, 3, 4), [numbers(2, 5, 4)], {"transB": 1}, ()),
    ("FusedMatMul", (2, 4, 3), [numbers(2, 4, 5)], {"transA": 1}, ()),
    ("BiasGelu", (2, 4), [numbers(4)], {}, ()), ("FastGelu", (2, 4), [numbers(4)], {}, ()),
    ("FastGelu", (2, 4), [], {}, ()), ("Gelu", (2, 4), [], {}, ()),
    ("SkipLayerNormalization", (1, 2, 4), [numbers(1, 2, 4), *map(numbers, (4, 4, 4))], {}, LEAST),
    ("SkipLayerNormalization", (1, 2, 4), ["x", numbers(4), numbers(4)], {}, LEAST),
    ("SkipSimplifiedLayerNormalization", (1, 2, 4), ["x", numbers(4)], {}, LEAST),
    ("SkipSimplifiedLayerNormalization", (1, 2, 4), [numbers(1, 2, 4), numbers(4), numbers(4)], {}, LEAST),
]  # fmt: skip


@pytest.mark.parametrize(("op", "shape", "others", "fields", "outputs"), FUSED)
def test_what_stands_for_a_fused_operator(
    op: str, shape: tuple[int, ...], others: list[object], fields: dict[str, object], outputs: tuple[str, ...]
) -> None:
    """To the last digits; but of a Gelu by tanh that by erf, which a plan counts alike."""
    held = {f"k{n}": value for n, value in enumerate(others) if not isinstance(value, str)}
    names = ["x", *(value if isinstance(value, str) else f"k{n}" for n, value in enumerate(others))]
    node = helper.make_node(op, names, ["y", *outputs], domain=MICROSOFT, **fields)
    model = model_of([node], {"x": shape}, ["y", *filter(None, outputs)], held, opset=23, domain=MICROSOFT, ir=10)
    wanted = run(model, {"x": numbers(*shape)})
    standardise(model.graph, 23)
    assert not any(one.domain for one in model.graph.node)
    for name, found in run(model, {"x": numbers(*shape)}).items():
        assert np.abs(found - wanted[name]).max() < (1e-3 if op == "FastGelu" else 1e-5), name


S, Z, W = np.float32(0.05), np.uint8(120), np.arange(-6, 6).astype(np.int8)
TENTH, COLUMNS = [np.float32(0.1), np.uint8(80)], [np.float32([0.1, 0.2, 0.3]), np.zeros(3, np.int8)]
#: Inputs behind x, which has 8 bits (with BYTE: its scale and zero point, too), and the multiply-accumulates.
BYTE, OUT = ["x", S, Z], [np.float32(0.04), np.uint8(100)]
INTEGERS: dict[str, tuple[str, list[object], dict[str, object], tuple[int, ...], int]] = {
    "QLinearAdd": (MICROSOFT, [*BYTE, np.uint8([[90], [70], [250]]), *TENTH, *OUT], {}, (2, 3, 4), 0),
    "QLinearMul": (MICROSOFT, [*BYTE, *BYTE, *OUT], {}, (2, 3, 4), 0),
    "QLinearWhere": (MICROSOFT, [np.eye(4) > 0, *BYTE, *BYTE, *OUT], {}, (4, 4), 0),
    "QLinearSigmoid": (MICROSOFT, [*BYTE, np.float32(1 / 256), np.uint8(0)], {}, (2, 3, 4), 0),
    "QLinearLeakyRelu": (MICROSOFT, [*BYTE, *OUT], {"alpha": 0.3}, (2, 3, 4), 0),
    "QLinearLeakyRelu as it is": (MICROSOFT, [*BYTE, *OUT], {}, (2, 3, 4), 0),
    "QLinearSoftmax": (MICROSOFT, [*BYTE, np.float32(1 / 256), np.uint8(0)], {"axis": -1, "opset": 13}, (2, 3, 4), 0),
    "QLinearAveragePool": (MICROSOFT, [*BYTE, *OUT], {"kernel_shape": [2, 3], "pads": [1, 0, 0, 0]}, (1, 2, 4, 5), 0),
    "QLinearGlobalAveragePool": (MICROSOFT, [*BYTE, *OUT], {}, (1, 2, 4, 5), 0),
    "QLinearConcat": (MICROSOFT, [*OUT, *BYTE, "x", *TENTH], {"axis": 2}, (2, 3, 4), 0),
    "QGemm": (MICROSOFT, [*BYTE, W.reshape(3, 4), *COLUMNS, np.int32([5, 6, 7]), *OUT], {"transB": 1, "alpha": 0.5},
              (2, 4), 24),
    "QGemm by columns": (MICROSOFT, [*BYTE, W.reshape(4, 3), *COLUMNS, None, *OUT], {}, (2, 4), 24),
    "QLinearMatMul": ("", [*BYTE, W.reshape(4, 3), *COLUMNS, *OUT], {}, (2, 4), 24),
    "QLinearConv": ("", [*BYTE, W.reshape(3, 4, 1, 1), *COLUMNS, *OUT, np.int32([5, 6, 7])], {}, (1, 4, 2, 2), 48),
    "ConvInteger": ("", ["x", W.reshape(3, 4, 1, 1), Z], {}, (1, 4, 2, 2), 48),
    "MatMulInteger": ("", ["x", W.reshape(4, 3), Z], {}, (2, 4), 24),
}  # fmt: skip


@pytest.mark.parametrize("op", INTEGERS)
def test_integers_are_what_their_scales_say(op: str, tmp_path: Path) -> None:
    """Read by their sizes, and spelled out: as onnxruntime computes them, a step apart at most."""
    domain, given, fields, shape, macs = INTEGERS[op]
    held = {f"k{n}": value for n, value in enumerate(given) if value is not None and not isinstance(value, str)}
    names = [f"k{n}" if f"k{n}" in held else str(value or "") for n, value in enumerate(given)]
    node = helper.make_node(op.split()[0], names, ["y"], "n", domain=domain, **fields)
    model = model_of([node], {"x": shape}, "y", held, domain=MICROSOFT, kind=TensorProto.UINT8)
    if op.endswith("Integer"):
        model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    onnx.save(model, tmp_path / "m.onnx")
    network, x = read_onnx(tmp_path / "m.onnx"), np.random.default_rng(2).integers(60, 180, shape).astype(np.uint8)
    assert (network.opaque, network.macs) == ((), macs)
    (wanted,), (found,) = run(model, {"x": x}).values(), computed(tmp_path / "m.onnx", {"x": x}).values()
    assert network.operators[-1].shape == wanted.shape
    assert np.abs(found.astype(float) - wanted).max() <= 1
    if op not in ("QLinearWhere", "QLinearSoftmax"):  # and as it is where there is no onnxruntime
        (other,) = evaluated(onnx.load(tmp_path / "m.onnx"), {"x": x}, ["y"])
        assert np.abs(other.astype(float) - wanted).max() <= 1


@pytest.mark.parametrize("opset", [17, 18])
def test_a_mean_of_integers_by_hand(opset: int, tmp_path: Path) -> None:
    """onnxruntime has no QLinearReduceMean; (130 + 150) / 2 is 20 * 0.05 = 1, which is 25 steps of 0.04 from 100."""
    node = helper.make_node("QLinearReduceMean", ["x", "s", "z", "t", "u"], ["y"], "n", domain=MICROSOFT, axes=[1],
                            keepdims=1)  # fmt: skip
    held = dict(zip("sztu", (S, Z, *OUT), strict=True))
    onnx.save(model_of([node], {"x": (1, 2, 3)}, "y", held, opset=opset, domain=MICROSOFT, kind=TensorProto.UINT8),
              tmp_path / "m.onnx")  # fmt: skip
    assert read_onnx(tmp_path / "m.onnx").operators[-1].shape == (1, 1, 3)
    x = np.uint8([[[130, 120, 0], [150, 120, 0]]])
    assert computed(tmp_path / "m.onnx", {"x": x})["y"].tolist() == [[[125, 100, 0]]]


@pytest.mark.parametrize("operators", [False, True])
def test_models_of_integers_are_read_as_they_compute(tmp_path: Path, operators: bool) -> None:
    """Of several models nearly all elements are equal, of either form."""
    alike = []
    for seed in range(6):
        quantised_model(random.Random(seed), tmp_path / "m.onnx", operators=operators)
        infos = [(i.name, i.type.tensor_type) for i in onnx.load(tmp_path / "m.onnx").graph.input]
        feeds = {
            name: (120 * np.abs(numbers(*(size.dim_value for size in kind.shape.dim)))).clip(0, 120)
            .astype(helper.tensor_dtype_to_np_dtype(kind.elem_type)) for name, kind in infos
        }  # fmt: skip
        found = computed(tmp_path / "m.onnx", feeds)
        judged = run(onnx.load(tmp_path / "m.onnx"), feeds, exact=operators)
        alike += [np.mean(found[name] == value) for name, value in judged.items()]
    assert np.mean(alike) > 0.97

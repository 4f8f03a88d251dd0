"""Element types of ONNX files, and those that a machine counts."""

from __future__ import annotations

import json
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
from instances.onnx.model import read_model
from instances.onnx.ops import HANDLERS
from instances.onnx.quantised import REPLACED, move_integers, one_for_each, spell_out
from instances.onnx.reader import read_onnx
from solver.cli.main import main
from tests.onnx_models import model_of

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

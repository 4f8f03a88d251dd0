"""C of models that have a map as a result and read it inside as well: element by element as onnxruntime computes it."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.onnx.model import read_model
from solver.uses.emit.compile import compile_model
from tests.emitted import BUILDS, build_and_run
from tests.quantised import Maker

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make"
)

FLOATS = dict.fromkeys(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), 4)
BYTES = {"in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 4}
PROBLEMS = ("tiling", "joint", "fusion")


def float_model(rng: random.Random, path: Path) -> None:
    """Write convolutions, and sums, products and joins of what came before; about half of all maps are results."""
    numbers, nodes = np.random.default_rng(rng.randrange(2**32)), list[onnx.NodeProto]()
    weights, results, made = list[onnx.TensorProto](), list[str](), ["x"]

    def node(op: str, inputs: list[str], **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, [f"{op.lower()}{len(nodes)}"], name=f"n{len(nodes)}", **attributes))
        made.append(nodes[-1].output[0])
        return made[-1]

    def conv(source: str) -> str:
        held = {f"w{len(weights)}": numbers.normal(0, 0.5, (3, 3, 1, 1)), f"b{len(weights)}": numbers.normal(0, 1, 3)}
        weights.extend(numpy_helper.from_array(value.astype(np.float32), name) for name, value in held.items())
        return node("Conv", [source, *held])

    results.append(conv("x"))
    for _ in range(rng.randint(2, 5)):
        kind = rng.choice(["Conv", "Relu", "Sigmoid", "Add", "Sub", "Mul", "Max", "Sum"])
        if kind == "Conv":
            one = conv(rng.choice(made))
        elif kind in ("Relu", "Sigmoid"):
            one = node(kind, [rng.choice(made)])
        else:
            one = node(kind, rng.sample(made, min(len(made), 3 if kind == "Sum" else 2)))
        results += [one] if rng.random() < 0.5 else []
    last = node("Concat", [node("Add", [results[0], made[-1]]), "x"], axis=1)
    outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in (*results, last)]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 3, 5, 4))
    graph = helper.make_graph(nodes, "inner", [x], outputs, initializer=weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def quantised_results(rng: random.Random, path: Path, *, operators: bool, kind: str = "uint8") -> None:
    """Write quantised layers that all read earlier maps; of these some are results, as integers or as real numbers."""
    maker = Maker(rng, operators=operators, kind=kind, weight_kind="int8")
    made = [maker.quantised("x", (1, 2, 4, 4), 4 / 255)]
    made.append(maker.pointwise(made[0]))
    maker.result(made[1])
    for _ in range(rng.randint(2, 4)):
        one, two = rng.sample(made, 2)
        alike = one.shape == two.shape and rng.random() < 0.6
        made.append(maker.both(one, two) if alike else maker.pointwise(one))
        if rng.random() < 0.5:
            maker.result(made[-1])
    maker.result(maker.both(made[1], maker.pointwise(made[1])))
    maker.result(maker.pointwise(made[-1]))
    maker.save(path, (1, 2, 4, 4))


def shared_result(path: Path, kind: str = "int8") -> None:
    """Write two convolutions and the sum of their maps; the first, dequantised once for all readers, is a result."""
    maker = Maker(random.Random(5), kind=kind)
    one = maker.pointwise(maker.quantised("x", (1, 2, 4, 4), 4 / 255))
    real = maker.real(one)
    maker.results.append((real, onnx.TensorProto.FLOAT))
    values, scale, zero, _, along = maker.weights((2, 2, 1, 1), 0, 0.01)
    two = maker.node("Conv", [real, maker.node("DequantizeLinear", [values, scale, zero], **along)])
    two = maker.node(
        "DequantizeLinear", [maker.node("QuantizeLinear", [two, *maker.given(one)[1:]]), *maker.given(one)[1:]]
    )
    both = maker.node("Add", [two, real])
    maker.results.append((maker.node("QuantizeLinear", [both, *maker.given(one)[1:]]), onnx.TensorProto.INT8))
    maker.save(path, (1, 2, 4, 4))


def ran(path: Path, folder: Path, problem: str, elements: dict[str, int], flags: str) -> str:
    """Compile a model, run its program, and return what it prints; empty where the plan's C is refused."""
    try:
        made = compile_model(path, "scratchpad_768k", folder, problem=problem, settings=elements, time_limit_s=20)
    except InputError as error:  # of these two problems, what docs/emit.md says
        if problem != "tiling" and re.search("joined several times|see it as regular rows|reshaped", str(error)):
            return ""
        raise
    assert "expected.bin" in made.files
    printed = build_and_run(folder, flags)
    assert "transfers as planned" in printed
    assert exact(printed), printed
    return printed


def exact(printed: str) -> bool:
    """Whether all is equal to what onnxruntime computes, real numbers within 1e-5 of the largest one."""
    real = re.search(r"differ from those expected by (\S+)", printed)
    steps = re.search(r"within (\d+) steps", printed)
    assert real or steps, printed
    return (real is None or float(real[1]) < 1e-5) and (steps is None or int(steps[1]) <= 1)


def test_a_result_is_an_operand(tmp_path: Path) -> None:
    """The operator that makes a tensor is its maker, whether or not it is a result."""
    float_model(random.Random(0), tmp_path / "m.onnx")
    model = read_model(tmp_path / "m.onnx")
    assert {"conv0", model.outputs[-1]} <= set(model.results)
    assert model.makers["conv0"] == "n0"
    assert model.results["conv0"] == "conv0 (result)"
    assert not any("(result)" in maker for maker in model.makers.values())


@pytest.mark.slow(2)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_real_maps(tmp_path: Path, problem: str) -> None:
    pytest.importorskip("onnxruntime")
    float_model(random.Random(3), tmp_path / "m.onnx")
    assert ran(tmp_path / "m.onnx", tmp_path / "c", problem, FLOATS, "-O0")


@pytest.mark.slow(2)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_dequantised_map(tmp_path: Path, problem: str) -> None:
    """Its readers take integers, the result the real numbers that these stand for."""
    pytest.importorskip("onnxruntime")
    shared_result(tmp_path / "m.onnx")
    assert ran(tmp_path / "m.onnx", tmp_path / "c", problem, BYTES, "-O0")


@pytest.mark.thorough
@pytest.mark.slow(60)
@pytest.mark.parametrize(("operators", "kind"), [(False, "uint8"), (False, "int8"), (True, "uint8")])
def test_more_quantised_maps(tmp_path: Path, operators: bool, kind: str) -> None:
    pytest.importorskip("onnxruntime")
    written = 0
    for seed in range(12):
        path = tmp_path / f"{seed}.onnx"
        quantised_results(random.Random(seed), path, operators=operators, kind=kind)
        printed = ran(path, tmp_path / str(seed), PROBLEMS[seed % 3], BYTES, BUILDS[seed % 4])
        written += bool(printed)
    assert written >= 8

"""What a quantised file says by itself is kept: integers of its constants, and one rounding of phases and joins.

Every model is compared with onnxruntime; each has several branches, as a build takes longer than what it computes.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.load import load_machine
from instances.onnx.model import read_model
from solver.uses.emit.compile import compile_model
from solver.uses.emit.meaning import Meaning
from solver.uses.emit.preflight import refusals
from tests.emitted import build_and_run
from tests.onnx_models import model_of

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make")
#: Of numpy's integers.
Type: TypeAlias = Any
BYTES: dict[str, str | int] = {"in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 4, "ocm_banks": 64}


class File:
    """A model whose input is quantised, with branches that end in quantised results."""

    def __init__(self, shape: tuple[int, ...], kind: Type, zero: int) -> None:
        self.shape, self.kind, self.rng = shape, kind, np.random.default_rng(11)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.results: list[str] = []
        self.integers = self.node("QuantizeLinear", "x", self.real(0.0193), self.value(np.array(zero, kind)))
        self.given = [self.integers, *self.nodes[-1].input[1:]]
        self.map = self.node("DequantizeLinear", *self.given)

    def value(self, array: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(array, f"k{len(self.constants)}"))
        return self.constants[-1].name

    def real(self, *values: float) -> str:
        return self.value(np.array(values if len(values) > 1 else values[0], np.float32))

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], f"n{len(self.nodes)}", domain=domain, **attributes))
        return name

    def constant(self, kind: Type, zero: int, *shape: int, least: int | None = None) -> list[str]:
        """Integers up to the last one, with a scale and a zero point of their own."""
        ends = np.iinfo(kind)
        held = self.rng.integers(ends.min if least is None else least, ends.max + 1, shape).astype(kind)
        return [self.value(held), self.real(0.0117), self.value(np.array(zero, kind))]

    def dequantised(self, *given: str, **attributes: Any) -> str:
        return self.node("DequantizeLinear", *given, **attributes)

    def end(self, tensor: str, scale: float = 0.0291, zero: int = 3) -> None:
        step = [self.real(scale), self.value(np.array(zero, self.kind))]
        self.results.append(self.dequantised(self.node("QuantizeLinear", tensor, *step), *step))

    def transposed(self, *shape: int, by_channel: bool = False, bias: bool = False, **attributes: Any) -> str:
        """A ConvTranspose of the map; `shape`: channels, filters of a group, taps."""
        filters = shape[1] * int(attributes.get("group", 1))
        weights = self.value(self.rng.integers(-127, 128, shape).astype(np.int8))
        scales = self.real(*self.rng.uniform(0.002, 0.005, shape[1])) if by_channel else self.real(0.0031)
        zero = self.value(np.zeros(shape[1] if by_channel else (), np.int8))
        given = [self.map, self.dequantised(weights, scales, zero, **({"axis": 1} if by_channel else {}))]
        if bias:
            held = self.value(self.rng.integers(-9000, 9000, filters).astype(np.int32))
            given.append(self.dequantised(held, self.real(0.0193 * 0.0031), self.value(np.array(0, np.int32))))
        return self.node("ConvTranspose", *given, **attributes)

    def conv(self, filters: int) -> str:
        weights = self.value(self.rng.integers(-127, 128, (filters, self.shape[1], 1, 1)).astype(np.int8))
        return self.node(
            "Conv", self.map, self.dequantised(weights, self.real(0.0031), self.value(np.array(0, np.int8)))
        )

    def saved(self, path: Path) -> Path:
        made = model_of(self.nodes, {"x": self.shape}, self.results, self.constants, domain="com.microsoft")
        onnx.save(onnx.shape_inference.infer_shapes(made), path)
        return path


def sums(kind: Type, zero: int) -> File:
    """Functions of a map and a constant of its own kind, of the other one, on either side, broadcast."""
    model = File((1, 4, 4, 6), kind, zero)
    u8, i8 = np.uint8, np.int8
    for op, left, given in (
        ("Add", False, (u8, 0, 1, 4, 1, 6)), ("Sub", True, (i8, -5, 4, 4, 6)), ("Mul", False, (u8, 7, 1, 1, 4, 6)),
        ("Max", True, (i8, 1, 1, 4, 4, 6)), ("Min", False, (u8, 200, 4, 6)), ("Add", True, (i8, -128, 1, 4, 1, 6)),
    ):  # fmt: skip
        constant = model.dequantised(*model.constant(*given))
        model.end(model.node(op, *((constant, model.map) if left else (model.map, constant))))
    return model


def more(kind: Type, zero: int) -> File:
    """Quotients, scales by channel, taken elements, QOperator form, joins."""
    model = File((1, 4, 4, 6), kind, zero)
    u8, i8 = np.uint8, np.int8
    model.end(model.node("Div", model.map, model.dequantised(*model.constant(u8, 0, 4, 4, 6, least=40))), 0.05)
    held, scales = model.constant(i8, 0, 1, 4, 4, 6)[0], model.real(0.01, 0.02, 0.005, 0.013)
    zeros = model.value(np.array([1, -2, 0, 5], np.int8))
    model.end(model.node("Add", model.map, model.dequantised(held, scales, zeros, axis=1)))
    table = model.dequantised(*model.constant(u8, 31, 9, 6))
    rows = model.node("Gather", table, model.value(np.array([7, 0, 3, 3])), axis=0)
    model.end(model.node("Add", rows, model.map))
    turned = model.node("Transpose", model.dequantised(*model.constant(i8, 9, 6, 4, 4)), perm=[1, 2, 0])
    model.end(model.node("Mul", turned, model.map))
    for op, swapped in (("QLinearAdd", False), ("QLinearMul", True)):
        pair = [model.given, model.constant(kind, zero, 1, 4, 1, 6)]
        given = [one for three in pair[:: -1 if swapped else 1] for one in three]
        step = [model.real(0.03), model.value(np.array(zero, kind))]
        made = model.node(op, *given, *step, domain="com.microsoft")
        model.results.append(model.dequantised(made, *step))
    model.end(model.node("Concat", model.map, model.dequantised(*model.constant(u8, 12, 1, 2, 4, 6)), axis=1))
    return model


def phases(kind: Type, zero: int) -> File:
    """ConvTranspose in two and four phases, with a bias, scales by channel, groups."""
    model = File((1, 4, 5, 5), kind, zero)
    usual: dict[str, Any] = {"strides": [2, 2], "pads": [1, 1, 1, 1]}
    model.end(model.transposed(4, 3, 4, 4, bias=True, **usual))
    model.end(model.node("Relu", model.transposed(4, 2, 3, 3, output_padding=[1, 1], by_channel=True, **usual)))
    model.end(model.transposed(4, 1, 4, 3, group=2, strides=[2, 1], pads=[1, 1, 1, 1]))
    return model


def joins(kind: Type, zero: int) -> File:
    """Phases that are moved further, and sums that are joined before they are quantised."""
    model = File((1, 4, 5, 5), kind, zero)
    made = model.transposed(4, 2, 4, 4, strides=[2, 2], pads=[1, 1, 1, 1])
    model.end(model.node("Transpose", made, perm=[0, 2, 3, 1]))
    model.end(model.transposed(4, 1, 3, 5, strides=[1, 3], pads=[1, 1, 1, 1]))
    model.end(model.node("Concat", model.node("Relu", model.conv(2)), model.conv(3), axis=1))
    return model


FILES = {"sums": sums, "more": more, "phases": phases, "joins": joins}
KINDS = {"uint8": (np.uint8, 120), "int8": (np.int8, -3)}
RULES = [
    ("sums", "uint8", "float"), ("sums", "int8", "double"), ("more", "uint8", "float"), ("more", "int8", "float"),
    ("phases", "int8", "float"), ("joins", "uint8", "float"), ("joins", "int8", "single"),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES)
def test_nothing_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    path = FILES[name](*KINDS[kind]).saved(tmp_path / "m.onnx")
    machine = load_machine("scratchpad_64k", {field: str(value) for field, value in BYTES.items()})
    assert refusals(read_model(path), machine).always == {}


def test_constants_have_the_grid_of_the_file(tmp_path: Path) -> None:
    """The scale 0.0117 and the zero points that `sums` and `more` write; of the quotient, by channel, taken, QOperator.
    The last constant is joined by the host, in real numbers."""
    machine = load_machine("scratchpad_64k", {field: str(value) for field, value in BYTES.items()})
    found = []
    for name in ("sums", "more"):
        path = FILES[name](np.int8, -3).saved(tmp_path / "m.onnx")
        found.append(list(Meaning(read_model(path), machine).passing.constants.values()))
    assert [(grid.kind, grid.one_zero) for grid in found[0]] == [
        ("u8", 0), ("i8", -5), ("u8", 7), ("i8", 1), ("u8", 200), ("i8", -128),
    ]  # fmt: skip
    assert [(grid.kind, list(grid.zero), grid.axis) for grid in found[1]] == [
        ("u8", [0], None), ("i8", [1, -2, 0, 5], 1), ("u8", [31], None), ("i8", [9], None), ("i8", [-3], None),
        ("i8", [-3], None),
    ]  # fmt: skip
    single = [grid for grids in found for grid in grids if grid.axis is None]
    assert {grid.scale.item() for grid in single} == {np.float32(0.0117).item()}


@needs_gcc
@pytest.mark.slow(60)
@pytest.mark.parametrize(("name", "kind", "rule"), RULES)
def test_results_are_those_of_onnxruntime(tmp_path: Path, name: str, kind: str, rule: str) -> None:
    """All exact; by whole numbers within a step."""
    pytest.importorskip("onnxruntime")
    path = FILES[name](*KINDS[kind]).saved(tmp_path / "m.onnx")
    compile_model(
        path, "scratchpad_64k", tmp_path / "c", settings=BYTES, problem="tiling", time_limit_s=10, requantise=rule
    )
    printed = build_and_run(tmp_path / "c", "-O0")
    exact = re.findall(r"(\d+) of (\d+) elements exact, the others within (\d+) steps", printed)
    assert exact, printed
    for equal, whole, steps in exact:
        assert equal == whole if rule == "float" else int(steps) <= 1, printed

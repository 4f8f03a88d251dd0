"""Quantised operators that become several, or are the host's: each runs within a step of onnxruntime, or is refused.

Small float models, quantised to 8 bits by onnxruntime's static quantisation: signed and unsigned as QDQ, and QOperator.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.load import load_machine
from instances.onnx.model import read_model
from solver.uses.emit import emit as compiling
from solver.uses.emit.emit import compile_model
from solver.uses.emit.meaning import Meaning
from solver.uses.emit.preflight import refusals
from tests.emitted import BUILDS, build_and_run, light_model, needs_gcc
from tests.onnx_models import model_of

quantization = pytest.importorskip("onnxruntime.quantization")

BYTES: dict[str, str | int] = {"psum_bytes": 4, "ocm_banks": 64}
#: By form how onnxruntime quantises maps.
FORMS = {"qdq int8": ("QDQ", "QInt8"), "qdq uint8": ("QDQ", "QUInt8"), "qoperator": ("QOperator", "QUInt8")}


class Model:
    """A graph of nodes whose constants have names and values."""

    domain = ""

    def __init__(self, shape: tuple[int, ...], opset: int = 17) -> None:
        self.shape, self.opset, self.rng = shape, opset, np.random.default_rng(5)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.results: list[str] = []

    def weights(self, *shape: int, low: float = -0.5, high: float = 0.5) -> str:
        return self.values(self.rng.uniform(low, high, shape).astype(np.float32))

    def values(self, array: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(array, f"k{len(self.constants)}"))
        return self.constants[-1].name

    def real(self, *values: float) -> str:
        return self.values(np.array(values if len(values) > 1 else values[0], np.float32))

    def node(self, op: str, *inputs: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, inputs, [f"t{len(self.nodes)}"], f"n{len(self.nodes)}", **attributes))
        return self.nodes[-1].output[0]

    def conv(self, source: str, channels: int, filters: int, **attributes: object) -> str:
        return self.node("Conv", source, self.weights(filters, channels, 1, 1), **attributes)

    def saved(self, path: Path) -> Path:
        results = self.results or [self.nodes[-1].output[0]]
        made = model_of(self.nodes, {"x": self.shape}, results, self.constants, opset=self.opset, domain=self.domain)
        onnx.save(onnx.shape_inference.infer_shapes(made), path)
        return path


def mapped(op: str, *others: str, behind: bool = True, **attributes: object) -> Model:
    """A convolution of 4 channels of 6x6 to 8, the operator, and another convolution behind."""
    model = Model((1, 4, 6, 6))
    conv = model.conv("x", 4, 8)
    shapes = {"scale": (0.5, 1.5), "shift": (-0.5, 0.5)}
    given = [model.weights(8, low=shapes[o][0], high=shapes[o][1]) if o in shapes else o for o in others]
    made = model.node(op, conv, *given, **attributes)
    if behind:
        model.conv(made, 8, 4)
    return model


def tokens(op: str, *others: str, opset: int = 17, behind: bool = True, **attributes: object) -> Model:
    """A product of 5 tokens of 8 features, the operator, and another product behind."""
    model = Model((1, 5, 8), opset)
    product = model.node("MatMul", "x", model.weights(8, 8))
    given = [model.weights(8, low=0.5, high=1.5) for _ in others]
    made = model.node(op, product, *given, **attributes)
    if behind:
        model.node("MatMul", made, model.weights(8, 6))
    return model


def gated(*functions: str, squeezed: bool, **attributes: object) -> Model:
    """A map times a function of itself, or of its means and a convolution of these."""
    model = Model((1, 4, 6, 6))
    conv = gate = model.conv("x", 4, 8)
    if squeezed:
        gate = model.conv(model.node("GlobalAveragePool", conv), 8, 8)
    for function in functions:
        gate = model.node(function, gate, **attributes)
    model.conv(model.node("Mul", conv, gate), 8, 4)
    return model


def gelu() -> Model:
    """As older exports have it: x / 2 * (1 + erf(x / sqrt(2)))."""
    model = Model((1, 5, 8))
    product = model.node("MatMul", "x", model.weights(8, 8))
    erf = model.node("Erf", model.node("Div", product, model.real(2**0.5)))
    half = model.node("Mul", model.node("Mul", product, model.node("Add", erf, model.real(1))), model.real(0.5))
    model.node("MatMul", half, model.weights(8, 6))
    return model


def joined(*, inside: bool, result: bool) -> Model:
    """Two maps of unlike scales side by side: read by a convolution, a result, or both."""
    model = Model((1, 4, 6, 6))
    wide = model.node("Conv", "x", model.weights(4, 4, 1, 1, low=-4, high=4))
    both = model.node("Concat", model.conv("x", 4, 8), wide, axis=1)
    if inside:
        model.results = [model.conv(both, 12, 4)]
    model.results += [both] if result else []
    return model


def resized(mode: str) -> Model:
    rules = {"nearest": {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, "linear": {}}
    model = Model((1, 4, 6, 6))
    scales = model.values(np.array([1, 1, 2, 2], np.float32))
    model.conv(model.node("Resize", model.conv("x", 4, 8), "", scales, mode=mode, **rules[mode]), 8, 4)
    return model


def transposed() -> Model:
    model = Model((1, 4, 6, 6))
    made = model.node("ConvTranspose", model.conv("x", 4, 8), model.weights(8, 8, 2, 2), strides=[2, 2])
    model.conv(made, 8, 4)
    return model


def lengths() -> Model:
    """What is divided by its own length: onnxruntime quantises no ReduceL2."""
    model = Model((1, 5, 8))
    product = model.node("MatMul", "x", model.weights(8, 8))
    model.node("Div", product, model.node("ReduceL2", product, axes=[-1], keepdims=1))
    return model


def powers() -> Model:
    model = Model((1, 4, 6, 6))
    model.conv(model.node("Pow", model.conv("x", 4, 8), model.real(2)), 8, 4)
    return model


MODELS = {
    "InstanceNormalization": lambda: mapped("InstanceNormalization", "scale", "shift"),
    "LayerNormalization": lambda: tokens("LayerNormalization", "scale", "shift", axis=-1),
    # nothing behind: onnxruntime takes exponentials from a table, and a sum makes more of such steps
    "Softmax": lambda: tokens("Softmax", behind=False, axis=-1),
    "Softmax of channels": lambda: mapped("Softmax", behind=False, axis=1),
    "HardSwish": lambda: mapped("HardSwish"),
    "HardSwish in parts": lambda: gated("HardSigmoid", squeezed=False, alpha=1 / 6, beta=0.5),
    "gate by HardSigmoid": lambda: gated("HardSigmoid", squeezed=True, alpha=1 / 6, beta=0.5),
    "gate by HardSwish and Sigmoid": lambda: gated("HardSwish", "Sigmoid", squeezed=True),
    "gate by Sigmoid": lambda: gated("Sigmoid", squeezed=True),
    "SiLU": lambda: gated("Sigmoid", squeezed=False),
    "Mish": lambda: gated("Softplus", "Tanh", squeezed=False),
    "Gelu": lambda: tokens("Gelu", opset=20),
    "Gelu in parts": gelu,
    "Concat read": lambda: joined(inside=True, result=False),
    "Concat as a result": lambda: joined(inside=False, result=True),
    "Concat read and a result": lambda: joined(inside=True, result=True),
    "Resize nearest": lambda: resized("nearest"),
    "Resize linear": lambda: resized("linear"),
    "ConvTranspose": transposed,
    "Pow": powers,
    "ReduceL2": lengths,
}
#: What is refused, and a part of why: nobody has quantised it.
REFUSED = {
    ("ReduceL2", "qdq int8"): "maps of float32.*quantise what it reads",
    ("ReduceL2", "qdq uint8"): "maps of float32.*quantise what it reads",
    ("ReduceL2", "qoperator"): "maps of float32.*quantise what it reads",
    ("ConvTranspose", "qoperator"): "its weights are not: quantise them, too",
    ("Resize linear", "qoperator"): "of integers, which no scale dequantises: quantise it as QDQ",
}
EVERY = [(name, form) for name in MODELS for form in FORMS]


class Inputs:
    """What scales are measured on."""

    def __init__(self, shape: tuple[int, ...], name: str = "x") -> None:
        rng = np.random.default_rng(3)
        self.left: Iterator[dict[str, np.ndarray]] = iter(
            [{name: rng.uniform(-1, 1, shape).astype(np.float32)} for _ in range(4)]
        )

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.left, None)


def quantised(name: str, form: str, folder: Path) -> Path:
    """Write a model, and return what onnxruntime makes of it."""
    model, (way, kind) = MODELS[name](), FORMS[form]
    model.saved(folder / "float.onnx")
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantization.quantize_static(
            folder / "float.onnx", folder / "q.onnx", Inputs(model.shape),
            quant_format=quantization.QuantFormat[way], activation_type=quantization.QuantType[kind],
            weight_type=quantization.QuantType.QInt8,
        )  # fmt: skip
    logging.disable(logging.NOTSET)
    return folder / "q.onnx"


def run(name: str, form: str, folder: Path, problem: str | None, flags: str) -> None:
    compile_model(
        quantised(name, form, folder), "scratchpad_64k", folder / "c", settings=BYTES, problem=problem, time_limit_s=20
    )
    printed = build_and_run(folder / "c", flags)
    assert "transfers as planned" in printed
    steps = [int(one) for one in re.findall(r"the others within (\d+) steps", printed)]
    assert steps, printed
    assert max(steps) <= 1, printed


@needs_gcc
@pytest.mark.slow(60)
@pytest.mark.parametrize(("name", "form"), [one for one in EVERY if one not in REFUSED])
def test_every_operator(tmp_path: Path, name: str, form: str) -> None:
    problem = (None, "tiling")[EVERY.index((name, form)) % 2]
    run(name, form, tmp_path, problem, BUILDS[EVERY.index((name, form)) % 4])


@pytest.mark.parametrize(("name", "form"), REFUSED)
def test_what_is_refused_is_refused_before_any_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, form: str
) -> None:
    """With the reason and what helps."""
    path = quantised(name, form, tmp_path)

    def search(*_: object, **__: object) -> None:
        raise AssertionError("a search before the refusal")

    monkeypatch.setattr(compiling, "solve", search)
    with pytest.raises(InputError, match=REFUSED[name, form]):
        compile_model(path, "scratchpad_64k", tmp_path / "c", settings=BYTES)


@pytest.mark.few(3)
@pytest.mark.parametrize(("name", "form"), [one for one in EVERY if one not in REFUSED])
def test_the_pre_flight_refuses_nothing_else(tmp_path: Path, name: str, form: str) -> None:
    machine = load_machine("scratchpad_64k", {field: str(value) for field, value in BYTES.items()})
    assert refusals(read_model(quantised(name, form, tmp_path)), machine).always == {}


# ---- What a quantised file says by itself is kept: integers of its constants, and one rounding of phases
#
# Every model is compared with onnxruntime; each has several branches, as a build takes longer than what it computes.

#: Of numpy's integers.
Type: TypeAlias = Any
OF_BYTES: dict[str, str | int] = {"in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 4, "ocm_banks": 64}


class File(Model):
    """A model whose input is quantised, with branches that end in quantised results."""

    domain = "com.microsoft"

    def __init__(self, shape: tuple[int, ...], kind: Type, zero: int) -> None:
        super().__init__(shape)
        self.kind, self.rng = kind, np.random.default_rng(11)
        self.integers = self.node("QuantizeLinear", "x", self.real(0.0193), self.values(np.array(zero, kind)))
        self.given = [self.integers, *self.nodes[-1].input[1:]]
        self.map = self.node("DequantizeLinear", *self.given)

    def constant(self, kind: Type, zero: int, *shape: int, least: int | None = None) -> list[str]:
        """Integers up to the last one, with a scale and a zero point of their own."""
        ends = np.iinfo(kind)
        held = self.rng.integers(ends.min if least is None else least, ends.max + 1, shape).astype(kind)
        return [self.values(held), self.real(0.0117), self.values(np.array(zero, kind))]

    def dequantised(self, *given: str, **attributes: Any) -> str:
        return self.node("DequantizeLinear", *given, **attributes)

    def end(self, tensor: str, scale: float = 0.0291, zero: int = 3) -> None:
        step = [self.real(scale), self.values(np.array(zero, self.kind))]
        self.results.append(self.dequantised(self.node("QuantizeLinear", tensor, *step), *step))

    def transposed(self, *shape: int, by_channel: bool = False, bias: bool = False, **attributes: Any) -> str:
        """A ConvTranspose of the map; `shape`: channels, filters of a group, taps."""
        filters = shape[1] * int(attributes.get("group", 1))
        weights = self.values(self.rng.integers(-127, 128, shape).astype(np.int8))
        scales = self.real(*self.rng.uniform(0.002, 0.005, shape[1])) if by_channel else self.real(0.0031)
        zero = self.values(np.zeros(shape[1] if by_channel else (), np.int8))
        given = [self.map, self.dequantised(weights, scales, zero, **({"axis": 1} if by_channel else {}))]
        if bias:
            held = self.values(self.rng.integers(-9000, 9000, filters).astype(np.int32))
            given.append(self.dequantised(held, self.real(0.0193 * 0.0031), self.values(np.array(0, np.int32))))
        return self.node("ConvTranspose", *given, **attributes)

    def conv(self, filters: int) -> str:
        weights = self.values(self.rng.integers(-127, 128, (filters, self.shape[1], 1, 1)).astype(np.int8))
        return self.node(
            "Conv", self.map, self.dequantised(weights, self.real(0.0031), self.values(np.array(0, np.int8)))
        )


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
    zeros = model.values(np.array([1, -2, 0, 5], np.int8))
    model.end(model.node("Add", model.map, model.dequantised(held, scales, zeros, axis=1)))
    table = model.dequantised(*model.constant(u8, 31, 9, 6))
    rows = model.node("Gather", table, model.values(np.array([7, 0, 3, 3])), axis=0)
    model.end(model.node("Add", rows, model.map))
    turned = model.node("Transpose", model.dequantised(*model.constant(i8, 9, 6, 4, 4)), perm=[1, 2, 0])
    model.end(model.node("Mul", turned, model.map))
    for op, swapped in (("QLinearAdd", False), ("QLinearMul", True)):
        pair = [model.given, model.constant(kind, zero, 1, 4, 1, 6)]
        given = [one for three in pair[:: -1 if swapped else 1] for one in three]
        step = [model.real(0.03), model.values(np.array(zero, kind))]
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
    machine = load_machine("scratchpad_64k", {field: str(value) for field, value in OF_BYTES.items()})
    assert refusals(read_model(path), machine).always == {}


def test_constants_have_the_grid_of_the_file(tmp_path: Path) -> None:
    """The scale 0.0117 and the zero points that `sums` and `more` write; of the quotient, by channel, taken, QOperator.
    The last constant is joined by the host, in real numbers."""
    machine = load_machine("scratchpad_64k", {field: str(value) for field, value in OF_BYTES.items()})
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
        path, "scratchpad_64k", tmp_path / "c", settings=OF_BYTES, problem="tiling", time_limit_s=10, requantise=rule
    )
    printed = build_and_run(tmp_path / "c", "-O0")
    exact = re.findall(r"(\d+) of (\d+) elements exact, the others within (\d+) steps", printed)
    assert exact, printed
    for equal, whole, steps in exact:
        assert equal == whole if rule == "float" else int(steps) <= 1, printed


@needs_gcc
@pytest.mark.slow(300)
def test_resnet_50_as_it_is_compiled_by_default(tmp_path: Path) -> None:
    """The least time on 512 KiB, transfers ahead, copied as early and as late as may be: each result within a step.

    Its plan fills the memory with blocks of weights and finds no addresses; ordered anew it takes hardly longer.
    """
    light_model("resnet50", tmp_path / "float.onnx")
    model = onnx.load(tmp_path / "float.onnx")
    for node in model.graph.node:  # onnxruntime quantises no Sum
        node.op_type = "Add" if node.op_type == "Sum" else node.op_type
    onnx.save(model, tmp_path / "float.onnx")
    quantization.shape_inference.quant_pre_process(
        tmp_path / "float.onnx", tmp_path / "ready.onnx", skip_symbolic_shape=True
    )
    quantization.quantize_static(
        tmp_path / "ready.onnx", tmp_path / "q.onnx", Inputs((1, 3, 224, 224), model.graph.input[0].name),
        quant_format=quantization.QuantFormat.QDQ, activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
    )  # fmt: skip
    settings = {**BYTES, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "ocm_bytes": 512 * 1024}
    made = compile_model(tmp_path / "q.onnx", "scratchpad_768k", tmp_path / "c", settings=settings)
    assert (made.plan.problem, made.plan.objectives, "ahead.c" in made.files) == ("fusion", ("time",), True)
    assert made.plan.gap is not None
    assert made.plan.gap < 0.03
    for flags in ("-O2", "-O2 -DCERTILE_DMA_LATE"):
        printed = build_and_run(tmp_path / "c", flags, guarded=False)
        assert "transfers as planned" in printed
        assert [int(one) for one in re.findall(r"the others within (\d+) steps", printed)] == [1], printed

"""Quantised operators that become several, or are the host's: each runs within a step of onnxruntime, or is refused.

Small float models, quantised to 8 bits by onnxruntime's static quantisation: signed and unsigned as QDQ, and QOperator.
"""

from __future__ import annotations

import logging
import re
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.load import load_machine
from instances.onnx.model import read_model
from solver.uses.emit import compile as compiling
from solver.uses.emit.compile import compile_model
from solver.uses.emit.preflight import refusals
from tests.emitted import BUILDS, build_and_run
from tests.onnx_models import model_of

quantization = pytest.importorskip("onnxruntime.quantization")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make")

BYTES: dict[str, str | int] = {"psum_bytes": 4, "ocm_banks": 64}
#: By form how onnxruntime quantises maps.
FORMS = {"qdq int8": ("QDQ", "QInt8"), "qdq uint8": ("QDQ", "QUInt8"), "qoperator": ("QOperator", "QUInt8")}


class Model:
    """A graph of nodes whose constants have names and values."""

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

    def real(self, value: float) -> str:
        return self.values(np.array(value, np.float32))

    def node(self, op: str, *inputs: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, inputs, [f"t{len(self.nodes)}"], f"n{len(self.nodes)}", **attributes))
        return self.nodes[-1].output[0]

    def conv(self, source: str, channels: int, filters: int, **attributes: object) -> str:
        return self.node("Conv", source, self.weights(filters, channels, 1, 1), **attributes)

    def saved(self, path: Path) -> None:
        results = self.results or [self.nodes[-1].output[0]]
        made = model_of(self.nodes, {"x": self.shape}, results, self.constants, opset=self.opset)
        onnx.save(onnx.shape_inference.infer_shapes(made), path)


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
#: With a conv behind them, of each way through the emitter one; the others are slow.
FEW = [
    ("InstanceNormalization", "qdq int8"), ("gate by HardSwish and Sigmoid", "qdq uint8"), ("SiLU", "qoperator"),
    ("Concat read and a result", "qdq int8"), ("ConvTranspose", "qdq uint8"), ("Resize nearest", "qoperator"),
]  # fmt: skip


class Inputs:
    """What scales are measured on."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        rng = np.random.default_rng(3)
        self.left: Iterator[dict[str, np.ndarray]] = iter(
            [{"x": rng.uniform(-1, 1, shape).astype(np.float32)} for _ in range(4)]
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


@pytest.mark.slow(2)
@needs_gcc
@pytest.mark.parametrize(("name", "form"), FEW)
def test_operators(tmp_path: Path, name: str, form: str) -> None:
    run(name, form, tmp_path, None, "-O0")


@needs_gcc
@pytest.mark.slow(60)
@pytest.mark.parametrize(("name", "form"), [one for one in EVERY if one not in FEW and one not in REFUSED])
def test_more_operators(tmp_path: Path, name: str, form: str) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize(("name", "form"), [one for one in EVERY if one not in REFUSED])
def test_the_pre_flight_refuses_nothing_else(tmp_path: Path, name: str, form: str) -> None:
    machine = load_machine("scratchpad_64k", {field: str(value) for field, value in BYTES.items()})
    assert refusals(read_model(quantised(name, form, tmp_path)), machine).always == {}

"""Random quantised ONNX models, and their programs by random nests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from pydantic import ValidationError

from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer
from instances.onnx.model import read_model
from solver.uses.emit.meaning import Meaning
from solver.uses.emit.network import NetworkPlanned, alone
from tests.emitted import random_machine, random_nest

MICROSOFT = "com.microsoft"


@dataclass
class Tensor:
    """A quantised tensor of a model that is being made: its name, shape, scale and zero point."""

    name: str
    shape: tuple[int, ...]
    scale: str
    zero: str
    spread: float
    """About the standard deviation of its integers."""


@dataclass
class Maker:
    """Makes a model, of operators between DequantizeLinear and QuantizeLinear (or as operators on integers)."""

    rng: random.Random
    operators: bool = False
    kind: str = "uint8"
    weight_kind: str = "int8"
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    results: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.numbers = np.random.default_rng(self.rng.randrange(2**32))

    def constant(self, value: np.ndarray | np.generic) -> str:
        name = f"k{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op: str, inputs: Sequence[str], domain: str = "", **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}", domain=domain, **attributes))
        return name

    def zero(self, kind: str) -> np.ndarray:
        limits = np.iinfo(kind)
        middle = (int(limits.min) + int(limits.max) + 1) // 2
        return np.array(middle + self.rng.randint(-middle // 2 - 9, middle // 2 + 9), kind)

    def wide(self) -> str:
        """The domain of the operators that quantise integers of 16 bits."""
        return MICROSOFT if self.kind.endswith("16") else ""

    def tensor(self, name: str, shape: tuple[int, ...], scale: float) -> Tensor:
        spread = float(np.iinfo(self.kind).max) / (4 if self.kind[0] == "u" else 2)
        return Tensor(
            name, shape, self.constant(np.float32(scale)), self.constant(self.zero(self.kind)), spread / 2
        )  # fmt: skip

    def quantised(self, real: str, shape: tuple[int, ...], scale: float) -> Tensor:
        made = self.tensor("", shape, scale)
        made.name = self.node("QuantizeLinear", [real, made.scale, made.zero], self.wide())
        return made

    def real(self, one: Tensor) -> str:
        return self.node("DequantizeLinear", [one.name, one.scale, one.zero], self.wide())

    def value(self, name: str) -> float:
        return float(next(numpy_helper.to_array(t) for t in self.constants if t.name == name))

    def given(self, one: Tensor) -> list[str]:
        return [one.name, one.scale, one.zero]

    # ---- layers ----------------------------------------------------------------------------------------------------

    def weights(
        self, shape: tuple[int, ...], axis: int, real: float
    ) -> tuple[str, str, str, np.ndarray, dict[str, int]]:  # fmt: skip
        """Integers, scales and zero points (by name), the scales, and the attribute that says their axis."""
        rng, each = self.rng, self.rng.random() < 0.5
        limits = np.iinfo(self.weight_kind)
        values = self.numbers.integers(limits.min, limits.max, shape, self.weight_kind, endpoint=True)
        number = shape[axis] if each else 1
        scale = (real * self.numbers.uniform(0.5, 2, number)).astype(np.float32)
        zero = np.full(number, self.zero(self.weight_kind) if self.weight_kind == "uint8" else 0, self.weight_kind)
        if not each and rng.random() < 0.3:
            zero[:] = self.zero(self.weight_kind)
        scale_name, zero_name = (self.constant(x if each else x[0]) for x in (scale, zero))
        return self.constant(values), scale_name, zero_name, scale, {"axis": axis} if each else {}

    def product(self, op: str, one: Tensor, shape: tuple[int, ...], axis: int, taps: int, out: tuple[int, ...],
                after: str = "", **attributes: object) -> Tensor:  # fmt: skip
        """A convolution or Gemm with a bias, maybe a function behind, and the quantisation of its result."""
        values, scale, zero, scales, along = self.weights(shape, axis, 0.01)
        unit, steps = self.value(one.scale) * scales, taps**0.5 * one.spread * np.iinfo(self.weight_kind).max
        drawn = self.numbers.normal(0, min(steps / 2, 2**28), shape[axis]).astype(np.int32)
        bias = drawn if self.rng.random() < 0.7 else None
        made = self.tensor("", out, float(unit.mean()) * steps / one.spread)
        if self.operators:
            q = self.constant(bias) if bias is not None else ""
            names = [*self.given(one), values, scale, zero]
            if op == "Conv":
                inputs = [*names, made.scale, made.zero, *([q] if q else [])]
                made.name = self.node("QLinearConv", inputs, **attributes)
            else:
                made.name = self.node("QGemm", [*names, q, made.scale, made.zero], MICROSOFT, **attributes)
            return made
        wide = MICROSOFT if self.weight_kind.endswith("16") else ""
        inputs = [self.real(one), self.node("DequantizeLinear", [values, scale, zero], wide, **along)]
        if bias is not None:
            zeros = self.constant(np.zeros(len(unit), np.int32) if len(unit) > 1 else np.int32(0))
            held = self.constant(unit.astype(np.float32) if len(unit) > 1 else unit.astype(np.float32)[0])
            name = self.constant(bias)
            inputs.append(self.node("DequantizeLinear", [name, held, zeros], **({"axis": 0} if len(unit) > 1 else {})))
        real = self.node(op, inputs, **attributes)
        if after:
            more = {"LeakyRelu": {"alpha": 0.3}}.get(after, {})
            limits = [self.constant(np.float32(-0.1)), self.constant(np.float32(0.4))] if after == "Clip" else []
            real = self.node(after, [real, *limits], **more)
        if after in ("Sigmoid", "HardSigmoid", "Clip"):
            self.constants[:] = [t for t in self.constants if t.name != made.scale] + [
                numpy_helper.from_array(np.float32(1 / 250), made.scale)]  # fmt: skip
        made.name = self.node("QuantizeLinear", [real, made.scale, made.zero], self.wide())
        return made

    def conv(self, one: Tensor) -> Tensor:
        """Any kernel, stride, dilation, padding and groups."""
        rng, (_, channels, *size) = self.rng, one.shape
        groups = rng.choice([1, 1, channels, *([2] if channels % 2 == 0 else [])])
        filters = groups * rng.randint(1, 3)
        while True:
            kernel, stride, spread = ([rng.randint(1, n) for _ in "rc"] for n in (3, 2, 2))
            reach = [(k - 1) * d for k, d in zip(kernel, spread, strict=True)]
            pads = [rng.randint(0, r) for r in reach * 2]
            out = [(n + pads[a] + pads[a + 2] - reach[a] - 1) // stride[a] + 1 for a, n in enumerate(size)]
            if min(out) > 0:
                break
        taps = channels // groups * kernel[0] * kernel[1]
        after = rng.choice(["", "", "Relu", "Clip", "LeakyRelu", "Sigmoid"])
        return self.product(
            "Conv", one, (filters, channels // groups, *kernel), 0, taps, (1, filters, *out), after, group=groups,
            kernel_shape=kernel, strides=stride, dilations=spread, pads=pads,
        )  # fmt: skip

    def pointwise(self, one: Tensor) -> Tensor:
        """A map of the same size."""
        channels = one.shape[1]
        return self.product("Conv", one, (channels, channels, 1, 1), 0, channels, one.shape, kernel_shape=[1, 1])

    def gemm(self, one: Tensor) -> Tensor:
        """A product with a matrix of constants, of the flattened tensor."""
        inner = int(np.prod(one.shape))
        flat = Tensor(self.node("Flatten", [one.name]), (1, inner), one.scale, one.zero, one.spread)
        features, turned = self.rng.randint(1, 6), self.rng.random() < 0.5
        shape = (features, inner) if turned else (inner, features)
        return self.product("Gemm", flat, shape, int(not turned), inner, (1, features), transB=int(turned))

    def pool(self, one: Tensor) -> Tensor:
        """Average or largest of a window, or of all."""
        rng, (_, channels, rows, columns) = self.rng, one.shape
        op = rng.choice(["MaxPool", "AveragePool", "GlobalAveragePool"])
        window: dict[str, object] = {}
        size = [1, 1]
        if op != "GlobalAveragePool":
            kernel = [rng.randint(1, min(3, n)) for n in (rows, columns)]
            pads = [rng.randint(0, (k - 1) // 2) for k in kernel * 2]
            stride = [rng.randint(1, 2) for _ in kernel]
            window = {"kernel_shape": kernel, "pads": pads, "strides": stride}
            if op == "AveragePool":
                window["count_include_pad"] = rng.randint(0, 1)
            size = [(one.shape[a + 2] + pads[a] + pads[a + 2] - kernel[a]) // stride[a] + 1 for a in (0, 1)]
        made = self.tensor("", (1, channels, *size), self.value(one.scale) * rng.choice([0.5, 1]))
        if self.operators and op != "MaxPool":
            made.name = self.node(f"QLinear{op}", [*self.given(one), made.scale, made.zero], MICROSOFT, **window)
        elif self.operators:
            made = Tensor(self.node(op, [one.name], **window), made.shape, one.scale, one.zero, one.spread)
        else:
            made.name = self.node("QuantizeLinear", [self.node(op, [self.real(one)], **window), made.scale, made.zero],
                                  self.wide())  # fmt: skip
        return made

    def both(self, one: Tensor, two: Tensor) -> Tensor:
        """Sum, product, or (in two channels each) both beside each other."""
        op = self.rng.choice(["Add", "Mul", "Concat"])
        shape = (1, one.shape[1] + two.shape[1], *one.shape[2:]) if op == "Concat" else one.shape
        scale = self.value(one.scale) * (one.spread / 2 * self.value(two.scale) if op == "Mul" else 1.5)
        made = self.tensor("", shape, scale)
        if self.operators and op == "Concat":
            inputs = [made.scale, made.zero, *self.given(one), *self.given(two)]
            made.name = self.node("QLinearConcat", inputs, MICROSOFT, axis=1)
        elif self.operators:
            inputs = [*self.given(one), *self.given(two), made.scale, made.zero]
            made.name = self.node(f"QLinear{op}", inputs, MICROSOFT)
        else:
            real = self.node(op, [self.real(one), self.real(two)], **({"axis": 1} if op == "Concat" else {}))
            made.name = self.node("QuantizeLinear", [real, made.scale, made.zero], self.wide())
        return made

    def matmul(self, one: Tensor, two: Tensor) -> Tensor:
        """A product of two inputs, in as many groups as the first has channels."""
        _, groups, rows, inner = one.shape
        number = two.shape[1] * two.shape[2] * two.shape[3] // (groups * inner)
        shape = self.constant(np.array([1, groups, inner, max(number, 1)]))
        size = groups * inner * max(number, 1)
        if number < 1:
            two = one
            shape, size = self.constant(np.array([1, groups, inner, rows])), groups * inner * rows
        whole = int(np.prod(two.shape))
        flat = self.node("Reshape", [two.name, self.constant(np.array([whole]))])
        cut = [self.constant(np.array([x])) for x in (0, size)]
        right = Tensor(self.node("Reshape", [self.node("Slice", [flat, *cut]), shape]), (1,), two.scale, two.zero, 0)
        scale = self.value(one.scale) * self.value(two.scale) * inner**0.5 * two.spread
        made = self.tensor("", (1, groups, rows, size // groups // inner), scale)
        if self.operators:
            inputs = [*self.given(one), *self.given(right), made.scale, made.zero]
            made.name = self.node("QLinearMatMul", inputs)
        else:
            real = self.node("MatMul", [self.real(one), self.real(right)])
            made.name = self.node("QuantizeLinear", [real, made.scale, made.zero], self.wide())
        return made

    def result(self, one: Tensor) -> None:
        """Let it be a result, as integers or real."""
        if self.rng.random() < 0.3:
            self.results.append((one.name, helper.np_dtype_to_tensor_dtype(np.dtype(self.kind))))
        else:
            self.results.append((self.real(one), onnx.TensorProto.FLOAT))

    def save(self, path: Path, shape: tuple[int, ...], opset: int = 17) -> None:
        """Write the model."""
        inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)]
        outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in self.results]
        graph = helper.make_graph(self.nodes, "random", inputs, outputs, initializer=self.constants)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def quantised_model(rng: random.Random, path: Path, **kinds: object) -> None:
    """Write a model of several layers side by side, or one after the other."""
    maker = Maker(rng, **kinds)  # type: ignore[arg-type]
    shape = (1, rng.randint(1, 4), rng.randint(4, 8), rng.randint(4, 8))
    first = maker.quantised("x", shape, 4 / float(np.iinfo(maker.kind).max))
    for _ in range(2):
        one = maker.conv(first)
        maker.result(one)
    maker.result(maker.pool(first))
    maker.result(maker.gemm(first))
    if np.dtype(maker.kind).itemsize == np.dtype(maker.weight_kind).itemsize:  # what is read as weights is a map
        maker.result(maker.matmul(first, one))
    maker.result(maker.conv(maker.both(first, one if one.shape == shape else maker.pointwise(first))))
    maker.save(path, shape)


def quantised_network(rng: random.Random, path: Path, **kinds: object) -> None:
    """Write a model of layers one after the other, some of them read by several."""
    maker = Maker(rng, **kinds)  # type: ignore[arg-type]
    shape = (1, rng.randint(1, 4), rng.randint(6, 10), rng.randint(6, 10))
    made = [maker.conv(maker.quantised("x", shape, 4 / float(np.iinfo(maker.kind).max)))]
    while len(made) < rng.randint(3, 8):
        one = rng.choice(made[-2:])
        alike = [two for two in made if two.shape == one.shape and two is not one]
        kind = rng.choice(["conv", "conv", "pool", "pointwise", "both", "both"])
        if kind == "both" and alike:
            made.append(maker.both(one, rng.choice(alike)))
        elif kind == "pool" and min(one.shape[2:]) > 1:
            made.append(maker.pool(one))
        elif min(one.shape[2:]) > 0:
            made.append(maker.pointwise(one) if kind == "pointwise" else maker.conv(one))
    maker.result(maker.gemm(made[-1]) if rng.random() < 0.5 else made[-1])
    maker.save(path, shape)


def program_by_random_nests(rng: random.Random, path: Path, **elements: int) -> dict[str, str | bytes]:
    """The program of a model on a random machine: every layer by a random nest, in no more memory than they take."""
    model = read_model(path)
    layers = model.network.layers
    while True:
        try:
            machine = random_machine(rng).model_copy(update=elements)
            if machine.psum_first_read:
                continue
            nests = [_nest(rng, layer, machine) for layer in layers]
        except (InputError, ValidationError):
            continue
        break
    meaning = Meaning(model, machine)
    return NetworkPlanned(model.network, machine, alone(model.network, nests), meaning).files()


def _nest(rng: random.Random, layer: Layer, machine: Machine) -> Nest:
    for _ in range(200):
        try:
            nest = random_nest(rng, layer, machine)
            steps = 1
            for d in DIMS:
                steps *= -(-layer.extent(d) // nest.tile(layer)[d])
            if steps <= 400:
                replay(layer, machine, nest, execute=False)
                return nest
        except (InputError, ValidationError):
            continue
    raise InputError("no nest")

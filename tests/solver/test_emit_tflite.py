"""C of TFLite files against TFLite's own interpreter: integers bit by bit, state call after call."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solver.uses.emit.emit import Compiled, compile_model
from solver.uses.emit.fixed import hard_swish
from solver.uses.emit.requantise import multiplier_of
from tests.emitted import BUILDS, build_and_run
from tests.instances.test_tflite import CASES, Maker, _whole, made, streaming
from tests.tflite_models import RELU6, SAME, Net, packed

pytest.importorskip("ai_edge_litert")

ELEMENTS = {
    "float32": dict.fromkeys(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), 4),
    "int8": {}, "uint8": {}, "int16": {"in_bytes": 2, "w_bytes": 1, "out_bytes": 2, "psum_bytes": 8},
}  # fmt: skip
#: Scale and zero point of an input, and of a result.
GRIDS = {
    "int8": ((0.02, 3), (0.07, -20)), "uint8": ((0.02, 120), (0.07, 90)), "int16": ((1e-4, 0), (3e-4, 0)),
}  # fmt: skip


def compiled(data: bytes, folder: Path, kind: str, **more: Any) -> tuple[Compiled, str]:
    (folder / "m.tflite").write_bytes(data)
    done = compile_model(
        folder / "m.tflite", "scratchpad_768k", folder / "c", settings=ELEMENTS[kind], time_limit_s=8, **more
    )
    printed = build_and_run(folder / "c", BUILDS[2])
    assert "compared with TFLite" in printed
    return done, printed


def steps(printed: str) -> tuple[int, int, int]:
    """Elements that are exact, all, and how many steps the others are off at the most."""
    found = re.search(r"results: (\d+) of (\d+) elements exact, the others within (\d+) steps", printed)
    assert found, printed
    return int(found[1]), int(found[2]), int(found[3])


def of(kind: str, op: str) -> bytes:
    """A layer or function on a map of 12 x 12 pixels, or what is behind such a layer."""
    (scale, zero), (other, at) = GRIDS[kind]
    scale, other = SCALES.get(op, (scale, other)) if kind != "int16" else (scale, other)
    same, makes = {"scale": scale, "zero": zero}, {"scale": other, "zero": at}
    net = Net()
    x = net.input(1, 12, 12, 8, kind=kind, **same)
    if op == "CONV_2D":
        net.conv(x, 16, 3, act=RELU6)
    elif op == "DEPTHWISE_CONV_2D":
        net.conv(x, 8, 3, deep=True)
    elif op in ("ADD", "SUB", "MUL"):
        net.op(op, x, net.conv(x, 8), **makes)
    elif op == "MAXIMUM":
        net.op(op, x, net.op("QUANTIZE", net.conv(x, 8), **same), **same)
    elif op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        net.op(op, x, shape=(1, 6, 6, 8), FilterHeight=3, FilterWidth=3, StrideH=2, StrideW=2, Padding=SAME, **same)
    elif op == "MEAN":
        net.op(op, net.conv(x, 64), net.const([1, 2]), shape=(1, 64), **makes)
    elif op == "TRANSPOSE_CONV":
        zeros = [120] if kind == "uint8" else [0] * 4
        held = "uint8" if kind == "uint8" else "int8"
        w = net.const(
            net.rng.integers(-100, 100, (4, 3, 3, 8)) + zeros[0], held, scale=[0.01] * len(zeros), zero=zeros
        )  # fmt: skip
        b = net.const([5, -9, 99, 0], "int64" if kind == "int16" else "int32", scale=[0.01 * scale] * len(zeros))
        read = net.const([1, 24, 24, 4]), w, x, b
        net.op(op, *read, shape=(1, 24, 24, 4), kind=kind, Padding=SAME, StrideH=2, StrideW=2, **makes)
    elif op == "CONCATENATION":
        net.op(op, net.op("QUANTIZE", net.conv(x, 8), **same), x, shape=(1, 12, 12, 16), Axis=3, **same)
    elif op == "TILE":
        net.op(op, _pooled(net, x, same), net.const([1, 2, 1, 1]), shape=(1, 24, 12, 8), **same)
    elif op == "RESIZE_NEAREST_NEIGHBOR":
        net.op(op, _pooled(net, x, same), net.const([24, 36]), shape=(1, 24, 36, 8), **same)
    elif op.startswith("RESIZE"):
        how = {"corners": {"AlignCorners": True}, "centres": {"HalfPixelCenters": True}}.get(op.split("-")[2], {})
        sizes = {"double": (24, 24), "odd": (19, 7)}[op.split("-")[1]]
        net.op("RESIZE_BILINEAR", _pooled(net, x, same), net.const(sizes), shape=(1, *sizes, 8), **how, **same)
    elif op in FIXED:
        makes = {name: grid[kind] for name, grid in zip(("scale", "zero"), FIXED[op], strict=True)}
        net.op(op, _pooled(net, x, same), **makes, **({"Beta": 1.0} if op == "SOFTMAX" else {}))
    elif op.endswith("constant"):
        constant = net.const(np.array(23), kind, scale=[1 / 16], zero=[5])
        net.op(op.split("-")[0], _pooled(net, x, same), constant, FusedActivationFunction=RELU6, **makes)
    elif op == "LEAKY_RELU-ADD":  # what a sum reads is made by the sum
        net.op("ADD", net.op("LEAKY_RELU", x, Alpha=0.2, **makes), x, **makes)
    elif op == "LEAKY_RELU-SLICE":  # the host
        x = net.op("LEAKY_RELU", x, Alpha=0.3, **makes)
        x = net.op("SLICE", x, net.const([0, 1, 1, 0]), net.const([1, 11, 11, 8]), shape=(1, 11, 11, 8), **makes)
        net.op("MAX_POOL_2D", x, shape=(1, 11, 11, 8), FilterHeight=1, FilterWidth=1, StrideH=1, StrideW=1, **makes)
    else:
        more: dict[str, Any] = {"LEAKY_RELU": {"Alpha": 0.2}}.get(op, {})
        slopes = net.rng.integers(-100, 100, (1, 1, 8))
        read = [net.const(slopes + (100 if kind == "uint8" else 0), kind, scale=[0.01], zero=[100 * (kind == "uint8")])]
        net.op(op, _pooled(net, x, same), *(read if op == "PRELU" else []), **makes, **more)
    return packed(net)


def _pooled(net: Net, x: int, same: dict[str, Any]) -> int:
    """A layer in front."""
    return net.op("MAX_POOL_2D", x, shape=(1, 12, 12, 8), FilterHeight=3, FilterWidth=3, StrideH=1, StrideW=1, **same)


#: Scales of 8-bit inputs and results with which floats are a step off somewhere.
SCALES = {
    "SOFTMAX": (0.049, 1), "HARD_SWISH": (0.05, 0.1),
    **dict.fromkeys(("ADD-constant", "SUB-constant", "MUL-constant", "LEAKY_RELU-SLICE"), (1 / 32, 1 / 16)),
}  # fmt: skip
#: Functions whose results have one scale and zero point by kind.
FIXED = {
    "SOFTMAX": (
        {"int8": 1 / 256, "uint8": 1 / 256, "int16": 1 / 32768}, {"int8": -128, "uint8": 0, "int16": 0}
    ),
    "LOGISTIC": (
        {"int8": 1 / 256, "uint8": 1 / 256, "int16": 1 / 32768}, {"int8": -128, "uint8": 0, "int16": 0}
    ),
    "TANH": ({"int8": 1 / 128, "uint8": 1 / 128, "int16": 1 / 32768}, {"int8": 0, "uint8": 128, "int16": 0}),
}  # fmt: skip


EXACT = (
    "CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "SUB", "MUL", "MAXIMUM", "AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN",
    "CONCATENATION", "QUANTIZE", "RELU", "LEAKY_RELU", "PRELU", "TRANSPOSE_CONV", "SOFTMAX", "LOGISTIC", "TANH",
    "HARD_SWISH", "ADD-constant", "SUB-constant", "MUL-constant", "LEAKY_RELU-ADD", "LEAKY_RELU-SLICE",
    "RESIZE-double-plain", "RESIZE_NEAREST_NEIGHBOR", "TILE",
)  # fmt: skip
INT8 = ("ABS", "EXP", "RESIZE-double-centres", "RESIZE-odd-corners", "RESIZE-odd-centres", "RESIZE-odd-plain")
INT16 = (
    "CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "MUL", "MEAN", "AVERAGE_POOL_2D", "CONCATENATION", "TRANSPOSE_CONV",
    "SOFTMAX", "LOGISTIC", "TANH", "EXP", "LOG", "GELU", "ABS", "LEAKY_RELU", "RESIZE-double-plain",
    "RESIZE-odd-centres", "RESIZE_NEAREST_NEIGHBOR", "TILE",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "op"),
    [*((kind, op) for kind in ("int8", "uint8") for op in EXACT), *(("int8", op) for op in INT8),
     *(("int16", op) for op in INT16)],
)  # fmt: skip
def test_every_element_of_an_operator_is_that_of_the_interpreter(kind: str, op: str, tmp_path: Path) -> None:
    """288 to 2,304 elements of random integers; by the rule that TFLite has, which nobody has to name."""
    done, printed = compiled(of(kind, op), tmp_path, kind)
    exact, number, _ = steps(printed)
    assert exact == number >= 64
    assert "requantised by whole numbers (double)" in done.elements


def functions(kind: str) -> bytes:
    """Functions of the host and of layers, maps of another size, products, means: integers all the way."""
    (scale, zero), (other, at) = GRIDS[kind]
    same, makes, net = {"scale": scale, "zero": zero}, {"scale": other, "zero": at}, Net()
    x = net.op("LEAKY_RELU", net.input(1, 9, 9, 8, kind=kind, **same), Alpha=0.3, **same)
    x = net.op("SLICE", x, net.const([0, 1, 1, 0]), net.const([1, 8, 8, 8]), shape=(1, 8, 8, 8), **same)
    x = net.op("RESIZE_BILINEAR", x, net.const([11, 16]), shape=(1, 11, 16, 8), HalfPixelCenters=True, **same)
    y = net.op("LOGISTIC" if kind == "int16" else "HARD_SWISH", x, **(FUNCTION if kind == "int16" else makes))
    x = net.op("MUL", net.op("ABS", x, **makes), y, **same)
    x = net.op("ADD", x, net.const(np.array(23), kind, scale=[3 * scale], zero=[zero]), **same)
    x = net.op("RESIZE_NEAREST_NEIGHBOR", x, net.const([22, 16]), shape=(1, 22, 16, 8), **same)
    parts = [net.op("MEAN", x, net.const([1, 2]), shape=(1, 1, 1, 8), KeepDims=True, scale=other / 4, zero=at)]
    grid = {name: one[kind] for name, one in zip(("scale", "zero"), FIXED["SOFTMAX"], strict=True)}
    parts.append(net.op("SOFTMAX", x, Beta=0.5, **grid))
    return packed(net, outputs=parts)


#: Of a logistic function of 16 bits.
FUNCTION = {"scale": 1 / 32768, "zero": 0}


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_functions_of_integers(kind: str, tmp_path: Path) -> None:
    """Two results, one of them of 2,816 elements."""
    done, printed = compiled(functions(kind), tmp_path, kind)
    found = re.findall(r"(\d+) of (\d+) elements exact", printed)
    assert found
    assert all(exact == number for exact, number in found), printed
    assert "requantised by whole numbers (double)" in done.elements
    text = "".join(path.read_text() for path in (tmp_path / "c").glob("[lnr]*.c"))
    assert not re.search(r"\b(expf|tanhf|certile_round|certile_softmax)\(", text)


def test_hard_swish_has_the_integers_of_the_interpreter() -> None:
    """All 256 of 20 pairs of scales."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    rng = np.random.default_rng(7)
    for _ in range(20):
        scale, made = (float(np.float32(np.exp(one))) for one in rng.uniform(-7, 0, 2))
        zero, at = (int(one) for one in rng.integers(-128, 128, 2))
        net = Net()
        net.op("HARD_SWISH", net.input(256, kind="int8", scale=scale, zero=zero), scale=made, zero=at)
        runs = litert.Interpreter(
            model_content=packed(net), experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF
        )  # fmt: skip
        try:
            runs.allocate_tensors()
        except RuntimeError:  # scales that it does not take
            assert hard_swish(scale, zero, made, at, -128) is None
            continue
        runs.set_tensor(runs.get_input_details()[0]["index"], np.arange(-128, 128, dtype=np.int8))
        runs.invoke()
        assert runs.get_tensor(runs.get_output_details()[0]["index"]).tolist() == hard_swish(
            scale, zero, made, at, -128
        )


@pytest.mark.parametrize("kind", ["int8", pytest.param("uint8", marks=pytest.mark.slow),
                                  pytest.param("int16", marks=pytest.mark.slow)])  # fmt: skip
def test_a_network_of_integers(kind: str, tmp_path: Path) -> None:
    """Nine layers, with a sum, pads, poolings, joined maps, and a classifier, which this interpreter rounds once."""
    exact, number, most = steps(compiled(made(_whole(kind)), tmp_path, kind)[1])
    assert exact >= number - 1
    assert most <= 1


def test_state_begins_as_the_file_says_and_is_kept(tmp_path: Path) -> None:
    """Three calls: frames that are zeros of their scale at first (-3 here)."""
    printed = compiled(streaming("int8"), tmp_path, "int8")[1]
    assert "called several times" in printed
    exact, number, most = steps(printed)
    assert (exact, most) == (number, 0)
    source = (tmp_path / "c" / "network.c").read_text()
    assert re.search(r"memset\(input_\d, 253, 8\);", source)
    assert "call it first" in (tmp_path / "c" / "network.h").read_text()


@pytest.mark.parametrize("name", ["block", "LSTM-clipped", *(pytest.param(name, marks=pytest.mark.slow) for name in (
    "flattened", "anchors", "attention", "halves", "LSTM", "LSTM-coupled-sees", "LSTM-both-clipped", "LSTM-projected",
    "RNN-both", "SVDF-1", "TRANSPOSE_CONV-0-2",
))])  # fmt: skip
def test_networks_of_real_numbers(name: str, tmp_path: Path) -> None:
    printed = compiled(made(CASES[name]), tmp_path, "float32")[1]
    found = re.search(r"by ([0-9.e+-]+) of the largest one", printed)
    assert found, printed
    assert float(found[1]) < 1e-5


def test_one_scale_is_multiplied_in_single_precision(tmp_path: Path) -> None:
    """As TFLite does for a fully connected layer: the low bits of its multiplier tell."""

    def make(net: Net) -> None:
        net.dense(net.input(1, 16, kind="int8", scale=0.0213, zero=3), 4)

    net = Net()
    make(net)
    (tmp_path / "m.tflite").write_bytes(packed(net))
    compile_model(tmp_path / "m.tflite", "scratchpad_768k", tmp_path / "c", time_limit_s=8)
    text = "".join(path.read_text() for path in (tmp_path / "c").glob("*.c"))
    found = re.search(r"certile_requantise_double\(sum, (\d+), (-?\d+)\)", text)
    assert found
    given, weights, made = (np.float32(net.tensors[k]["scale"][0]) for k in (0, 1, 3))
    single, double = (
        multiplier_of(float(one) / float(made)) for one in (given * weights, float(given) * float(weights))
    )
    assert single != double
    assert (int(found[1]), int(found[2])) == single


def test_maps_are_as_the_file_has_them(tmp_path: Path) -> None:
    """Channels last: a map that the machine has in that order, too, is read where the caller wrote it."""

    def make(net: Net) -> None:
        net.conv(net.input(1, 4, 5, 3, kind="int8", scale=0.02, zero=0), 6, 3)

    maker: Maker = make
    compiled(made(maker), tmp_path, "int8")
    source = (tmp_path / "c" / "network.c").read_text()
    assert not re.search(r"certile_copy\([^;]*input_0", source)
    drawn = np.frombuffer((tmp_path / "c" / "input.bin").read_bytes(), np.int8)
    assert drawn.size == 4 * 5 * 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alexa", "hey_jarvis", "hey_mycroft", "okay_nabu"])
def test_wake_words_call_after_call(name: str, tmp_path: Path) -> None:
    """Streaming models as they ship, 6 variables each: every result and all state, bit by bit."""
    package = pytest.importorskip("pymicro_wakeword")
    data = (Path(package.__file__).parent / "models" / f"{name}.tflite").read_bytes()
    printed = compiled(data, tmp_path, "int8")[1]
    exact, number, _ = steps(printed)
    assert exact == number > 8000

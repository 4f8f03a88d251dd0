"""What programs are compared with: onnxruntime, or the file's graph in NumPy; and what a check says that fails."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from fractions import Fraction
from math import floor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.load import load_machine
from instances.onnx.model import OnnxModel, evaluated, read_model
from solver.calls.solve import solve
from solver.uses.emit.emit import compile_model, files_of
from solver.uses.emit.network import recorded
from solver.uses.emit.preflight import refusals
from solver.uses.emit.program import runtime
from solver.uses.emit.requantise import multiplier_of, shares
from tests.emitted import BYTES, FLOATS, build_and_run, needs_gcc, small_model
from tests.onnx_models import model_of
from tests.quantised import Maker, quantised_model
from tests.written import built, planned, text_model


def twice(path: Path) -> None:
    """Write y = conv(x), z = y + x; both are results."""
    weights = np.random.default_rng(1).normal(0, 1, (2, 2, 1, 1)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"], name="c"),
        helper.make_node("Add", ["y", "x"], ["z"], name="a"),
    ]
    onnx.save(model_of(nodes, {"x": (1, 2, 3, 4)}, "yz", {"w": weights}), path)


def by_both(model: OnnxModel, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, bytes]:
    """What onnxruntime records and what the reference does."""
    first = recorded(model)
    assert first.judge.startswith("onnxruntime")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    second = recorded(model)
    monkeypatch.undo()
    assert second.judge.startswith("the reference of onnx")
    assert first.files["input.bin"] == second.files["input.bin"]
    return first.files["expected.bin"], second.files["expected.bin"]


def test_real_numbers_are_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Norms of opset 9, dilations, padded averages, slices, shuffles: within 1e-5."""
    pytest.importorskip("onnxruntime")
    small_model(tmp_path / "m.onnx")
    one, two = (np.frombuffer(x, np.float32) for x in by_both(read_model(tmp_path / "m.onnx"), monkeypatch))
    assert one.size == 5 + 16 * 4 * 8
    assert np.abs(one - two).max() < 1e-5 * np.abs(one).max()


@pytest.mark.parametrize("operators", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_quantised_numbers_are_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, operators: bool
) -> None:  # fmt: skip
    """Both forms, zero points, scales by channel, poolings, joins: nearly all equal, the others a step apart."""
    pytest.importorskip("onnxruntime")
    quantised_model(random.Random(seed), tmp_path / "m.onnx", operators=operators)
    model = read_model(tmp_path / "m.onnx")
    one, two = (np.frombuffer(x, np.uint8) for x in by_both(model, monkeypatch))
    assert (one == two).mean() > 0.97


def test_poolings_by_hand(tmp_path: Path) -> None:
    """Rows 1 2 3 4 5, windows of 3, stride 2, one column of padding in front: [pad 1 2] [2 3 4] [4 5 beyond]."""
    both = {"kernel_shape": [1, 3], "strides": [1, 2], "pads": [0, 1, 0, 0], "ceil_mode": 1}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["most"], **both),
        helper.make_node("AveragePool", ["x"], ["mean"], **both),
    ]
    nodes.append(helper.make_node("AveragePool", ["x"], ["padded"], count_include_pad=1, **both))
    onnx.save(model_of(nodes, {"x": (1, 1, 1, 5)}, ["most", "mean", "padded"], opset=13), tmp_path / "m.onnx")
    x = {"x": np.float32([[[[1, 2, 3, 4, 5]]]])}
    most, mean, padded = evaluated(onnx.load(tmp_path / "m.onnx"), x, ["most", "mean", "padded"])
    assert most.ravel().tolist() == [2, 4, 5]
    assert mean.ravel().tolist() == [1.5, 3, 4.5]
    assert padded.ravel().tolist() == [1, 3, 4.5]  # what rounding up adds is no padding


@needs_gcc
@pytest.mark.parametrize(("runtime", "asked", "file"), [
    (True, {}, "run_000_to_001"), (False, {"transfers": "steps"}, "group_000_to_001"),
    (False, {"problem": "joint", "transfers": "steps"}, "layer_000_c"),
])  # fmt: skip
def test_a_check_that_fails_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: bool, asked: dict[str, str], file: str
) -> None:  # fmt: skip
    """With onnxruntime and without it a changed weight shows, and a program that is right does not fail."""
    if runtime:
        pytest.importorskip("onnxruntime")
    else:
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
    twice(tmp_path / "m.onnx")
    compile_model(tmp_path / "m.onnx", "scratchpad_768k", tmp_path / "c", settings=FLOATS, **asked)
    judge = "onnxruntime" if runtime else "the reference of onnx"
    assert f"compared with {judge}" in build_and_run(tmp_path / "c", "-O0")
    weights = np.fromfile(tmp_path / "c" / "weights.bin", np.float32)
    weights[0] += 1  # channel 0 of y and z is off by channel 0 of x
    weights.tofile(tmp_path / "c" / "weights.bin")
    x = np.fromfile(tmp_path / "c" / "input.bin", np.float32).reshape(2, 3, 4)[0]
    row, column = np.unravel_index(np.abs(x).argmax(), x.shape)
    ran = subprocess.run(["./certile"], cwd=tmp_path / "c", capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    failed = re.findall(
        r"FAILED: result (\w): the largest difference is at (\[[\d, ]+\]): (\S+), .* has (\S+); (.*)", ran.stdout
    )
    assert [one[:2] for one in failed] == [("y", f"[0, 0, {row}, {column}]"), ("z", f"[0, 0, {row}, {column}]")]
    assert float(failed[0][2]) - float(failed[0][3]) == pytest.approx(x[row, column], rel=1e-5)
    assert re.match(rf"look at layer c \({file}\.c\)", failed[0][4])
    assert (tmp_path / "c" / f"{file}.c").is_file()


@needs_gcc
def test_nobody_has_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The program says that it has nothing to compare with; so does the log."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr("solver.uses.emit.network.evaluated", lambda *_: 1 / 0)
    twice(tmp_path / "m.onnx")
    compile_model(tmp_path / "m.onnx", "scratchpad_768k", tmp_path / "c", settings=FLOATS)
    assert "nothing to compare with" in caplog.text
    assert "results are compared with nothing" in build_and_run(tmp_path / "c", "-O0")


@pytest.mark.slow(3)
@needs_gcc
def test_signed_maps_compare_exactly(tmp_path: Path) -> None:
    """onnxruntime is asked for integers of signed maps: of 10 layers all elements are equal, and the share is said."""
    pytest.importorskip("onnxruntime")
    maker = Maker(random.Random(8), kind="int8", weight_kind="int8")
    one = maker.quantised("x", (1, 4, 6, 6), 4 / 127)
    for _ in range(10):
        one = maker.pointwise(one)
        maker.result(one)
    maker.save(tmp_path / "m.onnx", (1, 4, 6, 6))
    compile_model(tmp_path / "m.onnx", "scratchpad_768k", tmp_path / "c", time_limit_s=20)
    printed = build_and_run(tmp_path / "c", "-O0")
    assert f"results: {10 * 144} of {10 * 144} elements exact, the others within 0 steps (100.000 % exact)" in printed


# ---- Sums of integers become results by a multiplier and a shift: bit by bit as whole numbers of Python say ----------

RULES = ("double", "single", "even")
#: Elements of maps of 16 bits.
WIDE = {"in_bytes": 2, "w_bytes": 1, "out_bytes": 2, "psum_bytes": 8}
RESULTS = ("a", "b", "sum", "less", "product", "mean", "window", "fc", "most", "least")


# ---- the rules, by fractions -------------------------------------------------------------------------------------


def nearest(x: Fraction, tie: str) -> int:
    """The nearest whole number; a half goes up, away from zero, or to the even one."""
    down, half = floor(x), x - floor(x) == Fraction(1, 2)
    if not half:
        return floor(x + Fraction(1, 2))
    return {"up": down + 1, "away": down + (x > 0), "even": down + down % 2}[tie]


def by_rule(rule: str, total: int, factor: float, bits: int = 32) -> int:
    """A sum times a factor, as docs/emit.md says of every rule."""
    multiplier, shift = multiplier_of(factor)
    if bits == 64:
        fifteen = min((multiplier + 2**15) >> 16, 0x7FFF)
        return nearest(Fraction(total * fifteen) / Fraction(2) ** (15 - shift), "even" if rule == "even" else "up")
    if rule == "double":
        left = max(-(2**31), min(2**31 - 1, total * 2 ** max(shift, 0)))
        return nearest(Fraction(nearest(Fraction(left * multiplier, 2**31), "up"), 2 ** max(-shift, 0)), "away")
    return nearest(Fraction(total * multiplier) / Fraction(2) ** (31 - shift), "even" if rule == "even" else "up")


def test_multipliers_by_hand() -> None:
    """0.75 is 0.75 * 2^31 with no shift; 3 the same with 2 to the left; what rounds up to one half of 2 is 2^30."""
    assert multiplier_of(0.75) == (3 * 2**29, 0)
    assert multiplier_of(3.0) == (3 * 2**29, 2)
    assert multiplier_of(0.1) == (1717986918, -3)
    assert multiplier_of(1 - 2**-40) == (2**30, 1)
    assert multiplier_of(2**-40) == (0, 0)
    with pytest.raises(InputError, match="multipliers are below"):
        multiplier_of(2.0**31)


@pytest.mark.parametrize(("size", "scales", "reach", "left"), [
    (2, [1] * 2, 65535, 14), (2, [1] * 4, 65535, 14),  # 4 * 65535 * 2^13 = 2^31 - 2^15
    (2, [1] * 5, 65535, 13), (2, [1] * 8, 65535, 13), (2, [1] * 9, 65535, 12),
    (2, [1] + [0.01] * 31, 65535, 14),  # as much as 1.31 maps
    (2, [1] * 7, 32768, 14), (2, [1] * 8, 32768, 13),  # signed: 8 * 2^15 * 2^13 is 2^31
    (1, [1] * 16, 255, 20), (1, [1] * 17, 255, 19), (1, [1] * 32, 255, 19),  # 16 * 255 * 2^19 = 2^31 - 2^23
])  # fmt: skip
def test_maps_that_are_added_leave_room_in_32_bits(size: int, scales: list[float], reach: int, left: int) -> None:
    """Each is shifted to the left and halved, where its scale is the largest one."""
    assert shares(scales, size, [reach] * len(scales))[1] == left


def of_wide_maps(path: Path, op: str, number: int) -> Path:
    """Write a function of a map of 16 bits, read so many times; no zero point is stated."""
    step = "f0_00001"
    taken = [f"d{k} = DequantizeLinear(q, {step})" for k in range(number)]
    made = f"r = QuantizeLinear<output_dtype=4>(s, {step}) y = DequantizeLinear(r, {step})"
    done = f"s = {op}({', '.join(f'd{k}' for k in range(number))})"
    line = " ".join([f"q = QuantizeLinear<output_dtype=4>(x, {step})", *taken, done, made])
    text_model(path, "float[1,1,2,2] x", [line])
    return path


@needs_gcc
def test_many_maps_of_16_bits_are_added(tmp_path: Path) -> None:
    """Random numbers of about 1 in steps of 0.00001: the largest are 65535 of them, and so is their sum."""
    pytest.importorskip("onnxruntime")
    files = planned(of_wide_maps(tmp_path / "m.onnx", "Sum", 5), WIDE, "single").files()
    assert "results: 4 of 4 elements exact" in built(files, tmp_path / "c")


def test_products_that_leave_32_bits_are_refused(tmp_path: Path) -> None:
    """65535 * 65535 is nearly 2^32; with floats C is written."""
    model = read_model(of_wide_maps(tmp_path / "m.onnx", "Mul", 2))
    machine = load_machine("scratchpad_768k", {name: str(value) for name, value in WIDE.items()})
    (said,) = refusals(model, machine, "single").always
    assert "products of its operands may leave 32 bits: use requantise float" in said
    assert not refusals(model, machine, "float").always


@pytest.mark.parametrize(("total", "factor", "made"), [
    (1, 0.5, {"double": 1, "single": 1, "even": 0}), (-1, 0.5, {"double": 0, "single": 0, "even": 0}),
    (3, 0.5, {"double": 2, "single": 2, "even": 2}), (-3, 0.5, {"double": -1, "single": -1, "even": -2}),
    (2, 0.25, {"double": 1, "single": 1, "even": 0}), (-2, 0.25, {"double": -1, "single": 0, "even": 0}),
    (-6, 0.25, {"double": -2, "single": -1, "even": -2}), (7, 3.0, {"double": 21, "single": 21, "even": 21}),
])  # fmt: skip
def test_halves_by_hand(total: int, factor: float, made: dict[str, int]) -> None:
    """0.5 is a multiplier of 2^30 without a shift: its half is rounded in the product, up; 0.25 has a shift: away."""
    assert {rule: by_rule(rule, total, factor) for rule in RULES} == made


@needs_gcc
def test_every_rule_of_the_runtime(tmp_path: Path) -> None:
    """Random sums and factors, halves among them, 32 and 64 bits; means."""
    rng, calls, want = random.Random(3), list[str](), list[int]()
    for _ in range(700):
        shift = rng.choice((1, 2, 3, 8))
        factor = rng.choice((rng.uniform(1e-6, 4), 2.0**-shift, rng.randint(1, 7) / 2**shift))
        total = rng.choice((rng.randint(-(2**31), 2**31 - 1) // 8, rng.randint(-999, 999)))
        for rule in RULES:
            numbers = ", ".join(map(str, (total, *multiplier_of(factor))))
            calls += [f"certile_requantise_{rule}({numbers})", f"certile_requantise64_{rule}({numbers})"]
            want += [by_rule(rule, total, factor), by_rule(rule, total, factor, 64)]
    for total, count in ((7, 2), (-7, 2), (5, 3), (-5, 3), (-9, 4), (10, 4), (-10, 4)):
        calls.append(f"certile_mean({total}, {count})")
        want.append(nearest(Fraction(total, count), "away"))
    (tmp_path / "certile_requantise.h").write_text(runtime("certile_requantise.h")["certile_requantise.h"])
    body = "\n".join(f'    printf("%lld\\n", (long long){call});' for call in calls)
    main = f'#include "certile_requantise.h"\n#include <stdio.h>\nint main(void)\n{{\n{body}\n    return 0;\n}}\n'
    (tmp_path / "main.c").write_text(main)
    flags = ["-std=c11", "-O0", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["gcc", *flags, "-o", "tried", "main.c"], cwd=tmp_path, check=True)
    ran = subprocess.run([tmp_path / "tried"], capture_output=True, text=True, check=True).stdout
    assert list(map(int, ran.split())) == want


# ---- a model -----------------------------------------------------------------------------------------------------


class Net:
    """A quantised model, and the same in whole numbers of Python."""

    def __init__(self, rule: str, kind: str) -> None:
        self.rule, self.kind, self.rng = rule, kind, np.random.default_rng(5)
        self.nodes, self.held, self.values = list[onnx.NodeProto](), list[onnx.TensorProto](), dict[str, np.ndarray]()
        self.grid: dict[str, tuple[float, int]] = {}

    def constant(self, value: np.ndarray | np.generic) -> str:
        self.held.append(numpy_helper.from_array(np.asarray(value), f"k{len(self.held)}"))
        return self.held[-1].name

    def node(self, op: str, inputs: list[str], name: str = "", **given: object) -> str:
        name = name or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n_{name}", **given))
        return name

    def grid_of(self, name: str, scale: float, zero: int) -> list[str]:
        self.grid[name] = float(np.float32(scale)), zero
        return [self.constant(np.float32(scale)), self.constant(np.dtype(self.kind).type(zero))]

    def real(self, name: str) -> str:
        scale, zero = self.grid[name]
        given = [self.constant(np.float32(scale)), self.constant(np.dtype(self.kind).type(zero))]
        return self.node("DequantizeLinear", [name, *given])

    def made(
        self, name: str, real: str, scale: float, zero: int, sums: np.ndarray, factor: list[float], least: int = -999
    ) -> None:
        """Quantise a real tensor; its sums, by channel with a factor, are the integers that are expected."""
        self.node("QuantizeLinear", [real, *self.grid_of(name, scale, zero)], name)
        limits = np.iinfo(self.kind)
        channel = np.broadcast_to(np.arange(sums.shape[1]).reshape(1, -1, *[1] * (sums.ndim - 2)), sums.shape)
        of = [f / self.grid[name][0] for f in factor] * (1 if len(factor) > 1 else sums.shape[1])
        flat = [by_rule(self.rule, int(s), of[c]) + zero for s, c in zip(sums.ravel(), channel.ravel(), strict=True)]
        self.values[name] = np.clip(np.array(flat).reshape(sums.shape), max(limits.min, least), limits.max)

    def centred(self, name: str) -> np.ndarray:
        return self.values[name].astype(np.int64) - self.grid[name][1]


def model(rule: str, kind: str, path: Path) -> Net:
    """A convolution by channel with Relu, one by tensor, both added, subtracted, multiplied; averages, a product.

    And the largest of three maps of unlike scales, the smallest of it and one with its scale: that is exact.
    """
    net, middle = Net(rule, kind), 0 if kind == "int8" else 128
    rng = net.rng
    net.node("QuantizeLinear", ["x", *net.grid_of("q", 0.03, middle + 5)], "q")
    x = np.random.default_rng(20).normal(size=(1, 3, 4, 4)).astype(np.float32)  # as the recorder draws it
    limits = np.iinfo(kind)
    net.values["q"] = np.clip(np.rint(x / np.float32(0.03)) + middle + 5, limits.min, limits.max).astype(np.int64)

    def conv(source: str, name: str, scales: np.ndarray, scale: float, relu: bool = False) -> None:
        w, unit = rng.integers(-127, 128, (3, 3, 1, 1), np.int8), scales * np.float32(net.grid[source][0])
        bias = rng.integers(-3000, 3000, 3, np.int32)
        zeros = np.zeros(len(scales), np.int8)
        along = {"axis": 0} if len(scales) > 1 else {}
        held = [net.constant(v if along else v[0]) for v in (scales, zeros, unit, np.zeros(len(scales), np.int32))]
        weights = net.node("DequantizeLinear", [net.constant(w), *held[:2]], **along)
        biases = net.node("DequantizeLinear", [net.constant(bias), *held[2:]], **along)
        real = net.node("Conv", [net.real(source), weights, biases])
        sums = np.einsum("mn,bnrc->bmrc", w[:, :, 0, 0].astype(np.int64), net.centred(source)) + bias[:, None, None]
        factor = [float(s) * net.grid[source][0] for s in scales]
        zero = middle - 9
        net.made(name, net.node("Relu", [real]) if relu else real, scale, zero, sums, factor, zero if relu else -999)

    conv("q", "a", np.float32([0.01, 0.02, 0.007]), 0.07, relu=True)
    conv("a", "b", np.float32([0.004]), 0.06)
    (sa, _), (sb, _) = net.grid["a"], net.grid["b"]
    shares = [np.vectorize(lambda v, s=s: by_rule(rule, int(v) << 20, s / (2 * max(sa, sb))))(net.centred(k))
              for k, s in (("a", sa), ("b", sb))]  # fmt: skip
    net.made("sum", net.node("Add", [net.real("a"), net.real("b")]), 0.11, middle + 3, sum(shares),
             [2 * max(sa, sb) / 2**20])  # fmt: skip
    net.made("less", net.node("Sub", [net.real("a"), net.real("b")]), 0.09, middle + 1, shares[0] - shares[1],
             [2 * max(sa, sb) / 2**20])  # fmt: skip
    both = net.node("Mul", [net.real("a"), net.real("b")])
    net.made("product", both, 0.2, middle, net.centred("a") * net.centred("b"), [sa * sb])
    whole = net.centred("sum").sum(axis=(2, 3), keepdims=True)
    net.made("mean", net.node("GlobalAveragePool", [net.real("sum")]), 0.05, middle, whole, [net.grid["sum"][0] / 16])
    padded = np.pad(net.centred("sum"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.pad(np.ones((4, 4), int), 1)
    windows = [(padded[:, :, r : r + 3, c : c + 3].sum(axis=(2, 3)), seen[r : r + 3, c : c + 3].sum())
               for r in range(4) for c in range(4)]  # fmt: skip
    means = [[nearest(Fraction(int(v), int(n)), "away") for v in s.ravel()] for s, n in windows]
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    average = net.node("AveragePool", [net.real("sum")], **window)
    net.made("window", average, 0.1, middle, np.array(means).T.reshape(1, 3, 4, 4), [net.grid["sum"][0]])
    w = rng.integers(-127, 128, (5, 48), np.int8)
    flat = net.node("Flatten", ["product"])
    net.grid[flat] = net.grid["product"]
    weights = net.node("DequantizeLinear", [net.constant(w), net.constant(np.float32(0.003)), net.constant(np.int8(0))])
    sums = net.centred("product").reshape(1, 48) @ w.T.astype(np.int64)
    net.made("fc", net.node("Gemm", [net.real(flat), weights], transB=1), 0.5, middle, sums,
             [net.grid["product"][0] * float(np.float32(0.003))])  # fmt: skip
    three = {k: net.grid[k][0] for k in ("a", "sum", "b")}
    shares = [np.vectorize(lambda v, s=s: by_rule(rule, int(v) << 20, s / (2 * max(three.values()))))(net.centred(k))
              for k, s in three.items()]  # fmt: skip
    most = net.node("Max", [net.real(k) for k in three])
    net.made("most", most, 0.06, middle - 40, np.max(shares, axis=0), [2 * max(three.values()) / 2**20])
    least = np.minimum(net.centred("most"), net.centred("b"))
    net.made("least", net.node("Min", [net.real("b"), net.real("most")]), 0.06, middle + 2, least, [net.grid["b"][0]])
    assert (net.values["least"] == np.clip(least + middle + 2, limits.min, limits.max)).all()
    info, element = helper.make_tensor_value_info, helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    outputs = [info(name, element, None) for name in RESULTS]
    graph = helper.make_graph(
        net.nodes, "m", [info("x", onnx.TensorProto.FLOAT, (1, 3, 4, 4))], outputs, initializer=net.held
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return net


@needs_gcc
@pytest.mark.parametrize(("rule", "kind", "problem"), [
    ("double", "int8", None), ("even", "uint8", None),
    pytest.param("single", "uint8", "joint", marks=pytest.mark.slow(3)),
    pytest.param("even", "int8", "fusion", marks=pytest.mark.slow(15)),
    pytest.param("double", "uint8", "fusion", marks=pytest.mark.slow(15)),
    pytest.param("single", "int8", "tiling", marks=pytest.mark.slow(15)),
])  # fmt: skip
def test_a_model_bit_by_bit(tmp_path: Path, rule: str, kind: str, problem: str | None) -> None:
    """Ten results, in elements of the rule; onnxruntime is a step away at most. No problem: layers in one tile."""
    net = model(rule, kind, tmp_path / "m.onnx")
    folder = tmp_path / "c"
    if problem is None:
        built(planned(tmp_path / "m.onnx", BYTES, rule).files(), folder, "input.bin", "made.bin")
    else:
        compile_model(tmp_path / "m.onnx", "scratchpad_768k", folder, problem=problem, settings=BYTES, requantise=rule,
                      time_limit_s=20)  # fmt: skip
        build_and_run(folder, "-O0 -fsanitize=undefined -fno-sanitize-recover=all", "input.bin", "made.bin")
    made, begin = np.fromfile(folder / "made.bin", kind), 0
    for name in RESULTS:
        want = net.values[name]
        assert (made[begin : begin + want.size] == want.ravel()).all(), name
        begin += want.size
    assert begin == made.size


def test_what_is_refused(tmp_path: Path) -> None:
    small_model(tmp_path / "m.onnx")
    floats = dict.fromkeys(BYTES, 4)
    with pytest.raises(InputError, match="requantise double: the model is not quantised"):
        compile_model(tmp_path / "m.onnx", "scratchpad_64k", tmp_path / "c", settings=floats, requantise="double")
    model("double", "int8", tmp_path / "q.onnx")
    with pytest.raises(InputError, match="requantise half: one of float, double, single, even is expected"):
        compile_model(tmp_path / "q.onnx", "scratchpad_64k", tmp_path / "c", settings=BYTES, requantise="half")


def finished(path: Path, machine_rule: str, rule: str | None) -> list[str]:
    """What becomes of sums, of a plan for a machine with a rule and an option."""
    settings = {**dict.fromkeys(BYTES, "1"), "psum_bytes": "4", "requantise": machine_rule}
    plan = solve(path, load_machine("scratchpad_768k", settings), problem="tiling", all_kinds=True, jobs=1)
    texts = files_of(plan, read_model(path), None, rule)
    return [str(text) for name, text in texts.items() if name.startswith("layer_")]


@pytest.mark.slow(3)
def test_a_machine_has_a_rule_and_the_option_wins(tmp_path: Path) -> None:
    """C of a machine's rule is that of the option; no model of floats takes notice of it."""
    model("double", "int8", tmp_path / "q.onnx")
    by_machine, by_option = (
        finished(tmp_path / "q.onnx", "double", None),
        finished(tmp_path / "q.onnx", "float", "double"),
    )
    assert by_machine == by_option
    assert any("certile_requantise_double" in text for text in by_machine)
    assert not any("certile_requantise_" in text for text in finished(tmp_path / "q.onnx", "double", "float"))
    small_model(tmp_path / "m.onnx")
    floats = {**dict.fromkeys(BYTES, "4"), "requantise": "single"}
    assert refusals(read_model(tmp_path / "m.onnx"), load_machine("scratchpad_768k", floats)).of("tiling") == ()


def test_a_machine_without_a_rule_is_written_as_before() -> None:
    """Digests of machines stand in plans: the field is written only where it says something."""
    assert "requantise" not in load_machine("scratchpad_768k").model_dump()
    said = load_machine("scratchpad_768k", {"requantise": "even"}).model_dump()
    assert said["requantise"] == "even"
    with pytest.raises(InputError, match="requantise"):
        load_machine("scratchpad_768k", {"requantise": "half"})

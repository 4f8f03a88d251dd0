"""C code of models whose elements are no floats of 4 bytes: quantised to 8 and 16 bits, and half precision."""

from __future__ import annotations

import logging
import random
import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.load import load_machine
from instances.onnx.model import read_model
from instances.onnx.reader import read_onnx
from solver.uses.emit.emit import compile_model
from solver.uses.emit.program import runtime
from tests.emitted import BUILDS, BYTES, FLOATS, build_and_run, needs_gcc, random_scratchpad, small_model, write
from tests.onnx_models import model_of
from tests.quantised import Maker, program_by_random_nests, quantised_model, quantised_network
from tests.written import built, planned

pytestmark = needs_gcc

MODELS = Path(__file__).parent.parent / "data" / "onnx"
WORDS = {"in_bytes": 2, "w_bytes": 2, "out_bytes": 2, "psum_bytes": 8}
HALVES = {"in_bytes": 2, "w_bytes": 2, "out_bytes": 2, "psum_bytes": 4}
QUICK = "-O0 -fsanitize=address,undefined -fno-sanitize-recover=all"


def compared(printed: str) -> tuple[int, int, int]:
    """Exact elements, all of them, and within how many steps the others are."""
    found = re.search(r"results: (\d+) of (\d+) elements exact, the others within (\d+) steps", printed)
    assert found is not None, printed
    exact, elements, steps = map(int, found.groups())
    return exact, elements, steps


def run_random(
    seed: int, folder: Path, flags: str, elements: dict[str, int], **kinds: object
) -> tuple[int, int]:  # fmt: skip
    """Build and run a random model with random nests; returns exact elements and all, (0, 0) if nothing compares.

    Without flags each layer is one tile.
    """
    rng = random.Random(seed)
    folder.mkdir()
    quantised_model(rng, folder / "m.onnx", **kinds)
    if not flags:
        return compared(built(planned(folder / "m.onnx", elements).files(), folder / "c"))[:2]
    files = program_by_random_nests(rng, folder / "m.onnx", **elements)
    if "expected.bin" not in files:  # onnxruntime has no kernel
        return 0, 0
    write(files, folder / "c")
    printed = build_and_run(folder / "c", flags)
    assert "transfers as planned" in printed
    exact, number, steps = compared(printed)
    assert steps <= 1
    return exact, number


# ---- quantised ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("operators", "kind", "weights", "flags"), [
    (False, "int8", "int8", ""), (True, "uint8", "uint8", ""),
    pytest.param(False, "uint8", "int8", QUICK, marks=pytest.mark.slow(3)),
])  # fmt: skip
def test_random_quantised_layers(tmp_path: Path, operators: bool, kind: str, weights: str, flags: str) -> None:
    """Zero points, padding, groups, scales by channel, spilled sums: as onnxruntime, but for one step at ties."""
    pytest.importorskip("onnxruntime")
    kinds = {"operators": operators, "kind": kind, "weight_kind": weights}
    exact, number = run_random(7, tmp_path / "7", flags, BYTES | {"bias_bytes": 4}, **kinds)
    assert number > 0
    assert exact >= 0.97 * number


@pytest.mark.slow(2)
def test_a_model_without_weights(tmp_path: Path) -> None:
    """A product of two maps and a pooling: no product says what the maps are made of but the first quantisation."""
    pytest.importorskip("onnxruntime")
    maker = Maker(random.Random(2))
    first = maker.quantised("x", (1, 2, 4, 4), 1 / 64)
    for one in (maker.matmul(first, first), maker.pool(first)):
        maker.result(one)
    maker.save(tmp_path / "m.onnx", (1, 2, 4, 4))
    compile_model(tmp_path / "m.onnx", "scratchpad_64k", tmp_path / "c", settings=BYTES)
    assert compared(build_and_run(tmp_path / "c", "-O0"))[2] <= 1


@pytest.mark.thorough
@pytest.mark.slow(60)
def test_random_layers_of_16_bits(tmp_path: Path) -> None:
    """onnxruntime computes them in single precision, which has fewer bits than their sums."""
    pytest.importorskip("onnxruntime")
    for seed in range(200, 210):
        kinds = {"kind": ("uint16", "int16")[seed % 2], "weight_kind": ("int8", "int16")[seed // 2 % 2]}
        elements = WORDS | {"w_bytes": 1 if kinds["weight_kind"] == "int8" else 2, "bias_bytes": (0, 4, 8)[seed % 3]}
        exact, number = run_random(seed, tmp_path / str(seed), BUILDS[seed % 4], elements, **kinds)
        assert exact >= 0.9 * number > 0


@pytest.mark.slow(90)
def test_random_quantised_networks_by_plans_of_every_problem(tmp_path: Path) -> None:
    """Maps that stay on chip, groups of layers, cores that share a layer: all with quantised elements."""
    pytest.importorskip("onnxruntime")
    kept = written = 0
    for seed in range(4):
        rng = random.Random(seed)
        path = tmp_path / f"{seed}.onnx"
        quantised_network(rng, path, operators=seed % 2 == 0, kind=("uint8", "int8")[seed // 2])
        scratchpad = random_scratchpad(rng, read_onnx(path)).model_copy(update=BYTES)
        cores = load_machine("nmp").model_copy(update=BYTES | {"bias_bytes": 4})
        for problem in ("tiling", "slicing", "joint", "fusion"):
            folder = tmp_path / f"{seed}_{problem}"
            try:
                made = compile_model(path, cores if problem == "slicing" else scratchpad, folder, problem=problem)
            except InputError as error:  # as in single precision
                if re.search("joined several times|reshaped on its way|NO_SOLUTION", str(error)):
                    continue
                raise
            written += 1
            exact, number, steps = compared(build_and_run(folder, BUILDS[seed]))
            assert exact >= 0.97 * number
            assert steps <= 1
            kept += problem in ("joint", "fusion") and any(row.on_chip for row in made.plan.part.figures)
    assert written >= 12
    assert kept > 0


@pytest.mark.slow(20)
@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize(("name", "problem", "exact"), [
    ("densenet", "joint", 10), ("mobilenet_v3", "fusion", 10), ("resnet", "joint", 10), ("resnet", "fusion", 10),
    ("shufflenet", "tiling", 10), ("vit", "tiling", 7),
])  # fmt: skip
def test_quantised_exports(tmp_path: Path, name: str, form: str, problem: str, exact: int) -> None:
    """As onnxruntime's quantiser writes them; of 10 results each, softmax (which it approximates) costs 3 a step."""
    pytest.importorskip("onnxruntime")
    machine = "scratchpad_512k" if problem == "tiling" else "scratchpad_768k"
    compile_model(MODELS / f"{name}_{form}.onnx", machine, tmp_path / "c", settings=BYTES, problem=problem)
    printed = build_and_run(tmp_path / "c", "-O2")
    assert "transfers as planned" in printed
    found, number, steps = compared(printed)
    assert number == 10
    assert found >= exact
    assert steps <= 1


@pytest.mark.slow(3)
def test_a_quantised_network_on_chip(tmp_path: Path) -> None:
    """Maps with scales of their own are joined where they are: readers take every channel by its scale."""
    pytest.importorskip("onnxruntime")
    made = compile_model(MODELS / "densenet_qdq.onnx", "scratchpad_768k", tmp_path / "c", settings=BYTES)
    assert any(row.on_chip for row in made.plan.part.figures)
    assert compared(build_and_run(tmp_path / "c", "-O0"))[:2] == (10, 10)


# ---- half precision ----------------------------------------------------------------------------------------------


def test_half_precision_is_that_of_numpy(tmp_path: Path) -> None:
    """Every half, what lies in the middle of two and beside that, what is too large, and what is no number."""
    text = """
    #include "certile_tile.h"
    #include <stdio.h>
    int main(void)
    {
        unsigned char half[2];
        for (float x; fread(&x, sizeof x, 1, stdin) == 1;) {
            certile_put_f16(half, x);
            const float back = certile_get_f16(half);
            fwrite(half, 1, 2, stdout);
            fwrite(&back, sizeof back, 1, stdout);
        }
        return 0;
    }
    """
    for name, part in {**runtime("certile_tile.h"), "main.c": text}.items():
        (tmp_path / name).write_text(part)
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", "half", "main.c"], cwd=tmp_path, check=True)
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    finite = np.sort(halves[np.isfinite(halves)]).astype(np.float64)
    ties = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    beside = [np.nextafter(ties, np.float32(side)) for side in (-np.inf, np.inf)]
    given = np.concatenate([halves, ties, *beside, np.float32([65519.99, 65520, -65520, 1e30, 1e-30])])
    ran = subprocess.run([tmp_path / "half"], input=given.tobytes(), capture_output=True, check=True).stdout
    made = np.frombuffer(ran, np.dtype([("half", "<u2"), ("back", "<f4")]))
    with np.errstate(over="ignore"):
        want = given.astype(np.float16)
    number = ~np.isnan(want)
    assert (made["half"][number] == want[number].view(np.uint16)).all()
    assert np.isnan(made["back"][~number]).all()
    assert (made["back"][number] == want[number].astype(np.float32)).all()


def in_halves(source: Path, target: Path) -> None:
    """Write a model with float16 in place of float32."""
    model = onnx.load(source)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    onnx.save(model, target)


@pytest.mark.slow(6)
@pytest.mark.parametrize("halves", [
    pytest.param(False, marks=pytest.mark.slow(10)), True,
])  # fmt: skip
def test_half_precision(tmp_path: Path, halves: bool) -> None:
    """Of a file in half precision, and of one in single precision that the machine's elements round."""
    pytest.importorskip("onnxruntime")
    small_model(tmp_path / "single.onnx")
    in_halves(tmp_path / "single.onnx", tmp_path / "half.onnx")
    settings = HALVES | {"bias_bytes": 2, "in_layout": "HWC", "out_layout": "HWC"}
    path = tmp_path / ("half.onnx" if halves else "single.onnx")
    compile_model(path, "scratchpad_64k", tmp_path / "c", settings=settings, problem="tiling" if halves else None)
    found = re.search(r"differ from those expected by (\S+)", build_and_run(tmp_path / "c", QUICK))
    assert 1e-5 < float(found.group(1)) < 2e-3


# ---- what is refused ---------------------------------------------------------------------------------------------


def test_elements_that_the_machine_does_not_count(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"maps of uint8, weights of int8.*in_bytes 4, out_bytes 4.*--set in_bytes=1"):
        compile_model(MODELS / "resnet_qdq.onnx", "scratchpad_512k", tmp_path / "c", settings=dict.fromkeys(BYTES, 4))
    with pytest.raises(InputError, match=r"psum_bytes 1: plan with --set psum_bytes=4"):
        compile_model(MODELS / "resnet_qdq.onnx", "scratchpad_512k", tmp_path / "c", settings={"psum_bytes": 1})
    small_model(tmp_path / "small.onnx")
    with pytest.raises(InputError, match=r"float16 takes 2 bytes and its sums 4, it has psum_bytes 2: plan with"):
        compile_model(tmp_path / "small.onnx", "scratchpad_512k", tmp_path / "c", settings=HALVES | {"psum_bytes": 2})
    assert not (tmp_path / "c").exists()


def test_sums_that_may_be_too_large(tmp_path: Path) -> None:
    """Weights of 32,000 by inputs of up to 65,535 are more than 2^31 - 1 from the second product on."""
    maker = Maker(random.Random(1), kind="uint16", weight_kind="int16")
    maker.result(maker.gemm(maker.quantised("x", (1, 4, 4, 4), 1e-3)))
    maker.save(tmp_path / "m.onnx", (1, 4, 4, 4))
    with pytest.raises(InputError, match=r"sums may reach [\d,]+, integers of psum_bytes 4 2,147,483,647: plan with"):
        compile_model(tmp_path / "m.onnx", "scratchpad_64k", tmp_path / "c", settings=HALVES)


def test_sums_that_their_bias_makes_too_large(tmp_path: Path) -> None:
    """A weight of 1 by inputs up to 255 may reach 255: 2^31 - 256 more are well, 2^31 - 128 too many."""
    for bias, said in ((2**31 - 256, None), (2**31 - 128, "sums may reach 2,147,483,775, integers of psum_bytes 4")):
        nodes = [helper.make_node("QLinearConv", ["q", "s", "z", "w", "s", "zw", "s", "z", "b"], ["y"])]
        held = {"s": np.float32(1), "z": np.uint8(0), "zw": np.int8(0), "w": np.ones((1, 1, 1, 1), np.int8),
                "b": np.array([bias], np.int32)}  # fmt: skip
        nodes.insert(0, helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]))
        onnx.save(model_of(nodes, {"x": (1, 1, 2, 2)}, held=held), tmp_path / "m.onnx")
        meaning = planned(tmp_path / "m.onnx", BYTES).meaning
        assert meaning is not None
        step = next(o for o in meaning.model.network.operators if o.name == meaning.model.network.layers[0].name)
        if said is None:
            meaning.trained(step, meaning.model.network.layers[0])
        else:
            with pytest.raises(InputError, match=said):
                meaning.trained(step, meaning.model.network.layers[0])


def test_a_map_that_is_no_weight(tmp_path: Path) -> None:
    """Of a product of two maps the right one takes the place of weights, of as many bytes."""
    maker = Maker(random.Random(1), kind="int16", weight_kind="int8")
    first = maker.quantised("x", (1, 2, 4, 4), 1e-3)
    maker.result(maker.matmul(maker.pointwise(first), first))
    maker.save(tmp_path / "m.onnx", (1, 2, 4, 4))
    settings = HALVES | {"psum_bytes": 8, "w_bytes": 1}
    with pytest.raises(InputError, match=r"its right operand is of int16, and the machine has w_bytes 1: no C"):
        compile_model(tmp_path / "m.onnx", "scratchpad_64k", tmp_path / "c", settings=settings)


def dynamic_model(path: Path, quantised: bool) -> None:
    """Write a product whose input is quantised by what it holds, or a convolution that is not quantised."""
    rng = np.random.default_rng(1)
    if quantised:
        weights = rng.integers(-99, 99, (8, 4), np.int8)
        nodes = [
            helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
            helper.make_node("MatMulInteger", ["q", "w", "zero"], ["p"]), helper.make_node("Cast", ["p"], ["y"], to=1),
        ]  # fmt: skip
    else:
        weights = rng.normal(size=(8, 4)).astype(np.float32)
        nodes = [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]), helper.make_node("MatMul", ["d", "w"], ["y"]),
        ]  # fmt: skip
    held = {"w": weights, "s": np.float32(0.1), "z": np.uint8(3)}
    onnx.save(model_of(nodes, {"x": (2, 8)}, held=held, ir=10), path)


@pytest.mark.parametrize(("quantised", "said"), [
    (True, "DynamicQuantizeLinear.: its scale depends on the data"),
    (False, "for maps of uint8, weights of float32.*w_bytes 1: plan with --set w_bytes=4"),
])  # fmt: skip
def test_models_that_are_not_quantised_as_a_whole(tmp_path: Path, quantised: bool, said: str) -> None:
    dynamic_model(tmp_path / "m.onnx", quantised)
    with pytest.raises(InputError, match=said):
        compile_model(tmp_path / "m.onnx", "scratchpad_64k", tmp_path / "c", settings=BYTES)
    assert not (tmp_path / "c").exists()


def test_a_model_that_onnxruntime_does_not_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Signed inputs and unsigned weights: the reference of ONNX has the results to compare with."""
    pytest.importorskip("onnxruntime")
    maker = Maker(random.Random(3), operators=True, kind="int8", weight_kind="uint8")
    maker.result(maker.pointwise(maker.quantised("x", (1, 2, 3, 3), 0.02)))
    maker.save(tmp_path / "m.onnx", (1, 2, 3, 3))
    with caplog.at_level(logging.WARNING):
        made = compile_model(tmp_path / "m.onnx", "scratchpad_64k", tmp_path / "c", settings=BYTES)
    assert "onnxruntime does not run it" in caplog.text
    assert "expected.bin" in made.files
    printed = build_and_run(tmp_path / "c", "-O0")
    assert "compared with the reference of onnx" in printed
    assert compared(printed) == (18, 18, 0)


# ---- C of models that have a map as a result and read it inside as well: element by element as onnxruntim

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
    onnx.save(model_of(nodes, {"x": (1, 3, 5, 4)}, (*results, last), weights), path)


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

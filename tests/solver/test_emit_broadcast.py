"""C of layers whose operands are broadcast: each has tiles of its own, and nothing is read past the transfers."""

from __future__ import annotations

import random
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from pydantic import ValidationError

from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Loop, Nest
from instances.errors import InputError
from instances.machine.machine import Machine, Transfer
from instances.network.network import Network
from instances.network.operators import Conv, Eltwise, Input, Operator
from instances.network.stores import stores
from instances.network.workload import DIMS, Layer
from solver import solve
from solver.plan.plan import Plan
from solver.uses.emit.emit import Compiled, compile_model, files_of
from solver.uses.emit.onchip import pitches_in
from solver.uses.emit.program import Planned, single_layers
from tests.adversary.joint import Case
from tests.adversary.layers import random_layer
from tests.effort import in_turn, tries
from tests.emitted import BUILDS, BYTES, FLOATS, build_and_run, needs_gcc, random_machine, random_nest, write
from tests.formulations.test_joint_weights import CASES, FAR, machine
from tests.onnx_models import model_of
from tests.quantised import Maker
from tests.solver.test_emit import numbers
from tests.written import built

pytestmark = needs_gcc

#: Of every operand the dimensions along which it has one element.
PATTERNS = [
    ("", "rc"), ("rc", ""), ("", "g"), ("g", "rc"), ("c", "r"), ("", "b"), ("", "bgrc"), ("b", "grc"),
    ("", "bg", "rc"), ("bc", "gr", "g", "b"),
]  # fmt: skip
#: Shapes of operands: maps, tokens, and sequences that are broadcast along two and three groups of axes.
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "gate": [(1, 6, 5, 4), (1, 6, 1, 1)],
    "gate_first": [(6, 1, 1), (2, 6, 5, 4)],
    "mask": [(1, 1, 5, 4), (1, 3, 5, 4)],
    "rows_by_columns": [(1, 3, 5, 1), (1, 3, 1, 4)],
    "mean_of_a_token": [(2, 5, 6), (2, 5, 1)],
    "positions": [(3, 5, 6), (1, 5, 6)],
    "features": [(2, 5, 6), (6,)],
    "anchors": [(1, 3, 4, 5, 2), (1, 1, 4, 5, 2)],
    "grid": [(2, 1, 4, 1, 3), (1, 3, 4, 1, 1)],
    "three": [(2, 4, 3), (1, 4, 1), (2, 1, 3)],
}


def element_wise(name: str, lacks: tuple[str, ...], **sizes: int) -> Layer:
    size = {"b": 2, "g": 3, "r": 4, "c": 5} | sizes
    return Layer.model_validate({
        "name": name, "kind": "eltwise", "m": 1, "n": 1, "h": size["r"], "l": size["c"], "weights": "none",
        "inputs": len(lacks), "broadcast": lacks, **size,
    })  # fmt: skip


def random_case(rng: random.Random, name: str) -> Planned:
    """A layer with operands that are broadcast, any machine and nest, and a memory with not one byte to spare."""
    while True:
        drawn = random_layer(rng, tiny=True)
        if not drawn.broadcast or drawn.resident_in or drawn.resident_out:
            continue
        layer = drawn.model_copy(update={"name": name})
        try:
            machine = random_machine(rng)
            nest = random_nest(rng, layer, machine)
            steps = prod(-(-layer.extent(d) // nest.tile(layer)[d]) for d in DIMS)
            if steps > 400 or (machine.psum_first_read and machine.psum_bytes > machine.out_bytes):
                continue
            taken = replay(layer, machine, nest, execute=False).outcome.occupancy_bytes
        except (InputError, ValidationError):
            continue
        sizes = {f"{m}_bytes" if m == "ocm" else f"{m}_buffer_bytes": max(1, n) for m, n in taken.items()}
        return Planned(layer, machine.model_copy(update=sizes), nest)


def random_program(seed: int, number: int) -> dict[str, str]:
    rng = random.Random(seed)
    return single_layers([random_case(rng, f"case{k}") for k in range(number)])


@pytest.mark.slow(2)
def test_random_nests_compute_and_move_what_is_planned(tmp_path: Path) -> None:
    number = tries(10, 200)
    write(random_program(1, number), tmp_path / "c")
    assert f"{number} of {number}" in build_and_run(tmp_path / "c", BUILDS[3])


@pytest.mark.slow(2)
def test_results_are_those_of_numpy(tmp_path: Path) -> None:
    """Every pattern in tiles of 1 x 2 x 2 x 3 of 2 x 3 x 4 x 5: results are sums of what NumPy broadcasts."""
    machine = Machine(
        name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=4096, buffering="double",
        transfer=Transfer(byte_ticks=1),
    )  # fmt: skip
    nest = Nest((Loop("b", 1), Loop("c", 3), Loop("g", 2), Loop("r", 2), Hold("IN"), Hold("OUT")))
    layers = [element_wise(f"k{k}", lacks) for k, lacks in enumerate(PATTERNS)]
    write(single_layers([Planned(layer, machine, nest) for layer in layers]), tmp_path / "c")
    assert "10 of 10" in build_and_run(tmp_path / "c", BUILDS[3], "results.bin")
    is_ = np.fromfile(tmp_path / "c" / "results.bin", np.int8).reshape(len(layers), 2, 3, 4, 5)
    for lacks, found in zip(PATTERNS, is_, strict=True):
        state, total = 20, np.zeros((2, 3, 4, 5), np.int8)
        for lack in lacks:
            shape = [1 if d in lack else size for d, size in zip("bgrc", (2, 3, 4, 5), strict=True)]
            values, state = numbers(prod(shape), state)
            total += values.reshape(shape)
        assert (found == total).all(), lacks


def test_each_operand_is_fetched_by_its_own_loops(tmp_path: Path) -> None:
    """By hand: channels outside, then rows: the gate's 3 bytes once, the map's 60 in pieces of a row.

    The loop over rows is none that the gate depends on. With one place in the nest for all operands it would be fetched
    for every row, 12 times; this way 3 times.
    """
    layer = element_wise("gated", ("", "rc"), b=1)
    machine = Machine(
        name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=11,
        transfer=Transfer(byte_ticks=1),
    )  # fmt: skip
    nest = Nest((Loop("g", 1), Loop("r", 1), Hold("IN"), Hold("OUT")))  # tiles: 5 + 1 + 5 bytes
    planned = replay(layer, machine, nest, execute=True).outcome.by_operand["IN"]
    assert (planned.calls, planned.bytes) == (12 + 3, 60 + 3)
    write(single_layers([Planned(layer, machine, nest)]), tmp_path / "c")
    assert "1 of 1" in build_and_run(tmp_path / "c", BUILDS[3])
    text = (tmp_path / "c" / "layer_000_gated.c").read_text()
    assert "IN1_AT = 0, IN1_BYTES = 5" in text
    assert "IN2_AT = 5, IN2_BYTES = 1" in text


def all_shapes() -> Network:
    """A network of one layer for each of the shapes, whose first operand is made by a layer where it is a map."""
    made: list[Operator] = []
    for name, shapes in SHAPES.items():
        names = [f"{name}_{k}" for k in range(len(shapes))]
        made += [Input(name=one, shape=shape) for one, shape in zip(names, shapes, strict=True)]
        if len(shapes[0]) == 4:
            made.append(
                Conv(name=f"{name}_conv", inputs=(names[0],), shape=shapes[0], filters=shapes[0][1], kernel=(1, 1))
            )
            names[0] = f"{name}_conv"
        made.append(Eltwise(name=name, inputs=tuple(names), shape=np.broadcast_shapes(*shapes), fn="add"))
    return Network(name="shapes", operators=tuple(made))


@pytest.mark.slow(5)
@pytest.mark.parametrize(("problem", "layout"), in_turn([("tiling",), ("joint",), ("fusion",)], ["CHW", "HWC"]))
def test_networks_on_integers(tmp_path: Path, problem: str, layout: str) -> None:
    """All shapes in every problem, operands on chip where plans have them there: results, counters and the guard."""
    network = all_shapes()
    settings: dict[str, str | int] = {"in_layout": layout, "out_layout": layout}
    if problem != "tiling":
        settings["ocm_banks"] = 64
    plan = solve(
        network,
        "scratchpad_64k",
        problem=problem,
        settings=settings,
        all_kinds=problem == "tiling",
        time_limit_s=20,
        objective="bytes" if problem == "fusion" else None,  # in the least time groups read operands on chip: not in C
    )
    write(files_of(plan), tmp_path / "c")
    layers = len(network.layers)
    if problem == "tiling":
        assert f"{layers} of {layers} layers: results and transfers as planned" in build_and_run(
            tmp_path / "c", BUILDS[3]
        )
    else:
        build_and_run(tmp_path / "c", BUILDS[1])


# ---- models ----------------------------------------------------------------------------------------------------------


def float_model(path: Path) -> None:
    """Functions of two and three operands whose first or second one is broadcast, also by constants."""
    rng, nodes, weights, results = np.random.default_rng(4), list[onnx.NodeProto](), list[onnx.TensorProto](), []

    def constant(*shape: int) -> str:
        weights.append(numpy_helper.from_array(rng.uniform(0.5, 1.5, shape).astype(np.float32), f"k{len(weights)}"))
        return weights[-1].name

    def node(op: str, inputs: list[str], result: bool = False, **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, [f"t{len(nodes)}"], name=f"n{len(nodes)}", **attributes))
        results.extend([nodes[-1].output[0]] if result else [])
        return nodes[-1].output[0]

    conv = node("Conv", ["x", constant(6, 3, 1, 1)])
    mean = node("GlobalAveragePool", [conv])
    gate = node("Sigmoid", [node("Conv", [mean, constant(6, 6, 1, 1)])])
    node("Mul", [gate, conv], result=True)
    node("Sub", [mean, conv], result=True)
    node("Div", [conv, node("Exp", [mean])], result=True)
    mask = node("Sigmoid", [node("Conv", [conv, constant(1, 6, 1, 1)])])
    node("Max", [mask, conv, gate], result=True)
    tokens = node("Reshape", [conv, "tokens"])
    centred = node("Sub", [tokens, node("ReduceMean", [tokens], axes=[2], keepdims=1)])
    node("Add", [centred, constant(1, 6, 20)], result=True)
    node("Mul", [node("Reshape", [conv, "five"]), node("Reshape", [mean, "gates"])], result=True)
    weights.extend(
        numpy_helper.from_array(np.array(shape, np.int64), name)
        for name, shape in (("tokens", (1, 6, 20)), ("five", (1, 2, 3, 5, 4)), ("gates", (1, 2, 3, 1, 1)))
    )
    onnx.save(model_of(nodes, {"x": (1, 3, 5, 4)}, results, weights, opset=13), path)


def quantised_model(path: Path, kind: str) -> None:
    """A map times its means, quantised and again; and a row of constants added."""
    maker = Maker(random.Random(7), kind=kind)
    one = maker.pointwise(maker.quantised("x", (1, 2, 4, 4), 4 / 255))
    again = lambda real: maker.node("QuantizeLinear", [real, *maker.given(one)[1:]])  # noqa: E731
    mean = again(maker.node("GlobalAveragePool", [maker.real(one)]))
    gate = maker.node("DequantizeLinear", [mean, *maker.given(one)[1:]])
    code = {"int8": onnx.TensorProto.INT8, "uint8": onnx.TensorProto.UINT8}[kind]
    maker.results.append((again(maker.node("Mul", [gate, maker.real(one)])), code))
    maker.results.append((again(maker.node("Sub", [maker.real(one), gate])), code))
    maker.save(path, (1, 2, 4, 4))


@pytest.mark.parametrize("problem", ["tiling", "joint", "fusion"])
def test_models(tmp_path: Path, problem: str) -> None:
    """As onnxruntime computes them, within 1e-5 of the largest result, with the guard."""
    pytest.importorskip("onnxruntime")
    float_model(tmp_path / "m.onnx")
    settings: dict[str, str | int] = {**FLOATS, "ocm_banks": 64} if problem != "tiling" else dict(FLOATS)
    compile_model(
        tmp_path / "m.onnx", "scratchpad_64k", tmp_path / "c", problem=problem, settings=settings, time_limit_s=20
    )
    printed = build_and_run(tmp_path / "c", BUILDS[1])
    assert "transfers as planned" in printed
    difference = float(printed.split("differ from those expected by ")[1].split()[0]) if "differ" in printed else 0
    assert difference < 1e-5, printed


@pytest.mark.parametrize(("problem", "kind"), [("tiling", "int8"), ("joint", "uint8")])
def test_quantised_models(tmp_path: Path, problem: str, kind: str) -> None:
    pytest.importorskip("onnxruntime")
    quantised_model(tmp_path / "m.onnx", kind)
    settings: dict[str, str | int] = {**BYTES, "ocm_banks": 64} if problem != "tiling" else dict(BYTES)
    compile_model(
        tmp_path / "m.onnx", "scratchpad_64k", tmp_path / "c", problem=problem, settings=settings, time_limit_s=20
    )
    printed = build_and_run(tmp_path / "c", BUILDS[1])
    assert "transfers as planned" in printed
    assert "FAILED" not in printed


# ---- C of what stays on chip besides maps of full shape: operands that are broadcast, weights of several

PLANNED = "results and transfers as planned"


def joint(made: Network, on: Machine) -> Plan:
    return solve(made, on, problem="joint", time_limit_s=20)


def special(plan: Plan) -> set[str]:
    """Of what stays on chip that which is no map of full shape: gates and weights."""
    found = stores(plan.network_data)
    gates = {
        found.stores[s].name
        for layer, read in zip(found.layers, found.reads, strict=True)
        for lacks, s in zip(layer.patterns, read, strict=True)
        if lacks
    }
    return {name for row in plan.part.figures for name in row.on_chip if name in gates or "(weights)" in name}


def drawn(rng: random.Random) -> dict[str, str | bytes]:
    """C of a random network of which a gate or weights stay on chip, in a memory with hardly a byte to spare."""
    while True:
        case = Case.drawn(rng)
        sizes = (case.bytes[0], case.bytes[1], case.bytes[0], case.bytes[3])
        made, on = case.network, replace(case, bytes=sizes, memory=case.memory * 2).machine
        kinds = {kind for kind, _, _ in case.layers}
        if made is None or not kinds & {"again", "gate"}:
            continue
        plan = joint(made, on)
        if plan.status != "OPTIMAL" or not special(plan):
            continue
        try:
            return files_of(plan)
        except InputError as refused:  # the pre-flight names it, and `compile` plans with that map in memory
            assert "does not see it as regular rows" in str(refused)  # noqa: PT017 - of a plan that is not taken


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(tries(1, 40)))
def test_random_networks(tmp_path: Path, seed: int) -> None:
    assert PLANNED in built(drawn(random.Random(seed)), tmp_path / "c")


@pytest.mark.few(3)
@pytest.mark.parametrize("case", [case for case in CASES if "turns" in case or "late" in case or "matrix" in case])
def test_weights_by_hand(tmp_path: Path, case: str) -> None:
    """Two tensors by turns; one that comes late; a matrix from outside; bytes and banks."""
    assert PLANNED in built(files_of(joint(*CASES[case])), tmp_path / "c")


@pytest.mark.slow(2)
def test_weights_go_past_a_group(tmp_path: Path) -> None:
    """Problem fusion: a and b have the same weights, u and v run in strips between them; 28 bytes, each tensor once."""
    plan = solve(FAR, machine(40), problem="fusion", objective="bytes", pins=["cut=a", "fuse=u..v", "cut=v"])
    assert [[name for name in row.on_chip if "(weights)" in name] for row in plan.part.figures] == [["a (weights)"]] * 3
    write(files_of(plan), tmp_path / "c")
    assert PLANNED in build_and_run(tmp_path / "c", BUILDS[3])


def lstm(path: Path, steps: int, given: int, hidden: int) -> None:
    """One LSTM whose first state is zeros."""
    rng = np.random.default_rng(8)
    arrays = {"w": (1, 4 * hidden, given), "r": (1, 4 * hidden, hidden)}
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], name="lstm", hidden_size=hidden)
    held = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in arrays.items()}
    onnx.save(model_of([node], {"x": (steps, 1, given)}, held=held), path)


@pytest.mark.slow(2)
def test_an_lstm_reads_its_weights_once(tmp_path: Path) -> None:
    """Elements of a byte: W 4*16*8 = 512, R 4*16*16 = 1,024, x 3*8 = 24, y 3*16 = 48: 1,608, and the C counts them."""
    lstm(tmp_path / "m.onnx", 3, 8, 16)
    plan = solve(tmp_path / "m.onnx", "scratchpad_64k", problem="joint", time_limit_s=20)
    assert plan.objective.value == 1_608
    files = files_of(plan)
    arrays = [line for line in str(files["network.h"]).splitlines() if line.startswith("#define w_")]
    assert len(arrays) == 2  # one for W, one for R, none for each step
    write(files, tmp_path / "c")
    assert PLANNED in build_and_run(tmp_path / "c", BUILDS[1])


def compiled(path: Path, folder: Path, **settings: int) -> Compiled:
    return compile_model(path, "scratchpad_64k", folder, problem="joint", settings=FLOATS | settings, time_limit_s=20)


@pytest.mark.slow(2)
def test_a_model_of_an_lstm(tmp_path: Path) -> None:
    """The same in floats of four bytes, as onnxruntime computes it: no map lies in memory."""
    pytest.importorskip("onnxruntime")
    lstm(tmp_path / "m.onnx", 3, 8, 16)
    made = compiled(tmp_path / "m.onnx", tmp_path / "c")
    assert (made.bytes, made.notes) == (4 * 1_608, ())
    # R, 4,096 bytes, is on chip in the first step, beside 3 * 64 results of W and 64 of R, of four bytes each
    assert made.peak_bytes >= 4_096 + 4 * (192 + 64)
    assert "FAILED" not in build_and_run(tmp_path / "c", BUILDS[1])


def tied(path: Path) -> None:
    """A product with a matrix, then one with its transpose, with biases of its own: as embeddings are tied."""
    rng = np.random.default_rng(9)
    nodes = [
        helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["i"]), helper.make_node("MatMul", ["i", "t"], ["y"]),
    ]  # fmt: skip
    onnx.save(model_of(nodes, {"x": (5, 6)}, held={"w": rng.normal(0, 0.5, (6, 10)).astype(np.float32)}), path)


def test_a_transposed_reader_sees_weights_where_the_first_has_them(tmp_path: Path) -> None:
    """60 weights once, 30 elements in, 30 out, of four bytes; the second product reads them by other pitches."""
    pytest.importorskip("onnxruntime")
    tied(tmp_path / "m.onnx")
    made = compiled(tmp_path / "m.onnx", tmp_path / "c")
    assert (made.bytes, made.notes) == (4 * 120, ())
    assert "FAILED" not in build_and_run(tmp_path / "c", BUILDS[1])


def test_pitches_of_turned_axes() -> None:
    """Of shape (2, 3): the elements of a row are 3 apart in its transpose; what is no order of axes has none."""
    array = np.arange(6).reshape(2, 3)
    assert pitches_in(array, array.reshape(3, 1, 2)) == (2, 2, 1)
    assert pitches_in(array, array.T.copy().reshape(3, 1, 2)) == (1, 1, 3)
    assert pitches_in(array, array[::-1].copy()) is None
    assert pitches_in(array, np.arange(5)) is None


def test_pitches_are_not_wrong_where_elements_repeat() -> None:
    """A symmetric matrix is its own transpose: either order reads the same numbers."""
    array = np.array([[1, 2], [2, 3]])
    assert pitches_in(array, array.T.copy()) == (2, 1)

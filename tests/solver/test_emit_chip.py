"""C of what stays on chip besides maps of full shape: operands that are broadcast, weights of several layers, zeros."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.stores import stores
from solver import solve
from solver.plan.plan import Plan
from solver.uses.emit.compile import Compiled, compile_model
from solver.uses.emit.emit import files_of
from solver.uses.emit.onchip import pitches_in
from tests.adversary.joint import Case
from tests.effort import tries
from tests.emitted import BUILDS, build_and_run, write
from tests.formulations.test_joint_weights import CASES, FAR, machine
from tests.onnx_models import model_of
from tests.solver.test_emit_broadcast import FLOATS

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make"
)

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


@pytest.mark.slow(2)
@pytest.mark.parametrize("seed", range(tries(1, 3)))
def test_random_networks(tmp_path: Path, seed: int) -> None:
    write(drawn(random.Random(seed)), tmp_path / "c")
    assert PLANNED in build_and_run(tmp_path / "c", BUILDS[1])


@pytest.mark.slow(120)
@pytest.mark.parametrize("seed", range(3, 40))
def test_more_random_networks(tmp_path: Path, seed: int) -> None:
    write(drawn(random.Random(seed)), tmp_path / "c")
    assert PLANNED in build_and_run(tmp_path / "c", BUILDS[3])


@pytest.mark.slow(60)
@pytest.mark.parametrize("case", [case for case in CASES if "turns" in case or "late" in case or "matrix" in case])
def test_weights_by_hand(tmp_path: Path, case: str) -> None:
    """Two tensors by turns; one that comes late; a matrix from outside; bytes and banks."""
    write(files_of(joint(*CASES[case])), tmp_path / "c")
    assert PLANNED in build_and_run(tmp_path / "c", BUILDS[3])


@pytest.mark.slow(2)
def test_weights_go_past_a_group(tmp_path: Path) -> None:
    """Problem fusion: a and b have the same weights, u and v run in strips between them; 28 bytes, each tensor once."""
    plan = solve(FAR, machine(40), problem="fusion", pins=["cut=a", "fuse=u..v", "cut=v"])
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
    assert (made.bytes, made.note) == (4 * 1_608, "")
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


@pytest.mark.slow(2)
def test_a_transposed_reader_sees_weights_where_the_first_has_them(tmp_path: Path) -> None:
    """60 weights once, 30 elements in, 30 out, of four bytes; the second product reads them by other pitches."""
    pytest.importorskip("onnxruntime")
    tied(tmp_path / "m.onnx")
    made = compiled(tmp_path / "m.onnx", tmp_path / "c")
    assert (made.bytes, made.note) == (4 * 120, "")
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

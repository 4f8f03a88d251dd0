"""What is said of a model before there is a plan: all that would be refused, not the first of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from instances.errors import InputError
from instances.load import load_machine
from instances.onnx.model import read_model
from solver.cli.main import main
from solver.uses.emit import compile as compiling
from solver.uses.emit.compile import compile_model
from solver.uses.emit.plannable import preflight
from solver.uses.emit.preflight import Refusals, refusals
from tests.onnx_models import model_of

FLOAT = TensorProto.FLOAT
FLOATS = ["in_bytes=4", "w_bytes=4", "out_bytes=4"]


def saved(folder: Path, nodes: list[onnx.NodeProto], shape: tuple[int, ...], **constants: np.ndarray) -> Path:
    """A model of one input x, whose result is that of the last node."""
    path = folder / "model.onnx"
    onnx.save(model_of(nodes, {"x": shape}, nodes[-1].output[:1], constants), path)
    return path


def asked(path: Path, machine: str = "scratchpad_768k", **settings: str) -> Refusals:
    return refusals(read_model(path), load_machine(machine, settings))


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


def two_faults(folder: Path) -> Path:
    """A convolution, then two operators that nobody computes, one behind the other."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "conv"), helper.make_node("CumSum", ["a", "axis"], ["b"], "sum1"),
        helper.make_node("CumSum", ["b", "axis"], ["c"], "sum2"),
    ]  # fmt: skip
    return saved(folder, nodes, (1, 3, 8, 8), w=weights(4, 3, 1, 1), axis=np.array(2))


def test_every_refusal_is_named(tmp_path: Path) -> None:
    reasons = asked(two_faults(tmp_path)).of("tiling")
    assert len(reasons) == 3  # elements of one byte, and two operators
    assert [word for word in ("in_bytes=4", "sum1", "sum2") if any(word in reason for reason in reasons)] == [
        "in_bytes=4", "sum1", "sum2",
    ]  # fmt: skip


def test_a_model_without_faults_has_no_reason(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Conv", ["x", "w"], ["a"])], (1, 3, 8, 8), w=weights(4, 3, 1, 1))
    found = asked(path, in_bytes="4", w_bytes="4", out_bytes="4")
    assert found.of("tiling") == found.of("joint") == found.of("fusion") == ()


def test_compile_asks_before_it_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: object, **__: object) -> None:
        raise AssertionError("a search before the refusal")

    monkeypatch.setattr(compiling, "solve", search)
    with pytest.raises(InputError, match=r"sum1.*sum2"):
        compile_model(two_faults(tmp_path), "scratchpad_768k", tmp_path / "out", settings=FLOATS)
    assert not (tmp_path / "out").exists()


def test_a_map_that_the_host_computes_with_cannot_stay(tmp_path: Path) -> None:
    """A local response norm between two convolutions is the host's: what it reads and makes lies off the chip."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "one"), helper.make_node("LRN", ["a"], ["b"], "norm", size=3),
        helper.make_node("Conv", ["b", "v"], ["c"], "two"),
    ]  # fmt: skip
    path = saved(tmp_path, nodes, (1, 3, 8, 8), w=weights(4, 3, 1, 1), v=weights(4, 4, 1, 1))
    found = asked(path, in_bytes="4", w_bytes="4", out_bytes="4")
    assert found.of("tiling") == ()
    assert len(found.of("joint")) == 1
    assert "stays on chip" in found.of("joint")[0]


# --- the command ------------------------------------------------------------------------------------------------------


def test_import_says_what_can_be_planned_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two operators are opaque; problems say what they need; nothing is written without -o."""
    assert main(["import", str(two_faults(tmp_path)), "-m", "scratchpad_768k"]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert (
        lines[0]
        == "model: 4 operators, 1 layers (1 conv or matmul), 768 MACs, 12 parameters; not planned: CumSum x2 (0 MACs)"
    )
    assert "problem tiling: can be asked" in lines
    assert "problem mesh: no: machine scratchpad_768k: problem mesh needs a mesh, such as vectormesh_128 has" in lines
    assert sum(line.startswith("C on scratchpad_768k: no: ") for line in lines) == 3
    assert said.err.count("kept as opaque") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_import_asks_banks_and_what_layers_they_take(tmp_path: Path) -> None:
    """On midap problem banks is asked; its own reason stands beside those of the machine for others."""
    found = preflight(two_faults(tmp_path), "midap")
    assert any("meant for problem banks" in reason for reason in found.problems["tiling"])
    assert any("ocm_bytes" in reason for reason in found.problems["joint"])
    assert found.problems["banks"] == ("network model: operator 'sum1' (opaque) has no bank program",)
    assert set(found.c) == {""}  # none of the problems whose plans become C can be asked


def test_a_machine_that_does_not_fit_hides_no_reason_of_the_network(tmp_path: Path) -> None:
    """Banks take no product of two maps, and that is said beside the machine that has none."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "fc"), helper.make_node("MatMul", ["y", "y2"], ["z"], "two")]
    path = tmp_path / "model.onnx"
    onnx.save(model_of(nodes, {"x": (1, 4, 6), "y2": (1, 5, 7)}, held={"w": weights(6, 5)}), path)
    reasons = preflight(path, "scratchpad_768k").problems["mapping"]
    assert len(reasons) == 1  # hikey970 takes products
    reasons = preflight(path, "scratchpad_768k").problems["banks"]
    assert "scratchpad_768k has no banks" in reasons[0]
    assert len(reasons) > 1


def test_a_model_of_which_nothing_can_be_planned_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(saved(tmp_path, [helper.make_node("CumSum", ["x", "axis"], ["y"], "sum")], (4, 4), axis=np.array(0)))
    machine = ["-m", "scratchpad_768k"]
    for command in (
        ["import", path], ["import", path, "-o", str(tmp_path / "net.json")], ["solve", path, *machine],
        ["solve", path, *machine, "--problem", "joint"], ["explain", path, *machine], ["pareto", path, *machine],
        ["compile", path, *machine, "-o", str(tmp_path / "out")], ["price", path, *machine, "--mapping", "IN | OUT"],
        ["variants", path, *machine, "-o", str(tmp_path / "v.json")],
    ):  # fmt: skip
        assert main(command) == 2, command
        said = capsys.readouterr().err
        assert said.startswith("certile: error: "), said
        assert "sum" in said, said


@pytest.mark.slow(2)
def test_compile_says_the_macs_of_its_plan(tmp_path: Path) -> None:
    """64 pixels, 3 to 4 channels, 3x3: 64 * 4 * 27 MACs, and 64 * 4 * 4 of the second."""
    one = helper.make_node("Conv", ["x", "w"], ["a"], "one", pads=[1] * 4)
    two = helper.make_node("Conv", ["a", "v"], ["b"], "two")
    path = saved(tmp_path, [one, two], (1, 3, 8, 8), w=weights(4, 3, 3, 3), v=weights(4, 4, 1, 1))
    for problem in ("tiling", "joint", "fusion"):
        made = compile_model(path, "scratchpad_768k", tmp_path / problem, settings=FLOATS, problem=problem)
        assert made.macs == 8 * 8 * (4 * 27 + 4 * 4)


def test_weights_in_a_file_that_is_missing_are_a_reason_of_c_alone(tmp_path: Path) -> None:
    """Models are shared without their weights for planning: their shapes are in the file."""
    path = saved(tmp_path, [helper.make_node("Conv", ["x", "w"], ["a"])], (1, 3, 8, 8), w=weights(4, 3, 1, 1))
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="model.weights", size_threshold=0)
    (tmp_path / "model.weights").unlink()
    found = preflight(path, "scratchpad_768k")
    assert found.network.macs == 64 * 3 * 4
    assert found.problems["tiling"] == ()
    assert list(found.c) == [""]
    assert "weights cannot be read" in found.c[""][0]


@pytest.mark.parametrize("number", range(10))
def test_weights_that_are_shared_have_biases_of_their_own_or_not(tmp_path: Path, number: int) -> None:
    """Heads on several levels of a pyramid: one tensor of weights, and a bias or a batch norm for every level."""
    given = {"w": weights(4, 4, 1, 1), "b": weights(4), "c": weights(4), "v": weights(4) ** 2}
    first, second = [("w",), ("w", "b"), ("w", "c")][number % 3], [("w", "b"), ("w",), ("w", "c")][number // 3 % 3]
    nodes = [
        helper.make_node("Conv", ["x", *first], ["p"], "one"),
        helper.make_node("Conv", ["p", *second], ["q"], "two"),
    ]
    if number == 9:
        norms = (("p", "b", "r"), ("q", "c", "s"))
        nodes[1] = helper.make_node("Conv", ["r", "w"], ["q"], "two")
        one, two = (helper.make_node("BatchNormalization", [x, n, n, n, "v"], [y]) for x, n, y in norms)
        nodes = [nodes[0], one, nodes[1], two]
    path = saved(tmp_path, nodes, (1, 4, 5, 5), **given)
    found = preflight(path, "scratchpad_768k")
    assert all(found.problems[problem] == () for problem in ("tiling", "joint", "fusion"))

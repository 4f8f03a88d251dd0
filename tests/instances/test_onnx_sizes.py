"""Open sizes of ONNX files: what they are, who gives them numbers, and what a file says of sizes that are computed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from instances.errors import InputError
from instances.onnx.reader import read_onnx
from solver.calls.solve import explain, pareto, solve
from solver.cli.main import main
from solver.uses.sweep.spec import read_spec
from solver.uses.sweep.tasks import Expansion

FLOAT = TensorProto.FLOAT
Sizes = Sequence[int | str | None]


def saved(
    folder: Path, inputs: Mapping[str, Sizes | None], *, result: Sizes | None = None, inner: Sizes | None = None
) -> Path:
    """A 3x3 convolution of every input, padded by 1, from 3 channels to 4, and their sum."""
    w = numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
    nodes = [helper.make_node("Conv", [x, "w"], [f"{x}.made"], f"{x}.conv", pads=[1] * 4) for x in inputs]
    nodes.append(helper.make_node("Sum", [f"{x}.made" for x in inputs], ["y"], "sum"))
    infos = [helper.make_tensor_value_info(x, FLOAT, sizes) for x, sizes in inputs.items()]
    for info, sizes in zip(infos, inputs.values(), strict=True):
        for axis, size in enumerate(sizes or ()):
            if isinstance(size, int):  # -1 and 0 too
                info.type.tensor_type.shape.dim[axis].dim_value = size
    graph = helper.make_graph(
        nodes, "g", infos, [helper.make_tensor_value_info("y", FLOAT, result)], [w],
        value_info=[] if inner is None else [helper.make_tensor_value_info(f"{x}.made", FLOAT, inner) for x in inputs],
    )  # fmt: skip
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def shapes_of(path: Path, **asked: object) -> dict[str, tuple[int, ...]]:
    network = read_onnx(path, **asked)
    return {o.name: o.shape for o in network.operators}


# --- what is open -----------------------------------------------------------------------------------------------------

ANSWERED: list[tuple[Sizes, dict[str, object], tuple[int, ...]]] = [
    ([-1, 3, 8, 8], {}, (1, 3, 8, 8)),  # -1 is open, and a first axis is the batch: 1
    ([0, 3, 8, 8], {}, (1, 3, 8, 8)),
    ([None, 3, 8, 8], {}, (1, 3, 8, 8)),
    (["?", 3, 8, 8], {"batch": 2}, (2, 3, 8, 8)),
    ([-1, 3, 8, 8], {"batch": 5}, (5, 3, 8, 8)),
    ([-1, 3, -1, -1], {"shapes": {"x": (1, 3, 6, 7)}}, (1, 3, 6, 7)),
    ([1, 3, "?", "?"], {"shapes": {"x": (1, 3, 48, 192)}}, (1, 3, 48, 192)),  # one name, two numbers
    ([1, 3, "?", "?"], {"symbols": {"?": 16}}, (1, 3, 16, 16)),
    ([1, 3, "S", "S"], {"shapes": {"x": (1, 3, 4, 9)}}, (1, 3, 4, 9)),
    ([1, 3, "S", "S"], {"symbols": {"S": 5}}, (1, 3, 5, 5)),
    ([1, 3, "S", "S"], {"symbols": {"x[2]": 5, "x[3]": 6}}, (1, 3, 5, 6)),
    ([1, 3, "S", "S"], {"symbols": {"S": 5, "x[3]": 6}}, (1, 3, 5, 6)),  # the axis alone is said more precisely
    (["N", 3, "H", "W"], {"symbols": {"H": 4, "W": 6}}, (1, 3, 4, 6)),
    (["N", 3, "H", "W"], {"batch": 3, "shapes": {"x": (3, 3, 4, 6)}}, (3, 3, 4, 6)),
    (["?", 3, "?", "?"], {"symbols": {"x[2]": 4, "x[3]": 6}}, (1, 3, 4, 6)),  # the batch is no other axis of its input
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "asked", "shape"), ANSWERED)
def test_open_sizes_get_the_numbers_that_are_said(
    sizes: Sizes, asked: dict[str, object], shape: tuple[int, ...], tmp_path: Path
) -> None:
    made = shapes_of(saved(tmp_path, {"x": sizes}), **asked)
    assert made["x"] == shape
    assert made["x.conv"] == (shape[0], 4, *shape[2:])


def test_an_input_without_a_shape_gets_one(tmp_path: Path) -> None:
    assert shapes_of(saved(tmp_path, {"x": None}), shapes={"x": [1, 3, 5, 5]})["x.conv"] == (1, 4, 5, 5)


def test_a_name_has_its_number_in_all_inputs(tmp_path: Path) -> None:
    path = saved(tmp_path, {"x": ["N", 3, "H", "W"], "z": ["N", 3, "H", "W"]})
    assert shapes_of(path, shapes={"x": (2, 3, 4, 6)})["z"] == (2, 3, 4, 6)
    assert shapes_of(path, batch=2, symbols={"H": 4, "W": 6})["z"] == (2, 3, 4, 6)


def test_a_name_with_two_numbers_says_nothing_of_other_inputs(tmp_path: Path) -> None:
    path = saved(tmp_path, {"x": [1, 3, "S", "S"], "z": [1, 3, "S", 6]})
    with pytest.raises(InputError, match=r"symbolic sizes 'S' are open.*--shape z=1,3,S,6"):
        read_onnx(path, shapes={"x": (1, 3, 4, 6)})
    assert shapes_of(path, shapes={"x": (1, 3, 4, 6), "z": (1, 3, 4, 6)})["z"] == (1, 3, 4, 6)


# --- what is refused --------------------------------------------------------------------------------------------------

REFUSED: list[tuple[Sizes, dict[str, object], str]] = [
    ([1, 3, "H", "W"], {}, "'H', 'W' are open: add --symbol H=SIZE --symbol W=SIZE, or --shape x=1,3,H,W with numbers"),
    ([1, 3, "?", "?"], {}, "'?' are open: add --symbol '?=SIZE', or --shape x=1,3,H,W with numbers for H and W"),
    ([1, 3, -1, 8], {}, "'x[2]' are open: add --symbol 'x[2]=SIZE', or --shape x=1,3,H,8 with numbers for H"),
    (["N", 3, "H", "W"], {"symbols": {"H": 4}}, "'W' are open: add --symbol W=SIZE, or --shape x=1,3,4,W"),
    ([1, 3, "H", 8], {"shapes": {"x": (1, 3, 8)}}, "shape x=1,3,8: input 'x' has 4 axes"),
    ([1, 3, "H", 8], {"shapes": {"x": (1, 3, 8, 9)}}, "input 'x' has 8 at axis 3, and that is not open"),
    ([1, 3, "H", 8], {"shapes": {"x": (2, 3, 8, 8)}}, "--batch 2 makes another network of it"),
    ([1, 3, "H", 8], {"shapes": {"u": (1, 3, 8, 8)}}, "no input is called 'u'; it has 'x'"),
    ([1, 3, "H", 8], {"shapes": {"x": (1, 3, 0, 8)}}, "positive numbers are needed"),
    ([1, 3, "H", 8], {"shapes": {"x": "1,3,8,8"}}, "positive numbers are needed"),
    ([1, 3, "H", 8], {"symbols": {"K": 8}}, "no symbolic size is called 'K'; it has H"),
    ([1, 3, "H", 8], {"symbols": {"H": 4}, "shapes": {"x": (1, 3, 5, 8)}}, "symbol H=4, and the shape of 'x' has 5"),
    (["N", 3, 8, 8], {"batch": 2, "shapes": {"x": (3, 3, 8, 8)}}, "batch 2, and the shape of 'x' begins with 3"),
    ([1, 3, -2, 8], {}, "input 'x' has the negative size -2 at axis 2"),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "asked", "said"), REFUSED)
def test_what_is_said_of_sizes_is_refused_in_one_line(
    sizes: Sizes, asked: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        read_onnx(saved(tmp_path, {"x": sizes}), **asked)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


# --- what a file says of computed sizes -------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [(1, 4, 9, 9), (2, 4, 8, 8), (1, 5, 8, 8), (1, 4, "H", "H"), (-1, 4, 8), None])
def test_a_declared_result_never_beats_the_computed_one(result: Sizes | None, tmp_path: Path) -> None:
    assert shapes_of(saved(tmp_path, {"x": [1, 3, 8, 8]}, result=result))["x.conv"] == (1, 4, 8, 8)


@pytest.mark.parametrize("inner", [(1, 4, 9, 9), (7, 4, 8, 8), (1, 3, "K", "K")])
def test_declared_inner_sizes_never_beat_computed_ones(inner: Sizes, tmp_path: Path) -> None:
    assert shapes_of(saved(tmp_path, {"x": [1, 3, 8, 8]}, inner=inner))["x.conv"] == (1, 4, 8, 8)
    assert shapes_of(saved(tmp_path, {"x": ["N", 3, "K", "K"]}, inner=inner), symbols={"K": 6})["x.conv"][2:] == (6, 6)


def test_what_is_declared_is_believed_where_nothing_is_computed(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Magic", ["x"], ["m"], "magic", domain="acme"),
        helper.make_node("Relu", ["m"], ["y"], "relu"),
    ]
    x, y = helper.make_tensor_value_info("x", FLOAT, (1, 8)), helper.make_tensor_value_info("y", FLOAT, (9, 9))
    graph = helper.make_graph(
        nodes, "g", [x], [y], value_info=[helper.make_tensor_value_info("m", FLOAT, (1, 6))],
    )  # fmt: skip
    path = tmp_path / "model.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("acme", 1)]), path
    )
    # Nothing is known of `magic` but what is declared; of `relu` it follows from that, whatever is declared.
    assert shapes_of(path) == {"x": (1, 8), "magic": (1, 6), "relu": (1, 6)}


# --- in every command and call ----------------------------------------------------------------------------------------

MACHINE = ["--machine", "scratchpad_64k"]
SAID = ["--symbol", "H=8", "--shape", "x=1,3,8,6"]
SETS = [f"--set={name}_bytes=4" for name in ("in", "w", "out")]


def commands(layer: str) -> dict[str, list[str]]:
    """Every command that reads a model, one of whose layers is named; MODEL and OUT stand for paths."""
    return {
        "solve": ["solve", "MODEL", *MACHINE], "pareto": ["pareto", "MODEL", *MACHINE],
        "explain": ["explain", "MODEL", *MACHINE], "import": ["import", "MODEL", "-o", "OUT.json"],
        "price": ["price", "MODEL", *MACHINE, "--mapping", "IN | W | OUT", "--layer", layer, "--alone"],
        "import-mapping": ["import-mapping", "MODEL", "--mapping", "IN | W | OUT", "--layer", layer],
        "variants": ["variants", "MODEL", *MACHINE, "-o", "OUT.json", "--ranks", "none"],
        "compile": ["compile", "MODEL", *MACHINE, "-o", "OUT", *SETS],
    }  # fmt: skip


COMMANDS = commands("x.conv")


@pytest.mark.slow(1)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_sizes(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, {"x": [1, 3, "H", "W"]})
    words = {"MODEL": str(path), "OUT.json": str(tmp_path / "out.json"), "OUT": str(tmp_path / "out")}
    asked = [words.get(word, word) for word in COMMANDS[command]]
    assert main(asked) == 2
    assert "add --symbol H=SIZE --symbol W=SIZE, or --shape x=1,3,H,W" in capsys.readouterr().err.replace("\n", " ")
    assert main([*asked, *SAID]) == 0


@pytest.mark.slow(1)
def test_c_of_a_plan_takes_sizes(tmp_path: Path) -> None:
    path, plan = saved(tmp_path, {"x": [1, 3, "H", "W"]}), tmp_path / "plan.json"
    assert main(["solve", str(path), *MACHINE, *SAID, *SETS, "--all-kinds", "-o", str(plan)]) == 0
    emit = ["emit-c", str(plan), "--model", str(path), "-o", str(tmp_path / "out")]
    assert main(emit) == 2
    assert main([*emit, *SAID]) == 0
    assert main([*emit[:2], "-o", str(tmp_path / "other"), *SAID]) == 2  # of no model


def test_a_sweep_takes_sizes(tmp_path: Path) -> None:
    path = saved(tmp_path, {"x": [1, 3, "H", "W"]})
    entry = {"network": str(path), "symbols": "H=8", "shapes": ["x=1,3,8,6"]}
    (task,) = Expansion(read_spec({"networks": [entry], "machines": ["scratchpad_64k"]}))
    assert task.target.network == f"{path.name.removesuffix('.onnx')} H=8 x=1,3,8,6"
    with pytest.raises(InputError, match="--symbol H=SIZE"):
        list(Expansion(read_spec({"networks": [str(path)], "machines": ["scratchpad_64k"]})))


@pytest.mark.slow(2)
def test_calls_take_sizes(tmp_path: Path) -> None:
    path = saved(tmp_path, {"x": [1, 3, "H", "W"]})
    said = {"symbols": {"H": 8}, "shapes": {"x": (1, 3, 8, 6)}}
    plan = solve(path, "scratchpad_64k", objective="bytes", **said)
    # 3 and 4 channels of 48 pixels, 108 weights, and all are read or written once
    assert plan.objective.value == 3 * 48 + 108 + 4 * 48
    assert len(explain(path, "scratchpad_64k", **said)) == 1
    assert pareto(path, "scratchpad_64k", **said).parts[0].points
    with pytest.raises(InputError, match="of an ONNX file named by its path"):
        solve(read_onnx(path, **said), "scratchpad_64k", **said)
    with pytest.raises(InputError, match="only ONNX files have symbolic dimensions"):
        solve("lenet5", "scratchpad_64k", **said)


LONG_LIST = """
import resource, sys
import onnx
from onnx import TensorProto, helper
from instances.errors import InputError
from instances.onnx.reader import read_onnx
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
sizes = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 8]) for name in "xy"}
bias = TensorProto(name="b", data_type=TensorProto.FLOAT, dims=[2**40])
inner = [helper.make_tensor_value_info(*one) for one in (("u", 1, [2, 8]), ("b", 1, [2**40]))]
nodes = [helper.make_node("Relu", ["w"], ["u"]), helper.make_node("Add", ["u", "b"], ["y"])]
graph = helper.make_graph(nodes, "g", [sizes["x"]], [sizes["y"]], initializer=[bias], value_info=inner)
onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), sys.argv[1])
try:
    read_onnx(sys.argv[1])
except InputError as error:
    print(error)
"""


@pytest.mark.slow(2)
def test_a_list_that_is_too_long_takes_no_memory(tmp_path: Path) -> None:
    """Beside a map that nothing makes; shape inference made a record for each of 10^12 elements."""
    said = subprocess.run(
        [sys.executable, "-c", LONG_LIST, tmp_path / "m.onnx"], capture_output=True, text=True, check=True, timeout=100
    )
    assert "bad_alloc" not in said.stdout
    assert "tensor 'w' is used but nothing produces it" in said.stdout

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
from instances.onnx.model import read_model
from instances.onnx.reader import read_onnx
from solver.ask.sizes import Sizes as Asked
from solver.calls.solve import explain, pareto, solve
from solver.cli.main import main
from solver.uses.emit.emit import compile_model, emit_c
from solver.uses.emit.preflight import preflight
from solver.uses.sweep.spec import read_spec
from solver.uses.sweep.tasks import Expansion
from tests.emitted import build_and_run
from tests.onnx_models import Net

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
    (["N", 3, "N", 8], {}, "'N' are open: add --symbol N=SIZE, or --shape x=1,3,H,8 with numbers for H"),
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


@pytest.mark.few(3)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_sizes(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, {"x": [1, 3, "H", "W"]})
    words = {"MODEL": str(path), "OUT.json": str(tmp_path / "out.json"), "OUT": str(tmp_path / "out")}
    asked = [words.get(word, word) for word in COMMANDS[command]]
    assert main(asked) == 2
    assert "add --symbol H=SIZE --symbol W=SIZE, or --shape x=1,3,H,W" in capsys.readouterr().err.replace("\n", " ")
    assert main([*asked, *SAID]) == 0


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


def test_a_list_that_is_too_long_takes_no_memory(tmp_path: Path) -> None:
    """Beside a map that nothing makes; shape inference made a record for each of 10^12 elements."""
    said = subprocess.run(
        [sys.executable, "-c", LONG_LIST, tmp_path / "m.onnx"], capture_output=True, text=True, check=True, timeout=100
    )
    assert "bad_alloc" not in said.stdout
    assert "tensor 'w' is used but nothing produces it" in said.stdout


# ---- Inputs that are said to be constant: what they decide is known, and every command and call takes them -----------

FLOATS, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
SIZES = {"x": (1, 3, 8, 6)}


def branch(op: str, *tensors: str, **attributes: object) -> onnx.GraphProto:
    made = helper.make_node(op, tensors, ["r"], f"{op}.node", **attributes)
    return helper.make_graph([made], op, [], [helper.make_tensor_value_info("r", FLOATS, None)])


def rated(
    folder: Path, kind: int = INT64, shape: Sequence[int | str] = (), number: float = 16000, name: str = "sr",
    height: int | str = 8,
) -> Path:  # fmt: skip
    """If sr is 16000 a 3x3 convolution from 3 to 4 channels, else one of 1x1; then a convolution of 1x1."""
    net = Net()
    x, rate = net.input(1, 3, height, 6), net.input(*shape, name=name, kind=kind)
    whole, point = net.weight(4, 3, 3, 3), net.weight(4, 3, 1, 1)
    same = net("Equal", net("Cast", rate, to=FLOATS), net.const(number, np.float32))
    either = {"then_branch": branch("Conv", x, whole, pads=[1] * 4), "else_branch": branch("Conv", x, point)}
    y = net("If", net("Reshape", same, net.const([1])), **either)
    made = net("Conv", y, net.weight(5, 4, 1, 1))
    path = folder / "rated.onnx"
    # Both branches have one shape, which no shape inference of today says of a condition that is not known.
    onnx.save(net.model(made, shape=(1, 5, height, 6)), path)
    return path


# --- what is decided --------------------------------------------------------------------------------------------------

# Element type, shape of the input, value -> which convolution is there: 9 taps or 1
TAKEN = [
    (INT64, (), 16000, 9), (INT64, (), 8000, 1), (INT64, (1,), 16000, 9), (INT64, (1, 1), 16000, 9),
    (INT64, ("N",), 16000, 9), (TensorProto.INT32, (), 16000, 9), (TensorProto.INT32, (), -1, 1),
    (FLOATS, (), 16000.0, 9), (FLOATS, (), 16000.5, 1), (TensorProto.DOUBLE, (1,), 16000, 9),
    (TensorProto.UINT16, (), 16000, 9), (TensorProto.FLOAT16, (), 16000, 9), (INT64, (), np.int64(16000), 9),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "shape", "value", "taps"), TAKEN)
def test_a_value_takes_a_branch(
    kind: int, shape: tuple[int | str, ...], value: float, taps: int, tmp_path: Path
) -> None:
    network = read_onnx(rated(tmp_path, kind, shape), values={"sr": value})
    # 48 pixels: a window of 3 channels for each of 4, then 4 channels for each of 5
    assert network.macs == 48 * (4 * 3 * taps + 5 * 4)
    assert [o.name for o in network.operators if o.op == "input"] == ["x"]
    assert not network.opaque
    assert f"input sr = {value}" in network.description


@pytest.mark.parametrize(("value", "taps"), [(True, 9), (1, 9), (False, 1), (0, 1)])
def test_a_truth_value_takes_a_branch(value: bool, taps: int, tmp_path: Path) -> None:
    assert read_onnx(rated(tmp_path, BOOL, (), 1), values={"sr": value}).macs == 48 * (12 * taps + 20)


def test_all_elements_have_the_value(tmp_path: Path) -> None:
    net = Net()
    x, mask = net.input(1, "L", 4), net.input(1, "L", name="mask", kind=INT64)
    given = net("Unsqueeze", net("Cast", mask, to=FLOATS), net.const([2]))
    path = tmp_path / "masked.onnx"
    onnx.save(net.model(net("MatMul", net("Mul", x, given), net.weight(4, 2)), shape=(1, "L", 2)), path)
    # its size is that of the other input, by whichever is said
    for said in ({"symbols": {"L": 7}}, {"shapes": {"x": (1, 7, 4)}}, {"shapes": {"mask": (1, 7)}}):
        model = read_model(path, values={"mask": 1}, **said)
        assert list(model.inputs) == ["x"]
        assert model.network.macs == 7 * 4 * 2
        assert model.given["mask"].tolist() == [[1] * 7]
        assert model.given["mask"].dtype == np.int64


def test_what_others_depend_on_is_known(tmp_path: Path) -> None:
    """A size, an index and a bound that are inputs."""
    net = Net()
    x, n, at = net.input(6, 4), net.input(1, name="n", kind=INT64), net.input(name="at", kind=INT64)
    rows = net("Slice", x, net.const([0]), n, net.const([0]))
    row = net("Gather", rows, at, axis=0)
    wide = net("Reshape", row, net("Concat", net.const([1]), net.const([-1]), axis=0))
    path = tmp_path / "rows.onnx"
    onnx.save(net.model(net("MatMul", wide, net.weight(4, 3)), net("MatMul", rows, net.weight(4, 2))), path)
    # 4 x 3 of the row, 5 x 4 x 2 of the rows
    assert read_onnx(path, values={"n": 5, "at": 2}).macs == 12 + 40
    with pytest.raises(InputError, match=r"unknown since operator 'slice_0' .*: add --value n=NUMBER\)"):
        read_onnx(path, values={"at": 2})


# --- what is refused --------------------------------------------------------------------------------------------------

WRONG = [
    (INT64, {"rate": 16000}, "no input is called 'rate'; it has 'x', 'sr'"), (INT64, {"c0": 1}, "no input is called"),
    (INT64, {"sr": 0.5}, "'sr' is of int64: an integer from -9223372036854775808 to 9223372036854775807 is needed"),
    (INT64, {"sr": 2**63}, "is of int64: an integer from"), (TensorProto.INT8, {"sr": 128}, "from -128 to 127"),
    (TensorProto.UINT8, {"sr": -1}, "from 0 to 255"), (BOOL, {"sr": 2}, "is of bool: true, false, 1 or 0 is needed"),
    (BOOL, {"sr": 0.5}, "true, false, 1 or 0"), (TensorProto.FLOAT16, {"sr": 1e6}, "a number that the type holds"),
    (FLOATS, {"sr": 1e300}, "a number that the type holds is needed"),
    (INT64, {"sr": float("nan")}, "a number is needed"),
    (INT64, {"sr": "16000"}, "a number is needed, such as sr=16000"), (INT64, {"sr": None}, "a number is needed"),
    (TensorProto.STRING, {"sr": 1}, "is of string: only numbers and true or false can be said"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "said"), WRONG)
def test_values_that_are_none(kind: int, values: dict[str, float], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_onnx(rated(tmp_path, kind), values=values)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_input_of_data_has_no_value(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'sr' has 16,777,217 elements; up to 16,777,216 can have one value"):
        read_onnx(rated(tmp_path, INT64, (2**24 + 1,)), values={"sr": 1})
    with pytest.raises(InputError, match=r"or --shape sr=1,B with numbers for B"):
        read_onnx(rated(tmp_path, INT64, (1, "?")), values={"sr": 1})


TEXTS = ["sr", "=1", "sr=", "sr=abc", "sr=1,2", "sr=nan", "sr=inf", "sr=0x10", "sr=1_000", "sr=1e999", "sr=\u0661"]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_that_say_no_value(text: str) -> None:
    with pytest.raises(InputError, match="write INPUT=NUMBER"):
        Asked.parse((), (), [text])


def test_texts_that_say_a_value() -> None:
    texts = ["a=1", "b=-2", "c=0.5", "d=1e3", "e=true", "f = False ", "g=h=3"]
    found = Asked.parse((), (), texts).values
    assert found == {"a": 1, "b": -2, "c": 0.5, "d": 1000.0, "e": True, "f": False, "g=h": 3}
    assert [type(value) for value in found.values()] == [int, int, float, float, bool, bool, int]
    with pytest.raises(InputError, match="sr is set twice"):
        Asked.parse((), (), ["sr=1", "sr=2"])


@pytest.mark.parametrize(("name", "option"), [("sr", "sr=16000.0"), ("sample rate", "'sample rate=16000.0'")])
def test_the_refusal_names_the_option(name: str, option: str, tmp_path: Path) -> None:
    """It can be copied: the value is the number that the input is compared with."""
    (warning,) = read_onnx(rated(tmp_path, FLOATS, name=name)).warnings
    assert warning.endswith(f"more than 512 times: add --value {option}")


def test_the_refusal_names_no_option_for_data(tmp_path: Path) -> None:
    """A condition on a map is none that a user could say; one that is compared with nothing has no example."""
    net = Net()
    x, w = net.input(1, 3, 8, 6), net.weight(4, 3, 1, 1)
    some = net("Greater", net("ReduceMax", x, keepdims=0), net.const(0, np.float32))
    either = {"then_branch": branch("Relu", x), "else_branch": branch("Neg", x)}
    path = tmp_path / "data.onnx"
    onnx.save(net.model(net("Conv", x, w), net("If", some, **either), shape=(1, "?", 8, 6)), path)
    assert "--value" not in " ".join(read_onnx(path).warnings)
    net = Net()
    x, flag, w = net.input(1, 3, 8, 6), net.input(name="flag", kind=BOOL), net.weight(4, 3, 1, 1)
    onnx.save(net.model(net("Conv", x, w), net("If", flag, **either), shape=(1, "?", 8, 6)), path)
    assert read_onnx(path).warnings[0].endswith("add --value flag=true")


def test_a_gather_names_the_option(tmp_path: Path) -> None:
    net = Net()
    x, at = net.input(3, 4), net.input(name="at", kind=INT64)
    path = tmp_path / "at.onnx"
    onnx.save(net.model(net("MatMul", x, net.weight(4, 2)), net("Gather", x, at, axis=0)), path)
    (warning,) = read_onnx(path).warnings
    assert warning.endswith("indices that depend on the data: add --value at=NUMBER")
    assert not read_onnx(path, values={"at": -1}).warnings


# --- in every command and call ----------------------------------------------------------------------------------------

#: The second convolution is in both branches.
VALUE_COMMANDS = commands("conv_4")


@pytest.mark.few(3)
@pytest.mark.parametrize("command", VALUE_COMMANDS)
def test_every_command_takes_values(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = rated(tmp_path, height="H")
    words = {"MODEL": str(path), "OUT.json": str(tmp_path / "out.json"), "OUT": str(tmp_path / "out")}
    asked = [*(words.get(word, word) for word in VALUE_COMMANDS[command]), "--shape", "x=1,3,8,6"]
    assert main([*asked, "--value", "rate=16000"]) == 2
    assert "no input is called 'rate'" in capsys.readouterr().err.replace("\n", " ")
    assert main([*asked, "--value", "sr=16000"]) == 0


def test_c_of_a_plan_takes_values(tmp_path: Path) -> None:
    path, plan = rated(tmp_path), tmp_path / "plan.json"
    said = ["--value", "sr=16000"]
    assert main(["solve", str(path), *MACHINE, *said, *SETS, "--all-kinds", "-o", str(plan)]) == 0
    emit = ["emit-c", str(plan), "--model", str(path), "-o", str(tmp_path / "out")]
    assert main(emit) == 2
    assert main([*emit, "--value", "sr=8000"]) == 2  # of another plan
    assert main([*emit, *said]) == 0
    assert main([*emit[:2], "-o", str(tmp_path / "other"), *said]) == 2  # of no model


def test_a_sweep_takes_values(tmp_path: Path) -> None:
    entry = {"network": str(rated(tmp_path)), "values": "sr=16000", "layers": "conv_4"}
    (task,) = Expansion(read_spec({"networks": [entry], "machines": ["scratchpad_64k"]}))
    assert task.target.network == "rated sr=16000"


def test_calls_take_values(tmp_path: Path) -> None:
    path, said = rated(tmp_path), {"values": {"sr": 8000}}
    plan = solve(path, "scratchpad_64k", problem="joint", objective="bytes", **said)
    # 3 and 5 channels of 48 pixels, weights of 12 and 20; what is between stays on chip
    assert plan.objective.value == 3 * 48 + 12 + 20 + 5 * 48
    assert len(explain(path, "scratchpad_64k", **said)) == 2
    assert pareto(path, "scratchpad_64k", **said).parts[0].points
    assert preflight(path, **said).network.macs == 48 * (12 + 20)
    with pytest.raises(InputError, match="of an ONNX file named by its path"):
        solve(read_onnx(path, **said), "scratchpad_64k", **said)
    with pytest.raises(InputError, match=r"only ONNX files have symbolic dimensions and inputs to set \(sr\)"):
        solve("lenet5", "scratchpad_64k", **said)


@pytest.mark.slow(2)
@pytest.mark.parametrize("value", [16000, 8000])
def test_c_computes_what_the_file_does_with_the_value(value: int, tmp_path: Path) -> None:
    """Recorded results are of the file as it is, which reads the value as an input."""
    pytest.importorskip("onnxruntime")
    path, floats = rated(tmp_path), dict.fromkeys(("in_bytes", "w_bytes", "out_bytes"), 4)
    made = compile_model(path, "scratchpad_64k", tmp_path / "c", settings=floats, values={"sr": value})
    said = build_and_run(tmp_path / "c", "-O1 -Wall -Wextra -Werror")
    assert "compared with onnxruntime" in said
    assert "results as expected" in said or "differ from those expected by" in said
    assert "FAILED" not in said
    # one input: 3 channels of 48 pixels of 4 bytes
    assert (tmp_path / "c" / "input.bin").stat().st_size == 3 * 48 * 4
    assert emit_c(made.plan, tmp_path / "again", path, values={"sr": value}) == made.files

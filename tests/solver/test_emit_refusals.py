"""What is refused of C: listed in docs/emit.md as the code says it, and known before anything is searched."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import FrameType
from typing import TypeVar

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import solver.uses.emit
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.onnx.model import read_model
from solver.calls.solve import solve
from solver.cli.main import main
from solver.uses.emit import arrange_model as host
from solver.uses.emit import emit as compiling
from solver.uses.emit import meaning, moves, pointwise
from solver.uses.emit.emit import compile_model, files_of, in_dram
from solver.uses.emit.kinds import Elements
from solver.uses.emit.numbers import floats
from solver.uses.emit.preflight import Refusals, preflight, refusals
from tests.onnx_models import MODELS, model_of, saved

Made = TypeVar("Made")
FOLDER = Path(solver.uses.emit.__file__).parent
PAGE = Path(__file__).resolve().parents[2] / "docs" / "emit.md"
FLOATS = dict.fromkeys(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), "4")
BYTES = {"in_bytes": "1", "w_bytes": "1", "out_bytes": "1", "psum_bytes": "4"}

#: What may refuse while C is written and is not asked before, and why it is not met then.
AFTER = {
    "emit.files_of": "of plans of other networks, without a schedule, and of --memory; compile makes the plan itself",
    "emit._ahead": "of machines with several queues; compile knows it before it searches",
    "emit.check_transfers": "a word of the call; compile asks it first",
    "network.alone": "says that a plan is of another network",
    "groups.refuse": "weights of several layers end groups (Refusals.cuts); check_images is asked of every map",
}
#: Files whose refusals are no matter of C: options and folders; and what lies in memory instead of staying on chip.
ASIDE = ("cli", "emit", "preflight", "states", "onchip")


def functions() -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Every function of the emitter: its file, its name, itself."""

    def below(node: ast.AST, file: str, name: str) -> Iterator[tuple[str, str, ast.FunctionDef]]:
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                inner = f"{name}.{child.name}".lstrip(".")
            if isinstance(child, ast.FunctionDef):
                yield file, inner, child
            yield from below(child, file, inner)

    for path in sorted(FOLDER.glob("*.py")):
        yield from below(ast.parse(path.read_text()), path.stem, "")


def refuses(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """What a function says where it refuses, as the code has it."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "require":
                yield node.args[2]
            elif node.func.id == "InputError":
                yield node.args[0]


def text_of(node: ast.expr) -> str:
    """A text with two points for what it is filled with."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else ".." for part in node.values)
    return ".."


def reasons() -> set[str]:
    """All reasons of the code, without the place that is said before them and the words that end most of them."""
    found = set[str]()
    for file, _, function in functions():
        if file in ASIDE or not any(refuses(function)):
            continue
        texts = [text_of(node) for node in refuses(function)]
        texts += [text_of(node.value) for node in ast.walk(function) if isinstance(node, ast.Assign)
                  and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "said"]  # fmt: skip
        for text in texts:
            text = re.sub(r": no C is written$", "", text)
            text = re.sub(r"^(layers?|operator|machine|map|network)? ?\.\.( \(\.\.\))?: ", "", text)
            if re.search("[a-z]", text):
                found.add(text)
    return found


def section(head: str) -> str:
    return PAGE.read_text(encoding="utf-8").split(f"\n## {head}\n")[1].split("\n## ")[0]


@pytest.mark.skipif(not PAGE.is_file(), reason="no documents beside the tests")
def test_every_refusal_is_listed_and_no_other() -> None:
    listed = re.findall(r"^\| `(.*?)` \|", section("What is refused"), re.MULTILINE)
    assert sorted(listed) == sorted(reasons())
    assert len(listed) > 40


@pytest.mark.skipif(not PAGE.is_file(), reason="no documents beside the tests")
def test_every_operator_is_listed_and_no_other() -> None:
    """In the order of the alphabet; what a file cannot have (certile.Resample) is aside."""
    listed = {
        head: re.split(r",\s+", names)
        for head, names in re.findall(r"^\* (.*?): ((?:.|\n)*?)\.$", section("Operators in C"), re.MULTILINE)
    }
    assert listed == {
        "Layers": sorted(op for op in meaning.LAYERS if "." not in op),
        "Functions of single elements": sorted({*pointwise.PLAIN, *pointwise.WITH_NUMBERS, *pointwise.OTHERS}),
        "Functions of two operands": sorted(pointwise.BINARY),
        "Functions of whole rows": sorted(host.OF_ROWS),
        "Elements that move": sorted({*moves.RESHAPES, *moves.PICKS, *moves.BLOCKS, "Transpose"}),
    }  # fmt: skip


# --- before the search ------------------------------------------------------------------------------------------------


def called(question: Callable[[], Made]) -> tuple[Made, set[str]]:
    """An answer, and the functions of the emitter that were asked for it."""
    seen = set[str]()

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(FOLDER)):
            seen.add(f"{Path(code.co_filename).stem}.{code.co_qualname.replace('<locals>.', '')}")

    sys.setprofile(watch)
    try:
        return question(), seen
    finally:
        sys.setprofile(None)


def not_asked(path: Path, problem: str, settings: dict[str, str], rule: str = "float") -> set[str]:
    """Functions that may refuse a plan of a model, and were not asked before there was one."""
    machine, model = load_machine("scratchpad_768k", settings), read_model(path)
    found, before = called(lambda: refusals(model, machine, rule))
    assert not found.always
    network, _ = in_dram(model.network, found.in_dram(problem), machine)
    cuts = [f"cut={network.layers[t - 1].name}" for t in found.cuts if t]
    plan = solve(
        network, machine, problem=problem, time_limit_s=10, jobs=1, all_kinds=problem == "tiling",
        pins=cuts or None if problem == "fusion" else None,
    )  # fmt: skip
    _, during = called(lambda: files_of(plan, model, None, rule))
    refusing = {f"{file}.{name}" for file, name, function in functions() if any(refuses(function))}
    return (refusing & during) - before


QUICK = [("lenet", "joint", "float"), ("squeeze_excite", "fusion", "float"), ("quantised", "joint", "double")]
MANY = [
    ("resnet", "fusion", "float"), ("mobilenet_v3", "joint", "float"), ("densenet", "joint", "float"),
    ("shufflenet", "fusion", "float"), ("yolo_v8", "joint", "float"), ("vit", "fusion", "float"),
    ("tcn", "tiling", "float"), ("reductions", "joint", "float"), ("branch", "tiling", "float"),
    ("quantised", "fusion", "single"), ("quantised", "tiling", "even"),
]  # fmt: skip


@pytest.mark.slow(3)
@pytest.mark.parametrize(
    ("name", "problem", "rule"), [*QUICK, *[pytest.param(*one, marks=pytest.mark.slow) for one in MANY]]
)
def test_what_is_asked_while_c_is_written_was_asked_before(
    name: str, problem: str, rule: str, tmp_path: Path
) -> None:  # fmt: skip
    """No function that may refuse is called for the first time when there is a plan, but those that cannot then."""
    assert name in MODELS
    settings = BYTES if name == "quantised" else FLOATS
    assert not_asked(saved(name, tmp_path), problem, settings, rule) <= set(AFTER)


def test_the_table_of_what_is_not_met_is_of_the_code() -> None:
    names = {f"{file}.{name}" for file, name, _ in functions()}
    assert set(AFTER) <= names


# --- kinds of refusals ------------------------------------------------------------------------------------------------


def asked(folder: Path, nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, ...]], rule: str = "float",
          settings: dict[str, str] = FLOATS, **constants: np.ndarray) -> list[str]:  # fmt: skip
    """The refusals of a model, without a search."""
    onnx.save(model_of(nodes, inputs, nodes[-1].output[:1], constants, opset=20, ir=9), folder / "m.onnx")
    return list(refusals(read_model(folder / "m.onnx"), load_machine("scratchpad_768k", settings), rule).always)


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def conv() -> onnx.NodeProto:
    return helper.make_node("Conv", ["x", "w"], ["a"], "conv")


def test_a_grid_names_places_in_single_precision(tmp_path: Path) -> None:
    """A grid of half precision would name other places; modes of padding are those of ONNX."""

    def refused(settings: dict[str, str], **attributes: object) -> list[str]:
        grid = helper.make_node("GridSample", ["a", "g"], ["y"], "sample", **attributes)
        inputs = {"x": (1, 3, 6, 6), "g": (1, 4, 4, 2)}
        return asked(tmp_path, [conv(), grid], inputs, settings=settings, w=drawn(4, 3, 1, 1))

    assert refused(FLOATS) == []
    halves = FLOATS | dict.fromkeys(("in_bytes", "out_bytes", "w_bytes"), "2")
    said = "layer sample (GridSample): places in a map of f16 elements: in_bytes 4 and real numbers are needed"
    assert refused(halves) == [f"{said}: no C is written"]
    assert refused(FLOATS, padding_mode="wrap") == ["layer sample (GridSample): padding_mode wrap: no C is written"]


def test_operators_that_are_not_planned_are_refused_with_the_reason(tmp_path: Path) -> None:
    """Peepholes of an LSTM, a sum along an axis."""
    cell = helper.make_node("LSTM", ["x", "w", "r", "", "", "", "", "p"], ["y"], "cell", hidden_size=5)
    said = asked(tmp_path, [cell, helper.make_node("Relu", ["y"], ["z"])], {"x": (2, 1, 3)},
                 w=drawn(1, 20, 3), r=drawn(1, 20, 5), p=drawn(1, 15))  # fmt: skip
    assert any("cell" in one and "peephole" in one for one in said), said
    total = helper.make_node("CumSum", ["a", "axis"], ["y"], "total")
    said = asked(tmp_path, [conv(), total], {"x": (1, 3, 6, 6)}, w=drawn(4, 3, 1, 1), axis=np.array(2))
    assert said == ["operator total (CumSum): no conversion: no C is written"]


def test_rules_are_asked_before_the_search(tmp_path: Path) -> None:
    said = asked(tmp_path, [conv()], {"x": (1, 3, 6, 6)}, "double", w=drawn(4, 3, 1, 1))
    assert said == ["requantise double: the model is not quantised: no C is written"]
    said = asked(tmp_path, [conv()], {"x": (1, 3, 6, 6)}, "up", w=drawn(4, 3, 1, 1))
    assert said == ["requantise up: one of float, double, single, even is expected"]


def test_what_whole_numbers_cannot_compute_is_refused_before_the_search(tmp_path: Path) -> None:
    """A quotient of two quantised maps: by a float as onnxruntime, by no rule of whole numbers."""

    def quantised(source: str, name: str) -> list[onnx.NodeProto]:
        return [helper.make_node("QuantizeLinear", [source, "s", "zero"], [f"{name}_q"], f"{name}_q"),
                helper.make_node("DequantizeLinear", [f"{name}_q", "s", "zero"], [name], f"{name}_d")]  # fmt: skip

    nodes = [*quantised("x", "a"), *quantised("v", "b"), helper.make_node("Div", ["a", "b"], ["c"], "part"),
             *quantised("c", "y")]  # fmt: skip
    given = {"x": (1, 4, 6, 6), "v": (1, 4, 6, 6)}
    numbers = {"s": np.array(0.05, np.float32), "zero": np.array(3, np.uint8)}
    assert asked(tmp_path, nodes, given, "float", BYTES, **numbers) == []
    said = asked(tmp_path, nodes, given, "double", BYTES, **numbers)
    assert said == ["layer part: Div of these operands computes in real numbers: use requantise float: no C is written"]


# ---- element types and options ---------------------------------------------------------------------------------------

FIELDS = ("in_bytes", "w_bytes", "psum_bytes", "bias_bytes")
#: Rows of the page -> the types of maps and of weights; none: a model of floats.
TYPED = {
    "float32": (("", ""),), "float16, or float32 that is to be stored so": (("", ""),),
    "quantised to 8 bits (int8 or uint8, weights too)": (("int8", "int8"), ("uint8", "uint8")),
    "activations of 16 bits (int16, uint16)": (("int16", "int8"), ("uint16", "uint8"), ("int16", "int16")),
}  # fmt: skip


def rows_of_element_types() -> dict[str, list[set[int]]]:
    """By model what the page says of each of `FIELDS`; weights that are as in the model: nothing."""
    table = PAGE.read_text().split("## Element types of a model")[1].split("\n\n")[1]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {name: [set(map(int, re.findall(r"\d+", text))) for text in sizes] for name, *sizes in cells}


def fits(maps: str, weights: str, sizes: dict[str, int]) -> bool:
    """Whether C takes a machine with such elements."""
    on = load_machine("scratchpad_64k").model_copy(update={**sizes, "out_bytes": sizes["in_bytes"]})
    try:
        if maps:
            Elements(on, quantised=True, maps=maps).check(weights)
        else:
            floats(on)
    except InputError:
        return False
    return True


def test_the_page_says_which_elements_are_taken() -> None:
    """Every combination of sizes, for every row; a model of floats is taken by either of two rows."""
    found = rows_of_element_types()
    assert set(found) == set(TYPED)
    for values in product((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), (0, 1, 2, 4, 8)):
        sizes = dict(zip(FIELDS, values, strict=True))
        said = {
            name: all(not row or x in row for x, row in zip(values, rows, strict=True)) for name, rows in found.items()
        }
        real = [name for name, kinds in TYPED.items() if kinds == (("", ""),)]
        assert fits("", "", sizes) == any(said[name] for name in real), sizes
        for name, kinds in TYPED.items():
            for maps, weights in kinds if name not in real else ():
                own = sizes["w_bytes"] == np.dtype(weights).itemsize
                assert fits(maps, weights, sizes) == (said[name] and own), (maps, weights, sizes)


def test_the_page_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that only `compile` and `emit-c` have; the others are options of solve, or of reading a model."""
    options = {}
    for command in ("compile", "emit-c", "solve"):
        assert main([command, "--help"]) == 0
        options[command] = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
    page = PAGE.read_text()
    assert [one for one in sorted((options["compile"] | options["emit-c"]) - options["solve"]) if one not in page] == []


# ---- What is said of a model before there is a plan: all that would be refused, not the first of it ------------------

FLOAT = TensorProto.FLOAT
FOUR_BYTES = ["in_bytes=4", "w_bytes=4", "out_bytes=4"]


def model_file(folder: Path, nodes: list[onnx.NodeProto], shape: tuple[int, ...], **constants: np.ndarray) -> Path:
    """A model of one input x, whose result is that of the last node."""
    path = folder / "model.onnx"
    onnx.save(model_of(nodes, {"x": shape}, nodes[-1].output[:1], constants), path)
    return path


def refused_of(path: Path, machine: str = "scratchpad_768k", **settings: str) -> Refusals:
    return refusals(read_model(path), load_machine(machine, settings))


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


def two_faults(folder: Path) -> Path:
    """A convolution, then two operators that nobody computes, one behind the other."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "conv"), helper.make_node("CumSum", ["a", "axis"], ["b"], "sum1"),
        helper.make_node("CumSum", ["b", "axis"], ["c"], "sum2"),
    ]  # fmt: skip
    return model_file(folder, nodes, (1, 3, 8, 8), w=weights(4, 3, 1, 1), axis=np.array(2))


def test_every_refusal_is_named(tmp_path: Path) -> None:
    reasons = refused_of(two_faults(tmp_path)).of("tiling")
    assert len(reasons) == 3  # elements of one byte, and two operators
    assert [word for word in ("in_bytes=4", "sum1", "sum2") if any(word in reason for reason in reasons)] == [
        "in_bytes=4", "sum1", "sum2",
    ]  # fmt: skip


def test_a_model_without_faults_has_no_reason(tmp_path: Path) -> None:
    path = model_file(tmp_path, [helper.make_node("Conv", ["x", "w"], ["a"])], (1, 3, 8, 8), w=weights(4, 3, 1, 1))
    found = refused_of(path, in_bytes="4", w_bytes="4", out_bytes="4")
    assert found.of("tiling") == found.of("joint") == found.of("fusion") == ()


def test_compile_asks_before_it_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: object, **__: object) -> None:
        raise AssertionError("a search before the refusal")

    monkeypatch.setattr(compiling, "solve", search)
    with pytest.raises(InputError, match=r"sum1.*sum2"):
        compile_model(two_faults(tmp_path), "scratchpad_768k", tmp_path / "out", settings=FOUR_BYTES)
    assert not (tmp_path / "out").exists()


def test_a_map_that_the_host_computes_with_cannot_stay(tmp_path: Path) -> None:
    """A local response norm between two convolutions is the host's: what it reads and makes lies off the chip."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "one"), helper.make_node("LRN", ["a"], ["b"], "norm", size=3),
        helper.make_node("Conv", ["b", "v"], ["c"], "two"),
    ]  # fmt: skip
    path = model_file(tmp_path, nodes, (1, 3, 8, 8), w=weights(4, 3, 1, 1), v=weights(4, 4, 1, 1))
    found = refused_of(path, in_bytes="4", w_bytes="4", out_bytes="4")
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
    path = str(
        model_file(tmp_path, [helper.make_node("CumSum", ["x", "axis"], ["y"], "sum")], (4, 4), axis=np.array(0))
    )
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


def test_compile_says_the_macs_of_its_plan(tmp_path: Path) -> None:
    """64 pixels, 3 to 4 channels, 3x3: 64 * 4 * 27 MACs, and 64 * 4 * 4 of the second."""
    one = helper.make_node("Conv", ["x", "w"], ["a"], "one", pads=[1] * 4)
    two = helper.make_node("Conv", ["a", "v"], ["b"], "two")
    path = model_file(tmp_path, [one, two], (1, 3, 8, 8), w=weights(4, 3, 3, 3), v=weights(4, 4, 1, 1))
    for problem in ("tiling", "joint", "fusion"):
        made = compile_model(path, "scratchpad_768k", tmp_path / problem, settings=FOUR_BYTES, problem=problem)
        assert made.macs == 8 * 8 * (4 * 27 + 4 * 4)


def test_weights_in_a_file_that_is_missing_are_a_reason_of_c_alone(tmp_path: Path) -> None:
    """Models are shared without their weights for planning: their shapes are in the file."""
    path = model_file(tmp_path, [helper.make_node("Conv", ["x", "w"], ["a"])], (1, 3, 8, 8), w=weights(4, 3, 1, 1))
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
    path = model_file(tmp_path, nodes, (1, 4, 5, 5), **given)
    found = preflight(path, "scratchpad_768k")
    assert all(found.problems[problem] == () for problem in ("tiling", "joint", "fusion"))


# ---- The lines that say why no C is written name the element types of the file, and every operator once --------------

HELD = {
    "tab": np.ones((20, 8), np.float32), "w": np.ones((8, 8), np.float32), "w10": np.ones((10, 8), np.float32),
    "wq": np.ones((8, 8), np.uint8), "kq": np.ones((4, 4, 3, 3), np.uint8), "z": np.array(3, np.uint8),
    "s": np.ones(8, np.float32), "v": np.array([0, 1], np.float32), "d": np.array(10), "k": np.array([1]),
}  # fmt: skip
#: Inputs, results, body, and the refusals of C, without what they have in common.
CASES: dict[str, tuple[str, str, str, list[str]]] = {
    "embedding": (
        "int64[1,5] i", "float[1,5,8] y", "[g] e = Gather(tab, i) [m] y = MatMul(e, w)",
        ["operator g (Gather): its indices depend on the data"],
    ),
    "embedding of int32": (
        "int32[1,5] i", "float[1,5,8] y", "[g] e = Gather(tab, i) [m] y = MatMul(e, w)",
        ["operator g (Gather): its indices depend on the data"],
    ),
    "embedding and a function": (
        "int64[1,5] i", "float[1,5,8] y", "[g] e = Gather(tab, i) r = Relu(e) [m] y = MatMul(r, w)",
        ["operator g (Gather): its indices depend on the data"],
    ),
    "one-hot": (
        "int64[1,5] i", "float[1,5,8] y", "[g] e = OneHot<axis=-1>(i, d, v) [m] y = MatMul(e, w10)",
        ["operator g (OneHot): no conversion"],
    ),
    "elements by ids": (
        "int64[5,8] i", "float[5,8] y", "[g] e = GatherElements(tab, i) [m] y = MatMul(e, w)",
        ["operator g (GatherElements): indices that depend on the data"],
    ),
    "ids of elements": (
        "float[5,8] x", "int64[5] a, float[5,8] y", "[g] a = ArgMax<axis=1,keepdims=0>(x) [m] y = MatMul(x, w)",
        ["operator g (ArgMax): no conversion"],
    ),
    "both results of TopK": (
        "float[5,8] x", "float[5,1] a, int64[5,1] b", "[m] y = MatMul(x, w) [t] a, b = TopK(y, k)",
        ["operator t (TopK): no conversion"],
    ),
    "both results of a norm": (
        "float[5,8] x", "float[5,8] a, float[5,1] b",
        "[m] y = MatMul(x, w) [t] a, b = LayerNormalization(y, s)",
        ["operator t (LayerNormalization): its further outputs are used"],
    ),
    "three results of a norm": (
        "float[5,8] x", "float[5,8] a, float[5,1] b, float[5,1] c",
        "[m] y = MatMul(x, w) [t] a, b, c = LayerNormalization(y, s)",
        ["operator t (LayerNormalization): its further outputs are used"],
    ),
    "a pool with indices": (
        "float[1,4,8,8] x", "float[1,4,4,4] a, int64[1,4,4,4] b",
        "r = Relu(x) [c] q = MaxPool<kernel_shape=[1,1]>(r) [t] a, b = MaxPool<kernel_shape=[2,2],strides=[2,2]>(q)",
        ["operator t (MaxPool): its further outputs are used"],
    ),
    "two operators of two results": (
        "float[5,8] x", "float[5,1] a, int64[5,1] b, float[5,1] c, int64[5,1] e",
        "[m] y = MatMul(x, w) [t] a, b = TopK(y, k) [u] c, e = TopK<largest=0>(y, k)",
        ["operator t (TopK): no conversion", "operator u (TopK): no conversion"],
    ),
}  # fmt: skip


def typed_model(folder: Path, inputs: str, results: str, body: str) -> Path:
    """A model of opset 17 in the text form of ONNX, with the constants that it reads."""
    text = f'<ir_version: 8, opset_import: ["" : 17]> it ({inputs}) => ({results}) {{ {body} }}'
    model = parser.parse_model(text)
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(HELD[name], name) for name in HELD if name in read)
    onnx.save(model, folder / "it.onnx")
    return folder / "it.onnx"


@pytest.mark.parametrize("case", CASES)
def test_refusals_are_true_and_said_once(tmp_path: Path, case: str) -> None:
    """Nothing is said of layers whose maps are real numbers; an operator of several results has one line."""
    *parts, wanted = CASES[case]
    path = typed_model(tmp_path, *parts)
    settings = dict.fromkeys(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), "4")
    found = refusals(read_model(path), load_machine("scratchpad_768k", settings))
    assert [reason.removesuffix(": no C is written") for reason in found.always] == wanted
    network = load_network(str(path))
    assert len(network.warnings) == len(wanted)
    assert network.map_type == "float32"
    for reason in wanted:
        kind = reason.split("(")[1].split(")")[0]
        assert f"{kind} x{sum(f'({kind})' in one for one in wanted)} " in network.unplanned


@pytest.mark.parametrize(
    ("inputs", "body", "layer"),
    [
        ("uint8[1,4,6,6] x", "[c] y = ConvInteger(x, kq, z)", "c"),
        ("uint8[5,8] x", "[c] y = MatMulInteger(x, wq, z)", "c"),
        ("int8[5,8] x", "[c] y = MatMulInteger(x, wq)", "c"),
    ],
)  # fmt: skip
def test_sums_of_integers_are_called_so(tmp_path: Path, inputs: str, body: str, layer: str) -> None:
    """An integer product alone makes int32, though C would hold it as real numbers."""
    path = typed_model(tmp_path, inputs, f"int32[{'1,4,4,4' if 'Conv' in body else '5,8'}] y", body)
    settings = {"in_bytes": "1", "w_bytes": "1", "out_bytes": "1", "psum_bytes": "4"}
    found = refusals(read_model(path), load_machine("scratchpad_768k", settings))
    wanted = f"layer {layer}: its result is of int32, and out_bytes is 1: quantise it right behind the layer"
    assert [reason.removesuffix(": no C is written") for reason in found.always] == [wanted]

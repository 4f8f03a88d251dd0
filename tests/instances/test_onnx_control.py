"""If, Loop and Scan that are known: what stands in their place computes the same, judged by onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from instances.onnx.asked import Asked
from instances.onnx.control import MOST_PASSES, unroll
from instances.onnx.reader import read_onnx

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def info(name: str, kind: int = FLOAT, shape: Sequence[int] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def graph(
    nodes: Sequence[onnx.NodeProto], results: Sequence[str], inputs: Sequence[onnx.ValueInfoProto] = (),
    constants: Mapping[str, object] | None = None, kinds: Sequence[int] = (),
) -> onnx.GraphProto:  # fmt: skip
    outputs = [info(name, (*kinds, *[FLOAT] * len(results))[k]) for k, name in enumerate(results)]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    return helper.make_graph(list(nodes), "g", list(inputs), outputs, tensors)


def model(
    nodes: Sequence[onnx.NodeProto], *results: str, constants: Mapping[str, object] | None = None, opset: int = 17
) -> onnx.ModelProto:
    """A model of one input x of 4 x 6."""
    made = graph(nodes, results, [info("x", FLOAT, (4, 6))], constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


W = np.linspace(-1, 1, 36, dtype=np.float32).reshape(6, 6)
RELU, NEG = graph([node("Relu", ["x"], ["r"])], ["r"]), graph([node("Neg", ["x"], ["m"])], ["m"])


def branch(condition: Sequence[onnx.NodeProto], **constants: object) -> onnx.ModelProto:
    """An If on `c`, then a product."""
    nodes = [*condition, node("If", ["c"], ["y"], "if", then_branch=RELU, else_branch=NEG)]
    return model([*nodes, node("MatMul", ["y", "w"], ["z"])], "z", constants={"w": W, **constants})


def rows() -> list[onnx.NodeProto]:
    """The first size of x, as `n`."""
    return [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"])]


ZERO = {"zero": np.int64(0)}
LOOP_INPUTS = [info("i", INT64, ()), info("go", BOOL, ()), info("h")]


def loop(
    body: Sequence[onnx.NodeProto], count: object = 3, results: Sequence[str] = ("go2", "h2"), first: str = "x",
    outputs: Sequence[str] = ("y",), go: object = None, opset: int = 17, **constants: object,
) -> onnx.ModelProto:  # fmt: skip
    """A Loop that carries h; `go2` is `go` unless the body says."""
    body = list(body) if any("go2" in one.output for one in body) else [*body, node("Identity", ["go"], ["go2"])]
    inner = graph(body, results, LOOP_INPUTS, kinds=[BOOL])
    given = {"n": np.int64(count)} if count is not None else {}
    given |= {"start": np.array(go)} if go is not None else {}
    made = node(
        "Loop",
        ["n" if count is not None else "", "start" if go is not None else "", first],
        list(outputs),
        "loop",
        body=inner,
    )
    return model([made], *outputs, constants={"w": W, **given, **constants}, opset=opset)


def nested() -> onnx.ModelProto:
    """A Loop whose body has an If on the number of the pass: relu in the first, a product in the others."""
    then = graph([node("Relu", ["h"], ["a"])], ["a"])
    other = graph([node("MatMul", ["h", "w"], ["b"])], ["b"])
    body = [node("Less", ["i", "one"], ["c"]), node("If", ["c"], ["h2"], "if", then_branch=then, else_branch=other)]
    return loop(body, one=np.int64(1))


def inner_if() -> onnx.ModelProto:
    """An If within an If, both on shapes."""
    deep = graph([node("If", ["c"], ["d"], "deep", then_branch=RELU, else_branch=NEG)], ["d"])
    nodes = [
        *rows(),
        node("Greater", ["n", "zero"], ["c"]),
        node("If", ["c"], ["y"], "if", then_branch=deep, else_branch=NEG),
    ]
    return model([*nodes, node("MatMul", ["y", "w"], ["z"])], "z", constants={"w": W, **ZERO})


def in_turn() -> onnx.ModelProto:
    """The second If depends on the shape of what the first makes."""
    part = graph([node("Slice", ["x", "from", "to"], ["p"])], ["p"])
    nodes = [
        *rows(),
        node("Greater", ["n", "zero"], ["c"]),
        node("If", ["c"], ["y"], "one", then_branch=part, else_branch=NEG),
    ]
    relu, neg = graph([node("Relu", ["y"], ["r"])], ["r"]), graph([node("Neg", ["y"], ["m"])], ["m"])
    nodes += [
        node("Shape", ["y"], ["s2"]),
        node("Gather", ["s2", "zero"], ["n2"]),
        node("Equal", ["n2", "two"], ["c2"]),
    ]
    nodes += [node("If", ["c2"], ["u"], "two", then_branch=relu, else_branch=neg), node("MatMul", ["u", "w"], ["z"])]
    return model(nodes, "z", constants={"w": W, "from": np.array([0]), "to": np.array([2]), "two": np.int64(2), **ZERO})


def two_results() -> onnx.ModelProto:
    """A result of a branch is read within it, too."""
    then = graph([node("Relu", ["x"], ["r"]), node("MatMul", ["r", "w"], ["q"])], ["r", "q"])
    other = graph([node("Neg", ["x"], ["m"]), node("Abs", ["x"], ["a"])], ["m", "a"])
    made = node("If", ["c"], ["y", "v"], "if", then_branch=then, else_branch=other)
    return model([made, node("Add", ["y", "v"], ["z"])], "z", constants={"w": W, "c": np.array(True)})


def constants() -> onnx.ModelProto:
    """Each branch has a number of its own, of one name, as others have."""
    then, other = (graph([node("Mul", ["x", "k"], ["r"])], ["r"], constants={"k": np.float32(k)}) for k in (2, 3))
    made = node("If", ["c"], ["y"], "if", then_branch=then, else_branch=other)
    nodes = [made, node("Add", ["y", "k"], ["a"]), node("MatMul", ["a", "w"], ["z"])]
    return model(nodes, "z", constants={"w": W, "c": np.array(False), "k": np.float32(5)})


def unlike() -> onnx.ModelProto:
    """4 rows beside 6 columns."""
    inner = graph([node("Add", ["state", "one"], ["next"])], ["next"], [info("state"), info("one"), info("two")])
    made = node("Scan", ["first", "x", "x"], ["y"], "scan", body=inner, num_scan_inputs=2, scan_input_axes=[0, 1])
    return model([made], "y", constants={"first": np.zeros(6, np.float32)})


def outer() -> onnx.ModelProto:
    """A branch is a tensor from outside, whose name has a slash and which others read later."""
    then, other = graph([node("Identity", ["/in/relu"], ["o"])], ["o"]), graph([node("Neg", ["x"], ["m"])], ["m"])
    nodes = [node("Relu", ["x"], ["/in/relu"]), node("If", ["c"], ["y"], "if", then_branch=then, else_branch=other)]
    nodes += [node("MatMul", ["/in/relu", "w"], ["q"]), node("Add", ["y", "q"], ["z"])]
    return model(nodes, "z", constants={"w": W, "c": np.array(True)})


def scan(**fields: object) -> onnx.ModelProto:
    """A running sum of rows of products, its states stacked, and the last one."""
    body = [
        node("MatMul", ["part", "w"], ["p"]),
        node("Add", ["state", "p"], ["next"]),
        node("Relu", ["next"], ["seen"]),
    ]
    inner = graph(body, ["next", "seen"], [info("state"), info("part")])
    made = node("Scan", ["first", "x"], ["last", "all"], "scan", body=inner, num_scan_inputs=1, **fields)
    return model([made], "last", "all", constants={"w": W, "first": np.zeros(6, np.float32)})


def columns() -> onnx.ModelProto:
    """Columns are scanned, backwards, and stacked as columns."""
    inner = graph([node("Add", ["state", "part"], ["next"]), node("Identity", ["next"], ["seen"])], ["next", "seen"],
                  [info("state"), info("part")])  # fmt: skip
    made = node("Scan", ["first", "x"], ["last", "all"], "scan", body=inner, num_scan_inputs=1, scan_input_axes=[1],
                scan_input_directions=[1], scan_output_axes=[1], scan_output_directions=[1])  # fmt: skip
    nodes = [made, node("MatMul", ["all", "w"], ["z"])]
    return model(nodes, "last", "z", constants={"w": W, "first": np.zeros(4, np.float32)})


PRODUCT = [node("MatMul", ["h", "w"], ["h2"])]
STACKED = [*PRODUCT, node("Relu", ["h2"], ["r"])]
COUNTED = [*PRODUCT, node("Less", ["i", "most"], ["go2"])]
CASES: dict[str, Callable[[], onnx.ModelProto]] = {
    "a constant": lambda: branch([], c=np.array(False)), "a constant, true": lambda: branch([], c=np.array([True])),
    "on a shape": lambda: branch([*rows(), node("Greater", ["n", "zero"], ["c"])], **ZERO),
    "on a shape, else": lambda: branch([*rows(), node("Less", ["n", "zero"], ["c"])], **ZERO),
    "on two shapes": lambda: branch(
        [*rows(), node("Size", ["x"], ["k"]), node("Equal", ["k", "n"], ["e"]), node("Not", ["e"], ["c"])], **ZERO
    ),
    "an if in an if": inner_if, "one after the other": in_turn, "two results": two_results,
    "constants of a branch": constants,
    "a tensor from outside": outer,
    "a loop": lambda: loop(PRODUCT), "no pass": lambda: loop(PRODUCT, 0), "one pass": lambda: loop(PRODUCT, 1),
    "not begun": lambda: loop(PRODUCT, 3, go=False), "begun": lambda: loop(PRODUCT, 2, go=True),
    "until its condition": lambda: loop(COUNTED, None, go=True, most=np.int64(3)),
    "a count and a condition": lambda: loop(COUNTED, 9, go=True, most=np.int64(1)),
    "an if in a loop": nested,
    "stacked results": lambda: loop(STACKED, 3, ("go2", "h2", "r"), outputs=("y", "all")),
    "stacked before opset 13": lambda: loop(STACKED, 3, ("go2", "h2", "r"), outputs=("y", "all"), opset=11
    ),
    "the number of the pass": lambda: loop(
        [node("Cast", ["i"], ["f"], to=FLOAT), node("Add", ["h", "f"], ["a"]), node("MatMul", ["a", "w"], ["h2"])]
    ),
    "what is carried stays": lambda: loop([node("Identity", ["h"], ["h2"])], 2),
    "a scan": scan, "a scan backwards": lambda: scan(scan_input_directions=[1]),
    "stacked backwards": lambda: scan(scan_output_directions=[1]), "columns": columns,
}  # fmt: skip


def run(made: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, {"x": x}))


@pytest.mark.parametrize("case", CASES)
def test_what_stands_in_its_place_computes_the_same(case: str, tmp_path: Path) -> None:
    made, path = CASES[case](), tmp_path / "model.onnx"
    onnx.save(made, path)
    x = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
    plain = onnx.ModelProto()
    plain.CopyFrom(made)
    assert unroll(plain, Asked(), "model")
    assert not {one.op_type for one in plain.graph.node} & {"If", "Loop", "Scan"}
    for one, other in zip(run(plain, x), run(made, x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert read_onnx(path).opaque == ()


def test_a_loop_multiplies_as_often_as_it_passes(tmp_path: Path) -> None:
    """Five passes of a product of 4 x 6 by 6 x 6."""
    path = tmp_path / "model.onnx"
    onnx.save(loop(PRODUCT, 5), path)
    assert read_onnx(path).macs == 5 * 4 * 6 * 6


def of_the_data() -> list[onnx.NodeProto]:
    return [node("ReduceMax", ["x"], ["top"], keepdims=0), node("Greater", ["top", "level"], ["c"])]


OPAQUE: dict[str, Callable[[], onnx.ModelProto]] = {
    "a condition of the data": lambda: branch(of_the_data(), level=np.float32(0)),
    "too many passes": lambda: loop(PRODUCT, MOST_PASSES + 1),
    "unlike parts": unlike,
    "nothing to stack": lambda: loop(STACKED, 0, ("go2", "h2", "r"), outputs=("y", "all")),
    "without an end": lambda: loop(PRODUCT, None, go=True),
    "until the data say": lambda: loop(
        [*PRODUCT, node("ReduceMax", ["h2"], ["top"], keepdims=0), node("Less", ["top", "level"], ["go2"])],
        level=np.float32(9),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OPAQUE)
def test_what_depends_on_the_data_stays(case: str) -> None:
    made = OPAQUE[case]()
    before = made.SerializeToString(deterministic=True)
    assert not unroll(made, Asked(), "model")
    assert made.SerializeToString(deterministic=True) == before

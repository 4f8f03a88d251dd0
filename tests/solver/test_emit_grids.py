"""C of maps that are read where a grid says (GridSample): executed, and compared with onnxruntime."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from solver.uses.emit.compile import compile_model
from tests.emitted import BUILDS, build_and_run
from tests.onnx_models import model_of
from tests.solver.test_emit_operators import FLOATS, STRICT, difference

PADDING = ("zeros", "border", "reflection")
#: Every mode and padding with and without corners, in two opsets' names.
EVERY = [
    (opset, mode, padding, corners)
    for opset, modes in ((16, ("nearest", "bilinear", "bicubic")), (20, ("nearest", "linear", "cubic")))
    for mode, padding, corners in product(modes, PADDING, (0, 1))
]


def sampled(path: Path, cases: list[tuple[str, str, int]], opset: int, shape: tuple[int, ...] = (2, 3, 5, 4)) -> None:
    """Write a model that reads the sigmoid of a convolution by grids: an input, and a sum with constants.

    The convolution is a result, too, so others apply the sigmoid. Constants name middles of pixels, their edges, and
    places far beyond the border on either side.
    """
    rng = np.random.default_rng(4)
    batch, channels, rows, columns = shape
    node = helper.make_node
    exact = rng.choice([-1, 1, 0, 0.5, -0.25, 1.75, -3.5, 9, -40, 0.2], (batch, 6, 7, 2)).astype(np.float32)
    weights = {"w": rng.normal(size=(channels, 2, 1, 1)), "grid": exact + rng.uniform(-0.2, 0.2, exact.shape)}
    nodes = [
        node("Conv", ["x", "w"], ["c"], "conv"),
        node("Sigmoid", ["c"], ["a"], "a"),
        node("Add", ["g", "grid"], ["far"], "far"),
    ]
    for k, (mode, padding, corners) in enumerate(cases):
        given = {"mode": mode, "padding_mode": padding, "align_corners": corners}
        nodes.append(node("GridSample", ["a", ("g", "far")[k % 2]], [f"s{k}"], f"sample_{k}", **given))
        nodes.append(node("Relu", [f"s{k}"], [f"y{k}"]))
    inputs = {"x": (batch, 2, rows, columns), "g": (batch, 6, 7, 2)}
    results = ["c", *(f"y{k}" for k in range(len(cases)))]
    held = {name: value.astype(np.float32) for name, value in weights.items()}
    onnx.save(model_of(nodes, inputs, results, held, opset=opset, ir=9), path)


def run(folder: Path, problem: str, flags: str, **settings: object) -> float:
    made = compile_model(
        folder / "m.onnx", "scratchpad_768k", folder / "c", settings=FLOATS | settings, problem=problem, time_limit_s=20
    )
    assert made.plan.problem == problem
    return difference(build_and_run(folder / "c", flags))


@pytest.mark.slow(3)
def test_a_few_modes(tmp_path: Path) -> None:
    """Each mode and each padding once, with sanitizers."""
    pytest.importorskip("onnxruntime")
    cases = [("nearest", "reflection", 1), ("linear", "zeros", 0), ("cubic", "border", 0)]
    sampled(tmp_path / "m.onnx", cases, 20)
    assert run(tmp_path, "joint", BUILDS[2]) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("opset", "problem", "layout", "shape"), [
    (20, "tiling", "CHW", (2, 3, 5, 4)), (16, "fusion", "HWC", (2, 1, 4, 6)),
])  # fmt: skip
def test_every_mode(tmp_path: Path, opset: int, problem: str, layout: str, shape: tuple[int, ...]) -> None:
    """All modes, paddings and corners of an opset in one program, in both layouts, of one channel, too."""
    pytest.importorskip("onnxruntime")
    sampled(tmp_path / "m.onnx", [case[1:] for case in EVERY if case[0] == opset], opset, shape)
    assert run(tmp_path, problem, STRICT, in_layout=layout, out_layout=layout) < 1e-5

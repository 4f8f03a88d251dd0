"""Weights that several layers of a group have are one tensor: they lie on chip once, and are loaded once."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from certile import compile_model, solve
from hwmodels.fusion.replay.count import Count
from hwmodels.fusion.replay.strips import Walk
from instances.network.network import Network
from instances.network.operators import Conv, Input
from instances.network.stores import stores
from tests.adversary.fusion import TESTER, Case
from tests.effort import THOROUGH
from tests.hwmodels.test_fusion_replay import MACHINE, fused


def twice(*, own_bias: bool = False) -> Network:
    """Two 3x3 layers of 4 channels on 8x8, the second with the weights of the first."""
    shape, taps = (1, 4, 8, 8), {"kernel": (3, 3), "pad": (1, 1, 1, 1), "filters": 4, "bias": own_bias}
    return Network(name="twice", operators=(
        Input(name="in", shape=shape), Conv(name="a", inputs=("in",), shape=shape, **taps),
        Conv(name="b", inputs=("a",), shape=shape, weights_of="a", own_bias=own_bias, **taps),
    ))  # fmt: skip


def test_two_layers_with_one_tensor() -> None:
    # strips of 2 rows: 8 rows of 32 bytes on chip while b runs (docs/fusion.md), and 144 bytes of weights, not 288
    settings = {"ocm_bytes": 400, "ocm_banks": 0, "psum_bytes": 1}
    plan = solve(twice(), "scratchpad_768k", problem="fusion", settings=settings, pins=("fuse=a..b", "strip=2"))
    assert plan.status == "OPTIMAL"
    assert plan.measures["bytes"] == 256 + 144 + 256 == plan.part.must["bytes"]
    ((run,), (row,)) = plan.schedule, plan.part.figures
    assert (row.occupancy_bytes, run.weights) == (8 * 32 + 144, (144, 0))
    assert plan.part.replay.executed == 1


def test_weights_that_pass_are_loaded_for_both_layers() -> None:
    # both layers run in 4 and 5 visits; 100 of 144 bytes stay: 100 + 9 times 44
    found = stores(twice())
    run = fused(found)
    run = replace(run, weights=(100, 0))
    counted = Count(found, MACHINE, Walk(found, run)).run_all()
    assert not counted.faults
    assert counted.operand_bytes["W"] == 100 + 9 * 44


def test_biases_of_their_own_make_two_tensors() -> None:
    found = stores(twice(own_bias=True))
    run = fused(found)
    assert Count(found, MACHINE, Walk(found, run)).run_all().operand_bytes["W"] == sum(run.weights) >= 288


@pytest.mark.slow(1)
@pytest.mark.parametrize("rows", range(5, 8) if THOROUGH else (6,))
def test_all_schedules_of_tied_layers(rows: int) -> None:
    """Against brute force: two or three layers with one tensor, in memories of all sizes."""
    layers = (("conv", (0,), 2), ("tied", (1,), 2), ("tied", (2,), 2))[: 2 + rows % 2]
    one = Case(rows, 2, 2, layers, 6, 8 + 4 * rows, engines=("dynamic",), bytewise=rows % 3 == 0)
    assert [found.what for found in TESTER.run(one, random.Random(0))] == []


def test_c_of_tied_layers_ends_the_group(tmp_path: Path) -> None:
    """C of a group reads a tensor of weights for one layer: `compile` plans both layers by themselves."""
    weights = numpy_helper.from_array(np.ones((4, 4, 3, 3), np.float32), "w")
    nodes = [helper.make_node("Conv", [x, "w"], [y], name=y, pads=[1] * 4) for x, y in ("xa", "ay")]
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (1, 4, 8, 8)) for name in "xy")
    graph = helper.make_graph(nodes, "tied", [x], [y], initializer=[weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    floats = {"in_bytes": 4, "w_bytes": 4, "out_bytes": 4, "psum_bytes": 4}
    made = compile_model(tmp_path / "m.onnx", "scratchpad_768k", tmp_path / "c", settings=floats, problem="fusion")
    assert len(made.plan.schedule) == 2

"""Norms: read with constant and computed scales, and written in C; executed, and compared with onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.load import load_network
from solver.uses.emit.compile import compile_model
from tests.emitted import build_and_run
from tests.solver.test_emit_operators import FLOATS, STRICT, difference

Shape = tuple[int, ...]
#: Operator, shape of the map, of scale and shift, which of these are computed, attributes.
Norm = tuple[str, Shape, list[Shape], tuple[int, ...], dict[str, object]]
GROUP, MAP = "GroupNormalization", (2, 8, 3, 4)
#: With opset 18: a scale for every group.
BY_GROUP: list[Norm] = [
    (GROUP, MAP, [(1,), (1,)], (), {"num_groups": 1, "epsilon": 0.01}),
    (GROUP, MAP, [(8,), (8,)], (), {"num_groups": 8}),
    (GROUP, MAP, [(4,), (4,)], (), {"num_groups": 4}), (GROUP, (2, 8, 5), [(2,), (2,)], (), {"num_groups": 2}),
    (GROUP, MAP, [(4,), (4,)], (0, 1), {"num_groups": 4}),
    ("InstanceNormalization", MAP, [(8,), (8,)], (0, 1), {}), ("LayerNormalization", MAP, [(4,), (4,)], (0, 1), {}),
    ("LayerNormalization", MAP, [(3, 4), (3, 4)], (1,), {"axis": 2}),
    ("LayerNormalization", MAP, [(1,), (4,)], (), {"axis": 2, "epsilon": 0.01}),
    ("MeanVarianceNormalization", MAP, [], (), {}), ("MeanVarianceNormalization", MAP, [], (), {"axes": [1, -1]}),
    ("Shrink", MAP, [], (), {"lambd": 0.3, "bias": 0.1}),
]  # fmt: skip
#: With opset 23: a scale for every channel.
BY_CHANNEL: list[Norm] = [
    (GROUP, MAP, [(8,), (8,)], (), {"num_groups": 1}), (GROUP, MAP, [(8,), (8,)], (), {"num_groups": 2}),
    (GROUP, MAP, [(8,), (8,)], (), {"num_groups": 8}), (GROUP, (1, 8, 5), [(8,), (8,)], (), {"num_groups": 4}),
    (GROUP, (1, 8, 2, 3, 2), [(8,), (8,)], (), {"num_groups": 2}),
    (GROUP, MAP, [(8,), (8,)], (0, 1), {"num_groups": 4}), (GROUP, MAP, [(8,), (8,)], (0,), {"num_groups": 2}),
    (GROUP, MAP, [(8,), (8,)], (1,), {"num_groups": 1}),
    ("RMSNormalization", MAP, [(4,)], (0,), {}), ("RMSNormalization", MAP, [(4,)], (), {}),
]  # fmt: skip


def model(norms: list[Norm], opset: int, kind: int = onnx.TensorProto.FLOAT) -> onnx.ModelProto:
    """Each norm of an input of its own, and a convolution behind it; no shape is declared of what lies between."""
    random, real = np.random.default_rng(5), helper.tensor_dtype_to_np_dtype(kind)
    inputs, nodes, held, made = [], [], [], []

    def constant(name: str, shape: Shape) -> None:
        held.append(numpy_helper.from_array(random.normal(size=shape).astype(real), name))

    for k, (op, shape, scales, computed, attributes) in enumerate(norms):
        inputs.append(helper.make_tensor_value_info(f"x{k}", kind, shape))
        given = [f"x{k}", *(f"k{k}_{j}" for j in range(len(scales)))]
        for j, scale in enumerate(scales):
            if j in computed:
                inputs.append(helper.make_tensor_value_info(f"i{k}_{j}", kind, scale))
                nodes.append(helper.make_node("Sigmoid", [f"i{k}_{j}"], [f"k{k}_{j}"]))
            else:
                constant(f"k{k}_{j}", scale)
        nodes.append(helper.make_node(op, given, [f"n{k}"], f"norm{k}", **attributes))
        constant(f"w{k}", (2, shape[1], *(1 for _ in shape[2:])))
        nodes.append(helper.make_node("Conv", [f"n{k}", f"w{k}"], [f"y{k}"], f"conv{k}"))
        made.append(helper.make_tensor_value_info(f"y{k}", kind, None))
    graph = helper.make_graph(nodes, "g", inputs, made, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


@pytest.mark.slow(4)
@pytest.mark.parametrize(("norms", "opset"), [(BY_GROUP, 18), (BY_CHANNEL, 23)])
def test_norms_in_c(tmp_path: Path, norms: list[Norm], opset: int) -> None:
    """All of them in one model, within 1e-5 of the largest result."""
    pytest.importorskip("onnxruntime")
    onnx.save(model(norms, opset), tmp_path / "it.onnx")
    compile_model(
        tmp_path / "it.onnx", "scratchpad_768k", tmp_path / "c", settings=FLOATS, problem="tiling", time_limit_s=20
    )
    assert difference(build_and_run(tmp_path / "c", STRICT)) < 1e-5


@pytest.mark.parametrize("kind", [onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16])
@pytest.mark.parametrize(("norms", "opset"), [(BY_GROUP, 18), (BY_CHANNEL, 23)])
def test_norms_are_read(tmp_path: Path, norms: list[Norm], opset: int, kind: int) -> None:
    """No shape is declared of a norm's result: it is that of what it reads. Constant scales are parameters."""
    onnx.save(model(norms, opset, kind), tmp_path / "it.onnx")
    network = load_network(str(tmp_path / "it.onnx"))
    assert network.opaque == ()
    for k, (_, shape, scales, computed, _) in enumerate(norms):
        added = [o for o in network.operators if o.name.split(":")[0] == f"norm{k}"]
        assert added[-1].shape == shape
        held = sum(getattr(o, "parameters", 0) for o in added)
        assert held == sum(int(np.prod(s)) for j, s in enumerate(scales) if j not in computed)
        layers = [o for o in added if o.layer(network.input_shapes(o)) is not None]
        assert len(layers) == (len(scales) if computed else 0)  # a product and a sum of two operands


def test_groups_that_do_not_divide_channels_are_not_planned(tmp_path: Path) -> None:
    onnx.save(model([(GROUP, MAP, [(8,), (8,)], (), {"num_groups": 3})], 21), tmp_path / "it.onnx")
    assert [one.reason for one in load_network(str(tmp_path / "it.onnx")).opaque] == ["3 groups of 8 channels"]

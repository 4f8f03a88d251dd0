"""Elements that constant indices take or set: what is planned of them, and what is refused."""

from __future__ import annotations

import re
from functools import partial
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from formulations.compulsory import compulsory_bytes
from instances.errors import InputError
from instances.load import load_machine
from instances.network.network import Network
from instances.network.operators import Concat
from instances.network.stores import stores
from instances.onnx.model import evaluated
from instances.onnx.reader import read_onnx
from instances.onnx.shapes import MOST_INDICES
from solver.uses.emit.emit import compile_model
from tests.effort import tries
from tests.emitted import build_and_run
from tests.onnx_models import MODELS, Net
from tests.operator_models import CELLS, KINDS, READ, Case, computed, model, run

FLOAT = TensorProto.FLOAT
FLOATS = dict.fromkeys(("in_bytes", "w_bytes", "out_bytes"), 4)


def read(net: Net, folder: Path, *results: str) -> Network:
    path = folder / "indices.onnx"
    onnx.save(net.model(*results), path)
    return read_onnx(path)


def must(network: Network) -> int:
    """Bytes that every schedule moves, of elements of one byte."""
    return compulsory_bytes(stores(network), load_machine("scratchpad_64k"))


def test_windows_that_a_gather_makes(tmp_path: Path) -> None:
    """An unfold of 3 columns: each of 7 columns is read in as many windows as it is in, and is there once."""
    net = Net()
    x = net.input(1, 2, 3, 7)
    windows = net.const([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [2, 3, 4, 5, 6]])
    network = read(net, tmp_path, net("Gather", x, windows, axis=3))
    assert not network.opaque
    (layer,) = network.layers
    # every one of 2 x 3 x 15 elements reads one
    assert (layer.kind, layer.inputs, layer.g * layer.r * layer.c) == ("eltwise", 1, 2 * 3 * 15)
    assert network.operators[-1].shape == (1, 2, 3, 3, 5)
    # 42 elements of the map are there, 90 are written
    assert layer.copies == (90 - 42,)
    assert must(network) == 42 + 90


def test_what_indices_leave_out_is_not_read(tmp_path: Path) -> None:
    net = Net()
    x = net.input(1, 10, 1, 4)
    network = read(net, tmp_path, net("Gather", x, net.const([7, 7, 2, 7, -1]), axis=1))
    # of 10 channels of 4 elements 3 are read: 12, and 5 are written: 20
    assert must(network) == 12 + 20


@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements"])
def test_what_is_set_stands_behind_the_data(op: str, tmp_path: Path) -> None:
    net = Net()
    x, y = net.input(3, 4), net.input(1, 4, name="y")
    rows = net.const([[1]]) if op == "ScatterND" else net.const([[1] * 4])
    made = net(op, x, rows, y)
    network = read(net, tmp_path, net("MatMul", made, net.weight(4, 5)))
    assert not network.opaque
    (joined,) = [o for o in network.operators if isinstance(o, Concat)]
    # pieces are rows, or elements one by one
    assert joined.shape == ((4, 4) if op == "ScatterND" else (16, 1))
    assert network.macs == 3 * 4 * 5
    # 12 of 16 elements, the weights, and 3 rows of 5
    assert must(network) == 12 + 20 + 15


def test_data_of_which_nothing_is_left_are_not_read(tmp_path: Path) -> None:
    net = Net()
    x, y = net.input(2, 4), net.input(2, 4, name="y")
    made = net("ScatterND", x, net.const([[1], [0]]), net("MatMul", y, net.weight(4, 4)))
    network = read(net, tmp_path, net("MatMul", made, net.weight(4, 3)))
    assert not any(isinstance(o, Concat) for o in network.operators)
    assert all("x" not in o.inputs for o in network.operators)


@pytest.mark.parametrize("turned", ["Gather", "Slice", "ScatterND"])
def test_rows_in_another_order_are_no_rows_that_come_in_turn(turned: str, tmp_path: Path) -> None:
    """A map of the same shape whose rows stand elsewhere stays whole or not at all."""
    net = Net()
    made = net("Conv", net.input(1, 3, 4, 5), net.weight(4, 3, 1, 1))
    if turned == "Gather":
        moved = net("Gather", made, net.const([3, 2, 1, 0]), axis=2)
    elif turned == "Slice":
        moved = net("Slice", made, net.const([-1]), net.const([-9]), net.const([2]), net.const([-1]))
    else:
        places = [[0, channel, row] for channel in range(4) for row in (3, 2, 1, 0)]
        updates = net("Reshape", made, net.const([16, 5]))
        moved = net("ScatterND", net.const(np.zeros((1, 4, 4, 5)), np.float32), net.const(places), updates)
    found = stores(read(net, tmp_path, net("Conv", moved, net.weight(2, 4, 1, 1))))
    assert found.stores[found.writes[0]].whole


def test_two_orders_of_one_map_are_two_operands(tmp_path: Path) -> None:
    net = Net()
    made = net("Conv", net.input(1, 3, 4, 5), net.weight(4, 3, 1, 1))
    orders = [net("Gather", made, net.const(order), axis=2) for order in ([3, 2, 1, 0], [1, 0, 3, 2])]
    found = stores(read(net, tmp_path, net("Add", *orders)))
    assert found.apart == {(1, found.writes[0]): 2}


def refused(net: Net, folder: Path, result: str) -> str:
    (one,) = read(net, folder, result).opaque
    return one.reason


def test_what_is_refused(tmp_path: Path) -> None:
    shape, tensor = (2, 4), np.zeros((2, 4), np.float32)
    for reduction in ("add", "mul", "max"):
        net = Net(opset=18)
        made = net("ScatterND", net.input(*shape), net.const([[0]]), net.const(tensor[:1], np.float32),
                   reduction=reduction)  # fmt: skip
        assert refused(net, tmp_path, made) == f"it combines elements with others ({reduction})"
    net = Net()
    made = net("ScatterND", net.input(*shape), net.const([[0], [-2]]), net.const(tensor, np.float32))
    assert refused(net, tmp_path, made) == "indices that set an element twice"
    net = Net()
    made = net("ScatterND", net.input(*shape), net.input(1, 1, name="at", kind=TensorProto.INT64),
               net.const(tensor[:1], np.float32))  # fmt: skip
    assert refused(net, tmp_path, made) == "indices that depend on the data: add --value at=NUMBER"
    net = Net()
    many = net.const(np.zeros(MOST_INDICES + 1))
    assert refused(net, tmp_path, net("Gather", net.input(*shape), many)) == "more than 65,536 indices"
    net = Net()
    made = net("GatherElements", net.input(2**19), net.const([0, 0]))
    assert refused(net, tmp_path, made) == "524,288 pieces of a map by indices; up to 262,144 are planned"
    net = Net()
    few = net.const([*range(5000), 3])
    assert refused(net, tmp_path, net("Gather", net.input(5000), few)) == (
        "5,001 indices that repeat elements unevenly, of 5,000"
    )


def test_indices_beyond_the_map_are_an_error(tmp_path: Path) -> None:
    net = Net()
    made = net("ScatterND", net.input(2, 4), net.const([[2]]), net.const(np.zeros((1, 4)), np.float32))
    with pytest.raises(Exception, match="malformed attributes or inputs"):
        read(net, tmp_path, made)


# --- what the operators of the network compute, one after the other ---------------------------------------------------


def weights(*shape: int) -> np.ndarray:
    return np.full(shape, 0.5, np.float32)


def scales(*times: float) -> np.ndarray:
    return np.array([1, 1, *times], np.float32)


def one_result(path: Path, x: np.ndarray) -> np.ndarray:
    (made,) = computed(path, {"x": x}).values()
    return made


EVERY = {**KINDS, "read": READ}


@pytest.mark.parametrize("kind", [*EVERY, "models"])
def test_what_operators_are_read_as_computes_the_same(kind: str, tmp_path: Path) -> None:
    """All of them within 1e-5 of the largest result, with windows, groups and axes as they are planned."""
    path, random = tmp_path / "one.onnx", np.random.default_rng(3)
    made = {name: partial(model, case) for name, case in EVERY.get(kind, {}).items()} or MODELS
    for name in made.keys() - {"dynamic_matmul", "dynamic_lstm"}:  # which are quantised as the data say
        onnx.save(made[name](), path)
        infos = [(info.name, info.type.tensor_type) for info in onnx.load(path).graph.input]
        sizes = {name: [size.dim_value for size in kind.shape.dim] for name, kind in infos}
        feeds = {
            name: (random.normal(size=sizes[name]) if kind.elem_type == FLOAT else random.integers(5, size=sizes[name]))
            .astype(helper.tensor_dtype_to_np_dtype(kind.elem_type)) for name, kind in infos
        }  # fmt: skip
        found = computed(path, feeds)
        for tensor, value in run(onnx.load(path), feeds).items():
            assert found[tensor].shape == (value.shape or (1,)), name
            assert np.abs(found[tensor] - value).max() < 3e-6 * np.abs(value).max(), name


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "BatchNormalization"])
def test_what_the_reference_is_not_asked_for(op: str, tmp_path: Path) -> None:
    """Hosts without onnxruntime compute these of their own."""
    for kind in EVERY.values():
        for name, case in kind.items():
            if case[1] == op:
                onnx.save(model(case), tmp_path / "one.onnx")
                x = np.random.default_rng(3).normal(size=case[0]).astype(np.float32)
                results = run(onnx.load(tmp_path / "one.onnx"), {"x": x})
                (found,) = evaluated(onnx.load(tmp_path / "one.onnx"), {"x": x}, [*results])
                (wanted,) = results.values()
                assert np.abs(found - wanted).max() < 1e-5, name


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_a_batch_before_the_steps_is_one_behind_them_turned(op: str, tmp_path: Path) -> None:
    """Both directions, with states of before: onnxruntime knows but the one order."""
    shape, _, constants, fields = CELLS[f"{op} both"]
    turned = [*constants[:4], *(np.swapaxes(state, 0, 1) for state in constants[4:])]
    x, found = np.random.default_rng(3).normal(size=shape).astype(np.float32), []
    first: Case = (shape[1], shape[0], 3), op, turned, {**fields, "layout": 1}
    for case, given in (((shape, op, constants, fields), x), (first, x.swapaxes(0, 1))):
        onnx.save(model(case), tmp_path / "one.onnx")
        found.append(computed(tmp_path / "one.onnx", {"x": given}))
    for name, order in (("y", (2, 0, 1, 3)), ("y_h", (1, 0, 2))):
        assert np.abs(found[0][name].transpose(order) - found[1][name]).max() < 1e-6


REFUSED: list[tuple[Case, str]] = [
    (((2, 3), "Einsum", [weights(3, 4)], {"equation": "ij,jk->i"}), "a sum over one operand alone"),
    (((3, 4, 5), "GroupNormalization", [weights(4), weights(4)], {"num_groups": 3}), "3 groups of 4 channels"),
    (((1, 2, 4, 5, 6), "AveragePool", [], {"kernel_shape": [2] * 3, "pads": [1] * 6}), "leaves padding out"),
    (((1, 2, 4, 5), "Conv", [weights(3, 2, 2, 2)], {"strides": [2]}), "attributes of different ranks"),
    (((2, 2, 3, 3), "Conv", ["x"], {}), "weights that are not constant"),
    (((2, 2, 3, 3), "ConvTranspose", ["x"], {}), "weights that are not constant"),
    (((1, 2, 3, 4, 5), "ConvTranspose", [weights(2, 3, 2, 2, 2)], {}), "an input with 5 dimensions"),
    (((1, 1, 4, 4), "ConvTranspose", [weights(1, 1, 30, 30)], {"strides": [3, 2]}), "windows overlap in a pixel"),
    (((3, 3), "Gemm", [weights(3, 3), "x"], {"beta": 2.0}), "an addend that is not constant, with a factor"),
    (((1, 2, 4, 5), "Resize", [None, scales(2, 2)], {"antialias": 1, "mode": "linear"}), "(antialias)"),
    (((1, 2, 4, 5), "Resize", [weights(8), scales(2, 2)], {"coordinate_transformation_mode": "tf_crop_and_resize"}),
     "a part of the map"),
    (((1, 2, 4, 5), "Resize", [None, scales(2, 2)], {"mode": "lanczos"}), "an interpolation 'lanczos'"),
    (((1, 2, 4, 5), "Resize", [None, scales(2, 2)], {"nearest_mode": "any"}), "the nearest element by 'any'"),
    (((1, 2, 4, 5), "Resize", [None, scales(2, 2)], {"coordinate_transformation_mode": "any"}), "coordinates 'any'"),
    (((1, 1, 2, 3, 4), "GridSample", [weights(1, 2, 3, 4, 3)], {}), "an input with 5 dimensions"),
    (((1, 2, 4, 5), "Pad", [np.array([0, 0, -1, 0, 0, 0, 0, 0])], {}), "negative pads"),
    *[(((steps, 1, 3), "RNN", [weights(1, 2, 3), weights(1, 2, 2)], {"hidden_size": 2, **fields}), said)
      for steps, fields, said in ((2, {"activations": ["Any"]}, "an activation 'Any'"), (513, {}, "513 steps"))],
    (((2, 1, 3), "LSTM", [weights(1, 8, 3), weights(1, 8, 2)], {"hidden_size": 2, "activations": ["Tanh"]}),
     "1 activations"),
    (((1, 1, 4, 4), "MaxPool", [], {"kernel_shape": [2, 2], "made": ["y", "places"]}), "its further outputs are used"),
    (((2, 3, 8), "Attention", [weights(2, 5, 8), weights(2, 5, 8)], {"q_num_heads": 3, "kv_num_heads": 3, "opset": 23}),
     "3 heads of 8 features"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "said"), REFUSED)
def test_what_would_compute_something_else_stays_opaque(case: Case, said: str, tmp_path: Path) -> None:
    path = tmp_path / "one.onnx"
    onnx.save(model(case), path)
    assert said in read_onnx(path).opaque[0].reason


@pytest.mark.parametrize(("case", "said"), [
    (((1, 3, 4, 5), "Conv", [weights(3, 2, 2, 2)], {}), "weights for 2 channels, its input has 3"),
    (((1, 3, 4, 5), "Conv", [weights(3, 4, 2, 2)], {}), "weights for 4 channels, its input has 3"),
    (((1, 3, 4, 4, 5), "Conv", [weights(3, 2, 2, 2, 2)], {}), "weights for 2 channels in 1 groups, its input has 3"),
    (((1, 4, 4, 5), "Conv", [weights(3, 2, 2, 2)], {"group": 2}), "must divide channels 4 and filters 3"),
    (((1, 3, 4, 5), "ConvTranspose", [weights(2, 3, 2, 2)], {}), "weights for 2 channels in 1 groups, its input has 3"),
    (((2, 3), "Gemm", [weights(4, 5)], {}), "weights for 4 features, its input has shape (2, 3)"),
])  # fmt: skip
def test_weights_of_another_map_are_an_error(case: Case, said: str, tmp_path: Path) -> None:
    onnx.save(model(case), tmp_path / "one.onnx")
    with pytest.raises(InputError, match=re.escape(said)):
        read_onnx(tmp_path / "one.onnx")


def _any(rng: np.random.Generator, op: str, shape: tuple[int, ...]) -> tuple[np.ndarray, dict[str, int]]:
    """Indices of an operator, from the begin or the end of what they count, and its attributes."""
    axis = int(rng.integers(len(shape)))
    if op in ("GatherND", "ScatterND"):
        depth = int(rng.integers(1, len(shape) + 1))
        whole = prod(shape[:depth])
        number = int(rng.integers(1, whole + 1))
        flat = rng.choice(whole, number, replace=op == "GatherND")
        indices = np.stack(np.unravel_index(flat, shape[:depth]), -1).reshape(1, number, depth)
        sizes, attributes = np.array(shape[:depth]), dict[str, int]()
    elif op == "Gather":
        indices, sizes = rng.integers(shape[axis], size=(2, int(rng.integers(1, 6)))), np.array(shape[axis])
        attributes = {"axis": axis}
    else:
        other = list(shape)
        other[axis] = int(rng.integers(1, shape[axis] + 1))
        order = rng.permuted(
            np.broadcast_to(np.arange(shape[axis]), (*shape[:axis], *shape[axis + 1 :], shape[axis])), axis=-1
        )
        indices = np.moveaxis(order[..., : other[axis]], -1, axis)
        if op == "GatherElements":
            indices = rng.integers(shape[axis], size=other)
        sizes, attributes = np.array(shape[axis]), {"axis": axis}
    return np.where(rng.random(indices.shape) < 0.3, indices - sizes, indices), attributes


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("op", ["Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"])
def test_elements_go_where_the_operator_says(op: str, seed: int, tmp_path: Path) -> None:
    """Judged by the reference implementation of the operator itself."""
    rng = np.random.default_rng([seed, len(op)])
    shape = tuple(int(x) for x in rng.integers(1, 5, size=int(rng.integers(2, 5))))
    indices, attributes = _any(rng, op, shape)
    net = Net()
    given = [net.input(*shape), net.const(indices)]
    if op.startswith("Scatter"):
        lead = indices.shape[-1]
        updates = indices.shape if op == "ScatterElements" else (*indices.shape[:-1], *shape[lead:])
        given.append(net.const(rng.normal(size=updates), np.float32))
    path, x = tmp_path / "one.onnx", rng.normal(size=shape).astype(np.float32)
    made = net(op, *given, **attributes)
    made = net("Concat", made, "x", axis=0) if op.startswith("Scatter") else made  # all of x may be set
    onnx.save(net.model(made), path)
    assert not read_onnx(path).opaque
    (wanted,) = ReferenceEvaluator(str(path)).run(None, {"x": x})
    found = one_result(path, x)
    assert found.shape == wanted.shape
    assert (found == wanted).all()


@pytest.mark.parametrize("seed", range(tries(6, 24)))
def test_a_dilated_transposed_convolution(seed: int, tmp_path: Path) -> None:
    """Strides, dilations, cuts and groups at random, on integers."""
    rng = np.random.default_rng(seed)
    while True:
        size, kernel = rng.integers(3, 6, size=2), rng.integers(1, 4, size=2)
        stride, dilation = rng.choice([1, 1, 2, 3], size=2), rng.integers(1, 4, size=2)
        reach = (kernel - 1) * dilation
        begin, end = rng.integers(0, reach + 1), rng.integers(0, reach + 1)
        out = (size - 1) * stride + reach + 1 - begin - end
        if min(out) > 0 and any(dilation * (kernel > 1) > 1):
            break
    groups = int(rng.integers(1, 3))
    weights = rng.integers(-4, 5, size=(4, 3, *kernel)).astype(np.float32)
    x = rng.integers(-4, 5, size=(1, 4, *size)).astype(np.float32)
    net = Net()
    made = net("ConvTranspose", net.input(*x.shape), net.const(weights, np.float32), group=groups,
               strides=[int(s) for s in stride], dilations=[int(d) for d in dilation],
               pads=[int(p) for p in (*begin, *end)])  # fmt: skip
    path = tmp_path / "one.onnx"
    onnx.save(net.model(made), path)
    network = read_onnx(path)
    assert not network.opaque
    (wanted,) = run(onnx.load(path), {"x": x}).values()
    assert (one_result(path, x) == wanted).all()
    # each input element meets each tap, or each result is one window of all taps
    products = 4 * 3 * prod(kernel) * (prod(size) if max(stride) > 1 else prod(out))
    assert network.macs == products


def cached() -> onnx.ModelProto:
    """A streaming convolution: of a cache of 4 rows 3 are kept, and one is set; its indices are computed of shapes."""
    net = Net()
    x, cache = net.input(1, 2, 1, 5), net.input(1, 2, 4, 5, name="cache")
    row = net("Conv", x, net.weight(2, 2, 1, 1))
    rest = net("Slice", cache, net.const([1]), net.const([4]), net.const([2]))
    grown = net("Pad", rest, net.const([0, 0, 0, 0, 0, 0, 1, 0]))
    axes = [
        net("Range", net.const(0), net("Gather", net("Shape", cache), net.const(k)), net.const(1)) for k in (0, 1, 3)
    ]
    whole = net("Shape", x)
    places = [net("Expand", net("Reshape", axis, net.const(shape)), whole) for axis, shape in zip(
        (axes[0], axes[1], net.const([3]), axes[2]), ([-1, 1, 1, 1], [1, -1, 1, 1], [1, 1, 1, 1], [1, 1, 1, -1]),
        strict=True)]  # fmt: skip
    at = net("Concat", *(net("Unsqueeze", place, net.const([-1])) for place in places), axis=-1)
    after = net("ScatterND", grown, at, row)
    return net.model(net("Conv", after, net.weight(3, 2, 4, 1)), after)


@pytest.mark.slow(2)
def test_c_of_a_cache(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    path = tmp_path / "cached.onnx"
    onnx.save(cached(), path)
    assert not read_onnx(path).opaque
    compile_model(path, "scratchpad_768k", tmp_path / "c", settings=FLOATS, problem="joint")
    said = build_and_run(tmp_path / "c", "-O1 -Wall -Wextra -Werror")
    assert "transfers as planned" in said
    assert "compared with onnxruntime" in said
    assert "FAILED" not in said

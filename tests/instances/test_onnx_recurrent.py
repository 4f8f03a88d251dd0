"""LSTM, GRU and RNN of ONNX files: a product for all inputs, and one for the state of every step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.load import load_network
from instances.network.network import Network
from tests.onnx_models import model_of

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
#: Steps, batch, inputs, hidden.
T, B, N, H = 5, 2, 3, 4


def read(
    folder: Path, op: str, *, state: bool = False, outputs: tuple[str, ...] = ("y",), lengths: tuple[int, ...] = (),
    peepholes: bool = False, columns: int = N, **attributes: object,
) -> Network:  # fmt: skip
    """The network of one recurrent operator with a bias, and a Relu behind each result."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    g, first = GATES[op], attributes.get("layout") == 1
    held = {"W": (directions, g * H, columns), "R": (directions, g * H, H), "B": (directions, 2 * g * H)}
    constants = {name: np.ones(shape, np.float32) for name, shape in held.items()}
    if lengths:
        constants["L"] = np.array(lengths, np.int32)
    if peepholes:
        constants["P"] = np.ones((directions, 3 * H), np.float32)
    infos = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (B, T, N) if first else (T, B, N))]
    if state:
        shape = (B, directions, H) if first else (directions, B, H)
        infos.append(helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, shape))
    inputs = ["x", "W", "R", "B", "L" if lengths else "", "h" if state else "", "", "P" if peepholes else ""]
    while not inputs[-1]:
        inputs.pop()
    nodes = [helper.make_node(op, inputs, outputs, name="cell", hidden_size=H, **attributes)]
    nodes += [helper.make_node("Relu", [o], [f"{o}_relu"]) for o in outputs if o]
    onnx.save(model_of(nodes, infos, [f"{o}_relu" for o in outputs if o], constants), folder / "one.onnx")
    return load_network(str(folder / "one.onnx"))


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_every_step_multiplies_its_inputs_and_its_state(tmp_path: Path, op: str, direction: str) -> None:
    """Gates x hidden features of (inputs + hidden) products, for every step, image and direction."""
    network = read(tmp_path, op, direction=direction, linear_before_reset=1) if op == "GRU" else read(
        tmp_path, op, direction=direction
    )  # fmt: skip
    ways = 2 if direction == "bidirectional" else 1
    features = GATES[op] * H
    assert network.opaque == ()
    assert network.macs == ways * T * B * features * (N + H)
    assert network.parameters == ways * features * (N + H + 2)  # and two biases, one for each product
    products = [(layer.r, layer.n, layer.m) for layer in network.conv_layers]
    assert products == ways * [(T * B, N, features), *[(B, H, features)] * T]
    assert network.operators[-1].shape == (T, ways, B, H)


def test_the_states_go_from_step_to_step(tmp_path: Path) -> None:
    for direction, order in (("forward", [0, 1, 2, 3, 4]), ("reverse", [4, 3, 2, 1, 0])):
        network = read(tmp_path, "RNN", direction=direction)
        read_by = {o.inputs[0]: o.name for o in network.operators if o.name.endswith(".R")}
        name, found = "cell:h0", []
        while name in read_by:
            found.append(read_by[name])
            name = f"{read_by[name].removesuffix('.R')}.state"
        assert found == [f"cell:t{t}.R" for t in order]


def test_a_gru_that_resets_first_has_two_products_a_step(tmp_path: Path) -> None:
    """Two gates need the state; the candidate needs the state that the second gate has reset."""
    network = read(tmp_path, "GRU")
    products = [(layer.r, layer.n, layer.m) for layer in network.conv_layers]
    assert products == [(T * B, N, 3 * H), *[(B, H, 2 * H), (B, H, H)] * T]
    assert network.macs == T * B * 3 * H * (N + H)
    assert network.operator("cell:t0.Rh").inputs[0] == "cell:t0.reset"


def test_all_results_and_a_state_that_is_given(tmp_path: Path) -> None:
    network = read(tmp_path, "LSTM", state=True, outputs=("y", "last", "cell_state"))
    assert [o.shape for o in network.operators[-3:]] == [(T, 1, B, H), (1, B, H), (1, B, H)]
    assert network.operator("cell:t0.R").inputs[0] == "cell:h0"
    assert network.operator("cell:h0").inputs == ("h",)
    # the cell reads three gates, each of two products, and the cell before; the state one gate and the cell
    assert [layer.inputs for layer in network.layers if layer.name.startswith("cell:t0")] == [1, 7, 3]


def test_the_last_state_alone(tmp_path: Path) -> None:
    network = read(tmp_path, "GRU", outputs=("", "last"))
    assert (network.opaque, network.macs) == ((), T * B * 3 * H * (N + H))
    assert network.operators[-1].shape == (1, B, H)


def test_lengths_that_are_computed(tmp_path: Path) -> None:
    """The number of steps, once for every image: Shape, Slice, Expand, Cast."""
    read(tmp_path, "RNN", lengths=(T, T))
    model = onnx.load(tmp_path / "one.onnx")
    (held,) = [t for t in model.graph.initializer if t.name == "L"]
    model.graph.initializer.remove(held)
    numbers = {"first": [0], "second": [1], "both": [B]}
    model.graph.initializer.extend(numpy_helper.from_array(np.array(v, np.int64), k) for k, v in numbers.items())
    model.graph.node.extend([
        helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Slice", ["s", "first", "second"], ["t"]),
        helper.make_node("Expand", ["t", "both"], ["e"]),
        helper.make_node("Cast", ["e"], ["L"], to=onnx.TensorProto.INT32),
    ])  # fmt: skip
    onnx.save(model, tmp_path / "two.onnx")
    assert load_network(str(tmp_path / "two.onnx")).opaque == ()


def test_a_batch_before_the_steps(tmp_path: Path) -> None:
    network = read(tmp_path, "LSTM", layout=1, state=True, outputs=("y", "last"))
    assert network.macs == T * B * 4 * H * (N + H)
    assert [o.shape for o in network.operators[-2:]] == [(B, T, 1, H), (B, 1, H)]


def test_lengths_that_are_the_whole(tmp_path: Path) -> None:
    assert read(tmp_path, "RNN", lengths=(T, T)).opaque == ()


@pytest.mark.parametrize(
    ("op", "options", "said"),
    [
        ("RNN", {"lengths": (T, T - 1)}, "sequences of different lengths"),
        ("LSTM", {"peepholes": True}, "peepholes"),
    ],
)
def test_what_stays_opaque_says_why_and_how_much(
    tmp_path: Path, op: str, options: dict[str, object], said: str
) -> None:
    network = read(tmp_path, op, **options)
    (kept,) = network.opaque
    assert said in kept.reason
    assert (network.macs, kept.macs) == (0, T * B * GATES[op] * H * (N + H))
    assert [o.op for o in network.operators] == ["input", "opaque", "eltwise"]


def test_weights_of_another_size_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"weights of shape \(1, 4, 7\), \(1, 4, 3\) are needed"):
        read(tmp_path, "RNN", columns=7)

"""Operators of ONNX that become several of ours: every product is planned, none is invented."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.load import load_network
from instances.network.network import Network
from tests.onnx_models import model_of

Shape = tuple[int, ...]


def read(
    folder: Path, op: str, inputs: Sequence[Shape], out: Shape | None = None, *, constants: Sequence[int] = (),
    **attributes: object,
) -> Network:  # fmt: skip
    """The network of one node; `constants` are positions of inputs that are weights. Behind it stands a Relu."""
    names = [f"t{k}" for k in range(len(inputs))]
    weights = [numpy_helper.from_array(np.ones(inputs[k], np.float32), names[k]) for k in constants]
    infos = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s)
             for k, (n, s) in enumerate(zip(names, inputs, strict=True)) if k not in constants]  # fmt: skip
    nodes = [
        helper.make_node(op, names, ["made"], name="node", **attributes),
        helper.make_node("Relu", ["made"], ["y"]),
    ]
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, out)
    model = helper.make_model(
        helper.make_graph(nodes, "g", infos, [result], initializer=weights),
        ir_version=8,
        opset_imports=[helper.make_opsetid("", 17)],
    )
    onnx.save(model, folder / "one.onnx")
    return load_network(str(folder / "one.onnx"))


@pytest.mark.parametrize(("equation", "shapes", "constants", "macs"), [
    ("bhqd,bhkd->bhqk", [(2, 3, 5, 4), (2, 3, 6, 4)], (), 2 * 3 * 5 * 6 * 4),  # scores of attention
    ("bhqk,bhkd->bhqd", [(2, 3, 5, 6), (2, 3, 6, 4)], (), 2 * 3 * 5 * 6 * 4),
    ("btc,ck->btk", [(2, 5, 4), (4, 7)], (1,), 2 * 5 * 4 * 7),  # a layer
    ("btc,chd->bhtd", [(2, 5, 6), (6, 3, 2)], (1,), 2 * 5 * 6 * 3 * 2),  # heads made apart
    ("ck,btc->btk", [(4, 7), (2, 5, 4)], (0,), 2 * 5 * 4 * 7),  # weights first
    ("bhc,hcd->bhd", [(2, 3, 4), (3, 4, 5)], (1,), 2 * 3 * 4 * 5),  # a matrix for every head
    ("...i,ij->...j", [(2, 3, 4), (4, 5)], (1,), 2 * 3 * 4 * 5),
    ("nchw,ncvw->nhv", [(1, 2, 3, 4), (1, 2, 5, 4)], (), 2 * 3 * 4 * 5),
])  # fmt: skip
def test_einsum(
    tmp_path: Path, equation: str, shapes: list[Shape], constants: tuple[int, ...], macs: int
) -> None:  # fmt: skip
    network = read(tmp_path, "Einsum", shapes, constants=constants, equation=equation)
    assert network.opaque == ()
    assert network.macs == macs
    made = np.einsum(equation, *map(np.ones, shapes)).shape
    assert network.operators[-1].shape == made
    moved = [o.name for o in network.operators if getattr(o, "fn", "") == "transpose"]
    assert not equation.startswith("bhq") or moved == []  # matrices lie as a product takes them


@pytest.mark.parametrize(("shapes", "constants", "macs"), [
    ([(5, 4), (2, 4, 6)], (0,), 2 * 5 * 4 * 6),  # constants on the left
    ([(4,), (4, 6)], (1,), 4 * 6),  # a vector
    ([(2, 3, 4), (4,)], (1,), 2 * 3 * 4),
    ([(3, 5, 4), (3, 4, 6)], (1,), 3 * 5 * 4 * 6),  # a constant matrix for every product
    ([(3, 5, 4), (3, 4, 6)], (), 3 * 5 * 4 * 6),
])  # fmt: skip
def test_matmul_of_all_forms(tmp_path: Path, shapes: list[Shape], constants: tuple[int, ...], macs: int) -> None:
    network = read(tmp_path, "MatMul", shapes, constants=constants)
    assert (network.opaque, network.macs) == ((), macs)
    assert network.operators[-1].shape == np.matmul(*map(np.ones, shapes)).shape


@pytest.mark.parametrize(("size", "weights", "fields", "out"), [
    ((7, 5), (4, 6, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, (14, 10)),  # in phases
    ((7, 5), (4, 6, 2, 2), {"strides": [2, 2]}, (14, 10)),  # windows apart
    ((7, 5), (4, 6, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}, (14, 10)),
    ((7, 5), (4, 6, 3, 3), {"strides": [2, 2]}, (15, 11)),  # windows overlap, another size
    ((7, 5), (4, 6, 3, 3), {"pads": [1, 1, 1, 1]}, (7, 5)),  # stride 1
    ((7, 5), (4, 3, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 2}, (14, 10)),
])  # fmt: skip
def test_transposed_convolution(
    tmp_path: Path, size: Shape, weights: Shape, fields: dict[str, object], out: Shape
) -> None:  # fmt: skip
    """Each input element meets each tap of its filters: H W C M/g K K products."""
    network = read(tmp_path, "ConvTranspose", [(1, 4, *size), weights], constants=(1,), **fields)
    assert network.opaque == ()
    assert network.macs == prod(size) * prod(weights)
    assert network.operators[-1].shape[2:] == out


@pytest.mark.parametrize(("size", "weights", "fields"), [
    ((4, 6, 5), (8, 3, 3, 3, 3), {"pads": [1] * 6}),
    ((4, 6, 5), (8, 3, 1, 3, 3), {"pads": [0, 1, 1, 0, 1, 1], "strides": [1, 2, 2]}),  # single frames
    ((4, 6, 5), (8, 3, 3, 1, 1), {"pads": [1, 0, 0, 1, 0, 0]}),  # along time
    ((4, 6, 5), (8, 3, 2, 2, 2), {"strides": [2, 2, 2]}),  # windows apart
])  # fmt: skip
def test_convolution_of_videos(tmp_path: Path, size: Shape, weights: Shape, fields: dict[str, object]) -> None:
    network = read(tmp_path, "Conv", [(1, 3, *size), weights], constants=(1,), **fields)
    made = network.operators[-1].shape
    assert network.opaque == ()
    assert network.macs == prod(made) * prod(weights[1:])


@pytest.mark.parametrize(("shapes", "constants", "fields", "operators"), [
    ([(5, 4), (4, 6)], (), {}, ["matmul"]),
    ([(5, 4), (4, 6)], (), {"alpha": 0.5}, ["matmul", "eltwise"]),  # a factor of both
    ([(5, 4), (4, 6)], (1,), {"alpha": 0.5}, ["matmul"]),  # which is in constant weights
    ([(5, 4), (6, 4), (6,)], (1, 2), {"transB": 1}, ["matmul"]),  # a bias
    ([(5, 4), (6, 4), (5, 6)], (1, 2), {"transB": 1}, ["matmul", "eltwise"]),  # another addend for every row
])  # fmt: skip
def test_factors_and_addends_of_gemm(
    tmp_path: Path, shapes: list[Shape], constants: tuple[int, ...], fields: dict[str, object], operators: list[str]
) -> None:  # fmt: skip
    network = read(tmp_path, "Gemm", shapes, constants=constants, **fields)
    assert network.macs == 5 * 4 * 6
    assert [o.op for o in network.operators if o.op != "input"][:-1] == operators


def test_a_constant_part_of_a_concatenation(tmp_path: Path) -> None:
    network = read(tmp_path, "Concat", [(1, 3, 4, 4), (1, 2, 4, 4)], constants=(1,), axis=1)
    assert network.opaque == ()
    assert network.operators[-1].shape == (1, 5, 4, 4)


@pytest.mark.parametrize(("equation", "shapes", "said"), [
    ("ij->ji", [(2, 3)], "a sum or diagonal of one operand"), ("ii,ij->j", [(2, 2), (2, 3)], "a letter twice"),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], "a product of 3 operands"),
])  # fmt: skip
def test_einsums_that_stay_opaque(tmp_path: Path, equation: str, shapes: list[Shape], said: str) -> None:
    network = read(tmp_path, "Einsum", shapes, equation=equation)
    assert said in network.warnings[0]


# ---- Attention of ONNX files: two products, and what lies between them -----------------------------------------------


def attention(
    folder: Path, shapes: dict[str, Shape], outputs: tuple[str, ...] = ("y",), mask: Shape | None = None,
    **attributes: int,
) -> Network:  # fmt: skip
    """The network of one node; `shapes` has the inputs that are there, `mask` that of a constant one."""
    order = ["q", "k", "v", "mask", "past_k", "past_v"]
    names = [name if name in shapes or (name == "mask" and mask) else "" for name in order]
    node = helper.make_node("Attention", names, outputs, name="node", **attributes)
    held = {"mask": np.zeros(mask, np.float32)} if mask else {}
    onnx.save(model_of([node], shapes, [o for o in outputs if o], held, opset=23, ir=10), folder / "one.onnx")
    return load_network(str(folder / "one.onnx"))


def heads(number: int, shared: int | None = None) -> dict[str, Shape]:
    """Two images of 5 queries and 6 keys of 4 features; values of 3."""
    return {"q": (2, number, 5, 4), "k": (2, shared or number, 6, 4), "v": (2, shared or number, 6, 3)}


@pytest.mark.parametrize("mask", [None, (5, 6), (2, 1, 5, 6)])
def test_both_products(tmp_path: Path, mask: Shape | None) -> None:
    network = attention(tmp_path, heads(3), mask=mask)
    assert network.opaque == ()
    assert [layer.macs for layer in network.layers] == [2 * 3 * 5 * 6 * 4, 2 * 3 * 5 * 6 * 3]
    assert (network.operators[-1].name, network.operators[-1].shape) == ("node", (2, 3, 5, 3))
    assert network.parameters == 0


def test_a_mask_that_is_computed_is_read(tmp_path: Path) -> None:
    network = attention(tmp_path, {**heads(3), "mask": (2, 3, 5, 6)})
    assert [(layer.kind, layer.inputs) for layer in network.layers] == [("matmul", 1), ("eltwise", 2), ("matmul", 1)]


def test_heads_that_share_keys_are_rows_of_one_product(tmp_path: Path) -> None:
    network = attention(tmp_path, heads(4, 2), mask=(5, 6))
    assert [(x.g, x.r, x.n, x.m) for x in network.layers] == [(4, 10, 4, 6), (4, 10, 6, 3)]
    assert network.operators[-1].shape == (2, 4, 5, 3)


def test_heads_beside_each_other_and_tokens_before(tmp_path: Path) -> None:
    """6 keys and 3 of before for 5 queries of two heads."""
    shapes = {"q": (2, 5, 8), "k": (2, 6, 8), "v": (2, 6, 6), "past_k": (2, 2, 3, 4), "past_v": (2, 2, 3, 3)}
    network = attention(tmp_path, shapes, ("y", "k2", "v2"), q_num_heads=2, kv_num_heads=2)
    assert network.opaque == ()
    assert network.macs == 2 * 2 * 5 * 9 * (4 + 3)
    found = {o.shape for o in network.operators if o.name not in {i for p in network.operators for i in p.inputs}}
    assert found == {(2, 5, 6), (2, 2, 9, 4), (2, 2, 9, 3)}


@pytest.mark.parametrize(
    ("shapes", "outputs", "said"),
    [
        (heads(3), ("y", "", "", "scores"), "its products are used"),
        ({"q": (2, 3, 5, 4), "k": (2, 2, 6, 4), "v": (2, 2, 6, 3)}, ("y",), "3 heads of queries and 2 of keys"),
    ],
)
def test_what_stays_opaque_says_why_and_how_much(
    tmp_path: Path, shapes: dict[str, Shape], outputs: tuple[str, ...], said: str
) -> None:
    kept = attention(tmp_path, shapes, outputs).opaque[0]
    assert said in kept.reason
    assert kept.macs == 2 * 3 * 5 * 6 * (4 + 3)


# ---- LSTM, GRU and RNN of ONNX files: a product for all inputs, and one for the state of every step ------------------

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
#: Steps, batch, inputs, hidden.
T, B, N, H = 5, 2, 3, 4


def cell(
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
    network = cell(tmp_path, op, direction=direction, linear_before_reset=1) if op == "GRU" else cell(
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
        network = cell(tmp_path, "RNN", direction=direction)
        read_by = {o.inputs[0]: o.name for o in network.operators if o.name.endswith(".R")}
        name, found = "cell:h0", []
        while name in read_by:
            found.append(read_by[name])
            name = f"{read_by[name].removesuffix('.R')}.state"
        assert found == [f"cell:t{t}.R" for t in order]


def test_a_gru_that_resets_first_has_two_products_a_step(tmp_path: Path) -> None:
    """Two gates need the state; the candidate needs the state that the second gate has reset."""
    network = cell(tmp_path, "GRU")
    products = [(layer.r, layer.n, layer.m) for layer in network.conv_layers]
    assert products == [(T * B, N, 3 * H), *[(B, H, 2 * H), (B, H, H)] * T]
    assert network.macs == T * B * 3 * H * (N + H)
    assert network.operator("cell:t0.Rh").inputs[0] == "cell:t0.reset"


def test_all_results_and_a_state_that_is_given(tmp_path: Path) -> None:
    network = cell(tmp_path, "LSTM", state=True, outputs=("y", "last", "cell_state"))
    assert [o.shape for o in network.operators[-3:]] == [(T, 1, B, H), (1, B, H), (1, B, H)]
    assert network.operator("cell:t0.R").inputs[0] == "cell:h0"
    assert network.operator("cell:h0").inputs == ("h",)
    # the cell reads three gates, each of two products, and the cell before; the state one gate and the cell
    assert [layer.inputs for layer in network.layers if layer.name.startswith("cell:t0")] == [1, 7, 3]


def test_the_last_state_alone(tmp_path: Path) -> None:
    network = cell(tmp_path, "GRU", outputs=("", "last"))
    assert (network.opaque, network.macs) == ((), T * B * 3 * H * (N + H))
    assert network.operators[-1].shape == (1, B, H)


def test_lengths_that_are_computed(tmp_path: Path) -> None:
    """The number of steps, once for every image: Shape, Slice, Expand, Cast."""
    cell(tmp_path, "RNN", lengths=(T, T))
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
    network = cell(tmp_path, "LSTM", layout=1, state=True, outputs=("y", "last"))
    assert network.macs == T * B * 4 * H * (N + H)
    assert [o.shape for o in network.operators[-2:]] == [(B, T, 1, H), (B, 1, H)]


def test_lengths_that_are_the_whole(tmp_path: Path) -> None:
    assert cell(tmp_path, "RNN", lengths=(T, T)).opaque == ()


@pytest.mark.parametrize(
    ("op", "options", "said"),
    [
        ("RNN", {"lengths": (T, T - 1)}, "sequences of different lengths"),
        ("LSTM", {"peepholes": True}, "peepholes"),
    ],
)
def test_cells_that_stay_opaque_say_why_and_how_much(
    tmp_path: Path, op: str, options: dict[str, object], said: str
) -> None:
    network = cell(tmp_path, op, **options)
    (kept,) = network.opaque
    assert said in kept.reason
    assert (network.macs, kept.macs) == (0, T * B * GATES[op] * H * (N + H))
    assert [o.op for o in network.operators] == ["input", "opaque", "eltwise"]
    both = cell(tmp_path, op, outputs=("y", "last"), **options).opaque  # counted once, whatever is read of it
    assert [(o.macs, o.parameters) for o in both] == [(kept.macs, kept.parameters), (0, 0)]


def test_weights_of_another_size_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"weights of shape \(1, 4, 7\), \(1, 4, 3\) are needed"):
        cell(tmp_path, "RNN", columns=7)

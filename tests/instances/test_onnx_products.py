"""Operators of ONNX that become several of ours: every product is planned, none is invented."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.load import load_network
from instances.network.network import Network

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

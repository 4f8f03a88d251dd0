"""Attention of ONNX files: two products, and what lies between them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from instances.load import load_network
from instances.network.network import Network
from tests.onnx_models import model_of

Shape = tuple[int, ...]


def read(
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
    network = read(tmp_path, heads(3), mask=mask)
    assert network.opaque == ()
    assert [layer.macs for layer in network.layers] == [2 * 3 * 5 * 6 * 4, 2 * 3 * 5 * 6 * 3]
    assert (network.operators[-1].name, network.operators[-1].shape) == ("node", (2, 3, 5, 3))
    assert network.parameters == 0


def test_a_mask_that_is_computed_is_read(tmp_path: Path) -> None:
    network = read(tmp_path, {**heads(3), "mask": (2, 3, 5, 6)})
    assert [(layer.kind, layer.inputs) for layer in network.layers] == [("matmul", 1), ("eltwise", 2), ("matmul", 1)]


def test_heads_that_share_keys_are_rows_of_one_product(tmp_path: Path) -> None:
    network = read(tmp_path, heads(4, 2), mask=(5, 6))
    assert [(x.g, x.r, x.n, x.m) for x in network.layers] == [(4, 10, 4, 6), (4, 10, 6, 3)]
    assert network.operators[-1].shape == (2, 4, 5, 3)


def test_heads_beside_each_other_and_tokens_before(tmp_path: Path) -> None:
    """6 keys and 3 of before for 5 queries of two heads."""
    shapes = {"q": (2, 5, 8), "k": (2, 6, 8), "v": (2, 6, 6), "past_k": (2, 2, 3, 4), "past_v": (2, 2, 3, 3)}
    network = read(tmp_path, shapes, ("y", "k2", "v2"), q_num_heads=2, kv_num_heads=2)
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
    kept = read(tmp_path, shapes, outputs).opaque[0]
    assert said in kept.reason
    assert kept.macs == 2 * 3 * 5 * 6 * (4 + 3)

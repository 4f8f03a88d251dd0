"""Compulsory bytes counted a second time, element by element, from the loop that a layer stands for."""

from __future__ import annotations

import random
from functools import partial
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import compulsory_bytes, lower_bound_bytes, operand_bytes, tensor_bytes
from hwmodels.schedule import Hold, Nest
from instances.network.operators import Resample
from instances.network.workload import BROADCAST, Layer
from tests.small import byte_machine

#: Bytes of elements, all different, so that no operand is taken for another.
SIZES = {"in_bytes": 2, "w_bytes": 3, "out_bytes": 5, "bias_bytes": 7}


machine = partial(byte_machine, ocm_bytes=10**6, **{"psum_bytes": 4} | SIZES)


def touched(layer: Layer) -> dict[str, int]:
    """Different elements of every operand that the loop touches: those of IN over all inputs, no padding."""
    names = ("b", "g", "m", "n", "r", "c", "kh", "kw")
    b, g, m, n, r, c, i, j = np.indices([getattr(layer, name) for name in names]).reshape(8, -1)
    y = layer.stride_h * r + layer.dilation_h * i - layer.pad_top
    x = layer.stride_w * c + layer.dilation_w * j - layer.pad_left
    inside = (y >= 0) & (y < layer.h) & (x >= 0) & (x < layer.l)
    inputs = 0
    for lacks in layer.broadcast or ("",) * layer.inputs:
        at = {"b": b, "g": g, "n": n, "r": y, "c": x}
        inputs += different(*(np.zeros_like(v) if d in lacks else v for d, v in at.items()), where=inside)
    weights = 0 if layer.weights == "none" else different(g, m, n, i, j)
    return {"IN": inputs, "W": weights, "BIAS": layer.bias * different(g, m), "OUT": different(b, g, m, r, c)}


def different(*indices: NDArray[np.int64], where: NDArray[np.bool_] | None = None) -> int:
    """How many different tuples of indices there are."""
    table = np.stack(indices, axis=1)
    return len({tuple(row) for row in (table if where is None else table[where]).tolist()})


def some_conv(rng: random.Random) -> Layer:
    """A convolution: groups, batch, dilation, padding and strides that may leave rows and columns out."""
    groups = rng.choice((1, 1, 2, 3))
    while True:
        try:
            return Layer.conv(
                "x", channels=groups * rng.randint(1, 3), filters=groups * rng.randint(1, 3), groups=groups,
                size=(rng.randint(1, 7), rng.randint(1, 7)), kernel=(rng.randint(1, 3), rng.randint(1, 3)),
                stride=(rng.randint(1, 4), rng.randint(1, 4)), dilation=(rng.randint(1, 3), rng.randint(1, 3)),
                pad=(rng.randint(0, 2), rng.randint(0, 2), rng.randint(0, 2), rng.randint(0, 2)),
                batch=rng.choice((1, 1, 2)), bias=rng.random() < 0.5,
            )  # fmt: skip
        except ValueError:
            continue  # a window of padding only


def some_product(rng: random.Random) -> Layer:
    return Layer.matmul(
        "x", rows=rng.randint(1, 6), inner=rng.randint(1, 6), cols=rng.randint(1, 6), batch=rng.randint(1, 3),
        activation=rng.random() < 0.5, bias=rng.random() < 0.5,
    )  # fmt: skip


def some_pool(rng: random.Random) -> Layer:
    of = some_conv(rng)
    return of.model_copy(
        update={"kind": "pool", "g": rng.randint(1, 4), "m": 1, "n": 1, "weights": "none", "bias": False}
    )


def some_resample(rng: random.Random) -> Layer:
    """A map of another size: blocks of results from windows, or every result from neighbours of its own."""
    before = (rng.choice((1, 2)), rng.randint(1, 3), rng.randint(1, 12), rng.randint(1, 12))
    fn, size = rng.choice(("nearest", "linear", "cubic")), (rng.randint(1, 12), rng.randint(1, 12))
    return Resample.model_validate({"name": "x", "inputs": ("y",), "shape": (1,), "fn": fn, "size": size}).layer(
        [before]
    )


def some_sum(rng: random.Random) -> Layer:
    """A sum of one to three operands, some broadcast."""
    sizes = {d: rng.randint(1, 5) for d in BROADCAST}
    lacks = ["".join(d for d in BROADCAST if sizes[d] > 1 and rng.random() < 0.4) for _ in range(rng.randint(1, 3))]
    missing = [d for d in BROADCAST if all(d in one for one in lacks)]
    lacks[0] = "".join(d for d in lacks[0] if d not in missing)
    return Layer(
        name="x", kind="eltwise", b=sizes["b"], g=sizes["g"], m=1, n=1, r=sizes["r"], c=sizes["c"], h=sizes["r"],
        l=sizes["c"], inputs=len(lacks), broadcast=tuple(lacks) if any(lacks) else (), weights="none",
    )  # fmt: skip


MAKERS = (some_conv, some_conv, some_product, some_pool, some_resample, some_sum)


@pytest.mark.few(4)
@pytest.mark.parametrize("maker", MAKERS[1:])
def test_each_operand_is_what_the_loop_touches(maker: object) -> None:
    rng = random.Random(f"{maker.__name__}")
    for _ in range(80):
        layer = maker(rng)
        seen = touched(layer)
        wanted = {
            "IN": seen["IN"] * SIZES["in_bytes"],
            "W": seen["W"] * SIZES["w_bytes"] + seen["BIAS"] * SIZES["bias_bytes"],
            "OUT": seen["OUT"] * SIZES["out_bytes"],
        }  # fmt: skip
        if layer.weights == "none":
            del wanted["W"]
        assert tensor_bytes(layer, machine()) == wanted, layer
        assert compulsory_bytes(layer, machine()) == sum(wanted.values())


def test_a_few_by_hand() -> None:
    # three taps of dilation 2 over 6 rows, padding 1, stride 3: -1 1 3 and 2 4 6, so rows 1 to 4 of 2 channels
    layer = Layer.conv(
        "x", channels=2, filters=1, size=(6, 1), kernel=(3, 1), dilation=(2, 1), stride=(3, 1), pad=(1, 0, 1, 0)
    )
    assert (layer.r, touched(layer)) == (2, {"IN": 2 * 4, "W": 2 * 3, "BIAS": 0, "OUT": 2})
    # a gate of 1 x 1 for 2 images of 3 channels, 2 x 2: 24 of the map, 6 of the gate
    gate = Layer(
        name="x", kind="eltwise", b=2, g=3, m=1, n=1, r=2, c=2, h=2, l=2, inputs=2, broadcast=("", "rc"), weights="none"
    )
    assert touched(gate) == {"IN": 24 + 6, "W": 0, "BIAS": 0, "OUT": 24}


def test_copies_are_not_compulsory_and_nests_load_them() -> None:
    """Of 80 elements 16 are copies: 64 + 36 + 192 must move, and a nest that reads the map as it lies moves 16 more."""
    layer = Layer.conv("conv", channels=1, filters=4, size=(8, 10), kernel=(3, 3))
    padded = Layer.model_validate({**dict(layer), "copies": (16,)})
    on = machine(in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, bias_bytes=0)
    assert (compulsory_bytes(layer, on), compulsory_bytes(padded, on)) == (308, 292)
    assert operand_bytes(padded, on) == tensor_bytes(layer, on)
    once = price(padded, on, Nest((Hold("IN"), Hold("W"), Hold("OUT"))))
    assert once.bytes == 308


@pytest.mark.parametrize(
    ("copies", "said"),
    [((17,), "16"), ((-1,), "16"), ((1, 1), "16"), ((0, 65), "64"), ((0, 1, 0), "64")],
)
def test_copies_are_of_elements(copies: tuple[int, ...], said: str) -> None:
    layer = Layer.matmul("x", rows=4, inner=4, cols=16, activation=said == "64")
    with pytest.raises(ValueError, match=f"operands that are no constants have .*{said}"):
        Layer.model_validate({**dict(layer), "copies": copies})


def test_no_nest_that_leaves_copies_out_moves_less() -> None:
    """A product of a 30 x 30 matrix with itself, 20 bytes on chip: the bound of phases is for other elements only.

    With all of W copies of IN no MAC is left for the phases, so what must move is IN and OUT once.
    """
    layer = Layer.matmul("x", rows=30, inner=30, cols=30, activation=True)
    on = machine(in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=20)
    assert lower_bound_bytes(layer, on) > 3 * 900
    itself = Layer.model_validate({**dict(layer), "copies": (0, 900)})
    assert lower_bound_bytes(itself, on) == 2 * 900
    # 30 copies take 900 MACs out of 27,000: 30 less to load, and a bound of phases for 26,100 MACs
    part = Layer.model_validate({**dict(layer), "copies": (30, 0)})
    assert 2 * 900 + 870 < lower_bound_bytes(part, on) <= lower_bound_bytes(layer, on) - 30


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(3))
def test_all_on_chip_moves_what_lies_off_the_chip(seed: int) -> None:
    """Everything held once: what the nest loads are whole tiles, never less than what must move."""
    rng = random.Random(seed)
    for _ in range(20):
        layer = rng.choice(MAKERS)(rng)
        sizes = [layer.input_elements(k) for k in range(layer.inputs)]
        sizes += [layer.weight_elements] * (layer.weights == "activation")
        copied = Layer.model_validate({**dict(layer), "copies": tuple(rng.randint(0, size) for size in sizes)})
        moved = price(copied, machine(), Nest(tuple(Hold(one) for one in copied.operands)))
        assert lower_bound_bytes(copied, machine()) <= compulsory_bytes(layer, machine()) <= moved.bytes
        assert (
            compulsory_bytes(copied, machine()) >= layer.b * layer.g * layer.m * layer.r * layer.c * SIZES["out_bytes"]
        )
        assert prod(sizes) >= 1

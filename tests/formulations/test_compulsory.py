"""What must move: weights once, results once, of inputs what some result depends on. Values by hand."""

from __future__ import annotations

import pytest

from formulations.compulsory import compulsory_bytes
from formulations.fusion.groups import Net
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, MatMul, Opaque, Operator, Reshape
from instances.network.stores import stores
from solver import solve


def machine(**fields: int) -> Machine:
    return Machine.model_validate({
        "name": "m", "tick_ps": 1, "ocm_bytes": 100_000, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 1,
        "transfer": {"byte_ticks": 1}, "byte_fj": 1, "mac_fj": 1, **fields,
    })  # fmt: skip


def conv(name: str, source: str, shape: tuple[int, ...], kernel: int = 1, **fields: object) -> Conv:
    return Conv.model_validate(
        {"name": name, "inputs": (source,), "shape": shape, "filters": shape[1], "kernel": (kernel, kernel), **fields}
    )


def same(name: str, source: str, **fields: object) -> Conv:
    """A 1x1 convolution of 4 channels on 8x8."""
    return conv(name, source, (1, 4, 8, 8), **fields)


X = Input(name="x", shape=(1, 4, 8, 8))
RELU = Eltwise(name="r", inputs=("x",), shape=(1, 4, 8, 8), fn="relu")
#: By kind: operators, and what must move: weights + what comes in + what goes out.
KINDS: dict[str, tuple[list[Operator], int]] = {
    "one layer": ([X, same("a", "x")], 16 + 256 + 256),
    "weights of two readers": ([X, same("a", "x"), same("b", "a", weights_of="a")], 16 + 256 + 256),
    "weights of two readers, biases of their own": (
        [X, same("a", "x", bias=True), same("b", "a", bias=True, weights_of="a", own_bias=True)], 16 + 2 * 4 * 5 + 512,
    ),
    "weights and biases of two readers": (
        [X, same("a", "x", bias=True), same("b", "a", bias=True, weights_of="a")], 16 + 4 * 5 + 512,
    ),
    "weights of a chain of readers, biases of the last two": (
        [X, same("a", "x", bias=True), same("b", "a", bias=True, weights_of="a", own_bias=True),
         same("c", "b", bias=True, weights_of="b")], 16 + 2 * 4 * 5 + 512,
    ),
    "every other pixel": ([X, conv("a", "x", (1, 4, 4, 4), stride=(2, 2))], 16 + 64 + 64),
    "every other pixel, through a layer": (
        [X, same("a", "x"), conv("b", "a", (1, 4, 4, 4), stride=(2, 2))], 32 + 64 + 64,
    ),
    "a map that is a result, too, is made whole": (
        [X, same("a", "x"), conv("b", "a", (1, 4, 4, 4), stride=(2, 2)),
         Reshape(name="a (result)", inputs=("a",), shape=(1, 4, 8, 8), fn="identity")], 32 + 256 + 256 + 64,
    ),
    "a column of copies on each side, then moved": (
        [X, Reshape(name="p", inputs=("x",), shape=(1, 4, 8, 10), fn="pad"),
         Reshape(name="q", inputs=("p",), shape=(1, 4, 10, 8)), conv("a", "q", (1, 4, 10, 8))], 16 + 256 + 320,
    ),
    "channels of zeros": (
        [X, Reshape(name="p", inputs=("x",), shape=(1, 6, 8, 8), fn="pad"), same("a", "p")], 24 + 256 + 256,
    ),
    "padded twice, and cut": (
        [X, Reshape(name="p", inputs=("x",), shape=(1, 6, 8, 8), fn="pad"),
         Reshape(name="q", inputs=("p",), shape=(1, 6, 9, 8), fn="pad"),
         # of 432 elements 176 are zeros; of 384 that are left at least 384 - 176 are of x
         Reshape(name="s", inputs=("q",), shape=(1, 6, 8, 8), fn="slice"), same("a", "s")], 24 + 208 + 256,
    ),
    "half of the input": (
        [X, Reshape(name="s", inputs=("x",), shape=(1, 2, 8, 8), fn="slice"), same("a", "s")], 8 + 128 + 256,
    ),
    "an input beside what is made of it": (
        [X, same("a", "x"), Concat(name="j", inputs=("x", "a"), shape=(1, 8, 8, 8)), same("b", "j")], 16 + 32 + 512,
    ),
    "an input beside its ReLU": (
        [X, RELU, Concat(name="j", inputs=("x", "r"), shape=(1, 8, 8, 8)), same("b", "j")], 32 + 256 + 256,
    ),
    "two layers that read other pixels": (
        [X, RELU, conv("a", "x", (1, 4, 4, 4), stride=(2, 2)), conv("b", "r", (1, 4, 3, 3), kernel=2, stride=(3, 3))],
        # rows 0 2 4 6, and 0 1 3 4 6 7: pixels 16 + 36 - 16 (0 4 6 in both axes are in both: 9)
        16 + 64 + 4 * (16 + 36 - 9) + 64 + 36,
    ),
    "zeros": (
        [Input(name="z", shape=(6, 4), zeros=True), Input(name="y", shape=(6, 4)),
         MatMul(name="a", inputs=("z",), shape=(6, 4), out_features=4),
         Eltwise(name="s", inputs=("a", "y"), shape=(6, 4), fn="add")], 16 + 24 + 24,
    ),
    "a right operand that two products read": (
        [Input(name="y", shape=(6, 4)), Input(name="w", shape=(4, 4)),
         MatMul(name="a", inputs=("y", "w"), shape=(6, 4)),
         MatMul(name="b", inputs=("a", "w"), shape=(6, 4), transpose_b=True)], 24 + 16 + 24,
    ),
    "a map times itself": (
        [Input(name="y", shape=(6, 4)), MatMul(name="a", inputs=("y", "y"), shape=(6, 6), transpose_b=True)], 24 + 36,
    ),
    "a right operand that a layer makes": (
        [Input(name="y", shape=(6, 4)), MatMul(name="k", inputs=("y",), shape=(6, 4), out_features=4),
         MatMul(name="a", inputs=("y", "k"), shape=(6, 6), transpose_b=True)], 24 + 16 + 36,
    ),
    "what an operator without a plan makes": (
        [X, Opaque(name="o", inputs=("x",), shape=(1, 4, 8, 8), kind="Odd"), same("a", "o")], 16 + 256 + 256,
    ),
    "an input that nobody reads": ([X, Input(name="y", shape=(9,)), same("a", "x")], 16 + 256 + 256),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_must_move(kind: str) -> None:
    operators, wanted = KINDS[kind]
    network, on = Network(name="n", operators=tuple(operators)), machine(bias_bytes=5)
    assert compulsory_bytes(stores(network), on) == wanted
    assert compulsory_bytes(Net.read(network, on), on) == wanted  # what problem fusion asks


def test_bytes_of_elements() -> None:
    operators, _ = KINDS["weights of two readers"]
    on = machine(in_bytes=2, w_bytes=3, out_bytes=7)
    assert compulsory_bytes(stores(Network(name="n", operators=tuple(operators))), on) == 3 * 16 + 2 * 256 + 7 * 256


@pytest.mark.slow(2)
def test_joint_says_what_fusion_says() -> None:
    """A 1x1 convolution with stride 2 behind one that reads all: what nobody reads is left out of what must."""
    network = Network(name="n", operators=tuple(KINDS["every other pixel, through a layer"][0]))
    for problem in ("joint", "fusion"):
        plan = solve(network, machine(), problem=problem)
        assert (plan.status, plan.part.must["bytes"]) == ("OPTIMAL", 32 + 64 + 64)
    assert solve(network, machine(), problem="joint").objective.value == 32 + 256 + 64  # its layers make whole maps

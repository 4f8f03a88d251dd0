"""What must move, counted element by element behind pads, slices and concatenations: a layer by itself, and a network.

Every element of what comes from outside has a number, copies have that of what they are copied from, padding has 0.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from formulations.compulsory import compulsory_bytes
from formulations.fusion.groups import Net
from hwmodels.nest.price import limits
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, MatMul, Opaque, Operator, Pool, Reshape
from instances.network.stores import stores
from solver import solve
from tests.effort import tries
from tests.small import byte_machine

ON = Machine.model_validate({
    "name": "m", "tick_ps": 1, "ocm_bytes": 100_000, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 1,
    "transfer": {"byte_ticks": 1},
})  # fmt: skip
Ids = NDArray[np.int64]


@dataclass
class Made:
    """Operators, and the numbers of the elements of each."""

    operators: list[Operator] = field(default_factory=list)
    ids: dict[str, Ids] = field(default_factory=dict)

    def add(self, operator: Operator, ids: Ids) -> str:
        assert operator.shape == ids.shape
        self.operators.append(operator)
        self.ids[operator.name] = ids
        return operator.name

    def input(self, *shape: int, zeros: bool = False) -> str:
        name, first = f"x{len(self.operators)}", 1 + sum(ids.size for ids in self.ids.values())
        ids = np.zeros(shape, np.int64) if zeros else np.arange(first, first + np.prod(shape)).reshape(shape)
        return self.add(Input(name=name, shape=shape, zeros=zeros), ids)

    def move(self, source: str, fn: str, ids: Ids) -> str:
        name = f"{fn}{len(self.operators)}"
        return self.add(Reshape.model_validate({"name": name, "inputs": (source,), "shape": ids.shape, "fn": fn}), ids)

    def pad(self, source: str, mode: str, *axes: tuple[int, int]) -> str:
        return self.move(source, "pad", np.pad(self.ids[source], axes, mode))

    def join(self, *sources: str, axis: int = 1) -> str:
        ids = np.concatenate([self.ids[name] for name in sources], axis)
        return self.add(Concat(name=f"j{len(self.operators)}", inputs=sources, shape=ids.shape, axis=axis), ids)

    def layer(self, operator: Operator) -> Network:
        self.operators.append(operator)
        return Network(name="n", operators=tuple(self.operators))

    def conv(self, source: str, kernel: tuple[int, int], stride: tuple[int, int] = (1, 1), pads: int = 0) -> Network:
        b, _, h, w = self.ids[source].shape
        r, c = ((n + 2 * pads - k) // s + 1 for n, k, s in zip((h, w), kernel, stride, strict=True))
        return self.layer(Conv(
            name="c", inputs=(source,), shape=(b, 2, r, c), filters=2, kernel=kernel, stride=stride, pad=(pads,) * 4,
        ))  # fmt: skip

    def seen(self, source: str, kernel: tuple[int, int], stride: tuple[int, int] = (1, 1), pads: int = 0) -> int:
        """Elements that windows over the result of an operator see, walked."""
        ids = np.pad(self.ids[source], ((0, 0), (0, 0), (pads, pads), (pads, pads)))
        found: set[int] = set()
        for y in range(0, ids.shape[2] - kernel[0] + 1, stride[0]):
            for x in range(0, ids.shape[3] - kernel[1] + 1, stride[1]):
                found |= set(ids[:, :, y : y + kernel[0], x : x + kernel[1]].ravel().tolist())
        return len(found - {0})


def must(network: Network) -> tuple[int, int]:
    """Of its one layer by itself, and of the network."""
    (layer,) = network.layers
    return limits.compulsory_bytes(layer, ON), compulsory_bytes(stores(network), ON)


def weights(network: Network) -> int:
    (layer,) = network.layers
    return layer.parameters + layer.b * layer.g * layer.m * layer.r * layer.c


@pytest.mark.parametrize("kind", range(15))
def test_elements_behind_what_moves_them(kind: int) -> None:
    """Windows that see all that there is: equal to the count by walking, whatever pads, cuts, joins and turns."""
    of = Made()
    x = of.input(1, 3, 6, 6)
    columns, rows, channels = (
        ((0, 0),) * 3 + ((1, 1),),
        ((0, 0),) * 2 + ((2, 1), (0, 0)),
        ((0, 0), (0, 2), *((0, 0),) * 2),
    )
    half = of.ids[x][:, :, :3]
    source = [
        lambda: of.pad(x, "reflect", *columns), lambda: of.pad(x, "edge", *rows),
        lambda: of.pad(x, "constant", *channels), lambda: of.pad(of.pad(x, "reflect", *columns), "constant", *rows),
        lambda: of.move(x, "slice", half), lambda: of.pad(of.move(x, "slice", half), "reflect", *columns),
        lambda: of.join(x, of.input(1, 2, 6, 6)), lambda: of.join(x, x),
        lambda: of.join(x, of.input(1, 1, 6, 6, zeros=True)),
        lambda: of.join(of.pad(x, "wrap", *columns), of.input(1, 2, 6, 8)), lambda: of.input(1, 3, 6, 6, zeros=True),
        lambda: of.join(x, of.add(Eltwise(name="r", inputs=(x,), shape=(1, 3, 6, 6), fn="relu"), of.ids[x])),
        lambda: of.join(x, of.input(1, 3, 6, 6), axis=2), lambda: of.join(x, x, axis=3),
        lambda: of.move(of.pad(x, "edge", *columns), "reshape", np.pad(of.ids[x], columns, "edge").reshape(1, 3, 8, 6)),
    ][kind]()  # fmt: skip
    network = of.conv(source, (3, 3), pads=1)
    right = of.seen(source, (3, 3), pads=1) + weights(network)
    assert must(network) == (right, right)


def test_pixels_that_nobody_reads_behind_a_concatenation() -> None:
    """Every other pixel of 6 x 6, of 3 and of 2 channels: 9 pixels of each."""
    of = Made()
    source = of.join(of.input(1, 3, 6, 6), of.input(1, 2, 6, 6))
    network = of.conv(source, (1, 1), (2, 2))
    assert of.seen(source, (1, 1), (2, 2)) == 9 * 5
    assert must(network) == (45 + weights(network),) * 2


@pytest.mark.parametrize("seed", range(tries(15, 60)))
def test_no_more_than_what_is_seen(seed: int) -> None:
    """Pads, cuts and joins at random before windows that may step over rows: never above the count by walking."""
    rng, of = random.Random(seed), Made()
    source = of.input(rng.choice((1, 2)), rng.randint(1, 3), rng.randint(3, 7), rng.randint(3, 7))
    for _ in range(rng.randint(0, 3)):
        ids, kind = of.ids[source], rng.randrange(4)
        if kind == 0:
            axes = [(0, 0), (0, rng.randint(0, 1)), *((rng.randint(0, 2), rng.randint(0, 2)) for _ in range(2))]
            source = of.pad(source, rng.choice(("constant", "edge", "wrap")), *axes)
        elif kind == 1 and ids.shape[2] > 3:
            source = of.move(source, "slice", ids[:, :, rng.randint(0, 1) :])
        elif kind == 2:
            other = rng.choice([name for name in of.ids if of.ids[name].shape == ids.shape] or [source])
            source = of.join(source, other, axis=rng.choice((1, 1, 2, 3)))
        else:
            source = of.join(source, of.input(*ids.shape), axis=rng.choice((1, 1, 2)))
    kernel = rng.choice(((1, 1), (2, 3), (3, 3)))
    stride = rng.choice(((1, 1), (1, 1), (2, 2), (3, 1)))
    network = of.conv(source, kernel, stride)
    alone, whole = must(network)
    right = of.seen(source, kernel, stride) + weights(network)
    assert alone <= right
    assert whole <= right
    if stride == (1, 1):
        assert alone == whole == right or "slice" in " ".join(of.ids)


#: Operators with their operands, and elements that must be read: by hand.
PRODUCTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Callable[[str, str], Operator], int]] = {
    "a matrix times itself, turned": ((6, 4), (), lambda x, _: MatMul(
        name="c", inputs=(x, x), shape=(6, 6), transpose_b=True), 24),
    "a map that is added to itself": ((1, 3, 2, 2), (), lambda x, _: Eltwise(
        name="c", inputs=(x, x), shape=(1, 3, 2, 2), fn="add"), 12),
    "a map times itself and another": ((1, 3, 2, 2), (1, 3, 2, 2), lambda x, y: Eltwise(
        name="c", inputs=(x, y, x), shape=(1, 3, 2, 2), fn="add"), 24),
    "one left matrix for eight": ((1, 4, 4), (8, 4, 2), lambda x, y: MatMul(
        name="c", inputs=(x, y), shape=(8, 4, 2)), 16 + 64),
    "one right matrix for eight": ((8, 4, 4), (1, 4, 2), lambda x, y: MatMul(
        name="c", inputs=(x, y), shape=(8, 4, 2)), 128 + 8),
    "a gate": ((1, 3, 2, 2), (1, 3, 1, 1), lambda x, y: Eltwise(
        name="c", inputs=(x, y), shape=(1, 3, 2, 2), fn="mul"), 12 + 3),
    "rows that windows step over": ((1, 3, 7, 7), (), lambda x, _: Pool(
        name="c", inputs=(x,), shape=(1, 3, 2, 2), fn="max", kernel=(2, 2), stride=(3, 3)), 3 * 16),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_operands_that_are_one_tensor(name: str) -> None:
    first, second, operator, right = PRODUCTS[name]
    of = Made()
    x = of.input(*first)
    y = of.input(*second) if second else ""
    network = of.layer(operator(x, y))
    assert must(network) == (right + weights(network),) * 2


def test_tiling_says_what_joint_and_fusion_say() -> None:
    """8 x 8, a column of copies on each side, seen as 10 x 8: 36 + 64 + 192, and 16 more are loaded."""
    of = Made()
    x = of.input(1, 1, 8, 8)
    padded = of.pad(x, "reflect", (0, 0), (0, 0), (0, 0), (1, 1))
    moved = of.move(padded, "reshape", of.ids[padded].reshape(1, 1, 10, 8))
    network = of.layer(Conv(name="c", inputs=(moved,), shape=(1, 4, 8, 6), filters=4, kernel=(3, 3)))
    tiling = solve(network, ON, objective="bytes")
    (row,) = tiling.layers
    assert tiling.objective.value == tiling.bound == 308
    assert row.part.must["bytes"] == row.lower_bound_bytes == 292
    joint = solve(network, ON, problem="joint")
    assert (joint.objective.value, joint.part.must["bytes"]) == (308, 292)


def test_a_pad_between_two_layers_counts_nothing_for_either() -> None:
    """Layers of 2 filters on 4 x 4; a column of zeros on each side is no element."""
    of = Made()
    x = of.input(1, 2, 4, 4)
    of.operators.append(Conv(name="a", inputs=(x,), shape=(1, 2, 4, 4), filters=2, kernel=(1, 1)))
    of.operators.append(Reshape(name="p", inputs=("a",), shape=(1, 2, 4, 6), fn="pad"))
    network = of.layer(Conv(name="b", inputs=("p",), shape=(1, 2, 4, 6), filters=2, kernel=(1, 1)))
    assert [limits.compulsory_bytes(layer, ON) for layer in network.layers] == [32 + 4 + 32, 32 + 4 + 48]
    assert [layer.copies for layer in network.layers] == [(), (16,)]


def cut(of: Made, source: str, *axes: slice) -> str:
    """A slice that says where it lies."""
    ids = of.ids[source]
    whole = [axis.indices(size) for axis, size in zip(axes, ids.shape, strict=True)]
    operator = Reshape(
        name=f"s{len(of.operators)}", inputs=(source,), shape=ids[axes].shape, fn="slice",
        starts=tuple(first for first, _, _ in whole), steps=tuple(step for _, _, step in whole),
    )  # fmt: skip
    return of.add(operator, ids[axes])


ALL = slice(None)
#: Pairs of slices of 1 x 4 x 6 x 6 that are multiplied, and whether they are known to lie apart.
PAIRS = {
    "halves of the channels": ((ALL, slice(0, 2), ALL, ALL), (ALL, slice(2, 4), ALL, ALL), True),
    "the same half": ((ALL, slice(0, 2), ALL, ALL), (ALL, slice(0, 2), ALL, ALL), False),
    "halves that overlap": ((ALL, slice(0, 2), ALL, ALL), (ALL, slice(1, 3), ALL, ALL), False),
    "rows above and below": ((ALL, ALL, slice(0, 3), ALL), (ALL, ALL, slice(3, 6), ALL), True),
    "even and odd rows": ((ALL, ALL, slice(0, 6, 2), ALL), (ALL, ALL, slice(1, 6, 2), ALL), True),
    "every second and every third": ((ALL, ALL, ALL, slice(0, 4, 2)), (ALL, ALL, ALL, slice(1, 6, 3)), False),
    "corners": ((ALL, ALL, slice(0, 3), slice(0, 3)), (ALL, ALL, slice(3, 6), slice(3, 6)), True),
}


@pytest.mark.parametrize("name", PAIRS)
def test_slices_of_one_map(name: str) -> None:
    of = Made()
    x = of.input(1, 4, 6, 6)
    one, two, known = PAIRS[name]
    pair = cut(of, x, *one), cut(of, x, *two)
    network = of.layer(Eltwise(name="c", inputs=pair, shape=of.ids[pair[0]].shape, fn="mul"))
    ids = [of.ids[source] for source in pair]
    right = len(set(ids[0].ravel().tolist()) | set(ids[1].ravel().tolist()))
    must_be = right if known else ids[0].size
    assert must_be <= right
    assert must(network) == (must_be + weights(network),) * 2


def test_gates_of_steps_are_cut_twice() -> None:
    """Of 2 steps of 8 features two halves of each: slices of slices, 16 elements."""
    of = Made()
    x = of.input(2, 1, 8)
    steps = [cut(of, x, slice(k, k + 1), ALL, ALL) for k in (0, 1)]
    rows = [of.move(name, "reshape", of.ids[name].reshape(1, 8)) for name in steps]
    gates = tuple(cut(of, name, ALL, slice(k, k + 4)) for name in rows for k in (0, 4))
    network = of.layer(Eltwise(name="c", inputs=gates, shape=(1, 4), fn="add"))
    assert must(network) == (16 + 4, 16 + 4)


def test_halves_of_what_holds_a_map_twice_are_the_same_elements() -> None:
    of = Made()
    x = of.input(1, 2, 3, 3)
    twice = of.join(x, x)
    pair = cut(of, twice, ALL, slice(0, 2), ALL, ALL), cut(of, twice, ALL, slice(2, 4), ALL, ALL)
    network = of.layer(Eltwise(name="c", inputs=pair, shape=(1, 2, 3, 3), fn="mul"))
    assert all(one <= 18 + 18 for one in must(network))


@pytest.mark.parametrize("first", [0, 2, 3])
def test_half_of_two_maps_that_are_joined(first: int) -> None:
    """Channels are shuffled and split: a half holds as many elements, of whichever map; both halves hold all."""
    of = Made()
    both = of.join(of.input(1, 3, 2, 2), of.input(1, 3, 2, 2))
    turned = of.move(both, "transpose", of.ids[both].transpose(0, 1, 3, 2))
    network = of.conv(cut(of, turned, ALL, slice(first, first + 3), ALL, ALL), (1, 1))
    assert must(network) == (12 + weights(network),) * 2
    pair = cut(of, turned, ALL, slice(0, 3), ALL, ALL), cut(of, turned, ALL, slice(3, 6), ALL, ALL)
    of.operators.pop(-3)
    network = of.layer(Eltwise(name="e", inputs=pair, shape=(1, 3, 2, 2), fn="mul"))
    assert must(network) == (24 + weights(network),) * 2


def test_a_map_and_a_slice_of_it_are_one_tensor() -> None:
    of = Made()
    x = of.input(1, 3, 2, 2)
    both = of.join(x, of.input(1, 3, 2, 2))
    network = of.layer(
        Eltwise(name="c", inputs=(x, cut(of, both, ALL, slice(0, 3), ALL, ALL)), shape=(1, 3, 2, 2), fn="add")
    )
    assert must(network) == (12 + 12, 12 + 12)


def test_slices_that_are_joined_again() -> None:
    """Blocks of 2 x 2 as channels, and halves of the channels in turn: every element once."""
    of = Made()
    x = of.input(1, 3, 6, 6)
    phases = [cut(of, x, ALL, ALL, slice(i, 6, 2), slice(j, 6, 2)) for i in (0, 1) for j in (0, 1)]
    network = of.conv(of.join(*phases), (1, 1))
    assert must(network) == (108 + weights(network),) * 2
    of = Made()
    x = of.input(1, 4, 6, 6)
    network = of.conv(of.join(*(cut(of, x, ALL, slice(k, k + 2), ALL, ALL) for k in (2, 0))), (1, 1), (2, 2))
    assert must(network) == (9 * 4 + weights(network),) * 2


@pytest.mark.parametrize(
    "fields",
    [
        {"starts": (0, 3, 0, 0)}, {"starts": (0, 0)}, {"steps": (1, 1, 1, 1)},
        {"starts": (0, 0, 0, 0), "steps": (1, 4, 1, 1)},
        {"starts": (0, 0, 0, 0), "fn": "reshape", "shape": (1, 4, 3, 3)},
    ],
)  # fmt: skip
def test_a_slice_lies_in_what_it_is_cut_from(fields: dict[str, object]) -> None:
    operator = Reshape.model_validate({"name": "s", "inputs": ("x",), "shape": (1, 2, 3, 3), "fn": "slice", **fields})
    with pytest.raises(ValueError, match=r"no part of 4|for every axis"):
        operator.infer([(1, 4, 3, 3)])


# ---- What must move: weights once, results once, of inputs what some result depends on. Values by hand ---------------


machine = partial(byte_machine, ocm_bytes=100_000, byte_fj=1, mac_fj=1)


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
    "windows that leave out rows and columns": (
        # rows -2 0, 1 3, 4 6, 7 9, and columns -1 2, 1 4, 3 6, 5 8: six of each
        [X, conv("a", "x", (1, 4, 4, 4), kernel=2, stride=(3, 2), dilation=(2, 3), pad=(2, 1, 2, 2))], 64 + 4 * 36 + 64,
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


def test_joint_says_what_fusion_says() -> None:
    """A 1x1 convolution with stride 2 behind one that reads all: what nobody reads is left out of what must."""
    network = Network(name="n", operators=tuple(KINDS["every other pixel, through a layer"][0]))
    for problem in ("joint", "fusion"):
        plan = solve(network, machine(), problem=problem)
        assert (plan.status, plan.part.must["bytes"]) == ("OPTIMAL", 32 + 64 + 64)
    assert solve(network, machine(), problem="joint").objective.value == 32 + 256 + 64  # its layers make whole maps

"""Maps in whole blocks of channels: what is stored and moved, counted address by address, and what has no blocks."""

from __future__ import annotations

import random
from functools import partial
from itertools import product
from typing import Any

import pytest

from hwmodels.blocks import broken_blocks
from instances.errors import InputError
from instances.jsonfile import list_networks
from instances.load import load_network
from instances.machine.machine import Machine
from instances.network.blocks import in_blocks
from instances.network.network import Network
from instances.network.workload import Layer
from instances.zoo.builder import Builder
from solver import check, solve
from solver.uses.mappings.price import price
from tests.effort import tries

#: Without prices: bytes alone count, and there is room for all.
ROOMY = Machine(
    name="roomy", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=4, ocm_bytes=10**6,
    transfer={"byte_ticks": 1}, channel_block=4,
)  # fmt: skip


def addresses(batch: int, channels: int, rows: int, columns: int, block: int) -> int:
    """Elements of a map as NC1HWC0 stores it: every address that a block with a channel in it has."""
    return len({
        (b, c // block, r, x, k)
        for b, c, r, x in product(range(batch), range(channels), range(rows), range(columns))
        for k in range(block)
    })  # fmt: skip


@pytest.mark.parametrize("block", [1, 4, 16])
@pytest.mark.parametrize("channels", [3, 16, 17])
def test_maps_are_stored_as_nc1hwc0_does(channels: int, block: int) -> None:
    """A convolution of an image, one depthwise, one of 1 x 1, a sum, a concatenation and a mean."""
    net = Builder("x", "x")
    x = net.conv(net.input(2, 3, 5, 4), "first", channels, 3)
    y = net.conv(x, "depthwise", channels, 3, groups=channels)
    z = net.eltwise("add", (y, net.conv(x, "point", channels, 1)), "sum")
    z = net.concat((z, net.conv(z, "more", 6, 1)), "both")
    net.fc(net.flatten(net.global_avg(z, "mean")), "out", 10)
    plain = net.build()
    made = in_blocks(plain, block)
    for before, after in zip(plain.operators, made.operators, strict=True):
        if before.name in ("both", "mean") or len(before.shape) == 2:
            continue  # of two maps, each in blocks of its own
        sizes = before.shape
        outside = before.op == "input" and sizes[1] < block
        stored = addresses(sizes[0], sizes[1], sizes[2], sizes[3], 1 if outside else block)
        assert stored == after.shape[0] * after.shape[1] * after.shape[2] * after.shape[3], before.name
    parts = -(-channels // block) * block + -(-6 // block) * block
    assert made.operator("both").shape[1] == parts
    assert made.operator("out").shape == (2, -(-10 // block) * block)
    assert not [*broken_blocks(made, block)]
    assert in_blocks(made, block) == made


@pytest.mark.parametrize(
    ("layer", "read", "weights", "made"),
    [
        # 5 channels are two blocks of 4, 6 filters two: 8 * 9 pixels, 8 * 8 * 9 weights, 8 * 9 results
        (Layer.conv("x", channels=5, filters=6, size=(3, 3), kernel=(3, 3), pad=(1, 1, 1, 1)), 72, 576, 72),
        # an image of 3 channels is read as it is
        (Layer.conv("x", channels=3, filters=6, size=(3, 3)), 27, 24, 72),
        (Layer.conv("x", channels=6, filters=6, groups=6, size=(3, 3)), 72, 8, 72),
        (Layer.matmul("x", rows=2, inner=5, cols=3), 16, 32, 8),
    ],
)
def test_what_a_layer_moves_by_hand(layer: Layer, read: int, weights: int, made: int) -> None:
    plan = solve(layer, ROOMY, objective="bytes")
    assert plan.status == "OPTIMAL"
    assert plan.measures["bytes"] == read + weights + made
    assert check(plan).ok


def test_a_network_moves_blocks_between_layers() -> None:
    """5 channels of 9 pixels stay on chip as 8; image and result move: 27 + weights 24 + 64 + results 8 * 9."""
    net = Builder("x", "x")
    net.conv(net.conv(net.input(1, 3, 3, 3), "a", 5, 1, batch_norm=False), "b", 6, 1, batch_norm=False)
    plan = solve(net.build(), ROOMY, problem="fusion", objective="bytes")
    assert plan.measures["bytes"] == 27 + 24 + 64 + 72
    assert check(plan).ok
    assert plan.measures["macs"] == 9 * (3 * 8 + 8 * 8)


@pytest.mark.parametrize("problem", ["tiling", "slicing", "joint", "fusion", "levels", "mesh"])
def test_every_problem_plans_what_its_shapes_say(problem: str) -> None:
    """With blocks as without them, of the network that has whole blocks already."""
    machine = {"levels": "dram_l2_l1", "mesh": "vectormesh_128", "slicing": "nmp"}.get(problem, "scratchpad_24k")
    net = Builder("x", "x")
    net.conv(net.conv(net.input(1, 3, 4, 4), "a", 5, 1, batch_norm=False), "b", 6, 1, batch_norm=False)
    plain, objective = net.build(), "dram" if problem == "mesh" else "bytes"
    whole = in_blocks(plain, 8)
    asked = partial(solve, machine=machine, problem=problem, objective=objective, jobs=1)
    plan = asked(plain, settings=["channel_block=8"])
    assert plan.measures == asked(whole).measures
    assert plan.measures != asked(plain).measures
    assert check(plan).ok


def test_a_plan_of_other_channels_is_refused() -> None:
    """A plan of plain maps that says its machine has blocks of 4: price and replay agree, and it is refused."""
    net = Builder("x", "x")
    net.conv(net.conv(net.input(1, 3, 3, 3), "a", 5, 1, batch_norm=False), "b", 8, 1, batch_norm=False)
    plan = solve(net.build(), ROOMY.model_copy(update={"channel_block": 1}), problem="fusion", objective="bytes")
    said = check(plan.model_copy(update={"machine_data": ROOMY})).problems
    assert "map a has 5 channels, no whole blocks of 4" in said


def channels(network: Network, block: int) -> dict[str, int]:
    """Of the network in blocks the channels of every map."""
    made = in_blocks(network, block)
    assert not [*broken_blocks(made, block)]
    return {operator.name: operator.shape[1] for operator in made.operators}


def test_products_of_maps_have_no_blocks_and_what_is_tied_to_them() -> None:
    """BERT's heads are multiplied; what its feed-forward layers make between each other is in blocks."""
    found, before = channels(load_network("bert_base_encoder"), 5000), load_network("bert_base_encoder")
    made = in_blocks(before, 5000)
    assert made.operator("layer0.query").shape == before.operator("layer0.query").shape
    assert made.macs > before.macs
    assert found


def test_channels_that_are_moved_have_no_blocks() -> None:
    """Of ESPCN the 9 channels of the shuffle; the maps before are in blocks."""
    found = channels(load_network("espcn"), 48)
    assert {name: found[name] for name in ("conv1", "conv2", "conv3")} == {"conv1": 96, "conv2": 48, "conv3": 9}


def test_groups_that_end_inside_a_block_have_none() -> None:
    """AlexNet's second layer has two groups of 48 channels, its third one has one group."""
    net = Builder("x", "x")
    x = net.conv(net.conv(net.input(1, 16, 4, 4), "a", 6, 1), "b", 6, 1, groups=2)
    net.conv(net.conv(x, "c", 6, 1), "d", 6, 1)
    found = channels(net.build(), 4)
    assert {name: found[name] for name in "abcd"} == {"a": 6, "b": 6, "c": 8, "d": 8}


def test_images_have_none_and_what_they_are_joined_with() -> None:
    net = Builder("x", "x")
    x = net.input(1, 3, 4, 4)
    y = net.conv(net.concat((x, net.conv(x, "a", 5, 1)), "both"), "b", 5, 1)
    net.fc(net.flatten(net.pool(y, "p", "max", 2)), "out", 9)
    found = channels(net.build(), 8)
    assert {name: found[name] for name in ("a", "both", "b", "p", "out")} == {
        "a": 5,
        "both": 8,
        "b": 8,
        "p": 8,
        "out": 16,
    }


def test_a_joined_map_that_is_moved_has_none() -> None:
    """12 and 4 channels are 16 together, which are whole blocks; the parts are none, and a slice begins in one."""
    net = Builder("x", "x")
    x = net.input(1, 16, 4, 4)
    both = net.concat((net.conv(x, "a", 12, 1), net.conv(x, "b", 4, 1)), "both")
    net.reshape(both, "part", (1, 8, 4, 4), "slice")
    found = channels(net.build(), 16)
    assert {name: found[name] for name in ("a", "b", "both", "part")} == {"a": 12, "b": 4, "both": 16, "part": 8}


def test_sums_of_maps_with_their_zeros_in_other_places_have_none() -> None:
    """5 and 3 channels would be joined to 12, where 8 made whole stay 8; what reads the sum makes whole blocks."""
    net = Builder("x", "x")
    x = net.input(1, 4, 4, 4)
    joined = net.concat((net.conv(x, "a", 5, 1), net.conv(x, "b", 3, 1)), "both")
    net.conv(net.eltwise("add", (joined, net.conv(x, "c", 8, 1)), "sum"), "d", 5, 1)
    found = channels(net.build(), 4)
    assert [found[name] for name in ("a", "b", "both", "c", "sum", "d")] == [5, 3, 8, 8, 8, 8]


@pytest.mark.slow(9)
@pytest.mark.parametrize("name", list_networks())
def test_bundled_networks(name: str) -> None:
    """Whole blocks wherever nothing forbids them; a second time changes nothing."""
    network = load_network(name)
    for block in (8, 16, 32):
        made = in_blocks(network, block)
        assert not [*broken_blocks(made, block)]
        assert in_blocks(made, block) == made
        assert made.macs >= network.macs


def test_mappings_are_of_layers_as_they_are() -> None:
    layer = Layer.conv("x", channels=5, filters=8, size=(3, 3))
    with pytest.raises(InputError, match="machine roomy: has channels in blocks of 4; mappings are of layers as"):
        price(layer, ROOMY, "IN W OUT")


def drawn(rng: random.Random) -> Network:
    """A network of a few operators of all kinds that read and make channels."""
    net = Builder("x", "x")
    maps = [net.input(1, rng.randint(1, 9), 4, 4, name=f"in{k}") for k in range(rng.randint(1, 2))]
    for k in range(rng.randint(2, 9)):
        x, name = rng.choice(maps), f"o{k}"
        channels, filters = net.shape(x)[1], rng.randint(1, 9)
        alike = [y for y in maps if net.shape(y) == net.shape(x)]
        kind = rng.choice(
            ("conv", "conv", "depthwise", "multiplied", "grouped", "pool", "sum", "concat", "slice", "copy")
        )
        groups = {"depthwise": channels, "multiplied": channels, "grouped": 2}.get(kind, 1)
        if kind == "grouped" and channels % 2:
            continue
        if kind in ("conv", "depthwise", "multiplied", "grouped"):
            made = {"depthwise": channels, "multiplied": 2 * channels, "grouped": 2 * filters}.get(kind, filters)
            maps.append(net.conv(x, name, made, 1, groups=groups))
        elif kind == "pool":
            maps.append(net.pool(x, name, "max", 1))
        elif kind == "sum":
            maps.append(net.eltwise("add", (x, rng.choice(alike)), name))
        elif kind == "concat":
            maps.append(net.concat((x, rng.choice(maps)), name))
        elif kind == "slice":
            maps.append(net.reshape(x, name, (1, rng.randint(1, channels), 4, 4), "slice"))
        else:
            maps.append(net.reshape(x, name, net.shape(x), "identity"))
    return net.build()


def by_hand(network: Network, block: int) -> dict[str, int]:
    """Channels of every map, by going over the operators until nothing changes: no ties, no parts."""
    plain, before = set[str](), set[str]({""})
    of = {operator.name: operator for operator in network.operators}

    def through(operator: Any) -> bool:
        if operator.op == "conv":
            return bool(operator.groups == of[operator.inputs[0]].shape[1] > 1)
        return operator.op != "input"

    found = dict[str, int]()
    while plain != before:
        before = set(plain)
        for operator in network.operators:
            around = {operator.name, *operator.inputs}
            groups = getattr(operator, "groups", 1)
            sliced = operator.op == "reshape" and operator.shape != of[operator.inputs[0]].shape
            if operator.op == "input" and operator.shape[1] < block:
                plain.add(operator.name)
            if groups > 1 and of[operator.inputs[0]].shape[1] != groups:
                plain |= around
            if sliced or (through(operator) and around & plain):
                plain |= around
        for operator in network.operators:
            whole = -(-operator.shape[1] // block) * block
            read = [found[name] for name in operator.inputs]
            found[operator.name] = operator.shape[1] if operator.name in plain else whole
            if operator.name not in plain and operator.op == "concat":
                found[operator.name] = sum(read)
            elif operator.name not in plain and through(operator):
                share = operator.shape[1] // of[operator.inputs[0]].shape[1]  # filters of a channel
                found[operator.name] = max(read) * share
            if operator.op == "eltwise" and len(set(read)) > 1 and plain == before:  # zeros in other places
                plain.add(operator.name)
                break
    return found


def test_random_networks() -> None:
    """What is in blocks, by ties of maps and by hand."""
    rng, several = random.Random(5), set[bool]()
    for _ in range(tries(300, 5000)):
        network, block = drawn(rng), rng.choice((2, 3, 4, 8))
        assert channels(network, block) == by_hand(network, block), network.model_dump_json()
        several |= {channels(network, block)[o.name] != o.shape[1] for o in network.operators}
    assert several == {True, False}

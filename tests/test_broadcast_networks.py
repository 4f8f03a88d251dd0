"""Networks whose element-wise layers have operands that are broadcast: what every problem says of them, by hand."""

from __future__ import annotations

import pytest

from certile import solve
from instances.network.network import Network
from instances.network.operators import Conv, Eltwise, Input, Pool
from tests.effort import in_turn


def two(first: tuple[int, ...], second: tuple[int, ...], shape: tuple[int, ...], fn: str = "add") -> Network:
    return Network(
        name="two",
        operators=(
            Input(name="x", shape=first),
            Input(name="y", shape=second),
            Eltwise(name="join", inputs=("x", "y"), shape=shape, fn=fn),
        ),
    )


CASES = {
    # every operand once and the result once, as the memory holds a row or a column of either
    "rows by columns": (two((1, 16, 32, 1), (1, 16, 1, 32), (1, 16, 32, 32)), 512 + 512 + 16_384),
    "a short row": (two((1, 32, 512, 1), (1, 32, 1, 32), (1, 32, 512, 32)), 16_384 + 1_024 + 524_288),
    "a gate": (two((1, 8, 64, 64), (1, 8, 1, 1), (1, 8, 64, 64), "mul"), 32_768 + 8 + 32_768),
    "a mask": (two((1, 4, 48, 48), (1, 1, 48, 48), (1, 4, 48, 48)), 9_216 + 2_304 + 9_216),
    "a token's mean": (two((1, 50, 64), (1, 50, 1), (1, 50, 64), "sub"), 3_200 + 50 + 3_200),
    "positions": (two((8, 50, 64), (1, 50, 64), (8, 50, 64)), 25_600 + 3_200 + 25_600),
    "an anchor grid": (two((1, 3, 20, 20, 2), (1, 1, 20, 20, 2), (1, 3, 20, 20, 2)), 2_400 + 800 + 2_400),
}


@pytest.mark.few(6)
@pytest.mark.parametrize(("name", "problem"), in_turn([(name,) for name in CASES], ["tiling", "joint", "fusion"]))
def test_operands_are_read_once_where_there_is_room(name: str, problem: str) -> None:
    network, moved = CASES[name]
    settings = {"ocm_banks": 64} if problem != "tiling" else {}
    only = {"all_kinds": True} if problem == "tiling" else {}
    plan = solve(network, "scratchpad_64k", objective="bytes", problem=problem, settings=settings, **only)
    assert (plan.status, plan.objective and plan.objective.value) == ("OPTIMAL", moved)


def test_where_of_three() -> None:
    network = Network(
        name="choice",
        operators=(
            Input(name="mask", shape=(1, 1, 12, 12)),
            Input(name="scores", shape=(1, 4, 12, 12)),
            Input(name="least", shape=(1,)),
            Eltwise(name="where", inputs=("mask", "scores", "least"), shape=(1, 4, 12, 12), fn="where"),
        ),
    )
    (layer,) = network.layers
    assert (layer.inputs, layer.broadcast) == (3, ("g", "", "bgrc".replace("b", "")))
    plan = solve(network, "scratchpad_64k", objective="bytes", all_kinds=True)
    assert plan.objective.value == 144 + 576 + 1 + 576


@pytest.mark.slow(1)
def test_squeeze_and_excite_in_a_network() -> None:
    # 8 channels of 64 x 64 from a 1x1 convolution of 3: weights 24, alone the gate is made and read: 8 each way
    network = Network(
        name="gated",
        operators=(
            Input(name="x", shape=(1, 3, 64, 64)),
            Conv(name="conv", inputs=("x",), shape=(1, 8, 64, 64), filters=8, kernel=(1, 1)),
            Pool(name="mean", inputs=("conv",), shape=(1, 8, 1, 1), fn="global_avg"),
            Eltwise(name="mul", inputs=("conv", "mean"), shape=(1, 8, 64, 64), fn="mul"),
        ),
    )
    machine = "scratchpad_64k"
    alone = solve(network, machine, objective="bytes", all_kinds=True)
    rest = 12_288 + 24 + 32_768 + 32_768 + 8  # the convolution, and the mean of its result
    assert alone.objective.value == rest + 32_768 + 8 + 32_768
    # on chip the map is made and stays, and so does the gate: the input, the weights, the result
    joint = solve(
        network, machine, objective="bytes", problem="joint", settings={"ocm_banks": 64, "ocm_bytes": 262_144}
    )
    assert joint.objective.value == 12_288 + 24 + 32_768

"""A map that is a result and is read inside as well is written whole, whatever stays on chip of it: by hand.

Layers of 64 channels on 8 x 8, 1 x 1: maps and weights are 4,096 bytes each.
"""

from __future__ import annotations

import pytest

from instances.errors import InputError
from instances.feature_maps import stages
from instances.load import load_machine
from instances.network import Network
from instances.operators import Concat, Conv, Eltwise, Input, Operator, Pool, Reshape
from solver import solve

SHAPE, EACH = (1, 64, 8, 8), 4096
X = Input(name="x", shape=SHAPE)


def conv(name: str, source: str) -> Conv:
    return Conv(name=name, inputs=(source,), shape=SHAPE, filters=64, kernel=(1, 1))


def result(name: str) -> Reshape:
    return Reshape(name=f"{name} (result)", inputs=(name,), shape=SHAPE, fn="identity")


def relu(name: str, source: str) -> Eltwise:
    return Eltwise(name=name, inputs=(source,), shape=SHAPE, fn="relu")


def network(*operators: Operator) -> Network:
    return Network(name="n", operators=(X, *operators))


#: What must move, in maps and weights of 4,096 bytes: x, one for every layer with weights, results.
CASES: dict[str, tuple[tuple[Operator, ...], int]] = {
    "none": ((conv("a", "x"), conv("b", "a")), 1 + 2 + 1),
    "the first of two": ((conv("a", "x"), result("a"), conv("b", "a")), 1 + 2 + 2),
    "the first and the last": ((conv("a", "x"), result("a"), conv("b", "a"), result("b")), 1 + 2 + 2),
    "the second of three": ((conv("a", "x"), conv("b", "a"), conv("c", "b"), result("b")), 1 + 3 + 2),
    "behind a ReLU": ((conv("a", "x"), relu("r", "a"), result("r"), conv("b", "r")), 1 + 2 + 2),
    "a ReLU that nobody reads": ((conv("a", "x"), relu("r", "a"), conv("b", "a")), 1 + 2 + 2),
    "an operand of a sum": (
        (conv("a", "x"), result("a"), conv("b", "a"), Eltwise(name="s", inputs=("b", "a"), shape=SHAPE, fn="add")),
        1 + 2 + 2,
    ),
    "two of them": ((conv("a", "x"), result("a"), conv("b", "a"), result("b"), conv("c", "b")), 1 + 3 + 3),
    "the input, too": ((result("x"), conv("a", "x"), conv("b", "a")), 1 + 2 + 1),
}  # fmt: skip


@pytest.mark.parametrize("problem", ["joint", "fusion", "banks", "hybrid"])
@pytest.mark.parametrize("case", CASES)
def test_results_that_are_read_inside_are_written(problem: str, case: str) -> None:
    operators, wanted = CASES[case]
    banked = problem in ("banks", "hybrid")
    on = load_machine("midap", {"banks.residuals": "chip"}) if banked else load_machine("scratchpad_768k")
    plan = solve(network(*operators), on, problem=problem, objective="bytes")
    assert plan.objective is not None
    assert (plan.objective.value, plan.bound) == (wanted * EACH,) * 2


def test_an_average_is_not_fused_with_what_is_a_result() -> None:
    """The convolution's map is needed as it is: the pool is a stage of its own, and reads it."""
    pool = Pool(name="p", inputs=("a",), shape=(1, 64, 1, 1), fn="global_avg")
    banks = load_machine("midap").banks
    assert banks is not None
    fused, apart = (stages(network(conv("a", "x"), *more, pool), banks) for more in ((), (result("a"),)))
    assert [stage.name for stage in fused.stages] == ["a"]
    assert [stage.name for stage in apart.stages] == ["a", "p"]
    assert not fused.leaving
    assert apart.leaving == {"a"}


def test_a_part_of_a_concatenation_that_is_a_result_is_refused() -> None:
    joined = Concat(name="j", inputs=("a", "b"), shape=(1, 128, 8, 8))
    found = network(conv("a", "x"), result("a"), conv("b", "x"), joined)
    with pytest.raises(InputError, match="a result, or read by others too; banks hold one copy"):
        solve(found, load_machine("midap"), problem="banks")

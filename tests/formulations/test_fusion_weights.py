"""Fusion: weights that several layers read stay on chip between layers by themselves, and go past groups.

What groups and weights that stay are worth together is compared with all schedules there are (`WITH_GROUPS`).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from certile import compile_model
from formulations.fusion.paths import Paths
from formulations.fusion.pins import DECISIONS
from formulations.fusion.space import Fusion
from formulations.pins import Pins, parse_pins
from hwmodels.fusion.replay.count import Count
from hwmodels.fusion.replay.referee import replay_fusion
from hwmodels.fusion.replay.strips import Walk
from hwmodels.schedule import FusedRun, LayerRun
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Conv, Input
from instances.network.stores import stores
from solver import check, solve
from solver.problems.fusion import FUSION
from solver.problems.joint import JOINT
from solver.search.loop import Answer, decide_part
from tests.adversary import fusion
from tests.adversary.fusion import TESTER, Case
from tests.effort import THOROUGH, thinned
from tests.formulations.test_fusion_brute import case as drawn
from tests.formulations.test_fusion_brute import said as found_by_brute_force
from tests.formulations.test_joint_weights import CASES, ENGINES, FAR, THREE, TURNS, conv, machine, network
from tests.hwmodels.test_fusion_replay import MACHINE, fused

ALONE = parse_pins(["length=1"], DECISIONS)


def by_fusion(made: Network, on: Machine, engine: str, pins: Pins = ALONE) -> Answer[tuple[FusedRun | LayerRun, ...]]:
    (part,) = FUSION.read(made, on, pins, None)
    return decide_part(FUSION, part, ("bytes",), engine)


def joint(made: Network, on: Machine) -> Answer[tuple[LayerRun, ...]]:
    (part,) = JOINT.read(made, on, Pins(()), None)
    return decide_part(JOINT, part, ("bytes",), "dynamic")


@pytest.mark.slow(2)
@pytest.mark.parametrize("case", thinned(CASES, 4))
def test_layers_by_themselves_are_those_of_joint(case: str) -> None:
    """`tests.formulations.test_joint_weights` compares problem joint with all schedules there are."""
    made, on = CASES[case]
    least, said = joint(made, on).values["bytes"], by_fusion(made, on, "dynamic")
    assert (said.status, said.values["bytes"]) == ("OPTIMAL", least)
    assert said.schedule is not None
    assert not replay_fusion(stores(made), on, said.schedule).faults


@pytest.mark.parametrize("case", [
    "three, 9 in 0", *(pytest.param(case, marks=pytest.mark.slow(20)) for case in ("late, 11 in 0", "turns, 12 in 0")),
])  # fmt: skip
def test_engines_agree(case: str) -> None:
    """Groups and layers by themselves."""
    made, on = CASES[case]
    said = [by_fusion(made, on, engine, Pins(())) for engine in ENGINES]
    assert {one.status for one in said} == {"OPTIMAL"}
    assert len({one.values["bytes"] for one in said}) == 1
    assert said[0].values["bytes"] <= joint(made, on).values["bytes"]


def test_weights_stay_past_a_group() -> None:
    """a and b have the same 4 weights; u and v, between them, run in a group by request.

    Once: 4 in, 4 of a and b, 8 and 8 of u and v, 4 out: 28.
    """
    on = machine(40)
    plan = solve(FAR, on, problem="fusion", objective="bytes", pins=["cut=a", "fuse=u..v", "cut=v"])
    assert check(plan).ok
    assert plan.objective.value == 4 + 4 + 8 + 8 + 4
    group = next(row for row in plan.part.figures if len(row.layers) == 2)
    assert "a (weights)" in group.on_chip
    assert [row.bytes["W"] for row in plan.part.figures] == [4, 16, 0]


def test_groups_have_weights_of_their_own() -> None:
    """a, b and c have the same 4 weights; a and b in a group load them once, c by itself once more: 4 + 8 + 4."""
    plan = solve(THREE, machine(100), problem="fusion", objective="bytes", pins=["fuse=a..b", "cut=b"])
    assert check(plan).ok
    assert plan.objective.value == 16
    assert (
        solve(THREE, machine(100), problem="fusion", objective="bytes").objective.value == 12
    )  # by themselves, or all in a group


def test_a_group_that_keeps_weights_for_others_never_loaded_them() -> None:
    """The referee: weights come with a layer by itself; a group that has them on chip from nowhere is a fault."""
    on = machine(100)
    said = by_fusion(TURNS, on, "dynamic", parse_pins(["fuse=a..p", "length<=2"], DECISIONS))
    found = stores(TURNS)
    number = next(s for s, store in enumerate(found.stores) if store.weights)
    first = said.schedule[0]
    wrong = (
        FusedRun(**{**vars(first), "residents": {**first.residents, number: (found.stores[number].rows, ())}}),
        *said.schedule[1:],
    )
    (fault, *_) = replay_fusion(found, on, wrong).faults
    assert "is on chip, no layer has loaded it yet" in fault


def test_the_referee_runs_layers_whose_weights_lie_transposed() -> None:
    """a makes a channel of two, b two of one, of the same two weights: in a group, on integers; 4 + 2 + 4."""
    made = network(
        Input(name="x", shape=(1, 2, 2, 1)), conv("a", "x", 2, filters=1), conv("b", "a", 2, "a"),
    )  # fmt: skip
    plan = solve(made, machine(100), problem="fusion", objective="bytes", pins=["fuse=a..b"])
    assert check(plan).ok
    assert (plan.objective.value, plan.part.replay.executed) == (10, 1)


@pytest.mark.slow(3)
def test_weights_come_late_and_go_early() -> None:
    """a, b, c, d have the same 4 weights; between b and c maps are wide, so weights leave and may come again."""
    made = network(
        Input(name="x", shape=(1, 2, 2, 1)), conv("a", "x", 2), conv("b", "a", 2, "a"), conv("u", "b", 2, filters=4),
        conv("v", "u", 2), conv("c", "v", 2, "a"), conv("d", "c", 2, "a"),
    )  # fmt: skip
    for memory in (13, 16, 20):
        assert (
            by_fusion(made, machine(memory), "dynamic").values["bytes"] == joint(made, machine(memory)).values["bytes"]
        )


# ---- groups of several layers and weights that stay, against all schedules -------------------------------------------


def cuts(*after: int) -> tuple[str, ...]:
    return tuple(f"cut=n{t}" for t in after)


#: Small networks with a group (`fuse`) before, between or behind layers by themselves with weights that stay.
WITH_GROUPS: dict[str, fusion.Case] = {
    # they stay past the group
    "past a group": drawn(
        5, 1, 1, (("point", (0,), 1), ("conv", (1,), 1), ("again", (2, 1), 1), ("again", (3, 1), 1)), banks=8, bank=6,
        bytes=(1, 3, 1, 2), pins=("fuse=n2..n3", *cuts(1, 3)), energy=True, bytewise=True,
    ),
    "past pools": drawn(
        6, 2, 3, (("point", (0,), 3), ("pool", (1,), 3), ("pool", (2,), 1), ("again", (3, 1), 3)), banks=8, bank=24,
        bytes=(1, 2, 1, 1), pins=("fuse=n2..n3", *cuts(1, 3)),
    ),
    "past a group of three": drawn(
        3, 1, 3, (("point", (0,), 3), ("tied", (1,), 1), ("deep", (2,), 3), ("pool", (3,), 3), ("again", (4, 2), 3)),
        banks=8, bank=16, bytes=(1, 3, 1, 2), pins=("fuse=n2..n3", *cuts(1, 4)),
    ),
    # the group reads them first: they come with a layer by itself behind it
    "first in a group": drawn(
        3, 1, 1, (("conv", (0,), 1), ("conv", (1,), 1), ("again", (2, 1), 1), ("again", (3, 1), 1)), banks=8, bank=2,
        bytes=(1, 3, 1, 1), pins=("fuse=n1..n2", *cuts(2, 3)), bytewise=True,
    ),
    "first in a group of three": drawn(
        6, 1, 2, (("conv", (0,), 2), ("relu", (1,), 4), ("point", (2,), 2), ("tied", (3,), 2), ("tied", (4,), 2)),
        banks=8, bank=12, pins=("fuse=n1..n3", *cuts(3, 4)),
    ),
    "last of a group": drawn(
        6, 1, 2, (("point", (0,), 2), ("tied", (1,), 1), ("conv", (2,), 2), ("deep", (2,), 2), ("tied", (4,), 2)),
        banks=12, bank=6, bytes=(1, 3, 1, 1), pins=("fuse=n2..n3", *cuts(1, 4)),
    ),
    # they go before the group, which has none of them, or loads them once more
    "before a group": drawn(
        5, 1, 1, (("deep", (0,), 1), ("tied", (1,), 1), ("tied", (2,), 1), ("tied", (3,), 1)), banks=8, bank=2,
        bytes=(1, 3, 1, 1), pins=("fuse=n3..n4", *cuts(1, 2)),
    ),
    "before others": drawn(
        3, 1, 3, (("deep", (0,), 3), ("tied", (1,), 4), ("conv", (0,), 3), ("conv", (3,), 3)), banks=12, bank=7,
        bytes=(2, 2, 2, 2), pins=("fuse=n3..n4", *cuts(1, 2)), bytewise=True,
    ),
    "behind others": drawn(
        6, 1, 1, (("conv", (0,), 1), ("conv", (1,), 1), ("tied", (2,), 1), ("point", (3,), 1), ("again", (4, 2), 1)),
        banks=8, bank=3, bytes=(1, 1, 1, 2), pins=("fuse=n1..n2", *cuts(2, 3, 4)),
    ),
    # layers with them and without take turns
    "by themselves behind": drawn(
        4, 2, 2, (("pool", (0,), 1), ("slide", (1,), 2), ("conv", (1,), 2), ("point", (0,), 2), ("tied", (4,), 1)),
        banks=12, bank=3, bytes=(1, 3, 1, 2), pins=("fuse=n1..n2", *cuts(2, 3, 4)), bytewise=True,
    ),
    "no pins": drawn(
        4, 1, 1, (("relu", (0,), 1), ("point", (1,), 1), ("tied", (2,), 1), ("deep", (3,), 1), ("tied", (4,), 1)),
        banks=8, bank=1, bytes=(1, 1, 1, 2), every=True,
    ),
    # weights of 6 bytes that n1 (in the group) and n4 read; equally good with n1 and n2 by themselves and 6 bytes less
    # for n4: the way back had mixed up both
    "two ways of equal cost": drawn(
        6, 1, 1, (("conv", (0,), 1), ("conv", (1,), 1), ("point", (0,), 1), ("again", (3, 1), 4)), banks=8, bank=3,
        bytes=(2, 2, 2, 2), pins=("recompute=no",), energy=True,
    ),
}  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("name", thinned(WITH_GROUPS, 3))
def test_groups_beside_weights_that_stay_are_the_best_of_all(name: str) -> None:
    assert found_by_brute_force(WITH_GROUPS[name]) == []


def _mixed_up(paths: Paths, arc: Any, k: int, state: Any) -> slice:
    """As weights that a group reads first may be on chip behind it, on the way back."""
    return slice(1) if paths.fusion.barred(arc, k) else slice(state.get(k), None)


#: A method, what it does instead, and a case that shows it.
PLANTED: dict[str, tuple[type, str, Callable[..., Any], str]] = {
    "groups keep weights": (Fusion, "barred", lambda _, arc, k: False, "first in a group of three"),
    "weights never come late": (Fusion, "loads", lambda _, arc: -1, "first in a group"),
    "the way back is another": (Paths, "_before", _mixed_up, "two ways of equal cost"),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("fault", PLANTED)
def test_faults_of_weights_that_stay_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, instead, case = PLANTED[fault]
    monkeypatch.setattr(where, name, instead)
    assert found_by_brute_force(WITH_GROUPS[case])


# ---- Weights that several layers of a group have are one tensor: they lie on chip once, and are loaded once ----------


def twice(*, own_bias: bool = False) -> Network:
    """Two 3x3 layers of 4 channels on 8x8, the second with the weights of the first."""
    shape, taps = (1, 4, 8, 8), {"kernel": (3, 3), "pad": (1, 1, 1, 1), "filters": 4, "bias": own_bias}
    return Network(name="twice", operators=(
        Input(name="in", shape=shape), Conv(name="a", inputs=("in",), shape=shape, **taps),
        Conv(name="b", inputs=("a",), shape=shape, weights_of="a", own_bias=own_bias, **taps),
    ))  # fmt: skip


def test_two_layers_with_one_tensor() -> None:
    # strips of 2 rows: 8 rows of 32 bytes on chip while b runs (docs/fusion.md), and 144 bytes of weights, not 288
    settings = {"ocm_bytes": 400, "ocm_banks": 0, "psum_bytes": 1}
    plan = solve(
        twice(),
        "scratchpad_768k",
        problem="fusion",
        objective="bytes",
        settings=settings,
        pins=("fuse=a..b", "strip=2"),
    )
    assert plan.status == "OPTIMAL"
    assert plan.measures["bytes"] == 256 + 144 + 256 == plan.part.must["bytes"]
    ((run,), (row,)) = plan.schedule, plan.part.figures
    assert (row.occupancy_bytes, run.weights) == (8 * 32 + 144, (144, 0))
    assert plan.part.replay.executed == 1


def test_weights_that_pass_are_loaded_for_both_layers() -> None:
    # both layers run in 4 and 5 visits; 100 of 144 bytes stay: 100 + 9 times 44
    found = stores(twice())
    run = fused(found)
    run = replace(run, weights=(100, 0))
    counted = Count(MACHINE, Walk(found, run)).run_all()
    assert not counted.faults
    assert counted.operand_bytes["W"] == 100 + 9 * 44


def test_biases_of_their_own_make_two_tensors() -> None:
    found = stores(twice(own_bias=True))
    run = fused(found)
    assert Count(MACHINE, Walk(found, run)).run_all().operand_bytes["W"] == sum(run.weights) >= 288


@pytest.mark.parametrize("rows", range(5, 8) if THOROUGH else (6,))
def test_all_schedules_of_tied_layers(rows: int) -> None:
    """Against brute force: two or three layers with one tensor, in memories of all sizes."""
    layers = (("conv", (0,), 2), ("tied", (1,), 2), ("tied", (2,), 2))[: 2 + rows % 2]
    one = Case(rows, 2, 2, layers, 6, 8 + 4 * rows, engines=("dynamic",), bytewise=rows % 3 == 0)
    assert [found.what for found in TESTER.run(one, random.Random(0))] == []


def test_c_of_tied_layers_ends_the_group(tmp_path: Path) -> None:
    """C of a group reads a tensor of weights for one layer: `compile` plans both layers by themselves."""
    weights = numpy_helper.from_array(np.ones((4, 4, 3, 3), np.float32), "w")
    nodes = [helper.make_node("Conv", [x, "w"], [y], name=y, pads=[1] * 4) for x, y in ("xa", "ay")]
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (1, 4, 8, 8)) for name in "xy")
    graph = helper.make_graph(nodes, "tied", [x], [y], initializer=[weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    floats = {"in_bytes": 4, "w_bytes": 4, "out_bytes": 4, "psum_bytes": 4}
    made = compile_model(
        tmp_path / "m.onnx", "scratchpad_768k", tmp_path / "c", settings=floats, problem="fusion", objective="bytes"
    )
    assert len(made.plan.schedule) == 2

"""F11 fusion: weights that several layers read stay on chip between layers by themselves, and go past groups."""

from __future__ import annotations

import random

import pytest

from formulations.fusion.pins import DECISIONS
from formulations.pins import Pins, parse_pins
from hwmodels.fusion.replay import replay_fusion
from hwmodels.schedule import FusedRun, LayerRun
from instances.errors import InputError
from instances.machine import Machine
from instances.network import Network
from instances.operators import Input
from instances.stores import stores
from solver import check, solve
from solver.fusion.problem import FUSION
from solver.joint.problem import JOINT
from solver.search import Answer, settled
from solver.selftest.joint import Case
from tests.formulations.test_joint_weights import CASES, ENGINES, FAR, THREE, TURNS, conv, machine, network

ALONE = parse_pins(["length=1"], DECISIONS)


def fused(made: Network, on: Machine, engine: str, pins: Pins = ALONE) -> Answer[tuple[FusedRun | LayerRun, ...]]:
    (part,) = FUSION.read(made, on, pins, None)
    return settled(FUSION, part, ("bytes",), engine)


def joint(made: Network, on: Machine) -> Answer[tuple[LayerRun, ...]]:
    (part,) = JOINT.read(made, on, Pins(()), None)
    return settled(JOINT, part, ("bytes",), "dynamic")


@pytest.mark.parametrize("case", CASES)
def test_layers_by_themselves_are_those_of_joint(case: str) -> None:
    """`tests.formulations.test_joint_weights` compares problem joint with all schedules there are."""
    made, on = CASES[case]
    least, said = joint(made, on).values["bytes"], fused(made, on, "dynamic")
    assert (said.status, said.values["bytes"]) == ("OPTIMAL", least)
    assert said.schedule is not None
    assert not replay_fusion(stores(made), on, said.schedule).faults


@pytest.mark.parametrize("case", [
    "three, 9 in 0", *(pytest.param(case, marks=pytest.mark.slow(20)) for case in ("late, 11 in 0", "turns, 12 in 0")),
])  # fmt: skip
def test_engines_agree(case: str) -> None:
    """Groups and layers by themselves."""
    made, on = CASES[case]
    said = [fused(made, on, engine, Pins(())) for engine in ENGINES]
    assert {one.status for one in said} == {"OPTIMAL"}
    assert len({one.values["bytes"] for one in said}) == 1
    assert said[0].values["bytes"] <= joint(made, on).values["bytes"]


@pytest.mark.slow(20)
def test_random_layers_by_themselves_are_those_of_joint() -> None:
    """Of random networks those with weights that several layers read; joint may be refused for its size."""
    rng, met, kept = random.Random(7), 0, 0
    while met < 25:
        case = Case.drawn(rng)
        made = case.network
        if made is None or not any(s.weights for s in stores(made).stores):
            continue
        try:
            least = joint(made, case.machine)
        except InputError:
            continue
        engine = ENGINES[met % 3]
        said = fused(made, case.machine, engine)
        assert (said.status, said.values.get("bytes")) == (least.status, least.values.get("bytes")), (case, engine)
        free = fused(made, case.machine, "dynamic", Pins(()))
        met += 1
        if said.schedule is not None:
            found = stores(made)
            kept += any(found.stores[s].weights for run in said.schedule for s in run.residents)
            assert free.schedule is not None
            assert not replay_fusion(found, case.machine, free.schedule).faults
            assert free.values["bytes"] <= least.values["bytes"]
    assert kept >= 3


def test_weights_stay_past_a_group() -> None:
    """a and b have the same 4 weights; u and v, between them, run in a group by request.

    Once: 4 in, 4 of a and b, 8 and 8 of u and v, 4 out: 28.
    """
    on = machine(40)
    plan = solve(FAR, on, problem="fusion", pins=["cut=a", "fuse=u..v", "cut=v"])
    assert check(plan).ok
    assert plan.objective.value == 4 + 4 + 8 + 8 + 4
    group = next(row for row in plan.layers if len(row.layers) == 2)
    assert "a (weights)" in {one.map for one in group.on_chip}
    assert [row.by_operand["W"] for row in plan.layers] == [4, 16, 0]


def test_groups_have_weights_of_their_own() -> None:
    """a, b and c have the same 4 weights; a and b in a group load them once, c by itself once more: 4 + 8 + 4."""
    plan = solve(THREE, machine(100), problem="fusion", pins=["fuse=a..b", "cut=b"])
    assert check(plan).ok
    assert plan.objective.value == 16
    assert solve(THREE, machine(100), problem="fusion").objective.value == 12  # by themselves, or all in a group


def test_a_group_that_keeps_weights_for_others_never_loaded_them() -> None:
    """The referee: weights come with a layer by itself; a group that has them on chip from nowhere is a fault."""
    on = machine(100)
    said = fused(TURNS, on, "dynamic", parse_pins(["fuse=a..p", "length<=2"], DECISIONS))
    assert said.schedule is not None
    found = stores(TURNS)
    number = next(s for s, store in enumerate(found.stores) if store.weights)
    first = said.schedule[0]
    assert isinstance(first, FusedRun)
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
    plan = solve(made, machine(100), problem="fusion", pins=["fuse=a..b"])
    assert check(plan).ok
    assert (plan.objective.value, plan.replay.executed) == (10, 1)


def test_weights_come_late_and_go_early() -> None:
    """a, b, c, d have the same 4 weights; between b and c maps are wide, so weights leave and may come again."""
    made = network(
        Input(name="x", shape=(1, 2, 2, 1)), conv("a", "x", 2), conv("b", "a", 2, "a"), conv("u", "b", 2, filters=4),
        conv("v", "u", 2), conv("c", "v", 2, "a"), conv("d", "c", 2, "a"),
    )  # fmt: skip
    for memory in (13, 16, 20):
        assert fused(made, machine(memory), "dynamic").values["bytes"] == joint(made, machine(memory)).values["bytes"]

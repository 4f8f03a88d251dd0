"""OPTIMAL means that every objective asked for is proven; at a time limit there is a plan with a true bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from formulations.clock import Clock
from formulations.pins import parse_pins
from formulations.tiling.branch import Branch
from formulations.tiling.member import Member
from formulations.tiling.problem import NESTS
from formulations.tiling.search import Search
from formulations.tiling.space import Space, bound_without_search
from formulations.tiling.staged import Answer, Staged
from instances.load import load_machine, load_network, parse_overrides
from instances.machine.machine import Machine, Transfer
from instances.network.workload import Layer
from solver import solve
from solver.problems.tiling import decide_space

LAYER = Layer.conv("x", channels=3, filters=4, size=(6, 5), kernel=(3, 3), pad=(1, 1, 1, 1))
MACHINE = Machine(
    name="toy", tick_ps=1000, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=2, ocm_bytes=64, byte_fj=7,
    transfer=Transfer(call_ticks=10, byte_ticks=1),
)  # fmt: skip
DOUBLE = MACHINE.model_copy(update={"buffering": "double", "ocm_bytes": 256})
PROVING = ("exhaustive", "cp-sat", "milp", "milp-cbc")


def _space(layer: Layer = LAYER, machine: Machine = MACHINE, *pins: str) -> Space:
    formulation = NESTS["tiling"]
    return formulation.build(layer, machine, parse_pins(pins, formulation.decisions))


# --- several objectives ----------------------------------------------------------------------------------------------


@pytest.mark.few(3)
@pytest.mark.parametrize("name", PROVING)
def test_two_proven_objectives_are_optimal(name: str) -> None:
    found = decide_space(_space(), ("bytes", "time"), name)
    assert (found.status, found.stats["proven"]) == ("OPTIMAL", "bytes,time")
    assert found.values
    assert found.bound == found.values["bytes"]


def test_one_of_two_proven_is_feasible_with_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that has no time left when the second objective comes."""
    asked = Staged._asked

    def tired(search: Staged, branch: Branch, measure: str, *rest: Any) -> Iterator[Any]:
        return (yield from asked(search, branch, measure, *rest)) if measure != "time" else Answer(None, 0, done=False)

    monkeypatch.setattr(Staged, "_asked", tired)
    found = decide_space(_space(), ("bytes", "time"), "cp-sat")
    assert found.values
    assert (found.status, found.bound) == ("FEASIBLE", found.values["bytes"])
    assert found.stats["proven"] == "bytes"
    unasked = decide_space(_space(), ("bytes",), "cp-sat")
    assert unasked.status == "OPTIMAL", "time only breaks ties"
    assert "proven" not in unasked.stats


def test_exhaustive_search_that_is_late_for_the_second_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Search, "_late", lambda search: bool(search.kept))
    found = decide_space(_space(), ("bytes", "time"))
    assert found.values
    assert (found.status, found.bound, found.stats["proven"]) == ("FEASIBLE", found.values["bytes"], "bytes")
    assert decide_space(_space(), ("bytes",)).status == "OPTIMAL"


def test_energy_is_proven_with_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Search, "_late", lambda search: bool(search.kept))
    found = decide_space(_space(), ("energy", "bytes"))
    assert (found.status, found.stats["proven"]) == ("OPTIMAL", "energy,bytes")


# --- time limits -----------------------------------------------------------------------------------------------------


@pytest.mark.few(3)
@pytest.mark.parametrize("machine", [MACHINE, DOUBLE], ids=["single", "double"])
@pytest.mark.parametrize("objective", ["bytes", "time", "energy"])
@pytest.mark.parametrize("name", ["exhaustive", "cp-sat", "milp"])
def test_there_is_a_plan_with_a_true_bound_whatever_the_limit(name: str, objective: str, machine: Machine) -> None:
    best = decide_space(_space(machine=machine), (objective,))
    found = decide_space(_space(machine=machine), (objective,), name, clock=Clock.of(1e-9))
    assert best.status == "OPTIMAL" or (machine is DOUBLE and objective == "time")
    assert best.values
    assert found.values
    assert best.bound <= best.values[objective]
    assert 0 < found.bound <= best.values[objective] <= found.values[objective]
    # a first plan that moves each byte once is proven at once
    assert (found.status == "OPTIMAL") == (found.bound == found.values[objective])
    assert found.status in ("OPTIMAL", "FEASIBLE")


@pytest.mark.slow(1)
@pytest.mark.parametrize("machine", ["scratchpad_64k", "zynq7020", "scratchpad_24k"])
@pytest.mark.parametrize(("network", "layer"), [("lenet5", "c3"), ("mobilenet_v2", "block3/dw"), ("alexnet", "conv3")])
def test_a_bound_without_a_search_prices_nothing(
    network: str, layer: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = load_network(network).layer(layer)
    space = _space(one, load_machine(machine, parse_overrides([])))
    best = decide_space(space, ("bytes",))

    def refused(*_: object, **__: object) -> Branch:
        raise AssertionError("a branch was priced: that takes minutes without a plan to compare with")

    monkeypatch.setattr(Member, "branch", refused)
    assert best.values
    assert 0 < bound_without_search(space, "bytes") <= best.values["bytes"]
    assert 0 < bound_without_search(space, "energy") <= best.values["energy"]


def test_a_layer_of_many_columns_keeps_its_limit() -> None:
    """The second layer of MobileNetV2 (and of EfficientNet-B0 alike) took minutes to say a bound once time was up."""
    found = solve("mobilenet_v2", "scratchpad_64k", layers="block1/dw", time_limit_s=0.01)
    assert found.status == "FEASIBLE"
    assert 1_600_000 < found.bound <= 1_731_328 <= found.objective.value  # the optimum, when it is given time


def test_double_buffering_on_256_kib_ends_with_a_plan() -> None:
    settings = {"ocm_bytes": 262_144, "buffering": "double"}
    found = solve("lenet5", "scratchpad_64k", settings=settings, time_limit_s=1)
    assert found.status == "FEASIBLE"
    assert 0 < found.bound <= found.objective.value


def test_a_proof_by_timelines_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a limit: a search that would lay out more timelines says FEASIBLE and the bound of the next one."""
    best = decide_space(_space(machine=DOUBLE), ("time",))
    monkeypatch.setattr("formulations.tiling.search.FIRST_TIMELINES", 1)
    monkeypatch.setattr("formulations.tiling.search.MOST_TIMELINES", 1)
    found = decide_space(_space(machine=DOUBLE), ("time",))
    assert found.status == "FEASIBLE"
    assert found.stats["left_open"]
    assert best.values
    assert found.values
    assert 0 < found.bound <= best.values["time"] <= found.values["time"]
    plan = solve(LAYER, DOUBLE)
    assert plan.status == "FEASIBLE"
    assert not plan.layers[0].stats.get("interrupted"), "it is not taken for Ctrl-C"

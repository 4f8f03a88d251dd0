"""OPTIMAL means that every objective asked for is proven; at a time limit there is a plan with a true bound."""

from __future__ import annotations

import pytest

from formulations.pins import parse_pins
from formulations.registry import NESTS
from formulations.tiling.branch import Branch
from formulations.tiling.floors import floor
from formulations.tiling.member import Member
from formulations.tiling.search import Search
from formulations.tiling.space import Space
from instances.load import load_machine, load_network, parse_overrides
from instances.machine import Machine, Transfer
from instances.workload import Layer
from solver import solve
from solver.engines import ENGINES, Limits, cp_sat, exhaustive
from solver.engines.staged import Answer, Wanted, solve_staged

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


@pytest.mark.parametrize("name", PROVING)
def test_two_proven_objectives_are_optimal(name: str) -> None:
    found = ENGINES[name].run(_space(), ("bytes", "time"), Limits())
    assert (found.status, found.stats["proven"]) == ("OPTIMAL", "bytes,time")
    assert found.measures is not None
    assert found.bound == found.measures["bytes"]


def test_one_of_two_proven_is_feasible_with_its_bound() -> None:
    """A solver that has no time left when the second objective comes."""

    def tired(asked: Wanted) -> Answer:
        return Answer(None, None, False) if asked.objective == "time" else cp_sat._solve(asked)

    found = solve_staged(tired, _space(), ("bytes", "time"), Limits(), "")
    assert found.measures is not None
    assert (found.status, found.bound) == ("FEASIBLE", found.measures["bytes"])
    assert found.stats["proven"] == "bytes"
    unasked = solve_staged(tired, _space(), ("bytes",), Limits(), "")
    assert unasked.status == "OPTIMAL", "time only breaks ties"
    assert "proven" not in unasked.stats


def test_exhaustive_search_that_is_late_for_the_second_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Search, "_late", lambda search: bool(search.kept))
    found = exhaustive.run(_space(), ("bytes", "time"), Limits())
    assert found.measures is not None
    assert (found.status, found.bound, found.stats["proven"]) == ("FEASIBLE", found.measures["bytes"], "bytes")
    assert exhaustive.run(_space(), ("bytes",), Limits()).status == "OPTIMAL"


def test_energy_is_proven_with_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Search, "_late", lambda search: bool(search.kept))
    found = exhaustive.run(_space(), ("energy", "bytes"), Limits())
    assert (found.status, found.stats["proven"]) == ("OPTIMAL", "energy,bytes")


# --- time limits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [MACHINE, DOUBLE], ids=["single", "double"])
@pytest.mark.parametrize("objective", ["bytes", "time", "energy"])
@pytest.mark.parametrize("name", ["exhaustive", "cp-sat", "milp"])
def test_there_is_a_plan_with_a_true_bound_whatever_the_limit(name: str, objective: str, machine: Machine) -> None:
    best = ENGINES["exhaustive"].run(_space(machine=machine), (objective,), Limits())
    found = ENGINES[name].run(_space(machine=machine), (objective,), Limits(time_limit_s=1e-9))
    assert best.status == "OPTIMAL" or (machine is DOUBLE and objective == "time")
    assert best.measures is not None
    assert found.measures is not None
    assert found.bound is not None
    assert best.bound is not None
    assert best.bound <= best.measures[objective]
    assert 0 < found.bound <= best.measures[objective] <= found.measures[objective]
    # a first plan that moves each byte once is proven at once
    assert (found.status == "OPTIMAL") == (found.bound == found.measures[objective])
    assert found.status in ("OPTIMAL", "FEASIBLE")


@pytest.mark.parametrize("machine", ["scratchpad_64k", "zynq7020", "scratchpad_24k"])
@pytest.mark.parametrize(("network", "layer"), [("lenet5", "c3"), ("mobilenet_v2", "block3/dw"), ("alexnet", "conv3")])
def test_a_bound_without_a_search_prices_nothing(
    network: str, layer: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = load_network(network).layer(layer)
    space = _space(one, load_machine(machine, parse_overrides([])))
    best = ENGINES["exhaustive"].run(space, ("bytes",), Limits())

    def refused(*_: object, **__: object) -> Branch:
        raise AssertionError("a branch was priced: that takes minutes without a plan to compare with")

    monkeypatch.setattr(Member, "branch", refused)
    assert best.measures is not None
    assert 0 < floor(space, "bytes") <= best.measures["bytes"]
    assert 0 < floor(space, "energy") <= best.measures["energy"]


def test_a_layer_of_many_columns_keeps_its_limit() -> None:
    """The second layer of MobileNetV2 (and of EfficientNet-B0 alike) took minutes to say a bound once time was up."""
    found = solve("mobilenet_v2", "scratchpad_64k", layers="block1/dw", time_limit_s=0.01)
    assert found.status == "FEASIBLE"
    assert found.objective is not None
    assert found.bound is not None
    assert 1_600_000 < found.bound <= 1_731_328 <= found.objective.value  # the optimum, when it is given time


def test_double_buffering_on_256_kib_ends_with_a_plan() -> None:
    settings = {"ocm_bytes": 262_144, "buffering": "double"}
    found = solve("lenet5", "scratchpad_64k", settings=settings, time_limit_s=1)
    assert found.status == "FEASIBLE"
    assert found.objective is not None
    assert found.bound is not None
    assert 0 < found.bound <= found.objective.value


def test_a_proof_by_timelines_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a limit: a search that would lay out more timelines says FEASIBLE and the bound of the next one."""
    best = exhaustive.run(_space(machine=DOUBLE), ("time",), Limits())
    monkeypatch.setattr("formulations.tiling.search.FIRST_TIMELINES", 1)
    monkeypatch.setattr("formulations.tiling.search.MOST_TIMELINES", 1)
    found = exhaustive.run(_space(machine=DOUBLE), ("time",), Limits())
    assert found.status == "FEASIBLE"
    assert found.stats["left_open"]
    assert best.measures is not None
    assert found.measures is not None
    assert found.bound is not None
    assert 0 < found.bound <= best.measures["time"] <= found.measures["time"]
    plan = solve(LAYER, DOUBLE)
    assert plan.status == "FEASIBLE"
    assert not plan.layers[0].stats.get("interrupted"), "it is not taken for Ctrl-C"

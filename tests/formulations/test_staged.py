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
from instances.machine.machine import Compute, Machine, Transfer
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


# --- pieces of free sizes ---------------------------------------------------------------------------------------------

#: 8 channels on 3 lanes, 13 filters on 4: pieces of 5, 4 and 4 filters take 4 rounds, of 5, 5 and 3 one more.
UNEVEN = Layer.conv("uneven", channels=8, filters=13, size=(1, 1))
LANES = Machine(
    name="lanes", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=23, byte_fj=7,
    overlap="serial", transfer=Transfer(call_ticks=7, byte_ticks=1),
    compute=Compute(model="array", cycle_ticks=9, rows=4, cols=3),
)  # fmt: skip


def test_the_fewest_bytes_of_the_least_time_need_pieces_of_free_sizes() -> None:
    """IN whole, OUT in three pieces, W in four for each: 8 + 13 + 104 bytes, 1 + 3 + 12 calls, 4 * 4 rounds.

    Equal steps take as long with IN moved twice: m in 7 and 4, n in 3: 133 bytes, 2 + 6 + 12 calls, 4 * 3 rounds.
    """
    found = decide_space(_space(UNEVEN, LANES), ("time", "bytes"))
    assert (found.status, found.stats["proven"]) == ("OPTIMAL", "time,bytes")
    assert found.values
    assert found.values["time"] == 125 + 16 * 7 + 16 * 9 == 133 + 20 * 7 + 12 * 9
    assert found.values["bytes"] == 125


@pytest.mark.parametrize(("channels", "filters", "size", "room", "call", "lanes", "fewest", "known"), [
    (8, 10, (1, 2), 16, 3, (4, 2), 228, 212), (6, 10, (1, 3), 33, 4, (2, 3), 144, 108),
])  # fmt: skip
def test_vectors_prove_the_fewest_bytes_of_the_least_time(
    channels: int, filters: int, size: tuple[int, int], room: int, call: int, lanes: tuple[int, int], fewest: int,
    known: int, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Of pieces of which only the largest is known fewer bytes could do; no way to cut has these and the least time."""
    layer = Layer.conv("x", channels=channels, filters=filters, size=size)
    array = LANES.compute.model_copy(update=dict(zip(("rows", "cols"), lanes, strict=True)))
    update = {"ocm_bytes": room, "transfer": Transfer(call_ticks=call), "compute": array}
    space = _space(layer, LANES.model_copy(update=update))
    found = decide_space(space, ("time", "bytes"))
    assert (found.status, found.values["bytes"]) == ("OPTIMAL", fewest)
    monkeypatch.setattr(Member, "made", lambda *_: ())
    monkeypatch.setattr(Member, "finer", lambda _, branch, *more: [branch])
    assert decide_space(space, ("time", "bytes")).bounds["bytes"] == known


@pytest.mark.parametrize("objectives", [("time",), ("time", "bytes"), ("bytes", "time"), ("energy", "time")])
@pytest.mark.parametrize("name", PROVING[1:])
def test_engines_agree_where_vectors_decide(name: str, objectives: tuple[str, ...]) -> None:
    """No candidate has the least time and the fewest bytes: an engine without vectors misses or cannot prove them."""
    best, found = (decide_space(_space(UNEVEN, LANES), objectives, one) for one in ("exhaustive", name))
    assert (found.status, found.bounds) == (best.status, best.bounds)
    assert best.values
    assert found.values
    assert [found.values[m] for m in objectives] == [best.values[m] for m in objectives]
    assert (best.status, best.values["time"]) == ("OPTIMAL", 381)


@pytest.mark.parametrize("name", PROVING)
def test_nothing_is_asked_for_below_nothing(name: str) -> None:
    free = MACHINE.model_copy(update={"transfer": Transfer()})
    found = decide_space(_space(Layer.conv("x", channels=1, filters=1, size=(1, 1)), free), ("time", "bytes"), name)
    assert (found.status, dict(found.bounds)) == ("OPTIMAL", {"time": 0, "bytes": 3})


@pytest.mark.parametrize("objective", ["bytes", "time"])
@pytest.mark.parametrize("name", PROVING)
def test_what_fits_in_no_way_is_infeasible(name: str, objective: str) -> None:
    """One element of IN, one of W and a partial sum take 4 bytes; bounds of kernels in parts say that 3 might do."""
    layer = Layer.conv("x", channels=2, filters=2, size=(1, 1), kernel=(1, 2), stride=(2, 2), pad=(0, 1, 0, 0))
    space = _space(layer, MACHINE.model_copy(update={"ocm_bytes": 3, "sliding": True}))
    assert decide_space(space, (objective,), name).status == "INFEASIBLE"


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
    monkeypatch.setattr("formulations.tiling.splitting.NODES", 1)
    found = decide_space(_space(machine=DOUBLE), ("time",))
    assert found.status == "FEASIBLE"
    assert found.stats["left_open"]
    assert best.values
    assert found.values
    assert 0 < found.bound <= best.values["time"] <= found.values["time"]
    plan = solve(LAYER, DOUBLE)
    assert plan.status == "FEASIBLE"
    assert not plan.layers[0].stats.get("interrupted"), "it is not taken for Ctrl-C"

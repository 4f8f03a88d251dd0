"""`check`: every way of tampering with a plan is caught, honest plans pass."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from instances.errors import InputError
from instances.load import load_network
from solver import Plan, check, solve
from solver.plan.plan import digest

Json = Any  # a parsed plan, edited freely


@pytest.fixture(scope="module")
def honest() -> Json:
    """lenet5 (c1, c3, c5, f6, output) on a small scratchpad, in a space where the least time is proven."""
    return json.loads(solve("lenet5", "scratchpad_64k", pins=["holds=uniform"]).to_json())


def _problems(data: Json) -> tuple[str, ...]:
    report = check(Plan.from_json(json.dumps(data)))
    assert report.ok == (not report.problems)
    return report.problems


@pytest.mark.slow(2)
@pytest.mark.parametrize("machine", ["scratchpad_64k", "nmp", "zynq7020"])
def test_honest_plans_pass(machine: str, tmp_path: Path) -> None:
    plan = solve("lenet5", machine, layers=["c1"])
    plan.save(tmp_path / "plan.json")
    report = check(tmp_path / "plan.json")
    assert (report.ok, report.problems) == (True, ())
    assert report.layers == len(plan.parts)
    assert report.to_json() == {
        "ok": True, "verdict": "legal, claims re-priced; optimality not re-proven", "proof": "none", "problems": [],
        "layers": report.layers, "executed": report.executed, "better": None,
    }  # fmt: skip


@pytest.mark.slow(1)
def test_a_plan_of_several_objectives_passes() -> None:
    assert check(solve("lenet5", "scratchpad_64k", objective="energy,time", layers=["c1"])).ok


# --- tampering: what is changed, and what must be said ---------------------------------------------------------------


def _tile(p: Json) -> None:
    p["parts"][0]["schedule"]["nest"].insert(0, {"loop": "r", "step": 5})


def _value(p: Json) -> None:
    p["parts"][0]["measures"]["time"] -= 1


def _total(p: Json) -> None:
    p["objective"]["value"] -= 1


def _terms(p: Json) -> None:
    p["parts"][0]["terms"]["time"]["IN"] -= 1


def _capacity(p: Json) -> None:
    p["machine_data"]["ocm_bytes"] = 512


def _capacity_with_its_digest(p: Json) -> None:
    p["machine_data"]["ocm_bytes"] = 512
    p["machine_digest"] = digest(Plan.from_json(json.dumps(p)).machine_data.model_dump(mode="json"))


def _dropped(p: Json) -> None:
    del p["parts"][1]


def _dropped_with_its_digest(p: Json) -> None:
    del p["parts"][1]
    del p["network_data"][1]
    p["network_digest"] = digest(p["network_data"])


def _network_digest(p: Json) -> None:
    p["network_digest"] = "sha256:" + "0" * 64


def _machine_digest(p: Json) -> None:
    p["machine_digest"] = p["network_digest"]


def _workload(p: Json) -> None:
    p["network_data"][0]["m"] += 1


def _renamed(p: Json) -> None:
    p["parts"][0]["name"] = "other"


def _twice(p: Json) -> None:
    for rows in (p["parts"], p["network_data"]):
        rows.append(copy.deepcopy(rows[0]))


def _counts(p: Json) -> None:
    p["parts"][0]["figures"]["counts"]["W"]["segments"] += 1


def _occupancy(p: Json) -> None:
    p["parts"][0]["figures"]["occupancy_bytes"]["ocm"] -= 1


def _measures(p: Json) -> None:
    p["parts"][0]["measures"]["energy"] += 1


def _bound_above(p: Json) -> None:
    p["parts"][0]["bounds"]["time"] += 1


def _bound_below(p: Json) -> None:
    p["parts"][0]["bounds"]["time"] -= 1


def _gap(p: Json) -> None:
    p["parts"][0]["gap"] = 0.5


def _status_of_layer(p: Json) -> None:
    p["parts"][0]["status"] = "FEASIBLE"


def _status(p: Json) -> None:
    p["status"] = "FEASIBLE"


def _no_schedule(p: Json) -> None:
    p["parts"][0]["schedule"] = None


def _conflicts(p: Json) -> None:
    p["parts"][0]["conflicts"] = ["memory ocm"]


def _decision(p: Json) -> None:
    p["parts"][0]["figures"]["decision"]["T_M"] = 1


def _buffers(p: Json) -> None:
    p["parts"][0]["figures"]["buffers"][0]["address"] += 1


def _pins(p: Json) -> None:
    p["options"]["pins"] = ["T_M=1"]


def _bad_pins(p: Json) -> None:
    p["options"]["pins"] = ["T_Q=1"]


def _wrong_problem(p: Json) -> None:
    p["problem"] = "slicing"


def _objectives(p: Json) -> None:
    p["objectives"] = ["bytes"]


def _objectives_twice(p: Json) -> None:
    p["objectives"] = ["time", "time"]


def _replay(p: Json) -> None:
    p["parts"][0]["replay"]["ok"] = False


def _replay_measures(p: Json) -> None:
    p["parts"][0]["replay"]["measures"]["time"] += 1


def _replay_total(p: Json) -> None:
    p["parts"][0]["replay"]["counts"]["steps"] += 1


def _machine_name(p: Json) -> None:
    p["machine"] = "nmp"


def _bad_nest(p: Json) -> None:
    p["parts"][0]["schedule"]["nest"].pop()


def _infeasible(p: Json) -> None:
    empty = {**dict.fromkeys(("schedule", "figures", "replay", "gap")), "measures": {}, "terms": {}}
    p["parts"][0] |= {**empty, "bounds": {"time": None}, "status": "INFEASIBLE", "conflicts": ["memory ocm"]}


@pytest.mark.few(18)
@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (_tile, "measures.time"),
        (_value, "measures.time"),
        (_total, "objective"),
        (_terms, "terms"),
        (_capacity, "machine_digest"),
        (_capacity_with_its_digest, "memory ocm"),
        (_dropped, "parts: the plan has 4, there are 5 layers"),
        (_dropped_with_its_digest, "objective: "),
        (_network_digest, "network_digest"),
        (_machine_digest, "machine_digest"),
        (_workload, "network_digest"),
        (_renamed, "parts: the plan has other"),
        (_twice, "stands 2 times"),
        (_counts, "counts"),
        (_occupancy, "occupancy_bytes"),
        (_measures, "measures"),
        (_bound_above, "is above the value"),
        (_bound_below, "status: the plan says OPTIMAL, it is FEASIBLE"),
        (_gap, "gap"),
        (_status_of_layer, "layer c1: status: the plan says FEASIBLE, it is OPTIMAL"),
        (_status, "status: the plan says FEASIBLE, it is OPTIMAL"),
        (_no_schedule, "objective: a plan has one if and only if"),
        (_conflicts, "conflicts: the plan says"),
        (_decision, "decision"),
        (_buffers, "buffers[0].address"),
        (_pins, "is no plan of problem tiling with T_M=1"),
        (_bad_pins, "unknown decision 'T_Q'"),
        (_wrong_problem, "slicing"),
        (_objectives, "unit"),
        (_objectives_twice, "one stands twice"),
        (_replay, "replay"),
        (_replay_measures, "replay.measures"),
        (_replay_total, "replay"),
        (_machine_name, "machine: "),
        (_bad_nest, "needs each of"),
        (_infeasible, "it is NO_SOLUTION_FOUND"),
    ],
)
def test_tampering_is_caught(honest: Json, tamper: Callable[[Json], None], said: str) -> None:
    data = copy.deepcopy(honest)
    tamper(data)
    problems = _problems(data)
    assert any(said in p for p in problems), problems
    assert all("\n" not in p for p in problems)


def test_conflicts_are_derived_again() -> None:
    data = json.loads(solve("lenet5", "scratchpad_64k", layers="c1", settings=["ocm_bytes=5"]).to_json())
    assert data["status"] == "INFEASIBLE"
    assert _problems(data) == ()
    data["parts"][0]["conflicts"] = ["the weather"]
    assert any("the weather" in p for p in _problems(data))


def test_a_plan_made_elsewhere_is_judged_by_its_decisions() -> None:
    """A worse plan is no lie as long as it claims nothing: FEASIBLE without a bound."""
    layer = load_network("lenet5").layer("c3")
    plan = solve(layer, "scratchpad_64k", engine="greedy")
    assert plan.status == "FEASIBLE"
    assert check(plan).ok


def test_what_is_no_plan_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        check(tmp_path / "absent.json")

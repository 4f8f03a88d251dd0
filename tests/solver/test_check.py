"""`check`: every way of tampering with a plan is caught, honest plans pass."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from instances.errors import InputError
from instances.load import load_network
from solver import Plan, check, solve
from solver.plan.plan import digest
from tests.lies import Lie, problems

Json = Any  # a parsed plan, edited freely


@pytest.fixture(scope="module")
def honest() -> Plan:
    """lenet5 (c1, c3, c5, f6, output) on a small scratchpad, in a space where the least time is proven."""
    return solve("lenet5", "scratchpad_64k", pins=["holds=uniform"])


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

_ZEROS = "sha256:" + "0" * 64


def less(value: int) -> int:
    return value - 1


def more(value: int) -> int:
    return value + 1


def _capacity_with_its_digest(p: Json) -> None:
    p["machine_data"]["ocm_bytes"] = 512
    p["machine_digest"] = digest(Plan.from_json(json.dumps(p)).machine_data.model_dump(mode="json"))


def _dropped_with_its_digest(p: Json) -> None:
    del p["parts"][1]
    del p["network_data"][1]
    p["network_digest"] = digest(p["network_data"])


def _twice(p: Json) -> None:
    for rows in (p["parts"], p["network_data"]):
        rows.append(copy.deepcopy(rows[0]))


def _infeasible(p: Json) -> None:
    empty = {**dict.fromkeys(("schedule", "figures", "replay", "gap")), "measures": {}, "terms": {}}
    p["parts"][0] |= {**empty, "bounds": {"time": None}, "status": "INFEASIBLE", "conflicts": ["memory ocm"]}


TAMPERED: list[tuple[Lie, str]] = [
    (("parts.0.schedule.nest", lambda nest: [{"loop": "r", "step": 5}, *nest]), "measures.time"),
    (("parts.0.measures.time", less), "measures.time"),
    (("objective.value", less), "objective"),
    (("parts.0.terms.time.IN", less), "terms"),
    (("machine_data.ocm_bytes", 512), "machine_digest"),
    (_capacity_with_its_digest, "memory ocm"),
    (("parts", lambda rows: [rows[0], *rows[2:]]), "parts: the plan has 4, there are 5 layers"),
    (_dropped_with_its_digest, "objective: "),
    (("network_digest", _ZEROS), "network_digest"),
    (("machine_digest", _ZEROS), "machine_digest"),
    (("network_data.0.m", more), "network_digest"),
    (("parts.0.name", "other"), "parts: the plan has other"),
    (_twice, "stands 2 times"),
    (("parts.0.figures.counts.W.segments", more), "counts"),
    (("parts.0.figures.occupancy_bytes.ocm", less), "occupancy_bytes"),
    (("parts.0.measures.energy", more), "measures"),
    (("parts.0.bounds.time", more), "is above the value"),
    (("parts.0.bounds.time", less), "status: the plan says OPTIMAL, it is FEASIBLE"),
    (("parts.0.gap", 0.5), "gap"),
    (("parts.0.status", "FEASIBLE"), "layer c1: status: the plan says FEASIBLE, it is OPTIMAL"),
    (("status", "FEASIBLE"), "status: the plan says FEASIBLE, it is OPTIMAL"),
    (("parts.0.schedule", None), "objective: a plan has one if and only if"),
    (("parts.0.conflicts", ["memory ocm"]), "conflicts: the plan says"),
    (("parts.0.figures.decision.T_M", 1), "decision"),
    (("parts.0.figures.buffers.0.address", more), "buffers[0].address"),
    (("options.pins", ["T_M=1"]), "is no plan of problem tiling with T_M=1"),
    (("options.pins", ["T_Q=1"]), "unknown decision 'T_Q'"),
    (("problem", "slicing"), "slicing"),
    (("objectives", ["bytes"]), "unit"),
    (("objectives", ["time", "time"]), "one stands twice"),
    (("parts.0.replay.ok", False), "replay"),
    (("parts.0.replay.measures.time", more), "replay.measures"),
    (("parts.0.replay.counts.steps", more), "replay"),
    (("machine", "nmp"), "machine: "),
    (("parts.0.schedule.nest", lambda nest: nest[:-1]), "needs each of"),
    (_infeasible, "it is NO_SOLUTION_FOUND"),
]


@pytest.mark.few(18)
@pytest.mark.parametrize(("tamper", "said"), TAMPERED)
def test_tampering_is_caught(honest: Plan, tamper: Lie, said: str) -> None:
    found = problems(honest, tamper)
    assert any(said in p for p in found), found
    assert all("\n" not in p for p in found)


def test_conflicts_are_derived_again() -> None:
    plan = solve("lenet5", "scratchpad_64k", layers="c1", settings=["ocm_bytes=5"])
    assert plan.status == "INFEASIBLE"
    assert check(plan).ok
    assert any("the weather" in p for p in problems(plan, ("parts.0.conflicts", ["the weather"])))


def test_a_plan_made_elsewhere_is_judged_by_its_decisions() -> None:
    """A worse plan is no lie as long as it claims nothing: FEASIBLE without a bound."""
    layer = load_network("lenet5").layer("c3")
    plan = solve(layer, "scratchpad_64k", engine="greedy")
    assert plan.status == "FEASIBLE"
    assert check(plan).ok


def test_what_is_no_plan_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        check(tmp_path / "absent.json")

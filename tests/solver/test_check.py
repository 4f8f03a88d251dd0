"""`check`: every way of tampering with a plan is caught, honest plans pass."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from hwmodels.schedule import Hold, Loop, Nest, Spatial
from instances.errors import InputError
from instances.load import load_network
from instances.network.workload import Layer
from instances.validation import adapter_of
from solver import Plan, check, solve
from solver.ask.names import version
from solver.plan.plan import FORMAT, Objective, digest
from solver.problems.registry import pick_problem
from tests.lies import Lie, changed, problems
from tests.small import TOY as MACHINE

Json = Any  # a parsed plan, edited freely


@pytest.fixture(scope="module")
def honest() -> Plan:
    """c1 and output of lenet5 on a small scratchpad, in a space where the least time is proven."""
    return solve("lenet5", "scratchpad_64k", pins=["holds=uniform"], layers=["c1", "output"])


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
    (("parts", lambda rows: rows[:1]), "parts: the plan has 1, there are 2 layers"),
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
    (("objectives", ["bytes"]), "unit: the plan says ticks, it is bytes"),
    (("objectives", ["time", "time"]), "one stands twice"),
    (("parts.0.replay.ok", False), "replay"),
    (("parts.0.replay.measures.time", more), "replay.measures"),
    (("parts.0.replay.counts.steps", more), "replay"),
    (("machine", "nmp"), "machine: "),
    (("parts.0.schedule.nest", lambda nest: nest[:-1]), "needs each of"),
    (_infeasible, "it is NO_SOLUTION_FOUND"),
]


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
    assert "layer c1: time: bound 3 of nothing" in problems(plan, ("parts.0.bounds.time", 3))


def test_a_plan_made_elsewhere_is_judged_by_its_decisions() -> None:
    """A worse plan is no lie as long as it claims nothing: FEASIBLE without a bound."""
    layer = load_network("lenet5").layer("c3")
    plan = solve(layer, "scratchpad_64k", engine="greedy")
    assert plan.status == "FEASIBLE"
    assert check(plan).ok


def test_what_is_no_plan_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        check(tmp_path / "absent.json")


# ---- Plans as data: the file format, its JSON Schema, digests, and faults of the format ------------------------------

#: 2 channels of 4x4 to 2 channels: IN 32 bytes, W 4, OUT 32; together 68, so 64 bytes on chip need two tiles.
LAYER = Layer.conv("tiny", channels=2, filters=2, size=(4, 4))


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(LAYER, MACHINE)


def test_keys_that_programs_rely_on(plan: Plan) -> None:
    data = json.loads(plan.to_json())
    top = "certile problem network machine engine status objective bound gap wall_s measures parts"
    assert set(top.split()) <= set(data)
    assert {"value", "unit", "terms"} == set(data["objective"])
    assert isinstance(data["objective"]["value"], int)
    [part], [layer] = data["parts"], data["network_data"]
    assert set("name status measures terms bounds gap wall_s schedule figures replay".split()) <= set(part)
    assert part["name"] == layer["name"] == "tiny"
    figures = part["figures"]
    assert set(figures["counts"]) == {"IN", "W", "OUT", "PSUM"}
    for counted in figures["counts"].values():
        assert {"calls", "segments", "bursts", "rows", "bytes"} <= set(counted)
    assert part["replay"]["ok"] is True
    # IN (32) and W (4) stay on chip; what is left, 28 bytes, holds OUT for 3 rows: its loop stands before its Hold
    assert part["schedule"]["nest"][-2:] == [{"loop": "r", "step": figures["decision"]["T_R"]}, {"hold": "OUT"}]
    assert (part["must"], figures["lower_bound_bytes"]) == ({"bytes": 68}, 68)


def test_round_trip_through_a_file(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan.save(path)
    assert Plan.load(path) == plan
    assert path.read_text() == plan.to_json()
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"], "nothing is left beside it"


def test_the_schema_explains_what_a_code_generator_reads() -> None:
    """Whoever has the schema alone has no docstrings of modules, and names of modules say nothing."""
    schema = pick_problem("tiling").schema()
    found = schema["$defs"]
    for kind in ("Buffer", "NestFigures"):
        assert all(field.get("description") for field in found[kind]["properties"].values()), kind
    nest = found["PartPlan"]["properties"]["schedule"]["anyOf"][0]["properties"]
    items = {next(iter(item["properties"])): item["description"] for item in nest["nest"]["items"]["anyOf"]}
    assert set(items) == {"spatial", "loop", "hold"}
    assert all(items.values())
    assert nest["homes"]["description"]
    counts = {name: field["description"] for name, field in found["Counts"]["properties"].items()}
    assert [counts[name].split()[0] for name in ("calls", "segments", "bursts")] == ["DMA", "Contiguous", "Burst"]
    assert all(counts.values())
    assert "OUT[b, g, m, r, c] += W" in found["Layer"]["description"]
    decision = found["NestFigures"]["properties"]["decision"]["description"]
    assert {key for key in ("held", "cuts_C", "T_M") if f"`{key}`" in decision} == {"held", "cuts_C", "T_M"}
    assert "hwmodels." not in json.dumps(schema)


def test_plans_follow_the_schema(plan: Plan) -> None:
    schema = pick_problem("tiling").schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    data = json.loads(plan.to_json())
    jsonschema.validate(data, schema)
    data["parts"][0]["measures"]["bytes"] = -1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)


def test_the_schema_requires_every_key() -> None:
    schema = pick_problem("tiling").schema()
    # of several memories off the chip; of networks
    assert set(schema["required"]) == set(schema["properties"]) - {"shared", "conflicts", "stats"}
    part = schema["$defs"]["PartPlan"]
    assert set(part["required"]) == set(part["properties"]) - {"size", "same_as"}  # what says nothing of most parts
    figures = schema["$defs"]["NestFigures"]
    assert set(figures["required"]) == set(figures["properties"])
    assert schema["properties"]["format"]["const"] == FORMAT


def test_plans_of_unknown_problems_are_refused(plan: Plan) -> None:
    with pytest.raises(InputError, match="field problem is 'unheard_of', expected applications"):
        changed(plan, ("problem", "unheard_of"))


@pytest.mark.parametrize("named", ["certile-plan/1", "certile-plan/2", "certile-banks/1", "certile-plan/9", 2, None])
def test_plans_of_other_formats_get_one_line(plan: Plan, named: object) -> None:
    data = {**json.loads(plan.to_json()), "format": named}
    said = "is missing" if named is None else f"is {named!r}"
    with pytest.raises(InputError) as caught:
        Plan.from_json(json.dumps(data), "plan old.json")
    assert str(caught.value) == f"plan old.json: field format {said}, this version reads {FORMAT!r}: solve again"


def test_plans_are_frozen(plan: Plan) -> None:
    with pytest.raises(ValidationError):
        plan.status = "FEASIBLE"


def test_digest_does_not_depend_on_the_order_of_keys() -> None:
    # printf '{"a":1,"b":[2]}' | sha256sum
    assert digest({"b": [2], "a": 1}) == "sha256:0855bfc20eb6cfaa4be7d6b510c63dd22997718bddadcb1a4915cec3a16145b9"
    assert digest({"a": 1, "b": [2]}) != digest({"a": 1, "b": [3]})


def test_schedule_holds_any_nest() -> None:
    nest = Nest((Spatial("m", 1, "tle"), Loop("r", 2), Hold("IN"), Hold("W"), Hold("OUT")))
    for one in (nest, nest.at({"IN": "flash", "W": "flash", "OUT": "ram"})):
        adapter = adapter_of(Nest)
        assert adapter.validate_json(adapter.dump_json(one)) == one


def test_an_objective_may_have_a_negative_term() -> None:
    assert Objective(value=5, unit="ticks", terms={"transfer": 4, "compute": 3, "overlap": -2}).value == 4 + 3 - 2


def test_layer_by_name(plan: Plan) -> None:
    assert plan.layer("tiny") == plan.layers[0]
    with pytest.raises(InputError, match="has no layer 'conv9'; it has tiny"):
        plan.layer("conv9")


def test_a_fault_is_named_with_its_path(plan: Plan) -> None:
    for item, said in (
        ({"loop": "z", "step": 0}, r"unknown dimension 'z', expected one of b, g, m"),
        ({"loop": "r", "step": 0}, r"step must be a positive integer, got 0$"),
        ({"jump": "r"}, r"keys \['jump'\] are none of hold, buffers, line \| loop, step, cuts \| spatial, step, over"),
    ):
        with pytest.raises(InputError, match=rf"parts\[0\]\.schedule: nest\[0\]: {said}"):
            changed(plan, ("parts.0.schedule.nest.0", item))


def test_version_is_a_text() -> None:
    assert version()

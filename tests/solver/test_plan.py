"""Plans as data: the file format, its JSON Schema, digests, and faults of the format."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

from hwmodels.schedule import Hold, Loop, Nest, Spatial
from instances.errors import InputError
from instances.workload import Layer
from solver import LayersPlan, Plan, solve
from solver.plan import FORMAT, Objective, Schedule, digest, network_digest
from solver.version import version
from tests.small import TOY as MACHINE

#: 2 channels of 4x4 to 2 channels: IN 32 bytes, W 4, OUT 32; together 68, so 64 bytes on chip need two tiles.
LAYER = Layer.conv("tiny", channels=2, filters=2, size=(4, 4))


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(LAYER, MACHINE)


def test_keys_that_programs_rely_on(plan: Plan) -> None:
    data = json.loads(plan.to_json())
    top = "certile problem network machine engine status objective bound gap wall_s replay layers"
    assert set(top.split()) <= set(data)
    assert {"value", "unit", "terms"} == set(data["objective"])
    assert isinstance(data["objective"]["value"], int)
    layer = data["layers"][0]
    assert {"layer", "status", "objective", "bound", "gap", "wall_s", "schedule", "counts", "replay"} <= set(layer)
    assert {"calls", "segments", "bursts", "rows", "bytes", "by_operand"} <= set(layer["counts"])
    assert layer["replay"]["ok"] is data["replay"]["ok"] is True
    # IN (32) and W (4) stay on chip; what is left, 28 bytes, holds OUT for 3 rows: its loop stands before its Hold
    assert layer["schedule"]["nest"][-2:] == [{"loop": "r", "step": layer["schedule"]["T_R"]}, {"hold": "OUT"}]
    assert layer["limits"] == {"compulsory_bytes": 68, "lower_bound_bytes": 68}


def test_round_trip_through_a_file(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan.save(path)
    assert Plan.load(path) == plan
    assert path.read_text() == plan.to_json()
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"], "nothing is left beside it"


def test_the_schema_explains_what_a_code_generator_reads() -> None:
    """Whoever has the schema alone has no docstrings of modules, and names of modules say nothing."""
    found = json.loads(LayersPlan.schema_text())["$defs"]
    for kind in ("Buffer", "SpatialItem", "LoopItem", "HoldItem", "Counted", "LayerCounts", "Schedule"):
        said = {name: field.get("description") for name, field in found[kind]["properties"].items()}
        inherited = set(found["Counted"]["properties"]) if kind == "LayerCounts" else set()
        assert {name for name, text in said.items() if not text} <= inherited, kind
    assert "OUT[b, g, m, r, c] += W" in found["Layer"]["description"]
    assert {key for key in ("held", "cuts_C", "T_M") if f"`{key}`" in found["Schedule"]["description"]} == {
        "held", "cuts_C", "T_M",
    }  # fmt: skip
    assert "hwmodels." not in LayersPlan.schema_text()


def test_plans_follow_the_schema(plan: Plan) -> None:
    schema = json.loads(LayersPlan.schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    data = json.loads(plan.to_json())
    jsonschema.validate(data, schema)
    data["layers"][0]["counts"]["calls"] = -1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)


def test_the_schema_requires_every_key() -> None:
    schema = json.loads(LayersPlan.schema_text())
    assert set(schema["required"]) == set(schema["properties"]) - {
        "homes",
        "conflicts",
        "stats",
    }  # of several memories off the chip; of networks
    layer = schema["$defs"]["LayerPlan"]
    assert set(layer["required"]) == set(layer["properties"]) - {"limits", "buffers"}  # of a schedule
    assert schema["properties"]["format"]["const"] == FORMAT


def test_plans_of_unknown_problems_are_refused(plan: Plan) -> None:
    data = json.loads(plan.to_json())
    with pytest.raises(InputError, match="field problem is 'unheard_of', expected applications"):
        Plan.from_json(json.dumps({**data, "problem": "unheard_of"}))


@pytest.mark.parametrize("named", ["certile-plan/1", "certile-banks/1", "certile-plan/9", 2, None])
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


def test_network_digest_depends_on_layers_and_their_order() -> None:
    other = LAYER.model_copy(update={"name": "other"})
    assert len({network_digest(x) for x in ([LAYER], [other], [LAYER, other], [other, LAYER])}) == 4


def test_schedule_holds_any_nest() -> None:
    nest = Nest((Spatial("m", 1, "tle"), Loop("r", 2), Hold("IN"), Hold("W"), Hold("OUT")))
    schedule = Schedule.of(nest, {"order": "r", "T_R": 2})
    assert schedule.to_nest() == nest
    assert schedule.decision == {"order": "r", "T_R": 2}
    assert Schedule.model_validate_json(schedule.model_dump_json()) == schedule


def test_an_objective_may_have_a_negative_term() -> None:
    assert Objective(value=5, unit="ticks", terms={"transfer": 4, "compute": 3, "overlap": -2}).value == 4 + 3 - 2


def test_layer_by_name(plan: Plan) -> None:
    assert plan.layer("tiny") is plan.layers[0]
    with pytest.raises(InputError, match="has no layer 'conv9'; it has tiny"):
        plan.layer("conv9")


def test_a_fault_is_named_with_its_path(plan: Plan) -> None:
    data = json.loads(plan.to_json())
    data["layers"][0]["schedule"]["nest"][0] = {"loop": "z", "step": 0}
    with pytest.raises(InputError, match=r"nest\[0\].*'z'.*nest\[0\].*\(got 0\)"):
        Plan.from_json(json.dumps(data))
    data["layers"][0]["schedule"]["nest"][0] = {"jump": "r"}
    with pytest.raises(InputError, match=r"a nest item has the keys hold, or loop and step \(and cuts\), or spatial"):
        Plan.from_json(json.dumps(data))


@pytest.mark.parametrize("found", ["certile-plan/3", None, 1])
def test_other_formats_are_refused(plan: Plan, found: object) -> None:
    data = json.loads(plan.to_json())
    data["format"] = found
    with pytest.raises(InputError, match=r"field format .* this version reads 'certile-plan/2'"):
        Plan.from_json(json.dumps(data))


def test_version_is_a_text() -> None:
    assert version()

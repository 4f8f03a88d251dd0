"""Platforms of problem selection: the bundled ones with their sources, and what sections may not say."""

from __future__ import annotations

from typing import Any

import pytest

from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Machine
from instances.validation import validate

BOARD: dict[str, Any] = {
    "stages": [{"name": "a", "power_mw": 5}, {"name": "b"}],
    "types": [{"name": "f32", "bytes": 4}, {"name": "f16", "bytes": 2}],
    "frequencies": [{"name": "slow", "scale": {"a": 2.0}, "stage_mw": {"b": 3}}],
}


def machine(**platform: object) -> Machine:
    sizes = dict.fromkeys(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), 4)
    fields = {"name": "m", "problem": "selection", "tick_ps": 1000, **sizes, "transfer": {}}
    return validate(Machine, {**fields, "platform": {**BOARD, **platform}}, "machine m")


def test_sections_are_read() -> None:
    platform = machine(budgets=[{"name": "cores", "most": 4}]).platform
    assert platform.cuts == (("b",), ())
    assert platform.frequencies[0].scale == {"a": 2.0}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"types": [{"name": "f32", "bytes": 4}] * 2}, "types: f32 stands twice"),
        ({"types": [{"name": "f32", "bytes": 0}]}, "greater than 0"),
        ({"frequencies": [{"name": "x"}, {"name": "x"}]}, "frequencies: x stands twice"),
        ({"frequencies": [{"name": "x", "stage_mw": {"c": 1}}]}, "frequencies: x: no stage 'c', a or b are known"),
        ({"frequencies": [{"name": "x", "scale": {"a": 0}}]}, "greater than 0"),
        ({"conversions": [{"source": "f32", "target": "f16"}] * 2}, "conversions: f32 to f16 stands twice"),
        ({"conversions": [{"source": "f16", "target": "f16"}]}, "conversions: f16 to itself"),
        ({"handovers": [{"source": "a", "target": "z"}]}, "handovers: 'z' is not known, a or b are"),
        ({"handovers": [{"source": "a", "target": "b", "send_ns": -1}]}, "greater than or equal to 0"),
        ({"stages": []}, "at least 1 item"),
        ({"pipeline": "maybe"}, "'choose', 'always' or 'never'"),
        ({"stagess": []}, "unknown field"),
    ],
)
def test_bad_sections_are_one_line(change: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        machine(**change)
    assert "\n" not in str(error.value)


def test_the_section_and_its_problem_need_each_other() -> None:
    fields = machine().model_dump(mode="json")
    for change in ({"problem": "tiling"}, {"platform": None}):
        with pytest.raises(InputError, match="section platform"):
            validate(Machine, {**fields, **change}, "machine m")


@pytest.mark.parametrize("name", ["jetson_tx2", "srp"])
def test_numbers_of_bundled_platforms_have_sources(name: str) -> None:
    """A place in the paper, or "assumed", for every part of the platform that is there."""
    data = load_machine(name)
    there = {f"platform.{field}" for field in data.platform.model_fields_set} - {"platform.pipeline"}
    there |= {"tick_ps", "in_bytes", "w_bytes", "out_bytes", "psum_bytes"}
    assert set(data.sources) == there
    for field, source in data.sources.items():
        assert source.startswith(("heterogeneous_mapping_and_banks ", "assumed")) or field == "tick_ps", field

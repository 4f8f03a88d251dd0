"""Variants of layers and platforms: what files may say, and what is said of bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from instances.errors import InputError
from instances.load import load_machine
from instances.machine.boards import Platform
from instances.machine.machine import Machine
from instances.network.variants import list_variants, load_variants
from instances.validation import validate

GOOD: dict[str, Any] = {
    "format": "certile-variants/1", "name": "n", "unit": "ms",
    "sizes": [{"name": "a", "accuracy": 0.5}, {"name": "b", "accuracy": 0.25, "scale": 0.5}],
    "layers": [
        {"name": "x", "options": [{"variant": "v", "stage": "s", "time": 2}]},
        {"name": "y", "options": [{"variant": "v", "stage": "s", "time": {"a": 3, "b": 1}, "techniques": ["t"]}]},
        {"name": "z", "reads": ["x", "y"], "options": [{"variant": "v", "stage": "s", "time": 0}]},
    ],
}  # fmt: skip
CSV = "layer,variant,stage,time,reads,elements,techniques,type,loss_ppm,bytes,uses\n"


def changed(path: str, value: object) -> dict[str, Any]:
    data: Any = json.loads(json.dumps(GOOD))
    *keys, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    here = data
    for key in keys:
        here = here[key]
    here[last] = value
    return dict(data)


def read(tmp_path: Path, text: str, name: str = "n.json") -> Any:
    (tmp_path / name).write_text(text)
    return load_variants(tmp_path / name)


def test_json(tmp_path: Path) -> None:
    variants = read(tmp_path, json.dumps(GOOD))
    assert variants.edges == ((0, 1), (0, 2), (1, 2))
    assert variants.techniques == ("t",)
    x, y, _ = (layer.options[0] for layer in variants.layers)
    assert [x.ps("ms", size) for size in variants.sizes] == [2e9, 1e9]
    assert [y.ps("ms", size) for size in variants.sizes] == [3e9, 1e9]
    assert [size.accuracy_ppm for size in variants.sizes] == [500_000, 250_000]
    # a layer that reads nothing, an order of techniques that few have, a base behind others
    apart = read(tmp_path, json.dumps(changed("layers.1.reads", []) | {"order": ["u", "t"]}))
    assert (apart.edges, apart.techniques) == (((0, 2), (1, 2)), ("t",))
    two = [{"variant": "w", "stage": "s", "time": 1, "techniques": ["t"]}, *GOOD["layers"][0]["options"]]
    assert read(tmp_path, json.dumps(changed("layers.0.options", two))).layers[0].base.variant == "v"


def test_csv_says_the_same_as_json(tmp_path: Path) -> None:
    rows = "x,v,s,2,,7,,f16,10,20,cores=2 heap=3\ny,v,s,3,x,,a+b,,,,\ny,w,s,4,,,,,,,\n"
    variants = read(tmp_path, CSV + rows, "some.csv")
    assert variants.name == "some"
    x, y = variants.layers
    assert (x.elements, x.options[0].type, x.options[0].loss_ppm, x.options[0].bytes) == (7, "f16", 10, 20)
    assert x.options[0].uses == {"cores": 2, "heap": 3}
    assert (y.reads, y.options[0].techniques, len(y.options)) == (("x",), ("a", "b"), 2)
    beside = {**{key: GOOD[key] for key in ("format", "name")}, "table": "some.csv"}
    assert read(tmp_path, json.dumps(beside)).layers == variants.layers


def test_times_by_size_in_csv(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("layer,variant,stage,time@a,time@b\nx,v,s,4,1.5\n")
    data = {**{key: GOOD[key] for key in ("format", "name", "sizes")}, "table": "t.csv"}
    assert read(tmp_path, json.dumps(data)).layers[0].options[0].time == {"a": 4, "b": 1.5}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("format", "certile-variants/9", "this version reads 'certile-variants/1'"),
        ("layers.2.reads", ["w"], "reads 'w', which does not come before it"),
        ("layers.2.reads", ["x", "x"], "reads a layer twice"), ("layers.1.name", "x", "layer x stands twice"),
        ("layers.1.options.0.time", {"a": 3}, "time by size needs a or b, got a"),
        ("layers.0.options.0.time", -1, "greater than or equal to 0"), ("layers.0.options", [], "at least 1 item"),
        ("sizes.1.name", "a", "sizes: names must differ"), ("sizes.0.accuracy", 1.5, "less than or equal to 1"),
        ("layers.0.options.0.tme", 3, "unknown field"), ("table", "t.csv", "give layers or table, not both"),
        ("images", 0, "greater than 0"),
    ],
)  # fmt: skip
def test_bad_json_is_one_line(path: str, value: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as error:
        read(tmp_path, json.dumps(changed(path, value)))
    assert "\n" not in str(error.value)


def test_an_option_stands_once(tmp_path: Path) -> None:
    twice = GOOD["layers"][0]["options"] * 2
    with pytest.raises(InputError, match="variant v on s stands twice"):
        read(tmp_path, json.dumps(changed("layers.0.options", twice)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("layer,variant,stage\n", "line 1: no time"),
        ("layer,variant,stage,time,x\n", "no column 'x'"),
        (CSV + "x,v,s\n", "line 2: 3 cells under 11 heads"),
        (CSV + "x,v,s,fast,,,,,,,\n", "line 2: time: 'fast' is not a number"),
        (CSV + "x,,s,1,,,,,,,\n", "line 2: column variant is empty"),
        (CSV + "x,v,s,,,,,,,,\n", "line 2: column time is empty"),
        (CSV + "x,v,s,1,,,,,,,cores\n", "line 2: uses cores: '' is not a number"),
        (CSV, "at least 1 item"),
        (CSV + "x,v,s,nan,,,,,,,\n", "finite"),
    ],
)  # fmt: skip
def test_bad_csv_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as error:
        read(tmp_path, text, "t.csv")
    assert "\n" not in str(error.value)


def test_a_truncated_file_and_unknown_names(tmp_path: Path) -> None:
    text = json.dumps(GOOD)
    for end in range(1, len(text), 29):
        with pytest.raises(InputError):
            read(tmp_path, text[:end])
    with pytest.raises(InputError, match="tiny_yolo_tx2 or yolov2_tx2 are bundled"):
        load_variants("tiny")
    with pytest.raises(InputError, match="no such file"):
        load_variants(tmp_path / "none.json")


@pytest.mark.parametrize("name", list_variants())
def test_bundled_profiles_name_their_machine_and_sources(name: str) -> None:
    variants = load_variants(name)
    platform = load_machine(variants.machine).platform
    assert {option.stage for _, option in variants.choices} <= {stage.name for stage in platform.stages}
    assert variants.name == name
    assert variants.sources["time"].startswith("heterogeneous_mapping_and_banks")


# ---- platforms -------------------------------------------------------------------------------------------------------


BOARD: dict[str, Any] = {"stages": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}


def test_cuts() -> None:
    assert Platform(**BOARD).cuts == (("b", "c"), ("c",), ("b",), ())
    assert Platform(**BOARD, pipeline="always").cuts == (("b", "c"),)
    assert Platform(**BOARD, pipeline="never").cuts == ((),)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stages": [{"name": "a"}, {"name": "a"}]}, "stages: a stands twice"), ({"frequencies": []}, "one is needed"),
        ({"frequencies": [{"name": "f", "scale": {"d": 1}}]}, "no stage 'd'"),
        ({"conversions": [{"source": "f32", "target": "f16"}]}, "'f16' is not known"),
        ({"handovers": [{"source": "a", "target": "a"}]}, "a to itself"),
        ({"handovers": [{"source": "a", "target": "b"}] * 2}, "a to b stands twice"),
        ({"budgets": [{"name": "n", "most": 1}] * 2}, "budgets: n stands twice"),
    ],
)  # fmt: skip
def test_bad_platforms(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Platform(**{**BOARD, **change})


# ---- Platforms of problem selection: the bundled ones with their sources, and what sections may not say --------------

SECTION: dict[str, Any] = {
    "stages": [{"name": "a", "power_mw": 5}, {"name": "b"}],
    "types": [{"name": "f32", "bytes": 4}, {"name": "f16", "bytes": 2}],
    "frequencies": [{"name": "slow", "scale": {"a": 2.0}, "stage_mw": {"b": 3}}],
}


def machine(**platform: object) -> Machine:
    sizes = dict.fromkeys(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), 4)
    fields = {"name": "m", "problem": "selection", "tick_ps": 1000, **sizes, "transfer": {}}
    return validate(Machine, {**fields, "platform": {**SECTION, **platform}}, "machine m")


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

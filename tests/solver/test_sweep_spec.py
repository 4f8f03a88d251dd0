"""What a sweep may ask: values, ranges, rules, several grids; every fault is one line that names its path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.errors import InputError
from solver.uses.sweep.spec import Spec, examples, matches, parse_spec, read_spec
from solver.uses.sweep.tasks import Expansion

BASE: dict[str, Any] = {"networks": ["lenet5"], "machines": ["scratchpad_64k"]}


def _points(**more: Any) -> list[Any]:
    return list(Expansion(read_spec({**BASE, **more})))


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ([1024, "2KiB", "3 KiB", "1MiB"], ("1024", "2048", "3072", "1048576")),
        ({"from": "16KiB", "to": "64KiB", "times": 2}, ("16384", "32768", "65536")),
        ({"from": 1, "to": 9, "step": 4}, ("1", "5", "9")),
        ([{"from": 1, "to": 2, "step": 1}, 2, 7], ("1", "2", "7")),
        ("16KiB", ("16384",)),
        ([True, False], ("true", "false")),
        (["single", None], ("single", "none")),
        ({"from": 3, "to": 10, "times": 3}, ("3", "9")),
    ],
)
def test_values(written: object, meant: tuple[str, ...]) -> None:
    assert read_spec({**BASE, "set": {"ocm_bytes": written}}).set["ocm_bytes"] == meant


def test_pins_are_alternatives() -> None:
    spec = read_spec({**BASE, "pins": ["none", "T_M<=8", ["T_M<=8", "order=OS"], {"T_C": 4}]})
    assert spec.pins == ((), ("T_M<=8",), ("T_M<=8", "order=OS"), ("T_C=4",))


def test_the_order_is_that_of_the_file_and_the_last_field_runs_fastest() -> None:
    points = _points(layers=["f6", "output"], set={"ocm_bytes": [512, 1024], "transfer.byte_ticks": [1, 2]})
    said = [(p.machine.settings, p.target.layer) for p in points]
    sizes = [("512", "1"), ("512", "2"), ("1024", "1"), ("1024", "2")]
    assert said == [
        ((f"ocm_bytes={ocm}", f"transfer.byte_ticks={bus}"), layer) for ocm, bus in sizes for layer in ("f6", "output")
    ]


def test_grids_take_what_they_do_not_say_from_the_top() -> None:
    spec = read_spec({
        "machines": ["scratchpad_64k"], "set": {"ocm_bytes": [512], "transfer.byte_ticks": [1]},
        "objectives": ["bytes"],
        "grids": [{"networks": ["lenet5"], "set": {"ocm_bytes": [1024]}},
                  {"networks": "alexnet", "objectives": "time"}],
    })  # fmt: skip
    (first, one), (second, two) = spec.all()
    assert (first, second) == ("grids[0].", "grids[1].")
    assert one.set == {"ocm_bytes": ("1024",), "transfer.byte_ticks": ("1",)}
    assert (one.objectives, two.objectives) == (("bytes",), ("time",))
    assert two.set["ocm_bytes"] == ("512",)


def test_rules_keep_and_leave_out() -> None:
    sizes = {"ocm_bytes": ["1KiB", "2KiB", "4KiB"]}
    assert len(_points(layers=["f6"], set=sizes)) == 3
    kept = _points(layers=["f6", "output"], set=sizes, exclude={"layer": "f6", "ocm_bytes": [">=4KiB", "1KiB"]})
    assert [(p.target.layer, p.machine.settings[0]) for p in kept] == [
        ("output", "ocm_bytes=1024"), ("f6", "ocm_bytes=2048"), ("output", "ocm_bytes=2048"),
        ("output", "ocm_bytes=4096"),
    ]  # fmt: skip
    assert len(_points(layers=["f6", "output"], set=sizes, include=[{"layer": "f6"}, {"ocm_bytes": "<2KiB"}])) == 4


@pytest.mark.parametrize(
    ("value", "wanted", "holds"),
    [
        ("1024", "1KiB", True), ("1024", "=1KiB", True), ("1024", "!=1KiB", False), ("1024", "<=1023", False),
        ("conv1", "conv1", True), ("conv1", "!=conv2", True), ("none", ">=1", False), ("9", "<10", True),
        ("10", "<9", False),
    ],
)  # fmt: skip
def test_what_a_value_of_a_rule_holds_for(value: str, wanted: str, holds: bool) -> None:
    assert matches(value, wanted) is holds


@pytest.mark.parametrize("name", sorted(examples()))
def test_examples_can_be_run(name: str) -> None:
    points = list(Expansion(read_spec(name)))
    assert points
    assert not [p.error for p in points if p.error]


# --- faults ----------------------------------------------------------------------------------------------------------

FAULTS = {
    "unknown key": ({"machine": ["x"]}, "unknown field machine: did you mean machines?"),
    "key of a grid": ({"grids": [{"enginess": ["auto"]}]}, "unknown field grids[0].enginess: did you mean engines?"),
    "key of a network": ({"networks": [{"network": "lenet5", "btach": 2}]}, "networks[0].btach: did you mean batch?"),
    "unknown network": ({"networks": ["lenet5", "lenet6"]}, "networks[1]: unknown network 'lenet6': did you"),
    "unknown machine": ({"machines": ["scratchpad_64"]}, "machines[0]: unknown machine"),
    "unknown layer": ({"layers": ["c1", "c9"]}, "layers[1]: no network of the grid has a layer 'c9'"),
    "unknown field": ({"set": {"ocm_bites": [1]}}, "set: unknown machine field 'ocm_bites': did you mean ocm_bytes"),
    "field twice": ({"set": {"byte_ticks": [1], "transfer.byte_ticks": [1]}}, "is set twice"),
    "unknown problem": ({"problems": ["tilling"]}, "problems: unknown problem 'tilling': did you mean tiling"),
    "unknown objective": ({"objectives": ["bytes,tme"]}, "objectives: unknown objective 'tme': did you mean time"),
    "unknown engine": ({"engines": ["exhaustiv"]}, "engines: unknown engine 'exhaustiv': did you mean exhaustive"),
    "unit of 1000": ({"set": {"ocm_bytes": ["16kB"]}}, "set.ocm_bytes: a size is written in KiB, MiB or GiB"),
    "range without end": ({"set": {"ocm_bytes": {"from": 1}}}, "set.ocm_bytes: a range has from, to, and step"),
    "range of both": ({"set": {"ocm_bytes": {"from": 1, "to": 2, "step": 1, "times": 2}}}, "step or times"),
    "range downwards": ({"set": {"ocm_bytes": {"from": 9, "to": 2, "step": 1}}}, "a range goes upwards"),
    "range of no step": ({"set": {"ocm_bytes": {"from": 1, "to": 2, "step": 0}}}, "step at least 1"),
    "range without growth": ({"set": {"ocm_bytes": {"from": 1, "to": 2, "times": 1}}}, "times at least 2"),
    "endless range": ({"set": {"ocm_bytes": {"from": 1, "to": 10**9, "step": 1}}}, "more than 100,000 values"),
    "key of a range": ({"set": {"ocm_bytes": {"from": 1, "until": 2}}}, "unknown key 'until' of a range"),
    "empty list": ({"set": {"ocm_bytes": []}}, "set.ocm_bytes: is an empty list"),
    "nothing in a list": ({"objectives": []}, "objectives: is an empty list"),
    "no limit": ({"time_limit_s": 0}, "time_limit_s: a positive number of seconds is needed"),
    "limit in words": ({"time_limit_s": "10 s"}, "time_limit_s: a positive number of seconds is needed"),
    "rule of no name": ({"exclude": [{"ocm_bytes": 4}]}, "exclude[0].ocm_bytes: unknown name"),
    "rule of no number": (
        {"set": {"ocm_bytes": [4]}, "include": [{"ocm_bytes": ">=big"}]}, "include[0].ocm_bytes: >=big: >= is followed",
    ),
    "no networks": ({"networks": None}, "field networks is missing"),
    "nan": ({"time_limit_s": float("nan")}, "time_limit_s: nan is no finite number"),
    "key that is no text": ({"set": {16: [1]}}, "set: unknown machine field '16'"),
    "size": ({"networks": [{"network": "lenet5", "size": "big"}]}, "networks[0]: size 'big'"),
}  # fmt: skip


@pytest.mark.parametrize(("more", "said"), FAULTS.values(), ids=FAULTS)
def test_every_fault_names_its_path_in_one_line(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        Expansion(read_spec({**BASE, **more}))
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_all_faults_are_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Expansion(read_spec({"networks": ["nope"], "machines": ["neither"], "objectives": ["bite"]}))
    assert all(text in str(caught.value) for text in ("networks[0]", "machines[0]", "objectives: unknown objective"))


def test_what_a_grid_lacks_is_named() -> None:
    with pytest.raises(InputError, match=r"field grids\[1\]\.networks is missing"):
        Expansion(read_spec({"machines": "nmp", "grids": [{"networks": "lenet5"}, {"objectives": "time"}]}))


YAML_FAULTS = {
    "syntax": ("networks: [lenet5\nmachines: x", "line 2: not plain YAML"),
    "twice": ("networks: lenet5\nnetworks: alexnet", "key 'networks' stands twice"),
    "twice inside": ("set:\n  ocm_bytes: 1\n  ocm_bytes: 2", "key 'ocm_bytes' stands twice"),
    "a list": ("- lenet5", "a JSON object is needed, found an array"),
    "empty": ("", "a JSON object is needed, found null"),
    "objects": ("networks: !!python/object/apply:os.system ['echo']", "line 1: not plain YAML"),
    "a date": ("name: 2024-01-01", "name: datetime.date(2024, 1, 1) is a date; put it in quotes"),
    "no date": ("name: 2024-13-41", "not plain YAML"),
    "laughs": (
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "\n".join(f"{y}: &{y} [{','.join(['*' + x] * 9)}]" for x, y in zip("abcdefg", "bcdefgh", strict=True)),
        "more than 200,000 values",
    ),
    "deep": ("a: " + "[" * 150 + "]" * 150, "nested too deeply"),
}


@pytest.mark.parametrize(("text", "said"), YAML_FAULTS.values(), ids=YAML_FAULTS)
def test_yaml_that_is_no_spec(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_spec(text, "sweep x.yaml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("sweep x.yaml: ")


def test_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_spec(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="bundled examples are"):
        read_spec("none")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        read_spec(tmp_path / "bytes.yaml")
    (tmp_path / "spec.json").write_text('{"networks": ["lenet5"], "machines": ["nmp"]}')
    assert read_spec(tmp_path / "spec.json").machines == ("nmp",)


def test_anchors_and_merges() -> None:
    text = "x: &x {network: lenet5, batch: 2}\n"
    with pytest.raises(InputError, match="unknown field x"):
        parse_spec(f"{text}networks: [*x]\nmachines: nmp", "sweep")
    spec = parse_spec("networks: [&x {network: lenet5, batch: 2}, {<<: *x, batch: 3}]\nmachines: nmp", "sweep")
    assert [entry.label for entry in spec.networks or ()] == ["lenet5 batch=2", "lenet5 batch=3"]


# --- anything --------------------------------------------------------------------------------------------------------

_SCALARS = st.none() | st.booleans() | st.integers(-5, 2**60) | st.floats() | st.text(max_size=6) | st.sampled_from(
    ["lenet5", "c1", "16KiB", "bytes", "time", "tiling", "greedy", "T_M<=8", ">=1KiB", "all"]
)  # fmt: skip
_KEYS = st.sampled_from([*Spec.model_fields, "from", "to", "step", "network", "ocm_bytes", "layer"]) | st.text(
    max_size=4
)
_DATA = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4))


@given(st.dictionaries(_KEYS, _DATA, max_size=5), st.booleans())
def test_anything_is_read_or_refused_in_one_line(data: dict[str, Any], complete: bool) -> None:
    try:
        spec = read_spec({**data, **BASE} if complete else data)
        spec.all()
    except InputError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    else:
        assert read_spec(spec.model_dump(exclude_unset=True)) == spec
        assert read_spec(spec) is spec


@given(st.text(alphabet=" \n:-[]{},&*!|>'\"#%@`?abnetworkslmchi0123456789", max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        parse_spec(text, "sweep")
    except InputError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017

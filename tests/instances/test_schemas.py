"""The schemas of network and machine files accept what is bundled and refuse what the loaders refuse."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import instances
from instances.library_format import FILES, file_schema
from instances.new_machine import machine_template

FOLDER = Path(instances.__file__).parent
NETWORK: dict[str, Any] = {
    "format": "certile-network/1", "name": "two",
    "operators": [
        {"op": "input", "name": "in", "shape": [1, 3, 8, 8]},
        {"op": "conv", "name": "c1", "inputs": ["in"], "shape": [1, 4, 8, 8], "filters": 4, "kernel": [1, 1]},
    ],
}  # fmt: skip


@cache
def validator(kind: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(file_schema(kind))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def valid(kind: str, data: object) -> bool:
    return bool(validator(kind).is_valid(data))


@pytest.mark.slow(4)
@pytest.mark.parametrize("kind", FILES)
def test_bundled_files_follow_their_schema(kind: str) -> None:
    files = sorted((FOLDER / {"library": "library"}.get(kind, f"{kind}s")).glob("*.json"))
    assert len(files) > 5
    small = [path for path in files if path.stat().st_size < 50_000]
    assert [path.name for path in small if not valid(kind, json.loads(path.read_text(encoding="utf-8")))] == []


def test_comments_are_allowed_and_other_unknown_keys_are_not() -> None:
    """The template of a machine is full of comments: ``//tick_ps``."""
    machine = json.loads(machine_template("tiling"))
    assert valid("machine", machine)
    assert not valid("machine", machine | {"tick": 1})
    assert valid("network", NETWORK | {"//name": "two layers"})


def test_operators_say_what_they_are() -> None:
    first, conv = NETWORK["operators"]
    assert valid("network", NETWORK)
    for wrong in ({k: v for k, v in conv.items() if k != "op"}, conv | {"op": "convolution"}, conv | {"kernels": 3}):
        assert not valid("network", NETWORK | {"operators": [first, wrong]})
    assert not valid("network", {k: v for k, v in NETWORK.items() if k != "format"})

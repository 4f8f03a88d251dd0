"""The JSON Schemas of certile's files as tables: a record each, as Markdown for `reference`.

A record that several kinds of plan hold is shown once. The records of a machine file are left to the table in
docs/machines.md, which is made from the same models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Any

from instances.library_format import file_schema
from solver.problems.registry import PROBLEMS

Schema = Mapping[str, Any]
#: What the keys of the head of a plan mean; the records of plans say it themselves.
_HEAD = {
    "format": "Version of the format; a reader refuses others.",
    "certile": "Version of certile that wrote the plan.",
    "network": "Name of what was planned.",
    "machine": "Name of the machine.",
    "engine": "Who answered: `certile list engines`.",
    "engine_version": "Version of the solver behind it.",
    "status": "What is known: [engines.md](engines.md) says what each word promises.",
    "objective": "Value, unit and terms of the first objective; null without a solution.",
    "bound": "No plan has a smaller first objective.",
    "gap": "(objective - bound) / objective; 0 where that is proven optimal.",
    "wall_s": "Seconds that deciding and checking took.",
    "conflicts": "Of an infeasible request: demands that cannot all be met.",
    "stats": "What the search says of itself; not checked.",
    "network_digest": "SHA-256 of what was planned, so that a plan can be matched with its network.",
    "machine_digest": "SHA-256 of `machine_data`.",
    "machine_data": "The machine, with the fields that `--set` changed.",
}


def markdown() -> str:
    """Return every schema as Markdown: the head of a plan, then a section for every kind of file."""
    kinds = plan_schemas()
    machine = json.loads(file_schema("machine"))
    network = json.loads(file_schema("network"))
    known = {"Machine", "Network", *machine["$defs"]} - set(network["$defs"])
    head = _head(list(kinds.values()))
    parts = ["## Every plan", "The keys that plans of all problems have.", _table(next(iter(kinds.values())), head)]
    parts += ["(schema-Network)=\n\n## A network file", _table(network, list(network["properties"]))]
    parts += _records(network, known)
    for name, schema in kinds.items():
        own = [key for key in schema["properties"] if key not in head]
        parts += [f"## A plan of {name}", _summary(schema), _table(schema, own)]
        parts += _records(schema, known)
    return "\n\n".join(part for part in parts if part) + "\n"


def plan_schemas() -> dict[str, Schema]:
    """Return the schema of every kind of plan by the problems that have it, sorted."""
    named: dict[str, list[str]] = {}
    for problem in PROBLEMS.values():
        named.setdefault(json.dumps(problem.schema()), []).append(problem.name)
    return dict(sorted((", ".join(names), json.loads(schema)) for schema, names in named.items()))


def _head(schemas: list[Schema]) -> list[str]:
    """Return the keys that all plans have and that mean the same in all of them."""
    first, *others = (schema["properties"] for schema in schemas)

    def same(key: str) -> bool:
        return all(key in other and _kind(other[key]) == _kind(first[key]) for other in others)

    return [key for key in first if same(key)]


def _records(schema: Schema, known: set[str]) -> Iterator[str]:
    """Yield the records of a schema that were not shown before, and note them in `known`."""
    for name, record in schema["$defs"].items():
        label = _label(name, record)
        if name in known or label in known or "properties" not in record:
            continue
        known.add(label)
        yield f"({label})=\n\n### `{name}`"
        yield _summary(record)
        yield _table(record, list(record["properties"]))


def _label(name: str, record: Schema) -> str:
    """Return the name of a record in links; two records are called Buffer."""
    return f"schema-{name}" + ("-given" if name == "Buffer" and "address" not in record["properties"] else "")


def _summary(record: Schema) -> str:
    """Return the sentences of a description that stand before its sections."""
    return _plain(str(record.get("description", "")).split("\n\n")[0])


def _table(schema: Schema, keys: list[str]) -> str:
    """Return the properties named as a table."""
    if not keys:
        return ""
    said = _attributes(str(schema.get("description", "")))
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key in keys:
        field = schema["properties"][key]
        default = "required" if key in schema.get("required", ()) else f"`{json.dumps(field.get('default'))}`"
        meaning = str(field.get("description", "")) or said.get(key, "") or _HEAD.get(key, "")
        cells = [f"`{key}`", _kind(field), default if len(default) < 40 else "", _plain(meaning)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines)


def _attributes(docstring: str) -> dict[str, str]:
    """Return what the section of attributes of a numpydoc docstring says of each."""
    section = docstring.partition("Attributes\n----------\n")[2]
    found: dict[str, str] = {}
    for names, text in re.findall(r"^(\w[\w, ]*?) :.*\n((?:    .*\n?|\n)*)", section, re.MULTILINE):
        found.update(dict.fromkeys(names.split(", "), text))
    return found


def _plain(text: str) -> str:
    """Return reStructuredText of one paragraph as Markdown: only its double backticks differ."""
    return " ".join(text.replace("``", "`").split()).replace("<", "&lt;")


def _link(name: str) -> str:
    """Return a link to a record: of a machine file to the table of its fields."""
    return f"[{name}](machines.md#all-fields)" if name in _machine_records() else f"[{name}](#schema-{name})"


@cache
def _machine_records() -> frozenset[str]:
    return frozenset({"Machine", *json.loads(file_schema("machine"))["$defs"]})


def _kind(field: Schema) -> str:
    """Return the type of a property in a few words; a record is a link."""
    if "$ref" in field:
        name = str(field["$ref"]).rsplit("/", 1)[-1]
        return _link(name)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in field:
            kinds = dict.fromkeys(_kind(one) for one in field[several])
            return " or ".join(kinds)
    if "const" in field or "enum" in field:
        return ", ".join(f"`{json.dumps(one)}`" for one in field.get("enum", [field.get("const")]))
    if field.get("type") == "array":
        inside = field.get("items", {})
        entries = dict.fromkeys(map(_kind, chain(field.get("prefixItems", ()), [inside] if inside else ())))
        return f"list of {', '.join(entries) or 'anything'}"
    if field.get("type") == "object":
        inside = field.get("additionalProperties")
        return f"object of {_kind(inside)}" if isinstance(inside, dict) else "object"
    return str(field.get("type", "anything"))

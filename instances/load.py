"""Loads and writes networks and machines: bundled by name, or from a path; machine files to begin with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args, get_origin

from pydantic import BaseModel

from instances.errors import InputError, choices, did_you_mean
from instances.foreign.foreign import is_foreign, read_foreign
from instances.jsonfile import MODELS, Json, as_object, find, json_by_lines, parse_json, shown, write_atomically
from instances.jsonfile import list_machines as list_machines
from instances.jsonfile import list_networks as list_networks
from instances.machine.fields import Row, rows, section_of
from instances.machine.levels import Level
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.problems import PROBLEMS
from instances.validation import validate

#: The first field of every network file; a reader refuses other versions.
NETWORK_FORMAT = "certile-network/1"
#: The sections of a machine, by name, whose fields may be changed one by one.
Nested: dict[str, type[BaseModel]] = {
    name: section
    for name in ("transfer", "compute", "broadcast", "banks", "processors", "engine", "mesh", "platform", "levels")
    if (section := section_of(Machine.model_fields[name]))
}
#: The fields of a memory in levels that may be changed.
_OF_A_MEMORY = tuple(name for name in Level.model_fields if name != "name")


# --- networks ----------------------------------------------------------------------------------------------------


def load_network(
    name_or_path: str | os.PathLike[str], *, batch: int | None = None, symbols: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None, values: Mapping[str, float] | None = None,
) -> Network:  # fmt: skip
    """Load a network.

    Parameters
    ----------
    name_or_path : str or path
        A bundled name (see `list_networks`), or a ``.json``, ``.onnx`` or ``.tflite`` file; a problem of Timeloop, a
        workload of ZigZag (``.yaml``) or a graph of DORY (``.json``): its layers side by side.
    batch : int, optional
        Batch size; by default that of the file, or 1 where an ONNX file leaves it open.
    symbols : mapping, optional
        Sizes of the other symbolic dimensions of an ONNX file.
    shapes : mapping, optional
        Shapes of inputs of an ONNX file with open sizes: ``{"x": (1, 3, 48, 320)}``.
    values : mapping, optional
        Inputs of an ONNX file that are constants, with the value of all their elements: ``{"sr": 16000}``.

    Raises
    ------
    InputError
        If there is no such network or its file is bad.
    """
    text = os.fspath(name_or_path)
    if text.lower().endswith(MODELS):
        from instances.onnx.reader import read_onnx  # onnx takes half a second to import

        return read_onnx(text, batch=batch, symbols=symbols, shapes=shapes, values=values)
    if named := [*(symbols or ()), *(shapes or ()), *(values or ())]:
        raise InputError(
            f"network {text}: only ONNX files have symbolic dimensions and inputs to set ({', '.join(named)})"
        )
    if is_foreign(text):
        network = read_foreign(text)
    else:
        data, where = find("network", text)
        network = network_from_json(data, where)
    return network if batch is None else network.with_batch(batch)


def network_from_json(data: Json, where: str = "network") -> Network:
    """Build a network from parsed JSON; raises InputError that names every fault of the first faulty level."""
    fields = dict(as_object(data, where))
    version = fields.pop("format", None)
    if version != NETWORK_FORMAT:
        found = "is missing" if version is None else f"is {shown(version)}"
        raise InputError(f"{where}: field format {found}, this version reads {NETWORK_FORMAT!r}")
    return validate(Network, fields, where)


def network_to_json(network: Network) -> str:
    """Return the network file's text: one operator per line, defaults left out."""
    lines = []
    for operator in network.operators:
        fields = operator.model_dump(mode="json", exclude_defaults=True)
        first = {"op": operator.op, "name": operator.name}
        lines.append(json.dumps(first | fields, ensure_ascii=False))
    types = {field: text for field in ("map_type", "weight_type") if (text := getattr(network, field))}
    head = {"format": NETWORK_FORMAT, "name": network.name, "description": network.description, **types}
    return json_by_lines(head, "operators", lines)


def dump_network(network: Network, path: str | os.PathLike[str]) -> None:
    """Write `network` to a JSON file, atomically. Raises InputError if it cannot be written."""
    write_atomically(path, network_to_json(network))


# --- machines ----------------------------------------------------------------------------------------------------


def load_machine(name_or_path: str | os.PathLike[str], overrides: Mapping[str, str] | None = None) -> Machine:
    """Load a machine and change some of its fields.

    Parameters
    ----------
    name_or_path : str or path
        A bundled name (see `list_machines`) or a ``.json`` file.
    overrides : mapping, optional
        ``field -> text`` as given with ``--set``: any field of `Machine`, nested ones as ``transfer.byte_ticks``
        or just ``byte_ticks`` where that is unique, of a memory in levels as ``levels.l2.bytes``. Texts are read as
        JSON, else taken literally; ``none`` clears an optional field.

    Raises
    ------
    InputError
        If there is no such machine, its file is bad, or an override names no field or breaks a rule.
    """
    data, where = find("machine", os.fspath(name_or_path))
    fields = dict(as_object(data, where))
    if overrides:
        validate(Machine, fields, where)  # so that a fault of the file is not blamed on the overrides
        for field, text in overrides.items():
            _override(fields, field, text)
        where = f"{where} with {', '.join(f'{k}={v}' for k, v in overrides.items())}"
    return validate(Machine, fields, where)


def parse_overrides(texts: Iterable[str]) -> dict[str, str]:
    """Split ``FIELD=VALUE`` texts.

    Raises InputError for a text without ``=``, an empty field or value, or a field given twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        field, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not field or not value:
            raise InputError(f"override {text!r}: write FIELD=VALUE, for example ocm_bytes=98304")
        if _resolve(field) in {_resolve(other) for other in found}:
            raise InputError(f"override {text!r}: field {field} is set twice")
        found[field] = value
    return found


def unmet_overrides(machine: Machine, texts: Iterable[str]) -> tuple[str, ...]:
    """Return those of some overrides (``FIELD=VALUE``) that a machine does not have; raises InputError for bad ones."""
    unmet = []
    for field, text in parse_overrides(texts).items():
        fields: dict[str, Json] = machine.model_dump(mode="json")
        _override(fields, field, text)
        made = validate(Machine, fields, f"machine {machine.name} with {field}={text}")
        if made.model_copy(update={"sources": machine.sources}) != machine:
            unmet.append(f"{field}={text}")
    return tuple(unmet)


def _override(fields: dict[str, Json], field: str, text: str) -> None:
    """Set one field in the parsed JSON of a machine."""
    where = f"override {field}={text}"
    path = _resolve(field)
    value = _value(path, text, where)
    target = fields
    if len(path) > 1:
        inner = dict(as_object(fields.get(path[0], {}), where))
        fields[path[0]], target = inner, inner
    if len(path) > 2:
        target, path = _memory(target, path[1], where), (path[0], "memories", *path[1:])
    if value is None:
        target.pop(path[-1], None)
    else:
        target[path[-1]] = value
    sources = fields.get("sources")
    fields["sources"] = {**(sources if isinstance(sources, dict) else {}), ".".join(path): "set by the user"}


def _memory(levels: dict[str, Json], name: str, where: str) -> dict[str, Json]:
    """Return a memory of section `levels`, to be changed; raises InputError if there is none of that name."""
    given = levels.get("memories", [])
    memories = [dict(as_object(one, where)) for one in given] if isinstance(given, list) else []
    levels["memories"] = [*memories]
    names = [str(one.get("name")) for one in memories]
    if name not in names:
        raise InputError(f"{where}: no memory {name}, the machine has {choices(names) if names else 'no levels'}")
    return memories[names.index(name)]


def _fields() -> list[tuple[str, ...]]:
    """Return the paths of all fields that may be overridden."""
    top: list[tuple[str, ...]] = [(name,) for name in Machine.model_fields if name != "sources"]
    return top + [(outer, name) for outer, model in Nested.items() for name in model.model_fields]


def _resolve(field: str) -> tuple[str, ...]:
    """Return the path of a field given by its full or unique last name."""
    paths = _fields()
    path = tuple(field.split("."))
    if path in paths or (len(path) == 3 and path[0] == "levels" and path[2] in _OF_A_MEMORY):
        return path
    matches = [p for p in paths if p[-1:] == path]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise InputError(f"machine field {field} is ambiguous: write {' or '.join('.'.join(p) for p in matches)}")
    hint = did_you_mean(field, [".".join(p) for p in paths] + [p[-1] for p in paths])
    if path[0] == "levels" and len(path) > 1:
        known = [f"levels.queues, levels.MEMORY.{{{','.join(_OF_A_MEMORY)}}}"]
    elif len(path) > 1 and path[0] in Nested:
        known = [f"{path[0]}.{{{','.join(Nested[path[0]].model_fields)}}}"]
    else:
        known = [p[0] for p in paths if len(p) == 1 and p[0] not in Nested]
        known += [f"{outer}.{{{','.join(model.model_fields)}}}" for outer, model in Nested.items()]
    raise InputError(f"unknown machine field {shown(field)}: {hint}known fields: {', '.join(known)}")


def _value(path: tuple[str, ...], text: str, where: str) -> Json:
    """Return an override's value: JSON, else the text itself, None to clear."""
    model = Machine if len(path) == 1 else Nested[path[0]] if len(path) == 2 else Level
    annotation = model.model_fields[path[-1]].annotation
    if text.lower() in ("none", "null"):
        if type(None) in get_args(annotation):
            return None
        if get_origin(annotation) is Literal and text in get_args(annotation):
            return text
        raise InputError(f"{where}: {'.'.join(path)} is not optional and cannot be cleared")
    if annotation is str or get_origin(annotation) is Literal:
        return text
    try:
        return parse_json(text, where)
    except InputError as error:
        if "not valid JSON" in str(error):
            return text
        raise


# --- machine files to begin with: JSON has no comments, but the loader leaves out keys that begin with ``//`` ---------


def machine_template(problem: str = "tiling") -> str:
    """Return the text of a machine file for a problem: the fields that it reads, each with a comment.

    Raises InputError if there is no such problem.
    """
    if problem not in PROBLEMS:
        raise InputError(f"unknown problem {shown(problem)}: expected {choices(PROBLEMS)}")
    base = PROBLEMS[problem].template
    head: dict[str, Json] = {
        "//": f"A machine for problem {problem}, with the numbers of {base}. Change them; fields with a default may "
        "go. Keys that begin with // are comments. docs/machines.md has all fields."
    }
    fields = dict(_commented(load_machine(base), "", problem, {row.path: row for row in rows()}))
    fields |= {"problem": problem} if PROBLEMS[problem].machines else {}
    fields |= {
        "name": "my_machine", "description": f"made from {base}",
        "sources": {"template": f"all numbers are those of {base}"},
    }  # fmt: skip
    return json.dumps(head | fields, indent=1) + "\n"


def _commented(model: BaseModel, section: str, problem: str, known: Mapping[str, Row]) -> Iterator[tuple[str, Json]]:
    """Yield keys and values: what the problem reads, and what has to be there; a comment before each field."""
    said = ""
    for name, field in type(model).model_fields.items():
        row = known.get(f"{section}{name}") or known[f"transfer.{name}"]  # a memory off the chip has prices like it
        value = getattr(model, name)
        read = problem in row.problems
        needed = field.is_required() or (name == "transfer" and name not in getattr(model, "silent", ()))
        if value in (None, (), {}) or not (read or needed or value != field.get_default(call_default_factory=True)):
            continue
        if row.meaning != said:
            yield f"//{name}", _comment(row) + ("" if read else f" Problem {problem} does not read it.")
        said = row.meaning
        yield name, _commented_value(value, row.path, problem, known)


def _comment(row: Row) -> str:
    default = f"default {row.default}" if row.default.startswith("`") else row.default
    about = "; ".join(text for text in (row.unit, default) if text and text != "section")
    return f"{row.meaning} ({about})".replace("`", "").replace('"', "'").removesuffix(" ()")


def _commented_value(value: object, path: str, problem: str, known: Mapping[str, Row]) -> Json:
    if isinstance(value, BaseModel):
        return dict(_commented(value, f"{path}.", problem, known))
    if isinstance(value, Sequence) and value and isinstance(value[0], BaseModel):
        first, *others = [dict(_commented(part, f"{path}[].", problem, known)) for part in value]
        return [first, *({key: v for key, v in part.items() if not key.startswith("//")} for part in others)]
    return json.loads(json.dumps(value))  # type: ignore[no-any-return]

"""Mappings in files: the nest that one says for every layer, and nests in certile's own form or another tool's.

Files are told apart by what is in them: mappings of Timeloop, ZigZag and DORY, plans of certile, else lines of text:
one nest, or ``NAME: nest`` for several layers. What follows a ``#`` is a comment.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence

from hwmodels.levels.schedule import LevelNest
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.foreign.products import Workload
from instances.foreign.yamlfile import LARGEST_YAML, read_yaml
from instances.jsonfile import Json, decoded, parse_json, read_bytes, shown
from instances.machine.machine import Machine
from instances.network.workload import Layer
from instances.problems import either, nested
from solver.ask.options import unknown
from solver.plan.plan import FORMAT, Plan
from solver.problems.layers import is_layers
from solver.uses.mappings import dory, timeloop, zigzag
from solver.uses.mappings.accelforge import NODES
from solver.uses.mappings.accelforge import is_mapping as is_nodes
from solver.uses.mappings.given import Mapped
from solver.uses.mappings.text import nest_of, text_of, unnamed

#: A nest as an object, as a text, or a file that has it; or one of these for each layer by its name.
Mappings = Nest | LevelNest | str | os.PathLike[str] | Mapping[str, Nest | LevelNest | str]
#: Forms that are written.
FORMATS = ("text", "timeloop", "zigzag", "zigzag-json", "dory", "accelforge")
_FILE = re.compile(r"\S+\.(ya?ml|json|txt|map)", re.IGNORECASE)
_NAMED = re.compile(r"(\S.*?)\s*:\s+(.*)")


def read(
    source: Mappings, workloads: Sequence[Workload], machine: Machine, level: str | None = None
) -> list[Mapped]:  # fmt: skip
    """Return the layers that a mapping is for, each with its nest.

    Parameters
    ----------
    workloads : sequence of Workload
        The layers that may be meant.
    level : str, optional
        The memory level of another tool whose traffic is priced; by default the outermost on the chip that has tiles.

    Raises
    ------
    InputError
        If it is no mapping of these layers.
    """
    if isinstance(source, Nest):
        layer = only(workloads, "a nest").layer
        source.validate_for(layer)
        return [Mapped(layer, source, "a nest")]
    if isinstance(source, Mapping):
        known = {one.layer.name: one for one in workloads}
        if unknown := [name for name in source if name not in known]:
            raise InputError(f"mapping: no layer {shown(unknown[0])}; layers: {', '.join(known)}")
        return [read(source[name], [known[name]], machine, level)[0] for name in source]
    if isinstance(source, LevelNest):
        raise InputError(f"mapping: a nest over memories in levels; machine {machine.name} has one memory: a Nest is")
    data, text, path = data_of(source)
    if text is not None:
        return _lines(text, workloads, level, path or "text")
    return _of_file(data, f"{path}", workloads, machine, level)


def data_of(source: str | os.PathLike[str]) -> tuple[Json | Plan, str | None, str | None]:
    """Return the data of a mapping's file, or its text, and its path; a text that is no file has none."""
    text = os.fspath(source)
    if isinstance(source, str) and not _FILE.fullmatch(text.strip()) and not _is_file(text):
        return None, text, None
    where, lower = f"mapping {text}", text.lower()
    if not lower.endswith((".yaml", ".yml", ".json")):
        return None, decoded(read_bytes(text, what="mapping", largest=LARGEST_YAML), where), text
    if not lower.endswith(".json"):
        return read_yaml(text, "mapping", NODES), None, text
    data: Json = parse_json(read_bytes(text, what="mapping"), where)
    is_plan = isinstance(data, dict) and data.get("format") == FORMAT
    return Plan.load(text) if is_plan else data, None, text


def _is_file(text: str) -> bool:
    try:
        return os.path.isfile(text)
    except ValueError:
        return False


def only(workloads: Sequence[Workload], what: str) -> Workload:
    """Return the only layer; raises InputError if there are several."""
    if len(workloads) != 1:
        names = ", ".join(one.layer.name for one in workloads[:5]) + (", ..." if len(workloads) > 5 else "")
        raise InputError(f"mapping: {what} is for one layer: name it with --layer; there are {names}")
    return workloads[0]


def _of_file(
    data: Json | Plan, path: str, workloads: Sequence[Workload], machine: Machine, level: str | None
) -> list[Mapped]:  # fmt: skip
    where = f"mapping {path}"
    if isinstance(data, Plan):
        return _of_plan(data, path, workloads)
    if timeloop.is_mapping(data):
        one = only(workloads, "a mapping of Timeloop")
        nest, notes = timeloop.read(data, one, level, where)
        return [Mapped(one.layer, nest, f"timeloop, {path}", notes)]
    if zigzag.is_mapping(data):
        stated = [one for one in workloads if len(workloads) == 1 or zigzag.states(data, one)]
        found = [(one, zigzag.read(data, one, machine, level, where)) for one in stated or workloads]
        return [Mapped(one.layer, nest, f"zigzag, {path}", notes) for one, (nest, notes) in found]
    if dory.is_mapping(data):
        made = [(one, dory.read(data, one.layer, level, where)) for one in workloads]
        return [Mapped(one.layer, nest, f"dory, {path}", notes) for one, (nest, notes) in made]
    if is_nodes(data):
        raise InputError(f"{where}: mappings of AccelForge are read for machines with section levels")
    raise InputError(f"{where}: neither a mapping of Timeloop (mapping: target, type, factors), of ZigZag "
                     "(name, temporal_ordering), of DORY (Tiling_parameters) nor a plan")  # fmt: skip


def _of_plan(plan: Plan, path: str, workloads: Sequence[Workload]) -> list[Mapped]:
    if not is_layers(plan):
        raise InputError(f"mapping {path}: a plan of problem {plan.problem} has no nests of single layers")
    nests = {row.layer: row.schedule for row in plan.layers if row.schedule is not None}
    found = [Mapped(one.layer, nests[one.layer.name], f"plan, {path}") for one in workloads if one.layer.name in nests]
    if not found:
        raise InputError(f"mapping {path}: the plan has layers {', '.join(nests)}, none of those asked for")
    for one in found:
        one.nest.validate_for(one.layer)
    return found


def _lines(text: str, workloads: Sequence[Workload], level: str | None, source: str) -> list[Mapped]:
    """Nests as text: one, or a line for each layer."""
    if level is not None:
        raise InputError(f"--level {level}: a text has one memory on the chip")
    said = "text" if source == "text" else f"text, {source}"
    found = []
    for layer, words in named_lines(text, workloads):
        missing = unnamed(words, layer)
        notes = (f"{', '.join(missing)} not named: held inside all loops",) if missing else ()
        found.append(Mapped(layer, nest_of(words, layer), said, notes))
    return found


def named_lines(text: str, workloads: Sequence[Workload]) -> list[tuple[Layer, str]]:
    """Return what a text says of each layer: all of it of the only one, or a line ``NAME: ..`` of each."""
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    known, named = {one.layer.name: one.layer for one in workloads}, dict[str, str]()
    rows = [line for line in lines if line]
    for line in rows:
        match = _NAMED.fullmatch(line)
        if match and match[1] in known:
            if match[1] in named:
                raise InputError(f"mapping: two lines for layer {match[1]}")
            named[match[1]] = match[2]
    if named and len(named) < len(rows):
        line = next(line for line in rows if not ((m := _NAMED.fullmatch(line)) and m[1] in known))
        raise InputError(f"mapping: line {shown(line)} is for no layer of {', '.join(known)}")
    if not named:
        named = {only(workloads, "a nest").layer.name: " ".join(rows)}
    return [(known[name], words) for name, words in named.items()]


# ---- export ----------------------------------------------------------------------------------------------------------


def nests_of(plan: Plan, layers: Sequence[str] | None = None) -> list[tuple[Layer, Nest]]:
    """Return layers of a plan with their nests.

    Raises InputError if the plan has no nests of single layers, no such layer, or none of it has a nest.
    """
    if not is_layers(plan):
        raise InputError(f"plan of {plan.network}: mappings are written of problems {either(nested('layers'))}, "
                         f"not of {plan.problem}")  # fmt: skip
    rows = plan.layers if layers is None else tuple(plan.layer(name) for name in layers)
    found = [(row.workload, row.schedule) for row in rows if row.schedule is not None]
    if not found:
        raise InputError(f"plan of {plan.network}: no schedule to write")
    return found


def written(
    found: Sequence[tuple[Layer, Nest]], form: str, workloads: Sequence[Workload] = ()
) -> tuple[str, tuple[str, ...]]:  # fmt: skip
    """Return the text of a file with these nests, and what it does not say, a line each.

    Parameters
    ----------
    form : str
        One of `FORMATS`.
    workloads : sequence of Workload
        The layers with the names of their own files, where they come from one; else the usual names are written.

    Raises
    ------
    InputError
        If the form cannot say a nest: which, and why.
    """
    if form not in FORMATS:
        raise unknown("format", form, FORMATS)
    known = {one.layer.name: one for one in workloads}
    texts, lost = list[str](), list[str]()
    for layer, nest in found:
        text, notes = _one(known.get(layer.name, Workload(layer)), nest, form)
        texts.append(f"{layer.name}: {text}" if form == "text" and len(found) > 1 else text)
        lost += [f"{layer.name}: {note}" for note in notes]
    if len(texts) == 1:
        return texts[0], tuple(lost)
    if form in ("timeloop", "zigzag-json"):
        raise InputError(f"a mapping of {form} is for one layer, there are {len(texts)}: name one with --layer")
    if form == "dory":
        return json.dumps([json.loads(text) for text in texts], indent=1) + "\n", tuple(lost)
    return "".join(texts), tuple(lost)


def _one(workload: Workload, nest: Nest, form: str) -> tuple[str, tuple[str, ...]]:
    if form == "text":
        return f"{text_of(nest)}\n", ()
    if form == "accelforge":
        raise InputError("a mapping of AccelForge is written of plans of problem levels")
    if form == "dory":
        return dory.write(nest, workload.layer)
    if form == "timeloop":
        return timeloop.write(nest, workload)
    return zigzag.write(nest, workload, as_json=form == "zigzag-json")

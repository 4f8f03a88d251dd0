"""The library that certile brings, by name, and library files of others (`instances.library_format`)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

from instances.errors import InputError, did_you_mean
from instances.jsonfile import Json, as_object, bundled, parse_json, read_bytes, shown
from instances.library_format import CLASSES, LIBRARY_FORMAT, PREFIX, Family, Instance
from instances.validation import validate


def families() -> tuple[str, ...]:
    """Return the names of the families that certile brings."""
    return tuple(bundled("library", ".json"))


@cache
def family(name: str) -> Family:
    """Return a family that certile brings; raises InputError if there is none."""
    found = bundled("library", ".json")
    if name not in found:
        raise InputError(f"library: no family {shown(name)}: {did_you_mean(name, found)}see certile list library")
    return family_from_json(parse_json(found[name].read_bytes(), f"library {name}", comments=True), f"library {name}")


def load_family(path: str | os.PathLike[str]) -> Family:
    """Read a library file; raises InputError that names every fault."""
    where = f"library {os.fspath(path)}"
    return family_from_json(parse_json(read_bytes(path, what="library"), where, comments=True), where)


def family_from_json(data: Json, where: str = "library") -> Family:
    """Build a family from parsed JSON; raises InputError that names every fault."""
    fields = dict(as_object(data, where))
    if fields.get("format") != LIBRARY_FORMAT:
        raise InputError(f"{where}: field format is {shown(fields.get('format'))}, expected {LIBRARY_FORMAT!r}")
    common: dict[str, Json] = {name: fields[name] for name in ("source", "licence") if name in fields}
    rows = fields.get("instances")
    if isinstance(rows, list):
        fields["instances"] = [{**common, **row} if isinstance(row, dict) else row for row in rows]
    return validate(Family, fields, where)


def library() -> Iterator[Instance]:
    """Yield all instances that certile brings, family by family."""
    for name in families():
        yield from family(name).instances


def instance(name: str) -> Instance:
    """Return an instance by its name, with or without ``library:``; raises InputError if there is none."""
    asked = name.removeprefix(PREFIX)
    stem = asked.partition("/")[0]
    if stem in families():
        for one in family(stem).instances:
            if one.name == asked:
                return one
        near = did_you_mean(asked, [one.name for one in family(stem).instances])
        raise InputError(f"library: no instance {shown(asked)}: {near}family {stem} has {len(family(stem).instances)}")
    near = did_you_mean(stem, families())
    raise InputError(f"library: no instance {shown(asked)}: {near}names are FAMILY/NAME, see certile list library")


def chosen(
    names: Sequence[str] = (), *, problem: str | None = None, difficulty: str | None = None,
    among: Sequence[Instance] | None = None,
) -> list[Instance]:  # fmt: skip
    """Return instances: those named (an instance or a family), of a problem and class; all if nothing is said.

    Parameters
    ----------
    among : sequence of Instance, optional
        Not those that certile brings, but these.

    Raises
    ------
    InputError
        If there is none of a name, or nothing is left.
    """
    if difficulty not in (None, *CLASSES):
        raise InputError(f"class {shown(difficulty)}: expected {', '.join(CLASSES)}")
    if among is not None:
        for name in names:
            if not any(name in (one.name, one.family) for one in among):
                raise InputError(f"library: no instance {shown(name)} in this file")
        found = [one for one in among if not names or {one.name, one.family} & set(names)]
    else:
        found = [one for name in names for one in _of(name)] if names else list(library())
    kept = [one for one in found if problem in (None, one.problem) and difficulty in (None, one.difficulty)]
    if not kept:
        asked = [f"of problem {problem}"] * (problem is not None) + [f"of class {difficulty}"] * (
            difficulty is not None
        )
        raise InputError(f"library: no instance {' and '.join(asked)}; see certile list library")
    return list({one.name: one for one in kept}.values())


def _of(name: str) -> tuple[Instance, ...]:
    return family(name).instances if name in families() else (instance(name),)


def is_instance(target: object) -> bool:
    """Whether a target names an instance: ``library:tiling-corners/pad-5x5``."""
    return isinstance(target, str) and target.startswith(PREFIX)


def list_library() -> dict[str, str]:
    """Return the families: name -> problem, how many instances of which class, and title."""
    found = {}
    for name in families():
        one = family(name)
        classes = Counter(each.difficulty for each in one.instances)
        counts = ", ".join(f"{classes[each]} {each}" for each in CLASSES if classes[each])
        problems = " and ".join(dict.fromkeys(each.problem for each in one.instances))
        found[name] = f"{problems}, {len(one.instances)} instances ({counts}): {one.title}"
    return found


def list_instances(problem: str) -> dict[str, str]:
    """Return the instances of a problem: name -> class, and what is known."""
    found = {}
    for one in library():
        if one.problem == problem:
            values = "".join(f", {name} {value:,}" for name, value in one.known.values.items())
            found[one.name] = f"{one.difficulty}, {one.known.status}{values}"
    return found

"""YAML files of other tools, read with suspicion: plain data only, one line says what is wrong.

Two things of Timeloop's front end are understood beside YAML: a line ``{{include_text('FILE')}}`` stands for a file
below this one's folder, and the key ``<<<`` of a mapping merges another one into it, mapping by mapping; own keys
count.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

from instances.errors import InputError
from instances.jsonfile import LARGEST_INTEGER, Json, check_texts, decoded, read_bytes, shown

#: No problem or mapping file is larger.
LARGEST_YAML = 4 * 1024 * 1024
#: Files that one file includes, levels of its data, and values of it with all that aliases repeat.
_MOST_INCLUDES, _DEEPEST, _MOST_VALUES = 50, 100, 200_000
_INCLUDE = re.compile(r"^\{\{\s*include_text\(\s*['\"]([^'\"]+)['\"]\s*\)\s*\}\}[ \t]*$", re.MULTILINE)
_MERGE = "<<<"


def read_yaml(path: str | os.PathLike[str], what: str = "file", tags: Collection[str] = ()) -> Json:
    """Return the data of a YAML (or JSON) file; `tags` as of `load_plain`.

    Raises InputError if it cannot be read, is no YAML of plain data, or includes what is not below its own folder, or
    too much.
    """
    where = f"{what} {os.fspath(path)}"
    text = decoded(read_bytes(path, what=what, largest=LARGEST_YAML), where)
    folder, room, number = Path(os.fspath(path)).parent, LARGEST_YAML - len(text), 0

    def included(match: re.Match[str]) -> str:
        nonlocal room, number
        number += 1
        if number > _MOST_INCLUDES:
            raise InputError(f"{where}: includes more than {_MOST_INCLUDES} files")
        file = _below(folder, match[1], where)
        named = f"{what} {file} (included in {os.fspath(path)})"
        try:
            said = decoded(read_bytes(file, what=what, largest=max(room, 0)), named)
        except InputError as error:
            raise InputError(f"{error}; {where} includes it") from None
        room -= len(said)
        return said

    return parse_yaml(_INCLUDE.sub(included, text), where, tags)


def _below(folder: Path, name: str, where: str) -> Path:
    """The file that is included; raises InputError unless it lies below a folder, links followed."""
    try:
        real = os.path.realpath(folder / name)
        inside = os.path.commonpath([real, os.path.realpath(folder)]) == os.path.realpath(folder)
    except ValueError:  # a null character, or another drive
        inside = False
    if not inside:
        raise InputError(f"{where}: includes {shown(name)}: only files below its own folder can be included")
    return folder / name


def load_plain(text: str, tags: Collection[str] = ()) -> object:
    """Load YAML strictly: plain data only, no key twice in a mapping, merge keys that do not multiply themselves.

    A mapping with one of `tags` (``!Storage {..}``) is plain data with the tag as its first value, by the key ``!``.
    Raises yaml.YAMLError, and what else PyYAML does for dates of no month and the like: whoever calls makes one line.
    """
    import yaml  # late: takes time to import

    class Strict(yaml.SafeLoader):  # a loader of its own: nobody else's is changed
        """Refuses keys that stand twice, and bounds what merge keys repeat."""

        pairs = 0

        def flatten_mapping(self, node: Any) -> None:
            """Merge what ``<<`` names, each mapping once."""
            for key, value in node.value:
                if key.tag == "tag:yaml.org,2002:merge" and isinstance(value, yaml.SequenceNode):
                    value.value = list({id(one): one for one in value.value}.values())
            super().flatten_mapping(node)
            self.pairs += len(node.value)
            if self.pairs > _MOST_VALUES:
                said = f"more than {_MOST_VALUES:,} values, with what merge keys repeat"
                raise yaml.constructor.ConstructorError(None, None, said, node.start_mark)

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            """Make a mapping; raises ConstructorError for a key that stands twice."""
            seen = set[str]()
            for key, _ in getattr(node, "value", ()):
                if key.tag != "tag:yaml.org,2002:merge":
                    name = str(self.construct_object(key, deep=True))
                    if name in seen:
                        said = f"key {name!r} stands twice"
                        raise yaml.constructor.ConstructorError(None, None, said, node.start_mark)
                    seen.add(name)
            return super().construct_mapping(node, deep)

    def tagged(loader: Strict, node: Any) -> dict[Any, Any]:
        return {"!": node.tag[1:], **loader.construct_mapping(node, deep=True)}

    for tag in tags:
        Strict.add_constructor(f"!{tag}", tagged)
    return yaml.load(text, Loader=Strict)


def parse_yaml(text: str, where: str, tags: Collection[str] = ()) -> Json:
    """Parse YAML of plain data, no larger than `_MOST_VALUES` with its aliases written out; `tags` as of `load_plain`.

    Raises InputError with the line of a fault, or the place of what is no plain data: dates, NaN, numbers beyond 2**53.
    """
    import yaml  # late: takes time to import

    try:
        data = _merged(cast(Json, load_plain(text, tags)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = f"line {mark.line + 1}: " if mark else ""
        raise InputError(f"{where}: {at}not plain YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, TypeError, ArithmeticError) as error:
        raise InputError(f"{where}: not plain YAML: {' '.join(str(error).split())[:200]}") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deeply") from None
    check_plain(data, where)
    return data


def check_plain(data: object, where: str) -> None:
    """Raise InputError for what JSON has not, in data or in texts, and for aliases that multiply themselves."""
    sizes: dict[int, int] = {}

    def size(value: object, path: str, depth: int) -> int:
        if id(value) in sizes:
            return sizes[id(value)]
        if depth > _DEEPEST:
            raise InputError(f"{where}: nested too deeply, {_DEEPEST} levels at most")
        found = 1
        if isinstance(value, dict):
            for key, item in value.items():
                plain(key, f"{path}: key")
                found += size(item, f"{path}.{key}" if path else str(key), depth + 1)
        elif isinstance(value, list | tuple):
            found += sum(size(item, f"{path}[{n}]", depth + 1) for n, item in enumerate(value))
        else:
            plain(value, path)
            return 1
        if found > _MOST_VALUES:
            raise InputError(f"{where}: more than {_MOST_VALUES:,} values, with what aliases repeat")
        sizes[id(value)] = found
        return found

    def plain(value: object, path: str) -> None:
        at = f"{where}: {path}: " if path else f"{where}: "
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{at}{value} is no finite number")
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
            raise InputError(f"{at}a whole number beyond 2**53")
        if not isinstance(value, str | int | float | None):
            raise InputError(f"{at}{shown(value)} is a {type(value).__name__}; put it in quotes to mean a text")

    size(data, "", 0)
    check_texts(data, where)


def _merged(data: Json, known: dict[int, Json] | None = None) -> Json:
    """Data without merge keys; what stands in several places (an alias) is worked out once."""
    done: dict[int, Json] = {} if known is None else known
    if not isinstance(data, dict | list):
        return data
    if id(data) not in done:
        if isinstance(data, list):
            made: Json = [_merged(one, done) for one in data]
        else:
            own: Json = {key: _merged(value, done) for key, value in data.items() if key != _MERGE}
            made = _over(_merged(data[_MERGE], done), own) if _MERGE in data else own
        done[id(data)] = made
    return done[id(data)]


def _over(base: Json, own: Json) -> Json:
    """A mapping with what another one says of it."""
    if not isinstance(base, dict) or not isinstance(own, dict):
        return own
    return {**base, **{key: _over(base.get(key), value) for key, value in own.items()}}

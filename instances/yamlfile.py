"""YAML files of other tools, read with suspicion: plain data only, one line says what is wrong.

Two things of Timeloop's front end are understood beside YAML: a line ``{{include_text('FILE')}}`` stands for a file
beside this one, and the key ``<<<`` of a mapping merges another one into it, mapping by mapping; own keys count.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import cast

from instances.errors import InputError
from instances.jsonfile import Json, decoded, read_bytes

#: No problem or mapping file is larger.
LARGEST_YAML = 4 * 1024 * 1024
_INCLUDE = re.compile(r"^\{\{\s*include_text\(\s*['\"]([^'\"]+)['\"]\s*\)\s*\}\}[ \t]*$", re.MULTILINE)
_MERGE = "<<<"


def read_yaml(path: str | os.PathLike[str], what: str = "file") -> Json:
    """Return the data of a YAML (or JSON) file.

    Raises
    ------
    InputError
        If it cannot be read, or is no YAML of plain data.
    """
    where = f"{what} {os.fspath(path)}"
    text = decoded(read_bytes(path, what=what, largest=LARGEST_YAML), where)
    folder = Path(os.fspath(path)).parent

    def included(match: re.Match[str]) -> str:
        named = f"{what} {folder / match[1]} (included in {os.fspath(path)})"
        return decoded(read_bytes(folder / match[1], what=what, largest=LARGEST_YAML), named)

    return parse_yaml(_INCLUDE.sub(included, text), where)


def parse_yaml(text: str, where: str) -> Json:
    """Parse YAML of plain data; raises InputError with the line of a fault."""
    import yaml  # late: takes time to import

    try:
        return _merged(cast(Json, yaml.safe_load(text)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = f"line {mark.line + 1}: " if mark else ""
        raise InputError(f"{where}: {at}not plain YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{where}: not plain YAML: {' '.join(str(error).split())[:200]}") from None


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

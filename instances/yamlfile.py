"""YAML files of other tools, read with suspicion: plain data only, one line says what is wrong."""

from __future__ import annotations

import os
from typing import cast

from instances.errors import InputError
from instances.jsonfile import Json, decoded, read_bytes

#: No problem or mapping file is larger.
LARGEST_YAML = 4 * 1024 * 1024


def read_yaml(path: str | os.PathLike[str], what: str = "file") -> Json:
    """Return the data of a YAML (or JSON) file.

    Raises
    ------
    InputError
        If it cannot be read, or is no YAML of plain data.
    """
    data = read_bytes(path, what=what, largest=LARGEST_YAML)
    return parse_yaml(decoded(data, f"{what} {os.fspath(path)}"), f"{what} {os.fspath(path)}")


def parse_yaml(text: str, where: str) -> Json:
    """Parse YAML of plain data; raises InputError with the line of a fault."""
    import yaml  # late: takes time to import

    try:
        return cast(Json, yaml.safe_load(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = f"line {mark.line + 1}: " if mark else ""
        raise InputError(f"{where}: {at}not plain YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{where}: not plain YAML: {' '.join(str(error).split())[:200]}") from None

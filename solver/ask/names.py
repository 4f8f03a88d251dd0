"""What is said of a name that is not known, and the version of certile that is installed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import metadata

from instances.errors import InputError, choices, did_you_mean
from instances.jsonfile import shown

#: The engine that is asked for by default: `exhaustive` is exact and the fastest for single layers.
AUTO = "auto"


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not known, with the closest ones."""
    names = sorted(known)
    hint = did_you_mean(str(name).lower(), names, 2, 0.5)
    return InputError(f"unknown {kind} {shown(name)}: {hint}expected {choices(names)}")


@cache
def version() -> str:
    """Return the version of certile, or "unknown" when it runs from a source tree that was never installed."""
    try:
        return metadata.version("certile")
    except metadata.PackageNotFoundError:
        return "unknown"

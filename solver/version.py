"""The version of certile that is installed."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """Return the version of certile, or "unknown" when it runs from a source tree that was never installed."""
    try:
        return metadata.version("certile")
    except metadata.PackageNotFoundError:
        return "unknown"

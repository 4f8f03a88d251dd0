"""Digests of data: what a stored plan, or an instance of the library, was made for."""

from __future__ import annotations

import hashlib
import json


def digest(data: object) -> str:
    """Return ``sha256:...`` of the canonical JSON (sorted keys, no blanks) of JSON-like data."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

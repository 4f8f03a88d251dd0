"""Networks and machines by name or path, as parsed JSON: listing what is bundled takes no records."""

from __future__ import annotations

from pathlib import Path

from instances.errors import InputError, did_you_mean
from instances.jsonfile import BUNDLED_NAME, Json, as_object, bundled, parse_json, read_bytes, shown


def list_networks() -> dict[str, str]:
    """Return the bundled networks: name -> one-line description."""
    return _list("network")


def list_machines() -> dict[str, str]:
    """Return the bundled machines: name -> one-line description."""
    return _list("machine")


def find(kind: str, text: str) -> tuple[Json, str]:
    """Return the parsed JSON behind a bundled name or a path, and how to call it in messages."""
    known = bundled(f"{kind}s", ".json")
    if text in known:
        return parse_json(known[text].read_bytes(), f"{kind} {text}", comments=True), f"{kind} {text}"
    if not text.strip():
        raise InputError(f"{kind}: an empty name; bundled: {', '.join(known)}")
    if text.lower().endswith(".json") or (not BUNDLED_NAME.fullmatch(text) and _exists(text)):
        return parse_json(read_bytes(text, what=kind), f"{kind} {text}", comments=True), f"{kind} {text}"
    hint = did_you_mean(text, known, cutoff=0.5)
    suffixes = "a .json, .onnx or .yaml file" if kind == "network" else "a .json file"
    raise InputError(f"unknown {kind} {shown(text)}: {hint}give {suffixes} or one of {', '.join(known)}")


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _list(kind: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in bundled(f"{kind}s", ".json"):
        data, where = find(kind, name)
        found[name] = str(as_object(data, where).get("description", ""))
    return found

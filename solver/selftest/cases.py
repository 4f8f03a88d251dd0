"""Cases as JSON data: frozen dataclasses of numbers, texts and tuples of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

__all__ = ["Recorded", "json_of"]


class Recorded:
    """Cases of one kind, a dataclass, as JSON data and back."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def to_json(self, case: object) -> dict[str, object]:
        """The fields."""
        return json_of(case)

    def from_json(self, data: Mapping[str, object]) -> object:
        """What `to_json` gave."""
        return self.kind(**{name: _frozen(value) for name, value in data.items()})


def json_of(case: object) -> dict[str, object]:
    """Return the fields of a case; tuples become lists."""
    if not is_dataclass(case):
        raise TypeError(f"a case is a dataclass, this is a {type(case).__name__}")
    return {field.name: _plain(getattr(case, field.name)) for field in fields(case)}


def _plain(value: object) -> object:
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value


def _frozen(value: object) -> object:
    return tuple(_frozen(one) for one in value) if isinstance(value, list | tuple) else value

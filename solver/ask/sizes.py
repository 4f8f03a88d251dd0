"""Open sizes and constant inputs of a model, as all commands and calls take them that read one."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from instances.errors import InputError
from instances.load import load_network
from instances.network.network import Network

V = TypeVar("V")
_MOST_DIGITS = 10


@dataclass(frozen=True)
class Sizes:
    """What is said of open sizes and of inputs that are constants; networks that have none refuse it."""

    symbols: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls, symbols: Mapping[str, int] | None, shapes: Mapping[str, Sequence[int]] | None,
        values: Mapping[str, float] | None = None,
    ) -> Sizes:  # fmt: skip
        """As calls in Python say it."""
        return cls(symbols or {}, shapes or {}, values or {})

    @classmethod
    def parse(
        cls, symbols: Sequence[str] | None, shapes: Sequence[str] | None, values: Sequence[str] | None = None
    ) -> Sizes:  # fmt: skip
        """Read ``NAME=N``, ``INPUT=N,N,..`` and ``INPUT=NUMBER``; raises InputError for others."""
        return cls(
            _parsed(symbols, "symbol", _size, "NAME=SIZE with a positive size, for example sequence=128"),
            _parsed(shapes, "shape", _shape, "INPUT=N,N,.. with positive sizes, for example x=1,3,48,320"),
            _parsed(values, "value", _number, "INPUT=NUMBER (or true, false), for example sr=16000"),
        )

    def __bool__(self) -> bool:
        return bool(self.symbols or self.shapes or self.values)

    def load(self, network: str | os.PathLike[str], batch: int | None = None) -> Network:
        """Load a network with these sizes; raises InputError as `load_network` does, or if nothing of it is planned."""
        found = load_network(network, batch=batch, symbols=self.symbols, shapes=self.shapes, values=self.values)
        if not found.layers:
            why = "; ".join(found.warnings[:3]) or "no operator that multiplies, pools or reads several tensors"
            raise InputError(f"network {os.fspath(network)}: nothing of it can be planned: {why}")
        return found


def _parsed(texts: Sequence[str] | None, what: str, read: Callable[[str], V | None], written: str) -> dict[str, V]:
    """Names with their values; names may hold an equals sign, values do not. `written` says how it is to be written."""
    found: dict[str, V] = {}
    for text in texts or ():
        name, _, value = (part.strip() for part in text.rpartition("="))
        made = read(value)
        if not name or made is None:
            raise InputError(f"{what} {text!r}: write {written}")
        if name in found:
            raise InputError(f"{what} {text!r}: {name} is set twice")
        found[name] = made
    return found


def _size(text: str) -> int | None:
    known = text.isascii() and text.isdigit() and 1 <= int(text[:_MOST_DIGITS]) < 10**9
    return int(text) if known else None


def _shape(text: str) -> tuple[int, ...] | None:
    sizes = [_size(size.strip()) for size in text.replace("x", ",").split(",")]
    return None if None in sizes else tuple(size for size in sizes if size is not None)


def _number(text: str) -> float | None:
    """The number that is written; None for what is none, and for what is not finite."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if text.isascii() and "_" not in text and math.isfinite(number) else None
    return None

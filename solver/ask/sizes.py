"""Open sizes and constant inputs of a model, as all commands and calls take them that read one."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from instances.errors import InputError
from instances.load import load_network
from instances.network.network import Network

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
        return cls(parse_symbols(symbols or ()), parse_shapes(shapes or ()), parse_values(values or ()))

    def __bool__(self) -> bool:
        return bool(self.symbols or self.shapes or self.values)

    def load(self, network: str | os.PathLike[str], batch: int | None = None) -> Network:
        """Load a network with these sizes; raises InputError as `load_network` does, or if nothing of it is planned."""
        found = load_network(network, batch=batch, symbols=self.symbols, shapes=self.shapes, values=self.values)
        if not found.layers:
            why = "; ".join(found.warnings[:3]) or "no operator that multiplies, pools or reads several tensors"
            raise InputError(f"network {os.fspath(network)}: nothing of it can be planned: {why}")
        return found


def parse_symbols(texts: Sequence[str]) -> dict[str, int]:
    """Read ``NAME=INT`` sizes of symbolic ONNX dimensions; raises InputError for others."""
    sizes: dict[str, int] = {}
    for text in texts:
        name, value = _named(text)
        if not name or not _is_size(value):
            raise InputError(f"symbol {text!r}: write NAME=SIZE with a positive size, for example sequence=128")
        if name in sizes:
            raise InputError(f"symbol {text!r}: {name} is set twice")
        sizes[name] = int(value)
    return sizes


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Read ``INPUT=N,N,..`` shapes of ONNX inputs; raises InputError for others."""
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, value = _named(text)
        sizes = [size.strip() for size in value.replace("x", ",").split(",")]
        if not name or not all(map(_is_size, sizes)):
            raise InputError(f"shape {text!r}: write INPUT=N,N,.. with positive sizes, for example x=1,3,48,320")
        if name in shapes:
            raise InputError(f"shape {text!r}: {name} is set twice")
        shapes[name] = tuple(map(int, sizes))
    return shapes


def parse_values(texts: Sequence[str]) -> dict[str, float]:
    """Read ``INPUT=NUMBER`` values of ONNX inputs; raises InputError for others."""
    values: dict[str, float] = {}
    for text in texts:
        name, written = _named(text)
        number = _number(written)
        if not name or number is None:
            raise InputError(f"value {text!r}: write INPUT=NUMBER (or true, false), for example sr=16000")
        if name in values:
            raise InputError(f"value {text!r}: {name} is set twice")
        values[name] = number
    return values


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


def _named(text: str) -> tuple[str, str]:
    """Name and value; names may hold an equals sign, numbers do not."""
    name, _, value = text.rpartition("=")
    return name.strip(), value.strip()


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and 1 <= int(text[:_MOST_DIGITS]) < 10**9

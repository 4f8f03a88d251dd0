"""The open sizes of a model, as all commands and calls that read one take them; `solver.flags` has the flags."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from instances.errors import InputError
from instances.load import load_network
from instances.network import Network

_MOST_DIGITS = 10


@dataclass(frozen=True)
class Sizes:
    """What is said of open sizes; networks that have none refuse it."""

    symbols: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, symbols: Mapping[str, int] | None, shapes: Mapping[str, Sequence[int]] | None) -> Sizes:
        """As calls in Python say it."""
        return cls(symbols or {}, shapes or {})

    @classmethod
    def parse(cls, symbols: Sequence[str] | None, shapes: Sequence[str] | None) -> Sizes:
        """Read ``NAME=N`` and ``INPUT=N,N,..``; raises InputError for others."""
        return cls(parse_symbols(symbols or ()), parse_shapes(shapes or ()))

    def __bool__(self) -> bool:
        return bool(self.symbols or self.shapes)

    def load(self, network: str | os.PathLike[str], batch: int | None = None) -> Network:
        """Load a network with these sizes; raises InputError as `load_network` does, or if nothing of it is planned."""
        found = load_network(network, batch=batch, symbols=self.symbols, shapes=self.shapes)
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


def _named(text: str) -> tuple[str, str]:
    """Name and value; names may hold an equals sign, numbers do not."""
    name, _, value = text.rpartition("=")
    return name.strip(), value.strip()


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and 1 <= int(text[:_MOST_DIGITS]) < 10**9

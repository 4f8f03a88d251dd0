"""Generators of the bundled networks, one function each, from public definitions.

``python -m instances.zoo`` rewrites ``instances/networks/*.json`` from them.
"""

from __future__ import annotations

from collections.abc import Callable

from instances.network.network import Network
from instances.zoo import classic, deep, layers, small

__all__ = ["GENERATORS"]

_FAMILIES = (classic, deep, layers, small)
#: Name of every bundled network -> its generator: what the modules export.
GENERATORS: dict[str, Callable[[], Network]] = {
    name: getattr(family, name) for family in _FAMILIES for name in family.__all__
}

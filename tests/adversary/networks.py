"""Tiny networks from short descriptions, which shrink well: a layer is its kind, its operands and a few sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from instances.network.network import Network
from instances.network.operators import Input, Operator, Reshape

L = TypeVar("L", bound=tuple[Any, ...])


def network_of(
    shape: tuple[int, ...],
    layers: Iterable[tuple[str, tuple[int, ...], *tuple[int, ...]]],
    operator: Callable[..., Operator | None],
) -> Network | None:
    """The network of `layers`; None if one of them does not fit its operands.

    Parameters
    ----------
    shape : of the input
    layers : (kind, operands, sizes ...); operand 0 is the input, n the result of layer n
    operator : returns the operator for (name, kind, operands, sizes ...), None if there is none
    """
    made: list[Operator] = [Input(name="in", shape=shape)]
    for number, (kind, operands, *sizes) in enumerate(layers, 1):
        if any(n >= number for n in operands):
            return None
        before: Sequence[Operator] = [made[n] for n in operands]
        grown = operator(f"n{number}", kind, before, *sizes)
        if grown is None:
            return None
        made.append(grown)
    try:
        return Network(name="n", operators=tuple(made))
    except ValueError:  # weights that are shared have other sizes
        return None


def with_result(network: Network | None, inner: int) -> Network | None:
    """The network with the map of layer `inner` as one of its results, whoever reads it; 0 or none such: as it is."""
    made = next((one for one in network.operators if one.name == f"n{inner}"), None) if network else None
    if network is None or made is None:
        return network
    result = Reshape(name="result", inputs=(made.name,), shape=made.shape, fn="identity")
    return Network(name=network.name, operators=(*network.operators, result))


def fewer(layers: tuple[L, ...]) -> Iterator[tuple[L, ...]]:
    """Yield such descriptions without one of the layers, operands renumbered; nothing of a single layer."""
    for k in range(len(layers) if len(layers) > 1 else 0):
        kept = [one for n, one in enumerate(layers) if n != k]
        yield tuple((kind, tuple(o - (o > k) for o in operands), *sizes) for kind, operands, *sizes in kept)  # type: ignore[misc]

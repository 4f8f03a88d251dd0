"""The layers that C is written of: their inputs are the operands of the result's shape.

Operands that are broadcast are read element by element where they lie off the chip, past the tiles that a plan moves:
what the program counts is what it moves of the others. Where no operand has the result's shape, the first one is
spread out in memory beforehand.
"""

from __future__ import annotations

from dataclasses import replace

from instances.errors import InputError
from instances.network import Network
from instances.operators import Operator
from instances.stores import Store, Stores
from instances.workload import Layer


def written(layer: Layer) -> Layer:
    """Return a layer without the inputs that are broadcast."""
    if not layer.broadcast:
        return layer
    full = [rows for rows, lacks in zip(layer.residents, layer.patterns, strict=True) if not lacks]
    resident = tuple(full) if layer.resident_in else ()
    return layer.model_copy(update={"inputs": max(1, len(full)), "broadcast": (), "resident_in": resident})


def layer_of(network: Network, operator: Operator) -> Layer | None:
    """Return the layer that C is written of for an operator.

    Raises
    ------
    InputError
        If its operands are broadcast along more groups of axes than a sequence of features has.
    """
    layer = operator.layer(network.input_shapes(operator))
    if layer is None or not layer.broadcast:
        return layer
    if len(operator.shape) != 4 and (layer.b > 1 or layer.c > 1):
        said = "its operands are broadcast along several groups of axes: no C is written"
        raise InputError(f"layer {layer.name}: {said}")
    return written(layer)


def all_written(found: Stores) -> Stores:
    """Return a network with only the inputs that C reads as tiles."""
    reads = []
    for layer, given in zip(found.layers, found.reads, strict=True):
        full = tuple(s for s, lacks in zip(given, layer.patterns, strict=True) if not lacks)
        reads.append(full or given[:1])
    stores = tuple(replace(store, zeros=False) for store in found.stores)  # read from memory as any other map
    return replace(found, layers=tuple(map(written, found.layers)), reads=tuple(reads), stores=stores)


def no_zeros(store: Store) -> InputError:
    """The refusal of a state of zeros that a plan reads from nowhere."""
    return InputError(f"{store.name}: zeros, which C reads from memory and the plan from nowhere")

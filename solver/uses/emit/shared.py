"""One tensor that several layers multiply by: one array off the chip, one place on chip, seen by each in its own order.

An example: the embedding of a decoder is a product's weights twice, once transposed. A layer that finds them on chip as
the other one has brought them reads them by other pitches.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import permutations
from math import prod

import numpy as np

from instances.errors import InputError
from instances.network.stores import Stores
from instances.network.workload import Layer


@dataclass
class Arrays:
    """The arrays of constants: layers whose tensor is the same, in the same order and memory, have one."""

    known: dict[Hashable, str] = field(default_factory=dict)

    def name(self, wanted: str, *alike: Hashable) -> str:
        """The array that is there already, or one with the wanted name."""
        return self.known.setdefault(alike, wanted)


def refused(found: Stores, store: int, said: str) -> InputError:
    """The refusal of weights that stay on chip."""
    names = [one.name for one, s in zip(found.layers, found.shared, strict=True) if s == store]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return InputError(f"weights that stay on chip between {shown}: {said}: of that C is written from memory only")


def shape_of(layer: Layer, order: str) -> tuple[int, ...]:
    """The sizes of a layer's weights along its dimensions in storage order."""
    return tuple(layer.extent(d) for d in order)


def pitches_in(there: np.ndarray, mine: np.ndarray) -> tuple[int, ...] | None:
    """Return the pitches of an array's axes where its elements lie in another order of axes; None if in no order.

    Both have the same elements. The order is found by comparing them.
    """
    if there.size != mine.size:
        return None
    if there.tobytes() == mine.tobytes():
        return tuple(prod(mine.shape[k + 1 :]) for k in range(mine.ndim))
    axes = [(size, prod(there.shape[k + 1 :])) for k, size in enumerate(there.shape) if size > 1]
    flat, sizes = there.reshape([size for size, _ in axes]), [size for size in mine.shape if size > 1]
    for order in permutations(range(len(axes))):
        if [axes[a][0] for a in order] == sizes and flat.transpose(order).tobytes() == mine.tobytes():
            steps = iter(axes[a][1] for a in order)
            return tuple(next(steps) if size > 1 else 1 for size in mine.shape)
    return None

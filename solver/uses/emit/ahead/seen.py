"""Whether layers see the rows and columns of a map that its maker made, or its elements as channels of one pixel."""

from __future__ import annotations

from instances.errors import InputError
from instances.network.workload import Layer
from solver.uses.emit.onchip import OnChip


def check_seen(chip: OnChip) -> None:
    """Raise InputError if a layer sees other rows of a map than its maker: then no plan's transfers run ahead."""
    for t in range(len(chip.found.layers)):
        for name, s in chip.inputs(t):
            for maker, _ in chip.found.stores[s].parts:
                if maker < t:
                    check_rows(chip, s, t, name, chip.found.layers[maker])


def check_rows(chip: OnChip, s: int, t: int, name: str, maker: Layer) -> None:
    """Raise InputError if a layer sees other rows, columns or images of a map than its maker."""
    if flattens(chip, s, t, name, maker):
        return
    read, reader = chip.found.operand(t, s), chip.found.layers[t]
    if (read.rows, read.columns, 1 if "b" in read.lacks else reader.b) != (maker.r, maker.c, maker.b):
        raise InputError(f"{reader.name} sees the result of {maker.name} reshaped")


def flattens(chip: OnChip, s: int, t: int, name: str, maker: Layer) -> bool:
    """Whether a layer sees the elements of a map as channels of one pixel, in their order."""
    read, store, values = chip.found.operand(t, s), chip.found.stores[s], chip.chip(s).values
    seen, there = values.get(name), values.get(maker.name)
    if seen is None or there is None or len(store.parts) > 1 or (read.rows, read.columns) != (1, 1):
        return False
    found = there.reshaped(seen.shape) if (maker.r, maker.c) != (1, 1) and len(there.shape) == 4 else None
    return found is not None and found.same_places(seen) and seen.shape == (maker.b, read.elements // maker.b)

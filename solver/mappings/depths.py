"""Where operands are held, for mappings that state the order of loops and leave the memory of each to the tool.

Of all depths of the three Holds that fit, the ones that move the fewest bytes; of these those that take least memory.
What an operand moves depends on the loops outside its own Hold alone, and memory is a sum over the operands, so each is
priced by itself: with L loops 3 (L + 1) prices instead of (L + 1)^3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.machine import Machine
from instances.workload import Layer
from solver.mappings.given import Mapped, part_of


def held(loops: Sequence[Loop], layer: Layer, machine: Machine) -> Nest:
    """Return the nest of some loops with the best Holds that fit; all innermost, which takes least, if none fit.

    Loops inside all Holds are left out: they are folded into the tile.
    """
    depths = range(len(loops) + 1)
    inner = dict.fromkeys(layer.operands, len(loops))
    moved, taken = dict[tuple[str, int], int](), dict[tuple[str, int], Mapping[str, int]]()
    for operand in layer.operands:
        for depth in depths:
            nest = at(loops, {**inner, operand: depth}, layer)
            found = part_of(Mapped(layer, nest), machine).outcome(nest)
            rows = (operand, "PSUM") if operand == "OUT" else (operand,)
            moved[operand, depth] = sum(found.by_operand[row].bytes for row in rows)
            taken[operand, depth] = found.occupancy_bytes
    least = taken[layer.operands[0], len(loops)]

    def memory(choice: Sequence[int]) -> dict[str, int]:
        pairs = list(zip(layer.operands, choice, strict=True))
        return {name: size + sum(taken[pair][name] - size for pair in pairs) for name, size in least.items()}

    best: tuple[tuple[int, int], tuple[int, ...]] | None = None
    for choice in product(depths, repeat=len(layer.operands)):
        total = sum(moved[pair] for pair in zip(layer.operands, choice, strict=True))
        if best is not None and total > best[0][0]:
            continue
        needs = memory(choice)
        if all(needs[name] <= size for name, size in machine.memories.items() if name in needs):
            rank = (total, sum(needs.values())), choice
            best = rank if best is None else min(best, rank)
    chosen = inner if best is None else dict(zip(layer.operands, best[1], strict=True))
    deepest = max(chosen.values())
    return at(loops[:deepest], chosen, layer)


def at(loops: Sequence[Loop], depths: Mapping[str, int], layer: Layer) -> Nest:
    """Return the nest with so many of the loops outside the Hold of each operand."""
    items = list[Item]()
    for k in range(len(loops) + 1):
        items += [Hold(operand) for operand in layer.operands if depths[operand] == k]
        items += loops[k : k + 1]
    return Nest(tuple(items))

"""All nests of a tiny layer on a machine of one core without bursts: what bytes they move in what room.

A loop is known by the places where it cuts its dimension anew, whatever its steps. So all sequences of such sets of
places are gone through for every dimension, in all orders, and for each all places of the Holds. What an operand moves
depends on the loops outside its Hold and on nothing else (`tests.adversary.pricing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise, permutations, product
from typing import NamedTuple

from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.machine.machine import Machine
from instances.network.workload import DIMS, REDUCTION, RELEVANT, Layer
from tests.adversary.pricing import Pricer

#: The places where a loop cuts its dimension, ascending: not those where loops outside cut it.
Places = tuple[int, ...]
Loops = tuple[tuple[str, Places], ...]
#: What of a machine bytes and room depend on.
_FIELDS = ("in_bytes", "w_bytes", "out_bytes", "psum_bytes", "sliding", "buffering")


class Best(NamedTuple):
    """A nest that no other beats in both: room, bytes."""

    room: int
    bytes: int
    nest: Nest


def fronts(layer: Layer, machine: Machine) -> tuple[Best, ...]:
    """Return the nests of a layer that no other beats in room and bytes, the smallest room first."""
    fields = tuple((name, getattr(machine, name)) for name in _FIELDS)
    return _fronts(layer.model_copy(update={"name": "x"}).model_dump_json(), fields)


@cache
def _fronts(data: str, fields: tuple[tuple[str, object], ...]) -> tuple[Best, ...]:
    layer = Layer.model_validate_json(data)
    machine = Machine.model_validate({"name": "m", "tick_ps": 1, "ocm_bytes": 1, "transfer": {}, **dict(fields)})
    prices = _Prices(layer, machine)
    least: dict[int, tuple[tuple[int, int], Loops, tuple[int, ...]]] = {}
    for loops in nests_of(layer):
        many = range(len(loops) + 1)
        cut = any(d in REDUCTION for d, _ in loops)
        found = [_useful([prices.of(x, loops[:k], cut) for k in many]) for x in layer.operands]
        for chosen in product(*found):
            room, moved = sum(one[0] for one in chosen), sum(one[1] for one in chosen)
            if room not in least or (moved, len(loops)) < least[room][0]:
                least[room] = (moved, len(loops)), loops, tuple(one[2] for one in chosen)
    best: list[Best] = []
    for room in sorted(least):
        (moved, _), loops, depths = least[room]
        if not best or moved < best[-1].bytes:
            best.append(Best(room, moved, _nest(layer, loops, depths)))
    return tuple(best)


def _useful(found: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """(room, bytes, depth) of an operand's Holds, without those that take no less room than another nor move less."""
    kept: list[tuple[int, int, int]] = []
    for depth, (room, moved) in sorted(enumerate(found), key=lambda one: one[1]):
        if not kept or moved < kept[-1][1]:
            kept.append((room, moved, depth))
    return kept


def nests_of(layer: Layer) -> Iterator[Loops]:
    """Yield the loops of all nests: every sequence of sets of places of every dimension, in every order."""
    chains = [list(_chains(range(1, layer.extent(d)))) for d in DIMS]
    for chosen in product(*chains):
        word = [d for d, chain in zip(DIMS, chosen, strict=True) for _ in chain]
        for order in sorted(set(permutations(word))):
            rest = {d: list(chain) for d, chain in zip(DIMS, chosen, strict=True)}
            yield tuple((d, rest[d].pop(0)) for d in order)


def _chains(places: Sequence[int]) -> Iterator[tuple[Places, ...]]:
    """No loop, or one that cuts at some of the places and then any at some of the others."""
    yield ()
    for number in range(1, len(places) + 1):
        for some in combinations(places, number):
            for inner in _chains([x for x in places if x not in some]):
                yield (some, *inner)


def _nest(layer: Layer, loops: Loops, depths: Sequence[int]) -> Nest:
    items: list[Item] = []
    ends = {d: {0, layer.extent(d)} for d in DIMS}
    for k in range(len(loops) + 1):
        items += [Hold(x) for x, depth in zip(layer.operands, depths, strict=True) if depth == k]
        for d, places in loops[k : k + 1]:
            ends[d].update(places)
            items.append(Loop(d, max(b - a for a, b in pairwise(sorted(ends[d]))), places))
    return Nest(tuple(items))


class _Prices:
    """Room and bytes of operands."""

    def __init__(self, layer: Layer, machine: Machine) -> None:
        self.machine, self.pricer = machine, Pricer(layer, machine)
        (self.core,) = self.pricer.cores(())

    def of(self, operand: str, loops: Loops, cut: bool) -> tuple[int, int]:
        """Of an operand that is held inside some loops; `cut`: whether results have partial sums."""
        while loops and loops[-1][0] not in RELEVANT[operand]:
            loops = loops[:-1]
        cost, machine = self.pricer.cost((), self.core.spans, operand, loops), self.machine
        result = max(machine.psum_bytes, machine.out_bytes) if cut else machine.out_bytes
        return cost.tile * machine.buffers(None) * (result if operand == "OUT" else 1), cost.moved

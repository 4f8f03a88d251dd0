"""All nests of a tiny layer, by the rules of docs/nest.md alone: what bytes they move in what room.

Given loops outermost first, what an operand moves depends on the loops outside its Hold and on nothing else:

    T        these loops, down to the innermost real one that the operand depends on
    IN, W    a fetch at every iteration of T; if T ends with a loop over rows (columns) and the machine slides, only the
             rows beyond those that were there, but for the first of its iterations
    OUT      a visit at every iteration of T; of the visits of one tile the last one writes the result, the others
             partial sums, and all but the first read them; rows that stay on chip are never written
    tile     the largest box of the operand at its Hold, clipped to the map and to the rows that are not resident

A loop is known by the places where it cuts its dimension anew, whatever its steps. So all sequences of such sets of
places are gone through for every dimension, in all orders, and for each all places of the Holds. `walked` counts one
nest; tests compare it with `hwmodels.nest.replay`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise, permutations, product
from math import prod
from typing import NamedTuple

from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.machine import Machine
from instances.workload import DIMS, REDUCTION, RELEVANT, Layer

__all__ = ["Best", "Rules", "fronts", "nests_of", "rules_of", "walked"]

Span = tuple[int, int]
#: The places where a loop cuts its dimension, ascending: not those where loops outside cut it.
Places = tuple[int, ...]
Loops = tuple[tuple[str, Places], ...]
_ROWS, _COLUMNS = ("r", "i"), ("c", "j")


class Rules(NamedTuple):
    """What of a machine the bytes and the room depend on; `buffers` of every operand."""

    in_bytes: int
    w_bytes: int
    out_bytes: int
    psum_bytes: int
    sliding: bool
    buffers: int


class Best(NamedTuple):
    """A nest that no other beats in both: room, bytes."""

    room: int
    bytes: int
    nest: Nest


def rules_of(machine: Machine) -> Rules:
    """What of a machine counts here."""
    return Rules(
        machine.in_bytes, machine.w_bytes, machine.out_bytes, machine.psum_bytes, machine.sliding,
        2 if machine.buffering == "double" else 1,
    )  # fmt: skip


def fronts(layer: Layer, rules: Rules) -> tuple[Best, ...]:
    """Return the nests of a layer that no other beats in room and bytes, the smallest room first."""
    return _fronts(layer.model_copy(update={"name": "x"}).model_dump_json(), rules)


@cache
def _fronts(data: str, rules: Rules) -> tuple[Best, ...]:
    layer = Layer.model_validate_json(data)
    least: dict[int, tuple[tuple[int, int], Loops, tuple[int, ...]]] = {}
    for loops in nests_of(layer):
        many = range(len(loops) + 1)
        cut = any(d in REDUCTION for d, _ in loops)
        found = [_useful([_moved(data, rules, x, loops[:k], cut) for k in many]) for x in layer.operands]
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


def walked(layer: Layer, rules: Rules, nest: Nest) -> tuple[int, int]:
    """Return room and bytes of one nest."""
    data, room, moved = layer.model_dump_json(), 0, 0
    pieces = {d: [(0, layer.extent(d))] for d in DIMS}
    loops: list[tuple[str, Places]] = []
    held: list[tuple[str, int]] = []
    for item in nest.items:
        if isinstance(item, Hold):
            held.append((item.operand, len(loops)))
        elif isinstance(item, Loop):
            after = [piece for lo, hi in pieces[item.dim] for piece in item.pieces(lo, hi, 0)]
            if places := {lo for lo, _ in after} - {lo for lo, _ in pieces[item.dim]}:
                loops.append((item.dim, tuple(sorted(places))))
            pieces[item.dim] = after
    cut = any(d in REDUCTION for d, _ in loops)
    for operand, depth in held:
        one = _moved(data, rules, operand, tuple(loops[:depth]), cut)
        room, moved = room + one[0], moved + one[1]
    return room, moved


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


# ---- one operand -----------------------------------------------------------------------------------------------------


@cache
def _moved(data: str, rules: Rules, operand: str, loops: Loops, cut: bool) -> tuple[int, int]:
    """Room of an operand that is held inside some loops, and the bytes that it moves."""
    layer = Layer.model_validate_json(data)
    steps = loops
    while steps and steps[-1][0] not in RELEVANT[operand]:
        steps = steps[:-1]
    if operand == "OUT":
        return _results(layer, rules, steps, cut)
    room = moved = 0
    given = (layer.resident_in or (0,)) if operand == "IN" else (0,)
    given = (*given, *[0] * (layer.inputs - len(given))) if operand == "IN" else given
    size = rules.in_bytes if operand == "IN" else rules.w_bytes
    for resident in given:
        largest, total = _fetched(layer, operand, steps, resident, slide=rules.sliding and operand == "IN")
        room, moved = room + size * largest * rules.buffers, moved + size * total
    return room, moved


def _iterations(layer: Layer, steps: Loops) -> Iterator[tuple[dict[str, Span], bool]]:
    """The ranges at every iteration of some loops, and whether only the innermost one has advanced."""

    def onward(at: dict[str, Span], left: Loops, alone: bool) -> Iterator[tuple[dict[str, Span], bool]]:
        if not left:
            yield at, alone
            return
        (d, places), rest = left[0], left[1:]
        first, end = at[d]
        marks = (first, *(x for x in places if first < x < end), end)
        for number, piece in enumerate(pairwise(marks)):
            yield from onward({**at, d: piece}, rest, alone=not rest and number > 0)

    yield from onward({d: (0, layer.extent(d)) for d in DIMS}, steps, alone=False)


def _fetched(layer: Layer, operand: str, steps: Loops, resident: int, *, slide: bool) -> tuple[int, int]:
    """Elements of the largest tile, and all that are fetched."""
    largest = total = 0
    axis = steps[-1][0] if steps else ""
    before: tuple[Span, Span] = (0, 0), (0, 0)
    for at, alone in _iterations(layer, steps):
        if operand == "W":
            size = prod(at[d][1] - at[d][0] for d in RELEVANT["W"])
            largest, total = max(largest, size), total + size
            continue
        rows = _window(at["r"], at["i"], layer.stride_h, layer.dilation_h, layer.pad_top, layer.h, resident)
        columns = _window(at["c"], at["j"], layer.stride_w, layer.dilation_w, layer.pad_left, layer.l, 0)
        deep = prod(at[d][1] - at[d][0] for d in "bgn")
        high, wide = rows[1] - rows[0], columns[1] - columns[0]
        largest = max(largest, deep * high * wide)
        if slide and alone and axis in _ROWS:
            high = max(0, rows[1] - max(rows[0], before[0][1]))
        if slide and alone and axis in _COLUMNS:
            wide = max(0, columns[1] - max(columns[0], before[1][1]))
        total, before = total + deep * high * wide, (rows, columns)
    return largest, total


def _window(out: Span, tap: Span, stride: int, dilation: int, pad: int, size: int, resident: int) -> Span:
    low = out[0] * stride - pad + tap[0] * dilation
    high = (out[1] - 1) * stride - pad + (tap[1] - 1) * dilation + 1
    low = min(max(low, resident), size)
    return low, max(low, min(high, size))


def _results(layer: Layer, rules: Rules, steps: Loops, cut: bool) -> tuple[int, int]:
    size = max(rules.psum_bytes, rules.out_bytes) if cut else rules.out_bytes
    largest, moved, visits = 0, 0, Counter[tuple[Span, ...]]()
    for at, _ in _iterations(layer, steps):
        visits[tuple(at[d] for d in "bgmrc")] += 1
    for spans, number in visits.items():
        rest = prod(end - first for first, end in (*spans[:3], spans[4]))
        largest = max(largest, rest * (spans[3][1] - spans[3][0]))
        written = max(0, spans[3][1] - max(spans[3][0], layer.resident_out))
        every = spans[3][1] - spans[3][0]
        moved += rest * written * rules.out_bytes + 2 * (number - 1) * rest * every * rules.psum_bytes
    return largest * size * rules.buffers, moved

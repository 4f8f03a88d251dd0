"""What mappings of other tools have in common: memory levels with loops, and operands that lie there or pass by.

::

    levels    l_0 (off the chip), l_1, ..., l_k               outermost first
    loops     of l: one after the other over the tiles of the level below, or side by side on units below
    keeps     of l: the operands that have a tile there

Which nest they are, for the traffic into level L (by default the outermost on the chip that has tiles)
    * an operand is held at the first level from L inwards that keeps it; loops of the levels outside that one are
      outside its Hold;
    * loops side by side are folded into the tile: what all units hold together is one tile. So are loops inside the
      last Hold, which move nothing between L and the outside;
    * the step of a loop over d is the product of the counts of all loops over d that come after it, those side by side
      among them; the last piece is smaller where counts do not divide.

A count may be another one in the last pass (Timeloop writes ``P=28,20``): sizes n_1 .. n_k with last ones l_1 .. l_k,
outermost first, make ``((l_1 - 1) n_2 + l_2 - 1) n_3 + ... + l_k`` iterations, as nested pieces with a smaller last one
do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.errors import InputError, choices
from instances.network.workload import DIMS, Layer


@dataclass(frozen=True)
class Turn:
    """A loop of a level."""

    dim: str
    count: int
    last: int = 0
    """Iterations of the last pass; 0: as many as of the others."""
    beside: bool = False
    """Whether its iterations run side by side."""


@dataclass(frozen=True)
class Level:
    """A memory, or a place where units stand side by side."""

    name: str
    turns: tuple[Turn, ...] = ()
    """Outermost first."""
    keeps: frozenset[str] = frozenset()
    """IN, W, OUT: those that have a tile there."""


Levels = tuple[Level, ...]


def covered(levels: Levels, dim: str) -> int:
    """Return how many indices of a dimension the loops run over."""
    total = 0
    for turn in (turn for level in levels for turn in level.turns if turn.dim == dim):
        total = total * turn.count + (turn.last or turn.count) - 1
    return total + 1


def check_cover(levels: Levels, layer: Layer, names: Mapping[str, str], *, exact: bool) -> None:
    """Raise InputError unless the loops cover the layer; `exact`: no more than that.

    Parameters
    ----------
    names : mapping
        What the dimensions are called in the file, for the message.
    """
    for dim in DIMS:
        number, extent = covered(levels, dim), layer.extent(dim)
        if number < extent or (exact and number != extent):
            counts = [
                f"{level.name} {turn.count}" for level in levels for turn in level.turns
                if turn.dim == dim and turn.count > 1
            ]  # fmt: skip
            name = next((name for name, one in names.items() if one == dim), dim)
            made = f"{' x '.join(counts) or '1'} make {number}"
            raise InputError(f"mapping: {name} ({dim} of certile): {made}, layer {layer.name} has {extent}")


def outermost(levels: Levels, asked: str | None) -> int:
    """Return the number of the level whose traffic is priced.

    Raises InputError if there is none of this name, or it is off the chip.
    """
    names = [level.name for level in levels]
    if asked is None:
        found = next((k for k, level in enumerate(levels) if k and level.keeps), None)
        if found is None:
            raise InputError(f"mapping: no level on the chip holds tiles; it has {', '.join(names)}")
        return found
    if asked not in names:
        raise InputError(f"mapping: no level {asked}; it has {choices(names[1:])}, outermost first")
    if names.index(asked) == 0:
        raise InputError(f"mapping: level {asked} is the outermost, off the chip: name one inside it")
    return names.index(asked)


def held_at(levels: Levels, layer: Layer, first: int) -> dict[str, int]:
    """Return the number of the level that holds each operand."""
    found = {}
    for operand in layer.operands:
        at = next((k for k in range(first, len(levels)) if operand in levels[k].keeps), None)
        if at is None:
            deepest = min(
                max((k for k, one in enumerate(levels) if name in one.keeps), default=0) for name in layer.operands
            )
            hint = f"; from {levels[deepest].name} all are kept" if deepest else ""
            raise InputError(f"mapping: no level from {levels[first].name} inwards keeps {operand}{hint}")
        found[operand] = at
    return found


def nest_from(levels: Levels, layer: Layer, level: str | None = None) -> tuple[Nest, tuple[str, ...]]:
    """Return the nest, and what was folded or assumed, a line each.

    Raises InputError if a level does not exist, or no level keeps an operand.
    """
    first = outermost(levels, level)
    at = held_at(levels, layer, first)
    beside = {d: prod(t.count for one in levels for t in one.turns if t.beside and t.dim == d) for d in DIMS}
    turns = [(k, t) for k, one in enumerate(levels) for t in one.turns if not t.beside]
    loops = stepped([(turn.dim, turn.count) for _, turn in turns], beside, layer)
    items = list[Item]()
    for k in range(max(at.values()) + 1):
        items += [Hold(operand) for operand in layer.operands if at[operand] == k]
        items += [loop for (number, _), loop in zip(turns, loops, strict=True) if number == k < max(at.values())]
    return cutting(items, layer), tuple(_notes(levels, first, at))


def stepped(turns: Sequence[tuple[str, int]], beside: Mapping[str, int], layer: Layer) -> list[Loop]:
    """Return loops with counts, outermost first, as loops with steps; `beside`: what runs side by side."""
    inside = {d: beside[d] * prod(count for dim, count in turns if dim == d) for d in DIMS}
    size, found = {d: layer.extent(d) for d in DIMS}, list[Loop]()
    for dim, count in turns:
        inside[dim] //= count
        size[dim] = min(size[dim], inside[dim])
        found.append(Loop(dim, size[dim]))
    return found


def cutting(items: Sequence[Item], layer: Layer) -> Nest:
    """Return the nest without loops that cut nothing."""
    size, kept = {d: layer.extent(d) for d in DIMS}, list[Item]()
    for item in items:
        if isinstance(item, Hold) or item.step < size[item.dim]:
            kept.append(item)
        if isinstance(item, Loop):
            size[item.dim] = item.step
    return Nest(tuple(kept))


def _notes(levels: Levels, first: int, at: Mapping[str, int]) -> Iterator[str]:
    """What a nest of one memory does not say of several levels."""
    if len([level for level in levels[1:] if level.keeps]) > 1 or first > 1:
        outside = " > ".join(level.name for level in levels[:first])
        yield f"priced: what moves between {outside} and {levels[first].name}"
    for operand, k in at.items():
        if k != first:
            yield f"{operand} passes {levels[first].name} by and lies in {levels[k].name}: counted in the same memory"
    side = [f"{turn.dim} {turn.count}" for level in levels for turn in level.turns if turn.beside and turn.count > 1]
    if side:
        yield f"folded into the tile: {' '.join(side)} side by side"
    for k, level in enumerate(levels):
        loops = [f"{turn.dim} {turn.count}" for turn in level.turns if not turn.beside and turn.count > 1]
        if loops and k >= max(at.values()):
            yield f"folded into the tile: {' '.join(loops)} of level {level.name}"


# ---- from a nest -----------------------------------------------------------------------------------------------------


def levels_of(nest: Nest, layer: Layer, *, what: str) -> tuple[Levels, tuple[str, ...]]:
    """Return levels that say the same as a nest, and what they do not say, a line each.

    Every depth at which operands are held is a level of its own: they are parts of one memory.

    Parameters
    ----------
    what : str
        The form that is written, for messages.

    Raises
    ------
    InputError
        For what loops with counts cannot say: pieces of free sizes or of sizes that do not nest, cores, lines.
    """
    loops = [item for item in nest.items if isinstance(item, Loop)]
    _refuse_unsaid(nest, what)
    counts = counted(loops, layer, what)
    held: dict[int, set[str]] = {}
    for depth, operand in _depths(nest):
        held.setdefault(depth, set()).add(operand)
    depths = sorted(held)
    names = ["OCM"] if len(depths) == 1 else [f"OCM_{k + 1}" for k in range(len(depths))]
    places = [(0, "DRAM", frozenset(layer.operands))]
    places += [(depth, name, frozenset(held[depth])) for depth, name in zip(depths, names, strict=True)]
    return placed(loops, counts, places), tuple(_lost(nest, loops[depths[-1] :]))


def placed(
    loops: Sequence[Loop],
    counts: Mapping[str, Sequence[tuple[int, int]]],
    places: Sequence[tuple[int, str, frozenset[str]]],
) -> Levels:
    """Return levels, each with the loops from its place to that of the next one; the last has all that is left.

    Parameters
    ----------
    counts : mapping
        Of every dimension, of its loops and of the elements of its tile (`counted`).
    places : sequence
        How many loops stand outside a level, its name, and what it keeps; outermost first.
    """
    seen, levels = dict.fromkeys(DIMS, 0), list[Level]()
    for (begin, name, keeps), (end, *_) in pairwise(places):
        turns = list[Turn]()
        for loop in loops[begin:end]:
            turns.append(Turn(loop.dim, *counts[loop.dim][seen[loop.dim]]))
            seen[loop.dim] += 1
        levels.append(Level(name, tuple(turns), keeps))
    rest = {d: _as_one(counts[d][seen[d] :]) for d in DIMS}
    _, name, keeps = places[-1]
    return (*levels, Level(name, tuple(Turn(d, *rest[d]) for d in DIMS if rest[d][0] > 1), keeps))


def counted(loops: Sequence[Loop], layer: Layer, what: str) -> dict[str, list[tuple[int, int]]]:
    """The counts of loops of every dimension, and of the elements of its tile; raises InputError where none are."""
    return {d: _counts(d, (layer.extent(d), *(one.step for one in loops if one.dim == d)), layer, what) for d in DIMS}


def _as_one(counts: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The count, and that of the last pass, of several loops as of one."""
    total = 0
    for count, last in counts:
        total = total * count + last - 1
    return prod(count for count, _ in counts), total + 1


def _depths(nest: Nest) -> list[tuple[int, str]]:
    """How many loops are outside each Hold."""
    found, depth = [], 0
    for item in nest.items:
        if isinstance(item, Hold):
            found.append((depth, item.operand))
        else:
            depth += 1
    return found


def _counts(dim: str, steps: Sequence[int], layer: Layer, what: str) -> list[tuple[int, int]]:
    """The count of every loop over a dimension and of the elements of its tile, with those of the last pass."""
    for outer, inner in pairwise(steps[1:]):
        if outer % inner:
            said = f"{dim} in pieces of {outer}, cut again in pieces of {inner}"
            raise InputError(f"layer {layer.name}: {said}: {what} has counts, and {inner} does not divide {outer}")
    radices = [outer // inner for outer, inner in pairwise(steps[1:])]
    radices = [*radices, steps[-1]] if len(steps) > 1 else []
    left, found = steps[0] - 1, list[tuple[int, int]]()
    for radix in reversed(radices):
        found.append((radix, left % radix + 1))
        left //= radix
    return [(left + 1, left + 1), *reversed(found)]


def _refuse_unsaid(nest: Nest, what: str) -> None:
    for item in nest.items:
        if not isinstance(item, Hold | Loop):
            raise InputError(f"{what}: {item.dim} {item.step}/{item.over}: cores side by side are not written")
        if isinstance(item, Loop) and item.cuts:
            raise InputError(f"{what}: {item.dim} is cut at free places ({', '.join(map(str, item.cuts))}): only "
                             "pieces of equal size have a count; solve with --pin pieces=even")  # fmt: skip
        if isinstance(item, Hold) and item.line:
            raise InputError(f"{what}: IN is held in lines, which it has no word for; solve with --pin lines=no")


def _lost(nest: Nest, inner: Sequence[Loop]) -> Iterator[str]:
    double = [item.operand for item in nest.items if isinstance(item, Hold) and item.buffers == 2]
    if double:
        yield f"not said: two buffers of {', '.join(double)}"
    if nest.homes:
        yield f"not said: {', '.join(f'{operand} lies in {name}' for operand, name in nest.homes)}"
    if inner:
        yield f"not said: {' '.join(f'{one.dim} {one.step}' for one in inner)} inside all holds, folded into the tile"

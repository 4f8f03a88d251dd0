"""Nests over memories in levels (`hwmodels.levels.schedule`), and levels, loops and texts that say the same.

::

    IN@l2 | m 64 | W@l2 | r 4 | OUT@l2 | IN@l1 | m 8 | W@l1 | OUT@l1        a line, as people write it

Reading
    * an operand stays where its memory keeps it: inside the loops of all farther memories, outside its own; one that a
      memory does not keep passes it, where the machine lets it (`passed`);
    * memories are those of the machine by their names, whatever the case, or in their order where none has a name of
      it; what lies nearer than the last one is part of the tile, as are units side by side (`mappings.levels`).
Writing levels
    All tiles of a level stand at one place among the loops. A Stay moves over loops that its operand does not depend
    on, which changes no price (`formulations.levels.orders`; OUT in a near memory not inwards over n, i, j, where the
    tile outside it would be of partial sums). Places d_1 <= d_2 <= .. of the memories are taken as far out as all their
    Stays reach; a nest whose Stays have none in common is refused by their names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hwmodels.levels.schedule import Cut, LevelNest, Stay
from hwmodels.schedule import Loop
from instances.errors import InputError
from instances.jsonfile import shown
from instances.machine.levels import OPERANDS
from instances.machine.levels import Levels as Memories
from instances.machine.machine import Machine
from instances.network.workload import DIMS, RELEVANT, Layer
from solver.uses.mappings.levels import Levels, Turn, counted, placed, stepped

#: A Stay, and how many loops stand outside it.
Placed = tuple[int, Stay]
_ITEM = re.compile(
    r"(?P<operand>in|w|out)\s*@\s*(?P<memory>[A-Za-z][\w-]*)|(?P<dim>[bgmnrcij])\s*=?\s*(?P<step>[0-9]{1,9})(?!\w)",
    re.I,
)
_EXAMPLE = "IN@l2 | m 64 | W@l2 | OUT@l2 | IN@l1 | m 8 | W@l1 | OUT@l1"


def memories_of(machine: Machine) -> Memories:
    """Return the memories of a machine in levels."""
    assert machine.levels is not None
    return machine.levels


# ---- a line ----------------------------------------------------------------------------------------------------------


def text_of(nest: LevelNest) -> str:
    """Return the line of a nest: loops between two Stays stand together, bars around every Stay."""
    found, loops = list[str](), False
    for item in nest.items:
        bar = [] if not found or (loops and isinstance(item, Cut)) else ["|"]
        said = f"{item.dim} {item.step}" if isinstance(item, Cut) else f"{item.operand}@{item.memory}"
        found, loops = [*found, *bar, said], isinstance(item, Cut)
    return " ".join(found)


def nest_of(text: str, layer: Layer, machine: Machine) -> LevelNest:
    """Read a line; raises InputError if it is none, or none of the layer: the word at fault, and what is accepted."""
    items, at = list[Cut | Stay](), 0
    while at < len(text):
        if text[at].isspace() or text[at] in "|;":
            at += 1
            continue
        match = _ITEM.match(text, at)
        if match is None or (match["step"] and not int(match["step"])):
            word = re.split(r"[\s|;]", text[at:], maxsplit=1)[0]
            raise InputError(f"mapping: {shown(word)}: expected a loop (m 24) or where an operand stays (IN@MEMORY); "
                             f"for example {_EXAMPLE}")  # fmt: skip
        at = match.end()
        if match["dim"]:
            items.append(Cut(match["dim"].lower(), int(match["step"])))  # type: ignore[arg-type]
        else:
            items.append(Stay(match["operand"].upper(), match["memory"]))  # type: ignore[arg-type]
    return valid(LevelNest(tuple(items)), layer, machine, "mapping")


def valid(nest: LevelNest, layer: Layer, machine: Machine, where: str) -> LevelNest:
    """Return the nest; raises InputError unless it is one of the layer on the machine."""
    try:
        nest.validate_for(layer, memories_of(machine))
    except InputError as error:
        raise InputError(f"{where}: {error} (machine {machine.name})") from None
    return nest


# ---- reading ---------------------------------------------------------------------------------------------------------


def named(names: Sequence[str], machine: Machine, where: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return which memory of the machine each of a file is, those far from the PEs first, and what was assumed.

    Raises InputError where they are not told apart: other names among those of the machine, or fewer memories.
    """
    known = [one.name for one in memories_of(machine).memories]
    lower, notes = {name.lower(): name for name in known}, list[str]()
    found = {name: lower[name.lower()] for name in names if name.lower() in lower}
    said = f"{where}: memories {', '.join(names)}; machine {machine.name} has {', '.join(known)}"
    if not set(found.values()) & set(known[1:]):  # none on the chip
        if len(names) < len(known):
            raise InputError(f"{said}: expected these names, or as many")
        found = dict(zip(names, known, strict=False))
        notes = [f"memories in their order: {', '.join(f'{one} is {name}' for one, name in found.items())}"]
    else:
        inside = [*names].index([*found][-1]) if known[-1] in found.values() else len(names)
        strange = [name for name in names[:inside] if name not in found]
        if strange:
            raise InputError(f"{said}: {strange[0]} is none of them, and others are")
        if [*found.values()] != [name for name in known if name in found.values()]:
            raise InputError(f"{said}: they stand in another order")
    folded = [name for name in names if name not in found]
    return found, (*notes, *([f"folded into the tile: {', '.join(folded)}, nearer than {known[-1]}"] if folded else []))


def nest_from(
    loops: Sequence[Loop], stays: Sequence[Placed], layer: Layer, machine: Machine, where: str
) -> tuple[LevelNest, tuple[str, ...]]:
    """Return the nest of loops and Stays among them, and which loops were folded: those inside all Stays.

    Raises InputError if it is none of the layer on the machine.
    """
    order = {one.name: k for k, one in enumerate(memories_of(machine).memories)}
    ranked = sorted(stays, key=lambda one: (one[0], order[one[1].memory], OPERANDS.index(one[1].operand)))
    deepest = max((depth for depth, _ in ranked), default=0)
    size, items = {d: layer.extent(d) for d in DIMS}, list[Cut | Stay]()
    for k in range(deepest + 1):
        items += [stay for depth, stay in ranked if depth == k]
        for loop in loops[k : min(k + 1, deepest)]:
            if loop.step < size[loop.dim]:
                items.append(Cut(loop.dim, loop.step))  # type: ignore[arg-type]
                size[loop.dim] = loop.step
    left = [loop for loop in loops[deepest:] if loop.step < size[loop.dim]]
    note = f"folded into the tile: {' '.join(f'{one.dim} {one.step}' for one in left)} inside all that stays"
    return valid(LevelNest(tuple(items)), layer, machine, where), (note,) if left else ()


def from_levels(
    levels: Levels, layer: Layer, machine: Machine, where: str
) -> tuple[LevelNest, tuple[str, ...]]:  # fmt: skip
    """Return the nest of levels with loops, and what was folded or assumed.

    Raises InputError if a level is no memory of the machine, or keeps what may not lie there.
    """
    memories = memories_of(machine)
    names = {one.name.lower() for one in memories.memories}
    stores = [level.name for level in levels if level.keeps or level.name.lower() in names]
    known, notes = named(stores, machine, where)
    beside = dict.fromkeys(DIMS, 1)
    turns, side, stays, at = list[tuple[str, int]](), list[str](), list[Placed](), dict[str, int]()
    for level in levels:
        if level.name in known:
            memory = memories.memory(known[level.name])
            at[memory.name] = len(turns)
            for operand in OPERANDS:
                if operand in level.keeps and operand not in memory.operands:
                    raise InputError(f"{where}: {level.name} keeps {operand}; {memory.name} of machine {machine.name} "
                                     f"may hold {', '.join(memory.operands)}: bypass the others")  # fmt: skip
                if operand in level.keeps and memory is not memories.memories[0]:
                    stays.append((len(turns), Stay(operand, memory.name)))
        for turn in level.turns:
            if turn.beside:
                beside[turn.dim] *= turn.count
                side += [f"{turn.dim} {turn.count}"] if turn.count > 1 else []
            else:
                turns.append((turn.dim, turn.count))
    for k, memory in enumerate(memories.memories):
        if memory.name in at or not k:
            continue
        here = min((at[one.name] for one in memories.memories[k:] if one.name in at), default=len(turns))
        lying = [one for one in memory.operands if one in layer.operands and one not in memory.passed]
        stays += [(here, Stay(one, memory.name)) for one in lying]
        notes = (*notes, f"{memory.name} is not named: no loops of its own, {' and '.join(lying) or 'nothing'} stays")
    nest, folded = nest_from(stepped(turns, beside, layer), stays, layer, machine, where)
    return nest, (*notes, *([f"folded into the tile: {' '.join(side)} side by side"] if side else []), *folded)


def from_lists(
    loops: Sequence[Loop], outside: Mapping[str, Sequence[int]], layer: Layer, machine: Machine, where: str
) -> tuple[LevelNest, tuple[str, ...]]:
    """Return the nest of loops and of how many stand outside each memory of an operand on the chip, far ones first.

    Raises InputError if an operand has fewer memories than the machine says, with all that it may pass or without.
    """
    stays, notes = list[Placed](), list[str]()
    for operand, depths in outside.items():
        first, *others = (one for one in memories_of(machine).memories if operand in one.operands)
        least = [one.name for one in others if operand not in one.passed]
        names = [one.name for one in others]
        if len(depths) < len(names) and len(depths) != len(least):
            also = f", or {len(least) + 1} ({', '.join((first.name, *least))})" if len(least) < len(names) else ""
            raise InputError(f"{where}: {operand} has {len(depths) + 1} lists of loops; machine {machine.name} needs "
                             f"{len(names) + 1} ({', '.join((first.name, *names))}){also}")  # fmt: skip
        lies = least if len(depths) == len(least) else names
        lists = zip(depths, lies, strict=False)
        stays += [(depth, Stay(operand, name)) for depth, name in lists]  # type: ignore[arg-type]
        notes += [f"{operand} passes {name} by" for name in names if name not in lies]
        if len(depths) > len(names):
            notes.append(f"folded into the tile: memories of {operand} nearer than {names[-1]}")
    nest, folded = nest_from(loops, stays, layer, machine, where)
    return nest, (*notes, *folded)


# ---- writing ---------------------------------------------------------------------------------------------------------


def loops_of(nest: LevelNest, layer: Layer) -> tuple[list[Loop], list[Placed]]:
    """Return the loops of a nest that cut something, and its Stays with how many of them stand outside."""
    loops, stays, size = list[Loop](), list[Placed](), {d: layer.extent(d) for d in DIMS}
    for item in nest.items:
        if isinstance(item, Stay):
            stays.append((len(loops), item))
        elif item.step < size[item.dim]:
            loops.append(Loop(item.dim, item.step))
            size[item.dim] = item.step
    return loops, stays


def turns_of(nest: LevelNest, layer: Layer, what: str) -> tuple[list[Turn], dict[str, list[int]]]:
    """Return all loops with counts, those of the tile last, and how many stand outside each memory of an operand.

    Raises InputError where a step has no count, since it does not divide the one outside it.
    """
    loops, stays = loops_of(nest, layer)
    left = {d: iter(counts) for d, counts in counted(loops, layer, what).items()}
    turns = [Turn(loop.dim, *next(left[loop.dim])) for loop in loops]
    turns += [Turn(d, *count) for d in DIMS for count in left[d] if count[0] > 1]
    return turns, {x: [depth for depth, one in stays if one.operand == x] for x in layer.operands}


def to_levels(nest: LevelNest, layer: Layer, machine: Machine, what: str) -> Levels:
    """Return levels that say the same; raises InputError if the Stays of a memory have no place in common."""
    loops, stays = loops_of(nest, layer)
    first, *others = memories_of(machine).memories
    places, least = [(0, first.name, frozenset(layer.operands))], 0
    lows = dict[Stay, int]()
    for memory in others:
        here = [(depth, one) for depth, one in stays if one.memory == memory.name]
        reach = {one: _reach(depth, one, stays, loops) for depth, one in here}
        lows |= {one: low for one, (low, _) in reach.items()}
        least = max([least, *lows.values()])
        out = min(reach, key=lambda one: reach[one][1], default=None)
        if out is not None and (high := reach[out][1]) < least:
            inner = max(lows, key=lambda one: lows[one])
            raise InputError(
                f"{what}: {out.operand}@{out.memory} stays outside {loops[high].dim} {loops[high].step}, "
                f"{inner.operand}@{inner.memory} inside it: what a level keeps has one place among the loops, inside "
                "that of farther levels; accelforge and zigzag-json say such Stays"
            )
        if here:
            places.append((least, memory.name, frozenset(one.operand for _, one in here)))
    return placed(loops, counted(loops, layer, what), places)


def _reach(depth: int, stay: Stay, stays: Sequence[Placed], loops: Sequence[Loop]) -> tuple[int, int]:
    """The places that a Stay may move to."""
    first = next(one for _, one in stays if one.operand == stay.operand)
    kept = set(RELEVANT[stay.operand])
    inwards = kept | (set("nij") if stay.operand == "OUT" and stay != first else set())
    low = high = depth
    while low > 0 and loops[low - 1].dim not in kept:
        low -= 1
    while high < len(loops) and loops[high].dim not in inwards:
        high += 1
    return low, high

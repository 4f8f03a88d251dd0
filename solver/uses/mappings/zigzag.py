"""Mappings of ZigZag: what users write (YAML), and what it says of the mapping that it found (JSON).

::

    - name: conv1                                  YAML: the entry of the layer's name, else of its kind, else default
      spatial_mapping: {D1: ["K, 32"], D2: ["C, 32"]}
      temporal_ordering: [[OX, 112], [OY, 112], [K, 2]]             innermost first; "*" is what is left
      memory_operand_links: {O: O, W: I2, I: I1}                    not read: one memory

    {"spatial_mapping": ..., "temporal_mapping": {"O": [["(K, 2)"], ["(OX, 4)"]], "W": [..], "I": [..]}}    JSON

JSON lists the loops of every memory of an operand, innermost first: the last list is off the chip, the one before is
the outermost memory on the chip, which is what is priced (`level` 1; 2 is the next one inwards). YAML says the order of
loops and leaves it to ZigZag which memory has which; here they are held where they move least (`held`).

Sources: ``docs/source/mapping.rst``, ``zigzag/parser/mapping_validator.py``, ``zigzag/mapping/temporal_mapping.py`` of
KULeuven-MICAS/zigzag at 3d12a96. The order has to be complete: with what runs side by side it makes the whole layer.

**Depths** (`held`): where operands are held, for mappings that state the order of loops and leave the memory of each to
the tool. Of all depths of the three Holds that fit, the ones that move the fewest bytes; of these those that take least
memory. What an operand moves depends on the loops outside its own Hold alone, and memory is a sum over the operands, so
each is priced by itself: with L loops 3 (L + 1) prices instead of (L + 1)^3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from math import prod

from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.errors import InputError, choices
from instances.foreign.products import Workload
from instances.jsonfile import Json, shown
from instances.machine.machine import Machine
from instances.network.workload import DIMS as OURS
from instances.network.workload import Layer
from solver.uses.mappings.given import Mapped, part_of
from solver.uses.mappings.levels import Turn, cutting, levels_of, stepped


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


DIMS = {"B": "b", "G": "g", "K": "m", "C": "n", "OY": "r", "OX": "c", "FY": "i", "FX": "j"}
OPERANDS = {"I": "IN", "W": "W", "O": "OUT"}
_DIVISORS = "; solve with --pin sizes=divisors"
_PAIR = re.compile(r"\(?\s*([A-Za-z]\w*)\s*,\s*([0-9]{1,9})\s*\)?")


def is_mapping(data: Json) -> bool:
    """Whether data are those of a mapping, in either form."""
    return _found(data) is not None or bool(_entries(data))


def _entries(data: Json) -> list[Mapping[str, Json]]:
    rows = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    keys = ("spatial_mapping", "temporal_ordering", "memory_operand_links")
    return [one for one in rows if "name" in one and any(key in one for key in keys)]


def _found(data: Json) -> Mapping[str, Json] | None:
    """What ZigZag says of the mapping that it found."""
    inside = data.get("inputs") if isinstance(data, dict) else None
    for one in (data, inside):
        if isinstance(one, dict) and isinstance(one.get("temporal_mapping"), dict):
            return one
    return None


def states(data: Json, workload: Workload) -> bool:
    """Whether the entry for a layer states an order of loops."""
    return _found(data) is not None or bool(_entry(data, workload, "mapping").get("temporal_ordering"))


def read(
    data: Json, workload: Workload, machine: Machine, level: str | None = None, where: str = "mapping"
) -> tuple[Nest, tuple[str, ...]]:  # fmt: skip
    """Return the nest of a mapping for a layer, and what was folded or assumed.

    Raises InputError if it is no complete mapping of the layer.
    """
    if (found := _found(data)) is not None:
        return _read_found(found, workload, level, where)
    if level is not None:
        raise InputError(f"{where}: --level {level}: an order of loops names no levels")
    entry = _entry(data, workload, where)
    here = f"{where}: {entry['name']}"
    beside = _beside(entry.get("spatial_mapping"), workload, here)
    ordering = entry.get("temporal_ordering")
    if not isinstance(ordering, list) or not ordering:
        raise InputError(f"{here}: no temporal_ordering: ZigZag searches for one, a mapping to price states it")
    pairs = _filled(list(_pairs(ordering, workload, here)), beside, workload.layer)
    every = cutting(_loops(pairs, beside, workload, here), workload.layer)
    loops = [item for item in every.items if isinstance(item, Loop)]
    nest = held(loops, workload.layer, machine)
    kept = [item for item in nest.items if isinstance(item, Loop)]
    notes = [*_side(beside), *_folded(loops[len(kept) :])]
    return nest, (*notes, f"the file leaves it open what the memory holds: taken is what moves least on {machine.name}")


def _read_found(
    found: Mapping[str, Json], workload: Workload, level: str | None, where: str
) -> tuple[Nest, tuple[str, ...]]:  # fmt: skip
    number = 1 if level is None else int(level) if level.isascii() and level.isdigit() and level != "0" else 0
    if not number:
        raise InputError(f"{where}: --level {level}: levels of ZigZag's mapping are 1 (outermost on the chip), 2, ...")
    loops, outside, beside = loops_in(dict(found), workload, number, where)
    depths = {operand: numbers[number - 1] for operand, numbers in outside.items()}
    deepest = max(depths.values())
    nest = cutting(at(loops[:deepest], depths, workload.layer).items, workload.layer)
    return nest, (*beside, *_folded(loops[deepest:]))


def loops_in(
    data: Json, workload: Workload, least: int, where: str
) -> tuple[list[Loop], dict[str, list[int]], tuple[str, ...]]:
    """Return the loops that ZigZag found, where memories of operands stand among them, and what runs side by side.

    Loops outermost first; of every operand how many stand outside each of its memories on the chip, the far ones first.
    Raises InputError if it is no complete mapping of the layer, has fewer than `least` memories on the chip for an
    operand, or another order of loops for each.
    """
    found = _found(data)
    if found is None:
        raise InputError(
            f"{where}: an order of loops names no memories: what ZigZag found does (temporal_mapping, JSON)"
        )
    beside = _beside(_plain_spatial(found.get("spatial_mapping")), workload, where)
    names = {one: name for name, one in (workload.operands or OPERANDS).items()}
    lists = found["temporal_mapping"]
    if not isinstance(lists, dict):
        raise InputError(f"{where}: temporal_mapping is no object")
    pairs: dict[str, list[tuple[str, int]]] = {}
    outside = {}
    for operand in workload.layer.operands:
        levels = lists.get(names[operand])
        if not isinstance(levels, list) or len(levels) <= least:
            raise InputError(f"{where}: temporal_mapping.{names[operand]} has no {least + 1} levels")
        parts = [list(_pairs(one if isinstance(one, list) else [], workload, where)) for one in levels]
        pairs[operand] = [pair for part in parts for pair in part]
        outside[operand] = [sum(len(part) for part in parts[-number:]) for number in range(1, len(parts))]
    first = pairs[workload.layer.operands[0]]
    for operand, one in pairs.items():
        if one != first:
            raise InputError(f"{where}: loops of {names[operand]} are in another order than those of the others")
    return _loops(first, beside, workload, where), outside, tuple(_side(beside))


def _entry(data: Json, workload: Workload, where: str) -> Mapping[str, Json]:
    """The entry for a layer."""
    entries = {str(one["name"]): one for one in reversed(_entries(data))}
    for name in (workload.layer.name, workload.kind, "default"):
        if name and name in entries:
            return entries[name]
    said = f"layer {workload.layer.name}" + (f" ({workload.kind})" if workload.kind else "")
    raise InputError(f"{where}: no entry for {said} and no default; it has {choices(entries)}")


def _dim(name: str, workload: Workload, where: str) -> str:
    dims = workload.dims or DIMS
    if name not in dims:
        raise InputError(f"{where}: unknown dimension {name!r}, layer {workload.layer.name} has {choices(dims)}")
    return dims[name]


def _pairs(rows: Sequence[Json], workload: Workload, where: str) -> Iterator[tuple[str, int]]:
    """Dimension and size of every loop; 0 for a star."""
    for row in rows:
        values = row if isinstance(row, list) and len(row) == 2 else None
        if values is None and isinstance(row, str) and (match := _PAIR.fullmatch(row.strip())):
            values = [match[1], int(match[2])]
        if values is None or not isinstance(values[0], str):
            raise InputError(f"{where}: loop {shown(row)} is not [OX, 4]")
        size = 0 if values[1] == "*" else values[1]
        if isinstance(size, bool) or not isinstance(size, int) or (size < 1 and values[1] != "*"):
            raise InputError(f"{where}: loop {shown(row)}: the size is a positive integer, or '*' for what is left")
        yield _dim(values[0], workload, where), size


def _plain_spatial(value: Json) -> Json:
    """The unrollings of a found mapping: of any operand all loops side by side, as users write them."""
    if not isinstance(value, dict):
        return value
    inner = value.get("spatial_mapping", value)
    if isinstance(inner, dict) and "O" in inner and isinstance(inner["O"], list):  # by operand and memory
        pairs = [pair for level in inner["O"] if isinstance(level, list) for pair in level]
        return {"D1": pairs}
    return inner


def _beside(value: Json, workload: Workload, where: str) -> dict[str, int]:
    """What runs side by side, by dimension."""
    found = dict.fromkeys(OURS, 1)
    for axis in value.values() if isinstance(value, dict) else ():
        rows = [[name, size] for name, size in axis.items()] if isinstance(axis, dict) else axis
        for dim, size in _pairs(rows if isinstance(rows, list) else [], workload, f"{where}: spatial_mapping"):
            found[dim] *= max(1, size)
    return found


def _filled(pairs: Sequence[tuple[str, int]], beside: Mapping[str, int], layer: Layer) -> list[tuple[str, int]]:
    """Loops with sizes in place of stars: the first star of a dimension takes what is left."""
    found, starred = list[tuple[str, int]](), set[str]()
    for dim, size in pairs:
        if size == 0:
            stated = prod(n for d, n in pairs if d == dim and n)
            left = -(-layer.extent(dim) // (beside[dim] * stated))
            size = 1 if dim in starred else left
            starred.add(dim)
        found.append((dim, size))
    return found


def _loops(pairs: Sequence[tuple[str, int]], beside: Mapping[str, int], workload: Workload, where: str) -> list[Loop]:
    """Every loop, outermost first; raises InputError unless they make the layer."""
    layer = workload.layer
    names = {one: name for name, one in (workload.dims or DIMS).items()}
    for dim in OURS:
        count, needed = prod(n for d, n in pairs if d == dim), -(-layer.extent(dim) // beside[dim])
        if count != needed:
            side = f" beside {beside[dim]} side by side" if beside[dim] > 1 else ""
            said = f"{names.get(dim, dim)} runs {count} times{side}, layer {layer.name} needs {needed}"
            raise InputError(f"{where}: {said}: {layer.extent(dim)} in all")
    return stepped(pairs[::-1], beside, layer)


def _side(beside: Mapping[str, int]) -> Iterator[str]:
    side = [f"{dim} {count}" for dim, count in beside.items() if count > 1]
    if side:
        yield f"folded into the tile: {' '.join(side)} side by side"


def _folded(loops: Sequence[Loop]) -> Iterator[str]:
    if loops:
        yield f"folded into the tile: {' '.join(f'{loop.dim} {loop.step}' for loop in loops)}"


# ---- export ----------------------------------------------------------------------------------------------------------


def write(nest: Nest, workload: Workload, *, as_json: bool) -> tuple[str, tuple[str, ...]]:
    """Return the text of a mapping, and what it does not say.

    Raises InputError for nests that sizes cannot say: free pieces, cores, lines, and pieces that do not divide a
    dimension.
    """
    layer = workload.layer
    levels, lost = levels_of(nest, layer, what="a ZigZag mapping")
    dims = {one: name for name, one in (workload.dims or DIMS).items()}
    turns = [(k, turn) for k, level in enumerate(levels) for turn in level.turns]
    if as_json:
        check_divides([turn for _, turn in turns], layer, _DIVISORS)
        outside = {}
        for operand in layer.operands:
            first = next(k for k, level in enumerate(levels) if k and operand in level.keeps)
            outside[operand] = [sum(k < first for k, _ in turns)]
        return written([turn for _, turn in turns], outside, workload), lost
    check_divides([turn for _, turn in turns], layer, _DIVISORS)
    loops = [(dims[turn.dim], turn.count) for _, turn in turns]
    depths = {op: next(level.name for level in levels[1:] if op in level.keeps) for op in layer.operands}
    lines = [f"- name: {layer.name}", "  spatial_mapping: {}", "  temporal_ordering: # innermost first"]
    lines += [f"    - [{d}, {n}]" for d, n in reversed(loops)] or ["    []"]
    lines += ["  memory_operand_links: {O: O, W: I2, I: I1}"]
    said = ", ".join(f"{operand} in {name}" for operand, name in depths.items())
    note = f"not said: what the memory holds ({said}); ZigZag decides it, a .json file says it"
    return "\n".join(lines) + "\n", (*lost, note)


def check_divides(turns: Sequence[Turn], layer: Layer, hint: str = "") -> None:
    """Raise InputError where a count is another one in the last pass."""
    for turn in turns:
        if turn.last not in (0, turn.count):
            said = f"{turn.dim} of {layer.extent(turn.dim)} is cut in pieces that do not divide it"
            raise InputError(f"a ZigZag mapping: {said}{hint}")


def written(turns: Sequence[Turn], outside: Mapping[str, Sequence[int]], workload: Workload) -> str:
    """Return JSON of loops, outermost first, and of how many stand outside each memory of an operand, far ones first.

    Raises InputError where pieces do not divide a dimension.
    """
    check_divides(turns, workload.layer)
    dims = {one: name for name, one in (workload.dims or DIMS).items()}
    names = {one: name for name, one in (workload.operands or OPERANDS).items()}
    lists = {}
    for operand, numbers in outside.items():
        bounds = [*reversed([0, *numbers, len(turns)])]
        parts = [turns[begin:end][::-1] for end, begin in pairwise(bounds)]
        lists[names[operand]] = [[f"({dims[one.dim]}, {one.count})" for one in part] for part in parts]
    said = {"layer": workload.layer.name, "spatial_mapping": {}, "temporal_mapping": lists}
    return json.dumps(said, indent=1) + "\n"

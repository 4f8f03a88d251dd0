"""Mappings of Timeloop (version 0.3 and 0.4): directives for levels, each with factors and a permutation.

::

    mapping:
      - {target: DRAM, type: temporal, factors: C=1 M=4 P=28,20, permutation: MPC}    innermost first
      - {target: PE, type: spatial, factors: C=3, permutation: C}
      - {target: shared_glb, type: dataspace, keep: [Inputs, Outputs], bypass: [Weights]}

What is read, and where Timeloop says so (``src/mapping/parser.cpp`` of NVlabs/timeloop at 4cf6d4c)
    * ``P=28,20`` is 28 iterations, 20 in the last pass of the loops outside; ``P=0`` the whole dimension; a dimension
      that is not named has one iteration (`ParseUserFactors`);
    * the permutation stands innermost first; dimensions that it lacks stand outside the others (there: in any order);
    * a level keeps every data space that it does not bypass;
    * factors must make the size of every dimension, no more (`prod` there).
The order of the levels is that of their first directive, outermost first; where the last one is called like a main
memory and the first one is not, as in files that the mapper writes, innermost first. (In Timeloop the architecture says
it.) What a mapping says about sharing and links between units (`no_reuse`, ..) changes no traffic off the chip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from hwmodels.schedule import Nest
from instances.errors import InputError, choices
from instances.foreign.products import Workload
from instances.jsonfile import Json, shown
from instances.network.workload import Layer
from solver.uses.mappings.levels import Level, Levels, Turn, check_cover, levels_of, nest_from

DIMS = {"C": "n", "K": "m", "M": "m", "R": "i", "S": "j", "P": "r", "Q": "c", "N": "b", "G": "g"}
OPERANDS = {"Weights": "W", "Inputs": "IN", "Outputs": "OUT"}
OURS = {"n": "C", "m": "K", "i": "R", "j": "S", "r": "P", "c": "Q", "b": "N", "g": "G"}
_FACTOR = re.compile(r"([A-Za-z_]\w*?)\s*=?\s*([0-9]{1,9})(?:\s*,\s*([0-9]{1,9}))?(?=[\s,]|$)")
_MAIN = re.compile(r"dram|main.?mem|off.?chip|backing|ddr|hbm", re.IGNORECASE)
_STORES = ("datatype", "dataspace", "bypass")
_IGNORED = ("skew",)


def is_mapping(data: Json) -> bool:
    """Whether data are those of a mapping file."""
    return bool(_directives(data))


def _directives(data: Json) -> list[Mapping[str, Json]]:
    found = data.get("mapping") if isinstance(data, dict) else data
    if isinstance(found, dict):
        found = found.get("nodes")
    if not isinstance(found, list) or not found:
        return []
    rows: list[Mapping[str, Json]]
    rows = [one for one in found if isinstance(one, dict) and "target" in one and "type" in one]
    return rows if len(rows) == len(found) else []


def read(
    data: Json, workload: Workload, level: str | None = None, where: str = "mapping"
) -> tuple[Nest, tuple[str, ...]]:  # fmt: skip
    """Return the nest of a mapping for a layer, and what was folded or assumed.

    Raises InputError if it is no mapping of the layer: names the directive, or the dimension whose factors do not make
    its size.
    """
    levels, notes = levels_in(data, workload, where)
    nest, said = nest_from(levels, workload.layer, level)
    return nest, (*notes, *said)


def levels_in(data: Json, workload: Workload, where: str = "mapping") -> tuple[Levels, tuple[str, ...]]:
    """Return the levels of a mapping with their loops, outermost first; raises InputError as `read`."""
    layer, dims = workload.layer, workload.dims or DIMS
    operands = {**{name.lower(): one for name, one in OPERANDS.items()},
                **{name.lower(): one for name, one in workload.operands.items()}}  # fmt: skip
    rows = _directives(data)
    names = list(dict.fromkeys(str(row["target"]) for row in rows))
    turns: dict[str, list[Turn]] = {name: [] for name in names}
    bypassed: dict[str, set[str]] = {name: set() for name in names}
    stores, notes = set[str](), list[str]()
    for number, row in enumerate(rows):
        target, kind = str(row["target"]), str(row["type"])
        here = f"{where}: directive {number + 1} ({target}, {kind})"
        if kind in ("temporal", "spatial"):
            turns[target] += _turns(row, kind == "spatial", layer, dims, here, notes)
            stores |= {target} if kind == "temporal" else set()
        elif kind in _STORES:
            stores.add(target)
            bypassed[target] |= set(_named(row.get("bypass"), operands, here))
        elif kind not in _IGNORED:
            raise InputError(f"{here}: unknown type, expected temporal, spatial or dataspace")
    keeps = {name: frozenset(layer.operands) - bypassed[name] if name in stores else frozenset() for name in names}
    levels = tuple(Level(name, tuple(turns[name]), keeps[name]) for name in _ordered(names, keeps, notes))
    check_cover(levels, layer, dims, exact=True)
    return levels, tuple(notes)


def _ordered(names: Sequence[str], keeps: Mapping[str, frozenset[str]], notes: list[str]) -> list[str]:
    """The levels outermost first."""
    order = list(names)
    if _MAIN.search(names[-1]) and not _MAIN.search(names[0]):
        order.reverse()
    elif not _MAIN.search(names[0]):
        notes.append(f"level {names[0]} is taken for the memory off the chip: it stands first")
    notes.append(f"levels, outermost first: {' > '.join(name for name in order if keeps[name])}")
    return order


def _turns(
    row: Mapping[str, Json], beside: bool, layer: Layer, dims: Mapping[str, str], where: str, notes: list[str]
) -> Iterator[Turn]:  # fmt: skip
    """The loops of a directive, outermost first."""
    factors = dict(_factors(row.get("factors"), layer, dims, where))
    order = _permutation(row.get("permutation"), dims, where)
    real = [name for name, (count, _) in factors.items() if count > 1]
    unordered = [name for name in real if name not in order]
    if len(real) > 1 and unordered and not beside:
        notes.append(f"{where}: the permutation does not name {', '.join(unordered)}: taken as outermost")
    for name in (*unordered, *reversed(order)):
        if name in factors:
            yield Turn(dims[name], *factors[name], beside)


def _factors(
    value: Json, layer: Layer, dims: Mapping[str, str], where: str
) -> Iterator[tuple[str, tuple[int, int]]]:  # fmt: skip
    """Every dimension's count and that of the last pass."""
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value or "")
    text = text.partition("#")[0]
    if left := _FACTOR.sub("", text).replace(",", " ").split():
        raise InputError(f"{where}: factors {shown(text)}: {left[0]!r} is not P=4 or P=4,2")
    for match in _FACTOR.finditer(text):
        name, count, last = match[1], int(match[2]), int(match[3] or 0)
        if name not in dims:
            raise InputError(
                f"{where}: unknown dimension {name!r} in factors, expected one of {choices(dims)}, as the problem calls"
                " them (export-mapping --names-of FILE writes these names)"
            )
        if count == 0:
            count = layer.extent(dims[name])
        if last > count:
            raise InputError(f"{where}: {match[0]}: the last pass has more iterations than the others")
        yield name, (count, last or count)


def _permutation(value: Json, dims: Mapping[str, str], where: str) -> list[str]:
    """The dimensions, innermost first."""
    if isinstance(value, list):
        names = [str(name) for name in value]
    else:
        text = str(value or "").strip()
        names = [name for name in re.split(r"[\s,]+", text) if name] if re.search(r"[\s,]", text) else list(text)
    for name in names:
        if name not in dims:
            raise InputError(f"{where}: unknown dimension {name!r} in permutation, expected one of {choices(dims)}")
    if len(set(names)) < len(names):
        raise InputError(f"{where}: permutation {value!r} names a dimension twice")
    return names


def _named(value: Json, operands: Mapping[str, str], where: str) -> Iterator[str]:
    """Data spaces as operands."""
    for name in value if isinstance(value, list) else []:
        if str(name).lower() not in operands:
            raise InputError(f"{where}: unknown data space {name!r}, expected one of {choices(operands)}")
        yield operands[str(name).lower()]


# ---- export ----------------------------------------------------------------------------------------------------------


def write(nest: Nest, workload: Workload) -> tuple[str, tuple[str, ...]]:
    """Return the text of a mapping file (version 0.4), and what it does not say.

    Raises InputError for nests that counts cannot say.
    """
    levels, lost = levels_of(nest, workload.layer, what="a Timeloop mapping")
    parts = [level.name for level in levels[1:]]
    said = (f"{', '.join(parts)} are parts of one memory: the architecture needs a level for each",)
    return write_levels(levels, workload), (*lost, *(said if len(parts) > 1 else ()))


def write_levels(levels: Levels, workload: Workload) -> str:
    """Return the text of a mapping file (version 0.4).

    Raises InputError where a level has two loops over a dimension.
    """
    dims = {one: name for name, one in workload.dims.items()} if workload.dims else OURS
    operands = {one: name for name, one in (workload.operands or OPERANDS).items()}
    if workload.layer.g > 1 and "g" not in dims:
        raise InputError(f"a Timeloop mapping: layer {workload.layer.name} has groups, its problem has no dimension")
    lines = [f"# {workload.layer.name}: permutations innermost first", "mapping:"]
    for level in levels:
        lines += _level(level, dims)
    for level in levels[1:] if len(levels) > 2 else ():
        passing = [operand for operand in workload.layer.operands if operand not in level.keeps]
        kept = [operand for operand in workload.layer.operands if operand in level.keeps]
        lines += [
            f"  - target: {level.name}", "    type: dataspace",
            f"    keep: [{', '.join(operands[one] for one in kept)}]",
            f"    bypass: [{', '.join(operands[one] for one in passing)}]",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _level(level: Level, dims: Mapping[str, str]) -> Iterator[str]:
    """The lines of a directive."""
    turns = _single(level)
    counts = {turn.dim: turn for turn in turns}
    texts = []
    for one, name in dims.items():
        turn = counts.get(one)
        last = f",{turn.last}" if turn and turn.last not in (0, turn.count) else ""
        texts.append(f"{name}={turn.count if turn else 1}{last}")
    order = [dims[turn.dim] for turn in reversed(turns)]
    rest = [name for name in dims.values() if name not in order]
    yield from (f"  - target: {level.name}", "    type: temporal", f"    factors: {' '.join(texts)}")
    yield f"    permutation: {_joined([*order, *rest])}"


def _joined(names: Sequence[str]) -> str:
    """One word where names are letters, else a list."""
    return "".join(names) if all(len(name) == 1 for name in names) else f"[{', '.join(names)}]"


def _single(level: Level) -> tuple[Turn, ...]:
    """The loops of a level, one a dimension."""
    dims = [turn.dim for turn in level.turns]
    for dim in dims:
        if dims.count(dim) > 1:
            said = f"{dim} is cut {dims.count(dim)} times in level {level.name}, with nothing held between"
            raise InputError(f"a Timeloop mapping: {said}: a level has one factor for it")
    return level.turns

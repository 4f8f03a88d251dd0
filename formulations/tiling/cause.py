"""Why a bound is left below the plan: the loops of the nests that have it, and what of their pieces is not known.

``W | r in 7 | IN OUT; r: of the pieces only the largest is known`` are nests that hold W outside a loop that cuts the
rows; there are 7 pieces behind it. No way to cut them is known whose value is the bound; nor is it proven that there
is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from formulations.tiling.branch import Branch
from formulations.tiling.splitting import Least
from hwmodels.nest.price.choices import AXIS, Q_DIMS, Choices, numbered
from hwmodels.nest.price.core import CorePieces
from hwmodels.nest.price.skeleton import Skeleton, cores
from instances.network.workload import DIMS

#: What bounds leave open of the pieces of a dimension, by how they count them (`formulations.tiling.classes`).
_OPEN = {
    "vectors": "each operand has the sizes of pieces that suit it best",
    "steps": "of the pieces only the largest is known",
    "counts": "of the pieces only the number is known",
    "sums": "windows lie where they take least",
    "listed": "bursts are those of the best sizes",
    "": "windows that may hold nothing do not count",
    "kernel": "each part fetches the least that any part may",
}
_OVERLAP = "transfers that overlap are bounded, not laid out"


class _Loops(CorePieces):
    """The loops of one choice."""

    def cut(self) -> list[tuple[str, int] | None]:
        """Every loop with the pieces of its dimension from there on; None where it cuts nothing."""
        found = list[tuple[str, int] | None]()
        for d, level in numbered(self.skeleton.order):
            before, now = int(self._trips(d, level)[0]), int(self._trips(d, level + 1)[0])
            found.append((d, now) if now > before else None)
        return found


def cause(at: tuple[Branch, int, int] | Least) -> str:
    """Say what nests a choice of bounds stands for, or a class of them, and what of them is only bounded."""
    if isinstance(at, Least):
        return "; ".join([_loops(at.hidden.skeleton, [*_ranges(at)]), _OVERLAP])
    branch, s, q = at
    layer, skeleton = branch.layer, branch.skeleton
    core, choices = cores(layer, skeleton.spatial)[0], _one(branch.choices, s, q)
    cut = _Loops(layer, branch.machine, skeleton, core, choices).cut()
    loops = [one and f"{one[0]} in {one[1]}" for one in cut]
    return "; ".join([_loops(skeleton, loops), *_open(branch, {one[0] for one in cut if one})])


def _loops(skeleton: Skeleton, cut: Sequence[str | None]) -> str:
    """What is held where, and what the loops make."""
    words = list[str]()
    for place, loop in enumerate([*cut, None]):
        words += [op for op, depth in skeleton.depth.items() if depth == place]
        words += [f"| {loop} |"] if loop else []
    return " ".join(words).replace("| |", "|").strip("| ")


def _ranges(least: Least) -> Iterator[str | None]:
    """By loop how many pieces of its dimension a class has from there on, and how large they are; None where one."""
    hidden, some = least.hidden, least.ranges
    for d, level in numbered(hidden.skeleton.order):
        numbers, sizes = ([int(hidden.sized(x, d, level + 1)[0]) for x in pair] for pair in some.pairs[:2])
        outer = int(hidden.counted(some.fewest, d, level)[0])
        yield f"{d} in {_range(numbers)} (<= {sizes[1]})" if numbers[1] > outer else None


def _range(ends: Sequence[int]) -> str:
    return f"{ends[0]}" if ends[0] == ends[1] else f"{ends[0]}-{ends[1]}"


def _one(choices: Choices, s: int, q: int) -> Choices:
    """A choice by itself, its chains alone."""
    at = {d: int(choices.index[AXIS[d]][q if d in Q_DIMS else s]) for d in DIMS}
    steps, tiles = ({d: table[d][k : k + 1] for d, k in at.items()} for table in (choices.steps, choices.tiles))
    return replace(Choices.product(steps, tiles), ideal=choices.ideal)


def _open(branch: Branch, dims: set[str]) -> list[str]:
    """What is not known of the dimensions that are cut."""
    ideal, said = branch.choices.ideal or {}, dict[str, list[str]]()
    for d in sorted(dims):
        how = "kernel" if d in "ij" and ideal.get(d) != "exact" else ideal.get(d, "")
        if how in _OPEN and (how != "listed" or any(price.burst_bytes for price in branch.machine.transfers)):
            said.setdefault(_OPEN[how], []).append(d)
        if d == "r" and branch.layer.resident_out and how != "exact":
            said.setdefault("tiles of OUT that may lie on chip do not count", []).append(d)
    found = [f"{', '.join(some)}: {what}" for what, some in said.items()]
    if branch.machine.by_address:
        found.append("bursts are counted as if every run began one")
    return found + ([_OVERLAP] if not branch.exact else [])

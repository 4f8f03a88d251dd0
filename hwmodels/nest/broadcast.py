"""Which core loads an operand for which others, on machines with `broadcast`.

Cores of a cluster (or of the chip) with the same ranges of all dimensions that an operand depends on form a group, and
its first core loads for all of it. Ranges are cut from their begins and the last piece is the smallest, so the first
core has the largest ranges of the other dimensions too; the others run its program without the last iterations of some
loops. What they need in an iteration is what the first core needs there. It was on chip before the iteration for the
first core exactly if it was for them: the iterations that they leave out are passes over the same tiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from hwmodels.nest.skeleton import Core
from instances.machine import Broadcast
from instances.workload import RELEVANT

__all__ = ["ROWS", "loads"]

#: The rows of counts that a core moves by itself, or loads for its group; "" stands for all rows.
ROWS: Mapping[str, frozenset[str]] = {
    "IN": frozenset({"IN"}),
    "W": frozenset({"W"}),
    "OUT": frozenset({"OUT", "PSUM_READ", "PSUM_WRITE"}),
    "": frozenset({"IN", "W", "OUT", "PSUM_READ", "PSUM_WRITE"}),
}


@lru_cache(maxsize=1024)
def loads(share: tuple[Core, ...], broadcast: Broadcast) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """By core which of `ROWS` it moves on its cluster's bus, and which of these count once for the chip."""
    if broadcast.none:
        return ((("",), ("",)),) * len(share)
    on_bus, on_chip = {}, {}
    for operand, level in broadcast.levels.items():
        on_bus[operand] = _first(share, operand, "tle" if level == "chip" else level)
        on_chip[operand] = _first(share, operand, level)
    return tuple((_moved(k, on_bus), _moved(k, on_chip)) for k in range(len(share)))


def _first(share: tuple[Core, ...], operand: str, level: str) -> set[int]:
    """The numbers of the cores that load an operand, for themselves or for their group."""
    first: dict[object, int] = {}
    for number, core in enumerate(share):
        place = {"none": number, "tle": core.tle, "chip": None}[level]
        first.setdefault((place, *(core.range(d) for d in RELEVANT[operand])), number)
    return set(first.values())


def _moved(core: int, loading: Mapping[str, set[int]]) -> tuple[str, ...]:
    return (*(operand for operand, cores in loading.items() if core in cores), "OUT")

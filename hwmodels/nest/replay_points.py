"""Where the execution of a nest fetches every operand; found on its own account, not from the walk's Holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hwmodels.schedule import Hold, Item, Loop
from instances.workload import DIMS, RELEVANT

__all__ = ["AXES", "FetchPoint", "fetch_points"]

#: The axis of IN that a dimension moves the window along.
AXES = {"r": 3, "i": 3, "c": 4, "j": 4}


@dataclass(frozen=True)
class FetchPoint:
    """Where an operand is fetched: by every iteration of the first `fetching` items.

    `axis` is the axis of IN that slides (3 rows, 4 columns) or None; the last of these items moves it. `outer` is the
    item that moves the other axis, if the two loops are neighbours: along both of them IN slides in lines.
    """

    fetching: int
    axis: int | None
    outer: int | None = None


def fetch_points(items: Sequence[Item], share: Mapping[str, tuple[int, int]], sliding: bool) -> dict[str, FetchPoint]:
    """For every operand the loops outside its Hold, down to the innermost that it depends on and that cuts."""
    found = {}
    pieces = {d: [share[d]] for d in DIMS}
    cutting = []
    for at, item in enumerate(items):
        if isinstance(item, Loop):
            finer = [piece for lo, hi in pieces[item.dim] for piece in item.pieces(lo, hi, share[item.dim][0])]
            if len(finer) > len(pieces[item.dim]):
                cutting.append((at, item.dim))
            pieces[item.dim] = finer
        elif isinstance(item, Hold):
            number = max((k + 1 for k, (_, d) in enumerate(cutting) if d in RELEVANT[item.operand]), default=0)
            at, dim = cutting[number - 1] if number else (-1, "")
            axis = AXES.get(dim) if sliding and item.operand == "IN" else None
            last = cutting[max(0, number - 2) : number]
            outer = last[0][0] if axis and {d for _, d in last} == {"r", "c"} else None
            found[item.operand] = FetchPoint(at + 1, axis, outer)
    return found

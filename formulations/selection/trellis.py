"""A frame as a layered graph: every path from its begin to its end is a choice for each layer, with all costs on arcs.

A node after layer j holds, for every layer whose map is still to be read, the state that made the map and the types to
which it has been converted. An arc is an option of the next layer. It takes what the option takes, the conversions of
the maps that it reads and that nobody before it has read so, and the hand-overs.

Example: a chain whose options are of two types has two nodes after every layer, and 2 k arcs for k options. Where a
map is read twice, its node waits until the second reader is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.problem import Unable
from formulations.selection.frame import Frame, Ints

#: Nodes after a layer, and arcs in all.
MOST_NODES, MOST_ARCS = 2_000, 1_000_000
#: A map that is still to be read: the layer, its state, the types that it is there in.
_Open = tuple[int, int, frozenset[str]]
_Node = tuple[_Open, ...]


@dataclass(frozen=True)
class Step:
    """The arcs of a layer, those from one node next to each other."""

    source: Ints
    """Nodes before the layer."""
    option: Ints
    target: Ints
    """Nodes after it."""
    takes: Ints
    """Of shape (arcs, quantities)."""
    nodes: int
    """After the layer."""


def trellis(frame: Frame) -> list[Step]:
    """Return the layers of the graph; one node is before the first and after the last layer.

    Raises
    ------
    Unable
        If too many maps are open at a time.
    """
    nodes: dict[_Node, int] = {(): 0}
    steps, arcs = list[Step](), 0
    for j in range(len(frame.layers)):
        after: dict[_Node, int] = {}
        rows: list[tuple[int, int, int]] = []
        takes: list[Ints] = []
        for node, source in nodes.items():
            for m in range(len(frame.states[j])):
                made = _read(frame, node, j, m)
                if made is None:
                    continue
                target = after.setdefault(made[0], len(after))
                for o, state in enumerate(frame.state[j]):
                    if state == m:
                        rows.append((source, o, target))
                        takes.append(frame.takes[j][o] + made[1])
        arcs += len(rows)
        if len(after) > MOST_NODES or arcs > MOST_ARCS:
            raise Unable(
                f"too many maps are open at a time ({len(after):,} states at {frame.layers[j].name}): use cp-sat"
            )
        arcs_of = np.array(rows, np.int64).reshape(-1, 3).T
        table = np.array(takes, np.int64).reshape(-1, frame.quantities)
        steps.append(Step(arcs_of[0], arcs_of[1], arcs_of[2], table, len(after)))
        nodes = after
    return steps


def _read(frame: Frame, node: _Node, j: int, m: int) -> tuple[_Node, Ints] | None:
    """The node after a layer in some state, and what lies between; None if types do not meet."""
    kept, extra, v = list[_Open](), np.zeros(frame.quantities, np.int64), frame.states[j][m]
    for i, n, kinds in node:
        if j in frame.readers[i]:
            u = frame.states[i][n]
            ticks = 0 if v[1] in kinds else frame.convert(i, u, v[1])
            if ticks is None:
                return None
            extra[u[0]] += ticks
            for q, amount in frame.hand(i, u, v).items():
                extra[q] += amount
            kinds |= {v[1]}
        if frame.readers[i][-1] > j:
            kept.append((i, n, kinds))
    if frame.readers[j]:
        kept.append((j, m, frozenset((v[1],))))
    return tuple(kept), extra

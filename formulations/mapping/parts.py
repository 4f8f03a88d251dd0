"""Parts of divided tasks as tasks of their own: what a place stands for once the assignment is known.

A task that is divided between p and q becomes two tasks, each fixed to its processor; an edge becomes one for each pair
of parts. Loads, pipelines and timetables of the result are those of the assignment, so that only the choice of places
knows of divided tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from formulations.mapping.space import Assignment, Mapping


@dataclass(frozen=True)
class Parts:
    """An assignment without divided tasks."""

    mapping: Mapping
    at: Assignment
    shares: tuple[tuple[int, int], ...]
    """By part its task and how many shares of it."""


def parts(mapping: Mapping, at: Assignment) -> Parts:
    """Return the parts of an assignment; of whole tasks, the same."""
    if mapping.split is None:
        return Parts(mapping, at, tuple((i, 1) for i in range(len(at))))
    found = [(i, p, k) for i, a in enumerate(at) for p, k in mapping.places[a]]
    number, graph = len(mapping.processors), mapping.graph
    nodes: list[list[int]] = [[] for _ in at]
    named, rows = [], []
    for n, (i, p, k) in enumerate(found):
        nodes[i].append(n)
        task, took = graph.tasks[i], mapping.part(i, p, k)
        share, name = -(-task.results * k // mapping.shares), f"{task.name}@{mapping.processors[p].name}"
        named.append(task if k == mapping.shares else replace(task, name=name, results=share))
        rows.append(tuple(took if q == p else None for q in range(number)))
    edges, copies = [], []
    for e, (i, j) in enumerate(graph.edges):
        for n in nodes[i]:
            edges += [(n, m) for m in nodes[j]]
            copies += [mapping.sent(e, found[n][2])] * len(nodes[j])
    table = np.array(copies, dtype=np.int64).reshape(len(edges), number, number)
    flat = mapping.undivided(replace(graph, tasks=tuple(named), edges=tuple(edges)), tuple(rows), table)
    return Parts(flat, tuple(p for _, p, _ in found), tuple((i, k) for i, _, k in found))

"""A network drawn from the top down: an operator lies below all that it reads, in a lane of its own beside others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from instances.network import Network
from solver.pages.data import Graph, Node


def layout(edges: Sequence[tuple[int, int]], number: int) -> list[tuple[int, int]]:
    """Return lane and rank of every node, 0 to `number` - 1 in topological order.

    The rank is the longest way from a source. A node takes the lane of the first node that it reads if nobody of its
    rank has it, else the nearest free one.
    """
    before: list[list[int]] = [[] for _ in range(number)]
    for a, b in edges:
        before[b].append(a)
    rank = [0] * number
    for b in range(number):
        rank[b] = max((rank[a] + 1 for a in before[b]), default=0)
    lane, taken = [0] * number, set[tuple[int, int]]()
    for b in sorted(range(number), key=lambda node: (rank[node], node)):
        wanted = min((lane[a] for a in before[b]), default=0)
        lane[b] = next(x for x in range(number) if (x, rank[b]) not in taken and x >= wanted)
        taken.add((lane[b], rank[b]))
    return list(zip(lane, rank, strict=True))


def graph(
    key: str, title: str, caption: str, network: Network, groups: Mapping[str, Sequence[str]], notes: Mapping[str, str],
) -> Graph:  # fmt: skip
    """Return a network with groups of operators.

    Parameters
    ----------
    groups : mapping of group to the names of its operators
    notes : mapping of operator or group to a note
    """
    names = [operator.name for operator in network.operators]
    number = {name: k for k, name in enumerate(names)}
    edges = tuple((number[a], number[operator.name]) for operator in network.operators for a in operator.inputs)
    member = {name: g for g, (_, members) in enumerate(groups.items()) for name in members}
    places = layout(edges, len(names))
    titles = tuple(groups)
    nodes = tuple(
        Node(name, float(lane), float(rank), member.get(name), _note(name, titles, member, notes))
        for name, (lane, rank) in zip(names, places, strict=True)
    )
    return Graph(key, title, caption, nodes, edges, titles)


def _note(name: str, titles: Sequence[str], member: Mapping[str, int], notes: Mapping[str, str]) -> str:
    mine = [notes.get(name, "")]
    if name in member:
        mine.append(notes.get(titles[member[name]], ""))
    return "; ".join(filter(None, mine))

"""The referee of maps in whole blocks: whether what a plan is of has the channels that its machine stores.

It shares nothing with what rounds them (`instances.network.blocks`): it looks at the shapes of all maps, and at what
is tied to a map that is no whole blocks: something there has to read or make channels that have none, or adds up maps
that have their zeros in other places.
"""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from instances.network.network import Network
from instances.network.operators import Operator

#: Operators that make the channels that they read.
_PASSING = frozenset(("pool", "eltwise", "resample", "reshape", "concat", "opaque"))


def broken_blocks(network: Network, block: int) -> Iterator[str]:
    """Name the maps of a network whose channels are no whole blocks, though nothing forbids it."""
    if block == 1:
        return
    ties: nx.Graph[str] = nx.Graph()
    for operator in network.operators:
        ties.add_node(operator.name)
        if operator.op in _PASSING or (operator.op == "conv" and _groups(operator, network) == 1):
            ties.add_edges_from((operator.name, name) for name in operator.inputs)
    for tied in nx.connected_components(ties):
        broken = [network.operator(name) for name in sorted(tied) if _channels(network.operator(name)) % block]
        readers = [operator for operator in network.operators if tied & {operator.name, *operator.inputs}]
        made = [network.operator(name) for name in tied]
        sums = any(operator.op == "eltwise" and len(operator.inputs) > 1 for operator in made)
        parts = any(operator.op == "concat" or _multiplies(operator) for operator in made)
        forbidden = (sums and parts) or any(_forbids(operator, network, block) for operator in readers)
        if broken and not forbidden:
            for operator in broken:
                if operator.op != "input" or _channels(operator) > 1:
                    yield f"map {operator.name} has {_channels(operator)} channels, no whole blocks of {block}"


def _channels(operator: Operator) -> int:
    return operator.shape[1 if len(operator.shape) == 4 else -1] if operator.shape else 1


def _groups(operator: Operator, network: Network) -> int:
    """Channels of a group of a convolution; 0 if it has one group."""
    groups = getattr(operator, "groups", 1)
    return network.operator(operator.inputs[0]).shape[1] // groups if groups > 1 else 0


def _multiplies(operator: Operator) -> bool:
    """Whether a convolution has several filters for a group of channels."""
    groups = getattr(operator, "groups", 1)
    return groups > 1 and _channels(operator) > groups


def _forbids(operator: Operator, network: Network, block: int) -> bool:
    """Whether an operator reads or makes channels that may be no whole blocks: images, products, groups, moves."""
    if operator.op == "input":
        return _channels(operator) < block
    if operator.op == "correlation" or (operator.op == "matmul" and len(operator.inputs) > 1):
        return True
    if operator.op == "conv":
        return _groups(operator, network) > 1
    return operator.op in ("reshape", "opaque")
